"""First directory of a TIFF file, inspected before Pillow turns its numbers into Python objects."""

import struct
from typing import IO

_MOST_ENTRIES = 4096
_MOST_NUMBERS = 1 << 20  # of one entry: strips of a picture, for example
_TEXTS = (1, 2, 7)  # types that stay bytes
_CLASSIC, _BIG = 42, 43


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
    if n_entries > _MOST_ENTRIES:
        raise ValueError(f"{n_entries:,} entries in its directory, at most {_MOST_ENTRIES:,}")
    table = stream.read(n_entries * struct.calcsize(entry))
    for tag, kind, count in struct.iter_unpack(entry, table[: len(table) - len(table) % struct.calcsize(entry)]):
        if kind not in _TEXTS and count > _MOST_NUMBERS:
            raise ValueError(f"{count:,} numbers in entry {tag} of its directory, at most {_MOST_NUMBERS:,}")
