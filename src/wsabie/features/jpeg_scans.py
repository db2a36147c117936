"""How often a JPEG file goes over its picture.

A progressive file draws its picture in about ten scans. Each costs time by the size of the picture, and may be a
hundred bytes long: a small file can hold work for hours.
"""

import re
from typing import IO

MOST = 100
"""Scans of a picture that is looked at."""

_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # others belong to the data of a scan
_ALONE, _SCAN, _END = 0x01, 0xDA, 0xD9
_PIECE = 1 << 14
_MOST_SEGMENTS = 100_000


def too_many_scans(stream: IO[bytes], bands: int, *, progressive: bool) -> bool:
    """Whether there are more than `MOST`; a file that is no JPEG file has none.

    Parameters
    ----------
    stream : file
        Is moved.
    bands : int
        Of the picture: where the first scan of a plain file has all of them, it is the only one that is drawn.
    progressive : bool

    Examples
    --------
    >>> import io
    >>> scan = b"\\xff\\xda\\0\\3\\1data"
    >>> [too_many_scans(io.BytesIO(b"\\xff\\xd8" + scan * n), 1, progressive=True) for n in (100, 101)]
    [False, True]
    """
    at, scans = 2, 0
    for _ in range(_MOST_SEGMENTS):
        at = _marker_from(stream, at)
        stream.seek(at)
        head = stream.read(5)
        if len(head) < 5 or head[1] == _END:
            return False
        if head[1] == _SCAN:
            scans += 1
            if scans > MOST or (not progressive and scans == 1 and head[4] == bands):
                return scans > MOST
        at += 2 if head[1] == _ALONE else 2 + int.from_bytes(head[2:4], "big")
    return True


def _marker_from(stream: IO[bytes], at: int) -> int:
    """Where the next marker begins; behind the end of the file where there is none."""
    stream.seek(at)
    left = b""
    while piece := stream.read(_PIECE):
        found = _MARKER.search(left + piece)
        if found:
            return at - len(left) + found.start()
        at, left = at + len(piece), piece[-1:]
    return at
