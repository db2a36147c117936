"""Is-a lists: which label is a kind of which, from a list of pairs, WordNet's files, or a collection's own folders.

A list of pairs is text with two cells a line, child and parent ("toad TAB amphibian"), between tabs, commas (with the
quotes of CSV) or blanks; a third cell, a count, is passed over. A first line that calls the cells child and parent, in
either order, says which comes first; `id TAB name`, the head of other lists of pairs, says nothing. Pairs of synsets
with a blank between them, as in ImageNet's `wordnet.is_a.txt`, have the parent first. Lines that begin with "# " are
remarks.
"""

import csv
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from wsabie.base.errors import InputError
from wsabie.base.progress import SILENT, Progress
from wsabie.labels.hierarchy import Hierarchy
from wsabie.labels.said import Said, sentences
from wsabie.sources.collection_tree import of_folder, of_table
from wsabie.sources.open_images_tree import TREE, read_tree
from wsabie.sources.pairs import HEADER
from wsabie.sources.parquet_file import MAGIC
from wsabie.sources.text import head, numbered_lines, reading, shown, telling_lines
from wsabie.sources.wordnet import LONGEST, PROLOG, SYNSET, WORDS, is_synset, read_prolog, read_synsets, read_words
from wsabie.storage.atomic import replacing

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
    """What is a kind of what, from one or several files that complete each other.

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
    found = Hierarchy()
    for path in map(Path, paths):
        _read(path, parent_first, found)
    if not len(found):
        raise InputError(f"{' and '.join(map(shown, paths))} hold no is-a pair, only names; give the list of pairs too")
    return found


def write_hierarchy(path: str | Path, pairs: Iterable[tuple[str, str, int]]) -> int:
    """Write (child, parent, count) lines, which `read_hierarchy` reads; how many there were."""
    written = 0
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        file.write("child\tparent\tcount\n")
        for child, parent, count in pairs:
            file.write(f"{child}\t{parent}\t{count}\n")
            written += 1
    return written


def mine(path: str | Path, known: Callable[[str], bool] | None = None, *, progress: Progress = SILENT) -> Said:
    """Count what running English text says is a kind of what; the text is read once, line by line.

    Parameters
    ----------
    path : str or Path
        UTF-8 text, plain or gzip; what is no UTF-8 in it is passed over.
    known : callable or None
        As in `Said`.
    progress : Progress

    Raises
    ------
    InputError
        Missing, or no text.
    """
    path, said = Path(path), Said(known)
    if b"\0" in head(path):
        raise InputError(f"{shown(path)} is no plain text; take the text out of it first")
    with progress.stage("reading", None, "lines") as bar:

        def lines() -> Iterator[str]:
            for _, line in numbered_lines(path, _LONGEST_PARAGRAPH):
                yield line.decode("utf-8", "replace")
                bar.advance()

        for sentence in sentences(lines()):
            said.read(sentence)
    return said


def _read(path: Path, parent_first: bool, found: Hierarchy) -> None:
    if path.is_dir():
        _read_folder(path, parent_first, found)
        return
    start = head(path)
    if start.startswith(MAGIC):
        of_table(path, found)
    elif read := next((read for looks_like, read in _FORMATS if looks_like.search(start)), None):
        read(path, found)
    elif b"\0" in start or not start.strip():
        what = "is empty" if not start.strip() else "is no text"
        raise InputError(
            f"{shown(path)} {what}; an is-a list is a list of pairs (child TAB parent), WordNet's data.noun, wn_hyp.pl "
            "or wordnet.is_a.txt, Parquet with a column `category`, or a folder of pictures in sub-folders"
        )
    else:
        _read_pairs(path, start, parent_first, found)


_FORMATS: Sequence[tuple[re.Pattern[bytes], Callable[[Path, Hierarchy], None]]] = (
    (SYNSET, read_synsets),
    (PROLOG, read_prolog),
    (WORDS, read_words),
    (TREE, read_tree),
)


def is_wordnet(folder: Path) -> bool:
    """Whether a folder holds files of WordNet, and is no folder of pictures."""
    return bool(_wordnet_files(folder))


def _wordnet_files(folder: Path) -> list[Path]:
    with reading(folder):
        return [folder / name for name in WORDNET if (folder / name).is_file()]


def _read_folder(folder: Path, parent_first: bool, found: Hierarchy) -> None:
    files = _wordnet_files(folder)
    if not files:
        of_folder(folder, found)
    for file in files[:1] if files and files[0].name == WORDNET[0] else files:
        _read(file, parent_first, found)


class _Layout(NamedTuple):
    separator: str | None  # None = blanks
    parent_first: bool
    has_header: bool


def _read_pairs(path: Path, start: bytes, parent_first: bool, found: Hierarchy) -> None:
    layout, n_cells = _layout(start, parent_first), 0
    if parent_first and layout.has_header and not layout.parent_first:
        log.warning("%s: its header says that the child comes first, so that is how it is read", shown(path))
    for where, cells in _cells(path, layout):
        if layout.has_header and not n_cells:
            n_cells = len(cells)
            continue
        n_cells = n_cells or len(cells)
        if len(cells) not in (2, 3) or not cells[0] or not cells[1]:
            raise InputError(f"{where} is not a pair of child and parent; write two names with a tab between them")
        child, parent = reversed(cells[:2]) if layout.parent_first else cells[:2]
        try:
            found.add(child, parent)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error


def _layout(start: bytes, parent_first: bool) -> _Layout:
    given = start.decode("utf-8", "replace").splitlines()[:_LINES]
    lines = [line for line in given if line.strip() and line[:2] != "# "]
    separator = next((s for s in "\t," if all(s in line for line in lines[:-1] or lines)), None)
    if separator is None and any("\t" in line for line in lines):
        separator = "\t"
    first = _split(lines[0], separator) if lines else []
    heads = [next((kind for kind, names in _HEADS.items() if cell.casefold() in names), "") for cell in first[:2]]
    if sorted(heads) == ["child", "parent"]:
        return _Layout(separator, heads[0] == "parent", True)
    if tuple(first) == HEADER:
        return _Layout(separator, parent_first, True)
    by_imagenet = separator is None and len(first) == 2 and all(map(is_synset, first))
    return _Layout(separator, parent_first or by_imagenet, False)


def _cells(path: Path, layout: _Layout) -> Iterator[tuple[str, list[str]]]:
    """(file:line, cells) of every line that says something."""
    for number, raw in telling_lines(path, LONGEST):
        where = f"{shown(path)}:{number}"
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{where} is not UTF-8; write the list in UTF-8") from error
        yield where, _split(line, layout.separator)


def _split(line: str, separator: str | None) -> list[str]:
    if separator == ",":
        return [cell.strip() for cell in next(csv.reader([line]))]
    return [cell.strip() for cell in line.split(separator)]
