"""Segments of a JPEG file, inspected before it is decoded.

A progressive file draws its picture in about ten scans. Each costs time by the size of the picture, and may
be a hundred bytes long: a small file can hold work for hours. Where the first scan does not draw all colours,
the decoder keeps the coefficients of the whole picture.
"""

import re
from typing import IO, NamedTuple

MOST_SCANS = 100
"""Scans of a picture that is decoded."""

_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # others belong to the data of a scan
_BARE_MARKER, _SCAN, _END, _APP1 = 0x01, 0xDA, 0xD9, 0xE1
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_PROGRESSIVE = (0xC2, 0xC6, 0xCA, 0xCE)
_PIECE = 1 << 14
_MOST_SEGMENTS = 100_000
_MOST_EXIF = 1 << 20  # bytes of all segments: Pillow joins them


class JpegStructure(NamedTuple):
    """Properties of a JPEG file that decoding depends on.

    Attributes
    ----------
    keeps_coefficients : bool
        Of the whole picture, whatever size is wanted.
    """

    keeps_coefficients: bool


def inspect_jpeg(stream: IO[bytes]) -> JpegStructure:
    """Inspect the segments; a plain file is read up to its first scan only.

    Parameters
    ----------
    stream : file
        Is moved.

    Raises
    ------
    ValueError
        There are more than `MOST_SCANS` scans, more segments than anybody writes, or too many bytes of EXIF.

    Examples
    --------
    >>> import io
    >>> frame, scan = b"\\xff\\xc2\\0\\x0b\\x08\\0\\1\\0\\1\\1\\1\\x11\\0", b"\\xff\\xda\\0\\3\\1data"
    >>> inspect_jpeg(io.BytesIO(b"\\xff\\xd8" + frame + scan * 100))
    JpegStructure(keeps_coefficients=True)
    >>> inspect_jpeg(io.BytesIO(b"\\xff\\xd8" + frame + scan * 101))
    Traceback (most recent call last):
    ...
    ValueError: more than 100 scans
    """
    position, scans, exif, bands, progressive = 2, 0, 0, 0, False
    stream.seek(0)
    first = stream.read(_PIECE)  # holds all segments of most files
    for _ in range(_MOST_SEGMENTS):
        head = first[position : position + 10]
        if len(head) < 10 or not _MARKER.match(head):
            position = _find_marker(stream, position)
            stream.seek(position)
            head = stream.read(10)
        if len(head) < 5 or head[1] == _END:
            return JpegStructure(progressive or scans > 0)
        length = int.from_bytes(head[2:4], "big")
        if head[1] in _FRAMES:
            bands, progressive = (head[9] if len(head) > 9 else 0), head[1] in _PROGRESSIVE
        elif head[1] == _APP1 and head[4:8] == b"Exif":
            exif += length
            if exif > _MOST_EXIF:
                raise ValueError(f"more than {_MOST_EXIF:,} bytes of EXIF")
        elif head[1] == _SCAN:
            scans += 1
            if scans == 1 and head[4] == bands and not progressive:
                return JpegStructure(False)
            if scans > MOST_SCANS:
                raise ValueError(f"more than {MOST_SCANS} scans")
        position += 2 if head[1] == _BARE_MARKER else 2 + length
    raise ValueError(f"more than {_MOST_SEGMENTS:,} segments")


def _find_marker(stream: IO[bytes], position: int) -> int:
    """Return the position of the next marker, or one behind the end of the file."""
    stream.seek(position)
    overlap = b""
    while piece := stream.read(_PIECE):
        match = _MARKER.search(overlap + piece)
        if match:
            return position - len(overlap) + match.start()
        position, overlap = position + len(piece), piece[-1:]
    return position
