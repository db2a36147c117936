"""The map over HTTP: points as bytes, colours, labels, what is asked again, what is refused; the job that makes it."""

import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from wsabie.collection.folder.collection import Collection, create_collection, open_collection
from wsabie.collection.maps import item_map
from wsabie.server.app import make_app
from wsabie.server.limits.request_limits import ServiceLimits
from wsabie.server.model_holder import CollectionModelHolder
from wsabie.server.service_context import ServiceContext
from wsabie.server.tokens import Token, hash_token

MAP = "/api/v1/map"
PATIENCE = 900.0
"""Seconds after which a job hangs, on however busy a machine."""


def read_points(content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and places, as the route says that they are written."""
    n = int(np.frombuffer(content, "<u4", 1)[0])
    assert len(content) == 4 + 8 * n
    steps = np.frombuffer(content, "<u4", n, 4)
    return np.cumsum(steps.astype(np.int64)), np.frombuffer(content, "<u2", 2 * n, 4 + 4 * n).reshape(n, 2)


def serve_collection(collection: Collection, tokens: list[Token] | None = None) -> TestClient:
    context = ServiceContext(ServiceLimits(), tokens, CollectionModelHolder(collection), collection)
    return TestClient(make_app(context), raise_server_exceptions=False, base_url="http://localhost")


def test_points_equal_those_of_the_map(api: TestClient, folder: Path) -> None:
    about = api.get(MAP).json()
    assert (about["schema"], about["method"], about["points"]) == (1, "pca", 45)
    item_ids, places = read_points(api.get(f"{MAP}/points").content)
    box = about["box"]
    with open_collection(folder) as collection:
        built_map = item_map.build_map(collection)
    assert item_ids.tolist() == built_map.items.tolist() == list(range(1, 46))
    points = np.array([box["x"], box["y"]]) + places / 65535 * box["side"]
    np.testing.assert_allclose(points, built_map.coordinates, atol=1.01 * box["side"] / 65535)
    assert (places.min(), places.max()) == (0, 65535)


def test_points_are_compressed_and_cached(api: TestClient) -> None:
    plain = api.get(f"{MAP}/points", headers={"accept-encoding": "identity"})
    small = api.get(f"{MAP}/points", headers={"accept-encoding": "gzip"})
    assert (small.headers["content-encoding"], small.content) == ("gzip", plain.content)
    assert int(small.headers["content-length"]) < int(plain.headers["content-length"])
    assert "content-encoding" not in plain.headers
    again = api.get(f"{MAP}/points", headers={"if-none-match": plain.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert plain.headers["etag"].strip('"') == api.get(MAP).json()["version"]


def test_unsent_responses_are_not_compressed(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> bytes:
        raise AssertionError("compressed")

    path, plain = f"{MAP}/label?label=red", {"accept-encoding": "gzip;q=0"}
    monkeypatch.setattr("wsabie.server.routes.maps.gzip.compress", refuse)
    first = api.get(path, headers=plain)
    assert (first.status_code, "content-encoding" in first.headers) == (200, False)
    conditional_headers = {"accept-encoding": "gzip", "if-none-match": f'"other", W/{first.headers["etag"]}'}
    assert api.get(path, headers=conditional_headers).status_code == 304


def test_outdated_map_version_is_a_conflict(api: TestClient) -> None:
    version = api.get(MAP).json()["version"]
    for path in (f"{MAP}/points", f"{MAP}/labels"):
        assert api.get(f"{path}?version={version}").status_code == 200
        answer = api.get(f"{path}?version=another")
        assert (answer.status_code, "load it again" in answer.json()["detail"]) == (409, True)


def test_colours_follow_decisions(api: TestClient) -> None:
    def colours() -> dict[int, int]:
        content = api.get(f"{MAP}/label?label=red").content
        n = int(np.frombuffer(content, "<u4", 1)[0])
        assert len(content) == 4 + 5 * n
        item_ids = np.cumsum(np.frombuffer(content, "<u4", n, 4)).tolist()
        return dict(zip(item_ids, content[4 + 4 * n :], strict=True))

    colours_before = colours()
    tag = api.get(f"{MAP}/label?label=red").headers["etag"]
    assert sorted(n for n, code in colours_before.items() if code == 2) == [
        entry["id"]
        for entry in sorted(api.get("/api/v1/items?label=red").json()["items"], key=lambda entry: entry["id"])
    ]
    item = next(n for n, code in colours_before.items() if code > 2)
    decided = {"decisions": [{"item": item, "label": "red", "state": "rejected"}]}
    assert api.post("/api/v1/decisions", json=decided).status_code == 200
    assert colours() == colours_before | {item: 1}
    assert api.get(f"{MAP}/label?label=red", headers={"if-none-match": tag}).status_code == 200


def test_labels_lie_within_the_box(api: TestClient) -> None:
    box = api.get(MAP).json()["box"]
    labels = api.get(f"{MAP}/labels").json()["labels"]
    assert (labels[0]["name"], labels[0]["accepted"]) == ("colour", 30)
    assert {label["name"] for label in labels} == {"colour", "red", "green", "blue"}
    for label in labels:
        assert box["x"] <= label["x"] <= box["x"] + box["side"] + 1e-6
        assert box["y"] <= label["y"] <= box["y"] + box["side"] + 1e-6
    assert len(api.get(f"{MAP}/labels?k=1").json()["labels"]) == 1


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/map?method=tsne", 422, "method"),
        ("/map/points?method=", 422, "method"),
        ("/map/points?method=umap", 422, "no UMAP of the model in use yet"),
        ("/map?method=umap", 422, "no UMAP of the model in use yet"),
        ("/map/labels?k=0", 422, "k"),
        ("/map/labels?k=1001", 422, "at most 1,000"),
        ("/map/label", 422, "label"),
        ("/map/label?label=", 422, "label"),
        ("/map/label?label=" + 501 * "x", 422, "label"),
        ("/map/label?label=nothing%20here", 404, "there is no label"),
        ("/items?ids=1,x", 422, "ids"),
        ("/items?ids=0", 422, "up to 1,000 item ids, each 1 or more"),
        ("/items?ids=99999999999999999999", 422, "ids"),
        ("/items?ids=9999999999999999999", 422, "up to 1,000 item ids"),
        ("/items?ids=" + ",".join(["1"] * 1001), 422, "up to 1,000 item ids"),
    ],
)
def test_invalid_map_requests_are_refused(api: TestClient, path: str, status: int, message: str) -> None:
    answer = api.get(f"/api/v1{path}")
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert message in answer.json()["detail"]


def test_items_are_listed_by_id(api: TestClient) -> None:
    page = api.get("/api/v1/items?ids=7,3,44,1000").json()
    assert sorted(item["id"] for item in page["items"]) == [3, 7, 44]
    assert page["total"] == 3


def test_map_needs_a_model(tmp_path: Path, database: str | None) -> None:
    with create_collection(tmp_path / "empty", database) as collection, serve_collection(collection) as client:
        answer = client.get(MAP)
        nothing = client.get("/api/v1/items/99")
    assert answer.status_code == 422
    assert answer.json()["detail"] == "the collection has no model yet; train one on the page Training"
    assert nothing.json()["detail"] == "there is no item with id 99"  # no command or folder of the service's machine


def test_read_token_starts_no_job(folder: Path) -> None:
    tokens = [Token("eve", "read", None, hash_token("secret"))]
    with open_collection(folder) as collection, serve_collection(collection, tokens) as client:
        assert client.get(f"{MAP}/points").status_code == 401
        client.headers["authorization"] = "Bearer secret"
        assert client.get(f"{MAP}/points").status_code == 200
        assert client.post("/api/v1/jobs", json={"kind": "map"}).status_code == 403


# What a UMAP is drawn from was read before; jobs in PostgreSQL have tests in `test_training_service.py`.
@pytest.mark.parametrize("folder", ["trained_collection"], indirect=True, ids=["sqlite"])
def test_map_job_computes_a_umap(api: TestClient) -> None:
    job = api.post("/api/v1/jobs", json={"kind": "map"}).json()
    refused = api.post("/api/v1/jobs", json={"kind": "map", "options": {"again": True}})
    assert (refused.status_code, "has no option 'again'" in refused.json()["detail"]) == (422, True)
    until = time.monotonic() + PATIENCE
    while job["state"] in ("waiting", "running") and time.monotonic() < until:
        time.sleep(0.3)
        job = api.get(f"/api/v1/jobs/{job['id']}").json()
    if item_map.has_umap():
        assert (job["state"], job["result"]["state"]) == ("done", "ready")
        about = api.get(f"{MAP}?method=umap").json()
        assert about["projections"][1]["created"] == job["result"]["created"]
        item_ids, _ = read_points(api.get(f"{MAP}/points?method=umap").content)
        assert len(item_ids) == 45
    else:
        assert (job["state"], "pip install 'wsabie[map]'" in job["error"]) == ("failed", True)


def test_map_follows_a_scan(api: TestClient, folder: Path) -> None:
    points_before = api.get(f"{MAP}/points")
    shutil.move(folder / "part 0" / "44.png", folder.parent / "44.png")
    job = api.post("/api/v1/jobs", json={"kind": "scan"}).json()
    until = time.monotonic() + PATIENCE
    while job["state"] in ("waiting", "running") and time.monotonic() < until:
        time.sleep(0.2)
        job = api.get(f"/api/v1/jobs/{job['id']}").json()
    assert job["state"] == "done"
    points_after = api.get(f"{MAP}/points", headers={"if-none-match": points_before.headers["etag"]})
    assert points_after.status_code == 200
    assert len(read_points(points_after.content)[0]) == 44
