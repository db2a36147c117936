"""XC files that are written: what comes back, what scikit-learn reads, what is refused."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.formats.svmlight import write_svmlight_rows
from wsabie.io.records import FeatureTable


def make_rows(X, Y, names=None):
    Y = csr_matrix(np.asarray(Y, np.int8))
    return FeatureTable(X, Y, names or [str(i) for i in range(Y.shape[1])], [str(i) for i in range(Y.shape[0])])


ROWS = make_rows(
    csr_matrix(np.array([[0, 0.1, 2], [0, 0, 0], [-3, 0, 0]], np.float32)), [[1, 0, 1], [0] * 3, [0, 1, 0]]
)


def test_written_file_has_the_expected_text(tmp_path):
    write_svmlight_rows(ROWS, tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text() == "3 3 3\n0,2 1:0.1000000014901161 2:2\n \n1 0:-3\n"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


values = st.floats(width=32, allow_nan=False, allow_infinity=False)


@settings(deadline=None)
@given(
    X=arrays(np.float32, (4, 3), elements=values),
    Y=arrays(np.int8, (4, 5), elements=st.integers(0, 1)),
    is_dense=st.booleans(),
)
def test_written_rows_are_read_back_exactly(tmp_path_factory, X, Y, is_dense):
    path = tmp_path_factory.mktemp("xc") / "a.txt"
    names = ["sky", "sea", "señal, a sign", "2", "3"]
    write_svmlight_rows(make_rows(X if is_dense else csr_matrix(X), Y, names), path)
    again = open_source(path)
    assert np.array_equal(again.X.toarray(), X)
    assert np.array_equal(again.Y.toarray(), Y)
    assert again.label_names == names


def test_scikit_learn_reads_the_written_rows(tmp_path):
    rng = np.random.default_rng(0)
    X = csr_matrix((rng.normal(size=(50, 20)) * (rng.random((50, 20)) < 0.2)).astype(np.float32))
    Y = rng.random((50, 7)) < 0.3
    write_svmlight_rows(make_rows(X, Y), tmp_path / "a.txt")
    header, _, body = (tmp_path / "a.txt").read_bytes().partition(b"\n")
    assert header == b"50 20 7"
    read_X, labels = load_svmlight_file(io.BytesIO(body), n_features=20, multilabel=True, zero_based=True)
    assert np.array_equal(read_X.toarray().astype(np.float32), X.toarray())
    assert [list(row) for row in labels] == [np.flatnonzero(row).tolist() for row in Y]
    again = open_source(tmp_path / "a.txt")
    assert np.array_equal(again.Y.toarray(), Y)


def test_explicit_negatives_are_not_written(tmp_path):
    write_svmlight_rows(make_rows(np.ones((1, 1), np.float32), [[-1, 1]]), tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text() == "1 1 2\n1 0:1\n"


def test_files_of_a_folder_share_label_names(tmp_path):
    rows = make_rows(ROWS.X, ROWS.Y.toarray(), ["sky", "sea", "ship"])
    write_svmlight_rows(rows, tmp_path / "train.txt")
    write_svmlight_rows(rows, tmp_path / "test.txt")
    assert open_source(tmp_path / "test.txt").label_names == ["sky", "sea", "ship"]
    for other in (ROWS, make_rows(ROWS.X, ROWS.Y.toarray(), ["sky", "ship", "sea"])):
        with pytest.raises(InputError, match=r"labels\.txt holds other label names"):
            write_svmlight_rows(other, tmp_path / "other.txt")
    assert not (tmp_path / "other.txt").exists()


@pytest.mark.parametrize("make", [csr_matrix, np.asarray])
def test_nonfinite_values_are_refused(tmp_path, make):
    rows = make_rows(make(np.array([[1, np.inf]], np.float32)), [[1]])
    with pytest.raises(InputError, match="is not finite"):
        write_svmlight_rows(rows, tmp_path / "a.txt")
    assert not list(tmp_path.iterdir())
