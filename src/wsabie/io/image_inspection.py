"""Inspection of pictures before Pillow opens them: cost of opening, and hostile structures.

JPEG: a progressive file draws its picture in about ten scans. Each costs time by the size of the picture, and may
be a hundred bytes long: a small file can hold work for hours. Where the first scan does not draw all colours,
the decoder keeps the coefficients of the whole picture.

PNG: Pillow keeps every chunk that it does not know, expands every text, and finds EXIF behind the picture only by
decoding it.

TIFF: Pillow turns the numbers of the first directory into Python objects.

AVIF: a decoder first draws the AV1 data, whatever their size, and then scales them to the stated size. Boxes are
those of ISO/IEC 14496-12, the sequence header is that of the AV1 specification, section 5.5.

We keep ours because filetype 1.2.0 and puremagic 1.30 name the type of a file, and not what opening it costs.
"""

import ctypes
import io
import logging
import re
import struct
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from wsabie.core.execution import SharedContext

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

_CONTAINER_BOXES = {b"meta": 4, b"moov": 0, b"trak": 0, b"mdia": 0, b"minf": 0, b"stbl": 0}  # bytes to skip
_MAX_BOXES = 10_000
_MAX_OFFSETS = 10_000
_MAX_UNITS = 1_000  # at one offset
_SEQUENCE = 1
MAX_SCANS = 100
"""Scans of a picture that is decoded."""
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # others belong to the data of a scan
_BARE_MARKER, _SCAN, _END, _APP1 = 0x01, 0xDA, 0xD9, 0xE1
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_PROGRESSIVE = (0xC2, 0xC6, 0xCA, 0xCE)
_BLOCK = 1 << 14
_MAX_SEGMENTS = 100_000
_MAX_EXIF_BYTES = 1 << 20  # bytes of all segments: Pillow joins them
SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MAX_CHUNKS = 100_000
_MAX_OTHER_CHUNKS = 10_000  # chunks that are not data of the picture
_MAX_TEXT_BYTES = 1 << 20  # Pillow expands no chunk further
_MAX_TOTAL_TEXT_BYTES = 64 << 20  # and all texts no further
_EXPANDED = {b"zTXt": 1032, b"iTXt": 1032, b"iCCP": 1032, b"tEXt": 1}  # bytes for each one in the file, at most
_MAX_ENTRIES = 4096
_MAX_NUMBERS = 1 << 20  # of one entry: strips of a picture, for example
_TEXTS = (1, 2, 7)  # types that stay bytes
_CLASSIC, _BIG = 42, 43
_TIFFS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "PPM", "AVIF")
"""What is read (JPEG includes the multi-picture files of phones: their first picture), and HEIF where `pillow-heif` is
installed. Whoever opens a picture names these, so that no file can reach Pillow's interpreters of other formats."""
_HEIF = (b"ftyphe", b"ftypmif1", b"ftypmsf1")


class ImageStructure(NamedTuple):
    """Facts of a picture file before it is opened.

    Attributes
    ----------
    opening_bytes : int
        Memory that opening takes, beside a little: of a PNG file texts and colour profile, expanded.
    keeps_coefficients : bool
        The decoder keeps the whole picture, whatever size is wanted.
    exif : bytes or None
        Notes of the camera that Pillow finds only when it decodes, wherever they stand.
    frame_pixels : int
        Pixels of the largest frame, where the file states them apart from its size.
    """

    opening_bytes: int = 0
    keeps_coefficients: bool = False
    exif: bytes | None = None
    frame_pixels: int = 0


def inspect_avif(stream: IO[bytes]) -> int:
    """Return the pixels of the largest frame; 0 where there is none. The stream is moved.

    Raises
    ------
    ValueError
        There are more boxes or parts than anybody writes.

    Examples
    --------
    >>> inspect_avif(io.BytesIO(bytes([0, 0, 0, 8]) + b"ftyp"))
    0
    """
    end, largest = stream.seek(0, io.SEEK_END), 0
    for number, offset in enumerate(_iterate_data_offsets(stream, end)):
        if number >= _MAX_OFFSETS:
            raise ValueError(f"more than {_MAX_OFFSETS:,} parts")
        largest = max([largest, *_iterate_frame_pixels(stream, offset, end)])
    return largest


