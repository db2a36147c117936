"""The smallest types that hold the values of rows in shards, however the rows are cut into parts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from wsabie.base.errors import InputError
from wsabie.sources.text import shown
from wsabie.storage.columns import Columns, Lists, changed

HALF_ERROR = 2.0**-11
"""The largest relative error of a number that float16 holds."""
_SMALL = {"uint8": (0, 255), "uint16": (0, 65535), "float16": (-65504, 65504)}
"""Types that may hold values as they are, the smallest first, and the least and the most of theirs."""

Values = Literal["exact", "half"]


class Narrowed(NamedTuple):
    """Rows in small types, and the names of all types that hold their values, of which theirs is the smallest."""

    columns: Columns
    types: list[str]


def width_of(columns: Columns) -> int:
    sparse = columns.lists.get("x")
    if sparse is None:
        return int(columns.numbers["features"].shape[1])
    return int(sparse.parts["indices"].max(initial=0)) + 1


def values_of(columns: Columns) -> Any:
    return columns.lists["x"].parts["values"] if "x" in columns.lists else columns.numbers["features"]


def with_values(columns: Columns, values: Any) -> Columns:
    """The same rows with their values as another type."""
    if "x" not in columns.lists:
        return Columns({**columns.numbers, "features": values}, columns.lists)
    return changed(columns, "x", lambda x: Lists(x.starts, {**x.parts, "values": values}))


def narrowed(columns: Columns, how: Values, path: Path) -> Narrowed:
    """The same numbers in the smallest types that hold them."""
    values = values_of(columns)
    types = types_holding(values, how)
    if not types:
        raise InputError(
            f"{shown(path)} has the value {values[_far(values)].flat[0]:g}, which float16 cannot hold to one part in "
            "2,048; write the shards with --values exact"
        )
    columns = with_values(columns, values.astype(types[0]))
    if "x" in columns.lists:
        x = columns.lists["x"]
        indices = x.parts["indices"].astype(unsigned(width_of(columns)))
        columns = changed(columns, "x", lambda _: Lists(x.starts.copy(), {**x.parts, "indices": indices}))
    return Narrowed(columns, types)


def unsigned(n: int) -> npt.DTypeLike:
    """The type of numbers below n."""
    return np.uint16 if n <= 1 << 16 else np.uint32


def types_holding(values: Any, how: Values) -> list[str]:
    """The types that hold these values, the smallest first.

    As they are, and at last "float32", or "half": float16 to one part in 2,048. Without values: all."""
    least, most = values.min(initial=0), values.max(initial=0)
    within = [name for name, (lo, hi) in _SMALL.items() if lo <= least and most <= hi]
    types = [name for name in within if np.array_equal(values.astype(name), values)]  # as float32 or wider
    if how == "exact":
        return [*types, "float32"]
    return types if _far(values).any() else [*types, "half"]


def _far(values: Any) -> Any:
    """Which values float16 cannot hold to one part in 2,048."""
    with np.errstate(over="ignore"):
        small = values.astype(np.float16)
    return np.abs(small.astype(np.float32) - values) > HALF_ERROR * np.abs(values)


def types_shared(several: Sequence[Sequence[str]], path: Path) -> list[str]:
    """The types that hold the values of several parts, the smallest first: however the rows are cut, the same."""
    shared = [name for name in several[0] if all(name in types for types in several)]
    if not shared:  # with "half", where one part has whole numbers alone
        raise InputError(
            f"{shown(path)} has values above 65,504 beside others that are negative or no whole numbers, which float16 "
            "cannot hold to one part in 2,048; write the shards with --values exact"
        )
    return shared
