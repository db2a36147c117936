"""Costs of Parquet before it is read: rows, bytes of columns, and texts that a dictionary repeats."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wsabie.sources.text import bytes_on_disk, shown
from wsabie.sources.unpacked import check_expansion, check_rows

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12, "BYTE_ARRAY": 8}
"""Bytes of a value in memory, for texts beside their letters."""


def check_metadata(file: Path, metadata: Any, columns: Iterable[str]) -> None:
    """Refuse a file whose footer tells of far more content than its bytes can hold.

    Parameters
    ----------
    file : Path
    metadata : pyarrow.parquet.FileMetaData
    columns : iterable of str
        Those that will be read.

    Raises
    ------
    InputError
    """
    stored = bytes_on_disk(file)
    check_rows(shown(file), stored, metadata.num_rows)
    leaves = list(_leaves(metadata, columns))
    expanded = 0
    for group in range(metadata.num_row_groups):
        for number in leaves:
            chunk, leaf = metadata.row_group(group).column(number), metadata.schema.column(number)
            in_memory = chunk.num_values * _WIDTHS.get(leaf.physical_type, max(leaf.length, 1))
            expanded += max(chunk.total_uncompressed_size, in_memory)
    check_expansion(shown(file), stored, expanded)


def texts_with_dictionary(metadata: Any, columns: Iterable[str]) -> list[str]:
    """Return the paths of text columns that are stored as numbers of a dictionary, to be read as they are stored."""
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    return [
        metadata.schema.column(number).path
        for number in _leaves(metadata, columns)
        if metadata.schema.column(number).physical_type == "BYTE_ARRAY"
        and any(group.column(number).has_dictionary_page for group in groups)
    ]


def _leaves(metadata: Any, columns: Iterable[str]) -> Iterable[int]:
    names = set(columns)
    paths = (metadata.schema.column(number).path for number in range(metadata.num_columns))
    return (number for number, path in enumerate(paths) if path.split(".")[0] in names or path in names)


def repeated_bytes(array: Any) -> int:
    """Return the bytes of the texts that a dictionary stands for in an Arrow array, written out."""
    import pyarrow.compute as pc
    from pyarrow import types

    kind = array.type
    if types.is_dictionary(kind) and array.dictionary.type in _texts():
        return pc.sum(pc.binary_length(array.dictionary).take(array.indices)).as_py() or 0
    if types.is_struct(kind) or types.is_list(kind) or types.is_large_list(kind):
        inner = array.flatten()
        return sum(map(repeated_bytes, inner if isinstance(inner, list) else [inner]))
    return 0


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
