"""How JPEG, PNG and WebP files are cut into pieces, and where in them XMP and IPTC lie.

JPEG: segments up to the first scan (ITU-T T.81, annex B); XMP and its extension as in part 3 of the XMP specification.
PNG: chunks (iTXt "XML:com.adobe.xmp"). WebP: chunks of RIFF ("XMP "). Nothing is decoded.
"""

import hashlib
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import NamedTuple

from wsabie.base.errors import InputError
from wsabie.base.input_files import fault_text, open_input
from wsabie.sources.build import BadRow
from wsabie.sources.xmp import LARGEST

XMP_HEAD = b"http://ns.adobe.com/xap/1.0/\0"
PNG_HEAD = b"XML:com.adobe.xmp\0"
UNREADABLE = "unreadable picture"
"""The reason of a picture that cannot be taken apart; `sources.unreadable` says why not."""
MAGIC = {"JPEG": b"\xff\xd8", "PNG": b"\x89PNG\r\n\x1a\n", "WebP": b"RIFF"}
_EXTENSION_HEAD = b"http://ns.adobe.com/xmp/extension/\0"
_RESOURCES_HEAD = b"Photoshop 3.0\0"
_MOST = 1_000_000
_MOST_PARTS = 1024  # of 64 KiB: four times the largest packet
_APP1, _APP13, _SCAN = b"\xe1", b"\xed", b"\xda"


class Piece(NamedTuple):
    """A segment or chunk: its kind, its first byte, its content [data, data + size), and the first byte behind it."""

    kind: bytes
    begin: int
    data: int
    size: int
    end: int


class Embedded(NamedTuple):
    """The metadata of a file as they lie in it.

    Attributes
    ----------
    packets : list of bytes
        XMP packets. Files have one; of more the first two are here.
    extensions : list of (str, int, int, bytes)
        Parts of extended XMP: (name, whole length, offset, content).
    resources : list of bytes
        Photoshop's, which go on from segment to segment.
    """

    packets: list[bytes]
    extensions: list[tuple[str, int, int, bytes]]
    resources: list[bytes]


def kind_of(stream: BufferedIOBase) -> str | None:
    """ "JPEG", "PNG", "WebP", or None for other formats."""
    stream.seek(0)
    head = stream.read(12)
    found = next((name for name, magic in MAGIC.items() if head.startswith(magic)), None)
    return None if found == "WebP" and head[8:] != b"WEBP" else found


def pieces(stream: BufferedIOBase, kind: str) -> Iterator[Piece]:
    """The pieces of a file of a kind in their order; of JPEG those before the first scan, and the scan's head.

    Raises
    ------
    BadRow
        A piece reaches behind the end of the file, or there are more than a million.
    """
    size = stream.seek(0, 2)
    if kind == "WebP":
        stream.seek(4)
        size = min(size, 8 + int.from_bytes(stream.read(4), "little"))
    at = {"JPEG": 2, "PNG": 8, "WebP": 12}[kind]
    step = {"JPEG": _segment, "PNG": _png_chunk, "WebP": _riff_chunk}[kind]
    for _ in range(_MOST):
        stream.seek(at)
        piece = step(stream, at)
        if piece.data + piece.size > size:
            raise BadRow(UNREADABLE, f"{ascii(piece.kind)[2:-1]} at byte {piece.begin:,} is cut off")
        yield piece
        at = piece.end
        if piece.kind in (_SCAN, b"IEND") or (kind == "WebP" and at >= size):
            return
    raise BadRow(UNREADABLE, f"more than {_MOST:,} segments")


def _segment(stream: BufferedIOBase, at: int) -> Piece:
    head = stream.read(2)
    begin = at
    while head == b"\xff\xff":  # bytes that fill
        at += 1
        if at - begin > LARGEST:
            raise BadRow(UNREADABLE, "no segments")
        head = b"\xff" + stream.read(1)
    if head[:1] != b"\xff" or len(head) < 2:
        raise BadRow(UNREADABLE, f"no segment at byte {at:,}")
    if head[1:] == b"\x01" or b"\xd0" <= head[1:] <= b"\xd9":
        return Piece(head[1:], begin, at + 2, 0, at + 2)
    length = int.from_bytes(stream.read(2), "big")
    if length < 2:
        raise BadRow(UNREADABLE, f"a segment without a length at byte {at:,}")
    return Piece(head[1:], begin, at + 4, length - 2, at + 2 + length)


