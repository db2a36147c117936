"""Encoded pictures become small RGB arrays; what cannot be read is refused with a reason and never stops a run.

Only the decoders named in `sources.formats` are ever tried. Of a region the box is cut out; what lies in the box and
outside the outlines becomes grey, the same in all pictures, so that a dictionary learns it as one term and its weight
says that it tells nothing.
"""

import io
import math
import os
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from PIL import Image

from wsabie.base.arrays import Bool, Float64, UInt8
from wsabie.base.input_files import fault_text, open_input
from wsabie.base.limits import current_limits, limit_error
from wsabie.base.memory_budget import ITEM_MEMORY
from wsabie.features.picture_memory import estimate_bytes
from wsabie.features.reduction import grey_levels, scaled_size, shrink
from wsabie.sources.decoder_messages import silence_decoders
from wsabie.sources.formats import FORMATS
from wsabie.sources.media import PICTURES
from wsabie.sources.picture_structure import PictureStructure, inspect_picture
from wsabie.sources.regions import OUTSIDE, Box, Content, Cutout, Region
from wsabie.sources.unreadable import is_cut, refuse_exhausted, verdict

NOT_FINITE = "no finite features"  # of a network that describes it
TOO_LARGE = "too much memory"
TURNED = "region of a picture that lies on its side"
REASONS = (
    "not a picture",
    PICTURES.unsupported,
    "truncated picture",
    "damaged picture",
    "empty file",
    "too many pixels",
    TOO_LARGE,
    "unreadable file",
    OUTSIDE,
    TURNED,
    NOT_FINITE,
)
"""All that a `RejectedItem` can give as its reason."""

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}  # what brings a picture upright, by EXIF orientation
_SIDEWAYS = (5, 6, 7, 8)
_ORIENTATION = 0x0112
_CAMERA = 0x8769
_TAKEN = (0x9003, 0x9004)  # DateTimeOriginal, DateTimeDigitized
_GREY = np.uint8(128)


