"""A model over HTTP: what it answers, and what it refuses."""

import struct
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Cli
from tests.cli.conftest import cli as cli
from tests.server.conftest import Client, make_model, read_emoji, run_service

import wsabie
from wsabie.io.records import Item
from wsabie.models.annotators import Annotator
from wsabie.models.index_files import index_labels
from wsabie.server.limits.request_limits import ServiceLimits
from wsabie.server.model_holder import TABLES_VARIABLE, FolderModelHolder
from wsabie.server.tokens import Token, hash_token


def make_png_chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


BOMB = b"".join(
    [
        b"\x89PNG\r\n\x1a\n",
        make_png_chunk(b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)),
        make_png_chunk(b"IDAT", zlib.compress(b"\0" * 1000)),
        make_png_chunk(b"IEND", b""),
    ]
)
"""A picture of 10 GB in 100 bytes."""


def test_picture_is_annotated_as_by_the_library(client: Client, served_model: Path) -> None:
    picture = read_emoji(1)[0]
    answer = client().post("/api/v1/annotate/picture?k=5", files={"file": picture}).json()
    annotator = Annotator.load(served_model)
    X = annotator.rows_of_items([Item("one", picture, ())])
    expected = annotator.model.annotate(X, 5)[0]
    got = answer["results"][0]["labels"]
    assert answer["schema"] == 1
    assert [label["label"] for label in got] == [name for name, _ in expected]
    np.testing.assert_allclose([label["score"] for label in got], [score for _, score in expected], rtol=1e-5)
    label_ids = annotator.model.vocabulary_.ids([label["label"] for label in got])
    probabilities = annotator.model.predict_proba(X)[0, label_ids]  # type: ignore[attr-defined]
    np.testing.assert_allclose([label["probability"] for label in got], probabilities, rtol=1e-5)


def test_region_is_annotated_apart_from_the_picture(client: Client) -> None:
    api = client()
    picture = {"file": read_emoji(1)[0]}
    picture_results = api.post("/api/v1/annotate/picture", files=picture).json()["results"]
    part = api.post("/api/v1/annotate/picture?region=10%,10%,40%,40%", files=picture).json()["results"]
    unjudged = api.post("/api/v1/annotate/picture?min_precision=0.9", files=picture)
    assert (unjudged.status_code, "serve the collection itself" in unjudged.text) == (422, True)
    assert picture_results != part
    refused = api.post("/api/v1/annotate/picture?region=x", files=picture)
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"


def test_rows_are_annotated(client: Client, served_model: Path) -> None:
    api = client()
    rows = [{"columns": [1, 5, 1], "values": [1, 2, 3]}, {"columns": [], "values": []}]
    answer = api.post("/api/v1/annotate/rows", json={"rows": rows, "k": 3}).json()
    annotator = Annotator.load(served_model)
    X = np.zeros((2, annotator.model.n_features_in_), np.float32)
    X[0, [1, 5]] = 4, 2
    from scipy.sparse import csr_matrix

    expected = annotator.model.annotate(csr_matrix(X), 3)
    assert [[label["label"] for label in row["labels"]] for row in answer["results"]] == [
        [name for name, _ in row] for row in expected
    ]
    among = [expected[0][2][0], expected[0][1][0]]
    answer = api.post("/api/v1/annotate/rows", json={"rows": rows[:1], "candidates": among}).json()
    assert [label["label"] for label in answer["results"][0]["labels"]] == among[::-1]


