"""Nearest labels of labels."""

import numpy as np
import pytest

from wsabie.core.errors import InputError
from wsabie.search.vector_neighbours import find_vector_neighbours


def test_a_label_is_not_its_own_neighbour_even_beside_a_twin():
    table = np.array([[1, 0], [2, 0], [0, 1], [1, 1]], np.float32)
    ids, similarities = find_vector_neighbours(table, [1, 2], k=3)
    assert ids.tolist() == [[0, 3, 2], [3, 0, 1]]
    np.testing.assert_allclose(similarities[0], [1, np.sqrt(0.5), 0], atol=1e-6)


def test_cosine_ignores_length_and_dot_does_not():
    table = np.array([[1, 0], [0.9, 0], [5, 5]], np.float32)
    assert find_vector_neighbours(table, [0], k=1)[0].tolist() == [[1]]
    assert find_vector_neighbours(table, [0], k=1, similarity="dot")[0].tolist() == [[2]]


def test_fewer_labels_than_asked_are_padded():
    assert find_vector_neighbours(np.eye(2), 0, k=3)[0].tolist() == [[1, -1, -1]]


@pytest.mark.parametrize("label", [-1, 2])
def test_a_label_that_does_not_exist_is_named(label):
    with pytest.raises(InputError, match=f"label {label} does not exist"):
        find_vector_neighbours(np.eye(2), [label])
