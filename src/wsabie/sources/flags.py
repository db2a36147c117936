"""Tables of 0 and 1: one line for each thing, one flag for each label, in the order of a list of names."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from wsabie.base.arrays import Int64
from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow
from wsabie.sources.text import numbered_lines, shown

_BETWEEN = b" \t,;\r"


def read_flags(path: Path, n_labels: int) -> Iterator[tuple[int, Int64 | BadRow]]:
    """(line number, labels that are 1) of each line; what stands between the flags is left alone.

    A line of anything else is a `BadRow`, so that the lines after it keep their places.

    Raises
    ------
    InputError
        The first line has another number of flags than there are labels.
    """
    for number, line in numbered_lines(path):
        flags = line.translate(None, _BETWEEN)
        if number == 1 and not flags.strip(b"01") and len(flags) != n_labels:
            raise InputError(
                f"{shown(path)}:1 has {len(flags):,} flags for {n_labels:,} labels; put the list of names beside it "
                "that belongs to it"
            )
        if flags.strip(b"01"):
            yield number, BadRow("flag that is neither 0 nor 1", repr(line[:60]))
        elif len(flags) != n_labels:
            yield number, BadRow("wrong number of flags", f"{len(flags)} of {n_labels}")
        else:
            yield number, np.flatnonzero(np.frombuffer(flags, np.uint8) == ord("1"))


def read_names(path: Path) -> list[str]:
    """A list of names or ids, one a line; blank lines are left out.

    Raises
    ------
    InputError
        Missing, empty, or not UTF-8.
    """
    names = []
    for number, line in numbered_lines(path):
        try:
            names.append(line.decode("utf-8").strip())
        except UnicodeDecodeError as error:
            raise InputError(f"{shown(path)}:{number} is not UTF-8 text; convert the file with iconv") from error
    names = [name for name in names if name]
    if not names:
        raise InputError(f"{shown(path)} is empty; it should list one name a line")
    return names
