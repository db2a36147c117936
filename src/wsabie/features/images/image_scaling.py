"""Scaling of pictures of any mode to RGB, tile by tile, without a full copy in another mode.

A tile holds whole squares of `Image.reduce`, so that the result is that of the whole picture.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from PIL import Image

from wsabie.core.arrays import Float32, UInt8

TILE = 1 << 20
"""Approximate pixels of a tile."""

_WHITE = (255, 255, 255, 255)
_GAP = 2.0  # a picture is averaged down to this many times its size, and from there interpolated
_SIXTEEN_BITS = 65_535.0


class GreyLevels(NamedTuple):
    """Range of grey values of more than 8 bits: the value of black, and the distance to white."""

    darkest: float
    span: float


def compute_scaled_size(width: int, height: int, size: int) -> tuple[int, int]:
    """Return the size of a picture whose longer side is at most `size`.

    Examples
    --------
    >>> compute_scaled_size(640, 320, 64), compute_scaled_size(10, 10, 64)
    ((64, 32), (10, 10))
    """
    longest = max(width, height)
    if longest <= size:
        return width, height
    return max(1, round(width * size / longest)), max(1, round(height * size / longest))


def compute_reduction_factors(size: tuple[int, int], target: tuple[int, int]) -> tuple[int, int]:
    """Return the factors, across and down, by which pixels are averaged before interpolation.

    Examples
    --------
    >>> compute_reduction_factors((4000, 3000), (256, 192))
    (7, 7)
    """
    return int(size[0] / target[0] / _GAP) or 1, int(size[1] / target[1] / _GAP) or 1


def can_scale_directly(image: Image.Image) -> bool:
    """Return True if the picture can be scaled as it is."""
    return image.mode in ("L", "RGB", "CMYK") and "transparency" not in image.info


def find_grey_levels(image: Image.Image) -> GreyLevels | None:
    """Return the levels of a loaded picture with more than 8 bits a channel; None for others."""
    if not (image.mode.startswith("I") or image.mode == "F"):
        return None
    if image.mode.startswith("I;16"):
        return GreyLevels(0.0, _SIXTEEN_BITS)
    tiles = (_as_floats(tile) for _, _, tile in _iterate_tiles(image, 1, 1))
    ranges = [(float(values.min()), float(values.max())) for values in tiles]
    darkest, lightest = min(low for low, _ in ranges), max(high for _, high in ranges)
    top = 1.0 if image.mode == "F" else _SIXTEEN_BITS
    return (
        GreyLevels(darkest, max(lightest - darkest, 1e-30)) if darkest < 0 or lightest > top else GreyLevels(0.0, top)
    )


def shrink_image(image: Image.Image, size: int, levels: GreyLevels | None = None) -> Image.Image:
    """Return a picture in RGB with its longer side scaled down to `size`; transparency is laid on white.

    Parameters
    ----------
    image : Image
        Loaded.
    size : int
    levels : GreyLevels or None
        Result of `find_grey_levels` for the picture that `image` is a part of.
    """
    target = compute_scaled_size(*image.size, size)
    if can_scale_directly(image):
        small = image
        if target != image.size:
            small = image.resize(target, Image.Resampling.BILINEAR, reducing_gap=_GAP)
        return small if small.mode == "RGB" else small.convert("RGB")
    across, down = compute_reduction_factors(image.size, target)
    reduced: Image.Image | None = None
    for left, top, tile in _iterate_tiles(image, across, down):
        part = _convert_to_plain_mode(tile, levels)
        if target != image.size:
            part = part.convert("RGBa") if part.mode == "RGBA" else part  # colours of transparent pixels do not count
            part = part.reduce((across, down)) if across > 1 or down > 1 else part
        if reduced is None:
            reduced = Image.new(part.mode, (-(-image.width // across), -(-image.height // down)))
        reduced.paste(part, (left // across, top // down))
    return _lay_on_white(_interpolate(reduced or image, image.size, target, (across, down)))


def _interpolate(
    reduced: Image.Image, size: tuple[int, int], target: tuple[int, int], factors: tuple[int, int]
) -> Image.Image:
    if target == size:
        return reduced
    box = (0.0, 0.0, size[0] / factors[0], size[1] / factors[1])
    small = reduced.resize(target, Image.Resampling.BILINEAR, box=box)
    return small.convert("RGBA") if small.mode == "RGBa" else small


def _lay_on_white(image: Image.Image) -> Image.Image:
    if image.mode == "RGBA":
        image = Image.alpha_composite(Image.new("RGBA", image.size, _WHITE), image)
    return image if image.mode == "RGB" else image.convert("RGB")


def _convert_to_plain_mode(image: Image.Image, levels: GreyLevels | None) -> Image.Image:
    """Convert to 8 bits a channel, without palette, with transparency as a channel."""
    if levels is not None:
        return Image.fromarray(_convert_to_bytes(image, levels))
    if image.mode in ("LA", "PA", "La", "RGBa", "RGBA") or "transparency" in image.info:
        return image.convert("RGBA")
    return image if can_scale_directly(image) else image.convert("RGB")


def _as_floats(image: Image.Image) -> Float32:
    return np.nan_to_num(np.asarray(image).astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)


def _convert_to_bytes(image: Image.Image, levels: GreyLevels) -> UInt8:
    """Convert grey values of 16 or 32 bits to 0 to 255."""
    values = _as_floats(image)
    if levels.darkest != 0:
        values = values - levels.darkest
    return np.asarray(np.rint(values * (255 / levels.span)).astype(np.uint8))


def _iterate_tiles(image: Image.Image, across: int, down: int) -> Iterator[tuple[int, int, Image.Image]]:
    """Yield left, top and content of tiles whose sides are multiples of `across` and `down`."""
    width, height = image.size
    if width * height <= TILE:
        yield 0, 0, image
        return
    wide = width if width <= TILE else max(1, TILE // across) * across
    high = max(1, TILE // wide // down) * down
    for top in range(0, height, high):
        for left in range(0, width, wide):
            yield left, top, image.crop((left, top, min(left + wide, width), min(top + high, height)))
