"""Tags written beside a picture, or into it when that is asked for; nothing but the tags changes.

Files are replaced as a whole or not at all, and only when their tags are others than those given. They keep their mode
and extended attributes. Links are not written through.
"""

import os
import re
import shutil
import zlib
from collections.abc import Iterable, Sequence
from io import BufferedIOBase
from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.base.input_files import is_regular, open_input
from wsabie.sources.build import BadRow
from wsabie.sources.containers import (
    PNG_HEAD,
    UNREADABLE,
    XMP_HEAD,
    Piece,
    content_of,
    embedded_in,
    extension,
    kind_of,
    pieces,
)
from wsabie.sources.picture_tags import read_sidecar, read_tags, sidecar_of, sidecars_of
from wsabie.sources.text import reading, shown
from wsabie.sources.xmp import SUBJECT, read_packet
from wsabie.sources.xmp_edit import NEW, Edit, properties_of, with_tags
from wsabie.storage.atomic import replacing

_LONGEST_SEGMENT = 0xFFFF - 2
_PADDING = re.compile(rb"(?<!\s)\s{100,}+(?=<\?xpacket end)")
_XMP_FLAG, _ALPHA_FLAG = 0x04, 0x10
_ELSEWHERE = "write a sidecar beside it"


def write_sidecar(picture: Path, tags: Iterable[str | Sequence[str]], *, token: str | None = None) -> Path | None:
    """Make `tags` the tags of a picture's sidecar; everything else in it stays.

    `dc:subject` and `lr:hierarchicalSubject` are written, and `digiKam:TagsList` where it is there already. The file is
    `photo.jpg.xmp` unless there is only `photo.xmp`.

    Parameters
    ----------
    picture : Path
        It need not be there, nor be a picture.
    tags : iterable of str or of sequences of str
        All of them: names, or paths of names from the broadest. See `xmp_edit.properties_of` for names with "|" or "/".
    token : str or None
        16 hex digits for the name of the draft; see `storage.atomic.replacing`.

    Returns
    -------
    Path or None
        The file that was written; None if it said so already, in whatever order, or if there is no tag to write nor one
        to take away.

    Raises
    ------
    InputError
        A name cannot be written, or the sidecar is a link, damaged, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     photo = Path(folder) / "1.jpg"
    ...     [write_sidecar(photo, ["sea", ("animal", "dog")]).name, write_sidecar(photo, [("animal", "dog"), "sea"])]
    ['1.jpg.xmp', None]
    """
    said = properties_of(tags)
    sidecar = sidecar_of(picture)
    path = sidecar or sidecars_of(picture)[0]
    try:
        old = read_sidecar(path) if sidecar else b""
        new = with_tags(old if old.strip() else NEW, said)
    except BadRow as bad:
        raise InputError(
            f"{shown(path)} is not written: {bad.reason} ({bad.detail}); repair it or move it away"
        ) from bad
    if new is None or (not said[SUBJECT] and not (is_regular(picture) and read_tags(picture).tags)):
        return None
    with replacing(path, token) as draft:
        draft.write_bytes(new)
        if sidecar:
            _keep(path, draft, keep_time=False)
    return path


def write_embedded(
    picture: Path, tags: Iterable[str | Sequence[str]], *, keep_time: bool = False, token: str | None = None
) -> bool:
    """Make `tags` the tags of the XMP packet inside a JPEG, PNG or WebP file; nothing is encoded anew.

    All other segments and chunks, the compressed pixels and what follows them stay as they are, byte for byte, IPTC
    keywords too: readers prefer XMP. A sidecar beside the picture goes on to count before it.

    Parameters
    ----------
    picture : Path
    tags : iterable of str or of sequences of str
        As those of `write_sidecar`.
    keep_time : bool
        Keep the time of the last change. By default it is now, for backups go by it.
    token : str or None
        As that of `write_sidecar`.

    Returns
    -------
    bool
        Whether the file was written; False if it said so already.

    Raises
    ------
    InputError
        A name cannot be written; or the file is of another format, a link or damaged; or its tags lie in extended XMP;
        or a JPEG file would need it (more than 64 KB), or says where other pictures lie in it.
    """
    said = properties_of(tags)
    if picture.is_symlink():
        raise InputError(f"{shown(picture)} is a link; give the file that it leads to")
    try:
        with reading(picture), open_input(picture) as stream:
            edits = _edits(picture, stream, said)
            if edits is None:
                return False
            with replacing(picture, token) as draft:
                _copy(stream, draft, edits)
                _keep(picture, draft, keep_time)
    except BadRow as bad:
        raise InputError(f"{shown(picture)} is not written: {bad.reason} ({bad.detail}); {_ELSEWHERE}") from bad
    return True


def _keep(path: Path, draft: Path, keep_time: bool) -> None:
    shutil.copystat(path, draft)
    if not keep_time:
        os.utime(draft)


def _copy(stream: BufferedIOBase, draft: Path, edits: list[Edit]) -> None:
    """The file with some of its parts replaced."""
    at = 0
    with draft.open("wb") as out:
        for begin, end, new in sorted(edits):
            stream.seek(at)
            while part := stream.read(min(begin - at, 1 << 20)):
                out.write(part)
                at += len(part)
            out.write(new)
            at = end
        stream.seek(at)
        shutil.copyfileobj(stream, out)


