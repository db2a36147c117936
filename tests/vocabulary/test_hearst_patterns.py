"""Pairs read out of sentences, phrases that give none, and bounded memory for any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.vocabulary.hearst_patterns import HearstPatternCounter, split_sentences


def pairs(text, known_names=None):
    counter = HearstPatternCounter(known_names)
    for sentence in split_sentences(text.splitlines()):
        counter.count_pairs(sentence)
    return [(child, parent) for child, parent, _ in counter.pairs()]


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("A toad is an amphibian.", ("toad", "amphibian")),
        ("The great white shark is a species of large fish found in all oceans.", ("great white shark", "fish")),
        ("In biology, the fern is a vascular plant that has no seeds.", ("fern", "plant")),
        ("Because a whale is a mammal, it breathes air.", ("whale", "mammal")),
        ("Kudzu is a vine", ("kudzu", "vine")),
        ("A slice is a sequence containing the items.", ("slice", "sequence")),
        ("A church is a building in a village.", ("church", "building")),
        ("Pluto was a planet, once.", ("pluto", "planet")),
        ("The ibis is a kind of a wading bird.", ("ibis", "bird")),
        ("(A clavier is a keyboard instrument)", ("clavier", "instrument")),
        ("L’eau de Cologne is a perfume.", ("l’eau de cologne", "perfume")),
        ("Die Kröte: toad\nis an\namphibian", ("toad", "amphibian")),
    ],
)
def test_plain_sentences_give_a_pair(text, pair):
    assert pairs(text) == [pair]


@pytest.mark.parametrize(
    "text",
    [
        "It is a bird.",
        "There is a bird in the tree.",
        "What is a toad?",
        "The leaf of the oak is a thing of beauty.",
        "The king of France is a man.",
        "A wheel is a part of a car.",
        "A dog is not a cat.",
        "This is a lot of work.",
        "One two three four five six is a number.",
        "A toad is a",
        "A toad is a.",
        "is a",
        "A toad\n\nis an amphibian.",
        "A rose is a rose.",
    ],
)
def test_other_sentences_give_nothing(text):
    assert pairs(text) == []


def test_counts_and_their_order():
    counter = HearstPatternCounter()
    for text in ["A toad is an amphibian.", "The toad is an amphibian.", "A frog is an amphibian."]:
        counter.count_pairs(text)
    assert counter.pairs() == [("toad", "amphibian", 2), ("frog", "amphibian", 1)]
    assert counter.pairs(min_count=2) == [("toad", "amphibian", 2)]


def test_known_labels_choose_the_names():
    is_known = {"white shark", "big fish"}.__contains__
    assert pairs("The great white shark is a very big fish. A cod is a fish.", is_known) == [
        ("white shark", "big fish")
    ]


def test_rare_pairs_are_forgotten_when_there_are_too_many_and_the_bound_holds():
    counter = HearstPatternCounter(most=20)
    for i in range(300):
        counter.count_pairs(f"Word{i:03d} x{chr(97 + i % 26)}{chr(97 + i // 26)} is a thingy.")
        counter.count_pairs("A toad is an amphibian.")
    (first, *rare_pairs) = counter.pairs()
    assert first[:2] == ("toad", "amphibian")
    assert 300 - counter.max_undercount <= first[2] <= 300
    assert counter.max_undercount > 0
    assert len(rare_pairs) <= 20


@given(st.lists(st.text(max_size=60), max_size=8))
def test_any_text_gives_names_and_nothing_else(lines):
    counter = HearstPatternCounter()
    for sentence in split_sentences(lines):
        counter.count_pairs(sentence)
    for child, parent, n in counter.pairs():
        assert child.strip()
        assert parent.strip()
        assert "\t" not in child + parent
        assert n > 0


def test_a_text_without_an_end_is_read_in_pieces():
    pieces = list(split_sentences(["word " * 100] * 1000))
    assert max(map(len, pieces)) < 12_000
