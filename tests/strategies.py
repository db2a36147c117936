"""Hypothesis strategies: sparse and dense rows, label matrices with every awkward row, spaces, training problems.

Shapes and kinds come from hypothesis, numbers from a generator that is seeded by it: two scores that tie by accident
would be ordered one way in float32 and the other in float64, and random normals never tie.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from wsabie.core.validation import check_features
from wsabie.embedding import tables
from wsabie.embedding.joint_space import SIMILARITIES, JointSpace
from wsabie.embedding.protocols import ComposedInputs
from wsabie.embedding.relation_spaces import PartsSpace
from wsabie.training.rank_losses import build_losses
from wsabie.training.training_data import build_targets

DIM = 20  # one padded width all over: every other one compiles all kernels again
seeds = st.integers(0, 2**32 - 1)
similarities = st.sampled_from(SIMILARITIES)


class Problem(NamedTuple):
    """A space, rows and targets, as the kernels take them."""

    space: JointSpace
    X: Any  # (n, n_features) scipy CSR or array, float32
    inputs: Any  # the same after check_features
    Y: Any  # (n, n_labels) CSR of 1 and -1
    targets: Any
    config: Any
    order: Any  # a permutation of the visits
    sampler: Any


class FreeVectors(JointSpace):
    """A space of items without features: the inputs say which row of the table is an item's own vector."""

    def tower(self, inputs: Any) -> Any:
        from wsabie.kernels.embedding.towers import LookupTower

        return LookupTower(self.features, inputs)


class SketchedSpace(JointSpace):
    """A space whose labels have sketches, made when they are asked for."""

    def label_arrays(self) -> Any:
        from wsabie.kernels.embedding.label_sketches import SketchedLabels, sketch_labels

        codes = tables.allocate_bytes_like(self.labels)
        self.sketches = SketchedLabels(*super().label_arrays(), codes, np.zeros(self.n_labels, np.float32))
        sketch_labels(self.sketches, 0, self.n_labels, self.width)
        return self.sketches


def sparse_rows(n: int, d: int, density: float, rng: np.random.Generator) -> sp.csr_matrix:
    """Normal values, rows of any length, the first row empty."""
    X = sp.random(n, d, density, format="lil", dtype=np.float32, random_state=rng, data_rvs=rng.standard_normal)
    X[0] = 0
    return X.tocsr().astype(np.float32)


def label_rows(n: int, n_labels: int, rate: float, negatives: float, rng: np.random.Generator) -> sp.csr_matrix:
    """1 at `rate`, -1 at `negatives`; row 0 has all labels, row 1 none (when there are so many rows)."""
    u = rng.random((n, n_labels))
    Y = np.where(u < rate, 1, np.where(u > 1 - negatives, -1, 0))
    Y[0] = 1
    Y[1:2] = np.minimum(Y[1:2], 0)
    return sp.csr_matrix(Y.astype(np.int8))


def random_space(
    n_features: int, n_labels: int, similarity: Any, rng: np.random.Generator, *, biased: bool = False, dim: int = DIM
) -> JointSpace:
    """A space whose points have lengths around 1."""
    space = JointSpace.random(n_features, n_labels, dim, similarity, rng)
    if biased:
        space.bias[:] = rng.standard_normal(n_labels)
    return space


def make_step_config(n_labels: int, **changes: Any) -> Any:
    """WARP with a margin of 1 and steps of .05, or as changed."""
    from wsabie.kernels.training.warp import StepConfig

    values: dict[str, Any] = {
        "margin": np.float32(1),
        "losses": build_losses("warp", "precision", n_labels),
        "max_sampled": n_labels,
        "learning_rate_rows": np.float32(0.05),
        "learning_rate_labels": np.float32(0.05),
        "learning_rate_weights": np.float32(0.05),
        "max_norm_rows": np.float32(np.inf),
        "max_norm_labels": np.float32(np.inf),
        "max_norm_weights": np.float32(np.inf),
        "decay_rows": np.float32(1),
        "decay_labels": np.float32(1),
        "decay_weights": np.float32(1),
        "learning_rate_bias": np.float32(0),
        "logistic": False,
        "rank_sample": 0,
        "order_statistic_cdf": np.ones(1, np.float32),
        "seed": 1,
        "epoch": 0,
    }
    changed = {k: np.float32(v) if isinstance(v, (float, tuple)) else v for k, v in changes.items()}
    return StepConfig(**{**values, **changed})


def make_problem(space: JointSpace, X: Any, Y: Any, config: Any, order: Any = None, weights: Any = None) -> Problem:
    """A problem from its parts; by default all visits in order."""
    from wsabie.kernels.training.negative_samplers import UniformSamplerState

    targets = build_targets(Y, weights, "mean")
    order = np.arange(len(targets.rows)) if order is None else order
    return Problem(space, X, check_features(X), Y, targets, config, order, UniformSamplerState(np.int64(Y.shape[1])))


