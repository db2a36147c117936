"""Files of names beside a collection whose labels are codes, such as WordNet's `words.txt`."""

import csv
import io
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from wsabie.core.errors import InputError
from wsabie.io.parsers.text_files import format_path, iterate_numbered_lines
from wsabie.vocabulary.label_names import normalise_label_name


def make_unique_code_names(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the name of each code; codes that share a name get it with their code in parentheses.

    Of a code that comes twice the first name counts; a code with an empty name is its own name.

    Examples
    --------
    >>> make_unique_code_names([("n02012849", "crane"), ("n03126707", "crane"), ("n01440764", "tench, Tinca tinca")])
    {'n02012849': 'crane (n02012849)', 'n03126707': 'crane (n03126707)', 'n01440764': 'tench, Tinca tinca'}
    """
    names: dict[str, str] = {}
    for code, name in pairs:
        names.setdefault(code, normalise_label_name(name) or code)
    times = Counter(names.values())
    return {code: name if times[name] == 1 else f"{name} ({code})" for code, name in names.items()}


def read_code_names(path: Path, delimiter: str = "\t") -> dict[str, str]:
    """Read a file of `code TAB name` lines, or of `code,name` ones; further columns are ignored.

    Raises
    ------
    InputError
        Missing, not UTF-8, or a line with a single column.
    """
    pairs = []
    for number, line in iterate_numbered_lines(path):
        if not line.strip():
            continue
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{format_path(path)}:{number} is not UTF-8 text; convert the file with iconv") from error
        cells = next(csv.reader(io.StringIO(text))) if delimiter == "," else text.split(delimiter)
        if len(cells) < 2:
            raise InputError(
                f"{format_path(path)}:{number} has no name behind the code {cells[0]!r}; write both on one line"
            )
        pairs.append((cells[0].strip(), cells[1]))
    return make_unique_code_names(pairs)
