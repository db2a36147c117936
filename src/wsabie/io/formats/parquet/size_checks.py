"""Size checks of Parquet: values that the headers of its pages claim, read before anything is decoded.

A page of a few bytes may claim a thousand million copies of one number, and the footer need not say so.
Footer and headers are structs of Thrift's compact protocol; pyarrow gives no access to headers, and damaged
notes of a column chunk end the process there.
"""

from collections.abc import Collection, Iterable
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from wsabie.core.errors import InputError
from wsabie.io.parsers.gzip_files import check_column_count, check_expansion, check_row_count
from wsabie.io.parsers.text_files import format_path, get_file_size

LARGEST = 64 << 20
"""Bytes of a file whose pages are looked at; a larger one is no small input."""
_VALUE_BYTES = 4  # in memory, at least
_END = b"PAR1"
_HEADER_BYTES = (1 << 12, 1 << 24)  # that are read; Arrow takes no longer header
# ids of fields: of the footer and its row groups, of the notes of a column, of page headers
_SCHEMA, _GROUPS, _CHUNKS, _NOTES = 2, 4, 1, 3
_PATH, _N_VALUES, _SIZE, _DATA_AT, _DICTIONARY_AT = 3, 5, 7, 9, 11
_EXPANDED, _COMPRESSED, _DATA_HEADERS, _N_IN_PAGE = 2, 3, (5, 8), 1


def check_schema_size(file: Path, stream: BufferedIOBase) -> None:
    """Refuse a table of more columns than `InputLimits.table_columns` before Arrow makes 2 kB of each.

    Raises
    ------
    InputError
    """
    footer, n = _CompactReader(_read_footer(stream, 1 << 10)), 0
    try:
        for number, kind in footer.fields():
            if number == _SCHEMA:
                n = footer.list_head()[0] - 1
                break
            footer.value(kind)
    except (IndexError, ValueError, RecursionError):  # Arrow says what is wrong
        return
    check_column_count(format_path(file), n)


def check_pages(file: Path, stream: BufferedIOBase, columns: Collection[str]) -> None:
    """Refuse columns whose pages claim far more values, or bytes, than the file can hold.

    Files larger than `LARGEST` are not examined.

    Raises
    ------
    InputError
        They expand beyond the limits, or are damaged.
    """
    stored, expanded, names = get_file_size(file), 0, {name.encode() for name in columns}
    if stored > LARGEST:
        return
    try:
        footer = _CompactReader(_read_footer(stream, LARGEST)).struct()
        notes = [chunk[_NOTES] for group in footer[_GROUPS] for chunk in group[_CHUNKS]]
        for note in notes:
            if note[_PATH][0] in names or b".".join(note[_PATH]) in names:
                expanded = _check_chunk(file, stream, note, stored, expanded)
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{format_path(file)} is damaged or no Parquet (its pages); write or fetch it again"
        ) from error


def _check_chunk(file: Path, stream: BufferedIOBase, note: dict[int, Any], stored: int, expanded: int) -> int:
    """Add the bytes that the pages of a column chunk expand to, and return the sum."""
    position, n_values = min(note[_DATA_AT], note.get(_DICTIONARY_AT) or note[_DATA_AT]), 0
    end = position + note[_SIZE]
    while n_values < note[_N_VALUES] and position < end:
        header, position = _read_page_header(stream, position)
        n = sum(header[kind][_N_IN_PAGE] for kind in _DATA_HEADERS if kind in header)
        n_values += n
        expanded += max(header[_EXPANDED], _VALUE_BYTES * n)
        check_expansion(format_path(file), stored, expanded)
        position += max(0, header[_COMPRESSED])
    return expanded


def _read_page_header(stream: BufferedIOBase, position: int) -> tuple[dict[int, Any], int]:
    """Read the header at a position; return it and the first byte behind it."""
    for size in _HEADER_BYTES:
        stream.seek(position)
        header = _CompactReader(stream.read(size))
        try:
            return header.struct(), position + header.at
        except IndexError:  # it is longer, or cut off
            continue
    raise ValueError("a page without a header")


def _read_footer(stream: BufferedIOBase, most: int) -> bytes:
    """Return the first `most` bytes of the footer; none of a file that is no Parquet."""
    size = stream.seek(0, 2)
    stream.seek(max(0, size - 8))
    end = stream.read(8)
    n = int.from_bytes(end[:4], "little")
    if end[4:] != _END or n + 8 > size:
        return b""
    stream.seek(size - 8 - n)
    return stream.read(min(n, most))


