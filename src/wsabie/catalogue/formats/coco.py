"""The JSON of COCO: a category for each label, its `supercategory` the label above it.

A region is an annotation with a box, and with polygons where it has outlines. A tag of a whole picture is an annotation
whose box is the whole picture, marked `"whole": true`: programs that know nothing of it see a box, and reading it back
gives the whole again. Where the size of a picture is not known such an annotation has no box.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from wsabie.base.errors import InputError
from wsabie.catalogue.formats.record import Frame, Line, Said, Tag, by_item, text_of
from wsabie.sources.build import BadRow
from wsabie.sources.coco import coco_file, region_of
from wsabie.sources.json_lists import elements
from wsabie.sources.regions import parse_region, write_region
from wsabie.sources.text import shown
from wsabie.storage.atomic import replacing
from wsabie.storage.rejects import Rejects

_DEEPEST = 100  # labels above a label


class Category(NamedTuple):
    """A label: its number, its name, and the name of the label above it."""

    id: int
    name: str
    above: str | None


def write_coco(
    tags: Iterable[Tag],
    out: Path,
    categories: Iterable[Category],
    name_of: Callable[[Tag], str],
    rejects: Rejects,
) -> int:
    """Write tags; how many there were.

    Parameters
    ----------
    tags : iterable of Tag
        Item by item.
    out : Path
    categories : iterable of Category
        Of all their labels.
    name_of : callable
        What the picture of a tag is called in the file; raises `BadRow` to leave it out.
    rejects : Rejects
        Lists tags that cannot be written.
    """
    listed = [_category(one) for one in categories]
    ids = {one["name"]: one["id"] for one in listed}
    written = 0
    with replacing(out) as draft, draft.open("w", encoding="utf-8") as stream, _beside(out) as marks:
        stream.write('{"info": {"description": "tags of a collection"},\n"categories": [')
        stream.write(",\n".join(json.dumps(one, ensure_ascii=False) for one in listed) + '],\n"images": [')
        separator = ""
        for group in by_item(tags):
            first = group[0]
            try:
                image: dict[str, Any] = {"id": first.item, "file_name": name_of(first)}
            except BadRow as bad:
                rejects.add(first.path, bad.reason, bad.detail)
                continue
            if first.frame:
                image |= {"width": first.frame[0], "height": first.frame[1]}
            stream.write(separator + json.dumps(image, ensure_ascii=False))
            separator = ",\n"
            for tag in group:
                try:
                    mark = _annotation(tag) | {"id": written + 1, "category_id": ids[tag.label]}
                except BadRow as bad:
                    rejects.add(f"{tag.path} {tag.label}", bad.reason, bad.detail)
                    continue
                marks.write((",\n" if written else "") + json.dumps(mark, ensure_ascii=False))
                written += 1
        stream.write('],\n"annotations": [')
        marks.seek(0)
        while part := marks.read(1 << 20):
            stream.write(part)
        stream.write("]}\n")
    return written


def _beside(out: Path) -> IO[str]:
    """A file without a name on the same disk."""
    return TemporaryFile("w+", encoding="utf-8", dir=out.parent)


def _category(one: Category) -> dict[str, Any]:
    above = {"supercategory": one.above} if one.above else {}
    return {"id": one.id, "name": one.name, **above}


def _annotation(tag: Tag) -> dict[str, Any]:
    frame = tag.frame
    found: dict[str, Any] = {"id": 0, "image_id": tag.item, "category_id": 0}
    if tag.state == "suggested" and tag.probability is not None:
        found["score"] = tag.probability
    if not tag.region:
        box = {"bbox": [0, 0, *frame], "area": frame[0] * frame[1], "iscrowd": 0} if frame else {}
        return found | {"whole": True} | box
    return found | _region(tag.region, frame)


def _region(text: str, frame: Frame) -> dict[str, Any]:
    region = parse_region(text)
    across = down = 1.0
    if region.frame is not None:
        if frame is None:
            raise BadRow("region in per cent of a picture whose size is not known")
        across, down = frame[0] / region.frame[0], frame[1] / region.frame[1]
    box = region.box.scaled(across, down)
    outlines = [[round(x * (down if i % 2 else across), 4) for i, x in enumerate(one)] for one in region.outlines]
    bounds = [round(number, 4) for number in (box.left, box.top, box.width, box.height)]
    area = sum(map(_area, outlines)) if outlines else bounds[2] * bounds[3]
    polygons = {"segmentation": outlines} if outlines else {}
    return {"bbox": bounds, "area": round(area, 4), "iscrowd": 0} | polygons


def _area(outline: list[float]) -> float:
    """Of a polygon, by the shoelace formula."""
    xs, ys = outline[::2], outline[1::2]
    turned = zip(xs, ys, [*xs[1:], xs[0]], [*ys[1:], ys[0]], strict=True)
    return abs(sum(x * v - u * y for x, y, u, v in turned)) / 2


def read_coco_tags(path: Path, rejects: Rejects) -> Iterator[Line]:
    """What a JSON of COCO says of its pictures, annotation by annotation.

    Raises
    ------
    InputError
        No JSON of this form.
    """
    if coco_file(path) != path:
        raise InputError(f"{shown(path)} holds no images, categories and annotations of COCO; give such a file")
    images: dict[Any, str] = {}
    categories: dict[Any, tuple[str, str]] = {}
    for number, (member, element) in enumerate(elements(path, ("images", "categories")), start=1):
        try:
            key, element = _key(_object(element), "id"), _object(element)
            if member == "images":
                images[key] = _needed(element, "file_name")
            else:
                categories[key] = _needed(element, "name"), text_of(element.get("supercategory"), "supercategory")
        except BadRow as bad:
            rejects.add(f"{shown(path)} {member} {number}", bad.reason, bad.detail)
    parents = _parents(categories.values())
    for number, (_, element) in enumerate(elements(path, ("annotations",)), start=1):
        try:
            yield _said(number, _object(element), images, categories, parents)
        except BadRow as bad:
            yield number, bad


def _said(
    number: int,
    element: dict[str, Any],
    images: dict[Any, str],
    categories: dict[Any, tuple[str, str]],
    parents: dict[str, tuple[str, ...]],
) -> Said:
    image, category = _key(element, "image_id"), _key(element, "category_id")
    if image not in images:
        raise BadRow("annotation of an unknown picture", str(image))
    if category not in categories:
        raise BadRow("annotation of an unknown category", str(category))
    label = categories[category][0]
    region = ""
    if element.get("whole") is not True and (element.get("bbox") or element.get("segmentation")):
        found = region_of(element)
        if found.box.area <= 0:
            raise BadRow("empty region", f"annotation {element.get('id')}")
        try:
            region = write_region(found)
        except InputError as error:
            raise BadRow("outline with too many corners", f"annotation {element.get('id')}") from error
    return Said(number, images[image], (label,), region=region, parents=parents[label])


def _parents(categories: Collection[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Names above each category, the broadest first; "none" and its own name are no parents."""
    names = {name for name, _ in categories}
    above = {
        name: other for name, other in categories if other and other != name and (other in names or other != "none")
    }
    found = {}
    for name in names:
        way: list[str] = []
        at = above.get(name)
        while at is not None and at not in way and at != name and len(way) < _DEEPEST:
            way.append(at)
            at = above.get(at)
        found[name] = tuple(reversed(way))
    return found


def _object(element: Any) -> dict[str, Any]:
    if not isinstance(element, dict):
        raise BadRow("no JSON object", repr(element)[:100])
    return element


def _key(element: dict[str, Any], name: str) -> int | str:
    value = element.get(name)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise BadRow(f"annotation, picture or category without {name}", f"{value!r}"[:100])
    return value


def _needed(element: dict[str, Any], name: str) -> str:
    found = text_of(element.get(name), name)
    if not found.strip():
        raise BadRow(f"picture or category without {name}", repr(element)[:100])
    return found
