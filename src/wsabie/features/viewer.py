"""From an encoded picture to visual terms: the part of the work that runs in worker processes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from wsabie.base.arrays import Float32, Float64, Int32
from wsabie.base.errors import InputError
from wsabie.features.augment import augmented_id, looked_at, views, window_of
from wsabie.features.blocks import BlockPlan, block_boxes, describe_blocks
from wsabie.features.decode import Decoded, RejectedPicture, decode_full
from wsabie.features.dictionary import Dictionary
from wsabie.labels.names import normalise
from wsabie.sources.records import Picture

Found = TypeVar("Found")


class Described(NamedTuple):
    """A picture, or a further view of one, as a sparse row."""

    id: str
    labels: tuple[str, ...]
    group: str | None
    time: str | None
    indices: Int32  # (nnz,) terms, ascending
    values: Float32  # (nnz,) how many blocks carry each


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


@dataclass(frozen=True)
class Viewer:
    """How pictures are looked at; sent to each worker once.

    Attributes
    ----------
    size : int
        Longer side in pixels to which pictures are scaled down.
    max_pixels : int
        Larger pictures are refused.
    crop : float
        Side of the centred window that is looked at, as a share of the picture's.
    plan : BlockPlan
    augment : int
        Further, random views of each picture.
    seed : int
    """

    size: int
    max_pixels: int
    crop: float
    plan: BlockPlan
    augment: int = 0
    seed: int = 0

    def decode(self, picture: Picture) -> Decoded:
        """The picture in small.

        Raises
        ------
        RejectedPicture
        """
        return decode_full(picture.content, size=self.size, max_pixels=self.max_pixels)

    def blocks(self, picture: Picture) -> Iterator[Float32]:
        """Descriptors (n_blocks, n_bins) of each view of a picture."""
        pixels = self.decode(picture).pixels
        for view in views(picture.id, self.augment, crop=self.crop, seed=self.seed):
            yield describe_blocks(looked_at(pixels, view), self.plan)

    def describe(self, picture: Picture, dictionary: Dictionary) -> list[Described]:
        """A sparse row for each view of a picture."""
        group = picture.id if picture.group is None and self.augment else picture.group
        rows = []
        for number, blocks in enumerate(self.blocks(picture)):
            terms, counts = np.unique(dictionary.assign(blocks), return_counts=True)
            name = augmented_id(picture.id, number)
            rows.append(Described(name, picture.labels, group, picture.time, terms, counts.astype(np.float32)))
        return rows

    def block_map(self, picture: Picture, dictionary: Dictionary) -> BlockMap:
        """The terms of the centred view and where they lie."""
        decoded = self.decode(picture)
        height, width = decoded.pixels.shape[:2]
        view = views(picture.id, crop=self.crop)[0]
        window, part = window_of(view, height, width), looked_at(decoded.pixels, view)
        terms = dictionary.assign(describe_blocks(part, self.plan))
        boxes = block_boxes(part.shape[0], part.shape[1], self.plan) + np.array([window.left, window.top] * 2)
        scale = np.array([decoded.width / width, decoded.height / height] * 2)
        return BlockMap(boxes * scale, terms, decoded.width, decoded.height)


class Describing(NamedTuple):
    """What workers need to describe pictures."""

    viewer: Viewer
    dictionary: Dictionary


def describe_batch(job: Describing, batch: tuple[Picture, ...]) -> list[list[Described] | Rejected]:
    """For each picture its rows, or why it was skipped."""
    look = partial(_described, job)
    return [_or_rejected(picture, look) for picture in batch]


def _described(job: Describing, picture: Picture) -> list[Described]:
    return job.viewer.describe(picture, job.dictionary)


def _or_rejected(picture: Picture, look: Callable[[Picture], Found]) -> Found | Rejected:
    picture = picture._replace(id=_as_text(picture.id), group=picture.group and _as_text(picture.group))
    try:
        labels = tuple(dict.fromkeys(name for name in map(normalise, picture.labels) if name))
        return look(picture._replace(labels=labels))
    except RejectedPicture as rejected:
        return Rejected(picture.id, rejected.reason, _as_text(rejected.detail))
    except InputError:
        return Rejected(picture.id, "label that is not valid text", ascii(picture.labels)[:200])


def _as_text(name: str) -> str:
    """A name that can be stored: bytes of a file's name that are no text are spelled out."""
    return name.encode("utf-8", "backslashreplace").decode()


class Sampling(NamedTuple):
    """What workers need to draw blocks for a dictionary."""

    viewer: Viewer
    per_picture: int


def sample_batch(job: Sampling, batch: tuple[tuple[int, Picture], ...]) -> list[Float32 | Rejected]:
    """For each (place in the collection, picture) up to `per_picture` random blocks, or why it was skipped."""
    return [_or_rejected(picture, partial(_sampled, job, place)) for place, picture in batch]


def _sampled(job: Sampling, place: int, picture: Picture) -> Float32:
    blocks = next(job.viewer.blocks(picture))
    chosen = np.random.default_rng([job.viewer.seed, place]).permutation(len(blocks))[: job.per_picture]
    return blocks[np.sort(chosen)]