def _iterate_data_offsets(stream: IO[bytes], end: int) -> Iterator[int]:
    """Yield the offsets of data that the boxes state."""
    ranges, idat = [(0, end)], 0
    offsets: list[tuple[int, bool]] = []
    for _ in range(_MAX_BOXES):
        if not ranges:
            yield from (idat + offset if is_in_idat else offset for offset, is_in_idat in offsets)
            return
        position, stop = ranges.pop()
        stream.seek(position)
        head = stream.read(16)
        if len(head) < 8 or position + 8 > stop:
            continue
        size, name = struct.unpack_from(">I4s", head)
        begin = position + (16 if size == 1 else 8)
        size = int.from_bytes(head[8:16], "big") if size == 1 else size or stop - position
        if size < begin - position:
            continue
        ranges.append((position + size, stop))
        if name in _CONTAINER_BOXES:
            ranges.append((begin + _CONTAINER_BOXES[name], min(position + size, stop)))
        elif name == b"idat":
            idat = begin
        elif name in (b"iloc", b"stco", b"co64"):
            stream.seek(begin)
            body = stream.read(min(size, 1 << 20))
            width = 8 if name == b"co64" else 4
            offsets += _parse_item_offsets(body) if name == b"iloc" else _parse_chunk_offsets(body, width)
    raise ValueError(f"more than {_MAX_BOXES:,} boxes")


def _parse_chunk_offsets(body: bytes, width: int) -> list[tuple[int, bool]]:
    starts = range(8, len(body) - width + 1, width)[:_MAX_OFFSETS]
    return [(int.from_bytes(body[start : start + width], "big"), False) for start in starts]


def _parse_item_offsets(body: bytes) -> list[tuple[int, bool]]:
    """Return the beginnings of items; True for those that count from the box `idat`."""
    reader = io.BytesIO(body)

    def number(width: int) -> int:
        return int.from_bytes(reader.read(width), "big")

    version = number(4) >> 24
    widths = number(2)
    offset_width, length_width, base_width, index_width = (widths >> shift & 15 for shift in (12, 8, 4, 0))
    offsets = []
    for _ in range(min(number(2 if version < 2 else 4), _MAX_OFFSETS)):
        number(2 if version < 2 else 4)
        is_in_idat = version > 0 and number(2) & 15 == 1
        number(2)
        begin = number(base_width)
        for part in range(min(number(2), _MAX_OFFSETS)):
            number(index_width if version > 0 else 0)
            offset = begin + number(offset_width)
            number(length_width)
            if part == 0:
                offsets.append((offset, is_in_idat))
        if reader.tell() >= len(body):
            break
    return offsets


def _iterate_frame_pixels(stream: IO[bytes], offset: int, end: int) -> Iterator[int]:
    """Yield the pixels of the largest frame of each sequence header at an offset."""
    for _ in range(_MAX_UNITS):
        if not 0 <= offset < end:
            return
        stream.seek(offset)
        head = stream.read(64)
        if head[0] & 0x82 != 0x02:  # no unit of AV1 that states its size: another kind of item
            return
        position, size, shift = 2 if head[0] & 4 else 1, 0, 0
        while position < len(head) and shift < 35:
            size |= (head[position] & 0x7F) << shift
            position, shift = position + 1, shift + 7
            if head[position - 1] < 0x80:
                break
        if head[0] >> 3 & 15 == _SEQUENCE:
            yield _parse_sequence_pixels(head[position:])
        offset += position + size


def _parse_sequence_pixels(header: bytes) -> int:
    """Return the largest width times height of a sequence header."""
    value, n_left = int.from_bytes(header, "big"), 8 * len(header)

    def bits(n: int) -> int:
        nonlocal n_left
        n_left = max(0, n_left - n)
        return value >> n_left & ((1 << n) - 1)

    bits(4)  # profile, still picture
    if bits(1):
        bits(5)
    else:
        _skip_operating_points(bits)
    width_bits, height_bits = bits(4) + 1, bits(4) + 1
    return (bits(width_bits) + 1) * (bits(height_bits) + 1)


def _skip_operating_points(bits: Callable[[int], int]) -> None:
    delay = decoder_model = 0
    if bits(1):
        bits(64)
        if bits(1):  # equal intervals: a number as long as its leading zeros say
            zeros = next((n for n in range(32) if bits(1)), 32)
            bits(zeros)
        if decoder_model := bits(1):
            delay = bits(5) + 1
            bits(42)
    delays = bits(1)
    for _ in range(bits(5) + 1):
        bits(12)
        if bits(5) > 7:
            bits(1)
        if decoder_model and bits(1):
            bits(2 * delay + 1)
        if delays and bits(1):
            bits(4)


