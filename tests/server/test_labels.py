"""Routes of labels over HTTP: one in full, those near to it, edits, merging, proposals; on SQLite and PostgreSQL."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient
from tests.collection.conftest import collection  # noqa: F401 - a fixture
from tests.server.conftest import running

from wsabie.collection.folder.collection import Collection, create_collection
from wsabie.collection.jobs import queue
from wsabie.collection.learning.training import train_model
from wsabie.collection.merge_proposals import proposals
from wsabie.collection.scan.scanner import scan_collection
from wsabie.samples import get_sample_path
from wsabie.server.app import make_app
from wsabie.server.dependencies import ServiceContext
from wsabie.server.model_holder import CollectionModelHolder
from wsabie.server.request_limits import ServiceLimits
from wsabie.server.tokens import Token, compute_digest


def write_emoji(folder: Path, n: int) -> None:
    """Real pictures with their English and German names."""
    columns = ["image", "labels", "languages"]
    rows = pq.read_table(get_sample_path("emoji"), columns=columns).slice(400, n).to_pylist()
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["file_name,labels"]
    for number, row in enumerate(rows):
        (folder / f"{number:03d}.webp").write_bytes(row["image"])
        pairs = zip(row["labels"], row["languages"], strict=True)
        names = [name for name, spoken in pairs if {"en", "de"} & set(spoken) and not set(name) & set(';",')]
        lines.append(f'{number:03d}.webp,"{";".join(names)}"')
    (folder / "metadata.csv").write_text("\n".join(lines), encoding="utf-8")


def serving(at: Collection, tokens: list[Token] | None = None) -> TestClient:
    context = ServiceContext(ServiceLimits(), tokens, CollectionModelHolder(at), at)
    return TestClient(make_app(context), raise_server_exceptions=False, base_url="http://localhost")


@pytest.fixture
def asked(collection: Collection) -> Iterator[TestClient]:  # noqa: F811
    """30 emoji, and labels that are theirs."""
    write_emoji(collection.folder, 30)
    scan_collection(collection, by="eve")
    with serving(collection) as client:
        yield client


def named(asked: TestClient, *names: str) -> list[int]:
    """Numbers of labels, which are made where they are new."""
    decisions = [{"item": 1 + i % 5, "label": name, "state": "accepted"} for i, name in enumerate(names)]
    assert asked.post("/api/v1/decisions", json={"decisions": decisions}).status_code == 200
    return [number_of(asked, name) for name in names]


def number_of(asked: TestClient, name: str) -> int:
    hits = asked.get("/api/v1/labels", params={"prefix": name}).json()["labels"]
    found: int = next(hit["id"] for hit in hits if name in (hit["name"], hit["synonym"]))
    return found


def whole(asked: TestClient, number: int) -> dict[str, Any]:
    found: dict[str, Any] = asked.get(f"/api/v1/labels/{number}").json()
    return found


def edited(asked: TestClient, number: int, **changes: object) -> dict[str, Any]:
    answer = asked.patch(f"/api/v1/labels/{number}", json=changes)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def journal_of(asked: TestClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = asked.get("/api/v1/journal").json()["entries"]
    return found


def test_one_label_in_full(asked: TestClient) -> None:
    gull, bird, animal, tern = named(asked, "gull", "bird", "animal", "tern")
    edited(asked, gull, language="en", wordnet="n02041246", parent="bird", add=[{"name": "Möwe", "language": "de"}])
    edited(asked, bird, parent="animal")
    edited(asked, tern, parent="bird")
    asked.post("/api/v1/labels/merge-exclusions", json={"labels": [gull, tern]})
    asked.post("/api/v1/decisions", json={"decisions": [{"item": 9, "label": "gull", "state": "rejected"}]})
    found = whole(asked, gull)
    assert (found["name"], found["language"], found["wordnet"], found["parent"]) == ("gull", "en", "n02041246", "bird")
    assert found["names"] == [{"name": "Möwe", "language": "de"}]
    assert [one["name"] for one in found["ancestors"]] == ["bird", "animal"]
    assert [one["name"] for one in found["merge_exclusions"]] == ["tern"]
    assert (found["items"], found["rejected"], found["open_suggestions"], found["evaluation"]) == (1, 1, 0, None)
    assert [one["name"] for one in whole(asked, bird)["child_labels"]] == ["gull", "tern"]
    assert whole(asked, animal)["n_children"] == 1
    assert asked.get(f"/api/v1/labels/{gull}/neighbours").json() == {"neighbours": []}
    by_other_name = asked.get("/api/v1/labels?prefix=MÖW").json()["labels"]
    assert by_other_name == [{"id": gull, "name": "gull", "synonym": "Möwe", "language": "de", "items": 1}]
    tops = asked.get("/api/v1/vocabulary?parent=0").json()["labels"]
    assert [(one["name"], one["n_children"]) for one in tops] == [("animal", 1)]
    assert [one["name"] for one in asked.get(f"/api/v1/vocabulary?parent={bird}").json()["labels"]] == ["gull", "tern"]
    assert [one["name"] for one in asked.get("/api/v1/vocabulary?contains=möw").json()["labels"]] == ["gull"]


def test_other_names_have_a_place_beside_many_names(asked: TestClient) -> None:
    lake, tree, *_ = named(asked, "lake", "tree", *(f"sea {n:02d}" for n in range(25)))
    edited(asked, lake, add=[{"name": "See", "language": "de"}, {"name": "Seelein", "language": "de"}])
    edited(asked, tree, add=[{"name": "Seb", "language": "sl"}])

    def completed(start: str, k: int) -> list[tuple[str, str | None]]:
        found = asked.get("/api/v1/labels", params={"prefix": start, "k": k}).json()["labels"]
        return [(one["name"], one["synonym"]) for one in found]

    seas: list[tuple[str, str | None]] = [(f"sea {n:02d}", None) for n in range(25)]
    assert completed("se", 20) == [*seas[:18], ("tree", "Seb"), ("lake", "See")]
    assert completed("se", 4) == [*seas[:3], ("tree", "Seb")]
    assert completed("se", 1) == seas[:1]
    assert completed("se", 50) == [*seas, ("tree", "Seb"), ("lake", "See")]
    assert completed("sea 0", 20) == seas[:10]


def test_a_form_is_one_entry_that_can_be_undone(asked: TestClient) -> None:
    [gul, bird] = named(asked, "gul", "bird")
    before = whole(asked, gul)
    done = edited(asked, gul, name="gull", language="en", parent="bird", add=[{"name": "mew"}], remove=["gul"])
    after = whole(asked, gul)
    assert (after["name"], after["synonyms"], after["parent"]) == ("gull", ["mew"], "bird")
    entry = journal_of(asked)[0]
    assert (entry["id"], entry["by"], entry["action"]) == (done["entry"], "local", "label")
    assert "called 'gull'" in entry["summary"]
    assert edited(asked, gul, name="gull", language="en") == {"entry": None}
    assert edited(asked, gul) == {"entry": None}
    asked.post("/api/v1/undo", json={"entry": done["entry"]})
    assert whole(asked, gul) == before
    edited(asked, gul, parent="bird")
    edited(asked, gul, parent="")
    assert whole(asked, bird)["child_labels"] == []


@pytest.mark.parametrize(
    ("changes", "status", "told"),
    [
        ({"name": "bird"}, 422, "another label is called 'bird' already"),
        ({"name": "Vogel"}, 422, "another label is called 'Vogel' already"),
        ({"add": [{"name": "bird"}]}, 422, "merge it into 'gull'"),
        ({"name": "x" * 501}, 422, "500"),
        ({"name": " \u200b "}, 422, "cannot be a label"),
        ({"name": "a\0b"}, 422, "cannot be a label"),
        ({"name": ""}, 422, "at least 1"),
        ({"language": "not a language"}, 422, "is no language"),
        ({"language": "deutsch"}, 422, "two or three letters, as BCP 47 has it: de, zh-Hant"),
        ({"add": [{"name": "Meer", "language": "d"}]}, 422, "'d' is no language"),
        ({"language": "e" * 36}, 422, "35"),
        ({"wordnet": "n02 041"}, 422, "is no id of a meaning"),
        ({"parent": "gull"}, 422, "would be above itself"),
        ({"parent": "chick"}, 422, "would be above itself"),
        ({"parent": "nobody"}, 404, "there is no label 'nobody'"),
        ({"remove": ["nobody"]}, 422, "is no other name of 'gull'"),
        ({"colour": "red"}, 422, "colour"),
        ({"add": [{"name": f"n{i}"} for i in range(101)]}, 422, "100"),
    ],
)
def test_edits_that_cannot_be_made_change_nothing(
    asked: TestClient, changes: dict[str, object], status: int, told: str
) -> None:
    gull, bird, chick, _ = named(asked, "gull", "bird", "chick", "x")
    edited(asked, bird, add=[{"name": "Vogel", "language": "de"}])
    edited(asked, chick, parent="gull")
    before = journal_of(asked), whole(asked, gull)
    refused = asked.patch(f"/api/v1/labels/{gull}", json={"wordnet": "n1"} | changes)
    assert (refused.status_code, told in refused.json()["detail"]) == (status, True), refused.text
    assert (journal_of(asked), whole(asked, gull)) == before


@pytest.mark.parametrize(
    "name", ["'; DROP TABLE labels; --", "%", "<img src=x onerror=alert(1)>", "../../etc", "😀", "a/b?c#d"]
)
def test_hostile_names_are_names(asked: TestClient, name: str) -> None:
    [number, other] = named(asked, name, "sea")
    edited(asked, number, add=[{"name": name + "2"}], parent="sea")
    assert whole(asked, number)["name"] == name
    assert asked.get("/api/v1/vocabulary", params={"contains": name + "2"}).json()["total"] == 1
    asked.post("/api/v1/labels/merge", json={"labels": [number], "target": other})
    assert {name, name + "2"} <= set(whole(asked, other)["synonyms"])


def test_merging_and_taking_it_back(asked: TestClient) -> None:
    [gul, gull, tern] = named(asked, "gul", "gull", "tern")
    asked.post("/api/v1/decisions", json={"decisions": [{"item": 2, "label": "gul", "state": "accepted"}]})
    done = asked.post("/api/v1/labels/merge", json={"labels": [gul, gul], "target": gull}).json()
    assert (done["moved_tags"], done["duplicates"]) == (1, 1)
    assert (whole(asked, gull)["items"], whole(asked, gull)["synonyms"]) == (2, ["gul"])
    assert asked.get(f"/api/v1/labels/{gul}").status_code == 404
    for labels, into, status in (([gul], gull, 404), ([gull], gull, 422), ([10**6], gull, 404), ([], gull, 422)):
        refused = asked.post("/api/v1/labels/merge", json={"labels": labels, "target": into})
        assert refused.status_code == status, refused.text
    assert asked.post("/api/v1/labels/merge-exclusions", json={"labels": [tern, tern]}).status_code == 422
    asked.post("/api/v1/undo", json={"entry": done["entry"]})
    assert (whole(asked, gull)["items"], whole(asked, gul)["items"]) == (1, 2)


def test_deleting_and_taking_it_back(asked: TestClient) -> None:
    gull, _, chick = named(asked, "gull", "bird", "chick")
    for below, above in ((gull, "bird"), (chick, "gull")):
        edited(asked, below, parent=above)
    before = whole(asked, gull)
    refused = asked.delete(f"/api/v1/labels/{gull}")
    assert refused.status_code == 422
    assert "accepted or rejected 1 times; delete these tags too (`with_tags`)" in refused.json()["detail"]
    done = asked.delete(f"/api/v1/labels/{gull}", params={"with_tags": True}).json()
    assert (done["tags"], done["children"]) == (1, 1)
    assert asked.get(f"/api/v1/labels/{gull}").status_code == 404
    assert asked.delete(f"/api/v1/labels/{gull}").status_code == 404
    assert whole(asked, chick)["parent"] == "bird"
    assert asked.post("/api/v1/undo", json={"entry": done["entry"]}).status_code == 200
    assert whole(asked, gull) == before


def test_proposals_are_gone_through(asked: TestClient, collection: Collection) -> None:  # noqa: F811
    named(asked, "tuktuk", "tuk-tuk", "Tuktuk", "caffè", "caffe")
    assert asked.get("/api/v1/labels/proposals").json()["created"] is None
    job = asked.post("/api/v1/jobs", json={"kind": "tidy"}).json()
    queue.run_next_job(collection.folder)
    done = asked.get(f"/api/v1/jobs/{job['id']}").json()
    assert done["state"] == "done", done["error"]
    found = asked.get("/api/v1/labels/proposals?k=100&pictures=2").json()
    assert done["result"]["proposals"] == found["total"] == len(found["proposals"])
    assert set(found["unused_sources"]) == {"model", "knowledge"}
    by_name = {one["target"]["name"]: one for one in found["proposals"]}
    tuk = next(one for name, one in by_name.items() if name.casefold().startswith("tuk"))
    assert len(tuk["labels"]) == 2
    assert tuk["reasons"][0]["evidence"][0]["message"].startswith("differ only in")
    assert all(1 <= len(label["pictures"]) <= 2 for label in (tuk["target"], *tuk["labels"]))
    caf = next(one for name, one in by_name.items() if name.startswith("caff"))
    merged = asked.post(
        "/api/v1/labels/merge", json={"labels": [label["id"] for label in tuk["labels"]], "target": tuk["target"]["id"]}
    ).json()
    asked.post("/api/v1/labels/merge-exclusions", json={"labels": [caf["target"]["id"], caf["labels"][0]["id"]]})
    left = asked.get("/api/v1/labels/proposals?k=100").json()
    assert (left["total"], left["changes"]) == (found["total"] - 2, 2)
    asked.post("/api/v1/undo", json={"entry": merged["entry"]})
    again = asked.get("/api/v1/labels/proposals?k=100&pictures=0").json()
    assert again["total"] == found["total"] - 1
    assert again["proposals"][0]["target"]["pictures"] == []
    pages = [asked.get(f"/api/v1/labels/proposals?k=1&offset={i}").json()["proposals"] for i in range(again["total"])]
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
def test_what_cannot_be_asked(asked: TestClient, address: str, status: int) -> None:
    assert asked.get(f"/api/v1/{address}").status_code == status


def test_who_may_only_read_changes_nothing(collection: Collection) -> None:  # noqa: F811
    write_emoji(collection.folder, 5)
    scan_collection(collection, by="eve")
    proposals.refresh_proposals(collection)
    with serving(collection, [Token("eve", "read", None, compute_digest("r"))]) as asked:
        read = {"authorization": "Bearer r"}
        assert asked.get("/api/v1/labels/1", headers=read).status_code == 200
        assert asked.get("/api/v1/labels/proposals", headers=read).status_code == 200
        assert asked.get("/api/v1/labels/proposals").status_code == 401
        assert asked.patch("/api/v1/labels/1", json={"name": "x"}, headers=read).status_code == 403
        assert asked.delete("/api/v1/labels/1?with_tags=true", headers=read).status_code == 403
        for what, sent in (("merge", {"labels": [1], "target": 2}), ("merge-exclusions", {"labels": [1, 2]})):
            assert asked.post(f"/api/v1/labels/{what}", json=sent, headers=read).status_code == 403


def test_a_model_knows_labels(tmp_path: Path, database: str | None) -> None:
    """Real pictures, a real model: what is near, how often it was right, also after labels were merged."""
    write_emoji(tmp_path / "photos", 120)
    with create_collection(tmp_path / "photos", database) as at, serving(at) as asked:
        scan_collection(at, by="eve")
        train_model(at, by="eve", features="colour", dim=8, epochs=10, threads=1)
        most = asked.get("/api/v1/vocabulary?k=2").json()["labels"]
        number, name = most[0]["id"], most[0]["name"]
        near = asked.get(f"/api/v1/labels/{number}/neighbours?k=5").json()["neighbours"]
        cosines = [one["cosine"] for one in near]
        assert len(near) == 5
        assert cosines == sorted(cosines, reverse=True)
        assert number not in [one["id"] for one in near]
        assert all(one["pictures"] for one in near)
        evaluation = whole(asked, number)["evaluation"]
        assert evaluation["is_trained"]
        assert 0 <= evaluation["correct"] <= evaluation["suggestions"]
        assert [limit["precision"] for limit in evaluation["thresholds"]] == [0.8, 0.9, 0.95]
        query = {"label": name, "label_state": "suggested", "k": 4}
        open_ones = asked.get("/api/v1/items", params=query).json()["items"]
        waiting = whole(asked, number)["open_suggestions"]
        states = ("accepted", "accepted", "rejected", "accepted")[: len(open_ones)]
        decisions = [{"item": i["id"], "label": name, "state": s} for i, s in zip(open_ones, states, strict=True)]
        asked.post("/api/v1/decisions", json={"decisions": decisions})
        after = whole(asked, number)
        assert (after["reviewed_suggestions"], after["accepted_suggestions"]) == (len(states), states.count("accepted"))
        assert after["open_suggestions"] == waiting - len(states)
        new = named(asked, "not learnt yet")[0]
        assert not whole(asked, new)["evaluation"]["is_trained"]
        asked.post("/api/v1/labels/merge", json={"labels": [number], "target": new})
        merged = whole(asked, new)["evaluation"]
        assert (merged["is_trained"], merged["suggestions"]) == (True, evaluation["suggestions"])
        proposals.refresh_proposals(at)
        assert "model" not in asked.get("/api/v1/labels/proposals").json()["unused_sources"]


def test_a_job_compares_labels_beside_the_service(tmp_path: Path, database: str | None) -> None:
    folder = tmp_path / "photos"
    write_emoji(folder, 20)
    with create_collection(folder, database) as at:
        scan_collection(at, by="eve")
    with running(folder) as asked:
        job = asked.post("/api/v1/jobs", json={"kind": "tidy", "options": {"min_score": 0.5}}).json()
        until = time.monotonic() + 100
        while (now := asked.get(f"/api/v1/jobs/{job['id']}").json())["state"] in ("waiting", "running"):
            assert time.monotonic() < until
            time.sleep(0.3)
        assert now["state"] == "done", now["error"]
        assert asked.get("/api/v1/labels/proposals").json()["total"] == now["result"]["proposals"]
        assert asked.post("/api/v1/jobs", json={"kind": "tidy", "options": {"knowledge": 1}}).status_code == 422
