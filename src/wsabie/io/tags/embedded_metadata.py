"""Containers of JPEG, PNG and WebP files: their chunks, and the XMP and IPTC in them.

JPEG: segments up to the first scan (ITU-T T.81, annex B); XMP and its extension as in part 3 of the XMP
specification; IPTC-IIM keywords of older programs, dataset 2:25 in a Photoshop resource. PNG: chunks (iTXt
"XML:com.adobe.xmp"). WebP: chunks of RIFF ("XMP "). Nothing is decoded.
"""

import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal, NamedTuple, TypeAlias

from wsabie.core.errors import InputError
from wsabie.core.input_files import format_open_error, open_input
from wsabie.io.tags.xmp import MAX_PACKET_BYTES
from wsabie.storage.rejects import RowError
from wsabie.vocabulary.encoding_repair import repair_encoding

XMP_HEAD = b"http://ns.adobe.com/xap/1.0/\0"
PNG_HEAD = b"XML:com.adobe.xmp\0"
UNREADABLE = "unreadable picture"
"""Reason for a picture whose chunks cannot be read; `image_errors` finds the cause."""
MAGIC = {"JPEG": b"\xff\xd8", "PNG": b"\x89PNG\r\n\x1a\n", "WebP": b"RIFF"}
_EXTENSION_HEAD = b"http://ns.adobe.com/xmp/extension/\0"
_RESOURCES_HEAD = b"Photoshop 3.0\0"
_MAX_POSITIONS = 1_000_000
_MAX_PARTS = 1024  # of 64 KiB: four times the largest packet
_APP1, _APP13, _SCAN = b"\xe1", b"\xed", b"\xda"
ContentType: TypeAlias = Literal["packet", "extension", "resources"]
"""Type of the metadata in a chunk."""
_HEADS: dict[tuple[str, bytes], dict[bytes, ContentType]] = {
    ("JPEG", _APP1): {XMP_HEAD: "packet", _EXTENSION_HEAD: "extension"},
    ("JPEG", _APP13): {_RESOURCES_HEAD: "resources"},
    ("PNG", b"iTXt"): {PNG_HEAD: "packet"},
    ("WebP", b"XMP "): {b"": "packet"},
}
"""First bytes of the chunks that hold metadata, by container and name."""
_IPTC = 0x0404
_KEYWORD = (2, 25)
_MAX_KEYWORD_BYTES = 64  # bytes; a letter may be cut there


class ContainerChunk(NamedTuple):
    """Chunk of a file, or segment of a JPEG: its name, and offsets; the content is [data, data + size)."""

    name: bytes
    begin: int
    data: int
    size: int
    end: int


class EmbeddedMetadata(NamedTuple):
    """Metadata of a file, not yet parsed.

    Attributes
    ----------
    packets : list of bytes
        XMP packets. Files have one; of more the first two are here.
    extensions : list of (str, int, int, bytes)
        Parts of extended XMP: (name, whole length, offset, content).
    resources : list of bytes
        Photoshop's resources, which continue from segment to segment.
    """

    packets: list[bytes]
    extensions: list[tuple[str, int, int, bytes]]
    resources: list[bytes]


def detect_container(stream: IO[bytes]) -> str | None:
    """Return "JPEG", "PNG", "WebP", or None for other formats."""
    stream.seek(0)
    head = stream.read(12)
    container = next((name for name, magic in MAGIC.items() if head.startswith(magic)), None)
    return None if container == "WebP" and head[8:] != b"WEBP" else container


def iterate_chunks(stream: IO[bytes], container: str) -> Iterator[ContainerChunk]:
    """Yield the chunks of a file in order; of JPEG those before the first scan, and the scan's head.

    Raises
    ------
    RowError
        A chunk reaches beyond the end of the file, or there are more than a million.
    """
    size = stream.seek(0, 2)
    if container == "WebP":
        stream.seek(4)
        size = min(size, 8 + int.from_bytes(stream.read(4), "little"))
    position = {"JPEG": 2, "PNG": 8, "WebP": 12}[container]
    for _ in range(_MAX_POSITIONS):
        stream.seek(position)
        chunk = _read_segment(stream, position) if container == "JPEG" else _read_chunk(stream, position, container)
        if chunk.data + chunk.size > size:
            raise RowError(UNREADABLE, f"{ascii(chunk.name)[2:-1]} at byte {chunk.begin:,} is cut off")
        yield chunk
        position = chunk.end
        if chunk.name in (_SCAN, b"IEND") or (container == "WebP" and position >= size):
            return
    raise RowError(UNREADABLE, f"more than {_MAX_POSITIONS:,} segments")


