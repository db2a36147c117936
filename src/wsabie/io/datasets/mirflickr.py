r"""Tags of MIRFlickr-25k as a table: row, number of the picture, its path, and a Python list of tags.

    0,1,./mirflickr/im1.jpg,"['cigarette', 'red', 'lipstick']"

Only quoted texts between brackets are a list. When the pictures lie where the paths say, beside
the table, they are the items; otherwise they are known by their paths (see `id_labels`).
"""

import ast
import re
from pathlib import Path

from wsabie.io.file_matching import normalise_relative_path
from wsabie.io.formats.id_labels import IdLabelCollector
from wsabie.io.parsers.text_files import iterate_numbered_lines
from wsabie.io.parsers.text_tables import split_csv_line
from wsabie.io.records import FeatureTable, ItemList
from wsabie.storage.rejects import Rejects, RowError

_MAX_LINE_BYTES = 1 << 20
_ESCAPE = r"\\(?:[\\'\"nrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4})"
_TEXT = rf"'(?:[^'\\\0\r\n]|{_ESCAPE})*'|\"(?:[^\"\\\0\r\n]|{_ESCAPE})*\""
_LIST = re.compile(rf"\[\s*(?:(?:{_TEXT})\s*(?:,\s*(?:{_TEXT})\s*)*(?:,\s*)?)?\]")


def read_mirflickr(path: Path, *, rejects: Rejects) -> FeatureTable | ItemList:
    """Read a table of pictures with lists of tags.

    Parameters
    ----------
    path : Path
        CSV with four columns and no header, plain or gzip.
    rejects : Rejects
        Lists malformed lines, and pictures without tags.

    Returns
    -------
    FeatureTable or ItemList
        Pictures when they lie where the paths say.

    Raises
    ------
    InputError
        Missing, or without a single usable line.
    """
    collector = IdLabelCollector(path, rejects)
    lines = iterate_numbered_lines(path, _MAX_LINE_BYTES, skip_blank=True)
    collector.add_rows(lines, lambda _, line: _parse_line(line), unique=True)
    return collector.build_source(path.parent)


def _parse_line(line: bytes) -> tuple[str, list[str]]:
    """Return (path of the picture, its tags) of a line."""
    cells = split_csv_line(line, ",")
    if len(cells) != 4:
        raise RowError("wrong number of cells", f"{len(cells)} of 4")
    if not cells[2]:
        raise RowError("row without a file name")
    return normalise_relative_path(cells[2]), parse_python_list(cells[3])


def parse_python_list(text: str) -> list[str]:
    r'''Return the texts of a list as Python writes it.

    Raises
    ------
    RowError
        Anything but quoted texts between brackets.

    Examples
    --------
    >>> parse_python_list("""['sea', "l'eau", 'caf\\xe9']""")
    ['sea', "l'eau", 'café']
    '''
    if not _LIST.fullmatch(text.strip()):
        raise RowError("tags that are not a list of texts", text)
    return list(ast.literal_eval(text.strip()))
