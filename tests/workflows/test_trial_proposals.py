"""Proposals: in the space, the same for the same past, better than chance, and friendly without Optuna."""

import sys
from typing import Any

import numpy as np
import pytest

from wsabie.core.errors import InputError
from wsabie.workflows.tune.search_spaces import ChoiceParameter, RangeParameter, SearchSpace
from wsabie.workflows.tune.trial_proposals import STARTED, TrialOutcome, propose_trial

SPACE: SearchSpace = {
    "rate": RangeParameter(0.01, 1.0, log=True),
    "dim": ChoiceParameter((10, 20, 40)),
    "weights": ChoiceParameter(("a", None, [1.0, 0.5])),
}


def quality(drawn: Any) -> float:
    """Best at rate .1, dim 40 and None."""
    return -abs(np.log10(drawn["rate"]) + 1) + drawn["dim"] / 100 + 0.2 * (drawn["weights"] is None)


def searched(n: int, seed: int = 0) -> list[TrialOutcome]:
    tried: list[TrialOutcome] = []
    for number in range(n):
        drawn = propose_trial(SPACE, tried, seed, number)
        tried.append(TrialOutcome(drawn, quality(drawn), 1.0))
    return tried


def by_chance(n: int) -> list[TrialOutcome]:
    """Places drawn evenly."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(n):
        weights = SPACE["weights"].values[rng.integers(3)]  # type: ignore[union-attr]
        drawn = {"rate": float(10 ** rng.uniform(-2, 0)), "dim": int(rng.choice([10, 20, 40])), "weights": weights}
        found.append(TrialOutcome(drawn, quality(drawn), 1.0))
    return found


def test_what_is_proposed_lies_in_the_space_and_is_better_than_chance() -> None:
    pytest.importorskip("optuna")
    past = by_chance(40)
    proposed = [propose_trial(SPACE, past, 0, number) for number in range(40, 56)]
    assert all(SPACE[name].holds(value) for drawn in proposed for name, value in drawn.items())
    assert np.mean([quality(drawn) for drawn in proposed]) > np.mean([one.figure or 0.0 for one in past]) + 0.2
    first = [propose_trial(SPACE, past[: STARTED - 1], 0, number) for number in range(40, 56)]
    assert abs(np.mean([np.log10(drawn["rate"]) for drawn in first]) + 1) < 0.4


def test_the_same_past_gives_the_same_place() -> None:
    pytest.importorskip("optuna")
    one, two = searched(12), searched(12)
    assert one == two
    assert searched(3, seed=1) != one[:3]
    stopped = [*one[:11], one[11]._replace(share=0.5)]
    assert propose_trial(SPACE, one, 0, 12) == propose_trial(SPACE, two, 0, 12)
    assert propose_trial(SPACE, stopped, 0, 12) != propose_trial(SPACE, one, 0, 12)


def test_trials_that_failed_or_were_stopped_are_taken(capfd: pytest.CaptureFixture[str]) -> None:
    optuna = pytest.importorskip("optuna")
    before = optuna.logging.get_verbosity()
    tried = [*searched(10), TrialOutcome({"rate": 0.5, "dim": 10, "weights": "a"}, None, 0.1)]
    tried.append(TrialOutcome({"rate": 0.5, "dim": 20, "weights": [1.0, 0.5]}, 0.1, 0.25))
    assert set(propose_trial(SPACE, tried, 0, 12)) == set(SPACE)
    assert capfd.readouterr() == ("", "")
    assert optuna.logging.get_verbosity() == before


@pytest.mark.parametrize("drawn", [{}, {"rate": -1.0}, {"dim": 11}, {"dim": "20"}, {"weights": [[]]}])
def test_a_trial_outside_of_the_space_is_refused(drawn: dict[str, Any]) -> None:
    pytest.importorskip("optuna")
    whole = {"rate": 0.5, "dim": 20, "weights": "a"} | drawn if drawn else drawn
    with pytest.raises(InputError, match="outside of the search; name another folder"):
        propose_trial(SPACE, [TrialOutcome(whole, 0.5, 1.0)], 0, 12)


def test_without_optuna_one_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"tuning needs Optuna.*pip install 'wsabie\[tune\]'"):
        propose_trial(SPACE, [], 0, 0)
