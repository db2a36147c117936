"""Values read from a whole catalogue are read once, however many threads ask for them."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace

import numpy as np
from sqlalchemy import Connection, insert
from tests.collection.merge_proposals.test_proposal_search import merge_names, tag_items_with_labels

from wsabie.collection.db.cache import DatabaseCache
from wsabie.collection.db.database import begin_read, begin_snapshot, begin_write
from wsabie.collection.db.journal import begin_entry, format_current_time, read_last_entry
from wsabie.collection.db.tables import journal, labels
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.collection.registry import model_registry

THREADS = 4


def test_concurrent_readers_read_a_count_once(collection: Collection) -> None:
    with begin_entry(collection.engine, "eve", "labels", "made sea") as change:
        change.add(labels, [{"name": "sea", "language": "", "wordnet": ""}])
    reads, start_barrier = [], Barrier(THREADS)

    def count_reads(connection: Connection) -> int:
        reads.append(connection)
        time.sleep(0.2)
        return len(reads)

    cache = DatabaseCache(count_reads)

    def ask(_: int) -> int:
        with begin_read(collection.engine) as connection:
            start_barrier.wait()
            return cache(connection)

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(ask, range(THREADS))) == [1] * THREADS


def test_cached_counts_follow_the_state_of_a_connection(collection: Collection) -> None:
    def count_labels() -> tuple[int, int]:
        with begin_read(collection.engine) as connection:
            return len(label_store.read_label_names(connection)), read_last_entry(connection)

    with begin_snapshot(collection.engine) as connection:
        counts_before = count_labels()
        with begin_entry(collection.engine, "eve", "labels", "made sea") as change:
            change.add(labels, [{"name": "sea", "language": "", "wordnet": ""}])
        assert (
            count_labels()
            == counts_before
            == (len(label_store.read_label_names(connection)), read_last_entry(connection))
        )
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(count_labels).result()[0] == counts_before[0] + 1
    assert count_labels()[0] == counts_before[0] + 1
    assert count_labels()[1] > counts_before[1]


def test_writer_sees_its_own_last_entry(collection: Collection) -> None:
    with begin_write(collection.engine) as connection:
        entry_before = read_last_entry(connection)
        connection.execute(insert(journal).values(at=format_current_time(), by="eve", action="labels", summary=""))
        assert read_last_entry(connection) > entry_before


def test_concurrent_readers_get_the_labels_of_their_model(collection: Collection) -> None:
    label_ids = tag_items_with_labels(collection, {str(n): [] for n in range(200)})
    annotator = SimpleNamespace(facts={"label_ids": list(label_ids.values())})
    opened = model_registry.LoadedModel(1, collection.place, annotator, None)  # type: ignore[arg-type]
    with begin_read(collection.engine) as old_connection:
        read_last_entry(old_connection)  # this one goes on seeing what was
        merge_names(collection, ["1"], "2")
        with begin_read(collection.engine) as new_connection, ThreadPoolExecutor(2) as pool:

            def often(connection: Connection) -> list[int]:
                return [np.unique(opened.read_current_labels(connection)).size for _ in range(300)]

            assert [set(current_ids) for current_ids in pool.map(often, [old_connection, new_connection])] == [
                {200},
                {199},
            ]
