"""Conversion of annotated regions of pictures into items, shared by the readers of such collections.

A region's id is its picture's with # and its number. Its group is the picture, so that the regions of one
never sit on both sides of a split.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from wsabie.core.errors import InputError
from wsabie.io.formats.media_folder import normalise_labels
from wsabie.io.modalities import PICTURES
from wsabie.io.parsers.array_builders import RowError
from wsabie.io.parsers.text_files import format_path
from wsabie.io.records import Item
from wsabie.io.regions import OUTSIDE, SMALLEST, Box, Region, RegionCrop
from wsabie.storage.rejects import Rejects

KINDS = ("regions", "boxes", "pictures")
MOST = 500
"""Regions of a picture, at most."""


class RegionAnnotation(NamedTuple):
    """Annotated region of a picture.

    Attributes
    ----------
    number : str
        By which it is known in its picture.
    label : str
    region : Region
    container_number : str or None
        The number of the region that it is said to be a part of.
    """

    number: str
    label: str
    region: Region
    container_number: str | None = None


class AnnotatedImage(NamedTuple):
    """Picture with its regions; `frame` is its stated size."""

    name: str
    file: Path
    frame: tuple[float, float] | None
    regions: Sequence[RegionAnnotation]


def require_region_kind(kind: str | None, path: Path) -> str:
    """Return the requested kind of items; None: regions.

    Raises
    ------
    InputError
        There is no such kind.
    """
    if kind is not None and kind not in KINDS:
        raise InputError(f"{format_path(path)} has no kind {kind!r}; choose one of {', '.join(KINDS)}")
    return kind or KINDS[0]


def make_region_items(picture: AnnotatedImage, kind: str, rejects: Rejects) -> list[Item]:
    """Return a picture's regions ("boxes": without outlines), or the picture with all their labels.

    Regions that cannot be used are listed, those of a picture that has more than `MOST` too.
    """
    items, labels = [], dict[str, None]()
    for number, annotation in enumerate(picture.regions):
        name = f"{picture.name}#{annotation.number}"
        try:
            if number >= MOST:
                raise RowError("too many regions in a picture", f"more than {MOST}")
            label_names = normalise_labels([annotation.label])
            if not label_names:
                raise RowError("region without a label")
            region = clip_region(annotation.region, picture.frame)
            labels |= dict.fromkeys(label_names)
            container_id = (
                None if annotation.container_number is None else f"{picture.name}#{annotation.container_number}"
            )
            region = region._replace(outlines=()) if kind == "boxes" else region
            items.append(Item(name, RegionCrop(picture.file, region, container_id), label_names, picture.name))
        except RowError as error:
            rejects.add(name, error.reason, error.detail)
    if kind != "pictures":
        return items
    if not labels:
        rejects.add(picture.name, PICTURES.unlabelled, "no region that can be used")
        return []
    return [Item(picture.name, picture.file, tuple(labels))]


def clip_region(region: Region, frame: tuple[float, float] | None) -> Region:
    """Return the region, cut off at the picture's edges where its size is known.

    Raises
    ------
    RowError
        Nothing of it lies in the picture, or it is smaller than 8 pixels across or down.
    """
    box = region.box
    if box.area == 0:
        raise RowError("empty region")
    if frame is not None:
        box = box.within(Box(0, 0, *frame))
        if box.area == 0:
            raise RowError(OUTSIDE, f"the picture has {frame[0]:g} x {frame[1]:g} pixels")
    if min(box.width, box.height) < SMALLEST:
        raise RowError("tiny region", f"{box.width:g} x {box.height:g} pixels")
    return Region(box, region.outlines, frame)
