"""Discovery of the files in the folders of a collection, and of the source of their tags."""

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from wsabie.collection.folder.collection import Collection
from wsabie.collection.scan.file_inspection import FileStat, parse_modality, read_file_stat
from wsabie.collection.scan.roots import Root, check_tag_source, list_roots, read_modality
from wsabie.core.errors import InputError
from wsabie.core.input_files import is_regular_file, open_input
from wsabie.core.progress import Progress
from wsabie.io.file_matching import find_files, normalise_relative_path
from wsabie.io.formats.media_folder import SPLITS, has_label_folders, make_labeller, normalise_labels, read_synset_names
from wsabie.io.formats.metadata_table import NAMES, find_metadata, read_metadata
from wsabie.io.modalities import PICTURES, Modality
from wsabie.io.parsers.array_builders import RowError
from wsabie.io.parsers.text_files import explain_reading_errors, format_path
from wsabie.io.tags.image_tags import list_sidecar_paths, read_keywords
from wsabie.storage.rejects import Rejects

UNREADABLE_FOLDER = "folder that cannot be read"
KEYWORD_SAMPLE = 200
"""Number of pictures that are searched for keywords if sub-folders could be tags too."""
MIN_KEYWORD_SHARE = 0.1
"""Lowest share of pictures with keywords that makes keywords the tags: most collections have stray ones."""


class TagSource(NamedTuple):
    """Source of the tags of a root.

    Attributes
    ----------
    by : str
        Origin that annotations of these tags get.
    inside : bool
        The tags are inside the files.
    labels_of : callable
        Otherwise returns the labels of a file from its path in the root.
    metadata : str or None
        Hash of the table that lists them.
    must_reread : bool
        Tags of unchanged files must be read again, because the table or the source changed.
    """

    by: str
    inside: bool
    labels_of: Callable[[str], tuple[str, ...]]
    metadata: str | None = None
    must_reread: bool = False


class RootContents(NamedTuple):
    """Files of a root and their source of tags.

    Attributes
    ----------
    root : Root
    files : dict
        Size and time by path in the root.
    unreadable_folders : tuple of str
        Folders that could not be read; items in them do not count as missing.
    tag_source : TagSource
    options : dict
        Scan options from now on, as `Root.options`.
    unreachable_reason : str
        Why the root could not be read; empty if it was.
    sidecars : dict
        Stamp of the sidecar by path of a picture, if tags are inside the files.
    notes : tuple of str
        Remarks for people on the source of tags.
    """

    root: Root
    files: dict[str, FileStat]
    unreadable_folders: tuple[str, ...]
    tag_source: TagSource
    options: dict[str, Any]
    unreachable_reason: str = ""
    sidecars: Mapping[str, str] = MappingProxyType({})
    notes: tuple[str, ...] = ()

    def covers(self, name: str) -> bool:
        """Return whether a file of this name would have been found if it existed."""
        return not self.unreachable_reason and not any(name.startswith(folder) for folder in self.unreadable_folders)


def discover_all_roots(
    roots: list[Root], modality: str | None, tags: str | None, rejects: Rejects, progress: Progress
) -> list[RootContents]:
    """Discover the files of roots; an unknown modality is taken from the first root with files."""
    all_contents = []
    with progress.stage("finding files", None, "files") as stage:
        for root in roots:
            contents = discover_root(root, modality, tags, rejects)
            modality = modality or contents.options.get("modality")
            stage.advance(len(contents.files))
            all_contents.append(contents)
    return all_contents


def discover_new_collection(folder: Path, tags: str | None, rejects: Rejects, progress: Progress) -> list[RootContents]:
    """Discover the files of a folder that is about to become a collection.

    Raises
    ------
    InputError
        As `discover_root`.
    """
    return discover_all_roots([Root(0, folder.resolve(), {})], None, tags, rejects, progress)


def discover_with_folders(
    collection: Collection, folders: Sequence[Path], tags: str | None, rejects: Rejects, progress: Progress
) -> list[RootContents]:
    """Discover the files of a collection and of folders that are about to join it.

    Raises
    ------
    InputError
        As `discover_root`, or the source of tags is unknown.
    """
    check_tag_source(collection, tags)
    roots = [*list_roots(collection), *(Root(0, folder, {}) for folder in folders)]
    return discover_all_roots(roots, read_modality(collection), tags, rejects, progress)


