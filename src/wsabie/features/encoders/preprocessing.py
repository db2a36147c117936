"""Preprocessing of pictures as the `preprocessor_config.json` of an encoder states it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image

from wsabie.core.arrays import Float32, UInt8
from wsabie.core.errors import require
from wsabie.storage.schema_validation import PositiveCount

MAX_SIDE = 1365
"""Largest side of an input, in pixels."""
_MAX_RATIO = 16  # of the sides of a picture that is scaled whole; of others, the ends are cut off first


@dataclass(frozen=True)
class Preprocessing:
    """Preprocessing of pictures, with the fields and defaults of `transformers`.

    Attributes
    ----------
    size : int or dict
        The shorter side after scaling, as a number or "shortest_edge"; or "height" and "width", to which a picture is
        scaled whatever its shape.
    crop_size : int, dict or None
        Centred part that the network takes; None: the size.
    do_center_crop : bool or None
    resample : int
        Filter, as Pillow numbers them.
    rescale_factor : float
        Multiplier of bytes, before normalisation.
    image_mean, image_std : tuple of float
        Mean and deviation of red, green and blue after that.
    """

    size: PositiveCount | dict[str, PositiveCount | None]
    crop_size: PositiveCount | dict[str, PositiveCount] | None = None
    do_center_crop: bool | None = None
    resample: Literal[0, 1, 2, 3, 4, 5] = 3
    rescale_factor: float = 1 / 255
    image_mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    image_std: tuple[float, float, float] = (1.0, 1.0, 1.0)

    @property
    def shorter_side(self) -> int | None:
        """Shorter side after scaling; None where the shape of pictures changes."""
        return self.size if isinstance(self.size, int) else self.size.get("shortest_edge")

    @property
    def side(self) -> int:
        """Side of the input."""
        size = self.crop_size if self.do_center_crop and self.crop_size is not None else self.size
        sides = {size} if isinstance(size, int) else set(size.values()) - {None}
        require(len(sides) == 1, f"the encoder takes pictures of {size}; choose one that takes squares")
        return int(sides.pop() or 0)

    def check(self) -> None:
        """Raise InputError for settings that no encoder has."""
        is_inside = self.side <= (self.shorter_side or self.side) <= MAX_SIDE
        require(is_inside, f"the encoder scales pictures to {self.size} and takes {self.crop_size}; choose another")

    def moments(self) -> tuple[Float32, Float32]:
        """Return the mean and deviation of values from 0 to 1, (3,) each."""
        factor = 255 * self.rescale_factor
        mean, deviation = (np.array(values) / factor for values in (self.image_mean, self.image_std))
        return mean.astype(np.float32), deviation.astype(np.float32)

    def scale(self, pixels: UInt8) -> UInt8:
        """Return the part that the network takes, (side, side, 3), of a picture (h, w, 3).

        Examples
        --------
        >>> Preprocessing(size=8, crop_size=4, do_center_crop=True).scale(np.zeros((9, 20, 3), np.uint8)).shape
        (4, 4, 3)
        """
        resample, side = Image.Resampling(self.resample), self.side
        if self.shorter_side is None:
            return np.asarray(Image.fromarray(pixels).resize((side, side), resample))
        height, width = (min(length, _MAX_RATIO * min(pixels.shape[:2])) for length in pixels.shape[:2])
        left, top = (pixels.shape[1] - width) // 2, (pixels.shape[0] - height) // 2
        picture = Image.fromarray(pixels[top : top + height, left : left + width])
        target = [int(self.shorter_side * length / min(height, width)) for length in (width, height)]
        left, top = ((length - side) // 2 for length in target)
        scaled = picture.resize((target[0], target[1]), resample)
        return np.asarray(scaled.crop((left, top, left + side, top + side)))
