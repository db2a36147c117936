"""Milliseconds of a page of 100 items: `python -m benchmarks.collection_pages`.

A collection of 100,000 items in 1,000 folders, with 300,000 annotations and 500,000 suggestions over 5,000 labels, is
made in SQLite; labels are as frequent as words are (Zipf). Of each page the first is measured, and a later one; time is
that of the processor.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import insert, text

from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_write
from wsabie.collection.db.journal import format_current_time
from wsabie.collection.folder.collection import Collection, create_collection
from wsabie.collection.items.filters import ItemFilter
from wsabie.collection.items.item_pages import read_item_details, read_item_page
from wsabie.collection.overview import read_facets

N_ITEMS, N_LABELS, N_FOLDERS = 100_000, 5_000, 1_000


def fill(
    collection: Collection, n: int = N_ITEMS, annotations: int = 3 * N_ITEMS, suggestions: int = 5 * N_ITEMS
) -> None:
    """Rows of all tables that pages are made from."""
    draw, time_, n = np.random.default_rng(0), format_current_time(), N_ITEMS
    chance = 1 / np.arange(1, N_LABELS + 1)
    pairs = {kind: _pairs(draw, n, m, chance / chance.sum()) for kind, m in (("a", 3 * n), ("s", 5 * n))}
    p = draw.random(len(pairs["s"]))
    places = draw.integers(0, N_FOLDERS, n)
    best = draw.random(n)
    with begin_write(collection.engine) as c:
        c.execute(insert(tables.items), [_item(i, int(places[i]), time_) for i in range(n)])
        c.execute(insert(tables.labels), [{"id": i + 1, "name": f"label {i}"} for i in range(N_LABELS)])
        c.execute(insert(tables.models), [{"id": 1, "folder": "m1", "created_at": time_, "method": "full",
                                           "last_entry_id": 0, "in_use": True,
                                           "facts": {}, "figures": {}}])  # fmt: skip
        c.execute(insert(tables.annotations), [
            {"item_id": i + 1, "label_id": j + 1, "state": "accepted" if k % 5 else "rejected", "origin": "import",
             "by": "x", "at": time_} for k, (i, j) in enumerate(pairs["a"])
        ])  # fmt: skip
        c.execute(insert(tables.suggestions), [
            {"model_id": 1, "item_id": i + 1, "label_id": j + 1, "score": float(q), "probability": float(q)}
            for (i, j), q in zip(pairs["s"], p, strict=True)
        ])  # fmt: skip
        c.execute(insert(tables.item_scores), [
            {"model_id": 1, "item_id": i + 1, "best_probability": float(b), "uncertainty": float(min(b, 1 - b)),
             "best_precision": float(b), "scored_at": time_}
            for i, b in enumerate(best)
        ])  # fmt: skip


def _pairs(draw: np.random.Generator, n: int, m: int, chance: Any) -> list[tuple[int, int]]:
    pair_numbers = np.unique(draw.integers(0, n, 2 * m) * N_LABELS + draw.choice(N_LABELS, 2 * m, p=chance))
    return [(int(x) // N_LABELS, int(x) % N_LABELS) for x in np.sort(draw.permutation(pair_numbers)[:m])]


def _item(i: int, place: int, at: str) -> dict[str, Any]:
    folder = f"{2000 + place % 20}/trip {place}"
    taken_at = f"{2000 + place % 20}-{1 + i % 12:02d}-{1 + i % 28:02d}T{i % 24:02d}:00:00" if i % 10 else None
    return {"id": i + 1, "root_id": 1, "path": f"{folder}/IMG_{i:06d}.jpg", "folder": folder, "hash": f"{i:032x}",
            "size": i, "mtime_ns": i, "state": "present" if i % 50 else "missing", "added_at": at, "taken_at": taken_at,
            "width": 4000, "height": 3000}  # fmt: skip


def cases() -> list[tuple[str, ItemFilter, str, bool]]:
    """Filters and orders."""
    rare, common, most = "label 2000", "label 5", "label 0"
    orders = [
        (sort, down)
        for sort in ("path", "taken_at", "added_at", "best_probability", "uncertainty")
        for down in (False, True)
    ]
    filter_cases = [("everything", ItemFilter(), sort, down) for sort, down in orders]
    for name, item_filter in [
        ("rare label", ItemFilter(label=rare)),
        ("common label", ItemFilter(label=common)),
        ("label of a tenth", ItemFilter(label="label 1")),
        ("commonest label", ItemFilter(label=most)),
        ("rejected", ItemFilter(label=common, label_state="rejected")),
        ("suggested", ItemFilter(label=common, label_state="suggested")),
        ("commonest suggested", ItemFilter(label=most, label_state="suggested")),
        ("suggested, p > .9", ItemFilter(label=most, label_state="suggested", min_probability=0.9)),
        ("no label", ItemFilter(unlabelled=True)),
        ("missing", ItemFilter(state="missing")),
        ("folder", ItemFilter(folder="2003/trip 3")),
        ("folder of a year", ItemFilter(folder="2003")),
        ("month", ItemFilter(taken_from="2003-05", taken_to="2003-05")),
        ("years", ItemFilter(taken_from="2003", taken_to="2012")),
        ("a word in all", ItemFilter(words="img")),
        ("rare words", ItemFilter(words="trip 777 img_0")),
        ("a word in none", ItemFilter(words="zebra")),
        ("label and year", ItemFilter(label=most, folder="2019")),
        ("no label, year, word", ItemFilter(unlabelled=True, folder="2019", words="trip")),
    ]:
        sorts = ["path", "taken_at", "uncertainty"] + (
            ["probability"] if item_filter.label_state == "suggested" else []
        )
        filter_cases += [(name, item_filter, sort, sort != "path") for sort in sorts]
    return filter_cases


def milliseconds(work: Callable[[], Any], times: int = 5) -> float:
    """Return the median processor time, which other programs do not disturb."""
    milliseconds_taken = []
    for _ in range(times):
        begin = time.process_time()
        work()
        milliseconds_taken.append(1000 * (time.process_time() - begin))
    return statistics.median(milliseconds_taken)


def main(folder: Path | None) -> None:
    """Print a table."""
    with tempfile.TemporaryDirectory() as scratch, create_collection(folder or Path(scratch)) as collection:
        with collection.engine.connect() as c:
            empty = not c.execute(text("SELECT COUNT(*) FROM items")).scalar()
        if empty:
            fill(collection)
        print("| filter | sorted by | first page, ms | a later page, ms | total |\n|---|---|---|---|---|")
        for name, item_filter, sort, down in cases():
            first = read_item_page(collection, item_filter, sort=sort, descending=down)
            middle = first
            for _ in range(20):
                if middle.next_cursor is None:
                    break
                middle = read_item_page(
                    collection, item_filter, sort=sort, descending=down, cursor=middle.next_cursor, limit=1000
                )
            cursor = middle.next_cursor or first.next_cursor
            ms = milliseconds(lambda: read_item_page(collection, item_filter, sort=sort, descending=down))  # noqa: B023
            later = milliseconds(
                lambda: read_item_page(collection, item_filter, sort=sort, descending=down, cursor=cursor)  # noqa: B023
            )
            total = "" if first.total is None else f"{first.total:,}"
            print(f"| {name} | {'-' if down else ''}{sort} | {ms:.1f} | {later:.1f} | {total} |")
            sys.stdout.flush()
        print(f"\none item: {milliseconds(lambda: read_item_details(collection, 77)):.1f} ms; "
              f"facets: {milliseconds(lambda: read_facets(collection)):.0f} ms")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, help="where the collection is kept, to measure it again")
    main(parser.parse_args().folder)
