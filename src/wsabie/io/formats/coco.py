"""Regions of pictures in the JSON of COCO: pictures, categories, and annotations that join them.

    {"images": [{"id": 7, "file_name": "car1.jpg", "width": 512, "height": 512}],
     "categories": [{"id": 19, "name": "wheel"}],
     "annotations": [{"id": 12, "image_id": 7, "category_id": 19, "bbox": [99, 344, 311, 80],
                      "segmentation": [[132.1, 345.3, 141.5, 352.4, 149.2, 366.5]], "iscrowd": 0}]}

The region of this annotation is `car1.jpg#12`. A box is left, top, width, height. Where there are polygons, their hull
is the box. Crowds, and masks written as run lengths, are listed and left out; whole boxes need no mask, and labels of
pictures no shape. Ids may be texts, and annotations may lack them. The file is read element by element, and of an
annotation its numbers are kept.

pycocotools holds the whole file, and ends at the first annotation that lacks a key
(`docs/decisions/text-readers.md`).
"""

from array import array
from collections import defaultdict
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.io.file_matching import find_listed_files, find_local_file, normalise_relative_path
from wsabie.io.formats.region_items import KINDS, RegionAnnotation, make_region_items
from wsabie.io.formats.tool_files import is_coco_file
from wsabie.io.modalities import PICTURES
from wsabie.io.parsers.array_builders import require_rows
from wsabie.io.parsers.json_values import iterate_elements
from wsabie.io.records import Item, ItemList, require_kind
from wsabie.io.regions import Box, Frame, Region, compute_bounding_box
from wsabie.storage.rejects import Rejects, RowError

_LISTS = ("images", "categories", "annotations")
_MAX_COORDINATE = 1e6  # of a coordinate
_MAX_NUMBERS = 20_000  # of a region's polygons


def find_coco_file(path: Path) -> Path | None:
    """Return the COCO file at a path or in a folder; None where there is none.

    Raises
    ------
    InputError
        The folder holds several.
    """
    if not path.is_dir():
        return path if is_coco_file(path) else None
    files = sorted(filter(is_coco_file, path.iterdir()))
    if len(files) > 1:
        raise InputError(f"{path} holds several files of annotations; give one, such as {files[0]}")
    return files[0] if files else None


def read_coco(path: Path, *, kind: str | None = None, split: str | None = None, rejects: Rejects) -> ItemList:
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
    rejects : Rejects
        Lists annotations that cannot be used, and pictures that are missing or have no region.

    Returns
    -------
    ItemList
        `Item`s whose `content` is a `RegionCrop`, and whose `group` is their picture.

    Raises
    ------
    InputError
        No JSON of this form, or nothing usable in it.
    """
    kind = require_kind(kind, KINDS, path)
    require(split is None, f"{path} has no splits to choose {split!r} from; give the file of one side")
    file = find_coco_file(path)
    if file is None:
        raise InputError(f"{path} holds no JSON with images, categories and annotations; give a COCO file")
    content = _CocoContent(kind)
    for number, (name, element) in enumerate(iterate_elements(file, _LISTS), start=1):
        with rejects.catch(f"{file} element {number}"):
            content.add(name, element)
    items = _build_items(file, content, kind, rejects)
    require_rows(len(items), path, rejects, "regions of pictures")
    return ItemList(path, items, kind=kind)


class _Image(NamedTuple):
    name: str
    path: str  # of its file, if stated apart from its name
    frame: Frame


class _CocoContent:
    """Content of the lists before anything is joined: they may come in any order."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.images: dict[str, _Image] = {}
        self.categories: dict[str, str] = {}
        self.numbers: set[tuple[str, str]] = set()
        self.entries: defaultdict[str, list[tuple[str, str, Region | None]]] = defaultdict(list)

    def add(self, name: str, element: Any) -> None:
        """Add an element of one of the lists, or raise RowError."""
        if name == "images":
            key, image = get_coco_key(element, "id"), _parse_image(element)
            if self.images.setdefault(key, image) is not image:
                raise RowError("duplicate picture", image.name)
        elif name == "categories":
            self.categories[get_coco_key(element, "id")] = _get_text(element, "name")
        else:
            entries = self.entries[image_id := get_coco_key(element, "image_id")]
            number = str(len(entries) + 1) if element.get("id") is None else get_coco_key(element, "id")
            category, region = get_coco_key(element, "category_id"), None
            if self.kind != "pictures":
                region = parse_coco_region(element, needs_outline=self.kind == "regions")
                if (image_id, number) in self.numbers:
                    raise RowError("duplicate id", f"annotation {number}")
                self.numbers.add((image_id, number))
            entries.append((number, category, region))


def get_coco_key(element: object, name: str) -> str:
    """Return an id as text, for it may be a number in one list, a text in another; RowError without one."""
    if not isinstance(element, dict):
        raise RowError("not a JSON object", repr(element)[:100])
    value = element.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise RowError(f"annotation, picture or category without {name}", f"{value!r}"[:100])
    return str(value).strip()


