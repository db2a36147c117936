"""Sketches of labels: what they say is certain, they tell most draws apart, and a search by them finds the same."""

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.reference import label_sketches as label_sketches_reference

from passes import TABLES, fast_block, fast_sequential
from strategies import DIM, Problem, SketchedSpace, problems, seeds, with_sketches
from wsabie.embedding import tables
from wsabie.embedding.joint_space import JointSpace
from wsabie.kernels.compiler import FLAGS
from wsabie.kernels.embedding.candidates import bound_error, is_bounded_below
from wsabie.kernels.embedding.label_sketches import SketchedLabels
from wsabie.kernels.embedding.similarity import score_label
from wsabie.kernels.primitives.random_numbers import advance_counter, start_stream
from wsabie.kernels.training import negative_samplers as kernel_samplers
from wsabie.kernels.training.negative_samplers import PREFETCH_DISTANCE, UniformSamplerState


def sketched(points: Any, bias: Any = 0) -> tuple[SketchedLabels, tuple[None, ...]]:
    """Labels with sketches, and the width of their points."""
    points = np.asarray(points, np.float32)
    space = JointSpace(points.shape[1], "dot", np.zeros((0, 1), np.float32), tables.pad_rows(points), np.zeros(0))
    space.bias = np.zeros(len(points), np.float32) + np.float32(bias)
    return SketchedSpace(**vars(space)).label_arrays(), space.width


@numba.njit(**FLAGS)
def says_no(labels: Any, q: Any, y: int, bound: Any, width: Any) -> Any:
    """Return whether the sketch of y proves that it scores no higher than the bound."""
    return is_bounded_below(labels, q, y, bound_error(labels, q, width), np.float32(bound), width)


@numba.njit(**FLAGS)
def scored(labels: Any, q: Any, y: int, width: Any) -> Any:
    """The score of y, as kernels take it."""
    return score_label(labels, q, y, width)


def test_a_sketch_by_hand() -> None:
    labels, _ = sketched([[1.27, -0.5, 0.004, 0], [0, 0, 0, 0], [-254, 1, 1.1, -0.9]])
    assert labels.codes[:, :4].tolist() == [[127, -50, 0, 0], [0, 0, 0, 0], [-127, 0, 1, 0]]
    assert labels.scales == pytest.approx([0.01, 1e-30, 2])
    assert not labels.codes[:, 4:].any()


