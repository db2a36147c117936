"""Parameters of the estimators, their checks, and the training settings that follow from them."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Self, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from wsabie.core.arrays import Csr, Matrix
from wsabie.core.errors import InputError, require
from wsabie.core.machine import MAX_THREADS, resolve_threads
from wsabie.embedding import protocols
from wsabie.embedding.joint_space import SimilarityName
from wsabie.models.base import parameter_defaults
from wsabie.models.base.row_scaling import Scaling
from wsabie.training import rank_losses
from wsabie.training.resolved_settings import Schedule, TrainingSettings
from wsabie.training.samplers import SamplerConfig, resolve_max_sampled
from wsabie.training.training_data import PairWeighting

Auto = Literal["auto"]
PerTable = float | Mapping[str, float] | Auto
TABLES = ("V", "W")
RANK_SAMPLE = 100
"""Size of the uniform sample of labels that estimates the rank where draws do not."""
_MAXIMA = {"dim": 4096, "threads": MAX_THREADS, "max_sampled": 2**31 - 1}


@dataclass(kw_only=True, eq=False, repr=False)
class LoopParameters:
    """Parameters of the ranking loops that rows and relations share; `Wsabie` documents them."""

    epochs: int | Auto = "auto"
    learning_rate: PerTable = "auto"
    similarity: SimilarityName = "dot"
    max_norm: float | Auto | None = "auto"
    loss: rank_losses.LossName = "warp"
    threads: int | None = None
    seed: int = 0
    patience: int | None = None
    init_scale: float | Mapping[str, float] | None = None
    schedule: Schedule = "linear"
    margin: float = 1.0
    rank_weight: rank_losses.RankWeight = "precision"
    max_sampled: int | Auto | None = "auto"

    def _list_parameters(self) -> dict[str, Any]:
        """Return all parameters of training, also those that are fixed in this estimator."""
        estimator: Any = self
        fixed = {field.name: getattr(self, field.name, field.default) for field in fields(TrainingParameters)}
        return {**fixed, **estimator.get_params(deep=False)}

    def _fit_first(self, epochs: int, *data: Any, **options: Any) -> Self:
        """Fit an estimator with another number of epochs than its parameter."""
        estimator: Any = self
        fit_epochs = self.epochs
        try:
            return estimator.set_params(epochs=epochs).fit(*data, **options)  # type: ignore[no-any-return]
        finally:
            estimator.set_params(epochs=fit_epochs)


@dataclass(kw_only=True, eq=False, repr=False)
class TrainingParameters(LoopParameters):
    """Parameters of training on rows.

    An estimator that lacks one repeats its field with `init=False`, and has the default.
    """

    scaling: Scaling = "auto"
    sampler: str | Mapping[str, Any] = "uniform"
    rank_estimator: Literal["auto", "draws", "exact"] | int = "auto"
    surrogate: rank_losses.Surrogate = "hinge"
    order_statistic: Sequence[int] | Sequence[float] | None = None
    l2: float | Mapping[str, float] = 0.0
    pair_weighting: PairWeighting = "mean"
    label_bias: bool = False
    deterministic: bool = True


class _Values(NamedTuple):
    """Values that a type of a parameter admits."""

    choices: tuple[str | bool | None, ...]
    number: type | None = None  # int or float, above 0


@cache
def _list_values(kind: type) -> dict[str, _Values]:
    """Return each parameter's values of an estimator whose type has words and one kind of number."""
    admitted = {}
    for name, hint in get_type_hints(kind.__init__).items():  # type: ignore[misc]
        types = [hint] if get_origin(hint) not in (Union, UnionType) else get_args(hint)
        choices = [choice for part in types for choice in (get_args(part) if get_origin(part) is Literal else ())]
        choices += [False, True] if bool in types else []
        choices += [None] if NoneType in types else []
        numbers = [part for part in types if part in (int, float)]
        literals = sum(part in (bool, NoneType) or get_origin(part) is Literal for part in types)
        if len(numbers) + literals == len(types) and len(numbers) < 2:
            admitted[name] = _Values(tuple(choices), *numbers)
    return admitted


def check_types(kind: type, parameters: Mapping[str, object]) -> None:
    """Raise InputError for a parameter that is neither a word of its type nor a number above 0.

    Examples
    --------
    >>> check_types(TrainingParameters, {"loss": "hinge"})
    Traceback (most recent call last):
    wsabie.core.errors.InputError: loss is 'hinge'; choose one of warp, auc, owpc, k-os
    """
    for name, (choices, number) in _list_values(kind).items():
        value: Any = parameters.get(name)
        if name not in parameters or name in getattr(kind, "_own_limits", ()):
            continue
        if name == "seed":
            require(is_whole(value) and 0 <= value < 2**63, f"seed is {value!r}; choose a whole number from 0 on")
        elif number is not None:
            _check_number(name, value, choices, number)
        else:
            is_usable = isinstance(value, (str, bool, np.bool_, NoneType)) and value in choices
            require(is_usable, f"{name} is {value!r}; choose one of {', '.join(map(str, choices))}")


