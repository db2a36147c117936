"""Conversion of values for JSON: arrays, and records, which are named tuples or dataclasses."""

import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
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


def convert_records(value: Any) -> Any:
    """Return a copy in which records are dictionaries, and paths are texts.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> Item = NamedTuple("Item", [("id", int), ("labels", list)])
    >>> Page = NamedTuple("Page", [("items", list)])
    >>> convert_records(Page([Item(1, ["sea"])]))
    {'items': [{'id': 1, 'labels': ['sea']}]}
    """
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value) and not isinstance(value, type):
        value = vars(value)
    if isinstance(value, Mapping):
        return {name: convert_records(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [convert_records(part) for part in value]
    return str(value) if isinstance(value, Path) else value
