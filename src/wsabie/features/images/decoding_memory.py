"""Peak memory of decoding a picture, estimated from its header before anything is decoded.

The figures are bytes per pixel that Pillow and its decoders allocate; tests compare them with measured peaks.
"""

from typing import Any

from PIL import Image

from wsabie.features.images.image_scaling import TILE, can_scale_directly, compute_reduction_factors
from wsabie.io.images.inspection import ImageStructure

_NARROW = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2, "I;16N": 2}  # bytes a pixel; others have 4
_WEBP = 12  # two canvases and the bytes that are handed over
_AVIF = 22  # planes of 12 bits, a second time with film grain; transparency; RGBA; the bytes that are handed over
_COEFFICIENT = 2
_RUN = 16  # bytes of a run of a fax, of which a row may have as many as pixels
_RESULT = 20  # for a pixel of the result: laid on white, turned, as an array
_TILE = 24  # of a tile that is brought into another mode: numbers in floating point
_BUFFERS = 6 << 20  # buffers
_BLOCK = 32  # of a JPEG picture, which is decoded in whole blocks
_PLAIN_STRIPS = ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "tiff_deflate")


def estimate_decoding_bytes(
    image: Image.Image, structure: ImageStructure, full: tuple[int, int], target: tuple[int, int], *, parts: bool
) -> int:
    """Return an upper bound of the memory for decoding and scaling.

    Parameters
    ----------
    image : Image
        Open, with its draft chosen, not loaded.
    structure : ImageStructure
        Structure of the file.
    full : (int, int)
        Width and height before the draft was chosen.
    target : (int, int)
        Width and height of the result.
    parts : bool
        A region is cut out, which copies it.
    """
    pixels = image.width * image.height
    width = _NARROW.get(image.mode, 4)
    image_bytes = pixels * width + _decoder_bytes(image, structure, full)
    across, down = compute_reduction_factors(image.size, target)
    reduced = -(-image.width // across) * -(-image.height // down)
    between = min(target[0], image.width) * -(-image.height // down)  # scaled one way, not yet the other
    smaller = 4 * between + (0 if can_scale_directly(image) and across == down == 1 else 4 * reduced)
    smaller += 0 if can_scale_directly(image) else _TILE * min(pixels, max(TILE, across * down))
    copies = 2 * pixels * width if parts else 0
    return image_bytes + copies + smaller + _RESULT * target[0] * target[1] + structure.opening_bytes + _BUFFERS


def _decoder_bytes(image: Image.Image, structure: ImageStructure, full: tuple[int, int]) -> int:
    """Return the memory of the decoder beside the picture that it fills."""
    pixels, kind = image.width * image.height, image.format
    width = _NARROW.get(image.mode, 4)
    if kind in ("JPEG", "MPO"):
        blocks = [-(-side // _BLOCK) * _BLOCK for side in full]
        rows = 4 * len(image.getbands()) * _BLOCK * blocks[0]
        return rows + structure.keeps_coefficients * _COEFFICIENT * len(image.getbands()) * blocks[0] * blocks[1]
    if kind == "WEBP":
        return _WEBP * pixels
    if kind == "AVIF":
        return _AVIF * max(pixels, structure.frame_pixels)
    if kind == "TIFF":
        return _tiff_bytes(image)
    if kind == "PNG":
        rows = 4 * 8 * image.width
        return rows + (2 * width * pixels if getattr(image, "is_animated", False) else 0)
    if kind == "GIF":
        return pixels
    tiles = getattr(image, "tile", ())
    codec = tiles[0][0] if tiles else "raw"
    return 4 * image.width if codec == "raw" else 2 * width * pixels  # decoders in Python collect the bytes


def _tiff_bytes(image: Image.Image) -> int:
    """Return the memory for a strip or tile, its decoder and the turned picture."""
    tags: Any = getattr(image, "tag_v2", {})
    pixels = image.width * image.height
    bits = tags.get(258, (1,))
    samples: int = max(1, tags.get(277, 1), len(bits))
    depth = max([1, *(bit for bit in bits if isinstance(bit, int))])
    if 322 in tags or 323 in tags:
        strip = _number(tags.get(322), image.width) * _number(tags.get(323), image.height)
    else:
        rows = min(_number(tags.get(278), image.height), max(image.size))
        strip = rows * max(image.size if tags.get(274, 1) in (5, 6, 7, 8) else (image.width,))
    strip_bytes = strip * samples * depth // 8
    compression = image.info.get("compression", "raw")
    if compression == "raw":
        strip_bytes = 8 * max(image.size)
    elif compression not in _PLAIN_STRIPS:
        strip_bytes += strip * 4 * _COEFFICIENT + _RUN * max(image.size)
    turned = pixels * _NARROW.get(image.mode, 4) if tags.get(274, 1) in range(2, 9) else 0
    return strip_bytes + turned + len(getattr(image, "tile", ())) * 500


def _number(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and value > 0 else otherwise
