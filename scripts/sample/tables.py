"""Rows become a Parquet file: the same bytes for the same rows and the same library versions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wsabie.storage.atomic_files import replace_file

_DICTIONARY_BYTES = 1 << 26  # one dictionary a column; beyond 1 MiB pyarrow would go back to plain strings
_IN_DICTIONARIES = ("labels.list.element", "languages.list.element.list.element", "group", "part", "category")
_GROUP_ROWS = 4096  # so that a reader need not hold all pictures


@dataclass
class Row:
    """One picture of the sample."""

    id: str
    image: bytes
    labels: list[str]
    group: str
    part: str
    title: str
    category: str
    languages: list[list[str]] = field(default_factory=list)  # beside `labels`; empty where one is meant


def write_rows(path: Path, rows: Sequence[Row], metadata: Mapping[str, str]) -> int:
    """Write the rows in the order given; returns the size of the file in bytes.

    The column `languages` is there when some row has languages.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _schema(any(row.languages for row in rows), metadata)
    columns = [pa.array([getattr(row, entry.name) for row in rows], entry.type) for entry in schema]
    with replace_file(path) as draft:
        pq.write_table(
            pa.table(columns, schema=schema),
            draft,
            compression="zstd",
            compression_level=19,
            row_group_size=_GROUP_ROWS,
            use_dictionary=[name for name in _IN_DICTIONARIES if name.split(".")[0] in schema.names],
            dictionary_pagesize_limit=_DICTIONARY_BYTES,
            write_statistics=["id", "group", "part"],
        )
    return path.stat().st_size


def _schema(with_languages: bool, metadata: Mapping[str, str]) -> Any:
    import pyarrow as pa

    strings = pa.list_(pa.string())
    kinds = {"id": pa.string(), "image": pa.binary(), "labels": strings, "group": pa.string()}
    kinds |= {"part": pa.string(), "title": pa.string(), "category": pa.string()}
    if with_languages:
        kinds["languages"] = pa.list_(strings)
    fields = [pa.field(name, kind, nullable=False) for name, kind in kinds.items()]
    return pa.schema(fields, metadata=dict(metadata))
