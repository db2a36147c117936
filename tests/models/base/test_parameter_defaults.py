"""Meaning of "auto" at the sizes where it changes."""

import pytest

from wsabie.models.base.parameter_defaults import TrainingShape, default_learning_rate, default_linear_rate
from wsabie.models.linear_ranker import LinearRanker


@pytest.mark.parametrize(
    ("rows", "pairs", "positives", "rate"),
    [
        (1_000, 1_000, "mean", 0.03),
        (100_000, 100_000, "mean", 0.03),
        (400_000, 400_000, "mean", 0.015),
        (1_000, 16_000, "mean", 0.24),
        (1_000, 16_000, "pairs", 0.03),
        (400_000, 6_400_000, "mean", 0.12),
        (400_000, 6_400_000, "pairs", 0.015),
    ],
)
def test_embedding_rate_depends_on_rows_and_labels(rows: int, pairs: int, positives: str, rate: float) -> None:
    """16 labels a row are 8 times the step; four times as many rows as 100,000 half of it."""
    assert default_learning_rate(TrainingShape(rows, pairs, 50), positives) == pytest.approx(rate)


def test_weight_rate_is_independent_of_rows() -> None:
    shapes = [TrainingShape(10**7, 10**7, 50), TrainingShape(100, 100, 50)]
    for parameters, rate in (({"init": "random"}, 0.1), ({"init": "ridge"}, 0.01)):
        parameters = LinearRanker(**parameters).get_params()
        assert [default_linear_rate(parameters, shape) for shape in shapes] == [rate, rate]
    auc = LinearRanker(loss="auc").get_params()
    assert default_linear_rate(auc, TrainingShape(100, 1600, 50)) == pytest.approx(8)