def _check_number(name: str, value: Any, words: Sequence[str | bool | None], number: type) -> None:
    if value is None or isinstance(value, str):
        is_usable = value in words
    else:
        is_usable = (is_whole if number is int else is_finite_number)(value) and 0 < value <= _MAXIMA.get(name, np.inf)
    noun = "whole number" if number is int else "number"
    limits = f"from 1 to {_MAXIMA[name]}" if name in _MAXIMA else "above 0"
    require(is_usable, f"{name} is {value!r}; choose {''.join(f'{word!r} or ' for word in words)}a {noun} {limits}")


def check_training(parameters: Mapping[str, Any]) -> None:
    """Raise InputError for parameters that no training run can use; `check_types` comes first."""
    rank_losses.compute_rank_losses(parameters["rank_weight"], 2)
    resolve_per_table(parameters["learning_rate"], 1.0, "learning_rate")
    resolve_per_table(parameters["l2"], 0.0, "l2", least=0.0)
    if parameters.get("init_scale") is not None:
        resolve_per_table(parameters["init_scale"], 1.0, "init_scale")
    for name in ("init_model", "init_labels", "init_scale"):
        problem = f'init="ridge" and {name} both say where training begins; leave one out'
        require(parameters.get("init") != "ridge" or parameters.get(name) is None, problem)
    rank_losses.compute_order_chances(parameters["loss"], parameters["order_statistic"])
    sampler = SamplerConfig.from_value(parameters["sampler"])
    resolve_rank_sample(parameters["rank_estimator"], sampler, parameters["loss"], parameters["surrogate"])
    if parameters["loss"] == "owpc":
        require(parameters["surrogate"] == "hinge", 'loss="owpc" is a sum of hinges; leave surrogate at "hinge"')
        draws_labels = sampler != SamplerConfig() or parameters["rank_estimator"] not in ("auto", "exact")
        message = 'loss="owpc" scores every label; leave sampler at "uniform" and rank_estimator at "auto"'
        require(not draws_labels, message)


def resolve_rank_sample(rank_estimator: str | int, sampler: SamplerConfig, loss: str, surrogate: str = "hinge") -> int:
    """Return the number of labels that estimate a rank: 0 for draws, m for a uniform sample, -1 for all.

    The number of draws estimates a rank only if draws are uniform and search a violator (convention 2). The logistic
    surrogate takes the first draw.

    Examples
    --------
    >>> (
    ...     resolve_rank_sample("auto", SamplerConfig(), "warp"),
    ...     resolve_rank_sample("auto", SamplerConfig("frequency"), "warp"),
    ... )
    (0, 100)
    >>> (
    ...     resolve_rank_sample("auto", SamplerConfig(), "warp", "logistic"),
    ...     resolve_rank_sample("auto", SamplerConfig(), "auc", "logistic"),
    ... )
    (100, 0)
    """
    from wsabie.kernels.training.warp import EXACT

    draws_estimate_rank = sampler.name == "uniform" and (surrogate == "hinge" or loss == "auc")
    sample_sizes = {"draws": 0, "exact": EXACT, "auto": 0 if draws_estimate_rank or loss == "auc" else RANK_SAMPLE}
    if isinstance(rank_estimator, str) and rank_estimator in sample_sizes:
        require(
            rank_estimator != "draws" or draws_estimate_rank,
            "the number of draws says nothing about the rank when the "
            f"{f'surrogate is {surrogate!r}' if sampler.name == 'uniform' else f'sampler is {sampler.name!r}'}; "
            'choose rank_estimator="exact" or a number of labels',
        )
        return sample_sizes[rank_estimator]
    is_usable = is_whole(rank_estimator) and 1 <= int(rank_estimator) < 2**31
    problem = f"rank_estimator is {rank_estimator!r}; choose {', '.join(sample_sizes)}, or a number of labels to sample"
    require(is_usable, problem)
    return int(rank_estimator)


def resolve_per_table(
    value: PerTable, auto: float | Mapping[str, float], name: str, least: float | None = None
) -> dict[str, float]:
    """Return a number per table ("V": features, "W": labels) from a number, a mapping or "auto".

    Examples
    --------
    >>> resolve_per_table({"V": 0.1}, 0.02, "learning_rate")
    {'V': 0.1, 'W': 0.02}
    """
    by_table: Mapping[str, Any] = value if isinstance(value, Mapping) else dict.fromkeys(TABLES, value)
    unknown = sorted(set(by_table) - set(TABLES))
    if unknown:
        raise InputError(f'{name} names the table {unknown[0]!r}; the tables are "V" (features) and "W" (labels)')
    numbers = {table: by_table.get(table, "auto") for table in TABLES}
    defaults = auto if isinstance(auto, Mapping) else dict.fromkeys(TABLES, auto)
    numbers = {table: defaults[table] if isinstance(n, str) and n == "auto" else n for table, n in numbers.items()}
    for number in numbers.values():
        is_usable = is_finite_number(number) and (number > 0 if least is None else number >= least)
        require(
            is_usable, f"{name} is {number!r}; choose a number {'above 0' if least is None else f'from {least:g} on'}"
        )
    return {table: float(n) for table, n in numbers.items()}


