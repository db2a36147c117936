"""From marked regions of pictures to items: what the readers of such collections share.

A region's id is its picture's with # and its number. Its group is the picture, so that the regions of one never sit on
both sides of a split.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow
from wsabie.sources.folders import clean_labels, is_inside
from wsabie.sources.media import PICTURES
from wsabie.sources.records import Item
from wsabie.sources.regions import OUTSIDE, SMALLEST, Box, Cutout, Region
from wsabie.sources.text import shown
from wsabie.storage.rejects import Rejects

KINDS = ("regions", "boxes", "pictures")
MOST = 500
"""Regions of a picture, at most."""


class Marked(NamedTuple):
    """A region as it was marked.

    Attributes
    ----------
    number : str
        By which it is known in its picture.
    label : str
    region : Region
    whole : str or None
        The number of the region that it is said to be a part of.
    """

    number: str
    label: str
    region: Region
    whole: str | None = None


class Picture(NamedTuple):
    """A picture with its regions; `frame` is the size that is stated of it."""

    name: str
    file: Path
    frame: tuple[float, float] | None
    marked: Sequence[Marked]


def require_region_kind(kind: str | None, path: Path) -> str:
    """The kind of items that is asked for; None: regions.

    Raises
    ------
    InputError
        There is no such kind.
    """
    if kind is not None and kind not in KINDS:
        raise InputError(f"{shown(path)} has no kind {kind!r}; choose one of {', '.join(KINDS)}")
    return kind or KINDS[0]


def has_file(folder: Path, name: str) -> bool:
    """Whether a folder holds a file, which a link may not take elsewhere."""
    try:
        return (folder / name).is_file() and is_inside(folder / name, os.path.realpath(folder))
    except (OSError, ValueError):  # a name that is no name
        return False


def items_of_picture(picture: Picture, kind: str, rejects: Rejects) -> list[Item]:
    """Its regions ("boxes": without their outlines), or the picture with the labels of all of them ("pictures").

    Regions that cannot be used are listed, those of a picture that has more than `MOST` too.
    """
    items, labels = [], dict[str, None]()
    for place, one in enumerate(picture.marked):
        name = f"{picture.name}#{one.number}"
        try:
            if place >= MOST:
                raise BadRow("too many regions in a picture", f"more than {MOST}")
            own = clean_labels([one.label])
            if not own:
                raise BadRow("region without a label")
            region = usable(one.region, picture.frame)
            labels |= dict.fromkeys(own)
            whole = None if one.whole is None else f"{picture.name}#{one.whole}"
            region = region._replace(outlines=()) if kind == "boxes" else region
            items.append(Item(name, Cutout(picture.file, region, whole), own, picture.name))
        except BadRow as bad:
            rejects.add(name, bad.reason, bad.detail)
    if kind != "pictures":
        return items
    if not labels:
        rejects.add(picture.name, PICTURES.unlabelled, "no region that can be used")
        return []
    return [Item(picture.name, picture.file, tuple(labels))]


def usable(region: Region, frame: tuple[float, float] | None) -> Region:
    """The region, cut off at the picture's edges where its size is known.

    Raises
    ------
    BadRow
        Nothing of it lies in the picture, or it is smaller than 8 pixels across or down.
    """
    box = region.box
    if box.area == 0:
        raise BadRow("empty region")
    if frame is not None:
        box = box.within(Box(0, 0, *frame))
        if box.area == 0:
            raise BadRow(OUTSIDE, f"the picture has {frame[0]:g} x {frame[1]:g} pixels")
    if min(box.width, box.height) < SMALLEST:
        raise BadRow("tiny region", f"{box.width:g} x {box.height:g} pixels")
    return Region(box, region.outlines, frame)
