"""Search spaces: for every kind of model its parameters with the values they may take, as data.

A further kind of model is one more `TunableModel` in `KINDS`, under a name of `wsabie.models.estimator_specs`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.models.base import parameter_defaults
from wsabie.models.estimator_specs import build_estimator, list_parameters
from wsabie.vocabulary.name_suggestions import find_closest_names

Values = JsonObject
ParameterValues: TypeAlias = Mapping[str, Any]
"""Values of parameters by name."""
_AUC_SPACE = "learning_rate epochs dim max_norm margin pair_weighting similarity scaling init_scale label_bias"
"""An AUC loss has no ranks, so neither `rank_weight` nor `max_sampled`."""
_WARP_SPACE = (
    "learning_rate epochs dim init max_norm margin rank_weight pair_weighting max_sampled similarity scaling label_bias"
)
_PAMIR_SPACE = "learning_rate epochs margin pair_weighting l2 scaling label_bias"
_LINEAR_SPACE = "learning_rate epochs init margin rank_weight pair_weighting l2 scaling label_bias"
_FULL_RANK_SPACE = "learning_rate linear__learning_rate epochs dim init margin rank_weight pair_weighting scaling"
_VSE_SPACE = "learning_rate epochs dim l2 rank_scale scaling"
_OPT_AUC_SPACE = "learning_rate epochs dim l2 scaling"


@dataclass(frozen=True)
class ChoiceParameter:
    """A parameter that takes one of some values."""

    values: tuple[Any, ...]

    @property
    def is_ordered(self) -> bool:
        """True if all values are numbers."""
        return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in self.values)

    @property
    def step(self) -> int | None:
        """Distance between the values, if they are evenly spaced integers in order."""
        first, last, n_steps = self.values[0], self.values[-1], len(self.values) - 1
        if not (n_steps and self.is_ordered and isinstance(first, int) and isinstance(last, int) and first < last):
            return None
        step = (last - first) // n_steps
        return step if self.values == tuple(range(first, last + 1, step or 1)) else None

    def is_valid(self, value: object) -> bool:
        """Return True for one of the values."""
        return value in self.values


@dataclass(frozen=True)
class RangeParameter:
    """A parameter that takes any number from `low` to `high`.

    Attributes
    ----------
    low, high : float
    log : bool
        Sample evenly on a logarithmic scale.
    relative : bool
        The numbers are multiples of the value that the default takes for these data.
    """

    low: float
    high: float
    log: bool = False
    relative: bool = False

    def is_valid(self, value: object) -> bool:
        """Return True for a number within the range."""
        return isinstance(value, (int, float)) and self.low <= value <= self.high


SearchSpace = dict[str, ChoiceParameter | RangeParameter]


@dataclass(frozen=True)
class TunableModel:
    """A kind of model that can be tuned.

    Attributes
    ----------
    name : str
    build : callable
        Makes an unfitted estimator from parameters by name. Tuning calls its `check_parameters` and its
        `fit(X, Y, label_names=)`, with validation, metric and on_epoch as far as `fit` takes them.
    space : mapping of str to ChoiceParameter or RangeParameter
        Tuned parameters unless the user changes them, in the order of tables and axes.
    auto : callable
        (shape, parameters) -> the values that defaults such as "auto" mean for these data, by parameter.
    integers : frozenset of str
        Integer parameters.
    untuned : frozenset of str
        Parameters that make no better model: they have options of their own.
    stepwise : bool
        `fit` reports a figure after every epoch; otherwise the model is evaluated after `fit`.
    validated : bool
        `fit` needs validation rows.
    """

    name: str
    build: Callable[..., Any]
    space: Mapping[str, ChoiceParameter | RangeParameter]
    auto: Callable[[parameter_defaults.TrainingShape, ParameterValues], ParameterValues]
    integers: frozenset[str] = frozenset()
    untuned: frozenset[str] = frozenset({"seed", "threads", "deterministic", "linear__deterministic"})
    stepwise: bool = True
    validated: bool = False

    def defaults(self) -> JsonObject:
        """Return every parameter with its default."""
        if self.name in KINDS:
            return list_parameters(self.name)
        return JsonObject(self.build().get_params())


@dataclass(frozen=True)
class ParameterSpace:
    """Fixed and tuned parameters of one kind of model.

    Attributes
    ----------
    model : TunableModel
    fixed : dict
        Parameters that every trial has.
    space : dict of str to ChoiceParameter or RangeParameter
    """

    model: TunableModel
    fixed: Values
    space: SearchSpace

    def resolve_point(self, point: ParameterValues, shape: parameter_defaults.TrainingShape) -> Values:
        """Return the parameters of an estimator: multiples of a default become numbers.

        Examples
        --------
        >>> shape = parameter_defaults.TrainingShape(n_rows=100, n_pairs=100, n_labels=10)
        >>> build_search_space({"dim": 50}).resolve_point({"learning_rate": 2.0, "epochs": 0.5}, shape)
        {'dim': 50, 'learning_rate': 0.06, 'epochs': 15}
        """
        parameters = {**self.fixed, **point}
        auto = self.model.auto(shape, {**self.model.defaults(), **parameters})
        for name, value in point.items():
            dimension = self.space[name]
            if isinstance(dimension, RangeParameter):
                number = value * auto[name] if dimension.relative else value
                integer = max(1, round(number)) if dimension.relative else round(number)
                parameters[name] = integer if name in self.model.integers else float(f"{number:.4g}")
        return parameters

    def resolve(self, parameters: ParameterValues, shape: parameter_defaults.TrainingShape) -> Values:
        """Return the values of all parameters of the space, with numbers instead of "auto"."""
        defaults = self.model.defaults()
        values = {**defaults, **parameters}
        auto = self.model.auto(shape, values)
        return {
            name: auto[name] if values[name] == defaults[name] and name in auto else values[name] for name in self.space
        }

    def locate_defaults(self, shape: parameter_defaults.TrainingShape) -> Values | None:
        """Return the point of the defaults in the space; None if they lie outside."""
        point = self.resolve(self.fixed, shape)
        for name, dimension in self.space.items():
            if isinstance(dimension, RangeParameter) and dimension.relative:
                point[name] = 1.0
            elif isinstance(dimension, ChoiceParameter) and not dimension.is_valid(point[name]):
                point[name] = self.model.defaults()[name]  # "auto" may be one of the choices
        return point if all(dimension.is_valid(point[name]) for name, dimension in self.space.items()) else None

    def as_dict(self) -> JsonObject:
        """Return JSON values; two searches are the same if these are equal."""
        space = {
            name: list(dimension.values) if isinstance(dimension, ChoiceParameter) else vars(dimension)
            for name, dimension in self.space.items()
        }
        return {"kind": self.model.name, "fixed": self.fixed, "space": space}


def build_search_space(changes: ParameterValues | None = None, kind: str = "wsabie") -> ParameterSpace:
    """Build the search space of a kind of model with the user's changes.

    Parameters
    ----------
    changes : mapping or None
        By parameter: a value, which fixes it; a list of choices; or a table {low, high, log, relative} of a range.
        "none" is None.
    kind : str
        A key of `KINDS`.

    Raises
    ------
    InputError
        An unknown parameter, or values that it cannot take.

    Examples
    --------
    >>> search = build_search_space({"dim": 50, "margin": {"low": 0.5, "high": 2.0}})
    >>> search.fixed, search.space["margin"], "dim" in search.space
    ({'dim': 50}, RangeParameter(low=0.5, high=2.0, log=False, relative=False), False)
    """
    require(kind in KINDS, f"there is no kind of model called {kind!r} to tune; choose from {', '.join(KINDS)}")
    return build_model_search_space(KINDS[kind], changes)


def build_model_search_space(model: TunableModel, changes: ParameterValues | None = None) -> ParameterSpace:
    """Build the search space of a kind of model that has no name in `KINDS`."""
    tunable = [name for name in model.defaults() if name not in model.untuned]
    fixed: Values = {}
    space: SearchSpace = dict(model.space)
    for name, change in (changes or {}).items():
        _refuse_unknown(name, tunable, model)
        default = space.pop(name, None)
        if isinstance(change, list):
            require(len(change) > 0, f"the list of values of {name} is empty; name at least one")
            space[name] = ChoiceParameter(tuple(_parse_value(value) for value in change))
        elif isinstance(change, Mapping) and not set(change) <= {"V", "W"}:
            space[name] = _parse_range(name, change, default, model)
        else:
            fixed[name] = _parse_value(change)
    order = [*model.space, *(name for name in space if name not in model.space)]
    search = ParameterSpace(model, fixed, {name: space[name] for name in order if name in space})
    _refuse_unusable(search)
    return search


def _parse_value(value: Any) -> Any:
    return None if value == "none" else value


def _parse_range(
    name: str, change: ParameterValues, default: ChoiceParameter | RangeParameter | None, model: TunableModel
) -> RangeParameter:
    hint = f"the space of {name} is {dict(change)!r}; write {{low = ..., high = ..., log = true or false"
    relative = name in model.auto(parameter_defaults.TrainingShape(1, 1, 1), model.defaults())
    hint += ", relative = true or false}" if relative else "}"
    allowed = {"low", "high", "log"} | ({"relative"} if relative else set())
    require({"low", "high"} <= set(change) <= allowed, hint)
    require(all(isinstance(change.get(flag, False), bool) for flag in ("log", "relative")), hint)
    log = bool(change.get("log", isinstance(default, RangeParameter) and default.log))
    for end in ("low", "high"):
        is_number = isinstance(change[end], (int, float)) and not isinstance(change[end], bool)
        require(is_number and math.isfinite(change[end]), hint)
    low, high = float(change["low"]), float(change["high"])
    require(low < high, f"the space of {name} runs from {low:g} to {high:g}; give a low end below the high one")
    require(low > 0 or not log, f"the space of {name} is logarithmic from {low:g} on; begin above 0, or leave log out")
    return RangeParameter(low, high, log, bool(change.get("relative", False)))


def _refuse_unknown(name: str, tunable: list[str], model: TunableModel) -> None:
    require(name not in model.untuned, f"{name} is an option of its own and not tuned; leave it out of the space")
    if name not in tunable:
        matches = find_closest_names(name, tunable, n=1)
        hint = f"did you mean {matches[0]}?" if matches else f"the parameters are {', '.join(sorted(tunable))}"
        raise InputError(f"there is no parameter {name} to tune; {hint}")


def _refuse_unusable(search: ParameterSpace) -> None:
    """Refuse a space with a value, or an end of a range, that the estimator does not take."""
    shape = parameter_defaults.TrainingShape(1000, 1000, 100)
    settings: list[Values] = [{}]
    for name, dimension in search.space.items():
        ends = dimension.values if isinstance(dimension, ChoiceParameter) else (dimension.low, dimension.high)
        settings += [{name: end} for end in ends]
    for point in settings:
        search.model.build(**search.resolve_point(point, shape)).check_parameters()


def _resolve_embedding_defaults(shape: parameter_defaults.TrainingShape, parameters: ParameterValues) -> Values:
    is_ridge = parameter_defaults.has_ridge_start(parameters)
    return {
        "learning_rate": parameter_defaults.default_embedding_rate(parameters, shape),
        "epochs": parameter_defaults.default_epochs(shape, is_ridge=is_ridge),
        "max_norm": parameter_defaults.default_max_norm(parameters, shape),
        "init": "ridge" if is_ridge else "random",
        "init_scale": float(parameters["dim"]) ** -0.5,
    }


def _resolve_linear_defaults(shape: parameter_defaults.TrainingShape, parameters: ParameterValues) -> Values:
    return {
        "learning_rate": parameter_defaults.default_linear_rate(parameters, shape),
        "epochs": parameter_defaults.default_linear_epochs(shape),
        "init": "ridge" if parameter_defaults.has_ridge_start(parameters) else "random",
    }


def _resolve_full_rank_defaults(shape: parameter_defaults.TrainingShape, parameters: ParameterValues) -> Values:
    rate = _resolve_linear_defaults(shape, parameters)["learning_rate"]
    return {**_resolve_embedding_defaults(shape, parameters), "linear__learning_rate": rate}


def _make_kind(
    name: str, space: str, auto: Callable[..., ParameterValues], rate: RangeParameter | None = None, **options: Any
) -> TunableModel:
    """Make a kind of model with these dimensions, and with a range of learning rates of its own."""
    dimensions = select_dimensions(space) | ({} if rate is None else {"learning_rate": rate})

    def build(**parameters: Any) -> Any:
        run = {key: parameters.pop(key) for key in ("seed", "threads") if key in parameters}
        return build_estimator(name, parameters, **run)

    integers = frozenset({"dim", "epochs", "max_sampled", "patience"})
    return TunableModel(name, build, dimensions, auto, integers, **options)


DIMENSIONS: Mapping[str, ChoiceParameter | RangeParameter] = {
    "learning_rate": RangeParameter(0.2, 4.0, log=True, relative=True),
    "linear__learning_rate": RangeParameter(0.2, 4.0, log=True, relative=True),
    "epochs": RangeParameter(0.5, 2.0, log=True, relative=True),
    "dim": ChoiceParameter((50, 100, 150, 200)),
    "init": ChoiceParameter(("ridge", "random")),
    "max_norm": ChoiceParameter((1.0, 1.5, 2.0, 3.0, None)),
    "margin": RangeParameter(0.3, 1.5),
    "rank_weight": ChoiceParameter(("precision", "top1", "mean_rank")),
    "pair_weighting": ChoiceParameter(("mean", "pairs")),
    "max_sampled": ChoiceParameter((100, 300, "auto")),
    "similarity": ChoiceParameter(("dot", "cosine", "euclidean")),
    "scaling": ChoiceParameter(("auto", "tfidf")),
    "init_scale": RangeParameter(0.3, 3.0, log=True, relative=True),
    "label_bias": ChoiceParameter((False, True)),
    "l2": ChoiceParameter((0.0, 0.001, 0.01, 0.1)),
    "rank_scale": RangeParameter(0.001, 1.0, log=True),
    "C": RangeParameter(0.1, 10.0, log=True),
    "negatives": ChoiceParameter((0, 64, 256, 1024)),
}
"""Values of every parameter that is tuned by default, whatever the kind of model."""
_PAPER_RATE = RangeParameter(0.002, 0.2, log=True)


def select_dimensions(names: str) -> SearchSpace:
    """Return the values of parameters, given by their names with spaces between them."""
    return {name: DIMENSIONS[name] for name in names.split()}


KINDS: Mapping[str, TunableModel] = {
    model.name: model
    for model in (
        _make_kind("wsabie", _WARP_SPACE, _resolve_embedding_defaults),
        _make_kind("wsabie-auc", _AUC_SPACE, _resolve_embedding_defaults),
        _make_kind("linear-warp", _LINEAR_SPACE, _resolve_linear_defaults),
        _make_kind("pamir", _PAMIR_SPACE, _resolve_linear_defaults),
        _make_kind("full-rank", _FULL_RANK_SPACE, _resolve_full_rank_defaults, stepwise=False, validated=True),
        _make_kind("vse-ens", _VSE_SPACE, _resolve_embedding_defaults, _PAPER_RATE),
        _make_kind("opt-auc", _OPT_AUC_SPACE, _resolve_embedding_defaults, _PAPER_RATE),
        _make_kind("one-vs-rest", "C scaling", lambda shape, parameters: {}, stepwise=False),
    )
}
"""Every kind of model that can be tuned, by its name."""
