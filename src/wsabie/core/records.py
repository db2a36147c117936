"""Conversion of records, which are named tuples or dataclasses, to dictionaries."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any


def convert_records(value: Any) -> Any:
    """Return a copy in which records are dictionaries, and paths are texts.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> Item = NamedTuple("Item", [("id", int), ("labels", list)])
    >>> Page = NamedTuple("Page", [("items", list)])
    >>> convert_records(Page([Item(1, ["sea"])]))
    {'items': [{'id': 1, 'labels': ['sea']}]}
    """
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value) and not isinstance(value, type):
        value = vars(value)
    if isinstance(value, Mapping):
        return {name: convert_records(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [convert_records(part) for part in value]
    return str(value) if isinstance(value, Path) else value
