"""A collection over HTTP, as people work with it: pages, review, search, jobs; and what is refused."""

import json
import shutil
import time
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient
from tests.server.conftest import Client, drawn, emoji, running

from wsabie.collection.folder import collection as collection_module
from wsabie.collection.folder.collection import open_collection
from wsabie.collection.items import item_pages
from wsabie.collection.registry.model_registry import load_model
from wsabie.collection.registry.thresholds import HoldoutSuggestions, save_holdout_suggestions
from wsabie.server import problems
from wsabie.server.app import make_app
from wsabie.server.dependencies import ServiceContext
from wsabie.server.model_holder import CollectionModelHolder
from wsabie.server.request_limits import ServiceLimits
from wsabie.server.tokens import Token, compute_digest


def untagged(asked: TestClient) -> list[int]:
    return [item["id"] for item in asked.get("/api/v1/items?unlabelled=true").json()["items"]]


def test_how_it_stands(asked: TestClient, folder: Path) -> None:
    found = asked.get("/api/v1/collection").json()
    assert (found["schema"], found["folder"], found["role"]) == (1, str(folder), "write")
    assert found["items"] == {"present": 45, "missing": 0, "unreadable": 0}
    assert (found["accepted"], found["rejected"], found["labels"]) == (60, 0, 4)
    assert found["model"]["in_use"]
    assert found["suggestions"] > 0


