"""The service as processes: figures of all of them, requests at a time, a stop that lets requests finish, bad HTTP."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx
import numpy as np
import pytest
from scipy.sparse import random_array
from tests.server.conftest import run_service, start_service

from wsabie.models.annotators import Annotator
from wsabie.models.joint_embedding.estimator import Wsabie

BODY = b'{"rows": [{"columns": [1], "values": [1]}], "k": 1}'


@contextmanager
def start_request(service: httpx.Client) -> Iterator[socket.socket]:
    """A request that is being worked on: the rest of its body has not come."""
    address = service.base_url
    assert service.get("/api/v1/health").status_code == 200  # it listens before it can answer
    with socket.create_connection((address.host, address.port or 80), timeout=30) as connection:
        lines = "Host: localhost\r\nContent-Type: application/json\r\nConnection: close"
        head = f"POST /api/v1/annotate/rows HTTP/1.1\r\n{lines}\r\nContent-Length: {len(BODY)}\r\n\r\n"
        connection.sendall(head.encode() + BODY[:20])
        time.sleep(0.3)
        yield connection


def read_response(connection: socket.socket) -> tuple[int, str, bytes]:
    """Status, head and body of the answer, up to the end of the connection."""
    content = b""
    while piece := connection.recv(1 << 16):
        content += piece
    head, _, body = content.partition(b"\r\n\r\n")
    return int(head[9:12]), head.decode().lower(), body


def test_excess_requests_are_refused(served_model: Path) -> None:
    with (
        run_service(served_model, "--max-concurrent", "1", "--min-kilobytes", "0.001") as service,
        start_request(service) as first,
    ):
        refused = service.post("/api/v1/annotate/rows", content=BODY, headers={"content-type": "application/json"})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.headers["content-type"] == "application/problem+json"
        for free in ("health", "info"):  # a body that has not come yet keeps nobody else waiting
            assert service.get(f"/api/v1/{free}").status_code == 200
        first.sendall(BODY[20:])
        assert read_response(first)[0] == 200
        assert service.get("/api/v1/info").status_code == 200


@pytest.mark.parametrize("workers", [1, 2])
def test_shutdown_finishes_requests(served_model: Path, workers: int) -> None:
    with start_service(served_model, "--workers", workers) as (service, process), start_request(service) as first:
        process.send_signal(signal.SIGTERM)
        time.sleep(2)
        with pytest.raises(httpx.TransportError), httpx.Client(base_url=service.base_url, timeout=2) as another:
            another.get("/api/v1/health")
        assert process.poll() is None
        first.sendall(BODY[20:])
        status, _, body = read_response(first)
        assert status == 200
        assert len(json.loads(body)["results"]) == 1
        assert process.wait(30) in (0, -15)


def read_request_counts(service: httpx.Client) -> dict[str, float]:
    """Requests by route, as one scrape tells."""
    page = service.get("/metrics").text
    lines = re.findall(r'^wsabie_requests_total\{.*?route="([^"]+)".*?\} (\S+)$', page, re.MULTILINE)
    return {route: float(n) for route, n in lines}


def test_metrics_sum_over_all_processes(served_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with start_service(served_model, "--workers", "2") as (service, process):
        for _ in range(30):  # each by a connection of its own, which either process takes
            with httpx.Client(base_url=service.base_url, timeout=30) as http:
                assert http.get("/api/v1/info").status_code == 200
        assert {read_request_counts(service)["/api/v1/info"] for _ in range(6)} == {30}
        files = list(tmp_path.glob("wsabie-figures-*/counter_*.db"))
        assert len(files) == 2
        with start_request(service):
            pages = [httpx.get(f"{service.base_url}/metrics").text for _ in range(4)]
            running_now = re.findall(r"^wsabie_requests_running (\S+)$", "\n".join(pages), re.MULTILINE)
            assert running_now == ["2.0"] * 4  # that one, and the question for figures
        gauges_before = set(tmp_path.glob("wsabie-figures-*/gauge_live*.db"))  # a process has one from its start
        os.kill(int(files[0].stem.rpartition("_")[2]), signal.SIGKILL)
        until = time.monotonic() + 30
        while time.monotonic() < until and gauges_before >= set(tmp_path.glob("wsabie-figures-*/gauge_live*.db")):
            time.sleep(0.2)
        with httpx.Client(base_url=service.base_url, timeout=30, transport=httpx.HTTPTransport(retries=5)) as http:
            assert read_request_counts(http)["/api/v1/info"] == 30  # what was counted by the killed one stays
        process.terminate()
        process.wait(60)
    assert not list(tmp_path.glob("wsabie-figures-*"))


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET /" + b"a" * 70_000, b"GET / HTTP/1.1\r\n\r\n"])
def test_malformed_requests_get_a_problem_response(served_service: httpx.Client, sent: bytes) -> None:
    address = served_service.base_url
    with socket.create_connection((address.host, address.port or 80), timeout=30) as connection:
        connection.sendall(sent)
        status, head, body = read_response(connection)
    assert status == 400
    assert "content-type: application/problem+json" in head
    problem = json.loads(body)
    assert (problem["status"], problem["title"]) == (400, "Bad Request")


HOST = "Host: localhost"
UNDO = f"POST /api/v1/undo HTTP/1.1\r\n{HOST}\r\n"
TWO = [
    f"{UNDO}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX",
    f"{UNDO}Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nX",
    f"{UNDO}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}",
    f"{UNDO}Content-Length: 2, 3\r\n\r\n{{}}",
    f"{UNDO}Content-Length: +2\r\n\r\n{{}}",
    f"{UNDO}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    f"{UNDO}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    f"{UNDO}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    f"{UNDO}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    f"{UNDO}Transfer-Encoding: chunked\r\n\r\n0x5\r\nabcde\r\n0\r\n\r\n",
    f"{UNDO}Transfer-Encoding: chunked\r\n\r\n0\r\n\nGET / HTTP/1.1\r\n{HOST}\r\n\r\n",
    f"POST /api/v1/undo HTTP/1.0\r\n{HOST}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    f"GET / HTTP/1.1\r\n{HOST}\r\nX: a\r\n b\r\n\r\n",
    f"GET / HTTP/1.1\r\n{HOST}\nX: a\r\n\r\n",
    f"GET / HTTP/1.1\n{HOST}\n\n",
    f"\nGET / HTTP/1.1\r\n{HOST}\r\n\r\n",
    f"GET / HTTP/1.1\r\n{HOST}\r\nX: a\rb\r\n\r\n",
    f"GET / HTTP/1.1\r\n{HOST}\r\nX: a\0b\r\n\r\n",
    f"GET /\0 HTTP/1.1\r\n{HOST}\r\n\r\n",
    f"GET / HTTP/1.1\r\n{HOST}\r\nHost: evil.example\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n",
    f"GET http://localhost/ HTTP/1.1\r\n{HOST}\r\n\r\n",
    f"GET localhost HTTP/1.1\r\n{HOST}\r\n\r\n",
    f"CONNECT localhost:80 HTTP/1.1\r\n{HOST}\r\n\r\n",
    f"GET  / HTTP/1.1\r\n{HOST}\r\n\r\n",
    f"GET / HTTP/1.1 \r\n{HOST}\r\n\r\n",
    f"GET / HTTP/2.0\r\n{HOST}\r\n\r\n",
    "GET / HTTP/1.1\r\n" + "".join(f"X-{i}: a\r\n" for i in range(9000)) + f"{HOST}\r\n\r\n",
]


@pytest.mark.parametrize("request_", TWO, ids=range(len(TWO)))
def test_ambiguous_requests_are_refused_and_close_the_connection(served_service: httpx.Client, request_: str) -> None:
    address = served_service.base_url
    with socket.create_connection((address.host, address.port or 80), timeout=30) as connection:
        connection.sendall(request_.encode())
        status, head, body = read_response(connection)
    assert status == 400
    assert "connection: close" in head
    assert json.loads(body)["status"] == 400  # and nothing behind it


@pytest.fixture(scope="module")
def served_service(served_model: Path) -> Iterator[httpx.Client]:
    with run_service(served_model) as service:
        yield service


BUSY = """
import sys
from wsabie.core.errors import BusyError
from wsabie.server import launcher

