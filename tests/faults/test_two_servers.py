"""Two servers and a command line work on one collection at the same time."""

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.faults.clients import LABELS, Client
from tests.faults.conftest import MakeCollection, asking
from tests.faults.service import PATIENCE, Service
from tests.faults.truth import assert_sound, lines_of, states

from wsabie.collection.annotations.decisions import tag_items
from wsabie.collection.folder.collection import open_collection
from wsabie.collection.jobs import queue
from wsabie.collection.learning.training import train_collection_model
from wsabie.collection.registry.model_registry import use_model
from wsabie.server.routes import items
from wsabie.server.tokens import create_token

NAMES = ("eve", "adam")


def test_two_servers_and_a_command_line(make_collection: MakeCollection, tmp_path: Path) -> None:
    folder = make_collection()
    tokens = {name: create_token(tmp_path / "tokens", name, "write") for name in NAMES}
    service = Service(folder, tmp_path / "log", "--tokens", str(tmp_path / "tokens"), workers=1)
    with open_collection(folder) as collection, asking(collection) as local_client:
        tag_items(collection, [1], accept=LABELS, by="maker")
        train_collection_model(collection, by="maker", full=True, epochs=2, threads=1)
        clients = [
            Client(service.address, tokens[name], random.Random(name), range(2 + i, 60, 2), folder / "000.webp")  # noqa: S311
            for i, name in enumerate(NAMES)
        ]
        clients[1].http, theirs = local_client, clients[0].http  # the other server
        local_client.base_url = local_client.base_url.join("/api/v1/")
        try:
            for client in clients:
                client.start()
            command = [sys.executable, "-m", "wsabie", "collection", "tag", str(folder), "--accept", "soak a"]
            command += ["--by", "cain", *map(str, range(100, 120))]
            job = queue.enqueue_job(collection, "scan", {}, by="maker").id
            subprocess.run(command, check=True, capture_output=True)
            for model_id in (1, 2):
                (local_client if model_id == 1 else theirs).post(f"models/{model_id}/use")
                assert {client.get("info").json()["model"] for client in (local_client, theirs)} == {str(model_id)}
            until = time.monotonic() + PATIENCE
            while queue.read_job(collection, job).state != "done":
                assert time.monotonic() < until
                time.sleep(0.1)
        finally:
            for client in clients:
                client.ended.set()
            for client in clients:
                client.join(PATIENCE)
            service.kill_all()
        assert [client.wrong for client in clients] == [[], []]
        expected = {pair: state for client in clients for pair, state in client.states.items() if state is not None}
        expected |= {(item, "soak a"): "accepted" for item in range(100, 120)}
        assert {pair: state for pair, state in states(collection, LABELS).items() if pair[0] != 1} == expected
        assert sum(lines_of(collection, "eve").values()) >= clients[0].lines > 5
        assert clients[1].lines > 5
        assert_sound(collection)


def test_a_model_of_other_dimensions_comes_into_use_within_a_search(
    make_collection: MakeCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_collection()
    rank = items.rank_labels
    with open_collection(folder) as collection, asking(collection) as client:
        train_collection_model(collection, by="maker", full=True, dim=20, epochs=1, threads=1)
        use_model(collection, 1, by="maker")

        def slowly(*arguments: Any) -> Any:
            use_model(collection, 2, by="cain")
            return rank(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(items, "rank_labels", slowly)
            first = client.post("/api/v1/search/picture", files={"file": (folder / "007.webp").read_bytes()})
        assert first.status_code == 200, first.text
        assert first.json()["items"][0]["path"] == "007.webp"
        assert client.get("/api/v1/info").json()["model"] == "2"
