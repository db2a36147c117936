"""Labels for tables that come batch by batch: what Ray Data, Spark or Hugging Face datasets map over their rows."""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from wsabie.base.arrays import Bool, Matrix
from wsabie.base.errors import InputError
from wsabie.models.annotator import Annotator
from wsabie.models.registry import load
from wsabie.models.space import Space
from wsabie.models.space_annotator import SpaceAnnotator
from wsabie.sources.align import align
from wsabie.sources.documents import TEXT_COLUMN
from wsabie.sources.parquet_features import DENSE, SPARSE, feature_columns
from wsabie.sources.parquet_file import Batch, Table, note_of
from wsabie.sources.parquet_pictures import IMAGE_COLUMNS
from wsabie.sources.records import Item, ItemList, Rows, Things
from wsabie.storage.rejects import Rejects

FOUND, SCORES, REJECTED = "found_labels", "found_scores", "rejected"
_COLUMNS: dict[Things, tuple[str, ...]] = {
    "pictures": IMAGE_COLUMNS,
    "sounds": ("audio", "sound"),
    "documents": (TEXT_COLUMN,),
}
_BATCH = Path("the batch")


class BatchAnnotator:
    """The best labels of the rows of Arrow tables: an object to be called with one table after another.

    Engines that share work out by batches (Ray Data's `map_batches`, Spark's `mapInArrow`, `map` of Hugging Face
    datasets) need no more than that. A model is opened with the first batch, so that the object travels as its
    arguments; every row is ranked as `wsabie annotate` ranks it, whatever stands beside it.

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

    Examples
    --------
    >>> import tempfile
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
        self.folder, self.k, self.candidates, self.threads = Path(model), k, candidates, threads

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_annotator"}

    def __call__(self, table: Any) -> Any:
        """The table with three columns more.

        Parameters
        ----------
        table : pyarrow.Table
            Rows as the model learnt them: `features` (lists of floats), or `indices` and `values`; for a model of
            documents `text`; for one of pictures `image`, `img` or `picture`, of sounds `audio` or `sound`: a path, the
            bytes of a file, or a struct of `bytes`, as Hugging Face datasets have it.

        Returns
        -------
        pyarrow.Table
            Beside the columns of the table `found_labels` (list of string) and `found_scores` (list of float), best
            first, and `rejected` (string): why a row has no labels, null for all others.

        Raises
        ------
        InputError
            There is no column that the model can use, a feature or a note of the table that does not fit the model, or
            the folder holds no such model.
        """
        import pyarrow as pa

        reasons: list[str | None] = [None] * table.num_rows
        X, kept = self._features(table, reasons)
        labels, scores = self._ranked(X)
        lists = []
        for values, kind in ((labels, pa.string()), (scores, pa.float32())):
            column = iter(values)
            lists.append(pa.array([next(column) if good else None for good in kept], pa.list_(kind)))
        for name, column in ((FOUND, lists[0]), (SCORES, lists[1]), (REJECTED, pa.array(reasons, pa.string()))):
            table = table.append_column(name, column)
        return table

    @cached_property
    def _annotator(self) -> Annotator:
        found = load(self.folder)
        if isinstance(found, Space | SpaceAnnotator):
            raise InputError(f"{self.folder} holds a space of several kinds; batches want a model of labels")
        found = found if isinstance(found, Annotator) else Annotator(found)
        found.model.threads = self.threads
        return found

    def _features(self, table: Any, reasons: list[str | None]) -> tuple[Matrix, Bool]:
        """Features of the rows that can be used, and which these are; why others cannot is written to `reasons`."""
        terms = self._annotator.terms
        if terms is None:
            return self._rows(table, reasons)
        there = [name for name in _COLUMNS[terms.things] if name in table.column_names]
        if not there:
            raise self._unusable(table, f"{terms.things} in a column {' or '.join(_COLUMNS[terms.things])}")
        items, rejects = [], Rejects(most=table.num_rows)
        for row, cell in enumerate(table[there[0]].to_pylist()):
            if content := _content(cell, terms.things):
                items.append(Item(str(row), content, ()))
            else:
                reasons[row] = "empty"
        found = self._annotator.rows(ItemList(_BATCH, items, terms.things), rejects=rejects).rows
        kept = np.zeros(table.num_rows, bool)
        kept[np.array(found.ids, int)] = True
        for where, reason, _ in rejects.listed:
            reasons[int(where)] = reason
        return found.X, kept

    def _rows(self, table: Any, reasons: list[str | None]) -> tuple[Matrix, Bool]:
        held = Table(_BATCH, [], table.schema, [], note_of(table.schema, _BATCH))
        if not (held.has(DENSE) or held.has(*SPARSE)):
            raise self._unusable(table, "a column features, or indices and values")
        annotator, width = self._annotator, self._annotator.model.n_features_in_
        if held.has(DENSE):
            held.promised.setdefault("n_features", width)  # or it would be that of the first row
        columns, kept, number = feature_columns(held, False, width), np.ones(table.num_rows, bool), 0
        for batch in _plain(table).to_batches():
            good = kept[number : number + batch.num_rows]
            for row, bad in columns.check(Batch(_BATCH, number + 1, batch)).items():
                good[row], reasons[number + row] = False, bad.reason
            columns.keep(good)
            number += batch.num_rows
        X = columns.finish()
        names, dictionary = (held.promised.get(name) for name in ("feature_names", "dictionary"))
        nothing, ids = csr_matrix((X.shape[0], 0), dtype=np.int8), [str(row) for row in np.flatnonzero(kept)]
        rows = Rows(X, nothing, [], ids, feature_names=names, dictionary=dictionary)
        return align(rows, None, annotator.feature_names, width, annotator.dictionary).rows.X, kept

    def _ranked(self, X: Matrix) -> tuple[list[list[str]], list[list[float]]]:
        """Labels and scores of rows, best first."""
        if not X.shape[0]:
            return [], []
        among = {} if self.candidates is None else {"candidates": self.candidates}
        model = self._annotator.model
        best = model.annotate(X, min(self.k, len(model.vocabulary_)), **among)
        return [[name for name, _ in row] for row in best], [[score for _, score in row] for row in best]

    def _unusable(self, table: Any, wanted: str) -> InputError:
        held = Table(_BATCH, [], table.schema, []).listed_columns()
        return InputError(f"the model in {self.folder} wants {wanted}; the batch has {held}")


def _plain(table: Any) -> Any:
    """Features as lists, which they are inside where an engine has a type of its own for arrays."""
    import pyarrow as pa

    for number, field in enumerate(table.schema):
        if field.name in (DENSE, *SPARSE) and isinstance(field.type, pa.BaseExtensionType):
            lists = pa.chunked_array([part.storage for part in table[field.name].chunks], field.type.storage_type)
            table = table.set_column(number, field.name, lists)
    return table


def _content(cell: Any, things: Things) -> Path | bytes | None:
    """What a cell holds: a file, or its bytes; of documents the bytes of a text."""
    if isinstance(cell, dict):
        cell = cell.get("bytes") or cell.get("path")
    if isinstance(cell, str):
        return cell.encode() if things == "documents" else Path(cell) if cell else None
    return cell if isinstance(cell, bytes) else None
