"""Model folder: `config.json` and the tensors that it lists.

Layout, byte by byte
--------------------
`config.json`   UTF-8 JSON: {"sha256": ..., "format": "wsabie", "version": 1, "kind": ..., "config": {...},
                "tensors": {name: {"file", "sha256", "dtype", "shape"}}}. The first 80 bytes are
                `{`, newline, ` "sha256": "`, 64 hex digits, `",`; the digits are the SHA-256 of the rest
`tensors/<first 32 hex digits of sha256>.safetensors`
                one safetensors file per tensor (8-byte little-endian header length, JSON header, raw
                little-endian data), holding a single tensor called "tensor"

A tensor file is named by the hash of its content and never overwritten by other content; `config.json` is
the only pointer and is replaced last. A save that dies in between leaves the old model whole.
"""

import hashlib
import json
import math
import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from wsabie.core.arrays import Array
from wsabie.core.errors import ModelFolderError, WsabieError, bracket_detail
from wsabie.core.input_files import open_input
from wsabie.core.json_conversion import JsonObject
from wsabie.storage.atomic_files import explain_read_errors, explain_write_errors, lock_folder, replace_file
from wsabie.storage.schema_validation import (
    SEAL_BYTES,
    Count,
    Sha256,
    check_schema,
    read_json_with_checksum,
    write_json_with_checksum,
)

FORMAT = "wsabie"
VERSION = 1
MAP_VARIABLE = "WSABIE_MAP"
"""Environment variable: "no" has tensors of model folders read into memory and not mapped."""
_MAX_HEADER_BYTES = 1 << 20
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U64": "<u8", "U32": "<u4",
           "U16": "<u2", "I8": "|i1", "U8": "|u1", "BOOL": "|b1"}  # fmt: skip
CODES = {np.dtype(dtype): code for code, dtype in DTYPES.items()}
_CHECKSUM_DIGITS = slice(14, 78)  # of the checksum, in these
_CHUNK_BYTES = 1 << 24
_TENSOR_FILE = re.compile(r"[0-9a-f]{32}\.safetensors|\.[0-9a-f]{32}\.safetensors\..*\.tmp")


@dataclass(frozen=True)
class TensorEntry:
    """Entry of a tensor in `config.json`."""

    file: str
    sha256: Sha256
    dtype: str
    shape: list[Count]


@dataclass(frozen=True)
class FolderConfig:
    """Content of `config.json`, without its checksum, format and version."""

    kind: str
    config: JsonObject
    tensors: dict[str, TensorEntry]


@dataclass(frozen=True)
class ModelState:
    """State of a model on disk: its kind, a JSON-able config, and named arrays."""

    kind: str
    config: JsonObject
    tensors: dict[str, Array]

    def add_prefix(self, prefix: str) -> dict[str, Array]:
        """Return the arrays with `prefix/` before their names, for an outer state."""
        return {f"{prefix}/{name}": array for name, array in self.tensors.items()}

    def select_prefix(self, prefix: str, kind: str, config: JsonObject) -> "ModelState":
        """Return the inner state that was stored with `add_prefix`."""
        start = f"{prefix}/"
        inner = {n.removeprefix(start): a for n, a in self.tensors.items() if n.startswith(start)}
        return ModelState(kind, config, inner)

    def compute_fingerprint(self, facts: object) -> str:
        """Return 32 hex digits of JSON-able facts and of all arrays."""
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
        for name in sorted(self.tensors):
            digest.update(np.ascontiguousarray(self.tensors[name]).data)
        return digest.hexdigest()[:32]


def save_model_folder(path: str | Path, state: ModelState) -> None:
    """Save a state as a model folder, atomically; two saves wait for each other.

    An older model there is replaced.

    Raises
    ------
    InputError
        The folder cannot be written or the disk is full (the older model stays).
    ModelFolderError
        `path` is a folder that holds something other than a model.
    """
    path = Path(path)
    refuse_foreign_files(path)
    with explain_write_errors(path):
        (path / "tensors").mkdir(parents=True, exist_ok=True)
        with lock_folder(path / "tensors", wait=True):  # another save would remove tensors that nothing points to yet
            try:
                entries = {name: _save_tensor(path, np.asarray(array)) for name, array in state.tensors.items()}
                pointer = {"format": FORMAT, "version": VERSION, "kind": state.kind, "config": state.config}
                write_json_with_checksum(path / "config.json", pointer | {"tensors": entries})
            except BaseException:
                with suppress(WsabieError, OSError):
                    _remove_unreferenced(path)
                raise
            _remove_unreferenced(path)


