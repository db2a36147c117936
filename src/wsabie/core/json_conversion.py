"""Conversion of values for JSON."""

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object as `json.loads` returns it."""


def to_json_value(value: Any) -> Any:
    """Return a copy that JSON can hold: arrays and tuples become lists, NaN and infinities None.

    Examples
    --------
    >>> import numpy as np
    >>> to_json_value({"mean": np.float32(0.5), "rows": (1, np.int64(2)), "worst": float("nan")})
    {'mean': 0.5, 'rows': [1, 2], 'worst': None}
    """
    if isinstance(value, Mapping):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if hasattr(value, "dtype"):  # of NumPy, which is not imported here: the command line starts without it
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [to_json_value(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
