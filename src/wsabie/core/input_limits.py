"""Limits on what input from outside may cost, one table for all readers.

The variable WSABIE_LIMITS changes them: `WSABIE_LIMITS="columns=2e9 ratio=5000"`.
"""

import os
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from functools import cache

from wsabie.core.errors import InputError, require

VARIABLE = "WSABIE_LIMITS"


@dataclass(frozen=True)
class InputLimits:
    """Largest costs that a reader accepts.

    Attributes
    ----------
    expanded_bytes : int
        Bytes that one compressed file, page or chunk may expand to.
    ratio : int
        Expanded bytes for each compressed byte, once 32 MiB are passed.
    rows : int
        Rows of one source.
    empty_rows : int
        Rows, or lines of gzip, beyond ten for each byte of the file on the disk.
    columns : int
        Features of one source.
    table_columns : int
        Columns of a table that has a header or a schema: CSV, Parquet; values of an ARFF attribute.
    empty_columns : int
        Features beyond 10 for each value that is not 0: a model has a vector for every feature.
    labels : int
        Labels of one source.
    empty_labels : int
        Labels without a name beyond 10 for each time that a row has a label.
    depth : int
        Levels of one value inside another: JSON, XML, keyword paths.
    picture_bytes : int
        Memory of all pictures that are decoded, and all image encoders that run, at one time.
    network_bytes : int
        Memory of an image encoder for one picture.
    network_seconds : int
        Time of an image encoder for its first picture.
    """

    expanded_bytes: int = 64 << 30
    ratio: int = 200
    rows: int = 2_000_000_000
    empty_rows: int = 1_000_000
    columns: int = 2_000_000_000
    table_columns: int = 100_000
    empty_columns: int = 1 << 20
    labels: int = 100_000_000
    empty_labels: int = 250_000
    depth: int = 100
    picture_bytes: int = 1 << 30
    network_bytes: int = 1 << 30
    network_seconds: int = 60


def read_limits() -> InputLimits:
    """Return the limits in force: the defaults, changed by WSABIE_LIMITS.

    Raises
    ------
    InputError
        The variable names a limit that does not exist, or a value that is not a number above 0.

    Examples
    --------
    >>> read_limits().depth
    100
    """
    return _parse_limits(os.environ.get(VARIABLE, ""))


def make_limit_error(name: str, excess: str, needed: int) -> InputError:
    """Return the error for input that exceeds a limit, with the setting that lets it pass.

    Parameters
    ----------
    name : str
        The limit.
    excess : str
        Where the input exceeds it, and by how much.
    needed : int
        Value to set; other limits that are changed already stay in the setting.

    Examples
    --------
    >>> print(make_limit_error("depth", "a.json:3 nests 5,000 lists", 5000))
    a.json:3 nests 5,000 lists, and at most 100 are allowed; if the file is right, set WSABIE_LIMITS="depth=5000"
    """
    limits, usual = asdict(read_limits()), asdict(InputLimits())
    setting = {limit: value for limit, value in limits.items() if value != usual[limit]} | {name: needed}
    words = " ".join(f"{limit}={value}" for limit, value in setting.items())
    remedy = f'if the file is right, set {VARIABLE}="{words}"'
    return InputError(f"{excess}, and at most {limits[name]:,} are allowed; {remedy}")


@cache
def _parse_limits(text: str) -> InputLimits:
    names = sorted(field.name for field in fields(InputLimits))
    values = {}
    for word in text.replace(",", " ").split():
        name, equals, number = word.partition("=")
        where = f"{VARIABLE} holds {word!r}"
        require(bool(equals), f'{where}, and no number for it; write name=number without blanks, such as "columns=4e9"')
        if name not in names:
            near = get_close_matches(name, names, 1)
            remedy = f"write {near[0]}={number}" if near else f"the limits are {', '.join(names)}"
            raise InputError(f"{where}, and there is no limit {name!r}; {remedy}")
        if (value := _parse_number(number)) < 1:
            fault = f"{number!r} is not a number from 1 on" if number else "there is no number behind the ="
            raise InputError(f'{where}, and {fault}; write digits, such as "{name}={getattr(InputLimits, name)}"')
        values[name] = value
    return InputLimits(**values)


def _parse_number(text: str) -> int:
    """Return a whole number, as digits or as 4e9; 0 where it is none."""
    for parse in (int, float):
        with suppress(ValueError, OverflowError):
            return int(parse(text))
    return 0
