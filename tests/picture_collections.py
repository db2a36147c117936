"""Collections of sample pictures for tests: files in a folder, and their items in the catalogue."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from sqlalchemy import Connection, insert, select

from wsabie.collection.annotations.decisions import Decision, DecisionCounts, write_decisions
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read, begin_write
from wsabie.collection.db.journal import begin_entry, format_current_time
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.samples import get_sample_path

KINDS = ("food", "animals", "computer", "people")


def sample(kinds: Sequence[str] = KINDS, each: int = 30) -> list[dict[str, Any]]:
    """Drawings of some kinds, as many of each: image, labels (the kind first)."""
    rows = []
    for kind in kinds:
        kind_rows = [row for row in _drawings() if row["category"].split("/")[0] in (kind, kind.rstrip("s"))]
        step = max(1, len(kind_rows) // each)
        rows += [row | {"kind": kind} for row in kind_rows[::step][:each]]
    return rows


@cache
def _drawings() -> list[dict[str, Any]]:
    return pq.read_table(get_sample_path("drawings"), columns=["id", "image", "labels", "category"]).to_pylist()  # type: ignore[no-any-return]


def with_pictures(collection: Collection, rows: Iterable[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Write the pictures into the collection's folder and add their items; the rows by number of item."""
    written = []
    for number, row in enumerate(rows):
        path = collection.folder / f"{number:04d}.webp"
        path.write_bytes(row["image"])
        written.append((path, row))
    with begin_write(collection.engine) as connection:
        return {_added(connection, collection, path): row for path, row in written}


def add_item(collection: Collection, path: Path) -> int:
    """The number of a new item, as a scan would add it."""
    with begin_write(collection.engine) as connection:
        return _added(connection, collection, path)


def _added(connection: Connection, collection: Collection, path: Path) -> int:
    content, stat = path.read_bytes(), path.stat()
    row = {
        "root_id": 1,
        "path": path.relative_to(collection.folder).as_posix(),
        "folder": "",
        "hash": hashlib.blake2b(content, digest_size=16).hexdigest(),
        "size": stat.st_size,
        "mtime_ns": stat.st_mtime_ns,
        "state": "present",
        "added_at": format_current_time(),
    }
    number = connection.execute(insert(tables.items).values(row)).inserted_primary_key
    return int(number[0])  # type: ignore[index]


def tag(
    collection: Collection, labels_by_item: dict[int, Iterable[str]], state: str | None = "accepted", **options: Any
) -> DecisionCounts:
    """Decide about labels of items, as one entry."""
    with begin_entry(collection.engine, "eve", "tag", "tagged") as change:
        numbers = label_store.ensure_labels(
            change, sorted({label for labels in labels_by_item.values() for label in labels})
        )
        decisions = [
            Decision(item, numbers[label], state)
            for item, item_labels in labels_by_item.items()
            for label in item_labels
        ]  # type: ignore[arg-type]
        return write_decisions(change, decisions, **options)


def suggested(collection: Collection) -> dict[int, dict[str, float]]:
    """Suggestions of the model in use, by item and label."""
    s, labels, models = tables.suggestions, tables.labels, tables.models
    joined = s.join(labels, labels.c.id == s.c.label_id).join(models, models.c.id == s.c.model_id)
    query = select(s.c.item_id, labels.c.name, s.c.probability).select_from(joined).where(models.c.in_use)
    probabilities: dict[int, dict[str, float]] = {}
    with begin_read(collection.engine) as connection:
        for item, name, probability in connection.execute(query.order_by(s.c.item_id, s.c.probability.desc())):
            probabilities.setdefault(item, {})[name] = probability
    return probabilities
