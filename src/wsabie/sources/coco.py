"""Regions of pictures in the JSON of COCO: pictures, categories, and annotations that join them.

    {"images": [{"id": 7, "file_name": "car1.jpg", "width": 512, "height": 512}],
     "categories": [{"id": 19, "name": "wheel"}],
     "annotations": [{"id": 12, "image_id": 7, "category_id": 19, "bbox": [99, 344, 311, 80],
                      "segmentation": [[132.1, 345.3, 141.5, 352.4, 149.2, 366.5]], "iscrowd": 0}]}

The region of this annotation is `car1.jpg#12`. A box is left, top, width, height. Where there are polygons, their hull
is the box. Crowds, and masks written as run lengths, are listed and left out. The file is read element by element, and
of an annotation its numbers are kept.
"""

import re
from array import array
from collections import defaultdict
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow, require_rows
from wsabie.sources.folders import relative_name
from wsabie.sources.json_lists import elements
from wsabie.sources.marked import Marked, Picture, has_file, items_of_picture, require_region_kind
from wsabie.sources.records import Item, ItemList
from wsabie.sources.regions import Box, Region, hull
from wsabie.sources.text import head, shown
from wsabie.storage.rejects import Rejects

_LISTS = ("images", "categories", "annotations")
_COCO = re.compile(rb'\s*\{.*"(images|annotations|categories)"\s*:\s*\[\s*[{\]]', re.DOTALL)
_MEMBER = re.compile(rb'"(file_name|image_id|supercategory)"\s*:')
_LARGEST = 1e6  # of a coordinate
_MOST_NUMBERS = 20_000  # of a region's polygons


def coco_file(path: Path) -> Path | None:
    """The JSON of this form that a path is, or the one in a folder; None where there is none.

    Raises
    ------
    InputError
        The folder holds several.
    """
    if not path.is_dir():
        return path if path.suffix == ".json" and _looks_like_coco(path) else None
    found = [file for file in sorted(path.glob("*.json")) if _looks_like_coco(file)]
    if len(found) > 1:
        raise InputError(f"{shown(path)} holds several files of annotations; give one, such as {shown(found[0])}")
    return found[0] if found else None


def _looks_like_coco(file: Path) -> bool:
    if not file.is_file():
        return False
    content = head(file)
    return _COCO.match(content) is not None and _MEMBER.search(content) is not None


def read_coco(
    path: Path, *, kind: str | None = None, split: str | None = None, rejects: Rejects | None = None
) -> ItemList:
    """List the regions of pictures with their labels; no picture is decoded.

    Parameters
    ----------
    path : Path
        The JSON, or the folder that holds it. Pictures are looked for beside it, in `JPEGImages` or `images` there,
        and, of `annotations/instances_train2017.json`, in `train2017` beside `annotations`.
    kind : {"regions", "boxes", "pictures"} or None
        Regions without what lies outside of their polygons (None), whole boxes, or pictures with the labels of all
        their regions.
    split : None
        The form has none.
    rejects : Rejects or None
        Lists annotations that cannot be used, and pictures that are missing or have no region.

    Returns
    -------
    ItemList
        Of `Item`s whose `content` is a `Cutout`, and whose `group` is their picture.

    Raises
    ------
    InputError
        No JSON of this form, or nothing usable in it.
    """
    rejects = Rejects() if rejects is None else rejects
    kind = require_region_kind(kind, path)
    if split is not None:
        raise InputError(f"{shown(path)} has no splits to choose {split!r} from; give the file of one side")
    file = coco_file(path)
    if file is None:
        raise InputError(f"{shown(path)} holds no JSON with images, categories and annotations; give such a file")
    read = _Read()
    for number, (name, element) in enumerate(elements(file, _LISTS), start=1):
        try:
            read.add(name, element)
        except BadRow as bad:
            rejects.add(f"{shown(file)} element {number}", bad.reason, bad.detail)
    items = _items(file, read, kind, rejects)
    require_rows(len(items), path, rejects, "regions of pictures")
    return ItemList(path, items, kind=kind)


class _Image(NamedTuple):
    name: str
    path: str  # where it lies, when that is said otherwise than by its name
    frame: tuple[float, float] | None


class _Read:
    """What was read, before anything is joined: the lists may come in any order."""

    def __init__(self) -> None:
        self.images: dict[int | str, _Image] = {}
        self.categories: dict[int | str, str] = {}
        self.numbers: set[int | str] = set()
        self.marked: defaultdict[int | str, list[tuple[int | str, int | str, Region]]] = defaultdict(list)

    def add(self, name: str, element: Any) -> None:
        """Add an element of one of the lists.

        Raises
        ------
        BadRow
        """
        if not isinstance(element, dict):
            raise BadRow("no JSON object", repr(element)[:100])
        if name == "images":
            image = _image(element)
            if self.images.setdefault(_key(element, "id"), image) is not image:
                raise BadRow("duplicate picture", image.name)
        elif name == "categories":
            self.categories[_key(element, "id")] = _text(element, "name")
        else:
            number = _key(element, "id")
            region = region_of(element)
            if number in self.numbers:
                raise BadRow("duplicate id", f"annotation {number}")
            self.numbers.add(number)
            self.marked[_key(element, "image_id")].append((number, _key(element, "category_id"), region))