def inspect_jpeg(stream: IO[bytes]) -> bool:
    """Return True if a decoder keeps the whole picture; a plain file is read up to its first scan only.

    Parameters
    ----------
    stream : file
        Is moved.

    Raises
    ------
    ValueError
        There are more than `MAX_SCANS` scans, more segments than anybody writes, or too many bytes of EXIF.

    Examples
    --------
    >>> import io
    >>> frame, scan = b"\\xff\\xc2\\0\\x0b\\x08\\0\\1\\0\\1\\1\\1\\x11\\0", b"\\xff\\xda\\0\\3\\1data"
    >>> inspect_jpeg(io.BytesIO(b"\\xff\\xd8" + frame + scan * 100))
    True
    >>> inspect_jpeg(io.BytesIO(b"\\xff\\xd8" + frame + scan * 101))
    Traceback (most recent call last):
    ...
    ValueError: more than 100 scans
    """
    position, scans, exif, bands, progressive = 2, 0, 0, 0, False
    stream.seek(0)
    first = stream.read(_BLOCK)  # holds all segments of most files
    for _ in range(_MAX_SEGMENTS):
        head = first[position : position + 10]
        if len(head) < 10 or not _MARKER.match(head):
            position = _find_marker(stream, position)
            stream.seek(position)
            head = stream.read(10)
        if len(head) < 5 or head[1] == _END:
            return progressive or scans > 0
        length = int.from_bytes(head[2:4], "big")
        if head[1] in _FRAMES:
            bands, progressive = (head[9] if len(head) > 9 else 0), head[1] in _PROGRESSIVE
        elif head[1] == _APP1 and head[4:8] == b"Exif":
            exif += length
            if exif > _MAX_EXIF_BYTES:
                raise ValueError(f"more than {_MAX_EXIF_BYTES:,} bytes of EXIF")
        elif head[1] == _SCAN:
            scans += 1
            if scans == 1 and head[4] == bands and not progressive:
                return False
            if scans > MAX_SCANS:
                raise ValueError(f"more than {MAX_SCANS} scans")
        position += 2 if head[1] == _BARE_MARKER else 2 + length
    raise ValueError(f"more than {_MAX_SEGMENTS:,} segments")


def _find_marker(stream: IO[bytes], position: int) -> int:
    """Return the position of the next marker, or one behind the end of the file."""
    stream.seek(position)
    overlap = b""
    while block := stream.read(_BLOCK):
        match = _MARKER.search(overlap + block)
        if match:
            return position - len(overlap) + match.start()
        position, overlap = position + len(block), block[-1:]
    return position


def inspect_png(stream: IO[bytes]) -> ImageStructure:
    """Inspect the chunks; the stream is moved.

    Raises
    ------
    ValueError
        There are more chunks than anybody writes, or the notes of the camera are too long.

    Examples
    --------
    >>> import io
    >>> inspect_png(io.BytesIO(SIGNATURE + b"\\0\\0\\0\\4eXIfII*\\0crc "))
    ImageStructure(opening_bytes=0, keeps_coefficients=False, exif=b'II*\\x00', frame_pixels=0)
    """
    position, n_other_chunks, texts, exif = len(SIGNATURE), 0, 0, None
    for _ in range(_MAX_CHUNKS):
        stream.seek(position)
        head = stream.read(8)
        if len(head) < 8 or head[4:] == b"IEND":
            return ImageStructure(min(texts, _MAX_TOTAL_TEXT_BYTES + _MAX_TEXT_BYTES), exif=exif)
        length, name = struct.unpack(">I4s", head)
        n_other_chunks += name not in (b"IDAT", b"fdAT")
        if n_other_chunks > _MAX_OTHER_CHUNKS:
            break
        if name in _EXPANDED:
            texts += min(length * _EXPANDED[name], _MAX_TEXT_BYTES)
        elif name == b"eXIf" and exif is None:
            if length > _MAX_EXIF_BYTES:
                raise ValueError(f"{length:,} bytes of EXIF, at most {_MAX_EXIF_BYTES:,}")
            exif = stream.read(length)
        position += 12 + length
    raise ValueError(f"more than {_MAX_OTHER_CHUNKS:,} chunks beside the picture, or {_MAX_CHUNKS:,} in all")


