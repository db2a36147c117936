"""Text turned into features per second of CPU, one process: `python -m benchmarks.documents SRC [--words N]`.

SRC is a collection of documents, such as WordNet's folder; it is read into memory first and stated apart: the time of
reading, of counting its words, of describing its documents one by one, and of describing them joined to long ones; what
the counting adds to the resident set; and how long a saved dictionary takes to load and to answer for the first time.
"""

import argparse
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.machine import describe_machine
from wsabie.features.base.sampling import iterate_batches
from wsabie.features.extractors.bag_of_words import BagOfWords
from wsabie.io.data_sources import open_source
from wsabie.io.records import FeatureTable, Item, ItemList

LONG, ROUNDS = 500_000, 3  # bytes


def seconds(work: Callable[[], object]) -> float:
    """CPU time: the median of some rounds."""
    rounds = []
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        rounds.append(time.process_time() - started)
    return float(np.median(rounds))


def resident() -> float:
    """MB, at its highest since `clear_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def clear_peak() -> None:
    """Begin a new highest resident set."""
    Path("/proc/self/clear_refs").write_text("5")


def join_items(items: list[Item]) -> list[Item]:
    """The same text in documents of about `LONG` bytes."""
    pieces: list[Item] = []
    part = bytearray()
    for item in items:
        part += bytes(item.content) + b" "  # type: ignore[arg-type]
        if len(part) > LONG:
            pieces.append(Item(str(len(pieces)), bytes(part), ()))
            part = bytearray()
    return [*pieces, Item(str(len(pieces)), bytes(part or b"none"), ())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("source", type=Path, metavar="SRC")
    parser.add_argument("--words", type=int, default=1_000_000)
    options = parser.parse_args()
    source = open_source(options.source)
    if isinstance(source, FeatureTable) or source.modality != "documents":
        raise SystemExit(f"{options.source} holds no documents; give a collection of them")
    started = time.process_time()
    items = [item for item in source if isinstance(item.content, bytes)]
    reading = time.process_time() - started
    size = sum(len(item.content) for item in items) / 1e6  # type: ignore[arg-type]
    short, long = ItemList(options.source, items, "documents"), join_items(items)
    bag = BagOfWords(options.words).fit(ItemList(options.source, items[:10], "documents"))
    clear_peak()
    memory_before = resident()
    bag.fit(short)
    grown = resident() - memory_before
    print(describe_machine())
    print(f"{len(items):,} documents, {size:.1f} MB of text, {bag.n_features_:,} words, up to {bag.missed_} missed")
    times = {
        "reading a pass": reading,
        "counting words": seconds(lambda: bag.fit(short)),
        "describing": seconds(lambda: deque(bag.extract_batches(iterate_batches(short, bag.batch_size)), 0)),
        "describing long documents": seconds(
            lambda: deque(bag.extract_batches(iterate_batches(long, bag.batch_size)), 0)
        ),
    }
    for operation, took in times.items():
        n = len(long) if "long" in operation else len(items)
        print(f"{operation:26} {size / took:8.1f} MB/s {n / took:12,.0f} documents/s")
    with tempfile.TemporaryDirectory() as folder:
        bag.save(folder)
        loading = seconds(lambda: BagOfWords.load(folder))
        answering = seconds(lambda: BagOfWords.load(folder).extract_text("word"))
    answer = f"loading takes {1e3 * loading:.0f} ms, with a first answer {1e3 * answering:.0f} ms"
    print(f"counting adds {grown:.0f} MB; {answer}")


if __name__ == "__main__":
    main()
