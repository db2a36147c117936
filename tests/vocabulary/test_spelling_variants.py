"""Names that are spelled alike: against a slow twin, and planted slips in real labels."""

from itertools import combinations

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsabie.samples import get_sample_path
from wsabie.vocabulary.spelling_variants import MIN_LETTERS_ONE, MIN_LETTERS_TWO, find_spelling_matches


def distance(first: str, second: str) -> int:
    """The usual table: letters to change, add, leave out, or swap with the next."""
    d = [[max(i, j) for j in range(len(second) + 1)] for i in range(len(first) + 1)]
    for i in range(1, len(first) + 1):
        for j in range(1, len(second) + 1):
            cost = first[i - 1] != second[j - 1]
            d[i][j] = min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + cost)
            if i > 1 and j > 1 and first[i - 1] == second[j - 2] and first[i - 2] == second[j - 1]:
                d[i][j] = min(d[i][j], d[i - 2][j - 2] + 1)
    return d[-1][-1]


@settings(max_examples=100)
@given(st.lists(st.text("abq", min_size=4, max_size=12), unique=True, max_size=30))
def test_slips_are_all_pairs_within_the_bound(names: list[str]) -> None:
    """None of these names is the plural of another: they hold no s."""
    matches = {(names[pair.first], names[pair.second]): pair.distance for pair in find_spelling_matches(names)}
    expected = {}
    for first_name, second_name in combinations(names, 2):
        shorter = min(len(first_name), len(second_name))
        most = 0 if shorter < MIN_LETTERS_ONE else 1 if shorter < MIN_LETTERS_TWO else 2
        if 0 < (far := distance(first_name, second_name)) <= most:
            expected[first_name, second_name] = far
    assert matches == expected


@pytest.mark.parametrize(
    ("first", "second", "expected_difference"),
    [
        ("NYC", "nyc", "case"),
        ("Straße", "STRASSE", "case"),
        ("möwe", "mowe", "accents"),
        ("T-shirt", "tshirt", "blanks"),
        ("sea_gull", "Sea Gull", "blanks"),
        ("berry", "berries", "plural"),
        ("woman", "women", "plural"),
        ("ballon", "balloon", "letters"),
        ("d200", "d300", None),
        ("summer 2006", "summer 2007", None),
        ("f 3.5", "f 35", None),
        ("cat", "cut", None),
        ("东京都大学", "东京都大熊", None),
        ("हिंदी", "हिदी", None),
        ("glass", "glas", None),
    ],
)
def test_what_names_differ_in(first: str, second: str, expected_difference: str | None) -> None:
    assert [pair.difference for pair in find_spelling_matches([first, second])] == (
        [] if expected_difference is None else [expected_difference]
    )


def test_names_in_every_way_at_once_are_each_joined_once() -> None:
    names = ["Café", "café", "cafe", "cafes", "Cafés", "CAFE", "ca-fe"]
    matches = find_spelling_matches(names)
    assert len(matches) == len(names) - 1
    assert {place for pair in matches for place in pair[:2]} == set(range(len(names)))


def test_hostile_names() -> None:
    names = ["", " ", "-", "...", "a" * 5000, "a" * 5001, "\u0301", "\U0001f415", "\u200d", "'; DROP TABLE labels; --"]
    assert find_spelling_matches(names) == []
    assert find_spelling_matches([]) == []
    assert find_spelling_matches(["one"]) == []
    assert len(find_spelling_matches(["abcde" + "x" * n for n in range(3)])) == 2  # a chain: two steps apart is too far


def test_planted_slips_and_plurals_of_real_labels_are_found() -> None:
    """At least 95 % of slips in names of one word of five letters or more, 90 % of plurals."""
    table = pq.read_table(get_sample_path("emoji"), columns=["labels", "languages"]).to_pylist()
    english = {
        label
        for row in table
        for label, languages in zip(row["labels"], row["languages"], strict=True)
        if "en" in languages and label.isalpha() and label.isascii() and len(label) >= MIN_LETTERS_ONE
    }
    draw, names = np.random.default_rng(0), sorted(english)
    slips = {_slip(name, draw): name for name in names if draw.random() < 0.2}
    plurals = {_plural(name): name for name in names if not name.endswith("s") and draw.random() < 0.2}
    planted = {new: name for new, name in (slips | plurals).items() if new not in english}
    everything = names + sorted(planted)
    matches = find_spelling_matches(everything)
    stands = {everything[pair.second]: everything[pair.first] for pair in matches if pair.difference == "plural"}
    joined = {frozenset((everything[pair.first], everything[pair.second])) for pair in matches}
    for kind, bound in ((slips, 0.95), (plurals, 0.9)):
        expected = [(new, name) for new, name in kind.items() if planted.get(new) == name]
        hits = [new for new, name in expected if {new, name} in joined or {new, stands.get(name, name)} in joined]
        assert len(expected) > 200
        assert len(hits) >= bound * len(expected), sorted({new for new, _ in expected} - set(hits))[:20]


def _slip(name: str, draw: np.random.Generator) -> str:
    at = draw.integers(1, len(name) - 1)
    return str(
        draw.choice(
            [
                name[:at] + name[at] + name[at:],  # twice
                name[:at] + draw.choice(list("aeiounrt")) + name[at:],
                name[:at] + name[at + 1] + name[at] + name[at + 2 :],  # swapped
                name[:at] + draw.choice(list("aeiounrt")) + name[at + 1 :],
            ]
            + ([name[:at] + name[at + 1 :]] if len(name) > MIN_LETTERS_ONE else [])
        )
    )


def _plural(name: str) -> str:
    if name.endswith(("ch", "sh", "x", "ss")):
        return name + "es"
    return name[:-1] + "ies" if name.endswith("y") and name[-2] not in "aeiou" else name + "s"
