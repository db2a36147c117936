"""Which region of a picture lies in which other one, and regions that are asked for of any picture."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wsabie.base.arrays import Float64, Int64
from wsabie.base.errors import InputError
from wsabie.labels.names import normalise
from wsabie.sources.records import Item, ItemList, ItemSource, Things
from wsabie.sources.regions import Box, Cutout, Region, parse_region

SHARE = 0.8
_EVERYWHERE = Box(-np.inf, -np.inf, np.inf, np.inf)


class Couple(NamedTuple):
    """An object and a part of it, in the same picture."""

    whole: Item
    part: Item


def parts_of_regions(
    items: Iterable[Item], *, share: float = SHARE, related: Collection[tuple[str, str]] | None = None
) -> Iterator[Couple]:
    """For each region the region of its picture that it lies in, where there is one.

    That is the object that the collection names (`<part>` of Pascal VOC). Otherwise it is, of the larger regions with
    other labels in whose box at least `share` of the region's box lies, the one in which most of it lies, the smallest
    of several. A whole picture (see `with_pictures`) is the largest of its regions.

    Parameters
    ----------
    items : iterable of Item
        Of one picture all that have it as `group`.
    share : float
        Above 0, at most 1.
    related : collection of (str, str) or None
        Labels of objects and of their parts: only such couples. None: whatever the labels are.

    Returns
    -------
    iterator of Couple
        In the order of pictures and parts.

    Raises
    ------
    InputError
        The share is none.

    Examples
    --------
    >>> def item(name, label, *box):
    ...     return Item(name, Cutout(b"", Region(Box(*box))), (label,), "a.jpg")
    >>> items = [item("a.jpg#1", "car", 0, 0, 90, 50), item("a.jpg#2", "wheel", 5, 30, 25, 52)]
    >>> [(couple.whole.id, couple.part.id) for couple in parts_of_regions(items)]
    [('a.jpg#1', 'a.jpg#2')]
    """
    if not 0 < share <= 1:
        raise InputError(f"share is {share}; give the part of a region that lies in another, above 0 and at most 1")
    pictures: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items:
        pictures[item.group or item.id].append(item)
    for together in pictures.values():
        boxes = np.array([_box(item) for item in together], np.float64)
        by_id = {item.id: item for item in reversed(together)}
        for part in together:
            whole = _whole_of(part, together, boxes, by_id, share, related)
            if whole is not None:
                yield Couple(whole, part)


def _whole_of(
    part: Item,
    together: Sequence[Item],
    boxes: Float64,
    by_id: dict[str, Item],
    share: float,
    related: Collection[tuple[str, str]] | None,
) -> Item | None:
    if not isinstance(part.content, Cutout):
        return None
    stated = by_id.get(part.content.whole or "")
    if stated is not None:
        return stated if related is None or _are_related(stated, part, related) else None
    box = part.content.region.box
    areas = np.maximum(boxes[:, 2:] - boxes[:, :2], 0).prod(axis=1)
    inside = np.maximum(np.minimum(boxes[:, 2:], box[2:]) - np.maximum(boxes[:, :2], box[:2]), 0).prod(axis=1)
    larger = np.flatnonzero((areas > box.area) & (inside >= share * box.area))
    order: list[int] = larger[np.lexsort((areas[larger], -inside[larger]))].tolist()
    for whole in (together[number] for number in order):
        if set(part.labels).isdisjoint(whole.labels) and (related is None or _are_related(whole, part, related)):
            return whole
    return None


def _box(item: Item) -> Box:
    return item.content.region.box if isinstance(item.content, Cutout) else _EVERYWHERE


def _are_related(whole: Item, part: Item, related: Collection[tuple[str, str]]) -> bool:
    return any((one, other) in related for one in whole.labels for other in part.labels)


def with_pictures(source: ItemSource, label: str) -> ItemList:
    """The regions of a collection, and before those of each picture the picture in full, labelled `label`.

    A collection of car parts becomes one of cars and their parts: every part lies in its picture at least.

    Raises
    ------
    InputError
        The label is blank, or not valid text.
    """
    label = normalise(label)
    if not label:
        raise InputError("the label of whole pictures is blank; give a name")
    items: list[Item] = []
    seen = set[str]()
    for item in source:
        picture = item.group or item.id
        if picture not in seen:
            items.append(Item(picture, item.whole, (label,), picture))
            seen.add(picture)
        if isinstance(item.content, Cutout):
            items.append(item)
    return ItemList(source.path, items, kind=getattr(source, "kind", None), whole=label)


def couple_rows(couples: Iterable[Couple], ids: Sequence[str]) -> Int64:
    """(n, 2) row numbers of objects and of their parts; couples of which an item has no row are left out.

    With the rows of a description (`VisualTerms.transform`) this joins regions as evaluation wants them:

        source = with_pictures(open_source("car_parts"), "car")
        rows = terms.transform(source)
        wholes, parts = couple_rows(parts_of_regions(source), rows.ids).T
    """
    numbers = {name: row for row, name in enumerate(ids)}
    found = [
        (numbers[one.whole.id], numbers[one.part.id])
        for one in couples
        if one.whole.id in numbers and one.part.id in numbers
    ]
    return np.array(found, np.int64).reshape(-1, 2)


@dataclass(frozen=True)
class RegionsOf:
    """The same regions of every picture of a source; a region's id is the picture's with # and how it was asked for.

    Examples
    --------
    >>> one = ItemList(Path("a.png"), [Item("a.png", b"", ())])
    >>> [item.id for item in RegionsOf.asked(one, ["0,0,20,30", "50%, 0%, 50%, 100%"])]
    ['a.png#0,0,20,30', 'a.png#50%,0%,50%,100%']
    """

    source: ItemSource
    regions: dict[str, Region]

    @classmethod
    def asked(cls, source: ItemSource, texts: Sequence[str]) -> "RegionsOf":
        """Regions as `parse_region` takes them.

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
    def things(self) -> Things:
        return self.source.things

    def __len__(self) -> int:
        return len(self.source) * len(self.regions)

    def __iter__(self) -> Iterator[Item]:
        for item in self.source:
            if isinstance(item.content, Cutout):
                raise InputError(f"{self.path} holds regions already; give its pictures, or ask for no region")
            for text, region in self.regions.items():
                yield item._replace(id=f"{item.id}#{text}", content=Cutout(item.whole, region))
