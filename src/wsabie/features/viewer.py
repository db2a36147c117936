"""From an encoded picture to a row: the part of the work that runs in worker processes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from wsabie.base.arrays import Float32, Float64, Int32, UInt8
from wsabie.base.errors import InputError
from wsabie.features.augment import View, augmented_id, looked_at, views
from wsabie.features.decode import Decoded, RejectedPicture, decode_full
from wsabie.labels.names import normalise
from wsabie.sources.records import Picture

Found = TypeVar("Found")


class Described(NamedTuple):
    """A picture, or a further view of one, as a sparse row."""

    id: str
    labels: tuple[str, ...]
    group: str | None
    time: str | None
    indices: Int32  # (nnz,) columns, ascending
    values: Float32  # (nnz,)


class Rejected(NamedTuple):
    """A picture that was skipped, and why."""

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
        RejectedPicture
        """
        return looked_at(self.decoded(size).pixels, self.view)


Encode: TypeAlias = Callable[[Look], tuple[Int32, Float32]]
"""Columns, ascending, and values of what is seen; can be pickled."""


@dataclass(frozen=True)
class Viewer:
    """How pictures are looked at; sent to each worker once.

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

    def looks(self, picture: Picture) -> Iterator[Look]:
        """The centred view, then the random ones."""
        decoded = cache(lambda size: decode_full(picture.content, size=size, max_pixels=self.max_pixels))
        for view in views(picture.id, self.augment, crop=self.crop, seed=self.seed):
            yield Look(decoded, view)


class Describing(NamedTuple):
    """What workers need to describe pictures."""

    viewer: Viewer
    encode: Encode

    def rows(self, picture: Picture) -> list[Described]:
        """A row for each view of a picture."""
        group = picture.id if picture.group is None and self.viewer.augment else picture.group
        return [
            Described(augmented_id(picture.id, number), picture.labels, group, picture.time, *self.encode(look))
            for number, look in enumerate(self.viewer.looks(picture))
        ]


def describe_batch(job: Describing, batch: tuple[Picture, ...]) -> list[list[Described] | Rejected]:
    """For each picture its rows, or why it was skipped."""
    return [_or_rejected(picture, job.rows) for picture in batch]


def _or_rejected(picture: Picture, look: Callable[[Picture], Found]) -> Found | Rejected:
    picture = picture._replace(id=_as_text(picture.id), group=picture.group and _as_text(picture.group))
    try:
        labels = tuple(dict.fromkeys(name for name in map(normalise, picture.labels) if name))
    except InputError:
        return Rejected(picture.id, "label that is not valid text", ascii(picture.labels)[:200])
    try:
        return look(picture._replace(labels=labels))
    except RejectedPicture as rejected:
        return Rejected(picture.id, rejected.reason, _as_text(rejected.detail))


def _as_text(name: str) -> str:
    """A name that can be stored: bytes of a file's name that are no text are spelled out."""
    return name.encode("utf-8", "backslashreplace").decode()


class Sampling(NamedTuple):
    """What workers need to draw samples for a dictionary."""

    viewer: Viewer
    cut: Callable[[Look], Float32]  # all that can be drawn of a view, (n, n_bins)
    per_picture: int


def sample_batch(job: Sampling, batch: tuple[tuple[int, Picture], ...]) -> list[Float32 | Rejected]:
    """For each (place in the collection, picture) up to `per_picture` random samples, or why it was skipped."""
    return [_or_rejected(picture, partial(_sampled, job, place)) for place, picture in batch]


def _sampled(job: Sampling, place: int, picture: Picture) -> Float32:
    found = job.cut(next(job.viewer.looks(picture)))
    chosen = np.random.default_rng([job.viewer.seed, place]).permutation(len(found))[: job.per_picture]
    return found[np.sort(chosen)]