@pytest.mark.parametrize(
    "body",
    [
        {"rows": []},
        {"rows": [{"columns": [1], "values": [1, 2]}]},
        {"rows": [{"columns": [100], "values": [1]}]},
        {"rows": [{"columns": [-1], "values": [1]}]},
        {"rows": [{"columns": [1], "values": [-1]}]},
        {"rows": [{"dense": [1, 2]}]},
        {"rows": [{"dense": [0] * 100}]},
        {"rows": [{"dense": [0] * 100}, {"columns": [1], "values": [1]}]},
        {"rows": [{}]},
        {"rows": [{"columns": [1], "values": [1]}], "k": 0},
        {"rows": [{"columns": [1], "values": [1]}], "k": 100_000},
        {"rows": [{"columns": [1], "values": [1]}], "colour": "red"},
        {"rows": [{"columns": [1], "values": [1]}], "candidates": []},
        [],
        None,
    ],
)
def test_unusable_rows_are_refused(client: Client, body: object) -> None:
    refused = client().post("/api/v1/annotate/rows", json=body)
    assert refused.status_code == 422, refused.text
    assert set(refused.json()) == {"type", "title", "status", "detail"}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_nonfinite_numbers_are_refused(client: Client, number: str) -> None:
    content = f'{{"rows": [{{"columns": [1], "values": [{number}]}}]}}'
    refused = client().post("/api/v1/annotate/rows", content=content, headers={"content-type": "application/json"})
    assert refused.status_code in (400, 422)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty file"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "not a picture"),
        (b"<html><script>alert(1)</script></html>", "not a picture"),
        (BOMB, "too many pixels"),
    ],
)
def test_invalid_pictures_are_refused(client: Client, content: bytes, message: str) -> None:
    refused = client().post("/api/v1/annotate/picture", files={"file": content})
    assert refused.status_code == 415
    assert message in refused.json()["detail"]


def test_labels_and_neighbours_are_listed(client: Client, served_model: Path) -> None:
    api, names = client(), list(Annotator.load(served_model).model.vocabulary_)
    page = api.get("/api/v1/labels", params={"prefix": names[0][:1].upper(), "k": 3}).json()
    assert page["total"] == sum(name.casefold().startswith(names[0][:1].casefold()) for name in names)
    assert len(page["labels"]) == min(3, page["total"])
    near = api.get(f"/api/v1/labels/{names[0]}/neighbours", params={"k": 2}).json()
    assert len(near["neighbours"]) == 2
    unknown = api.get("/api/v1/labels/nobody knows it/neighbours")
    assert unknown.status_code == 404
    assert "there is no label" in unknown.json()["detail"]


def test_heat_map_is_drawn(client: Client) -> None:
    response = client().post("/api/v1/explain/picture", files={"file": read_emoji(1)[0]})
    assert response.headers["content-type"] == "image/png"
    assert response.content.startswith(b"\x89PNG")


def test_metrics_count_requests_by_route(client: Client) -> None:
    api = client()
    api.get("/api/v1/info")
    api.get("/api/v1/labels/x/neighbours")
    api.get("/nothing/<b>here")
    page = api.get("/metrics").text
    assert 'wsabie_requests_total{method="GET",route="/api/v1/info",status="200"} 1.0' in page
    assert 'status="404"' in page
    assert "here" not in page


def test_body_size_is_limited_with_or_without_a_length(client: Client) -> None:
    api = client(ServiceLimits(body=10_000))
    assert api.post("/api/v1/annotate/picture", files={"file": b"x" * 20_000}).status_code == 413

    def pieces() -> Iterator[bytes]:
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        for _ in range(20):
            yield b"x" * 1000

    kind = {"content-type": "multipart/form-data; boundary=b"}
    refused = api.post("/api/v1/annotate/picture", content=pieces(), headers=kind)
    assert refused.status_code == 413
    assert refused.json()["detail"].startswith("the request is larger than 10,000 bytes")
    for length in ("-1", "1e3", "9" * 400):
        assert api.post("/api/v1/annotate/rows", content=b"", headers={"content-length": length}).status_code == 413


def test_request_rate_is_limited(client: Client) -> None:
    api = client(ServiceLimits(rate=0.5, burst=2))
    assert [api.get("/api/v1/info").status_code for _ in range(3)] == [200, 200, 429]
    refused = api.get("/api/v1/info")
    assert int(refused.headers["retry-after"]) >= 1


