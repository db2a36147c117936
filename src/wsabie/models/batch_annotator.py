"""Annotation of Arrow tables in batches, for Ray Data, Spark and Hugging Face datasets."""

from functools import cached_property
from pathlib import Path
from typing import Any

from wsabie.core.errors import InputError, ModelFolderError, require
from wsabie.core.machine import limit_blas_threads
from wsabie.core.validation import check_positive_integer
from wsabie.io.formats.documents import TEXT_COLUMN
from wsabie.io.formats.parquet import IMAGE_COLUMNS
from wsabie.io.formats.parquet_rows import open_unlabelled_table
from wsabie.io.formats.parquet_tables import ParquetTable
from wsabie.io.records import FeatureTable, Item, ItemList, ModalityName
from wsabie.models.annotators import KIND, Annotator
from wsabie.models.loader import KINDS, load
from wsabie.storage.model_folder import read_folder_kind
from wsabie.storage.rejects import Rejects

_ADDED = ("predicted_labels", "predicted_scores", "rejected")
_COLUMNS: dict[ModalityName, tuple[str, ...]] = {
    "pictures": IMAGE_COLUMNS,
    "sounds": ("audio", "sound"),
    "documents": (TEXT_COLUMN,),
}
_TEXTS = {"string", "large_string", "string_view", "null"}
_BYTES = {"binary", "large_binary", "binary_view", "null"}
_BATCH = Path("the batch")


class BatchAnnotator:
    """Callable that adds the best labels of each row to Arrow tables or batches.

    It suits engines that distribute batches: Ray Data's `map_batches`, Spark's `mapInArrow`, `map` of Hugging Face
    datasets. The model is opened with the first batch, so only the arguments are pickled. Every usable row gets the
    labels that `Annotator` gives it, whatever the other rows are. During a batch the linear algebra of the
    process runs on one thread.

    Parameters
    ----------
    model : str or Path
        A model folder that every worker can read.
    k : int
        Most labels of a row.
    candidates : list of str or None
        Only these labels.
    threads : int
        Threads for ranking; 1 if the engine gives each worker a core.

    Raises
    ------
    ModelFolderError
        The folder is missing, damaged, or holds no model of labels.
    InputError
        `k` or `threads` is not a whole number above 0.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from wsabie import Wsabie
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Wsabie(dim=4, threads=1, epochs=20).fit(np.eye(2), ["red", "green"]).save(f"{folder}/model")
    ...     annotate = BatchAnnotator(f"{folder}/model", k=1)
    ...     rows = [[1.0, 0.0], [0.0, 1.0], [float("nan"), 0.0]]
    ...     predictions = annotate(pa.table({"id": [7, 8, 9], "features": rows}))
    >>> predictions.column_names
    ['id', 'features', 'predicted_labels', 'predicted_scores', 'rejected']
    >>> predictions["predicted_labels"].to_pylist(), predictions["rejected"].to_pylist()
    ([['red'], ['green'], None], [None, None, 'value that is not finite'])
    """

    def __init__(
        self, model: str | Path, k: int = 10, *, candidates: list[str] | None = None, threads: int = 1
    ) -> None:
        self.folder, self.k, self.candidates = Path(model).absolute(), check_positive_integer(k, "k"), candidates
        self.threads = check_positive_integer(threads, "threads")
        kind = read_folder_kind(self.folder)
        if kind not in (KIND, *KINDS):
            content = repr(kind) if kind else "no model"
            fact = f"{self.folder} holds {content}, and batches need a model of labels"
            raise ModelFolderError(f"{fact}; give the folder that `train(model=FOLDER)` wrote")

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_annotator"}

    def __call__(self, table: Any) -> Any:
        """Return the table with three more columns.

        Parameters
        ----------
        table : pyarrow.Table or pyarrow.RecordBatch
            Rows like those of training: `features` (lists of floats), or `indices` and `values`; for a model of
            documents `text`; for one of pictures `image`, `img` or `picture`, of sounds `audio` or `sound`: a path, the
            bytes of a file, or a struct of `bytes` or `path` as in Hugging Face datasets.

        Returns
        -------
        pyarrow.Table or pyarrow.RecordBatch, as given
            New columns: `predicted_labels` (list of string) and `predicted_scores` (list of float), best first, and
            `rejected` (string), the reason why a row has no labels, else null.

        Raises
        ------
        InputError
            The table is not an Arrow table, has no column that the model can use, has one of the new columns already,
            or its metadata do not fit the model.
        UnknownLabelError
            The model does not know a candidate.
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
        with limit_blas_threads():
            full_table = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
            rows = annotator.rows(self._open_batch(full_table, rejects), rejects=rejects).rows
            best = annotator.model.annotate(rows.X, self.k, candidates=self.candidates) if len(rows) else []
        ranked_labels = dict(zip(rows.ids, best, strict=True))
        reasons = {row: reason for row, reason, _ in rejects.listed}
        ids = [str(row) for row in range(table.num_rows)]
        labels = [[label for label, _ in ranked_labels[row]] if row in ranked_labels else None for row in ids]
        scores = [[score for _, score in ranked_labels[row]] if row in ranked_labels else None for row in ids]
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
        annotator = load(self.folder)
        annotator = annotator if isinstance(annotator, Annotator) else Annotator(annotator)
        annotator.model.threads = self.threads
        return annotator

    def _open_batch(self, table: Any, rejects: Rejects) -> FeatureTable | ItemList:
        """Return the rows or items of a table that the model can use; ids are row numbers."""
        extractor = self._annotator.extractor
        if extractor is None:
            rows = open_unlabelled_table(table, _BATCH, rejects, self._annotator.model.n_features_in_)
            if rows is None:
                raise self._build_column_error(table, "a column features, or indices and values")
            return rows
        names = _COLUMNS[extractor.modality]
        name = next((name for name in names if name in table.column_names), None)
        if name is None or not _can_hold(table.schema.field(name).type, extractor.modality):
            form = "texts" if extractor.modality == "documents" else "bytes of files, or paths"
            raise self._build_column_error(
                table, f"{extractor.modality} in a column {' or '.join(names)} ({form})", name
            )
        items = []
        for row, cell in enumerate(table[name].to_pylist()):
            if content := _read_cell(cell, extractor.modality):
                items.append(Item(str(row), content, ()))
            else:
                rejects.add(str(row), "empty")
        return ItemList(_BATCH, items, extractor.modality)

    def _build_column_error(self, table: Any, requirement: str, name: str | None = None) -> InputError:
        content = f"{name!r} of type {str(table.schema.field(name).type)[:60]}" if name else ""
        content = content or ParquetTable(_BATCH, [], table.schema, []).format_columns()
        return InputError(f"the model in {self.folder} wants {requirement}; the batch has {content}")


def _can_hold(kind: Any, modality: ModalityName) -> bool:
    """Return True if cells of an Arrow type can hold items of a modality."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_struct(kind) and modality != "documents":
        parts = {part.name: str(part.type) for part in kind}
        return parts.get("bytes") in _BYTES or parts.get("path") in _TEXTS
    return str(kind) in _TEXTS | _BYTES


def _read_cell(cell: Any, modality: ModalityName) -> Path | bytes | None:
    """Return the file or the bytes of a cell; for documents the bytes of the text."""
    if isinstance(cell, dict):
        cell = cell.get("bytes") or cell.get("path")
    if isinstance(cell, str):
        return cell.encode() if modality == "documents" else Path(cell) if cell else None
    return cell if isinstance(cell, bytes) else None
