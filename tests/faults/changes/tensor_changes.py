"""Changes of safetensors files: other types, shapes and numbers whose header fits, and headers that do not."""

import json
import random
from typing import Any

import numpy as np
from tests.faults.changes.json_changes import change_json

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U64": "<u8", "U32": "<u4"}
DTYPES |= {"U16": "<u2", "I8": "|i1", "U8": "|u1", "BOOL": "|b1"}
_PATTERNS = (b"\xff" * 8, b"\0" * 8, b"\x00\x00\xc0\x7f" * 2, b"\xff\xff\xff\x7f" * 2, b"\x00\x00\x80\xff" * 2)


def change_tensors(chance: random.Random, content: bytes) -> tuple[bytes, str]:
    """Return a safetensors file with another header, other numbers, or an array of another type or shape."""
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    way = chance.random()
    if way < 0.5:
        return _change_one(chance, _read_tensors(header, data))
    if way < 0.7 and data:
        changed = bytearray(data)
        start = chance.randrange(len(changed)) // 8 * 8
        pattern, n = chance.choice(_PATTERNS), chance.choice((1, 1, len(changed) // 8))
        changed[start : start + 8 * n] = (pattern * n)[: len(changed) - start]
        return content[: 8 + length] + bytes(changed), f"numbers from {start}: {n} times {pattern[:4].hex()}"
    header, description = change_json(chance, header)
    text = json.dumps(header).encode()
    size = chance.choice((len(text), len(text), len(text), 2**63, 0, len(text) + 1))
    return size.to_bytes(8, "little") + text + data, f"header {description}, length {size}"


def change_array(chance: random.Random, array: Any) -> tuple[Any, str]:
    """Return an array of another type or shape or with other values, and a word for it."""
    way = chance.choice(("dtype", "shape", "values", "order"))
    rng = np.random.default_rng(chance.getrandbits(64))
    with np.errstate(all="ignore"):
        if way == "dtype":
            return array.astype(chance.choice(list(DTYPES.values()))), way
        if way == "shape":
            shapes = [array[None], array.reshape(-1)]
            if array.ndim:
                shapes += [array[:-1], array[:0], np.concatenate([array, array]), array.T, array[..., :-1]]
            return chance.choice(shapes), way
        changed = array.copy().reshape(-1)
        if way == "order":
            rng.shuffle(changed)
        elif len(changed):
            positions = rng.integers(len(changed), size=max(1, len(changed) // 3))
            values = [np.nan, np.inf, -1, 1e38] if changed.dtype.kind == "f" else [-1, 2**7, 2**31 - 1, 2**62, -(2**62)]
            changed[positions] = np.array(chance.choice(values)).astype(changed.dtype)
        return changed.reshape(array.shape), way


def _change_one(chance: random.Random, tensors: dict[str, Any]) -> tuple[bytes, str]:
    name = chance.choice(sorted(tensors))
    array = tensors[name]
    tensors[name], way = change_array(chance, array)
    description = f"{name} {way}: {array.dtype}{array.shape} -> {tensors[name].dtype}{tensors[name].shape}"
    return _tensor_bytes(tensors), description


def _read_tensors(header: dict[str, Any], data: bytes) -> dict[str, Any]:
    tensors = {}
    for name, info in header.items():
        if name != "__metadata__":
            start, end = info["data_offsets"]
            tensors[name] = np.frombuffer(data[start:end], DTYPES[info["dtype"]]).reshape(info["shape"])
    return tensors


def _tensor_bytes(tensors: dict[str, Any]) -> bytes:
    codes = {np.dtype(dtype): code for code, dtype in DTYPES.items()}
    header, data = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": codes[array.dtype], "shape": list(array.shape), "data_offsets": offsets}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data
