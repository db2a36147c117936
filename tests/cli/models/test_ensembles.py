"""`wsabie train --ensemble`, and every command that uses what it saves."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from wsabie.io.formats.parquet_rows import write_parquet_rows
from wsabie.io.records import FeatureTable
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.loader import load

Cli = Callable[..., Any]
SHORT = ("--epochs", 20, "--dim", 8, "--threads", 1)


def test_every_command_takes_an_ensemble(cli: Cli, rows: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    trained = cli("train", rows, "--model", model, "--ensemble", 3, *SHORT)
    assert trained.code == 0, trained.err
    assert re.search(r"rows, 3 models of (\d+ to )?\d+ epochs, validation MAP 1.000", trained.out)
    assert not (tmp_path / "m.training").exists()
    about = cli("info", model, "--json").json
    assert (about["kind"], about["models"], about["by"], about["dimensions"]) == ("ensemble", 3, "seed", 24)
    assert [member["seed"] for member in about["members"]] == [0, 1, 2]
    assert about["parameters"]["estimator"]["dim"] == 8
    assert "fit seconds" in (output := cli("info", model).out)
    assert re.search(r"epochs +3 models of (\d+ to )?\d+ epochs", output)
    assert len(cli("info", model, "--epochs", "--json").json["history"]) == about["epochs"] > 30
    assert cli("info", model, "--epochs").code == 0
    result = cli("evaluate", model, rows, "--allow-overlap", "--json")
    assert result.json["metrics"]["p@1"] == 1.0
    assert cli("annotate", model, rows, "-k", 1, "--json").json["results"][0]["labels"][0][0] == "0"
    assert len(cli("neighbours", model, "1", "--json").json["neighbours"]) == 2


def test_stopped_ensemble_resumes_with_its_next_member(
    cli: Cli, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_run = cli("train", rows, "--model", tmp_path / "a", "--ensemble", 2, *SHORT, "--json")
    work, fit, seeds = tmp_path / "b.training" / "checkpoint", Wsabie.fit, []

    def stop_in_the_second(self: Any, *args: Any, **options: Any) -> Any:
        seeds.append(self.seed)
        if len(seeds) == 2:
            raise KeyboardInterrupt
        return fit(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Wsabie, "fit", stop_in_the_second)
        stopped = cli("train", rows, "--model", tmp_path / "b", "--ensemble", 2, *SHORT)
    assert (stopped.code, "finished epochs are kept" in stopped.err) == (130, True)
    assert (work / "member-0").is_dir()
    resumed = cli("train", rows, "--model", tmp_path / "b", "--ensemble", 2, *SHORT, "--resume", "--json")
    assert resumed.code == 0, resumed.err
    assert [s["loss"] for s in resumed.json["history"]] == [s["loss"] for s in full_run.json["history"]]
    assert resumed.json["models"] == 2


def test_ensemble_by_columns_splits_columns_by_name(cli: Cli, tmp_path: Path) -> None:
    X = sp.csr_matrix(np.kron(np.eye(3), np.ones((10, 4))).astype(np.float32))
    Y = sp.csr_matrix(np.kron(np.eye(3), np.ones((10, 1))).astype(np.int8))
    names = [f"{'colour' if i < 5 else 'shape'}:{i}" for i in range(12)]
    table = FeatureTable(X, Y, ["a", "b", "c"], [str(i) for i in range(30)], feature_names=names)
    write_parquet_rows(table, tmp_path / "rows.parquet")
    options = ("--ensemble", 2, "--ensemble-by", "columns", "--hold-out", 0, *SHORT)
    trained = cli("train", tmp_path / "rows.parquet", "--model", tmp_path / "m", *options)
    assert trained.code == 0, trained.err
    assert [member.columns for member in load(tmp_path / "m").model.members_] == [5, 7]


def test_ensemble_options_need_a_size(cli: Cli, rows: Path, tmp_path: Path) -> None:
    result = cli("train", rows, "--model", tmp_path / "m", "--ensemble-by", "rows")
    assert result.code == 1
    assert "--ensemble-by needs the number of models; add --ensemble N" in result.err
    for option, value, message in (
        ("--similarity", "cosine", "adds up inner products"),
        ("--replay", 10, "an ensemble cannot go on, so that it has nothing to keep rows for; leave replay out"),
    ):
        refused = cli("train", rows, "--model", tmp_path / "m", "--ensemble", 2, option, value)
        assert (refused.code, message in refused.err) == (1, True), refused.err
    refused = cli("train", rows, "--model", tmp_path / "m", "--kind", "full-rank", "--replay", 10)
    assert (refused.code, "a model of kind full-rank cannot go on" in refused.err) == (1, True), refused.err


def test_ensemble_of_two_beats_one_model_on_corel5k(cli: Cli, data_dir: Path, tmp_path: Path) -> None:
    folder = data_dir / "corel5k_mulan"
    train, test = (folder / f"Corel5k-{side}-sparse.arff" for side in ("train", "test"))
    mean_average_precisions = []
    for name, options in (("one", ()), ("two", ("--ensemble", 2))):
        assert (
            cli("train", train, "--model", tmp_path / name, "--epochs", 8, "--set", "init=random", *options).code == 0
        )
        mean_average_precisions.append(cli("evaluate", tmp_path / name, test, "--json").json["metrics"]["MAP"])
    assert mean_average_precisions[1] > mean_average_precisions[0]
