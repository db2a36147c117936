"""Routes of labels over HTTP: one in full, those near to it, edits, merging, proposals; on SQLite and PostgreSQL."""

import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient
from tests.collection.conftest import collection  # noqa: F401 - a fixture
from tests.server.conftest import run_service

from wsabie.collection.folder.collection import Collection, create_collection
from wsabie.collection.jobs import queue
from wsabie.collection.learning.training import train_collection_model
from wsabie.collection.merge_proposals import proposals
from wsabie.collection.scan.scanner import scan_collection
from wsabie.samples import get_sample_path
from wsabie.server.app import make_app
from wsabie.server.limits.request_limits import ServiceLimits
from wsabie.server.model_holder import CollectionModelHolder
from wsabie.server.service_context import ServiceContext
from wsabie.server.tokens import Token, hash_token


@cache
def read_rows(n: int) -> list[dict[str, Any]]:
    """Rows of the sample: image, labels, languages."""
    table = pq.read_table(get_sample_path("emoji"), columns=["image", "labels", "languages"])
    rows: list[dict[str, Any]] = table.slice(400, n).to_pylist()
    return rows


def write_emoji(folder: Path, n: int) -> None:
    """Real pictures with their English and German names."""
    rows = read_rows(n)
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["file_name,labels"]
    for position, row in enumerate(rows):
        (folder / f"{position:03d}.webp").write_bytes(row["image"])
        pairs = zip(row["labels"], row["languages"], strict=True)
        names = [name for name, spoken in pairs if {"en", "de"} & set(spoken) and not set(name) & set(';",')]
        lines.append(f'{position:03d}.webp,"{";".join(names)}"')
    (folder / "metadata.csv").write_text("\n".join(lines), encoding="utf-8")


def serve_collection(at: Collection, tokens: list[Token] | None = None) -> TestClient:
    context = ServiceContext(ServiceLimits(), tokens, CollectionModelHolder(at), at)
    return TestClient(make_app(context), raise_server_exceptions=False, base_url="http://localhost")


@pytest.fixture
def api(collection: Collection) -> Iterator[TestClient]:  # noqa: F811
    """30 emoji, and labels that are theirs."""
    write_emoji(collection.folder, 30)
    scan_collection(collection, by="eve")
    with serve_collection(collection) as client:
        yield client


def create_labels(api: TestClient, *names: str) -> list[int]:
    """Numbers of labels, which are made where they are new."""
    decisions = [{"item": 1 + i % 5, "label": name, "state": "accepted"} for i, name in enumerate(names)]
    assert api.post("/api/v1/decisions", json={"decisions": decisions}).status_code == 200
    return [read_label_id(api, name) for name in names]


def read_label_id(api: TestClient, name: str) -> int:
    hits = api.get("/api/v1/labels", params={"prefix": name}).json()["labels"]
    label_id: int = next(hit["id"] for hit in hits if name in (hit["name"], hit["synonym"]))
    return label_id


def read_label(api: TestClient, label_id: int) -> dict[str, Any]:
    details: dict[str, Any] = api.get(f"/api/v1/labels/{label_id}").json()
    return details


def edit_label(api: TestClient, label_id: int, **changes: object) -> dict[str, Any]:
    answer = api.patch(f"/api/v1/labels/{label_id}", json=changes)
    assert answer.status_code == 200, answer.text
    reply: dict[str, Any] = answer.json()
    return reply


def read_journal(api: TestClient) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = api.get("/api/v1/journal").json()["entries"]
    return entries


