"""Is-a lists, from a list of pairs, WordNet's files, or the folders or categories of pictures.

A list of pairs is text with two cells a line, child and parent ("toad TAB amphibian"), between tabs, commas
(with the quotes of CSV) or blanks; a third cell, a count, is passed over. A first line that calls the cells
child and parent, in either order, sets the order; `id TAB name`, the head of other lists of pairs, says
nothing. Pairs of synsets with a blank between them, as in ImageNet's `wordnet.is_a.txt`, have the parent
first. Lines that begin with "# " are remarks.

A label that is the name of a folder is a kind of the folder above it. Any other label belongs to the deepest
folder that holds more than half of its pictures, so that "owl" is a kind of "animals/birds" and "brown",
which is everywhere, of nothing. Training sees folders of labels (`animal/dog/1.jpg` has both labels), but not
a column `category`.
"""

import csv
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeAlias

from wsabie.core.errors import InputError, require
from wsabie.core.execution import SILENT, Progress
from wsabie.core.input_limits import make_limit_error, read_limits
from wsabie.io.datasets.open_images import TREE, iterate_hierarchy_pairs, read_neighbouring_names
from wsabie.io.formats import wordnet
from wsabie.io.formats.media_folder import read_folder
from wsabie.io.formats.pair_list import HEADER
from wsabie.io.formats.parquet_tables import MAGIC, open_parquet_table
from wsabie.io.formats.wordnet import MAX_LINE_BYTES, PROLOG, SYNSET, UP, WORDS, Synset
from wsabie.io.parsers import text_files
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.concept_hierarchy import Hierarchy, make_lookup_key
from wsabie.vocabulary.folder_labels import SPLITS
from wsabie.vocabulary.hearst_patterns import HearstPatternCounter, split_sentences

CATEGORY, LABELS = "category", "labels"
log = logging.getLogger("wsabie")
WORDNET = ("data.noun", "wn_hyp.pl", "wn_ins.pl", "wordnet.is_a.txt", "words.txt")
"""Files that make a folder one of WordNet's."""
_N_INSPECTED_LINES = 50
_MAX_PARAGRAPH_BYTES = 1 << 24
LabelledPath: TypeAlias = tuple[Sequence[str], Sequence[str]]
"""Labels of a picture, and the levels of its path."""
_HEADS = {
    "child": ("child", "hyponym", "x", "label", "narrower", "subclass", "sub"),
    "parent": ("parent", "hypernym", "y", "category", "broader", "superclass", "super", "isa", "is_a"),
}


def add_image_hierarchy(labels_and_levels: Iterable[LabelledPath], hierarchy: Hierarchy) -> None:
    """Add the tree of folders of pictures, each with its labels and the levels of its path.

    Examples
    --------
    >>> tree, folder = Hierarchy(), ("animals", "birds")
    >>> add_image_hierarchy([(["owl", "brown"], folder), (["hawk", "brown"], folder), (["brown"], ("trees",)),
    ...              (["brown"], ("trees",))], tree)
    >>> tree.parents("owl"), tree.parents("brown"), tree.parents("birds")
    (['animals/birds'], [], ['animals'])
    """
    counts, chains = defaultdict[str, Counter[str]](Counter), dict[str, list[str]]()
    for labels, levels in labels_and_levels:
        if len(levels) > read_limits().depth:
            excess = f"{text_files.format_path('/'.join(levels))[:100]}... has {len(levels):,} levels"
            raise make_limit_error("depth", excess, len(levels))
        folder = "/".join(levels)
        if folder not in chains:
            chains[folder] = ["/".join(levels[: depth + 1]) for depth in range(len(levels))]
        for label in labels:
            counts[label][folder] += 1
    names = {node: node.rpartition("/")[2] for nodes in chains.values() for node in nodes}
    for node, name in names.items():
        hierarchy.add_names(node, [name])
    for nodes in chains.values():
        for parent, child in pairwise(nodes):
            hierarchy.add(child, parent)
    folder_keys = {"", *map(make_lookup_key, [*names, *names.values()])}
    for label, inside in counts.items():
        node = _find_deepest(inside, chains)
        if node and make_lookup_key(label) not in folder_keys:
            hierarchy.add(label, node)


