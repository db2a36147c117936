"""Parquet, or a folder of its parts: rows of features, pictures, or documents, by the columns."""

import re
from pathlib import Path, PurePosixPath
from typing import Any

from wsabie.core.errors import InputError
from wsabie.io.file_matching import find_files
from wsabie.io.formats.documents import has_text_column, read_parquet_documents
from wsabie.io.formats.parquet_images import IMAGE_COLUMNS, PATH_COLUMNS, read_parquet_images
from wsabie.io.formats.parquet_rows import DENSE, SPARSE, ParquetStream
from wsabie.io.formats.parquet_tables import ParquetTable, open_parquet_table
from wsabie.io.modalities import PICTURES
from wsabie.io.parsers.label_cells import LABEL_COLUMNS
from wsabie.io.records import ReadOptions, Source
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.folder_labels import SPLITS


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
        raise InputError(
            f"{table.path} holds the sides of a split ({first!r} and {second!r}); give one file, such as "
            f"{table.files[0]}"
        )


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