def test_label_details_are_complete(api: TestClient) -> None:
    gull, bird, animal, tern = create_labels(api, "gull", "bird", "animal", "tern")
    edit_label(api, gull, language="en", wordnet="n02041246", parent="bird", add=[{"name": "Möwe", "language": "de"}])
    edit_label(api, bird, parent="animal")
    edit_label(api, tern, parent="bird")
    api.post("/api/v1/labels/merge-exclusions", json={"labels": [gull, tern]})
    api.post("/api/v1/decisions", json={"decisions": [{"item": 9, "label": "gull", "state": "rejected"}]})
    details = read_label(api, gull)
    assert (details["name"], details["language"], details["wordnet"], details["parent"]) == (
        "gull",
        "en",
        "n02041246",
        "bird",
    )
    assert details["names"] == [{"name": "Möwe", "language": "de"}]
    assert [label["name"] for label in details["ancestors"]] == ["bird", "animal"]
    assert [label["name"] for label in details["merge_exclusions"]] == ["tern"]
    assert (details["items"], details["rejected"], details["open_suggestions"], details["evaluation"]) == (
        1,
        1,
        0,
        None,
    )
    assert [label["name"] for label in read_label(api, bird)["child_labels"]] == ["gull", "tern"]
    assert read_label(api, animal)["n_children"] == 1
    assert api.get(f"/api/v1/labels/{gull}/neighbours").json() == {"neighbours": []}
    by_other_name = api.get("/api/v1/labels?prefix=MÖW").json()["labels"]
    assert by_other_name == [{"id": gull, "name": "gull", "synonym": "Möwe", "language": "de", "items": 1}]
    tops = api.get("/api/v1/vocabulary?parent=0").json()["labels"]
    assert [(label["name"], label["n_children"]) for label in tops] == [("animal", 1)]
    assert [label["name"] for label in api.get(f"/api/v1/vocabulary?parent={bird}").json()["labels"]] == [
        "gull",
        "tern",
    ]
    assert [label["name"] for label in api.get("/api/v1/vocabulary?contains=möw").json()["labels"]] == ["gull"]


def test_completion_mixes_names_and_synonyms(api: TestClient) -> None:
    lake, tree, *_ = create_labels(api, "lake", "tree", *(f"sea {n:02d}" for n in range(25)))
    edit_label(api, lake, add=[{"name": "See", "language": "de"}, {"name": "Seelein", "language": "de"}])
    edit_label(api, tree, add=[{"name": "Seb", "language": "sl"}])

    def completed(start: str, k: int) -> list[tuple[str, str | None]]:
        labels = api.get("/api/v1/labels", params={"prefix": start, "k": k}).json()["labels"]
        return [(label["name"], label["synonym"]) for label in labels]

    seas: list[tuple[str, str | None]] = [(f"sea {n:02d}", None) for n in range(25)]
    assert completed("se", 20) == [*seas[:18], ("tree", "Seb"), ("lake", "See")]
    assert completed("se", 4) == [*seas[:3], ("tree", "Seb")]
    assert completed("se", 1) == seas[:1]
    assert completed("se", 50) == [*seas, ("tree", "Seb"), ("lake", "See")]
    assert completed("sea 0", 20) == seas[:10]


