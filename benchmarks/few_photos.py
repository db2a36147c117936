"""Kinds of clothes from few photos: `python -m benchmarks.few_photos FILE`, the features_1280.npz of photos_clothing.

For 1, 2, 5, 10 and 20 photos a label, five draws of these photos, 500 validation and 1,500 test rows. A system with a
best setting has seven, of which p@1 of the validation rows chooses in each draw. Differences are those of p@1 on test
rows, with 95 % intervals of the paired bootstrap over photos.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.machine import describe_machine
from wsabie import AutoRanker, NearestMean, OneVsRest, Ridge, Wsabie
from wsabie.core.arrays import Bool, Float32, Float64, Int64
from wsabie.evaluation.bootstrap import paired_bootstrap

COUNTS = (1, 2, 5, 10, 20)
DRAWS = 5
N_VALID, N_TEST = 500, 1500
SHRINKAGES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
STRENGTHS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
OURS = ("Wsabie()", "Wsabie, best setting", "AutoRanker()")


class WhitenedMean:
    """The nearest class mean by the Mahalanobis distance of the covariance of all rows, shrunk to a multiple of I."""

    def __init__(self, shrinkage: float) -> None:
        self.shrinkage = shrinkage

    def fit(self, X: Float32, y: Int64) -> "WhitenedMean":
        """Solve for one linear function per class."""
        means = np.stack([X[y == label].mean(axis=0) for label in range(y.max() + 1)])
        self.center = X.mean(axis=0)
        _, singular_values, directions = np.linalg.svd(X - self.center, full_matrices=False)
        variances = (1 - self.shrinkage) * singular_values**2 / len(X)
        noise = self.shrinkage * singular_values @ singular_values / X.size
        means -= self.center
        self.coef = means - (means @ directions.T * (variances / (variances + noise))) @ directions
        self.intercept = -(self.coef * means).sum(axis=1) / 2
        return self

    def scores(self, X: Float32) -> Float32:
        """Return the scores of all classes."""
        scores: Float32 = (X - self.center) @ self.coef.T + self.intercept
        return scores


class Multinomial:
    """Multinomial logistic regression of scikit-learn on standardised rows."""

    def __init__(self, strength: float) -> None:
        self.model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=300))

    def fit(self, X: Float32, y: Int64) -> "Multinomial":
        """Train on rows and class numbers."""
        self.model.fit(X, y)
        return self

    def scores(self, X: Float32) -> Float64:
        """Return the scores of all classes."""
        scores: Float64 = self.model.decision_function(X)
        return scores


SYSTEMS: dict[str, Sequence[Callable[[int], Any]]] = {
    "Wsabie()": [lambda seed: Wsabie(threads=1, seed=seed)],
    "Wsabie, best setting": [
        lambda seed, p=params: Wsabie(threads=1, seed=seed, **p)
        for params in ({}, {"margin": 0.5}, {"margin": 2.0}, {"epochs": 5}, {"epochs": 40}, {"dim": 30}, {"dim": 300})
    ],
    "AutoRanker()": [lambda seed: AutoRanker(threads=1, seed=seed)],
    "class mean, `NearestMean()`": [lambda seed: NearestMean()],
    "whitened class mean, best setting": [lambda seed, s=shrinkage: WhitenedMean(s) for shrinkage in SHRINKAGES],
    "`Ridge()`": [lambda seed: Ridge()],
    "`OneVsRest`, best setting": [lambda seed, c=C: OneVsRest(C=c, threads=1) for C in STRENGTHS],
    "multinomial regression, best setting": [lambda seed, c=C / 1000: Multinomial(c) for C in STRENGTHS],
}


class Draw(NamedTuple):
    """Numbers of the rows of a draw."""

    train: Int64
    valid: Int64
    test: Int64


def draw_rows(labels: Int64, count: int, seed: int) -> Draw:
    """Draw `count` photos of each label, then validation and test rows of the others; more photos contain fewer."""
    order = np.random.default_rng(seed).permutation(len(labels))
    others, rest = np.split(order, [N_VALID + N_TEST])
    train = np.concatenate([rest[labels[rest] == label][:count] for label in range(labels.max() + 1)])
    return Draw(np.sort(train), others[:N_VALID], others[N_VALID:])


def measure_hits(name: str, X: Float32, labels: Int64, draw: Draw, seed: int) -> Bool:
    """Return whether each test row has its label first, by the setting that the validation rows chose."""
    models = [build(seed).fit(X[draw.train], labels[draw.train]) for build in SYSTEMS[name]]
    figures = [0.0]
    if len(models) > 1:
        figures = [float(np.mean(model.scores(X[draw.valid]).argmax(axis=1) == labels[draw.valid])) for model in models]
    best = models[int(np.argmax(figures))]
    hits: Bool = best.scores(X[draw.test]).argmax(axis=1) == labels[draw.test]
    return hits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    with np.load(options.file) as arrays:
        X = arrays["X"].astype(np.float32)
        _, labels = np.unique(arrays["label"], return_inverse=True)
    print(describe_machine())
    draws = {count: [draw_rows(labels, count, seed) for seed in range(DRAWS)] for count in COUNTS}
    hits: dict[str, list[Float64]] = {}
    for name in SYSTEMS:
        hits[name] = [
            np.concatenate([measure_hits(name, X, labels, draw, seed) for seed, draw in enumerate(draws[count])]) * 1.0
            for count in COUNTS
        ]
        cells = [f"{values.mean():.3f}" for values in hits[name]]
        print(f"| {name} | {' | '.join(cells)} | {np.mean(hits[name]):.3f} |", flush=True)
    photos = np.concatenate([draw.test for draw in draws[COUNTS[0]]])
    for ours in OURS:
        print(f"\n{ours} minus it")
        for name in SYSTEMS:
            if name != ours:
                first, second = ([*hits[system], np.mean(hits[system], axis=0)] for system in (ours, name))
                gaps = [paired_bootstrap(a, b, groups=photos) for a, b in zip(first, second, strict=True)]
                cells = [f"{gap.mean:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})" for gap in gaps]
                print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
