"""Heat maps of a picture: places that the contributions of visual words to a score come from."""

from typing import Any

import numpy as np
from PIL import Image, ImageFilter

from wsabie.core.arrays import Float64, UInt8
from wsabie.core.errors import InputError
from wsabie.features.base.extraction_tasks import BlockMap

_LONGER_SIDE = 512  # of a heat map, unless its shape is given
_FOR = np.array([[255, 214, 64], [255, 92, 0], [176, 0, 24]], np.float64)  # weak, middle, strong
_AGAINST = np.array([[120, 200, 255], [40, 110, 235], [20, 30, 130]], np.float64)
_MOST_COVER = 0.82  # of a picture under the strongest heat
_GREY = 0.55  # loss of colour of the picture behind the heat


def share_among_blocks(contributions: Any, block_map: BlockMap) -> Float64:
    """Share the contribution of each visual word equally among its blocks.

    Parameters
    ----------
    contributions : (n_words,) real
        Part of each word in the score; for a linear score v_t * weight_t, which sum to it.
    block_map : BlockMap
        Blocks of the scored picture.

    Returns
    -------
    ndarray, (n_blocks,), float64
        Sums to the sum of `contributions`.

    Raises
    ------
    InputError
        A word without blocks contributes: contributions and picture do not belong together.

    Examples
    --------
    >>> where = BlockMap(np.zeros((3, 4)), np.array([1, 1, 0], np.int32), 9, 9)
    >>> share_among_blocks([2.0, 3.0, 0.0], where).tolist()
    [1.5, 1.5, 2.0]
    """
    contributions = np.asarray(contributions, np.float64)
    block_counts = np.bincount(block_map.terms, minlength=len(contributions))
    if len(block_counts) > len(contributions):
        raise InputError(
            f"the picture has the visual word {len(block_counts) - 1}, but contributions are given for "
            f"{len(contributions):,} terms; take both from the same model"
        )
    missing_words = np.flatnonzero((contributions != 0) & (block_counts == 0))
    if len(missing_words):
        raise InputError(
            f"the visual word {missing_words[0]} contributes but lies nowhere in the picture; take the "
            "contributions of this picture"
        )
    shares: Float64 = contributions[block_map.terms] / block_counts[block_map.terms]
    return shares


def build_heat_map(contributions: Any, block_map: BlockMap, shape: tuple[int, int] | None = None) -> Float64:
    """Spread each block's share of the score evenly over its area.

    Parameters
    ----------
    contributions : (n_words,) real
        As in `share_among_blocks`.
    block_map : BlockMap
    shape : (int, int) or None
        Height and width of the result; None: the picture's, scaled so that the longer side is at most 512.

    Returns
    -------
    ndarray, (h, w), float64
        Score per pixel: sums to the sum of `contributions`.

    Raises
    ------
    InputError
        As in `share_among_blocks`.

    Examples
    --------
    >>> where = BlockMap(np.array([[0.0, 0, 2, 2], [1, 0, 3, 2]]), np.array([0, 1], np.int32), 4, 2)
    >>> build_heat_map([4.0, -2.0], where)
    array([[ 1. ,  0.5, -0.5,  0. ],
           [ 1. ,  0.5, -0.5,  0. ]])
    """
    shares = share_among_blocks(contributions, block_map)
    height, width = shape or _shape_of(block_map)
    across, down = width / block_map.width, height / block_map.height
    edges = np.rint(block_map.boxes * [across, down, across, down]).astype(np.int64)
    left, top = np.minimum(edges[:, 0], width - 1), np.minimum(edges[:, 1], height - 1)
    right, bottom = np.maximum(edges[:, 2], left + 1), np.maximum(edges[:, 3], top + 1)
    density = shares / ((right - left) * (bottom - top))
    corners = np.zeros((height + 1, width + 1))  # summed twice, it fills each block
    for rows, columns, sign in ((top, left, 1), (bottom, right, 1), (top, right, -1), (bottom, left, -1)):
        np.add.at(corners, (rows, columns), sign * density)
    return corners.cumsum(axis=0).cumsum(axis=1)[:height, :width]


def _shape_of(block_map: BlockMap) -> tuple[int, int]:
    scale = min(1.0, _LONGER_SIDE / max(block_map.width, block_map.height))
    return max(1, round(block_map.height * scale)), max(1, round(block_map.width * scale))


def draw_overlay(picture: Image.Image | UInt8, heat: Float64, *, strongest: float | None = None) -> Image.Image:
    """Draw a heat map over its picture: yellow to red speaks for the label, blue against it.

    Parameters
    ----------
    picture : PIL image or ndarray (h, w, 3) uint8
        Scaled to the heat map's size.
    heat : (h, w) float64
    strongest : float or None
        The heat, for or against, that gets the strongest colour; give the same one to pictures that are compared.
        None: the strongest of this heat map.

    Returns
    -------
    Image
        RGB, of the heat map's size.

    Examples
    --------
    >>> draw_overlay(np.full((4, 6, 3), 99, np.uint8), np.eye(4, 6)).size
    (6, 4)
    """
    height, width = heat.shape
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    background = np.asarray(image.convert("RGB").resize((width, height), Image.Resampling.LANCZOS), np.float64)
    luma = background @ [0.299, 0.587, 0.114]
    background = (1 - _GREY) * background + _GREY * luma[..., None]
    smooth = _smooth_heat(heat)
    top = float(np.abs(smooth).max()) if strongest is None else strongest
    share = np.clip(smooth / top, -1, 1) if top > 0 else np.zeros_like(smooth)
    strength = np.abs(share)
    colour = np.where(
        share[..., None] >= 0, _interpolate_colours(_FOR, strength), _interpolate_colours(_AGAINST, strength)
    )
    cover = (_MOST_COVER * strength)[..., None]
    return Image.fromarray(np.rint((1 - cover) * background + cover * colour).astype(np.uint8))


def _smooth_heat(heat: Float64) -> Float64:
    """Smooth out the edges of blocks, which have no meaning."""
    blur = ImageFilter.GaussianBlur(max(heat.shape) / 64)
    top = float(np.abs(heat).max())
    if top == 0:
        return heat
    # Pillow blurs bytes only: the positive and the negative part one after the other, at full range.
    parts = [np.asarray(Image.fromarray(_bytes(sign * heat / top)).filter(blur), np.float64) for sign in (1, -1)]
    return (parts[0] - parts[1]) * (top / 255)


def _bytes(share: Float64) -> UInt8:
    return np.rint(np.clip(share, 0, 1) * 255).astype(np.uint8)


def _interpolate_colours(colours: Float64, strength: Float64) -> Float64:
    """Interpolate colours (..., 3) between three stops at strength 0, 0.5 and 1."""
    stops = np.linspace(0, 1, len(colours))
    return np.stack([np.interp(strength, stops, colours[:, channel]) for channel in range(3)], axis=-1)
