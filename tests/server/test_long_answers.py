"""Answers that take their time: files that change or go meanwhile, slow readers, streams of events at the end."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from databases import copied
from wsabie.collection.folder.collection import open_collection
from wsabie.collection.items.item_files import get_stream_path
from wsabie.collection.jobs import queue
from wsabie.server.routes import items

PICTURE = "part 0/00.png"
LONG = 50_000_000


@pytest.mark.parametrize("folder", ["trained_collection"], indirect=True)
def test_files_removed_during_a_request_are_not_found(
    api: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = f"/api/v1/items/{api.get('/api/v1/items?k=1').json()['items'][0]['id']}"

    def shorten(stream: FileIO) -> Path:
        os.truncate(folder / PICTURE, 40)
        return get_stream_path(stream)

    paths = iter((get_stream_path, shorten))  # its size is known at the second
    steps: dict[str, tuple[Any, str, Any]] = {
        "thumbnail": (items.thumbnails, "make_thumbnail", lambda *_: folder / "removed.webp"),
        "file": (items.item_files, "get_stream_path", lambda stream: next(paths)(stream)),
    }
    for route, step in steps.items():
        monkeypatch.setattr(*step)
        answer = api.get(f"{item}/{route}")
        assert (answer.status_code, answer.json()["title"]) == (404, "Not Found")
    (folder / PICTURE).unlink()
    monkeypatch.undo()
    for route in ("thumbnail?size=1024", "file", "heat?label=red", "annotate"):
        assert api.get(f"{item}/{route}").status_code == 404, route


IMPATIENT = """
import sys
from wsabie.server import launcher
from wsabie.server import connections
from wsabie.server.routes import collection

connections.WINDOW = collection._STREAM_SECONDS = 1.0
options = launcher.ServiceOptions(sys.argv[1], port=0)
listener = launcher.open_socket(options)
print(listener.getsockname()[1], flush=True)
launcher.run_service(options, listener, lambda: None)
"""


@contextmanager
def open_request(port: int, path: str) -> Iterator[socket.socket]:
    with socket.socket() as to:
        to.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        to.settimeout(30)
        to.connect(("127.0.0.1", port))
        to.sendall(f"GET /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert to.recv(12) == b"HTTP/1.1 200"
        yield to


def read_to_end(to: socket.socket) -> int:
    """Bytes that come until the connection is closed."""
    size = 0
    try:
        while piece := to.recv(1 << 20):
            size += len(piece)
    except ConnectionResetError:
        pass
    return size


def test_long_responses_do_not_block_shutdown(trained_collection: Path, tmp_path: Path) -> None:
    with copied(trained_collection, tmp_path / "photos") as folder, (folder / ".wsabie/jobs.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # so that the job waits
        with open_collection(folder) as collection:
            queue.enqueue_job(collection, "scan", {}, by="eve")
        os.truncate(folder / PICTURE, LONG)
        words = [sys.executable, "-c", IMPATIENT, str(folder)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert process.stderr is not None
                port = int(process.stdout.readline())
                with open_request(port, "items/1/file") as slow:
                    for _ in range(6):
                        slow.recv(1)
                        time.sleep(0.4)
                    assert read_to_end(slow) < LONG
                with open_request(port, "items/1/file") as steady:
                    size = 12  # of the head
                    for _ in range(15):
                        size += len(steady.recv(16_000))
                        time.sleep(0.2)
                    steady.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
                    while size < LONG and (piece := steady.recv(1 << 20)):
                        size += len(piece)
                    assert size >= LONG
                with open_request(port, "items/1/file") as to:
                    os.truncate(folder / PICTURE, 1000)
                    assert read_to_end(to) < LONG
                os.truncate(folder / PICTURE, LONG)
                with (
                    open_request(port, "items/1/file"),
                    open_request(port, "jobs/1/events"),
                    open_request(port, "jobs/1/events"),
                ):
                    process.send_signal(signal.SIGTERM)
                    assert process.wait(20) == -signal.SIGTERM
                assert "Traceback" not in process.stderr.read()
            finally:
                process.kill()
