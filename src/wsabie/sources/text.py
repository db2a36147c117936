"""Text files of any size: gzip or plain, by line or by block of lines, the system's refusals explained."""

import gzip
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import IO, AnyStr, cast

import numpy as np

from wsabie.base.arrays import UInt8
from wsabie.base.errors import InputError
from wsabie.base.input_files import fault_text, open_input
from wsabie.sources.unpacked import unpack

LONGEST_LINE = 1 << 28
_GZIP = b"\x1f\x8b"


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what can go wrong while `path` is read into one sentence.

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
        raise InputError(f"there is no file or folder {shown(path)}; check the name") from error
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError(f"{shown(path)} is damaged or cut off gzip ({error}); fetch or compress it again") from error
    except OSError as error:
        raise InputError(
            f"cannot read {shown(path)}: {fault_text(error)}; check the path and its permissions"
        ) from error
    except ValueError as error:
        if "null byte" not in str(error) and "null character" not in str(error):
            raise
        raise InputError(f"{shown(path)!r} is no path; check the name") from error


def shown(path: Path | str) -> str:
    """A path as printable text, whatever bytes its name holds."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def open_bytes(path: Path, *, pipe: bool = False) -> BufferedIOBase:
    """The content of a file as bytes, unpacked when it is gzip (told by its first bytes, not its name).

    A byte order mark of UTF-8 is passed over: it would be a part of the first word.

    Raises
    ------
    InputError
        A device, or a pipe unless `pipe` is set.
    """
    raw = open_input(path, pipe=pipe)
    stream = unpack(raw, shown(path)) if raw.peek(2)[:2] == _GZIP else raw
    if stream.peek(len(BOM_UTF8))[: len(BOM_UTF8)] == BOM_UTF8:
        stream.read(len(BOM_UTF8))
    return cast(BufferedIOBase, stream)


def head(path: Path, size: int = 1 << 16) -> bytes:
    """The first `size` bytes after unpacking."""
    with reading(path), open_bytes(path) as stream:
        return _read_fully(stream, size)


def _read_fully(stream: BufferedIOBase, size: int) -> bytes:
    parts, left = [], size
    while left and (part := stream.read(left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def numbered_lines(path: Path, longest: int | None = None, *, pipe: bool = False) -> Iterator[tuple[int, bytes]]:
    """(line number from 1, line without its end) of a file, or of a pipe where `pipe` allows one.

    Raises
    ------
    InputError
        As `reading`, or a line is longer than `longest` bytes (256 MiB).
    """
    with reading(path), open_bytes(path, pipe=pipe) as stream:
        for number, line in enumerate(bounded_lines(cast(IO[bytes], stream), path, longest), start=1):
            yield number, line.rstrip(b"\r\n")


def telling_lines(path: Path, longest: int | None = None) -> Iterator[tuple[int, bytes]]:
    """`numbered_lines` of a list of names, less those that say nothing: empty ones, and remarks, which begin with "# "
    (with a blank: a name may begin with #). A pipe that the user names is read too.
    """
    lines = numbered_lines(path, longest, pipe=True)
    return ((number, line) for number, line in lines if line.strip() and line[:2] != b"# ")


def lines_up_to(path: Path, longest: int, *, pipe: bool = False) -> Iterator[tuple[int, bytes | None]]:
    """(line number from 1, line without its end) of a file, or of a pipe where `pipe` allows one; None for a line of
    more than `longest` bytes, which is passed over.

    Raises
    ------
    InputError
        As `reading`.
    """
    number = 0
    with reading(path), open_bytes(path, pipe=pipe) as stream:
        while line := stream.readline(longest + 1):
            number += 1
            whole = len(line) <= longest
            yield number, line.rstrip(b"\r\n") if whole else None
            while not whole and not line.endswith(b"\n") and line:
                line = stream.readline(longest)


def bounded_lines(stream: IO[AnyStr], path: Path, longest: int | None = None) -> Iterator[AnyStr]:
    """The lines of an open file, with their ends; no more than `longest` bytes or letters of one are ever read.

    Raises
    ------
    InputError
        A line is longer than that (256 MiB when it is not given).
    """
    longest, number = longest or LONGEST_LINE, 0
    while line := stream.readline(longest + 1):
        number += 1
        if len(line) > longest:
            raise too_long(path, number, longest)
        yield line


def whole_lines(path: Path, size: int = 1 << 24) -> Iterator[UInt8]:
    """The file in blocks of about `size` bytes that end with a newline; each lives until the next is taken.

    Raises
    ------
    InputError
        As `numbered_lines`.
    """
    with reading(path), open_bytes(path) as stream:
        buffer, held = bytearray(size), 0
        while True:
            if held >= len(buffer) - 1:
                buffer = _doubled(path, buffer)
            held, ended = _fill(stream, buffer, held)
            if ended and held and buffer[held - 1] != 10:
                buffer[held : held + 1] = b"\n"
                held += 1
            end = buffer.rfind(b"\n", 0, held) + 1
            if end:
                yield np.frombuffer(buffer, np.uint8, end)
            if ended:
                return
            buffer[: held - end] = buffer[end:held]
            held -= end


def _fill(stream: BufferedIOBase, buffer: bytearray, held: int) -> tuple[int, bool]:
    """Read until one byte is left free: (bytes held, whether the file has ended)."""
    view = memoryview(buffer)
    while held < len(buffer) - 1:
        got = stream.readinto(view[held : len(buffer) - 1])
        if not got:
            return held, True
        held += got
    return held, False


def _doubled(path: Path, buffer: bytearray) -> bytearray:
    if len(buffer) > LONGEST_LINE:
        raise too_long(path, None, LONGEST_LINE)
    return buffer + bytearray(len(buffer))


def too_long(path: Path, number: int | None, longest: int) -> InputError:
    where = shown(path) if number is None else f"{shown(path)}:{number}"
    return InputError(f"{where} has a line of more than {longest >> 20} MiB; this is not a text file of rows")


def bytes_on_disk(path: Path) -> int:
    """Size of a file as stored."""
    with reading(path):
        return path.stat().st_size
