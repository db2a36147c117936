"""Is-a lists, from a list of pairs, WordNet's files, or a collection's own folders.

A list of pairs is text with two cells a line, child and parent ("toad TAB amphibian"), between tabs, commas
(with the quotes of CSV) or blanks; a third cell, a count, is passed over. A first line that calls the cells
child and parent, in either order, sets the order; `id TAB name`, the head of other lists of pairs, says
nothing. Pairs of synsets with a blank between them, as in ImageNet's `wordnet.is_a.txt`, have the parent
first. Lines that begin with "# " are remarks.
"""

import csv
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from wsabie.core.errors import InputError
from wsabie.core.progress import SILENT, Progress
from wsabie.io.formats.pair_list import HEADER
from wsabie.io.formats.parquet.tables import MAGIC
from wsabie.io.formats.wordnet import (
    LONGEST,
    PROLOG,
    SYNSET,
    WORDS,
    is_synset_name,
    read_prolog,
    read_synsets,
    read_words,
)
from wsabie.io.parsers.text_files import (
    explain_reading_errors,
    format_path,
    iterate_content_lines,
    iterate_numbered_lines,
    read_head,
)
from wsabie.io.vocabulary.folder_hierarchy import read_folder_hierarchy, read_table_hierarchy
from wsabie.io.vocabulary.open_images_hierarchy import TREE, read_open_images_hierarchy
from wsabie.storage.atomic_files import replace_file
from wsabie.vocabulary.hearst_patterns import HearstPatternCounter, split_sentences
from wsabie.vocabulary.hierarchy import Hierarchy

log = logging.getLogger("wsabie")

WORDNET = ("data.noun", "wn_hyp.pl", "wn_ins.pl", "wordnet.is_a.txt", "words.txt")
"""Files that make a folder one of WordNet's."""

_LINES = 50
_LONGEST_PARAGRAPH = 1 << 24
_HEADS = {
    "child": ("child", "hyponym", "x", "label", "narrower", "subclass", "sub"),
    "parent": ("parent", "hypernym", "y", "category", "broader", "superclass", "super", "isa", "is_a"),
}


def read_hierarchy(*paths: str | Path, parent_first: bool = False) -> Hierarchy:
    """Read is-a pairs from one or several files that complete each other.

    Parameters
    ----------
    *paths : str or Path
        Pairs of names; WordNet's `data.noun` or a folder with it; `wn_hyp.pl`, `wn_ins.pl`, `wordnet.is_a.txt`
        (synsets) with `words.txt` (their words); Open Images' hierarchy in JSON; a folder of pictures in sub-folders;
        Parquet with the columns `labels` and `category`. Text may be gzip.
    parent_first : bool
        Lists of pairs name the parent first, where no header says otherwise.

    Raises
    ------
    InputError
        Missing, nothing of the kind, or a line that cannot be read: one sentence with file and line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "kinds.tsv"
    ...     _ = file.write_text("toad\\tamphibian\\nfrog\\tamphibian\\n")
    ...     kinds = read_hierarchy(file)
    >>> kinds.parents("frog")
    ['amphibian']
    """
    hierarchy = Hierarchy()
    for path in map(Path, paths):
        _read_path(path, parent_first, hierarchy)
    if not len(hierarchy):
        raise InputError(
            f"{' and '.join(map(format_path, paths))} hold no is-a pair, only names; give the list of pairs too"
        )
    return hierarchy


def write_hierarchy(path: str | Path, pairs: Iterable[tuple[str, str, int]]) -> int:
    """Write (child, parent, count) lines, which `read_hierarchy` reads; return their number."""
    n_written = 0
    with replace_file(path) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        file.write("child\tparent\tcount\n")
        for child, parent, count in pairs:
            file.write(f"{child}\t{parent}\t{count}\n")
            n_written += 1
    return n_written


def mine_hierarchy(
    path: str | Path, is_known: Callable[[str], bool] | None = None, *, progress: Progress = SILENT
) -> HearstPatternCounter:
    """Count is-a statements in running English text, which is read once, line by line.

    Parameters
    ----------
    path : str or Path
        UTF-8 text, plain or gzip; what is no UTF-8 in it is passed over.
    is_known : callable or None
        As in `HearstPatternCounter`.
    progress : Progress

    Raises
    ------
    InputError
        Missing, or no text.
    """
    path, counter = Path(path), HearstPatternCounter(is_known)
    if b"\0" in read_head(path):
        raise InputError(f"{format_path(path)} is no plain text; take the text out of it first")
    with progress.stage("reading", None, "lines") as bar:

        def lines() -> Iterator[str]:
            for _, line in iterate_numbered_lines(path, _LONGEST_PARAGRAPH):
                yield line.decode("utf-8", "replace")
                bar.advance()

        for sentence in split_sentences(lines()):
            counter.read(sentence)
    return counter


