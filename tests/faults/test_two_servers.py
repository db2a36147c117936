"""Two servers and a command line work on one collection at the same time."""

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.faults.clients import LABELS, Client
from tests.faults.conftest import Made, asking
from tests.faults.service import PATIENCE, Service
from tests.faults.truth import assert_sound, lines_of, states

from wsabie.collection.annotations.decisions import tag_items
from wsabie.collection.folder.collection import open_collection
from wsabie.collection.jobs import queue
from wsabie.collection.learning.training import train_model
from wsabie.collection.registry.model_registry import use_model
from wsabie.server.routes import search
from wsabie.server.tokens import create_token

NAMES = ("eve", "adam")


def test_two_servers_and_a_command_line(made: Made, tmp_path: Path) -> None:
    folder = made()
    tokens = {name: create_token(tmp_path / "tokens", name, "write") for name in NAMES}
    service = Service(folder, tmp_path / "log", "--tokens", str(tmp_path / "tokens"), workers=1)
    with open_collection(folder) as collection, asking(collection) as here:
        tag_items(collection, [1], accept=LABELS, by="maker")
        train_model(collection, by="maker", full=True, epochs=2, threads=1)
        clients = [
            Client(service.address, tokens[name], random.Random(name), range(2 + i, 60, 2), folder / "000.webp")  # noqa: S311
            for i, name in enumerate(NAMES)
        ]
        clients[1].http, theirs = here, clients[0].http  # the other server
        here.base_url = here.base_url.join("/api/v1/")
        try:
            for one in clients:
                one.start()
            command = [sys.executable, "-m", "wsabie", "collection", "tag", str(folder), "--accept", "soak a"]
            command += ["--by", "cain", *map(str, range(100, 120))]
            job = queue.enqueue_job(collection, "scan", {}, by="maker").id
            subprocess.run(command, check=True, capture_output=True)
            for number in (1, 2):
                (here if number == 1 else theirs).post(f"models/{number}/use")
                assert {one.get("info").json()["model"] for one in (here, theirs)} == {str(number)}
            until = time.monotonic() + PATIENCE
            while queue.read_job(collection, job).state != "done":
                assert time.monotonic() < until
                time.sleep(0.1)
        finally:
            for one in clients:
                one.ended.set()
            for one in clients:
                one.join(PATIENCE)
            service.kill_all()
        assert [one.wrong for one in clients] == [[], []]
        expected = {pair: state for one in clients for pair, state in one.states.items() if state is not None}
        expected |= {(item, "soak a"): "accepted" for item in range(100, 120)}
        assert {pair: state for pair, state in states(collection, LABELS).items() if pair[0] != 1} == expected
        assert sum(lines_of(collection, "eve").values()) >= clients[0].lines > 5
        assert clients[1].lines > 5
        assert_sound(collection)


def test_a_model_of_other_dimensions_comes_into_use_within_a_search(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made()
    rank = search.rank_labels
    with open_collection(folder) as collection, asking(collection) as here:
        train_model(collection, by="maker", full=True, dim=20, epochs=1, threads=1)
        use_model(collection, 1, by="maker")

        def slowly(*given: Any) -> Any:
            use_model(collection, 2, by="cain")
            return rank(*given)

        with monkeypatch.context() as patch:
            patch.setattr(search, "rank_labels", slowly)
            first = here.post("/api/v1/search/picture", files={"file": (folder / "007.webp").read_bytes()})
        assert first.status_code == 200, first.text
        assert first.json()["items"][0]["path"] == "007.webp"
        assert here.get("/api/v1/info").json()["model"] == "2"
