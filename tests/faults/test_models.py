"""Models that are replaced, removed or half copied while a service is asked."""

import itertools
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.faults.conftest import MakeCollection, asking, assert_problem
from tests.server.conftest import make_model, read_emoji
from tests.server.conftest import served_model as served_model

from wsabie.collection.db.cache import FileCache
from wsabie.collection.folder.collection import Collection, open_collection
from wsabie.collection.learning.suggestions import apply_model
from wsabie.collection.learning.training import train_collection_model
from wsabie.collection.registry import model_registry
from wsabie.collection.registry.model_registry import load_model_in_use
from wsabie.server import model_holder
from wsabie.server.app import make_app
from wsabie.server.limits.request_limits import ServiceLimits
from wsabie.server.model_holder import FolderModelHolder
from wsabie.server.service_context import ServiceContext


@pytest.fixture
def collection(make_collection: MakeCollection) -> Iterator[Collection]:
    with open_collection(make_collection()) as opened:
        yield opened


class Load:
    """Requests from several threads; what was answered."""

    def __init__(self, client: TestClient, *paths: str) -> None:
        self.client, self.paths, self.ended, self.lock = client, paths, threading.Event(), threading.Lock()
        self.answers: list[tuple[int, str]] = []
        self.begins: list[float] = []  # of the request of each answer
        self.threads = [threading.Thread(target=self._run) for _ in range(3)]

    def _run(self) -> None:
        while not self.ended.is_set():
            for path in self.paths:
                begin = time.monotonic()
                answer = self.client.get(f"/api/v1/{path}")
                with self.lock:
                    self.begins.append(begin)
                    self.answers.append((answer.status_code, answer.text))

    def __enter__(self) -> "Load":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        for thread in self.threads:
            thread.join(60)

    def wait_for_answers(self, n: int = 6) -> list[tuple[int, str]]:
        """The answers to at least ``n`` requests that begin from now on."""
        now = time.monotonic()
        while len(answers := self._list_answers(since=now)) < n:
            assert time.monotonic() < now + 60
            time.sleep(0.01)
        return answers

    def _list_answers(self, since: float) -> list[tuple[int, str]]:
        with self.lock:
            return [answer for begin, answer in zip(self.begins, self.answers, strict=True) if begin >= since]


def test_models_are_switched_and_applied_under_load(collection: Collection) -> None:
    train_collection_model(collection, by="eve", full=True, epochs=2, threads=1)
    with asking(collection) as client, Load(client, "info", "items/3/similar?k=3", "search?text=flag&k=3") as load:
        for turn in range(6):
            model_registry.use_model(collection, 1 + turn % 2, by="eve")
            apply_model(collection, by="eve", again=True, threads=1)
        assert {status for status, _ in load.wait_for_answers()} == {200}
        assert f'"model":"{2}"' in client.get("/api/v1/info").text
    assert {status for status, _ in load.answers} == {200}, [answer for answer in load.answers if answer[0] != 200][:3]


def test_the_files_of_a_model_are_removed_under_load(collection: Collection) -> None:
    path = model_registry.load_model(collection).path
    model_registry._loaded_models.get.cache_clear()
    with asking(collection) as client, Load(client, "info", "items/3/similar?k=3") as load:
        load.wait_for_answers()
        shutil.rmtree(path / "tensors")  # what is mapped stays
        assert {status for status, _ in load.wait_for_answers()} == {200}
        shutil.rmtree(path)
        assert {status for status, _ in load.wait_for_answers()} == {422}
        assert_problem(client.get("/api/v1/info"), 422, "choose or train one on the page Training")
        assert client.get("/api/v1/items?k=5").status_code == 200
        assert client.get("/api/v1/collection").status_code == 200
        train_collection_model(collection, by="eve", epochs=2, threads=1)
        assert {status for status, _ in load.wait_for_answers()} == {200}
    assert {status for status, _ in load.answers} == {200, 422}


def test_a_model_that_is_copied_piece_by_piece_is_taken_over_when_it_is_whole(
    tmp_path: Path, served_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_holder, "_CHECK_INTERVAL", 0.05)
    shutil.copytree(served_model, tmp_path / "served")
    other_model = make_model(tmp_path / "other", seed=1)
    context = ServiceContext(ServiceLimits(), None, FolderModelHolder(tmp_path / "served"))
    with TestClient(make_app(context), base_url="http://localhost") as client, Load(client, "info") as load:
        old_model = client.get("/api/v1/info").json()["model"]
        shutil.copy(other_model / "config.json", tmp_path / "served/draft")
        (tmp_path / "served/draft").replace(tmp_path / "served/config.json")  # its tensors are not there yet
        until = time.monotonic() + 60
        while (info := client.get("/api/v1/info").json())["trouble"] is None:
            assert time.monotonic() < until
        assert (info["model"], "is missing" in info["trouble"]) == (old_model, True)
        assert client.post("/api/v1/annotate/picture", files={"file": read_emoji(1)[0]}).status_code == 200
        for tensor in (other_model / "tensors").iterdir():
            shutil.copy(tensor, tmp_path / "served/tensors")
        while (info := client.get("/api/v1/info").json())["model"] == old_model:
            assert time.monotonic() < until
        assert info["trouble"] is None
    assert {status for status, _ in load.answers} == {200}


def test_many_open_one_model_while_others_open_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Place(type(tmp_path)):  # type: ignore[misc]
        def __hash__(self) -> int:  # others have their turn in the middle of everything
            time.sleep(1e-4)
            return super().__hash__()

    places = {Place(tmp_path / "1"): 1, Place(tmp_path / "2"): 2}
    for place in places:
        place.mkdir()
    turns = itertools.cycle(places.items())
    monkeypatch.setattr(model_registry, "find_model_folder", lambda *_: next(turns))
    monkeypatch.setattr(model_registry, "load_model", lambda _, model_id: model_id)
    monkeypatch.setattr(model_registry, "_loaded_models", FileCache(1))
    wrong: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(50):
                assert load_model_in_use(None) in (1, 2)  # type: ignore[arg-type, comparison-overlap]
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
