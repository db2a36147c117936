"""What a comparison is about: the rows of the three sides, and the labels that a model can know."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wsabie.base.arrays import Int64
from wsabie.base.errors import InputError
from wsabie.evaluation.splits import check_overlap
from wsabie.labels.hierarchy import Hierarchy
from wsabie.labels.similar import Similar
from wsabie.sources.fingerprint import fingerprint
from wsabie.sources.records import Rows, label_counts

SiblingsOf = Callable[[Sequence[str]], Similar]
"""Which of some labels are alike, asked by their names."""


@dataclass(frozen=True)
class Task:
    """One split with the same label columns on every side.

    Attributes
    ----------
    train, test : Rows
    valid : Rows or None
        Chooses parameters and epochs; never trained on.
    counts : (n_labels,) int64
        Training rows of each label.
    facts : TaskFacts
    similar : Similar or None
        Which labels are alike, where that is known.
    """

    train: Rows
    valid: Rows | None
    test: Rows
    counts: Int64
    facts: "TaskFacts"
    similar: Similar | None = None


@dataclass(frozen=True)
class TaskFacts:
    """Counts that belong beside every figure.

    Attributes
    ----------
    train_rows, valid_rows, test_rows, features : int
    labels : int
        Labels with at least `min_rows` training rows: what every model chooses from.
    labels_dropped : int
        Labels of the collection with fewer.
    min_rows : int
    train_pairs : int
        (row, label) pairs to learn from.
    test_pairs, test_pairs_known : int
        Pairs of the test rows, and those whose label is among `labels`.
    test_rows_without : int
        Test rows of which no label is among them; they cannot be judged and do not count.
    fingerprint : dict of str to str
        Of each side, as given.
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
    test_rows_without: int
    fingerprint: dict[str, str]

    @property
    def coverage(self) -> float:
        """Fraction of the test pairs whose label a model can know."""
        return self.test_pairs_known / max(self.test_pairs, 1)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "coverage": self.coverage}


def make_task(
    train: Rows,
    valid: Rows | None,
    test: Rows,
    *,
    min_rows: int = 1,
    allow_overlap: bool = False,
    unknown_pairs: int = 0,
    similar: SiblingsOf | Hierarchy | None = None,
) -> Task:
    """Keep the labels with at least `min_rows` training rows, and count what that leaves out.

    `similar` is asked with the names of the labels that are kept.

    Raises
    ------
    InputError
        The sides differ in features or label names, share rows (unless `allow_overlap`), or no label is left.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> train = Rows(np.ones((1, 2)), csr_matrix([[1, 0]]), ["sky", "sea"], ["a"])
    >>> test = Rows(np.ones((1, 2)), csr_matrix([[1, 1]]), ["sky", "sea"], ["b"])
    >>> task = make_task(train, None, test)
    >>> task.test.label_names, task.facts.coverage
    (['sky'], 0.5)
    """
    sides = {"train": train, "test": test} | ({} if valid is None else {"valid": valid})
    for name, rows in sides.items():
        _check_same_columns(train, rows, name)
        if rows is not train and not allow_overlap:
            check_overlap(train.ids, train.X, rows.ids, rows.X)
    counts = label_counts(train)
    keep = np.flatnonzero(counts >= max(min_rows, 1))
    if not len(keep):
        raise InputError(f"no label has {max(min_rows, 1)} training rows; give more rows, or lower the limit")
    known = {name: rows.with_labels(keep) for name, rows in sides.items()}
    if valid is not None and not label_counts(known["valid"]).any():
        del known["valid"]  # nothing can be chosen by rows without a known label
    facts = TaskFacts(
        train_rows=len(train),
        valid_rows=len(known["valid"]) if "valid" in known else 0,
        test_rows=len(test),
        features=int(train.X.shape[1]),
        labels=len(keep),
        labels_dropped=len(counts) - len(keep),
        min_rows=max(min_rows, 1),
        train_pairs=int(counts[keep].sum()),
        test_pairs=int(label_counts(test).sum()) + unknown_pairs,
        test_pairs_known=int(label_counts(known["test"]).sum()),
        test_rows_without=int(((known["test"].Y > 0).sum(axis=1) == 0).sum()),
        fingerprint={name: fingerprint(rows) for name, rows in sides.items()},
    )
    if isinstance(similar, Hierarchy):
        similar = similar.similar
    alike = None if similar is None else similar(known["train"].label_names)
    return Task(known["train"], known.get("valid"), known["test"], counts[keep], facts, alike)


def _check_same_columns(train: Rows, other: Rows, name: str) -> None:
    if other.X.shape[1] != train.X.shape[1]:
        raise InputError(
            f"the {name} rows have {other.X.shape[1]} features and the training rows {train.X.shape[1]}; "
            "describe both with the same settings"
        )
    if other.label_names != train.label_names:
        raise InputError(
            f"the {name} rows and the training rows number their labels differently; read them as one collection and "
            "split it, or align them first"
        )
