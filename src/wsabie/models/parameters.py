"""Constructor parameters of the estimator: checked in fit, resolved per table, made JSON-able."""

import zlib
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from wsabie.base.arrays import Csr, Matrix
from wsabie.base.errors import InputError
from wsabie.base.machine import available_cores
from wsabie.base.validation import require
from wsabie.models import defaults
from wsabie.space import protocol
from wsabie.space.joint import SIMILARITIES
from wsabie.training.losses import places_of, rank_losses, trials
from wsabie.training.samplers import Sampler
from wsabie.training.settings import Settings

PerTable = float | Mapping[str, float] | Literal["auto"]
TABLES = ("V", "W")
RANK_SAMPLE = 100
"""Uniform labels that tell the rank where draws do not."""

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
"""Numbers above 0, with the words that may stand in their place."""
_FRACTIONS = ("margin", "max_norm")
_MOST = {"dim": 4096, "threads": 1024, "max_trials": 2**31 - 1}


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Refuse values that no training run can use, by name."""
    for name in _CHOICES.keys() & parameters.keys():
        value, choices = parameters[name], _CHOICES[name]
        usable = isinstance(value, (str, bool, np.bool_, type(None))) and value in choices
        require(usable, f"{name} is {value!r}; choose one of {', '.join(map(str, choices))}")
    for name in _WORDS.keys() & parameters.keys():
        _check_number(name, parameters[name], _WORDS[name])
    check_run(parameters["threads"], parameters["seed"])
    rank_losses(parameters["rank_weight"], 2)
    per_table(parameters["learning_rate"], 1.0, "learning_rate")
    per_table(parameters["l2"], 0.0, "l2", least=0.0)
    if parameters.get("init_scale") is not None:
        per_table(parameters["init_scale"], 1.0, "init_scale")
    places_of(parameters["loss"], parameters["order_statistic"])
    sampler = Sampler.given(parameters["sampler"])
    rank_sample(parameters["rank_from"], sampler, parameters["loss"], parameters["surrogate"])
    if parameters["loss"] == "owpc":
        require(parameters["surrogate"] == "hinge", 'loss="owpc" is a sum of hinges; leave surrogate at "hinge"')
        drawn = Sampler.given(parameters["sampler"]) != Sampler() or parameters["rank_from"] not in ("auto", "exact")
        told = 'loss="owpc" scores all labels and draws none; leave sampler at "uniform" and rank_from at "auto"'
        require(not drawn, told)


def check_run(threads: Any, seed: Any) -> None:
    """Refuse what is no number of threads, or no seed."""
    _check_number("threads", threads, (None,))
    require(_is_whole(seed) and 0 <= seed < 2**63, f"seed is {seed!r}; choose a whole number from 0 on")


def _check_number(name: str, value: Any, words: tuple[str | None, ...]) -> None:
    if value is None or isinstance(value, str):
        usable = value in words
    else:
        usable = (is_number if name in _FRACTIONS else _is_whole)(value) and 0 < value <= _MOST.get(name, np.inf)
    kind = "number" if name in _FRACTIONS else "whole number"
    limits = f"from 1 to {_MOST[name]}" if name in _MOST else "above 0"
    require(usable, f"{name} is {value!r}; choose {''.join(f'{w!r} or ' for w in words)}a {kind} {limits}")


def rank_sample(rank_from: str | int, sampler: Sampler, loss: str, surrogate: str = "hinge") -> int:
    """How many labels tell the rank of a violator: 0 for the draws, m for a uniform sample of m, -1 for all.

    Only uniform draws in search of a violator estimate a rank by their number (convention 2); the logistic surrogate
    takes the first draw.

    Examples
    --------
    >>> rank_sample("auto", Sampler(), "warp"), rank_sample("auto", Sampler("frequency"), "warp")
    (0, 100)
    >>> rank_sample("auto", Sampler(), "warp", "logistic"), rank_sample("auto", Sampler(), "auc", "logistic")
    (100, 0)
    """
    from wsabie.kernels.warp import EXACT

    told = sampler.name == "uniform" and (surrogate == "hinge" or loss == "auc")
    named = {"draws": 0, "exact": EXACT, "auto": 0 if told or loss == "auc" else RANK_SAMPLE}
    if isinstance(rank_from, str) and rank_from in named:
        require(
            rank_from != "draws" or told,
            "the number of draws says nothing about the rank when the "
            f"{f'surrogate is {surrogate!r}' if sampler.name == 'uniform' else f'sampler is {sampler.name!r}'}; "
            'choose rank_from="exact" or a number of labels',
        )
        return named[rank_from]
    usable = _is_whole(rank_from) and 1 <= int(rank_from) < 2**31
    require(usable, f"rank_from is {rank_from!r}; choose {', '.join(named)}, or a number of labels to sample")
    return int(rank_from)


def per_table(
    value: PerTable, auto: float | Mapping[str, float], name: str, least: float | None = None
) -> dict[str, float]:
    """A number per table ("V": features, "W": labels) from one number, a mapping or "auto", which stands for `auto`.

    Examples
    --------
    >>> per_table({"V": 0.1}, 0.02, "learning_rate")
    {'V': 0.1, 'W': 0.02}
    """
    given: Mapping[str, Any] = value if isinstance(value, Mapping) else dict.fromkeys(TABLES, value)
    unknown = sorted(set(given) - set(TABLES))
    if unknown:
        raise InputError(f'{name} names the table {unknown[0]!r}; the tables are "V" (features) and "W" (labels)')
    numbers = {table: given.get(table, "auto") for table in TABLES}
    known = auto if isinstance(auto, Mapping) else dict.fromkeys(TABLES, auto)
    numbers = {table: known[table] if isinstance(n, str) and n == "auto" else n for table, n in numbers.items()}
    for number in numbers.values():
        usable = is_number(number) and (number > 0 if least is None else number >= least)
        require(usable, f"{name} is {number!r}; choose a number {'above 0' if least is None else f'from {least:g} on'}")
    return {table: float(n) for table, n in numbers.items()}


def first_scale(value: float | Mapping[str, float] | None, dim: int) -> dict[str, float]:
    """Standard deviation of each table before training, from `init_scale`.

    Examples
    --------
    >>> first_scale({"V": 0.03}, 100)
    {'V': 0.03, 'W': 0.1}
    """
    return per_table("auto" if value is None else value, dim**-0.5, "init_scale")


def resolve(parameters: Mapping[str, Any], shape: defaults.Shape) -> Settings:
    """The settings of a run on data of this shape: every "auto" replaced by its documented value."""
    p = parameters
    rates = per_table(p["learning_rate"], defaults.learning_rate(shape, p["positives"]), "learning_rate")
    l2 = per_table(p["l2"], 0.0, "l2", least=0.0)
    sampler = Sampler.given(p["sampler"])
    named = isinstance(p["rank_weight"], str)
    return Settings(
        loss=p["loss"],
        rank_weight=p["rank_weight"] if named else tuple(float(w) for w in p["rank_weight"]),
        margin=float(p["margin"]),
        max_trials=trials(p["loss"], p["max_trials"], shape.n_labels),
        learning_rate=rates["W"],
        feature_rate=rates["V"],
        bias_rate=rates["W"] if p["label_bias"] else 0.0,
        schedule=p["schedule"],
        max_norm=defaults.MAX_NORM if p["max_norm"] == "auto" else p["max_norm"],
        epochs=defaults.epochs(shape) if p["epochs"] == "auto" else int(p["epochs"]),
        patience=p["patience"],
        threads=p["threads"] or available_cores(),
        deterministic=p["deterministic"],
        seed=p["seed"],
        sampler=sampler,
        surrogate=p["surrogate"],
        rank_sample=rank_sample(p["rank_from"], sampler, p["loss"], p["surrogate"]),
        places=places_of(p["loss"], p["order_statistic"]),
        l2_rows=l2["V"],
        l2_labels=l2["W"],
    )


def continued(
    parameters: Mapping[str, Any],
    fitted: Mapping[str, Any],
    shape: defaults.Shape,
    epochs: int,
    seed: int,
    replayed: bool = False,
) -> Settings:
    """Settings for going on with more rows: "auto" is what the fit made of it, not what the new rows would suggest.

    The steps are a quarter and do not fall; with a buffer of old rows, which holds the old points, they are those of
    the fit and fall to nothing. The seed must not be that of the fit, or the same draws would come again.
    """
    rates = per_table(
        parameters["learning_rate"], {"V": fitted["feature_rate"], "W": fitted["learning_rate"]}, "learning_rate"
    )
    less = 1 if replayed else 4
    now: dict[str, Any] = {"learning_rate": {table: rate / less for table, rate in rates.items()}}
    now["schedule"] = "linear" if replayed else "constant"
    if parameters["max_norm"] == "auto":
        now["max_norm"] = fitted["max_norm"]
    return resolve({**parameters, **now, "epochs": epochs, "seed": seed}, shape)


def is_number(value: Any) -> bool:
    """Whether it is a finite real number, and no bool."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return number and bool(np.isfinite(value))


def _is_whole(value: Any) -> bool:
    """Whether it is an integer: 8.0 is none, NumPy would not take it for a size."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def checksum(inputs: protocol.Inputs, targets: Matrix, sample_weight: Any) -> int:
    """CRC-32 of the training data, so that a checkpoint is not taken for that of other rows."""
    rows = list(inputs) if isinstance(inputs, Csr) else [inputs]
    weights = [] if sample_weight is None else [np.asarray(sample_weight, np.float32)]
    crc = 0
    for array in (*rows, targets.indptr, targets.indices, targets.data, *weights):
        crc = zlib.crc32(np.ascontiguousarray(array).data, crc)
    return crc
