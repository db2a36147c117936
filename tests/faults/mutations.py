"""Changed copies of folders that this program writes: model folders, indices, checkpoints, shards.

Everything follows from a seed. Checksums are repaired after a change of a value, so that it reaches the code behind
them; bytes that are flipped or cut off are left as they are.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SCALARS: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    1.5,
    -2.5,
    1e308,
    2**31,
    2**53,
    2**63,
    10**30,
    -(2**63),
    "",
    "x",
]
SCALARS += [
    "1",
    "\ud800",
    "é" * 300,
    "../../x",
    [],
    {},
    [[]],
    [None],
    {"": None},
    [1, "a"],
    [[1, 2], [3]],
    float("nan"),
]
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U64": "<u8", "U32": "<u4"}
DTYPES |= {"U16": "<u2", "I8": "|i1", "U8": "|u1", "BOOL": "|b1"}


class Mutation(NamedTuple):
    """A changed copy, and what was changed."""

    folder: Path
    change: str


def mutate_folders(folder: Path, work: Path, seed: int, n: int) -> Iterator[Mutation]:
    """Yield n changed copies of a folder of a model or of shards, each until the next is asked for.

    Parameters
    ----------
    folder : Path
        It holds `config.json` of a model, index or checkpoint, or `manifest.json` of shards.
    work : Path
        A folder that exists; the copy is `work/copy`.
    """
    copy = work / "copy"
    for number in range(n):
        rng = np.random.default_rng([seed, number])
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        yield Mutation(copy, f"{seed}/{number}: {_mutate(copy, rng)}")


def _mutate(folder: Path, rng: np.random.Generator) -> str:
    model = (folder / "config.json").exists()
    kind = rng.choice(["json", "tensor", "bytes"], p=[0.5, 0.4, 0.1] if model else [0.7, 0.2, 0.1])
    if kind == "bytes":
        return _damage_file(folder, rng)
    if kind == "tensor":
        return _mutate_model_tensor(folder, rng) if model else _mutate_any_tensor(folder, rng)
    if not model:
        file = _pick(rng, sorted(folder.rglob("*.json")))
        return f"{file.name} {_rewrite_json(file, rng)}"
    pointer = read_pointer(folder)
    change = mutate_json(pointer, rng)
    write_pointer(folder, pointer)
    return f"config.json {change}"


def mutate_json(document: Any, rng: np.random.Generator) -> str:
    """Change one value somewhere inside a document of dicts and lists, and say which."""
    place, inside = "$", document
    while True:
        keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
        key = _pick(rng, keys)
        inner = inside[key]
        if isinstance(inner, (dict, list)) and len(inner) and rng.random() < 0.8:
            place, inside = f"{place}.{key}", inner
            continue
        return f"{place}.{key} {_mutate_entry(inside, key, rng)}"


def _mutate_entry(inside: Any, key: Any, rng: np.random.Generator) -> str:
    way = rng.choice(["scalar", "scalar", "scalar", "remove", "nest", "number", "repeat", "extra", "text"])
    value = inside[key]
    if way == "remove":
        del inside[key]
    elif way == "nest":
        inside[key] = [value] if rng.random() < 0.5 else {"a": value}
    elif way == "number" and isinstance(value, (int, float)):
        inside[key] = _pick(rng, [-value, value + 1, value - 1, value * 1000, value / 3, str(value), value * 10**12])
    elif way == "repeat" and isinstance(value, (list, str)):
        inside[key] = value * 2 if rng.random() < 0.5 else value[: len(value) // 2]
    elif way == "extra" and isinstance(value, (list, dict)):
        if isinstance(value, dict):
            value["extra"] = _pick(rng, SCALARS)
        else:
            value.append(_pick(rng, SCALARS))
    elif way == "text" and isinstance(value, str):
        inside[key] = value[::-1]
    else:
        way, inside[key] = "scalar", _pick(rng, SCALARS)
    return f"{way}: {inside[key]!r:.60}" if way != "remove" else way


def mutate_array(array: Any, rng: np.random.Generator) -> tuple[Any, str]:
    """An array of another type, shape or with other values, and a word for it."""
    way = str(rng.choice(["dtype", "shape", "values", "order"]))
    with np.errstate(all="ignore"):
        if way == "dtype":
            return array.astype(_pick(rng, list(DTYPES.values()))), way
        if way == "shape":
            shapes = [array[None], array.reshape(-1), array[:-1], array[:0], np.concatenate([array, array]), array.T]
            shapes += [array[..., :-1], np.array(array.reshape(-1)[0]) if array.size else array]
            return _pick(rng, shapes) if array.ndim else array[None], way
        changed = array.copy().reshape(-1)
        if way == "order":
            rng.shuffle(changed)
        elif len(changed):
            some = rng.integers(len(changed), size=max(1, len(changed) // 3))
            values = [np.nan, np.inf, -1, 1e38] if changed.dtype.kind == "f" else [-1, 2**7, 2**31 - 1, 2**62, -(2**62)]
            changed[some] = np.array(_pick(rng, values)).astype(changed.dtype)
        return changed.reshape(array.shape), way


def _mutate_model_tensor(folder: Path, rng: np.random.Generator) -> str:
    pointer = read_pointer(folder)
    if not pointer["tensors"]:
        return "nothing"
    name = _pick(rng, sorted(pointer["tensors"]))
    array = _read_tensor(folder / pointer["tensors"][name]["file"])["tensor"]
    changed, way = mutate_array(array, rng)
    content = _tensor_bytes({"tensor": changed})
    digest = hashlib.sha256(content).hexdigest()
    file = f"tensors/{digest[:32]}.safetensors"
    (folder / file).write_bytes(content)
    entry = {"file": file, "sha256": digest, "dtype": changed.dtype.str, "shape": list(changed.shape)}
    pointer["tensors"][name] = entry
    write_pointer(folder, pointer)
    return f"tensor {name} {way}: {array.dtype}{array.shape} -> {changed.dtype}{changed.shape}"


def _mutate_any_tensor(folder: Path, rng: np.random.Generator) -> str:
    """One column of a file of several, in a folder without a list of checksums."""
    files = sorted(folder.rglob("*.safetensors"))
    if not files:
        return "nothing"
    file = _pick(rng, files)
    tensors = _read_tensor(file)
    name = _pick(rng, sorted(tensors))
    before = tensors[name]
    tensors[name], way = mutate_array(before, rng)
    file.write_bytes(_tensor_bytes(tensors))
    return f"{file.name} {name} {way}: {before.dtype}{before.shape} -> {tensors[name].dtype}{tensors[name].shape}"


def _damage_file(folder: Path, rng: np.random.Generator) -> str:
    file = _pick(rng, [path for path in sorted(folder.rglob("*")) if path.is_file()])
    content = bytearray(file.read_bytes())
    if rng.random() < 0.3 and content:
        cut = int(rng.integers(len(content)))
        file.write_bytes(content[:cut])
        return f"{file.name} cut at {cut} of {len(content)}"
    for at in rng.integers(max(len(content), 1), size=3).tolist():
        content[at : at + 1] = bytes([int(rng.integers(256))])
    file.write_bytes(content)
    return f"{file.name} bytes"


def _rewrite_json(file: Path, rng: np.random.Generator) -> str:
    document = json.loads(file.read_bytes())
    if not document:
        return "nothing"
    change = mutate_json(document, rng)
    file.write_bytes(_json_bytes(document))
    return change


def _json_bytes(document: Any) -> bytes:
    return json.dumps(document, indent=1, ensure_ascii=False).encode("utf-8", "surrogatepass")


def read_pointer(folder: Path) -> dict[str, Any]:
    pointer: dict[str, Any] = json.loads((folder / "config.json").read_bytes())
    del pointer["sha256"]
    return pointer


def write_pointer(folder: Path, pointer: dict[str, Any]) -> None:
    body = _json_bytes(pointer)[1:]
    head = f'{{\n "sha256": "{hashlib.sha256(body).hexdigest()}",'.encode()
    (folder / "config.json").write_bytes(head + body)


def _read_tensor(file: Path) -> dict[str, Any]:
    content = file.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    found = {}
    for name, info in json.loads(content[8:start]).items():
        if name != "__metadata__":
            lo, hi = info["data_offsets"]
            array = np.frombuffer(content[start + lo : start + hi], DTYPES[info["dtype"]])
            found[name] = array.reshape(info["shape"])
    return found


def _tensor_bytes(tensors: dict[str, Any]) -> bytes:
    codes = {np.dtype(dtype): code for code, dtype in DTYPES.items()}
    head, data = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        info = {
            "dtype": codes[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        head[name], data = info, data + raw
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def _pick(rng: np.random.Generator, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]
