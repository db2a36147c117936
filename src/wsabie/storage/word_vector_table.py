"""Words and a table of float32 in one file, whose table is mapped into memory.

a .npy file, version 1.0, header of 128 bytes     NumPy alone can open it
the words, UTF-8, a newline between them          behind the table, where NumPy does not look
facts, JSON                                       what the table was made from
16 bytes                                          lengths of words and facts (int64, little endian)
8 bytes                                           WSABIEW1
"""

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Float32
from wsabie.core.errors import InputError
from wsabie.core.input_files import open_input
from wsabie.storage.atomic_files import explain_read_errors, replace_file

MAGIC = b"\x93NUMPY"
MOST_DIM = 1 << 14
MOST_WORDS = 1 << 26
_MARK = b"WSABIEW1"
_HEADER = 128
_MOST_FACTS = 1 << 20


class WordVectorTable(NamedTuple):
    """Words, their table (n, dim) float32, mapped, and facts about it."""

    words: list[str]
    table: Float32
    facts: dict[str, Any]


def write_word_vector_table(
    path: Path, dim: int, rows: Iterable[tuple[str, bytes]], facts: Callable[[], dict[str, Any]]
) -> int:
    """Write rows of (word, float32 bytes) as they come, atomically; return their number.

    Words hold no newline.

    Parameters
    ----------
    path : Path
    dim : int
    rows : iterable of (str, bytes)
    facts : callable
        Called after the last row.
    """
    words = bytearray()
    n = 0
    with replace_file(path) as draft, draft.open("wb", buffering=1 << 20) as file:
        file.write(bytes(_HEADER))
        for word, row in rows:
            file.write(row)
            words += word.encode() + b"\n"
            n += 1
        facts_json = json.dumps(facts()).encode()
        del words[-1:]
        file.write(words + facts_json + np.array([len(words), len(facts_json)], "<i8").tobytes() + _MARK)
        file.seek(0)
        file.write(_header(n, dim))
    return n


def open_word_vector_table(path: Path) -> WordVectorTable:
    """Map a file that `write_word_vector_table` wrote.

    Raises
    ------
    InputError
        Missing, of another kind, or damaged.
    """
    with explain_read_errors(path), open_input(path) as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(_HEADER)
        if not head.startswith(MAGIC) or size < _HEADER + 24:
            raise InputError(f"{path} is no table of words; give a file of word vectors")
        file.seek(size - 24)
        tail = file.read(24)
        n_words, n_facts = (int(n) for n in np.frombuffer(tail[:16], "<i8"))
        if tail[16:] != _MARK:
            raise InputError(f"{path} is an array without words; give a file of word vectors")
        words_start = size - 24 - n_words - n_facts
        if min(n_words, n_facts) < 0 or n_facts > _MOST_FACTS or words_start < _HEADER:
            raise _damaged(path)
        file.seek(words_start)
        try:
            words = file.read(n_words).decode().split("\n")
            facts = json.loads(file.read(n_facts))
        except (ValueError, RecursionError) as error:
            raise _damaged(path) from error
        dim, remainder = divmod(words_start - _HEADER, 4 * len(words))
        if remainder or not 0 < dim <= MOST_DIM or head != _header(len(words), dim) or not isinstance(facts, dict):
            raise _damaged(path)
        table = np.memmap(file, np.dtype("<f4"), "r", _HEADER, (len(words), dim)).view(np.ndarray)
    return WordVectorTable(words, table, facts)


def _header(n: int, dim: int) -> bytes:
    shape = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({n}, {dim}), }}".encode()
    room = _HEADER - len(MAGIC) - 4
    return MAGIC + b"\x01\x00" + room.to_bytes(2, "little") + shape.ljust(room - 1) + b"\n"


def _damaged(path: Path) -> InputError:
    return InputError(f"{path} is damaged or cut off; delete it, and it is made again from the file of word vectors")
