"""The drawings part: Open Clip Art with the tags of the people who drew it."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PIL import Image

from sample.clipart import Drawing, Metadata, find_drawings, labels_of, parse_metadata, stem
from sample.pictures import described, webp
from sample.progress import follow
from sample.raster import RasterError, rasterise, rasteriser_version
from sample.similar import alike_pairs, components, merge_groups
from sample.tables import Row
from sample.text import unique
from wsabie.core.machine import count_available_cores
from wsabie.storage.rejects import Rejects

SIDE = 128  # pixels of the longer side
QUALITY = 60
SAME = 0.9995  # cosine of thumbnails from which two files show the same drawing: one is kept
NEAR = 0.95  # cosine from which drawings are variants of one: they share a group
SOURCE = "Debian package openclipart-svg 0.18"
LICENCE = "public domain (dedicated by the authors to the Open Clip Art Library, https://openclipart.org)"
_STARS = ("shapes", "stars")  # 1,378 generated polygons
_HATE = ("sunwheel", "swastika", "nazi")  # in file names: symbols that nobody needs in a sample


@dataclass
class LabelledDrawing:
    drawing: Drawing
    metadata: Metadata
    labels: list[str]


def build_drawings(root: Path, rejects: Rejects) -> tuple[list[Row], dict[str, str]]:
    """Rows in order of path, and what the Parquet file says about itself."""
    labelled = [item for drawing in find_drawings(root) if (item := _look(drawing, rejects))]
    pictures = _rasterise_all(labelled, rejects)
    items = [item for item, picture in zip(labelled, pictures, strict=True) if picture is not None]
    images = [picture for picture in pictures if picture is not None]
    return _rows(items, images, rejects), _metadata()


def _look(drawing: Drawing, rejects: Rejects) -> LabelledDrawing | None:
    """The drawing with its labels, when it belongs into the sample."""
    place = drawing.places[0]
    if place.parts[: len(_STARS)] == _STARS:
        rejects.add(drawing.id, "generated star shape")
    elif any(word in place.name.lower() for word in _HATE):
        rejects.add(drawing.id, "sign of an ideology of hate")
    else:
        return read_labels(drawing, rejects)
    return None


def read_labels(drawing: Drawing, rejects: Rejects) -> LabelledDrawing | None:
    try:
        metadata = parse_metadata(drawing.file.read_bytes())
    except ET.ParseError as error:
        rejects.add(drawing.id, "not well-formed XML", str(error))
        return None
    tags = labels_of(metadata.tags)
    if metadata.is_public_domain and tags:
        return LabelledDrawing(drawing, metadata, unique([*tags, *labels_of(drawing.folder_names)]))
    reason = "no tags" if metadata.is_public_domain else "names another licence"
    rejects.add(drawing.id, reason, ", ".join(metadata.licences))
    return None


def _rasterise_all(items: Sequence[LabelledDrawing], rejects: Rejects) -> list[Image.Image | None]:
    pictures: list[Image.Image | None] = []
    with ThreadPoolExecutor(count_available_cores()) as pool:
        results = pool.map(partial(_try_rasterise, side=SIDE), items)
        for item, result in zip(items, follow(results, len(items), "drawings"), strict=True):
            if isinstance(result, RasterError):
                rejects.add(item.drawing.id, str(result))
            pictures.append(None if isinstance(result, RasterError) else result)
    return pictures


def _try_rasterise(item: LabelledDrawing, side: int) -> Image.Image | RasterError:
    try:
        return rasterise(item.drawing.file, side)
    except RasterError as error:
        return error


def _rows(items: Sequence[LabelledDrawing], pictures: Sequence[Image.Image], rejects: Rejects) -> list[Row]:
    """One row a drawing that looks like no earlier one, with the labels of all its copies."""
    pairs, cosines = alike_pairs(pictures, NEAR)
    first = components(len(items), pairs[cosines >= SAME])
    groups = merge_groups([stem(item.drawing.places[0]) for item in items], pairs)
    rows: dict[int, Row] = {}
    for number, (item, picture) in enumerate(zip(items, pictures, strict=True)):
        keeper = int(first[number])
        if keeper == number:
            rows[number] = _row(item, picture, groups[number])
        else:
            rejects.add(item.drawing.id, "copy of an earlier drawing", items[keeper].drawing.id)
            rows[keeper].labels = unique([*rows[keeper].labels, *item.labels])
    return list(rows.values())


def _row(item: LabelledDrawing, picture: Image.Image, group: str) -> Row:
    return Row(
        id=item.drawing.id,
        image=webp(picture, QUALITY),
        labels=item.labels,
        group=f"drawing-{group}",
        part="drawings",
        title=item.metadata.title,
        category=str(item.drawing.places[0].parent),
    )


def _metadata() -> dict[str, str]:
    return {
        "title": "wsabie sample collection: drawings",
        "licence": LICENCE,
        "source": SOURCE,
        "pictures": f"{described(SIDE, QUALITY)}; drawn by {rasteriser_version()}",
        "version": "1",
    }
