"""Pictures in Parquet, streamed: encoded bytes in a column, or paths of files beside the table.

`image` is binary or Hugging Face's struct of `bytes` and `path`; without it `path` or `file_name` names files
relative to the table's folder. Labels are a list of texts, a text, or a number (with ClassLabel names
where the schema notes them); `id`, `group`, `split` and `time` are used when they are there. Without an id
the path is one, or the number of the row, counted from 1 over all shards. A row is a picture: unlike in
`metadata`, its labels all stand in its cell, and a second row with its id is rejected.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Bool
from wsabie.base.errors import InputError
from wsabie.base.input_files import open_input
from wsabie.base.progress import SILENT, Progress
from wsabie.sources.build import BadRow, require_rows
from wsabie.sources.cells import word
from wsabie.sources.folders import clean_labels, is_inside, relative_name
from wsabie.sources.parquet_file import Batch, LabelColumn, Table, label_column_of
from wsabie.sources.records import Item, ItemSource, Things
from wsabie.sources.regions import Cutout
from wsabie.sources.text import reading
from wsabie.storage.atomic import replacing
from wsabie.storage.rejects import Rejects

IMAGE_COLUMNS = ("image", "img", "picture")
PATH_COLUMNS = ("path", "file_name", "file")
_BATCH = 64
_GROUP_BYTES = 1 << 25
"""Pictures of a row group that is written, about."""


def read_parquet_pictures(
    table: Table,
    *,
    labels_from: str = "auto",
    image_column: str | None = None,
    label_column: str | None = None,
    split: str | None = None,
    rejects: Rejects | None = None,
) -> "ParquetPictures":
    """Look at everything but the pixels, so that the source knows its length and what to leave out.

    Parameters
    ----------
    table : Table
    labels_from : str
        "none": pictures to annotate, without labels; anything else takes the column.
    image_column, label_column : str or None
        Columns with other names than usual.
    split : str or None
        Keep only rows with this `split`.
    rejects : Rejects or None
        Lists rows without labels, duplicate ids, and paths that are missing or lead out of the folder.

    Returns
    -------
    ParquetPictures

    Raises
    ------
    InputError
        No column of labels, labels of mixed types, or no labelled picture.
    """
    rejects = Rejects() if rejects is None else rejects
    label = None if labels_from == "none" else LabelColumn(table, label_column_of(table, label_column))
    image = image_column or table.first_of(IMAGE_COLUMNS)
    columns = _Columns(label, image, None if image else table.first_of(PATH_COLUMNS), split)
    kept = np.fromiter(_verdicts(table, columns, rejects), bool)
    require_rows(int(kept.sum()), table.path, rejects, "labelled pictures" if label else "pictures")
    return ParquetPictures(table.path, table, columns, kept)


class _Row(NamedTuple):
    id: str
    path: str | None
    labels: tuple[str, ...]
    group: str | None
    time: str | None
    split: str | None


@dataclass(frozen=True)
class _Columns:
    label: LabelColumn | None
    image: str | None
    path: str | None
    split: str | None  # the wanted one

    def beside_image(self) -> list[str | None]:
        """All columns but the pixels."""
        return [self.label.name if self.label else None, self.path, "id", "group", "time", "split"]

    def rows(self, batch: Batch, before: int) -> Iterator[_Row | BadRow]:
        """The rows of a batch that comes after `before` others, or what is wrong with them."""
        columns = [batch.column(name) for name in self.beside_image()]
        for row, (label, path, ident, *others) in enumerate(zip(*columns, strict=True)):
            try:
                path = word(path)
                name = word(ident) or path or str(before + row + 1)
                labels: tuple[str, ...] = ()
                if self.label:
                    labels = clean_labels(self.label.read(label, batch.where(row)))
                yield _Row(name, path, labels, *(word(other) for other in others))
            except BadRow as bad:
                yield bad


def _verdicts(table: Table, columns: _Columns, rejects: Rejects) -> Iterator[bool]:
    """Whether each row is kept; what is wrong with the others goes to `rejects`."""
    seen: set[str] = set()
    before = 0
    wanted = [name for name in columns.beside_image() if name and table.has(name)]
    for batch in table.batches(wanted or [columns.image], 1 << 12 if wanted else _BATCH):
        for number, row in enumerate(columns.rows(batch, before)):
            verdict = _fault(row, columns, table, seen)
            if isinstance(verdict, BadRow):
                rejects.add(batch.where(number), verdict.reason, verdict.detail)
            yield verdict is None
        before += batch.data.num_rows


def _fault(row: _Row | BadRow, columns: _Columns, table: Table, seen: set[str]) -> BadRow | str | None:
    """What is wrong with a row; "other split" is no fault."""
    if isinstance(row, BadRow):
        return row
    if columns.split is not None and row.split != columns.split:
        return "other split"
    if row.id in seen:
        return BadRow("duplicate id", row.id)
    if columns.label and not row.labels:
        return BadRow("picture without labels", row.id)
    if columns.path and file_beside(table.path, row.path) is None:
        return BadRow("labels without a picture", row.path or "")
    seen.add(row.id)
    return None


@dataclass(frozen=True)
class ParquetPictures:
    """A picture source that holds a few pictures at a time; built by `read_parquet_pictures`."""

    path: Path
    table: Table = field(repr=False)
    columns: _Columns = field(repr=False)
    kept: Bool = field(repr=False)  # (n_rows,)

    @property
    def things(self) -> Things:
        """Pictures."""
        return "pictures"

    def __len__(self) -> int:
        return int(self.kept.sum())

    def __iter__(self) -> Iterator[Item]:
        before = 0
        for batch in self.table.batches([self.columns.image, *self.columns.beside_image()], _BATCH):
            kept = self.kept[before : before + batch.data.num_rows]
            if kept.any():
                contents = batch.column(self.columns.image)
                for row, content, keep in zip(self.columns.rows(batch, before), contents, kept, strict=True):
                    if keep and isinstance(row, _Row):
                        yield Item(row.id, self._content(row.path, content), row.labels, row.group, row.time)
            before += len(kept)

    def _content(self, path: str | None, cell: Any) -> Path | bytes:
        """Bytes, or the file that the cell names; empty bytes (no picture) when there is neither."""
        if isinstance(cell, dict):
            path, cell = cell.get("path"), cell.get("bytes")
        if isinstance(cell, bytes):
            return cell
        return file_beside(self.table.path, path) or b""


def file_beside(table: Path, name: str | None) -> Path | None:
    """The file that a table names, None when it is missing or lies outside the table's folder."""
    folder = table if table.is_dir() else table.parent
    try:
        file = folder / relative_name(name) if name else folder
        return file if file.is_file() and is_inside(file, os.path.realpath(folder)) else None
    except (BadRow, OSError, ValueError):
        return None