def open_model_folder(path: str | Path, *, verify: bool = True) -> ModelState:
    """Open a model folder; arrays are read-only views of memory-mapped files.

    Parameters
    ----------
    verify : bool
        Compare each tensor with its hash (reads the file once).

    Raises
    ------
    ModelFolderError
        Missing, damaged, or written by another version; the sentence says which file.
    InputError
        A file may not be read, or the disk fails.
    """
    path = Path(path)
    while True:
        with explain_read_errors(path):
            require_model_folder(path)
            config = open_input(path / "config.json")
        with config:  # while it is open, a file that replaces it has another inode
            try:
                pointer = _read_config(path)
                with explain_read_errors(path):
                    tensors = {n: _load_tensor(path, n, entry, verify) for n, entry in pointer["tensors"].items()}
                return ModelState(str(pointer["kind"]), pointer["config"], tensors)
            except WsabieError:
                with explain_read_errors(path):
                    is_same = os.path.samestat(os.fstat(config.fileno()), (path / "config.json").stat())
                if is_same:
                    raise


class SavedObject:
    """Base of everything that a model folder holds."""

    @abstractmethod
    def to_state(self) -> ModelState:
        """Return JSON-able config and named arrays.

        Returns
        -------
        ModelState
            The kind, the config and the arrays that `save` writes.
        """

    @classmethod
    @abstractmethod
    def from_state(cls, state: ModelState) -> Self:
        """Restore the object from its state; large arrays stay memory-mapped.

        Parameters
        ----------
        state : ModelState
            As `to_state` returns it, or `open_model_folder`.
        """

    def save(self, path: str | Path) -> None:
        """Write the folder, atomically.

        Parameters
        ----------
        path : str or Path
            Folder; a model that is there is replaced.

        Raises
        ------
        InputError
            The folder cannot be written, or the disk is full; an older folder stays.
        ModelFolderError
            The folder holds something other than a model.
        """
        save_model_folder(path, self.to_state())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open a saved folder; its arrays are mapped into memory.

        Parameters
        ----------
        path : str or Path

        Raises
        ------
        ModelFolderError
            Missing, damaged, something else, or of another version.
        """
        return cls.from_state(open_model_folder(path))


def is_model_folder(path: str | Path) -> bool:
    """Return True if `path` holds a `config.json` of ours; InputError if that cannot be read."""
    try:
        return bool(_read_config(Path(path)))
    except ModelFolderError:
        return False


def read_content_checksum(path: str | Path) -> str:
    """Return the checksum at the start of `config.json`, which changes with the content; "" without one."""
    try:
        with open_input(Path(path) / "config.json") as file:
            return file.read(SEAL_BYTES).decode("ascii", "replace")[_CHECKSUM_DIGITS]
    except OSError:
        return ""


def read_folder_kind(path: str | Path) -> str | None:
    """Return the kind that the folder's `config.json` names; None when there is no such file.

    Raises
    ------
    ModelFolderError
        The file is damaged, of another version, or not ours.
    InputError
        It may not be read.
    """
    path = Path(path)
    with explain_read_errors(path):
        has_config = (path / "config.json").exists()
    return str(_read_config(path)["kind"]) if has_config else None


def refuse_foreign_files(path: Path) -> None:
    """Raise ModelFolderError when a model saved at `path` would replace somebody else's files."""
    with explain_read_errors(path):
        if path.exists() and not path.is_dir():  # a device, too
            raise ModelFolderError(f"{path} is a file; give the name of a folder")
        if not path.is_dir() or not any(path.iterdir()):
            return
        if not (_is_wsabie_config(path / "config.json") or _has_only_remains(path)):
            raise ModelFolderError(f"{path} is a folder that holds other files; choose an empty or new folder")


