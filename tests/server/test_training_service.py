"""Models over HTTP: what the next training would be, how one went, which is better, and the way back."""

import fcntl
import json
import time
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient
from tests.server.conftest import run_service
from tests.server.test_collection_service import list_untagged_items

from wsabie.collection.folder.collection import open_collection
from wsabie.collection.jobs import queue
from wsabie.features.encoders.encoder_list import HUB_ENCODERS
from wsabie.features.encoders.encoder_store import install_encoder
from wsabie.features.extractor_choice import is_network_installed
from wsabie.storage.atomic_files import lock_file

TINY_ENCODERS = Path(__file__).parents[1] / "features/encoders/tiny"


def wait_for_job(service: httpx.Client, job: dict[str, Any]) -> dict[str, Any]:
    """The job when it is done, by its events; and what they told on the way, under "events"."""
    events: list[dict[str, Any]] = []
    until = time.monotonic() + 100
    while not events or events[-1]["state"] in ("waiting", "running"):
        assert time.monotonic() < until
        with service.stream("GET", f"/api/v1/jobs/{job['id']}/events") as stream:
            lines = (line for line in stream.iter_lines() if line.startswith("data: "))
            events += [json.loads(line.removeprefix("data: ")) for line in lines]
    return events[-1] | {"events": events}


def start_job(service: httpx.Client, kind: str, **options: Any) -> dict[str, Any]:
    answer = service.post("/api/v1/jobs", json={"kind": kind, "options": options})
    assert answer.status_code == 200, answer.text
    return answer.json()  # type: ignore[no-any-return]


def test_installed_encoders_are_offered(api: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSABIE_ENCODERS", str(tmp_path / "encoders"))
    packaged = ["lite0"] if is_network_installed() else []
    assert api.get("/api/v1/models").json()["encoders"] == packaged
    install_encoder(HUB_ENCODERS["clip-base"], TINY_ENCODERS / "clip-base")
    assert api.get("/api/v1/models").json()["encoders"] == [*packaged, "clip-base"]


def test_forecast_describes_the_next_training(api: TestClient) -> None:
    reply = api.get("/api/v1/models").json()
    assert (reply["rollback"], reply["removed"], reply["forecast"]["decisions"]) == (None, [], 0)
    assert reply["forecast"]["method"] == "nothing"
    first, second, *_ = list_untagged_items(api)
    decisions = [{"item": item, "label": "red", "state": "accepted"} for item in (first, second)]
    api.post("/api/v1/decisions", json={"decisions": decisions})
    reply = api.get("/api/v1/models").json()["forecast"]
    assert reply == {"decisions": 2, "method": "corrections", "reason": "2 items have new decisions since model 1"}


def test_model_has_its_learning_curve(api: TestClient) -> None:
    assert "curve" not in api.get("/api/v1/models").json()["models"][0]["facts"]
    model = api.get("/api/v1/models/1").json()
    assert "curve" not in model["facts"]
    assert [point["epoch"] for point in model["curve"]] == list(range(1, 31))
    assert {*model["curve"][0]} == {"epoch", "loss", "MAP"}
    assert 1 <= model["facts"]["best_epoch"] <= 30
    for model_id, status in ((9, 404), (0, 422), ("x", 422), (2**63, 422)):
        assert api.get(f"/api/v1/models/{model_id}").status_code == status


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("compare", {"models": 1}),
        ("compare", {"models": [1.5, 2]}),
        ("compare", {"models": [True, False]}),
        ("compare", {"models": [1, 2], "full": True}),
        ("compare", {"models": list(range(1, 200))}),
        ("train", {"epochs": [5]}),
        ("train", {"even_if_worse": 1}),
        ("train", {"features": "onnx:/etc/passwd"}),
        ("train", {"features": "colour,"}),
        ("train", {"features": 1}),
        ("apply", {"min_precision": "high"}),
        ("compare", {"models": [0, 1]}),
    ],
)
def test_invalid_jobs_are_refused(api: TestClient, kind: str, options: dict[str, Any]) -> None:
    answer = api.post("/api/v1/jobs", json={"kind": kind, "options": options})
    assert answer.status_code == 422, answer.text
    assert api.get("/api/v1/jobs").json() == {"jobs": []}


