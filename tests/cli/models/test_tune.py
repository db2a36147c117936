"""`wsabie tune`, as a user runs it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wsabie.cli.models.tune import read_changes
from wsabie.core.errors import InputError

pytest.importorskip("optuna")
Cli = Callable[..., Any]
QUICK = ("--threads", 1, "--set", "epochs=3", "--set", "dim=[4, 8]", "--set", "similarity=dot")


def test_tuned_model_is_evaluated_and_the_search_resumes(cli: Cli, rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = cli("tune", rows, "--out", out, "--trials", 2, *QUICK)
    assert result.code == 0, result.err
    assert "the best 2 of 2 trials, by MAP on the validation rows" in result.out
    assert "the same in all of these" in result.err
    names = {"model", "trials.jsonl", "trials.csv", "tuning.html", "parallel.svg"}
    assert {path.name for path in out.iterdir()} == names
    assert cli("annotate", out / "model", rows, "-k", 1).code == 0
    assert cli("evaluate", out / "model", rows).code == 1  # these are its training rows
    again = cli("tune", rows, "--out", out, "--trials", 3, *QUICK, "--json")
    assert again.code == 0, again.err
    assert [trial["number"] for trial in again.json["trials"]] == [0, 1, 2]
    keys = {"schema", "model", "metric", "verdict", "best", "search", "trials", "data", "test"}
    assert set(again.json) == keys
    search = json.loads((out / "trials.jsonl").read_text().splitlines()[1])["user_attr"]["search"]
    assert search["seed"] == 0


def test_folder_with_trials_of_other_data_is_refused(cli: Cli, rows: Path, tmp_path: Path) -> None:
    assert cli("tune", rows, "--out", tmp_path / "out", "--trials", 1, *QUICK).code == 0
    changed_rows = tmp_path / "other.txt"
    changed_rows.write_text(rows.read_text().replace("0 0:1", "1 0:1", 1))
    result = cli("tune", changed_rows, "--out", tmp_path / "out", "--trials", 1, *QUICK)
    assert result.code == 1
    assert "holds trials with other data" in result.err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    result = cli("tune", rows, "--out", tmp_path / "mine", "--trials", 1, *QUICK)
    assert result.code == 1
    assert "notes.txt" in result.err


def test_info_reports_map_for_any_tuning_metric(cli: Cli, rows: Path, tmp_path: Path) -> None:
    assert cli("tune", rows, "--out", tmp_path / "out", "--trials", 1, "--metric", "p@1", *QUICK).code == 0
    info = cli("info", tmp_path / "out" / "model", "--epochs", "--json").json
    best = max(info["history"], key=lambda stats: stats["validation"])
    assert info["validation_map"] == best["validation_metrics"]["MAP"]
    assert info["tuning"]["figure"] == best["validation"]
    assert "metric p@1, trials 1" in cli("info", tmp_path / "out" / "model").out


def test_tuning_extracts_features_once(cli: Cli, pictures: Path, tmp_path: Path) -> None:
    words = ("tune", pictures, "--out", tmp_path / "out", "--n-words", 50, "--hold-out", 0.2, *QUICK)
    first = cli(*words, "--trials", 2)
    assert first.code == 0, first.err
    features_time = (tmp_path / "out" / "model.training" / "features.parquet").stat().st_mtime_ns
    assert cli(*words, "--trials", 3).code == 0
    assert (tmp_path / "out" / "model.training" / "features.parquet").stat().st_mtime_ns == features_time
    picture = next(pictures.glob("*.webp"))
    assert cli("annotate", tmp_path / "out" / "model", picture, "-k", 2).code == 0


def test_tuning_takes_any_extractor(cli: Cli, pictures: Path, tmp_path: Path) -> None:
    words = ("--features", "colour,hog", "--components", 20, "--hold-out", 0.2, "--trials", 2, *QUICK)
    result = cli("tune", pictures, "--out", tmp_path / "out", *words)
    assert result.code == 0, result.err
    assert "colour" in cli("info", tmp_path / "out" / "model").out
    assert cli("annotate", tmp_path / "out" / "model", next(pictures.glob("*.webp")), "-k", 2).code == 0


def test_corel5k_is_tuned(cli: Cli, data_dir: Path, tmp_path: Path) -> None:
    folder = data_dir / "corel5k_mulan"
    train, test = folder / "Corel5k-train-sparse.arff", folder / "Corel5k-test-sparse.arff"
    fixed = ("--set", "epochs=6", "--set", "similarity=dot", "--set", "dim=32")
    ran = cli("tune", train, "--out", tmp_path, "--test", test, "--trials", 4, *fixed, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["test"]["rows"] == 500
    result = cli("evaluate", tmp_path / "model", test, "--json")
    assert result.json["metrics"]["MAP"] == pytest.approx(ran.json["test"]["tuned"]["MAP"]["mean"])
    assert result.json["metrics"]["MAP"] > 0.25


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "dimm=3"), "did you mean dim?"),
        (("--set", "dim"), "--set 'dim' is not NAME=VALUE"),
        (("--set", "dim="), "is not NAME=VALUE"),
        (("--set", "threads=3"), "threads is an option of its own"),
        (("--metric", "p@10"), "with 3 labels p@10 is the same for every model"),
        (("--n-words", "50"), "--n-words is for pictures, sounds and documents, and"),
    ],
)
def test_bad_arguments_give_one_sentence(
    cli: Cli, rows: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    result = cli("tune", rows, "--out", tmp_path / "out", "--trials", 1, *words)
    assert result.code == 1
    assert message in result.err
    assert "Traceback" not in result.err
    assert not (tmp_path / "out" / "model").exists()


def test_search_space_is_read_from_a_file_and_options(tmp_path: Path) -> None:
    file = tmp_path / "space.toml"
    file.write_text(
        'loss = "auc"\nrank_weight = [1.0, 0.5]\n[space]\ndim = [50, 100]\nmargin = {low = 0.5, high = 2}\n'
    )
    changes = read_changes(file, ["dim=64", "scaling=none", "max_norm={low = 1, high = 2}"])
    assert changes == {
        "loss": "auc",
        "rank_weight": [[1.0, 0.5]],
        "dim": 64,
        "margin": {"low": 0.5, "high": 2},
        "scaling": "none",
        "max_norm": {"low": 1, "high": 2},
    }
    file.write_text("space = 3\n")
    with pytest.raises(InputError, match="space is not a table"):
        read_changes(file, [])