def discover_root(root: Root, modality_name: str | None, tags: str | None, rejects: Rejects) -> RootContents:
    """Discover the files of one root.

    Raises
    ------
    InputError
        Its table of tags is unusable, or is required and missing.
    """
    folder_rejects = Rejects(most=10**7)
    try:
        modality, paths = find_files(
            root.folder, folder_rejects, parse_modality(modality_name) if modality_name else None
        )
    except InputError as error:
        return RootContents(root, {}, (), _NO_TAGS, root.options, str(error))
    unreadable_folders = tuple(
        f"{folder}/" for folder, reason, _ in folder_rejects.listed if reason == UNREADABLE_FOLDER
    )
    rejects.add_all(folder_rejects)
    stats = {name: stat for name, path in paths.items() if (stat := read_file_stat(path)) is not None}
    if not stats:
        return RootContents(root, {}, unreadable_folders, _NO_TAGS, root.options)
    choice, note = _choose_tag_source(root, tags, stats, modality)
    notes = [note] if note else []
    tag_source = _make_tag_source(root, choice, stats, modality, rejects, required=tags == "metadata")
    options: dict[str, Any] = {**root.options, "modality": modality.name, "tags": choice}
    if tag_source.metadata is not None:
        options["metadata"] = tag_source.metadata
    if tag_source.must_reread:
        options["anew"] = True  # until the scan is done
    may_have_sidecars = modality is PICTURES and (tag_source.inside or tag_source.metadata)
    sidecars = _stamp_sidecars(root.folder, stats) if may_have_sidecars else {}
    if sidecars and not tag_source.inside:
        count = "1 picture has" if len(sidecars) == 1 else f"{len(sidecars):,} pictures have"
        notes.append(
            f"in {root.folder} {count} a sidecar (.xmp) that is not asked, for a table says the tags (--tags xmp asks)"
        )
        sidecars = {}
    if tags is not None or "tags" not in root.options:
        notes += _note_unused_folders(root, choice, stats)
    tables = _find_nested_tables(root.folder, stats)
    if tags is not None or len(tables) != root.options.get("tables", 0):
        notes += _note_unread_tables(root, tables)
        options["tables"] = len(tables)
    return RootContents(root, stats, unreadable_folders, tag_source, options, sidecars=sidecars, notes=tuple(notes))


def _note_unused_folders(root: Root, choice: str, files: dict[str, FileStat]) -> list[str]:
    """Return a remark on sub-folders whose names could be tags too, if a table lists the tags."""
    if choice != "metadata" or not has_label_folders(files) or _is_split(files):
        return []
    n_folders = len(_list_subfolders(files))
    names = "the name of 1 sub-folder is" if n_folders == 1 else f"the names of {n_folders:,} sub-folders are"
    return [f"in {root.folder} {names} not asked, for a table says the tags (--tags folders takes these names)"]


def _find_nested_tables(folder: Path, files: Iterable[str]) -> list[Path]:
    """Return the tables in sub-folders, which no source of tags reads."""
    subfolders = sorted(_list_subfolders(files))
    return [
        folder / subfolder / name
        for subfolder in subfolders
        for name in NAMES
        if is_regular_file(folder / subfolder / name)
    ]


def _list_subfolders(files: Iterable[str]) -> set[str]:
    return {name.rpartition("/")[0] for name in files} - {""}


def _note_unread_tables(root: Root, tables: Sequence[Path]) -> list[str]:
    """Return a remark on tables in sub-folders."""
    if not tables:
        return []
    count = "1 table of tags is" if len(tables) == 1 else f"{len(tables):,} tables of tags are"
    statement = f"in sub-folders of {root.folder} {count} not read"
    return [f"{statement}; to take one over: wsabie collection import DIR {format_path(tables[0])}"]