def _read_segment(stream: IO[bytes], position: int) -> ContainerChunk:
    head = stream.read(2)
    begin = position
    while head == b"\xff\xff":  # bytes that fill
        position += 1
        if position - begin > MAX_PACKET_BYTES:
            raise RowError(UNREADABLE, "no segments")
        head = b"\xff" + stream.read(1)
    if head[:1] != b"\xff" or len(head) < 2:
        raise RowError(UNREADABLE, f"no segment at byte {position:,}")
    if head[1:] == b"\x01" or b"\xd0" <= head[1:] <= b"\xd9":
        return ContainerChunk(head[1:], begin, position + 2, 0, position + 2)
    length = int.from_bytes(stream.read(2), "big")
    if length < 2:
        raise RowError(UNREADABLE, f"a segment without a length at byte {position:,}")
    return ContainerChunk(head[1:], begin, position + 4, length - 2, position + 2 + length)


def _read_chunk(stream: IO[bytes], position: int, container: str) -> ContainerChunk:
    head = stream.read(8)
    if container == "PNG":
        size = int.from_bytes(head[:4], "big")
        return ContainerChunk(head[4:], position, position + 8, size, position + 12 + size)
    size = int.from_bytes(head[4:], "little")
    return ContainerChunk(head[:4], position, position + 8, size, position + 8 + size + size % 2)


def read_embedded_metadata(path: Path) -> EmbeddedMetadata | None:
    """Return the metadata of a file; None if it is neither JPEG, PNG nor WebP.

    A file that is cut off behind them still has them.

    Raises
    ------
    RowError
        It cannot be read, or is damaged before any were found, or they are larger than 16 MiB.
    """
    metadata = EmbeddedMetadata([], [], [])
    try:
        with open_input(path) as stream:
            container = detect_container(stream)
            if container is None:
                return None
            for chunk in iterate_chunks(stream, container):
                _add_content(metadata, *read_chunk_content(stream, chunk, container))
    except (OSError, InputError) as error:
        raise RowError(UNREADABLE, format_open_error(error)) from error
    except RowError as bad:
        if bad.reason != UNREADABLE or not any(metadata):
            raise
    return metadata


def _add_content(metadata: EmbeddedMetadata, content_type: ContentType | None, content: bytes) -> None:
    if content_type == "packet" and len(metadata.packets) < 2:
        metadata.packets.append(content)
    elif content_type == "extension" and len(metadata.extensions) < _MAX_PARTS and len(content) >= 40:
        length, offset = (int.from_bytes(content[start : start + 4], "big") for start in (32, 36))
        metadata.extensions.append((content[:32].decode("latin-1"), length, offset, content[40:]))
    elif content_type == "resources" and len(metadata.resources) < _MAX_PARTS:
        metadata.resources.append(content)


def read_chunk_content(stream: IO[bytes], chunk: ContainerChunk, container: str) -> tuple[ContentType | None, bytes]:
    """Return the type and the bytes of a chunk's metadata; (None, b"") for other chunks.

    Raises
    ------
    RowError
        A packet is larger than 16 MiB, or its chunk is damaged.
    """
    for head, content_type in _HEADS.get((container, chunk.name), {}).items():
        stream.seek(chunk.data)
        if stream.read(len(head)) != head:
            continue
        if chunk.size > MAX_PACKET_BYTES:
            raise RowError("oversized XMP packet", f"{chunk.size:,} bytes")
        content = stream.read(chunk.size - len(head))
        return content_type, _read_international_text(content, stream.read(4)) if container == "PNG" else content
    return None, b""


