"""Encoded pictures become small RGB arrays; what cannot be read is refused with a reason and never stops a run.

Only the decoders named in `sources.formats` are ever tried. Of a region the box is cut out; what lies in the box and
outside the outlines becomes grey, the same in all pictures, so that a dictionary learns it as one term and its weight
says that it tells nothing.
"""

import io
import math
import threading
import warnings
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from PIL import Image

from wsabie.base.arrays import Bool, Float64, UInt8
from wsabie.features.jpeg_scans import MOST as SCANS
from wsabie.features.jpeg_scans import too_many_scans
from wsabie.sources.formats import FORMATS
from wsabie.sources.media import PICTURES
from wsabie.sources.regions import OUTSIDE, Box, Content, Cutout, Region
from wsabie.sources.unreadable import is_cut, refuse_exhausted, verdict

NOT_FINITE = "no finite features"  # of a network that describes it
TURNED = "region of a picture that lies on its side"
REASONS = (
    "not a picture",
    PICTURES.unsupported,
    "truncated picture",
    "damaged picture",
    "empty file",
    "too many pixels",
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
_WHITE = (255, 255, 255, 255)
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
    with stream, _quiet(), _explained(stream):
        image = Image.open(stream, formats=FORMATS)
        width, height = _size(image, stream, max_pixels)
        drafted = image.draft("RGB", _scaled(width, height, _enough(size, region, width, height)))
        image.load()
        if drafted is None:
            width, height = image.size  # some decoders turn the picture upright themselves
        orientation = _orientation(image)
        if orientation in _SIDEWAYS:
            width, height = height, width
        if region is not None:
            return _cut(_turned(_plain(image), orientation), region, width, height, size)
        small = _flattened(_shrunk(_plain(image), size))
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
    with _quiet(), _explained(stream):
        image = Image.open(stream, formats=FORMATS)
        width, height = _size(image, stream, max_pixels)
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
    with stream, _quiet(), _explained(stream):
        image = Image.open(stream, formats=FORMATS)
        if image.width * image.height > max_pixels:
            raise RejectedItem("too many pixels", f"{image.width} x {image.height}, at most {max_pixels:,}")
        return str(Image.MIME.get(str(image.format), "application/octet-stream"))


def _size(image: Image.Image, stream: IO[bytes], max_pixels: int) -> tuple[int, int]:
    """Width and height; `RejectedItem` where decoding would take too long or too much memory."""
    width, height = image.size
    if width * height > max_pixels:
        raise RejectedItem("too many pixels", f"{width} x {height}, at most {max_pixels:,}")
    if image.format in ("JPEG", "MPO"):
        at, progressive = stream.tell(), "progressive" in image.info
        if too_many_scans(stream, len(image.getbands()), progressive=progressive):
            raise RejectedItem("damaged picture", f"more than {SCANS} scans")
        stream.seek(at)
    return width, height


def opened(content: Path | bytes) -> IO[bytes]:
    """What is to be decoded as a stream; `RejectedItem` where there is nothing or it cannot be read."""
    if isinstance(content, bytes):
        stream: IO[bytes] = io.BytesIO(content)
        length = len(content)
    else:
        try:
            if not content.is_file():
                missing = "is not a file" if content.exists() else "is not there"
                raise RejectedItem("unreadable file", missing)
            length = content.stat().st_size
            stream = content.open("rb")
        except (OSError, ValueError) as error:
            refuse_exhausted(error)
            raise RejectedItem("unreadable file", str(error)) from error
    if length == 0:
        stream.close()
        raise RejectedItem("empty file")
    return stream


_quiet_lock = threading.Lock()
_quiet_depth = 0
_quiet_context: Any = None


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Pillow's warnings about files; counted, because `catch_warnings` alone is not safe among threads."""
    global _quiet_depth, _quiet_context
    with _quiet_lock:
        if _quiet_depth == 0:
            _quiet_context = warnings.catch_warnings()
            _quiet_context.__enter__()
            warnings.simplefilter("ignore")
        _quiet_depth += 1
    try:
        yield
    finally:
        with _quiet_lock:
            _quiet_depth -= 1
            if _quiet_depth == 0:
                _quiet_context.__exit__(None, None, None)


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


def _cut(upright: Image.Image, region: Region, width: int, height: int, size: int) -> Decoded:
    """A region of a picture whose full size is `width` x `height`, and which may be smaller already."""
    frame = region.frame or (width, height)
    if frame == (height, width) != (width, height):
        raise RejectedItem(TURNED, f"stated {frame[0]:g} x {frame[1]:g}, upright {width} x {height}")
    box = region.box.within(Box(0, 0, *frame))
    if box.area == 0:
        raise RejectedItem(OUTSIDE, f"the picture has {width} x {height} pixels")
    across, down = upright.width / frame[0], upright.height / frame[1]
    place = box.scaled(across, down)
    left, top = min(round(place.left), upright.width - 1), min(round(place.top), upright.height - 1)
    right, bottom = max(round(place.right), left + 1), max(round(place.bottom), top + 1)
    small = _flattened(_shrunk(upright.crop((left, top, right, bottom)), size))
    pixels: UInt8 = np.array(small)
    if region.outlines:
        zoom = small.width / (right - left), small.height / (bottom - top)
        pixels = _masked(pixels, region.outlines, (across * zoom[0], down * zoom[1]), (left * zoom[0], top * zoom[1]))
    sides = box.scaled(width / frame[0], height / frame[1])
    return Decoded(pixels, max(1, round(sides.width)), max(1, round(sides.height)))


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


def _scaled(width: int, height: int, size: int) -> tuple[int, int]:
    """The size of a picture whose longer side is at most `size`."""
    longest = max(width, height)
    if longest <= size:
        return width, height
    return max(1, round(width * size / longest)), max(1, round(height * size / longest))


def _plain(image: Image.Image) -> Image.Image:
    """In a mode that can be scaled: 8 bits a channel, no palette, transparency as a channel of its own."""
    if image.mode.startswith("I") or image.mode == "F":
        return Image.fromarray(_eight_bits(np.asarray(image)))
    if image.mode in ("LA", "PA", "La", "RGBa", "RGBA") or "transparency" in image.info:
        return image.convert("RGBA")
    return image if image.mode in ("L", "RGB", "CMYK") else image.convert("RGB")


def _eight_bits(grey: np.ndarray[Any, np.dtype[Any]]) -> UInt8:
    """Grey values of 16 or 32 bits as 0 to 255."""
    values = np.nan_to_num(grey.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    darkest, lightest = float(values.min()), float(values.max())
    top = 1.0 if grey.dtype.kind == "f" else 65_535.0
    if darkest < 0 or lightest > top:
        values = values - darkest
        top = max(lightest - darkest, 1e-30)
    out: UInt8 = np.rint(values * (255 / top)).astype(np.uint8)
    return out


def _shrunk(image: Image.Image, size: int) -> Image.Image:
    target = _scaled(*image.size, size)
    return image if target == image.size else image.resize(target, Image.Resampling.BILINEAR, reducing_gap=2.0)


def _flattened(image: Image.Image) -> Image.Image:
    if image.mode == "RGBA":
        image = Image.alpha_composite(Image.new("RGBA", image.size, _WHITE), image)
    return image.convert("RGB")


def _orientation(image: Image.Image) -> int:
    """EXIF orientation; 1, upright, where the notes of the camera are broken: the picture itself is not."""
    try:
        found = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # parsers raise almost anything over hostile bytes
        return 1
    return found if isinstance(found, int) else 1


def _taken(image: Image.Image) -> str | None:
    """When the camera says that a picture was taken, where it says so in the form of EXIF."""
    try:
        notes = image.getexif().get_ifd(_CAMERA)
        said = next((str(notes[tag]) for tag in _TAKEN if notes.get(tag)), "")
        return datetime.strptime(said.strip("\0 ")[:19], "%Y:%m:%d %H:%M:%S").isoformat()
    except Exception:  # as above
        return None


def _turned(image: Image.Image, orientation: int) -> Image.Image:
    turn = _TURNS.get(orientation)
    return image if turn is None else image.transpose(turn)
