"""The journal: a kill loses one line at most, and nothing that is not ours is written over."""

import csv
import errno
import fcntl
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.workflows.tune.trial_journal import Trial, find_best_trial, open_journal, write_trials_csv

NAMED = {"data": ["abc", None], "seed": 0}


def trial(number: int, *figures: float, state: str = "done") -> Trial:
    return Trial(number, {"dim": 50}, {"dim": 50}, 4, list(figures), state, "", 1.5)  # type: ignore[arg-type]


def test_trials_come_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "trials.jsonl"
    made = [trial(0, 0.1, 0.3, 0.2), trial(1, 0.2, state="stopped")]
    with open_journal(path, NAMED) as log:
        for one in made:
            log.add(one)
    with open_journal(path, NAMED) as log:
        assert log.trials == made
        assert log.seconds == 3.0
        log.add(trial(2))
    with open_journal(path, NAMED) as log:
        assert len(log.trials) == 3


def test_the_best_epoch_and_the_best_trial() -> None:
    trials = [trial(0, 0.1, 0.3, 0.3), trial(1, 0.9, state="stopped"), trial(2, 0.3), trial(3, state="failed")]
    assert (trials[0].figure, trials[0].epoch) == (0.3, 2)
    assert (trials[3].figure, trials[3].epoch) == (None, 0)
    assert find_best_trial(trials) is trials[0]
    assert find_best_trial([trials[1], trials[3]]) is None


@settings(deadline=None, max_examples=60)
@given(cut=st.integers(0, 400))
def test_a_kill_at_any_byte_loses_one_trial_at_most(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "trials.jsonl"
    with open_journal(path, NAMED) as log:
        for number in range(2):
            log.add(trial(number, 0.5))
    content = path.read_bytes()
    path.write_bytes(content[:cut])
    whole = content[:cut].count(b"\n") - 1
    with open_journal(path, NAMED) as log:
        assert len(log.trials) == max(whole, 0)
        log.add(trial(9, 0.5))
    with open_journal(path, NAMED) as log:
        assert log.trials[-1].number == 9


def test_another_search_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    with open_journal(path, NAMED):
        pass
    before = path.read_bytes()
    for other, said in (({"data": ["xyz", None]}, "holds trials with other data"), ({"seed": 1}, "another seed")):
        with pytest.raises(InputError, match=said), open_journal(path, NAMED | other):
            pass
    assert path.read_bytes() == before


def test_a_trial_of_other_types_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    with open_journal(path, NAMED) as log:
        log.add(Trial(0, {}, {}, 1, [0.5], "done", "", 1.0))
    path.write_text(path.read_text().replace('"epochs": 1', '"epochs": [1]'))
    with pytest.raises(InputError, match="damaged at epochs: expected int, got array; name"), open_journal(path, NAMED):
        pass


def test_without_locks_it_is_written_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not every file system has them."""

    def refused(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    with open_journal(tmp_path / "trials.jsonl", NAMED) as begun:
        assert begun.trials == []


def test_one_process_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    with open_journal(path, NAMED), pytest.raises(InputError, match="another run is tuning"), open_journal(path, NAMED):
        pass


@settings(deadline=None)
@given(content=st.one_of(st.binary(min_size=1, max_size=80), st.text('{"tuning": 1}\n[]', max_size=40).map(str.encode)))
def test_any_bytes_are_trials_or_one_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "trials.jsonl"
    path.write_bytes(content)
    message = ""
    try:
        with open_journal(path, NAMED) as log:
            assert log.trials == []
    except InputError as error:
        message = str(error)
        assert path.read_bytes() == content
    else:
        return
    assert str(path.parent) in message


def test_the_table_for_other_programs(tmp_path: Path) -> None:
    write_trials_csv(tmp_path / "trials.csv", [trial(0, 0.25), trial(1, state="failed")], ["dim", "rows"])
    with (tmp_path / "trials.csv").open(newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0] == ["trial", "state", "figure", "best_epoch", "epochs_trained", "seconds", "dim", "rows"]
    assert lines[1] == ["0", "done", "0.250000", "1", "1", "1.50", "50", "default"]
    assert lines[2][:3] == ["1", "failed", ""]
