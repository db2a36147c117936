"""Tags in COCO JSON, written and read.

COCO JSON has one category per label, with the parent label as its `supercategory`. A region becomes an annotation with
a box, and with polygons if it has outlines. A tag of a whole picture becomes an annotation whose box is the whole
picture, marked `"image_label": true`: other programs see a box, and an import restores the tag of the whole. Such an
annotation has no box if the size of the picture is unknown.
"""

import json
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile

from wsabie.collection.interchange.tag_record import Frame, Tag, TagLine, group_by_item, parse_text
from wsabie.collection.labels.label_store import iterate_ancestors
from wsabie.core.errors import InputError
from wsabie.core.json_conversion import JsonObject
from wsabie.io.formats.coco import find_coco_file, get_coco_key, parse_coco_region
from wsabie.io.parsers.json_values import iterate_elements
from wsabie.io.parsers.text_files import format_path
from wsabie.io.regions import format_region, parse_region
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.rejects import Rejects, RowError

_NAMES = {"images": "file_name", "categories": "name"}
_DEEPEST = 100  # ancestors of a label


def write_coco(
    tags: Iterable[Tag], out: Path, categories: Sequence[JsonObject], make_name: Callable[[Tag], str], rejects: Rejects
) -> int:
    """Write tags and return their number.

    Parameters
    ----------
    tags : iterable of Tag
        Grouped by item.
    out : Path
    categories : sequence of dict
        Labels of the tags: "id", "name" and perhaps "supercategory".
    make_name : callable
        Returns the file name of a tag's picture, or raises `RowError` to leave the picture out.
    rejects : Rejects
        Collects tags that cannot be written.
    """
    ids = {category["name"]: category["id"] for category in categories}
    written = 0
    with (
        replace_file(out) as draft,
        draft.open("w", encoding="utf-8") as stream,
        TemporaryFile("w+", encoding="utf-8", dir=out.parent) as annotation_stream,
    ):
        stream.write('{"info": {"description": "tags of a collection"},\n"categories": [')
        stream.write(",\n".join(map(_dump, categories)) + '],\n"images": [')
        separator = ""
        for group in group_by_item(tags):
            first = group[0]
            with rejects.catch(first.path):
                image: JsonObject = {"id": first.item, "file_name": make_name(first)}
                if first.frame:
                    image |= {"width": first.frame[0], "height": first.frame[1]}
                stream.write(separator + _dump(image))
                separator = ",\n"
                for tag in group:
                    with rejects.catch(f"{tag.path} {tag.label}"):
                        annotation = _format_annotation(tag) | {"id": written + 1, "category_id": ids[tag.label]}
                        annotation_stream.write((",\n" if written else "") + _dump(annotation))
                        written += 1
        stream.write('],\n"annotations": [')
        annotation_stream.seek(0)
        shutil.copyfileobj(annotation_stream, stream)
        stream.write("]}\n")
    return written


def _dump(document: JsonObject) -> str:
    return json.dumps(document, ensure_ascii=False)


def _format_annotation(tag: Tag) -> JsonObject:
    frame = tag.frame
    record: JsonObject = {"id": 0, "image_id": tag.item, "category_id": 0}
    if tag.state == "suggested" and tag.probability is not None:
        record["score"] = tag.probability
    if not tag.region:
        box = {"bbox": [0, 0, *frame], "area": frame[0] * frame[1], "iscrowd": 0} if frame else {}
        return record | {"image_label": True} | box
    return record | _format_region(tag.region, frame)


def _format_region(text: str, frame: Frame) -> JsonObject:
    region = parse_region(text)
    x_scale = y_scale = 1.0
    if region.frame is not None:
        if frame is None:
            raise RowError("region in per cent of a picture whose size is not known")
        x_scale, y_scale = frame[0] / region.frame[0], frame[1] / region.frame[1]
    box = region.box.scale(x_scale, y_scale)
    outlines = [[round(x * (x_scale, y_scale)[i % 2], 4) for i, x in enumerate(outline)] for outline in region.outlines]
    bounds = [round(bound, 4) for bound in (box.left, box.top, box.width, box.height)]
    area = sum(map(_compute_area, outlines)) if outlines else bounds[2] * bounds[3]
    polygons = {"segmentation": outlines} if outlines else {}
    return {"bbox": bounds, "area": round(area, 4), "iscrowd": 0} | polygons


def _compute_area(outline: list[float]) -> float:
    """Return the area of a polygon by the shoelace formula."""
    xs, ys = outline[::2], outline[1::2]
    corner_pairs = zip(xs, ys, [*xs[1:], xs[0]], [*ys[1:], ys[0]], strict=True)
    return abs(sum(x * v - u * y for x, y, u, v in corner_pairs)) / 2


def read_coco_tags(path: Path, rejects: Rejects) -> Iterator[TagLine]:
    """Yield the tags of a COCO file, annotation by annotation.

    Raises
    ------
    InputError
        The file is not COCO JSON.
    """
    if find_coco_file(path) != path:
        raise InputError(f"{format_path(path)} holds no images, categories and annotations of COCO; give a COCO file")
    images: dict[str, str] = {}
    categories: dict[str, tuple[str, str]] = {}
    for position, (member, element) in enumerate(iterate_elements(path, tuple(_NAMES)), start=1):
        with rejects.catch(f"{format_path(path)} {member} {position}"):
            key, name = get_coco_key(element, "id"), _require_text(element, _NAMES[member])
            if member == "images":
                images[key] = name
            else:
                categories[key] = name, parse_text(element.get("supercategory"), "supercategory")
    parents = _find_ancestors(categories.values())
    for position, (_, element) in enumerate(iterate_elements(path, ("annotations",)), start=1):
        with rejects.catch(format_path(path), position):
            image, category = get_coco_key(element, "image_id"), get_coco_key(element, "category_id")
            if image not in images:
                raise RowError("annotation of an unknown picture", image)
            if category not in categories:
                raise RowError("annotation of an unknown category", category)
            label = categories[category][0]
            yield TagLine(position, images[image], (label,), region=_parse_coco_region(element), parents=parents[label])


def _parse_coco_region(element: JsonObject) -> str:
    if element.get("image_label") is True or not (element.get("bbox") or element.get("segmentation")):
        return ""
    shape = parse_coco_region(element, needs_outline=False)
    if shape.box.area <= 0:
        raise RowError("empty region", f"annotation {element.get('id')}")
    try:
        return format_region(shape)
    except InputError as error:
        raise RowError("outline with too many corners", f"annotation {element.get('id')}") from error


def _find_ancestors(categories: Collection[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the ancestors of each category, broadest first; "none" and its own name are not parents."""
    names = {name for name, _ in categories}
    parents: dict[str, str | None] = {
        name: parent
        for name, parent in categories
        if parent and parent != name and (parent in names or parent != "none")
    }
    return {name: tuple(islice(iterate_ancestors(parents, name), _DEEPEST))[::-1] for name in names}


def _require_text(element: JsonObject, name: str) -> str:
    text = parse_text(element.get(name), name)
    if not text.strip():
        raise RowError(f"picture or category without {name}", repr(element)[:100])
    return text
