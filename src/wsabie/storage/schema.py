"""Schemas of the JSON that this program writes: dataclasses, checked field by field when a file is opened.

msgspec checks plain dataclasses, which the service can show as they are.
"""

import json
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

from wsabie.base.errors import InputError, WsabieError

T = TypeVar("T")
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
"""A whole number from 0 on."""
Sha256: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
"""Hex digits of a checksum."""


def check_schema(schema: type[T], value: Any, where: object, remedy: str, error: type[WsabieError] = InputError) -> T:
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
        Of the type `error`: a field is missing or has another type; the sentence names it.

    Examples
    --------
    >>> check_schema(dict[str, Count], {"rows": -1}, "manifest.json", "restore it from a copy")
    Traceback (most recent call last):
    wsabie.base.errors.InputError: manifest.json is damaged at [...]: expected int >= 0; restore it from a copy
    """
    try:
        return msgspec.convert(value, schema)
    except msgspec.ValidationError as fault:
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


def _fault_text(fault: str) -> str:
    """The field and what is wrong with it, from a message such as "Expected `int`, got `str` - at `$.a.b`"."""
    message, _, place = fault.replace("`", "").partition(" - at ")
    field = place.removeprefix("$").removeprefix(".")
    return f"{f' at {field}' if field else ''}: {message[:1].lower()}{message[1:]}"
