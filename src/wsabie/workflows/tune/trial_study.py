"""Study of a search: trials in an Optuna journal, proposals by its sampler, early stops by its pruner.

A finished trial is one line of the file, so a killed run loses at most the running one; `optuna-dashboard FILE` opens
it, too. Proposals and early stops come from a study in memory that holds the earlier trials alone: the same trials,
seed and number give the same point, wherever a trial runs and however often the search is stopped.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject, to_json_value
from wsabie.core.optional_packages import import_optional
from wsabie.storage.atomic_files import explain_read_errors, explain_write_errors, lock_folder, write_text
from wsabie.storage.schema_validation import check_schema
from wsabie.workflows.compare.comparison_table import format_csv
from wsabie.workflows.tune.search_spaces import ChoiceParameter, ParameterValues, RangeParameter, SearchSpace

if TYPE_CHECKING:
    from optuna import Study

FORMAT = 1
STUDY_NAME = "wsabie tune"
N_RANDOM_TRIALS = 8
"""Random trials before the tree-structured Parzen estimator (Bergstra et al. 2011) takes over."""
TrialOutcome = Literal["done", "stopped", "failed"]
_STATES: Mapping[str, TrialOutcome] = {"COMPLETE": "done", "PRUNED": "stopped", "FAIL": "failed"}
_FOREIGN_FILE = (ValueError, KeyError, TypeError, AttributeError, IndexError, AssertionError)
"""Errors of Optuna on a file that it did not write."""

StoredTrial = Any
"""A `optuna.trial.FrozenTrial`, as the study keeps it."""


@dataclass(frozen=True)
class Trial:
    """A setting and its figures.

    Attributes
    ----------
    number : int
        0 for the defaults.
    point : dict or None
        Its values of the tuned parameters; None if they lie outside the search space, as the defaults may.
    parameters : dict
        Parameters of the estimator.
    epochs : int
        Planned.
    figures : list of float
        The metric on the validation rows after every epoch.
    state : {"done", "stopped", "failed"}
        "stopped" fell behind; "failed" diverged, or did not fit into memory.
    reason : str
        Cause of the failure.
    seconds : float
    """

    number: int
    point: JsonObject | None
    parameters: JsonObject
    epochs: int
    figures: list[float]
    state: TrialOutcome
    reason: str
    seconds: float

    @property
    def figure(self) -> float | None:
        """Figure of the best epoch; None for a failed trial."""
        return max(self.figures, default=None) if self.state != "failed" else None

    @property
    def epoch(self) -> int:
        """Number of the best epoch, from 1; 0 if there is none."""
        return self.figures.index(max(self.figures)) + 1 if self.figures else 0


def find_best_trial(trials: Sequence[Trial]) -> Trial | None:
    """Return the finished trial with the highest figure, the first of equal ones; skip stopped trials."""
    return max(
        (trial for trial in trials if trial.state == "done"),
        key=lambda trial: (trial.figure or 0.0, -trial.number),
        default=None,
    )


class TrialStudy:
    """The trials of one search in its file, locked by one process; opened by `open_study`.

    Attributes
    ----------
    trials : list of Trial
        All finished trials in order.
    stored_trials : list of FrozenTrial
        The same trials as Optuna keeps them.
    """

    def __init__(self, study: "Study", path: Path) -> None:
        self._study, self._path = study, path
        self.stored_trials: list[StoredTrial] = study.get_trials()
        self.trials = [_read_trial(stored, number, path) for number, stored in enumerate(self.stored_trials)]

    def add(self, stored: StoredTrial) -> Trial:
        """Write a finished trial; it is on the disk when this returns."""
        with explain_write_errors(self._path):
            self._study.add_trial(stored)
        self.stored_trials.append(stored)
        self.trials.append(_read_trial(stored, len(self.trials), self._path))
        return self.trials[-1]

    @property
    def seconds(self) -> float:
        """Seconds of all trials."""
        return sum(trial.seconds for trial in self.trials)


@contextmanager
def open_study(path: Path, identity: JsonObject) -> Iterator[TrialStudy]:
    """Open the file of a search, or create it.

    Parameters
    ----------
    path : Path
    identity : dict
        JSON-able: data, settings and versions that must agree for the trials to be comparable.

    Raises
    ------
    InputError
        The file belongs to another search, is locked by another process, is not a study, or cannot be written.
    """
    optuna = require_optuna()
    identity = {"format": FORMAT, **to_json_value(identity)}
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with lock_folder(path.parent), _silence_log(optuna):
        study = _load_study(optuna, path, is_new=not _cut_unfinished_line(path))
        if not study.user_attrs and not study.trials:
            with explain_write_errors(path):
                study.set_user_attr("search", identity)
        _refuse_other_search(study.user_attrs.get("search"), identity, path)
        yield TrialStudy(study, path)


class RunningTrial:
    """A running trial at a point that Optuna proposes, with a pruner that compares it with earlier trials.

    Parameters
    ----------
    space : dict of str to ChoiceParameter or RangeParameter
    earlier_trials : sequence of FrozenTrial
    seed, number : int
    start : dict or None
        Point of the defaults, trial 0; None if they lie outside the space.
    halving : bool
        Stop the trial where it falls behind, by successive halving (Li et al. 2020, ASHA) after a quarter and a half of
        its epochs.

    Attributes
    ----------
    point : dict or None

    Raises
    ------
    InputError
        Optuna is not installed, or a trial lies outside the space.
    """

    def __init__(
        self,
        space: SearchSpace,
        earlier_trials: Sequence[StoredTrial],
        seed: int,
        number: int,
        *,
        start: ParameterValues | None = None,
        halving: bool = True,
    ) -> None:
        optuna = require_optuna()
        pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=2)
        draw_seed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
        with _silence_log(optuna):
            self._study = optuna.create_study(
                direction="maximize",
                sampler=optuna.samplers.TPESampler(n_startup_trials=N_RANDOM_TRIALS, seed=draw_seed),
                pruner=pruner if halving else optuna.pruners.NopPruner(),
            )
            _replay_trials(optuna, self._study, earlier_trials)
            distributions = {name: _make_distribution(optuna, dimension) for name, dimension in space.items()}
            if number == 0 and start is not None:
                self._study.enqueue_trial({name: _encode_value(space[name], start[name]) for name in space})
            self._trial = self._study.ask(distributions if number or start is not None else {})
        values = self._trial.params
        self.point = {name: _decode_value(space[name], values[name]) for name in values} if number else start
        self._quarters = 0

    def is_behind(self, figures: Sequence[float], epochs: int) -> bool:
        """Return True after a quarter or a half of the epochs if too many earlier trials were better there."""
        quarters = 4 * len(figures) // epochs
        if quarters == self._quarters:
            return False
        self._quarters = quarters
        self._trial.report(max(figures), quarters)
        return bool(self._trial.should_prune())

    def finish(self, state: str, figures: Sequence[float], **facts: Any) -> StoredTrial:
        """Return the trial as the study keeps it; `facts` are the other fields of `Trial`."""
        for name, value in {"point": self.point, **facts}.items():
            self._trial.set_user_attr(name, to_json_value(value))
        key = next(key for key, name in _STATES.items() if name == state)
        value = max(figures) if state == "done" else None
        stored = self._study.tell(self._trial, value, require_optuna().trial.TrialState[key])
        stored.intermediate_values = dict(enumerate(figures, 1))
        return stored


def require_optuna() -> ModuleType:
    """Import Optuna, or raise an error that says how to install it."""
    return import_optional("optuna", "tuning needs Optuna", "tune")  # type: ignore[no-any-return]


def write_trials_csv(path: Path, trials: Sequence[Trial], names: Sequence[str]) -> None:
    """Write all trials as a table for other programs, with the values of some parameters."""
    headers, rows = ["trial", "state", "figure", "best_epoch", "epochs_trained", "seconds", *names], []
    for trial in trials:
        figure = "" if trial.figure is None else f"{trial.figure:.6f}"
        cells = [trial.number, trial.state, figure, trial.epoch, len(trial.figures), f"{trial.seconds:.2f}"]
        rows.append([*cells, *(trial.parameters.get(name, "default") for name in names)])
    write_text(path, format_csv(headers, rows))


def _read_trial(stored: StoredTrial, number: int, path: Path) -> Trial:
    figures = [figure for _, figure in sorted(stored.intermediate_values.items())]
    facts = {**stored.user_attrs, "number": number, "figures": figures, "state": _STATES.get(stored.state.name)}
    return check_schema(Trial, facts, path, "name another folder")


def _load_study(optuna: ModuleType, path: Path, *, is_new: bool) -> Any:
    """Return the study of a file; a file of another kind is not changed."""
    journal = optuna.storages.journal
    try:
        lock = journal.JournalFileOpenLock(str(path))
        storage = optuna.storages.JournalStorage(journal.JournalFileBackend(str(path), lock))
        if is_new:
            with explain_write_errors(path):
                return optuna.create_study(storage=storage, study_name=STUDY_NAME, direction="maximize")
        return optuna.load_study(storage=storage, study_name=STUDY_NAME)
    except _FOREIGN_FILE as error:
        remedy = "name another folder, or move it away"
        raise InputError(f"{path} is not a list of trials that tuning wrote; {remedy}") from error


def _cut_unfinished_line(path: Path) -> bool:
    """Cut off a last line that a kill left unfinished; return False if no line is left."""
    with explain_read_errors(path):
        content = path.read_bytes() if path.exists() else b""
    complete = content[: content.rfind(b"\n") + 1]
    if len(complete) < len(content) and b'{"op_code":'.startswith(content[:11]):
        with explain_write_errors(path):
            os.truncate(path, len(complete))
        return bool(complete)
    return bool(content)


def _refuse_other_search(stored: Any, current: JsonObject, path: Path) -> None:
    stored = stored if isinstance(stored, dict) else {}
    require(stored.get("format") == FORMAT, f"{path} was written by another version of wsabie; name another folder")
    for name in dict.fromkeys([*current, *stored]):
        if stored.get(name) != current.get(name):
            difference = "other data" if name == "data" else f"another {name.replace('_', ' ')}"
            values = f"({_abbreviate(stored.get(name))}, now {_abbreviate(current.get(name))})"
            fact = f"{path.parent} holds trials with {difference} {values}, which cannot be compared"
            raise InputError(f"{fact}; name another folder, or move that one away")


def _abbreviate(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _replay_trials(optuna: ModuleType, study: "Study", earlier_trials: Sequence[StoredTrial]) -> None:
    """Replay earlier trials into the study in memory, for its sampler and its pruner."""
    # a failed trial counts as worse than all stopped ones; the sampler ignores a trial outside the space, the
    # pruner compares with it
    states = optuna.trial.TrialState
    for stored in earlier_trials:
        figures, is_done = stored.intermediate_values.values(), stored.state == states.COMPLETE
        evidence = {}
        if stored.state == states.PRUNED:
            share = len(figures) / max(stored.user_attrs["epochs"], 1)
            evidence[round(1000 * share)] = max(figures)
        try:
            study.add_trial(
                optuna.create_trial(
                    params=stored.params,
                    distributions=stored.distributions,
                    state=states.FAIL if not stored.params else states.COMPLETE if is_done else states.PRUNED,
                    value=stored.value if is_done and stored.params else None,
                    intermediate_values=evidence,
                    system_attrs=stored.system_attrs,
                )
            )
        except ValueError as error:
            raise InputError(f"a trial lies outside of the search ({error}); name another folder") from error


def _make_distribution(optuna: ModuleType, dimension: ChoiceParameter | RangeParameter) -> Any:
    """Return Optuna's distribution; numbers of a choice are in order, others are not."""
    distributions = optuna.distributions
    if isinstance(dimension, RangeParameter):
        return distributions.FloatDistribution(dimension.low, dimension.high, log=dimension.log)
    values = dimension.values
    if not dimension.is_ordered:
        return distributions.CategoricalDistribution([_encode_value(dimension, value) for value in values])
    if dimension.step:
        return distributions.IntDistribution(values[0], values[-1], step=dimension.step)
    return distributions.IntDistribution(0, len(values) - 1)


def _encode_value(dimension: ChoiceParameter | RangeParameter, value: Any) -> Any:
    """Return a value as Optuna stores it: itself, its JSON text, or its position among uneven steps."""
    if isinstance(dimension, RangeParameter) or dimension.step:
        return value
    if dimension.is_ordered:
        return dimension.values.index(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else json.dumps(value)


def _decode_value(dimension: ChoiceParameter | RangeParameter, value: Any) -> Any:
    if isinstance(dimension, RangeParameter):
        return value
    return next(choice for choice in dimension.values if _encode_value(dimension, choice) == value)


@contextmanager
def _silence_log(optuna: ModuleType) -> Iterator[None]:
    """Keep Optuna's own log off the terminal, and restore its level afterwards."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)
