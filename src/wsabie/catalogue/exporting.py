"""The tags of a collection written to files; its pictures stay as they are unless they are asked to be written to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from sqlalchemy import Connection, select

from wsabie.base.errors import InputError
from wsabie.base.progress import SILENT, Progress, Stage
from wsabie.catalogue.choosing import Choice, chosen
from wsabie.catalogue.collection import WEB, Collection
from wsabie.catalogue.connection import refuse_read_only
from wsabie.catalogue.database import reading
from wsabie.catalogue.formats import tables
from wsabie.catalogue.formats.coco import Category, write_coco
from wsabie.catalogue.formats.image_folder import write_image_folder
from wsabie.catalogue.formats.pictures import How, Names, original, put
from wsabie.catalogue.formats.record import Tag
from wsabie.catalogue.tables import labels
from wsabie.storage.atomic import UnwritableError, new_folder, try_writing
from wsabie.storage.outputs import refuse_unwritable
from wsabie.storage.rejects import Rejects

Kind = Literal["csv", "jsonl", "coco", "imagefolder", "xmp"]
ENDINGS: dict[str, Kind] = {".csv": "csv", ".jsonl": "jsonl", ".json": "coco"}
"""What a file is by the ending of its name."""


class Exported(NamedTuple):
    """What was written, and where; `out` is None where it was written to the pictures themselves."""

    out: str | None
    kind: Kind
    tags: int
    files: int
    skipped: int


def kind_of(out: Path) -> Kind:
    """The format of a file by its name.

    Raises
    ------
    InputError
        The name tells none.
    """
    kind = ENDINGS.get(out.suffix.lower())
    if kind is None:
        raise InputError(f"the name {out} does not tell a format; end it in .csv, .jsonl or .json (COCO), or give --as")
    return kind


def export_tags(
    collection: Collection,
    out: Path,
    *,
    kind: Kind | None = None,
    choice: Choice | None = None,
    pictures: How | None = None,
    overwrite: bool = False,
    rejects: Rejects | None = None,
    progress: Progress = SILENT,
) -> Exported:
    """Write tags to a file or folder.

    Parameters
    ----------
    collection : Collection
    out : Path
        A file; of "imagefolder" and "xmp" a folder that is new or empty.
    kind : {"csv", "jsonl", "coco", "imagefolder", "xmp"} or None
        None: by the ending of its name. "xmp" are sidecars under the paths of the pictures; see `write_to_pictures`.
    choice : Choice or None
        None: what is decided, or what is accepted in formats that know no more.
    pictures : {"copy", "hardlink", "symlink"} or None
        What is done with pictures in "imagefolder" (None: they are copied) and "coco" (None: nothing; otherwise they
        lie in the folder `images` beside the file).
    overwrite : bool
        Whether a file that is an earlier export may be replaced; no other file ever is.
    rejects : Rejects or None
        Lists tags and items that could not be written.
    progress : Progress

    Raises
    ------
    InputError
        The format cannot be told or cannot hold what is asked for, a label is unknown, the folder holds no items, or
        the place cannot be written, holds a file already, lies in a folder that is not there, or among the pictures.
    """
    kind, choice = kind or kind_of(out), choice or Choice()
    rejects = Rejects() if rejects is None else rejects
    _refuse_choice(kind, choice, pictures)
    _refuse_place(collection, out, kind, pictures, overwrite)
    n_files = 1
    only_fitting = kind not in ("csv", "jsonl")
    with reading(collection.engine) as connection, progress.stage("exporting", None, "tags") as stage:
        tags = _counted(chosen(connection, choice, only_fitting=only_fitting), stage)
        if kind == "csv":
            n = tables.write_csv(tags, out)
        elif kind == "jsonl":
            n = tables.write_jsonl(tags, out)
        elif kind == "coco":
            with _draft_of(_picture_folder(out)) if pictures else nullcontext() as folder:  # takes its place last
                n = write_coco(tags, out, _categories(connection), _namer(collection, out, folder, pictures), rejects)
        else:
            with _draft_of(out) as folder:
                n, n_files = _fill(folder, kind, tags, collection, pictures or "copy", rejects)
    return Exported(str(out), kind, n, n_files, len(rejects))


@contextmanager
def _draft_of(out: Path) -> Iterator[Path]:
    """Yield a draft of a new folder; what cannot be written there is told of the folder, and not of its draft."""
    with new_folder(out) as draft:
        try:
            yield draft
        except UnwritableError as error:
            raise error.__cause__ or error from None


def _fill(
    folder: Path, kind: Kind, tags: Iterator[Tag], collection: Collection, pictures: How, rejects: Rejects
) -> tuple[int, int]:
    """Write an ImageFolder or sidecars; the number of tags and of files."""
    if kind == "imagefolder":
        return write_image_folder(tags, folder, folder=collection.folder, how=pictures, rejects=rejects)
    from wsabie.catalogue.formats.sidecars import write_sidecars

    names = Names()
    return write_sidecars(tags, lambda tag: folder / names.give(tag), rejects=rejects)


def write_to_pictures(
    collection: Collection,
    *,
    into: bool = False,
    choice: Choice | None = None,
    rejects: Rejects | None = None,
    progress: Progress = SILENT,
) -> Exported:
    """Write accepted tags as XMP to where the pictures lie: beside them, or into JPEG, PNG and WebP files.

    Tags that are there already stay, but for those that are rejected in the catalogue. Files that say so already are
    left as they are. Drafts that killed commands left there are removed first.

    Parameters
    ----------
    collection : Collection
    into : bool
        Into the pictures, and not into sidecars beside them.
    choice : Choice or None
    rejects : Rejects or None
        Lists pictures that are not there or cannot be written.
    progress : Progress

    Raises
    ------
    InputError
        A label is unknown, the folder holds no items, or the collection's own folder cannot be written.
    """
    from wsabie.catalogue.drafts import note_drafts, remove_drafts
    from wsabie.catalogue.formats.sidecars import write_embedded_tags, write_sidecars

    choice, rejects = choice or Choice(), Rejects() if rejects is None else rejects
    _refuse_choice("xmp", choice, None)
    choice = replace(choice, state=None) if choice.state == "accepted" else choice  # what is rejected is taken away
    write = write_embedded_tags if into else write_sidecars
    refuse_read_only(collection.folder, "write the tags elsewhere with --out")
    remove_drafts(collection.place, rejects)
    with (
        note_drafts(collection.place) as note,
        reading(collection.engine) as connection,
        progress.stage("exporting", None, "tags") as stage,
    ):
        tags = _counted(chosen(connection, choice), stage)
        n, n_files = write(tags, lambda tag: original(tag, collection.folder), rejects=rejects, note=note)
    return Exported(None, "xmp", n, n_files, len(rejects))


def _refuse_choice(kind: Kind, choice: Choice, pictures: How | None) -> None:
    if kind not in ("csv", "jsonl") and choice.state == "rejected":
        raise InputError(f"{kind} says which labels fit, not which do not; export rejected ones as csv or jsonl")
    if pictures is not None and kind not in ("coco", "imagefolder"):
        raise InputError(f"{kind} holds tags alone; leave --pictures out, or export as imagefolder or coco")


def _refuse_place(collection: Collection, out: Path, kind: Kind, pictures: How | None, overwrite: bool) -> None:
    """What could not be written, what would be lost, and copies of pictures that a scan would find again."""
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
        refuse_unwritable(("coco" if kind == "coco" else "tags", out), inputs=[collection.place])
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
    try_writing(folder)


def _is_current(folder: Path) -> bool:
    try:
        return folder.samefile(".")
    except OSError:  # the current folder was removed
        return False


def _counted(tags: Iterator[Tag], stage: Stage) -> Iterator[Tag]:
    for tag in tags:
        stage.advance()
        yield tag


def _namer(collection: Collection, out: Path, folder: Path | None, pictures: How | None) -> Callable[[Tag], str]:
    """What COCO calls a picture: an address, its path from the file's folder if it lies there, or as `Names` does."""
    names, here = Names(), out.resolve().parent

    def name_of(tag: Tag) -> str:
        if folder is not None and pictures is not None:
            picture, name = original(tag, collection.folder), names.give(tag)
            put(picture, folder / name, pictures)
            return name
        if tag.root == WEB:
            return tag.path
        name = names.give(tag)
        lies = collection.folder / tag.root / tag.path  # an absolute root takes the place of the folder
        return lies.relative_to(here).as_posix() if lies.is_relative_to(here) else name

    return name_of


def _categories(connection: Connection) -> list[Category]:
    c = labels.c
    query = select(c.id, c.name, c.parent_id).where(c.merged_into.is_(None)).order_by(c.id)
    rows = connection.execute(query).all()
    names = {row[0]: row[1] for row in rows}
    return [Category(number, name, names.get(parent)) for number, name, parent in rows]
