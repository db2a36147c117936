"""From an encoded picture, sound or document to a row: the part of the work that runs in worker processes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from wsabie.base.arrays import Float32, Float64, Int32, UInt8
from wsabie.base.errors import InputError
from wsabie.features.augment import View, augmented_id, looked_at, views
from wsabie.features.decode import Decoded, RejectedItem, decode_full
from wsabie.labels.names import normalise
from wsabie.sources.records import Item

Found = TypeVar("Found")


class Described(NamedTuple):
    """An item, or a further view of one, as a sparse row."""

    id: str
    labels: tuple[str, ...]
    group: str | None
    time: str | None
    indices: Int32  # (nnz,) columns, ascending
    values: Float32  # (nnz,)


class Rejected(NamedTuple):
    """An item that was skipped, and why."""

    id: str
    reason: str
    detail: str


class BlockMap(NamedTuple):
    """Which term lies where in a picture.

    Boxes are (left, top, right, bottom) in pixels of the picture in full, upright.
    """

    boxes: Float64  # (n_blocks, 4)
    terms: Int32  # (n_blocks,)
    width: int
    height: int


class Look(NamedTuple):
    """One view of a picture; the views of a picture share what is decoded."""

    decoded: Callable[[int], Decoded]  # at a size, decoded once
    view: View

    def at(self, size: int) -> UInt8:
        """What the view shows, (h, w, 3), of the picture with its longer side scaled down to `size`.

        Raises
        ------
        RejectedItem
        """
        return looked_at(self.decoded(size).pixels, self.view)


Encode: TypeAlias = Callable[[Any], tuple[Int32, Float32]]
"""Columns, ascending, and values of what is seen or heard; can be pickled."""


class Viewer(Protocol):
    """How items are looked at, listened to, or read; sent to each worker once."""

    @property
    def augment(self) -> int:
        """Further looks at each item."""

    @property
    def seed(self) -> int:
        """Of what is random in them."""

    def looks(self, item: Item) -> Iterator[Any]:
        """What encoders are given: the first look, then the further ones."""


@dataclass(frozen=True)
class PictureViewer:
    """How pictures are looked at.

    Attributes
    ----------
    max_pixels : int
        Larger pictures are refused.
    crop : float
        Side of the centred window that is looked at, as a share of the picture's.
    augment : int
        Further, random views of each picture.
    seed : int
    """

    max_pixels: int
    crop: float
    augment: int = 0
    seed: int = 0

    def looks(self, item: Item) -> Iterator[Look]:
        """The centred view, then the random ones."""
        decoded = cache(lambda size: decode_full(item.content, size=size, max_pixels=self.max_pixels))
        for view in views(item.id, self.augment, crop=self.crop, seed=self.seed):
            yield Look(decoded, view)


class Describing(NamedTuple):
    """What workers need to describe items."""

    viewer: Viewer
    encode: Encode

    def rows(self, item: Item) -> list[Described]:
        """A row for each look at an item."""
        group = item.id if item.group is None and self.viewer.augment else item.group
        return [
            Described(augmented_id(item.id, number), item.labels, group, item.time, *self.encode(look))
            for number, look in enumerate(self.viewer.looks(item))
        ]


def describe_batch(job: Describing, batch: tuple[Item, ...]) -> list[list[Described] | Rejected]:
    """For each item its rows, or why it was skipped."""
    return [_or_rejected(item, job.rows) for item in batch]


def _or_rejected(item: Item, look: Callable[[Item], Found]) -> Found | Rejected:
    item = item._replace(id=_as_text(item.id), group=item.group and _as_text(item.group))
    try:
        labels = tuple(dict.fromkeys(name for name in map(normalise, item.labels) if name))
    except InputError:
        return Rejected(item.id, "label that is not valid text", ascii(item.labels)[:200])
    try:
        return look(item._replace(labels=labels))
    except RejectedItem as rejected:
        return Rejected(item.id, rejected.reason, _as_text(rejected.detail))


def _as_text(name: str) -> str:
    """A name that can be stored: bytes of a file's name that are no text are spelled out."""
    return name.encode("utf-8", "backslashreplace").decode()


class Sampling(NamedTuple):
    """What workers need to draw samples for a dictionary."""

    viewer: Viewer
    cut: Callable[[Any], Float32]  # all that can be drawn of a look, (n, n_bins)
    per_item: int


def sample_batch(job: Sampling, batch: tuple[tuple[int, Item], ...]) -> list[Float32 | Rejected]:
    """For each (place in the collection, item) up to `per_item` random samples, or why it was skipped."""
    return [_or_rejected(item, partial(_sampled, job, place)) for place, item in batch]


def _sampled(job: Sampling, place: int, item: Item) -> Float32:
    found = job.cut(next(job.viewer.looks(item)))
    chosen = np.random.default_rng([job.viewer.seed, place]).permutation(len(found))[: job.per_item]
    return found[np.sort(chosen)]
