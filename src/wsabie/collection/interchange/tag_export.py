"""Export the tags of a collection to files or, on request, into its pictures."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from heapq import merge
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from sqlalchemy import Connection, Select, and_, exists, func, literal, or_, select, true

from wsabie.collection.annotations.decisions import find_model_in_use, make_no_model_error
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.tables import annotations, item_scores, items, labels, models, roots, suggestions, synonyms
from wsabie.collection.folder.collection import WEB_ROOT, Collection
from wsabie.collection.folder.connection import refuse_read_only
from wsabie.collection.interchange import csv_jsonl
from wsabie.collection.interchange.coco import Category, write_coco
from wsabie.collection.interchange.image_folder import (
    ExportNames,
    PlacementMode,
    find_original,
    place_picture,
    write_image_folder,
)
from wsabie.collection.interchange.tag_record import Tag
from wsabie.collection.labels import label_store
from wsabie.core.errors import InputError
from wsabie.core.progress import SILENT, Progress, Stage
from wsabie.storage.atomic_files import WriteError, check_writable, create_folder
from wsabie.storage.output_checks import check_output_paths
from wsabie.storage.rejects import Rejects

StateFilter = Literal["accepted", "rejected", "suggested", "all"]

_ROWS = 5000
_DEEPEST = 100  # ancestors of a label


@dataclass(frozen=True)
class TagSelection:
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
    numbers = [label_store.find_label(connection, name) for name in choice.labels]
    where = _in_folder(connection, choice.folder)
    names = _LabelTable(connection)
    parts = []
    states = _list_states(choice.state, only_fitting)
    if states:
        parts.append(_stream_tags(connection, _select_decided(states, numbers, where), names))
    if choice.state in ("suggested", "all"):
        model = find_model_in_use(connection)
        if model is None and choice.state == "suggested":
            raise make_no_model_error(connection)
        query = _select_suggested(model, numbers, where, choice.min_probability)
        parts.append(_stream_tags(connection, query, names))
    return merge(*parts, key=lambda tag: tag.item)


def _list_states(state: StateFilter | None, only_fitting: bool) -> list[str]:
    if state in ("accepted", "rejected"):
        return [state]
    if state == "suggested":
        return []
    return ["accepted"] if only_fitting else ["accepted", "rejected"]


_PLACE = (items.c.id, items.c.width, items.c.height, items.c.path, roots.c.path.label("root"), items.c.hash)


def _select_decided(states: list[str], numbers: list[int], where: Any) -> Select[Any]:
    a = annotations.c
    query = (
        select(
            *_PLACE,
            *(a.label_id, a.region, a.state, a.origin, a.by, a.at),
            *(models.c.folder.label("model"), models.c.created_at.label("model_made"), a.score, a.probability),
        )
        .select_from(annotations)
        .join(items, items.c.id == a.item_id)
        .join(roots, roots.c.id == items.c.root_id)
        .outerjoin(models, models.c.id == a.model_id)
        .where(where)
        .order_by(a.item_id, a.label_id, a.region)
    )
    query = query.where(a.state == states[0]) if len(states) == 1 else query
    return query.where(a.label_id.in_(numbers)) if numbers else query


def _select_suggested(model: int | None, numbers: list[int], where: Any, min_probability: float) -> Select[Any]:
    s, a = suggestions.c, annotations.c
    has_decision = exists().where(a.item_id == s.item_id, a.label_id == s.label_id, a.region == "")
    query = (
        select(
            *_PLACE,
            *(s.label_id, literal("").label("region"), literal("suggested").label("state")),
            *(
                literal("model").label("origin"),
                literal("").label("by"),
                func.coalesce(item_scores.c.scored_at, models.c.created_at).label("at"),
            ),
            *(models.c.folder.label("model"), models.c.created_at.label("model_made"), s.score, s.probability),
        )
        .select_from(suggestions)
        .join(items, items.c.id == s.item_id)
        .join(roots, roots.c.id == items.c.root_id)
        .join(models, models.c.id == s.model_id)
        .outerjoin(item_scores, and_(item_scores.c.model_id == s.model_id, item_scores.c.item_id == s.item_id))
        .join(labels, labels.c.id == s.label_id)  # suggestions of merged labels wait for the next inference
        .where(
            where, s.model_id == model, s.probability >= min_probability, ~has_decision, labels.c.merged_into.is_(None)
        )
        .order_by(s.item_id, s.label_id)
    )
    return query.where(s.label_id.in_(numbers)) if numbers else query


def _stream_tags(connection: Connection, query: Select[Any], names: "_LabelTable") -> Iterator[Tag]:
    for row in connection.execute(query, execution_options={"yield_per": _ROWS}):
        number, width, height, path, root, digest, label, *columns = row
        facts = names.get_facts(label)
        frame = (width, height) if width and height else None
        yield Tag(number, frame, path, root, digest, *facts, *columns)


def _in_folder(connection: Connection, folder: str | None) -> Any:
    """Return the condition that an item lies in or below a folder."""
    folder = (folder or "").strip("/")
    if folder in ("", "."):
        return true()
    c = items.c.folder
    where = or_(c == folder, and_(c >= f"{folder}/", c < f"{folder}0"))  # "0" comes after "/"
    if connection.execute(select(items.c.id).where(where).limit(1)).first() is None:
        raise InputError(f"there are no items in the folder {folder!r}; name it as it is called within its root")
    return where


_LabelFacts: TypeAlias = tuple[str, str, str, tuple[str, ...], tuple[tuple[str, str], ...]]


class _LabelTable:
    """Names and relations of labels by id."""

    def __init__(self, connection: Connection) -> None:
        c, s = labels.c, synonyms.c
        query = select(c.id, c.name, c.language, c.wordnet, c.parent_id)
        self._labels = {row[0]: tuple(row[1:]) for row in connection.execute(query)}
        self._synonyms: dict[int, list[tuple[str, str]]] = {}
        for label, name, language in connection.execute(select(s.label_id, s.name, s.language).order_by(s.id)):
            self._synonyms.setdefault(label, []).append((name, language))
        self._facts: dict[int, _LabelFacts] = {}

    def get_facts(self, number: int) -> _LabelFacts:
        """Return the name, language, synset, ancestors and synonyms of a label."""
        if number not in self._facts:
            *columns, parent = self._labels[number]
            path: list[str] = []
            while parent is not None and len(path) < _DEEPEST:
                ancestor, *_, parent = self._labels[parent]
                path.insert(0, ancestor)
            self._facts[number] = (*columns, tuple(path), tuple(self._synonyms.get(number, ())))
        return self._facts[number]


ExportFormat = Literal["csv", "jsonl", "coco", "imagefolder", "xmp"]
ENDINGS: dict[str, ExportFormat] = {".csv": "csv", ".jsonl": "jsonl", ".json": "coco"}
"""Format of a file by its suffix."""


class ExportResult(NamedTuple):
    """Counts and place of an export; `out` is None if the tags went to the pictures themselves."""

    out: str | None
    kind: ExportFormat
    tags: int
    files: int
    skipped: int


def detect_format(out: Path) -> ExportFormat:
    """Return the format of a file by its name.

    Raises
    ------
    InputError
        The suffix is unknown.
    """
    kind = ENDINGS.get(out.suffix.lower())
    if kind is None:
        raise InputError(f"the name {out} does not tell a format; end it in .csv, .jsonl or .json (COCO), or give --as")
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
    kind, choice = kind or detect_format(out), choice or TagSelection()
    rejects = Rejects() if rejects is None else rejects
    _refuse_choice(kind, choice, pictures)
    _refuse_place(collection, out, kind, pictures, overwrite)
    n_files = 1
    only_fitting = kind not in ("csv", "jsonl")
    with begin_read(collection.engine) as connection, progress.stage("exporting", None, "tags") as stage:
        tags = _count_progress(select_tags(connection, choice, only_fitting=only_fitting), stage)
        if kind == "csv":
            n = csv_jsonl.write_csv(tags, out)
        elif kind == "jsonl":
            n = csv_jsonl.write_jsonl(tags, out)
        elif kind == "coco":
            with _draft_folder(_picture_folder(out)) if pictures else nullcontext() as folder:  # takes its place last
                n = write_coco(
                    tags, out, _read_categories(connection), _make_namer(collection, out, folder, pictures), rejects
                )
        else:
            with _draft_folder(out) as folder:
                n, n_files = _fill(folder, kind, tags, collection, pictures or "copy", rejects)
    return ExportResult(str(out), kind, n, n_files, len(rejects))


@contextmanager
def _draft_folder(out: Path) -> Iterator[Path]:
    """Yield a draft of a new folder; write errors name the folder, not the draft."""
    with create_folder(out) as draft:
        try:
            yield draft
        except WriteError as error:
            raise error.__cause__ or error from None


def _fill(
    folder: Path,
    kind: ExportFormat,
    tags: Iterator[Tag],
    collection: Collection,
    pictures: PlacementMode,
    rejects: Rejects,
) -> tuple[int, int]:
    """Write an ImageFolder or sidecars; return the numbers of tags and of files."""
    if kind == "imagefolder":
        return write_image_folder(tags, folder, folder=collection.folder, mode=pictures, rejects=rejects)
    from wsabie.collection.interchange.xmp import write_sidecars

    names = ExportNames()
    return write_sidecars(tags, lambda tag: folder / names.give(tag), rejects=rejects)


def write_to_pictures(
    collection: Collection,
    *,
    into: bool = False,
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
    into : bool
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
    from wsabie.collection.folder.drafts import note_drafts, remove_drafts
    from wsabie.collection.interchange.xmp import write_embedded_tags, write_sidecars

    choice, rejects = choice or TagSelection(), Rejects() if rejects is None else rejects
    _refuse_choice("xmp", choice, None)
    choice = replace(choice, state=None) if choice.state == "accepted" else choice  # rejected tags are removed too
    write = write_embedded_tags if into else write_sidecars
    refuse_read_only(collection.folder, "write the tags elsewhere with --out")
    remove_drafts(collection.place, rejects)
    with (
        note_drafts(collection.place) as note,
        begin_read(collection.engine) as connection,
        progress.stage("exporting", None, "tags") as stage,
    ):
        tags = _count_progress(select_tags(connection, choice), stage)
        n, n_files = write(tags, lambda tag: find_original(tag, collection.folder), rejects=rejects, note=note)
    return ExportResult(None, "xmp", n, n_files, len(rejects))


def _refuse_choice(kind: ExportFormat, choice: TagSelection, pictures: PlacementMode | None) -> None:
    if kind not in ("csv", "jsonl") and choice.state == "rejected":
        raise InputError(f"{kind} says which labels fit, not which do not; export rejected ones as csv or jsonl")
    if pictures is not None and kind not in ("coco", "imagefolder"):
        raise InputError(f"{kind} holds tags alone; leave --pictures out, or export as imagefolder or coco")


def _refuse_place(
    collection: Collection, out: Path, kind: ExportFormat, pictures: PlacementMode | None, overwrite: bool
) -> None:
    """Raise if the place cannot be written, holds a file, or would be scanned as new items."""
    if not out.parent.is_dir():
        raise InputError(f"cannot write {out}: there is no folder {out.parent}; check the name, or make the folder")
    if pictures or kind == "imagefolder":
        place = out if kind == "imagefolder" else _picture_folder(out)
        for root in collection.roots().values():
            if place.resolve().is_relative_to(root.resolve()):
                raise InputError(f"{place} lies in {root}, where copies would be new items; choose another place")
        _refuse_full(place)
    elif kind == "xmp":
        _refuse_full(out)
    if kind in ("csv", "jsonl", "coco"):
        check_output_paths(("coco" if kind == "coco" else "tags", out), inputs=[collection.place])
        if not overwrite and out.exists() and out.stat().st_size:
            raise InputError(
                f"{out} is there already and would be lost; give another name, or --overwrite to replace it"
            )


def _picture_folder(out: Path) -> Path:
    """Return the folder of the pictures of a COCO file."""
    return out.parent / "images"


def _refuse_full(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there and not empty; give a new folder, or remove it")
    if folder.is_dir() and (folder.is_symlink() or folder.is_mount() or _is_current(folder)):
        raise InputError(f"{folder} is a link, a disk or the current folder; give the name of a new folder")
    check_writable(folder)


def _is_current(folder: Path) -> bool:
    try:
        return folder.samefile(".")
    except OSError:  # the current folder was removed
        return False


def _count_progress(tags: Iterator[Tag], stage: Stage) -> Iterator[Tag]:
    for tag in tags:
        stage.advance()
        yield tag


def _make_namer(
    collection: Collection, out: Path, folder: Path | None, pictures: PlacementMode | None
) -> Callable[[Tag], str]:
    """Return the function that names a picture in COCO: by address, relative path or export name."""
    names, out_folder = ExportNames(), out.resolve().parent

    def name_of(tag: Tag) -> str:
        if folder is not None and pictures is not None:
            picture, name = find_original(tag, collection.folder), names.give(tag)
            place_picture(picture, folder / name, pictures)
            return name
        if tag.root == WEB_ROOT:
            return tag.path
        name = names.give(tag)
        picture_path = collection.folder / tag.root / tag.path  # an absolute root takes the place of the folder
        return picture_path.relative_to(out_folder).as_posix() if picture_path.is_relative_to(out_folder) else name

    return name_of


def _read_categories(connection: Connection) -> list[Category]:
    c = labels.c
    query = select(c.id, c.name, c.parent_id).where(c.merged_into.is_(None)).order_by(c.id)
    rows = connection.execute(query).all()
    names = {row[0]: row[1] for row in rows}
    return [Category(number, name, names.get(parent)) for number, name, parent in rows]
