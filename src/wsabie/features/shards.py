"""Finished pieces of an extraction on disk, and the one file that they become.

A shard is a Parquet file of the rows of a run of pictures, written to a temporary name and renamed. Its notes hold the
key of what it was made from (settings, pictures, their labels), so that a shard is used again exactly when it would
come out the same, and the pictures of the run that were skipped.
"""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from wsabie.base.errors import InputError
from wsabie.features.viewer import Described, Rejected
from wsabie.sources.parquet_features import DENSE
from wsabie.sources.parquet_file import KEY
from wsabie.storage.atomic import replacing

KEY_NOTE = b"wsabie.extract.key"
REJECTS_NOTE = b"wsabie.extract.rejects"
_COMPRESSION = "zstd"
_LISTED = 100_000  # skipped pictures that a file's notes name
_FIELDS = {DENSE: "values"}  # of `Described`, where the column has another name


class Finished(NamedTuple):
    """What a finished file says of itself."""

    key: str
    n_rows: int
    rejected: list[Rejected]


OWN_FILES = r"\d+\.parquet|merged\.parquet"
"""Names in the folder of shards."""


def shard_path(folder: Path, number: int) -> Path:
    """Where shard `number` of a folder lies.

    Examples
    --------
    >>> shard_path(Path("a.parts"), 3).name
    '00000003.parquet'
    """
    return folder / f"{number:08d}.parquet"


def write_shard(path: Path, rows: list[Described], rejected: list[Rejected], key: str, dense: bool) -> None:
    """Write a shard, atomically; `dense` rows hold every column.

    Raises
    ------
    InputError
        The folder cannot be written, or the disk is full.
    """
    from pyarrow import Table
    from pyarrow.parquet import write_table

    schema = _schema(("group", "time"), dense).with_metadata(_notes(key, rejected))
    columns = {name: [getattr(row, _FIELDS.get(name, name)) for row in rows] for name in schema.names}
    with replacing(path) as draft:
        write_table(Table.from_pydict(columns, schema), draft, compression=_COMPRESSION, write_page_checksum=True)


def finished(path: Path) -> Finished | None:
    """What a file written here says of itself; None when there is none, or it cannot be read."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            notes = file.schema_arrow.metadata or {}
            rejected = [Rejected(*one) for one in json.loads(notes[REJECTS_NOTE])]
            return Finished(notes[KEY_NOTE].decode(), file.metadata.num_rows, rejected)
    except (OSError, ArrowException, KeyError, ValueError, TypeError):
        return None


def merge(folder: Path, n_shards: int, out: Path, key: str, noted: dict[str, Any], dense: bool) -> Finished:
    """Put the shards of a folder together as `out`, one row group each, and remove the folder.

    `noted` goes into the notes of the file. Columns that no row fills are left out.

    Raises
    ------
    InputError
        The disk is full, `out` cannot be written, or a shard was damaged meanwhile; the shards stay.
    """
    from pyarrow.parquet import ParquetWriter

    shards = [shard_path(folder, number) for number in range(n_shards)]
    found = [one for one in map(finished, shards) if one is not None]
    rejected = [one for shard in found for one in shard.rejected]
    note = {"schema": 1, **noted, "label_names": _label_names(shards)}
    notes = {KEY: json.dumps(note, ensure_ascii=False).encode(), **_notes(key, rejected[:_LISTED])}
    schema = _schema(_filled(shards), dense).with_metadata(notes)
    draft = folder / "merged.parquet"
    with replacing(draft) as file, ParquetWriter(file, schema, compression=_COMPRESSION) as writer:
        for shard in shards:
            table = _read(shard, schema.names)
            if table.num_rows:
                writer.write_table(table.replace_schema_metadata(schema.metadata), row_group_size=table.num_rows)
    with replacing(out) as place:
        draft.replace(place)  # the shards go only when `out` is on the disk
    shutil.rmtree(folder, ignore_errors=True)
    return Finished(key, sum(one.n_rows for one in found), rejected)


def _filled(shards: list[Path]) -> tuple[str, ...]:
    """Which of the columns that may be empty are not."""
    found: set[str] = set()
    for shard in shards:
        table = _read(shard, ["group", "time"])
        found.update(name for name in table.column_names if table[name].null_count < len(table))
    return tuple(sorted(found))


def _label_names(shards: list[Path]) -> list[str]:
    """All labels, in the order of their code points."""
    found: set[str] = set()
    for shard in shards:
        found.update(_read(shard, ["labels"])["labels"].combine_chunks().flatten().unique().to_pylist())
    return sorted(found)


def _read(shard: Path, columns: list[str]) -> Any:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_table

    try:
        return read_table(shard, columns=columns, page_checksum_verification=True)
    except (ArrowException, OSError) as error:
        raise InputError(f"{shard} is damaged; remove {shard.parent} and run the same command again") from error


def _notes(key: str, rejected: list[Rejected]) -> dict[bytes, bytes]:
    return {KEY_NOTE: key.encode(), REJECTS_NOTE: json.dumps(rejected).encode()}


def _schema(optional: tuple[str, ...], dense: bool) -> Any:
    import pyarrow as pa

    fields = [("id", pa.string()), ("labels", pa.list_(pa.string()))]
    fields += [(name, pa.string()) for name in optional]
    numbers = pa.list_(pa.float32())
    fields += [(DENSE, numbers)] if dense else [("indices", pa.list_(pa.uint32())), ("values", numbers)]
    return pa.schema(fields)
