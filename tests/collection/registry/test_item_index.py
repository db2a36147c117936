"""Approximate indices of a collection's items: made, used, kept up with what comes and goes, damaged."""

import logging
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from sqlalchemy import insert, update

from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_write
from wsabie.collection.folder.collection import Collection, create_collection
from wsabie.collection.registry import item_index
from wsabie.collection.registry.item_index import (
    SENSIBLE,
    ItemEmbeddings,
    find_nearest_items,
    index_items,
    load_item_index,
    load_search_index,
    read_index_status,
    renew_indices,
    save_item_embeddings,
)
from wsabie.core.errors import InputError
from wsabie.search.approximate_index import ApproximateIndex, FaissCodes

pytest.importorskip("faiss", reason="faiss is not installed")

N, DIM = 2000, 8


def make_embeddings(first: int, n: int, seed: int = 0) -> ItemEmbeddings:
    table = np.random.default_rng(seed).normal(size=(n, DIM)).astype(np.float32)
    item_ids = np.arange(first, first + n)
    return ItemEmbeddings(item_ids, item_ids.astype(np.uint64) + np.uint64(seed), table)


@pytest.fixture
def filled(tmp_path: Path, database: str | None, monkeypatch: pytest.MonkeyPatch) -> Any:
    with create_collection(tmp_path / "collection", database) as collection:
        rows = [
            {
                "id": i,
                "root_id": 1,
                "path": str(i),
                "folder": "",
                "hash": f"{i:032x}",
                "state": "present",
                "added_at": "",
            }
            for i in range(1, 2 * N + 1)
        ]
        model = {
            "id": 1,
            "folder": "m",
            "created_at": "",
            "method": "full",
            "last_entry_id": 0,
            "in_use": True,
            "is_removed": False,
        }
        with begin_write(collection.engine) as connection:
            connection.execute(insert(tables.items), rows)
            connection.execute(insert(tables.models), [model | {"facts": {}, "figures": {}}])
        save_item_embeddings(collection.models / "m", make_embeddings(1, N))

        class Opened:
            path = collection.models / "m"

        monkeypatch.setattr(item_index, "load_model_in_use", lambda _: Opened)
        yield collection


def search_exactly(
    collection: Collection, query: Any, similarity: Any, **options: Any
) -> list[item_index.ItemNeighbour]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(item_index, "load_item_index", lambda _, __, exact: exact)
        return find_nearest_items(collection, [query], similarity=similarity, **options)[0]


def used(collection: Collection, similarity: str = "cosine") -> Any:
    model = collection.models / "m"
    embeddings, dot, cosine = load_search_index(model)
    return load_item_index(model, embeddings, dot if similarity == "dot" else cosine)


def search_all_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    build_index = ApproximateIndex.from_state.__func__  # type: ignore[attr-defined]

    def opened(cls: Any, parts: Any, exact: Any, places: Any = None) -> Any:
        index = build_index(cls, parts, exact, places)
        index.effort, index.shortlist = 10**6, 5
        return index

    monkeypatch.setattr(ApproximateIndex, "from_state", classmethod(opened))


