"""The stored study: a kill loses at most one trial, and foreign files are kept."""

import csv
import errno
import fcntl
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.workflows.tune.search_spaces import ChoiceParameter, SearchSpace
from wsabie.workflows.tune.trial_study import (
    RunningTrial,
    Trial,
    TrialStudy,
    find_best_trial,
    open_study,
    write_trials_csv,
)

optuna = pytest.importorskip("optuna")
STUDY_IDENTITY = {"data": ["abc", None], "seed": 0}
SPACE: SearchSpace = {"dim": ChoiceParameter((50, 100, 150))}


def make_trial(number: int, *figures: float, state: str = "done") -> Trial:
    return Trial(number, {"dim": 50}, {"dim": 50}, 4, list(figures), state, "", 1.5)  # type: ignore[arg-type]


def run_trial(study: TrialStudy, *figures: float, state: str = "done") -> Trial:
    """A trial with these figures, written."""
    live = RunningTrial(SPACE, study.stored_trials, 0, len(study.trials), start={"dim": 50})
    return study.add(live.finish(state, figures, parameters=live.point, epochs=4, reason="", seconds=1.5))


def test_trials_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "trials.jsonl"
    with open_study(path, STUDY_IDENTITY) as study:
        stored_trials = [run_trial(study, 0.1, 0.3, 0.2), run_trial(study, 0.2, state="stopped")]
    assert stored_trials[0] == make_trial(0, 0.1, 0.3, 0.2)
    with open_study(path, STUDY_IDENTITY) as study:
        assert study.trials == stored_trials
        assert study.seconds == 3.0
        run_trial(study, state="failed")
    with open_study(path, STUDY_IDENTITY) as study:
        assert len(study.trials) == 3


def test_optuna_reads_the_study(tmp_path: Path) -> None:
    """Optuna's dashboard needs plain parameters, a curve for each trial, and the best one."""
    path = tmp_path / "trials.jsonl"
    with open_study(path, STUDY_IDENTITY) as study:
        stored_trials = [
            run_trial(study, 0.1, 0.3, 0.2),
            run_trial(study, 0.2, state="stopped"),
            run_trial(study, state="failed"),
        ]
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))
    study = optuna.load_study(study_name=None, storage=storage)
    assert [stored.state.name for stored in study.trials] == ["COMPLETE", "PRUNED", "FAIL"]
    assert [stored.params for stored in study.trials] == [stored.point for stored in stored_trials]
    assert study.trials[0].intermediate_values == {1: 0.1, 2: 0.3, 3: 0.2}
    assert study.best_value == 0.3
    assert study.user_attrs["search"]["seed"] == 0


def test_best_epoch_and_best_trial_are_found() -> None:
    trials = [
        make_trial(0, 0.1, 0.3, 0.3),
        make_trial(1, 0.9, state="stopped"),
        make_trial(2, 0.3),
        make_trial(3, state="failed"),
    ]
    assert (trials[0].figure, trials[0].epoch) == (0.3, 2)
    assert (trials[3].figure, trials[3].epoch) == (None, 0)
    assert find_best_trial(trials) is trials[0]
    assert find_best_trial([trials[1], trials[3]]) is None


@settings(deadline=None, max_examples=60)
@given(cut=st.integers(0, 1500))
def test_kill_at_any_byte_loses_at_most_one_trial(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "trials.jsonl"
    with open_study(path, STUDY_IDENTITY) as study:
        for _ in range(2):
            run_trial(study, 0.5)
    content = path.read_bytes()
    path.write_bytes(content[:cut])
    n_trials = content[:cut].count(b"\n") - 2  # two lines say which search it is
    with open_study(path, STUDY_IDENTITY) as study:
        assert len(study.trials) == max(n_trials, 0)
        run_trial(study, 0.25)
    with open_study(path, STUDY_IDENTITY) as study:
        assert study.trials[-1].figures == [0.25]


def test_another_search_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    with open_study(path, STUDY_IDENTITY):
        pass
    contents_before = path.read_bytes()
    for change, message in (({"data": ["xyz", None]}, "holds trials with other data"), ({"seed": 1}, "another seed")):
        with pytest.raises(InputError, match=message), open_study(path, STUDY_IDENTITY | change):
            pass
    assert path.read_bytes() == contents_before


def test_trial_of_other_types_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    with open_study(path, STUDY_IDENTITY) as study:
        run_trial(study, 0.5)
    path.write_text(path.read_text().replace('"epochs":4', '"epochs":[4]'))
    with (
        pytest.raises(InputError, match="damaged at epochs: expected int, got array; name"),
        open_study(path, STUDY_IDENTITY),
    ):
        pass


def test_study_is_written_without_file_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not every file system has them."""

    def refused(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    with open_study(tmp_path / "trials.jsonl", STUDY_IDENTITY) as study:
        assert study.trials == []


def test_one_process_at_a_time_writes_the_study(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    with (
        open_study(path, STUDY_IDENTITY),
        pytest.raises(InputError, match="another command is changing"),
        open_study(path, STUDY_IDENTITY),
    ):
        pass


@settings(deadline=None)
@given(
    content=st.one_of(st.binary(min_size=1, max_size=80), st.text('{"op_code": 014}\n[]', max_size=40).map(str.encode))
)
def test_any_bytes_give_trials_or_one_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "trials.jsonl"
    path.write_bytes(content)
    message = ""
    try:
        with open_study(path, STUDY_IDENTITY) as study:
            assert study.trials == []
    except InputError as error:
        message = str(error)
        assert path.read_bytes() == content
    else:
        return
    assert str(path.parent) in message


def test_trials_are_written_as_csv(tmp_path: Path) -> None:
    write_trials_csv(tmp_path / "trials.csv", [make_trial(0, 0.25), make_trial(1, state="failed")], ["dim", "scaling"])
    with (tmp_path / "trials.csv").open(newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0] == ["trial", "state", "figure", "best_epoch", "epochs_trained", "seconds", "dim", "scaling"]
    assert lines[1] == ["0", "done", "0.250000", "1", "1", "1.50", "50", "default"]
    assert lines[2][:3] == ["1", "failed", ""]
