"""First suggestions in a collection with the defaults: `python -m benchmarks.first_suggestions FOLDER --seeds 3`.

Photos in FOLDER/images with one label each: in FOLDER/labels.csv, or else in file names such as n02_17_red_fox.jpg. The
labels are written into `metadata.csv`, a part of the photos is left out of it, and the command line runs `init`,
`train` and `apply`: with the features that it chooses, and with visual words. Logistic regression learns from the rows
of the former that the training learned from, and its C is chosen by cross-validation.

The interval is a bootstrap over the untagged photos of all seeds, in pairs.
"""

import argparse
import csv
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sqlalchemy import select

from benchmarks.machine import describe_machine
from wsabie.collection.annotations.training_examples import read_examples
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read
from wsabie.collection.folder.collection import Collection, open_collection
from wsabie.collection.learning.feature_store import open_feature_store
from wsabie.collection.registry.model_registry import LoadedModel, load_model_in_use

PRECISION = 0.95
N_RESAMPLES = 2000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print(describe_machine())
    labels = read_labels(options.folder)
    hits: dict[str, list[bool]] = {"the default": [], "visual words": [], "logistic regression": []}
    promised: list[bool] = []
    for seed in range(options.seeds):
        untagged = draw_untagged(labels, np.random.default_rng(seed))
        for name, features in (("the default", None), ("visual words", "visual-words")):
            with tempfile.TemporaryDirectory() as scratch:
                photos = Path(scratch) / "photos"
                write_photos(options.folder / "images", labels, untagged, photos)
                run_commands(photos, features)
                with open_collection(photos) as collection:
                    model = load_model_in_use(collection)
                    right, kept = judge_suggestions(collection, model, labels, untagged)
                    hits[name] += right
                    if features is None:
                        promised += kept
                        hits["logistic regression"] += fit_logistic(collection, model, labels, untagged)
        print(seed, {name: round(float(np.mean(right)), 3) for name, right in hits.items()}, flush=True)
    print(summarize(hits, promised))


def read_labels(folder: Path) -> dict[str, str]:
    if (folder / "labels.csv").exists():
        with (folder / "labels.csv").open() as file:
            return {row["image"]: row["tags"] for row in csv.DictReader(file)}
    names = sorted(path.name for path in (folder / "images").iterdir())
    return {name: Path(name).stem.split("_", 2)[2].replace("_", " ") for name in names}


def draw_untagged(labels: dict[str, str], draw: np.random.Generator) -> list[str]:
    """Draw a quarter of the photos, or one of each label where there are 100 labels or more."""
    names = draw.permutation(sorted(labels)).tolist()
    if len(set(labels.values())) < 100:
        return sorted(names[: len(names) // 4])
    return sorted({labels[name]: name for name in names}.values())


def write_photos(images: Path, labels: dict[str, str], untagged: list[str], photos: Path) -> None:
    photos.mkdir()
    for name in labels:
        shutil.copy(images / name, photos)
    lines = [f"{name},{label}" for name, label in labels.items() if name not in set(untagged)]
    (photos / "metadata.csv").write_text("\n".join(["file_name,labels", *lines]) + "\n")


def run_commands(photos: Path, features: str | None) -> None:
    choice = [] if features is None else ["--features", features]
    for words in (["init", photos], ["train", photos, *choice], ["apply", photos]):
        subprocess.run([sys.executable, "-m", "wsabie", "collection", *words], check=True, stdout=2)


def judge_suggestions(
    collection: Collection, model: LoadedModel, labels: dict[str, str], untagged: list[str]
) -> tuple[list[bool], list[bool]]:
    """Return which first suggestions are right, by photo, and which of those with a promised precision."""
    s, i, names = tables.suggestions.c, tables.items.c, tables.labels.c
    query = select(i.path, names.id, names.name, s.probability).where(
        s.item_id == i.id, names.id == s.label_id, s.model_id == model.id, i.path.in_(untagged)
    )
    with begin_read(collection.engine) as connection:
        rows = connection.execute(query.order_by(s.probability)).all()
    first = {row.path: labels[row.path] == row.name for row in rows}  # the last is the most probable
    threshold = model.find_threshold(PRECISION)
    kept = [labels[row.path] == row.name for row in rows if row.probability >= threshold.get_probability(row.id)]
    return [first.get(name, False) for name in untagged], kept


def fit_logistic(collection: Collection, model: LoadedModel, labels: dict[str, str], untagged: list[str]) -> list[bool]:
    """Return which photos logistic regression names rightly, from the rows that are not held out."""
    with begin_read(collection.engine) as connection:
        hashes = dict(connection.execute(select(tables.items.c.path, tables.items.c.hash)).all())
        examples = read_examples(connection)
    held_out = {content for content, is_held in zip(examples.hashes, examples.is_holdout, strict=True) if is_held}
    tagged = [name for name in labels if name not in set(untagged) and hashes[name] not in held_out]
    store = open_feature_store(collection, model.extractor)
    rows, tests = (store.matrix([hashes[name] for name in names])[0] for names in (tagged, untagged))
    classifier = make_pipeline(StandardScaler(), LogisticRegressionCV(Cs=[1e-4, 1e-3, 1e-2, 0.1], cv=3, max_iter=500))
    predicted = classifier.fit(rows, [labels[name] for name in tagged]).predict(tests)
    return [label == labels[name] for label, name in zip(predicted, untagged, strict=True)]


def summarize(hits: dict[str, list[bool]], promised: list[bool]) -> str:
    """Return a table of the shares of right first suggestions, and of the gap to the default with its interval."""
    lines = ["| features | photos | right | default minus this, 95 % interval |", "|---|---|---|---|"]
    default = np.array(hits["the default"], float)
    samples = np.random.default_rng(0).integers(0, len(default), (N_RESAMPLES, len(default)))
    for name, right in hits.items():
        gaps = default - np.array(right, float)
        low, high = np.quantile(gaps[samples].mean(axis=1), [0.025, 0.975])
        lines.append(f"| {name} | {len(right)} | {np.mean(right):.3f} | {gaps.mean():+.3f} ({low:.3f} to {high:.3f}) |")
    share = f"{np.mean(promised):.3f} of {len(promised)}" if promised else "none"
    return "\n".join([*lines, f"suggestions called {PRECISION:.0%} precise that are right: {share}"])


if __name__ == "__main__":
    main()