def _key(element: dict[str, Any], name: str) -> int | str:
    value = element.get(name)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise BadRow(f"annotation, picture or category without {name}", f"{value!r}"[:100])
    return value


def _text(element: dict[str, Any], name: str) -> str:
    value = element.get(name)
    if not isinstance(value, str) or not value.strip():
        raise BadRow(f"picture or category without {name}", f"{value!r}"[:100])
    return value


def _image(element: dict[str, Any]) -> _Image:
    width, height, path = (element.get(name) for name in ("width", "height", "path"))
    frame = (float(width), float(height)) if _is_length(width) and _is_length(height) else None
    return _Image(relative_name(_text(element, "file_name")), path if isinstance(path, str) else "", frame)


def _is_length(value: Any) -> TypeGuard[float]:
    return _is_number(value) and value >= 1


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -_LARGEST <= value <= _LARGEST


def region_of(element: dict[str, Any]) -> Region:
    """The region of an annotation.

    Raises
    ------
    BadRow
        It has none, or one that cannot be used.
    """
    said = f"annotation {element.get('id')}"
    outlines, box = element.get("segmentation") or [], element.get("bbox") or []
    if element.get("iscrowd"):
        raise BadRow("crowd of objects", said)
    if isinstance(outlines, dict):
        raise BadRow("mask of run lengths", said)
    if not outlines and not box:
        raise BadRow("region without a box", said)
    if outlines:
        return _outlined(outlines, said)
    if not isinstance(box, list) or len(box) != 4 or not all(map(_is_number, box)):
        raise BadRow("malformed region", said)
    left, top, width, height = box
    return Region(Box(left, top, left + width, top + height))


def _outlined(outlines: Any, said: str) -> Region:
    if not isinstance(outlines, list) or not all(isinstance(one, list) for one in outlines):
        raise BadRow("malformed region", said)
    if sum(map(len, outlines)) > _MOST_NUMBERS:
        raise BadRow("outline with too many corners", said)
    try:
        polygons = tuple(array("f", one) for one in outlines)
    except (TypeError, OverflowError) as error:
        raise BadRow("malformed region", said) from error
    if any(len(one) < 6 or len(one) % 2 or not isfinite(sum(one)) for one in polygons):
        raise BadRow("malformed region", said)
    box = hull(polygons)
    if not all(map(_is_number, box)):
        raise BadRow("malformed region", said)
    return Region(box, polygons)


def _items(file: Path, read: _Read, kind: str, rejects: Rejects) -> list[Item]:
    items: list[Item] = []
    places, names = _Places(file), set[str]()
    for key, image in read.images.items():
        found, marked = places.find(image), read.marked.pop(key, [])
        if found is None:
            rejects.add(image.name, "missing picture", f"{len(marked):,} regions")
        elif image.name in names:
            rejects.add(image.name, "duplicate picture", f"{len(marked):,} regions")
        elif not marked:
            rejects.add(image.name, "picture without regions")
        else:
            names.add(image.name)
            known = _with_labels(image, marked, read.categories, rejects)
            items += items_of_picture(Picture(image.name, found, image.frame, known), kind, rejects)
    for key, marked in read.marked.items():
        for number, *_ in marked:
            rejects.add(f"{shown(file)} annotation {number}", "region of an unknown picture", str(key))
    return items


def _with_labels(
    image: _Image,
    marked: list[tuple[int | str, int | str, Region]],
    categories: dict[int | str, str],
    rejects: Rejects,
) -> list[Marked]:
    for number, category, _ in marked:
        if category not in categories:
            rejects.add(f"{image.name}#{number}", "region of an unknown category", str(category))
    return [Marked(str(n), categories[one], region) for n, one, region in marked if one in categories]


class _Places:
    """Where the pictures of a file lie; the folder that held the last one is tried first."""

    def __init__(self, file: Path) -> None:
        beside, side = file.parent, file.name.partition(".")[0].rpartition("_")[2]
        above = beside.parent
        self.folders = [
            *(beside, beside / "JPEGImages", beside / "images"),
            *(above / side, above / "images" / side, above / "images"),
        ]

    def find(self, image: _Image) -> Path | None:
        """The file of a picture; None where there is none."""
        for name in (image.name, image.path):
            try:
                name = relative_name(name)
            except BadRow:
                continue
            for folder in self.folders:
                if has_file(folder, name):
                    self.folders.remove(folder)
                    self.folders.insert(0, folder)
                    return folder / name
        return None
