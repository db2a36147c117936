"""Regions of pictures in the XML of Pascal VOC: a file for each picture, with objects and their parts.

    JPEGImages/2007_000001.jpg
    Annotations/2007_000001.xml      <annotation><size><width>500</width><height>375</height></size>
                                       <object><name>person</name><bndbox><xmin>11</xmin> ... </bndbox>
                                         <part><name>head</name><bndbox> ... </bndbox></part></object></annotation>
    ImageSets/Main/train.txt         2007_000001

A box holds its last pixels, and pixels are counted from 1. Objects and parts are numbered from 1 as they stand in the
file, parts after their object: the head above is `2007_000001.jpg#2`. A `<size>` of 0 says nothing.
"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path, PurePosixPath

from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow, require_rows
from wsabie.sources.folders import relative_name
from wsabie.sources.marked import Marked, Picture, has_file, items_of_picture, require_region_kind
from wsabie.sources.media import PICTURES
from wsabie.sources.records import Item, ItemList
from wsabie.sources.regions import Box, Region
from wsabie.sources.safe_xml import Element, parse_xml
from wsabie.sources.text import head, numbered_lines, reading, shown
from wsabie.storage.rejects import Rejects

FOLDERS = IMAGES, ANNOTATIONS = ("JPEGImages", "Annotations")
SPLITS = Path("ImageSets") / "Main"
_LARGEST = 1 << 22  # bytes of a file of annotations
_LONGEST_LINE = 1 << 12


def is_voc(folder: Path) -> bool:
    """Whether a folder has both pictures and annotations where VOC has them."""
    return all((folder / name).is_dir() for name in FOLDERS) and any((folder / ANNOTATIONS).glob("*.xml"))


def read_voc(
    folder: Path, *, kind: str | None = None, split: str | None = None, rejects: Rejects | None = None
) -> ItemList:
    """List the regions of pictures with their labels; no picture is decoded.

    Parameters
    ----------
    folder : Path
        The one with `JPEGImages` and `Annotations`.
    kind : {"regions", "boxes", "pictures"} or None
        Objects and parts (the first two and None), or pictures with the labels of all of theirs.
    split : str or None
        Only the pictures that `ImageSets/Main/<split>.txt` names.
    rejects : Rejects or None
        Lists files that are no annotations, regions that cannot be used, pictures that are missing or have no region.

    Returns
    -------
    ItemList
        Of `Item`s whose `content` is a `Cutout`, of parts with the id of their object, and whose `group` is their
        picture.

    Raises
    ------
    InputError
        No folder of this form, no such split, or nothing usable.
    """
    rejects = Rejects() if rejects is None else rejects
    kind, wanted = require_region_kind(kind, folder), None if split is None else _members(folder, split)
    with reading(folder / ANNOTATIONS):
        files = sorted((folder / ANNOTATIONS).glob("*.xml"))
    if wanted is not None:
        for name in sorted(wanted - {file.stem for file in files}):
            rejects.add(shown(name), "picture without annotations", f"named by the split {split}")
        files = [file for file in files if file.stem in wanted]
    items: list[Item] = []
    for file in files:
        where = f"{ANNOTATIONS}/{shown(file.name)}"
        try:
            items += items_of_picture(_picture(folder, file, rejects), kind, rejects)
        except BadRow as bad:
            rejects.add(where, bad.reason, bad.detail)
        except InputError as error:
            if rejects.strict:
                raise
            rejects.add(where, "malformed annotations", str(error))
    require_rows(len(items), folder, rejects, "regions of pictures")
    return ItemList(folder, items, kind=kind)


def _members(folder: Path, split: str) -> set[str]:
    path = folder / SPLITS / f"{split}.txt"
    known = sorted(file.stem for file in (folder / SPLITS).glob("*.txt") if "_" not in file.stem)
    if split not in known:
        choose = f"choose one of {', '.join(known)}" if known else f"{SPLITS.as_posix()} has none"
        raise InputError(f"{shown(folder)} has no split {split!r}; {choose}")
    lines = (line.decode("utf-8", "backslashreplace").split() for _, line in numbered_lines(path, _LONGEST_LINE))
    return {words[0] for words in lines if words}


def _picture(folder: Path, file: Path, rejects: Rejects) -> Picture:
    content = head(file, _LARGEST + 1)
    if len(content) > _LARGEST:
        raise BadRow("annotations that are too long", f"more than {_LARGEST >> 20} MiB")
    root = parse_xml(content, shown(file))
    name, found = _found(folder, _text(root, "filename"), file.stem)
    marked = list(_marked(root, name, rejects))
    if not marked:
        raise BadRow("picture without regions", name)
    size = _child(root, "size")
    sides = [_number(_text(size, side)) for side in ("width", "height")] if size is not None else []
    frame = (sides[0], sides[1]) if sides and min(sides) >= 1 else None
    return Picture(name, found, frame, marked)


def _found(folder: Path, filename: str, stem: str) -> tuple[str, Path]:
    """(name, file) of a picture: as the annotations call it, or by the name of their own file."""
    named = [PurePosixPath(relative_name(filename)).name] if filename else []
    for name in [*named, *(stem + ending for ending in PICTURES.endings)]:
        if PurePosixPath(name).stem == stem and has_file(folder / IMAGES, name):
            return name, folder / IMAGES / name
    raise BadRow("missing picture", filename or stem)


def _marked(root: Element, name: str, rejects: Rejects) -> Iterator[Marked]:
    """Objects and, behind each, its parts; those without a box are listed."""
    numbers = count(1)
    for thing in root.children:
        if thing.local_name != "object":
            continue
        whole = str(next(numbers))
        parts = [(str(next(numbers)), part) for part in thing.children if part.local_name == "part"]
        for number, element in [(whole, thing), *parts]:
            try:
                yield Marked(number, _text(element, "name"), _region(element), None if element is thing else whole)
            except BadRow as bad:
                rejects.add(f"{name}#{number}", bad.reason, bad.detail)


def _region(element: Element) -> Region:
    box = _child(element, "bndbox")
    if box is None:
        raise BadRow("region without a box")
    left, top, right, bottom = (_number(_text(box, edge)) for edge in ("xmin", "ymin", "xmax", "ymax"))
    return Region(Box(left - 1, top - 1, right, bottom))


def _child(element: Element, name: str) -> Element | None:
    return next((child for child in element.children if child.local_name == name), None)


def _text(element: Element, name: str) -> str:
    child = _child(element, name)
    return "" if child is None else child.text.strip()


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError as error:
        raise BadRow("malformed region", repr(text)) from error
    if not -1e6 <= number <= 1e6:
        raise BadRow("malformed region", repr(text))
    return number