def _is_wsabie_config(config: Path) -> bool:
    """Return whether this `config.json` was written here, perhaps by another version, perhaps damaged."""
    if not config.is_file():
        return False
    with open_input(config) as stream:
        return b'"format": "wsabie"' in stream.read(SEAL_BYTES + 100)


def _has_only_remains(path: Path) -> bool:
    """Return whether a folder holds only remains of a model, from a killed first save or from damage."""
    names = {p.name for p in path.iterdir() if not (p.name.startswith(".config.json.") and p.name.endswith(".tmp"))}
    tensors = [_TENSOR_FILE.fullmatch(p.name) is not None for p in (path / "tensors").glob("*")]
    return all(tensors) and names <= ({"tensors", "config.json"} if tensors else {"tensors"})


def _remove_unreferenced(path: Path) -> None:
    """Remove the tensors that nothing points to, and the drafts of saves that were killed."""
    tensors = _read_config(path)["tensors"] if (path / "config.json").exists() else {}
    names = {Path(entry["file"]).name for entry in tensors.values()}
    for file in (path / "tensors").glob("*"):
        if _TENSOR_FILE.fullmatch(file.name) and file.name not in names:
            file.unlink(missing_ok=True)
    for draft in path.glob(".config.json.*.tmp"):
        draft.unlink(missing_ok=True)


def _save_tensor(folder: Path, array: Array) -> JsonObject:
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    info = {"dtype": CODES[array.dtype], "shape": list(array.shape), "data_offsets": [0, array.nbytes]}
    chunks, hasher = [encode_safetensors_header({"tensor": info}, 8), *iterate_pieces(array)], hashlib.sha256()
    for chunk in chunks:
        hasher.update(chunk)
    digest = hasher.hexdigest()
    file = f"tensors/{digest[:32]}.safetensors"
    target = folder / file
    if not (os.access(target, os.R_OK) and _has_digest(target, digest)):
        with replace_file(target) as draft, draft.open("wb") as out:
            out.writelines(chunks)
    return {"file": file, "sha256": digest, "dtype": array.dtype.str, "shape": list(array.shape)}


def iterate_pieces(array: Array) -> Iterator[bytes | memoryview]:
    """Yield the little-endian bytes of an array, some megabytes at a time."""
    flat = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data
    return (flat[start : start + _CHUNK_BYTES] for start in range(0, len(flat), _CHUNK_BYTES))


