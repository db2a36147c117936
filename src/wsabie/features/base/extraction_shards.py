"""Shards of an extraction on disk, and their merge into one file.

A shard is a Parquet file with the rows of a run of pictures, written to a temporary name and renamed. Its metadata hold
the skipped pictures, and a key of its input (settings, pictures, labels), so that a shard is used again exactly when
extraction would give the same rows.
"""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from wsabie.core.errors import InputError
from wsabie.features.base.extraction_tasks import ItemFeatures, ItemRejection
from wsabie.io.formats.parquet.feature_columns import DENSE
from wsabie.io.formats.parquet.tables import KEY
from wsabie.storage.atomic_files import replace_file

KEY_NOTE = b"wsabie.extract.key"
REJECTS_NOTE = b"wsabie.extract.rejects"
_COMPRESSION = "zstd"
_LISTED = 100_000  # skipped pictures that a file's notes name
_FIELDS = {DENSE: "values"}  # of `ItemFeatures`, where the column has another name


class ShardSummary(NamedTuple):
    """Summary in the metadata of a complete file."""

    key: str
    n_rows: int
    rejected: list[ItemRejection]


SHARD_FILES = r"\d+\.parquet|merged\.parquet"
"""Names in the folder of shards."""


def build_shard_path(folder: Path, number: int) -> Path:
    """Return the path of shard `number` in a folder.

    Examples
    --------
    >>> build_shard_path(Path("a.parts"), 3).name
    '00000003.parquet'
    """
    return folder / f"{number:08d}.parquet"


def write_shard(path: Path, rows: list[ItemFeatures], rejected: list[ItemRejection], key: str, dense: bool) -> None:
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
    with replace_file(path) as draft:
        write_table(Table.from_pydict(columns, schema), draft, compression=_COMPRESSION, write_page_checksum=True)


def read_summary(path: Path) -> ShardSummary | None:
    """Return the summary of a file of rows; None when there is none, or it cannot be read."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            notes = file.schema_arrow.metadata or {}
            rejected = [ItemRejection(*fields) for fields in json.loads(notes[REJECTS_NOTE])]
            return ShardSummary(notes[KEY_NOTE].decode(), file.metadata.num_rows, rejected)
    except (OSError, ArrowException, KeyError, ValueError, TypeError):
        return None


def merge_shards(folder: Path, n_shards: int, out: Path, key: str, facts: dict[str, Any], dense: bool) -> ShardSummary:
    """Merge the shards of a folder into `out`, one row group each, and remove the folder.

    The metadata of the file hold `facts`. Columns that no row fills are left out.

    Raises
    ------
    InputError
        The disk is full, `out` cannot be written, or a shard was damaged meanwhile; the shards stay.
    """
    from pyarrow.parquet import ParquetWriter

    shards = [build_shard_path(folder, number) for number in range(n_shards)]
    summaries = [summary for summary in map(read_summary, shards) if summary is not None]
    rejected = [rejection for summary in summaries for rejection in summary.rejected]
    note = {"schema": 1, **facts, "label_names": _collect_label_names(shards)}
    notes = {KEY: json.dumps(note, ensure_ascii=False).encode(), **_notes(key, rejected[:_LISTED])}
    schema = _schema(_find_filled_columns(shards), dense).with_metadata(notes)
    draft = folder / "merged.parquet"
    with replace_file(draft) as file, ParquetWriter(file, schema, compression=_COMPRESSION) as writer:
        for shard in shards:
            table = _read_columns(shard, schema.names)
            if table.num_rows:
                writer.write_table(table.replace_schema_metadata(schema.metadata), row_group_size=table.num_rows)
    with replace_file(out) as place:
        draft.replace(place)  # the shards go only when `out` is on the disk
    shutil.rmtree(folder, ignore_errors=True)
    return ShardSummary(key, sum(summary.n_rows for summary in summaries), rejected)


def _find_filled_columns(shards: list[Path]) -> tuple[str, ...]:
    """Return the optional columns that have values."""
    names: set[str] = set()
    for shard in shards:
        table = _read_columns(shard, ["group", "time"])
        names.update(name for name in table.column_names if table[name].null_count < len(table))
    return tuple(sorted(names))


def _collect_label_names(shards: list[Path]) -> list[str]:
    """Return all label names, in the order of their code points."""
    names: set[str] = set()
    for shard in shards:
        names.update(_read_columns(shard, ["labels"])["labels"].combine_chunks().flatten().unique().to_pylist())
    return sorted(names)


def _read_columns(shard: Path, columns: list[str]) -> Any:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_table

    try:
        return read_table(shard, columns=columns, page_checksum_verification=True)
    except (ArrowException, OSError) as error:
        raise InputError(f"{shard} is damaged; remove {shard.parent} and run the same command again") from error


def _notes(key: str, rejected: list[ItemRejection]) -> dict[bytes, bytes]:
    return {KEY_NOTE: key.encode(), REJECTS_NOTE: json.dumps(rejected).encode()}


def _schema(optional: tuple[str, ...], dense: bool) -> Any:
    import pyarrow as pa

    fields = [("id", pa.string()), ("labels", pa.list_(pa.string()))]
    fields += [(name, pa.string()) for name in optional]
    numbers = pa.list_(pa.float32())
    fields += [(DENSE, numbers)] if dense else [("indices", pa.list_(pa.uint32())), ("values", numbers)]
    return pa.schema(fields)
