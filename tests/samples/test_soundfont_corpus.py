"""The script that renders sounds of instruments: what it plans and writes, and, where fluidsynth is, what comes out."""

import argparse
import csv
import doctest
import importlib
import sys
from collections import defaultdict
from pathlib import Path
from shutil import which

import numpy as np
import pytest

from wsabie.io.data_sources import open_source
from wsabie.io.datasets.attribute_recognition import read_attributes
from wsabie.storage.rejects import Rejects

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import soundfont_corpus
from soundfont.instruments import FAMILIES, INSTRUMENTS
from soundfont.midi import midi_file
from soundfont.plan import MOST, planned
from soundfont.render import RATE


@pytest.mark.parametrize("name", ["plan", "midi"])
def test_doctests(name: str) -> None:
    failed, n_examples = doctest.testmod(importlib.import_module(f"soundfont.{name}"))
    assert (failed, n_examples > 0) == (0, True)


def test_there_are_128_instruments_in_families_of_eight() -> None:
    assert len({name for name, _ in INSTRUMENTS}) == 128
    assert [sum(family == family_name for _, family in INSTRUMENTS) for family_name in FAMILIES] == [8] * 16
    assert INSTRUMENTS[40] == ("Violin", "Strings")
    assert INSTRUMENTS[73] == ("Flute", "Pipe")
    assert not any(";" in name for pair in INSTRUMENTS for name in pair)  # it separates labels


@pytest.mark.parametrize("count", [8, 21, 24, MOST])
def test_sounds_that_share_a_root_are_on_one_side(count: int) -> None:
    sounds = planned(40, count, seed=3)
    sides = defaultdict(set)
    for sound in sounds:
        sides[sound.root].add(sound.split)
    assert len(set(sounds)) == len({sound.file_name for sound in sounds}) == count
    assert all(len(root_sides) == 1 for root_sides in sides.values())
    assert {side for root_sides in sides.values() for side in root_sides} == {"train", "test"}
    assert planned(40, count, seed=3) == sounds != planned(40, count, seed=4)
    assert all(0 < note < 128 for sound in sounds for note in sound.notes)


def test_a_midi_file_plays_what_it_was_given() -> None:
    content = midi_file(5, [((60, 64), 100), ((61,), 44)], every=3_000, length=1_200)
    assert content[:14] == b"MThd" + bytes([0, 0, 0, 6, 0, 0, 0, 1, 1000 >> 8, 1000 & 255])
    assert int.from_bytes(content[18:22], "big") == len(content) - 22
    assert events(content[22:]) == [
        (0, "c0 05"),
        (0, "90 3c 64"),
        (0, "90 40 64"),
        (1_200, "80 3c 00"),
        (1_200, "80 40 00"),
        (2_950, "b0 78 00"),
        (3_000, "90 3d 2c"),
        (4_200, "80 3d 00"),
        (5_950, "b0 78 00"),
    ]


def events(track: bytes) -> list[tuple[int, str]]:
    """(milliseconds, message) of all that is played."""
    messages, now, at = [], 0, 0
    while True:
        wait = 0
        while track[at] & 0x80:
            wait, at = wait << 7 | track[at] & 0x7F, at + 1
        wait, at = wait << 7 | track[at], at + 1
        now += wait
        if track[at] == 0xFF:
            if track[at + 1] == 0x2F:
                assert at + 3 == len(track)
                return messages
            at += 3 + track[at + 2]
        else:
            size = 2 if track[at] >> 4 == 0xC else 3
            messages.append((now, track[at : at + size].hex(" ")))
            at += size


def test_missing_programs_and_wrong_numbers_are_told(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(soundfont_corpus, "which", lambda name: None)
    options = ["--out", str(tmp_path / "o"), "--soundfont", str(tmp_path / "none.sf2")]
    assert soundfont_corpus.main(options) == 1
    assert f"missing: fluidsynth, {tmp_path / 'none.sf2'}" in capsys.readouterr().err
    monkeypatch.setattr(soundfont_corpus, "_missing", lambda options: [])
    assert soundfont_corpus.main([*options, "--per-instrument", "7"]) == 1
    assert f"--per-instrument is 7 but has to be 8 to {MOST}" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A violin and a flute."""
    if not which("fluidsynth") or not soundfont_corpus.SOUNDFONT.is_file():
        pytest.skip("Debian's fluidsynth and timgm6mb-soundfont are not installed")
    pytest.importorskip("soundfile", reason="soundfile writes the sounds")
    pytest.importorskip("soxr", reason="soxr changes rates")
    out = tmp_path_factory.mktemp("corpus")
    options = argparse.Namespace(per_instrument=8, seed=1, soundfont=soundfont_corpus.SOUNDFONT)
    soundfont_corpus.build(out, (40, 73), options, Rejects())
    return out


def test_what_is_rendered_is_a_collection(corpus: Path) -> None:
    source = open_source(corpus)
    assert {item.labels for item in source} == {("Violin", "Strings"), ("Flute", "Pipe")}
    assert len(source) == 16
    assert len(open_source(corpus, split="test")) == 8
    related = read_attributes(corpus, kinds=("instrument", "family", "pitch", "chord", "velocity"))
    assert [len(pairs) for pairs in related.pairs.values()] == [16] * 5


def test_sounds_have_the_pitch_that_the_table_says(corpus: Path) -> None:
    """A single note is like itself a period later, and less like itself half a period later."""
    import soundfile

    with (corpus / "metadata.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["chord"] == "note"]
    assert len(rows) == 8
    for row in rows:
        samples, rate = soundfile.read(corpus / row["file_name"])
        assert (rate, samples.shape) == (RATE, (2 * RATE,))
        note = int(row["group"].partition("/")[2])
        period = RATE / (440 * 2 ** ((note - 69) / 12))
        part = samples[RATE // 4 : RATE // 4 + 8_192]
        spectrum = np.abs(np.fft.rfft(part, 32_768)) ** 2
        alike = np.fft.irfft(spectrum)
        near = alike[round(period * 0.97) - 1 : round(period * 1.03) + 2].max() / alike[0]
        between = alike[round(period * 0.4) : round(period * 0.6)].max() / alike[0]
        assert near > 0.7, row
        assert near > between, row


def test_a_font_that_is_none_is_told(tmp_path: Path, corpus: Path, capsys) -> None:
    font = tmp_path / "font.sf2"
    font.write_bytes(b"RIFF no font")
    assert soundfont_corpus.main(["--out", str(tmp_path / "o"), "--soundfont", str(font)]) == 1
    assert f"{font} plays nothing as program 0" in capsys.readouterr().err
