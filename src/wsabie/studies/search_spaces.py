"""What tuning tries: for every kind of model its parameters with the values they may take, as data.

A further kind of model is one more `ModelKind` in `KINDS`, under a name of `wsabie.models.systems`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wsabie.base.errors import InputError
from wsabie.base.validation import require
from wsabie.labels.names import closest
from wsabie.models import defaults
from wsabie.models.defaults import Shape
from wsabie.models.systems import build, parameters_of

Values = dict[str, Any]


@dataclass(frozen=True)
class Choice:
    """One of some values."""

    values: tuple[Any, ...]

    def holds(self, value: Any) -> bool:
        """Whether a value is one of them."""
        return value in self.values

    def as_dict(self) -> Any:
        """As JSON and TOML write it."""
        return list(self.values)


@dataclass(frozen=True)
class Range:
    """Any number from `low` to `high`.

    Attributes
    ----------
    low, high : float
    log : bool
        Drawn evenly on a logarithmic scale.
    relative : bool
        The numbers are multiples of what the default stands for with these data.
    """

    low: float
    high: float
    log: bool = False
    relative: bool = False

    def holds(self, value: Any) -> bool:
        """Whether a value is a number between the ends."""
        return isinstance(value, (int, float)) and self.low <= value <= self.high

    def as_dict(self) -> Any:
        """As JSON and TOML write it."""
        return {"low": self.low, "high": self.high, "log": self.log, "relative": self.relative}


SearchSpace = dict[str, Choice | Range]


@dataclass(frozen=True)
class ModelKind:
    """A kind of model that can be tuned.

    Attributes
    ----------
    name : str
    build : callable
        Makes an unfitted estimator from parameters by name. Its `check_parameters` and `fit(X, Y, label_names=)` are
        called, `fit` with validation, metric and on_epoch as far as it takes them.
    space : mapping of str to Choice or Range
        What is tried unless the user says otherwise, in the order of tables and axes.
    auto : callable
        (shape, parameters) -> the numbers that defaults such as "auto" stand for with these data, by parameter.
    whole : frozenset of str
        Parameters that are whole numbers.
    untuned : frozenset of str
        Parameters that make no better model: they have options of their own.
    stepwise : bool
        `fit` reports the figure of every epoch; a model that does not is judged when it is done.
    validated : bool
        `fit` needs validation rows.
    """

    name: str
    build: Callable[..., Any]
    space: Mapping[str, Choice | Range]
    auto: Callable[[Shape, Mapping[str, Any]], Mapping[str, float]]
    whole: frozenset[str] = frozenset()
    untuned: frozenset[str] = frozenset({"seed", "threads", "deterministic", "linear__deterministic"})
    stepwise: bool = True
    validated: bool = False

    def defaults(self) -> dict[str, Any]:
        """Every parameter with its default."""
        if self.name in KINDS:
            return parameters_of(self.name)
        found: dict[str, Any] = self.build().get_params()
        return found


@dataclass(frozen=True)
class Search:
    """What is fixed and what is tried, for one kind of model.

    Attributes
    ----------
    kind : ModelKind
    fixed : dict
        Parameters that every trial has.
    space : dict of str to Choice or Range
    """

    kind: ModelKind
    fixed: Values
    space: SearchSpace

    def parameters(self, drawn: Mapping[str, Any], shape: Shape) -> Values:
        """What the estimator is given: multiples of a default become numbers, the rest stays.

        Examples
        --------
        >>> shape = Shape(n_rows=100, n_pairs=100, n_labels=10)
        >>> search({"dim": 50}).parameters({"learning_rate": 2.0, "epochs": 0.5}, shape)
        {'dim': 50, 'learning_rate': 0.06, 'epochs': 15}
        """
        given = {**self.fixed, **drawn}
        auto = self.kind.auto(shape, {**self.kind.defaults(), **given})
        for name, value in drawn.items():
            along = self.space[name]
            if isinstance(along, Range):
                number = value * auto[name] if along.relative else value
                whole = max(1, round(number)) if along.relative else round(number)
                given[name] = whole if name in self.kind.whole else float(f"{number:.4g}")
        return given

    def resolved(self, parameters: Mapping[str, Any], shape: Shape) -> Values:
        """The values of all parameters of the space, of every "auto" the number that it stands for."""
        given = {**self.kind.defaults(), **parameters}
        auto = self.kind.auto(shape, given)
        return {
            name: auto[name] if given[name] in ("auto", None) and name in auto else given[name] for name in self.space
        }

    def start(self, shape: Shape) -> Values | None:
        """The place of the defaults in the space; None when they lie outside."""
        found = self.resolved(self.fixed, shape)
        for name, along in self.space.items():
            if isinstance(along, Range) and along.relative:
                found[name] = 1.0
            elif isinstance(along, Choice) and not along.holds(found[name]):
                found[name] = self.kind.defaults()[name]  # "auto" may be one of the choices
        return found if all(along.holds(found[name]) for name, along in self.space.items()) else None

    def as_dict(self) -> dict[str, Any]:
        """As JSON writes it; two searches are the same when this is."""
        space = {name: along.as_dict() for name, along in self.space.items()}
        return {"kind": self.kind.name, "fixed": self.fixed, "space": space}


def search(changes: Mapping[str, Any] | None = None, kind: str = "wsabie") -> Search:
    """The space of a kind of model after the user's changes.

    Parameters
    ----------
    changes : mapping or None
        By parameter: a value, which fixes it; a list, of which one is taken; or a table {low, high, log, relative} of
        numbers between two ends. "none" is None.
    kind : str
        Of `KINDS`.

    Raises
    ------
    InputError
        An unknown parameter, or values that it cannot take.

    Examples
    --------
    >>> found = search({"dim": 50, "margin": {"low": 0.5, "high": 2.0}})
    >>> found.fixed, found.space["margin"], "dim" in found.space
    ({'dim': 50}, Range(low=0.5, high=2.0, log=False, relative=False), False)
    """
    if kind not in KINDS:
        raise InputError(f"there is no kind of model called {kind!r} to tune; choose from {', '.join(KINDS)}")
    return search_of(KINDS[kind], changes)


def search_of(model: ModelKind, changes: Mapping[str, Any] | None = None) -> Search:
    """As `search`, of a kind of model that has no name there."""
    known = [name for name in model.defaults() if name not in model.untuned]
    fixed: Values = {}
    space: SearchSpace = dict(model.space)
    for name, change in (changes or {}).items():
        _refuse_unknown(name, known, model)
        place = space.pop(name, None)
        if isinstance(change, list):
            require(len(change) > 0, f"the list of values of {name} is empty; name at least one")
            space[name] = Choice(tuple(_value(value) for value in change))
        elif isinstance(change, Mapping) and not set(change) <= {"V", "W"}:
            space[name] = _range(name, change, place, model)
        else:
            fixed[name] = _value(change)
    order = [*model.space, *(name for name in space if name not in model.space)]
    found = Search(model, fixed, {name: space[name] for name in order if name in space})
    _refuse_unusable(found)
    return found


def _value(given: Any) -> Any:
    return None if given == "none" else given


def _range(name: str, given: Mapping[str, Any], place: Choice | Range | None, kind: ModelKind) -> Range:
    form = f"the space of {name} is {dict(given)!r}; write {{low = ..., high = ..., log = true or false"
    relative = name in kind.auto(Shape(1, 1, 1), kind.defaults())
    form += ", relative = true or false}" if relative else "}"
    known = {"low", "high", "log"} | ({"relative"} if relative else set())
    require({"low", "high"} <= set(given) <= known, form)
    require(all(isinstance(given.get(flag, False), bool) for flag in ("log", "relative")), form)
    log = bool(given.get("log", isinstance(place, Range) and place.log))
    for end in ("low", "high"):
        number = isinstance(given[end], (int, float)) and not isinstance(given[end], bool)
        require(number and math.isfinite(given[end]), form)
    low, high = float(given["low"]), float(given["high"])
    require(low < high, f"the space of {name} runs from {low:g} to {high:g}; give a low end below the high one")
    require(low > 0 or not log, f"the space of {name} is logarithmic from {low:g} on; begin above 0, or leave log out")
    return Range(low, high, log, bool(given.get("relative", False)))


def _refuse_unknown(name: str, known: list[str], kind: ModelKind) -> None:
    if name in kind.untuned:
        raise InputError(f"{name} is an option of its own and not tuned; give it on the command line")
    if name not in known:
        near = closest(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the parameters are {', '.join(sorted(known))}"
        raise InputError(f"there is no parameter {name} to tune; {hint}")


def _refuse_unusable(found: Search) -> None:
    """Every value, and both ends of every range, must be something that the estimator takes."""
    shape = Shape(1000, 1000, 100)
    settings: list[Values] = [{}]
    for name, along in found.space.items():
        ends = along.values if isinstance(along, Choice) else (along.low, along.high)
        settings += [{name: end} for end in ends]
    for drawn in settings:
        found.kind.build(**found.parameters(drawn, shape)).check_parameters()


def _auto_of_points(shape: Shape, parameters: Mapping[str, Any]) -> Values:
    return {
        "learning_rate": defaults.learning_rate(shape, parameters["positives"]),
        "epochs": defaults.epochs(shape),
        "max_norm": defaults.MAX_NORM,
        "init_scale": float(parameters["dim"]) ** -0.5,
    }


def _auto_of_weights(shape: Shape, parameters: Mapping[str, Any]) -> Values:
    rate = defaults.weight_rate(shape, parameters["positives"], parameters["loss"])
    return {"learning_rate": rate, "epochs": defaults.weight_epochs(shape)}


def _auto_of_both(shape: Shape, parameters: Mapping[str, Any]) -> Values:
    rate = _auto_of_weights(shape, parameters)["learning_rate"]
    return {**_auto_of_points(shape, parameters), "linear__learning_rate": rate}


def _nothing_auto(shape: Shape, parameters: Mapping[str, Any]) -> Values:
    return {}


def _kind(name: str, space: SearchSpace, auto: Callable[..., Mapping[str, float]], **rest: Any) -> ModelKind:
    def made(**parameters: Any) -> Any:
        run = {key: parameters.pop(key) for key in ("seed", "threads") if key in parameters}
        return build(name, parameters, **run)

    return ModelKind(name, made, space, auto, frozenset({"dim", "epochs", "max_trials", "patience"}), **rest)


_RATE = Range(0.2, 4.0, log=True, relative=True)
_EPOCHS = Range(0.5, 2.0, log=True, relative=True)
_DIM = Choice((50, 100, 150, 200))
_MARGIN = Range(0.3, 1.5)
_ROWS = Choice(("auto", "tfidf"))
_POSITIVES = Choice(("mean", "pairs"))
_WEIGHTS = Choice(("precision", "top1", "mean_rank"))
_L2 = Choice((0.0, 0.001, 0.01, 0.1))
_PAPER_RATE = Range(0.002, 0.2, log=True)
_POINTS: SearchSpace = {
    "learning_rate": _RATE,
    "epochs": _EPOCHS,
    "dim": _DIM,
    "max_norm": Range(1.0, 3.0),
    "margin": _MARGIN,
    "rank_weight": _WEIGHTS,
    "positives": _POSITIVES,
    "max_trials": Choice((100, 300, "auto")),
    "similarity": Choice(("dot", "cosine", "euclidean")),
    "rows": _ROWS,
    "init_scale": Range(0.3, 3.0, log=True, relative=True),
    "label_bias": Choice((False, True)),
}
_PAIRWISE = ("rank_weight", "max_trials")
"""Nothing of an AUC loss, which has no ranks."""
_WEIGHT_SPACE: SearchSpace = {
    "learning_rate": _RATE,
    "epochs": _EPOCHS,
    "margin": _MARGIN,
    "rank_weight": _WEIGHTS,
    "positives": _POSITIVES,
    "l2": _L2,
    "rows": _ROWS,
    "label_bias": Choice((False, True)),
}


def _without_ranks(space: SearchSpace) -> SearchSpace:
    return {name: along for name, along in space.items() if name not in _PAIRWISE}


KINDS: Mapping[str, ModelKind] = {
    "wsabie": _kind("wsabie", _POINTS, _auto_of_points),
    "wsabie-auc": _kind("wsabie-auc", _without_ranks(_POINTS), _auto_of_points),
    "linear-warp": _kind("linear-warp", _WEIGHT_SPACE, _auto_of_weights),
    "pamir": _kind("pamir", _without_ranks(_WEIGHT_SPACE), _auto_of_weights),
    "full-rank": _kind(
        "full-rank",
        {
            "learning_rate": _RATE,
            "linear__learning_rate": _RATE,
            "epochs": _EPOCHS,
            "dim": _DIM,
            "margin": _MARGIN,
            "rank_weight": _WEIGHTS,
            "positives": _POSITIVES,
            "rows": _ROWS,
        },
        _auto_of_both,
        stepwise=False,
        validated=True,
    ),
    "vse-ens": _kind(
        "vse-ens",
        {
            "learning_rate": _PAPER_RATE,
            "epochs": _EPOCHS,
            "dim": _DIM,
            "l2": _L2,
            "rank_scale": Range(0.001, 1.0, log=True),
            "rows": _ROWS,
        },
        _auto_of_points,
    ),
    "opt-auc": _kind(
        "opt-auc",
        {"learning_rate": _PAPER_RATE, "epochs": _EPOCHS, "dim": _DIM, "l2": _L2, "rows": _ROWS},
        _auto_of_points,
    ),
    "one-vs-rest": _kind(
        "one-vs-rest", {"C": Range(0.1, 10.0, log=True), "rows": _ROWS}, _nothing_auto, stepwise=False
    ),
}
"""Every kind of model that can be tuned, by its name."""
