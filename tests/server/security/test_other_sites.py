"""Requests that pages of other sites send."""

import json

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import read_emoji
from tests.server.security.conftest import fetch_state, fill_path, list_operations


def test_other_sites_change_nothing(api: TestClient) -> None:
    state_before, n_requests = fetch_state(api), 0
    headers: tuple[dict[str, str], ...] = (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:1"},
        {"origin": "http://localhost.evil.example"},
        {"origin": "http://evil.example", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"host": "evil.example"},
        {"host": "localhost.evil.example", "origin": "http://localhost.evil.example"},
    )
    for method, path, _ in list_operations(api):
        for site_headers in headers:
            if method != "GET" or "host" in site_headers:
                n_requests += 1
                answer = api.request(
                    method, fill_path(path), headers=site_headers, json={} if method != "GET" else None
                )
                assert answer.status_code == 403, (method, path, site_headers)
    assert n_requests > 100
    assert fetch_state(api) == state_before


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", None]
)
def test_form_content_types_are_not_parsed_as_json(api: TestClient, kind: str | None) -> None:
    state_before = fetch_state(api)
    body = json.dumps({"decisions": [{"item": 1, "label": "red", "state": "rejected"}]})
    for path in ("decisions", "undo", "jobs", "suggestions/accept"):
        headers = {} if kind is None else {"content-type": kind}
        assert api.post(f"/api/v1/{path}", content=body, headers=headers).status_code == 422
    assert fetch_state(api) == state_before
    assert read_emoji(1)  # the pictures of the sample are there
