"""A collection over HTTP, as people work with it: pages, review, search, jobs; and what is refused."""

import json
import shutil
import time
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient
from tests.server.conftest import Client, draw_picture, read_emoji, run_service

from wsabie.collection.db.tables import jobs
from wsabie.collection.folder import collection as collection_module
from wsabie.collection.folder.collection import open_collection
from wsabie.collection.items import item_pages
from wsabie.collection.jobs import queue
from wsabie.collection.registry.model_registry import load_model
from wsabie.collection.registry.thresholds import HoldoutSuggestions, save_holdout_suggestions
from wsabie.collection.scan.scanner import ScanResult
from wsabie.server import problems
from wsabie.server.app import make_app
from wsabie.server.limits.request_limits import ServiceLimits
from wsabie.server.model_holder import CollectionModelHolder
from wsabie.server.service_context import ServiceContext
from wsabie.server.tokens import Token, hash_token


def list_untagged_items(api: TestClient) -> list[int]:
    return [item["id"] for item in api.get("/api/v1/items?unlabelled=true").json()["items"]]


def test_collection_status_is_reported(api: TestClient, folder: Path) -> None:
    status = api.get("/api/v1/collection").json()
    assert (status["schema"], status["folder"], status["role"]) == (1, str(folder), "write")
    assert status["items"] == {"present": 45, "missing": 0, "unreadable": 0}
    assert (status["accepted"], status["rejected"], status["labels"]) == (60, 0, 4)
    assert status["model"]["in_use"]
    assert status["suggestions"] > 0


