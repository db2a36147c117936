"""Planted bursts: `python -m benchmarks.bursts photos_clothing --copies 1 --seeds 3`.

Photos in FOLDER/images with one label each in FOLDER/labels.csv. Some are tagged, each with copies of another crop and
brightness, which have no time. The others have no tags: the suggestions for them are the truth for new photos, and what
the training reports about held-out photos should equal it.

p@1 is that of the first suggestions. Precision is the share of right suggestions from a probability on: from .5, where
nothing is promised, as held-out photos show it; and from the thresholds of promises, which are lower bounds.
"""

import argparse
import csv
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
from PIL import Image, ImageEnhance
from sqlalchemy import select

from benchmarks.machine import describe_machine
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read
from wsabie.collection.folder.collection import open_collection
from wsabie.collection.learning import bursts
from wsabie.collection.learning.training import train_collection_model
from wsabie.collection.registry.model_registry import load_model

N_TAGGED = 800
SHOWN = 0.5
PROMISES = (0.95, 0.9, 0.8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--units", nargs="+", choices=("burst", "file"), default=["burst", "file"])
    options = parser.parse_args()
    print(describe_machine())
    with (options.folder / "labels.csv").open() as file:
        labels = {row["image"]: row["tags"] for row in csv.DictReader(file)}
    results: dict[str, list[dict[str, float]]] = {unit: [] for unit in options.units}
    for seed in range(options.seeds):
        with tempfile.TemporaryDirectory() as scratch:
            photos = Path(scratch) / "photos"
            write_photos(options.folder / "images", labels, photos, options.copies, np.random.default_rng(seed))
            subprocess.run([sys.executable, "-m", "wsabie", "collection", "init", photos], check=True, stdout=2)
            for unit, figures in results.items():
                figures.append(measure(photos, labels, by_file=unit == "file"))
                print(seed, unit, {name: round(value, 3) for name, value in figures[-1].items()}, flush=True)
    print("| held out by | figure | seeds | reported | new | difference, 95 % interval |\n|---|---|---|---|---|---|")
    for unit, figures in results.items():
        for name in ("p@1", f"precision from {SHOWN}", *(f"{precision:.0%} promised" for precision in PROMISES)):
            print(f"| {unit} | {name} | {summarize(figures, name)} |")


def summarize(figures: list[dict[str, float]], name: str) -> str:
    """Return the seeds with a figure, the means of reported and new ones, and their difference with its interval."""
    pairs = np.array([(one[f"reported {name}"], one[f"new {name}"]) for one in figures if f"new {name}" in one])
    if len(pairs) < 2:
        return f"{len(pairs)} | | | "
    gaps, (reported, new) = pairs[:, 0] - pairs[:, 1], pairs.mean(axis=0)
    half = 1.96 * gaps.std(ddof=1) / len(gaps) ** 0.5
    interval = f"{gaps.mean():+.3f} ({gaps.mean() - half:.3f} to {gaps.mean() + half:.3f})"
    return f"{len(gaps)} | {reported:.3f} | {new:.3f} | {interval}"


def write_photos(images: Path, labels: dict[str, str], photos: Path, n_copies: int, draw: np.random.Generator) -> None:
    photos.mkdir()
    lines = ["file_name,labels"]
    names = draw.permutation(sorted(labels)).tolist()
    for name in names[:N_TAGGED]:
        shutil.copy(images / name, photos / name)
        lines.append(f"{name},{labels[name]}")
        for copy in range(n_copies):
            (photos / f"{copy}-{name}").write_bytes(change(images / name, draw))
            lines.append(f"{copy}-{name},{labels[name]}")
    for name in names[N_TAGGED:]:
        shutil.copy(images / name, photos / f"new-{name}")
    (photos / "metadata.csv").write_text("\n".join(lines) + "\n")


def change(path: Path, draw: np.random.Generator) -> bytes:
    """A crop that leaves out up to 8 % of each side, up to 15 % brighter or darker."""
    with Image.open(path) as image:
        width, height = image.size
        cut = draw.uniform(0.02, 0.08)
        left, top = draw.uniform(0, cut, 2)
        box = (left * width, top * height, (left + 1 - cut) * width, (top + 1 - cut) * height)
        copy = ImageEnhance.Brightness(image.convert("RGB").crop(tuple(map(int, box)))).enhance(
            draw.uniform(0.85, 1.15)
        )
    file = io.BytesIO()
    copy.save(file, "JPEG", quality=88)
    return file.getvalue()


def measure(photos: Path, labels: dict[str, str], *, by_file: bool) -> dict[str, float]:
    """Train and return the reported figures and those of new photos."""
    with open_collection(photos) as collection:
        alone = patch.object(bursts, "find_leaders", lambda X, *_: np.arange(X.shape[0]))
        with collection.engine.begin() as connection:
            connection.execute(tables.bursts.delete())
        with alone if by_file else patch.dict({}):
            result = train_collection_model(collection, by="benchmark", features="lite0", full=True, even_if_worse=True)
        s, i, names = tables.suggestions.c, tables.items.c, tables.labels.c
        query = select(i.path, names.id, names.name, s.probability).where(
            s.item_id == i.id, names.id == s.label_id, s.model_id == result.model, i.path.like("new-%")
        )
        with begin_read(collection.engine) as connection:
            rows = connection.execute(query.order_by(s.probability)).all()
        model = load_model(collection, result.model)
        thresholds = [model.find_threshold(precision) for precision in PROMISES]
        judged = model.holdout_suggestions
    right = np.array([labels[path.removeprefix("new-")] == name for path, _, name, _ in rows])
    probabilities = np.array([row.probability for row in rows])
    first = {row.path: is_right for row, is_right in zip(rows, right, strict=True)}  # the last is the most probable
    figures = {"held out": result.figures["items"], "reported p@1": result.figures["metrics"]["p@1"]}
    figures["new p@1"] = np.mean(list(first.values()))
    figures[f"reported precision from {SHOWN}"] = judged.right[judged.probabilities >= SHOWN].mean()
    figures[f"new precision from {SHOWN}"] = right[probabilities >= SHOWN].mean()
    for threshold in thresholds:
        limits = np.array([threshold.get_probability(row.id) for row in rows])
        if (probabilities >= limits).any():
            figures[f"reported {threshold.precision:.0%} promised"] = threshold.precision
            figures[f"new {threshold.precision:.0%} promised"] = right[probabilities >= limits].mean()
    return {name: float(value) for name, value in figures.items()}


if __name__ == "__main__":
    main()
