"""Decoding of pictures into small RGB arrays; unreadable ones are refused with a reason.

Only the decoders in `wsabie.io.image_inspection.FORMATS` are ever tried; RAW photos give their preview to them. A
region is cut out as a box, and pixels outside its outlines become grey, the same in all pictures, so that a
codebook learns them as one word of low weight.
"""

import io
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from PIL import Image

from wsabie.core.arrays import Bool, Float64, UInt8
from wsabie.core.errors import UnreadableItemError
from wsabie.core.input_files import format_open_error, open_input
from wsabie.core.input_limits import make_limit_error, read_limits
from wsabie.core.memory_budget import ITEM_MEMORY
from wsabie.features.images import image_scaling
from wsabie.features.images.augmentation import PixelWindow
from wsabie.io.image_errors import explain_decoding_error, is_truncated, refuse_exhausted_handles
from wsabie.io.image_inspection import ImageStructure, inspect_image, open_picture, silence_decoders
from wsabie.io.raw_photos import is_raw, open_raw_preview
from wsabie.io.regions import OUTSIDE, Box, ItemContent, Region, RegionCrop

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
NOT_FINITE = "no finite features"  # of a network
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}  # by EXIF orientation
_SIDEWAYS = (5, 6, 7, 8)
_ORIENTATION = 0x0112
_CAMERA = 0x8769
_CAPTURE_TAGS = (0x9003, 0x9004)  # DateTimeOriginal, DateTimeDigitized
_GREY = np.uint8(128)


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
    image_bytes = pixels * width + _estimate_decoder_bytes(image, structure, full)
    across, down = image_scaling.compute_reduction_factors(image.size, target)
    reduced = -(-image.width // across) * -(-image.height // down)
    between = min(target[0], image.width) * -(-image.height // down)  # scaled one way, not yet the other
    is_direct = image_scaling.can_scale_directly(image)
    smaller = 4 * between + (0 if is_direct and across == down == 1 else 4 * reduced)
    smaller += 0 if is_direct else _TILE * min(pixels, max(image_scaling.TILE, across * down))
    copies = 2 * pixels * width if parts else 0
    return image_bytes + copies + smaller + _RESULT * target[0] * target[1] + structure.opening_bytes + _BUFFERS


def _estimate_decoder_bytes(image: Image.Image, structure: ImageStructure, full: tuple[int, int]) -> int:
    """Return the memory of the decoder beside the picture that it fills."""
    pixels, kind = image.width * image.height, image.format
    width = _NARROW.get(image.mode, 4)
    if kind in ("JPEG", "MPO"):
        blocks = [-(-side // _BLOCK) * _BLOCK for side in full]
        rows = 4 * len(image.getbands()) * _BLOCK * blocks[0]
        return rows + structure.keeps_coefficients * _COEFFICIENT * len(image.getbands()) * blocks[0] * blocks[1]
    if kind == "WEBP":
        return _WEBP * pixels
    if kind in ("AVIF", "HEIF"):
        return _AVIF * max(pixels, structure.frame_pixels)
    if kind == "TIFF":
        return _estimate_tiff_bytes(image)
    if kind == "PNG":
        rows = 4 * 8 * image.width
        return rows + (2 * width * pixels if getattr(image, "is_animated", False) else 0)
    if kind == "GIF":
        return pixels
    tiles = getattr(image, "tile", ())
    codec = tiles[0][0] if tiles else "raw"
    return 4 * image.width if codec == "raw" else 2 * width * pixels  # decoders in Python collect the bytes


def _estimate_tiff_bytes(image: Image.Image) -> int:
    """Return the memory for a strip or tile, its decoder and the turned picture."""
    tags: Any = getattr(image, "tag_v2", {})
    bits = tags.get(258, (1,))
    samples: int = max(1, tags.get(277, 1), len(bits))
    depth = max([1, *(bit for bit in bits if isinstance(bit, int))])
    if 322 in tags or 323 in tags:
        strip = _as_positive(tags.get(322), image.width) * _as_positive(tags.get(323), image.height)
    else:
        rows = min(_as_positive(tags.get(278), image.height), max(image.size))
        strip = rows * max(image.size if tags.get(274, 1) in (5, 6, 7, 8) else (image.width,))
    strip_bytes = strip * samples * depth // 8
    compression = image.info.get("compression", "raw")
    if compression == "raw":
        strip_bytes = 8 * max(image.size)
    elif compression not in _PLAIN_STRIPS:
        strip_bytes += strip * 4 * _COEFFICIENT + _RUN * max(image.size)
    rotation_bytes = image.width * image.height * _NARROW.get(image.mode, 4) if tags.get(274, 1) in range(2, 9) else 0
    return strip_bytes + rotation_bytes + len(getattr(image, "tile", ())) * 500


def _as_positive(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and value > 0 else otherwise


class DecodedImage(NamedTuple):
    """Decoded picture or region, with its original size."""

    pixels: UInt8  # (h, w, 3) RGB
    width: int  # in full, upright
    height: int


def decode_image(content: ItemContent, *, size: int = 256, max_pixels: int = 64_000_000) -> UInt8:
    """Decode a picture to RGB with its longer side scaled down to `size`.

    A smaller picture keeps its size: enlarging would add no detail, and the grids of blocks follow the picture.
    EXIF rotation is applied, transparency is laid on white, of several frames the first is taken, 16-bit grey is
    scaled to 8 bits (65,535 becomes 255), grey of 32 bits or in floating point is stretched from its darkest to its
    lightest value where it does not fit 16 bits or [0, 1].

    Parameters
    ----------
    content : Path, bytes or RegionCrop
        A file, its content, or a region of one of them.
    size : int
        Longer side of the result in pixels, at most.
    max_pixels : int
        Pixels that are decoded: more are refused before. JPEG files are decoded reduced, down to an eighth of each
        side; of other formats Pillow refuses more than 178,956,970 in any case.

    Returns
    -------
    ndarray, (h, w, 3), uint8

    Raises
    ------
    UnreadableItemError
        "not a picture", "unsupported picture format", "truncated picture", "damaged picture", "empty file",
        "unreadable file", "too many pixels", "too much memory", or of a region that it lies outside the picture.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> Image.new("L", (640, 320), 200).save(file, "PNG")
    >>> decode_image(file.getvalue(), size=64).shape
    (32, 64, 3)
    >>> decode_image(b"plain words")
    Traceback (most recent call last):
    ...
    wsabie.core.errors.UnreadableItemError: ('not a picture', '...')
    """
    return decode_with_size(content, size=size, max_pixels=max_pixels).pixels


def decode_with_size(content: ItemContent, *, size: int = 256, max_pixels: int = 64_000_000) -> DecodedImage:
    """Decode as `decode_image`, and return the full size of the upright picture or region, too."""
    region = content.region if isinstance(content, RegionCrop) else None
    stream = open_image_stream(content.picture if isinstance(content, RegionCrop) else content)
    with stream, _open(stream, max_pixels, size, region) as picture, _load(picture, is_region=region is not None):
        # some decoders turn the picture upright themselves
        full = picture.full if picture.is_drafted else picture.image.size
        return _build_decoded_image(picture.image, region, full, size)


class _OpenPicture(NamedTuple):
    """Picture that is not decoded yet: its draft is chosen, `full` is its size without, `size` the longer."""

    image: Image.Image
    structure: ImageStructure
    full: tuple[int, int]
    size: int
    is_drafted: bool


@contextmanager
def _load(picture: _OpenPicture, *, is_region: bool = False) -> Iterator[None]:
    """Decode a picture; its memory is reserved within."""
    image = picture.image
    target = image_scaling.compute_scaled_size(*image.size, min(picture.size, max(image.size)))
    with _reserve_memory(estimate_decoding_bytes(image, picture.structure, picture.full, target, parts=is_region)):
        try:
            image.load()
            yield
        finally:
            Image.Image.close(image)  # its memory is free before the share is, even where an error holds it
            for name in ("_decoder", "fp"):
                vars(image).pop(name, None)


def _build_decoded_image(image: Image.Image, region: Region | None, full: tuple[int, int], size: int) -> DecodedImage:
    orientation = _read_orientation(image)
    width, height = full[::-1] if orientation in _SIDEWAYS else full
    if region is not None:
        return _crop_region(image, orientation, region, width, height, size)
    small = image_scaling.shrink_image(image, size, image_scaling.find_grey_levels(image))
    return DecodedImage(np.array(_turn_upright(small, orientation)), width, height)


class ImageHeader(NamedTuple):
    """Facts in the header of a picture."""

    width: int  # in full, upright
    height: int
    capture_time: str | None  # "2024-05-01T12:00:00", by the camera's clock, without a zone


def read_header(stream: IO[bytes], *, max_pixels: int = 64_000_000) -> ImageHeader:
    """Read the header of a picture; one that lacks its end is decoded, and may be refused by the decoder.

    Raises
    ------
    UnreadableItemError
        With a reason of `decode_image`.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> Image.new("L", (640, 320), 200).save(file, "PNG")
    >>> read_header(file)
    ImageHeader(width=640, height=320, capture_time=None)
    """
    stream.seek(0)
    with _open(stream, max_pixels) as picture:
        image, _, (width, height), *_ = picture
        capture_time, orientation = _read_capture_time(picture), _read_orientation(image)
        if image.format == "TIFF":
            orientation = 1  # Pillow reports the upright size
        position = stream.tell()
        is_suspect = is_truncated(stream)
        stream.seek(position)
        if is_suspect:
            with _load(picture):
                pass
    return ImageHeader(*((height, width) if orientation in _SIDEWAYS else (width, height)), capture_time)


def read_capture_time(content: Path | bytes, *, max_pixels: int = 64_000_000) -> str | None:
    """Return the capture time of a picture, as in `ImageHeader`; None without one, or if it is unreadable."""
    try:
        with open_image_stream(content) as stream, _open(stream, max_pixels) as picture:
            return _read_capture_time(picture)
    except UnreadableItemError:
        return None


def detect_media_type(content: Path | bytes, *, max_pixels: int = 64_000_000) -> str:
    """Return the media type of a picture by its content, such as "image/jpeg"; of RAW photos none.

    Raises
    ------
    UnreadableItemError
        It is not a picture, or has too many pixels.
    """
    with open_image_stream(content) as stream, _open(stream, max_pixels) as picture:
        kind = "RAW" if is_raw(stream) else str(picture.image.format)
        return str(Image.MIME.get(kind, "application/octet-stream"))


@contextmanager
def _open(stream: IO[bytes], max_pixels: int, size: int = 256, region: Region | None = None) -> Iterator[_OpenPicture]:
    """Open a picture without decoding it, and inspect its file; raise `UnreadableItemError` for any error."""
    with silence_decoders():
        try:
            if is_raw(stream):
                with _reserve_memory(2 * stream.seek(0, io.SEEK_END)):  # the file and its preview
                    stream = open_raw_preview(stream)
            structure = inspect_image(stream)
            with _reserve_memory(structure.opening_bytes):
                image = open_picture(stream)
            full = image.size
            decoding_size = _choose_decoding_size(size, region, *full)
            is_drafted = image.draft("RGB", image_scaling.compute_scaled_size(*full, decoding_size)) is not None
            if image.width * image.height > max_pixels:
                detail = f"{image.width} x {image.height}, at most {max_pixels:,}"
                reduced = f" ({full[0]} x {full[1]} reduced)" if full != image.size else ""
                raise UnreadableItemError("too many pixels", detail + reduced)
            yield _OpenPicture(image, structure, full, decoding_size, is_drafted)
        except UnreadableItemError:
            raise
        except Exception as error:  # decoders raise almost anything over hostile bytes
            raise UnreadableItemError(*explain_decoding_error(error, stream)) from error


@contextmanager
def _reserve_memory(n_bytes: int) -> Iterator[None]:
    """Reserve memory for decoding; raise `UnreadableItemError` where the limit is lower."""
    if n_bytes == 0:
        yield
        return
    if n_bytes > read_limits().picture_bytes:
        raise UnreadableItemError(
            "too much memory", str(make_limit_error("picture_bytes", f"decoding takes {n_bytes:,} bytes", n_bytes))
        )
    with ITEM_MEMORY.share(n_bytes):
        yield


def open_image_stream(content: Path | bytes) -> io.BufferedReader | io.BytesIO:
    """Open content as a stream; raise `UnreadableItemError` if it is empty or unreadable."""
    if isinstance(content, bytes):
        stream: io.BufferedReader | io.BytesIO = io.BytesIO(content)
        length = len(content)
    else:
        try:
            stream = open_input(content)
            length = os.fstat(stream.fileno()).st_size
        except (OSError, ValueError) as error:
            refuse_exhausted_handles(error)
            raise UnreadableItemError("unreadable file", format_open_error(error)) from error
    if length == 0:
        stream.close()
        raise UnreadableItemError("empty file")
    return stream


def _choose_decoding_size(size: int, region: Region | None, width: int, height: int) -> int:
    """Return the longer side of a picture at which that of the region is `size`, in any orientation."""
    if region is None:
        return size
    longer = max(width, height)
    across, down = region.frame or (longer, longer)
    share = region.box.intersect(Box(0, 0, across, down)).scale(1 / across, 1 / down)
    ways = [(width, height), (height, width)] if region.frame else [(longer, longer)]
    return math.ceil(size * longer / max(1.0, min(max(share.width * w, share.height * h) for w, h in ways)))


def _crop_region(
    image: Image.Image, orientation: int, region: Region, width: int, height: int, size: int
) -> DecodedImage:
    """Crop a region of a picture, perhaps scaled down, of full upright size `width` x `height`."""
    frame = region.frame or (width, height)
    if frame == (height, width) != (width, height):
        detail = f"stated {frame[0]:g} x {frame[1]:g}, upright {width} x {height}"
        raise UnreadableItemError("region of a picture that lies on its side", detail)
    box = region.box.intersect(Box(0, 0, *frame))
    if box.area == 0:
        raise UnreadableItemError(OUTSIDE, f"the picture has {width} x {height} pixels")
    upright = image.size[::-1] if orientation in _SIDEWAYS else image.size
    across, down = upright[0] / frame[0], upright[1] / frame[1]
    scaled_box = box.scale(across, down)
    left, top = min(round(scaled_box.left), upright[0] - 1), min(round(scaled_box.top), upright[1] - 1)
    right, bottom = max(round(scaled_box.right), left + 1), max(round(scaled_box.bottom), top + 1)
    levels = image_scaling.find_grey_levels(image)
    part = image.crop(_find_stored_window(PixelWindow(left, top, right, bottom), orientation, image.size))
    small = image_scaling.shrink_image(_turn_upright(part, orientation), size, levels)
    pixels: UInt8 = np.array(small)
    if region.outlines:
        zoom_x, zoom_y = small.width / (right - left), small.height / (bottom - top)
        scale, corner = (across * zoom_x, down * zoom_y), (left * zoom_x, top * zoom_y)
        polygons = [np.asarray(outline, np.float64).reshape(-1, 2) * scale - corner for outline in region.outlines]
        pixels = _mask_outside(pixels, polygons)
    sides = box.scale(width / frame[0], height / frame[1])
    return DecodedImage(pixels, max(1, round(sides.width)), max(1, round(sides.height)))


def _find_stored_window(window: PixelWindow, orientation: int, stored: tuple[int, int]) -> PixelWindow:
    """Return the window in the stored picture of a window in the upright picture."""
    left, top, right, bottom = window
    across, down = (left, right), (top, bottom)
    if orientation in _SIDEWAYS:
        across, down = down, across
    width, height = stored
    if orientation in (2, 3, 7, 8):
        across = (width - across[1], width - across[0])
    if orientation in (3, 4, 6, 7):
        down = (height - down[1], height - down[0])
    return PixelWindow(across[0], down[0], across[1], down[1])


def _mask_outside(pixels: UInt8, polygons: list[Float64]) -> UInt8:
    """Make pixels grey whose middle lies in none of the polygons (n, 2)."""
    inside = np.zeros(pixels.shape[:2], bool)
    for points in polygons:
        inside |= _find_inside_pixels(points, inside.shape)
    return np.where(inside[..., None], pixels, _GREY)


def _find_inside_pixels(points: Float64, shape: tuple[int, ...]) -> Bool:
    """Return a mask (height, width) of the pixels whose middle lies in a polygon (n, 2)."""
    # left of such a pixel lies an odd number of edges
    height, width = shape
    (x1, y1), (x2, y2) = points.T, np.roll(points, -1, axis=0).T
    middles = np.arange(height)[:, None] + 0.5
    rows, edges = np.nonzero((y1 <= middles) != (y2 <= middles))
    x1, y1, x2, y2 = x1[edges], y1[edges], x2[edges], y2[edges]
    crossings = x1 + (middles[rows, 0] - y1) / (y2 - y1) * (x2 - x1)
    crossing_counts = np.zeros((height, width + 1), np.int32)
    np.add.at(crossing_counts, (rows, np.clip(np.ceil(crossings - 0.5), 0, width).astype(np.int64)), 1)
    odd: Bool = crossing_counts.cumsum(axis=1)[:, :width] % 2 == 1
    return odd


def _read_orientation(image: Image.Image) -> int:
    """Return the EXIF orientation; 1, upright, where the metadata are broken."""
    try:
        orientation = Image.Image.getexif(image).get(_ORIENTATION, 1)  # the method of PNG would decode the picture
    except Exception:  # parsers raise almost anything over hostile bytes
        return 1
    return orientation if isinstance(orientation, int) else 1


def _read_capture_time(picture: _OpenPicture) -> str | None:
    """Return the capture time in the metadata, or None."""
    if picture.structure.exif is not None:
        picture.image.info.setdefault("exif", picture.structure.exif)
    try:
        notes = Image.Image.getexif(picture.image).get_ifd(_CAMERA)
        text = next((str(notes[tag]) for tag in _CAPTURE_TAGS if notes.get(tag)), "")
        return datetime.strptime(text.strip("\0 ")[:19], "%Y:%m:%d %H:%M:%S").isoformat()
    except Exception:  # as above
        return None


def _turn_upright(image: Image.Image, orientation: int) -> Image.Image:
    turn = _TURNS.get(orientation)
    return image if turn is None else image.transpose(turn)
