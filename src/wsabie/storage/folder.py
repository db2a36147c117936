"""A model folder: `config.json` and the tensors it points to.

Layout, byte by byte
--------------------
`config.json`   UTF-8 JSON: {"format": "wsabie", "version": 1, "kind": ..., "config": {...},
                "tensors": {name: {"file", "sha256", "dtype", "shape"}}}
`tensors/<first 32 hex digits of sha256>.safetensors`
                one safetensors file per tensor (8-byte little-endian header length, JSON header, raw
                little-endian data), holding a single tensor called "tensor"

A tensor file is named by the hash of its content, so it is never overwritten by other content; `config.json` is the
only pointer and is replaced last. A save that dies in between leaves the old model whole.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.errors import ModelFolderError
from wsabie.storage.atomic import explained, replacing, write_text

FORMAT = "wsabie"
VERSION = 1
_MAX_CONFIG_BYTES = 1 << 30
_MAX_HEADER_BYTES = 1 << 20
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U64": "<u8", "U32": "<u4",
           "U16": "<u2", "I8": "|i1", "U8": "|u1", "BOOL": "|b1"}  # fmt: skip
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Parts:
    """What a model is made of on disk: its kind, a JSON-able config, and named arrays."""

    kind: str
    config: dict[str, Any]
    tensors: dict[str, Array]

    def nested(self, prefix: str) -> dict[str, Array]:
        """The arrays named under another part's `prefix`."""
        return {f"{prefix}/{name}": array for name, array in self.tensors.items()}

    def under(self, prefix: str, kind: str, config: dict[str, Any]) -> "Parts":
        """The inner part that was stored by `nested`."""
        start = f"{prefix}/"
        inner = {n.removeprefix(start): a for n, a in self.tensors.items() if n.startswith(start)}
        return Parts(kind, config, inner)


def save_folder(path: str | Path, parts: Parts) -> None:
    """Save `parts` as a model folder, atomically; an older model there is replaced.

    Raises
    ------
    InputError
        The folder cannot be written or the disk is full (the older model stays).
    ModelFolderError
        `path` is a folder that holds something other than a model.
    """
    path = Path(path)
    refuse_foreign(path)
    entries = {name: _save_tensor(path, np.asarray(array)) for name, array in parts.tensors.items()}
    pointer = {
        "format": FORMAT,
        "version": VERSION,
        "kind": parts.kind,
        "config": parts.config,
        "tensors": entries,
    }
    write_text(path / "config.json", json.dumps(pointer, indent=1, ensure_ascii=False))
    keep = {entry["file"] for entry in entries.values()}
    for old in (path / "tensors").glob("*.safetensors"):
        if f"tensors/{old.name}" not in keep:
            old.unlink(missing_ok=True)


def load_folder(path: str | Path, *, verify: bool = True) -> Parts:
    """Open a model folder; arrays are read-only views of memory-mapped files.

    Parameters
    ----------
    verify : bool
        Compare each tensor with its hash (reads the file once).

    Raises
    ------
    ModelFolderError
        Missing, damaged, or written by another version; the sentence says which file.
    """
    path = Path(path)
    pointer = _read_config(path)
    tensors = {name: _load_tensor(path, name, entry, verify) for name, entry in pointer["tensors"].items()}
    return Parts(pointer["kind"], pointer["config"], tensors)


def is_model_folder(path: str | Path) -> bool:
    """Whether `path` holds a `config.json` of ours."""
    try:
        return bool(_read_config(Path(path)))
    except ModelFolderError:
        return False


def refuse_foreign(path: Path) -> None:
    if path.is_file():
        raise ModelFolderError(f"{path} is a file; give the name of a folder for the model")
    if (
        path.is_dir()
        and any(path.iterdir())
        and not (path / "config.json").exists()
        and not (path / "tensors").exists()
    ):
        raise ModelFolderError(
            f"{path} is a folder that holds other files; choose an empty or new folder for the model"
        )


def _save_tensor(folder: Path, array: Array) -> dict[str, Any]:
    from safetensors.numpy import save

    array = np.ascontiguousarray(array)
    content = save({"tensor": array})
    digest = hashlib.sha256(content).hexdigest()
    file = f"tensors/{digest[:32]}.safetensors"
    target = folder / file
    if not _holds(target, digest):
        with replacing(target) as draft:
            draft.write_bytes(content)
    return {"file": file, "sha256": digest, "dtype": array.dtype.str, "shape": list(array.shape)}


def _holds(path: Path, digest: str) -> bool:
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


def _read_config(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise ModelFolderError(
            f"there is no model at {path}; give the folder that `wsabie train --model` wrote"
        )
    file = path / "config.json"
    if not file.is_file():
        raise ModelFolderError(
            f"{path} is not a model folder: it has no config.json; give the folder that `wsabie train --model` wrote"
        )
    if file.stat().st_size > _MAX_CONFIG_BYTES:
        raise ModelFolderError(f"{file} is larger than {_MAX_CONFIG_BYTES >> 20} MiB and was not read")
    try:
        pointer = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ModelFolderError(
            f"{file} is damaged ({error}); restore the folder from a copy or train again"
        ) from error
    if not isinstance(pointer, dict) or pointer.get("format") != FORMAT:
        raise ModelFolderError(
            f"{file} was not written by wsabie; give the folder that `wsabie train --model` wrote"
        )
    if pointer.get("version") != VERSION:
        raise ModelFolderError(
            f"{path} has model format {pointer.get('version')!r} and this program reads format {VERSION}; "
            "install the version of wsabie that wrote it, or train again"
        )
    if not isinstance(pointer.get("tensors"), dict) or not isinstance(pointer.get("config"), dict):
        raise ModelFolderError(
            f"{file} lacks its list of tensors; restore the folder from a copy or train again"
        )
    return pointer


def _load_tensor(folder: Path, name: str, entry: Mapping[str, Any], verify: bool) -> Array:
    file = folder / "tensors" / Path(str(entry.get("file", ""))).name
    damaged = f"{file} (tensor {name!r}) is damaged; restore the folder from a copy or train again"
    if not file.is_file():
        raise ModelFolderError(
            f"{file} (tensor {name!r}) is missing; restore the folder from a copy or train again"
        )
    if verify and not _holds(file, str(entry.get("sha256"))):
        raise ModelFolderError(damaged)
    try:
        array = map_tensor(file)
    except (ValueError, KeyError, OSError, TypeError) as error:
        raise ModelFolderError(damaged) from error
    if list(array.shape) != entry.get("shape") or array.dtype.str != entry.get("dtype"):
        raise ModelFolderError(damaged)
    return array


def map_tensor(file: Path) -> Array:
    """The single tensor of a safetensors file as a read-only memory map."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 0 < length <= min(size - 8, _MAX_HEADER_BYTES):
            raise ValueError("header length out of range")
        info = json.loads(stream.read(length))["tensor"]
    dtype, shape = np.dtype(_DTYPES[info["dtype"]]), tuple(int(n) for n in info["shape"])
    start, end = info["data_offsets"]
    expected = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if start != 0 or end != expected or 8 + length + end != size:
        raise ValueError("data size does not agree with the shape")
    if expected == 0:
        return np.empty(shape, dtype)
    return np.memmap(file, dtype, "r", offset=8 + length, shape=shape)


def folder_bytes(path: str | Path) -> int:
    """Bytes on disk of everything under a folder."""
    with explained(Path(path)):
        return sum(os.path.getsize(p) for p in Path(path).rglob("*") if p.is_file())  # noqa: PTH202
