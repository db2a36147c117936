"""Pictures in Parquet, streamed: encoded bytes in a column, or paths of files beside the table.

`image` is binary or Hugging Face's struct of `bytes` and `path`; without it `path` or `file_name` names files
relative to the table's folder. Labels are a list of texts, a text, or a number (with ClassLabel names
where the schema notes them); `id`, `group`, `split` and `time` are used when they are there. Without an id
the path is one, or the number of the row, counted from 1 over all shards. A row is a picture: unlike in
`metadata`, its labels all stand in its cell, and a second row with its id is rejected.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from wsabie.core.errors import InputError
from wsabie.core.execution import SILENT, Progress
from wsabie.core.input_files import open_input
from wsabie.core.json_conversion import JsonObject
from wsabie.io.file_matching import find_local_file
from wsabie.io.formats.media_folder import normalise_labels
from wsabie.io.formats.parquet_tables import ParquetTable, open_label_column
from wsabie.io.parsers.label_cells import LabelCellReader
from wsabie.io.parsers.text_files import explain_input_errors
from wsabie.io.parsers.text_tables import to_text_cell
from wsabie.io.records import Item, ItemSource, ItemStream, ReadOptions, scan_items
from wsabie.io.regions import RegionCrop
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.rejects import Rejects, RowError

IMAGE_COLUMNS = ("image", "img", "picture")
PATH_COLUMNS = ("path", "file_name", "file")
_BATCH = 64
_GROUP_BYTES = 1 << 25
"""Pictures of a row group that is written, about."""


def read_parquet_images(table: ParquetTable, options: ReadOptions, image_column: str | None = None) -> ItemStream:
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
    ItemStream
        It holds a few pictures at a time.

    Raises
    ------
    InputError
        No column of labels, labels of mixed types, or no labelled picture.
    """
    label = open_label_column(table, options.label_column) if options.has_labels else None
    image = image_column or table.find_column(IMAGE_COLUMNS)
    read_items = partial(_iterate_pictures, table, label, image, options.split, set())
    unit = "labelled pictures" if label else "pictures"
    source = scan_items(table.path, partial(read_items, with_content=False), options.rejects, "pictures", unit)
    return replace(source, read_items=read_items)


def _iterate_pictures(
    table: ParquetTable,
    label: LabelCellReader | None,
    image: str | None,
    split: str | None,
    missing: set[int],
    rejects: Rejects,
    *,
    with_content: bool = True,
) -> Iterator[tuple[str, Item]]:
    """Yield (where, picture) of usable rows.

    Without content no pixels are read, and rows whose files do not exist go to `missing`: they stay left out.
    """
    folder = table.path if table.path.is_dir() else table.path.parent
    paths = None if image else table.find_column(PATH_COLUMNS)
    facts = (paths, "id", "group", "time", "split")
    columns = [name for name in (*(label.columns if label else ()), *facts) if name and table.has_columns(name)]
    has_pixels = with_content or not columns
    number = 0
    for batch in table.iterate_batches([image, *columns] if has_pixels else columns, _BATCH if has_pixels else 1 << 12):
        cells = zip(batch.get_label_cells(label), *map(batch.get_column, (image, *facts)), strict=True)
        for row, (label_cell, content, file_name, ident, *words) in enumerate(cells):
            number += 1
            with rejects.catch(where := batch.format_position(row)):
                file_name = to_text_cell(file_name)
                name = to_text_cell(ident) or file_name or str(number)
                labels = normalise_labels(label.read_labels(label_cell, where)) if label else ()
                group, time, side = map(to_text_cell, words)
                if split is not None and side != split:
                    continue
                if label and not labels:
                    raise RowError("picture without labels", name)
                if paths and not with_content and find_local_file(folder, file_name or "") is None:
                    missing.add(number)
                if number in missing:
                    raise RowError("labels without a picture", file_name or "")
                content = _locate_content(folder, file_name or "", content) if with_content else b""
                yield where, Item(name, content, labels, group, time)


def _locate_content(folder: Path, path: str, cell: object) -> Path | bytes:
    """Return bytes, or the file that the cell names; empty bytes (no picture) without either."""
    if isinstance(cell, dict):
        path, cell = cell.get("path") or "", cell.get("bytes")
    return cell if isinstance(cell, bytes) else find_local_file(folder, path) or b""


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
            with explain_input_errors(content), open_input(content) as stream:
                content = stream.read()
        group.append({**picture._asdict(), IMAGE_COLUMNS[0]: content})
        n_bytes += len(content)
        if n_bytes >= _GROUP_BYTES:
            yield group
            group, n_bytes = [], 0
    yield group
