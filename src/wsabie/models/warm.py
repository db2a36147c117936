"""A model that begins with the space of another one: labels by name, features by name or by place."""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from wsabie.base.arrays import Matrix
from wsabie.base.validation import require
from wsabie.models.growth import trainable
from wsabie.models.inputs import Inputs
from wsabie.space.joint import JointSpace

if TYPE_CHECKING:
    from wsabie.models.wsabie import Wsabie


def check_start(model: "Wsabie", start: Any) -> None:
    """Refuse what no model can begin with; InputError."""
    from wsabie.models.wsabie import Wsabie

    usable = isinstance(start, Wsabie) and hasattr(start, "space_")
    require(usable, f"init is {type(start).__name__}; give a fitted Wsabie, such as wsabie.load(FOLDER).model")
    for name in ("dim", "similarity"):
        own, theirs = getattr(model, name), getattr(start.space_, name)
        require(own == theirs, f"init has {name}={theirs!r} and this model {own!r}; set {name}={theirs!r}")


def begun(model: "Wsabie", start: "Wsabie", n_features: int) -> JointSpace:
    """The space before training: the map of `start`, its points of the labels that both have, and no others yet.

    Raises
    ------
    InputError
        The rows are of another width, or were scaled otherwise.
    """
    width, method = start.space_.n_features, start.scaling_.method
    own = model.scaling_
    require(
        own.method == method and n_features == width,
        f"init maps {start.n_features_in_:,} features scaled by {method!r}, and these rows have "
        f"{model.n_features_in_:,} scaled by {own.method!r}; give rows of the same features, or leave "
        "init (--from) out",
    )
    model.scaling_ = start.scaling_  # the map is that of rows scaled so
    space = start.space_.copy()
    labels, bias = space.labels[:0], space.bias[:0]
    blank = replace(space, labels=labels, bias=bias)
    fresh = blank.with_more_labels(len(model.vocabulary_), np.random.default_rng([model.seed, 0]))
    mine, theirs = _shared(model, start)
    fresh.labels[mine] = space.labels[theirs]
    fresh.bias[mine] = space.bias[theirs]
    return fresh


def place_others(model: "Wsabie", start: "Wsabie", rows: Iterable[tuple[Inputs, Matrix]]) -> None:
    """Put labels that `start` lacks at the mean of the points of their rows, which come with their labels."""
    mine, _ = _shared(model, start)
    others = np.setdiff1d(np.arange(len(model.vocabulary_)), mine)
    if not len(others) or not len(mine):
        return
    placed = trainable(model.space_, len(model.vocabulary_), rows, model.seed, others)
    model.space_.labels[others] = placed.labels[others]


def with_features(start: "Wsabie", theirs: Sequence[str], wanted: Sequence[str]) -> "Wsabie":
    """The model with its features in another order, by name; one that it lacks begins at 0.

    Raises
    ------
    InputError
        Less than half of the wanted features are known, or new ones of dense rows, whose scale is not known.
    """
    if list(theirs) == list(wanted):
        return start
    place = {name: i for i, name in enumerate(theirs)}
    found = np.array([place.get(name, -1) for name in wanted], np.int64)
    there = found >= 0
    n, scaling = int(there.sum()), start.scaling_
    require(
        2 * n >= len(wanted),
        f"of the {len(wanted):,} features of the data the model to begin with knows {n:,}; describe the data as it was "
        "described for that model, or leave --from out",
    )
    require(
        scaling.method in ("log", "none") or bool(there.all()),
        f"{len(wanted) - n:,} features are new to the model to begin with, which knows no scale of them; drop them",
    )
    moved = copy(start)
    V = start.space_.features
    added = scaling.n_added
    features = np.zeros((len(wanted) + added, V.shape[1]), V.dtype)
    features[: len(wanted)][there] = V[found[there]]
    features[len(wanted) :] = V[len(theirs) :]
    weight = np.ones(len(wanted), np.float32)
    shift = scaling.shift
    if len(scaling.weight):
        weight[there] = scaling.weight[found[there]]
        weight = np.append(weight, scaling.weight[len(theirs) :])
        shift = shift[found] if len(shift) else shift
        moved.scaling_ = replace(scaling, weight=weight, shift=shift)
    moved.space_ = replace(start.space_, features=features)
    moved.n_features_in_ = len(wanted)
    return moved


def _shared(model: "Wsabie", start: "Wsabie") -> tuple[Any, Any]:
    """Numbers of the labels that both have, in this model and in the other; names as the other one knows them."""
    theirs = np.array([start.vocabulary_.find(name) for name in model.vocabulary_], np.int64)
    mine = np.flatnonzero(theirs >= 0)
    return mine, theirs[mine]
