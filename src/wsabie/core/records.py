"""Conversion of records, which are named tuples or dataclasses, to dictionaries."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any


def convert_record(record: Any) -> dict[str, Any]:
    """Return a record, with all records in it, as a dictionary.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> Item = NamedTuple("Item", [("id", int), ("labels", list)])
    >>> Page = NamedTuple("Page", [("items", list)])
    >>> convert_record(Page([Item(1, ["sea"])]))
    {'items': [{'id': 1, 'labels': ['sea']}]}
    """
    fields = vars(record) if is_dataclass(record) else record._asdict()
    return {name: convert_records(part) for name, part in fields.items()}


def convert_records(value: Any) -> Any:
    """Return a copy in which records are dictionaries, and paths are texts."""
    if hasattr(value, "_asdict") or (is_dataclass(value) and not isinstance(value, type)):
        return convert_record(value)
    if isinstance(value, Mapping):
        return {name: convert_records(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [convert_records(part) for part in value]
    return str(value) if isinstance(value, Path) else value
