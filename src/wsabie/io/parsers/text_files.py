"""Text files of any size: gzip or plain, by line or by block of lines, with explained errors."""

import gzip
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import IO, AnyStr, cast

import numpy as np

from wsabie.core.arrays import UInt8
from wsabie.core.errors import InputError
from wsabie.core.input_files import format_open_error, open_input
from wsabie.io.parsers.gzip_files import open_gzip_stream

LONGEST_LINE = 1 << 28
_GZIP = b"\x1f\x8b"


@contextmanager
def explain_reading_errors(path: Path) -> Iterator[None]:
    """Turn any failure of reading `path` into one sentence.

    Raises
    ------
    InputError
        Missing, forbidden, or damaged compression.
    """
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"there is no file or folder {format_path(path)}; check the name") from error
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError(
            f"{format_path(path)} is damaged or cut off gzip ({error}); fetch or compress it again"
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot read {format_path(path)}: {format_open_error(error)}; check the path and its permissions"
        ) from error
    except ValueError as error:
        if "null byte" not in str(error) and "null character" not in str(error):
            raise
        raise InputError(f"{format_path(path)!r} is no path; check the name") from error


def format_path(path: Path | str) -> str:
    """Return a path as printable text, even if its name is not UTF-8."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def open_decompressed(path: Path, *, pipe: bool = False) -> BufferedIOBase:
    """Open a file as bytes, unpacked when it is gzip (detected by its first bytes).

    A byte order mark of UTF-8 is passed over: it would be a part of the first word.

    Raises
    ------
    InputError
        A device, or a pipe unless `pipe` is set.
    """
    raw = open_input(path, pipe=pipe)
    stream = open_gzip_stream(raw, format_path(path)) if raw.peek(2)[:2] == _GZIP else raw
    if stream.peek(len(BOM_UTF8))[: len(BOM_UTF8)] == BOM_UTF8:
        stream.read(len(BOM_UTF8))
    return cast(BufferedIOBase, stream)


def read_head(path: Path, size: int = 1 << 16) -> bytes:
    """Return the first `size` bytes after unpacking."""
    with explain_reading_errors(path), open_decompressed(path) as stream:
        return _read_fully(stream, size)


def _read_fully(stream: BufferedIOBase, size: int) -> bytes:
    parts, n_left = [], size
    while n_left and (part := stream.read(n_left)):
        parts.append(part)
        n_left -= len(part)
    return b"".join(parts)


def iterate_numbered_lines(
    path: Path, longest: int | None = None, *, pipe: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line without its end) of a file, or of a pipe where `pipe` allows one.

    Raises
    ------
    InputError
        As `explain_reading_errors`, or a line is longer than `longest` bytes (256 MiB).
    """
    with explain_reading_errors(path), open_decompressed(path, pipe=pipe) as stream:
        for number, line in enumerate(iterate_bounded_lines(cast(IO[bytes], stream), path, longest), start=1):
            yield number, line.rstrip(b"\r\n")


def iterate_content_lines(path: Path, longest: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield the numbered lines of a list of names without empty ones and remarks.

    Remarks begin with "# " (with a blank: a name may begin with #). A pipe that the user names is read too.
    """
    lines = iterate_numbered_lines(path, longest, pipe=True)
    return ((number, line) for number, line in lines if line.strip() and line[:2] != b"# ")


def iterate_bounded_numbered_lines(
    path: Path, longest: int, *, pipe: bool = False
) -> Iterator[tuple[int, bytes | None]]:
    """Yield (line number from 1, line without its end); None for a line above `longest` bytes.

    Pipes are read where `pipe` allows one.

    Raises
    ------
    InputError
        As `explain_reading_errors`.
    """
    number = 0
    with explain_reading_errors(path), open_decompressed(path, pipe=pipe) as stream:
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
    longest, number = longest or LONGEST_LINE, 0
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
    with explain_reading_errors(path), open_decompressed(path) as stream:
        buffer, n_filled = bytearray(size), 0
        while True:
            if n_filled >= len(buffer) - 1:
                buffer = _double(path, buffer)
            n_filled, is_at_end = _fill_buffer(stream, buffer, n_filled)
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


def _fill_buffer(stream: BufferedIOBase, buffer: bytearray, n_filled: int) -> tuple[int, bool]:
    """Read until one byte is left free; return (bytes filled, whether the file has ended)."""
    view = memoryview(buffer)
    while n_filled < len(buffer) - 1:
        n_read = stream.readinto(view[n_filled : len(buffer) - 1])
        if not n_read:
            return n_filled, True
        n_filled += n_read
    return n_filled, False


def _double(path: Path, buffer: bytearray) -> bytearray:
    if len(buffer) > LONGEST_LINE:
        raise make_line_length_error(path, None, LONGEST_LINE)
    return buffer + bytearray(len(buffer))


def make_line_length_error(path: Path, number: int | None, longest: int) -> InputError:
    where = format_path(path) if number is None else f"{format_path(path)}:{number}"
    return InputError(f"{where} has a line of more than {longest >> 20} MiB; this is not a text file of rows")


def get_file_size(path: Path) -> int:
    """Return the size of a file as stored."""
    with explain_reading_errors(path):
        return path.stat().st_size
