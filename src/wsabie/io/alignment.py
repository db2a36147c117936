"""Alignment of rows with the labels and features of a model."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Array, Int32, Matrix
from wsabie.core.errors import InputError
from wsabie.io.records import FeatureTable
from wsabie.storage.column_files import compute_offsets
from wsabie.vocabulary.label_names import Vocabulary, normalise_label_name

KPCA_FINGERPRINT_PREFIX = "kpca-"
"""Prefix of the fingerprint of a kernel PCA; rows that it transformed carry it as `extractor_fingerprint`."""


class AlignedTable(NamedTuple):
    """Rows with a model's labels and features, and counts of what the model does not know.

    Attributes
    ----------
    rows : FeatureTable
        With the model's label names, feature names and width.
    unknown_labels : list of str
        Labels of the rows that the model does not know, in their old order.
    unknown_pairs : int
        Pairs of a row and a true label that went with them.
    unknown_features : int
        Non-zero values whose feature the model does not know.
    """

    rows: FeatureTable
    unknown_labels: list[str]
    unknown_pairs: int
    unknown_features: int


def align_table(
    rows: FeatureTable,
    label_names: Sequence[str] | Vocabulary | None = None,
    feature_names: Sequence[str] | None = None,
    n_features: int | None = None,
    extractor_fingerprint: str | None = None,
) -> AlignedTable:
    """Map `rows` onto a model's labels and features.

    Parameters
    ----------
    rows : FeatureTable
    label_names : sequence of str, Vocabulary or None
        The model's labels by number, which a vocabulary also knows by former names; labels that are not among them
        are dropped and counted. None: as they are.
    feature_names : sequence of str or None
        The model's features by number. When the rows have names too, columns are matched by name: unknown
        ones are dropped and counted, missing ones are 0 in sparse rows.
    n_features : int or None
        The model's width, for features without names; of rows that do not state theirs (`FeatureTable.open_width`),
        values of higher numbers are dropped and counted.
    extractor_fingerprint : str or None
        Fingerprint of the extractor whose features the model has, if there is one.

    Returns
    -------
    AlignedTable

    Raises
    ------
    InputError
        Another extractor or width than the model's, a dense column that the model needs is missing, or no feature in
        common.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> rows = FeatureTable(csr_matrix([[1., 2.]]), csr_matrix([[1, 1]], dtype="int8"), ["cat", "dog"], ["a"])
    >>> aligned = align_table(rows, label_names=["dog", "elk"], n_features=2)
    >>> aligned.rows.Y.toarray().tolist(), aligned.unknown_labels
    ([[1, 0]], ['cat'])
    """
    _check_extractor(rows, extractor_fingerprint)
    rows, unknown_features = _align_features(rows, feature_names, n_features, extractor_fingerprint)
    if label_names is None:
        return AlignedTable(rows, [], 0, unknown_features)
    if isinstance(label_names, Vocabulary):
        columns = np.array([label_names.find(name) for name in rows.label_names], np.int32)
    else:
        columns = _find_names(rows.label_names, map(normalise_label_name, label_names))
    matches = columns[columns >= 0]
    merged = len(np.unique(matches)) < len(matches)
    Y = (merge_columns if merged else move_columns)(rows.Y, columns, len(label_names))
    unknown = [name for name, column in zip(rows.label_names, columns, strict=True) if column < 0]
    aligned = replace(rows, Y=Y, label_names=list(label_names))
    return AlignedTable(aligned, unknown, int((rows.Y.data > 0).sum() - (Y.data > 0).sum()), unknown_features)


def look_up_labels(table: FeatureTable, ids: Sequence[str], label_names: Sequence[str]) -> Matrix:
    """Return the true labels that rows with these ids have in another table, such as the training data.

    Parameters
    ----------
    table : FeatureTable
        The other table; its features do not count.
    ids : sequence of str, length n
    label_names : sequence of str
        Labels by number; others are left out.

    Returns
    -------
    csr_matrix (n, n_labels) int8
        Rows of unknown ids are empty.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> labels = csr_matrix([[1, 0], [1, -1]], dtype="int8")
    >>> known = FeatureTable(csr_matrix((2, 0)), labels, ["cat", "dog"], ["a", "b"])
    >>> look_up_labels(known, ["b", "c"], ["dog", "cat"]).toarray().tolist()
    [[0, 1], [0, 0]]
    """
    from scipy.sparse import csr_matrix

    columns = _find_names(table.label_names, map(normalise_label_name, label_names))
    Y = move_columns(table.Y > 0, columns, len(label_names)).astype(np.int8)
    row_of = {name: i for i, name in enumerate(table.ids)}
    pairs = [(row, row_of[name]) for row, name in enumerate(ids) if name in row_of]
    rows, table_rows = zip(*pairs, strict=True) if pairs else ((), ())
    selection = csr_matrix((np.ones(len(pairs), np.int8), (rows, table_rows)), (len(ids), len(table)))
    return selection @ Y


def _find_names(names: Iterable[str], targets: Iterable[str]) -> Int32:
    """Return the position of each name among `targets`; -1 for others."""
    positions = {name: position for position, name in enumerate(targets)}
    return np.array([positions.get(name, -1) for name in names], np.int32)


def move_columns(M: Matrix, columns: Int32, width: int) -> Matrix:
    """Move column j of a CSR matrix to `columns[j]` (-1 drops it); return a sorted csr_matrix (n, width)."""
    from scipy.sparse import csr_matrix

    target = columns[M.indices]
    is_valid = target >= 0
    indptr = compute_offsets(is_valid)[M.indptr]
    result = csr_matrix((M.data[is_valid], target[is_valid], indptr), (M.shape[0], width))
    result.sort_indices()
    return result


def merge_columns(Y: Matrix, columns: Array, width: int) -> Matrix:
    """Move the columns of a label matrix of 1 and -1 when several become one.

    A label that is right and wrong at once is right.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> merge_columns(csr_matrix([[1, -1, 0], [0, -1, 1]], dtype=np.int8), np.array([1, 1, -1]), 2).toarray().tolist()
    [[0, 1], [0, -1]]
    """
    from scipy.sparse import csr_matrix

    sources = np.flatnonzero(columns >= 0)
    mapping = csr_matrix((np.ones(len(sources), np.int32), (sources, columns[sources])), (len(columns), width))
    right, wrong = ((sign * Y > 0).astype(np.int32) @ mapping for sign in (1, -1))
    signs = (right * (len(columns) + 1) - wrong).tocsr()
    signs.data = np.sign(signs.data)
    signs.sort_indices()
    return signs.astype(np.int8)


def _align_features(
    rows: FeatureTable, feature_names: Sequence[str] | None, n_features: int | None, extractor_fingerprint: str | None
) -> tuple[FeatureTable, int]:
    if feature_names is None or rows.feature_names is None:
        width = n_features if feature_names is None else len(feature_names)
        return _align_width(rows, width, is_fixed=bool(extractor_fingerprint))
    if rows.feature_names == list(feature_names):
        return rows, 0
    columns = _find_names(rows.feature_names, feature_names)
    if len(columns) and columns.max() < 0:
        raise InputError(
            f"the data has none of the model's {len(feature_names):,} features (the first of the model is "
            f"{feature_names[0]!r}, of the data {rows.feature_names[0]!r}); give data made in the same way"
        )
    if isinstance(rows.X, np.ndarray):
        unknown = int(np.count_nonzero(rows.X[:, columns < 0]))
        return replace(rows, X=_select_dense_columns(rows, feature_names), feature_names=list(feature_names)), unknown
    X = move_columns(rows.X, columns, len(feature_names))
    return replace(rows, X=X, feature_names=list(feature_names)), int(rows.X.nnz - X.nnz)


def _check_extractor(rows: FeatureTable, extractor_fingerprint: str | None) -> None:
    """Refuse features of another extractor or map: their equal numbers differ in meaning."""
    if extractor_fingerprint and rows.extractor_fingerprint and rows.extractor_fingerprint != extractor_fingerprint:
        if extractor_fingerprint.startswith(KPCA_FINGERPRINT_PREFIX):
            raise InputError(
                "the training data are components of a map and the data was not made with it; map the data with that "
                "map: `features.kpca(DATA, map=FOLDER, out=FILE)`"
            )
        raise InputError(
            "the features come from another extractor than the training data; extract them again "
            "with the extractor of the training data: `features.images(DATA, extractor=FOLDER)`"
        )


def _align_width(rows: FeatureTable, n_features: int | None, is_fixed: bool) -> tuple[FeatureTable, int]:
    """Fit rows without feature names to a width; return them and the count of dropped values."""
    # unless an extractor says how many features there are, missing numbers belong to features that no row has,
    # and higher ones to features that training has not seen
    from scipy.sparse import csr_matrix

    X, width = rows.X, rows.X.shape[1]
    if n_features is None or width == n_features:
        return rows, 0
    if rows.open_width and not is_fixed and not isinstance(X, np.ndarray):
        if width < n_features:
            return replace(rows, X=csr_matrix((X.data, X.indices, X.indptr), (len(rows), n_features))), 0
        truncated = X[:, :n_features]
        return replace(rows, X=truncated), int(X.nnz - truncated.nnz)
    problem = f"the data has {width:,} features but the model takes {n_features:,}"
    raise InputError(f"{problem}; give data made in the same way as the training data")


def _select_dense_columns(rows: FeatureTable, feature_names: Sequence[str]) -> Matrix:
    """Return dense columns in the model's order; a missing one was never measured, so it is not zero."""
    columns = _find_names(feature_names, rows.feature_names or ())
    missing = [name for name, column in zip(feature_names, columns, strict=True) if column < 0]
    if missing:
        raise InputError(
            f"the data lacks {len(missing):,} of the model's {len(feature_names):,} features, the first is "
            f"{missing[0]!r}; give data made in the same way as the training data"
        )
    return np.ascontiguousarray(rows.X[:, columns])
