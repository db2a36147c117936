"""A collection of 100,000 items behind the real service: `python -m benchmarks.service_pages [--folder F]`.

1,000 emoji become a collection and train a model; then each is linked a hundred times, scanned and looked at, and the
points of the copies are moved a little, for equal ones would be compared more than others. Pages of
the gallery, searches by words and similar items are asked for over HTTP, one after the other; what a browser takes to
paint the gallery is measured by `web/tests/paint.mjs`.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pyarrow.parquet as pq

from benchmarks.machine import describe_machine
from wsabie.collection.folder.collection import open_collection
from wsabie.collection.registry.item_index import load_item_embeddings, save_item_embeddings
from wsabie.collection.registry.model_registry import load_model_in_use
from wsabie.samples import get_sample_path

N_PICTURES, N_COPIES = 1000, 100
FIRST = "copy 00"
ROOT = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where the collection is kept, to measure it again")
    options = parser.parse_args()
    print(describe_machine())
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch) / "photos"
        if not (folder / ".wsabie").exists():
            make(folder)
        with serve(folder) as address:
            measure(address)
            subprocess.run(["node", "tests/paint.mjs", address], cwd=ROOT / "web", check=True)


def pictures(folder: Path, n: int = N_PICTURES) -> None:
    """So many emoji, two thirds of them with tags."""
    rows = pq.read_table(get_sample_path("emoji"), columns=["image", "labels"]).slice(0, n).to_pylist()
    (folder / FIRST).mkdir(parents=True)
    with (folder / "metadata.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["file_name", "labels"])
        for number, row in enumerate(rows):
            name = f"{FIRST}/{number:04d}.webp"
            (folder / name).write_bytes(row["image"])
            if number % 3:
                lines.writerow([name, ";".join(label.replace(";", " ") for label in row["labels"][:6])])


def make(folder: Path) -> None:
    """The collection, its model and what it suggests for all items."""
    pictures(folder)
    _collection("init", folder)
    _collection("train", folder)
    for copy in range(1, N_COPIES):
        (folder / f"copy {copy:02d}").mkdir()
        for path in (folder / FIRST).iterdir():
            os.link(path, folder / f"copy {copy:02d}" / path.name)
    _collection("scan", folder)
    _collection("apply", folder)
    with open_collection(folder) as collection:
        opened = load_model_in_use(collection)
        embeddings = load_item_embeddings(opened.path, opened.model.dim)
        noise = 0.05 * embeddings.vectors.std() * np.random.default_rng(0).normal(size=embeddings.vectors.shape)
        save_item_embeddings(opened.path, embeddings._replace(vectors=(embeddings.vectors + noise).astype(np.float32)))


def _collection(command: str, folder: Path) -> None:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "wsabie", "collection", command, folder], check=True, capture_output=True)
    print(f"{command}: {time.perf_counter() - start:.0f} s")


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "wsabie", "serve", str(folder), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process.stderr.readline().split(" on ")[1].split()[0]  # type: ignore[union-attr]
        finally:
            process.terminate()


def measure(address: str) -> None:
    """Milliseconds from question to answer, on this machine."""
    with httpx2.Client(base_url=f"{address}/api/v1", timeout=60, transport=httpx2.HTTPTransport(retries=9)) as client:
        labels = [label["name"] for label in client.get("/vocabulary", params={"k": 300}).json()["labels"]]
        draw = np.random.default_rng(0).permutation(len(labels)).tolist()
        sampled_labels = [labels[i] for i in draw[:60]]
        print("| | median, ms | p95 | most |\n|---|---|---|---|")
        for title, path, questions in [
            ("gallery", "/items", [{"k": 100}] * 20),
            ("gallery, newest first", "/items", [{"k": 100, "sort": "added_at", "descending": True}] * 20),
            ("gallery of a label", "/items", [{"k": 100, "label": name} for name in sampled_labels]),
            ("review, by doubt", "/items", [{"k": 100, "sort": "uncertainty", "descending": True}] * 20),
            ("that no tag fits", "/items", [{"k": 100, "no_tag_fits": 0.9}] * 20),
            (
                "suggested for a label",
                "/items",
                [{"k": 100, "label": n, "label_state": "suggested"} for n in sampled_labels],
            ),
            ("search by a word", "/search", [{"text": f'"{name}"'} for name in sampled_labels]),
            ("completion", "/labels", [{"start": name[:2]} for name in sampled_labels]),
            *[(f"similar to item {n}", f"/items/{n}/similar", [{}] * 20) for n in (7, 70_007)],
        ]:
            times = [_milliseconds(client, path, query) for query in ({}, *questions) if query or path != "/search"]
            p50, p95 = np.percentile(times[1:], [50, 95])
            print(f"| {title} | {p50:.1f} | {p95:.1f} | {max(times[1:]):.1f} |", flush=True)


def _milliseconds(client: Any, path: str, query: dict[str, Any]) -> float:
    start = time.perf_counter()
    client.get(path, params=query).raise_for_status()
    return 1000 * (time.perf_counter() - start)


if __name__ == "__main__":
    main()
