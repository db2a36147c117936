"""Types of the numbers in shards: the smallest that hold the values of features and the columns."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from wsabie.core.arrays import Array, Bool
from wsabie.core.errors import InputError
from wsabie.io.parsers.text_files import format_path
from wsabie.storage import column_files
from wsabie.storage.column_files import ColumnTable, ListColumn

HALF_ERROR = 2.0**-11
"""The largest relative error of a number that float16 holds."""
_SMALL = {"uint8": (0, 255), "uint16": (0, 65535), "float16": (-65504, 65504)}
"""Types that may hold values exactly, the smallest first, with their limits."""

Values = Literal["exact", "half"]


class NarrowRows(NamedTuple):
    """Rows in the smallest type that holds their values, and the names of all types that do."""

    columns: ColumnTable
    types: list[str]


def find_index_width(columns: ColumnTable) -> int:
    sparse = columns.lists.get("x")
    if sparse is None:
        return int(columns.numbers["features"].shape[1])
    return int(sparse.parts["indices"].max(initial=0)) + 1


def read_values(columns: ColumnTable) -> Array:
    return columns.lists["x"].parts["values"] if "x" in columns.lists else columns.numbers["features"]


def replace_values(columns: ColumnTable, values: Array) -> ColumnTable:
    """Return the same rows with other values, such as those of another type."""
    if "x" not in columns.lists:
        return ColumnTable({**columns.numbers, "features": values}, columns.lists)
    return column_files.replace_list_column(columns, "x", lambda x: ListColumn(x.starts, {**x.parts, "values": values}))


def narrow_rows(columns: ColumnTable, precision: Values, path: Path) -> NarrowRows:
    """Convert rows to the smallest types that hold their numbers."""
    values = read_values(columns)
    types = list_types(values, precision)
    if not types:
        raise InputError(
            f"{format_path(path)} has the value {values[_exceeds_half(values)].flat[0]:g}, which float16 cannot hold "
            "to one part in 2,048; write the shards with `values='exact'`"
        )
    columns = replace_values(columns, values.astype(types[0]))
    return NarrowRows(narrow_indices(columns, find_index_width(columns)), types)


def narrow_indices(columns: ColumnTable, width: int) -> ColumnTable:
    """Return the same rows with columns of features in the smallest type; dense rows have none."""
    if "x" not in columns.lists:
        return columns
    starts, parts = columns.lists["x"]
    indices = parts["indices"].astype(choose_unsigned_type(width))
    narrow = ListColumn(starts.copy(), {**parts, "indices": indices})
    return column_files.replace_list_column(columns, "x", lambda _: narrow)


def choose_unsigned_type(n: int) -> npt.DTypeLike:
    """Return the type of numbers below n."""
    return np.uint16 if n <= 1 << 16 else np.uint32


def list_types(values: Array, precision: Values) -> list[str]:
    """Return the types that hold these values, the smallest first.

    Exact types come first, then "float32", or "half": float16 to one part in 2,048. Without values: all types.
    """
    minimum, maximum = values.min(initial=0), values.max(initial=0)
    within = [name for name, (lo, hi) in _SMALL.items() if lo <= minimum and maximum <= hi]
    types = [name for name in within if np.array_equal(values.astype(name), values)]  # as float32 or wider
    if precision == "exact":
        return [*types, "float32"]
    return types if _exceeds_half(values).any() else [*types, "half"]


def _exceeds_half(values: Array) -> Bool:
    """Return True for values that float16 cannot hold to one part in 2,048."""
    with np.errstate(over="ignore"):
        small = values.astype(np.float16)
    return np.abs(small.astype(np.float32) - values) > HALF_ERROR * np.abs(values)


def list_common_types(several: Sequence[Sequence[str]], path: Path) -> list[str]:
    """Return the types that hold the values of all parts, the smallest first; the same for every cut."""
    shared = [name for name in several[0] if all(name in types for types in several)]
    if not shared:  # with "half", where one part has whole numbers alone
        raise InputError(
            f"{format_path(path)} has values above 65,504 beside others that are negative or no whole numbers, which "
            "float16 cannot hold to one part in 2,048; write the shards with `values='exact'`"
        )
    return shared