def test_label_edit_is_one_entry_and_is_undone(api: TestClient) -> None:
    [gul, bird] = create_labels(api, "gul", "bird")
    details_before = read_label(api, gul)
    reply = edit_label(api, gul, name="gull", language="en", parent="bird", add=[{"name": "mew"}], remove=["gul"])
    details_after = read_label(api, gul)
    assert (details_after["name"], details_after["synonyms"], details_after["parent"]) == ("gull", ["mew"], "bird")
    entry = read_journal(api)[0]
    assert (entry["id"], entry["by"], entry["action"]) == (reply["entry"], "local", "label")
    assert "called 'gull'" in entry["summary"]
    assert edit_label(api, gul, name="gull", language="en") == {"entry": None}
    assert edit_label(api, gul) == {"entry": None}
    api.post("/api/v1/undo", json={"entry": reply["entry"]})
    assert read_label(api, gul) == details_before
    edit_label(api, gul, parent="bird")
    edit_label(api, gul, parent="")
    assert read_label(api, bird)["child_labels"] == []


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"name": "bird"}, 422, "another label is called 'bird' already"),
        ({"name": "Vogel"}, 422, "another label is called 'Vogel' already"),
        ({"add": [{"name": "bird"}]}, 422, "merge it into 'gull'"),
        ({"name": "x" * 501}, 422, "500"),
        ({"name": " \u200b "}, 422, "cannot be a label"),
        ({"name": "a\0b"}, 422, "cannot be a label"),
        ({"name": ""}, 422, "at least 1"),
        ({"language": "not a language"}, 422, "is not a language code"),
        ({"language": "deutsch"}, 422, "two or three letters, as BCP 47 has it: de, zh-Hant"),
        ({"add": [{"name": "Meer", "language": "d"}]}, 422, "'d' is not a language code"),
        ({"language": "e" * 36}, 422, "35"),
        ({"wordnet": "n02 041"}, 422, "is not the id of a meaning"),
        ({"parent": "gull"}, 422, "would be above itself"),
        ({"parent": "chick"}, 422, "would be above itself"),
        ({"parent": "nobody"}, 404, "there is no label 'nobody'"),
        ({"remove": ["nobody"]}, 422, "is not another name of 'gull'"),
        ({"colour": "red"}, 422, "colour"),
        ({"add": [{"name": f"n{i}"} for i in range(101)]}, 422, "100"),
    ],
)
def test_invalid_edits_change_nothing(api: TestClient, changes: dict[str, object], status: int, message: str) -> None:
    gull, bird, chick, _ = create_labels(api, "gull", "bird", "chick", "x")
    edit_label(api, bird, add=[{"name": "Vogel", "language": "de"}])
    edit_label(api, chick, parent="gull")
    state_before = read_journal(api), read_label(api, gull)
    refused = api.patch(f"/api/v1/labels/{gull}", json={"wordnet": "n1"} | changes)
    assert (refused.status_code, message in refused.json()["detail"]) == (status, True), refused.text
    assert (read_journal(api), read_label(api, gull)) == state_before


@pytest.mark.parametrize(
    "name", ["'; DROP TABLE labels; --", "%", "<img src=x onerror=alert(1)>", "../../etc", "😀", "a/b?c#d"]
)
def test_hostile_label_names_are_stored(api: TestClient, name: str) -> None:
    [label_id, sea] = create_labels(api, name, "sea")
    edit_label(api, label_id, add=[{"name": name + "2"}], parent="sea")
    assert read_label(api, label_id)["name"] == name
    assert api.get("/api/v1/vocabulary", params={"contains": name + "2"}).json()["total"] == 1
    api.post("/api/v1/labels/merge", json={"labels": [label_id], "target": sea})
    assert {name, name + "2"} <= set(read_label(api, sea)["synonyms"])


def test_labels_are_merged_and_restored(api: TestClient) -> None:
    [gul, gull, tern] = create_labels(api, "gul", "gull", "tern")
    api.post("/api/v1/decisions", json={"decisions": [{"item": 2, "label": "gul", "state": "accepted"}]})
    reply = api.post("/api/v1/labels/merge", json={"labels": [gul, gul], "target": gull}).json()
    assert (reply["moved_tags"], reply["duplicates"]) == (1, 1)
    assert (read_label(api, gull)["items"], read_label(api, gull)["synonyms"]) == (2, ["gul"])
    assert api.get(f"/api/v1/labels/{gul}").status_code == 404
    for labels, into, status in (([gul], gull, 404), ([gull], gull, 422), ([10**6], gull, 404), ([], gull, 422)):
        refused = api.post("/api/v1/labels/merge", json={"labels": labels, "target": into})
        assert refused.status_code == status, refused.text
    assert api.post("/api/v1/labels/merge-exclusions", json={"labels": [tern, tern]}).status_code == 422
    api.post("/api/v1/undo", json={"entry": reply["entry"]})
    assert (read_label(api, gull)["items"], read_label(api, gul)["items"]) == (1, 2)


