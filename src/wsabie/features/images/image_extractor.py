"""Base of the feature extractors of pictures."""

from typing import ClassVar

from wsabie.core.errors import InputError
from wsabie.features.base.extraction_tasks import ImageDecoder
from wsabie.features.base.feature_extractor import FeatureExtractor

MAX_PIXELS = 64_000_000


class ImageFeatureExtractor(FeatureExtractor):
    """Base of the feature extractors of pictures.

    Parameters
    ----------
    size : int
        Longer side in pixels to which pictures are scaled down; smaller ones stay as they are.
    crop : float
        Side of the centred window, as a share of the picture's. Below 1 it goes well with `augment`, whose random
        windows then show what the centred one leaves out.
    max_pixels : int
        Larger pictures are rejected before they are decoded.
    seed : int
        Seed of the training sample and of the random views.
    """

    _common: ClassVar[tuple[str, ...]] = ("size", "crop", "max_pixels", "seed")

    def __init__(self, *, size: int = 256, crop: float = 1.0, max_pixels: int = MAX_PIXELS, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.size = size
        self.crop = crop
        self.max_pixels = max_pixels

    def make_decoder(self, augment: int = 0) -> ImageDecoder:
        """Return the decoder of pictures."""
        return ImageDecoder(self.max_pixels, self.crop, augment, self.seed)

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        super().check()
        if not 1 <= self.size <= 4096:
            raise InputError(f"size is {self.size}; give the longer side in pixels, from 1 to 4096")
        if not 0 < self.crop <= 1:
            raise InputError(f"crop is {self.crop}; give a share of the picture's side, above 0 and at most 1")
