"""Streams of rows from any source, so that no more than a part is ever in memory.

Parquet, sparse text, fastText's text and Mulan's ARFF are streamed. Rows of any other form are read whole
first: those of published collections, which are small, and lists of pairs, whose model is larger than they
are (each id has its own vector). Labels of a part have the numbers in which their names came up; the final
numbers need the whole source.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.core.errors import InputError
from wsabie.core.progress import SILENT, Progress
from wsabie.io.formats.fasttext import FastTextStream
from wsabie.io.formats.mulan import MulanStream
from wsabie.io.formats.parquet_rows import DENSE, SPARSE, ParquetStream, make_feature_collector, read_stream_info
from wsabie.io.formats.parquet_tables import ParquetBatch, ParquetTable, open_parquet_table, read_schema_note
from wsabie.io.formats.svmlight import SvmlightStream
from wsabie.io.parsers.array_builders import RowError, build_feature_matrix
from wsabie.io.parsers.text_files import format_path
from wsabie.io.recognition import detect_source_kind, open_source
from wsabie.io.records import FeatureTable, ModalityName
from wsabie.io.row_streams import InMemoryStream, RowStream, StreamInfo
from wsabie.io.shards.sharded_table import open_shards
from wsabie.storage.column_files import ColumnTable, decode_text_column
from wsabie.storage.rejects import Rejects


def open_row_stream(path: Path, rejects: Rejects, progress: Progress = SILENT) -> RowStream:
    """Open a source of rows in any form.

    Parameters
    ----------
    path : Path
        Whatever `open_source` takes for rows.
    rejects : Rejects
        Where rows that cannot be used are listed.
    progress : Progress
        Told how reading goes on that comes before the rows.

    Raises
    ------
    InputError
        As `open_source`, or pictures, sounds or documents, whose features have to be extracted first.
    """
    stream = _open_stream(detect_source_kind(path), path, rejects, progress)
    if stream is not None:
        return stream
    rows = open_source(path, rejects=rejects, progress=progress)
    if not isinstance(rows, FeatureTable):
        raise InputError(
            f"{format_path(path)} holds {rows.modality}, and shards hold rows; describe them first with wsabie "
            "features, and give the file that it writes"
        )
    return InMemoryStream(path, rows)


def _open_stream(
    kind: str, path: Path, rejects: Rejects, progress: Progress = SILENT, *, labelled: bool = True
) -> RowStream | None:
    if kind == "svmlight":
        return SvmlightStream(path, rejects, labelled=labelled)
    if kind == "fasttext":
        return FastTextStream(path, rejects, progress)
    if kind == "arff":
        return MulanStream(path, rejects)
    if kind == "parquet":
        table = open_parquet_table(path)
        if table.has(*SPARSE) or table.has(DENSE):
            return ParquetStream(table, rejects, labelled=labelled)
    return None


def open_unlabelled_rows(
    path: Path, rejects: Rejects, n_features: int | None = None, modality: ModalityName | None = None
) -> Iterator[FeatureTable] | None:
    """Yield the rows of a source without their labels, a part at a time; None for other data than rows.

    No more than a part is in memory, of shards and of sources that `open_row_stream` streams, so that an id
    of Parquet or ARFF may come twice.

    Parameters
    ----------
    path : Path
    rejects : Rejects
        Where rows that cannot be used are listed.
    n_features : int or None
        The width of rows that do not state theirs.
    modality : {"pictures", "sounds", "documents"} or None
        What else is wanted; see `open_source`, as which this takes lines of text without labels.

    Raises
    ------
    InputError
        As `open_source`; of rows that are read, when they are.
    """
    kind = detect_source_kind(path, plain_text=True, modality=modality)
    if kind == "shards":
        return (replace(rows, Y=rows.Y[:, :0], label_names=[]) for rows in open_shards(path).blocks())
    stream = _open_stream(kind, path, rejects, labelled=False)
    if stream is None:
        return None
    open_width = stream.info.n_features is None
    info = replace(stream.info, n_features=stream.info.n_features or n_features)
    return (replace(_convert_to_table(part.columns, info), open_width=open_width) for part in stream.parts())


def open_unlabelled_table(data: Any, place: Path, rejects: Rejects, n_features: int) -> FeatureTable | None:
    """Return the rows of an Arrow table without their labels; None for other data than rows.

    Ids are the numbers of rows, from 0.

    Parameters
    ----------
    data : pyarrow.Table
    place : Path
        Names the table in sentences.
    rejects : Rejects
        Where rows that cannot be used are listed, by their ids: those without features, or with one out of range, too.
    n_features : int
        The width where the table does not state it.

    Raises
    ------
    InputError
        A column that is no list of numbers, or damaged notes.
    """
    table = ParquetTable(place, [], data.schema, [], {"n_features": n_features} | read_schema_note(data.schema, place))
    if not (table.has(*SPARSE) or table.has(DENSE)):
        return None
    info, mask = read_stream_info(table), np.ones(data.num_rows, bool)
    features, first = make_feature_collector(table, info.counts, None, by_themselves=True), 0
    for part in data.to_batches():
        part_mask = mask[first : first + part.num_rows]
        faults = features.check(ParquetBatch(place, first + 1, part))
        for name in features.columns:
            faults |= dict.fromkeys(np.flatnonzero(part.column(name).is_null()).tolist(), RowError("empty"))
        for row, error in faults.items():
            part_mask[row] = False
            rejects.add(str(first + row), error.reason, error.detail)
        features.keep(part_mask)
        first += part.num_rows
    return _build_unlabelled_table(features.finish(), [str(row) for row in np.flatnonzero(mask)], info)


def _convert_to_table(columns: ColumnTable, info: StreamInfo) -> FeatureTable:
    X: Any
    if "features" in columns.numbers:
        X = np.asarray(columns.numbers["features"], np.float32)
    else:
        x = columns.lists["x"]
        indices, values = x.parts["indices"], x.parts["values"]
        width = max(info.n_features or 0, int(indices.max(initial=-1)) + 1)
        X = build_feature_matrix(np.asarray(x.starts, np.int64), indices, values, width)
    ids = (
        decode_text_column(columns.lists["id"])
        if "id" in columns.lists
        else list(map(str, columns.numbers["id"].tolist()))
    )
    return _build_unlabelled_table(X, ids, info)


def _build_unlabelled_table(X: Any, ids: list[str], info: StreamInfo) -> FeatureTable:
    from scipy.sparse import csr_matrix

    nothing = csr_matrix((len(ids), 0), dtype=np.int8)
    return FeatureTable(X, nothing, [], ids, None, None, info.counts, info.feature_names, info.dictionary, info.augment)
