"""Trainings of photos with other features at the command line: both models are shown, and a person switches."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="collections need SQLAlchemy")

from wsabie.samples import get_photo_folder

Cli = Callable[..., Any]


def test_a_model_with_other_features_waits_until_it_is_used(cli: Cli, init: Cli, tmp_path: Path) -> None:
    photos = shutil.copytree(get_photo_folder(), tmp_path / "photos")
    init(photos)
    train = ("collection", "train", photos, "--dim", 8, "--epochs", 3, "--threads", 1)
    assert cli(*train, "--features", "hog").code == 0
    decisions = cli("collection", "status", photos, "--json").json["annotations"]
    second = cli(*train, "--features", "colour")
    assert second.code == 0, second.err
    assert "not put into use: its features are not those of model 1" in second.out
    for row in ("this model", "previous model", "difference"):
        assert f" {row} " in second.out
    assert f"to use it: wsabie collection models {photos} --use 2" in second.err.replace("\n", " ").replace("  ", " ")
    listed = cli("collection", "models", photos, "--json").json["models"]
    assert [(model["id"], model["in_use"], model["facts"]["features"]) for model in listed] == [
        (2, False, "colour"),
        (1, True, "hog"),
    ]
    assert listed[0]["figures"]["previous_metrics"].keys() == listed[0]["figures"]["metrics"].keys()
    assert "not put into use" in cli("collection", "models", photos).out
    again = cli(*train, "--features", "colour", "--json").json
    assert (again["method"], again["model"]) == ("nothing", 1)
    assert "since model 2, which is not in use" in again["reason"]
    cli("collection", "tag", photos, "fish/cat_fish1.jpg", "--accept", "coral reef")
    third = cli(*train, "--json").json
    assert (third["method"], third["model"], third["is_in_use"]) == ("corrections", 3, True)
    switch = cli("collection", "models", photos, "--use", 2, "--json").json["switch"]
    assert (switch["previous_model"], switch["unseen_items"]) == (3, 0)
    after = cli("collection", "status", photos, "--json").json["annotations"]
    assert sum(row["annotations"] for row in after) == sum(row["annotations"] for row in decisions) + 1
    fourth = cli(*train, "--features", "hog", "--accept-worse", "--json").json
    assert (fourth["method"], fourth["is_in_use"]) == ("full", True)
