"""What codes mean: files of names beside a collection whose labels are codes, such as WordNet's `words.txt`."""

import csv
import io
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.labels.names import normalise
from wsabie.sources.text import numbered_lines, shown


def names_of_codes(named: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The name of each code; where several codes share one, the code stands behind it in parentheses.

    Of a code that comes twice the first name counts; a code with an empty name is its own name.

    Examples
    --------
    >>> names_of_codes([("n02012849", "crane"), ("n03126707", "crane"), ("n01440764", "tench, Tinca tinca")])
    {'n02012849': 'crane (n02012849)', 'n03126707': 'crane (n03126707)', 'n01440764': 'tench, Tinca tinca'}
    """
    names: dict[str, str] = {}
    for code, name in named:
        names.setdefault(code, normalise(name) or code)
    times = Counter(names.values())
    return {code: name if times[name] == 1 else f"{name} ({code})" for code, name in names.items()}


def read_code_names(path: Path, delimiter: str = "\t") -> dict[str, str]:
    """The names in a file of `code TAB name` lines, or of `code,name` ones; further columns are left alone.

    Raises
    ------
    InputError
        Missing, not UTF-8, or a line with a single column.
    """
    named = []
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{shown(path)}:{number} is not UTF-8 text; convert the file with iconv") from error
        cells = next(csv.reader(io.StringIO(text))) if delimiter == "," else text.split(delimiter)
        if len(cells) < 2:
            raise InputError(f"{shown(path)}:{number} has no name behind the code {cells[0]!r}; write both on one line")
        named.append((cells[0].strip(), cells[1]))
    return names_of_codes(named)
