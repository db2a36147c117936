"""First labels of pictures by features: `python -m benchmarks.photo_features SOURCE [NAMES ...]`.

SOURCE is a folder with `labels.csv` (image, tags) and `images`, any other collection of pictures, or a bundled sample
(`emoji`, `drawings`). A fifth of the pictures is held out by each of `--seeds`, and `Wsabie()` is trained on the rest.
Dictionaries are learned from all pictures, without labels.
"""

import argparse
import csv
import time
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, hstack

from benchmarks.machine import describe_machine
from wsabie.core.arrays import Matrix
from wsabie.core.execution import ProcessExecutor
from wsabie.core.machine import count_available_cores
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.evaluation.splits import split
from wsabie.features.extractor_registry import create_extractor
from wsabie.io.data_sources import open_source
from wsabie.io.records import FeatureTable, Item, ItemList, ItemSource
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.samples import get_sample_path

NAMES = ("visual-words", "lite0", "lite0,colour", "lite0,visual-words")


def open_pictures(name: str) -> ItemSource:
    """The pictures of a source with their labels."""
    folder = Path(name)
    if name in ("emoji", "drawings"):
        return open_source(get_sample_path(name))
    if not (folder / "labels.csv").exists():
        return open_source(folder)
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    items = [Item(row["image"], folder / "images" / row["image"], tuple(row["tags"].split(";"))) for row in rows]
    return ItemList(folder, items)


def join_tables(tables: list[FeatureTable]) -> FeatureTable:
    """Rows side by side, as `ConcatenatedFeatures` balances them by length."""
    return tables[0] if len(tables) == 1 else replace(tables[0], X=hstack([_balance(t.X) for t in tables]).tocsr())


def _balance(X: Matrix) -> csr_matrix:
    """Rows of unit length, those of histograms after log(1 + value)."""
    rows = csr_matrix(X, copy=True)
    if hasattr(X, "indptr"):
        rows.data = np.log1p(rows.data)
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    rows.data /= np.repeat(np.maximum(lengths, 1e-12), np.diff(rows.indptr)).astype(np.float32)
    return rows


def measure_features(rows: FeatureTable, n_seeds: int) -> dict[str, tuple[float, float]]:
    """Mean and deviation of the held-out figures over seeds."""
    figures: dict[str, list[float]] = {"p@1": [], "MAP": []}
    for seed in range(n_seeds):
        sides = split(len(rows), by="label", valid=0, test=0.2, groups=rows.groups, Y=rows.Y, seed=seed)
        train, test = rows.take(sides.train), rows.take(sides.test)
        model = Wsabie(seed=seed).fit(train.X, train.Y)
        means = evaluate_scores([(0, model.scores(test.X))], test.Y).means
        for name, values in figures.items():
            values.append(means[name])
    return {
        name: (float(np.mean(values)), float(np.std(values, ddof=1)) if n_seeds > 1 else 0.0)
        for name, values in figures.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print(describe_machine())
    pictures, executor = open_pictures(options.source), ProcessExecutor(count_available_cores())

    @lru_cache
    def extract(name: str) -> tuple[FeatureTable, float]:
        start = time.perf_counter()
        rows = create_extractor(name).fit(pictures, executor=executor).transform(pictures, executor=executor)
        return rows, time.perf_counter() - start

    for names in options.names:
        tables, seconds = zip(*map(extract, names.split(",")), strict=True)
        start = time.perf_counter()
        measured = measure_features(join_tables(tables), options.seeds)
        figures = ", ".join(f"{key} {mean:.3f} +- {spread:.3f}" for key, (mean, spread) in measured.items())
        fits = (time.perf_counter() - start) / options.seeds
        print(f"{names:<19} {figures}, {len(pictures)} pictures in {sum(seconds):.0f} s, fit {fits:.1f} s", flush=True)


if __name__ == "__main__":
    main()
