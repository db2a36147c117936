"""Text files of any size: gzip or plain, by line or by block of lines, with explained errors.

Gzip is read by pieces: a small file that expands to a huge one is refused, which pandas reads into memory
(`docs/decisions/input-limits.md`).
"""

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import IO, AnyStr, cast

import numpy as np

from wsabie.core.arrays import UInt8
from wsabie.core.errors import InputError, require
from wsabie.core.input_files import open_input
from wsabie.core.input_limits import make_limit_error, read_limits
from wsabie.storage.atomic_files import explain_read_errors, replace_file

RATIO_FROM = 32 << 20
"""Expanded bytes from which the ratio counts."""
_BLOCK = 1 << 17
_STEEPEST = 1032
"""Expanded bytes for each compressed byte that gzip reaches at most."""
MAX_LINE_BYTES = 1 << 28
_GZIP = b"\x1f\x8b"
_WIDE_TEXT = {
    "utf-32": re.compile(rb"(\xff\xfe\0\0|\0\0\xfe\xff)[^\xff]"),
    "utf-16": re.compile(rb"(\xff\xfe|\xfe\xff)[^\xff]"),
    "utf-16-le": re.compile(rb"[\t\n\r -~]\0([^\0]\0){3}"),
    "utf-16-be": re.compile(rb"\0[\t\n\r -~](\0[^\0]){3}"),
}
"""First bytes of texts in UTF-16 and UTF-32: a byte order mark that is not alone, or letters."""
_OLD_MAC = re.compile(rb"[^\0\n\r]+\r[^\0\n]+")
"""First bytes of text whose lines end in carriage returns alone."""


class _CountingReader:
    """Compressed bytes of a file or a pipe, counted as they are read."""

    def __init__(self, raw: BufferedReader) -> None:
        self.raw, self.n = raw, 0

    def read(self, size: int = -1) -> bytes:
        content = self.raw.read(size)
        self.n += len(content)
        return content


class GzipStream(gzip.GzipFile):
    """Expanded bytes of an open gzip file, counted.

    Raises
    ------
    InputError
        More bytes, a higher ratio, or more lines than the limits allow, while it is read.
    """

    def __init__(self, raw: BufferedReader, source_name: str) -> None:
        self._compressed, self._source_name = _CountingReader(raw), source_name
        self._bytes, self._lines = 0, 0
        super().__init__(fileobj=cast(IO[bytes], self._compressed), mode="rb")

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        n = super().readinto(buffer)
        self._bytes += n
        self._lines += bytes(memoryview(buffer)[:n]).count(b"\n")
        check_expansion(self._source_name, self._compressed.n, self._bytes)
        check_row_count(self._source_name, self._compressed.n, self._lines, "lines")
        return n

    def close(self) -> None:
        super().close()
        self._compressed.raw.close()


class _ConvertedStream(io.RawIOBase):
    """Blocks that an iterator makes of another stream, as bytes."""

    def __init__(self, source: BufferedReader, blocks: Iterator[bytes]) -> None:
        self._source, self._blocks, self._rest = source, blocks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._rest = self._rest or next(self._blocks, b"")
        n = min(len(buffer), len(self._rest))
        buffer[:n], self._rest = self._rest[:n], self._rest[n:]
        return n

    def close(self) -> None:
        self._source.close()
        super().close()


def _iterate_wide_text(source: BufferedReader, source_name: str, encoding: str) -> Iterator[bytes]:
    """Yield text in UTF-16 or UTF-32 as UTF-8."""
    text = io.TextIOWrapper(cast(IO[bytes], source), encoding, newline="")
    try:
        while block := text.read(_BLOCK):
            yield block.encode()
    except UnicodeError as error:
        raise InputError(f"{source_name} is broken text in {encoding.upper()}; save it as UTF-8") from error


def _iterate_old_mac_text(source: BufferedReader) -> Iterator[bytes]:
    """Yield text whose lines end in carriage returns alone, as lines."""
    while block := source.read1(_BLOCK):
        yield block.replace(b"\r", b"\n")


