"""Pair lists: `id TAB label` lines, with an optional third column.

An id may come on many lines, once for each of its labels. The third column is a weight: a positive number
states the label, a negative one denies it (an explicit negative, -1 in Y), 0 says nothing. Sizes of
weights are not used. A first line that names the columns is a header (`has_header`); lines that begin with "# " are
remarks.

When the ids are names of pictures beside the list, the list is a collection of pictures. Otherwise every
id has one free vector (see `id_labels`).
"""

import logging
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import contains
from pathlib import Path

from wsabie.core.errors import require
from wsabie.io.formats.citation_graph import LINKS, read_citation_links
from wsabie.io.formats.id_labels import IdLabelCollector
from wsabie.io.formats.wordnet import iterate_is_a_pairs
from wsabie.io.parsers.array_builders import decode_row, parse_number, require_rows
from wsabie.io.parsers.label_cells import LabelCellReader
from wsabie.io.parsers.text_files import format_path, iterate_content_lines, write_lines
from wsabie.io.parsers.text_tables import unquote_cell
from wsabie.io.records import FeatureTable, ItemList
from wsabie.storage.rejects import Rejects, RowError

log = logging.getLogger("wsabie")
HEADER = ("id", "name")
"""Header of a written pair list."""
_ID_HEADS = {"id", "item", "file_name", "path", "image", "picture", "photo", "file", "user", "movie", "film", "song"}
_ID_NAME = re.compile(r"\w*[a-z][_ ]?id|id", re.ASCII)
_NAME = re.compile(r"[A-Za-z][A-Za-z_ ]*")
_DIGIT = re.compile(r"\d")
_N_INSPECTED_LINES = 50  # lines
_LABEL_HEADS = {"label", "labels", "tag", "tags", "name", "keyword", "keywords", "category", "class", "genre"}


def read_pairs(path: Path, *, rejects: Rejects) -> FeatureTable | ItemList:
    """Read a pair list.

    Parameters
    ----------
    path : Path
        UTF-8 text with tabs, plain or gzip.
    rejects : Rejects
        Lists malformed lines, pairs both stated and denied, and missing pictures.

    Returns
    -------
    FeatureTable or ItemList
        Pictures when one of the first 50 ids is the name of a picture beside the list.

    Raises
    ------
    InputError
        Missing, without a single usable line, or the ids look like paths of files and none of these is there.
    """
    collector, n_weighted = IdLabelCollector(path, rejects, numbered=True), 0
    texts, labels = LabelCellReader("id"), LabelCellReader("label")
    for line_number, (name, label), weight in _iterate_weighted_pairs(path, rejects):
        with rejects.catch(path, line_number):
            collector.labels.assign_id(label)
            n_weighted += weight not in (1, 0, -1)
            if len(collector) < _N_INSPECTED_LINES:
                texts.add(name)
                labels.add(label)
            collector.assign_row(name)
            if weight:
                collector.add(name, label, stated=weight > 0, line=line_number)
    if not labels.check(path).find_sentence() and (text := texts.find_sentence()):
        log.warning(
            "the ids of %s are sentences such as %r, and each gets a vector of its own; if they are documents, "
            "begin the file with a line text, tab, labels",
            format_path(path),
            text[:60],
        )
    if n_weighted:
        log.warning("%s: %d weights are neither 1 nor -1, only their signs are used", format_path(path), n_weighted)
    return collector.build_source(path.parent, needs_files=True, has_paths=not _has_id_header(path))


def _has_id_header(path: Path) -> bool:
    """Return True if the first line names a column of ids, and not of files."""
    lines = [line for _, line in islice(iterate_content_lines(path), _N_INSPECTED_LINES)]
    first = lines[0].decode("utf-8", "replace").partition("\t")[0].strip().strip('"').lower() if lines else ""
    return has_header(lines) and not re.search("file|path|image|picture|photo", first)


