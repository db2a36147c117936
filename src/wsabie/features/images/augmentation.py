"""Further views of training pictures: flipped, cropped and shifted, reproducibly for each picture."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import UInt8
from wsabie.core.errors import require

_SMALLEST = 0.8  # a random window's side, as a share of the picture's
_DIGITS = 9  # of a view's number, at most


class CropView(NamedTuple):
    """Window of a picture in shares of its sides, mirrored or not."""

    left: float
    top: float
    side: float  # of both sides
    flip: bool = False


def generate_views(picture_id: str, augment: int = 0, *, crop: float = 1.0, seed: int = 0) -> list[CropView]:
    """Return the centred view followed by `augment` random ones.

    A random view has a side of 0.8 to 1 times that of the centred one, lies anywhere in the picture and is mirrored
    every other time. It depends on the picture's id, its number and the seed, not on the order of work.

    Parameters
    ----------
    picture_id : str
    augment : int
        Random views beside the centred one.
    crop : float
        Side of the centred view as a share of the picture's.
    seed : int

    Raises
    ------
    InputError
        A negative number of views, or a crop outside (0, 1].

    Examples
    --------
    >>> generate_views("a.jpg", crop=0.5)
    [CropView(left=0.25, top=0.25, side=0.5, flip=False)]
    >>> (
    ...     generate_views("a.jpg", 2) == generate_views("a.jpg", 2),
    ...     generate_views("a.jpg", 2)[2] == generate_views("b.jpg", 2)[2],
    ... )
    (True, False)
    """
    require(augment >= 0, f"augment is {augment}; give the number of further views of each picture, 0 or more")
    require(0 < crop <= 1, f"crop is {crop}; give the share of a picture's side to look at, above 0 and at most 1")
    centre = (1 - crop) / 2
    return [CropView(centre, centre, crop), *(_draw_view(picture_id, k, crop, seed) for k in range(1, augment + 1))]


def _draw_view(picture_id: str, number: int, crop: float, seed: int) -> CropView:
    key = hashlib.blake2b(f"{seed}:{number}:{picture_id}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
    draws = np.random.default_rng(int.from_bytes(key, "little")).random(4).tolist()
    side = crop * (_SMALLEST + (1 - _SMALLEST) * draws[0])
    return CropView(draws[1] * (1 - side), draws[2] * (1 - side), side, draws[3] < 0.5)


def format_view_id(picture_id: str, number: int) -> str:
    """Return the id of view `number` of a picture; the centred view, number 0, keeps the picture's id.

    Examples
    --------
    >>> format_view_id("a.jpg", 0), format_view_id("a.jpg", 2)
    ('a.jpg', 'a.jpg#2')
    """
    return f"{picture_id}#{number}" if number else picture_id


def strip_view_ids(ids: Sequence[str], augment: int) -> list[str]:
    """Return the picture id of each row; a centred view or any other row keeps its id.

    Parameters
    ----------
    ids : sequence of str
    augment : int
        Random views of each picture; ids with higher numbers stay.

    Examples
    --------
    >>> strip_view_ids(["a.jpg", "a.jpg#2", "a.jpg#3", "C#1"], 2)
    ['a.jpg', 'a.jpg', 'a.jpg#3', 'C#1']
    """
    known_ids = set(ids)

    def original(name: str) -> str:
        base, _, number = name.rpartition("#")
        if base not in known_ids or not number.isdecimal() or len(number) > _DIGITS:
            return name
        k = int(number)
        return base if k <= augment and format_view_id(base, k) == name else name

    return [original(name) for name in ids]


class PixelWindow(NamedTuple):
    """View in whole pixels: first column and row, and the first ones outside."""

    left: int
    top: int
    right: int
    bottom: int


def compute_pixel_window(view: CropView, height: int, width: int) -> PixelWindow:
    """Return the pixels of a view, at least one.

    Examples
    --------
    >>> compute_pixel_window(CropView(0.25, 0.25, 0.5), 4, 100)
    PixelWindow(left=25, top=1, right=75, bottom=3)
    """
    left, top = int(view.left * width), int(view.top * height)
    return PixelWindow(left, top, left + max(1, round(view.side * width)), top + max(1, round(view.side * height)))


def crop_view(pixels: UInt8, view: CropView) -> UInt8:
    """Return the part of `pixels` (h, w, 3) that a view shows; contiguous."""
    window = compute_pixel_window(view, *pixels.shape[:2])
    part = pixels[window.top : window.bottom, window.left : window.right]
    return np.ascontiguousarray(part[:, ::-1] if view.flip else part)
