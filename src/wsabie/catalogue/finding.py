"""What lies in the folders of a collection: files with their sizes and times, and what says their tags."""

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from wsabie.base.errors import InputError
from wsabie.base.input_files import is_regular, open_input
from wsabie.base.progress import Progress
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.looking import Stat, medium_called, stat_of
from wsabie.catalogue.roots import Root, all_roots, choose, medium_of_collection
from wsabie.sources.build import BadRow
from wsabie.sources.folders import (
    SPLITS,
    clean_labels,
    find_files,
    labeller,
    relative_name,
    synset_names,
    tell_apart,
)
from wsabie.sources.media import PICTURES, Medium
from wsabie.sources.metadata import NAMES, find_metadata, read_metadata
from wsabie.sources.picture_tags import keywords_in, sidecars_of
from wsabie.sources.text import reading, shown
from wsabie.storage.rejects import Rejects

CLOSED = "folder that cannot be read"
ASKED = 200
"""Pictures that are asked for keywords where sub-folders could be tags too."""
ENOUGH = 0.1
"""Share of them with keywords from which on these are the tags: some files of most collections have stray ones."""


class Tagging(NamedTuple):
    """Where tags of a root come from.

    Attributes
    ----------
    by : str
        What is written down as their origin.
    inside : bool
        Whether they are inside the files.
    labels_of : callable
        Else those of a file by its path in the root.
    metadata : str or None
        A hash of the table that says them.
    anew : bool
        Whether what is known already has to be asked again, because the table or the choice changed.
    """

    by: str
    inside: bool
    labels_of: Callable[[str], tuple[str, ...]]
    metadata: str | None = None
    anew: bool = False


class Found(NamedTuple):
    """What lies in a root.

    Attributes
    ----------
    root : Root
    files : dict
        By path in the root.
    closed : tuple of str
        Folders that could not be read: what lies in them is not missing.
    tagging : Tagging
    options : dict
        How it is scanned from now on, as `Root.options`.
    away : str
        Why nothing is known of its files; empty: it was read.
    sidecars : dict
        By path of a picture a stamp of the sidecar that counts, where tags are inside the files.
    notes : tuple of str
        What people should know of where tags come from.
    """

    root: Root
    files: dict[str, Stat]
    closed: tuple[str, ...]
    tagging: Tagging
    options: dict[str, Any]
    away: str = ""
    sidecars: Mapping[str, str] = MappingProxyType({})
    notes: tuple[str, ...] = ()

    def covers(self, name: str) -> bool:
        """Whether it would have been seen, were it there."""
        return not self.away and not any(name.startswith(folder) for folder in self.closed)


def find_all(
    roots: list[Root], medium: str | None, tags: str | None, rejects: Rejects, progress: Progress
) -> list[Found]:
    """Walk through roots; the medium is that of the first in which there is anything, unless it is known."""
    found = []
    with progress.stage("finding files", None, "files") as stage:
        for root in roots:
            one = find(root, medium, tags, rejects)
            medium = medium or one.options.get("medium")
            stage.advance(len(one.files))
            found.append(one)
    return found


def find_first(folder: Path, tags: str | None, rejects: Rejects, progress: Progress) -> list[Found]:
    """Walk through a folder that is to be made a collection.

    Raises
    ------
    InputError
        As `find`.
    """
    return find_all([Root(0, folder.resolve(), {})], None, tags, rejects, progress)


def find_with(
    collection: Collection, folders: Sequence[Path], tags: str | None, rejects: Rejects, progress: Progress
) -> list[Found]:
    """Walk through the folders of a collection, and through others that are to belong to it.

    Raises
    ------
    InputError
        As `find`, or there is no such choice of tags.
    """
    choose(collection, tags)
    roots = [*all_roots(collection), *(Root(0, folder, {}) for folder in folders)]
    return find_all(roots, medium_of_collection(collection), tags, rejects, progress)


def find(root: Root, things: str | None, tags: str | None, rejects: Rejects) -> Found:
    """Walk through one root.

    Raises
    ------
    InputError
        Its table of tags cannot be used, or tags were to come from one that there is not.
    """
    own = Rejects(most=10**7)
    try:
        medium, paths = find_files(root.folder, own, medium_called(things) if things else None)
    except InputError as error:
        return Found(root, {}, (), _NO_TAGS, root.options, str(error))
    closed = tuple(f"{where}/" for where, reason, _ in own.listed if reason == CLOSED)
    rejects.add_all(own)
    stats = {name: stat for name, path in paths.items() if (stat := stat_of(path)) is not None}
    if not stats:
        return Found(root, {}, closed, _NO_TAGS, root.options)
    choice, note = _choice(root, tags, stats, medium)
    notes = [note] if note else []
    tagging = _tagging(root, choice, stats, medium, rejects, required=tags == "metadata")
    options: dict[str, Any] = {**root.options, "medium": medium.things, "tags": choice}
    if tagging.metadata is not None:
        options["metadata"] = tagging.metadata
    if tagging.anew:
        options["anew"] = True  # until it is done
    sidecars = _sidecars(root.folder, stats) if (tagging.inside or tagging.metadata) and medium is PICTURES else {}
    if sidecars and not tagging.inside:
        which = "1 picture has" if len(sidecars) == 1 else f"{len(sidecars):,} pictures have"
        notes.append(
            f"in {root.folder} {which} a sidecar (.xmp) that is not asked, for a table says the tags (--tags xmp asks)"
        )
        sidecars = {}
    if tags is not None or "tags" not in root.options:
        notes += _folders_left_out(root, choice, stats)
    tables = _tables_below(root.folder, stats)
    if tags is not None or len(tables) != root.options.get("tables", 0):
        notes += _tables_left_out(root, tables)
        options["tables"] = len(tables)
    return Found(root, stats, closed, tagging, options, sidecars=sidecars, notes=tuple(notes))


