"""Torch files of the legacy kind, put together opcode by opcode."""

import pickle
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

MAGIC = 0x1950A86A20F9469CFC6C
PROTO, STOP, MARK, TUPLE, REDUCE, PERSID = b"\x80\x02", b".", b"(", b"t", b"R", b"Q"
DICT = b"ccollections\nOrderedDict\n)R"
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"


class StateTensor(NamedTuple):
    """Tensor of a state: a view of a storage."""

    name: str
    key: str
    n_elements: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    kind: str = "FloatStorage"


def encode_text(text: str) -> bytes:
    """Return the opcode of a text."""
    content = text.encode()
    return b"X" + struct.pack("<I", len(content)) + content


def encode_integers(numbers: Sequence[int]) -> bytes:
    """Return the opcodes of a tuple of integers."""
    return MARK + b"".join(b"J" + struct.pack("<i", number) for number in numbers) + TUPLE


def encode_tensor(tensor: StateTensor) -> bytes:
    """Return the opcodes that build a tensor."""
    storage = encode_text("storage") + f"ctorch\n{tensor.kind}\n".encode() + encode_text(tensor.key)
    storage += encode_text("cpu") + b"J" + struct.pack("<i", tensor.n_elements) + b"N"
    view = b"J" + struct.pack("<i", tensor.offset) + encode_integers(tensor.shape) + encode_integers(tensor.strides)
    return REBUILD + MARK + MARK + storage + TUPLE + PERSID + view + b"\x89" + DICT + TUPLE + REDUCE


def encode_state(tensors: Sequence[StateTensor]) -> bytes:
    """Return the pickle of a state."""
    items = b"".join(encode_text(tensor.name) + encode_tensor(tensor) for tensor in tensors)
    return PROTO + DICT + MARK + items + b"u" + STOP


def encode_file(state: bytes, storages: dict[str, np.ndarray], *, little_endian: bool = True) -> bytes:
    """Return the content of a file with this pickle of a state and these storages."""
    machine = {"protocol_version": 1001, "little_endian": little_endian, "type_sizes": {"int": 4}}
    head = b"".join(pickle.dumps(value, protocol=2) for value in (MAGIC, 1001, machine))
    content = b"".join(struct.pack("<q", array.size) + array.tobytes() for array in storages.values())
    return head + state + pickle.dumps(list(storages), protocol=2) + content
