"""Content of gzip files, read by pieces: a small file that expands to a huge one is refused."""

import gzip
import io
from io import BufferedReader
from typing import IO, cast

from wsabie.core.input_limits import InputLimits, make_limit_error, read_limits

RATIO_FROM = 32 << 20
"""Expanded bytes from which the ratio counts."""
_BLOCK = 1 << 17
_STEEPEST = 1032
"""Expanded bytes for each compressed byte that gzip reaches at most."""


class _CountingReader:
    """Compressed bytes of a file or a pipe, counted as they are read."""

    def __init__(self, raw: BufferedReader) -> None:
        self.raw, self.n = raw, 0

    def read(self, size: int = -1) -> bytes:
        content = self.raw.read(size)
        self.n += len(content)
        return content


class GzipStream(io.RawIOBase):
    """Expanded bytes of an open gzip file, counted.

    Raises
    ------
    InputError
        More bytes, a higher ratio, or more lines than the limits allow, while it is read.
    """

    def __init__(self, raw: BufferedReader, source_name: str) -> None:
        self._compressed, self._source_name = _CountingReader(raw), source_name
        self._inner = gzip.GzipFile(fileobj=cast(IO[bytes], self._compressed), mode="rb")
        self._limits, self._bytes, self._lines = read_limits(), 0, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        n = self._inner.readinto(buffer)
        self._bytes += n
        self._lines += bytes(memoryview(buffer)[:n]).count(b"\n")
        check_expansion(self._source_name, self._compressed.n, self._bytes, self._limits)
        check_row_count(self._source_name, self._compressed.n, self._lines, "lines", self._limits)
        return n

    def close(self) -> None:
        self._inner.close()
        self._compressed.raw.close()
        super().close()


def open_gzip_stream(raw: BufferedReader, source_name: str) -> BufferedReader:
    """Return the expanded content of an open gzip file; `source_name` names it in errors."""
    return BufferedReader(cast(io.RawIOBase, GzipStream(raw, source_name)), _BLOCK)


def check_expansion(source_name: str, compressed: int, expanded: int, limits: InputLimits | None = None) -> None:
    """Refuse content that expands too far.

    Parameters
    ----------
    source_name : str
        What it is of, for the sentence.
    compressed, expanded : int
        Bytes.

    Raises
    ------
    InputError

    Examples
    --------
    >>> check_expansion("a.gz", 10, 1 << 20)
    >>> check_expansion("a.gz", 10, 1 << 26)
    Traceback (most recent call last):
    wsabie.core.errors.InputError: a.gz expands 10 bytes to 67,108,864, 6,710,886 bytes for each, and at most 200 are
    allowed; if the file is right, set WSABIE_LIMITS="ratio=13421772"
    """
    limits = limits or read_limits()
    if expanded > limits.expanded_bytes:
        raise make_limit_error("expanded_bytes", f"{source_name} expands to {expanded:,} bytes or more", 2 * expanded)
    if expanded > max(RATIO_FROM, limits.ratio * compressed):
        ratio = expanded // max(compressed, 1)
        excess = f"{source_name} expands {compressed:,} bytes to {expanded:,}, {ratio:,} bytes for each"
        raise make_limit_error("ratio", excess, max(2 * ratio, _STEEPEST))


def check_row_count(
    source_name: str, stored_bytes: int, n_rows: int, unit: str = "rows", limits: InputLimits | None = None
) -> None:
    """Refuse more rows than the limit, or than the bytes of a file can describe.

    Raises
    ------
    InputError
    """
    limits = limits or read_limits()
    if n_rows > limits.rows:
        raise make_limit_error("rows", f"{source_name} has {n_rows:,} {unit} or more", 2 * n_rows)
    if (empty := n_rows - 10 * stored_bytes) > limits.empty_rows:
        excess = f"{source_name} has {n_rows:,} {unit} in {stored_bytes:,} bytes, {empty:,} beyond ten for each byte"
        raise make_limit_error("empty_rows", excess, 2 * empty)


def check_column_count(source_name: str, n_columns: int) -> None:
    """Refuse a table of more columns than `InputLimits.table_columns`: each costs memory and time in every row.

    Raises
    ------
    InputError
    """
    if n_columns > read_limits().table_columns:
        raise make_limit_error("table_columns", f"{source_name} has {n_columns:,} columns", n_columns)
