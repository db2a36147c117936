"""Standard MIDI files of a few events, in milliseconds."""

import struct
from collections.abc import Iterable, Sequence

_TEMPO = b"\xff\x51\x03" + (1_000_000).to_bytes(3, "big")  # a quarter note is a second, of 1000 ticks
_END = b"\xff\x2f\x00"
_ALL_OFF = bytes([0xB0, 120, 0])

Event = tuple[int, bytes]
"""(milliseconds, message)."""


def midi_file(program: int, sounds: Iterable[tuple[Sequence[int], int]], *, every: int, length: int) -> bytes:
    """A file of format 0 that plays sounds (notes, velocity) one after the other.

    Parameters
    ----------
    program : int
        0 to 127.
    sounds : iterable of (notes, velocity)
    every : int
        Milliseconds from one beginning to the next; just before it everything is silenced.
    held : int
        Milliseconds for which a note is held.

    Examples
    --------
    >>> content = midi_file(40, [((60, 64), 100)], every=3_000, length=1_200)
    >>> content[:4], content[14:18], len(content)
    (b'MThd', b'MTrk', 58)
    """
    events: list[Event] = [(0, _TEMPO), (0, bytes([0xC0, program]))]
    for number, (notes, velocity) in enumerate(sounds):
        start = number * every
        events += [(start, bytes([0x90, note, velocity])) for note in notes]
        events += [(start + length, bytes([0x80, note, 0])) for note in notes]
        events.append((start + every - 50, _ALL_OFF))
    events.append((events[-1][0] + 50, _END))
    track, now = b"", 0
    for at, message in events:
        track += _variable(at - now) + message
        now = at
    return b"MThd" + struct.pack(">IHHH", 6, 0, 1, 1000) + b"MTrk" + struct.pack(">I", len(track)) + track


def _variable(number: int) -> bytes:
    """A length in groups of seven bits, the highest first.

    Examples
    --------
    >>> _variable(0x40), _variable(0x80), _variable(0x4000)
    (b'@', b'\\x81\\x00', b'\\x81\\x80\\x00')
    """
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(number & 0x7F | 0x80)
    return bytes(reversed(groups))
