"""A database that somebody else writes to for too long: asked again later, and nothing is half done."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import text
from starlette.types import Message
from tests.cli.conftest import Cli
from tests.cli.conftest import cli as cli
from tests.faults.conftest import MakeCollection, asking, assert_problem, decision
from tests.faults.truth import assert_sound, states

from wsabie.collection.db import sqlite_file
from wsabie.collection.db.database import begin_read, begin_write, open_database
from wsabie.collection.folder.collection import Collection, open_collection
from wsabie.collection.jobs import queue
from wsabie.collection.jobs.queue import ProgressWriter
from wsabie.core.errors import BusyError
from wsabie.server.limits.request_limits import RequestStages, ServiceLimits
from wsabie.storage.atomic_files import lock_file


@pytest.fixture
def collection(make_collection: MakeCollection, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collection]:
    monkeypatch.setattr(sqlite_file, "WAIT", 0.2)
    with open_collection(make_collection()) as opened:
        yield opened


@contextmanager
def somebody_writes(collection: Collection) -> Iterator[None]:
    second_engine = open_database(collection.engine.url.render_as_string(hide_password=False))
    with begin_write(second_engine):
        yield
    second_engine.dispose()


def test_who_comes_second_is_asked_to_come_again(collection: Collection, cli: Cli) -> None:
    with asking(collection) as client:
        with somebody_writes(collection):
            for path, body in (
                ("decisions", decision(1, "late")),
                ("undo", {}),
                ("jobs", {"kind": "scan"}),
                ("models/1/use", {}),
                ("suggestions/accept", {"min_probability": 0.5}),
            ):
                assert_problem(client.post(f"/api/v1/{path}", json=body), 503, "is being written by somebody else")
            assert client.get("/api/v1/items?k=5").status_code == 200  # readers go on
            assert client.get("/api/v1/collection").status_code == 200
            result = cli("collection", "tag", collection.folder, collection.folder / "001.webp", "--accept", "late")
            assert (result.code, len(result.err.splitlines())) == (1, 1)
            assert "is being written by somebody else" in result.err
        assert states(collection, ["late"]) == {}
        assert client.post("/api/v1/decisions", json=decision(1, "late")).status_code == 200
    assert states(collection, ["late"]) == {(1, "late"): "accepted"}
    assert_sound(collection)


def test_progress_that_cannot_be_told_ends_no_job(collection: Collection) -> None:
    progress = ProgressWriter(collection, 1)
    with somebody_writes(collection), progress.stage("learning", 2, "epochs") as stage:
        stage.advance(1)


def test_the_end_of_a_job_is_written_down_as_soon_as_that_can_be(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = queue.enqueue_job(collection, "apply", {}, by="eve")
    writer = somebody_writes(collection)
    waited: list[float] = []

    def locked(*_: object) -> dict[str, object]:
        writer.__enter__()
        return {}

    main_thread, really = threading.current_thread(), time.sleep

    def sleep(seconds: float) -> None:
        if threading.current_thread() is not main_thread:
            really(seconds)
            return
        waited.append(seconds)
        if len(waited) == 2:
            writer.__exit__(None, None, None)

    monkeypatch.setitem(queue.WORK, "apply", locked)
    monkeypatch.setattr("wsabie.collection.jobs.queue.time.sleep", sleep)
    with lock_file(collection.place / "jobs.lock"):
        queue._run_job(collection, queue.claim_job(collection))  # type: ignore[arg-type]
    assert (queue.read_job(collection, job.id).state, waited[:2]) == ("done", [1, 5])


def test_more_at_once_than_there_are_connections(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = collection.engine.pool
    monkeypatch.setattr(pool, "_timeout", 0.1)
    connections = [collection.engine.connect() for _ in range(pool._max_overflow + pool.size())]  # type: ignore[attr-defined]
    with pytest.raises(BusyError, match="asked too much at once"), begin_read(collection.engine) as connection:
        connection.execute(text("SELECT 1"))
    for open_connection in connections:
        open_connection.close()


def test_a_request_that_the_end_of_the_service_cuts_off_is_told_so() -> None:
    sent: list[Message] = []

    async def never(*_: object) -> None:
        await asyncio.sleep(60)

    async def send(message: Message) -> None:
        sent.append(message)

    async def cut_off() -> None:
        scope = {"type": "http", "method": "GET", "path": "/"}
        limits = ServiceLimits(max_concurrent=5, seconds=60, share=1.0, min_rate=1.0)
        stages = RequestStages(never, limits, lambda _: "")
        task = asyncio.create_task(stages(scope, never, send))  # type: ignore[arg-type]
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    asyncio.run(cut_off())
    assert sent[0]["status"] == 503
    assert (b"retry-after", b"5") in sent[0]["headers"]
