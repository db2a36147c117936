"""The folders of a collection, each with its modality, its files and its source of tags."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from sqlalchemy import Connection, insert, select, update

from wsabie.collection.db.database import fetch_rows
from wsabie.collection.db.errors import format_step
from wsabie.collection.db.journal import JournalWriter, begin_entry
from wsabie.collection.db.tables import roots, tag_sources
from wsabie.collection.folder.collection import WEB_ROOT, Collection
from wsabie.collection.folder.collection_file import PLACE
from wsabie.collection.scan.file_inspection import FileStat, parse_modality, read_file_stat
from wsabie.core.errors import InputError, require
from wsabie.core.execution import Progress
from wsabie.core.input_files import is_regular_file, open_input
from wsabie.core.json_conversion import JsonObject
from wsabie.io.file_discovery import find_files, fold_path, format_other_files
from wsabie.io.file_matching import normalise_relative_path
from wsabie.io.formats import media_folder
from wsabie.io.formats.tool_files import list_tool_notes
from wsabie.io.modalities import PICTURES, Modality
from wsabie.io.parsers.text_files import explain_input_errors, format_path
from wsabie.io.records import ReadOptions
from wsabie.io.tags.image_tags import find_sidecar
from wsabie.storage.rejects import Rejects, RowError
from wsabie.vocabulary.folder_labels import FolderLabels
from wsabie.vocabulary.label_names import normalise_label_name

TagChoice: TypeAlias = Literal["auto", "xmp", "tags", "folders", "metadata", "none"]
"""Source of tags; "tags" are those inside sounds."""
UNREADABLE_FOLDER = "folder that cannot be read"
_N_NAMED = 10  # names of sub-folders in a remark


class Root(NamedTuple):
    """A folder that is scanned.

    Attributes
    ----------
    id : int
    folder : Path
    options : dict
        "modality": its modality; "tags": source of its tags; "metadata": hash of the table that was read last;
        "other_files": numbers of files of other kinds by ending;
        "tables": number of tables in sub-folders that were reported as unread; "not_labels": names of sub-folders, in
        lower case, that people said are not labels.
    """

    id: int
    folder: Path
    options: JsonObject


def list_roots(collection: Collection) -> list[Root]:
    """Return the folders of a collection, its own folder first."""
    query = select(roots.c.id, roots.c.options, tag_sources.c.source).outerjoin(tag_sources).order_by(roots.c.id)
    folders = collection.roots()
    return [
        Root(root_id, folders[root_id], (options or {}) | ({"tags": tags} if tags else {}))
        for root_id, options, tags in fetch_rows(collection.engine, query.where(roots.c.path != WEB_ROOT))
    ]


def read_modality(collection: Collection) -> str | None:
    """Return "pictures", "sounds" or "documents"; None before any file was found."""
    return next((root.options["modality"] for root in list_roots(collection) if "modality" in root.options), None)


def save_root_options(connection: Connection, root_id: int, options: JsonObject) -> None:
    """Save the scan options of a root; an existing source of tags stays (see `change_tag_source`)."""
    stored = {name: value for name, value in options.items() if name != "tags"}
    connection.execute(update(roots).where(roots.c.id == root_id).values(options=stored))
    choice = connection.execute(select(tag_sources.c.id).where(tag_sources.c.root_id == root_id)).first()
    if choice is None and "tags" in options:
        connection.execute(insert(tag_sources).values(root_id=root_id, source=options["tags"]))


def change_tag_source(change: JournalWriter, root_id: int, tags: str) -> None:
    """Change the source of tags of a root; an undo restores it."""
    choice_ids = change.connection.scalars(select(tag_sources.c.id).where(tag_sources.c.root_id == root_id))
    change.update(tag_sources, {choice_id: {"source": tags} for choice_id in choice_ids})


def check_folders(collection: Collection, paths: Iterable[Path]) -> list[Path]:
    """Return the new folders among `paths`; files must lie in folders of the collection.

    Raises
    ------
    InputError
        A path does not exist, lies in a folder of the collection or contains one, or a file lies outside.
    """
    scanned, new_folders = [root.folder for root in list_roots(collection)], list[Path]()
    for path in paths:
        folder = _check_folder(collection, path, [*scanned, *new_folders])
        new_folders += [] if folder is None else [folder]
    return new_folders


def _check_folder(collection: Collection, path: Path, scanned: Sequence[Path]) -> Path | None:
    try:
        folder = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"there is no file or folder {format_path(path)}; check the name") from error
    require(str(folder) == format_path(folder), f"the name of {format_path(folder)} is not UTF-8; rename the folder")
    enclosing = next((root for root in scanned if folder.is_relative_to(root)), None)
    if not folder.is_dir():
        if enclosing is None:
            raise InputError(f"{folder} is in no folder of the collection; add the folder that it lies in")
        if any(part.startswith(".") for part in folder.relative_to(enclosing).parts):
            raise InputError(f"{folder} is hidden (as {PLACE} is), and what is hidden is not scanned; move it")
        return None
    if enclosing is not None:
        fact = f"{folder} {'is' if enclosing == folder else 'lies in ' + str(enclosing) + ', which is'} scanned already"
        raise InputError(f"{fact}; run: {format_step('scan', collection.folder)}")
    nested = next((root for root in scanned if root.is_relative_to(folder)), None)
    require(nested is None, f"{folder} holds {nested}, which is scanned already; give folders that lie beside it")
    return folder


def add_root(collection: Collection, folder: Path, *, by: str) -> int:
    """Add a folder that `check_folders` returned to the collection; return its id."""
    with begin_entry(collection.engine, by, "add", f"added the folder {folder}", always=True) as change:
        if change.connection.execute(select(roots.c.id).where(roots.c.path == str(folder))).first() is not None:
            raise InputError(f"{folder} is scanned already; run: {format_step('scan', collection.folder)}")
        primary_key = change.connection.execute(insert(roots).values(path=str(folder))).inserted_primary_key
    return int(primary_key[0])  # type: ignore[index]  # it has one


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

    by: str = "none"
    inside: bool = False
    labels_of: Callable[[str], tuple[str, ...]] = lambda _: ()
    metadata: str | None = None
    must_reread: bool = False


class RootContents(NamedTuple):
    """Files of a root and their source of tags.

    Attributes
    ----------
    root : Root
    options : dict
        Scan options from now on, as `Root.options`.
    files : dict
        Size and time by path in the root.
    unreadable_folders : tuple of str
        Folders that could not be read; items in them do not count as missing.
    tag_source : TagSource
    unreachable_reason : str
        Why the root could not be read; empty if it was.
    sidecars : dict
        Stamp of the sidecar by path of a picture, if tags are inside the files.
    notes : tuple of str
        Remarks for people on the source of tags.
    """

    root: Root
    options: JsonObject
    files: dict[str, FileStat] = {}  # noqa: RUF012 - never changed
    unreadable_folders: tuple[str, ...] = ()
    tag_source: TagSource = TagSource()
    unreachable_reason: str = ""
    sidecars: dict[str, str] = {}  # noqa: RUF012 - never changed
    notes: tuple[str, ...] = ()

    def can_find(self, name: str) -> bool:
        """Return True if a file of this name would have been found if it existed."""
        return not (self.unreachable_reason or name.startswith(self.unreadable_folders))


def discover_roots(
    collection: Collection | None, folders: Sequence[Path], tags: TagChoice | None, rejects: Rejects, progress: Progress
) -> list[RootContents]:
    """Discover the files of a collection, if there is one, and of folders about to join or become it.

    An unknown modality is taken from the first root with files.

    Raises
    ------
    InputError
        As `discover_root`.
    """
    roots = [] if collection is None else list_roots(collection)
    modality, all_contents = None if collection is None else read_modality(collection), []
    with progress.stage("finding files", None, "files") as stage:
        for root in (*roots, *(Root(0, folder.resolve(), {}) for folder in folders)):
            contents = discover_root(root, modality, tags, rejects)
            modality = modality or contents.options.get("modality")
            stage.advance(len(contents.files))
            all_contents.append(contents)
    return all_contents


def discover_root(root: Root, modality_name: str | None, tags: TagChoice | None, rejects: Rejects) -> RootContents:
    """Discover the files of one root.

    Raises
    ------
    InputError
        Its table of tags is unusable, or is required and missing.
    """
    folder_rejects = Rejects(most=10**7)
    try:
        expected = parse_modality(modality_name) if modality_name else None
        modality, paths, endings = find_files(root.folder, folder_rejects, expected)
    except InputError as error:
        return RootContents(root, root.options, unreachable_reason=str(error))
    listed = folder_rejects.listed
    unreadable_folders = tuple(f"{folder}/" for folder, reason, _ in listed if reason == UNREADABLE_FOLDER)
    rejects.add_all(folder_rejects)
    stats = {name: stat for name, path in paths.items() if (stat := read_file_stat(path)) is not None}
    if not stats:
        return RootContents(root, root.options, unreadable_folders=unreadable_folders)
    choice, note = _choose_tag_source(root, tags, stats, modality)
    tag_source = _make_tag_source(root, choice, stats, modality, rejects)
    if tags == "metadata" and tag_source.metadata is None:
        raise InputError(f"{root.folder} has no metadata.csv or metadata.jsonl; write one, or leave `tags` out")
    options: JsonObject = {**root.options, "modality": modality.name, "tags": choice}
    if tag_source.metadata is not None:
        options["metadata"] = tag_source.metadata
    if tag_source.must_reread:
        options["must_reread"] = True  # until the scan is done
    notes = [note]
    if endings != root.options.get("other_files", {}):
        options["other_files"] = dict(endings)
        notes.append(format_other_files(root.folder, endings))
    may_have_sidecars = modality is PICTURES and (tag_source.inside or tag_source.metadata)
    sidecars = _stamp_sidecars(root.folder, stats) if may_have_sidecars else {}
    if not tag_source.inside:
        notes.append(_note_ignored_sidecars(root.folder, len(sidecars)))
        sidecars = {}
    if is_chosen := tags is not None or "tags" not in root.options:
        notes += list_tool_notes(root.folder)
    notes += _note_tag_names(root, choice, stats, is_chosen=is_chosen)
    tables = _list_unread_tables(root.folder, choice, stats)
    if tags is not None or len(tables) != root.options.get("tables", 0):
        options["tables"] = len(tables)
        notes.append(_note_unread_tables(root.folder, tables))
    return RootContents(root, options, stats, unreadable_folders, tag_source, "", sidecars, tuple(filter(None, notes)))


def _note_tag_names(root: Root, choice: str, files: dict[str, FileStat], *, is_chosen: bool) -> Iterator[str]:
    """Yield remarks on names of sub-folders that are not tags, if this scan chooses the source of tags."""
    labels = FolderLabels(files, root.folder.name)
    if is_chosen and choice == "metadata" and labels.can_distinguish and not media_folder.find_split_sides(files):
        n = len(_list_subfolders(files))
        names = "the name of 1 sub-folder is not a tag" if n == 1 else f"the names of {n:,} sub-folders are not tags"
        yield f"in {root.folder} {names}, since a table says the tags (`tags='folders'` takes these names)"
    if is_chosen and choice == "folders" and (non_label_names := labels.list_other_names()):
        n_more = len(non_label_names) - _N_NAMED
        names = ", ".join(non_label_names[:_N_NAMED]) + (f" and {n_more:,} more" if n_more > 0 else "")
        yield f"in {root.folder} these names of sub-folders are not labels: {names}"


def _note_ignored_sidecars(folder: Path, n: int) -> str:
    count = "1 picture has" if n == 1 else f"{n:,} pictures have"
    source = "since a table says the tags (`tags='xmp'` reads sidecars)"
    return f"in {folder} {count} a sidecar (.xmp) that is not read, {source}" if n else ""


def _list_unread_tables(folder: Path, choice: str, files: dict[str, FileStat]) -> list[Path]:
    """Return the tables of tags in sub-folders, unless these tables are the source of tags."""
    if choice == "metadata" and media_folder.find_metadata(folder) is None:
        return []
    paths = (folder / name / table for name in _list_subfolders(files) for table in media_folder.NAMES)
    return [path for path in paths if is_regular_file(path)]


def _note_unread_tables(folder: Path, tables: Sequence[Path]) -> str:
    if not tables:
        return ""
    count = "1 table of tags is" if len(tables) == 1 else f"{len(tables):,} tables of tags are"
    remedy = f"to take one over: `collection.import_(DIR, {format_path(tables[0])!r})`"
    return f"in sub-folders of {folder} {count} not read; {remedy}"


def _list_subfolders(files: Iterable[str]) -> list[str]:
    return sorted({name.rpartition("/")[0] for name in files} - {""})


def count_folder_labels(contents: RootContents) -> Counter[str]:
    """Return the number of files of each label that a name of a sub-folder gives."""
    if contents.tag_source.by != "folder":
        return Counter()
    excluded = set(contents.options.get("not_labels", ()))
    names = Counter(label for name in contents.files for label in contents.tag_source.labels_of(name))
    return Counter({name: n for name, n in names.items() if name.casefold() not in excluded})


def add_excluded_names(contents: RootContents, names: Iterable[str]) -> RootContents:
    """Return contents of which these names of sub-folders are not labels, from now on."""
    earlier_names = contents.options.get("not_labels", ())
    excluded = sorted({*earlier_names, *(normalise_label_name(name).casefold() for name in names)})
    return contents._replace(options={**contents.options, "not_labels": excluded, "must_reread": True})


def _stamp_sidecars(folder: Path, files: Iterable[str]) -> dict[str, str]:
    """Return "name:size:time" of the sidecars by picture; folders without sidecars cost one look."""
    stamps: dict[str, str] = {}
    subfolders = {name.rpartition("/")[0] for name in files}
    with_sidecars = {name for name in subfolders if any((folder / name).glob("*.[xX][mM][pP]"))}
    for name in files:
        if name.rpartition("/")[0] in with_sidecars:
            path = find_sidecar(folder / name)
            with suppress(OSError):
                if path is not None:
                    stat, has_full_name = os.lstat(path), fold_path(path.stem) == fold_path(name.rpartition("/")[2])
                    stamps[name] = f"{int(not has_full_name)}:{stat.st_size}:{stat.st_mtime_ns}"
    return stamps


def _choose_tag_source(
    root: Root, tags: TagChoice | None, files: dict[str, FileStat], modality: Modality
) -> tuple[str, str]:
    """Choose the source of tags and a remark on it; the meaning of "auto" stays as first chosen."""
    if tags is None and "tags" in root.options:
        return str(root.options["tags"]), ""
    if tags is not None and tags != "auto":
        owner = {"xmp": "pictures", "tags": "sounds"}.get(tags, modality.name)
        if owner != modality.name:
            statement = f"{root.folder} holds {modality.name}, and only {owner} have {tags!r}"
            raise InputError(f"{statement}; leave `tags` out, or say `tags={modality.label_source!r}`")
        return tags, ""
    return media_folder.choose_label_source(root.folder, files, modality)


def _make_tag_source(
    root: Root, choice: str, files: dict[str, FileStat], modality: Modality, rejects: Rejects
) -> TagSource:
    is_changed = root.options.get("tags", choice) != choice or root.options.get("must_reread", False)
    if choice == "none":
        return TagSource()
    if choice == "metadata":
        return _make_table_source(root, files, rejects, is_changed=is_changed)
    if choice == modality.label_source:
        return TagSource(choice, inside=True, must_reread=is_changed)
    labeller = media_folder.make_labeller(root.folder, files, choice, modality)
    return TagSource(
        "folder", False, lambda name: media_folder.normalise_labels(labeller(name, Path(name))), must_reread=is_changed
    )


def _make_table_source(root: Root, files: dict[str, FileStat], rejects: Rejects, *, is_changed: bool) -> TagSource:
    tables = media_folder.find_metadata_files(root.folder, files)
    if not tables:
        return TagSource()
    digests = []
    for table in tables.values():
        with explain_input_errors(table), open_input(table) as file:
            digests.append(hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest())
    digest = " ".join(digests) if len(digests) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()[:32]
    labels: dict[str, dict[str, None]] = {}
    for row in media_folder.read_metadata_files(tables, files, ReadOptions(rejects)):
        with rejects.catch(row.where):
            name = normalise_relative_path(row.file_name)
            labels.setdefault(name, {}).update(dict.fromkeys(media_folder.normalise_labels(row.labels)))
            if name not in files:
                raise RowError("labels without a file", name)
    must_reread = is_changed or root.options.get("metadata", digest) != digest
    return TagSource("metadata", False, lambda name: tuple(labels.get(name, ())), digest, must_reread)
