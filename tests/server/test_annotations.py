"""Annotations over HTTP: every filter against what Python makes of all of them, pages, and what cannot be asked."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import Client

from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_write
from wsabie.collection.db.journal import begin_entry
from wsabie.collection.folder.collection import create_collection
from wsabie.collection.labels import label_store
from wsabie.server.app import make_app
from wsabie.server.limits.request_limits import ServiceLimits
from wsabie.server.model_holder import CollectionModelHolder
from wsabie.server.service_context import ServiceContext

N = 60
Row = dict[str, Any]


def make_rows(labels: dict[str, int]) -> list[Row]:
    """Annotations of every kind, over some days."""
    return [
        {
            "id": n, "item_id": 1 + n % 20, "label_id": labels[("sea", "sky")[n % 3 == 0]], "region": f"box=1,1,{n},9",
            "state": ("accepted", "rejected")[n % 4 == 0], "origin": ("person", "import", "model")[n % 3],
            "by": ("eve", "Möwe % '", "tags.csv")[n % 5 % 3], "model_id": (None, 1)[n % 2], "score": None,
            "probability": None, "at": f"2026-0{1 + n % 3}-05T10:00:{n % 60:02d}.500000Z",
        }
        for n in range(1, N + 1)
    ]  # fmt: skip


@pytest.fixture
def api(tmp_path: Path, database: str | None) -> Iterator[TestClient]:
    with create_collection(tmp_path / "photos", database) as at:
        with begin_entry(at.engine, "eve", "labels") as change:
            labels = label_store.ensure_labels(change, ["sea", "sky"])
            label_store.add_synonyms(change, labels["sea"], {"Meer": "de"})
        model = {"id": 1, "folder": "m", "created_at": "x", "method": "full", "last_entry_id": 0, "in_use": True}
        rows = [
            {"id": n, "root_id": 1, "path": f"a/{n}.jpg", "folder": "a", "state": "present", "added_at": "x"}
            for n in range(1, 21)
        ]
        with begin_write(at.engine) as connection:
            connection.execute(tables.items.insert(), rows)
            connection.execute(tables.models.insert(), [model | {"facts": {}, "figures": {}}])
            connection.execute(tables.annotations.insert(), make_rows(labels))
        context = ServiceContext(ServiceLimits(), None, CollectionModelHolder(at), at)
        with TestClient(make_app(context), raise_server_exceptions=False, base_url="http://localhost") as client:
            yield client


def list_all_annotations(api: TestClient, **filters: Any) -> list[Row]:
    """All pages of seven."""
    annotations: list[Row] = []
    cursor: dict[str, str] = {}
    while True:
        answer = api.get("/api/v1/annotations", params=filters | cursor | {"k": 7})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert len(page["annotations"]) == 7 or page["next_cursor"] is None
        annotations += page["annotations"]
        if page["next_cursor"] is None:
            return annotations
        cursor = {"cursor": page["next_cursor"]}


@pytest.mark.parametrize("few", [0, 20_000])
def test_pages_hold_matching_annotations(api: TestClient, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of reading a page: sorted annotations of a label, and a walk through all of them."""
    monkeypatch.setattr("wsabie.collection.annotations.annotation_pages.SORTED", few)
    rows = [row | {"label": ("sea", "sky")[row["id"] % 3 == 0]} for row in reversed(make_rows({"sea": 1, "sky": 2}))]
    cases: list[tuple[Row, Any]] = [
        ({}, lambda row: True),
        ({"item": 7}, lambda row: row["item_id"] == 7),
        ({"item": 7, "label": "sky"}, lambda row: row["item_id"] == 7 and row["label"] == "sky"),
        ({"label": "Meer"}, lambda row: row["label"] == "sea"),
        ({"label": "sky", "state": "rejected"}, lambda row: row["label"] == "sky" and row["state"] == "rejected"),
        ({"state": "accepted"}, lambda row: row["state"] == "accepted"),
        ({"origin": "import"}, lambda row: row["origin"] == "import"),
        ({"by": "Möwe % '"}, lambda row: row["by"] == "Möwe % '"),
        ({"by": "%"}, lambda row: False),
        ({"model": 1, "by": "eve"}, lambda row: row["model_id"] == 1 and row["by"] == "eve"),
        ({"item": 999}, lambda row: False),
        ({"since": "2026-02"}, lambda row: row["at"] >= "2026-02"),
        ({"since": "2026-02-05", "until": "2026-02-05T10:00:30"},
         lambda row: "2026-02-05" <= row["at"] < "2026-02-05T10:00:31"),
        ({"since": rows[0]["at"], "until": rows[0]["at"]}, lambda row: row["at"] == rows[0]["at"]),
        ({"until": "2026-01-05T10:00:03Z"}, lambda row: row["at"] < "2026-01-05T10:00:04"),
    ]  # fmt: skip
    for filters, passes in cases:
        expected = [row["id"] for row in rows if passes(row)]
        assert [annotation["id"] for annotation in list_all_annotations(api, **filters)] == expected, filters


