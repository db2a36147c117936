"""Regions of pictures as items: annotated ones, those inside others, and those requested of all.

A region's id is its picture's with # and its number. Its group is the picture, so that the regions of one
never sit on both sides of a split.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from wsabie.core.arrays import Float64
from wsabie.core.errors import InputError, require
from wsabie.io.formats.media_folder import normalise_labels
from wsabie.io.modalities import PICTURES
from wsabie.io.records import DerivedItemSource, Item, ItemList, ItemSource
from wsabie.io.regions import MIN_SIDE, OUTSIDE, Box, Frame, Region, RegionCrop, parse_region
from wsabie.storage.rejects import Rejects, RowError
from wsabie.vocabulary.label_names import normalise_label_name

KINDS = ("regions", "boxes", "pictures")
MAX_REGIONS = 500
"""Regions of a picture, at most."""
SHARE = 0.8
LabelPairs: TypeAlias = Collection[tuple[str, str]] | None
"""Labels of an object and of its part; None: any."""
_EVERYWHERE = Box(-np.inf, -np.inf, np.inf, np.inf)


class RegionAnnotation(NamedTuple):
    """Annotated region of a picture.

    Attributes
    ----------
    number : str
        Number in its picture.
    label : str
    region : Region or None
        None where only labels of pictures are read.
    container_number : str or None
        The number of the region that it is said to be a part of.
    """

    number: str
    label: str
    region: Region | None
    container_number: str | None = None


def make_region_items(
    name: str, file: Path, frame: Frame, regions: Sequence[RegionAnnotation], kind: str, rejects: Rejects
) -> list[Item]:
    """Return a picture's regions ("boxes": without outlines), or the picture with all their labels.

    `frame` is its stated size.

    Regions that cannot be used are listed, those of a picture that has more than `MAX_REGIONS` too. Labels of pictures
    need no region.
    """
    items, labels = [], dict[str, None]()
    for number, annotation in enumerate(regions):
        region_id = f"{name}#{annotation.number}"
        with rejects.catch(region_id):
            label_names = normalise_labels([annotation.label])
            if not label_names:
                raise RowError("region without a label")
            labels |= dict.fromkeys(label_names)
            if annotation.region is None:
                continue
            if number >= MAX_REGIONS:
                raise RowError("too many regions in a picture", f"more than {MAX_REGIONS}")
            region = clip_region(annotation.region, frame)
            container = annotation.container_number
            container_id = None if container is None else f"{name}#{container}"
            region = region._replace(outlines=()) if kind == "boxes" else region
            items.append(Item(region_id, RegionCrop(file, region, container_id), label_names, name))
    if kind != "pictures":
        return items
    if not labels:
        rejects.add(name, PICTURES.unlabelled_reason, "no region that can be used")
        return []
    return [Item(name, file, tuple(labels))]


def clip_region(region: Region, frame: Frame) -> Region:
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
        box = box.intersect(Box(0, 0, *frame))
        if box.area == 0:
            raise RowError(OUTSIDE, f"the picture has {frame[0]:g} x {frame[1]:g} pixels")
    if min(box.width, box.height) < MIN_SIDE:
        raise RowError("tiny region", f"{box.width:g} x {box.height:g} pixels")
    return Region(box, region.outlines, frame)


class RegionPair(NamedTuple):
    """Object and a part of it, in the same picture."""

    container: Item
    part: Item


def find_region_pairs(
    items: Iterable[Item], *, share: float = SHARE, related: LabelPairs = None
) -> Iterator[RegionPair]:
    """Yield for each region the region of its picture that contains it, if there is one.

    That is the object that the annotations name (`<part>` of Pascal VOC). Otherwise it is, of the larger
    regions with other labels in whose box at least `share` of the region's box lies, the one in which most of
    it lies, the smallest of several. A whole picture (see `add_full_images`) is the largest of its regions.

    Parameters
    ----------
    items : iterable of Item
        All regions of a picture have it as `group`.
    share : float
        Above 0, at most 1.
    related : collection of (str, str) or None
        Labels of objects and of their parts: only such pairs. None: whatever the labels are.

    Returns
    -------
    iterator of RegionPair
        In the order of pictures and parts.

    Raises
    ------
    InputError
        The share is none.

    Examples
    --------
    >>> import json, tempfile
    >>> from PIL import Image
    >>> from wsabie import open_source
    >>> boxes = [("car", [0, 0, 90, 50]), ("wheel", [5, 30, 20, 22])]
    >>> images = [{"id": 1, "file_name": "a.jpg", "width": 90, "height": 60}]
    >>> categories = [{"id": number, "name": name} for number, (name, _) in enumerate(boxes)]
    >>> regions = [{"id": n, "image_id": 1, "category_id": n, "bbox": box} for n, (_, box) in enumerate(boxes)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (90, 60)).save(Path(folder) / "a.jpg")
    ...     coco = {"images": images, "categories": categories, "annotations": regions}
    ...     _ = (Path(folder) / "boxes.json").write_text(json.dumps(coco))
    ...     pairs = list(find_region_pairs(open_source(Path(folder) / "boxes.json")))
    >>> [(pair.container.labels, pair.part.labels) for pair in pairs]
    [(('car',), ('wheel',))]
    """
    require(0 < share <= 1, f"share is {share}; give the part of a region that lies in another, above 0 and at most 1")
    pictures: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items:
        pictures[item.group or item.id].append(item)
    for regions in pictures.values():
        boxes = np.array([_get_box(item) for item in regions], np.float64)
        by_id = {item.id: item for item in reversed(regions)}
        for part in regions:
            container = _find_container(part, regions, boxes, by_id, share, related)
            if container is not None:
                yield RegionPair(container, part)


def _find_container(
    part: Item, regions: Sequence[Item], boxes: Float64, by_id: dict[str, Item], share: float, related: LabelPairs
) -> Item | None:
    if not isinstance(part.content, RegionCrop):
        return None
    named_container = by_id.get(part.content.container_id or "")
    if named_container is not None:
        return named_container if _are_related(named_container, part, related) else None
    box = part.content.region.box
    areas = np.maximum(boxes[:, 2:] - boxes[:, :2], 0).prod(axis=1)
    inside = np.maximum(np.minimum(boxes[:, 2:], box[2:]) - np.maximum(boxes[:, :2], box[:2]), 0).prod(axis=1)
    larger = np.flatnonzero((areas > box.area) & (inside >= share * box.area))
    order: list[int] = larger[np.lexsort((areas[larger], -inside[larger]))].tolist()
    for container in (regions[number] for number in order):
        if set(part.labels).isdisjoint(container.labels) and _are_related(container, part, related):
            return container
    return None


def _get_box(item: Item) -> Box:
    return item.content.region.box if isinstance(item.content, RegionCrop) else _EVERYWHERE


def _are_related(container: Item, part: Item, related: LabelPairs) -> bool:
    return related is None or any(pair in related for pair in product(container.labels, part.labels))


def add_full_images(source: ItemSource, label: str) -> ItemList:
    """Return the regions of a source, each picture's preceded by the full picture, labelled `label`.

    A source of car parts becomes one of cars and their parts: every part lies in its picture at least.

    Parameters
    ----------
    source : ItemSource
        Annotated pictures, such as `open_source` opens.
    label : str
        Label of every full picture.

    Returns
    -------
    ItemList

    Raises
    ------
    InputError
        The label is blank, or not valid text.
    """
    label = normalise_label_name(label)
    require(bool(label), "the label of whole pictures is blank; give a name")
    items: list[Item] = []
    pictures = set[str]()
    for item in source:
        picture = item.group or item.id
        if picture not in pictures:
            items.append(Item(picture, item.full_content, (label,), picture))
            pictures.add(picture)
        if isinstance(item.content, RegionCrop):
            items.append(item)
    return ItemList(source.path, items, kind=getattr(source, "kind", None), full_image_label=label)


@dataclass(frozen=True)
class FixedRegionSource(DerivedItemSource):
    """Source of the same regions of every picture, with ids such as `photo.jpg#10,20,30,40`.

    Examples
    --------
    >>> one = ItemList(Path("a.png"), [Item("a.png", b"", ())])
    >>> [item.id for item in FixedRegionSource.from_texts(one, ["0,0,20,30", "50%, 0%, 50%, 100%"])]
    ['a.png#0,0,20,30', 'a.png#50%,0%,50%,100%']
    """

    regions: dict[str, Region]

    @classmethod
    def from_texts(cls, source: ItemSource, texts: Sequence[str]) -> "FixedRegionSource":
        """Build a source from texts that `parse_region` reads.

        Raises
        ------
        InputError
            One is none.
        """
        return cls(source, {"".join(text.split()): parse_region(text) for text in texts})

    def __len__(self) -> int:
        return len(self.source) * len(self.regions)

    def __iter__(self) -> Iterator[Item]:
        for item in self.source:
            if isinstance(item.content, RegionCrop):
                raise InputError(f"{self.path} holds regions already; give its pictures, or ask for no region")
            for text, region in self.regions.items():
                yield item._replace(id=f"{item.id}#{text}", content=RegionCrop(item.full_content, region))
