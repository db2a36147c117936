"""First labels of photos by features: `python -m benchmarks.photo_features FOLDER [NAMES ...]`.

FOLDER holds `labels.csv` (image, tags) and `images`. A fifth of the photos is held out by each of five seeds, and
`Wsabie()` is trained on the rest. Dictionaries are learnt from all photos, without labels.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np

from benchmarks.machine import describe_machine
from wsabie.core.executors import ProcessExecutor
from wsabie.core.machine import count_available_cores
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.evaluation.splits import split
from wsabie.features.extractor_registry import create_extractor
from wsabie.io.records import FeatureTable, Item, ItemList
from wsabie.models.wsabie.estimator import Wsabie

SEEDS = range(5)


def open_photos(folder: Path) -> ItemList:
    """The photos of a folder with the labels of its table."""
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    items = [Item(row["image"], folder / "images" / row["image"], tuple(row["tags"].split(";"))) for row in rows]
    return ItemList(folder, items)


def measure_features(rows: FeatureTable) -> dict[str, tuple[float, float]]:
    """Mean and deviation of the held-out figures over seeds."""
    figures: dict[str, list[float]] = {"p@1": [], "MAP": []}
    for seed in SEEDS:
        sides = split(len(rows), by="label", valid=0, test=0.2, Y=rows.Y, seed=seed)
        train, test = rows.take(sides.train), rows.take(sides.test)
        model = Wsabie(seed=seed).fit(train.X, train.Y)
        means = evaluate_scores([(0, model.scores(test.X))], test.Y).means
        for name, values in figures.items():
            values.append(means[name])
    return {name: (float(np.mean(values)), float(np.std(values, ddof=1))) for name, values in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=("visual-words", "lite0", "lite0,colour"))
    options = parser.parse_args()
    print(describe_machine())
    photos, executor = open_photos(options.folder), ProcessExecutor(count_available_cores())
    for names in options.names:
        start = time.perf_counter()
        rows = create_extractor(names).fit(photos, executor=executor).transform(photos, executor=executor)
        seconds = time.perf_counter() - start
        figures = ", ".join(
            f"{key} {mean:.3f} +- {spread:.3f}" for key, (mean, spread) in measure_features(rows).items()
        )
        print(f"{names:<14} {figures}, {len(photos)} photos in {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