def test_annotation_has_item_label_author_and_origin(api: TestClient) -> None:
    first = api.get("/api/v1/annotations?k=1").json()["annotations"][0]
    assert (first["id"], first["item"], first["path"], first["label"]) == (N, 1, "a/1.jpg", "sky")
    first_page = api.get("/api/v1/annotations?k=1").json()
    body = {"decisions": [{"item": 5, "label": "new", "state": "accepted"}]}
    api.post("/api/v1/decisions", json=body)
    newest = api.get("/api/v1/annotations?k=1").json()["annotations"][0]
    assert (newest["item"], newest["label"], newest["by"], newest["origin"]) == (5, "new", "local", "person")
    next_annotations = api.get("/api/v1/annotations", params={"k": 1, "cursor": first_page["next_cursor"]}).json()[
        "annotations"
    ]
    assert next_annotations[0]["id"] == N - 1  # what came meanwhile moves nothing


def cursor_of(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode()


@pytest.mark.parametrize(
    ("asks", "status"),
    [
        ({"item": "x"}, 422), ({"item": 0}, 422), ({"item": 2**63}, 422), ({"model": -1}, 422),
        ({"label": "nobody"}, 404), ({"label": ""}, 422), ({"label": "a\0b"}, 422), ({"label": "x" * 501}, 422),
        ({"state": "suggested"}, 422), ({"origin": "' OR 1=1"}, 422), ({"by": "a\0b"}, 422), ({"by": "' OR 1=1"}, 200),
        ({"since": "yesterday"}, 422), ({"until": "2026-05-01 12:00"}, 422), ({"since": "2026-05\n"}, 422),
        ({"k": 0}, 422), ({"k": 1001}, 422), ({"k": 1000}, 200),
        ({"cursor": "x"}, 422), ({"cursor": "A" * 6000}, 422), ({"cursor": cursor_of(["-added_at", 5, 5])}, 422),
        ({"cursor": cursor_of(["-decided", 5, 5])}, 422), ({"cursor": cursor_of(["-decided", None, "5"])}, 422),
        ({"cursor": cursor_of(["-decided", None, 2**63])}, 422), ({"cursor": cursor_of(["-decided", None, 0])}, 200),
    ],
)  # fmt: skip
def test_invalid_annotation_requests_are_refused(api: TestClient, asks: Row, status: int) -> None:
    answer = api.get("/api/v1/annotations", params=asks)
    assert answer.status_code == status, answer.text
    if answer.status_code != 200:
        assert answer.headers["content-type"] == "application/problem+json"


def test_item_cursor_is_refused_for_annotations(api: TestClient) -> None:
    of_items = api.get("/api/v1/items?k=1&sort=added_at&descending=true").json()["next_cursor"]
    refused = api.get("/api/v1/annotations", params={"cursor": of_items})
    assert (refused.status_code, "sorted by '-added_at'" in refused.json()["detail"]) == (422, True)


def test_model_without_a_collection_has_no_annotations(client: Client) -> None:
    assert client().get("/api/v1/annotations").status_code == 404