def test_label_is_deleted_and_restored(api: TestClient) -> None:
    gull, _, chick = create_labels(api, "gull", "bird", "chick")
    for child, parent_name in ((gull, "bird"), (chick, "gull")):
        edit_label(api, child, parent=parent_name)
    details_before = read_label(api, gull)
    refused = api.delete(f"/api/v1/labels/{gull}")
    assert refused.status_code == 422
    assert "accepted or rejected 1 times; delete these tags too (`with_tags`)" in refused.json()["detail"]
    reply = api.delete(f"/api/v1/labels/{gull}", params={"with_tags": True}).json()
    assert (reply["tags"], reply["children"]) == (1, 1)
    assert api.get(f"/api/v1/labels/{gull}").status_code == 404
    assert api.delete(f"/api/v1/labels/{gull}").status_code == 404
    assert read_label(api, chick)["parent"] == "bird"
    assert api.post("/api/v1/undo", json={"entry": reply["entry"]}).status_code == 200
    assert read_label(api, gull) == details_before


def test_proposals_are_paged_merged_and_excluded(api: TestClient, collection: Collection) -> None:  # noqa: F811
    create_labels(api, "tuktuk", "tuk-tuk", "Tuktuk", "caffè", "caffe")
    assert api.get("/api/v1/labels/proposals").json()["created"] is None
    job = api.post("/api/v1/jobs", json={"kind": "tidy"}).json()
    queue.run_next_job(collection.folder)
    finished_job = api.get(f"/api/v1/jobs/{job['id']}").json()
    assert finished_job["state"] == "done", finished_job["error"]
    first_page = api.get("/api/v1/labels/proposals?k=100&pictures=2").json()
    assert finished_job["result"]["proposals"] == first_page["total"] == len(first_page["proposals"])
    assert set(first_page["unused_sources"]) == {"model", "knowledge"}
    by_name = {proposal["target"]["name"]: proposal for proposal in first_page["proposals"]}
    tuk = next(proposal for name, proposal in by_name.items() if name.casefold().startswith("tuk"))
    assert len(tuk["labels"]) == 2
    assert tuk["reasons"][0]["evidence"][0]["message"].startswith("differ only in")
    assert all(1 <= len(label["pictures"]) <= 2 for label in (tuk["target"], *tuk["labels"]))
    caf = next(proposal for name, proposal in by_name.items() if name.startswith("caff"))
    merged = api.post(
        "/api/v1/labels/merge", json={"labels": [label["id"] for label in tuk["labels"]], "target": tuk["target"]["id"]}
    ).json()
    api.post("/api/v1/labels/merge-exclusions", json={"labels": [caf["target"]["id"], caf["labels"][0]["id"]]})
    next_page = api.get("/api/v1/labels/proposals?k=100").json()
    assert (next_page["total"], next_page["changes"]) == (first_page["total"] - 2, 2)
    api.post("/api/v1/undo", json={"entry": merged["entry"]})
    again = api.get("/api/v1/labels/proposals?k=100&pictures=0").json()
    assert again["total"] == first_page["total"] - 1
    assert again["proposals"][0]["target"]["pictures"] == []
    pages = [api.get(f"/api/v1/labels/proposals?k=1&offset={i}").json()["proposals"] for i in range(again["total"])]
    assert [page[0]["score"] for page in pages] == sorted((page[0]["score"] for page in pages), reverse=True)


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("labels/999999", 404),
        ("labels/999999/neighbours", 404),
        ("labels/0", 422),
        ("labels/99999999999999999999", 422),
        ("labels/gull", 422),
        ("labels/proposals?k=101", 422),
        ("labels/proposals?pictures=13", 422),
        ("labels/proposals?offset=-1", 422),
        ("vocabulary?parent=-1", 422),
    ],
)
def test_unknown_addresses_and_bad_parameters_are_refused(api: TestClient, address: str, status: int) -> None:
    assert api.get(f"/api/v1/{address}").status_code == status


