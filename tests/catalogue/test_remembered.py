"""What is read from a whole catalogue is read once, however many ask for it."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace

import numpy as np
from sqlalchemy import Connection, insert
from tests.catalogue.test_tidying import merged, tagged

from wsabie.catalogue import book, shelf
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import one_state, reading, writing
from wsabie.catalogue.journal import entry, last_entry, now
from wsabie.catalogue.remembered import Remembered
from wsabie.catalogue.tables import journal, labels

THREADS = 4


def test_threads_that_ask_at_once_read_once(collection: Collection) -> None:
    with entry(collection.engine, "eve", "labels", "made sea") as change:
        change.add(labels, [{"name": "sea", "language": "", "wordnet": ""}])
    reads, all_here = [], Barrier(THREADS)

    def read(connection: Connection) -> int:
        reads.append(connection)
        time.sleep(0.2)
        return len(reads)

    known = Remembered(read)

    def ask(_: int) -> int:
        with reading(collection.engine) as connection:
            all_here.wait()
            return known(connection)

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(ask, range(THREADS))) == [1] * THREADS


def test_functions_called_within_one_state_see_it_and_others_what_is_new(collection: Collection) -> None:
    def seen() -> tuple[int, int]:
        with reading(collection.engine) as connection:
            return len(book.names(connection)), last_entry(connection)

    with one_state(collection.engine) as connection:
        before = seen()
        with entry(collection.engine, "eve", "labels", "made sea") as change:
            change.add(labels, [{"name": "sea", "language": "", "wordnet": ""}])
        assert seen() == before == (len(book.names(connection)), last_entry(connection))
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(seen).result()[0] == before[0] + 1
    assert seen()[0] == before[0] + 1
    assert seen()[1] > before[1]


def test_a_writer_sees_its_own_last_entry(collection: Collection) -> None:
    with writing(collection.engine) as connection:
        before = last_entry(connection)
        connection.execute(insert(journal).values(at=now(), by="eve", action="labels", told=""))
        assert last_entry(connection) > before


def test_no_thread_finds_the_labels_of_a_model_gone(collection: Collection) -> None:
    numbers = tagged(collection, {str(n): [] for n in range(200)})
    annotator = SimpleNamespace(facts={"label_ids": list(numbers.values())})
    opened = shelf.OpenModel(1, collection.place, annotator, None)  # type: ignore[arg-type]
    with reading(collection.engine) as before:
        shelf.last_entry(before)  # this one goes on seeing what was
        merged(collection, ["1"], "2")
        with reading(collection.engine) as after, ThreadPoolExecutor(2) as pool:

            def often(connection: Connection) -> list[int]:
                return [np.unique(opened.labels_now(connection)).size for _ in range(300)]

            assert [set(found) for found in pool.map(often, [before, after])] == [{200}, {199}]