def test_all_items_are_on_some_page_once(asked: TestClient) -> None:
    for sort in ("path", "added_at", "best_probability", "uncertainty"):
        seen: list[int] = []
        cursor = None
        while True:
            page = asked.get(
                "/api/v1/items", params={"k": 7, "sort": sort} | ({"cursor": cursor} if cursor else {})
            ).json()
            seen += [item["id"] for item in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert sorted(seen) == list(range(1, 46))


def test_an_item_with_its_pictures(asked: TestClient) -> None:
    item = asked.get("/api/v1/items?label=red&k=1").json()["items"][0]
    whole = asked.get(f"/api/v1/items/{item['id']}").json()
    assert whole["labels"] == ["colour", "red"]
    assert {one["by"] for one in whole["annotations"]} == {"metadata"}
    small = asked.get(f"/api/v1/items/{item['id']}/thumbnail")
    assert (small.headers["content-type"], small.content[8:12]) == ("image/webp", b"WEBP")
    assert "immutable" in small.headers["cache-control"]
    again = asked.get(f"/api/v1/items/{item['id']}/thumbnail", headers={"if-none-match": small.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    original = asked.get(f"/api/v1/items/{item['id']}/file")
    assert original.headers["content-type"] == "image/png"
    assert Image.open(BytesIO(original.content)).size == (64, 48)
    near = asked.get(f"/api/v1/items/{item['id']}/similar?k=5").json()["items"]
    assert len(near) == 5
    assert sum(int(one["path"][7:9]) % 3 == int(item["path"][7:9]) % 3 for one in near) >= 4


def test_deciding_and_undoing(asked: TestClient) -> None:
    one, other, *_ = untagged(asked)
    body = {
        "decisions": [
            {"item": one, "label": "red", "state": "accepted"},
            {"item": other, "label": "new one", "state": "accepted"},
        ]
    }
    done = asked.post("/api/v1/decisions", json=body).json()
    assert (done["added"], done["changed"], done["removed"]) == (2, 0, 0)
    annotation = asked.get(f"/api/v1/items/{one}").json()["annotations"][0]
    assert (annotation["origin"], annotation["by"], annotation["model"]) == ("person", "local", 1)
    assert 0 < annotation["probability"] < 1
    again = asked.post("/api/v1/decisions", json=body).json()
    assert again == {"entry": None, "added": 0, "changed": 0, "removed": 0}
    assert asked.get("/api/v1/journal?k=1").json()["entries"][0]["summary"] == "2 items: +red, +new one"
    undone = asked.post("/api/v1/undo", json={"entry": done["entry"]}).json()["entry"]
    assert undone["id"] == done["entry"]
    assert asked.get(f"/api/v1/items/{one}").json()["annotations"] == []
    assert asked.get("/api/v1/labels?prefix=new").json()["labels"] == []


def test_what_is_left_to_review(asked: TestClient) -> None:
    page = asked.get("/api/v1/items?label=red&label_state=suggested&sort=probability&descending=true").json()["items"]
    chances = [item["probability"] for item in page]
    assert chances == sorted(chances, reverse=True)
    assert asked.get("/api/v1/items?label=red&k=1").json()["items"][0]["probability"] is None
    first = asked.get("/api/v1/items?label_state=suggested&sort=uncertainty&descending=true&k=1").json()["items"][0]
    waiting = asked.get(f"/api/v1/items/{first['id']}").json()["suggestions"]
    decided = [{"item": first["id"], "label": one["label"], "state": "rejected"} for one in waiting]
    asked.post("/api/v1/decisions", json={"decisions": decided})
    left = asked.get("/api/v1/items?label_state=suggested&sort=uncertainty&descending=true&k=100").json()["items"]
    assert left
    assert first["id"] not in [item["id"] for item in left]
    whole = asked.get("/api/v1/collection").json()
    thresholds = whole["thresholds"]
    assert whole["index"]["state"] in ("few", "not installed")
    assert [one["precision"] for one in thresholds] == [0.8, 0.9, 0.95]


def test_accepting_all_above(asked: TestClient) -> None:
    count = asked.get("/api/v1/suggestions/count?min_probability=0.3&label=colour").json()["count"]
    assert count > 0
    done = asked.post("/api/v1/suggestions/accept", json={"min_probability": 0.3, "label": "colour"}).json()
    assert done["added"] == count
    assert asked.get("/api/v1/suggestions/count?min_probability=0.3&label=colour").json()["count"] == 0
    asked.post("/api/v1/undo", json={"entry": done["entry"]})
    assert asked.get("/api/v1/suggestions/count?min_probability=0.3&label=colour").json()["count"] == count


def test_what_is_rejected_is_not_suggested(asked: TestClient) -> None:
    item = untagged(asked)[0]
    first = asked.get(f"/api/v1/items/{item}").json()["suggestions"][0]["label"]
    asked.post("/api/v1/decisions", json={"decisions": [{"item": item, "label": first, "state": "rejected"}]})
    assert first not in [one["label"] for one in asked.get(f"/api/v1/items/{item}").json()["suggestions"]]


def test_search_by_words(asked: TestClient) -> None:
    found = asked.get("/api/v1/search", params={"text": "RED", "k": 5}).json()
    assert (found["labels"], found["groups"][0]["reason"]) == (["red"], "tagged 'red'")
    looks = found["groups"][1]
    assert looks["reason"] == "looks like 'red'"
    assert [int(one["path"][7:9]) % 3 for one in looks["items"]] == [0] * 5
    assert not {one["id"] for one in looks["items"]} & {one["id"] for one in found["groups"][0]["items"]}
    none = asked.get("/api/v1/search", params={"text": "colour -red -green -blue"}).json()
    assert none["excluded"] == ["red", "green", "blue"]
    assert all(group["reason"] != "tagged 'colour'" for group in none["groups"])
    for text, status in (("mauve", 404), ("-red", 422), ("", 422), ('"', 422), ("x" * 1001, 422)):
        assert asked.get("/api/v1/search", params={"text": text}).status_code == status, text


def test_search_by_what_files_know(folder: Path, tmp_path: Path) -> None:
    kinds = tmp_path / "kinds.tsv"
    kinds.write_text("red\twarm\nblue\tcold\n")
    with running(folder, "--knowledge", kinds) as service:
        found = service.get("/api/v1/search", params={"text": "warm", "k": 5}).json()
        assert (found["labels"], found["notes"]) == (["red"], ["'warm' is no label, but there is one below it: red"])
        assert [group["reason"] for group in found["groups"]][:2] == ["tagged 'red'", "looks like 'red'"]


def test_an_item_is_annotated_by_its_number_or_path(asked: TestClient) -> None:
    item = untagged(asked)[0]
    path = asked.get(f"/api/v1/items/{item}").json()["path"]
    by_number = asked.get(f"/api/v1/items/{item}/annotate?k=2").json()
    assert len(by_number["results"][0]["labels"]) == 2
    assert asked.get("/api/v1/annotate/path", params={"path": path, "k": 2}).json() == by_number
    region = {"path": path, "k": 2, "region": "0,0,20,20"}
    assert asked.get("/api/v1/annotate/path", params=region).json() != by_number
    for wrong in ("none.png", f"../photos/{path}", f"./{path}", "/etc/passwd", "a\0b", ""):
        assert asked.get("/api/v1/annotate/path", params={"path": wrong}).status_code in (404, 422), wrong


def test_labels_are_called_as_the_collection_calls_them_now(asked: TestClient) -> None:
    """Renamed, merged or deleted since the model learnt."""
    item = untagged(asked)[0]
    numbers = {one["name"]: one["id"] for one in asked.get("/api/v1/vocabulary").json()["labels"]}

    def ranked(**more: object) -> list[str]:
        found = asked.get(f"/api/v1/items/{item}/annotate", params={"k": 4, **more}).json()["results"][0]
        return [one["label"] for one in found["labels"]]

    def among(*names: str) -> list[str]:
        rows = {"rows": [{"columns": [0], "values": [1]}], "candidates": list(names)}
        found = asked.post("/api/v1/annotate/rows", json=rows)
        return [one["label"] for one in found.json()["results"][0]["labels"]] if found.is_success else [found.text]

    assert sorted(ranked()) == ["blue", "colour", "green", "red"]
    assert asked.patch(f"/api/v1/labels/{numbers['red']}", json={"name": "crimson"}).is_success
    assert sorted(ranked()) == ["blue", "colour", "crimson", "green"]
    assert among("crimson") == among("red") == ["crimson"]
    assert asked.post("/api/v1/labels/merge", json={"labels": [numbers["blue"]], "target": numbers["green"]}).is_success
    assert sorted(ranked()) == ["colour", "crimson", "green"]
    assert len(ranked(k=2)) == 2
    assert among("green") == ["green"]
    assert asked.delete(f"/api/v1/labels/{numbers['colour']}", params={"with_tags": True}).is_success
    assert sorted(ranked()) == ["crimson", "green"]
    assert "no label" in among("yellow")[0]
    assert asked.post("/api/v1/undo", json={}).is_success
    assert sorted(ranked()) == ["colour", "crimson", "green"]


def test_only_labels_that_are_sure_enough_or_no_tag_fits(asked: TestClient, folder: Path) -> None:
    item = asked.get(f"/api/v1/items/{untagged(asked)[0]}").json()
    by_path = f"/api/v1/annotate/path?path={item['path']}"
    labels = asked.get(by_path).json()["results"][0]["labels"]
    assert asked.get(by_path).json()["results"][0]["no_tag_fits"] is None
    second = labels[1]["label"]
    numbers = {one["name"]: one["id"] for one in asked.get("/api/v1/vocabulary").json()["labels"]}
    with open_collection(folder) as collection:  # 30 suggestions of each label were judged, and one label was right
        every, right = np.repeat(list(numbers.values()), 30), np.repeat([name == second for name in numbers], 30)
        save_holdout_suggestions(
            load_model(collection).path, HoldoutSuggestions(every, np.zeros(len(every)), right.astype(np.int64))
        )
    region = f"/api/v1/items/{item['id']}/annotate?region=0,0,64,48"
    rows = {"rows": [{"columns": [0], "values": [1]}] * 2, "k": 1}
    picture = {"file": (folder / item["path"]).read_bytes()}
    for precision, sure, none in ((0.9, [second], False), (0.99, [], True)):  # 30 of 30, and one more that is wrong
        for answer in (
            asked.get(f"{by_path}&k=1&min_precision={precision}"),
            asked.get(f"{region}&min_precision={precision}"),
            asked.post(f"/api/v1/annotate/picture?min_precision={precision}", files=picture),
            asked.post("/api/v1/annotate/rows", json={**rows, "min_precision": precision}),
        ):
            assert answer.status_code == 200, answer.text
            for result in answer.json()["results"]:
                assert ([one["label"] for one in result["labels"]], result["no_tag_fits"]) == (sure, none)
    for wrong in ("0", "1.1", "nan", "x"):
        assert asked.get(f"{by_path}&min_precision={wrong}").status_code == 422, wrong
        assert asked.get(f"/api/v1/items?no_tag_fits={wrong}").status_code == 422, wrong


def test_items_that_no_tag_fits(asked: TestClient, folder: Path) -> None:
    """As sure as the best suggestion of each was when the model looked; what is tagged is not asked for."""
    with open_collection(folder) as collection:
        opened = load_model(collection)
        sureness = opened.precision_curve
        save_holdout_suggestions(
            opened.path, HoldoutSuggestions(*(part[:0] for part in opened.holdout_suggestions))
        )  # of an older version: no threshold
    waiting = asked.get("/api/v1/items?unlabelled=true&k=1000").json()["items"]
    best = {one["id"]: asked.get(f"/api/v1/items/{one['id']}").json()["suggestions"][0] for one in waiting}
    sure = {item: sureness.of(np.array([s["label_id"]]), np.array([s["probability"]]))[0] for item, s in best.items()}
    for precision in (0.5, 0.8, 0.9, 1):
        found = asked.get(f"/api/v1/items?no_tag_fits={precision}&k=1000").json()["items"]
        assert {one["id"] for one in found} == {item for item, reached in sure.items() if reached < precision}


def test_search_by_a_picture_and_a_region(asked: TestClient) -> None:
    picture = {"file": drawn("green", 44)}
    found = asked.post("/api/v1/search/picture?k=6", files=picture).json()
    assert [int(one["path"][7:9]) % 3 for one in found["items"]].count(1) >= 5
    assert found["labels"][0]["label"] in ("green", "colour")
    region = asked.post("/api/v1/search/picture?k=6&region=0,30,64,18", files=picture)
    assert region.status_code == 200
    assert asked.post("/api/v1/search/picture", files={"file": b"<svg/>"}).status_code in (415, 422)


def test_labels_and_counts(asked: TestClient) -> None:
    assert [one["name"] for one in asked.get("/api/v1/labels?prefix=Gr").json()["labels"]] == ["green"]
    listed = asked.get("/api/v1/vocabulary?k=2").json()
    assert (listed["total"], listed["labels"][0]["name"]) == (4, "colour")
    counts = asked.get("/api/v1/facets").json()
    assert {one["folder"]: one["items"] for one in counts["folders"]} == {"part 0": 23, "part 1": 22}
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
def test_what_is_not_there(asked: TestClient, address: str) -> None:
    refused = asked.get(address)
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
def test_what_cannot_be_asked(asked: TestClient, address: str) -> None:
    refused = asked.get(address)
    assert refused.status_code == 422, refused.text
    assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "decision",
    [
        {"item": 999, "label": "red", "state": "accepted"},
        {"item": 1, "label": "never seen", "state": "rejected"},
        {"item": 1, "label": " ", "state": "accepted"},
        {"item": 1, "label": "red", "state": "maybe"},
        {"item": 1, "label": "red", "state": "accepted", "region": "x"},
        {"item": 1, "label": "a\0b", "state": "accepted"},
        {"item": "1; DROP TABLE items", "label": "red", "state": "accepted"},
    ],
)
def test_decisions_that_cannot_be_made_change_nothing(asked: TestClient, decision: dict[str, object]) -> None:
    before = asked.get("/api/v1/journal").json()
    good = {"item": 2, "label": "red", "state": "rejected"}
    refused = asked.post("/api/v1/decisions", json={"decisions": [good, decision]})
    assert refused.status_code in (404, 422), refused.text
    assert asked.get("/api/v1/journal").json() == before


def test_a_name_that_cannot_be_is_told_by_itself(asked: TestClient) -> None:
    decision = {"item": 999, "label": "a\0b", "state": "accepted"}
    refused = asked.post("/api/v1/decisions", json={"decisions": [decision]})
    assert (refused.status_code, refused.json()["detail"][:26]) == (422, "'a\\x00b' cannot be a label")


def test_links_out_of_the_folder_are_not_followed(asked: TestClient, folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(drawn("red", 1))
    item = asked.get("/api/v1/items?k=1").json()["items"][0]
    path = folder / item["path"]
    path.unlink()
    path.symlink_to(secret)
    for what in ("file", "heat?label=red"):
        refused = asked.get(f"/api/v1/items/{item['id']}/{what}")
        assert refused.status_code == 422
        assert "leads out of" in refused.json()["detail"]


def test_who_may_only_read(folder: Path) -> None:
    tokens = [Token("eve", "read", None, compute_digest("r")), Token("adam", "write", None, compute_digest("w"))]
    with open_collection(folder) as collection:
        context = ServiceContext(ServiceLimits(), tokens, CollectionModelHolder(collection), collection)
        with TestClient(make_app(context)) as asked:
            body = {"decisions": [{"item": 1, "label": "red", "state": "rejected"}]}
            assert asked.post("/api/v1/decisions", json=body).status_code == 401
            read, write = ({"authorization": f"Bearer {token}"} for token in "rw")
            assert asked.get("/api/v1/collection", headers=read).json()["role"] == "read"
            for address, sent in (
                ("decisions", body),
                ("undo", {}),
                ("jobs", {"kind": "scan"}),
                ("models/1/use", None),
            ):
                assert asked.post(f"/api/v1/{address}", json=sent, headers=read).status_code == 403, address
            assert asked.post("/api/v1/decisions", json=body, headers=write).status_code == 200
            assert asked.get("/api/v1/journal?k=1", headers=read).json()["entries"][0]["by"] == "adam"
            asked.cookies.set("wsabie_token", "r")
            assert asked.get("/api/v1/items/1/thumbnail").status_code == 200


def test_a_job_runs_and_tells_how_it_goes(folder: Path) -> None:
    (folder / "new.webp").write_bytes(emoji(1)[0])
    with running(folder) as asked:
        job = asked.post("/api/v1/jobs", json={"kind": "scan", "options": {}}).json()
        told: list[dict[str, object]] = []
        until = time.monotonic() + 100
        while time.monotonic() < until and (not told or told[-1]["state"] not in ("done", "failed")):
            with asked.stream("GET", f"/api/v1/jobs/{job['id']}/events") as stream:
                lines = (line for line in stream.iter_lines() if line.startswith("data: "))
                told += [json.loads(line.removeprefix("data: ")) for line in lines]
        assert told[-1]["state"] == "done", told[-1]
        assert told[-1]["result"]["new"] == 1  # type: ignore[index]
        assert asked.get("/api/v1/collection").json()["items"]["present"] == 46
        bad = asked.post("/api/v1/jobs", json={"kind": "train", "options": {"colour": True}})
        assert bad.status_code == 422


def test_a_waiting_or_running_job_can_be_stopped(asked: TestClient) -> None:
    job = asked.post("/api/v1/jobs", json={"kind": "train", "options": {"full": True, "epochs": 1000}}).json()
    until = time.monotonic() + 100
    while asked.get(f"/api/v1/jobs/{job['id']}").json()["state"] == "waiting" and time.monotonic() < until:
        time.sleep(0.2)
    assert asked.post(f"/api/v1/jobs/{job['id']}/stop").json()["state"] == "stopped"
    assert asked.get("/api/v1/models").json()["models"][0]["id"] == 1
    scan = asked.post("/api/v1/jobs", json={"kind": "scan"}).json()  # the next one gets its turn
    while asked.get(f"/api/v1/jobs/{scan['id']}").json()["state"] in ("waiting", "running"):
        assert time.monotonic() < until
        time.sleep(0.2)
    assert asked.get(f"/api/v1/jobs/{scan['id']}").json()["state"] == "done"


def test_a_model_alone_has_no_collection(client: Client) -> None:
    asked = client()
    assert asked.get("/api/v1/collection").status_code == 404
    assert asked.get("/api/v1/labels").status_code == 200


@pytest.mark.parametrize("folder", ["trained_collection"], indirect=True)
def test_errors_cost_one_look_through_the_catalogue_a_minute(
    asked: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[object] = []
    faults: list[str] = []

    def fail(*_: object, **__: object) -> None:
        raise KeyError("a column")

    def look(engine: object) -> list[str]:
        looks.append(engine)
        return faults

    monkeypatch.setattr(item_pages, "read_item_page", fail)
    monkeypatch.setattr(collection_module, "find_damage", look)
    assert [asked.get("/api/v1/items").status_code for _ in range(3)] == [500] * 3
    assert len(looks) == 1
    monkeypatch.setattr(problems, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 61))
    faults.append("row 1 of items: path is no text")
    answers = [asked.get("/api/v1/items") for _ in range(3)]
    assert {(one.status_code, one.json()["detail"].partition(";")[0]) for one in answers} == {
        (503, "the catalogue is damaged")
    }
    assert len(looks) == 2


@pytest.mark.parametrize("folder", ["trained_collection"], indirect=True)
def test_who_looks_at_a_collection_that_may_not_be_written_has_the_role_of_a_reader(folder: Path) -> None:
    with open_collection(folder, read_only=True) as collection:
        app = make_app(ServiceContext(ServiceLimits(), None, CollectionModelHolder(collection), collection))
        with TestClient(app, base_url="http://localhost") as asked:
            assert asked.get("/api/v1/collection").json()["role"] == "read"
            answer = asked.post("/api/v1/undo", json={})
    assert (answer.status_code, answer.json()["detail"].partition(":")[0]) == (403, "the collection is read-only here")


@pytest.mark.parametrize("folder", ["trained_collection"], indirect=True)
def test_a_catalogue_that_goes_away_is_told_in_a_sentence(
    asked: TestClient, folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = folder / ".wsabie/catalogue.db"
    decisions = {"decisions": [{"item": 40, "label": "red", "state": "accepted"}]}

    def details() -> list[str]:
        answers = [asked.post("/api/v1/decisions", json=decisions) for _ in range(2)]
        answers += [asked.get(f"/api/v1/{path}") for path in ("items", "labels", "items/1/file")]
        assert {one.status_code for one in answers} == {503}, answers
        return [one.json()["detail"] for one in answers]

    assert asked.post("/api/v1/decisions", json=decisions).status_code == 200
    catalogue.rename(folder / "away.db")
    gone, *later = details()
    assert gone == "the catalogue was removed or replaced while it was open; nothing is kept"
    assert set(later) == {"the catalogue does not answer as it should; try again in a moment"}
    catalogue.write_bytes(b"no catalogue" * 1000)
    assert {detail.partition(";")[0] for detail in details()} == {"the catalogue is damaged"}
    assert f"wsabie collection restore {folder}" in caplog.records[-1].getMessage()
    assert asked.get("/api/v1/health").json()["detail"].startswith("the catalogue is damaged")
    catalogue.unlink()
    shutil.copy(folder / "away.db", catalogue)
    assert asked.post("/api/v1/decisions", json=decisions).status_code == 200
    monkeypatch.setattr(problems, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 61))
    assert asked.get("/api/v1/health").json() == {"status": "ok"}  # it is looked through once more
    assert not [record for record in caplog.records if record.exc_info]