def _read_path(path: Path, parent_first: bool, hierarchy: Hierarchy) -> None:
    if path.is_dir():
        _read_folder(path, parent_first, hierarchy)
        return
    start = read_head(path)
    if start.startswith(MAGIC):
        read_table_hierarchy(path, hierarchy)
    elif reader := next((reader for looks_like, reader in _FORMATS if looks_like.search(start)), None):
        reader(path, hierarchy)
    elif b"\0" in start or not start.strip():
        problem = "is empty" if not start.strip() else "is no text"
        raise InputError(
            f"{format_path(path)} {problem}; an is-a list is a list of pairs (child TAB parent), WordNet's data.noun, "
            "wn_hyp.pl "
            "or wordnet.is_a.txt, Parquet with a column `category`, or a folder of pictures in sub-folders"
        )
    else:
        _read_pairs(path, start, parent_first, hierarchy)


_FORMATS: Sequence[tuple[re.Pattern[bytes], Callable[[Path, Hierarchy], None]]] = (
    (SYNSET, read_synsets),
    (PROLOG, read_prolog),
    (WORDS, read_words),
    (TREE, read_open_images_hierarchy),
)


def is_wordnet_folder(folder: Path) -> bool:
    """Return whether a folder holds files of WordNet rather than pictures."""
    return bool(_find_wordnet_files(folder))


def _find_wordnet_files(folder: Path) -> list[Path]:
    with explain_reading_errors(folder):
        return [folder / name for name in WORDNET if (folder / name).is_file()]


def _read_folder(folder: Path, parent_first: bool, hierarchy: Hierarchy) -> None:
    files = _find_wordnet_files(folder)
    if not files:
        read_folder_hierarchy(folder, hierarchy)
    for file in files[:1] if files and files[0].name == WORDNET[0] else files:
        _read_path(file, parent_first, hierarchy)


class _PairLayout(NamedTuple):
    separator: str | None  # None = blanks
    parent_first: bool
    has_header: bool


def _read_pairs(path: Path, start: bytes, parent_first: bool, hierarchy: Hierarchy) -> None:
    layout, n_cells = _detect_layout(start, parent_first), 0
    if parent_first and layout.has_header and not layout.parent_first:
        log.warning("%s: its header says that the child comes first, so that is how it is read", format_path(path))
    for where, cells in _iterate_cells(path, layout):
        if layout.has_header and not n_cells:
            n_cells = len(cells)
            continue
        n_cells = n_cells or len(cells)
        if len(cells) not in (2, 3) or not cells[0] or not cells[1]:
            raise InputError(f"{where} is not a pair of child and parent; write two names with a tab between them")
        child, parent = reversed(cells[:2]) if layout.parent_first else cells[:2]
        try:
            hierarchy.add(child, parent)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error


def _detect_layout(start: bytes, parent_first: bool) -> _PairLayout:
    text_lines = start.decode("utf-8", "replace").splitlines()[:_LINES]
    lines = [line for line in text_lines if line.strip() and line[:2] != "# "]
    separator = next((s for s in "\t," if all(s in line for line in lines[:-1] or lines)), None)
    if separator is None and any("\t" in line for line in lines):
        separator = "\t"
    first = _split(lines[0], separator) if lines else []
    heads = [next((kind for kind, names in _HEADS.items() if cell.casefold() in names), "") for cell in first[:2]]
    if sorted(heads) == ["child", "parent"]:
        return _PairLayout(separator, heads[0] == "parent", True)
    if tuple(first) == HEADER:
        return _PairLayout(separator, parent_first, True)
    by_imagenet = separator is None and len(first) == 2 and all(map(is_synset_name, first))
    return _PairLayout(separator, parent_first or by_imagenet, False)


def _iterate_cells(path: Path, layout: _PairLayout) -> Iterator[tuple[str, list[str]]]:
    """Yield (file:line, cells) of every line with content."""
    for number, raw in iterate_content_lines(path, LONGEST):
        where = f"{format_path(path)}:{number}"
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{where} is not UTF-8; write the list in UTF-8") from error
        yield where, _split(line, layout.separator)


def _split(line: str, separator: str | None) -> list[str]:
    if separator == ",":
        return [cell.strip() for cell in next(csv.reader([line]))]
    return [cell.strip() for cell in line.split(separator)]