def test_pages_list_every_item_once(api: TestClient) -> None:
    for sort in ("path", "added_at", "best_probability", "uncertainty"):
        item_ids: list[int] = []
        cursor = None
        while True:
            page = api.get(
                "/api/v1/items", params={"k": 7, "sort": sort} | ({"cursor": cursor} if cursor else {})
            ).json()
            item_ids += [item["id"] for item in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert sorted(item_ids) == list(range(1, 46))


def test_item_has_details_file_thumbnail_and_neighbours(api: TestClient) -> None:
    item = api.get("/api/v1/items?label=red&k=1").json()["items"][0]
    details = api.get(f"/api/v1/items/{item['id']}").json()
    assert details["labels"] == ["colour", "red"]
    assert {entry["by"] for entry in details["annotations"]} == {"metadata"}
    small = api.get(f"/api/v1/items/{item['id']}/thumbnail")
    assert (small.headers["content-type"], small.content[8:12]) == ("image/webp", b"WEBP")
    assert "immutable" in small.headers["cache-control"]
    again = api.get(f"/api/v1/items/{item['id']}/thumbnail", headers={"if-none-match": small.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    original = api.get(f"/api/v1/items/{item['id']}/file")
    assert original.headers["content-type"] == "image/png"
    assert Image.open(BytesIO(original.content)).size == (64, 48)
    near = api.get(f"/api/v1/items/{item['id']}/similar?k=5").json()["items"]
    assert len(near) == 5
    assert sum(int(entry["path"][7:9]) % 3 == int(item["path"][7:9]) % 3 for entry in near) >= 4


def test_decisions_are_made_and_undone(api: TestClient) -> None:
    first_item, second_item, *_ = list_untagged_items(api)
    body = {
        "decisions": [
            {"item": first_item, "label": "red", "state": "accepted"},
            {"item": second_item, "label": "new one", "state": "accepted"},
        ]
    }
    reply = api.post("/api/v1/decisions", json=body).json()
    assert (reply["added"], reply["changed"], reply["removed"]) == (2, 0, 0)
    annotation = api.get(f"/api/v1/items/{first_item}").json()["annotations"][0]
    assert (annotation["origin"], annotation["by"], annotation["model"]) == ("person", "local", 1)
    assert 0 < annotation["probability"] < 1
    again = api.post("/api/v1/decisions", json=body).json()
    assert again == {"entry": None, "added": 0, "changed": 0, "removed": 0}
    assert api.get("/api/v1/journal?k=1").json()["entries"][0]["summary"] == "2 items: +red, +new one"
    undone = api.post("/api/v1/undo", json={"entry": reply["entry"]}).json()["entry"]
    assert undone["id"] == reply["entry"]
    assert api.get(f"/api/v1/items/{first_item}").json()["annotations"] == []
    assert api.get("/api/v1/labels?prefix=new").json()["labels"] == []


def test_review_pages_sort_suggestions_by_probability(api: TestClient) -> None:
    page = api.get("/api/v1/items?label=red&label_state=suggested&sort=probability&descending=true").json()["items"]
    chances = [item["probability"] for item in page]
    assert chances == sorted(chances, reverse=True)
    assert api.get("/api/v1/items?label=red&k=1").json()["items"][0]["probability"] is None
    first = api.get("/api/v1/items?label_state=suggested&sort=uncertainty&descending=true&k=1").json()["items"][0]
    waiting = api.get(f"/api/v1/items/{first['id']}").json()["suggestions"]
    decided = [{"item": first["id"], "label": entry["label"], "state": "rejected"} for entry in waiting]
    api.post("/api/v1/decisions", json={"decisions": decided})
    open_items = api.get("/api/v1/items?label_state=suggested&sort=uncertainty&descending=true&k=100").json()["items"]
    assert open_items
    assert first["id"] not in [item["id"] for item in open_items]
    overview = api.get("/api/v1/collection").json()
    thresholds = overview["thresholds"]
    assert overview["index"]["state"] in ("small", "not installed")
    assert [entry["precision"] for entry in thresholds] == [0.8, 0.9, 0.95]


def test_suggestions_above_a_probability_are_accepted(api: TestClient) -> None:
    count = api.get("/api/v1/suggestions/count?min_probability=0.3&label=colour").json()["count"]
    assert count > 0
    reply = api.post("/api/v1/suggestions/accept", json={"min_probability": 0.3, "label": "colour"}).json()
    assert reply["added"] == count
    assert api.get("/api/v1/suggestions/count?min_probability=0.3&label=colour").json()["count"] == 0
    api.post("/api/v1/undo", json={"entry": reply["entry"]})
    assert api.get("/api/v1/suggestions/count?min_probability=0.3&label=colour").json()["count"] == count


def test_rejected_label_is_not_suggested(api: TestClient) -> None:
    item = list_untagged_items(api)[0]
    first = api.get(f"/api/v1/items/{item}").json()["suggestions"][0]["label"]
    api.post("/api/v1/decisions", json={"decisions": [{"item": item, "label": first, "state": "rejected"}]})
    assert first not in [suggestion["label"] for suggestion in api.get(f"/api/v1/items/{item}").json()["suggestions"]]


def test_a_decision_leaves_items_of_another_state_alone(api: TestClient) -> None:
    items = list_untagged_items(api)[:3]

    def decide(state: str | None, expected: str | None = None, of: list[int] = items) -> dict[str, int]:
        decisions = [{"item": item, "label": "red", "state": state, "expected": expected} for item in of]
        reply: dict[str, int] = api.post("/api/v1/decisions", json={"decisions": decisions}).json()
        return reply

    decide("rejected", of=items[:1])
    assert decide("accepted", "open")["added"] == 2
    assert decide(None, "accepted")["removed"] == 2
    assert decide(None, "accepted")["entry"] is None
    states = [api.get(f"/api/v1/items/{item}").json()["annotations"] for item in items]
    assert [[annotation["state"] for annotation in one] for one in states] == [["rejected"], [], []]


def test_search_finds_items_by_words(api: TestClient) -> None:
    results = api.get("/api/v1/search", params={"text": "RED", "k": 5}).json()
    assert (results["labels"], results["groups"][0]["reason"]) == (["red"], "tagged 'red'")
    similar_group = results["groups"][1]
    assert similar_group["reason"] == "looks like 'red'"
    assert [int(item["path"][7:9]) % 3 for item in similar_group["items"]] == [0] * 5
    assert not {item["id"] for item in similar_group["items"]} & {item["id"] for item in results["groups"][0]["items"]}
    none = api.get("/api/v1/search", params={"text": "colour -red -green -blue"}).json()
    assert none["excluded"] == ["red", "green", "blue"]
    assert all(group["reason"] != "tagged 'colour'" for group in none["groups"])
    for text, status in (("mauve", 404), ("-red", 422), ("", 422), ('"', 422), ("x" * 1001, 422)):
        assert api.get("/api/v1/search", params={"text": text}).status_code == status, text


def test_search_uses_knowledge_files(folder: Path, tmp_path: Path) -> None:
    kinds = tmp_path / "kinds.tsv"
    kinds.write_text("red\twarm\nblue\tcold\n")
    with run_service(folder, "--knowledge", kinds) as service:
        results = service.get("/api/v1/search", params={"text": "warm", "k": 5}).json()
        assert (results["labels"], results["notes"]) == (
            ["red"],
            ["'warm' is not a label, but there is one below it: red"],
        )
        assert [group["reason"] for group in results["groups"]][:2] == ["tagged 'red'", "looks like 'red'"]


def test_item_is_annotated_by_id_or_path(api: TestClient) -> None:
    item = list_untagged_items(api)[0]
    path = api.get(f"/api/v1/items/{item}").json()["path"]
    by_number = api.get(f"/api/v1/items/{item}/annotate?k=2").json()
    assert len(by_number["results"][0]["labels"]) == 2
    assert api.get("/api/v1/annotate/path", params={"path": path, "k": 2}).json() == by_number
    region = {"path": path, "k": 2, "region": "0,0,20,20"}
    assert api.get("/api/v1/annotate/path", params=region).json() != by_number
    for wrong in ("none.png", f"../photos/{path}", f"./{path}", "/etc/passwd", "a\0b", ""):
        assert api.get("/api/v1/annotate/path", params={"path": wrong}).status_code in (404, 422), wrong


def test_annotations_use_current_label_names(api: TestClient) -> None:
    """Renamed, merged or deleted since the model learned."""
    item = list_untagged_items(api)[0]
    label_ids = {label["name"]: label["id"] for label in api.get("/api/v1/vocabulary").json()["labels"]}

    def ranked(**more: object) -> list[str]:
        result = api.get(f"/api/v1/items/{item}/annotate", params={"k": 4, **more}).json()["results"][0]
        return [label["label"] for label in result["labels"]]

    def among(*names: str) -> list[str]:
        rows = {"rows": [{"columns": [0], "values": [1]}], "candidates": list(names)}
        response = api.post("/api/v1/annotate/rows", json=rows)
        return (
            [label["label"] for label in response.json()["results"][0]["labels"]]
            if response.is_success
            else [response.text]
        )

    assert sorted(ranked()) == ["blue", "colour", "green", "red"]
    assert api.patch(f"/api/v1/labels/{label_ids['red']}", json={"name": "crimson"}).is_success
    assert sorted(ranked()) == ["blue", "colour", "crimson", "green"]
    assert among("crimson") == among("red") == ["crimson"]
    assert api.post(
        "/api/v1/labels/merge", json={"labels": [label_ids["blue"]], "target": label_ids["green"]}
    ).is_success
    assert sorted(ranked()) == ["colour", "crimson", "green"]
    assert len(ranked(k=2)) == 2
    assert among("green") == ["green"]
    assert api.delete(f"/api/v1/labels/{label_ids['colour']}", params={"with_tags": True}).is_success
    assert sorted(ranked()) == ["crimson", "green"]
    assert "no label" in among("yellow")[0]
    assert api.post("/api/v1/undo", json={}).is_success
    assert sorted(ranked()) == ["colour", "crimson", "green"]


def test_min_precision_keeps_precise_labels_or_reports_no_fit(api: TestClient, folder: Path) -> None:
    item = api.get(f"/api/v1/items/{list_untagged_items(api)[0]}").json()
    by_path = f"/api/v1/annotate/path?path={item['path']}"
    labels = api.get(by_path).json()["results"][0]["labels"]
    assert api.get(by_path).json()["results"][0]["no_tag_fits"] is None
    second = labels[1]["label"]
    label_ids = {label["name"]: label["id"] for label in api.get("/api/v1/vocabulary").json()["labels"]}
    with open_collection(folder) as collection:  # 100 suggestions of each label were judged, and one label was right
        every, right = np.repeat(list(label_ids.values()), 100), np.repeat([name == second for name in label_ids], 100)
        save_holdout_suggestions(
            load_model(collection).path, HoldoutSuggestions(every, np.zeros(len(every)), right.astype(np.int64))
        )
    region = f"/api/v1/items/{item['id']}/annotate?region=0,0,64,48"
    rows = {"rows": [{"columns": [0], "values": [1]}] * 2, "k": 1}
    picture = {"file": (folder / item["path"]).read_bytes()}
    for precision, expected_labels, none in ((0.9, [second], False), (0.99, [], True)):  # 100 of 100 show more than .9
        for answer in (
            api.get(f"{by_path}&k=1&min_precision={precision}"),
            api.get(f"{region}&min_precision={precision}"),
            api.post(f"/api/v1/annotate/picture?min_precision={precision}", files=picture),
            api.post("/api/v1/annotate/rows", json={**rows, "min_precision": precision}),
        ):
            assert answer.status_code == 200, answer.text
            for result in answer.json()["results"]:
                assert ([label["label"] for label in result["labels"]], result["no_tag_fits"]) == (
                    expected_labels,
                    none,
                )
    for wrong in ("0", "1.1", "nan", "x"):
        assert api.get(f"{by_path}&min_precision={wrong}").status_code == 422, wrong
        assert api.get(f"/api/v1/items?no_tag_fits={wrong}").status_code == 422, wrong


def test_items_that_fit_no_tag_are_listed(api: TestClient, folder: Path) -> None:
    """An item's precision is that of its best suggestion at the time of the look; tagged items are left out."""
    with open_collection(folder) as collection:
        opened = load_model(collection)
        sureness = opened.precision_curve
        save_holdout_suggestions(
            opened.path, HoldoutSuggestions(*(part[:0] for part in opened.holdout_suggestions))
        )  # of an older version: no threshold
    waiting = api.get("/api/v1/items?unlabelled=true&k=1000").json()["items"]
    best = {entry["id"]: api.get(f"/api/v1/items/{entry['id']}").json()["suggestions"][0] for entry in waiting}
    precisions = {
        item: sureness.read_precision(np.array([s["label_id"]]), np.array([s["probability"]]))[0]
        for item, s in best.items()
    }
    for precision in (0.5, 0.8, 0.9, 1):
        page_items = api.get(f"/api/v1/items?no_tag_fits={precision}&k=1000").json()["items"]
        assert {entry["id"] for entry in page_items} == {
            item for item, reached in precisions.items() if reached < precision
        }


def test_search_takes_a_picture_and_a_region(api: TestClient) -> None:
    picture = {"file": draw_picture("green", 44)}
    results = api.post("/api/v1/search/picture?k=6", files=picture).json()
    assert [int(item["path"][7:9]) % 3 for item in results["items"]].count(1) >= 5
    assert results["labels"][0]["label"] in ("green", "colour")
    region = api.post("/api/v1/search/picture?k=6&region=0,30,64,18", files=picture)
    assert region.status_code == 200
    assert api.post("/api/v1/search/picture", files={"file": b"<svg/>"}).status_code in (415, 422)


def test_labels_and_facets_are_counted(api: TestClient) -> None:
    assert [entry["name"] for entry in api.get("/api/v1/labels?prefix=Gr").json()["labels"]] == ["green"]
    listed = api.get("/api/v1/vocabulary?k=2").json()
    assert (listed["total"], listed["labels"][0]["name"]) == (4, "colour")
    counts = api.get("/api/v1/facets").json()
    assert {entry["folder"]: entry["items"] for entry in counts["folders"]} == {"part 0": 23, "part 1": 22}
    assert counts["labels"][0]["accepted"] == 30


@pytest.mark.parametrize(
    "address",
    [
        "/api/v1/items/999",
        "/api/v1/items/999/thumbnail",
        "/api/v1/items/999/file",
        "/api/v1/items/999/similar",
        "/api/v1/jobs/999",
        "/api/v1/items?label=nobody",
        "/api/v1/nothing",
        "/../../etc/passwd",
        "/api/v1/items/..%2f..%2fetc%2fpasswd/file",
    ],
)
def test_unknown_addresses_are_not_found(api: TestClient, address: str) -> None:
    refused = api.get(address)
    assert refused.status_code in (404, 422)
    assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "address",
    [
        "/api/v1/items?cursor=abc",
        "/api/v1/items?k=0",
        "/api/v1/items?k=100000",
        "/api/v1/items?min_probability=nan",
        "/api/v1/items?sort=name",
        "/api/v1/items?words=%00",
        "/api/v1/items?folder=a%00b",
        "/api/v1/annotate/path?path=a%00b",
        "/api/v1/items?sort=probability",
        "/api/v1/items?taken_from=yesterday",
        "/api/v1/items/99999999999999999999999",
        "/api/v1/items/1/thumbnail?size=512",
        "/api/v1/items/1/annotate?region=x",
        "/api/v1/items/1/annotate?region=900,900,10,10",
    ],
)
def test_invalid_requests_are_refused(api: TestClient, address: str) -> None:
    refused = api.get(address)
    assert refused.status_code == 422, refused.text
    assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "decision",
    [
        {"item": 999, "label": "red", "state": "accepted"},
        {"item": 2**64, "label": "red", "state": "accepted"},
        {"item": 1, "label": "x" * 501, "state": "accepted"},
        {"item": 1, "label": "red", "state": "accepted", "region": "0,0,9,9" + " " * 40_000},
        {"item": 1, "label": "never seen", "state": "rejected"},
        {"item": 1, "label": " ", "state": "accepted"},
        {"item": 1, "label": "red", "state": "maybe"},
        {"item": 1, "label": "red", "state": "accepted", "region": "x"},
        {"item": 1, "label": "a\0b", "state": "accepted"},
        {"item": "1; DROP TABLE items", "label": "red", "state": "accepted"},
    ],
)
def test_invalid_decisions_change_nothing(api: TestClient, decision: dict[str, object]) -> None:
    journal_before = api.get("/api/v1/journal").json()
    good = {"item": 2, "label": "red", "state": "rejected"}
    refused = api.post("/api/v1/decisions", json={"decisions": [good, decision]})
    assert refused.status_code in (404, 422), refused.text
    assert api.get("/api/v1/journal").json() == journal_before


def test_invalid_label_name_is_reported_alone(api: TestClient) -> None:
    decision = {"item": 999, "label": "a\0b", "state": "accepted"}
    refused = api.post("/api/v1/decisions", json={"decisions": [decision]})
    assert (refused.status_code, refused.json()["detail"][:26]) == (422, "'a\\x00b' cannot be a label")


def test_links_out_of_the_folder_are_not_followed(api: TestClient, folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(draw_picture("red", 1))
    item = api.get("/api/v1/items?k=1").json()["items"][0]
    path = folder / item["path"]
    path.unlink()
    path.symlink_to(secret)
    for view in ("file", "heat?label=red"):
        refused = api.get(f"/api/v1/items/{item['id']}/{view}")
        assert refused.status_code == 422
        assert "leads out of" in refused.json()["detail"]


def test_read_token_cannot_decide(folder: Path) -> None:
    tokens = [Token("eve", "read", None, hash_token("r")), Token("adam", "write", None, hash_token("w"))]
    with open_collection(folder) as collection:
        context = ServiceContext(ServiceLimits(), tokens, CollectionModelHolder(collection), collection)
        with TestClient(make_app(context)) as api:
            body = {"decisions": [{"item": 1, "label": "red", "state": "rejected"}]}
            assert api.post("/api/v1/decisions", json=body).status_code == 401
            read_headers, write_headers = ({"authorization": f"Bearer {token}"} for token in "rw")
            assert api.get("/api/v1/collection", headers=read_headers).json()["role"] == "read"
            for address, sent in (
                ("decisions", body),
                ("undo", {}),
                ("jobs", {"kind": "scan"}),
                ("models/1/use", None),
            ):
                assert api.post(f"/api/v1/{address}", json=sent, headers=read_headers).status_code == 403, address
            assert api.post("/api/v1/decisions", json=body, headers=write_headers).status_code == 200
            assert api.get("/api/v1/journal?k=1", headers=read_headers).json()["entries"][0]["by"] == "adam"
            api.cookies.set("wsabie_token", "r")
            assert api.get("/api/v1/items/1/thumbnail").status_code == 200


def test_job_runs_and_streams_events(folder: Path) -> None:
    (folder / "new.webp").write_bytes(read_emoji(1)[0])
    with run_service(folder) as api:
        job = api.post("/api/v1/jobs", json={"kind": "scan", "options": {}}).json()
        events: list[dict[str, object]] = []
        until = time.monotonic() + 100
        while time.monotonic() < until and (not events or events[-1]["state"] not in ("done", "failed")):
            with api.stream("GET", f"/api/v1/jobs/{job['id']}/events") as stream:
                lines = (line for line in stream.iter_lines() if line.startswith("data: "))
                events += [json.loads(line.removeprefix("data: ")) for line in lines]
        assert events[-1]["state"] == "done", events[-1]
        assert events[-1]["result"]["new"] == 1  # type: ignore[index]
        assert api.get("/api/v1/collection").json()["items"]["present"] == 46
        bad = api.post("/api/v1/jobs", json={"kind": "train", "options": {"colour": True}})
        assert bad.status_code == 422


def test_job_result_is_sent_as_it_is_stored(api: TestClient, folder: Path) -> None:
    root = {"folder": "/disk", "reason": "gone", "items": 3}
    lists = {"modality": "pictures", "unreachable_roots": [root], "notes": ["read"]}
    scan = {field.name: 2 for field in fields(ScanResult)} | lists
    facts = {"kind": "ivf", "recall@10": 0.9, "measured_on": "items", "milliseconds": 0.2, "exact_milliseconds": 9.0}
    index = {name: {**facts, "effort": 3, "bytes": 7} for name in ("dot", "cosine")}
    earlier = [{name: n for name, n in scan.items() if name != "held_tags"}, {"dot": facts, "cosine": facts}]
    with open_collection(folder) as collection:
        job = queue.enqueue_job(collection, "scan", {}, by="eve")
        for result in (scan, index, *earlier, {"labels": 2, "proposals": 1, "unused_sources": []}):
            queue.update_jobs(collection, jobs.c.id == job.id, state="done", result=result)
            assert api.get(f"/api/v1/jobs/{job.id}").json()["result"] == result


def test_waiting_or_running_job_is_stopped(api: TestClient) -> None:
    job = api.post("/api/v1/jobs", json={"kind": "train", "options": {"full": True, "epochs": 1000}}).json()
    until = time.monotonic() + 100
    while api.get(f"/api/v1/jobs/{job['id']}").json()["state"] == "waiting" and time.monotonic() < until:
        time.sleep(0.2)
    assert api.post(f"/api/v1/jobs/{job['id']}/stop").json()["state"] == "stopped"
    assert api.get("/api/v1/models").json()["models"][0]["id"] == 1
    scan = api.post("/api/v1/jobs", json={"kind": "scan"}).json()  # the next one gets its turn
    while api.get(f"/api/v1/jobs/{scan['id']}").json()["state"] in ("waiting", "running"):
        assert time.monotonic() < until
        time.sleep(0.2)
    assert api.get(f"/api/v1/jobs/{scan['id']}").json()["state"] == "done"


def test_served_model_has_no_collection_routes(client: Client) -> None:
    api = client()
    assert api.get("/api/v1/collection").status_code == 404
    assert api.get("/api/v1/labels").status_code == 200


@pytest.mark.parametrize("folder", ["trained_collection"], indirect=True)
def test_server_errors_check_the_catalogue_once_a_minute(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    checks: list[object] = []
    faults: list[str] = []

    def fail(*_: object, **__: object) -> None:
        raise KeyError("a column")

    def record_check(engine: object) -> list[str]:
        checks.append(engine)
        return faults

    monkeypatch.setattr(item_pages, "read_item_page", fail)
    monkeypatch.setattr(collection_module, "find_damage", record_check)
    assert [api.get("/api/v1/items").status_code for _ in range(3)] == [500] * 3
    assert len(checks) == 1
    monkeypatch.setattr(problems, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 61))
    faults.append("row 1 of items: path is not text")
    answers = [api.get("/api/v1/items") for _ in range(3)]
    assert {(answer.status_code, answer.json()["detail"].partition(";")[0]) for answer in answers} == {
        (503, "the database is damaged")
    }
    assert len(checks) == 2


@pytest.mark.parametrize("folder", ["trained_collection"], indirect=True)
def test_read_only_collection_gives_the_read_role(folder: Path) -> None:
    with open_collection(folder, read_only=True) as collection:
        app = make_app(ServiceContext(ServiceLimits(), None, CollectionModelHolder(collection), collection))
        with TestClient(app, base_url="http://localhost") as api:
            assert api.get("/api/v1/collection").json()["role"] == "read"
            answer = api.post("/api/v1/undo", json={})
    assert (answer.status_code, answer.json()["detail"].partition(":")[0]) == (403, "the collection is read-only here")


@pytest.mark.parametrize("folder", ["trained_collection"], indirect=True)
def test_missing_catalogue_gives_one_sentence(
    api: TestClient, folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = folder / ".wsabie/catalogue.db"
    decisions = {"decisions": [{"item": 40, "label": "red", "state": "accepted"}]}

    def details() -> list[str]:
        answers = [api.post("/api/v1/decisions", json=decisions) for _ in range(2)]
        answers += [api.get(f"/api/v1/{path}") for path in ("items", "labels", "items/1/file")]
        assert {answer.status_code for answer in answers} == {503}, answers
        return [answer.json()["detail"] for answer in answers]

    assert api.post("/api/v1/decisions", json=decisions).status_code == 200
    catalogue.rename(folder / "away.db")
    first_detail, *later = details()
    assert first_detail == "the database was removed or replaced while it was open; nothing is kept"
    assert set(later) == {"the database does not answer as it should; try again in a moment"}
    catalogue.write_bytes(b"no catalogue" * 1000)
    assert {detail.partition(";")[0] for detail in details()} == {"the database is damaged"}
    assert f"wsabie collection restore {folder}" in caplog.records[-1].getMessage()
    assert api.get("/api/v1/health").json()["detail"].startswith("the database is damaged")
    catalogue.unlink()
    shutil.copy(folder / "away.db", catalogue)
    assert api.post("/api/v1/decisions", json=decisions).status_code == 200
    monkeypatch.setattr(problems, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 61))
    assert api.get("/api/v1/health").json() == {"status": "ok"}  # it is looked through once more
    assert not [record for record in caplog.records if record.exc_info]
