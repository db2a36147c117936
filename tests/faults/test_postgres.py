"""PostgreSQL is stopped and started again while a service is asked, which needs no start of its own for that."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2 as httpx
import pytest
from sqlalchemy import make_url
from tests.databases import new_database
from tests.faults.conftest import assert_problem, decision, make_trained
from tests.faults.service import PATIENCE, Service, kill
from tests.faults.truth import assert_sound, states

from wsabie.collection.folder.collection import open_collection
from wsabie.collection.jobs import queue

Control = Callable[..., None]
PG_CTL = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
WITH_POSTGRES = Path(__file__).parents[2] / "scripts" / "with-postgres"


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[str | None]:
    """In a server of this test alone: others run beside it, which need theirs."""
    if not PG_CTL:
        pytest.skip("no PostgreSQL is installed")
    words = [WITH_POSTGRES, "sh", "-c", "echo $WSABIE_TEST_POSTGRES; cat"]  # it ends with its input
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        monkeypatch.setenv("WSABIE_TEST_POSTGRES", server.stdout.readline().strip())
        with new_database("postgresql") as address:
            yield address


@pytest.fixture
def control(database: str) -> Iterator[Control]:
    """`pg_ctl` of that server."""
    place = Path(str(make_url(database).query["host"]))
    options = f"-c listen_addresses='' -c unix_socket_directories={place} -c fsync=off -c max_connections=100"

    def run(*words: str) -> None:
        as_server = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        command = [*as_server, str(PG_CTL[-1]), "-D", str(place / "data"), "-s", "-w", *words]
        if "start" in words:
            command += ["-l", str(place / "log"), "-o", options]
        subprocess.run(command, check=True, cwd="/")

    yield run
    if subprocess.run(["test", "-e", place / "data/postmaster.pid"], check=False).returncode:
        run("start")


def test_a_restart_under_load(database: str, control: Control, tmp_path: Path) -> None:
    folder = make_trained(tmp_path / "photos", database)
    service = Service(folder, tmp_path / "log")
    acknowledged: dict[tuple[int, str], str] = {}
    unsure: set[tuple[int, str]] = set()
    statuses: list[int] = []
    ended = threading.Event()

    def decide(first: int) -> None:
        with httpx.Client(base_url=f"{service.address}/api/v1", timeout=PATIENCE) as http:
            for number in range(10**6):
                if ended.is_set():
                    return
                pair = first + number % 100, f"label {number // 100}"
                try:
                    answer = http.post("/decisions", json=decision(*pair))
                except httpx.TransportError:  # of the process that is killed
                    unsure.add(pair)
                    continue
                statuses.append(answer.status_code)
                if answer.status_code == 200:
                    acknowledged[pair] = "accepted"
                else:
                    unsure.add(pair)
                    assert_problem(answer, 503, "does not answer as it should")
                    time.sleep(0.05)

    threads = [threading.Thread(target=decide, args=(first,)) for first in (1, 10)]
    try:
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        for mode in ("fast", "immediate"):
            control("stop", "-m", mode)
            with httpx.Client(base_url=f"{service.address}/api/v1", timeout=PATIENCE) as http:
                for path in ("items", "collection", "info", "jobs"):
                    assert_problem(http.get(f"/{path}"), 503, "does not answer as it should")
                assert http.get("/health").status_code == 200
            if mode == "fast":
                kill(service.workers()[0])  # the new one waits for the database
                time.sleep(1.5)
            control("start")
            n_before = len(acknowledged)
            until = time.monotonic() + PATIENCE
            while len(acknowledged) < n_before + 10:
                assert time.monotonic() < until, statuses[-10:]
                assert all(thread.is_alive() for thread in threads)
                time.sleep(0.05)
        ended.set()
        for thread in threads:
            thread.join(PATIENCE)
        job = httpx.post(f"{service.address}/api/v1/jobs", json={"kind": "scan"}).json()["id"]
        with open_collection(folder) as collection:
            until = time.monotonic() + PATIENCE
            while queue.read_job(collection, job).state != "done":  # who starts jobs has survived, too
                assert time.monotonic() < until
                time.sleep(0.1)
            actual = states(collection, {label for _, label in acknowledged})
            assert {pair: actual.get(pair) for pair in acknowledged} == acknowledged
            assert set(actual) - set(acknowledged) <= unsure
            assert_sound(collection)
        assert set(statuses) == {200, 503}
    finally:
        ended.set()
        service.kill_all()
    assert "Traceback" not in (log := (tmp_path / "log").read_text()), log[-3000:]