class RejectedItem(Exception):  # noqa: N818 (a verdict about one file, counted and never shown as a traceback)
    """A picture or sound that cannot be used: a reason, and a detail for the list of rejects."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail[:200]


class Decoded(NamedTuple):
    """A picture or region as it is looked at, and the size it had."""

    pixels: UInt8  # (h, w, 3) RGB
    width: int  # in full, upright
    height: int


def decode(content: Content, *, size: int = 256, max_pixels: int = 64_000_000) -> UInt8:
    """Read a picture as RGB with its longer side scaled down to `size`.

    A smaller picture keeps its size: enlarging would add no detail, and the grids of blocks follow the picture.
    EXIF rotation is applied, transparency is laid on white, of several frames the first is taken, 16-bit grey is
    scaled to 8 bits (65,535 becomes 255), grey of 32 bits or in floating point is stretched from its darkest to its
    lightest value where it does not fit 16 bits or [0, 1].

    Parameters
    ----------
    content : Path, bytes or Cutout
        A file, its content, or a region of one of them.
    size : int
        Longer side of the result in pixels, at most.
    max_pixels : int
        Larger pictures are refused before they are decoded; Pillow refuses those above 178,956,970 in any case.

    Returns
    -------
    ndarray, (h, w, 3), uint8

    Raises
    ------
    RejectedItem
        With one of `REASONS`.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> Image.new("L", (640, 320), 200).save(file, "PNG")
    >>> decode(file.getvalue(), size=64).shape
    (32, 64, 3)
    >>> decode(b"plain words")
    Traceback (most recent call last):
    ...
    wsabie.features.decode.RejectedItem: ('not a picture', '...')
    """
    return decode_full(content, size=size, max_pixels=max_pixels).pixels


def decode_full(content: Content, *, size: int = 256, max_pixels: int = 64_000_000) -> Decoded:
    """`decode`, together with the full size of the upright picture or region."""
    region = content.region if isinstance(content, Cutout) else None
    stream = opened(content.picture if isinstance(content, Cutout) else content)
    with stream, silence_decoders(), _explained(stream):
        image, structure = _open(stream)
        full = _size(image, max_pixels)
        enough = _enough(size, region, *full)
        drafted = image.draft("RGB", scaled_size(*full, enough))
        target = scaled_size(*image.size, min(enough, max(image.size)))
        with _share(estimate_bytes(image, structure, full, target, parts=region is not None)):
            try:
                image.load()
                if drafted is None:
                    full = image.size  # some decoders turn the picture upright themselves
                return _decoded(image, region, full, size)
            finally:
                Image.Image.close(image)  # its memory is free before the share is, even where an error holds it
                for name in ("_decoder", "fp"):
                    vars(image).pop(name, None)


def _decoded(image: Image.Image, region: Region | None, full: tuple[int, int], size: int) -> Decoded:
    orientation = _orientation(image)
    width, height = full[::-1] if orientation in _SIDEWAYS else full
    if region is not None:
        return _cut(image, orientation, region, width, height, size)
    small = shrink(image, size, grey_levels(image))
    return Decoded(np.array(_turned(small, orientation)), width, height)


class Header(NamedTuple):
    """What a picture says of itself before it is decoded."""

    width: int  # in full, upright
    height: int
    taken: str | None  # "2024-05-01T12:00:00", as the camera's clock said, without a zone


def header(stream: IO[bytes], *, max_pixels: int = 64_000_000) -> Header:
    """Look at a picture without decoding it; one that is cut off is noticed all the same.

    Raises
    ------
    RejectedItem
        With one of `REASONS`.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> Image.new("L", (640, 320), 200).save(file, "PNG")
    >>> header(file)
    Header(width=640, height=320, taken=None)
    """
    stream.seek(0)
    with silence_decoders(), _explained(stream):
        image, structure = _open(stream)
        width, height = _size(image, max_pixels)
        if structure.exif is not None:
            image.info.setdefault("exif", structure.exif)
        orientation, taken = _orientation(image), _taken(image)
        if image.format == "TIFF":
            orientation = 1  # Pillow tells the size that it will have when it is upright
        if is_cut(stream):
            raise RejectedItem("truncated picture")
    return Header(*((height, width) if orientation in _SIDEWAYS else (width, height)), taken)


def media_type(content: Path | bytes, *, max_pixels: int = 64_000_000) -> str:
    """What a picture is, by its content: "image/jpeg" and the like.

    Raises
    ------
    RejectedItem
        It is no picture, or has more pixels.
    """
    stream = opened(content)
    with stream, silence_decoders(), _explained(stream):
        image, _ = _open(stream)
        _size(image, max_pixels)
        return str(Image.MIME.get(str(image.format), "application/octet-stream"))


def _open(stream: IO[bytes]) -> tuple[Image.Image, PictureStructure]:
    """A picture before it is decoded, and what is known of its file."""
    structure = inspect_picture(stream)
    with _share(structure.opening_bytes):
        return Image.open(stream, formats=FORMATS), structure


@contextmanager
def _share(n_bytes: int) -> Iterator[None]:
    """Decode when so much memory is free; `RejectedItem` where it never is."""
    if n_bytes == 0:
        yield
        return
    if n_bytes > current_limits().picture_bytes:
        raise RejectedItem(TOO_LARGE, str(limit_error("picture_bytes", f"decoding takes {n_bytes:,} bytes", n_bytes)))
    with ITEM_MEMORY.share(n_bytes):
        yield


def _size(image: Image.Image, max_pixels: int) -> tuple[int, int]:
    """Width and height; `RejectedItem` where there are more pixels."""
    width, height = image.size
    if width * height > max_pixels:
        raise RejectedItem("too many pixels", f"{width} x {height}, at most {max_pixels:,}")
    return width, height


def opened(content: Path | bytes) -> IO[bytes]:
    """What is to be decoded as a stream; `RejectedItem` where there is nothing or it cannot be read."""
    if isinstance(content, bytes):
        stream: IO[bytes] = io.BytesIO(content)
        length = len(content)
    else:
        try:
            stream = open_input(content)
            length = os.fstat(stream.fileno()).st_size
        except (OSError, ValueError) as error:
            refuse_exhausted(error)
            raise RejectedItem("unreadable file", fault_text(error)) from error
    if length == 0:
        stream.close()
        raise RejectedItem("empty file")
    return stream


@contextmanager
def _explained(stream: IO[bytes]) -> Iterator[None]:
    """Turn whatever a decoder raises over bad input into a `RejectedItem`."""
    try:
        yield
    except RejectedItem:
        raise
    except Exception as error:  # decoders raise almost anything over hostile bytes
        raise RejectedItem(*verdict(error, stream)) from error


def _enough(size: int, region: Region | None, width: int, height: int) -> int:
    """Longer side of a picture at which that of the region is `size`, whichever way the picture lies."""
    if region is None:
        return size
    longer = max(width, height)
    across, down = region.frame or (longer, longer)
    seen = region.box.within(Box(0, 0, across, down)).scaled(1 / across, 1 / down)
    ways = [(width, height), (height, width)] if region.frame else [(longer, longer)]
    return math.ceil(size * longer / max(1.0, min(max(seen.width * w, seen.height * h) for w, h in ways)))


def _cut(image: Image.Image, orientation: int, region: Region, width: int, height: int, size: int) -> Decoded:
    """A region of a picture whose full size, upright, is `width` x `height`, and which may be smaller already."""
    frame = region.frame or (width, height)
    if frame == (height, width) != (width, height):
        raise RejectedItem(TURNED, f"stated {frame[0]:g} x {frame[1]:g}, upright {width} x {height}")
    box = region.box.within(Box(0, 0, *frame))
    if box.area == 0:
        raise RejectedItem(OUTSIDE, f"the picture has {width} x {height} pixels")
    upright = image.size[::-1] if orientation in _SIDEWAYS else image.size
    across, down = upright[0] / frame[0], upright[1] / frame[1]
    place = box.scaled(across, down)
    left, top = min(round(place.left), upright[0] - 1), min(round(place.top), upright[1] - 1)
    right, bottom = max(round(place.right), left + 1), max(round(place.bottom), top + 1)
    levels = grey_levels(image)
    part = image.crop(_stored_box((left, top, right, bottom), orientation, image.size))
    small = shrink(_turned(part, orientation), size, levels)
    pixels: UInt8 = np.array(small)
    if region.outlines:
        zoom = small.width / (right - left), small.height / (bottom - top)
        pixels = _masked(pixels, region.outlines, (across * zoom[0], down * zoom[1]), (left * zoom[0], top * zoom[1]))
    sides = box.scaled(width / frame[0], height / frame[1])
    return Decoded(pixels, max(1, round(sides.width)), max(1, round(sides.height)))


def _stored_box(box: tuple[int, int, int, int], orientation: int, stored: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return the place of a box of the upright picture in the picture as it is stored."""
    left, top, right, bottom = box
    across, down = (left, right), (top, bottom)
    if orientation in _SIDEWAYS:
        across, down = down, across
    width, height = stored
    if orientation in (2, 3, 7, 8):
        across = (width - across[1], width - across[0])
    if orientation in (3, 4, 6, 7):
        down = (height - down[1], height - down[0])
    return across[0], down[0], across[1], down[1]