make_context, calls = launcher.make_context, []

def make_context_once(options):
    calls.append(options)
    if len(calls) == 1:
        return make_context(options)
    print("waits", flush=True)
    raise BusyError("the database is away")

launcher.make_context = make_context_once
options = launcher.ServiceOptions(sys.argv[1], port=0)
launcher.run_service(options, launcher.open_socket(options), lambda: None)
"""


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_service_waiting_for_its_database_stops(served_model: Path, stop: signal.Signals) -> None:
    words = [sys.executable, "-c", BUSY, str(served_model)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout is not None
            assert service.stdout.readline() == "waits\n"
            service.send_signal(stop)
            assert service.wait(20) == -stop
        finally:
            service.kill()


def test_single_process_writes_no_metric_files(
    served_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with run_service(served_model) as service:
        service.get("/api/v1/info")
        assert read_request_counts(service)["/api/v1/info"] == 1
        assert not list(tmp_path.glob("wsabie-figures-*"))


def test_processes_share_the_tables_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes map the same file, which is gone with the service; the answers are those of the model."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    rows = random_array((60, 10_000), density=0.004, rng=np.random.default_rng(0), dtype=np.float32, format="csr")
    model = Wsabie(dim=20, epochs=2, threads=1).fit(rows, [f"label {i % 9}" for i in range(60)])
    Annotator(model).save(tmp_path / "model")
    body = {"rows": [{"columns": rows[[0]].indices.tolist(), "values": rows[[0]].data.tolist()}], "k": 9}
    with start_service(tmp_path / "model", "--workers", "2") as (service, process):
        mapped: list[set[str]] = []
        for _ in range(200):  # until both have answered
            with httpx.Client(base_url=service.base_url, timeout=30) as client:
                labels = client.post("/api/v1/annotate/rows", json=body).json()["results"][0]["labels"]
            assert [(label["label"], label["score"]) for label in labels] == model.annotate(rows[[0]], 9)[0]
            child_pids = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            maps = [Path(f"/proc/{pid}/maps").read_text() for pid in child_pids]
            mapped = [files for entry in maps if (files := set(re.findall(r"(\d+) +\S+/wsabie-tables-", entry)))]
            if len(mapped) == 2:
                break
        assert len(mapped) == 2
        assert len(set.union(*mapped)) == 1
        process.terminate()
        process.wait(60)
    assert not list(tmp_path.glob("wsabie-tables-*"))
