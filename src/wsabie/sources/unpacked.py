"""Content of gzip files, read by pieces: a small file that expands to a huge one is refused on the way."""

import gzip
import io
from io import BufferedReader
from typing import IO, cast

from wsabie.base.limits import Limits, current_limits, limit_error

RATIO_FROM = 32 << 20
"""Expanded bytes from which the ratio counts."""
_BLOCK = 1 << 17
_STEEPEST = 1032
"""Expanded bytes for each compressed byte that gzip reaches at most."""


class _Counter:
    """The compressed bytes of a file or a pipe, counted as they are read."""

    def __init__(self, raw: BufferedReader) -> None:
        self.raw, self.n = raw, 0

    def read(self, size: int = -1) -> bytes:
        content = self.raw.read(size)
        self.n += len(content)
        return content


class Unpacked(io.RawIOBase):
    """Expanded bytes of an open gzip file, counted.

    Raises
    ------
    InputError
        More bytes, a higher ratio, or more lines than the limits allow, while it is read.
    """

    def __init__(self, raw: BufferedReader, shown: str) -> None:
        self._compressed, self._shown = _Counter(raw), shown
        self._inner = gzip.GzipFile(fileobj=cast(IO[bytes], self._compressed), mode="rb")
        self._limits, self._bytes, self._lines = current_limits(), 0, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        n = self._inner.readinto(buffer)
        self._bytes += n
        self._lines += bytes(memoryview(buffer)[:n]).count(b"\n")
        check_expansion(self._shown, self._compressed.n, self._bytes, self._limits)
        check_rows(self._shown, self._compressed.n, self._lines, "lines", self._limits)
        return n

    def close(self) -> None:
        self._inner.close()
        self._compressed.raw.close()
        super().close()


def unpack(raw: BufferedReader, shown: str) -> BufferedReader:
    """Return the expanded content of an open gzip file; `shown` names it in errors."""
    return BufferedReader(cast(io.RawIOBase, Unpacked(raw, shown)), _BLOCK)


def check_expansion(shown: str, compressed: int, expanded: int, limits: Limits | None = None) -> None:
    """Refuse content that expands too far.

    Parameters
    ----------
    shown : str
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
    wsabie.base.errors.InputError: a.gz expands 10 bytes to 67,108,864, 6,710,886 bytes for each, and at most 200 are
    allowed; if the file is right, set WSABIE_LIMITS="ratio=13421772"
    """
    limits = limits or current_limits()
    if expanded > limits.expanded_bytes:
        raise limit_error("expanded_bytes", f"{shown} expands to {expanded:,} bytes or more", 2 * expanded)
    if expanded > max(RATIO_FROM, limits.ratio * compressed):
        ratio = expanded // max(compressed, 1)
        excess = f"{shown} expands {compressed:,} bytes to {expanded:,}, {ratio:,} bytes for each"
        raise limit_error("ratio", excess, max(2 * ratio, _STEEPEST))


def check_rows(shown: str, stored_bytes: int, n_rows: int, what: str = "rows", limits: Limits | None = None) -> None:
    """Refuse more rows than there may be, or than the bytes of a file can say something of.

    Raises
    ------
    InputError
    """
    limits = limits or current_limits()
    if n_rows > limits.rows:
        raise limit_error("rows", f"{shown} has {n_rows:,} {what} or more", 2 * n_rows)
    if (empty := n_rows - 10 * stored_bytes) > limits.empty_rows:
        excess = f"{shown} has {n_rows:,} {what} in {stored_bytes:,} bytes, {empty:,} beyond ten for each byte"
        raise limit_error("empty_rows", excess, 2 * empty)


def check_table_columns(shown: str, n_columns: int) -> None:
    """Refuse a table of more columns than `Limits.table_columns`: each costs memory and time in every row.

    Raises
    ------
    InputError
    """
    if n_columns > current_limits().table_columns:
        raise limit_error("table_columns", f"{shown} has {n_columns:,} columns", n_columns)