def test_read_token_changes_no_label(collection: Collection) -> None:  # noqa: F811
    write_emoji(collection.folder, 5)
    scan_collection(collection, by="eve")
    proposals.refresh_proposals(collection)
    with serve_collection(collection, [Token("eve", "read", None, hash_token("r"))]) as api:
        read_headers = {"authorization": "Bearer r"}
        assert api.get("/api/v1/labels/1", headers=read_headers).status_code == 200
        assert api.get("/api/v1/labels/proposals", headers=read_headers).status_code == 200
        assert api.get("/api/v1/labels/proposals").status_code == 401
        assert api.patch("/api/v1/labels/1", json={"name": "x"}, headers=read_headers).status_code == 403
        assert api.delete("/api/v1/labels/1?with_tags=true", headers=read_headers).status_code == 403
        for action, sent in (("merge", {"labels": [1], "target": 2}), ("merge-exclusions", {"labels": [1, 2]})):
            assert api.post(f"/api/v1/labels/{action}", json=sent, headers=read_headers).status_code == 403


def test_label_details_use_the_model(tmp_path: Path, database: str | None) -> None:
    """Real pictures, a real model: what is near, how often it was right, also after labels were merged."""
    write_emoji(tmp_path / "photos", 120)
    with create_collection(tmp_path / "photos", database) as at, serve_collection(at) as api:
        scan_collection(at, by="eve")
        train_collection_model(at, by="eve", features="colour", dim=8, epochs=10, threads=1)
        most = api.get("/api/v1/vocabulary?k=2").json()["labels"]
        label_id, name = most[0]["id"], most[0]["name"]
        near = api.get(f"/api/v1/labels/{label_id}/neighbours?k=5").json()["neighbours"]
        cosines = [neighbour["cosine"] for neighbour in near]
        assert len(near) == 5
        assert cosines == sorted(cosines, reverse=True)
        assert label_id not in [neighbour["id"] for neighbour in near]
        assert all(neighbour["pictures"] for neighbour in near)
        evaluation = read_label(api, label_id)["evaluation"]
        assert evaluation["is_trained"]
        assert 0 <= evaluation["correct"] <= evaluation["suggestions"]
        assert [limit["precision"] for limit in evaluation["thresholds"]] == [0.8, 0.9, 0.95]
        query = {"label": name, "label_state": "suggested", "k": 4}
        open_ones = api.get("/api/v1/items", params=query).json()["items"]
        waiting = read_label(api, label_id)["open_suggestions"]
        states = ("accepted", "accepted", "rejected", "accepted")[: len(open_ones)]
        decisions = [{"item": i["id"], "label": name, "state": s} for i, s in zip(open_ones, states, strict=True)]
        api.post("/api/v1/decisions", json={"decisions": decisions})
        details = read_label(api, label_id)
        assert (details["reviewed_suggestions"], details["accepted_suggestions"]) == (
            len(states),
            states.count("accepted"),
        )
        assert details["open_suggestions"] == waiting - len(states)
        new = create_labels(api, "not learned yet")[0]
        assert not read_label(api, new)["evaluation"]["is_trained"]
        api.post("/api/v1/labels/merge", json={"labels": [label_id], "target": new})
        merged = read_label(api, new)["evaluation"]
        assert (merged["is_trained"], merged["suggestions"]) == (True, evaluation["suggestions"])
        proposals.refresh_proposals(at)
        assert "model" not in api.get("/api/v1/labels/proposals").json()["unused_sources"]


def test_tidy_job_runs_beside_the_service(tmp_path: Path, database: str | None) -> None:
    folder = tmp_path / "photos"
    write_emoji(folder, 20)
    with create_collection(folder, database) as at:
        scan_collection(at, by="eve")
    with run_service(folder) as api:
        job = api.post("/api/v1/jobs", json={"kind": "tidy", "options": {"min_score": 0.5}}).json()
        until = time.monotonic() + 100
        while (now := api.get(f"/api/v1/jobs/{job['id']}").json())["state"] in ("waiting", "running"):
            assert time.monotonic() < until
            time.sleep(0.3)
        assert now["state"] == "done", now["error"]
        assert api.get("/api/v1/labels/proposals").json()["total"] == now["result"]["proposals"]
        assert api.post("/api/v1/jobs", json={"kind": "tidy", "options": {"knowledge": 1}}).status_code == 422