def write_pictures(source: ItemSource, path: str | Path, *, progress: Progress = SILENT) -> None:
    """Write encoded pictures so that `read_parquet_pictures` gives them back; the file appears whole or not at all.

    Parameters
    ----------
    source : ItemSource
        Some 32 MB of it are held at a time.
    path : str or Path
        Usually ends with .parquet.
    progress : Progress

    Raises
    ------
    InputError
        A picture's file is gone, the folder cannot be written, or the disk is full.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    words = [("id", pa.string()), ("labels", pa.list_(pa.string())), ("group", pa.string()), ("time", pa.string())]
    schema = pa.schema([(IMAGE_COLUMNS[0], pa.large_binary()), *words])
    with (
        progress.stage(f"writing {Path(path).name}", len(source), "pictures") as stage,
        replacing(path) as draft,
        ParquetWriter(draft, schema, compression="none") as writer,
    ):
        for group in _groups(source):
            writer.write_table(pa.Table.from_pylist(group, schema))
            stage.advance(len(group))


def _groups(source: ItemSource) -> Iterator[list[dict[str, Any]]]:
    """Rows of the table, as many at a time as are about `_GROUP_BYTES`."""
    group: list[dict[str, Any]] = []
    n_bytes = 0
    for picture in source:
        content = picture.content
        if isinstance(content, Cutout):
            raise InputError(
                f"{source.path} holds regions of pictures, which are not copied; describe them first: wsabie features "
                f"images {source.path} --out FILE.parquet"
            )
        if isinstance(content, Path):
            with reading(content), open_input(content) as stream:
                content = stream.read()
        group.append({**picture._asdict(), IMAGE_COLUMNS[0]: content})
        n_bytes += len(content)
        if n_bytes >= _GROUP_BYTES:
            yield group
            group, n_bytes = [], 0
    yield group
