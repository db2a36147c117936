"""A space of objects and parts after an epoch."""

import numpy as np
import pytest

from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.relation_spaces import PartsSpace


@pytest.mark.parametrize("shared", [True, False])
def test_labels_are_held_to_the_limit_once(shared: bool) -> None:
    """Points are limited once, like those of a space of items: twice would change the last digits."""
    items = JointSpace.random(50, 300, 20, "dot", np.random.default_rng(0), {"V": 0.5, "W": 0.5})
    part_items = items.copy()
    space = PartsSpace(part_items, part_items.labels if shared else items.labels.copy(), 0.1)
    items.finish_epoch(1.0, None)
    space.finish_epoch(1.0, None)
    assert np.array_equal(space.items.labels, items.labels)
    assert np.array_equal(space.words, items.labels)
    assert np.array_equal(space.items.features, items.features)