def encode_safetensors_header(info: JsonObject, alignment: int) -> bytes:
    """Return the header of a safetensors file, filled up so that data begin at a multiple of `alignment`."""
    text = json.dumps(info, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    text += b" " * (-(len(text) + 8) % alignment)
    return len(text).to_bytes(8, "little") + text


def read_safetensors_header(stream: BufferedReader, size: int, max_length: int) -> tuple[JsonObject, int]:
    """Return the header of a file of `size` bytes, and where its data begin; ValueError if it is none."""
    length = int.from_bytes(stream.read(8), "little")
    if not 0 < length <= min(size - 8, max_length):
        raise ValueError("header length out of range")
    return json.loads(stream.read(length).decode("utf-8", "surrogatepass")), 8 + length


def parse_tensor_entry(entry: JsonObject) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """Return type, shape and first byte of a tensor from its entry in a header; ValueError if they clash."""
    dtype, shape = np.dtype(DTYPES[entry["dtype"]]), tuple(int(n) for n in entry["shape"])
    start, end = (int(n) for n in entry["data_offsets"])
    if min(shape, default=0) < 0 or start < 0 or end - start != math.prod(shape) * dtype.itemsize:
        raise ValueError("data size does not agree with the shape")
    return dtype, shape, start


def _has_digest(path: Path, digest: str) -> bool:
    with open_input(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == digest


def require_model_folder(path: Path) -> None:
    """Raise ModelFolderError where there is no model folder."""
    with explain_read_errors(path):
        exists = path.exists()
        has_config, has_inner_model = ((folder / "config.json").is_file() for folder in (path, path / "model"))
    if not exists:
        raise ModelFolderError(f"there is no model at {path}; give the folder that `train(model=FOLDER)` wrote")
    if has_inner_model and not has_config:
        raise ModelFolderError(f"{path} is not a model folder, but holds one; give {path / 'model'}")
    if not has_config:
        raise ModelFolderError(
            f"{path} is not a model folder: it has no config.json; give the folder that `train(model=FOLDER)` wrote"
        )


def _read_config(path: Path) -> JsonObject:
    file, remedy = path / "config.json", "restore the folder from a copy or make it again"
    with explain_read_errors(file):
        require_model_folder(path)
        foreign = "was not written by wsabie; give the folder that `train(model=FOLDER)` wrote"
        pointer = read_json_with_checksum(file, (FORMAT, VERSION), foreign, remedy, "make it again", ModelFolderError)
    check_schema(FolderConfig, pointer, file, remedy, ModelFolderError)
    return pointer


def _load_tensor(folder: Path, name: str, entry: JsonObject, verify: bool) -> Array:
    file = folder / "tensors" / Path(entry["file"]).name
    damaged = f"{file} (tensor {name!r}) is damaged; restore the folder from a copy or make it again"
    if not (_TENSOR_FILE.fullmatch(file.name) and file.is_file()):
        raise ModelFolderError(f"{file} (tensor {name!r}) is missing; restore the folder from a copy or make it again")
    try:
        array, is_whole = map_tensor(file), not verify or _has_digest(file, entry["sha256"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelFolderError(damaged) from error
    if not is_whole or list(array.shape) != entry["shape"] or array.dtype.str != entry["dtype"]:
        raise ModelFolderError(damaged)
    return array


def map_tensor(file: Path) -> Array:
    """Map the single tensor of a safetensors file read-only, or read it whole where the user wants that."""
    size = file.stat().st_size
    with open_input(file) as stream:
        info, begin = read_safetensors_header(stream, size, _MAX_HEADER_BYTES)
    dtype, shape, start = parse_tensor_entry(info["tensor"])
    n_bytes = math.prod(shape) * dtype.itemsize
    if start != 0 or begin + n_bytes != size:
        raise ValueError("data size does not agree with the shape")
    if n_bytes == 0:
        return np.empty(shape, dtype)
    if os.environ.get(MAP_VARIABLE) == "no":
        with open_input(file) as stream:
            return np.frombuffer(stream.read()[begin:], dtype).reshape(shape)
    return np.memmap(file, dtype, "r", offset=begin, shape=shape)


def measure_folder_bytes(path: str | Path) -> int:
    """Return the bytes on disk of everything under a folder."""
    with explain_read_errors(Path(path)):
        return sum(os.path.getsize(p) for p in Path(path).rglob("*") if p.is_file())  # noqa: PTH202


class SavedModel(SavedObject):
    """Base of models, whose folders name their kind."""

    kind: ClassVar[str]
    written_by: ClassVar[str] = "`train(model=FOLDER)`"
    """Call that writes such folders, for error messages."""

    @classmethod
    def load(cls, path: str | Path) -> Self:
        model: Self = load_by_kind(path, {cls.kind: cls.from_state}, cls.written_by)
        return model


def load_by_kind(
    path: str | Path, kinds: Mapping[str, Callable[[ModelState], Any]], written_by: str = SavedModel.written_by
) -> Any:
    """Return the model in a folder, restored by the function of its kind.

    Raises
    ------
    ModelFolderError
        Missing, damaged, of another version, or of another kind.
    """
    state = open_model_folder(path)
    if state.kind not in kinds:
        fact = f"{path} holds {state.kind!r} where {' or '.join(map(repr, kinds))} is needed"
        raise ModelFolderError(f"{fact}; give the folder that {written_by} wrote")
    try:
        return kinds[state.kind](state)
    except MemoryError as error:
        fact = f"{path} needs more memory than there is{bracket_detail(error)}"
        raise ModelFolderError(f"{fact}; free some, or restore it from a copy if it is damaged") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ModelFolderError(f"{path} lacks a part ({error}); restore it from a copy or make it again") from error
