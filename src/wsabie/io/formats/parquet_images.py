"""Pictures in Parquet, streamed: encoded bytes in a column, or paths of files beside the table.

`image` is binary or Hugging Face's struct of `bytes` and `path`; without it `path` or `file_name` names files
relative to the table's folder. Labels are a list of texts, a text, or a number (with ClassLabel names
where the schema notes them); `id`, `group`, `split` and `time` are used when they are there. Without an id
the path is one, or the number of the row, counted from 1 over all shards. A row is a picture: unlike in
`metadata`, its labels all stand in its cell, and a second row with its id is rejected.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Bool
from wsabie.core.errors import InputError
from wsabie.core.input_files import open_input
from wsabie.core.progress import SILENT, Progress
from wsabie.io.file_matching import find_local_file
from wsabie.io.formats.media_folder import normalise_labels
from wsabie.io.formats.parquet_tables import ParquetBatch, ParquetTable, open_label_column
from wsabie.io.parsers.array_builders import RowError, require_rows
from wsabie.io.parsers.text_files import explain_reading_errors
from wsabie.io.parsers.text_tables import LabelCellReader, to_text_cell
from wsabie.io.records import Item, ItemSource, ModalityName
from wsabie.io.regions import RegionCrop
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.rejects import Rejects

IMAGE_COLUMNS = ("image", "img", "picture")
PATH_COLUMNS = ("path", "file_name", "file")
_BATCH = 64
_GROUP_BYTES = 1 << 25
"""Pictures of a row group that is written, about."""


def read_parquet_images(
    table: ParquetTable,
    *,
    labels_from: str = "auto",
    image_column: str | None = None,
    label_column: str | None = None,
    split: str | None = None,
    rejects: Rejects | None = None,
) -> "ParquetImageSource":
    """Read everything but the pixels, so that the source knows its length and what to leave out.

    Parameters
    ----------
    table : ParquetTable
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
    ParquetImageSource

    Raises
    ------
    InputError
        No column of labels, labels of mixed types, or no labelled picture.
    """
    rejects = Rejects() if rejects is None else rejects
    label = None if labels_from == "none" else open_label_column(table, label_column)
    image = image_column or table.first_of(IMAGE_COLUMNS)
    columns = _ImageColumns(label, image, None if image else table.first_of(PATH_COLUMNS), split)
    mask = np.fromiter(_check_rows(table, columns, rejects), bool)
    require_rows(int(mask.sum()), table.path, rejects, "labelled pictures" if label else "pictures")
    return ParquetImageSource(table.path, table, columns, mask)


class _ImageRow(NamedTuple):
    id: str
    path: str | None
    labels: tuple[str, ...]
    group: str | None
    time: str | None
    split: str | None


@dataclass(frozen=True)
class _ImageColumns:
    label: LabelCellReader | None
    image: str | None
    path: str | None
    split: str | None  # the wanted one

    def beside_image(self) -> list[str | None]:
        """Return all columns but the pixels."""
        return [self.label.name if self.label else None, self.path, "id", "group", "time", "split"]

    def rows(self, batch: ParquetBatch, n_rows_before: int) -> Iterator[_ImageRow | RowError]:
        """Return the rows of a batch, or their errors; `n_rows_before` rows come before it."""
        columns = [batch.column(name) for name in self.beside_image()]
        for row, (label, path, ident, *cells) in enumerate(zip(*columns, strict=True)):
            try:
                path = to_text_cell(path)
                name = to_text_cell(ident) or path or str(n_rows_before + row + 1)
                labels: tuple[str, ...] = ()
                if self.label:
                    labels = normalise_labels(self.label.read_labels(label, batch.where(row)))
                yield _ImageRow(name, path, labels, *(to_text_cell(cell) for cell in cells))
            except RowError as error:
                yield error


def _check_rows(table: ParquetTable, columns: _ImageColumns, rejects: Rejects) -> Iterator[bool]:
    """Yield for each row if it is usable; faults of the others go to `rejects`."""
    used_ids: set[str] = set()
    n_rows_before = 0
    names = [name for name in columns.beside_image() if name and table.has(name)]
    for batch in table.batches(names or [columns.image], 1 << 12 if names else _BATCH):
        for number, row in enumerate(columns.rows(batch, n_rows_before)):
            verdict = _find_fault(row, columns, table, used_ids)
            if isinstance(verdict, RowError):
                rejects.add(batch.where(number), verdict.reason, verdict.detail)
            yield verdict is None
        n_rows_before += batch.data.num_rows


def _find_fault(
    row: _ImageRow | RowError, columns: _ImageColumns, table: ParquetTable, used_ids: set[str]
) -> RowError | str | None:
    """Return the fault of a row; "other split" is no fault."""
    if isinstance(row, RowError):
        return row
    if columns.split is not None and row.split != columns.split:
        return "other split"
    if row.id in used_ids:
        return RowError("duplicate id", row.id)
    if columns.label and not row.labels:
        return RowError("picture without labels", row.id)
    if columns.path and find_local_file(_get_folder(table), row.path or "") is None:
        return RowError("labels without a picture", row.path or "")
    used_ids.add(row.id)
    return None


def _get_folder(table: ParquetTable) -> Path:
    return table.path if table.path.is_dir() else table.path.parent


@dataclass(frozen=True)
class ParquetImageSource:
    """Source that holds a few pictures at a time; built by `read_parquet_images`."""

    path: Path
    table: ParquetTable = field(repr=False)
    columns: _ImageColumns = field(repr=False)
    selection: Bool = field(repr=False)  # (n_rows,)

    @property
    def modality(self) -> ModalityName:
        """Pictures."""
        return "pictures"

    def __len__(self) -> int:
        return int(self.selection.sum())

    def __iter__(self) -> Iterator[Item]:
        n_rows_before = 0
        for batch in self.table.batches([self.columns.image, *self.columns.beside_image()], _BATCH):
            mask = self.selection[n_rows_before : n_rows_before + batch.data.num_rows]
            if mask.any():
                contents = batch.column(self.columns.image)
                for row, content, is_selected in zip(
                    self.columns.rows(batch, n_rows_before), contents, mask, strict=True
                ):
                    if is_selected and isinstance(row, _ImageRow):
                        yield Item(row.id, self._content(row.path, content), row.labels, row.group, row.time)
            n_rows_before += len(mask)

    def _content(self, path: str | None, cell: Any) -> Path | bytes:
        """Return bytes, or the file that the cell names; empty bytes (no picture) without either."""
        if isinstance(cell, dict):
            path, cell = cell.get("path"), cell.get("bytes")
        if isinstance(cell, bytes):
            return cell
        return find_local_file(_get_folder(self.table), path or "") or b""


def write_parquet_images(source: ItemSource, path: str | Path, *, progress: Progress = SILENT) -> None:
    """Write encoded pictures for `read_parquet_images`; the file appears whole or not at all.

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
        replace_file(path) as draft,
        ParquetWriter(draft, schema, compression="none") as writer,
    ):
        for group in _iterate_groups(source):
            writer.write_table(pa.Table.from_pylist(group, schema))
            stage.advance(len(group))


def _iterate_groups(source: ItemSource) -> Iterator[list[dict[str, Any]]]:
    """Yield rows of the table in groups of about `_GROUP_BYTES`."""
    group: list[dict[str, Any]] = []
    n_bytes = 0
    for picture in source:
        content = picture.content
        if isinstance(content, RegionCrop):
            raise InputError(
                f"{source.path} holds regions of pictures, which are not copied; describe them first: wsabie features "
                f"images {source.path} --out FILE.parquet"
            )
        if isinstance(content, Path):
            with explain_reading_errors(content), open_input(content) as stream:
                content = stream.read()
        group.append({**picture._asdict(), IMAGE_COLUMNS[0]: content})
        n_bytes += len(content)
        if n_bytes >= _GROUP_BYTES:
            yield group
            group, n_bytes = [], 0
    yield group
