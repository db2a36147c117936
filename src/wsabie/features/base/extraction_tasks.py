"""Tasks of worker processes: from an encoded picture, sound or document to a row."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from wsabie.core.arrays import Float32, Float64, Int32, UInt8
from wsabie.core.errors import InputError
from wsabie.features.images.augmentation import CropView, crop_view, format_view_id, generate_views
from wsabie.features.images.image_decoder import DecodedImage, UnreadableItemError, decode_with_size
from wsabie.io.records import Item
from wsabie.vocabulary.label_names import normalise_label_name

Result = TypeVar("Result")


class ItemFeatures(NamedTuple):
    """Sparse row of an item, or of a further view of one."""

    id: str
    labels: tuple[str, ...]
    group: str | None
    time: str | None
    indices: Int32  # (nnz,) columns, ascending
    values: Float32  # (nnz,)


class ItemRejection(NamedTuple):
    """Skipped item with the reason."""

    id: str
    reason: str
    detail: str


class BlockMap(NamedTuple):
    """Visual words of a picture with their places.

    Boxes are (left, top, right, bottom) in pixels of the picture in full, upright.
    """

    boxes: Float64  # (n_blocks, 4)
    terms: Int32  # (n_blocks,)
    width: int
    height: int


class ImageView(NamedTuple):
    """View of a picture; all views share the decoded picture."""

    decoded: Callable[[int], DecodedImage]  # at a size, decoded once
    view: CropView

    def at(self, size: int) -> UInt8:
        """Return the pixels of the view, (h, w, 3), with the longer side of the picture scaled to `size`.

        Raises
        ------
        UnreadableItemError
        """
        return crop_view(self.decoded(size).pixels, self.view)


Encode: TypeAlias = Callable[[Any], tuple[Int32, Float32]]
"""Picklable function from a decoded item to its columns, ascending, and values."""


class ItemDecoder(Protocol):
    """Protocol of decoders of items, sent to each worker once."""

    @property
    def augment(self) -> int:
        """Number of further views of each item."""

    @property
    def seed(self) -> int:
        """Seed of the random views."""

    def iterate_views(self, item: Item) -> Iterator[Any]:
        """Yield the input of encoders: the first view, then the further ones."""


@dataclass(frozen=True)
class ImageDecoder:
    """Decoder of pictures.

    Attributes
    ----------
    max_pixels : int
        Larger pictures are refused.
    crop : float
        Side of the centred window, as a share of the picture's.
    augment : int
        Further, random views of each picture.
    seed : int
    """

    max_pixels: int
    crop: float
    augment: int = 0
    seed: int = 0

    def iterate_views(self, item: Item) -> Iterator[ImageView]:
        """Yield the centred view, then the random ones."""
        decoded = cache(lambda size: decode_with_size(item.content, size=size, max_pixels=self.max_pixels))
        for view in generate_views(item.id, self.augment, crop=self.crop, seed=self.seed):
            yield ImageView(decoded, view)


class ExtractionTask(NamedTuple):
    """Decoder and encoder that workers need to extract features."""

    viewer: ItemDecoder
    encode: Encode

    def rows(self, item: Item) -> list[ItemFeatures]:
        """Return a row for each view of an item."""
        group = item.id if item.group is None and self.viewer.augment else item.group
        return [
            ItemFeatures(format_view_id(item.id, number), item.labels, group, item.time, *self.encode(look))
            for number, look in enumerate(self.viewer.iterate_views(item))
        ]


def extract_batch(job: ExtractionTask, batch: tuple[Item, ...]) -> list[list[ItemFeatures] | ItemRejection]:
    """Return the rows of each item, or its rejection."""
    return [_process_or_reject(item, job.rows) for item in batch]


def _process_or_reject(item: Item, process: Callable[[Item], Result]) -> Result | ItemRejection:
    item = item._replace(id=_as_text(item.id), group=item.group and _as_text(item.group))
    try:
        labels = tuple(dict.fromkeys(name for name in map(normalise_label_name, item.labels) if name))
    except InputError:
        return ItemRejection(item.id, "label that is not valid text", ascii(item.labels)[:200])
    try:
        return process(item._replace(labels=labels))
    except UnreadableItemError as rejected:
        return ItemRejection(item.id, rejected.reason, _as_text(rejected.detail))


def _as_text(name: str) -> str:
    """Return a storable name, in which bytes that are no text are escaped."""
    return name.encode("utf-8", "backslashreplace").decode()


class SamplingTask(NamedTuple):
    """Decoder and sampler that workers need to draw samples for a codebook."""

    viewer: ItemDecoder
    cut: Callable[[Any], Float32]  # all samples of a view, (n, n_bins)
    per_item: int


def sample_batch(job: SamplingTask, batch: tuple[tuple[int, Item], ...]) -> list[Float32 | ItemRejection]:
    """Return up to `per_item` random samples of each (position, item), or its rejection."""
    return [_process_or_reject(item, partial(_draw_sample, job, place)) for place, item in batch]


def _draw_sample(job: SamplingTask, place: int, item: Item) -> Float32:
    blocks = job.cut(next(job.viewer.iterate_views(item)))
    positions = np.random.default_rng([job.viewer.seed, place]).permutation(len(blocks))[: job.per_item]
    return blocks[np.sort(positions)]
