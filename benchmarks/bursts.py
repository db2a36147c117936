"""Planted bursts: `python -m benchmarks.bursts photos_clothing --copies 1 --seeds 3`.

Photos in FOLDER/images with one label each in FOLDER/labels.csv. Some are tagged, each with copies of another crop and
brightness, which have no time. The others have no tags: the first suggestions for them are the truth for new photos,
and what the training reports about held-out photos should equal it.
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

N_TAGGED = 800


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print(describe_machine())
    with (options.folder / "labels.csv").open() as file:
        labels = {row["image"]: row["tags"] for row in csv.DictReader(file)}
    print("seed  held out by  reported p@1  p@1 of new photos  photos held out")
    for seed in range(options.seeds):
        with tempfile.TemporaryDirectory() as scratch:
            photos = Path(scratch) / "photos"
            write_photos(options.folder / "images", labels, photos, options.copies, np.random.default_rng(seed))
            subprocess.run([sys.executable, "-m", "wsabie", "collection", "init", photos], check=True, stdout=2)
            for unit in ("burst", "file"):
                print(f"{seed:>4}  {unit:>11}  {measure(photos, labels, by_file=unit == 'file')}", flush=True)


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


def measure(photos: Path, labels: dict[str, str], *, by_file: bool) -> str:
    """Train and return the figures of held-out and of new photos."""
    with open_collection(photos) as collection:
        alone = patch.object(bursts, "find_leaders", lambda X, *_: np.arange(X.shape[0]))
        with collection.engine.begin() as connection:
            connection.execute(tables.bursts.delete())
        with alone if by_file else patch.dict({}):
            result = train_collection_model(collection, by="benchmark", features="lite0", full=True, even_if_worse=True)
        s, i, names = tables.suggestions.c, tables.items.c, tables.labels.c
        query = select(i.path, names.name, s.probability).where(
            s.item_id == i.id, names.id == s.label_id, s.model_id == result.model, i.path.like("new-%")
        )
        with begin_read(collection.engine) as connection:
            rows = connection.execute(query.order_by(s.probability)).all()
    first = {path: (name, probability) for path, name, probability in rows}  # the last is the most probable
    is_right = [labels[path.removeprefix("new-")] == name for path, (name, _) in first.items()]
    return f"{result.figures['now']['p@1']:>12.3f}  {np.mean(is_right):>17.3f}  {result.figures['items']:>15}"


if __name__ == "__main__":
    main()
