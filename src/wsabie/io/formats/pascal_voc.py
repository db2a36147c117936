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
from contextlib import suppress
from itertools import count
from pathlib import Path, PurePosixPath, PureWindowsPath

from wsabie.core.errors import InputError
from wsabie.io.file_discovery import fold_path
from wsabie.io.file_matching import FileMatcher, find_local_file
from wsabie.io.formats.region_items import KINDS, RegionAnnotation, make_region_items
from wsabie.io.modalities import PICTURES
from wsabie.io.parsers.array_builders import require_rows
from wsabie.io.parsers.text_files import explain_input_errors, iterate_numbered_lines, read_head
from wsabie.io.parsers.xml_elements import XmlElement, parse_xml
from wsabie.io.records import Item, ItemList, require_kind
from wsabie.io.regions import Box, Frame, Region
from wsabie.storage.rejects import Rejects, RowError

FOLDERS = IMAGES, ANNOTATIONS = ("JPEGImages", "Annotations")
SPLITS = Path("ImageSets") / "Main"
_FILES = "*.[xX][mM][lL]"
_MAX_BYTES = 1 << 22  # bytes of a file of annotations
_MAX_LINE_BYTES = 1 << 12


def is_voc(folder: Path) -> bool:
    """Return True if a folder has both pictures and annotations where VOC has them."""
    return all((folder / name).is_dir() for name in FOLDERS) and any((folder / ANNOTATIONS).glob(_FILES))


def read_voc(folder: Path, *, kind: str | None = None, split: str | None = None, rejects: Rejects) -> ItemList:
    """List the regions of pictures with their labels; no picture is decoded.

    Parameters
    ----------
    folder : Path
        The one with `JPEGImages` and `Annotations`.
    kind : {"regions", "boxes", "pictures"} or None
        Objects and parts (the first two and None), or pictures with the labels of all of theirs.
    split : str or None
        Only the pictures that `ImageSets/Main/<split>.txt` names.
    rejects : Rejects
        Lists files that are not annotations, regions that cannot be used, pictures that are missing or have no region.

    Returns
    -------
    ItemList
        `Item`s whose `content` is a `RegionCrop`, of parts with the id of their object, and whose `group` is their
        picture.

    Raises
    ------
    InputError
        No folder of this form, no such split, or nothing usable.
    """
    kind, members = require_kind(kind, KINDS, folder), None if split is None else _read_members(folder, split)
    with explain_input_errors(folder / ANNOTATIONS):
        files = sorted((folder / ANNOTATIONS).glob(_FILES))
    if members is not None:
        for name in sorted(members - {file.stem for file in files}):
            rejects.add(name, "picture without annotations", f"named by the split {split}")
        files = [file for file in files if file.stem in members]
    items: list[Item] = []
    matcher = FileMatcher(path.name for path in (folder / IMAGES).iterdir())
    for file in files:
        where = f"{ANNOTATIONS}/{file.name}"
        with rejects.catch(where):
            try:
                items += make_region_items(*_read_picture(folder, matcher, file, kind, rejects), kind, rejects)
            except InputError as error:
                if rejects.strict:
                    raise
                rejects.add(where, "malformed annotations", str(error))
    require_rows(len(items), folder, rejects, "regions of pictures")
    return ItemList(folder, items, kind=kind)


def _read_members(folder: Path, split: str) -> set[str]:
    path = folder / SPLITS / f"{split}.txt"
    splits = sorted(file.stem for file in (folder / SPLITS).glob("*.txt") if "_" not in file.stem)
    if split not in splits:
        choose = f"choose one of {', '.join(splits)}" if splits else f"{SPLITS.as_posix()} has none"
        raise InputError(f"{folder} has no split {split!r}; {choose}")
    lines = (line.decode("utf-8", "backslashreplace") for _, line in iterate_numbered_lines(path, _MAX_LINE_BYTES))
    return {words[0] for line in lines if (words := line.split())}


def _read_picture(
    folder: Path, matcher: FileMatcher, file: Path, kind: str, rejects: Rejects
) -> tuple[str, Path, Frame, list[RegionAnnotation]]:
    """Return name, file, size and regions of a picture."""
    content = read_head(file, _MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise RowError("annotations that are too long", f"more than {_MAX_BYTES >> 20} MiB")
    root = parse_xml(content, file)
    name, path = _find_picture(folder, matcher, _get_text(root, "filename"), file.stem)
    annotations = list(_iterate_regions(root, name, kind, rejects))
    if not annotations:
        raise RowError("picture without regions", name)
    size = _find_child(root, "size")
    sides = [_parse_number(_get_text(size, side)) for side in ("width", "height")] if size is not None else []
    frame = (sides[0], sides[1]) if sides and min(sides) >= 1 else None
    return name, path, frame, annotations


def _find_picture(folder: Path, matcher: FileMatcher, filename: str, stem: str) -> tuple[str, Path]:
    """Return (name, file) of a picture, by the name in the annotations or by that of their own file."""
    stated_names = [PureWindowsPath(filename).name] if filename else []
    for name in [*stated_names, *(stem + ending for ending in PICTURES.endings)]:
        is_same = fold_path(PurePosixPath(name).stem) == fold_path(stem)
        if is_same and (path := matcher.match([name]).get(name)) and find_local_file(folder / IMAGES, path):
            return path, folder / IMAGES / path
    raise RowError("missing picture", filename or stem)


def _iterate_regions(root: XmlElement, name: str, kind: str, rejects: Rejects) -> Iterator[RegionAnnotation]:
    """Yield objects, each before its parts; those without a box are rejected, unless pictures are read."""
    numbers = count(1)
    for child in root.children:
        if child.local_name != "object":
            continue
        object_number = str(next(numbers))
        parts = [(str(next(numbers)), part) for part in child.children if part.local_name == "part"]
        for number, element in [(object_number, child), *parts]:
            with rejects.catch(f"{name}#{number}"):
                container = None if element is child else object_number
                region = None if kind == "pictures" else _parse_region(element)
                yield RegionAnnotation(number, _get_text(element, "name"), region, container)


def _parse_region(element: XmlElement) -> Region:
    box = _find_child(element, "bndbox")
    if box is None:
        raise RowError("region without a box")
    x_min, y_min, x_max, y_max = (_parse_number(_get_text(box, edge)) for edge in ("xmin", "ymin", "xmax", "ymax"))
    return Region(Box(x_min - 1, y_min - 1, x_max, y_max))


def _find_child(element: XmlElement, name: str) -> XmlElement | None:
    return next((child for child in element.children if child.local_name == name), None)


def _get_text(element: XmlElement, name: str) -> str:
    child = _find_child(element, name)
    return "" if child is None else child.text.strip()


def _parse_number(text: str) -> float:
    with suppress(ValueError):
        if -1e6 <= (number := float(text)) <= 1e6:
            return number
    raise RowError("malformed region", repr(text))
