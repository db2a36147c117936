"""Labels per row, out of matrices."""

import numpy as np
import pytest

from wsabie.core.errors import InputError
from wsabie.core.label_lists import build_label_lists


def test_lists_name_the_chosen_entries_and_ignore_stored_zeros():
    from scipy.sparse import csr_matrix

    matrix = csr_matrix((np.array([0, 1, -1]), np.array([0, 2, 1]), np.array([0, 2, 3])), shape=(2, 3))
    assert build_label_lists(matrix, 3, "Y").labels.tolist() == [2, 1]
    assert build_label_lists(matrix, 3, "Y").indptr.tolist() == [0, 1, 2]
    assert build_label_lists(matrix, 3, "Y").part(1, 2).labels.tolist() == [1]
    with pytest.raises(InputError, match="exclude has 3 columns but there are 4 labels"):
        build_label_lists(matrix, 4, "exclude")