def test_waiting_jobs_are_merged_and_limited(api: TestClient, folder: Path) -> None:
    lock = (folder / ".wsabie" / "jobs.lock").open("a")
    fcntl.flock(lock, fcntl.LOCK_EX)  # as if another process worked, so that none of them is begun
    first = api.post("/api/v1/jobs", json={"kind": "compare", "options": {"models": [1, 2]}}).json()
    again = api.post("/api/v1/jobs", json={"kind": "compare", "options": {"models": [1, 2]}}).json()
    reverse = api.post("/api/v1/jobs", json={"kind": "compare", "options": {"models": [2, 1]}}).json()
    assert first["id"] == again["id"] != reverse["id"]
    for epochs in range(1, 19):
        assert api.post("/api/v1/jobs", json={"kind": "train", "options": {"epochs": epochs}}).status_code == 200
    refused = api.post("/api/v1/jobs", json={"kind": "train", "options": {}})
    assert (refused.status_code, refused.json()["detail"][:21]) == (422, "20 jobs wait already;")
    lock.close()


def test_apply_job_counts_items_that_fit_no_tag(api: TestClient, folder: Path) -> None:
    with open_collection(folder) as collection, lock_file(collection.place / "jobs.lock"):

        def apply(**options: Any) -> dict[str, Any]:
            """The job, done in this process: a new one takes seconds to start, and the lock keeps it waiting."""
            job = start_job(api, "apply", **options)
            queue._run_job(collection, queue.claim_job(collection))  # type: ignore[arg-type]
            return wait_for_job(api, job)

        unlabelled = {item["id"] for item in api.get("/api/v1/items?unlabelled=true").json()["items"]}
        applied_job = apply(min_precision=1)
        assert applied_job["state"] == "done", applied_job
        fitting = applied_job["result"]["coverage"]  # nothing is right for sure
        assert (fitting["probability"], fitting["items"], fitting["uncovered"]) == (None, 0, 15)
        assert set(fitting["uncovered_items"]) == unlabelled
        assert apply()["result"]["coverage"] is None
        failed = apply(min_precision=2)
        assert (failed["state"], failed["error"][:26]) == ("failed", "a precision of 2 cannot be")


def test_model_is_trained_compared_and_rolled_back(folder: Path) -> None:
    with run_service(folder) as service:
        trained = wait_for_job(service, start_job(service, "train", full=True, epochs=40))
        assert trained["state"] == "done", trained
        curve = trained["progress"]["curve"]
        assert [point["epoch"] for point in curve] == list(range(1, 41))
        assert all(
            "curve" in event["progress"] for event in trained["events"] if event["progress"]
        )  # also when opened late
        assert "curve" not in trained["result"]["facts"]
        assert "curve" not in service.get("/api/v1/jobs").json()["jobs"][0]["progress"]
        assert service.get("/api/v1/models/2").json()["curve"] == curve
        failed = wait_for_job(service, start_job(service, "compare", models=[1, 7]))
        assert (failed["state"], failed["error"][:19]) == ("failed", "there is no model 7")
        compared = wait_for_job(service, start_job(service, "compare", models=[1, 2]))
        assert compared["state"] == "done", compared
        older, newer = compared["result"]["models"]
        assert (older["model"], newer["model"], older["difference"], newer["verdict"]) == (1, 2, None, "alike")
        assert compared["result"]["items"] >= 5
        assert newer["figures"] == service.get("/api/v1/models/2").json()["figures"]["metrics"]
        back = service.get("/api/v1/models").json()["rollback"]
        assert back["model"] == 1
        assert service.post("/api/v1/undo", json={"entry": back["entry"]}).status_code == 200
        reply = service.get("/api/v1/models").json()
        assert ([model["in_use"] for model in reply["models"]], reply["rollback"]) == ([False, True], None)
        assert service.post("/api/v1/models/2/use").json()["rollback"]["model"] == 1


def test_a_model_with_other_features_waits_until_it_is_used(folder: Path) -> None:
    with run_service(folder) as service:
        decisions = service.get("/api/v1/annotations").json()
        trained = wait_for_job(service, start_job(service, "train", features="hog", epochs=5))
        assert trained["state"] == "done", trained
        assert trained["result"]["is_in_use"] is False
        new, old = service.get("/api/v1/models").json()["models"]
        assert (new["in_use"], old["in_use"], new["facts"]["features"]) == (False, True, "hog")
        assert new["facts"]["rejection_reason"]
        assert new["figures"]["previous_metrics"].keys() == new["figures"]["metrics"].keys()
        used = service.post(f"/api/v1/models/{new['id']}/use").json()
        assert [model["in_use"] for model in used["models"]] == [True, False]
        assert service.get("/api/v1/annotations").json() == decisions
        assert service.get("/api/v1/collection").json()["model"]["id"] == new["id"]
