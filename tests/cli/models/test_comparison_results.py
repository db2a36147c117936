"""Stopped and resumed runs of `wsabie compare`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.nearest_neighbours import NearestNeighbours
from wsabie.workflows.compare import comparison
from wsabie.workflows.compare.result_store import ResultStore
from wsabie.workflows.spaces import method_comparison

Cli = Callable[..., Any]
MODELS = ("--models", "popularity,nearest,wsabie", "--threads", 1)


@pytest.fixture(autouse=True)
def work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, in which finished models are kept."""
    work_folder = tmp_path / "here"
    work_folder.mkdir()
    monkeypatch.chdir(work_folder)
    return work_folder


def fail_with(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


def without_seconds(value: Any) -> Any:
    """A table without what the clock says."""
    if isinstance(value, dict):
        return {k: without_seconds(v) for k, v in value.items() if "seconds" not in k and k != "predict_ms_per_row"}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value


def stop_at(cli: Cli, monkeypatch: pytest.MonkeyPatch, model: type, *words: object, error: Any = None) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(model, "fit", fail_with(error or KeyboardInterrupt()))
        return cli("compare", *words)


def test_resume_completes_a_stopped_comparison(
    cli: Cli, rows: Path, work_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_run = cli("compare", rows, *MODELS, "--json").json
    assert list(work_folder.iterdir()) == []
    stopped = stop_at(cli, monkeypatch, Wsabie, rows, *MODELS, "--json")
    assert stopped.code == 130
    assert [model["name"] for model in stopped.json["models"]] == ["popularity", "nearest"]
    (folder,) = (work_folder / "wsabie-compare").iterdir()
    assert (
        f"2 finished results are kept in {folder.relative_to(work_folder)}; go on with: wsabie compare" in stopped.err
    )
    refused = cli("compare", rows, *MODELS, "--json")
    assert (refused.code, "give --resume to go on from them, or --restart" in refused.err) == (1, True)
    monkeypatch.setattr(NearestNeighbours, "fit", fail_with(AssertionError()))
    resumed = cli("compare", rows, *MODELS, "--json", "--resume")
    assert without_seconds(resumed.json) == without_seconds(full_run)
    assert list(work_folder.iterdir()) == []


def test_ctrl_c_shows_finished_models_and_the_resume_command(
    cli: Cli, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = stop_at(cli, monkeypatch, Wsabie, rows, *MODELS)
    assert "most frequent labels: p@1" in stopped.err
    assert "k nearest neighbours" in stopped.out
    line = stopped.err.strip().splitlines()[-1].partition("go on with: wsabie ")[2]
    assert cli(*line.split()).code == 0
    nothing = stop_at(cli, monkeypatch, Wsabie, rows, "--models", "wsabie", "--threads", 1)
    assert (nothing.code, "stopped before anything was finished" in nothing.err) == (130, True)


@pytest.mark.parametrize("error", [MemoryError("no room"), OSError(28, "No space left on device", "x")])
def test_finished_models_survive_an_error(
    cli: Cli, rows: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    failed = stop_at(cli, monkeypatch, Wsabie, rows, *MODELS, error=error)
    assert (failed.code, "2 finished results are kept in" in failed.err) == (1, True)
    resumed = cli("compare", rows, *MODELS, "--resume", "--restart")
    assert (resumed.code, "leave one of them out" in resumed.err) == (1, True)
    assert cli("compare", rows, *MODELS, "--resume").code == 0


@pytest.mark.parametrize(
    ("change", "setting"),
    [
        (("--seed", 1), "seed, test rows, train rows, valid rows"),
        (("--min-rows", 2), "min_rows"),
        (("--by", "row"), None),
    ],
)
def test_results_of_other_settings_do_not_mix(
    cli: Cli,
    rows: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: tuple[object, ...],
    setting: str | None,
) -> None:
    work = ("--work", tmp_path / "work")
    assert stop_at(cli, monkeypatch, Wsabie, rows, *MODELS, *work).code == 130
    result = cli("compare", rows, *MODELS, *work, *change, "--resume")
    if setting is None:  # the same split, by another name
        assert result.code == 0
        return
    assert result.code == 1
    assert f"holds results with other {setting}" in result.err.replace("parameters, ", "")
    assert stop_at(cli, monkeypatch, Wsabie, rows, *MODELS).code == 130
    result = cli("compare", rows, *MODELS, *change, "--resume")
    assert (result.code, "finished models of the same data with other settings" in result.err) == (1, True)


def test_results_of_other_data_or_versions_do_not_mix(cli: Cli, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stop_at(cli, monkeypatch, Wsabie, rows, *MODELS).code == 130
    with monkeypatch.context() as patch:
        patch.setattr(comparison, "collect_versions", lambda: {"wsabie": "9"})
        result = cli("compare", rows, *MODELS, "--resume")
    assert (result.code, "holds results with other versions" in result.err) == (1, True)
    rows.write_text(rows.read_text().replace("90 9 3\n0 ", "90 9 3\n1 ", 1))
    result = cli("compare", rows, *MODELS, "--resume")
    assert (result.code, "rows, which cannot be compared" in result.err) == (1, True)
    assert cli("compare", rows, *MODELS, "--restart").code == 0


def test_damaged_result_is_refused(cli: Cli, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    assert stop_at(cli, monkeypatch, Wsabie, rows, *MODELS, "--work", work).code == 130
    for file in work.rglob("config.json"):
        file.write_bytes(file.read_bytes()[:-40])
    result = cli("compare", rows, *MODELS, "--work", work, "--resume")
    assert (result.code, "is damaged" in result.err) == (1, True)


def test_report_includes_models_of_a_stopped_run(
    cli: Cli, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (rows, "--models", "wsabie,nearest", "--threads", 1, "--report", tmp_path / "report.html")
    assert stop_at(cli, monkeypatch, NearestNeighbours, *words).code == 130
    monkeypatch.setattr(Wsabie, "fit", fail_with(AssertionError()))
    assert cli("compare", *words, "--resume").code == 0
    assert "epoch" in (tmp_path / "report.html").read_text()


def test_unwritable_folder_does_not_stop_a_comparison(cli: Cli, rows: Path, work_folder: Path) -> None:
    (work_folder / "wsabie-compare").write_text("a file")
    result = cli("compare", rows, "--models", "popularity")
    assert (result.code, "finished models are not kept, for" in result.err) == (0, True)


def test_relations_resume_finished_results(
    cli: Cli, lists: Path, work_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("compare", lists / "lists.toml", "--models", "popularity,wsabie", "--json")
    full_run = cli(*words).json
    finished, add = [], ResultStore.add

    def stop_after_one(self: ResultStore, name: str, result: Any) -> None:
        if finished:
            raise KeyboardInterrupt
        add(self, name, result)
        finished.append(name)

    with monkeypatch.context() as patch:
        patch.setattr(ResultStore, "add", stop_after_one)
        stopped = cli(*words)
    assert stopped.code == 130, stopped.err
    assert json.loads(finished[0])[0] == "all"
    assert stopped.json["relations"].keys() == full_run["relations"].keys()
    with monkeypatch.context() as patch:
        patch.setattr(method_comparison, "collect_versions", lambda: {"wsabie": "9"})
        changed = cli(*words, "--resume")
    assert (changed.code, "holds results with other versions" in changed.err) == (1, True)
    changed = cli(*words, "--resume", "--seed", 3)
    assert (changed.code, "with other settings" in changed.err) == (1, True)
    resumed = cli(*words, "--resume")
    assert resumed.code == 0, resumed.err
    assert without_seconds(resumed.json) == without_seconds(full_run)
    assert list(work_folder.iterdir()) == []