def resolve_init_scale(value: float | Mapping[str, float] | None, dim: int) -> dict[str, float]:
    """Return the standard deviation of each table before training, from `init_scale`.

    Examples
    --------
    >>> resolve_init_scale({"V": 0.03}, 100)
    {'V': 0.03, 'W': 0.1}
    """
    return resolve_per_table("auto" if value is None else value, dim**-0.5, "init_scale")


def resolve_settings(parameters: Mapping[str, Any], shape: parameter_defaults.TrainingShape) -> TrainingSettings:
    """Return the training settings for data of this shape, every "auto" replaced by its documented value."""
    p = parameters
    rates = resolve_per_table(p["learning_rate"], parameter_defaults.default_embedding_rate(p, shape), "learning_rate")
    l2 = resolve_per_table(p["l2"], 0.0, "l2", least=0.0)
    sampler = SamplerConfig.from_value(p["sampler"])
    is_preset = isinstance(p["rank_weight"], str)
    epochs = parameter_defaults.default_epochs(shape, is_ridge=parameter_defaults.has_ridge_start(p))
    return TrainingSettings(
        loss=p["loss"],
        rank_weight=p["rank_weight"] if is_preset else tuple(float(w) for w in p["rank_weight"]),
        margin=float(p["margin"]),
        max_sampled=resolve_max_sampled(p["loss"], p["max_sampled"], shape.n_labels),
        learning_rate=rates["W"],
        feature_rate=rates["V"],
        bias_rate=rates["W"] if p["label_bias"] else 0.0,
        schedule=p["schedule"],
        max_norm=parameter_defaults.default_max_norm(p, shape) if p["max_norm"] == "auto" else p["max_norm"],
        epochs=epochs if p["epochs"] == "auto" else int(p["epochs"]),
        patience=p["patience"],
        threads=resolve_threads(p["threads"]),
        deterministic=p["deterministic"],
        seed=p["seed"],
        sampler=sampler,
        surrogate=p["surrogate"],
        rank_sample=resolve_rank_sample(p["rank_estimator"], sampler, p["loss"], p["surrogate"]),
        order_statistic_cdf=rank_losses.compute_order_chances(p["loss"], p["order_statistic"]),
        l2_rows=l2["V"],
        l2_labels=l2["W"],
    )


def resolve_continued_settings(
    parameters: Mapping[str, Any],
    fitted: Mapping[str, Any],
    shape: parameter_defaults.TrainingShape,
    epochs: int,
    seed: int,
    replayed: bool = False,
) -> TrainingSettings:
    """Return the settings of further training.

    "auto" keeps the value of the fit, whatever the new rows are like. The rate is a quarter of the fit's and constant.
    With a buffer of old rows, which keeps old points in place, it begins as the fit's, after a ridge start at
    `MAX_RIDGE_RATE`, and falls to 0. The seed must
    differ from the fit's, or the same draws would come again.
    """
    least = parameter_defaults.MAX_RIDGE_RATE if replayed and parameter_defaults.has_ridge_start(parameters) else 0.0
    fitted_rates = {"V": max(fitted["feature_rate"], least), "W": max(fitted["learning_rate"], least)}
    rates = resolve_per_table(parameters["learning_rate"], fitted_rates, "learning_rate")
    divisor = 1 if replayed else 4
    overrides: dict[str, Any] = {"learning_rate": {table: rate / divisor for table, rate in rates.items()}}
    overrides["schedule"] = "linear" if replayed else "constant"
    if parameters["max_norm"] == "auto":
        overrides["max_norm"] = fitted["max_norm"]
    return resolve_settings({**parameters, **overrides, "epochs": epochs, "seed": seed}, shape)


def is_finite_number(value: Any) -> bool:
    """Return True for a finite real number that is not a bool."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return number and bool(np.isfinite(value))


def is_whole(value: Any) -> bool:
    """Return True for an integer; 8.0 is none, because NumPy does not accept it as a size."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def compute_checksum(inputs: protocols.EntityInputs, targets: Matrix, sample_weight: npt.ArrayLike | None) -> int:
    """Return the CRC-32 of the training data, so that a checkpoint is only used with the same rows."""
    rows = list(inputs) if isinstance(inputs, Csr) else [inputs]
    weights = [] if sample_weight is None else [np.asarray(sample_weight, np.float32)]
    crc = 0
    for array in (*rows, targets.indptr, targets.indices, targets.data, *weights):
        crc = zlib.crc32(np.ascontiguousarray(array).data, crc)
    return crc