def _masked(
    pixels: UInt8, outlines: "Sequence[array[float]]", scale: tuple[float, float], corner: tuple[float, float]
) -> UInt8:
    """Grey where the middle of a pixel lies in none of the polygons."""
    inside = np.zeros(pixels.shape[:2], bool)
    for one in outlines:
        inside |= _inside(np.asarray(one, np.float64).reshape(-1, 2) * scale - corner, inside.shape)
    return np.where(inside[..., None], pixels, _GREY)


def _inside(points: Float64, shape: tuple[int, ...]) -> Bool:
    """Which pixels of (height, width) have their middle in a polygon (n, 2): left of it lies an odd number of edges."""
    height, width = shape
    (x1, y1), (x2, y2) = points.T, np.roll(points, -1, axis=0).T
    middles = np.arange(height)[:, None] + 0.5
    rows, edges = np.nonzero((y1 <= middles) != (y2 <= middles))
    x1, y1, x2, y2 = x1[edges], y1[edges], x2[edges], y2[edges]
    met = x1 + (middles[rows, 0] - y1) / (y2 - y1) * (x2 - x1)
    passed = np.zeros((height, width + 1), np.int32)
    np.add.at(passed, (rows, np.clip(np.ceil(met - 0.5), 0, width).astype(np.int64)), 1)
    odd: Bool = passed.cumsum(axis=1)[:, :width] % 2 == 1
    return odd


def _orientation(image: Image.Image) -> int:
    """EXIF orientation; 1, upright, where the notes of the camera are broken: the picture itself is not."""
    try:
        found = Image.Image.getexif(image).get(_ORIENTATION, 1)  # that of PNG would decode the picture
    except Exception:  # parsers raise almost anything over hostile bytes
        return 1
    return found if isinstance(found, int) else 1


def _taken(image: Image.Image) -> str | None:
    """When the camera says that a picture was taken, where it says so in the form of EXIF."""
    try:
        notes = Image.Image.getexif(image).get_ifd(_CAMERA)
        said = next((str(notes[tag]) for tag in _TAKEN if notes.get(tag)), "")
        return datetime.strptime(said.strip("\0 ")[:19], "%Y:%m:%d %H:%M:%S").isoformat()
    except Exception:  # as above
        return None


def _turned(image: Image.Image, orientation: int) -> Image.Image:
    turn = _TURNS.get(orientation)
    return image if turn is None else image.transpose(turn)