def _stamp_sidecars(folder: Path, files: Iterable[str]) -> dict[str, str]:
    """Return "name:size:time" of the sidecars by picture; folders without sidecars cost one look."""
    stamps: dict[str, str] = {}
    has_sidecars: dict[str, bool] = {}
    for name in files:
        subfolder = name.rpartition("/")[0]
        if subfolder not in has_sidecars:
            has_sidecars[subfolder] = _has_sidecars(folder / subfolder)
        if has_sidecars[subfolder]:
            for number, path in enumerate(list_sidecar_paths(folder / name)):
                with suppress(OSError):
                    stat = os.lstat(path)
                    stamps[name] = f"{number}:{stat.st_size}:{stat.st_mtime_ns}"
                    break
    return stamps


def _has_sidecars(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.lower().endswith(".xmp") for entry in entries)
    except OSError:
        return False


def _return_no_labels(name: str) -> tuple[str, ...]:
    return ()


_NO_TAGS = TagSource("none", False, _return_no_labels)


def _choose_tag_source(root: Root, tags: str | None, files: dict[str, FileStat], modality: Modality) -> tuple[str, str]:
    """Choose the source of tags and a remark on it; the meaning of "auto" stays as first chosen."""
    if tags is None and "tags" in root.options:
        return str(root.options["tags"]), ""
    if tags not in (None, "auto"):
        if tags in ("xmp", "tags") and tags != modality.inside:
            raise InputError(f"{modality.name} have no {tags!r}; leave --tags out, or say --tags {modality.inside}")
        return str(tags), ""
    if find_metadata(root.folder) is not None:
        return "metadata", ""
    if not has_label_folders(files) or _is_split(files):
        return modality.inside, ""
    if modality is not PICTURES or not (share := _measure_keyword_share(root.folder, list(files))):
        return "folders", ""
    statement = f"of {root.folder} {share:.0%} of the pictures that were asked have keywords"
    if share >= MIN_KEYWORD_SHARE:
        note = f"{statement}: these are the tags, not the names of sub-folders (--tags folders takes those)"
        return modality.inside, note
    return "folders", f"{statement}, but the names of sub-folders are the tags (--tags xmp takes the keywords)"


def _is_split(files: Iterable[str]) -> bool:
    """Return whether sub-folders are the sides of a split: "train" and "test" are hardly labels."""
    top_folders = {name.partition("/")[0].lower() for name in files if "/" in name}
    return len(top_folders) > 1 and top_folders <= SPLITS


def _measure_keyword_share(folder: Path, files: Sequence[str]) -> float:
    sample = files[:: -(-len(files) // KEYWORD_SAMPLE)]  # from the whole library, which begins with its oldest folder
    n_tagged = 0
    for name in sample:
        with suppress(RowError):
            n_tagged += bool(read_keywords(folder / name))
    return n_tagged / len(sample)


def _make_tag_source(
    root: Root, choice: str, files: dict[str, FileStat], modality: Modality, rejects: Rejects, *, required: bool
) -> TagSource:
    is_changed = root.options.get("tags", choice) != choice or root.options.get("anew", False)
    if choice == "none":
        return _NO_TAGS
    if choice == "metadata":
        return _make_table_source(root, files, rejects, required=required, is_changed=is_changed)
    if choice == modality.inside:
        return TagSource(choice, True, _return_no_labels, must_reread=is_changed)
    labeller = make_labeller(choice, modality, read_synset_names(root.folder, files))
    return TagSource("folder", False, lambda name: normalise_labels(labeller(name, Path(name))), must_reread=is_changed)


def _make_table_source(
    root: Root, files: dict[str, FileStat], rejects: Rejects, *, required: bool, is_changed: bool
) -> TagSource:
    table = find_metadata(root.folder)
    if table is None:
        if required:
            raise InputError(f"{root.folder} has no metadata.csv or metadata.jsonl; write one, or leave --tags out")
        return _NO_TAGS
    with explain_reading_errors(table), open_input(table) as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    labels: dict[str, dict[str, None]] = {}
    for row in read_metadata(table, rejects=rejects):
        try:
            name = normalise_relative_path(row.file_name)
            labels.setdefault(name, {}).update(dict.fromkeys(normalise_labels(row.labels)))
        except RowError as error:
            rejects.add(row.where, error.reason, error.detail)
            continue
        if name not in files:
            rejects.add(row.where, "labels without a file", name)
    must_reread = is_changed or root.options.get("metadata", digest) != digest
    return TagSource("metadata", False, lambda name: tuple(labels.get(name, ())), digest, must_reread)
