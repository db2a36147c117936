"""Values as JSON knows them."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """A copy that JSON can hold: arrays and tuples become lists, NumPy numbers Python's, NaN and infinities None.

    Examples
    --------
    >>> plain({"mean": np.float32(0.5), "rows": (1, np.int64(2)), "worst": float("nan")})
    {'mean': 0.5, 'rows': [1, 2], 'worst': None}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
