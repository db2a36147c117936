"""Similarities and their slopes: hand-worked values, the twin, finite differences, and what happens near zero."""

import math
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import candidates as candidates_reference
from tests.reference import training_loops as training_loops_reference

from strategies import seeds
from wsabie.kernels.embedding.similarity import Cosine, Dot, Euclidean, compute_slopes, score_label

WIDTH = (None, None)
KINDS = [Dot, Euclidean, Cosine]


@numba.njit
def compiled(labels: Any, q: Any, y: int, width: Any) -> Any:
    return score_label(labels, q, y, width), compute_slopes(labels, q, y, width)


def draw(kind: Any, seed: int, scale: float = 1.0) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(seed)
    table = (scale * rng.standard_normal((3, 32))).astype(np.float32)
    return kind(table, rng.standard_normal(3).astype(np.float32)), table[0] + table[1] * np.float32(0.3)


def unit(*places: tuple[int, float]) -> np.ndarray:
    out = np.zeros(32, np.float32)
    for place, value in places:
        out[place] = value
    return out


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Dot, 3 * 1 + 4 * 2 + 0.5),
        (Euclidean, -math.hypot(3 - 1, 4 - 2) + 0.5),
        (Cosine, (3 * 1 + 4 * 2) / (5 * math.sqrt(5)) + 0.5),
    ],
)
def test_hand_worked_scores(kind: Any, expected: float) -> None:
    labels = kind(unit((0, 1), (1, 2))[None], np.float32([0.5]))
    assert score_label(labels, unit((0, 3), (1, 4)), 0, WIDTH) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds)
def test_equals_the_twin(kind: Any, seed: int) -> None:
    labels, q = draw(kind, seed)
    s, slope = compiled(labels, q, 2, WIDTH)
    slow = training_loops_reference.convert_to_float64(labels)
    assert s == pytest.approx(candidates_reference.score_label(slow, q.astype(float), 2), rel=1e-5, abs=1e-5)
    np.testing.assert_allclose(
        slope, candidates_reference.compute_slopes(slow, q.astype(float), 2), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("kind", KINDS)
def test_python_and_compiled_bodies_agree(kind: Any) -> None:
    labels, q = draw(kind, 3)
    s, slope = compiled(labels, q, 1, WIDTH)
    assert score_label(labels, q, 1, WIDTH) == pytest.approx(s, rel=1e-6)
    np.testing.assert_allclose(compute_slopes(labels, q, 1, WIDTH), slope, rtol=1e-6)


def numeric_gradient(function: Any, x: np.ndarray) -> np.ndarray:
    step = 1e-5 * min(1.0, float(np.linalg.norm(x)))
    return np.array([(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(len(x))])


def resized(v: np.ndarray, length: float | None) -> np.ndarray:
    return v if length is None else (v * (length / np.linalg.norm(v))).astype(np.float32)


SHORT_OR_NOT = st.sampled_from([None, None, 3e-4, 9e-4, 2e-3])


@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds, query_length=SHORT_OR_NOT, label_length=SHORT_OR_NOT)
def test_slopes_are_the_gradient(kind: Any, seed: int, query_length: float | None, label_length: float | None) -> None:
    """Central differences of the float64 twin's score against both routes' slopes; some lengths are below SHORTEST."""
    labels, q = draw(kind, seed)
    labels.table[2] = resized(labels.table[2], label_length)
    q = resized(q, query_length)
    slow, q64, w = training_loops_reference.convert_to_float64(labels), q.astype(float), labels.table[2].astype(float)

    def at_label(row: np.ndarray) -> float:
        return candidates_reference.score_label(slow._replace(table=row[None], bias=slow.bias[2:]), q64, 0)

    by_query = numeric_gradient(lambda x: candidates_reference.score_label(slow, x, 2), q64)
    by_label = numeric_gradient(at_label, w)
    for (a, b, c), tolerance in (
        (candidates_reference.compute_slopes(slow, q64, 2), 1e-6),
        (compiled(labels, q, 2, WIDTH)[1], 1e-4),
    ):
        for slope, expected in ((a * w + b * q64, by_query), (a * q64 + c * w, by_label)):
            np.testing.assert_allclose(slope, expected, rtol=tolerance, atol=tolerance * max(1, abs(expected).max()))


def test_the_length_of_a_short_vector_has_no_slope() -> None:
    """Its length counts as 1e-3, so a step changes the cosine as it would an inner product: a = 1 / (.001 sqrt 2)."""
    q, w = unit((0, 5e-4), (1, 3e-4)), unit((0, 1), (1, 1))
    _, (a, b, c) = compiled(Cosine(w[None], np.zeros(1, np.float32)), q, 0, WIDTH)
    np.testing.assert_allclose((a * w + b * q)[:2], 1 / (1e-3 * math.sqrt(2)), rtol=1e-5)
    assert (b, c) == (0, pytest.approx(-(5e-4 + 3e-4) * a / 2, rel=1e-5))


@pytest.mark.parametrize("kind", [Euclidean, Cosine])
@pytest.mark.parametrize("size", [0.0, 1e-20, 1e-9, 1e-4])
def test_near_zero_nothing_explodes(kind: Any, size: float) -> None:
    """A point on its label, or at the origin: the step along the slopes stays finite, for distance at most 1."""
    w = unit((0, 1))
    q = w + unit((1, size)) if kind is Euclidean else unit((1, size))
    labels = kind(w[None], np.zeros(1, np.float32))
    s, (a, b, c) = compiled(labels, q, 0, WIDTH)
    assert np.isfinite([s, a, b, c]).all()
    by_query, by_label = a * w + b * q, a * q + c * w
    assert np.isfinite(by_query).all()
    assert np.isfinite(by_label).all()
    limit = 1.001 if kind is Euclidean else 1001
    assert np.linalg.norm(by_query) <= limit
    assert np.linalg.norm(by_label) <= 1.001


def test_distance_to_itself_is_the_best_score() -> None:
    labels, _ = draw(Euclidean, 5)
    labels = labels._replace(bias=np.zeros(3, np.float32))
    assert score_label(labels, labels.table[1], 1, WIDTH) == pytest.approx(0, abs=2e-6)
    assert score_label(labels, labels.table[1], 0, WIDTH) < -1


def test_cosine_does_not_depend_on_lengths() -> None:
    labels, q = draw(Cosine, 5)
    bare = labels._replace(bias=np.zeros(3, np.float32))
    longer = bare._replace(table=bare.table * np.float32(7))
    for y in range(3):
        assert score_label(longer, np.float32(0.1) * q, y, WIDTH) == pytest.approx(
            score_label(bare, q, y, WIDTH), rel=1e-5
        )
