"""Values that the pages of a Parquet file claim, read from the headers of pages before anything is decoded.

A page of a few bytes may say that one number comes a thousand million times, and the footer need not tell. Footer and
headers are structs of Thrift's compact protocol; pyarrow gives no access to headers, and damaged notes of a column
chunk end the process there.
"""

from collections.abc import Collection
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.sources.text import bytes_on_disk, shown
from wsabie.sources.unpacked import check_expansion, check_table_columns

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
    """Refuse a table of more columns than `Limits.table_columns` before Arrow makes 2 kB of each.

    Raises
    ------
    InputError
    """
    footer, n = _Compact(_footer(stream, 1 << 10)), 0
    try:
        for number, kind in footer.fields():
            if number == _SCHEMA:
                n = footer.list_head()[0] - 1
                break
            footer.value(kind)
    except (IndexError, ValueError, RecursionError):  # Arrow says what is wrong
        return
    check_table_columns(shown(file), n)


def check_pages(file: Path, stream: BufferedIOBase, columns: Collection[str]) -> None:
    """Refuse columns whose pages claim far more values, or bytes, than the file can hold; only `LARGEST` are looked at.

    Raises
    ------
    InputError
        They expand beyond the limits, or are damaged.
    """
    stored, expanded, names = bytes_on_disk(file), 0, {name.encode() for name in columns}
    if stored > LARGEST:
        return
    try:
        footer = _Compact(_footer(stream, LARGEST)).struct()
        notes = [chunk[_NOTES] for group in footer[_GROUPS] for chunk in group[_CHUNKS]]
        for note in notes:
            if note[_PATH][0] in names or b".".join(note[_PATH]) in names:
                expanded = _check_chunk(file, stream, note, stored, expanded)
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{shown(file)} is damaged or no Parquet (its pages); write or fetch it again") from error


def _check_chunk(file: Path, stream: BufferedIOBase, note: dict[int, Any], stored: int, expanded: int) -> int:
    """Add what the pages of a column chunk expand to."""
    at, n_values = min(note[_DATA_AT], note.get(_DICTIONARY_AT) or note[_DATA_AT]), 0
    end = at + note[_SIZE]
    while n_values < note[_N_VALUES] and at < end:
        header, at = _page_header(stream, at)
        n = sum(header[kind][_N_IN_PAGE] for kind in _DATA_HEADERS if kind in header)
        n_values += n
        expanded += max(header[_EXPANDED], _VALUE_BYTES * n)
        check_expansion(shown(file), stored, expanded)
        at += max(0, header[_COMPRESSED])
    return expanded


def _page_header(stream: BufferedIOBase, at: int) -> tuple[dict[int, Any], int]:
    """Read the header at a place; return it and the first byte behind it."""
    for size in _HEADER_BYTES:
        stream.seek(at)
        header = _Compact(stream.read(size))
        try:
            return header.struct(), at + header.at
        except IndexError:  # it is longer, or cut off
            continue
    raise ValueError("a page without a header")


def _footer(stream: BufferedIOBase, most: int) -> bytes:
    """The first `most` bytes of the footer; none of a file that is no Parquet."""
    size = stream.seek(0, 2)
    stream.seek(max(0, size - 8))
    end = stream.read(8)
    n = int.from_bytes(end[:4], "little")
    if end[4:] != _END or n + 8 > size:
        return b""
    stream.seek(size - 8 - n)
    return stream.read(min(n, most))


class _Compact:
    """Structs in Thrift's compact protocol, as dicts by the ids of fields."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def struct(self) -> dict[int, Any]:
        return {number: self.value(kind) for number, kind in self.fields()}

    def fields(self) -> Any:
        """Yield (id, type) of each field; whoever iterates reads its value before the next."""
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