def _find_deepest(inside: dict[str, int], chains: dict[str, list[str]]) -> str:
    """Return the deepest folder that holds more than half of a label's pictures; empty when none does."""
    totals = Counter[str]()
    for folder, n in inside.items():
        for node in chains[folder]:
            totals[node] += n
    most = [node for node, n in totals.items() if 2 * n > sum(inside.values())]
    return max(most, key=lambda node: node.count("/"), default="")


def _add_tree(labels_and_levels: Iterable[LabelledPath], hierarchy: Hierarchy, path: Path, otherwise: str) -> None:
    n_pairs = len(hierarchy)
    add_image_hierarchy(labels_and_levels, hierarchy)
    require(len(hierarchy) != n_pairs, f"{path} is not an is-a list: {otherwise}; give a list of child TAB parent")


def _iterate_table_levels(path: Path) -> Iterator[LabelledPath]:
    """Yield labels and category, whose levels slashes separate, of the rows of Parquet."""
    table = open_parquet_table(path)
    if missing := [name for name in (LABELS, CATEGORY) if not table.has_columns(name)]:
        raise InputError(
            f"{path} has no column {missing[0]!r}; Parquet is an is-a list by its columns {LABELS!r} and {CATEGORY!r}: "
            "give those, or a list of child TAB parent"
        )
    for batch in table.iterate_batches([LABELS, CATEGORY], 1 << 14):
        for labels, category in zip(batch.get_column(LABELS), batch.get_column(CATEGORY), strict=True):
            names = labels if isinstance(labels, list) else [labels]
            if not labels or not category:
                continue
            if not all(isinstance(text, str) for text in (category, *names)):
                raise InputError(f"{path} holds a category or label that is not text; write both as texts")
            yield names, _split_levels(category)


def _split_levels(path: str) -> list[str]:
    levels = [level.strip() for level in path.split("/") if level.strip(" .")]
    return levels[1:] if levels and levels[0].casefold() in SPLITS else levels


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

    Returns
    -------
    Hierarchy

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
        raise InputError(f"{' and '.join(map(str, paths))} hold no is-a pair, only names; give the list of pairs too")
    return hierarchy


def write_hierarchy(path: str | Path, pairs: Iterable[tuple[str, str, int]]) -> int:
    """Write (child, parent, count) lines, which `read_hierarchy` reads; return their number."""
    lines = (f"{child}\t{parent}\t{count}" for child, parent, count in pairs)
    return text_files.write_lines(Path(path), chain(["child\tparent\tcount"], lines)) - 1


def mine_hierarchy(
    path: str | Path, is_known: Callable[[str], bool] | None = None, *, progress: Progress = SILENT
) -> HearstPatternCounter:
    """Count is-a statements in running English text, which is read once, line by line.

    Parameters
    ----------
    path : str or Path
        UTF-8 text, plain or gzip; what is not UTF-8 in it is passed over.
    is_known : callable or None
        As in `HearstPatternCounter`.
    progress : Progress

    Raises
    ------
    InputError
        Missing, or no text.
    """
    path, counter = Path(path), HearstPatternCounter(is_known)
    require(b"\0" not in text_files.read_head(path), f"{path} is not plain text; take the text out of it first")
    with progress.stage("reading", None, "lines") as bar:

        def lines() -> Iterator[str]:
            for _, line in text_files.iterate_numbered_lines(path, _MAX_PARAGRAPH_BYTES):
                yield line.decode("utf-8", "replace")
                bar.advance()

        for sentence in split_sentences(lines()):
            counter.count_pairs(sentence)
    return counter


def _read_path(path: Path, parent_first: bool, hierarchy: Hierarchy) -> None:
    if path.is_dir():
        _read_folder(path, parent_first, hierarchy)
        return
    start = text_files.read_head(path)
    if start.startswith(MAGIC):
        rows, fault = _iterate_table_levels(path), "no label has most of its rows in one category"
        _add_tree(rows, hierarchy, path, fault)
    elif (statements := iterate_statements(path, start, UP)) is not None:
        for statement in statements:
            if isinstance(statement, Synset):
                words = statement.words
                hierarchy.add_names(statement.id, words if len(words) == 1 else [*words, ", ".join(words)])
            for relation, child, parent in wordnet.list_facts(statement):
                if relation in UP:
                    hierarchy.add(child, parent)
    elif b"\0" in start or not start.strip():
        problem = "is empty" if not start.strip() else "is not text"
        raise InputError(
            f"{path} {problem}; an is-a list is a list of pairs (child TAB parent), WordNet's data.noun, "
            "wn_hyp.pl or wordnet.is_a.txt, Parquet with a column 'category', or a folder of pictures in sub-folders"
        )
    else:
        _read_pairs(path, start, parent_first, hierarchy)


