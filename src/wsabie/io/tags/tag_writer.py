"""Writer of tags beside a picture, or into it on request; nothing but the tags changes.

Files are replaced as a whole or not at all, and only when their tags differ from the new ones. They keep
their mode and extended attributes. Links are not written through.

Libraries write the whole packet again, and what other programs put between its tags is lost
(`docs/decisions/picture-tags.md`).
"""

import os
import re
import shutil
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, TypeAlias

from wsabie.core.errors import InputError, require
from wsabie.core.input_files import is_regular_file, open_input
from wsabie.io.parsers.text_files import explain_input_errors
from wsabie.io.tags import embedded_metadata
from wsabie.io.tags.embedded_metadata import PNG_HEAD, UNREADABLE, XMP_HEAD, ContainerChunk
from wsabie.io.tags.image_tags import find_sidecar, read_image_tags, read_sidecar
from wsabie.io.tags.xmp import NEW, SUBJECT, TextEdit, make_tag_properties, read_xmp_packet, replace_tags
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.rejects import RowError

_MAX_SEGMENT_BYTES = 0xFFFF - 2
_PADDING = re.compile(rb"(?<!\s)\s{100,}+(?=<\?xpacket end)")
_XMP_FLAG, _ALPHA_FLAG = 0x04, 0x10
_ELSEWHERE = "write a sidecar beside it"
Chunks: TypeAlias = list[ContainerChunk]


