"""The clock is set back by a year while a service runs: the order of things is that in which they were done."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2 as httpx
from tests.faults.conftest import MakeCollection, decision, emoji
from tests.faults.service import PATIENCE, Service
from tests.faults.truth import assert_sound

from wsabie.collection.folder.collection import open_collection
from wsabie.server.tokens import create_token

DAY = 24 * 3600
CLOCK = """
import datetime
import os
import time
from contextlib import suppress
from pathlib import Path

with suppress(ImportError):
    import pandas  # where it is there it is loaded by pyarrow, and wants the datetime that it was made for

_SAYS = Path(os.environ["WSABIE_TEST_CLOCK"])
_time = time.time


def _off() -> float:
    return float(_SAYS.read_text())


class _Datetime(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> "_Datetime":
        return super().now(tz) + datetime.timedelta(seconds=_off())


time.time = lambda: _time() + _off()
datetime.datetime = _Datetime
"""
"""Loaded by every Python process that finds it as `sitecustomize`: a clock that is wrong by what a file says."""


def test_a_clock_that_is_set_back(make_collection: MakeCollection, tmp_path: Path) -> None:
    folder, clock = make_collection(), tmp_path / "clock"
    (tmp_path / "sitecustomize.py").write_text(CLOCK)
    clock.write_text("0")
    ours = {"authorization": f"Bearer {create_token(tmp_path / 'tokens', 'eve', 'write')}"}
    today = datetime.now(UTC).date()
    short = {"authorization": f"Bearer {create_token(tmp_path / 'tokens', 'adam', 'read', today)}"}
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    env = {"PYTHONPATH": path, "WSABIE_TEST_CLOCK": str(clock)}
    service = Service(folder, tmp_path / "log", "--tokens", str(tmp_path / "tokens"), workers=1, env=env)
    try:
        with httpx.Client(base_url=f"{service.address}/api/v1", headers=ours, timeout=PATIENCE) as client:
            entries = [decide(client, 1)]
            assert client.get("/info", headers=short).status_code == 200
            clock.write_text(str(3 * DAY))
            assert client.get("/info", headers=short).status_code == 401
            entries.append(decide(client, 2))
            clock.write_text(str(-365 * DAY))
            assert client.get("/info", headers=short).status_code == 401  # what was over stays over
            entries.append(decide(client, 3))
            (folder / "new.webp").write_bytes(emoji(700, 1)[0]["image"])  # type: ignore[arg-type]
            os.utime(folder / "new.webp", (0, 0))
            scan, train = (run_job(client, kind) for kind in ("scan", "train"))
            entries.append(decide(client, 4))
            judge(client, entries, scan, train)
        service.end()
    finally:
        service.kill_all()
    with open_collection(folder) as collection:
        assert_sound(collection)


def judge(client: httpx.Client, entries: list[int], scan: dict[str, Any], train: dict[str, Any]) -> None:
    assert entries == sorted(entries)
    lines = client.get("/journal?k=100").json()["entries"]
    times = [line["at"] for line in lines]
    assert times != sorted(times, reverse=True)  # or the clock was none
    review_ids = [line["id"] for line in lines if line["action"] == "review"]
    assert review_ids == entries[::-1]
    assert client.get(f"/journal?k=100&before_id={entries[1]}").json()["entries"][0]["id"] == entries[0]
    undone = client.post("/undo", json={}).json()["entry"]["id"]
    assert undone == entries[-1]  # the last one, not the latest
    assert scan["result"]["new"] == 1
    assert [record["id"] for record in client.get("/jobs").json()["jobs"]] == [train["id"], scan["id"]]
    models = client.get("/models").json()["models"]
    assert [(record["id"], record["in_use"]) for record in models] == [(2, True), (1, False)]
    assert client.get("/info").json()["model"] == "2"
    item_ids: list[int] = []
    page: dict[str, Any] = {"next_cursor": None}
    while not item_ids or page["next_cursor"]:
        cursor_params = {"cursor": page["next_cursor"]} if page["next_cursor"] else {}
        page = client.get("/items", params={"k": 50, "sort": "added_at", **cursor_params}).json()
        item_ids += [item["id"] for item in page["items"]]
    assert item_ids == list(range(1, 122))  # the new one last


def decide(client: httpx.Client, item: int) -> int:
    """The number of the entry."""
    entry: int = client.post("/decisions", json=decision(item, "seen")).json()["entry"]
    return entry


def run_job(client: httpx.Client, kind: str) -> dict[str, Any]:
    """A job that was asked for and ended."""
    options = {"full": True, "epochs": 2} if kind == "train" else {}
    job: dict[str, Any] = client.post("/jobs", json={"kind": kind, "options": options}).json()
    until = time.monotonic() + PATIENCE
    while job["state"] in ("waiting", "running"):
        assert time.monotonic() < until, job
        time.sleep(0.1)
        job = client.get(f"/jobs/{job['id']}").json()
    assert job["state"] == "done", job
    return job
