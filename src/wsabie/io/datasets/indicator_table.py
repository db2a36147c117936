"""Tables of 0 and 1: one line for each item, one flag for each label, in the order of a list of names."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from wsabie.core.arrays import Int64
from wsabie.core.errors import InputError
from wsabie.io.parsers.array_builders import RowError
from wsabie.io.parsers.text_files import format_path, iterate_numbered_lines

_BETWEEN = b" \t,;\r"


def read_indicator_table(path: Path, n_labels: int) -> Iterator[tuple[int, Int64 | RowError]]:
    """Yield (line number, labels that are 1) of each line; separators between flags are ignored.

    A line of anything else is a `RowError`, so that the lines after it keep their places.

    Raises
    ------
    InputError
        The first line has another number of flags than there are labels.
    """
    for number, line in iterate_numbered_lines(path):
        flags = line.translate(None, _BETWEEN)
        if number == 1 and not flags.strip(b"01") and len(flags) != n_labels:
            raise InputError(
                f"{format_path(path)}:1 has {len(flags):,} flags for {n_labels:,} labels; put the list of names "
                "beside it "
                "that belongs to it"
            )
        if flags.strip(b"01"):
            yield number, RowError("flag that is neither 0 nor 1", repr(line[:60]))
        elif len(flags) != n_labels:
            yield number, RowError("wrong number of flags", f"{len(flags)} of {n_labels}")
        else:
            yield number, np.flatnonzero(np.frombuffer(flags, np.uint8) == ord("1"))


def read_names(path: Path) -> list[str]:
    """Read a list of names or ids, one a line; blank lines are left out.

    Raises
    ------
    InputError
        Missing, empty, or not UTF-8.
    """
    names = []
    for number, line in iterate_numbered_lines(path):
        try:
            names.append(line.decode("utf-8").strip())
        except UnicodeDecodeError as error:
            raise InputError(f"{format_path(path)}:{number} is not UTF-8 text; convert the file with iconv") from error
    names = [name for name in names if name]
    if not names:
        raise InputError(f"{format_path(path)} is empty; it should list one name a line")
    return names
