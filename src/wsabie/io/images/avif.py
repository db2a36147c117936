"""Largest picture that the AV1 data of an AVIF file draw, regardless of the stated size.

A decoder first draws the data and then scales them to the stated size. Boxes are those of ISO/IEC 14496-12,
the sequence header is that of the AV1 specification, section 5.5.
"""

import io
import struct
from collections.abc import Callable, Iterator
from typing import IO

_INSIDE = {b"meta": 4, b"moov": 0, b"trak": 0, b"mdia": 0, b"minf": 0, b"stbl": 0}  # boxes of boxes: what to skip
_MOST_BOXES = 10_000
_MOST_PLACES = 10_000
_MOST_UNITS = 1_000  # of one place
_SEQUENCE = 1


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
    for number, place in enumerate(_iterate_places(stream, end)):
        if number >= _MOST_PLACES:
            raise ValueError(f"more than {_MOST_PLACES:,} parts")
        largest = max([largest, *_iterate_frame_pixels(stream, place, end)])
    return largest


def _iterate_places(stream: IO[bytes], end: int) -> Iterator[int]:
    """Yield the places where data begin, as the boxes state."""
    ranges, idat = [(0, end)], 0
    places: list[tuple[int, bool]] = []
    for _ in range(_MOST_BOXES):
        if not ranges:
            yield from (idat + place if inside else place for place, inside in places)
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
        if name in _INSIDE:
            ranges.append((begin + _INSIDE[name], min(position + size, stop)))
        elif name == b"idat":
            idat = begin
        elif name in (b"iloc", b"stco", b"co64"):
            stream.seek(begin)
            body = stream.read(min(size, 1 << 20))
            places += (
                _parse_item_places(body) if name == b"iloc" else _parse_chunk_places(body, 8 if name == b"co64" else 4)
            )
    raise ValueError(f"more than {_MOST_BOXES:,} boxes")


def _parse_chunk_places(body: bytes, width: int) -> list[tuple[int, bool]]:
    return [
        (int.from_bytes(body[position : position + width], "big"), False)
        for position in range(8, len(body) - width + 1, width)
    ][:_MOST_PLACES]


def _parse_item_places(body: bytes) -> list[tuple[int, bool]]:
    """Return the beginnings of items; True for those that count from the box `idat`."""
    reader = io.BytesIO(body)

    def number(width: int) -> int:
        return int.from_bytes(reader.read(width), "big")

    version = number(4) >> 24
    widths = number(2)
    offset, length, base, index = (widths >> shift & 15 for shift in (12, 8, 4, 0))
    places = []
    for _ in range(min(number(2 if version < 2 else 4), _MOST_PLACES)):
        number(2 if version < 2 else 4)
        inside = version > 0 and number(2) & 15 == 1
        number(2)
        begin = number(base)
        for part in range(min(number(2), _MOST_PLACES)):
            number(index if version > 0 else 0)
            place = begin + number(offset)
            number(length)
            if part == 0:
                places.append((place, inside))
        if reader.tell() >= len(body):
            break
    return places


def _iterate_frame_pixels(stream: IO[bytes], place: int, end: int) -> Iterator[int]:
    """Yield the pixels of the largest frame of each sequence header at a place."""
    for _ in range(_MOST_UNITS):
        if not 0 <= place < end:
            return
        stream.seek(place)
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
        place += position + size


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
    delay = 0
    timed = bits(1)
    if timed:
        bits(64)
        if bits(1):  # equal intervals: a number as long as its leading zeros say
            zeros = next((n for n in range(32) if bits(1)), 32)
            bits(zeros)
        if decoder_model := bits(1):
            delay = bits(5) + 1
            bits(42)
    else:
        decoder_model = 0
    delays = bits(1)
    for _ in range(bits(5) + 1):
        bits(12)
        if bits(5) > 7:
            bits(1)
        if decoder_model and bits(1):
            bits(2 * delay + 1)
        if delays and bits(1):
            bits(4)
