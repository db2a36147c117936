"""Realised precision of promised precisions: `python -m benchmarks.precision_promise --data FOLDER [SET ...]`.

Of each random split, a quarter of the rows is the test, and 15 % of the others are held out, as in a collection. The
model trains on the remainder; the held-out rows choose the epoch, fit the probabilities and find the thresholds. A
promise is kept if at least this share of the test suggestions above their thresholds is right. "Before" is the rule
until November 2026: precision with one more wrong suggestion, probabilities fitted to the same rows, and a threshold of
its own for each label with 30 suggestions.
"""

import argparse
import gzip
from copy import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.machine import describe_machine
from wsabie import VisualWords, Wsabie, get_sample_path, open_source
from wsabie.collection.annotations.training_examples import TrainingExamples
from wsabie.collection.learning.evaluation import score_suggestions
from wsabie.collection.learning.model_fitting import fit_suggestions
from wsabie.collection.learning.suggestions import LabelRanker
from wsabie.collection.registry.thresholds import HoldoutSuggestions, PrecisionCurve

PRECISIONS = (0.95, 0.9, 0.8, 0.5)
N_SUGGESTIONS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(READERS), metavar="SET", help=", ".join(READERS))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    print(describe_machine())
    print("| set | promise | rule | said | kept | precision | accepted | labels of 3 to 10 rows |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in options.sets:
        X, Y = READERS[name](options.data)
        splits = [run_split(X, Y, seed) for seed in range(options.seeds)]
        for precision in PRECISIONS:
            for rule in ("before", "after"):
                print(f"| {name} | {precision:g} | {rule} | {summarize(splits, precision, rule)} |", flush=True)


def run_split(X: Any, Y: Any, seed: int) -> dict[Any, Any]:
    """Return (share accepted, precision, share of rare labels) of a split by promise and rule."""
    rows = np.random.default_rng([seed, 39]).permutation(X.shape[0])
    n_test = len(rows) // 4
    n_known = n_test + int(0.15 * (len(rows) - n_test))
    test, held_out, train = rows[:n_test], rows[n_test:n_known], rows[n_known:]
    counts = np.asarray((Y[train] > 0).sum(axis=0)).ravel()
    Y, counts = Y[:, counts > 0], counts[counts > 0]
    columns = np.arange(len(counts))
    model = Wsabie(100, threads=1, seed=seed)
    names = [str(column) for column in columns]
    model.fit(X[train], Y[train], validation=(X[held_out], Y[held_out]), label_names=names)
    former: Any = SimpleNamespace(model=copy(model))
    fit_suggestions(model, X[held_out], Y[held_out])
    loaded: Any = SimpleNamespace(model=model)
    ids, n = [str(row) for row in held_out], len(held_out)
    no_rows, weights = np.zeros(n, bool), np.ones(n, np.float32)
    holdout = TrainingExamples(ids, ids, Y[held_out], columns, names, weights, ~no_rows, 1.0, no_rows, 0, 0)
    judged = score_suggestions(loaded, columns, X[held_out], holdout)
    test = test[np.diff(Y[test].indptr) > 0]
    suggestions = {
        "before": suggest(former, columns, X[test], Y[test]),
        "after": suggest(loaded, columns, X[test], Y[test]),
    }
    former_judged = HoldoutSuggestions(*suggest(former, columns, X[held_out], Y[held_out]))
    rare = np.flatnonzero((counts >= 3) & (counts <= 10))
    figures = {}
    for precision in PRECISIONS:
        after = PrecisionCurve(judged).find_threshold(precision).by_column(columns)
        for rule, (labels, probabilities, right) in suggestions.items():
            limit = find_former_limits(former_judged, precision, labels) if rule == "before" else after(labels)
            is_accepted = probabilities >= limit
            share = right[is_accepted].mean() if is_accepted.any() else np.nan
            covered = np.isin(rare, labels[is_accepted]).mean() if len(rare) else 0.0
            figures[precision, rule] = is_accepted.mean(), share, covered
    return figures


def suggest(loaded: Any, columns: Any, X: Any, Y: Any) -> tuple[Any, Any, Any]:
    """Return labels, probabilities and outcomes of the suggestions for rows."""
    top = LabelRanker(loaded, columns).top(loaded.model.transform(X), N_SUGGESTIONS)
    rows = np.repeat(np.arange(X.shape[0]), top.labels.shape[1])
    labels = top.labels.ravel()
    return labels, top.probabilities.ravel(), (np.asarray(Y[rows, labels]).ravel() > 0).astype(np.int64)


def find_former_limits(judged: HoldoutSuggestions, precision: float, labels: Any) -> Any:
    """Return the thresholds of labels by the rule before."""

    def find(p: Any, right: Any) -> float:
        order = np.argsort(-p, kind="stable")
        share = np.cumsum(right[order]) / (np.arange(1, len(p) + 1) + 1)
        reached = np.flatnonzero((share >= precision) & np.append(p[order][1:] < p[order][:-1], True))
        return float(p[order][reached[-1]]) if len(reached) else 2.0

    limits = np.full(len(labels), find(judged.probabilities, judged.right))
    numbers, counts = np.unique(judged.labels, return_counts=True)
    for label in numbers[counts >= 30]:
        is_of_label = judged.labels == label
        limits[labels == label] = find(judged.probabilities[is_of_label], judged.right[is_of_label])
    return limits


def summarize(splits: list[dict[Any, Any]], precision: float, rule: str) -> str:
    """Return the cells of a row: splits where it was said and kept, mean precision, shares accepted."""
    accepted, shares, covered = np.array([split[precision, rule] for split in splits]).T
    is_said = ~np.isnan(shares)
    mean = f"{shares[is_said].mean():.3f}" if is_said.any() else ""
    kept = int((shares[is_said] >= precision).sum())
    return f"{is_said.sum()} | {kept} | {mean} | {accepted.mean():.2%} | {covered.mean():.2%}"


def read_corel5k(data: Path) -> tuple[Any, Any]:
    sides: list[Any] = [open_source(data / f"corel5k_mulan/Corel5k-{side}-sparse.arff") for side in ("train", "test")]
    return sparse.vstack([side.X for side in sides]).tocsr(), sparse.vstack([side.Y for side in sides]).tocsr()


def read_emoji(_: Path) -> tuple[Any, Any]:
    """One picture of each group, and names that at least three of these have."""
    pictures: Any = open_source(get_sample_path("emoji"))
    rows = VisualWords(n_words=500, size=96).fit(pictures).transform(pictures)
    _, first = np.unique(rows.groups, return_index=True)
    Y = sparse.csr_matrix(rows.Y)[first].tocsc()
    Y = Y[:, np.asarray((Y > 0).sum(axis=0)).ravel() >= 3].tocsr()
    is_tagged = np.diff(Y.indptr) > 0
    return rows.X[first][is_tagged], Y[is_tagged]


def read_subjects(data: Path) -> tuple[Any, Any]:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import MultiLabelBinarizer

    with gzip.open(data / "subjects_gnd/tib-core-dev-en.tsv.gz", "rt") as lines:
        pairs = [line.rstrip("\n").split("\t") for line in lines]
    texts, subjects = zip(*((text, names.split()) for text, names in pairs if names.split()), strict=True)
    X = CountVectorizer(min_df=2, max_df=0.5).fit_transform(texts).astype(np.float32)
    return X, sparse.csr_matrix(MultiLabelBinarizer(sparse_output=True).fit_transform(subjects))


def read_clothes(data: Path) -> tuple[Any, Any]:
    with np.load(data / "photos_clothing/features_1280.npz") as arrays:
        _, labels = np.unique(arrays["label"], return_inverse=True)
        X = arrays["X"].astype(np.float32)
    return X, sparse.csr_matrix((np.ones(len(labels), np.int8), (np.arange(len(labels)), labels)))


READERS = {"corel5k": read_corel5k, "emoji": read_emoji, "subjects_gnd": read_subjects, "clothes": read_clothes}

if __name__ == "__main__":
    main()
