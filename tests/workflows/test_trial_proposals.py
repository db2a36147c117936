"""Proposals and pruning: within the space, deterministic, and better than chance."""

import sys
from typing import Any

import numpy as np
import pytest

from wsabie.core.errors import InputError
from wsabie.workflows.tune.search_spaces import ChoiceParameter, RangeParameter, SearchSpace
from wsabie.workflows.tune.trial_study import (
    N_RANDOM_TRIALS,
    RunningTrial,
    _decode_value,
    _encode_value,
    _make_distribution,
)

SPACE: SearchSpace = {
    "rate": RangeParameter(0.01, 1.0, log=True),
    "dim": ChoiceParameter((10, 20, 40)),
    "weights": ChoiceParameter(("a", None, [1.0, 0.5])),
}


def compute_quality(place: Any) -> float:
    """Best at rate .1, dim 40 and None."""
    return -abs(np.log10(place["rate"]) + 1) + place["dim"] / 100 + 0.2 * (place["weights"] is None)


def propose(trials: list[Any], seed: int, number: int) -> dict[str, Any]:
    place = RunningTrial(SPACE, trials, seed, number).point
    assert place is not None
    return place


def make_stored_trial(place: dict[str, Any], figure: float | None, *, epochs: int = 1, state: str = "COMPLETE") -> Any:
    optuna = pytest.importorskip("optuna")
    return optuna.create_trial(
        params={name: _encode_value(SPACE[name], value) for name, value in place.items()},
        distributions={name: _make_distribution(optuna, dimension) for name, dimension in SPACE.items()},
        state=optuna.trial.TrialState[state],
        value=figure if state == "COMPLETE" else None,
        intermediate_values={} if figure is None else {1: figure},
        user_attrs={"epochs": epochs},
    )


def run_search(n: int, seed: int = 0) -> list[Any]:
    trials: list[Any] = []
    for number in range(1, n + 1):
        place = propose(trials, seed, number)
        trials.append(make_stored_trial(place, compute_quality(place)))
    return trials


def draw_at_random(n: int) -> list[Any]:
    """Places drawn evenly."""
    rng = np.random.default_rng(0)
    trials = []
    for _ in range(n):
        weights = SPACE["weights"].values[rng.integers(3)]  # type: ignore[union-attr]
        place = {"rate": float(10 ** rng.uniform(-2, 0)), "dim": int(rng.choice([10, 20, 40])), "weights": weights}
        trials.append(make_stored_trial(place, compute_quality(place)))
    return trials


def test_proposals_lie_in_the_space_and_beat_chance() -> None:
    past = draw_at_random(40)
    proposed = [propose(past, 0, number) for number in range(40, 56)]
    assert all(SPACE[name].is_valid(value) for place in proposed for name, value in place.items())
    assert np.mean([compute_quality(place) for place in proposed]) > np.mean([trial.value for trial in past]) + 0.2
    first = [propose(past[: N_RANDOM_TRIALS - 1], 0, number) for number in range(40, 56)]
    assert abs(np.mean([np.log10(place["rate"]) for place in first]) + 1) < 0.4


def test_equal_history_gives_equal_proposals() -> None:
    first, two = run_search(12), run_search(12)
    assert [trial.params for trial in first] == [trial.params for trial in two]
    assert [trial.params for trial in run_search(3, seed=1)] != [trial.params for trial in first[:3]]
    assert propose(first, 0, 13) == propose(two, 0, 13)
    best = max(first, key=lambda trial: trial.value)
    place = {name: _decode_value(SPACE[name], value) for name, value in best.params.items()}
    half = make_stored_trial(place, best.value, epochs=2, state="PRUNED")
    stopped = [half if trial is best else trial for trial in first]
    assert propose(stopped, 0, 13) != propose(first, 0, 13)


def test_failed_and_stopped_trials_are_accepted(capfd: pytest.CaptureFixture[str]) -> None:
    optuna = pytest.importorskip("optuna")
    verbosity = optuna.logging.get_verbosity()
    trials = [*run_search(10), make_stored_trial({"rate": 0.5, "dim": 10, "weights": "a"}, None, state="FAIL")]
    trials.append(make_stored_trial({"rate": 0.5, "dim": 20, "weights": [1.0, 0.5]}, 0.1, epochs=4, state="PRUNED"))
    assert set(propose(trials, 0, 12)) == set(SPACE)
    assert capfd.readouterr() == ("", "")
    assert optuna.logging.get_verbosity() == verbosity


@pytest.mark.parametrize("place", [{}, {"rate": -1.0}, {"dim": 11}, {"dim": "20"}, {"weights": "[[]]"}])
def test_trial_outside_of_the_space_is_refused(place: dict[str, Any]) -> None:
    trial = make_stored_trial({"rate": 0.5, "dim": 20, "weights": "a"}, 0.5)
    trial.params = trial.params | place if place else {"rate": 0.5}
    with pytest.raises(InputError, match=r"outside of the search \(.*; name another folder"):
        propose([trial], 0, 12)


def test_pruning_compares_trials_at_quarter_and_half() -> None:
    """The better half goes on, after a quarter and after a half, whatever the number of epochs."""

    def run(figure: float, epochs: int, rivals: list[Any], state: str = "done") -> tuple[Any, list[int]]:
        """The trial, and the epochs after which it was behind."""
        live = RunningTrial({}, rivals, 0, len(rivals) + 1)
        figures = [figure] * epochs
        behind = [n for n in range(1, epochs + 1) if live.is_behind(figures[:n], epochs)]
        return live.finish(state, figures, parameters={}, epochs=epochs, reason="", seconds=0.0), behind

    rivals: list[Any] = []
    for i in range(4, 0, -1):
        rivals.append(run(0.1 * i, 8, rivals)[0])
    assert run(0.0, 40, rivals)[1][0] == 10
    assert not run(0.35, 40, rivals)[1]
    assert run(0.25, 40, rivals)[1][0] == 10
    assert not run(0.0, 40, [])[1]
    live = RunningTrial({}, rivals, 0, 5)
    assert [live.is_behind([0.0] * n, 40) for n in (9, 10, 11)] == [False, True, False]
    free = RunningTrial({}, rivals, 0, 5, halving=False)
    assert not any(free.is_behind([0.0] * n, 40) for n in range(1, 41))


def test_missing_optuna_error_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"tuning needs Optuna.*pip install 'wsabie\[tune\]'"):
        RunningTrial(SPACE, [], 0, 0)
