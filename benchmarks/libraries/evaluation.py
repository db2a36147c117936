"""Metrics of rankings with ties, intervals by the bootstrap, probabilities from scores, points in the plane."""

from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.libraries.measure import Work, compare
from wsabie.collection.maps.item_map import compute_principal_components
from wsabie.evaluation.bootstrap import bootstrap_all
from wsabie.evaluation.calibration import ScoredPairs, fit_calibration
from wsabie.evaluation.score_evaluation import evaluate_scores

ROWS, LABELS, POSITIVES = 100, 1_000, 5


def run(folder: Path) -> None:
    """Evaluate made-up scores in several ways."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(ROWS, LABELS)).astype(np.float32)
    relevant = rng.integers(0, LABELS, (ROWS, POSITIVES))
    Y = csr_matrix((np.ones(relevant.size), (np.repeat(np.arange(ROWS), POSITIVES), relevant.ravel())), scores.shape)
    Y.data[:] = 1
    np.add.at(scores, (np.repeat(np.arange(ROWS), POSITIVES), relevant.ravel()), 2)
    _compare_bootstrap(rng.random(5_000))
    _compare_projection(rng.normal(size=(20_000, 100)).astype(np.float32))
    _compare_calibration(scores, Y)
    _compare_metrics(scores, Y, "different scores")
    _compare_metrics(np.zeros_like(scores), Y, "all scores equal, where a MAP by chance is right")


def _compare_metrics(scores: Any, Y: Any, title: str) -> None:
    names = [f"d{label}" for label in range(LABELS)]
    truth = {f"q{row}": {names[label]: 1 for label in Y[row].indices} for row in range(ROWS)}
    ranking = {f"q{row}": dict(zip(names, scores[row].tolist(), strict=True)) for row in range(ROWS)}

    def ours() -> Work:
        return lambda: evaluate_scores([(0, scores)], Y).means["MAP"]

    def sklearn() -> Work:
        from sklearn.metrics import label_ranking_average_precision_score, ndcg_score

        dense = Y.toarray()

        def work() -> float:
            ndcg_score(dense, scores, k=10)
            return float(label_ranking_average_precision_score(dense, scores))

        return work

    def ir_measures() -> Work:
        import ir_measures as library

        metrics = [library.P @ 10, library.R @ 10, library.Success @ 10, library.nDCG @ 10, library.AP, library.RR]
        return lambda: library.calc_aggregate(metrics, truth, ranking)[library.AP]

    def torchmetrics() -> Work:
        import torch
        from torchmetrics.retrieval import RetrievalMAP, RetrievalNormalizedDCG

        rows = torch.arange(ROWS).repeat_interleave(LABELS)
        dense, flat = torch.from_numpy(Y.toarray().ravel()).bool(), torch.from_numpy(scores.ravel())

        def work() -> float:
            RetrievalNormalizedDCG(top_k=10)(flat, dense, rows)
            return float(RetrievalMAP()(flat, dense, rows))

        return work

    entrants = {
        "ours, 15 metrics": ours,
        "scikit-learn LRAP, nDCG": sklearn,
        "ir-measures": ir_measures,
        "torchmetrics": torchmetrics,
    }
    full_title = f"metrics of {ROWS} rows and {LABELS:,} labels, {title}"
    compare(full_title, entrants, lambda value: f"MAP {value:.5f}", with_memory=False)


def _compare_bootstrap(values: Any) -> None:
    groups = np.arange(len(values)) // 5

    def ours() -> Work:
        return lambda: bootstrap_all({"mean": values})["mean"]

    def grouped() -> Work:
        return lambda: bootstrap_all({"mean": values}, groups=groups)["mean"]

    def scipy() -> Work:
        from scipy.stats import bootstrap as library

        return lambda: library((values,), np.mean, n_resamples=1000, method="percentile", rng=0).confidence_interval

    def note(result: Any) -> str:
        return f"{result.low:.4f} to {result.high:.4f}"

    title = f"percentile interval of {len(values):,} values, 1,000 resamples"
    compare(title, {"ours": ours, "ours, of groups": grouped, "scipy": scipy}, note)


def _compare_calibration(scores: Any, Y: Any) -> None:
    rows, labels = ROWS, 100
    part, outcomes = scores[:, :labels].astype(np.float64), Y[:, :labels].toarray()
    numbers = np.tile(np.arange(labels), rows)
    pairs = ScoredPairs(part.ravel(), numbers, outcomes.ravel(), np.ones(part.size))

    def ours() -> Work:
        return lambda: fit_calibration(pairs).predict_proba(np.array([2.0]))

    def by_label() -> Work:
        return lambda: fit_calibration(pairs, n_labels=labels).predict_proba(np.array([2.0]))

    def sklearn() -> Work:
        from sklearn.calibration import _SigmoidCalibration

        return lambda: _SigmoidCalibration().fit(part.ravel(), outcomes.ravel()).predict(np.array([2.0]))

    def sklearn_by_label() -> Work:
        from sklearn.calibration import _SigmoidCalibration

        def work() -> Any:
            fitted = [
                _SigmoidCalibration().fit(part[:, label], outcomes[:, label])
                for label in range(labels)
                if outcomes[:, label].any()
            ]
            return np.mean([calibration.predict(np.array([2.0])) for calibration in fitted], axis=0), len(fitted)

        return work

    entrants = {
        "ours": ours,
        "ours, offsets by label": by_label,
        "scikit-learn sigmoid (private)": sklearn,
        "scikit-learn sigmoid by label": sklearn_by_label,
    }
    compare(f"sigmoid of {part.size:,} scores of {labels} labels", entrants, str, with_memory=False)


def _compare_projection(points: Any) -> None:
    def ours() -> Work:
        return lambda: compute_principal_components(points).places(points)

    def sklearn() -> Work:
        from sklearn.decomposition import PCA

        def work() -> Any:
            unit = points / np.linalg.norm(points, axis=1, keepdims=True)
            return PCA(2, svd_solver="covariance_eigh").fit_transform(unit)

        return work

    expected = ours()()

    def note(places: Any) -> str:
        return f"largest difference {np.abs(places - expected).max():.0e}"

    compare(f"the plane of {len(points):,} points", {"ours": ours, "scikit-learn PCA": sklearn}, note)
