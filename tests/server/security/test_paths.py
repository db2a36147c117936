"""Paths, parameters and names that lead out of the collection or into the database."""

import base64
import json
import re
from pathlib import Path

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient
from tests.server.security.conftest import (
    OUTSIDE_TEXT,
    OUTWARD,
    QUERIES,
    fetch_state,
    fill_path,
    is_text,
    list_operations,
    make_request_line,
    send_bytes,
)

"""What is posted and changes nothing."""


@pytest.mark.parametrize("outward", OUTWARD)
def test_no_path_leads_outside(service: httpx.URL, outward: str) -> None:
    target = re.sub(r"[^!-~]", lambda sign: f"%{ord(sign[0]):02x}", outward)
    for place in (
        "/",
        "/assets/",
        "/api/v1/items/",
        "/api/v1/items/1/file/",
        "/api/v1/items/1/thumbnail/",
        "/api/v1/jobs/",
    ):
        for end in ("", "/file", "/thumbnail"):
            answer = send_bytes(service, make_request_line("GET", place + target + end))
            assert answer[9:12] in (b"400", b"404", b"405", b"422"), (target, answer[:200])
            assert OUTSIDE_TEXT.encode() not in answer
            assert b"root:" not in answer


def test_no_parameter_leads_outside_or_into_the_database(api: TestClient, tmp_path: Path) -> None:
    """Every text that can be asked with, with every text of the lists."""
    (tmp_path / "secret.txt").write_text(OUTSIDE_TEXT)
    state_before, n_requests = fetch_state(api), 0
    for method, path, operation in list_operations(api):
        if method != "GET":
            continue
        texts = [parameter for parameter in operation.get("parameters", ()) if is_text(parameter["schema"])]
        needed = {
            parameter["name"]: "1"
            for parameter in operation.get("parameters", ())
            if parameter.get("required") and parameter["in"] == "query"
        }
        for parameter in texts:
            for text in OUTWARD + QUERIES:
                if parameter["in"] == "path":
                    answer = api.get(
                        fill_path(path, **{parameter["name"]: httpx.URL("x", params={"x": text}).query.decode()[2:]})
                    )
                else:
                    answer = api.get(fill_path(path), params=needed | {parameter["name"]: text})
                n_requests += 1
                assert answer.status_code < 500, (path, parameter["name"], text, answer.text)
                assert OUTSIDE_TEXT not in answer.text
                assert "root:" not in answer.text
                assert "set-cookie" not in answer.headers
    assert n_requests > 500
    assert fetch_state(api) == state_before


def test_pattern_characters_match_literally(api: TestClient) -> None:
    for text in ("%", "_", "re%", "r_d", "\\", "red%' OR '1'='1", "*", "?"):
        assert api.get("/api/v1/items", params={"words": text}).json()["items"] == [], text
        assert api.get("/api/v1/labels", params={"prefix": text}).json()["labels"] == [], text
        assert api.get("/api/v1/vocabulary", params={"contains": text}).json()["total"] == 0, text
        assert api.get("/api/v1/items", params={"folder": text}).json()["items"] == [], text


CURSORS = [
    ["path", "' OR 1=1 --", 1], ["path); DROP TABLE items; --", "a", 1],
    ["path", {"$gt": ""}, 1], ["path", "a", "1 OR 1=1"],
    ["path", "a", -1], ["path", "a", 10**30], ["path", "a\0", 1], ["path", "\ud800", 1], ["added_at", float("nan"), 1],
    [[]],
    {"sort": "path"}, None, "path", [["path"] * 3] * 3,
]  # fmt: skip


def test_hostile_cursors_are_read_as_values(api: TestClient) -> None:
    state_before = fetch_state(api)
    for fields in CURSORS:
        cursor = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()
        answer = api.get("/api/v1/items", params={"cursor": cursor})
        assert answer.status_code in (200, 422), answer.text
        for item in answer.json().get("items", ()):  # those behind a text that no path is
            assert item["path"] > fields[1]  # type: ignore[index, operator]
    assert fetch_state(api) == state_before


def test_label_names_are_data(api: TestClient) -> None:
    names = [
        "Robert'); DROP TABLE labels;--",
        "a\r\nSet-Cookie: b=c",
        "<img src=x onerror=alert(1)>",
        "%",
        "../../x",
        "\u202egnp",
    ]
    body = {"decisions": [{"item": 1, "label": name, "state": "accepted"} for name in names]}
    assert api.post("/api/v1/decisions", json=body).json()["added"] == len(names)
    labels = api.get("/api/v1/items/1").json()["labels"]
    assert set(labels) >= {" ".join(name.split()).strip("\u202e") for name in names}  # without line breaks and turns
    for name in names:
        answer = api.get("/api/v1/items", params={"label": name})
        assert [item["id"] for item in answer.json()["items"]] == [1], name
        assert answer.headers["content-type"] == "application/json"
    assert api.get("/api/v1/collection").json()["labels"] == 4 + len(names)


def test_job_options_refuse_paths(api: TestClient) -> None:
    for options in ({"tags": "../../etc/passwd"}, {"features": "onnx:/etc/passwd"}, {"full": ["x"]}, {"x": None}):
        assert api.post("/api/v1/jobs", json={"kind": "train", "options": options}).status_code == 422