@given(seed=seeds, dim=st.sampled_from([1, 16, 20, 100]), size=st.sampled_from([1e-25, 1e-3, 1.0, 1e6]))
def test_sketches_equal_the_twin(seed: int, dim: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    points = (size * rng.standard_normal((5, dim)) * (rng.random((5, dim)) < 0.8)).astype(np.float32)
    labels, width = sketched(points)
    for y, point in enumerate(points):
        codes, scale = label_sketches_reference.sketch_point(point)
        assert labels.codes[y, :dim].tolist() == codes
        assert labels.scales[y] == pytest.approx(scale, rel=1e-6)
        q = np.zeros(labels.table.shape[1], np.float32)
        q[:dim] = rng.standard_normal(dim)
        bound = label_sketches_reference.bound_product(q, labels.table[y])
        gap = np.float32(1e-4 * size * dim)
        assert says_no(labels, q, y, bound + gap, width)
        assert size < 1 or not says_no(labels, q, y, bound - gap, width)


@given(
    seed=seeds, dim=st.sampled_from([1, 20, 500]), size=st.sampled_from([1e-37, 1e-30, 1e-3, 1.0, 1e15]),
    asks=st.sampled_from([1e-24, 1.0, 1e6]), bias=st.sampled_from([0.0, -1.0, 1e4]), alike=st.booleans(),
)  # fmt: skip
def test_sketch_bounds_are_certain(seed: int, dim: int, size: float, asks: float, bias: float, alike: bool) -> None:
    """A bound that the score just exceeds is never said to be out of reach, whatever float32 rounds away.

    The worst query has the sign of what the bytes leave out, and is as large everywhere.
    """
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((20, dim))
    points[10:] = (rng.integers(-127, 127, (10, dim)) + 0.5) / 127
    points[:, 0] = 1
    labels, width = sketched(size * points, bias)
    q = np.zeros(labels.table.shape[1], np.float32)
    for y in range(20):
        missed = labels.table[y] - labels.codes[y, : len(q)] * labels.scales[y]
        q[:dim] = asks * (1 if alike else np.abs(rng.standard_normal(dim)))
        q = np.copysign(q, missed)
        score = np.float32(scored(labels, q, y, width))
        assert not says_no(labels, q, y, np.nextafter(score, np.float32(-np.inf)), width)
        assert not says_no.py_func(labels, q, y, np.nextafter(score, np.float32(-np.inf)), width)


def test_nothing_is_said_of_what_is_not_finite() -> None:
    """Then the score decides, as it does without sketches."""
    labels, width = sketched(np.ones((1, DIM)))
    q = np.zeros(labels.table.shape[1], np.float32)
    for value, bound in ((np.nan, 1e9), (1.0, -np.inf), (1.0, np.nan)):
        q[:DIM] = value
        assert not says_no(labels, q, 0, bound, width)


def test_sketches_tell_nearly_all_apart() -> None:
    """Among random labels, those that a sketch leaves open below the best hundredth are a few in a thousand."""
    rng = np.random.default_rng(3)
    labels, width = sketched(rng.standard_normal((5000, 100)))
    q = np.zeros(labels.table.shape[1], np.float32)
    q[:100] = rng.standard_normal(100)
    scores = labels.table @ q
    bound = np.quantile(scores, 0.99)
    open_ones = sum(not says_no(labels, q, y, bound, width) for y in range(5000))
    assert 50 <= open_ones < 75


@pytest.mark.parametrize("run", [fast_sequential, fast_block])
@given(problem=problems())
def test_a_pass_with_sketches_is_the_same_to_the_bit(run: Any, problem: Problem) -> None:
    plain, with_them = map(run, with_sketches(problem))
    for name in (*TABLES, "counters", "loss"):
        assert np.array_equal(getattr(plain, name), getattr(with_them, name)), name


@given(problem=problems())
def test_sketches_follow_moved_labels(problem: Problem) -> None:
    """After a pass each label has the sketch that it would have from the beginning."""
    from passes import run_one_block

    _, problem = with_sketches(problem)
    space, *_ = run_one_block(problem, [0, problem.space.n_features])
    assume(not np.array_equal(space.labels, problem.space.labels))
    updated = space.sketches
    rebuilt = space.label_arrays()
    assert np.array_equal(updated.codes, rebuilt.codes)
    assert np.array_equal(updated.scales, rebuilt.scales)


def test_prefetched_labels_are_the_drawn_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uncompiled: after the first, draws come in the order in which they were asked for, two at a time."""
    prefetched: list[int] = []
    monkeypatch.setattr(kernel_samplers, "prefetch_label", lambda labels, y, width: prefetched.append(int(y)))
    labels, width = sketched(np.ones((1000, DIM)))
    sampler, q = UniformSamplerState(np.int64(1000)), np.zeros(DIM, np.float32)
    counter, draws_, ahead = start_stream(1, 2, 3), [], []
    for t in range(60):
        counter = advance_counter(counter)
        kernel_samplers.prefetch_draws(sampler, labels, counter, t, width)
        draws_.append(int(kernel_samplers.draw_label(sampler, labels, q, counter, width)))
        ahead.append(len(prefetched) - t)
    assert prefetched[:59] == draws_[1:]
    assert ahead[:3] == [2, 3, 4]
    assert set(ahead[PREFETCH_DISTANCE:]) == {PREFETCH_DISTANCE + 1}
