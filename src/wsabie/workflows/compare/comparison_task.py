"""Task of a comparison: one split, the labels that all models may know, and counts for every figure."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from wsabie.core.arrays import Int64
from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.evaluation.splits import check_overlap
from wsabie.io.fingerprints import compute_fingerprint
from wsabie.io.records import FeatureTable, count_labels
from wsabie.vocabulary.concept_hierarchy import Hierarchy
from wsabie.vocabulary.label_similarity import LabelSimilarity

SiblingsOf = Callable[[Sequence[str]], LabelSimilarity]
"""Function that returns the similarities of labels, by their names."""


@dataclass(frozen=True)
class ComparisonTask:
    """One split with the same label columns on every side.

    Attributes
    ----------
    train, test : FeatureTable
    valid : FeatureTable or None
        Chooses parameters and epochs; never trained on.
    counts : (n_labels,) int64
        Training rows of each label.
    facts : TaskFacts
    similar : LabelSimilarity or None
        Sibling labels, where they are known.
    allow_overlap : bool
        Test rows may be training rows too.
    """

    train: FeatureTable
    valid: FeatureTable | None
    test: FeatureTable
    counts: Int64
    facts: "TaskFacts"
    similar: LabelSimilarity | None = None
    allow_overlap: bool = False


@dataclass(frozen=True)
class TaskFacts:
    """Counts that accompany every figure.

    Attributes
    ----------
    train_rows, valid_rows, test_rows, features : int
    labels : int
        Labels with at least `min_rows` training rows: the candidates of every model.
    labels_dropped : int
        Labels of the data with fewer.
    min_rows : int
    train_pairs : int
        (row, label) pairs to learn from.
    test_pairs, test_pairs_known : int
        Pairs of the test rows, and those whose label is among `labels`.
    test_rows_unlabelled : int
        Test rows without any of these labels; they cannot be evaluated and do not count.
    fingerprint : dict of str to str
        Fingerprint of each side, before labels are dropped.
    """

    train_rows: int
    valid_rows: int
    test_rows: int
    features: int
    labels: int
    labels_dropped: int
    min_rows: int
    train_pairs: int
    test_pairs: int
    test_pairs_known: int
    test_rows_unlabelled: int
    fingerprint: dict[str, str]

    @property
    def coverage(self) -> float:
        """Fraction of the test pairs whose label a model can know."""
        return self.test_pairs_known / max(self.test_pairs, 1)

    def as_dict(self) -> JsonObject:
        """Return plain values for JSON."""
        return {**asdict(self), "coverage": self.coverage}


def build_comparison_task(
    train: FeatureTable,
    valid: FeatureTable | None,
    test: FeatureTable,
    *,
    min_rows: int = 1,
    allow_overlap: bool = False,
    unknown_pairs: int = 0,
    similar: SiblingsOf | Hierarchy | None = None,
) -> ComparisonTask:
    """Select the labels with at least `min_rows` training rows, and count the dropped ones.

    Parameters
    ----------
    train, test : FeatureTable
    valid : FeatureTable or None
        Chooses parameters and epochs; without it the first option of each model is used.
    min_rows : int
        Labels with fewer training rows are left out, and counted.
    allow_overlap : bool
        Accept test rows that are training rows too.
    unknown_pairs : int
        Test pairs that alignment dropped because the training data lack their label; they count against coverage.
    similar : Hierarchy or callable, or None
        Sibling labels, for the sibling precision: label names -> their similarities (`LabelSimilarity`). Called with
        the names of the selected labels.

    Raises
    ------
    InputError
        The sides differ in features or label names, share rows (unless `allow_overlap`), or no label is left.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> train = FeatureTable(np.ones((1, 2)), csr_matrix([[1, 0]]), ["sky", "sea"], ["a"])
    >>> test = FeatureTable(np.ones((1, 2)), csr_matrix([[1, 1]]), ["sky", "sea"], ["b"])
    >>> task = build_comparison_task(train, None, test)
    >>> task.test.label_names, task.facts.coverage
    (['sky'], 0.5)
    """
    sides = {"train": train, "test": test} | ({} if valid is None else {"valid": valid})
    for name, rows in sides.items():
        _check_same_columns(train, rows, name)
        if rows is not train and not allow_overlap:
            check_overlap(train.ids, train.X, rows.ids, rows.X)
    counts = count_labels(train)
    label_ids = np.flatnonzero(counts >= max(min_rows, 1))
    require(len(label_ids) > 0, f"no label has {max(min_rows, 1)} training rows; give more rows, or lower the limit")
    selected = {name: rows.with_labels(label_ids) for name, rows in sides.items()}
    if valid is not None and not count_labels(selected["valid"]).any():
        del selected["valid"]  # rows without a known label cannot choose an epoch
    facts = TaskFacts(
        train_rows=len(train),
        valid_rows=len(selected["valid"]) if "valid" in selected else 0,
        test_rows=len(test),
        features=int(train.X.shape[1]),
        labels=len(label_ids),
        labels_dropped=len(counts) - len(label_ids),
        min_rows=max(min_rows, 1),
        train_pairs=int(counts[label_ids].sum()),
        test_pairs=int(count_labels(test).sum()) + unknown_pairs,
        test_pairs_known=int(count_labels(selected["test"]).sum()),
        test_rows_unlabelled=int(((selected["test"].Y > 0).sum(axis=1) == 0).sum()),
        fingerprint={name: compute_fingerprint(rows) for name, rows in sides.items()},
    )
    if isinstance(similar, Hierarchy):
        similar = similar.find_siblings
    similarity = None if similar is None else similar(selected["train"].label_names)
    sides_and_counts = selected["train"], selected.get("valid"), selected["test"], counts[label_ids]
    return ComparisonTask(*sides_and_counts, facts, similarity, allow_overlap)


def _check_same_columns(train: FeatureTable, rows: FeatureTable, name: str) -> None:
    fact = f"the {name} rows have {rows.X.shape[1]} features and the training rows {train.X.shape[1]}"
    require(rows.X.shape[1] == train.X.shape[1], f"{fact}; extract the features of both with the same settings")
    if rows.label_names != train.label_names:
        fact = f"the {name} rows and the training rows number their labels differently"
        raise InputError(f"{fact}; read them as one collection and split it, or align them first")