class _CompactReader:
    """Reader of structs in Thrift's compact protocol, as dicts by the ids of fields."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def struct(self) -> dict[int, Any]:
        return {number: self.value(kind) for number, kind in self.fields()}

    def fields(self) -> Any:
        """Yield (id, type) of each field; the caller reads its value before the next."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            yield number, head & 15

    def value(self, kind: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind in (4, 5, 6):
            return self._integer()
        if kind == 8:
            return self._bytes(self._number())
        if kind in (9, 10):
            n, inner = self.list_head()
            return [self._byte() if inner in (1, 2) else self.value(inner) for _ in range(n)]
        if kind == 12:
            return self.struct()
        if kind in (3, 7):
            return self._bytes(1 if kind == 3 else 8)
        raise ValueError(f"a value of type {kind}")

    def list_head(self) -> tuple[int, int]:
        """Read the number and the type of the values of a list."""
        head = self._byte()
        return (head >> 4 if head >> 4 < 15 else self._number()), head & 15

    def _byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def _bytes(self, n: int) -> bytes:
        if self.at + n > len(self.content):
            raise IndexError("cut off")
        self.at += n
        return self.content[self.at - n : self.at]

    def _number(self) -> int:
        number, shift = 0, 0
        while (byte := self._byte()) & 128:
            number |= (byte & 127) << shift
            shift += 7
        return number | byte << shift

    def _integer(self) -> int:
        number = self._number()
        return number >> 1 ^ -(number & 1)


_FEWEST = 64
"""Rows that are read together, at least."""


def check_parquet_metadata(file: Path, metadata: Any) -> None:
    """Refuse a file whose footer claims far more rows or bytes than the file can hold.

    Only totals are looked at: Arrow ends the process over the damaged notes of a single column.

    Raises
    ------
    InputError
    """
    stored = get_file_size(file)
    check_row_count(format_path(file), stored, metadata.num_rows)
    groups = (metadata.row_group(group) for group in range(metadata.num_row_groups))
    check_expansion(format_path(file), stored, sum(group.total_byte_size for group in groups))


def choose_batch_rows(stored: int, size: int) -> int:
    """Return the number of rows to read together: fewer of a small file, which may expand."""
    return min(size, max(_FEWEST, stored >> 14))


def list_dictionary_text_columns(metadata: Any, columns: Iterable[str]) -> list[str]:
    """Return the paths of text columns to read as numbers of a dictionary: it may repeat long texts."""
    names, leaves = set(columns), (metadata.schema.column(number) for number in range(metadata.num_columns))
    texts = (leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY")
    return [path for path in texts if path in names or path.split(".")[0] in names]


def compute_expanded_bytes(array: Any) -> int:
    """Return the bytes of an Arrow array with every text of a dictionary written out."""
    import pyarrow.compute as pc
    from pyarrow import types

    kind = array.type
    if types.is_dictionary(kind):
        letters = (
            pc.binary_length(array.dictionary).take(array.indices)
            if array.dictionary.type in _list_text_types()
            else None
        )
        return int(array.indices.nbytes) + (0 if letters is None else pc.sum(letters).as_py() or 0)
    if types.is_struct(kind) or types.is_list(kind) or types.is_large_list(kind):
        inner = array.flatten()
        return 4 * len(array) + sum(map(compute_expanded_bytes, inner if isinstance(inner, list) else [inner]))
    return int(array.nbytes)


def convert_to_cells(array: Any) -> list[Any]:
    """Return an Arrow array as Python objects; each text of a dictionary is a single object."""
    import pyarrow.compute as pc
    from pyarrow import types

    kind = array.type
    if types.is_dictionary(kind):
        used = pc.unique(array.indices.drop_null())
        texts = dict(zip(used.to_pylist(), array.dictionary.take(used).to_pylist(), strict=True))
        return [texts.get(number) for number in array.indices.to_pylist()]
    if (types.is_list(kind) or types.is_large_list(kind)) and types.is_dictionary(kind.value_type):
        cells, ends = convert_to_cells(array.flatten()), pc.cumulative_sum(pc.list_value_length(array).fill_null(0))
        spans = zip([0, *ends.to_pylist()], ends.to_pylist(), array.is_valid().to_pylist(), strict=False)
        return [cells[lo:hi] if valid else None for lo, hi, valid in spans]
    if types.is_struct(kind) and any(types.is_dictionary(field.type) for field in kind):
        columns = [convert_to_cells(inner) for inner in array.flatten()]
        names = [field.name for field in kind]
        rows = zip(array.is_valid().to_pylist(), *columns, strict=True)
        return [dict(zip(names, row, strict=True)) if valid else None for valid, *row in rows]
    return list(array.to_pylist())


def _list_text_types() -> tuple[Any, ...]:
    import pyarrow as pa

    return pa.string(), pa.binary(), pa.large_string(), pa.large_binary()