def _get_text(element: JsonObject, name: str) -> str:
    value = element.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RowError(f"picture or category without {name}", f"{value!r}"[:100])
    return value


def _parse_image(element: JsonObject) -> _Image:
    width, height, path = (element.get(name) for name in ("width", "height", "path"))
    frame = (float(width), float(height)) if _is_length(width) and _is_length(height) else None
    name = _get_text(element, "file_name")
    with suppress(RowError):  # it may come from another machine
        name = normalise_relative_path(name)
    return _Image(name, path if isinstance(path, str) else "", frame)


def _is_length(value: Any) -> TypeGuard[float]:
    return _is_number(value) and value >= 1


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and -_MAX_COORDINATE <= value <= _MAX_COORDINATE
    )


def parse_coco_region(element: JsonObject, *, needs_outline: bool = True) -> Region:
    """Return the region of an annotation; where no outline is needed, a box replaces an unusable one.

    Raises
    ------
    RowError
        It has none, or one that cannot be used.
    """
    detail = f"annotation {element.get('id')}"
    outlines, box = element.get("segmentation") or [], element.get("bbox") or []
    if element.get("iscrowd") not in (None, False, 0, "0", ""):
        raise RowError("crowd of objects", detail)
    if isinstance(outlines, dict) and not (box and not needs_outline):
        raise RowError("mask of run lengths", detail)
    if not outlines and not box:
        raise RowError("region without a box", detail)
    if isinstance(outlines, list) and all(map(_is_number, outlines)):
        outlines = [outlines] if outlines else []  # a single one
    elif isinstance(outlines, list) and not any(outlines):
        outlines = []
    try:
        if box and not needs_outline:
            with suppress(TypeError, ValueError, OverflowError, RowError):
                return _build_outlined_region(outlines, detail)
            return _build_box_region(box)
        return _build_outlined_region(outlines, detail) if outlines else _build_box_region(box)
    except (TypeError, ValueError, OverflowError) as error:
        raise RowError("malformed region", detail) from error


def _build_box_region(box: object) -> Region:
    if not isinstance(box, list) or not all(map(_is_number, box)):
        raise ValueError("no numbers")
    x, y, width, height = box
    return Region(Box(x, y, x + width, y + height))


def _build_outlined_region(outlines: object, detail: str) -> Region:
    if not isinstance(outlines, list) or not all(isinstance(outline, list) for outline in outlines):
        raise ValueError("no lists of numbers")
    if sum(map(len, outlines)) > _MAX_NUMBERS:
        raise RowError("outline with too many corners", detail)
    polygons = tuple(array("f", outline) for outline in outlines)
    is_odd = any(len(outline) < 6 or len(outline) % 2 or not isfinite(sum(outline)) for outline in polygons)
    if is_odd or not all(map(_is_number, box := compute_bounding_box(polygons))):
        raise ValueError("no corners")
    return Region(box, polygons)


def _build_items(file: Path, content: _CocoContent, kind: str, rejects: Rejects) -> list[Item]:
    items: list[Item] = []
    folder, parent, names = file.parent, file.parent.parent, set[str]()
    side = file.name.partition(".")[0].rpartition("_")[2]
    folders = [folder, folder / "JPEGImages", folder / "images"]
    folders += [parent / side, parent / "images" / side, parent / "images"]
    paths = {key: _find_picture(image, folders) for key, image in content.images.items()}
    missing_names = [content.images[key].name for key, path in paths.items() if path is None]
    search_root = parent if folder.name.lower() == "annotations" else folder
    matches = find_listed_files(search_root, missing_names, PICTURES)
    for key, image in content.images.items():
        path, entries = paths[key] or matches.get(image.name), content.entries.pop(key, [])
        with rejects.catch(image.name):
            if path is None:
                normalise_relative_path(image.name)
                raise RowError("missing picture", f"{len(entries):,} regions")
            if image.name in names:
                raise RowError("duplicate picture", f"{len(entries):,} regions")
            if not entries:
                raise RowError("picture without regions")
            names.add(image.name)
            annotations: list[RegionAnnotation] = []
            for number, category, region in entries:
                with rejects.catch(f"{image.name}#{number}"):
                    if category not in content.categories:
                        raise RowError("region of an unknown category", category)
                    annotations.append(RegionAnnotation(number, content.categories[category], region))
            items += make_region_items(image.name, path, image.frame, annotations, kind, rejects)
    for key, entries in content.entries.items():
        for number, *_ in entries:
            rejects.add(f"{file} annotation {number}", "region of an unknown picture", key)
    return items


def _find_picture(image: _Image, folders: list[Path]) -> Path | None:
    """Return the file of a picture; the folder of the last match comes first. None where there is none."""
    for name in (image.name, image.path):
        for folder in folders:
            if (file := find_local_file(folder, name)) is not None:
                folders.remove(folder)
                folders.insert(0, folder)
                return file
    return None
