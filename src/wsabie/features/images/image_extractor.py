"""Bases of the feature extractors of pictures."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from wsabie.core.arrays import Float64, Int32, UInt8
from wsabie.core.errors import require
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.images.augmentation import CropView, crop_view, generate_views
from wsabie.features.images.image_decoder import DecodedImage, decode_with_size, read_capture_time
from wsabie.io.records import Item

MAX_PIXELS = 64_000_000


class BlockMap(NamedTuple):
    """Visual words of a picture, each with its box.

    Boxes are (left, top, right, bottom) in pixels of the picture in full, upright.
    """

    boxes: Float64  # (n_blocks, 4)
    words: Int32  # (n_blocks,)
    width: int
    height: int


class ImageView(NamedTuple):
    """View of a picture; all views share the decoded picture."""

    decoded: Callable[[int], DecodedImage]  # at a size, decoded once
    crop: CropView

    def scale_to(self, size: int) -> UInt8:
        """Return the pixels of the view, (h, w, 3), with the longer side of the picture scaled to `size`.

        Raises
        ------
        UnreadableItemError
        """
        return crop_view(self.decoded(size).pixels, self.crop)


@dataclass(eq=False, repr=False, kw_only=True)
class ImageFeatureExtractor(FeatureExtractor):
    """Base of the feature extractors of pictures.

    Parameters
    ----------
    crop : float
        Side of the centred window, as a share of the picture's. Below 1 it goes well with `augment`, whose random
        windows then show what the centred one leaves out.
    max_pixels : int
        Larger pictures are rejected before they are decoded.
    seed : int
        Seed of the training sample and of the random views.
    """

    crop: float = 1.0
    max_pixels: int = MAX_PIXELS

    def iterate_views(self, item: Item, augment: int = 0) -> Iterator[ImageView]:
        """Yield the centred view, then the random ones.

        Parameters
        ----------
        item : Item
        augment : int, default 0
            Number of random views.

        Yields
        ------
        ImageView
        """
        decoded = cache(lambda size: decode_with_size(item.content, size=size, max_pixels=self.max_pixels))
        for crop in generate_views(item.id, augment, crop=self.crop, seed=self.seed):
            yield ImageView(decoded, crop)

    def read_time(self, item: Item) -> str | None:
        """Return the time that the source states, else the capture time in the file.

        Parameters
        ----------
        item : Item

        Returns
        -------
        str or None
        """
        return item.time or read_capture_time(item.full_content, max_pixels=self.max_pixels)

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        super().check()
        in_range = 0 < self.crop <= 1
        require(in_range, f"crop is {self.crop}; give a share of the picture's side, above 0 and at most 1")


@dataclass(eq=False, repr=False, kw_only=True)
class ScaledImageExtractor(ImageFeatureExtractor):
    """Base of the feature extractors of pictures that are scaled down first.

    Parameters
    ----------
    size : int
        Longer side in pixels to which pictures are scaled down; smaller ones stay as they are.
    crop, max_pixels, seed
        As in `ImageFeatureExtractor`.
    """

    size: int = 256

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        super().check()
        require(1 <= self.size <= 4096, f"size is {self.size}; give the longer side in pixels, from 1 to 4096")
