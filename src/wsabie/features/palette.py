"""The colours that blocks are described by, and which of them a pixel is."""

from functools import lru_cache

import numpy as np

from wsabie.base.arrays import Float64, UInt8

PALETTE = (
    "273027", "8c8484", "ced2d8", "d24826", "d8987f", "80682c", "cfbe38", "c2d39c", "60dc2f", "40812f", "51d373",
    "48d7ae", "357e6c", "54d3d6", "4faad3", "365f7d", "5182d3", "4944b3", "6e27db", "45275f", "c792c4", "c93db5",
    "ce356a", "742d34",
)  # fmt: skip
"""sRGB colours that lie evenly over what a screen can show, closer together near grey: k-means of the colour cube in
CIELAB, weighted by exp(-chroma / 30)."""

N_COLOURS = len(PALETTE)

_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_D65 = np.array([0.95047, 1.0, 1.08883])


def to_lab(rgb: Float64) -> Float64:
    """CIELAB (D65) of sRGB colours from 0 to 255; last axis 3.

    Examples
    --------
    >>> to_lab(np.array([[255.0, 255.0, 255.0], [0.0, 0.0, 0.0]])).round(1)[:, 0].tolist()
    [100.0, 0.0]
    """
    share = rgb / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    ratio = linear @ _TO_XYZ.T / _D65
    bent = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    x, y, z = bent[..., 0], bent[..., 1], bent[..., 2]
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


@lru_cache(maxsize=1)
def colour_table() -> UInt8:
    """The nearest colour of the palette, by distance in CIELAB, of each colour of 5 bits a channel.

    Returns
    -------
    ndarray, (32768,), uint8
        Index r >> 3 << 10 | g >> 3 << 5 | b >> 3.
    """
    level = np.arange(32) * 8.0 + 4
    cube = to_lab(np.stack(np.meshgrid(level, level, level, indexing="ij"), axis=-1).reshape(-1, 3))
    palette = to_lab(np.array([list(bytes.fromhex(colour)) for colour in PALETTE], np.float64))
    distances = ((cube[:, None] - palette) ** 2).sum(axis=2)
    nearest: UInt8 = np.argmin(distances, axis=1).astype(np.uint8)
    return nearest
