"""Warm start: a model begins with the space of a fitted one, with the same labels and features."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TypeVar

import numpy as np

from wsabie.core.arrays import Csr, Int64
from wsabie.core.errors import require
from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.tables import draw_gaussian
from wsabie.models.base.feature_matrix import FeatureMatrix, RowParts
from wsabie.models.base.trained_model import TrainedModel

Model = TypeVar("Model", bound=TrainedModel)


def copy_for_training(
    space: JointSpace, n_labels: int, rows: RowParts, seed: int, unseen: Int64 | None = None
) -> JointSpace:
    """Return a copy of the space with `n_labels` labels in padded memory.

    New labels are at the mean of their rows. For dot and cosine they get the mean length of the old labels with a
    point, which merged and removed labels lack.

    Parameters
    ----------
    space : JointSpace
    n_labels : int
        At least as many as the space has.
    rows : iterable of (inputs, targets)
        Scaled rows and their labels, csr_matrix (n, n_labels), all at once or some at a time.
    seed : int
        Seed of the points of labels without a row.
    unseen : (n,) int64 or None
        Numbers of labels of the space that had no row so far; they are treated as new.
    """
    n_old, space = space.n_labels, space.copy()
    unseen = np.zeros(0, np.int64) if unseen is None else unseen
    new_ids = np.append(unseen, np.arange(n_old, n_labels))
    if not len(new_ids):
        return space
    old_labels = np.delete(space.labels, unseen, axis=0)
    norms = np.sqrt(np.einsum("ij,ij->i", old_labels, old_labels))
    norm = float(norms[norms > 0].mean()) if norms.any() else 1.0
    space = space.with_more_labels(n_labels - n_old, np.random.default_rng([seed, 2, n_old]))
    sums, counts = np.zeros_like(space.labels[new_ids]), np.zeros(len(new_ids), np.float32)
    for inputs, targets in rows:
        members = (targets[:, new_ids] > 0).T.astype(np.float32)
        sums += members @ space.compute_points(inputs)
        counts += np.asarray(members.sum(axis=1)).ravel()
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))
    has_rows = lengths > 0
    scale = 1 / counts[has_rows] if space.similarity == "euclidean" else norm / lengths[has_rows]
    space.labels[new_ids[has_rows]] = sums[has_rows] * scale[:, None]
    return space


def place_new_features(space: JointSpace, inputs: FeatureMatrix, seed: int) -> JointSpace:
    """Return the space with random points of features of these rows that no row had before a ridge start.

    Their points are 0 there, and a label that has only such rows would be at 0 too.
    """
    in_rows = np.zeros(space.n_features, bool)
    in_rows[inputs.indices if isinstance(inputs, Csr) else inputs.any(axis=0)] = True
    new_ids = np.flatnonzero(in_rows & ~space.features.any(axis=1))
    if not len(new_ids):
        return space
    features = space.features.copy()
    features[new_ids] = draw_gaussian(len(new_ids), space.dim, space.dim**-0.5, np.random.default_rng([seed, 4]))
    return replace(space, features=features)


def build_warm_space(model: TrainedModel, start: TrainedModel, n_features: int) -> JointSpace:
    """Build the space before training from the map of `start` and its points of shared labels.

    Raises
    ------
    InputError
        The rows have another width or another scaling.
    """
    width, method = start.space_.n_features, start.scaling_.method
    scaling = model.scaling_
    require(
        scaling.method == method and n_features == width,
        f"init_model maps {start.n_features_in_:,} features scaled by {method!r}, and these rows have "
        f"{model.n_features_in_:,} scaled by {scaling.method!r}; give rows of the same features, or leave "
        "`init_model` out",
    )
    model.scaling_ = start.scaling_  # the map belongs to this scaling
    space: JointSpace = start.space_.copy()
    labels, bias = space.labels[:0], space.bias[:0]
    empty_space = replace(space, labels=labels, bias=bias)
    warm_space = empty_space.with_more_labels(len(model.vocabulary_), np.random.default_rng([model.seed, 0]))
    label_ids, start_ids = _match_labels(model, start)
    warm_space.labels[label_ids] = space.labels[start_ids]
    warm_space.bias[label_ids] = space.bias[start_ids]
    return warm_space


def place_new_labels(model: TrainedModel, start: TrainedModel, rows: RowParts) -> None:
    """Put labels that `start` lacks at the mean of the points of their rows."""
    shared_ids, _ = _match_labels(model, start)
    new_ids = np.setdiff1d(np.arange(len(model.vocabulary_)), shared_ids)
    if not len(new_ids) or not len(shared_ids):
        return
    new_space = copy_for_training(model.space_, len(model.vocabulary_), rows, model.seed, new_ids)
    model.space_.labels[new_ids] = new_space.labels[new_ids]


def reorder_features(start: Model, old_names: Sequence[str], new_names: Sequence[str]) -> Model:
    """Return the model with its features in another order, by name; features that it lacks begin at 0.

    Raises
    ------
    InputError
        The model knows less than half of the features, or new features of dense rows have no scale.
    """
    if list(old_names) == list(new_names):
        return start
    old_columns = {name: i for i, name in enumerate(old_names)}
    positions = np.array([old_columns.get(name, -1) for name in new_names], np.int64)
    is_known = positions >= 0
    n, scaling = int(is_known.sum()), start.scaling_
    fact = f"of the {len(new_names):,} features of the data the model to begin with knows {n:,}"
    require(2 * n >= len(new_names), f"{fact}; extract them as for that model, or leave `init_model` out")
    require(
        scaling.method in ("log", "none") or bool(is_known.all()),
        f"{len(new_names) - n:,} features are new to the model to begin with, which knows no scale of them; drop them",
    )
    model = copy(start)
    V = start.space_.features
    features = np.zeros((len(new_names) + scaling.n_added, V.shape[1]), V.dtype)
    features[: len(new_names)][is_known] = V[positions[is_known]]
    features[len(new_names) :] = V[len(old_names) :]
    weight = np.ones(len(new_names), np.float32)
    shift = scaling.shift
    if len(scaling.weight):
        weight[is_known] = scaling.weight[positions[is_known]]
        weight = np.append(weight, scaling.weight[len(old_names) :])
        shift = shift[positions] if len(shift) else shift
        model.scaling_ = replace(scaling, weight=weight, shift=shift)
    model.space_ = replace(start.space_, features=features)
    model.n_features_in_ = len(new_names)
    return model


def _match_labels(model: TrainedModel, start: TrainedModel) -> tuple[Int64, Int64]:
    """Return the numbers of shared labels in this model and in the other one."""
    start_ids = np.array([start.vocabulary_.find(name) for name in model.vocabulary_], np.int64)
    shared_ids = np.flatnonzero(start_ids >= 0)
    return shared_ids, start_ids[shared_ids]
