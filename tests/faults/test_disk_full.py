"""A disk that is full: what was acknowledged stays, what is asked for is refused in one sentence, then all goes on."""

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.faults.conftest import MakeCollection, asking, assert_problem, decision
from tests.faults.service import PATIENCE
from tests.faults.truth import assert_no_drafts, assert_sound, lines_of, states

from full_disk import disk as disk
from full_disk import fill
from wsabie.collection.annotations.decisions import tag_items
from wsabie.collection.folder.collection import Collection, create_collection, open_collection
from wsabie.collection.interchange.tag_export import export_tags
from wsabie.collection.jobs import queue
from wsabie.collection.learning.training import train_collection_model
from wsabie.collection.scan.scanner import scan_collection
from wsabie.storage.atomic_files import DiskFullError


@pytest.mark.parametrize("make_collection", ["trained_on_sqlite"], indirect=True)
def test_a_full_disk_loses_nothing(
    make_collection: MakeCollection, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "_RETRY_DELAY", 0.2)
    with open_collection(make_collection(disk / "photos")) as collection, asking(collection) as client:
        client.get("/api/v1/items/1/thumbnail")
        client.post("/api/v1/decisions", json=decision(1, "early"))
        filler = fill(disk, free_bytes=40_000)
        acknowledged = {(1, "early"): "accepted"}
        for number in range(2, 120):
            answer = client.post("/api/v1/decisions", json=decision(number, "late"))
            if answer.status_code != 200:
                break
            acknowledged[number, "late"] = "accepted"
        assert_problem(answer, 507, "the disk is full; free some space")
        refuse_everything(collection, disk)
        assert_problem(client.get("/api/v1/items/2/thumbnail"), 507, "the disk is full")
        assert_problem(client.post("/api/v1/jobs", json={"kind": "train"}), 507, "the disk is full")
        assert client.get("/api/v1/items?k=5").status_code == 200
        assert client.get("/api/v1/items/1").json()["labels"].count("early") == 1
        assert client.get("/api/v1/items/1/thumbnail").status_code == 200
        filler.unlink()
        assert states(collection, ("early", "late")) == acknowledged
        assert client.post("/api/v1/decisions", json=decision(119, "late")).status_code == 200
        assert client.get("/api/v1/items/2/thumbnail").status_code == 200
        (collection.folder / "new.webp").write_bytes((collection.folder / "001.webp").read_bytes() + b" ")
        assert scan_collection(collection, by="eve").has_changes
        assert train_collection_model(collection, by="eve", full=True, epochs=3, threads=1).method == "full"
        assert_sound(collection)
        assert_no_drafts(collection)


def refuse_everything(collection: Collection, disk: Path) -> None:
    """The same from the command line and in jobs: one sentence each."""
    new = collection.folder / "new.webp"
    new.touch()  # a name takes no space here
    lines = lines_of(collection, "eve")
    with pytest.raises(DiskFullError, match="disk is full"):
        scan_collection(collection, by="eve", always=True)
    with pytest.raises(DiskFullError, match="disk is full"):
        train_collection_model(collection, by="eve", full=True, epochs=3, threads=1)
    with pytest.raises(DiskFullError, match="disk is full"):
        tag_items(collection, list(range(1, 120)), accept=["never"], by="eve")
    with pytest.raises(DiskFullError, match="disk is full"):
        export_tags(collection, disk / "tags.csv")
    assert not (disk / "tags.csv").exists()
    assert lines_of(collection, "eve") == lines
    new.unlink()


@pytest.mark.parametrize("make_collection", ["trained_on_sqlite"], indirect=True)
def test_a_job_that_finds_no_space_says_so(
    make_collection: MakeCollection, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full from its first step until its end could not be written down."""
    waits: list[float] = []

    def train_without_space(*arguments: Any) -> dict[str, Any]:
        fill(disk)
        return queue._train(*arguments)

    def wait(seconds: float) -> None:
        if threading.current_thread() is threading.main_thread():
            waits.append(seconds)
            (disk / "filler").unlink()
        else:  # one that an earlier test has left
            time.sleep(seconds)

    monkeypatch.setitem(queue.WORK, "train", train_without_space)
    monkeypatch.setattr(queue, "_exit_when_stopped", lambda *_: None)
    monkeypatch.setattr(queue, "time", SimpleNamespace(monotonic=time.monotonic, sleep=wait))
    with open_collection(make_collection(disk / "photos")) as collection:
        asked_for = queue.enqueue_job(collection, "train", {"full": True, "epochs": 3}, by="eve")
        queue.run_next_job(collection.folder)
        ended = queue.read_job(collection, asked_for.id)
        assert (waits, ended.state) == ([1], "failed")
        assert "the disk is full; free some space" in str(ended.error)
        assert_sound(collection)


@pytest.mark.parametrize("make_collection", ["trained_on_sqlite"], indirect=True)
def test_a_job_that_cannot_be_begun_is_begun_again(
    make_collection: MakeCollection, disk: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(queue, "_RETRY_DELAY", 0.2)
    with open_collection(make_collection(disk / "photos")) as collection:
        job = queue.enqueue_job(collection, "train", {"full": True, "epochs": 3}, by="eve").id
        filler = fill(disk)
        with asking(collection):
            stderr, until = "", time.monotonic() + PATIENCE
            while "a job cannot be done: " not in stderr:
                assert time.monotonic() < until
                time.sleep(0.05)
                stderr += capfd.readouterr().err
            assert "the disk is full; free some space" in stderr
            assert queue.read_job(collection, job).state == "waiting"
            filler.unlink()
            while (ended := queue.read_job(collection, job)).state not in queue.FINAL:
                assert time.monotonic() < until
                time.sleep(0.05)
        assert (ended.state, ended.error) == ("done", None)


def test_a_large_picture_waits_on_disk(
    make_collection: MakeCollection, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uploads lie in the folder for temporary files; no request may end in a fault of the service."""
    monkeypatch.setattr("tempfile.tempdir", str(disk))
    with open_collection(make_collection()) as collection, asking(collection) as client:
        fill(disk)
        answer = client.post("/api/v1/search/picture", files={"file": bytes(3 << 20)})
        assert_problem(answer, 507, "no space left")


def test_a_collection_that_could_not_be_made_can_be_made_later(disk: Path) -> None:
    filler = fill(disk)
    with pytest.raises(DiskFullError, match="disk is full"):
        create_collection(disk / "photos")
    filler.unlink()
    create_collection(disk / "photos").close()