def read_id_pairs(path: Path, *, rejects: Rejects) -> Iterator[tuple[str, str]]:
    """Yield the two ids of every line of a pair list, in file order, where the weight is above 0.

    WordNet's files give (child, parent), NAME.links.txt gives two documents of a citation.

    Raises
    ------
    InputError
        Missing, or (at the end) without a single usable line.
    """
    n = 0
    if path.name.endswith(LINKS):
        yield from read_citation_links(path, rejects=rejects)
        return
    if path.is_dir():
        pairs = iterate_is_a_pairs(path)
    else:
        pairs = (pair for _, pair, weight in _iterate_weighted_pairs(path, rejects) if weight > 0)
    for n, pair in enumerate(pairs, 1):  # noqa: B007
        yield pair
    require_rows(n, path, rejects, "pairs (nor WordNet's data.noun)" if path.is_dir() else "pairs")


def read_excluded_pairs(path: Path) -> set[frozenset[str]]:
    """Read pairs that do not hold, in either order: `id TAB id` lines with anything behind.

    Raises
    ------
    InputError
        Missing, or a line without two columns.
    """
    pairs = set()
    for line_number, line in iterate_content_lines(path):
        cells = line.decode("utf-8", "replace").split("\t")
        require(len(cells) > 1, f"{path}:{line_number} has no two columns; write id TAB id, or # and a remark")
        pairs.add(frozenset(cell.strip() for cell in cells[:2]))
    return pairs


def write_id_pairs(path: Path, pairs: Iterable[tuple[str, str]]) -> None:
    """Write `id TAB id` lines, which `read_id_pairs` reads."""
    write_lines(path, ("\t".join(pair) for pair in chain([HEADER], pairs)))


def _iterate_weighted_pairs(path: Path, rejects: Rejects) -> Iterator[tuple[int, tuple[str, str], float]]:
    """Yield (line number, the two ids, weight) of every line that is not a header."""
    lines = iterate_content_lines(path)
    head = list(islice(lines, _N_INSPECTED_LINES))
    n_headers = int(has_header([line for _, line in head]))
    is_quoted = all(line[:1] == b'"' and b'"\t"' in line for _, line in head)
    for line_number, line in chain(head[n_headers:], lines):
        with rejects.catch(path, line_number):
            yield line_number, *_parse_pair(line, is_quoted)


def has_header(lines: Sequence[bytes]) -> bool:
    """Return True if the first line names the columns.

    Either it has known names, or names that come in no other line while all other cells of a column hold digits.

    Examples
    --------
    >>> has_header([b"user\\tfilm", b"u1\\tf1", b"u1\\tf2"]), has_header([b"u\\tfilm", b"v\\tfilm"])
    (True, False)
    """
    rows = [[unquote_cell(cell.strip()) for cell in line.decode("utf-8", "replace").split("\t")] for line in lines]
    if not rows or not 2 <= len(rows[0]) <= 3:
        return False
    first, second = (name.lower() for name in rows[0][:2])
    is_known = first in _ID_HEADS and second in _LABEL_HEADS
    if is_known or (_ID_NAME.fullmatch(first) and (_ID_NAME.fullmatch(second) or second in _LABEL_HEADS)):
        return True
    columns = [[row[column] for row in rows[1:] if len(row) > column] for column in (0, 1)]
    if len(rows) < 3 or not all(map(_NAME.fullmatch, rows[0][:2])) or any(map(contains, columns, rows[0])):
        return False
    return any(all(map(_DIGIT.search, column)) and not _DIGIT.search(rows[0][i]) for i, column in enumerate(columns))


def _parse_pair(line: bytes, is_quoted: bool) -> tuple[tuple[str, str], float]:
    """Return the two ids of a line and their weight."""
    cells = [cell.strip() for cell in decode_row(line).split("\t")]
    cells = [*map(unquote_cell, cells)] if is_quoted else cells
    if len(cells) not in (2, 3):
        raise RowError("line without two or three columns", f"{len(cells)} separated by tabs")
    if not cells[0]:
        raise RowError("pair without an id")
    weight = parse_number(cells[2], "malformed weight") if len(cells) == 3 else 1.0
    if not math.isfinite(weight):
        raise RowError("weight that is not finite", cells[2])
    return (cells[0], cells[1]), weight
