"""Lists of ids, and labels of items by id, as in pair lists, tag lists and tables of 0 and 1.

When ids name pictures or sounds that exist, they are a collection of these. Otherwise every id has one free vector:
X is the identity, with the ids as feature names, so that other lists about the same ids can be aligned.
"""

import logging
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from wsabie.core.arrays import Int64, Matrix
from wsabie.core.errors import InputError, require
from wsabie.io.file_matching import find_listed_files
from wsabie.io.modalities import PICTURES, Modality, detect_modality
from wsabie.io.parsers.array_builders import (
    LabelIndex,
    Row,
    build_feature_matrix,
    build_label_matrix,
    decode_row,
    iterate_parsed,
    require_rows,
)
from wsabie.io.parsers.text_files import decode_text, iterate_numbered_lines
from wsabie.io.records import FeatureTable, Item, ItemList, ItemSubset, Source
from wsabie.storage.atomic_files import write_text
from wsabie.storage.rejects import Rejects, RowError

_SAMPLE = 50
_FOREIGN_PATH = re.compile(r"[A-Za-z]:[\\/]|\\\\|file:", re.IGNORECASE)
_PATH = re.compile(r"(?!/[cgmr]/|10\.\d{4,}/|[\w+.-]+://)(?:[^\s/\\][^/\\]*)?[/\\][^\s/\\]")
"""Path with a folder; names of ConceptNet and Freebase (`/m/01`), DOIs and addresses are none."""
_WRAPPING = "'\"`<>[](){}:,; "
"""Signs around names of files that are no parts of them."""
_LABEL = (1 << 31) - 1
CLASHING = "label both stated and denied"
log = logging.getLogger("wsabie")
_SEPARATORS = b" \t,;\r"
_MARK = "\ufeff"
"""Byte order mark, which readers skip."""