def check_expansion(source_name: str, compressed: int, expanded: int) -> None:
    """Refuse content that expands too far.

    Parameters
    ----------
    source_name : str
        Content of the file, for the message.
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
    limits = read_limits()
    if expanded > limits.expanded_bytes:
        raise make_limit_error("expanded_bytes", f"{source_name} expands to {expanded:,} bytes or more", 2 * expanded)
    if expanded > max(RATIO_FROM, limits.ratio * compressed):
        ratio = expanded // max(compressed, 1)
        excess = f"{source_name} expands {compressed:,} bytes to {expanded:,}, {ratio:,} bytes for each"
        raise make_limit_error("ratio", excess, max(2 * ratio, _STEEPEST))


def check_row_count(source_name: str, stored_bytes: int, n_rows: int, unit: str = "rows") -> None:
    """Refuse more rows than the limit, or than the bytes of a file can describe.

    Raises
    ------
    InputError
    """
    limits = read_limits()
    if n_rows > limits.rows:
        raise make_limit_error("rows", f"{source_name} has {n_rows:,} {unit} or more", 2 * n_rows)
    if (empty := n_rows - 10 * stored_bytes) > limits.empty_rows:
        excess = f"{source_name} has {n_rows:,} {unit} in {stored_bytes:,} bytes, {empty:,} beyond ten for each byte"
        raise make_limit_error("empty_rows", excess, 2 * empty)


def check_column_count(source_name: str, n_columns: int) -> None:
    """Refuse a table over `InputLimits.table_columns`: each column costs memory and time in every row.

    Raises
    ------
    InputError
    """
    if n_columns > read_limits().table_columns:
        raise make_limit_error("table_columns", f"{source_name} has {n_columns:,} columns", n_columns)


@contextmanager
def explain_input_errors(path: Path) -> Iterator[None]:
    """Explain errors of reading as `explain_read_errors` does, and damaged gzip and impossible names.

    Raises
    ------
    InputError
        Missing, forbidden, damaged compression, or a name with a NUL.
    """
    with explain_read_errors(path):
        try:
            yield
        except InputError:
            raise
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise InputError(f"{path} is damaged or cut off gzip ({error}); fetch or compress it again") from error
        except ValueError as error:
            if "null byte" not in str(error) and "null character" not in str(error):
                raise
            raise InputError(f"{format_path(path)!r} is not a path; check the name") from error


def format_path(path: Path | str) -> str:
    """Return a path as printable text, even if its name is not UTF-8."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def decode_text(line: bytes, path: Path, number: int) -> str:
    """Return a line of a file as text; InputError where it is not UTF-8."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}:{number} is not UTF-8 text; convert the file, for instance with iconv") from error


def open_decompressed(path: Path, *, pipe: bool = False) -> BufferedIOBase:
    """Open a file as bytes, unpacked when it is gzip (detected by its first bytes).

    A byte order mark of UTF-8 is passed over: it would be a part of the first word. Text in UTF-16 or UTF-32 becomes
    UTF-8; without a mark four letters of ASCII show UTF-16. Carriage returns without a line feed become line feeds.

    Raises
    ------
    InputError
        A device, or a pipe unless `pipe` is set.
    """
    stream = open_input(path, pipe=pipe)
    if stream.peek(2)[:2] == _GZIP:
        stream = BufferedReader(cast(io.RawIOBase, GzipStream(stream, format_path(path))), _BLOCK)
    head = stream.peek(8)[:8]
    encoding = next((name for name, form in _WIDE_TEXT.items() if form.match(head)), None)
    if head.startswith(codecs.BOM_UTF8):
        stream.read(len(codecs.BOM_UTF8))
    elif encoding is not None:
        blocks = _iterate_wide_text(stream, format_path(path), encoding)
        return BufferedReader(cast(io.RawIOBase, _ConvertedStream(stream, blocks)), _BLOCK)
    if _OLD_MAC.fullmatch(stream.peek(1 << 12)):
        blocks = _iterate_old_mac_text(stream)
        stream = BufferedReader(cast(io.RawIOBase, _ConvertedStream(stream, blocks)), _BLOCK)
    return cast(BufferedIOBase, stream)


def read_head(path: Path, size: int = 1 << 16) -> bytes:
    """Return the first `size` bytes after unpacking."""
    with explain_input_errors(path), open_decompressed(path) as stream:
        return stream.read(size)


def read_small_file(path: Path, most: int, excess: str) -> bytes:
    """Return a file's content, decompressed; an InputError with `excess` where it has over `most` bytes."""
    content = read_head(path, most + 1)
    require(len(content) <= most, f"{path} {excess}")
    return content