def _edits(picture: Path, stream: BufferedIOBase, said: dict[str, list[str]]) -> list[Edit] | None:
    """What changes in the file; None if its tags are these already.

    Raises
    ------
    InputError
        It is of another format.
    BadRow
        It is damaged, or its metadata cannot be changed alone.
    """
    kind = kind_of(stream)
    if kind is None:
        raise InputError(f"{shown(picture)} is no JPEG, PNG or WebP, and only these are written into; {_ELSEWHERE}")
    listed = list(pieces(stream, kind))
    found = embedded_in(picture)
    old = [piece for piece in listed if content_of(stream, piece, kind)[0] == "packet"]
    if len(old) > 1:
        raise BadRow("unclear XMP", "there are two packets")
    packet = found.packets[0] if found and found.packets else b""
    packet = packet if packet.strip(b"\0 \t\r\n") else NEW
    name = read_packet(packet).extended
    if found and name and read_packet(extension(found, name)).tags is not None:
        raise BadRow("extended XMP", "the tags lie in it")
    new = with_tags(packet, said)
    if new is None:
        return None
    return {"JPEG": _jpeg, "PNG": _png, "WebP": _webp}[kind](stream, listed, old, new)


def _jpeg(stream: BufferedIOBase, listed: list[Piece], old: list[Piece], packet: bytes) -> list[Edit]:
    """The packet in place of the old one, or behind the leading APP0 and APP1 (JFIF and EXIF)."""
    if len(XMP_HEAD + packet) > _LONGEST_SEGMENT:
        packet = _PADDING.sub(b"\n", packet)
    content = XMP_HEAD + packet
    if len(content) > _LONGEST_SEGMENT:
        raise BadRow("oversized XMP packet", f"{len(packet):,} bytes, and a segment of JPEG holds 64 KB")
    segment = b"\xff\xe1" + (len(content) + 2).to_bytes(2, "big") + content
    if not old:
        at = 2
        for piece in listed:
            if piece.kind not in (b"\xe0", b"\xe1"):
                break
            at = piece.end
        return [(at, at, segment)]
    place = old[0]
    if len(segment) != place.end - place.begin and any(_is_index(stream, p) for p in listed if p.begin < place.begin):
        raise BadRow("several pictures in one file", "what tells where they lie comes before the XMP")
    return [(place.begin, place.end, segment)]


def _is_index(stream: BufferedIOBase, piece: Piece) -> bool:
    """Whether a segment tells, by distances from itself, where further pictures lie (CIPA DC-007)."""
    stream.seek(piece.data)
    return piece.kind == b"\xe2" and stream.read(4) == b"MPF\0"


def _png(stream: BufferedIOBase, listed: list[Piece], old: list[Piece], packet: bytes) -> list[Edit]:
    """The packet as an iTXt chunk before the pixels, where more programs look than behind them."""
    content = b"iTXt" + PNG_HEAD + b"\0\0\0\0" + packet
    chunk = (len(content) - 4).to_bytes(4, "big") + content + zlib.crc32(content).to_bytes(4, "big")
    pixels = next((piece.begin for piece in listed if piece.kind == b"IDAT"), listed[-1].begin)
    if old and old[0].begin < pixels:
        return [(old[0].begin, old[0].end, chunk)]
    return [(pixels, pixels, chunk), *((piece.begin, piece.end, b"") for piece in old)]


def _webp(stream: BufferedIOBase, listed: list[Piece], old: list[Piece], packet: bytes) -> list[Edit]:
    """The packet as a chunk at the end, with its flag in the header, which simple files do not have yet."""
    chunk = b"XMP " + len(packet).to_bytes(4, "little") + packet + b"\0" * (len(packet) % 2)
    end = listed[-1].end
    begin, behind = (old[0].begin, old[0].end) if old else (end, end)
    first = listed[0]
    stream.seek(first.data)
    head = stream.read(min(first.size, 10))
    if first.kind == b"VP8X" and head:
        edit = (first.data, first.data + 1, bytes([head[0] | _XMP_FLAG]))
    else:
        edit = (first.begin, first.begin, _extended_header(first.kind, head))
    stream.seek(4)
    size = int.from_bytes(stream.read(4), "little")
    if end > 8 + size:
        raise BadRow(UNREADABLE, "its last chunk is not filled up")
    grown = len(chunk) - (behind - begin) + len(edit[2]) - (edit[1] - edit[0])
    return [(4, 8, (size + grown).to_bytes(4, "little")), edit, (begin, behind, chunk)]


def _extended_header(kind: bytes, head: bytes) -> bytes:
    """The chunk VP8X of a simple file, from the first bytes of its pixels."""
    if kind == b"VP8L" and head[:1] == b"\x2f":
        bits = int.from_bytes(head[1:5], "little")
        flags, width, height = _ALPHA_FLAG * (bits >> 28 & 1), bits & 0x3FFF, bits >> 14 & 0x3FFF
    elif kind == b"VP8 " and head[3:6] == b"\x9d\x01\x2a":
        flags, sides = 0, [int.from_bytes(head[at : at + 2], "little") & 0x3FFF for at in (6, 8)]
        width, height = sides[0] - 1, sides[1] - 1
    else:
        raise BadRow(UNREADABLE, "no pixels of WebP")
    if width < 0 or height < 0:
        raise BadRow(UNREADABLE, "a side without pixels")
    content = bytes([flags | _XMP_FLAG, 0, 0, 0]) + width.to_bytes(3, "little") + height.to_bytes(3, "little")
    return b"VP8X" + len(content).to_bytes(4, "little") + content
