"""Compatibility with model folders of earlier versions (see `golden/make.py`)."""

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wsabie
from golden.make import FOLDER, answers

VERSIONS = sorted(path.parent for path in FOLDER.glob("*/answers.json"))


def assert_close(actual: Any, expected: Any) -> None:
    """The same names in the same places, numbers within what another processor may change."""
    if isinstance(expected, list):
        assert len(actual) == len(expected)
        for ours, theirs in zip(actual, expected, strict=True):
            assert_close(ours, theirs)
    else:
        assert actual == (expected if isinstance(expected, str) else pytest.approx(expected, rel=1e-4, abs=1e-5))


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_golden_models_answer_as_before(folder: Path) -> None:
    recorded = json.loads((folder / "answers.json").read_text("utf-8"))
    pictures = [base64.b64decode(content) for content in recorded.pop("pictures")]
    actual = answers(folder, pictures, np.array(recorded.pop("rows"), np.float32))
    assert set(actual) == set(recorded)
    for name, expected in recorded.items():
        assert_close(actual[name], expected)
    assert [best[1][0] for best in actual["annotations"]] == ["sky", "grass", "brick"]  # all are "Bild 犬" first


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_golden_models_are_trained_further_and_saved(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "estimator", tmp_path / "m")
    model = wsabie.load(tmp_path / "m")
    model.partial_fit(np.eye(4, dtype=np.float32), ["sand", "sea", "sand", "wood"]).save(tmp_path / "m")
    assert list(wsabie.load(tmp_path / "m").vocabulary_) == ["wood", "sea", "sand"]


def test_golden_folder_of_the_first_version_exists() -> None:
    assert FOLDER / "0.1.0" in VERSIONS
    assert all(sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) < 20_000 for folder in VERSIONS)
