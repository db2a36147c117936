"""Labels that begin at their names: `python -m benchmarks.label_words FOLDER [--counts 0 1 2 --test 3]`.

Photos in FOLDER/images, with one label each in FOLDER/labels.csv or at the end of the name of its file. p@1 of some
photos a label by the number of tagged photos a label, which are drawn from the others. `ConseEncoder` stands in for an
encoder with a text tower: its points are features that lie among names.
"""

import argparse
import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.machine import describe_machine
from wsabie import Wsabie
from wsabie.collection.learning.zero_shot import place_labels
from wsabie.core.arrays import Float32, Int64
from wsabie.features.encoders.text_encoders import SentenceEncoder
from wsabie.features.extractor_registry import create_extractor
from wsabie.features.extractors.onnx_encoders import ConseEncoder
from wsabie.io.records import Item, ItemList


class Photos(NamedTuple):
    """Photos as features and as points among names."""

    features: Float32
    points: Float32
    y: Int64
    names: list[str]
    vectors: Float32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--counts", type=int, nargs="+", default=[0, 1, 2, 5, 20])
    parser.add_argument("--test", type=int, default=30, help="test photos of a label")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print(describe_machine())
    photos = read_photos(options.folder, options.test + max(options.counts))
    starts = {
        "names alone": score_names,
        "ridge": score_ridge,
        "ridge and names": score_both,
        "ridge, on points": partial(score_ridge, on_points=True),
        "names, on points": score_from_names,
    }
    print(f"{len(photos.y):,} photos of {len(photos.names)} labels\n{'':<17}", *(f"{n:>6}" for n in options.counts))
    for name, score in starts.items():
        figures = [measure(score, photos, n, options.test, options.seeds) for n in options.counts]
        print(f"{name:<17}", *(f"{figure:6.3f}" for figure in figures), flush=True)


def read_photos(folder: Path, n_least: int) -> Photos:
    """Photos of the labels that have enough of them."""
    if (folder / "labels.csv").is_file():
        with (folder / "labels.csv").open() as file:
            pairs = [(row["image"], row["tags"]) for row in csv.DictReader(file)]
    else:
        paths = sorted((folder / "images").iterdir())
        pairs = [(path.name, path.stem.split("_", 2)[-1].replace("_", " ")) for path in paths]
    labels = [label for _, label in pairs]
    pairs = [(name, label) for name, label in pairs if labels.count(label) >= n_least]
    items = ItemList(folder, [Item(name, folder / "images" / name, ()) for name, _ in pairs])
    names, y = np.unique([label for _, label in pairs], return_inverse=True)
    features, points = (
        encoder.fit(items).transform(items).X for encoder in (create_extractor("lite0"), ConseEncoder())
    )
    return Photos(features, points, y, names.tolist(), SentenceEncoder().encode(names.tolist()))


Scorer = Callable[[Photos, Int64, Int64], Float32]


def measure(score: Scorer, photos: Photos, n: int, n_test: int, n_seeds: int) -> float:
    hits = []
    for seed in range(n_seeds):
        order = np.random.default_rng(seed).permutation(len(photos.y))
        by_label = [order[photos.y[order] == label] for label in range(len(photos.names))]
        test = np.concatenate([rows[:n_test] for rows in by_label])
        train = np.concatenate([rows[n_test : n_test + n] for rows in by_label])
        hits.append(np.mean(score(photos, train, test).argmax(axis=1) == photos.y[test]))
    return float(np.mean(hits))


def score_names(photos: Photos, train: Int64, test: Int64) -> Float32:
    return place_labels(photos.vectors, photos.names).scores(photos.points[test])


def score_ridge(photos: Photos, train: Int64, test: Int64, on_points: bool = False) -> Float32:
    return fit(Wsabie(seed=0, threads=1), photos.points if on_points else photos.features, photos, train, test)


def score_from_names(photos: Photos, train: Int64, test: Int64) -> Float32:
    start = place_labels(photos.vectors, photos.names)
    if not len(train):
        return start.scores(photos.points[test])
    return fit(Wsabie(start.dim, init_model=start, seed=0, threads=1), photos.points, photos, train, test)


def score_both(photos: Photos, train: Int64, test: Int64) -> Float32:
    """Sum in deviations from the mean of the photo; names count as one example of a label."""
    weight = 1 / (1 + len(train) / len(photos.names))
    scores = standardise(score_ridge(photos, train, test))
    return scores + weight * standardise(score_names(photos, train, test))


def fit(model: Wsabie, X: Float32, photos: Photos, train: Int64, test: Int64) -> Float32:
    """Scores of the labels after training; by chance without examples."""
    if not len(train):
        return np.zeros((len(test), len(photos.names)), np.float32)
    model = model.fit(X[train], [photos.names[label] for label in photos.y[train]])
    return model.scores(X[test])[:, [model.vocabulary_.find(name) for name in photos.names]]


def standardise(scores: Float32) -> Float32:
    deviation = scores.std(axis=1, keepdims=True)
    return (scores - scores.mean(axis=1, keepdims=True)) / np.where(deviation > 0, deviation, 1)


if __name__ == "__main__":
    main()