def _png_chunk(stream: BufferedIOBase, at: int) -> Piece:
    head = stream.read(8)
    size = int.from_bytes(head[:4], "big")
    return Piece(head[4:], at, at + 8, size, at + 12 + size)


def _riff_chunk(stream: BufferedIOBase, at: int) -> Piece:
    head = stream.read(8)
    size = int.from_bytes(head[4:], "little")
    return Piece(head[:4], at, at + 8, size, at + 8 + size + size % 2)


def embedded_in(path: Path) -> Embedded | None:
    """The metadata of a file; None if it is neither JPEG, PNG nor WebP.

    A file that is cut off behind them still has them.

    Raises
    ------
    BadRow
        It cannot be read, or is damaged before any were found, or they are larger than 16 MiB.
    """
    found = Embedded([], [], [])
    try:
        with open_input(path) as stream:
            kind = kind_of(stream)
            if kind is None:
                return None
            for piece in pieces(stream, kind):
                _add(found, *content_of(stream, piece, kind))
    except (OSError, InputError) as error:
        raise BadRow(UNREADABLE, fault_text(error)) from error
    except BadRow as bad:
        if bad.reason != UNREADABLE or not any(found):
            raise
    return found


def _add(found: Embedded, what: str, content: bytes) -> None:
    if what == "packet" and len(found.packets) < 2:
        found.packets.append(content)
    elif what == "extension" and len(found.extensions) < _MOST_PARTS and len(content) >= 40:
        whole, offset = (int.from_bytes(content[at : at + 4], "big") for at in (32, 36))
        found.extensions.append((content[:32].decode("latin-1"), whole, offset, content[40:]))
    elif what == "resources" and len(found.resources) < _MOST_PARTS:
        found.resources.append(content)


def content_of(stream: BufferedIOBase, piece: Piece, kind: str) -> tuple[str, bytes]:
    """("packet", "extension", "resources" or "", its bytes) of a piece.

    Raises
    ------
    BadRow
        A packet is larger than 16 MiB, or its chunk is damaged.
    """
    heads = {
        ("JPEG", _APP1): ((XMP_HEAD, "packet"), (_EXTENSION_HEAD, "extension")),
        ("JPEG", _APP13): ((_RESOURCES_HEAD, "resources"),),
        ("PNG", b"iTXt"): ((PNG_HEAD, "packet"),),
        ("WebP", b"XMP "): ((b"", "packet"),),
    }
    for head, what in heads.get((kind, piece.kind), ()):
        stream.seek(piece.data)
        if stream.read(len(head)) != head:
            continue
        if piece.size > LARGEST:
            raise BadRow("oversized XMP packet", f"{piece.size:,} bytes")
        content = stream.read(piece.size - len(head))
        return what, _international(content, stream.read(4)) if kind == "PNG" else content
    return "", b""


def _international(content: bytes, crc: bytes) -> bytes:
    """The text of an iTXt chunk behind its keyword: two flags, language, keyword in that language, text."""
    if zlib.crc32(b"iTXt" + PNG_HEAD + content) != int.from_bytes(crc, "big"):
        raise BadRow("unreadable XMP packet", "the checksum of its chunk is wrong")
    parts = content[2:].split(b"\0", 2)
    if len(parts) < 3:
        raise BadRow("unreadable XMP packet", "its chunk is cut off")
    if content[:1] == b"\0":
        return parts[2]
    try:
        return zlib.decompressobj().decompress(parts[2], LARGEST + 1)
    except zlib.error as error:
        raise BadRow("unreadable XMP packet", str(error)) from error


def extension(found: Embedded, name: str) -> bytes:
    """The extended XMP of a name, put together.

    Raises
    ------
    BadRow
        Parts are missing or overlap, or its checksum, which is its name, is wrong.
    """
    parts = sorted((part for part in found.extensions if part[0] == name), key=lambda part: part[2])
    content = b"".join(part for *_, part in parts)
    ends = [offset + len(part) for _, _, offset, part in parts]
    if [offset for _, _, offset, _ in parts] != [0, *ends][: len(parts)] or {part[1] for part in parts} != {*ends[-1:]}:
        raise BadRow("unreadable extended XMP", "parts of it are missing")
    if hashlib.md5(content, usedforsecurity=False).hexdigest().upper() != name.upper():
        raise BadRow("unreadable extended XMP", "its checksum is wrong")
    return content
