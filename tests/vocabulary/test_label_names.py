"""Spelling of label names, and numbers that never change."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.vocabulary.label_names import Vocabulary, normalise_label_name


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\t\n")))
def test_normalising_twice_changes_nothing(name):
    once = normalise_label_name(name)
    assert normalise_label_name(once) == once
    assert once == once.strip()
    assert "  " not in once


def test_case_is_kept_and_accents_are_composed():
    assert normalise_label_name("Ko\u0308ln ") == "K\u00f6ln"
    assert normalise_label_name("Apple") != normalise_label_name("apple")


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(InputError, match="not valid Unicode"):
        normalise_label_name("a\ud800")


def test_numbers_never_change_when_names_are_added():
    words = Vocabulary(["b", "a"])
    old_ids = words.ids(["a", "b"])
    assert words.add(["c"]).tolist() == [2]
    assert np.array_equal(words.ids(["a", "b"]), old_ids)
    assert words.names([2, 0]) == ["c", "b"]
    assert list(words) == ["b", "a", "c"]
    assert "c" in words
    assert "d" not in words


def test_nothing_is_added_when_one_name_is_refused():
    words = Vocabulary(["a"])
    for bad in (["b", "a"], ["b", "b "], ["b", "  "], ["b", 3]):
        with pytest.raises(InputError, match=r"comes twice|empty name|the label name 3 is int, not text"):
            words.add(bad)
    assert list(words) == ["a"]


def test_names_from_numpy_are_plain_texts():
    assert [type(name) for name in Vocabulary(np.array(["a", "b"]))] == [str, str]


def test_an_unknown_label_suggests_the_closest_in_one_sentence():
    words = Vocabulary(["dolphin", "dolphins", "ship"])
    with pytest.raises(UnknownLabelError) as caught:
        words.ids(["ship", "dolfin"])
    assert str(caught.value) == "there is no label 'dolfin'; did you mean 'dolphin' or 'dolphins'?"
    with pytest.raises(UnknownLabelError, match="nor one like it"):
        words.ids(["quartz"])


@pytest.mark.parametrize("number", [-1, 1])
def test_a_number_out_of_range_is_refused(number):
    with pytest.raises(InputError, match=f"no label number {number}"):
        Vocabulary(["a"]).names([number])


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1), unique_by=normalise_label_name)
)
def test_ids_and_names_are_inverse(names):
    names = [name for name in names if normalise_label_name(name)]
    words = Vocabulary(names)
    assert words.names(words.ids(names)) == [normalise_label_name(name) for name in names]
