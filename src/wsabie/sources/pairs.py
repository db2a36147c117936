"""Pair lists: `id TAB label` lines, with an optional third column.

An id may come on many lines, once for each of its labels. The third column is a weight: a positive number
states the label, a negative one denies it (an explicit negative, -1 in Y), 0 says nothing. Sizes of
weights are not used. A first line like `id TAB label` is taken for a header; lines that begin with "# " are remarks.

When the ids are names of pictures beside the list, the list is a collection of pictures. Otherwise every
id has one free vector (see `id_labels`).
"""

import logging
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from wsabie.base.validation import require
from wsabie.sources.build import BadRow, require_rows
from wsabie.sources.citations import LINKS, read_links
from wsabie.sources.id_labels import IdLabels
from wsabie.sources.records import ItemList, Rows
from wsabie.sources.text import shown, telling_lines
from wsabie.sources.wordnet import is_a_pairs
from wsabie.storage.atomic import replacing
from wsabie.storage.rejects import Rejects

log = logging.getLogger("wsabie")
HEADER = ("id", "name")
"""What a list of pairs is headed with when it is written."""
_ID_HEADS = {"id", "item", "file_name", "path", "image", "picture", "file"}
_LABEL_HEADS = {"label", "labels", "tag", "tags", "name"}


def read_pairs(path: Path, *, rejects: Rejects | None = None) -> Rows | ItemList:
    """Read a pair list.

    Parameters
    ----------
    path : Path
        UTF-8 text with tabs, plain or gzip.
    rejects : Rejects or None
        Lists malformed lines, pairs both stated and denied, and missing pictures.

    Returns
    -------
    Rows or ItemList
        Pictures when one of the first 50 ids is the name of a picture beside the list.

    Raises
    ------
    InputError
        Missing, or without a single usable line.
    """
    rejects = Rejects() if rejects is None else rejects
    return _collect(path, rejects).as_pictures_or_rows(path.parent, rejects)


def read_couples(path: Path, *, rejects: Rejects | None = None) -> Iterator[tuple[str, str]]:
    """The two ids of every line of a pair list, in the order of the file; those of weight 0 or less are left out.

    Of a folder with WordNet's files they are (child, parent), of NAME.links.txt two documents of a citation.

    Raises
    ------
    InputError
        Missing, or (at the end) without a single usable line.
    """
    rejects, n = Rejects() if rejects is None else rejects, 0
    if path.name.endswith(LINKS):
        yield from read_links(path, rejects=rejects)
        return
    for n, pair in enumerate(is_a_pairs(path) if path.is_dir() else _stated(path, rejects), 1):  # noqa: B007
        yield pair
    require_rows(n, path, rejects, "pairs (nor WordNet's data.noun)" if path.is_dir() else "pairs")


def read_left_out(path: Path) -> set[frozenset[str]]:
    """Pairs that do not hold, in either order: `id TAB id` lines with anything behind.

    Raises
    ------
    InputError
        Missing, or a line without two columns.
    """
    found = set()
    for line_number, line in telling_lines(path):
        cells = line.decode("utf-8", "replace").split("\t")
        require(len(cells) > 1, f"{shown(path)}:{line_number} has no two columns; write id TAB id, or # and a remark")
        found.add(frozenset(cell.strip() for cell in cells[:2]))
    return found


def write_pairs(path: Path, pairs: Iterable[tuple[str, str]]) -> None:
    """Write `id TAB id` lines, which `read_couples` reads."""
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(HEADER) + "\n")
        file.writelines(f"{one}\t{other}\n" for one, other in pairs)


def _stated(path: Path, rejects: Rejects) -> Iterator[tuple[str, str]]:
    for _, (one, other), weight in _weighed(path, rejects):
        if weight > 0:
            yield one, other


def _weighed(path: Path, rejects: Rejects) -> Iterator[tuple[int, tuple[str, str], float]]:
    """(line number, the two ids, weight) of every line that is no header."""
    for place, (line_number, line) in enumerate(telling_lines(path)):
        try:
            cells = _cells(line)
            if place or not _is_header(cells):
                yield line_number, (cells[0], cells[1]), _weight(cells)
        except BadRow as bad:
            rejects.add(f"{shown(path)}:{line_number}", bad.reason, bad.detail)


def _collect(path: Path, rejects: Rejects) -> IdLabels:
    got, weighted = IdLabels(path, numbered=True), 0
    for line_number, (name, label), weight in _weighed(path, rejects):
        try:
            got.labels.number(label)
        except BadRow as bad:
            rejects.add(f"{shown(path)}:{line_number}", bad.reason, bad.detail)
            continue
        weighted += weight not in (1, 0, -1)
        got.row(name)
        if weight:
            got.add(name, label, stated=weight > 0, line=line_number)
    if weighted:
        log.warning("%s: %d weights are neither 1 nor -1, only their signs are used", shown(path), weighted)
    return got


def _cells(line: bytes) -> list[str]:
    try:
        cells = [cell.strip() for cell in line.decode("utf-8").split("\t")]
    except UnicodeDecodeError as error:
        raise BadRow("text that is not UTF-8", repr(line[:60])) from error
    if len(cells) not in (2, 3):
        raise BadRow("line without two or three columns", f"{len(cells)} separated by tabs")
    if not cells[0]:
        raise BadRow("pair without an id")
    return cells


def _is_header(cells: list[str]) -> bool:
    return cells[0].lower() in _ID_HEADS and cells[1].lower() in _LABEL_HEADS


def _weight(cells: list[str]) -> float:
    if len(cells) == 2:
        return 1.0
    try:
        weight = float(cells[2])
    except ValueError as error:
        raise BadRow("malformed weight", cells[2]) from error
    if not math.isfinite(weight):
        raise BadRow("weight that is not finite", cells[2])
    return weight
