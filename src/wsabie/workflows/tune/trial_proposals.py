"""Proposals of the next trial from the trials so far; the only module that knows Optuna.

No state is kept between two calls: the same trials, seed and number give the same place, so that an interrupted search
continues as if nothing had happened.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.errors import InputError
from wsabie.workflows.tune.search_spaces import ChoiceParameter, SearchSpace

STARTED = 8
"""Random trials before the tree-structured Parzen estimator (Bergstra et al. 2011) takes over."""


class TrialOutcome(NamedTuple):
    """A place of the search space and its figure.

    Attributes
    ----------
    place : mapping
        By parameter, a value of the space.
    figure : float or None
        None for a failed trial.
    share : float
        Trained share of its epochs; 1 unless it was stopped.
    """

    place: Mapping[str, Any]
    figure: float | None
    share: float


def propose_trial(space: SearchSpace, outcomes: Sequence[TrialOutcome], seed: int, number: int) -> dict[str, Any]:
    """Return a place for trial `number`.

    Raises
    ------
    InputError
        Optuna is not installed, or a trial lies outside the space.
    """
    optuna = require_optuna()
    states = optuna.trial.TrialState
    distributions = {name: _distribution(optuna, values) for name, values in space.items()}
    with _silence_log(optuna):
        sampler = optuna.samplers.TPESampler(n_startup_trials=STARTED, seed=_derive_seed(seed, number))
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for outcome in outcomes:
            is_finished = outcome.figure is not None and outcome.share == 1
            _refuse_outside(space, outcome.place)
            study.add_trial(
                optuna.create_trial(
                    params={name: _encode_value(space[name], outcome.place[name]) for name in space},
                    distributions=distributions,
                    value=outcome.figure if is_finished else None,
                    state=states.COMPLETE if is_finished else states.PRUNED,
                    intermediate_values={}
                    if is_finished or outcome.figure is None
                    else {round(1000 * outcome.share): outcome.figure},
                )
            )
        suggestion = study.ask(distributions).params
    return {name: _decode_value(space[name], value) for name, value in suggestion.items()}


def require_optuna() -> Any:
    """Import Optuna, or raise an error that says how to install it."""
    try:
        import optuna
    except ImportError as error:
        raise InputError("tuning needs Optuna, which is not installed; run: pip install 'wsabie[tune]'") from error
    return optuna


def _refuse_outside(space: SearchSpace, place: Mapping[str, Any]) -> None:
    for name, values in space.items():
        if name not in place or not values.holds(place[name]):
            raise InputError(f"a trial has {name} = {place.get(name)!r}, outside of the search; name another folder")


def _distribution(optuna: Any, values: Any) -> Any:
    """Return Optuna's distribution; choices go by their positions, which are in order if the values are."""
    kinds = optuna.distributions
    if not isinstance(values, ChoiceParameter):
        return kinds.FloatDistribution(values.low, values.high, log=values.log)
    numbers = range(len(values.values))
    if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values.values):
        return kinds.IntDistribution(0, len(numbers) - 1)
    return kinds.CategoricalDistribution(tuple(numbers))


def _encode_value(values: Any, value: Any) -> Any:
    return values.values.index(value) if isinstance(values, ChoiceParameter) else value


def _decode_value(values: Any, value: Any) -> Any:
    return values.values[value] if isinstance(values, ChoiceParameter) else value


def _derive_seed(seed: int, number: int) -> int:
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


@contextmanager
def _silence_log(optuna: Any) -> Iterator[None]:
    """Keep Optuna's own log off the terminal, and restore its level afterwards."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)