class IdLabelCollector:
    """Collector of pairs of an id and a label, in any order; 8 bytes a pair, twice that with line numbers.

    Parameters
    ----------
    path : Path
        Name of the file, for the list of rejects.
    rejects : Rejects
        Lists what cannot be used.
    numbered : bool
        Keep the line of each pair, so that a pair which contradicts another is listed by it and not by its id.

    Examples
    --------
    >>> collector = IdLabelCollector(Path("tags.tsv"), Rejects())
    >>> collector.add("a", "sea"), collector.add("b", "sea"), collector.add("a", "sky", stated=False)
    (None, None, None)
    >>> collector.build_table().Y.toarray().tolist()
    [[1, -1], [1, 0]]
    """

    def __init__(self, path: Path, rejects: Rejects, *, numbered: bool = False) -> None:
        self.path, self.rejects, self.numbered = path, rejects, numbered
        self.ids: dict[str, int] = {}
        self.labels = LabelIndex()
        self._keys = array("q")  # row, label, whether denied: in an order that brings equal pairs together
        self._lines = array("q")

    def __len__(self) -> int:
        return len(self.ids)

    def assign_row(self, name: str) -> int:
        """Return the number of an id, new or known."""
        return self.ids.setdefault(name, len(self.ids))

    def add(self, name: str, label: str, *, stated: bool = True, line: int = 0) -> None:
        """Add a pair.

        Raises
        ------
        RowError
            The label is empty or not valid text.
        """
        number = self.labels.assign_id(label)
        self._keys.append(self.assign_row(name) << 32 | number << 1 | (not stated))
        if self.numbered:
            self._lines.append(line)

    def add_all(self, name: str, labels: Iterable[str]) -> None:
        """Add an id with all its labels; blank ones are left out.

        Raises
        ------
        RowError
            A label is not valid text, or none is left; nothing is added.
        """
        numbers = self.labels.assign_ids(labels)
        if not numbers:
            raise RowError(PICTURES.unlabelled_reason, name)
        row = self.assign_row(name) << 32
        self._keys.extend(row | number << 1 for number in numbers)

    def add_rows(
        self, rows: Iterable[tuple[int, Row]], parse: Callable[[int, Row], tuple[str, Iterable[str]]], unique: bool
    ) -> int:
        """Add numbered rows, of which `parse` returns id and labels, and return the last number.

        With `unique` a row whose id came before is rejected.
        """
        number = 0
        for number, row in rows:
            with self.rejects.catch(self.path, number):
                name, labels = parse(number, row)
                if unique and name in self.ids:
                    raise RowError("duplicate id", name)
                self.add_all(name, labels)
        return number

    def add_flags(
        self,
        rows: Iterable[tuple[int, Row]],
        parse: Callable[[Row], Int64],
        names: Sequence[str],
        ids: Sequence[str] | None,
        unique: bool,
    ) -> int:
        """Add the rows of a table of 0 and 1, by their numbers from 1 or their ids; return how many there are.

        `parse` returns the numbers of the labels that are 1.
        """

        def parse_row(number: int, row: Row) -> tuple[str, list[str]]:
            name = str(number) if ids is None or number > len(ids) else ids[number - 1]
            return name, [names[i] for i in parse(row)]

        return self.add_rows(rows, parse_row, unique)

    def build_table(self, unit: str = "pairs") -> FeatureTable:
        """Return one row for each id, with a feature of its own.

        Raises
        ------
        InputError
            There is none.
        """
        require_rows(len(self), self.path, self.rejects, unit)
        Y, names = self._build_label_matrix()
        ids, n = list(self.ids), len(self)
        X = build_feature_matrix(np.arange(n + 1), np.arange(n, dtype=np.int32), np.ones(n, np.float32), n)
        return FeatureTable(X, Y, names, ids, feature_names=ids)

    def build_source(
        self,
        folder: Path,
        files: dict[str, str] | None = None,
        unit: str = "pairs",
        *,
        needs_files: bool = False,
        has_paths: bool = True,
    ) -> FeatureTable | ItemList:
        """Return pictures or sounds if one of the first 50 ids is a file in the folder, else `build_table`.

        Labels without a file are rejected, and denied labels, which an item cannot keep.

        Parameters
        ----------
        folder : Path
        files : dict of str to str or None
            The file of each id, relative to the folder; None when the ids are their names.
        needs_files : bool
            Refuse ids that look like paths of files where no such file is there.
        has_paths : bool
            An id with a folder looks like a path also without an ending.

        Returns
        -------
        FeatureTable or ItemList

        Raises
        ------
        InputError
        """
        rows = self.build_table(unit)
        paths = {name: name if files is None else files.get(name, "") for name in rows.ids}
        sample = [paths[name] for name in rows.ids[:_SAMPLE]]
        modality = next(filter(None, map(detect_modality, sample)), None)
        bare_paths = [
            n for n in sample if needs_files and has_paths and _PATH.match(n) and not detect_modality(n, True)
        ]
        has_paths = modality is None and 2 * len(bare_paths) > len(sample)
        if (modality or has_paths) and (files_by_name := find_listed_files(folder, paths.values(), modality)):
            file_modality = modality or detect_modality(next(iter(files_by_name.values())).name)
            if file_modality is not None:
                return self._build_item_list(rows, paths, files_by_name, file_modality)
        wrapped = [name for name in sample if not detect_modality(name) and detect_modality(name.strip(_WRAPPING))]
        if needs_files and 2 * len(wrapped) > len(sample):
            raise InputError(
                f"the ids of {self.path} are names of files with other signs around them, such as {wrapped[0]!a}; take "
                "these signs out"
            )
        names = [n for n in sample if detect_modality(n) or detect_modality(n, True) or _FOREIGN_PATH.match(n)]
        names = bare_paths if has_paths else names
        if needs_files and 2 * len(names) > len(sample):
            noun = modality.name if modality else "files"
            problem = f"names of {noun}, such as {names[0]!a}, and none of these is in {folder}"
            if any(re.search(r"[/\\]", name) for name in names):
                remedy = " (if they are none: write a first line, id TAB label)" if has_paths else ""
                place = f"put the list into the folder with the {noun}{remedy}"
                raise InputError(f"the ids of {self.path} are {problem}; {place}")
            log.warning("the ids of %s look like %s: each id has a free vector", self.path, problem)
        return rows

    def _build_label_matrix(self) -> tuple[Matrix, list[str]]:
        """Return (Y, label names); a pair that is both stated and denied is left out and listed."""
        names, final = self.labels.finish()
        keys: Int64 = np.frombuffer(self._keys, np.int64)
        order = np.argsort(keys >> 1, kind="stable") if self.numbered else None
        if order is None:
            keys.sort()
        else:
            keys = keys[order]
        change = keys[1:] ^ keys[:-1]  # 0: the same again, 1: the same denied, more: another pair
        contradictions = np.flatnonzero(change == 1) + 1
        clashing, first = np.unique(keys[contradictions] >> 1, return_index=True)
        ids = list(self.ids) if len(clashing) else []
        for pair, position in zip(clashing.tolist(), contradictions[first].tolist(), strict=True):
            line = "" if order is None else f":{self._lines[order[position]]}"
            self.rejects.add(f"{self.path}{line or f' id {ids[pair >> 31]}'}", CLASHING, names[final[pair & _LABEL]])
        is_new = np.append(True, change > 1)[: len(keys)]
        if len(clashing):
            is_new &= ~np.isin(keys >> 1, clashing)
        keys = keys[is_new]
        counts = np.bincount(keys >> 32, minlength=len(self))
        signs = 1 - 2 * (keys & 1).astype(np.int8)
        return build_label_matrix(counts, final[keys >> 1 & _LABEL], len(names), signs), names

    def _build_item_list(
        self, rows: FeatureTable, paths: dict[str, str], files: dict[str, Path], modality: Modality
    ) -> ItemList:
        items: list[Item] = []
        Y = rows.Y
        for row, name in enumerate(rows.ids):
            where = f"{self.path} id {name}"
            entries = slice(Y.indptr[row], Y.indptr[row + 1])
            signed = list(zip(Y.indices[entries], Y.data[entries], strict=True))
            for label in [rows.label_names[i] for i, sign in signed if sign < 0]:
                self.rejects.add(where, f"denied label, which a {modality.singular} cannot keep", label)
            labels = tuple(rows.label_names[i] for i, sign in signed if sign > 0)
            file = files.get(paths[name])
            if file is None:
                self.rejects.add(where, f"labels without a {modality.singular}", paths[name])
            elif not labels:
                self.rejects.add(where, modality.unlabelled_reason, name)
            else:
                items.append(Item(name, file, labels))
        require_rows(len(items), self.path, self.rejects, f"labelled {modality.name}")
        return ItemList(self.path, items, modality.name)