def write_sidecar(picture: Path, tags: Iterable[str | Sequence[str]], *, token: str | None = None) -> Path | None:
    """Make `tags` the tags of a picture's sidecar; everything else in it stays.

    `dc:subject` and `lr:hierarchicalSubject` are written, and `digiKam:TagsList` where it is there already. The file is
    `photo.jpg.xmp` unless there is only `photo.xmp`.

    Parameters
    ----------
    picture : Path
        It need not be there, nor be a picture.
    tags : iterable of str or of sequences of str
        All of them: names, or paths of names from the broadest. See `xmp.make_tag_properties` for
        names with "|" or "/".
    token : str or None
        16 hex digits for the name of the draft; see `storage.atomic_files.replace_file`.

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
    properties = make_tag_properties(tags)
    sidecar = find_sidecar(picture)
    path = sidecar or picture.with_name(f"{picture.name}.xmp")
    try:
        old = read_sidecar(path) if sidecar else b""
        new = replace_tags(old if old.strip() else NEW, properties)
    except RowError as error:
        raise InputError(
            f"{path} is not written: {error.reason} ({error.detail}); repair it or move it away"
        ) from error
    if new is None or (not properties[SUBJECT] and not (is_regular_file(picture) and read_image_tags(picture).tags)):
        return None
    with replace_file(path, token) as draft:
        draft.write_bytes(new)
        if sidecar:
            _copy_attributes(path, draft, keep_time=False)
    return path


def write_embedded(
    picture: Path, tags: Iterable[str | Sequence[str]], *, keep_time: bool = False, token: str | None = None
) -> bool:
    """Make `tags` the tags of the XMP packet inside a JPEG, PNG or WebP file; nothing is encoded again.

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
        True if the file was written, False if it held the tags already.

    Raises
    ------
    InputError
        A name cannot be written; or the file is of another format, a link or damaged; or its tags lie in extended XMP;
        or a JPEG file would need it (more than 64 KB), or says where other pictures lie in it.
    """
    properties = make_tag_properties(tags)
    require(not picture.is_symlink(), f"{picture} is a link; give the file that it leads to")
    try:
        with explain_input_errors(picture), open_input(picture) as stream:
            edits = _find_edits(picture, stream, properties)
            if edits is None:
                return False
            with replace_file(picture, token) as draft:
                _copy_with_edits(stream, draft, edits)
                _copy_attributes(picture, draft, keep_time)
    except RowError as error:
        raise InputError(f"{picture} is not written: {error.reason} ({error.detail}); {_ELSEWHERE}") from error
    return True


def _copy_attributes(path: Path, draft: Path, keep_time: bool) -> None:
    shutil.copystat(path, draft)
    if not keep_time:
        os.utime(draft)


def _copy_with_edits(stream: IO[bytes], draft: Path, edits: list[TextEdit]) -> None:
    """Copy the file with some of its parts replaced."""
    position = 0
    with draft.open("wb") as out:
        for begin, end, new in sorted(edits):
            stream.seek(position)
            while part := stream.read(min(begin - position, 1 << 20)):
                out.write(part)
                position += len(part)
            out.write(new)
            position = end
        stream.seek(position)
        shutil.copyfileobj(stream, out)


def _find_edits(picture: Path, stream: IO[bytes], properties: dict[str, list[str]]) -> list[TextEdit] | None:
    """Return the changes to the file; None if its tags are these already."""
    container = embedded_metadata.detect_container(stream)
    if container is None:
        raise InputError(f"{picture} is not a JPEG, PNG or WebP, and only these are written into; {_ELSEWHERE}")
    chunks = list(embedded_metadata.iterate_chunks(stream, container))
    metadata = embedded_metadata.read_embedded_metadata(picture)
    old = [chunk for chunk in chunks if embedded_metadata.read_chunk_content(stream, chunk, container)[0] == "packet"]
    if len(old) > 1:
        raise RowError("unclear XMP", "there are two packets")
    packet = metadata.packets[0] if metadata and metadata.packets else b""
    packet = packet if packet.strip(b"\0 \t\r\n") else NEW
    name = read_xmp_packet(packet).extended
    if metadata and name and read_xmp_packet(embedded_metadata.assemble_extended_xmp(metadata, name)).tags is not None:
        raise RowError("extended XMP", "the tags lie in it")
    new = replace_tags(packet, properties)
    if new is None:
        return None
    return {"JPEG": _edit_jpeg, "PNG": _edit_png, "WebP": _edit_webp}[container](stream, chunks, old, new)


def _edit_jpeg(stream: IO[bytes], chunks: Chunks, old: Chunks, packet: bytes) -> list[TextEdit]:
    """Return the packet in place of the old one, or behind the leading APP0 and APP1 (JFIF and EXIF)."""
    if len(XMP_HEAD + packet) > _MAX_SEGMENT_BYTES:
        packet = _PADDING.sub(b"\n", packet)
    content = XMP_HEAD + packet
    if len(content) > _MAX_SEGMENT_BYTES:
        raise RowError("oversized XMP packet", f"{len(packet):,} bytes, and a segment of JPEG holds 64 KB")
    segment = b"\xff\xe1" + (len(content) + 2).to_bytes(2, "big") + content
    if not old:
        position = 2
        for chunk in chunks:
            if chunk.name not in (b"\xe0", b"\xe1"):
                break
            position = chunk.end
        return [(position, position, segment)]
    begin, end = old[0].begin, old[0].end
    if len(segment) != end - begin and any(_is_index(stream, chunk) for chunk in chunks if chunk.begin < begin):
        raise RowError("several pictures in one file", "an index of their positions comes before the XMP")
    return [(begin, end, segment)]


def _is_index(stream: IO[bytes], chunk: ContainerChunk) -> bool:
    """Return True if a segment states the relative positions of further pictures (CIPA DC-007)."""
    stream.seek(chunk.data)
    return chunk.name == b"\xe2" and stream.read(4) == b"MPF\0"


def _edit_png(stream: IO[bytes], chunks: Chunks, old: Chunks, packet: bytes) -> list[TextEdit]:
    """Return the packet as an iTXt chunk before the pixels, where more programs look than behind them."""
    content = b"iTXt" + PNG_HEAD + b"\0\0\0\0" + packet
    new_chunk = (len(content) - 4).to_bytes(4, "big") + content + zlib.crc32(content).to_bytes(4, "big")
    pixels = next((chunk.begin for chunk in chunks if chunk.name == b"IDAT"), chunks[-1].begin)
    if old and old[0].begin < pixels:
        return [(old[0].begin, old[0].end, new_chunk)]
    return [(pixels, pixels, new_chunk), *((chunk.begin, chunk.end, b"") for chunk in old)]


def _edit_webp(stream: IO[bytes], chunks: Chunks, old: Chunks, packet: bytes) -> list[TextEdit]:
    """Return the packet as a chunk at the end, with its flag in the header, which simple files lack."""
    chunk = b"XMP " + len(packet).to_bytes(4, "little") + packet + b"\0" * (len(packet) % 2)
    end = chunks[-1].end
    begin, old_end = (old[0].begin, old[0].end) if old else (end, end)
    first = chunks[0]
    stream.seek(first.data)
    head = stream.read(min(first.size, 10))
    if first.name == b"VP8X" and head:
        edit = (first.data, first.data + 1, bytes([head[0] | _XMP_FLAG]))
    else:
        edit = (first.begin, first.begin, _build_extended_header(first.name, head))
    stream.seek(4)
    size = int.from_bytes(stream.read(4), "little")
    if end > 8 + size:
        raise RowError(UNREADABLE, "its last chunk is not filled up")
    growth = len(chunk) - (old_end - begin) + len(edit[2]) - (edit[1] - edit[0])
    return [(4, 8, (size + growth).to_bytes(4, "little")), edit, (begin, old_end, chunk)]


def _build_extended_header(name: bytes, head: bytes) -> bytes:
    """Return the chunk VP8X of a simple file, from the first bytes of its pixels."""
    if name == b"VP8L" and head[:1] == b"\x2f":
        bits = int.from_bytes(head[1:5], "little")
        flags, width, height = _ALPHA_FLAG * (bits >> 28 & 1), bits & 0x3FFF, bits >> 14 & 0x3FFF
    elif name == b"VP8 " and head[3:6] == b"\x9d\x01\x2a":
        flags, sides = 0, [int.from_bytes(head[offset : offset + 2], "little") & 0x3FFF for offset in (6, 8)]
        width, height = sides[0] - 1, sides[1] - 1
    else:
        raise RowError(UNREADABLE, "no pixels of WebP")
    if width < 0 or height < 0:
        raise RowError(UNREADABLE, "a side without pixels")
    content = bytes([flags | _XMP_FLAG, 0, 0, 0]) + width.to_bytes(3, "little") + height.to_bytes(3, "little")
    return b"VP8X" + len(content).to_bytes(4, "little") + content
