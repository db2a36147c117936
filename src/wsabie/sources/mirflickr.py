r"""Tags of MIRFlickr-25k as a table: row, number of the picture, its path, and a list of tags as Python writes it.

    0,1,./mirflickr/im1.jpg,"['cigarette', 'red', 'lipstick']"

Nothing is evaluated: a list is quoted texts between brackets. When the pictures lie where the paths say, beside
the table, they are the collection; otherwise they are known by their paths (see `id_labels`).
"""

import re
from pathlib import Path

from wsabie.sources.build import BadRow
from wsabie.sources.cells import cells_of_line
from wsabie.sources.folders import relative_name
from wsabie.sources.id_labels import IdLabels
from wsabie.sources.records import ItemList, Rows
from wsabie.sources.text import numbered_lines, shown
from wsabie.storage.rejects import Rejects

_LONGEST_LINE = 1 << 20
_TEXT = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_LIST = re.compile(rf"\[\s*(?:(?:{_TEXT})\s*(?:,\s*(?:{_TEXT})\s*)*(?:,\s*)?)?\]")
_ONE = re.compile(_TEXT)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}


def read_mirflickr(path: Path, *, rejects: Rejects | None = None) -> Rows | ItemList:
    """Read a table of pictures with lists of tags.

    Parameters
    ----------
    path : Path
        CSV with four columns and no header, plain or gzip.
    rejects : Rejects or None
        Lists malformed lines, and pictures without tags.

    Returns
    -------
    Rows or ItemList
        Pictures when they lie where the paths say.

    Raises
    ------
    InputError
        Missing, or without a single usable line.
    """
    rejects, got = Rejects() if rejects is None else rejects, IdLabels(path)
    for number, line in numbered_lines(path, _LONGEST_LINE):
        if not line.strip():
            continue
        try:
            picture, tags = _parse(line)
            if picture in got.ids:
                raise BadRow("duplicate id", picture)
            got.add_all(picture, tags)
        except BadRow as bad:
            rejects.add(f"{shown(path)}:{number}", bad.reason, bad.detail)
    return got.as_pictures_or_rows(path.parent, rejects)


def _parse(line: bytes) -> tuple[str, list[str]]:
    """(path of the picture, its tags) of a line."""
    cells = cells_of_line(line, ",")
    if len(cells) != 4:
        raise BadRow("wrong number of cells", f"{len(cells)} of 4")
    if not cells[2]:
        raise BadRow("row without a file name")
    return relative_name(cells[2]), texts_of_list(cells[3])


def texts_of_list(text: str) -> list[str]:
    r'''The texts of a list as Python writes it, without evaluating anything.

    Raises
    ------
    BadRow
        Anything but quoted texts between brackets.

    Examples
    --------
    >>> texts_of_list("""['sea', "l'eau", 'caf\\xe9']""")
    ['sea', "l'eau", 'café']
    '''
    if not _LIST.fullmatch(text.strip()):
        raise BadRow("tags that are no list of texts", text)
    return [_ESCAPE.sub(_unescaped, quoted[1:-1]) for quoted in _ONE.findall(text)]


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if len(code) == 1:
        return _LETTERS.get(code, code)
    number = int(code[1:], 16)
    if number > 0x10FFFF:
        raise BadRow("tags that are no list of texts", found[0])
    return chr(number)