def iterate_statements(
    path: Path, start: bytes, relations: Sequence[str] | None = None
) -> Iterator[Synset | tuple[str, str, str]] | None:
    """Return a file's statements, of WordNet or Open Images: concepts and (relation, concept, larger one).

    None for any other file. `start` are its first bytes. Open Images' classes are named that have one of `relations`
    (None: any).
    """
    if SYNSET.search(start):
        return wordnet.iterate_synsets(path)
    if PROLOG.search(start):
        return wordnet.iterate_prolog_facts(path)
    if WORDS.search(start):
        return (Synset(synset, "", tuple(words), (), "") for synset, words in wordnet.iterate_synset_words(path))
    return _iterate_tree_statements(path, relations) if TREE.search(start) else None


def _iterate_tree_statements(path: Path, relations: Sequence[str] | None) -> Iterator[Synset | tuple[str, str, str]]:
    codes = set[str]()
    for relation, child, parent in iterate_hierarchy_pairs(path):
        yield relation, child, parent
        if relations is None or relation in relations:
            codes |= {child, parent}
    for code, name in read_neighbouring_names(path).items():
        if code in codes:
            yield Synset(code, "", (name,), (), "")


def is_wordnet_folder(folder: Path) -> bool:
    """Return True if a folder holds files of WordNet rather than pictures."""
    return bool(_find_wordnet_files(folder))


def _find_wordnet_files(folder: Path) -> list[Path]:
    with text_files.explain_input_errors(folder):
        return [folder / name for name in WORDNET if (folder / name).is_file()]


def _read_folder(folder: Path, parent_first: bool, hierarchy: Hierarchy) -> None:
    files = _find_wordnet_files(folder)
    if not files:
        items = read_folder(folder, rejects=Rejects())
        rows = ((item.labels, _split_levels(str(PurePosixPath(item.id).parent))) for item in items)  # without splits
        _add_tree(rows, hierarchy, folder, "its pictures do not lie in sub-folders of sub-folders")
    for file in files[:1] if files and files[0].name == WORDNET[0] else files:
        _read_path(file, parent_first, hierarchy)


class _PairLayout(NamedTuple):
    separator: str | None  # None = blanks
    parent_first: bool
    has_header: bool


def _read_pairs(path: Path, start: bytes, parent_first: bool, hierarchy: Hierarchy) -> None:
    layout, lines = _detect_layout(start, parent_first), text_files.iterate_content_lines(path, MAX_LINE_BYTES)
    if parent_first and layout.has_header and not layout.parent_first:
        log.warning(
            "%s: its header says that the child comes first, so that is how it is read", text_files.format_path(path)
        )
    for number, raw in islice(lines, int(layout.has_header), None):
        where, cells = f"{path}:{number}", _split(text_files.decode_text(raw, path, number), layout.separator)
        if len(cells) not in (2, 3) or not cells[0] or not cells[1]:
            raise InputError(f"{where} is not a pair of child and parent; write two names with a tab between them")
        child, parent = reversed(cells[:2]) if layout.parent_first else cells[:2]
        try:
            hierarchy.add(child, parent)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error


def _detect_layout(start: bytes, parent_first: bool) -> _PairLayout:
    text_lines = start.decode("utf-8", "replace").splitlines()[:_N_INSPECTED_LINES]
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
    by_imagenet = separator is None and len(first) == 2 and all(map(wordnet.is_synset_name, first))
    return _PairLayout(separator, parent_first or by_imagenet, False)


def _split(line: str, separator: str | None) -> list[str]:
    if separator == ",":
        return [cell.strip() for cell in next(csv.reader([line]))]
    return [cell.strip() for cell in line.split(separator)]
