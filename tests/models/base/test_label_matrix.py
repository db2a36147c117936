"""Label matrices from every form of labels, and errors that name their place."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from wsabie.core.errors import InputError
from wsabie.models.base.label_matrix import align_columns, build_signed_label_matrix
from wsabie.vocabulary.label_names import Vocabulary


def matrix(Y: Any, names: tuple[str, ...] = (), *, n: int | None = None, has_names: bool = False) -> Any:
    vocabulary = Vocabulary(names)
    rows = n if n is not None else (Y.shape[0] if hasattr(Y, "shape") else len(Y))
    return build_signed_label_matrix(Y, rows, vocabulary, has_names=has_names), list(vocabulary)


@pytest.mark.parametrize(
    "Y",
    [
        [2, 0, 2],
        (2, 0, 2),
        np.array([2, 0, 2]),
        np.array([2.0, 0.0, 2.0]),
        np.array([2, 0, 2], object),
        np.array([[0, 0, 1], [1, 0, 0], [0, 0, 1]]),
        np.array([[0, 0, 1.0], [1, 0, 0], [0, 0, 1]]),
        np.array([[0, 0, 1], [1, 0, 0], [0, 0, 1]], bool),
        sp.csr_matrix([[0, 0, 1], [1, 0, 0], [0, 0, 1]]),
        sp.coo_array(np.array([[0, 0, 1], [1, 0, 0], [0, 0, 1]])),
        sp.csc_matrix(np.array([[0, 0, 1], [1, 0, 0], [0, 0, 1]], bool)),
    ],
)
def test_numeric_labels_are_read_in_any_form(Y: Any) -> None:
    label_matrix, names = matrix(Y)
    assert label_matrix.toarray().tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]
    assert label_matrix.dtype == np.int8
    assert names == ["0", "1", "2"]


@pytest.mark.parametrize(
    "Y",
    [
        ["sea lion", "dog", "sea lion"],
        np.array(["sea lion", "dog", "sea lion"]),
        np.array(["sea lion", "dog", "sea lion"], object),
        [["sea lion"], ["dog"], ["sea lion"]],
        [("sea lion",), {"dog"}, frozenset({"sea lion"})],
        [np.array(["sea lion"]), np.array(["dog"], object), ["sea lion"]],
        [[" sea   lion", "sea lion"], ["dog"], ["sea lion"]],
    ],
)
def test_label_names_are_read_in_any_form(Y: Any) -> None:
    label_matrix, names = matrix(Y)
    assert names == ["sea lion", "dog"]
    assert label_matrix.toarray().tolist() == [[1, 0], [0, 1], [1, 0]]


def test_rows_may_have_no_label_or_several() -> None:
    label_matrix, names = matrix([[], ["b", "a"], ["a"], []])
    assert names == ["b", "a"]
    assert label_matrix.toarray().tolist() == [[0, 0], [1, 1], [0, 1], [0, 0]]


def test_pandas_columns_of_lists_are_read() -> None:
    column = np.empty(3, object)
    column[:] = [np.array(["b", "a"], object), np.array([], object), np.array(["a"], object)]
    label_matrix, names = matrix(column)
    assert names == ["b", "a"]
    assert label_matrix.toarray().tolist() == [[1, 1], [0, 0], [0, 1]]


def test_set_labels_get_the_same_ids_in_every_process() -> None:
    names = [f"label {i:02}" for i in range(20)]
    assert matrix([set(names)])[1] == names


def test_long_label_name_is_stored_once() -> None:
    names = ["x" * 100_000] + ["y"] * 299
    tracemalloc.start()
    try:
        matrix(names)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 10e6, "each of 300 texts in an array of texts would take 400 kB"


def test_known_names_keep_their_ids() -> None:
    label_matrix, names = matrix(["c", "b"], ("a", "b"), has_names=True)
    assert names == ["a", "b", "c"]
    assert label_matrix.toarray().tolist() == [[0, 0, 1], [0, 1, 0]]


def test_explicit_negatives_are_kept_and_zeros_dropped() -> None:
    Y = sp.csr_matrix((np.array([1, -1, 0]), np.array([0, 1, 2]), np.array([0, 3])), shape=(1, 3))
    label_matrix, _ = matrix(Y)
    assert label_matrix.toarray().tolist() == [[1, -1, 0]]
    assert label_matrix.nnz == 2


def test_input_matrix_is_not_sorted_in_place() -> None:
    Y = sp.csr_matrix((np.array([1, -1, 1], np.int8), np.array([2, 0, 1], np.int32), np.array([0, 2, 3])), (2, 3))
    original = Y.copy()
    label_matrix, _ = matrix(Y)
    assert label_matrix.toarray().tolist() == [[-1, 0, 1], [0, 1, 0]]
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(Y, name), getattr(original, name))


def out_of_range() -> Any:
    Y = sp.csr_matrix(np.ones((1, 3), np.int8))
    Y.indices[2] = 9
    return Y


@pytest.mark.parametrize(
    ("Y", "sentence"),
    [
        (None, "the target y is None; give labels"),
        ("dog", "Y is 'dog'; give a label, or a list of labels, per row"),
        (3, "Y is 3; give"),
        (np.array(3), "Y is array.3.; give"),
        ([1], "X has 2 rows and Y has 1; give one entry of Y per row"),
        (np.eye(3), "X has 2 rows and Y has 3; give one row of Y per row of X"),
        ([1, "a"], "Y mixes names and numbers: row 0 holds 1 and row 1 holds 'a'"),
        (["a", 1], "Y mixes names and numbers"),
        ([["a"], "b"], "Y mixes lists of labels and single labels"),
        ([["a"], [3]], r"row 1 of Y holds 3 \(int\) where a name is expected"),
        ([["a"], [None]], r"row 1 of Y holds None \(NoneType\) where a name is expected"),
        ([[0, 3], [1]], r"row 0 of Y holds 0 \(int\) where .* or numbers as one per row or as a matrix"),
        (np.array(["2020-01-01", "2020-01-02"], "M8[D]"), r"row 0 of Y holds datetime.date\(2020, 1, 1\)"),
        ([b"a", b"b"], r"row 0 of Y holds b'a' \(bytes\) where a name is expected"),
        ([-1, 0], "Y holds the label number -1; label numbers begin with 0"),
        ([0, 10**12], "Y holds label number 1000000000000, but there can be at most 10,000,000 labels"),
        ([0.5, 1], "Y holds fractions"),
        ([np.nan, 1], "Y contains NaN or infinity"),
        (np.array([[0, 2], [1, 0]]), "Y holds the value 2; use 1 for a true label, -1 for an explicit negative"),
        (np.array([[0, np.nan], [1, 0]]), "Y holds the value nan"),
        (np.array([["a", "b"], ["c", "d"]]), "Y is a table of names; give a list of names per row"),
        (np.zeros((2, 2, 2)), "Y has 3 dimensions"),
        (sp.coo_array(np.ones(2)), r"Y has 1 dimension\(s\)"),
        ([["a", " "], ["b"]], "has an empty name; give every label a name"),
    ],
)
def test_invalid_labels_are_refused(Y: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        matrix(Y, n=2)


def test_out_of_range_columns_are_refused() -> None:
    with pytest.raises(InputError, match="Y holds the column number 9, but its 3 columns are numbered from 0"):
        matrix(out_of_range())


def test_unknown_names_get_the_next_numbers() -> None:
    Y, names = matrix(["dolfin", "dolphin"], ("dolphin",), has_names=True)
    assert (Y.toarray().tolist(), names) == ([[0, 1], [1, 0]], ["dolphin", "dolfin"])


@pytest.mark.parametrize("Y", [[0, 2], np.eye(3)[:2]])
def test_label_ids_beyond_the_names_are_refused(Y: Any) -> None:
    with pytest.raises(InputError, match="Y holds label number 2, but there are 2 label names"):
        matrix(Y, ("a", "b"), has_names=True)


def test_refused_matrix_leaves_the_vocabulary_unchanged() -> None:
    vocabulary = Vocabulary(["a"])
    with pytest.raises(InputError):
        build_signed_label_matrix([["b"], [3]], 2, vocabulary, has_names=False)
    assert list(vocabulary) == ["a"]


@pytest.mark.parametrize("Y", [["1", "x"], [["0"], ["x", "12"]]])
def test_words_are_refused_among_numbers(Y: Any) -> None:
    """It would get the number 2, and the label number 2 its name."""
    vocabulary = Vocabulary(["0", "1"])
    with pytest.raises(InputError, match="Y holds the label name 'x', but the model's labels are the numbers 0 to 1"):
        build_signed_label_matrix(Y, 2, vocabulary, has_names=False)
    assert list(vocabulary) == ["0", "1"]
    with pytest.raises(InputError, match="Y holds the label name '7'"):
        build_signed_label_matrix(["7", "0"], 2, vocabulary, has_names=False)
    assert matrix(["1", "2"], ("0", "1"))[1] == ["0", "1", "2"]
    assert "x" in matrix(Y, ("0", "1"), has_names=True)[1]


def test_columns_align_by_name_as_by_number() -> None:
    words = Vocabulary(["dog", "cat", "puppy"])
    words.merge("dog", ["puppy"])
    right, wrong = np.array([[1, 0, -1]]), np.array([[True, False, True]])
    assert align_columns(words, right, ["dog", "cat", "puppy"]).toarray().tolist() == [[1, 0, 0]]
    assert align_columns(words, wrong, ["dog", "cat", "puppy"]).toarray().tolist() == [[1, 0, 0]]
    with pytest.raises(InputError, match="Y holds the value 5; use 1 for a true label"):
        align_columns(words, [[5]], ["dog"])
    for columns in (["dog"], [["dog"], ["dog", "cat"]], [0, 1], None):
        with pytest.raises(InputError, match="Y is not a matrix of 1, 0 and -1; leave label_names out"):
            align_columns(words, columns, ["dog", "cat"])


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float64"])
def test_data_frame_columns_are_labels(kind: str, dtype: str) -> None:
    columns = {"fox": np.array([1, 0, 1], dtype), "elk": np.array([0, 1, 1], dtype)}
    module = pytest.importorskip(kind)
    frame = module.table(columns) if kind == "pyarrow" else module.DataFrame(columns)
    vocabulary = Vocabulary()
    for has_names in (False, True):  # first and later rows
        Y = build_signed_label_matrix(frame, 3, vocabulary, has_names=has_names)
        assert (list(vocabulary), Y.toarray().tolist()) == (["fox", "elk"], [[1, 0], [0, 1], [1, 1]])
    swapped = frame[["elk", "fox"]] if kind != "pyarrow" else frame.select(["elk", "fox"])
    Y = build_signed_label_matrix(swapped, 3, vocabulary, has_names=True)
    assert Y.toarray().tolist() == [[1, 0], [0, 1], [1, 1]]
    with pytest.raises(InputError, match="X has 2 rows and Y has 3"):
        build_signed_label_matrix(frame, 2, vocabulary, has_names=True)


def test_data_frame_columns_do_not_rename_given_labels() -> None:
    pandas = pytest.importorskip("pandas")
    vocabulary, frame = Vocabulary(["fox", "elk"]), pandas.DataFrame({"a": [1, 0], "b": [0, 1]})
    Y = build_signed_label_matrix(frame, 2, vocabulary, has_names=True)
    assert (list(vocabulary), Y.toarray().tolist()) == (["fox", "elk"], [[1, 0], [0, 1]])
    with pytest.raises(InputError, match="labels are the numbers 0 to 1"):
        build_signed_label_matrix(frame, 2, Vocabulary(["0", "1"]), has_names=False)