def _read_international_text(content: bytes, crc: bytes) -> bytes:
    """Return the text of an iTXt chunk behind its keyword: two flags, language, translated keyword, text."""
    if zlib.crc32(b"iTXt" + PNG_HEAD + content) != int.from_bytes(crc, "big"):
        raise RowError("unreadable XMP packet", "the checksum of its chunk is wrong")
    parts = content[2:].split(b"\0", 2)
    if len(parts) < 3:
        raise RowError("unreadable XMP packet", "its chunk is cut off")
    if content[:1] == b"\0":
        return parts[2]
    try:
        return zlib.decompressobj().decompress(parts[2], MAX_PACKET_BYTES + 1)
    except zlib.error as error:
        raise RowError("unreadable XMP packet", str(error)) from error


def assemble_extended_xmp(metadata: EmbeddedMetadata, name: str) -> bytes:
    """Assemble the extended XMP of a name.

    Raises
    ------
    RowError
        Parts are missing or overlap, or its checksum, which is its name, is wrong.
    """
    parts = sorted((part for part in metadata.extensions if part[0] == name), key=lambda part: part[2])
    content = b"".join(part for *_, part in parts)
    ends = [offset + len(part) for _, _, offset, part in parts]
    if [offset for _, _, offset, _ in parts] != [0, *ends][: len(parts)] or {part[1] for part in parts} != {*ends[-1:]}:
        raise RowError("unreadable extended XMP", "parts of it are missing")
    if hashlib.md5(content, usedforsecurity=False).hexdigest().upper() != name.upper():
        raise RowError("unreadable extended XMP", "its checksum is wrong")
    return content


def find_iptc_block(resources: bytes) -> bytes | None:
    """Return the IPTC block among Photoshop's resources (APP13 without heads); None if there is none.

    Raises
    ------
    RowError
        A resource is cut off.
    """
    position = 0
    while resources[position : position + 4] in (b"8BIM", b"MeSa", b"AgHg", b"PHUT", b"DCSR"):
        number = int.from_bytes(resources[position + 4 : position + 6], "big")
        position += 6 + (1 + resources[position + 6] + 1) // 2 * 2 if position + 6 < len(resources) else 6
        size = int.from_bytes(resources[position : position + 4], "big")
        position += 4
        if position + size > len(resources):
            raise RowError("unreadable IPTC keywords", "a resource is cut off")
        if number == _IPTC:
            return resources[position : position + size]
        position += (size + 1) // 2 * 2
    return None


def read_iptc_keywords(block: bytes) -> list[str] | None:
    """Return the keywords of an IPTC block in their order; None if it has none.

    Each is UTF-8 where that is possible, otherwise Windows-1252, whatever the block says: programs state the one and
    write the other. IPTC cuts keywords at 64 bytes, so half a character at the end of one is left out.

    Raises
    ------
    RowError
        A dataset is cut off.

    Examples
    --------
    >>> read_iptc_keywords(b"\\x1c\\x02\\x19\\x00\\x03sea" + b"\\x1c\\x02\\x19\\x00\\x04k\\xf6ln")
    ['sea', 'köln']
    """
    keywords = (content for number, content in _iterate_datasets(block) if number == _KEYWORD)
    return [_decode_keyword(content.rstrip(b"\0")) for content in keywords] or None


def _decode_keyword(content: bytes) -> str:
    try:
        return repair_encoding(content.decode())
    except UnicodeDecodeError as error:
        start = content[: error.start]
        is_cut = len(content) > _MAX_KEYWORD_BYTES - 4 or not start.isascii()
        if start and is_cut and error.reason == "unexpected end of data":
            return start.decode()
    try:
        return content.decode("cp1252")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _iterate_datasets(block: bytes) -> Iterator[tuple[tuple[int, int], bytes]]:
    position = 0
    while block[position : position + 1] == b"\x1c":
        head = block[position + 1 : position + 5]
        position += 5
        size = int.from_bytes(head[2:], "big")
        if size & 0x8000:  # the length of the length
            digits = size & 0x7FFF
            size = int.from_bytes(block[position : position + min(digits, 8)], "big")
            position += digits
        if len(head) < 4 or position + size > len(block):
            raise RowError("unreadable IPTC keywords", "a dataset is cut off")
        yield (head[0], head[1]), block[position : position + size]
        position += size
