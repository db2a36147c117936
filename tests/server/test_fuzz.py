"""Requests that a machine makes up from the OpenAPI document: none may make the service fail.

`make fuzz` makes up 100 for each operation by three seeds; as tests among others a few. WSABIE_FUZZ_EXAMPLES says how
many (empty: few), WSABIE_FUZZ_SEEDS by which seeds ("1,2,3").
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.server.conftest import run_service

from wsabie.server.tokens import create_token

pytest.importorskip("schemathesis", reason="schemathesis is not installed")

EXAMPLES = os.environ.get("WSABIE_FUZZ_EXAMPLES", "")
SEEDS = os.environ.get("WSABIE_FUZZ_SEEDS", "1").split(",")
PATIENCE = 3600 if EXAMPLES else 300  # seconds for one seed


def assert_never_fails(address: object, place: Path, phases: str, few: int, *more: str) -> None:
    """Made-up requests to all routes that the document names, so many for each."""
    for seed in SEEDS:
        words = ["run", f"{address}/openapi.json", "--checks", "not_a_server_error", "--phases", phases, *more]
        words += ["--max-examples", EXAMPLES or str(few), "--seed", seed]
        program = str(Path(sys.executable).parent / "schemathesis")
        process = subprocess.run(
            [program, *words], capture_output=True, text=True, cwd=place, timeout=PATIENCE, check=False
        )
        assert process.returncode == 0, f"seed {seed}: {process.stdout[-3000:]}"
        summary_lines = [line.strip() for line in process.stdout.splitlines() if "generated" in line]
        assert summary_lines
        print(f"seed {seed}: {summary_lines[-1]}")


def test_fuzzing_does_not_break_a_collection_service(folder: Path, tmp_path: Path) -> None:
    with run_service(folder) as api:
        assert_never_fails(api.base_url, tmp_path, "coverage,fuzzing", 2)


def test_fuzzing_does_not_break_a_model_service(served_model: Path, tmp_path: Path) -> None:
    with run_service(served_model) as api:
        assert_never_fails(api.base_url, tmp_path, "coverage,fuzzing", 3)


@pytest.mark.parametrize("is_known", [True, False])
def test_fuzzing_does_not_break_a_guarded_service(trained_collection: Path, tmp_path: Path, is_known: bool) -> None:
    folder, tokens = tmp_path / "photos", tmp_path / "tokens"
    shutil.copytree(trained_collection, folder)
    token = create_token(tokens, "eve", "read")
    with run_service(folder, "--tokens", tokens) as api:
        header_options = ("--header", f"Authorization: Bearer {token if is_known else 'no'}")
        assert_never_fails(api.base_url, tmp_path, "fuzzing", 2, *header_options)
        assert api.get("/api/v1/info").status_code == 401
