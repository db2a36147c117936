"""Export the tags of a collection to files or, on request, into its pictures."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, partial
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

from sqlalchemy import Connection, Table, and_, func, literal, or_, select, true

from wsabie.collection.annotations.decisions import find_model_in_use, has_decision, require_model
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read, group_pairs
from wsabie.collection.db.tables import annotations, item_scores, items, labels, models, roots, suggestions, synonyms
from wsabie.collection.folder.collection import WEB_ROOT, Collection
from wsabie.collection.folder.collection_file import refuse_read_only
from wsabie.collection.folder.drafts import note_drafts, remove_collection_drafts
from wsabie.collection.interchange import picture_export
from wsabie.collection.interchange.coco_tags import write_coco
from wsabie.collection.interchange.tag_record import ENDINGS, ExportFormat, PlacementMode, StateFilter, Tag
from wsabie.collection.interchange.tag_tables import write_table
from wsabie.collection.labels import label_store
from wsabie.core.errors import InputError
from wsabie.core.execution import SILENT, Progress
from wsabie.core.json_conversion import JsonObject
from wsabie.io.tags.tag_writer import write_embedded, write_sidecar
from wsabie.storage.atomic_files import WriteError, check_writable, create_folder
from wsabie.storage.output_checks import check_output_paths
from wsabie.storage.rejects import Rejects

_LabelFacts: TypeAlias = tuple[str, str, str, tuple[str, ...], tuple[tuple[str, str], ...]]
_ROWS = 5000
_DEEPEST = 100  # ancestors of a label
TABLES = ("csv", "jsonl")


class TagSelection(NamedTuple):
    """Selection of the tags to export.

    Attributes
    ----------
    state : {"accepted", "rejected", "suggested", "all"} or None
        None selects the decided tags, or the accepted ones in formats that hold no others.
    labels : sequence of str
        Only these labels; empty selects all.
    folder : str or None
        Only items in or below this folder of their root.
    min_probability : float
        Lowest probability of suggestions.
    """

    state: StateFilter | None = None
    labels: Sequence[str] = ()
    folder: str | None = None
    min_probability: float = 0.0


def select_tags(connection: Connection, choice: TagSelection, *, only_fitting: bool = False) -> Iterator[Tag]:
    """Yield the selected tags item by item; `only_fitting` leaves out rejected ones.

    Raises
    ------
    InputError
        A label is unknown, or the folder holds no items.
    """
    label_ids = [label_store.find_label(connection, name) for name in choice.labels]
    where, look_up_label = _in_folder(connection, choice.folder), _make_label_lookup(connection)

    def stream(source: Table, query: tables.Query) -> Iterator[Tag]:
        query = query.where(where, source.c.label_id.in_(label_ids) if label_ids else true())
        for row in connection.execute(query, execution_options={"yield_per": _ROWS}):
            item_id, width, height, path, root, digest, label, *columns = row
            frame = (width, height) if width and height else None
            yield Tag(item_id, frame, path, root, digest, *look_up_label(label), *columns)

    streams = []
    if choice.state != "suggested":
        state = "accepted" if only_fitting and choice.state in (None, "all") else choice.state
        streams.append(stream(annotations, _select_decided(state)))
    if choice.state in ("suggested", "all"):
        model = require_model(connection) if choice.state == "suggested" else find_model_in_use(connection)
        streams.append(stream(suggestions, _select_suggested(model, choice.min_probability)))
    return merge(*streams, key=lambda tag: tag.item)


def _select_decided(state: StateFilter | None) -> tables.Query:
    a = annotations.c
    query = _select_tags(annotations, a.region, a.state, a.origin, a.by, a.at).order_by(a.region)
    return query if state in (None, "all") else query.where(a.state == state)


def _select_suggested(model: int | None, min_probability: float) -> tables.Query:
    s = suggestions.c
    at = func.coalesce(item_scores.c.scored_at, models.c.created_at)
    is_scored = and_(item_scores.c.model_id == s.model_id, item_scores.c.item_id == s.item_id)
    query = _select_tags(suggestions, literal("").label("region"), *map(literal, ("suggested", "model", "")), at)
    # suggestions of merged labels wait for the next inference
    query = query.outerjoin(item_scores, is_scored).join(labels, labels.c.id == s.label_id)
    query = query.where(s.model_id == model, s.probability >= min_probability, labels.c.merged_into.is_(None))
    return query.where(~has_decision())


def _select_tags(source: Table, *facts: tables.Expression) -> tables.Query:
    """Return the query for rows of annotations or suggestions, item by item, with these facts of each."""
    i, s = items.c, source.c
    query = select(i.id, i.width, i.height, i.path, roots.c.path, i.hash, s.label_id, *facts)
    query = query.add_columns(models.c.folder, models.c.created_at, s.score, s.probability)
    query = query.select_from(source.join(items).join(roots).outerjoin(models, models.c.id == s.model_id))
    return query.order_by(s.item_id, s.label_id)


def _in_folder(connection: Connection, folder: str | None) -> tables.Condition:
    """Return the condition that an item lies in or below a folder."""
    folder = (folder or "").strip("/")
    if folder in ("", "."):
        return true()
    c = items.c.folder
    where = or_(c == folder, and_(c >= f"{folder}/", c < f"{folder}0"))  # "0" comes after "/"
    if connection.execute(select(items.c.id).where(where).limit(1)).first() is None:
        raise InputError(f"there are no items in the folder {folder!r}; name it as it is called within its root")
    return where


def _make_label_lookup(connection: Connection) -> Callable[[int], _LabelFacts]:
    """Return the function from a label id to its name, language, synset, ancestors and synonyms."""
    c, s = labels.c, synonyms.c
    rows = {row[0]: row for row in connection.execute(select(c.id, c.name, c.language, c.wordnet, c.parent_id))}
    parents = {label_id: row[4] for label_id, row in rows.items()}
    names = connection.execute(select(s.label_id, s.name, s.language).order_by(s.id))
    other_names = group_pairs((label, (name, language)) for label, name, language in names)

    @cache
    def look_up(label_id: int) -> _LabelFacts:
        ancestors = [rows[label][1] for label in islice(label_store.iterate_ancestors(parents, label_id), _DEEPEST)]
        return (*rows[label_id][1:4], tuple(reversed(ancestors)), tuple(other_names[label_id]))

    return look_up


class ExportResult(NamedTuple):
    """Counts and place of an export; `out` is None if the tags went to the pictures themselves."""

    out: str | None
    kind: ExportFormat
    tags: int
    files: int
    skipped: int


def detect_tag_format(out: Path) -> ExportFormat:
    """Return the format of a file by its name.

    Raises
    ------
    InputError
        The suffix is unknown.
    """
    kind = ENDINGS.get(out.suffix.lower())
    if kind is None:
        raise InputError(f"the name {out} does not tell a format; end it in .csv, .jsonl or .json (COCO), or name one")
    return kind


def export_tags(
    collection: Collection,
    out: Path,
    *,
    kind: ExportFormat | None = None,
    choice: TagSelection | None = None,
    pictures: PlacementMode | None = None,
    overwrite: bool = False,
    rejects: Rejects | None = None,
    progress: Progress = SILENT,
) -> ExportResult:
    """Write tags to a file or folder.

    Parameters
    ----------
    collection : Collection
    out : Path
        File; for "imagefolder" and "xmp" a new or empty folder.
    kind : {"csv", "jsonl", "coco", "imagefolder", "xmp"} or None
        None chooses the format by the suffix. "xmp" writes sidecars under the paths of the pictures; see
        `write_to_pictures`.
    choice : TagSelection or None
        None selects the decided tags, or the accepted ones in formats that hold no others.
    pictures : {"copy", "hardlink", "symlink"} or None
        Treatment of pictures in "imagefolder" (None copies them) and "coco" (None leaves them out; otherwise they go
        to the folder `images` beside the file).
    overwrite : bool
        Replace an earlier export; other files are never replaced.
    rejects : Rejects or None
        Collects tags and items that could not be written.
    progress : Progress

    Raises
    ------
    InputError
        The format is unknown or cannot hold the selection, a label is unknown, the folder holds no items, or the place
        cannot be written, holds a file already, lies in a missing folder or among the pictures.
    """
    kind, choice = kind or detect_tag_format(out), choice or TagSelection()
    rejects = Rejects() if rejects is None else rejects
    _refuse_choice(kind, choice, pictures)
    _refuse_output(collection, out, kind, pictures, overwrite)
    n_files = 1
    with _open_tags(collection, choice, progress, only_fitting=kind not in TABLES) as (connection, tags):
        if kind in TABLES:
            n = write_table(tags, out, is_json=kind == "jsonl")
        elif kind == "coco":
            with _draft_folder(_picture_folder(out)) if pictures else nullcontext() as folder:  # takes its place last
                namer = _make_namer(collection, out, folder, pictures)
                n = write_coco(tags, out, _read_categories(connection), namer, rejects)
        else:
            with _draft_folder(out) as folder:
                if kind == "imagefolder":
                    mode = pictures or "copy"
                    n, n_files = picture_export.write_image_folder(tags, folder, collection.folder, mode, rejects)
                else:
                    names = picture_export.ExportNames()
                    n, n_files = picture_export.write_xmp(
                        tags, lambda tag: folder / names.choose_name(tag), write_sidecar, rejects=rejects
                    )
    return ExportResult(str(out), kind, n, n_files, len(rejects))


@contextmanager
def _open_tags(
    collection: Collection, choice: TagSelection, progress: Progress, *, only_fitting: bool = False
) -> Iterator[tuple[Connection, Iterator[Tag]]]:
    """Yield a connection and the selected tags, whose progress is shown."""
    with begin_read(collection.engine) as connection, progress.stage("exporting", None, "tags") as stage:
        tags = select_tags(connection, choice, only_fitting=only_fitting)
        yield connection, (stage.advance() or tag for tag in tags)  # type: ignore[func-returns-value]  # None


@contextmanager
def _draft_folder(out: Path) -> Iterator[Path]:
    """Yield a draft of a new folder; write errors name the folder, not the draft."""
    with create_folder(out) as draft:
        try:
            yield draft
        except WriteError as error:
            raise error.__cause__ or error from None


def write_to_pictures(
    collection: Collection,
    *,
    embed: bool = False,
    choice: TagSelection | None = None,
    rejects: Rejects | None = None,
    progress: Progress = SILENT,
) -> ExportResult:
    """Write accepted tags as XMP beside the pictures or into JPEG, PNG and WebP files.

    Existing tags stay unless the database rejects them. Files that hold the tags already are left alone. Drafts of
    killed commands are removed first.

    Parameters
    ----------
    collection : Collection
    embed : bool
        Write into the pictures instead of sidecars.
    choice : TagSelection or None
    rejects : Rejects or None
        Collects pictures that are missing or cannot be written.
    progress : Progress

    Raises
    ------
    InputError
        A label is unknown, the folder holds no items, or the collection's folder cannot be written.
    """
    choice, rejects = choice or TagSelection(), Rejects() if rejects is None else rejects
    _refuse_choice("xmp", choice, None)
    choice = choice._replace(state=None) if choice.state == "accepted" else choice  # rejected tags are removed too
    write = write_embedded if embed else write_sidecar
    refuse_read_only(collection.folder, "write the tags elsewhere")
    remove_collection_drafts(collection.place, rejects)
    with note_drafts(collection.place) as note, _open_tags(collection, choice, progress) as (_, tags):
        find = partial(picture_export.find_original, folder=collection.folder)
        n, n_files = picture_export.write_xmp(tags, find, write, rejects, note)
    return ExportResult(None, "xmp", n, n_files, len(rejects))


def _refuse_choice(kind: ExportFormat, choice: TagSelection, pictures: PlacementMode | None) -> None:
    if kind not in TABLES and choice.state == "rejected":
        raise InputError(f"{kind} says which labels fit, not which do not; export rejected ones as csv or jsonl")
    if pictures is not None and kind not in ("coco", "imagefolder"):
        raise InputError(f"{kind} holds tags alone; leave the pictures out, or export as imagefolder or coco")


def _refuse_output(
    collection: Collection, out: Path, kind: ExportFormat, pictures: PlacementMode | None, overwrite: bool
) -> None:
    """Raise if the place cannot be written, holds a file, or would be scanned as new items."""
    if not out.parent.is_dir():
        raise InputError(f"cannot write {out}: there is no folder {out.parent}; check the name, or make the folder")
    if pictures or kind == "imagefolder":
        folder = out if kind == "imagefolder" else _picture_folder(out)
        for root in collection.roots().values():
            if folder.resolve().is_relative_to(root.resolve()):
                raise InputError(f"{folder} lies in {root}, where copies would be new items; choose another place")
        _refuse_full(folder)
    elif kind == "xmp":
        _refuse_full(out)
    if kind == "coco" or kind in TABLES:
        check_output_paths(("coco" if kind == "coco" else "tags", out), inputs=[collection.place])
        if not overwrite and out.exists() and out.stat().st_size:
            raise InputError(f"{out} is there already and would be lost; give another name, or allow to overwrite it")


def _picture_folder(out: Path) -> Path:
    """Return the folder of the pictures of a COCO file."""
    return out.parent / "images"


def _refuse_full(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there and not empty; give a new folder, or remove it")
    with suppress(FileNotFoundError):  # the current folder was removed
        if folder.is_dir() and (folder.is_symlink() or folder.is_mount() or folder.samefile(".")):
            raise InputError(f"{folder} is a link, a disk or the current folder; give the name of a new folder")
    check_writable(folder)


def _make_namer(
    collection: Collection, out: Path, folder: Path | None, pictures: PlacementMode | None
) -> Callable[[Tag], str]:
    """Return the function that names a picture in COCO: by address, relative path or export name."""
    names, out_folder = picture_export.ExportNames(), out.resolve().parent

    def choose_name(tag: Tag) -> str:
        if folder is not None and pictures is not None:
            picture, name = picture_export.find_original(tag, collection.folder), names.choose_name(tag)
            picture_export.place_picture(picture, folder / name, pictures)
            return name
        if tag.root == WEB_ROOT:
            return tag.path
        name = names.choose_name(tag)
        picture_path = collection.folder / tag.root / tag.path  # an absolute root takes the place of the folder
        return picture_path.relative_to(out_folder).as_posix() if picture_path.is_relative_to(out_folder) else name

    return choose_name


def _read_categories(connection: Connection) -> list[JsonObject]:
    parents = labels.alias("parents")
    is_parent = and_(parents.c.id == labels.c.parent_id, parents.c.merged_into.is_(None))
    query = select(labels.c.id, labels.c.name, parents.c.name.label("supercategory")).outerjoin(parents, is_parent)
    query = query.where(labels.c.merged_into.is_(None)).order_by(labels.c.id)
    return [{name: value for name, value in row.items() if value} for row in connection.execute(query).mappings()]
