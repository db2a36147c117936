"""Parquet, or a folder of its parts: rows of features, pictures, or documents, by the columns.

Pictures are streamed: encoded bytes in a column, or paths of files beside the table.

`image` is binary or Hugging Face's struct of `bytes` and `path`; without it `path` or `file_name` names files
relative to the table's folder. Labels are a list of texts, a text, or a number (with ClassLabel names
where the schema notes them); `id`, `group`, `split` and `time` are used when they are there. Without an id
the path is one, or the number of the row, counted from 1 over all shards. A row is a picture: unlike in
`metadata`, its labels all stand in its cell, and a second row with its id is rejected.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from wsabie.core.errors import InputError
from wsabie.core.execution import SILENT, Progress
from wsabie.core.input_files import open_input
from wsabie.core.json_conversion import JsonObject
from wsabie.io.file_discovery import find_files
from wsabie.io.file_matching import find_listed_files, find_local_file
from wsabie.io.formats.documents import has_text_column, read_parquet_documents
from wsabie.io.formats.media_folder import normalise_labels
from wsabie.io.formats.parquet_rows import DENSE, SPARSE, ParquetStream
from wsabie.io.formats.parquet_tables import ParquetTable, is_text_type, open_label_column, open_parquet_table
from wsabie.io.modalities import PICTURES
from wsabie.io.parsers.label_cells import LABEL_COLUMNS
from wsabie.io.parsers.text_files import explain_input_errors
from wsabie.io.parsers.text_tables import to_text_cell
from wsabie.io.records import Item, ItemSource, ItemStream, ReadOptions, Source, scan_items
from wsabie.io.regions import RegionCrop
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.rejects import Rejects, RowError
from wsabie.vocabulary.folder_labels import SPLITS

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
    is_path = image is not None and is_text_type(table.schema.field(image).type)
    paths = image if is_path else None if image else table.find_column(PATH_COLUMNS)
    folder = table.path if table.path.is_dir() else table.path.parent
    names = (cell for cell in table.iterate_cells(paths) if isinstance(cell, str)) if paths else ()
    files = find_listed_files(folder, names, PICTURES) if paths else {}
    pixels = None if is_path else image
    facts = (paths, "id", "group", "time", "split")
    columns = [name for name in (*(label.columns if label else ()), *facts) if name and table.has_columns(name)]

    def read_items(rejects: Rejects, with_content: bool = True) -> Iterator[tuple[str, Item]]:
        has_pixels, number = with_content or not columns, 0
        names, size = ([pixels, *columns], _BATCH) if has_pixels else (columns, 1 << 12)
        for batch in table.iterate_batches(names, size):
            cells = zip(batch.get_label_cells(label), *map(batch.get_column, (pixels, *facts)), strict=True)
            for row, (label_cell, content, file_cell, ident, *words) in enumerate(cells):
                number += 1
                with rejects.catch(where := batch.format_position(row)):
                    file_name = to_text_cell(file_cell) or ""
                    name = to_text_cell(ident) or file_name or str(number)
                    labels = normalise_labels(label.read_labels(label_cell, where)) if label else ()
                    group, time, side = map(to_text_cell, words)
                    if options.split is not None and side != options.split:
                        continue
                    if label and not labels:
                        raise RowError("picture without labels", name)
                    file = files.get(file_name) or find_local_file(folder, file_name) if paths else None
                    if paths and file is None:
                        raise RowError("labels without a picture", file_name)
                    content = file or (_locate_content(folder, content) if with_content else b"")
                    yield where, Item(name, content, labels, group, time)

    unit = "labelled pictures" if label else "pictures"
    source = scan_items(table.path, partial(read_items, with_content=False), options.rejects, "pictures", unit)
    return replace(source, read_items=read_items)


def _locate_content(folder: Path, cell: object) -> Path | bytes:
    """Return bytes, or the file that the cell names; empty bytes (no picture) without either."""
    path, cell = (cell.get("path") or "", cell.get("bytes")) if isinstance(cell, dict) else ("", cell)
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
                f"{source.path} holds regions of pictures, which are not copied; extract features first: "
                f"`features.images({str(source.path)!r}, out='FILE.parquet')`"
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


def read_parquet(
    path: Path, *, image_column: str | None = None, counts: bool = False, n_features: int | None = None, **options: Any
) -> Source:
    """Read Parquet by its columns; the other options are those of `ReadOptions`.

    Raises
    ------
    InputError
        No such column, nothing usable, the sides of a split, or pictures beside it that it does not list.
    """
    table, reading = open_parquet_table(path), ReadOptions(**options)
    _refuse_splits(table)
    if path.is_dir() and image_column is None:
        _check_neighbouring_pictures(table, reading.label_column, reading.rejects)
    for column in (image_column, reading.label_column, None if reading.split is None else "split"):
        if column is not None and not table.has_columns(column):
            raise InputError(f"{path} has no column {column!r}; it has {table.format_columns()}")
    if image_column is None and (table.has_columns(*SPARSE) or table.has_columns(DENSE)):
        return ParquetStream(table, reading, counts=counts, unique=True).read_all(n_features)
    if image_column is not None or table.find_column((*IMAGE_COLUMNS, *PATH_COLUMNS)):
        return read_parquet_images(table, reading, image_column)
    if has_text_column(table):
        return read_parquet_documents(table, reading)
    raise InputError(
        f"{path} has neither pictures ({', '.join((*IMAGE_COLUMNS, *PATH_COLUMNS))}) nor features "
        f"({' with '.join(SPARSE)}, or {DENSE}) nor texts (text); it has {table.format_columns()}"
    )


def _refuse_splits(table: ParquetTable) -> None:
    """Refuse training and test rows side by side: they are not the shards of one table."""
    sides = {re.split(r"[-_.]", file.name.lower())[0] for file in table.files} & SPLITS
    if len(sides) > 1:
        first, second = sorted(sides)[:2]
        problem = f"{table.path} holds the sides of a split ({first!r} and {second!r})"
        raise InputError(f"{problem}; give one file, such as {table.files[0]}")


def _check_neighbouring_pictures(table: ParquetTable, label_column: str | None, rejects: Rejects) -> None:
    """Refuse pictures in a folder of Parquet, unless the table lists them as a metadata file does."""
    picture_rejects = Rejects()
    pictures = find_files(table.path, picture_rejects, PICTURES).files
    if not pictures:
        return
    paths = table.find_column(PATH_COLUMNS)
    has_other_content = table.has_columns(*SPARSE) or table.find_column((DENSE, *IMAGE_COLUMNS))
    if paths is None or has_other_content or not table.find_column([label_column or "", *LABEL_COLUMNS]):
        raise InputError(
            f"{table.path} holds both Parquet ({table.files[0].name}) and pictures "
            f"({next(iter(pictures))}), and nothing says which counts; give the Parquet file itself, or move one of "
            "the two to another folder"
        )
    listed_names = {PurePosixPath(cell).as_posix() for cell in table.iterate_cells(paths) if isinstance(cell, str)}
    for where, reason, detail in picture_rejects.listed:
        rejects.add(where, reason, detail)
    for name in pictures:
        if name not in listed_names:
            rejects.add(name, PICTURES.unlabelled_reason, "no row in the table")
