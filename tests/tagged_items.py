"""Collections with tags, for the tests of files of tags."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image
from sqlalchemy import delete, insert, select, text

from wsabie.collection.annotations.decisions import Decision, write_decisions
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read, begin_write
from wsabie.collection.db.journal import begin_entry, format_current_time
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store

PATHS = ["a.jpg", "2024/b.jpg", '2024/ü, "c".jpg', "2024/may/=d.jpg"]


def add_items(collection: Collection, paths: Sequence[str] = PATHS, root: int = 1, first: int = 1) -> None:
    rows: list[dict[str, Any]] = [
        {
            "id": first + i,
            "root_id": root,
            "path": path,
            "folder": path.rpartition("/")[0],
            "hash": f"{first + i:032x}",
            "width": 40,
            "height": 30,
            "state": "present",
            "added_at": format_current_time(),
        }
        for i, path in enumerate(paths)
    ]
    with begin_write(collection.engine) as connection:
        connection.execute(insert(tables.items), rows)
        if collection.engine.dialect.name == "postgresql":  # which counts on from what it gave out itself
            last = "SELECT setval(pg_get_serial_sequence('items', 'id'), max(id)) FROM items"
            connection.execute(text(last))


def draw_pictures(folder: Path, paths: Sequence[str] = PATHS) -> None:
    """Noise, so that there is something to describe."""
    rng = random.Random(0)  # noqa: S311 - no secret
    for i, path in enumerate(paths):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        picture = Image.frombytes("RGB", (40, 30), rng.randbytes(3600))
        picture.putpixel((0, 0), (i % 256, 0, 0))
        picture.resize((80, 60)).save(folder / path, quality=90)


def tag(
    collection: Collection,
    item: int,
    label: str,
    state: str = "accepted",
    region: str = "",
    by: str = "eve",
    **options: Any,
) -> None:
    with begin_entry(collection.engine, by, "tag") as change:
        number = label_store.ensure_labels(change, [label])[label_store.normalise_name(label)]
        write_decisions(change, [Decision(item, number, state, region)], **options)  # type: ignore[arg-type]


def wipe(collection: Collection) -> None:
    """Leave nothing but the roots."""
    with begin_write(collection.engine) as connection:
        connection.execute(tables.labels.update().values(parent_id=None, merged_into=None))
        connection.execute(tables.journal.update().values(undoes=None, undone_by=None))
        for table in reversed(tables.metadata.sorted_tables):
            if table.name != "roots":
                connection.execute(delete(table))


def read_annotations(collection: Collection) -> set[tuple[Any, ...]]:
    """All annotations, with where they come from, by names."""
    a, items, labels, models = tables.annotations, tables.items, tables.labels, tables.models
    query = (
        select(
            *(tables.roots.c.path, items.c.path, labels.c.name, a.c.region, a.c.state, a.c.origin, a.c.by, a.c.at),
            *(models.c.folder, models.c.created_at, a.c.score, a.c.probability),
        )
        .select_from(a)
        .join(items, items.c.id == a.c.item_id)
        .join(tables.roots, tables.roots.c.id == items.c.root_id)
        .join(labels, labels.c.id == a.c.label_id)
        .outerjoin(models, models.c.id == a.c.model_id)
    )
    with begin_read(collection.engine) as connection:
        return {tuple(row[1:] if row[0] == "." else row) for row in connection.execute(query)}


def read_annotation_states(collection: Collection) -> set[tuple[str, str, str, str]]:
    """Path, label, region, state."""
    return {row[:4] for row in read_annotations(collection)}


def read_label_details(collection: Collection) -> dict[str, tuple[str, str | None, tuple[tuple[str, str], ...]]]:
    """Language, parent and synonyms of each label."""
    with begin_read(collection.engine) as connection:
        rows = connection.execute(select(tables.labels)).all()
        synonym_rows = connection.execute(select(tables.synonyms)).all()
    names = {row.id: row.name for row in rows}
    return {
        row.name: (
            row.language,
            names.get(row.parent_id),
            tuple(sorted((s.name, s.language) for s in synonym_rows if s.label_id == row.id)),
        )
        for row in rows
    }


def read_label_synsets(collection: Collection) -> dict[str, str]:
    """Synset of each label that has one."""
    c = tables.labels.c
    with begin_read(collection.engine) as connection:
        return {row.name: row.wordnet for row in connection.execute(select(c.name, c.wordnet).where(c.wordnet != ""))}