def iterate_numbered_lines(
    path: Path, longest: int | None = None, *, pipe: bool = False, skip_blank: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line without its end) of a file, or of a pipe where `pipe` allows one.

    With `skip_blank` lines without letters are left out.

    Raises
    ------
    InputError
        As `explain_input_errors`, or a line is longer than `longest` bytes (256 MiB).
    """
    with explain_input_errors(path), open_decompressed(path, pipe=pipe) as stream:
        for number, line in enumerate(iterate_bounded_lines(cast(IO[bytes], stream), path, longest), start=1):
            if not skip_blank or not line.isspace():
                yield number, line.rstrip(b"\r\n")


def iterate_content_lines(path: Path, longest: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield the numbered lines of a list of names without empty ones and remarks.

    Remarks begin with "# " (with a blank: a name may begin with #). A pipe that the user names is read too.
    """
    lines = iterate_numbered_lines(path, longest, pipe=True, skip_blank=True)
    return ((number, line) for number, line in lines if line[:2] != b"# ")


def iterate_bounded_numbered_lines(
    path: Path, longest: int, *, pipe: bool = False
) -> Iterator[tuple[int, bytes | None]]:
    """Yield (line number from 1, line without its end); None for a line above `longest` bytes.

    Pipes are read where `pipe` allows one.

    Raises
    ------
    InputError
        As `explain_input_errors`.
    """
    number = 0
    with explain_input_errors(path), open_decompressed(path, pipe=pipe) as stream:
        while line := stream.readline(longest + 1):
            number += 1
            fits = len(line) <= longest
            yield number, line.rstrip(b"\r\n") if fits else None
            while not fits and not line.endswith(b"\n") and line:
                line = stream.readline(longest)


def iterate_bounded_lines(stream: IO[AnyStr], path: Path, longest: int | None = None) -> Iterator[AnyStr]:
    """Yield the lines of an open file, with their ends, reading at most `longest` bytes of one.

    Raises
    ------
    InputError
        A line is longer than that (256 MiB when it is not given).
    """
    longest, number = longest or MAX_LINE_BYTES, 0
    while line := stream.readline(longest + 1):
        number += 1
        if len(line) > longest:
            raise make_line_length_error(path, number, longest)
        yield line


def iterate_line_blocks(path: Path, size: int = 1 << 24) -> Iterator[UInt8]:
    """Yield blocks of about `size` bytes that end with a newline; each is valid until the next.

    Raises
    ------
    InputError
        As `iterate_numbered_lines`.
    """
    with explain_input_errors(path), open_decompressed(path) as stream:
        buffer, n_filled = bytearray(size), 0
        while True:
            if n_filled >= len(buffer) - 1:
                if len(buffer) > MAX_LINE_BYTES:
                    raise make_line_length_error(path, None, MAX_LINE_BYTES)
                buffer = buffer + bytearray(len(buffer))  # arrays of the last block hold the old one
            n_free = len(buffer) - 1 - n_filled  # the last byte is that of a newline at the end
            n_read = stream.readinto(memoryview(buffer)[n_filled : n_filled + n_free])
            n_filled, is_at_end = n_filled + n_read, n_read < n_free
            if is_at_end and n_filled and buffer[n_filled - 1] != 10:
                buffer[n_filled : n_filled + 1] = b"\n"
                n_filled += 1
            end = buffer.rfind(b"\n", 0, n_filled) + 1
            if end:
                yield np.frombuffer(buffer, np.uint8, end)
            if is_at_end:
                return
            buffer[: n_filled - end] = buffer[end:n_filled]
            n_filled -= end


def make_line_length_error(path: Path, number: int | None, longest: int) -> InputError:
    line = "" if number is None else f":{number}"
    return InputError(f"{path}{line} has a line of more than {longest >> 20} MiB; this is not a text file of rows")


def get_file_size(path: Path) -> int:
    """Return the size of a file as stored."""
    with explain_input_errors(path):
        return path.stat().st_size


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Write lines of UTF-8, atomically and one after the other; return their number."""
    n = 0
    with replace_file(path) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        for n, line in enumerate(lines, start=1):  # noqa: B007 - the function returns the count
            file.write(f"{line}\n")
    return n