def inspect_tiff(stream: IO[bytes]) -> None:
    """Inspect the first directory; the stream is moved.

    Raises
    ------
    ValueError
        It has more entries, or one of them more numbers, than any picture that is decoded here.

    Examples
    --------
    >>> import io
    >>> strips = struct.pack("<HHII", 273, 4, 4_000_000, 100)
    >>> inspect_tiff(io.BytesIO(b"II*\\0" + struct.pack("<IH", 8, 1) + strips))
    Traceback (most recent call last):
    ...
    ValueError: 4,000,000 numbers in entry 273 of its directory, at most 1,048,576
    """
    stream.seek(0)
    head = stream.read(16)
    order = "<" if head[:2] == b"II" else ">"
    if len(head) < 16:
        return
    version = struct.unpack_from(order + "H", head, 2)[0]
    if version not in (_CLASSIC, _BIG):
        return
    big = version == _BIG
    position = struct.unpack_from(order + ("Q" if big else "I"), head, 8 if big else 4)[0]
    if position >= 1 << 63:
        return
    stream.seek(position)
    count_form, entry = (order + "Q", order + "HHQ8x") if big else (order + "H", order + "HHI4x")
    count_bytes = stream.read(struct.calcsize(count_form))
    n_entries = struct.unpack(count_form, count_bytes)[0] if len(count_bytes) == struct.calcsize(count_form) else 0
    if n_entries > _MAX_ENTRIES:
        raise ValueError(f"{n_entries:,} entries in its directory, at most {_MAX_ENTRIES:,}")
    table = stream.read(n_entries * struct.calcsize(entry))
    for tag, kind, count in struct.iter_unpack(entry, table[: len(table) - len(table) % struct.calcsize(entry)]):
        if kind not in _TEXTS and count > _MAX_NUMBERS:
            raise ValueError(f"{count:,} numbers in entry {tag} of its directory, at most {_MAX_NUMBERS:,}")


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
            return ImageStructure(keeps_coefficients=inspect_jpeg(stream))
        if head.startswith(SIGNATURE):
            return inspect_png(stream)
        if head.startswith(_TIFFS):
            inspect_tiff(stream)
        elif head.startswith(b"RIFF"):
            return ImageStructure(2 * stream.seek(0, io.SEEK_END))  # Pillow reads the whole file, and joins the parts
        elif head.startswith(b"ftyp", 4):
            return ImageStructure(2 * stream.seek(0, io.SEEK_END), frame_pixels=inspect_avif(stream))
        return ImageStructure()
    finally:
        stream.seek(0)


def is_heif(head: bytes) -> bool:
    """Return True if a file begins as HEIC pictures of phones do, whatever its ending.

    Examples
    --------
    >>> is_heif(b"\\0\\0\\0\\x1cftypheic"), is_heif(b"\\0\\0\\0\\x1cftypavif")
    (True, False)
    """
    return head.startswith(_HEIF, 4)


@cache
def register_heif() -> bool:
    """Let Pillow read HEIC pictures; return False if `pillow-heif` is not installed."""
    try:
        import pillow_heif
    except ImportError:
        return False
    pillow_heif.register_heif_opener(thumbnails=False, depth_images=False, aux_images=False, decode_threads=1)
    return True


def open_picture(stream: IO[bytes]) -> "ImageFile":
    """Open a picture without decoding it; the stream is at its beginning.

    Pillow refuses pictures of more than 178,956,970 pixels, JPEG files too, whose decoder can reduce them.
    """
    from PIL import Image, JpegImagePlugin

    head = stream.read(12)
    stream.seek(0)
    formats = (*FORMATS, "HEIF") if is_heif(head) and register_heif() else FORMATS
    try:
        return Image.open(stream, formats=formats)
    except Image.DecompressionBombError:
        stream.seek(0)
        if stream.read(2) != b"\xff\xd8":
            raise
        stream.seek(0)
        return JpegImagePlugin.jpeg_factory(stream)


def silence_decoders() -> AbstractContextManager[None]:
    """Silence decoders, whose errors are raised and reported; nested calls are counted.

    Examples
    --------
    >>> with silence_decoders():
    ...     logging.getLogger("PIL.TiffImagePlugin").error("More samples per pixel than can be decoded: 9")
    """
    return _silence


@contextmanager
def _drop_messages() -> Iterator[None]:
    null_handler = logging.NullHandler()  # handlers of whoever wants to know stay
    with warnings.catch_warnings(), ExitStack() as stack:
        warnings.simplefilter("ignore")
        logging.getLogger("PIL").addHandler(null_handler)
        stack.callback(logging.getLogger("PIL").removeHandler, null_handler)
        for set_handler in _list_libtiff_handlers():
            stack.callback(set_handler, set_handler(None))
        yield


_silence = SharedContext(_drop_messages)


@cache
def _list_libtiff_handlers() -> list[Callable[[Any], Any]]:
    """Return libtiff's setters of message handlers; none where Pillow links it in another way."""
    from PIL import _imaging

    try:
        library = ctypes.CDLL(_imaging.__file__)  # finds those of the libraries that it needs, too
        setters: list[Any] = [library.TIFFSetErrorHandler, library.TIFFSetWarningHandler]
    except (OSError, AttributeError):
        return []
    for setter in setters:
        setter.argtypes, setter.restype = [ctypes.c_void_p], ctypes.c_void_p
    return setters