def _folders_left_out(root: Root, choice: str, files: dict[str, Stat]) -> list[str]:
    """What to tell of sub-folders whose names could be tags too, where a table says them."""
    if choice != "metadata" or not tell_apart(files) or _is_split(files):
        return []
    n = len(_sub_folders(files))
    which = "the name of 1 sub-folder is" if n == 1 else f"the names of {n:,} sub-folders are"
    return [f"in {root.folder} {which} not asked, for a table says the tags (--tags folders takes these names)"]


def _tables_below(folder: Path, files: Iterable[str]) -> list[Path]:
    """Tables in sub-folders, which no choice of tags reads."""
    places = sorted(_sub_folders(files))
    return [folder / place / name for place in places for name in NAMES if is_regular(folder / place / name)]


def _sub_folders(files: Iterable[str]) -> set[str]:
    return {name.rpartition("/")[0] for name in files} - {""}


def _tables_left_out(root: Root, tables: Sequence[Path]) -> list[str]:
    """What to tell of them."""
    if not tables:
        return []
    which = "1 table of tags is" if len(tables) == 1 else f"{len(tables):,} tables of tags are"
    where = f"in sub-folders of {root.folder} {which} not read"
    return [f"{where}; to take one over: wsabie collection import DIR {shown(tables[0])}"]


def _sidecars(folder: Path, files: Iterable[str]) -> dict[str, str]:
    """Stamps by picture: which of the two names, size, time. Only folders that hold sidecars cost a look at each."""
    found: dict[str, str] = {}
    holds: dict[str, bool] = {}
    for name in files:
        place = name.rpartition("/")[0]
        if place not in holds:
            holds[place] = _holds_sidecars(folder / place)
        if holds[place]:
            for number, path in enumerate(sidecars_of(folder / name)):
                with suppress(OSError):
                    held = os.lstat(path)
                    found[name] = f"{number}:{held.st_size}:{held.st_mtime_ns}"
                    break
    return found


def _holds_sidecars(folder: Path) -> bool:
    try:
        with os.scandir(folder) as there:
            return any(one.name.lower().endswith(".xmp") for one in there)
    except OSError:
        return False


def _nothing(name: str) -> tuple[str, ...]:
    return ()


_NO_TAGS = Tagging("none", False, _nothing)


def _choice(root: Root, tags: str | None, files: dict[str, Stat], medium: Medium) -> tuple[str, str]:
    """What "auto" means stays as it was found at first, whatever folders are made later; and what to tell of it."""
    if tags is None and "tags" in root.options:
        return str(root.options["tags"]), ""
    if tags not in (None, "auto"):
        if tags in ("xmp", "tags") and tags != medium.inside:
            raise InputError(f"{medium.things} have no {tags!r}; leave --tags out, or say --tags {medium.inside}")
        return str(tags), ""
    if find_metadata(root.folder) is not None:
        return "metadata", ""
    if not tell_apart(files) or _is_split(files):
        return medium.inside, ""
    if medium is not PICTURES or not (share := _share_with_keywords(root.folder, list(files))):
        return "folders", ""
    said = f"of {root.folder} {share:.0%} of the pictures that were asked have keywords"
    if share >= ENOUGH:
        return medium.inside, f"{said}: these are the tags, not the names of sub-folders (--tags folders takes those)"
    return "folders", f"{said}, but the names of sub-folders are the tags (--tags xmp takes the keywords)"


def _is_split(files: Iterable[str]) -> bool:
    """Whether sub-folders are the sides of a split: "train" and "test" are hardly labels."""
    top = {name.partition("/")[0].lower() for name in files if "/" in name}
    return len(top) > 1 and top <= SPLITS


def _share_with_keywords(folder: Path, files: Sequence[str]) -> float:
    asked = files[:: -(-len(files) // ASKED)]  # from all over: a library begins with its oldest folder
    n = 0
    for name in asked:
        with suppress(BadRow):
            n += bool(keywords_in(folder / name))
    return n / len(asked)


def _tagging(
    root: Root, choice: str, files: dict[str, Stat], medium: Medium, rejects: Rejects, *, required: bool
) -> Tagging:
    changed = root.options.get("tags", choice) != choice or root.options.get("anew", False)
    if choice == "none":
        return _NO_TAGS
    if choice == "metadata":
        return _by_metadata(root, files, rejects, required=required, changed=changed)
    if choice == medium.inside:
        return Tagging(choice, True, _nothing, anew=changed)
    labels = labeller(choice, medium, synset_names(root.folder, files))
    return Tagging("folder", False, lambda name: clean_labels(labels(name, Path(name))), anew=changed)


def _by_metadata(root: Root, files: dict[str, Stat], rejects: Rejects, *, required: bool, changed: bool) -> Tagging:
    table = find_metadata(root.folder)
    if table is None:
        if required:
            raise InputError(f"{root.folder} has no metadata.csv or metadata.jsonl; write one, or leave --tags out")
        return _NO_TAGS
    with reading(table), open_input(table) as file:
        now = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    labels: dict[str, dict[str, None]] = {}
    for row in read_metadata(table, rejects=rejects):
        try:
            name = relative_name(row.file_name)
            labels.setdefault(name, {}).update(dict.fromkeys(clean_labels(row.labels)))
        except BadRow as bad:
            rejects.add(row.where, bad.reason, bad.detail)
            continue
        if name not in files:
            rejects.add(row.where, "labels without a file", name)
    anew = changed or root.options.get("metadata", now) != now
    return Tagging("metadata", False, lambda name: tuple(labels.get(name, ())), now, anew)
