"""Requests that a machine makes up from the OpenAPI document: none may make the service fail."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faces.serve.conftest import running
from tests.faces.serve.test_collection_service import trained_collection  # noqa: F401 - a fixture

pytest.importorskip("schemathesis", reason="schemathesis is not installed")


def test_no_request_makes_the_service_fail(trained_collection: Path, tmp_path: Path) -> None:  # noqa: F811
    folder = tmp_path / "photos"
    shutil.copytree(trained_collection, folder)
    with running(folder) as asked:
        words = ["run", f"{asked.base_url}/openapi.json", "--checks", "not_a_server_error", "--max-examples", "6"]
        program = str(Path(sys.executable).parent / "schemathesis")
        done = subprocess.run(
            [program, *words, "--phases", "coverage,fuzzing", "--seed", "1"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "generated" in done.stdout
