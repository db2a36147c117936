"""Pictures a second that one core turns into visual words, by stage, on real pictures.

    python -m benchmarks.visual_words [FOLDER ...] [--words 10000] [--pictures 200]

Without a folder the collections `car_parts` (512 px) and `imagen_200x5` (192 px) of the folder named by
WSABIE_TEST_DATA are taken. Each stage is timed by itself in processor time of one thread, the best of three passes;
"together" is the whole way from file to row. The dictionary is learned from the first folder's pictures.
"""

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from wsabie.core.execution import ProcessExecutor
from wsabie.core.machine import collect_versions, count_available_cores
from wsabie.features.extractors.visual_words import BlockConfig, VisualWords, extract_block_descriptors
from wsabie.features.images.augmentation import crop_view, generate_views
from wsabie.features.images.image_decoder import decode_image
from wsabie.io.records import Item, ItemList

BAR = 40.0  # pictures a second and core


def main() -> int:
    """Print one table, or JSON; exit 1 when the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--pictures", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    collections = [pictures_in(folder, options.pictures) for folder in options.folders or shared_folders()]
    collections = [source for source in collections if len(source)]
    if not collections:
        print("no pictures: give a folder, or set WSABIE_TEST_DATA", file=sys.stderr)
        return 2
    with threadpool_limits(1):
        start = time.process_time()
        extractor = VisualWords(options.words).fit(collections[0])
        learning_seconds = time.process_time() - start
        tables = [measure_stages(source, extractor) for source in collections]
    report = {
        "words": options.words,
        "learning_s": round(learning_seconds, 1),
        "collections": tables,
        "versions": collect_versions(),
    }
    report["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    report["two_processes"] = [
        in_processes(source, extractor, table) for source, table in zip(collections, tables, strict=True)
    ]
    print(json.dumps(report, indent=1) if options.json else format_report(report))
    return 0 if all(table["together"] >= BAR for table in tables) else 1


def shared_folders() -> list[Path]:
    """The two collections of real pictures in the shared test data."""
    root = Path(os.environ.get("WSABIE_TEST_DATA", ""))
    return [root / "car_parts" / "trainingset" / "JPEGImages", root / "imagen_200x5" / "images"]


def pictures_in(folder: Path, at_most: int) -> ItemList:
    """The first pictures of a folder, without labels."""
    files = sorted(p for p in folder.glob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp"))
    return ItemList(folder, [Item(file.name, file, ()) for file in files[:at_most]])


def measure_stages(source: ItemList, extractor: VisualWords) -> dict[str, Any]:
    """Pictures a second and core for each stage, and what a picture becomes."""
    decoded = [decode_image(picture.content, size=extractor.size) for picture in source]
    view, plan = generate_views("")[0], BlockConfig()
    blocks = [extract_block_descriptors(crop_view(pixels, view), plan) for pixels in decoded]
    rows = extractor.transform(source)
    stages: dict[str, Callable[[Any], object]] = {
        "decode": lambda picture: decode_image(picture.content, size=extractor.size),
        "blocks": lambda pixels: extract_block_descriptors(pixels, plan),
        "assign": lambda descriptors: extractor.codebook_.assign(descriptors),
        "together": lambda picture: extractor.transform_one(picture.content),
    }
    inputs: dict[str, Iterable[Any]] = {"decode": source, "blocks": decoded, "assign": blocks, "together": source}
    rates = {name: round(len(source) / best_of_three(stages[name], inputs[name]), 1) for name in stages}
    sides = sorted(max(pixels.shape) for pixels in decoded)
    return {
        "folder": "/".join(source.path.parts[-3:]),
        "pictures": len(source),
        "longer_side": sides[len(sides) // 2],
        "blocks_a_picture": round(float(np.mean([len(descriptors) for descriptors in blocks])), 1),
        "words_a_picture": round(rows.X.nnz / len(rows), 1),
        **rates,
    }


def best_of_three(work: Callable[[Any], object], items: Iterable[Any]) -> float:
    """Processor seconds of the fastest of three passes."""
    passes = []
    for _ in range(3):
        start = time.process_time()
        for item in items:
            work(item)
        passes.append(time.process_time() - start)
    return min(passes)


def in_processes(source: ItemList, extractor: VisualWords, table: dict[str, Any]) -> dict[str, Any]:
    """Wall-clock rate of a pool on all cores after its start, and how much of the cores it uses."""
    workers = count_available_cores()
    many = ItemList(source.path, list(source) * 4)
    stream = extractor.iterate(many, executor=ProcessExecutor(workers))
    for _ in range(64):
        next(stream)  # the workers have started and loaded their kernels
    start = time.perf_counter()
    n = sum(1 for _ in stream)
    rate = n / (time.perf_counter() - start)
    return {
        "workers": workers,
        "pictures_a_second": round(rate, 1),
        "of_ideal": round(rate / workers / table["together"], 2),
    }


def format_report(report: dict[str, Any]) -> str:
    """The report as text."""
    lines = [f"{report['words']:,} visual words, learned in {report['learning_s']} s of processor time"]
    lines.append(f"{'':40} {'side':>5} {'blocks':>7} {'words':>6} | pictures/s on one core")
    lines.append(f"{'':40} {'':>5} {'':>7} {'':>6} | {'decode':>7} {'blocks':>7} {'assign':>7} {'together':>9}")
    for table, pool in zip(report["collections"], report["two_processes"], strict=True):
        lines.append(
            f"{table['folder'][-40:]:40} {table['longer_side']:>5} {table['blocks_a_picture']:>7} "
            f"{table['words_a_picture']:>6} | {table['decode']:>7} {table['blocks']:>7} {table['assign']:>7} "
            f"{table['together']:>9}  (bar {BAR:g}: {table['together'] / BAR:.2f})"
        )
        lines.append(
            f"{'':40} {pool['workers']} processes: {pool['pictures_a_second']} pictures/s by the clock, "
            f"{pool['of_ideal']:.0%} of as many cores"
        )
    lines.append(f"peak memory {report['peak_mb']} MB; {report['versions']}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
