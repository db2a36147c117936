"""Declarations of kinds and relations: recordings with their digits and speakers, and small lists."""

SPEAKERS, TAKES = ("george", "theo", "nicolas"), range(9)
MUSIC = """
[kinds.recording]
data = "digits"
split = "SIDE"
features = "mfcc"
n_words = 200

[relations.digits]
query = "recording"
target = "digit"
names = "digit"

[relations.speakers]
query = "recording"
target = "speaker"
names = "speaker"

[relations.recordings]
query = "speaker"
target = "recording"
names = "speaker"

[relations.voices]
query = "recording"
target = "recording"
names = "speaker"

[space]
dim = 24
epochs = 30
"""
PAIRS = """
[relations.near]
query = "artist"
target = "artist"
pairs = "near.tsv"

[relations.genres]
query = "artist"
target = "genre"
pairs = "genres.tsv"
weight = 2

[space]
dim = 8
epochs = 40
"""
