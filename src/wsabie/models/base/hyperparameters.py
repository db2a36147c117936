"""Checks of the estimators' parameters, and the training settings that follow from them."""

import zlib
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from wsabie.core.arrays import Csr, Matrix
from wsabie.core.errors import InputError
from wsabie.core.machine import count_available_cores
from wsabie.core.validation import require
from wsabie.embedding import protocols
from wsabie.embedding.joint_space import SIMILARITIES
from wsabie.models.base import auto_defaults
from wsabie.training.losses import compute_order_chances, compute_rank_losses, resolve_max_sampled
from wsabie.training.samplers import SamplerConfig
from wsabie.training.settings import TrainingSettings

PerTable = float | Mapping[str, float] | Literal["auto"]
TABLES = ("V", "W")
RANK_SAMPLE = 100
"""Size of the uniform sample of labels that estimates the rank where draws do not."""

_CHOICES: dict[str, tuple[str | bool | None, ...]] = {
    "loss": ("warp", "auc", "owpc", "k-os"),
    "surrogate": ("hinge", "logistic"),
    "similarity": SIMILARITIES,
    "positives": ("mean", "pairs"),
    "schedule": ("linear", "constant"),
    "rows": ("auto", "tfidf", None),
    "label_bias": (False, True),
    "deterministic": (False, True),
}
_WORDS: dict[str, tuple[str | None, ...]] = {
    "dim": (),
    "margin": (),
    "max_norm": ("auto", None),
    "epochs": ("auto",),
    "max_trials": ("auto", None),
    "patience": (None,),
}
"""Parameters that are numbers above 0, with the words that may replace a number."""
_FRACTIONS = ("margin", "max_norm")
_MOST = {"dim": 4096, "threads": 1024, "max_trials": 2**31 - 1}


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise InputError for parameters that no training run can use."""
    for name in _CHOICES.keys() & parameters.keys():
        value, choices = parameters[name], _CHOICES[name]
        usable = isinstance(value, (str, bool, np.bool_, type(None))) and value in choices
        require(usable, f"{name} is {value!r}; choose one of {', '.join(map(str, choices))}")
    for name in _WORDS.keys() & parameters.keys():
        _check_number(name, parameters[name], _WORDS[name])
    check_run(parameters["threads"], parameters["seed"])
    compute_rank_losses(parameters["rank_weight"], 2)
    resolve_per_table(parameters["learning_rate"], 1.0, "learning_rate")
    resolve_per_table(parameters["l2"], 0.0, "l2", least=0.0)
    if parameters.get("init_scale") is not None:
        resolve_per_table(parameters["init_scale"], 1.0, "init_scale")
    compute_order_chances(parameters["loss"], parameters["order_statistic"])
    sampler = SamplerConfig.given(parameters["sampler"])
    resolve_rank_sample(parameters["rank_from"], sampler, parameters["loss"], parameters["surrogate"])
    if parameters["loss"] == "owpc":
        require(parameters["surrogate"] == "hinge", 'loss="owpc" is a sum of hinges; leave surrogate at "hinge"')
        draws_labels = SamplerConfig.given(parameters["sampler"]) != SamplerConfig() or parameters["rank_from"] not in (
            "auto",
            "exact",
        )
        message = 'loss="owpc" scores all labels and draws none; leave sampler at "uniform" and rank_from at "auto"'
        require(not draws_labels, message)


def check_run(threads: Any, seed: Any) -> None:
    """Raise InputError for an invalid number of threads or seed."""
    _check_number("threads", threads, (None,))
    require(_is_whole(seed) and 0 <= seed < 2**63, f"seed is {seed!r}; choose a whole number from 0 on")


def _check_number(name: str, value: Any, words: tuple[str | None, ...]) -> None:
    if value is None or isinstance(value, str):
        usable = value in words
    else:
        usable = (is_finite_number if name in _FRACTIONS else _is_whole)(value) and 0 < value <= _MOST.get(name, np.inf)
    kind = "number" if name in _FRACTIONS else "whole number"
    limits = f"from 1 to {_MOST[name]}" if name in _MOST else "above 0"
    require(usable, f"{name} is {value!r}; choose {''.join(f'{w!r} or ' for w in words)}a {kind} {limits}")


def resolve_rank_sample(rank_from: str | int, sampler: SamplerConfig, loss: str, surrogate: str = "hinge") -> int:
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
    if isinstance(rank_from, str) and rank_from in sample_sizes:
        require(
            rank_from != "draws" or draws_estimate_rank,
            "the number of draws says nothing about the rank when the "
            f"{f'surrogate is {surrogate!r}' if sampler.name == 'uniform' else f'sampler is {sampler.name!r}'}; "
            'choose rank_from="exact" or a number of labels',
        )
        return sample_sizes[rank_from]
    usable = _is_whole(rank_from) and 1 <= int(rank_from) < 2**31
    require(usable, f"rank_from is {rank_from!r}; choose {', '.join(sample_sizes)}, or a number of labels to sample")
    return int(rank_from)


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
        usable = is_finite_number(number) and (number > 0 if least is None else number >= least)
        require(usable, f"{name} is {number!r}; choose a number {'above 0' if least is None else f'from {least:g} on'}")
    return {table: float(n) for table, n in numbers.items()}


def resolve_init_scale(value: float | Mapping[str, float] | None, dim: int) -> dict[str, float]:
    """Return the standard deviation of each table before training, from `init_scale`.

    Examples
    --------
    >>> resolve_init_scale({"V": 0.03}, 100)
    {'V': 0.03, 'W': 0.1}
    """
    return resolve_per_table("auto" if value is None else value, dim**-0.5, "init_scale")


def resolve_settings(parameters: Mapping[str, Any], shape: auto_defaults.TrainingShape) -> TrainingSettings:
    """Return the training settings for data of this shape, every "auto" replaced by its documented value."""
    p = parameters
    rates = resolve_per_table(
        p["learning_rate"], auto_defaults.default_learning_rate(shape, p["positives"]), "learning_rate"
    )
    l2 = resolve_per_table(p["l2"], 0.0, "l2", least=0.0)
    sampler = SamplerConfig.given(p["sampler"])
    is_preset = isinstance(p["rank_weight"], str)
    return TrainingSettings(
        loss=p["loss"],
        rank_weight=p["rank_weight"] if is_preset else tuple(float(w) for w in p["rank_weight"]),
        margin=float(p["margin"]),
        max_trials=resolve_max_sampled(p["loss"], p["max_trials"], shape.n_labels),
        learning_rate=rates["W"],
        feature_rate=rates["V"],
        bias_rate=rates["W"] if p["label_bias"] else 0.0,
        schedule=p["schedule"],
        max_norm=auto_defaults.MAX_NORM if p["max_norm"] == "auto" else p["max_norm"],
        epochs=auto_defaults.default_epochs(shape) if p["epochs"] == "auto" else int(p["epochs"]),
        patience=p["patience"],
        threads=p["threads"] or count_available_cores(),
        deterministic=p["deterministic"],
        seed=p["seed"],
        sampler=sampler,
        surrogate=p["surrogate"],
        rank_sample=resolve_rank_sample(p["rank_from"], sampler, p["loss"], p["surrogate"]),
        places=compute_order_chances(p["loss"], p["order_statistic"]),
        l2_rows=l2["V"],
        l2_labels=l2["W"],
    )


def resolve_continued_settings(
    parameters: Mapping[str, Any],
    fitted: Mapping[str, Any],
    shape: auto_defaults.TrainingShape,
    epochs: int,
    seed: int,
    replayed: bool = False,
) -> TrainingSettings:
    """Return the settings of further training.

    "auto" keeps the value of the fit, whatever the new rows are like. The rate is a quarter of the fit's and constant.
    With a buffer of old rows, which keeps old points in place, it begins as the fit's and falls to 0. The seed must
    differ from the fit's, or the same draws would come again.
    """
    rates = resolve_per_table(
        parameters["learning_rate"], {"V": fitted["feature_rate"], "W": fitted["learning_rate"]}, "learning_rate"
    )
    divisor = 1 if replayed else 4
    overrides: dict[str, Any] = {"learning_rate": {table: rate / divisor for table, rate in rates.items()}}
    overrides["schedule"] = "linear" if replayed else "constant"
    if parameters["max_norm"] == "auto":
        overrides["max_norm"] = fitted["max_norm"]
    return resolve_settings({**parameters, **overrides, "epochs": epochs, "seed": seed}, shape)


def is_finite_number(value: Any) -> bool:
    """Return True for a finite real number that is no bool."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return number and bool(np.isfinite(value))


def _is_whole(value: Any) -> bool:
    """Return True for an integer; 8.0 is none, because NumPy does not accept it as a size."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def compute_checksum(inputs: protocols.Inputs, targets: Matrix, sample_weight: Any) -> int:
    """Return the CRC-32 of the training data, so that a checkpoint is only used with the same rows."""
    rows = list(inputs) if isinstance(inputs, Csr) else [inputs]
    weights = [] if sample_weight is None else [np.asarray(sample_weight, np.float32)]
    crc = 0
    for array in (*rows, targets.indptr, targets.indices, targets.data, *weights):
        crc = zlib.crc32(np.ascontiguousarray(array).data, crc)
    return crc
