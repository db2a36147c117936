"""Chunks of a PNG file, inspected before it is decoded.

Pillow keeps every chunk that it does not know, expands every text, and finds EXIF behind the picture only by
decoding it.
"""

import struct
from typing import IO, NamedTuple

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MOST_CHUNKS = 100_000
_MOST_BESIDE = 10_000  # chunks that are no data of the picture
_MOST_EXIF = 1 << 20
_MOST_TEXT = 1 << 20  # Pillow expands no chunk further
_MOST_TEXTS = 64 << 20  # and all texts no further
_EXPANDED = {b"zTXt": 1032, b"iTXt": 1032, b"iCCP": 1032, b"tEXt": 1}  # bytes for each one in the file, at most


class PngStructure(NamedTuple):
    """Content of a PNG file beside the picture.

    Attributes
    ----------
    text_bytes : int
        Texts and colour profile when they are expanded, at most.
    exif : bytes or None
        The notes of the camera, wherever they stand.
    """

    text_bytes: int
    exif: bytes | None


def inspect_png(stream: IO[bytes]) -> PngStructure:
    """Inspect the chunks; the stream is moved.

    Raises
    ------
    ValueError
        There are more chunks than anybody writes, or the notes of the camera are too long.

    Examples
    --------
    >>> import io
    >>> inspect_png(io.BytesIO(SIGNATURE + b"\\0\\0\\0\\4eXIfII*\\0crc "))
    PngStructure(text_bytes=0, exif=b'II*\\x00')
    """
    position, n_other_chunks, texts, exif = len(SIGNATURE), 0, 0, None
    for _ in range(_MOST_CHUNKS):
        stream.seek(position)
        head = stream.read(8)
        if len(head) < 8 or head[4:] == b"IEND":
            return PngStructure(min(texts, _MOST_TEXTS + _MOST_TEXT), exif)
        length, name = struct.unpack(">I4s", head)
        n_other_chunks += name not in (b"IDAT", b"fdAT")
        if n_other_chunks > _MOST_BESIDE:
            break
        if name in _EXPANDED:
            texts += min(length * _EXPANDED[name], _MOST_TEXT)
        elif name == b"eXIf" and exif is None:
            if length > _MOST_EXIF:
                raise ValueError(f"{length:,} bytes of EXIF, at most {_MOST_EXIF:,}")
            exif = stream.read(length)
        position += 12 + length
    raise ValueError(f"more than {_MOST_BESIDE:,} chunks beside the picture, or {_MOST_CHUNKS:,} in all")
