"""Schemas of the JSON that this program writes: dataclasses, checked field by field on reading.

A sealed file begins with `{`, newline, ` "sha256": "`, 64 hex digits, `",`: the SHA-256 of the rest.
msgspec checks plain dataclasses, which the service can also publish.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar, get_type_hints

import msgspec
import numpy as np

from wsabie.core.arrays import Array
from wsabie.core.errors import InputError, WsabieError
from wsabie.core.input_files import read_input
from wsabie.core.json_conversion import JsonObject
from wsabie.storage.atomic_files import write_bytes

T = TypeVar("T")
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
"""A whole number from 0 on."""
Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
"""A whole number from 0 on that kernels hold in 32 bits."""
PositiveCount: TypeAlias = Annotated[int, msgspec.Meta(gt=0, lt=1 << 53)]
"""A whole number from 1 on."""
Sha256: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
"""Hex digits of a checksum."""

_MAX_BYTES = 1 << 30
_FAULTS = (msgspec.ValidationError, UnicodeEncodeError)  # the second of text that is not Unicode, which JSON can hold
SEAL_BYTES = 80
"""Bytes of a sealed file before those that its checksum covers."""


def check_schema(
    schema: type[T], value: object, where: object, remedy: str, error: type[WsabieError] = InputError
) -> T:
    """Return `value`, made of dicts, lists and scalars, as an instance of `schema`.

    Parameters
    ----------
    schema : type
        A dataclass, or any type that msgspec takes.
    value : object
        As `json.loads` returns it.
    where : object
        The file, for the sentence.
    remedy : str
        What to do next, for the sentence.

    Raises
    ------
    WsabieError
        With the type `error`: a field is missing or has another type; the sentence names it.

    Examples
    --------
    >>> check_schema(dict[str, Count], {"rows": -1}, "manifest.json", "restore it from a copy")
    Traceback (most recent call last):
    wsabie.core.errors.InputError: manifest.json is damaged at [...]: expected int >= 0; restore it from a copy
    """
    try:
        return msgspec.convert(value, schema)
    except _FAULTS as fault:
        raise error(f"{where} is damaged{_fault_text(str(fault))}; {remedy}") from fault


def parse_json(schema: type[T], content: bytes, where: object, remedy: str, error: type[WsabieError] = InputError) -> T:
    """Return a JSON document as an instance of `schema`; see `check_schema`.

    Examples
    --------
    >>> parse_json(dict[str, Count], b'{"rows": 3}', "manifest.json", "restore it from a copy")
    {'rows': 3}
    """
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as fault:
        raise error(f"{where} is damaged ({fault}); {remedy}") from fault
    return check_schema(schema, value, where, remedy, error)


def write_json_with_checksum(file: Path, document: JsonObject) -> None:
    """Write a JSON object with its checksum, atomically."""
    body = json.dumps(document, indent=1, ensure_ascii=False).encode()[1:]
    write_bytes(file, f'{{\n "sha256": "{hashlib.sha256(body).hexdigest()}",'.encode() + body)


def read_json_with_checksum(
    file: Path, form: tuple[str, int], foreign: str, remedy: str, rebuild: str, error: type[WsabieError] = InputError
) -> JsonObject:
    """Return the object in a sealed file, without its checksum.

    Parameters
    ----------
    file : Path
    form : (str, int)
        The format and version that the object has to name.
    foreign : str
        What is wrong with a file that names another format.
    remedy, rebuild : str
        What to do about a damaged file, and about one of another version.
    error : type
        Class of the errors.

    Raises
    ------
    WsabieError
        With the type `error`: too large, damaged, of another format or version.
    """
    if file.stat().st_size > _MAX_BYTES:
        raise error(f"{file} is larger than {_MAX_BYTES >> 20} MiB and was not read")
    content = read_input(file)
    document = parse_json(object, content, file, remedy, error)
    if not isinstance(document, dict) or document.get("format") != form[0]:
        raise error(f"{file} {foreign}")
    if document.get("version") != form[1]:
        raise error(
            f"{file.parent} has format {document.get('version')!r} and this program reads format {form[1]}; "
            f"install the version of wsabie that wrote it, or {rebuild}"
        )
    if hashlib.sha256(content[SEAL_BYTES:]).hexdigest() != document.pop("sha256", None):
        raise error(f"{file} is damaged (it does not agree with its checksum); {remedy}")
    return document


def read_config(schema: type[T], config: object, name: str = "its config") -> T:
    """Return the config of a model folder, or its part called `name`, as an instance of `schema`.

    Raises
    ------
    ValueError
        A field is missing or has another type; `load_by_kind` adds the folder and what to do.

    Examples
    --------
    >>> read_config(dict[str, Count], {"rows": 3})
    {'rows': 3}
    """
    try:
        return msgspec.convert(config, schema)
    except _FAULTS as fault:
        raise ValueError(f"{name}{_fault_text(str(fault))}") from fault


def check_parameters(kind: type, parameters: Mapping[str, object]) -> None:
    """Check the parameters in a folder against the types of `kind.__init__`, where msgspec knows these.

    Raises
    ------
    ValueError
        One has another type; the sentence names it.

    Examples
    --------
    >>> from typing import Literal
    >>> class Model:
    ...     def __init__(self, dim: int = 8, rows: Literal["auto"] | None = None) -> None: ...
    >>> check_parameters(Model, {"dim": 4, "scaling": "auto"})
    """
    hints = get_type_hints(kind.__init__)  # type: ignore[misc]
    for name in parameters.keys() & hints.keys():
        with suppress(TypeError):  # a type that msgspec does not know
            read_config(hints[name], parameters[name], f"its parameter {name}")


def check_sparse_indices(
    tensors: Mapping[str, Array], name: str, dtypes: tuple[str, str], shape: tuple[int, int]
) -> tuple[Array, Array]:
    """Return the arrays `indptr` and `indices` of a sparse matrix in a model folder.

    Parameters
    ----------
    tensors : mapping of str to array
    name : str
        Name of the matrix.
    dtypes : (str, str)
        Names of the types that each array may have, see `check_array`.
    shape : (int, int)

    Raises
    ------
    ValueError
        An array has another type or length, or points outside.
    """
    indptr = check_array(tensors, f"{name}/indptr", dtypes[0], (shape[0] + 1,))
    indices = check_array(tensors, f"{name}/indices", dtypes[1], (None,), upper_bound=shape[1])
    if indptr[0] != 0 or indptr[-1] != len(indices) or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"{name}/indptr does not agree with {name}/indices")
    return indptr, indices


def check_array(
    tensors: Mapping[str, Array], name: str, dtypes: str, shape: Sequence[int | None], *, upper_bound: int | None = None
) -> Array:
    """Return an array of a model folder after checking its type, shape and range.

    Parameters
    ----------
    tensors : mapping of str to array
    name : str
    dtypes : str
        Names of types as NumPy has them, with blanks between.
    shape : sequence of int or None
        None: any length.
    upper_bound : int or None
        Entries must lie from 0 to this, exclusive.

    Raises
    ------
    KeyError
        There is no such array.
    ValueError
        It has another type or shape, or a number out of range; the sentence names it.

    Examples
    --------
    >>> check_array({"bias": np.zeros(3, np.float32)}, "bias", "float32", (3,)).tolist()
    [0.0, 0.0, 0.0]
    """
    array = tensors[name]
    if array.ndim != len(shape) or any(n not in (None, size) for n, size in zip(shape, array.shape, strict=True)):
        raise ValueError(f"the sizes of {name} do not agree with the rest")
    if array.dtype.name not in dtypes.split():
        raise ValueError(f"{name} holds {array.dtype.name}, and {' or '.join(dtypes.split())} is needed")
    if upper_bound is not None and array.size and not 0 <= int(np.min(array)) <= int(np.max(array)) < upper_bound:
        raise ValueError(f"{name} holds a number outside of 0 to {upper_bound - 1}")
    return array


def _fault_text(fault: str) -> str:
    """Format the field and the problem of a message such as "Expected `int`, got `str` - at `$.a.b`"."""
    message, _, place = fault.replace("`", "").partition(" - at ")
    field = place.removeprefix("$").removeprefix(".")
    return f"{f' at {field}' if field else ''}: {message[:1].lower()}{message[1:]}"
