"""Folders of ours that somebody changed: one sentence that names what is wrong, never a traceback."""

import json
import random
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.faults.changes.file_changes import change_one_of
from tests.faults.changes.json_changes import sign
from tests.faults.folders import FOLDERS, make_folder, use_folder

import wsabie
from wsabie.core.errors import WsabieError


@pytest.mark.parametrize("name", ["wsabie", "nearest", "space", "checkpoint", "shards"])
def test_a_changed_folder_is_refused_in_a_sentence_or_usable(name: str, tmp_path: Path) -> None:
    """`make faults` tries thousands."""
    original, copy, refusals = tmp_path / "original", tmp_path / "m", list[str]()
    make_folder(name, original)
    assert _refusal(name, shutil.copytree(original, copy)) == ""
    for number in range(20):
        shutil.rmtree(copy)
        shutil.copytree(original, copy)
        change_one_of(random.Random(number), copy, "**/*.*")  # noqa: S311
        refusals.append(_refusal(name, copy))
    assert sum(map(bool, refusals)) > 8
    assert not any("\n" in refusal for refusal in refusals)


def _refusal(name: str, folder: Path) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use_folder(name, folder)
    except WsabieError as error:
        return str(error)
    return ""


def test_every_kind_of_folder_is_among_those_that_are_changed() -> None:
    from wsabie.models.loader import KINDS

    assert {*KINDS} <= {*FOLDERS}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("folders")
    for name in ("wsabie", "space", "embeddings"):
        make_folder(name, path / name)
    return path


@pytest.mark.parametrize(
    ("name", "keys", "value", "sentence"),
    [
        ("wsabie", ["config", "n_features"], "30", r"its config at n_features: expected int, got str"),
        ("wsabie", ["config", "n_features"], 10**12, r"the sizes of scaling/weight do not agree with the rest"),
        ("wsabie", ["config", "label_names", 3], None, r"its config at label_names\[3\]: expected str, got null"),
        ("wsabie", ["config", "history", 0, "loss"], [], r"its config at history\[0\].loss: expected float, got array"),
        ("wsabie", ["config", "scaling"], "square", r"its config at scaling: invalid enum value 'square'"),
        ("wsabie", ["config", "parameters", "dim"], "16", r"its parameter dim: expected int, got str"),
        ("wsabie", ["tensors", "bias", "shape"], ["12"], r"at tensors\[...\]\.shape\[0\]: expected int, got str"),
        ("wsabie", ["tensors", "bias", "sha256"], "x", r"at tensors\[...\]\.sha256"),
        ("space", ["config", "kinds", "tag", "n_features"], -1, r"n_features: expected int >= 0"),
        ("space", ["config", "relations", 0, 2], "other", r"its relations name the kinds other, which there are not"),
        ("embeddings", ["config", "ids", 0], 7, r"its config at ids\[0\]: expected str, got int"),
    ],
)
def test_a_wrong_value_is_named_with_its_field(
    folders: Path, tmp_path: Path, name: str, keys: list[Any], value: Any, sentence: str
) -> None:
    shutil.copytree(folders / name, tmp_path / "m")
    file = tmp_path / "m" / "config.json"
    pointer = json.loads(file.read_bytes())
    del pointer["sha256"]
    inside: Any = pointer
    for key in keys[:-1]:
        inside = inside[key]
    inside[keys[-1]] = value
    file.write_bytes(sign(pointer))
    with pytest.raises(WsabieError, match=sentence):
        wsabie.EmbeddingSet.load(tmp_path / "m") if name == "embeddings" else wsabie.load(tmp_path / "m")


def test_shards_whose_manifest_does_not_add_up_are_refused(tmp_path: Path) -> None:
    make_folder("shards", tmp_path / "m")
    file = tmp_path / "m" / "manifest.json"
    for key, value, sentence in (
        ("rows", 41, "its shards do not add up"),
        ("labels", -1, r"at facts\.labels: expected int >= 0"),
        ("features", 2**30, "other_files does not fit facts.features"),
    ):
        content = json.loads(file.read_bytes())
        del content["sha256"]
        content["facts"][key] = value
        original = file.read_bytes()
        file.write_bytes(sign(content))
        with pytest.raises(WsabieError, match=sentence):
            wsabie.open_shards(tmp_path / "m")
        file.write_bytes(original)
