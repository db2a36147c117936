"""Pictures before Pillow opens them: the cost of opening, and structures that only cost time or memory."""

import io
from typing import IO, NamedTuple

from wsabie.sources.avif_structure import inspect_avif
from wsabie.sources.jpeg_structure import inspect_jpeg
from wsabie.sources.png_structure import SIGNATURE, inspect_png
from wsabie.sources.tiff_structure import inspect_tiff

_TIFFS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


class PictureStructure(NamedTuple):
    """Facts of a picture file that is not opened yet.

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


def inspect_picture(stream: IO[bytes]) -> PictureStructure:
    """Look through a file; the stream stands at its beginning afterwards.

    Raises
    ------
    ValueError
        It is made to cost time or memory.

    Examples
    --------
    >>> inspect_picture(io.BytesIO(b"GIF89a"))
    PictureStructure(opening_bytes=0, keeps_coefficients=False, exif=None, frame_pixels=0)
    """
    stream.seek(0)
    head = stream.read(12)
    try:
        if head.startswith(b"\xff\xd8"):
            return PictureStructure(keeps_coefficients=inspect_jpeg(stream).keeps_coefficients)
        if head.startswith(SIGNATURE):
            png = inspect_png(stream)
            return PictureStructure(png.text_bytes, exif=png.exif)
        if head.startswith(_TIFFS):
            inspect_tiff(stream)
        elif head.startswith(b"RIFF"):
            return PictureStructure(2 * stream.seek(0, io.SEEK_END))  # Pillow reads the whole file, and joins the parts
        elif head.startswith(b"ftyp", 4):
            return PictureStructure(2 * stream.seek(0, io.SEEK_END), frame_pixels=inspect_avif(stream))
        return PictureStructure()
    finally:
        stream.seek(0)
