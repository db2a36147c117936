"""Requests that pages of other sites send."""

import json

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import emoji
from tests.server.security.conftest import filled, operations, state_of


def test_other_sites_change_nothing(api: TestClient) -> None:
    state_before, n_requests = state_of(api), 0
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
    for method, path, _ in operations(api):
        for site_headers in headers:
            if method != "GET" or "host" in site_headers:
                n_requests += 1
                answer = api.request(method, filled(path), headers=site_headers, json={} if method != "GET" else None)
                assert answer.status_code == 403, (method, path, site_headers)
    assert n_requests > 100
    assert state_of(api) == state_before


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", None]
)
def test_what_a_form_can_send_is_no_json(api: TestClient, kind: str | None) -> None:
    state_before = state_of(api)
    body = json.dumps({"decisions": [{"item": 1, "label": "red", "state": "rejected"}]})
    for path in ("decisions", "undo", "jobs", "suggestions/accept"):
        headers = {} if kind is None else {"content-type": kind}
        assert api.post(f"/api/v1/{path}", content=body, headers=headers).status_code == 422
    assert state_of(api) == state_before
    assert emoji(1)  # the pictures of the sample are there