def test_index_status_depends_on_the_number_of_items(filled: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    model = filled.models / "m"
    assert read_index_status(model, SENSIBLE - 1) == item_index.IndexStatus("small", None, None, None)
    assert read_index_status(model, SENSIBLE).state == "none"
    index_items(filled)
    assert read_index_status(model, N).state == "ready"
    for config in model.glob("item_embeddings/index-*/config.json"):
        config.write_text("{}")
    assert read_index_status(model, SENSIBLE).state == "none"
    monkeypatch.setattr(item_index, "find_spec", lambda _: None)
    assert read_index_status(model, SENSIBLE).state == "not installed"


def test_index_finds_items(filled: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not isinstance(used(filled), ApproximateIndex)
    facts_by_similarity = vars(index_items(filled, recall=0.9))
    assert list(facts_by_similarity) == ["dot", "cosine"]
    assert all(facts["recall@10"] > 0.75 for facts in facts_by_similarity.values())
    stands = read_index_status(filled.models / "m", N)
    assert (stands.state, stands.recall) == ("ready", min(facts["recall@10"] for facts in facts_by_similarity.values()))
    assert stands.milliseconds == max(facts["milliseconds"] for facts in facts_by_similarity.values())
    search_all_cells(monkeypatch)
    for n_removed in (0, 20):  # the first ones, so that all others have other places than when the index was made
        save_item_embeddings(filled.models / "m", ItemEmbeddings(*(part[n_removed:] for part in make_embeddings(1, N))))
        assert isinstance(used(filled), ApproximateIndex)
        for similarity in ("dot", "cosine"):
            for query in make_embeddings(1, 5, seed=8).vectors:
                for options in ({}, {"exclude": range(100, 150)}):
                    expected = search_exactly(filled, query, similarity, k=4, **options)
                    with mock.patch.object(
                        FaissCodes, "search", autospec=True, side_effect=FaissCodes.search
                    ) as search_spy:
                        matches = find_nearest_items(filled, [query], similarity=similarity, k=4, **options)[0]  # type: ignore[arg-type]
                    assert matches == expected
                    assert search_spy.called


def test_index_follows_new_changed_and_removed_items(filled: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a new index: their new points count, and their old ones do not."""
    index_items(filled)
    search_all_cells(monkeypatch)
    model = filled.models / "m"
    save_item_embeddings(
        model, make_embeddings(1, N).merge(make_embeddings(50, 30, seed=3)).merge(make_embeddings(N + 1, 40, seed=4))
    )
    with begin_write(filled.engine) as connection:
        connection.execute(update(tables.items).where(tables.items.c.id.in_(range(200, 220))).values(state="missing"))
    assert isinstance(used(filled), ApproximateIndex)
    for query in (
        *make_embeddings(50, 30, seed=3).vectors[:5],
        *make_embeddings(N + 1, 40, seed=4).vectors[:5],
        *make_embeddings(1, N).vectors[198:203],
    ):
        matches = find_nearest_items(filled, [query])[0]
        assert matches == search_exactly(filled, query, "cosine")
        assert not {near.item for near in matches} & set(range(200, 220))


def test_index_is_renewed_after_many_changes(filled: Collection) -> None:
    model = filled.models / "m"
    assert renew_indices(filled, model) is None
    assert not list(model.glob("item_embeddings/index-*"))  # nobody asked for one
    index_items(filled)
    assert renew_indices(filled, model) is None
    save_item_embeddings(model, make_embeddings(1, N).merge(make_embeddings(N + 1, 30, seed=4)))
    assert renew_indices(filled, model) is None
    save_item_embeddings(model, make_embeddings(1, N).merge(make_embeddings(N + 1, 90, seed=4)))
    assert renew_indices(filled, model) is not None
    assert len(used(filled)._uncoded_labels) == 0
    other_model = filled.models / "other"
    save_item_embeddings(other_model, make_embeddings(1, N, seed=5))
    assert renew_indices(filled, other_model) is not None  # a new model gets what the one before had


def test_incomplete_index_is_ignored_and_renewed(filled: Collection) -> None:
    """Its making was stopped between the similarities."""
    index_items(filled)
    shutil.rmtree(filled.models / "m" / "item_embeddings" / "index-cosine")
    assert read_index_status(filled.models / "m", SENSIBLE).state == "none"
    assert renew_indices(filled, filled.models / "m") is not None
    assert read_index_status(filled.models / "m", SENSIBLE).state == "ready"


def test_concurrent_readers_open_an_index_once(filled: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    index_items(filled)
    calls, opened, model = [], item_index._open, filled.models / "m"

    def slow(*arguments: Any) -> Any:
        calls.append(arguments)
        time.sleep(0.1)
        return opened(*arguments)

    monkeypatch.setattr(item_index, "_open", slow)
    with ThreadPoolExecutor(8) as pool:
        indices = list(pool.map(lambda _: used(filled), range(8)))
    assert len(calls) == 1
    assert len({id(index) for index in indices}) == 1
    save_item_embeddings(model, make_embeddings(1, N))  # another table of the same content
    assert used(filled) is not indices[0]


def test_few_items_get_no_index(filled: Collection) -> None:
    save_item_embeddings(filled.models / "m", make_embeddings(1, 50))
    with pytest.raises(InputError, match="search exactly"):
        index_items(filled)


@pytest.mark.parametrize("damaged_part", ["codes", "config"])
def test_damaged_index_is_ignored(filled: Collection, damaged_part: str, caplog: pytest.LogCaptureFixture) -> None:
    index_items(filled)
    folder = filled.models / "m" / "item_embeddings" / "index-cosine"
    if damaged_part == "config":
        (folder / "config.json").write_text("{}")
    else:
        for file in (folder / "tensors").iterdir():
            file.write_bytes(file.read_bytes()[:-9] + b"123456789")
    with caplog.at_level(logging.WARNING, "wsabie"):
        query = make_embeddings(1, 1, seed=8).vectors[0]
        assert find_nearest_items(filled, [query])[0] == search_exactly(filled, query, "cosine")
    assert "searched exactly" in caplog.text
    assert renew_indices(filled, filled.models / "m") is not None
    assert isinstance(used(filled), ApproximateIndex)
