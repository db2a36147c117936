"""Collections and files that the tests of scanning share."""

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from sqlalchemy import select

from wsabie.collection.annotations.decisions import Decision, write_decisions
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import begin_entry
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.collection.scan.scanner import ScanResult, scan_collection

NOTHING = ScanResult(*[0] * 8, "pictures", (), (), *[0] * 3)


def write_picture(path: Path, colour: int, size: int = 8) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (size, size // 2), (colour, 255 - colour, 7 * colour % 256)).save(path, "PNG")
    return path


def read_rows(collection: Collection) -> dict[str, tuple[int, str]]:
    """Numbers and states of items by their paths."""
    c = tables.items.c
    with begin_read(collection.engine) as connection:
        return {path: (n, state) for n, path, state in connection.execute(select(c.id, c.path, c.state))}


def read_tags(collection: Collection) -> dict[int, dict[str, tuple[str, str]]]:
    """State and origin of labels by item."""
    a, states_by_item = tables.annotations.c, dict[int, dict[str, tuple[str, str]]]()
    query = select(a.item_id, tables.labels.c.name, a.state, a.origin).join(tables.labels)
    with begin_read(collection.engine) as connection:
        for item, name, state, origin in connection.execute(query):
            states_by_item.setdefault(item, {})[name] = (state, origin)
    return states_by_item


def decide_as_person(collection: Collection, item: int, label: str, state: str | None) -> None:
    with begin_entry(collection.engine, "eve", "tag") as change:
        label_id = label_store.ensure_labels(change, [label])[label]
        write_decisions(change, [Decision(item, label_id, state)])  # type: ignore[arg-type]


def run_scan(collection: Collection, **options: object) -> ScanResult:
    return scan_collection(collection, by="eve", **options)  # type: ignore[arg-type]


@pytest.fixture
def photos(collection: Collection) -> Collection:
    """Six pictures, of which two are in a folder; tags are not asked for."""
    for i in range(4):
        write_picture(collection.folder / f"{i}.png", 10 * i)
    for i in range(4, 6):
        write_picture(collection.folder / "sea" / f"{i}.png", 10 * i)
    assert run_scan(collection, tags="none") == replace(NOTHING, new=6)
    return collection


PACKET = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/"><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    'xmlns:d="http://purl.org/dc/elements/1.1/"><r:Description r:about=""><d:subject><r:Bag>{}</r:Bag></d:subject>'
    "</r:Description></r:RDF></x:xmpmeta>"
)


def write_keywords(path: Path, *keywords: str) -> None:
    items = "".join(f"<r:li>{word}</r:li>" for word in keywords)
    Image.new("RGB", (8, 8)).save(path, xmp=PACKET.format(items).encode())
