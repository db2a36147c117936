"""Nesting of regions in a picture, and regions requested of every picture."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Float64, Int64
from wsabie.core.errors import InputError
from wsabie.io.records import Item, ItemList, ItemSource, ModalityName
from wsabie.io.regions import Box, Region, RegionCrop, parse_region
from wsabie.vocabulary.label_names import normalise_label_name

SHARE = 0.8
_EVERYWHERE = Box(-np.inf, -np.inf, np.inf, np.inf)


class RegionPair(NamedTuple):
    """Object and a part of it, in the same picture."""

    container: Item
    part: Item


def find_region_pairs(
    items: Iterable[Item], *, share: float = SHARE, related: Collection[tuple[str, str]] | None = None
) -> Iterator[RegionPair]:
    """Yield for each region the region of its picture that contains it, if there is one.

    That is the object that the collection names (`<part>` of Pascal VOC). Otherwise it is, of the larger
    regions with other labels in whose box at least `share` of the region's box lies, the one in which most of
    it lies, the smallest of several. A whole picture (see `add_full_images`) is the largest of its regions.

    Parameters
    ----------
    items : iterable of Item
        Of one picture all that have it as `group`.
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
    >>> def item(name, label, *box):
    ...     return Item(name, RegionCrop(b"", Region(Box(*box))), (label,), "a.jpg")
    >>> items = [item("a.jpg#1", "car", 0, 0, 90, 50), item("a.jpg#2", "wheel", 5, 30, 25, 52)]
    >>> [(pair.container.id, pair.part.id) for pair in find_region_pairs(items)]
    [('a.jpg#1', 'a.jpg#2')]
    """
    if not 0 < share <= 1:
        raise InputError(f"share is {share}; give the part of a region that lies in another, above 0 and at most 1")
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
    part: Item,
    regions: Sequence[Item],
    boxes: Float64,
    by_id: dict[str, Item],
    share: float,
    related: Collection[tuple[str, str]] | None,
) -> Item | None:
    if not isinstance(part.content, RegionCrop):
        return None
    stated = by_id.get(part.content.container_id or "")
    if stated is not None:
        return stated if related is None or _are_related(stated, part, related) else None
    box = part.content.region.box
    areas = np.maximum(boxes[:, 2:] - boxes[:, :2], 0).prod(axis=1)
    inside = np.maximum(np.minimum(boxes[:, 2:], box[2:]) - np.maximum(boxes[:, :2], box[:2]), 0).prod(axis=1)
    larger = np.flatnonzero((areas > box.area) & (inside >= share * box.area))
    order: list[int] = larger[np.lexsort((areas[larger], -inside[larger]))].tolist()
    for container in (regions[number] for number in order):
        if set(part.labels).isdisjoint(container.labels) and (
            related is None or _are_related(container, part, related)
        ):
            return container
    return None


def _get_box(item: Item) -> Box:
    return item.content.region.box if isinstance(item.content, RegionCrop) else _EVERYWHERE


def _are_related(container: Item, part: Item, related: Collection[tuple[str, str]]) -> bool:
    return any(
        (container_label, part_label) in related for container_label in container.labels for part_label in part.labels
    )


def add_full_images(source: ItemSource, label: str) -> ItemList:
    """Return the regions of a collection, each picture's preceded by the full picture, labelled `label`.

    A collection of car parts becomes one of cars and their parts: every part lies in its picture at least.

    Raises
    ------
    InputError
        The label is blank, or not valid text.
    """
    label = normalise_label_name(label)
    if not label:
        raise InputError("the label of whole pictures is blank; give a name")
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


def find_pair_rows(pairs: Iterable[RegionPair], ids: Sequence[str]) -> Int64:
    """Return (n, 2) row numbers of objects and of their parts; pairs without rows are left out.

    With extracted features (`VisualWords.transform`) this pairs regions for evaluation:

        source = add_full_images(open_source("car_parts"), "car")
        rows = visual_words.transform(source)
        containers, parts = find_pair_rows(find_region_pairs(source), rows.ids).T
    """
    numbers = {name: row for row, name in enumerate(ids)}
    row_pairs = [
        (numbers[pair.container.id], numbers[pair.part.id])
        for pair in pairs
        if pair.container.id in numbers and pair.part.id in numbers
    ]
    return np.array(row_pairs, np.int64).reshape(-1, 2)


@dataclass(frozen=True)
class FixedRegionSource:
    """Source of the same regions of every picture; ids are the picture's with # and the text of a region.

    Examples
    --------
    >>> one = ItemList(Path("a.png"), [Item("a.png", b"", ())])
    >>> [item.id for item in FixedRegionSource.from_texts(one, ["0,0,20,30", "50%, 0%, 50%, 100%"])]
    ['a.png#0,0,20,30', 'a.png#50%,0%,50%,100%']
    """

    source: ItemSource
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

    @property
    def path(self) -> Path:
        return self.source.path

    @property
    def modality(self) -> ModalityName:
        return self.source.modality

    def __len__(self) -> int:
        return len(self.source) * len(self.regions)

    def __iter__(self) -> Iterator[Item]:
        for item in self.source:
            if isinstance(item.content, RegionCrop):
                raise InputError(f"{self.path} holds regions already; give its pictures, or ask for no region")
            for text, region in self.regions.items():
                yield item._replace(id=f"{item.id}#{text}", content=RegionCrop(item.full_content, region))