@st.composite
def problems(draw: Any, *, sparse: bool = True, max_rows: int = 8) -> Problem:
    """Small training problems of every kind."""
    rng = np.random.default_rng(draw(seeds))
    n, d, n_labels = draw(st.integers(1, max_rows)), draw(st.integers(1, 12)), draw(st.integers(1, 24))
    X = sparse_rows(n, d, draw(st.sampled_from([0.0, 0.3, 1.0])), rng)
    Y = label_rows(n, n_labels, draw(st.sampled_from([0.1, 0.5])), draw(st.sampled_from([0.0, 0.4])), rng)
    space = random_space(d, n_labels, draw(similarities), rng, biased=draw(st.booleans()))
    limit = draw(st.sampled_from([np.inf, 1.2, 0.8]))
    tables.clip_row_norms(space.features, limit)
    tables.clip_row_norms(space.labels, limit)
    config = make_step_config(
        n_labels,
        margin=draw(st.sampled_from([0.1, 1.0, 3.0])),
        max_sampled=draw(st.sampled_from([1, 3, n_labels])),
        max_norm_rows=float(limit),
        max_norm_labels=float(limit),
        learning_rate_bias=draw(st.sampled_from([0.0, 0.05])),
        decay_rows=draw(st.sampled_from([1.0, 0.9])),
        decay_labels=draw(st.sampled_from([1.0, 0.8])),
        decay_weights=draw(st.sampled_from([1.0, 0.8])),
        max_norm_weights=float(limit),
        logistic=draw(st.booleans()),
        rank_sample=draw(st.sampled_from([0, 0, 5, -1])),
        order_statistic_cdf=draw(st.sampled_from([(1.0,), (1.0,), (0.0, 1.0, 1.0), (0.5, 0.75, 1.0)])),
        seed=draw(seeds),
        epoch=draw(st.integers(0, 5)),
    )
    weights = rng.integers(0, 3, n).astype(np.float32) if draw(st.booleans()) else None
    problem = make_problem(space, X if sparse else X.toarray(), Y, config, weights=weights)
    return problem._replace(order=rng.permutation(len(problem.targets.rows)))


def with_free_vectors(problem: Problem) -> Problem:
    """The same labels for items that have a vector of their own each, or share one where there are too few."""
    space = FreeVectors(**{**vars(problem.space), "similarity": "dot"})
    ids = np.arange(problem.Y.shape[0], dtype=np.int32) % np.int32(space.n_features)
    return problem._replace(space=space, X=ids, inputs=ids)


def with_sketches(problem: Problem) -> tuple[Problem, Problem]:
    """The same under the inner product, without sketches and with."""
    parts = {**vars(problem.space), "similarity": "dot"}
    return problem._replace(space=JointSpace(**parts)), problem._replace(space=SketchedSpace(**parts))


def with_labels_beside(problem: Problem, *, shared: bool, rng: np.random.Generator) -> Problem:
    """Every row, but for some, asks with a label beside it; an item may be asked for by several examples."""
    n, n_labels = problem.Y.shape
    items = JointSpace(**{**vars(problem.space.copy()), "similarity": "dot"})
    words = items.labels if shared else random_space(1, n_labels, "dot", rng).labels
    item_rows, side_labels = rng.integers(0, n, n).astype(np.int32), rng.integers(-1, n_labels, n).astype(np.int32)
    sides = ComposedInputs(problem.inputs, item_rows, item_rows[problem.targets.rows], side_labels)
    return problem._replace(space=PartsSpace(items, words, 0.7), inputs=sides)


@st.composite
def sampled_problems(draw: Any, names: Any = ("frequency", "adaptive", "full-sort")) -> Problem:
    """Problems with another sampler than the uniform one; dot, or all kernels would be compiled for the others too."""
    from wsabie.training.kernel_threads import KernelThreads
    from wsabie.training.samplers import SamplerConfig, create_sampler

    problem = draw(problems())
    space = JointSpace(**{**vars(problem.space), "similarity": "dot"})
    counts = np.asarray((problem.Y > 0).sum(0)).ravel()
    options = {"distribution": draw(st.sampled_from(["exponential", "geometric", "linear"]))}
    name = draw(st.sampled_from(names))
    sampler = SamplerConfig(name, rank_scale=draw(st.sampled_from([0.05, 0.5])), **options)
    sampling = create_sampler(sampler, space, counts, 1)
    with KernelThreads(1) as threads:
        sampling.refresh(space, threads)
    return problem._replace(space=space, sampler=sampling.per_thread[0])


def weighted(problem: Problem, *, with_embedding: bool, rng: np.random.Generator) -> Problem:
    """The same rows and labels for labels with a weight per feature, alone or beside their points."""
    from wsabie.embedding.linear_space import JointLinearSpace, LinearSpace

    d, n_labels = problem.space.n_features, problem.Y.shape[1]
    linear = LinearSpace.zeros(d, n_labels)
    linear.weights[:] = 0.3 * rng.standard_normal((n_labels, d))
    linear.finish_epoch(
        None, float(problem.config.max_norm_weights) if np.isfinite(problem.config.max_norm_weights) else None
    )
    linear.norm2[:] = np.einsum("ij,ij->i", linear.weights, linear.weights)
    return problem._replace(space=JointLinearSpace(problem.space.copy(), linear) if with_embedding else linear)
