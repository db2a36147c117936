"""A space of objects and parts after an epoch."""

from typing import Any

import numpy as np
import pytest

from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.parts_space import PartsSpace


@pytest.mark.parametrize("shared", [True, False])
def test_labels_are_held_to_the_limit_once(shared: bool) -> None:
    """As those of a space of things are: a second time would change last digits."""
    things = JointSpace.random(50, 300, 20, "dot", np.random.default_rng(0), {"V": 0.5, "W": 0.5})
    words: Any = None if shared else things.labels.copy()
    space = PartsSpace.of(things.copy(), words, 0.1)
    things.settle(1.0, None)
    space.settle(1.0, None)
    assert np.array_equal(space.things.labels, things.labels)
    assert np.array_equal(space.words, things.labels)
    assert np.array_equal(space.things.features, things.features)
