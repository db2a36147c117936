"""Values as JSON knows them."""

import json

import numpy as np
import pytest

from wsabie.core.json_conversion import to_json_value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array(1.5), 1.5),
        (np.array([[1, 2]], np.int32), [[1, 2]]),
        (np.array([1, np.nan, np.inf]), [1, None, None]),
        ({1: (np.bool_(True), None, "a")}, {"1": [True, None, "a"]}),
        (float("-inf"), None),
    ],
)
def test_everything_becomes_what_json_can_hold(value, expected):
    assert to_json_value(value) == expected
    assert json.loads(json.dumps(to_json_value(value), allow_nan=False)) == expected
