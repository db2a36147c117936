"""Pictures in Parquet, streamed: encoded bytes in a column, or paths of files beside the table.

`image` is binary or Hugging Face's struct of `bytes` and `path`; without it `path` or `file_name` names files
relative to the table's folder. Labels are a list of texts, a text, or a number (with ClassLabel names
where the schema notes them); `id`, `group`, `split` and `time` are used when they are there. Without an id
the path is one, or the number of the row, counted from 1 over all shards. A row is a picture: unlike in
`metadata`, its labels all stand in its cell, and a second row with its id is rejected.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from wsabie.core.arrays import Bool
from wsabie.core.errors import InputError
from wsabie.core.input_files import open_input
from wsabie.core.json_conversion import JsonObject
from wsabie.core.progress import SILENT, Progress
from wsabie.io.file_matching import find_local_file
from wsabie.io.formats.media_folder import normalise_labels
from wsabie.io.formats.parquet_tables import ParquetTable, open_label_column
from wsabie.io.parsers.array_builders import require_rows
from wsabie.io.parsers.label_cells import LabelCellReader
from wsabie.io.parsers.text_files import explain_reading_errors
from wsabie.io.parsers.text_tables import to_text_cell
from wsabie.io.records import Item, ItemSource, ModalityName, ReadOptions
from wsabie.io.regions import RegionCrop
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.rejects import Rejects, RowError

IMAGE_COLUMNS = ("image", "img", "picture")
PATH_COLUMNS = ("path", "file_name", "file")
_BATCH = 64
_GROUP_BYTES = 1 << 25
"""Pictures of a row group that is written, about."""


def read_parquet_images(
    table: ParquetTable, options: ReadOptions, image_column: str | None = None
) -> "ParquetImageSource":
    """Read everything but the pixels, so that the source knows its length and what to leave out.

    Parameters
    ----------
    table : ParquetTable
    options : ReadOptions
        Rejected are rows without labels, duplicate ids, and paths that are missing or lead out of the folder.
    image_column : str or None
        A column of pictures with another name than usual.

    Returns
    -------
    ParquetImageSource

    Raises
    ------
    InputError
        No column of labels, labels of mixed types, or no labelled picture.
    """
    label = open_label_column(table, options.label_column) if options.has_labels else None
    image = image_column or table.find_column(IMAGE_COLUMNS)
    paths = None if image else table.find_column(PATH_COLUMNS)
    source = ParquetImageSource(table.path, table, label, image, paths, np.zeros(table.n_rows, bool))
    columns, used_ids = [name for name in source.columns if name and table.has_columns(name)], set[str]()
    rows = source.iterate_rows(columns or [image], 1 << 12 if columns else _BATCH, options.rejects)
    for number, where, item, file_name, side in rows:
        with options.rejects.catch(where):
            if options.split is not None and side != options.split:
                continue
            if item.id in used_ids:
                raise RowError("duplicate id", item.id)
            if label and not item.labels:
                raise RowError("picture without labels", item.id)
            if paths and find_local_file(source.folder, file_name) is None:
                raise RowError("labels without a picture", file_name)
            used_ids.add(item.id)
            source.selection[number] = True
            source.label_counts.update(item.labels)
    require_rows(len(source), table.path, options.rejects, "labelled pictures" if label else "pictures")
    return source


@dataclass(frozen=True)
class ParquetImageSource:
    """Source that holds a few pictures at a time; built by `read_parquet_images`.

    Attributes
    ----------
    label : LabelCellReader or None
    image, paths : str or None
        Columns of encoded pictures, and of their files.
    selection : (n_rows,) bool
        Rows that can be used.
    label_counts : Counter of str
        Such rows of each label.
    """

    path: Path
    table: ParquetTable = field(repr=False)
    label: LabelCellReader | None = field(repr=False)
    image: str | None
    paths: str | None
    selection: Bool = field(repr=False)
    label_counts: Counter[str] = field(default_factory=Counter, repr=False)
    modality: ModalityName = "pictures"

    @property
    def folder(self) -> Path:
        """Return the folder in which files are looked for."""
        return self.path if self.path.is_dir() else self.path.parent

    @property
    def columns(self) -> list[str | None]:
        """Return all columns but the pixels."""
        return [*(self.label.columns if self.label else []), self.paths, "id", "group", "time", "split"]

    def __len__(self) -> int:
        return int(self.selection.sum())

    def __iter__(self) -> Iterator[Item]:
        rows = self.iterate_rows([self.image, *self.columns], _BATCH, Rejects(most=0), self.selection)
        for number, _, item, file_name, _ in rows:
            if self.selection[number]:
                yield item._replace(content=self._locate_content(file_name, item.content))

    def iterate_rows(
        self, columns: Sequence[str | None], size: int, rejects: Rejects, selection: Bool | None = None
    ) -> Iterator[tuple[int, str, Item, str, str | None]]:
        """Yield (number from 0, where, item with its cell as content, file name, split) of rows of batches.

        They are those that have a row of the selection.
        """
        end = 0
        for batch in self.table.iterate_batches(columns, size):
            start, end = end, end + batch.data.num_rows
            if selection is not None and not selection[start:end].any():
                continue
            fact_columns = (batch.get_column(name) for name in (self.image, *self.columns[-5:]))
            cells = zip(batch.get_label_cells(self.label), *fact_columns, strict=True)
            for number, (label, content, file_name, ident, *words) in enumerate(cells, start):
                where = batch.format_position(number - start)
                with rejects.catch(where):
                    file_name = to_text_cell(file_name)
                    name = to_text_cell(ident) or file_name or str(number + 1)
                    labels = normalise_labels(self.label.read_labels(label, where)) if self.label else ()
                    group, time, side = map(to_text_cell, words)
                    yield number, where, Item(name, content, labels, group, time), file_name or "", side

    def _locate_content(self, path: str, cell: object) -> Path | bytes:
        """Return bytes, or the file that the cell names; empty bytes (no picture) without either."""
        if isinstance(cell, dict):
            path, cell = cell.get("path") or "", cell.get("bytes")
        return cell if isinstance(cell, bytes) else find_local_file(self.folder, path) or b""


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


def _iterate_groups(source: ItemSource) -> Iterator[list[JsonObject]]:
    """Yield rows of the table in groups of about `_GROUP_BYTES`."""
    group: list[JsonObject] = []
    n_bytes = 0
    for picture in source:
        content = picture.content
        if isinstance(content, RegionCrop):
            raise InputError(
                f"{source.path} holds regions of pictures, which are not copied; extract features first: wsabie "
                f"features images {source.path} --out FILE.parquet"
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