def test_missing_or_expired_token_is_refused(client: Client) -> None:
    from datetime import date, timedelta

    yesterday = date.today() - timedelta(days=2)
    tokens = [Token("eve", "read", None, hash_token("one")), Token("old", "write", yesterday, hash_token("two"))]
    api = client(tokens=tokens)
    refused = api.get("/api/v1/info")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    for token in ("two", "three", "é"):
        wrong = api.get("/api/v1/info", headers={"authorization": f"Bearer {token}".encode()})
        assert wrong.status_code == 401, token
    assert api.get("/api/v1/info", headers={"authorization": "Bearer one"}).status_code == 200
    assert api.get("/api/v1/health").status_code == 200  # tells nothing
    assert api.get("/metrics").status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "localhost"}, 200),
        ({"host": "127.0.0.1:8420"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "localhost@evil.example"}, 403),
        ({"host": "[::1"}, 403),
        ({"host": "localhost", "origin": "http://localhost"}, 200),
        ({"host": "localhost", "origin": "http://evil.example"}, 403),
        ({"host": "localhost", "origin": "null"}, 403),
        ({"host": "localhost", "sec-fetch-site": "cross-site"}, 403),
        ({"host": "localhost", "sec-fetch-site": "same-site"}, 403),
        ({"host": "localhost", "sec-fetch-site": "same-origin"}, 200),
    ],
)
def test_other_sites_are_refused(client: Client, headers: dict[str, str], status: int) -> None:
    api = client(hosts=("localhost", "127.0.0.1", "::1"))
    body = {"rows": [{"columns": [1], "values": [1]}]}
    assert api.post("/api/v1/annotate/rows", json=body, headers=headers).status_code == status


def test_responses_have_security_headers(client: Client) -> None:
    for answer in (client().get("/api/v1/health"), client().get("/nothing")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert "access-control-allow-origin" not in answer.headers


def test_new_model_is_loaded_during_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import wsabie.server.model_holder as served

    monkeypatch.setattr(served, "_CHECK_INTERVAL", 0.0)
    folder = make_model(tmp_path / "model", 20)
    model = FolderModelHolder(folder)
    first, wrong, stop = model.get_version().id, [], threading.Event()

    def ask() -> None:
        while not stop.is_set():
            version = model.get_version()
            ranked = version.annotator.model.annotate(_make_empty_row(version.annotator), 1)
            if ranked[0][0][0] not in version.names:
                wrong.append(version.id)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    make_model(folder, 30, seed=1)
    until = time.monotonic() + 20
    while model.get_version().id == first and time.monotonic() < until:
        time.sleep(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    assert model.get_version().id != first
    assert not wrong
    second = model.get_version().id
    (folder / "config.json").write_text("{")
    assert model.get_version().id == second  # half a model is none
    assert "cannot be used" in str(model.trouble)


def test_new_index_is_loaded_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wsabie.server.model_holder._CHECK_INTERVAL", 0.0)
    monkeypatch.setattr("wsabie.search.label_index.MIN_VECTORS", 10)
    folder = make_model(tmp_path / "model", 20)
    model = FolderModelHolder(folder)
    assert "index" not in model.get_version().annotator.model.facts()
    index_labels(wsabie.load(folder), kind="int8", folder=folder)
    assert model.get_version().annotator.model.facts()["index"]["kind"] == "int8"
    monkeypatch.setenv(TABLES_VARIABLE, str(tmp_path))  # its features are mapped by all that serve it
    monkeypatch.setattr("wsabie.server.model_holder.MIN_SHARED_BYTES", 1)
    assert FolderModelHolder(folder).get_version().annotator.model.facts()["index"]["kind"] == "int8"


def _make_empty_row(annotator: Annotator) -> object:
    from scipy.sparse import csr_matrix

    return csr_matrix((1, annotator.model.n_features_in_), dtype=np.float32)


def test_serve_command_stops_on_a_signal(served_model: Path) -> None:
    with run_service(served_model, "--workers", "2") as api:
        assert {api.get("/api/v1/info").status_code for _ in range(10)} == {200}
        answer = api.post("/api/v1/annotate/picture?k=2", files={"file": read_emoji(1)[0]})
        assert len(answer.json()["results"][0]["labels"]) == 2
        assert "server" not in answer.headers


def test_other_hosts_need_a_token(served_model: Path, tmp_path: Path, cli: Cli) -> None:
    refused = cli("serve", served_model, "--host", "0.0.0.0", "--port", "0")  # noqa: S104
    assert refused.code == 1
    assert "needs tokens there" in refused.err
    file = tmp_path / "tokens"
    token = cli("token", file, "eve").out.strip()
    assert token not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    with run_service(served_model, "--tokens", file) as api:
        assert api.get("/api/v1/info").status_code == 401
        assert api.get("/api/v1/info", headers={"authorization": f"Bearer {token}"}).status_code == 200
