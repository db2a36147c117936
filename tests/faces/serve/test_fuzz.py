"""Requests that a machine makes up from the OpenAPI document: none may make the service fail."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faces.serve.conftest import running

from wsabie.faces.serve.tokens import new_token

pytest.importorskip("schemathesis", reason="schemathesis is not installed")


def assert_never_fails(address: object, place: Path, *more: str) -> None:
    """Made-up requests to all routes that the document names."""
    words = ["run", f"{address}/openapi.json", "--checks", "not_a_server_error", "--seed", "1", *more]
    program = str(Path(sys.executable).parent / "schemathesis")
    done = subprocess.run([program, *words], capture_output=True, text=True, cwd=place, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "generated" in done.stdout


def test_no_request_makes_the_service_fail(folder: Path, tmp_path: Path) -> None:
    with running(folder) as asked:
        assert_never_fails(asked.base_url, tmp_path, "--phases", "coverage,fuzzing", "--max-examples", "6")


def test_no_request_makes_a_model_fail(served_model: Path, tmp_path: Path) -> None:
    with running(served_model) as asked:
        assert_never_fails(asked.base_url, tmp_path, "--phases", "coverage,fuzzing", "--max-examples", "3")


@pytest.mark.parametrize("known", [True, False])
def test_no_request_makes_a_guarded_service_fail(
    trained_collection: Path,
    tmp_path: Path,
    known: bool,
) -> None:
    folder, tokens = tmp_path / "photos", tmp_path / "tokens"
    shutil.copytree(trained_collection, folder)
    token = new_token(tokens, "eve", "read")
    with running(folder, "--tokens", tokens) as asked:
        given = ("--header", f"Authorization: Bearer {token if known else 'no'}")
        assert_never_fails(asked.base_url, tmp_path, "--phases", "fuzzing", "--max-examples", "2", *given)
        assert asked.get("/api/v1/info").status_code == 401
