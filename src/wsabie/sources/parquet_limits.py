"""Costs of Parquet before it is read: rows, bytes of columns, and texts that a dictionary repeats."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wsabie.sources.text import bytes_on_disk, shown
from wsabie.sources.unpacked import check_expansion, check_rows

_FEWEST = 64
"""Rows that are read together, at least."""


def check_metadata(file: Path, metadata: Any) -> None:
    """Refuse a file whose footer tells of far more rows or bytes than the file can hold.

    Only totals are looked at: Arrow ends the process over the damaged notes of a single column.

    Raises
    ------
    InputError
    """
    stored = bytes_on_disk(file)
    check_rows(shown(file), stored, metadata.num_rows)
    groups = (metadata.row_group(group) for group in range(metadata.num_row_groups))
    check_expansion(shown(file), stored, sum(group.total_byte_size for group in groups))


def rows_at_once(stored: int, size: int) -> int:
    """Return how many rows of a file of `stored` bytes are read together: fewer of a small one, which may expand."""
    return min(size, max(_FEWEST, stored >> 14))


def text_columns(metadata: Any, columns: Iterable[str]) -> list[str]:
    """Return the paths of texts in some columns, which are read as numbers of a dictionary: it may repeat long ones."""
    names, leaves = set(columns), (metadata.schema.column(number) for number in range(metadata.num_columns))
    texts = (leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY")
    return [path for path in texts if path in names or path.split(".")[0] in names]


def expanded_bytes(array: Any) -> int:
    """Return the bytes of an Arrow array in which every text of a dictionary is written out where it stands."""
    import pyarrow.compute as pc
    from pyarrow import types

    kind = array.type
    if types.is_dictionary(kind):
        letters = pc.binary_length(array.dictionary).take(array.indices) if array.dictionary.type in _texts() else None
        return int(array.indices.nbytes) + (0 if letters is None else pc.sum(letters).as_py() or 0)
    if types.is_struct(kind) or types.is_list(kind) or types.is_large_list(kind):
        inner = array.flatten()
        return 4 * len(array) + sum(map(expanded_bytes, inner if isinstance(inner, list) else [inner]))
    return int(array.nbytes)


def cells_of(array: Any) -> list[Any]:
    """Return an Arrow array as Python objects, where a text of a dictionary is one object however often it comes."""
    import pyarrow.compute as pc
    from pyarrow import types

    kind = array.type
    if types.is_dictionary(kind):
        used = pc.unique(array.indices.drop_null())
        texts = dict(zip(used.to_pylist(), array.dictionary.take(used).to_pylist(), strict=True))
        return [texts.get(number) for number in array.indices.to_pylist()]
    if (types.is_list(kind) or types.is_large_list(kind)) and types.is_dictionary(kind.value_type):
        cells, ends = cells_of(array.flatten()), pc.cumulative_sum(pc.list_value_length(array).fill_null(0))
        spans = zip([0, *ends.to_pylist()], ends.to_pylist(), array.is_valid().to_pylist(), strict=False)
        return [cells[lo:hi] if valid else None for lo, hi, valid in spans]
    if types.is_struct(kind) and any(types.is_dictionary(field.type) for field in kind):
        columns = [cells_of(inner) for inner in array.flatten()]
        names = [field.name for field in kind]
        rows = zip(array.is_valid().to_pylist(), *columns, strict=True)
        return [dict(zip(names, row, strict=True)) if valid else None for valid, *row in rows]
    return list(array.to_pylist())


def _texts() -> tuple[Any, ...]:
    import pyarrow as pa

    return pa.string(), pa.binary(), pa.large_string(), pa.large_binary()
