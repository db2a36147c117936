"""The text file of Omikuji's adapter."""

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.peers.adapters.omikuji import _write_rows


def test_rows_without_features_have_no_space_behind_their_labels(tmp_path):
    X = csr_matrix(np.array([[0, 0.5, 0], [0, 0, 0]], np.float32))
    _write_rows(tmp_path / "rows.txt", X, csr_matrix([[1, 0, 1], [0, 1, 0]]), 3)
    assert (tmp_path / "rows.txt").read_text() == "2 3 3\n0,2 1:0.5\n1\n"
