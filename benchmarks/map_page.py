"""The map of 100,000 items: `python -m benchmarks.map_page [--items 100000] [--folder DIR] [--umap]`.

300 emoji are learned from; the other items are made up, each near one of them in the space of the model and with its
picture. Measured are the projection, the answers of the service, and, where there are Chromium and built pages, the
frames that a browser draws while the map is dragged and zoomed. Its WebGL is drawn by the processor in a machine
without a graphics card, so a card is never slower.
"""

import argparse
import csv
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pyarrow.parquet as pq
from sqlalchemy import insert, select

from benchmarks.machine import describe_machine
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read, begin_write
from wsabie.collection.db.journal import format_current_time
from wsabie.collection.folder.collection import Collection, create_collection
from wsabie.collection.learning.training import train_collection_model
from wsabie.collection.maps import item_map
from wsabie.collection.maps.item_map import compute_principal_components
from wsabie.collection.registry.item_index import load_item_embeddings, save_item_embeddings
from wsabie.collection.registry.model_registry import load_model_in_use
from wsabie.collection.scan.scanner import scan_collection
from wsabie.samples import get_sample_path

REAL = 300
WEB = Path(__file__).parents[1] / "web"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where the collection is kept, to measure it again")
    parser.add_argument("--umap", action="store_true", help="minutes more")
    options = parser.parse_args()
    print(describe_machine())
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch) / "collection"
        with create_collection(folder) as collection:
            if not load_some(collection):
                fill(collection, options.items)
            in_process(collection, options.umap)
        serve_pages(folder)


def fill(collection: Collection, n: int) -> None:
    """Real items and a model of them, then items near them."""
    rows = pq.read_table(get_sample_path("emoji"), columns=["image", "labels"]).to_pylist()[:: 3635 // REAL][:REAL]
    with (collection.folder / "metadata.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["file_name", "labels"])
        for number, row in enumerate(rows):
            (collection.folder / f"{number:03d}.webp").write_bytes(row["image"])
            lines.writerow([f"{number:03d}.webp", ";".join(label.replace(";", " ") for label in row["labels"][:6])])
    scan_collection(collection, by="benchmark")
    train_collection_model(collection, by="benchmark", features="colour", epochs=10)
    opened = load_model_in_use(collection)
    embeddings = load_item_embeddings(opened.path, opened.model.dim)
    draw = np.random.default_rng(0)
    parents = draw.integers(0, len(embeddings.items), n - len(embeddings.items))
    noise = draw.normal(scale=0.35, size=(len(parents), opened.model.dim)) * embeddings.vectors.std()
    numbers = np.arange(len(parents)) + 1 + embeddings.items[-1]
    with begin_read(collection.engine) as connection:
        item_rows = [row._asdict() for row in connection.execute(select(tables.items).order_by(tables.items.c.id))]
        s, a = tables.suggestions.c, tables.annotations.c
        thought: dict[int, list[dict[str, Any]]] = {}
        for row in connection.execute(select(tables.suggestions).where(s.probability > 0.05)):
            thought.setdefault(row.item_id, []).append(row._asdict())
        decided: dict[int, list[int]] = {}
        for item, label in connection.execute(select(a.item_id, a.label_id)):
            decided.setdefault(item, []).append(label)
    copies = list(zip(numbers.tolist(), (embeddings.items[parents]).tolist(), strict=True))
    rows = {row["id"]: row for row in item_rows}
    with begin_write(collection.engine) as connection:
        connection.execute(
            insert(tables.items), [rows[of] | {"id": i, "path": f"made up/{i}.webp"} for i, of in copies]
        )
        connection.execute(
            insert(tables.suggestions), [r | {"item_id": i} for i, of in copies for r in thought.get(of, ())]
        )
        connection.execute(
            insert(tables.annotations),
            [
                {
                    "item_id": i,
                    "label_id": label,
                    "state": "accepted",
                    "origin": "import",
                    "by": "x",
                    "at": format_current_time(),
                }
                for i, of in copies
                if i % 3 == 0
                for label in decided.get(of, ())
            ],
        )
    moved = embeddings._replace(
        items=numbers,
        hashes=embeddings.hashes[parents],
        vectors=(embeddings.vectors[parents] + noise).astype(np.float32),
    )
    save_item_embeddings(opened.path, embeddings.merge(moved))


def load_some(collection: Collection) -> bool:
    """Return True if the collection has items."""
    with begin_read(collection.engine) as connection:
        return connection.execute(select(tables.items.c.id).limit(1)).first() is not None


def in_process(collection: Collection, umap: bool) -> None:
    """The projection and what it is asked for."""
    opened = load_model_in_use(collection)
    points = load_item_embeddings(opened.path, opened.model.dim).vectors
    start = time.perf_counter()
    components = compute_principal_components(points)
    components.project(points)
    shape = f"{points.shape[0]:,} x {points.shape[1]}"
    print(
        f"principal components of {shape}: {1000 * (time.perf_counter() - start):.0f} ms, "
        f"{components.share:.0%} of variance"
    )
    for name in ("first", "again"):
        start = time.perf_counter()
        picture_map = item_map.build_map(collection)
        between = time.perf_counter()
        n = len(item_map.place_labels(collection, picture_map))
        print(
            f"{name}: map {1000 * (between - start):.0f} ms, {n} labels {1000 * (time.perf_counter() - between):.0f} ms"
        )
    print(item_map.measure_map_quality(collection, picture_map))
    if umap:
        start = time.perf_counter()
        item_map.compute_projection(collection)
        print(
            f"UMAP: {time.perf_counter() - start:.0f} s",
            item_map.measure_map_quality(collection, item_map.build_map(collection, "umap")),
        )


def serve_pages(folder: Path) -> None:
    """Answers of the service, then a browser."""
    command = [sys.executable, "-m", "wsabie", "serve", str(folder), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            address = process.stderr.readline().split(" on ")[1].split()[0]  # type: ignore[union-attr]
            with httpx2.Client(base_url=f"{address}/api/v1", timeout=60) as client:
                label = client.get("/map/labels?k=1").json()["labels"][0]["label"]
                for path in ("/map", "/map/points", "/map/labels", f"/map/label?label={label}"):
                    answer, ms = time_answers(lambda: client.get(path))  # noqa: B023
                    sent = len(gzip.compress(answer.content, 1)) if "json" not in answer.headers["content-type"] else 0
                    print(f"{path}: {ms:.1f} ms, {len(answer.content):,} bytes" + (f", {sent:,} sent" if sent else ""))
            if shutil.which("node") and (WEB / "node_modules/playwright-core").exists():
                subprocess.run(["node", "tests/frames.mjs", address], cwd=WEB, check=True, env={**os.environ})
        finally:
            process.terminate()


def time_answers(ask: Callable[[], Any], times: int = 20) -> tuple[Any, float]:
    """An answer, and the median time of it."""
    milliseconds = []
    for _ in range(times + 1):
        start = time.perf_counter()
        answer = ask()
        milliseconds.append(1000 * (time.perf_counter() - start))
    return answer, float(np.median(milliseconds[1:]))


if __name__ == "__main__":
    main()
