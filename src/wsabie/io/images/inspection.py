"""Inspection of pictures before Pillow opens them: cost of opening, and hostile structures."""

import io
from typing import IO, NamedTuple

from wsabie.io.images.avif import inspect_avif
from wsabie.io.images.jpeg import inspect_jpeg
from wsabie.io.images.png import SIGNATURE, inspect_png
from wsabie.io.images.tiff import inspect_tiff

_TIFFS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


class ImageStructure(NamedTuple):
    """Facts of a picture file before it is opened.

    Attributes
    ----------
    opening_bytes : int
        Memory that opening takes, beside a little.
    keeps_coefficients : bool
        The decoder keeps the whole picture, whatever size is wanted.
    exif : bytes or None
        Notes of the camera that Pillow finds only when it decodes.
    frame_pixels : int
        Pixels of the largest frame, where the file says so in another place than its size.
    """

    opening_bytes: int = 0
    keeps_coefficients: bool = False
    exif: bytes | None = None
    frame_pixels: int = 0


def inspect_image(stream: IO[bytes]) -> ImageStructure:
    """Inspect a file; the stream is at its beginning afterwards.

    Raises
    ------
    ValueError
        It is made to cost time or memory.

    Examples
    --------
    >>> inspect_image(io.BytesIO(b"GIF89a"))
    ImageStructure(opening_bytes=0, keeps_coefficients=False, exif=None, frame_pixels=0)
    """
    stream.seek(0)
    head = stream.read(12)
    try:
        if head.startswith(b"\xff\xd8"):
            return ImageStructure(keeps_coefficients=inspect_jpeg(stream).keeps_coefficients)
        if head.startswith(SIGNATURE):
            png = inspect_png(stream)
            return ImageStructure(png.text_bytes, exif=png.exif)
        if head.startswith(_TIFFS):
            inspect_tiff(stream)
        elif head.startswith(b"RIFF"):
            return ImageStructure(2 * stream.seek(0, io.SEEK_END))  # Pillow reads the whole file, and joins the parts
        elif head.startswith(b"ftyp", 4):
            return ImageStructure(2 * stream.seek(0, io.SEEK_END), frame_pixels=inspect_avif(stream))
        return ImageStructure()
    finally:
        stream.seek(0)


FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "PPM", "AVIF")
"""What is read (JPEG includes the multi-picture files of phones: their first picture). Whoever opens a picture names
these, so that no file can reach Pillow's interpreters of other formats."""