def iterate_flag_lines(path: Path, n_labels: int) -> Iterator[tuple[int, bytes]]:
    """Yield the numbered lines of a table of 0 and 1, for `parse_flags`.

    Raises
    ------
    InputError
        The first line has another number of flags than there are labels.
    """
    for number, line in iterate_numbered_lines(path):
        flags = line.translate(None, _SEPARATORS)
        if number == 1 and not flags.strip(b"01") and len(flags) != n_labels:
            problem = f"{path}:1 has {len(flags):,} flags for {n_labels:,} labels"
            raise InputError(f"{problem}; put the list of names beside it that belongs to it")
        yield number, line


def parse_flags(line: bytes, n_labels: int) -> Int64:
    """Return the labels of a line that are 1; separators between flags are ignored.

    Raises
    ------
    RowError
        The line holds something else.
    """
    flags = line.translate(None, _SEPARATORS)
    if flags.strip(b"01"):
        raise RowError("flag that is neither 0 nor 1", repr(line[:60]))
    if len(flags) != n_labels:
        raise RowError("wrong number of flags", f"{len(flags)} of {n_labels}")
    return np.flatnonzero(np.frombuffer(flags, np.uint8) == ord("1"))


def read_names(path: Path) -> list[str]:
    """Read a list of names or ids, one a line; blank lines are left out.

    Raises
    ------
    InputError
        Missing, empty, or not UTF-8.
    """
    lines = (decode_text(line, path, number).strip() for number, line in iterate_numbered_lines(path))
    names = [name for name in lines if name]
    require(bool(names), f"{path} is empty; it should list one name a line")
    return names


def read_ids(path: Path, *, rejects: Rejects) -> list[str]:
    """Return the ids of a list, each once, in the order of the file.

    Parameters
    ----------
    path : Path
        UTF-8 text, plain or gzip.
    rejects : Rejects
        Lists lines that are not UTF-8.

    Raises
    ------
    InputError
        Missing, or without a single id.
    """
    lines = iterate_parsed(path, iterate_numbered_lines(path, pipe=True), decode_row, rejects)
    ids = dict.fromkeys(name for _, line in lines if (name := line.strip()))
    require_rows(len(ids), path, rejects, "ids")
    return list(ids)


def write_ids(path: Path, ids: Iterable[str]) -> None:
    """Write a list that `read_ids` reads.

    Raises
    ------
    InputError
        An id that a line cannot hold.
    """
    listed = list(ids)
    for name in listed:
        refuse_unlistable_id(name)
    write_text(path, "".join(f"{name}\n" for name in listed))


def refuse_unlistable_id(name: str) -> None:
    """Raise InputError for an id that lists of ids, and of pairs of ids, cannot hold."""
    is_unlistable = name != name.strip() or not name or name.splitlines() != [name] or "\t" in name or name[0] == _MARK
    if is_unlistable or name != name.encode("utf-8", "replace").decode():
        raise InputError(
            f"the id {name!r} has blanks at an end, a tab, the end of a line or something that is not UTF-8 in it, "
            "which a list cannot hold; give another id"
        )


def select_listed_ids(source: Source, path: Path, *, rejects: Rejects) -> Source:
    """Return the items of a source that a list names; ids that it lacks are rejected.

    Raises
    ------
    InputError
        It has none of them.

    Examples
    --------
    >>> import tempfile
    >>> from wsabie import Item, ItemList
    >>> songs = ItemList(Path("songs"), [Item("a", b"", ()), Item("b", b"", ())], "sounds")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "few.txt"
    ...     write_ids(file, ["b"])
    ...     [item.id for item in select_listed_ids(songs, file, rejects=Rejects())]
    ['b']
    """
    listed_ids = set(read_ids(path, rejects=rejects))
    ids = source.ids if isinstance(source, FeatureTable) else [item.id for item in source]
    index = np.flatnonzero([name in listed_ids for name in ids])
    for name in sorted(listed_ids.difference(ids)):
        rejects.add(f"{path} {name}", "id without data")
    require(len(index) > 0, f"the data have none of the ids in {path}; give the list that belongs to them")
    return source.take(index) if isinstance(source, FeatureTable) else ItemSubset(source, index)
