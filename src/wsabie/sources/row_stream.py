"""Rows of a source a part after the other, so that no more than a part is ever in memory.

Parquet, sparse text, fastText's text and Mulan's ARFF are read so. Rows of any other form are read whole first: of
published collections, which are small, and of lists of pairs, of which each id has a vector of its own, so that their
model is larger than they are. A part's labels have the numbers in which their names came up; what they are in the end
the whole source tells.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.errors import InputError
from wsabie.base.progress import SILENT, Progress
from wsabie.sources.build import BadRow, sparse_features
from wsabie.sources.fasttext import FastTextStream
from wsabie.sources.mulan import MulanStream
from wsabie.sources.open import kind_of, open_source
from wsabie.sources.parquet_features import DENSE, SPARSE, feature_columns
from wsabie.sources.parquet_file import Batch, Table, note_of, open_table
from wsabie.sources.parquet_stream import ParquetStream, about_table
from wsabie.sources.records import Rows, Things
from wsabie.sources.sharded import open_shards
from wsabie.sources.streamed import About, RowStream, WholeStream
from wsabie.sources.svmlight import SvmlightStream
from wsabie.sources.text import shown
from wsabie.storage.columns import Columns, words_of
from wsabie.storage.rejects import Rejects


def open_stream(path: Path, rejects: Rejects, progress: Progress = SILENT) -> RowStream:
    """Open a source of rows, whatever form it has.

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
        As `open_source`, or pictures, sounds or documents, which have to be described first.
    """
    streamed = _streamed(kind_of(path), path, rejects, progress)
    if streamed is not None:
        return streamed
    rows = open_source(path, rejects=rejects, progress=progress)
    if not isinstance(rows, Rows):
        raise InputError(
            f"{shown(path)} holds {rows.things}, and shards hold rows; describe them first with wsabie features, and "
            "give the file that it writes"
        )
    return WholeStream(path, rows)


def _streamed(
    kind: str, path: Path, rejects: Rejects, progress: Progress = SILENT, *, labelled: bool = True
) -> RowStream | None:
    if kind == "svmlight":
        return SvmlightStream(path, rejects, labelled=labelled)
    if kind == "fasttext":
        return FastTextStream(path, rejects, progress)
    if kind == "arff":
        return MulanStream(path, rejects)
    if kind == "parquet":
        table = open_table(path)
        if table.has(*SPARSE) or table.has(DENSE):
            return ParquetStream(table, rejects, labelled=labelled)
    return None


def unlabelled_rows(
    path: Path, rejects: Rejects, n_features: int | None = None, things: Things | None = None
) -> Iterator[Rows] | None:
    """The rows of a source without their labels, some at a time; None where it holds other things than rows.

    Of shards and of what `open_stream` reads by parts no more are in memory, so that an id of Parquet or ARFF may come
    twice.

    Parameters
    ----------
    path : Path
    rejects : Rejects
        Where rows that cannot be used are listed.
    n_features : int or None
        The width of rows that do not tell theirs.
    things : {"pictures", "sounds", "documents"} or None
        What else is wanted; see `open_source`, as which this takes lines of text without labels.

    Raises
    ------
    InputError
        As `open_source`; of rows that are read, when they are.
    """
    kind = kind_of(path, plain_text=True, things=things)
    if kind == "shards":
        return (replace(rows, Y=rows.Y[:, :0], label_names=[]) for rows in open_shards(path).blocks())
    stream = _streamed(kind, path, rejects, labelled=False)
    if stream is None:
        return None
    open_width = stream.about.n_features is None
    about = replace(stream.about, n_features=stream.about.n_features or n_features)
    return (replace(_unlabelled(part.columns, about), open_width=open_width) for part in stream.parts())


def unlabelled_table(data: Any, place: Path, rejects: Rejects, n_features: int) -> Rows | None:
    """The rows of an Arrow table in memory without their labels; None where it holds other things than rows.

    Ids are the numbers of rows, from 0.

    Parameters
    ----------
    data : pyarrow.Table
    place : Path
        Names the table in sentences.
    rejects : Rejects
        Where rows that cannot be used are listed, by their ids: those without features, or with one out of range, too.
    n_features : int
        The width where the table does not tell it.

    Raises
    ------
    InputError
        A column that is no list of numbers, or damaged notes.
    """
    table = Table(place, [], data.schema, [], {"n_features": n_features} | note_of(data.schema, place))
    if not (table.has(*SPARSE) or table.has(DENSE)):
        return None
    about, kept = about_table(table), np.ones(data.num_rows, bool)
    features, first = feature_columns(table, about.counts, None, by_themselves=True), 0
    for part in data.to_batches():
        good = kept[first : first + part.num_rows]
        faults = features.check(Batch(place, first + 1, part))
        for name in features.columns:
            faults |= dict.fromkeys(np.flatnonzero(part.column(name).is_null()).tolist(), BadRow("empty"))
        for row, bad in faults.items():
            good[row] = False
            rejects.add(str(first + row), bad.reason, bad.detail)
        features.keep(good)
        first += part.num_rows
    return _bare(features.finish(), [str(row) for row in np.flatnonzero(kept)], about)


def _unlabelled(columns: Columns, about: About) -> Rows:
    X: Any
    if "features" in columns.numbers:
        X = np.asarray(columns.numbers["features"], np.float32)
    else:
        x = columns.lists["x"]
        indices, values = x.parts["indices"], x.parts["values"]
        width = max(about.n_features or 0, int(indices.max(initial=-1)) + 1)
        X = sparse_features(np.asarray(x.starts, np.int64), indices, values, width)
    ids = words_of(columns.lists["id"]) if "id" in columns.lists else list(map(str, columns.numbers["id"].tolist()))
    return _bare(X, ids, about)


def _bare(X: Any, ids: list[str], about: About) -> Rows:
    from scipy.sparse import csr_matrix

    nothing = csr_matrix((len(ids), 0), dtype=np.int8)
    return Rows(X, nothing, [], ids, None, None, about.counts, about.feature_names, about.dictionary, about.augment)
