"""Labels for tables that come batch by batch: what Ray Data, Spark or Hugging Face datasets map over their rows."""

from functools import cached_property
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError, ModelFolderError
from wsabie.base.machine import one_blas_thread
from wsabie.base.validation import require, whole_number
from wsabie.models.annotator import KIND, Annotator
from wsabie.models.kinds import KINDS
from wsabie.models.registry import load
from wsabie.sources.documents import TEXT_COLUMN
from wsabie.sources.parquet_file import Table
from wsabie.sources.parquet_pictures import IMAGE_COLUMNS
from wsabie.sources.records import Item, ItemList, Rows, Things
from wsabie.sources.row_stream import unlabelled_table
from wsabie.storage.folder import folder_kind
from wsabie.storage.rejects import Rejects

_ADDED = ("found_labels", "found_scores", "rejected")
_COLUMNS: dict[Things, tuple[str, ...]] = {
    "pictures": IMAGE_COLUMNS,
    "sounds": ("audio", "sound"),
    "documents": (TEXT_COLUMN,),
}
_TEXTS = {"string", "large_string", "string_view", "null"}
_BYTES = {"binary", "large_binary", "binary_view", "null"}
_BATCH = Path("the batch")


class BatchAnnotator:
    """The best labels of the rows of Arrow tables: an object to be called with one table or batch after another.

    Engines that share work out by batches (Ray Data's `map_batches`, Spark's `mapInArrow`, `map` of Hugging Face
    datasets) need no more than that. A model is opened with the first batch, so that the object travels as its
    arguments; every row that can be used is ranked as `wsabie annotate` ranks it, whatever stands beside it. While a
    batch is worked on, linear algebra of the process runs on one thread.

    Parameters
    ----------
    model : str or Path
        A model folder, which every worker can read.
    k : int
        Labels of a row; all where there are fewer.
    candidates : list of str or None
        Only these labels.
    threads : int
        For ranking; 1 where an engine gives each worker a core.

    Raises
    ------
    ModelFolderError
        The folder is missing, damaged, or holds no model of labels.
    InputError
        `k` or `threads` is no whole number above 0.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from wsabie.models.wsabie import Wsabie
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Wsabie(dim=4, threads=1, epochs=20).fit(np.eye(2), ["red", "green"]).save(f"{folder}/model")
    ...     annotate = BatchAnnotator(f"{folder}/model", k=1)
    ...     found = annotate(pa.table({"id": [7, 8, 9], "features": [[1.0, 0.0], [0.0, 1.0], [float("nan"), 0.0]]}))
    >>> found.column_names
    ['id', 'features', 'found_labels', 'found_scores', 'rejected']
    >>> found["found_labels"].to_pylist(), found["rejected"].to_pylist()
    ([['red'], ['green'], None], [None, None, 'value that is not finite'])
    """

    def __init__(
        self, model: str | Path, k: int = 10, *, candidates: list[str] | None = None, threads: int = 1
    ) -> None:
        self.folder, self.k, self.candidates = Path(model).absolute(), whole_number(k, "k"), candidates
        self.threads = whole_number(threads, "threads")
        kind = folder_kind(self.folder)
        if kind not in (KIND, *KINDS):
            held = repr(kind) if kind else "no model"
            raise ModelFolderError(
                f"{self.folder} holds {held}, and batches want a model of labels; give the folder that "
                "`wsabie train --model` wrote"
            )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_annotator"}

    def __call__(self, table: Any) -> Any:
        """The table with three columns more.

        Parameters
        ----------
        table : pyarrow.Table or pyarrow.RecordBatch
            Rows as the model learnt them: `features` (lists of floats), or `indices` and `values`; for a model of
            documents `text`; for one of pictures `image`, `img` or `picture`, of sounds `audio` or `sound`: a path, the
            bytes of a file, or a struct of `bytes` or `path`, as Hugging Face datasets have it.

        Returns
        -------
        pyarrow.Table or pyarrow.RecordBatch, as given
            Beside the columns of the table `found_labels` (list of string) and `found_scores` (list of float), best
            first, and `rejected` (string): why a row has no labels, null for all others.

        Raises
        ------
        InputError
            It is no Arrow table, there is no column that the model can use, one of the three is there already, or a
            note of the table does not fit the model.
        UnknownLabelError
            A candidate that the model does not know.
        """
        import pyarrow as pa

        require(
            isinstance(table, (pa.Table, pa.RecordBatch)),
            f"the batch is {type(table).__name__}; give a pyarrow.Table or RecordBatch (pandas: pa.Table.from_pandas, "
            'Polars: to_arrow, Hugging Face datasets: with_format("arrow"), Ray: batch_format="pyarrow")',
        )
        for name in _ADDED:
            require(name not in table.schema.names, f"the batch has a column {name!r} already; rename or drop it")
        annotator, rejects = self._annotator, Rejects(most=table.num_rows)
        with one_blas_thread():
            whole = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
            rows = annotator.rows(self._source(whole, rejects), rejects=rejects).rows
            best = annotator.model.annotate(rows.X, self.k, candidates=self.candidates) if len(rows) else []
        found = dict(zip(rows.ids, best, strict=True))
        reasons = {row: reason for row, reason, _ in rejects.listed}
        ids = [str(row) for row in range(table.num_rows)]
        labels = [[label for label, _ in found[row]] if row in found else None for row in ids]
        scores = [[score for _, score in found[row]] if row in found else None for row in ids]
        columns = (
            pa.array(labels, pa.list_(pa.string())),
            pa.array(scores, pa.list_(pa.float32())),
            pa.array([reasons.get(row) for row in ids], pa.string()),
        )
        for name, column in zip(_ADDED, columns, strict=True):
            table = table.append_column(name, column)
        return table

    @cached_property
    def _annotator(self) -> Annotator:
        found = load(self.folder)
        found = found if isinstance(found, Annotator) else Annotator(found)
        found.model.threads = self.threads
        return found

    def _source(self, table: Any, rejects: Rejects) -> Rows | ItemList:
        """What the model can use of a table; ids are the numbers of rows."""
        terms = self._annotator.terms
        if terms is None:
            rows = unlabelled_table(table, _BATCH, rejects, self._annotator.model.n_features_in_)
            if rows is None:
                raise self._unusable(table, "a column features, or indices and values")
            return rows
        names = _COLUMNS[terms.things]
        name = next((name for name in names if name in table.column_names), None)
        if name is None or not _holds(table.schema.field(name).type, terms.things):
            form = "texts" if terms.things == "documents" else "bytes of files, or paths"
            raise self._unusable(table, f"{terms.things} in a column {' or '.join(names)} ({form})", name)
        items = []
        for row, cell in enumerate(table[name].to_pylist()):
            if content := _content(cell, terms.things):
                items.append(Item(str(row), content, ()))
            else:
                rejects.add(str(row), "empty")
        return ItemList(_BATCH, items, terms.things)

    def _unusable(self, table: Any, wanted: str, name: str | None = None) -> InputError:
        held = f"{name!r} of type {str(table.schema.field(name).type)[:60]}" if name else ""
        held = held or Table(_BATCH, [], table.schema, []).listed_columns()
        return InputError(f"the model in {self.folder} wants {wanted}; the batch has {held}")


def _holds(kind: Any, things: Things) -> bool:
    """Whether cells of an Arrow type can be such things."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_struct(kind) and things != "documents":
        parts = {part.name: str(part.type) for part in kind}
        return parts.get("bytes") in _BYTES or parts.get("path") in _TEXTS
    return str(kind) in _TEXTS | _BYTES


def _content(cell: Any, things: Things) -> Path | bytes | None:
    """What a cell holds: a file, or its bytes; of documents the bytes of a text."""
    if isinstance(cell, dict):
        cell = cell.get("bytes") or cell.get("path")
    if isinstance(cell, str):
        return cell.encode() if things == "documents" else Path(cell) if cell else None
    return cell if isinstance(cell, bytes) else None
