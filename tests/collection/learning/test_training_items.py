"""Items that training reads: too few, changed, missing, unreadable, or of one content."""

import os
import shutil
from typing import Any

import pytest
from sqlalchemy import select
from tests.collection.learning.conftest import OPTIONS, in_use

from picture_collections import add_item, sample, tag, with_pictures
from wsabie.collection.annotations.training_examples import read_examples
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read
from wsabie.collection.folder.collection import Collection
from wsabie.collection.learning import feature_store
from wsabie.collection.learning.suggestions import apply_model
from wsabie.collection.learning.training import train_collection_model
from wsabie.collection.scan.scanner import scan_collection
from wsabie.core.errors import InputError
from wsabie.features.encoders import text_encoders
from wsabie.server.problems import name_pages


def test_too_few_tagged_items_are_refused(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_encoders, "_PACKAGES", ("missing_package",))
    with pytest.raises(InputError, match="has 0 items with tags, of 0 labels; training needs at least 20"):
        train_collection_model(collection, **OPTIONS)
    rows_by_item = with_pictures(collection, sample(each=5))
    tag(collection, {item: [row["kind"]] for item, row in rows_by_item.items() if item < 10})
    with pytest.raises(InputError, match="has 9 items with tags, of 2 labels; training needs at least 20"):
        train_collection_model(collection, **OPTIONS)
    with pytest.raises(InputError, match="has no model yet"):
        apply_model(collection, by="eve")
    assert not collection.models.exists()


def test_changed_files_are_named_when_too_few_remain(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = tagged
    train_collection_model(collection, **OPTIONS)
    for rows_of in collection.features.glob("*/*.parquet"):
        rows_of.unlink()
    first, *later_files = sorted(collection.folder.glob("*.webp"))
    for path in later_files:
        os.utime(path, (1, 1))
    first.unlink()
    with pytest.raises(InputError) as refused:
        train_collection_model(collection, full=True, **OPTIONS)
    assert "40 files changed or disappeared since the last scan, which leaves 0 items with tags" in str(refused.value)
    assert f"; run: `collection.scan('{collection.folder}')" in str(refused.value)
    detail = name_pages(str(refused.value))
    assert "press Scan" in detail
    assert str(collection.folder) not in detail
    scan_collection(collection, by="eve")
    assert train_collection_model(collection, full=True, **OPTIONS).changed == 0


def test_missing_files_are_named_when_none_remain(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = tagged
    for path in collection.folder.glob("*.webp"):
        path.rename(path.with_name(f"other-{path.name}"))
    with pytest.raises(InputError, match=r"changed or disappeared since the last scan; run: `collection\.scan"):
        train_collection_model(collection, **OPTIONS | {"features": "visual-words"})


def test_tagged_items_with_missing_files_are_reported(collection: Collection) -> None:
    rows_by_item = with_pictures(collection, sample(each=12))
    tag(collection, {item: [row["kind"]] for item, row in rows_by_item.items()})
    for path in sorted(collection.folder.glob("*.webp"))[:-3]:
        path.unlink()
    scan_collection(collection, by="eve")
    with pytest.raises(
        InputError, match=f"has 3 items with tags, .*besides {len(rows_by_item) - 3} whose files are missing"
    ):
        train_collection_model(collection, **OPTIONS)


def test_labels_on_all_items_are_refused(collection: Collection) -> None:
    tag(collection, dict.fromkeys(with_pictures(collection, sample(each=15)), ("a", "b")))
    with pytest.raises(InputError, match="carry all labels"):
        train_collection_model(collection, **OPTIONS)
    assert in_use(collection) is None


def test_collections_of_documents_are_refused(collection: Collection) -> None:
    for number in range(25):
        folder = collection.folder / ("sea" if number % 2 else "land")
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.txt").write_text(f"a text of {number}")
    scan_collection(collection, by="eve")
    with pytest.raises(InputError, match="pictures, and this one holds documents; train a model on its files instead"):
        train_collection_model(collection, **OPTIONS)
    assert not collection.models.exists()


def test_unreadable_and_changed_files_are_counted(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _rows = tagged
    bad = collection.folder / "bad.webp"
    bad.write_bytes(b"no picture")
    item_id = add_item(collection, bad)
    tag(collection, {item_id: ["food"]})
    (collection.folder / "0002.webp").write_bytes(b"other than what was scanned")
    (collection.folder / "0004.webp").unlink()
    result = train_collection_model(collection, **OPTIONS)
    assert (result.unreadable, result.changed) == (1, 2)
    with begin_read(collection.engine) as connection:
        state = select(tables.items.c.state).where(tables.items.c.id == item_id)
        assert connection.execute(state).scalar() == "unreadable"
    assert result.inference is not None
    assert result.inference.items == 78


def test_items_of_equal_content_share_a_row_and_decisions(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = tagged
    shutil.copy(collection.folder / "0000.webp", collection.folder / "twin.webp")
    twin = add_item(collection, collection.folder / "twin.webp")
    tag(collection, {twin: ["twin"]}, origin="import", by="list")
    tag(collection, {1: ["twin"]}, "rejected")  # a person's word counts before an import's
    with begin_read(collection.engine) as connection:
        examples = read_examples(connection)
    assert len(examples.hashes) == 40
    assert set(examples.Y[:, examples.names.index("twin")].data) == {-1}
    result = train_collection_model(collection, **OPTIONS)
    assert result.inference is not None
    assert result.inference.items == 81
    (folder,) = (path for path in collection.features.iterdir() if path.is_dir())
    store = feature_store.open_feature_store(collection, feature_store.load_extractor(folder / "extractor"))
    assert len(store.positions) == 80


def test_only_missing_features_are_extracted(
    tagged: tuple[Collection, dict[int, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    collection, _ = tagged
    monkeypatch.setattr(feature_store, "SHARD", 16)
    train_collection_model(collection, **OPTIONS)
    (folder,) = (path for path in collection.features.iterdir() if path.is_dir())
    shards = sorted(folder.glob("*.parquet"))
    assert len(shards) > 3
    shards[1].write_bytes(shards[1].read_bytes()[:-20])  # damaged: its rows are made again, and no others
    row_counts: list[int] = []
    write = feature_store._write
    monkeypatch.setattr(
        feature_store, "_write", lambda store, rows: (row_counts.append(len(rows)), write(store, rows))[1]
    )
    train_collection_model(collection, full=True, **OPTIONS)
    assert sum(row_counts) == 16
