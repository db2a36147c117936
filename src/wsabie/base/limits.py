"""Limits on what input from outside may cost, one table for all readers.

The variable WSABIE_LIMITS changes them: `WSABIE_LIMITS="columns=2e9 ratio=5000" wsabie train ...`.
"""

import os
from dataclasses import dataclass, fields
from functools import cache

from wsabie.base.errors import InputError

VARIABLE = "WSABIE_LIMITS"


@dataclass(frozen=True)
class Limits:
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


def current_limits() -> Limits:
    """Return the limits in force: the defaults, changed by WSABIE_LIMITS.

    Raises
    ------
    InputError
        The variable names a limit that does not exist, or a value that is no number above 0.

    Examples
    --------
    >>> current_limits().depth
    100
    """
    return _parse_limits(os.environ.get(VARIABLE, ""))


def limit_error(name: str, excess: str) -> InputError:
    """Return the refusal of input that costs more than the limit `name`; `excess` says where and how much.

    Examples
    --------
    >>> print(limit_error("depth", "a.json:3 nests 5,000 lists"))
    a.json:3 nests 5,000 lists, and at most 100 are allowed; if the file is right, set WSABIE_LIMITS="depth=..." higher
    """
    most = getattr(current_limits(), name)
    remedy = f'if the file is right, set {VARIABLE}="{name}=..." higher'
    return InputError(f"{excess}, and at most {most:,} are allowed; {remedy}")


@cache
def _parse_limits(text: str) -> Limits:
    names = {field.name for field in fields(Limits)}
    values = {}
    for word in text.replace(",", " ").split():
        name, _, number = word.partition("=")
        try:
            values[name] = int(float(number))
        except (ValueError, OverflowError):
            values[name] = 0
        if name not in names or values[name] < 1:
            raise InputError(f"{VARIABLE} holds {word!r}; write name=number, with a name of {', '.join(sorted(names))}")
    return Limits(**values)
