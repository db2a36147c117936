"""The next place of a search space to try, from the trials so far: the one file that knows Optuna.

Nothing is kept between two calls: the same trials, seed and number give the same place, so that a search that was
stopped goes on as if it had not been.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.errors import InputError
from wsabie.studies.search_spaces import Choice, SearchSpace

STARTED = 8
"""Trials that are drawn at random before the tree-structured Parzen estimator (Bergstra et al. 2011) takes over."""


class Tried(NamedTuple):
    """A place of the space and what came of it.

    Attributes
    ----------
    drawn : mapping
        By parameter, a value of the space.
    figure : float or None
        None for a trial that failed.
    share : float
        Of its epochs that were trained; 1 for a trial that was not stopped.
    """

    drawn: Mapping[str, Any]
    figure: float | None
    share: float


def propose(space: SearchSpace, tried: Sequence[Tried], seed: int, number: int) -> dict[str, Any]:
    """A place for trial `number`.

    Raises
    ------
    InputError
        Optuna is not installed, or a trial is at no place of the space.
    """
    optuna = require_optuna()
    states = optuna.trial.TrialState
    along = {name: _distribution(optuna, values) for name, values in space.items()}
    with _quiet(optuna):
        sampler = optuna.samplers.TPESampler(n_startup_trials=STARTED, seed=_seed(seed, number))
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for one in tried:
            done = one.figure is not None and one.share == 1
            _refuse_outside(space, one.drawn)
            study.add_trial(
                optuna.create_trial(
                    params={name: _inward(space[name], one.drawn[name]) for name in space},
                    distributions=along,
                    value=one.figure if done else None,
                    state=states.COMPLETE if done else states.PRUNED,
                    intermediate_values={} if done or one.figure is None else {round(1000 * one.share): one.figure},
                )
            )
        asked = study.ask(along).params
    return {name: _outward(space[name], value) for name, value in asked.items()}


def require_optuna() -> Any:
    """The package, or one sentence that says how to get it."""
    try:
        import optuna
    except ImportError as error:
        raise InputError("tuning needs Optuna, which is not installed; run: pip install 'wsabie[tune]'") from error
    return optuna


def _refuse_outside(space: SearchSpace, drawn: Mapping[str, Any]) -> None:
    for name, values in space.items():
        if name not in drawn or not values.holds(drawn[name]):
            raise InputError(f"a trial has {name} = {drawn.get(name)!r}, outside of the search; name another folder")


def _distribution(optuna: Any, values: Any) -> Any:
    """Optuna's form; choices go by their numbers, which are in order where the values are."""
    kinds = optuna.distributions
    if not isinstance(values, Choice):
        return kinds.FloatDistribution(values.low, values.high, log=values.log)
    numbers = range(len(values.values))
    if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values.values):
        return kinds.IntDistribution(0, len(numbers) - 1)
    return kinds.CategoricalDistribution(tuple(numbers))


def _inward(values: Any, value: Any) -> Any:
    return values.values.index(value) if isinstance(values, Choice) else value


def _outward(values: Any, value: Any) -> Any:
    return values.values[value] if isinstance(values, Choice) else value


def _seed(seed: int, number: int) -> int:
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Keeps Optuna's own log off the terminal, and leaves it as it was."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
