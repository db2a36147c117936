"""Early stopping: the best epoch is kept, patience counts in the second half of the schedule."""

import pytest

from runs import make_block, make_settings, make_space, same_points, train
from wsabie.embedding.joint_space import JointSpace

BLOCK = make_block()


def test_the_first_of_the_best_epochs_is_kept() -> None:
    """Figures 1, 3, 3, 2: after the fourth epoch the space is that of the second."""
    spaces: list[JointSpace] = []
    figures = iter([1.0, 3.0, 3.0, 2.0])

    def monitor(space: JointSpace) -> float:
        spaces.append(space.copy())
        return next(figures)

    history, space = train(BLOCK, make_space(), make_settings(epochs=4), monitor=monitor)
    assert [s.validation for s in history] == [1, 3, 3, 2]
    assert [s.validation_metrics for s in history] == [{"figure": v, "opposite": -v} for v in (1, 3, 3, 2)]
    assert [same_points(space, earlier) for earlier in spaces] == [False, True, False, False]


@pytest.mark.parametrize(("patience", "epochs"), [(1, 5), (2, 5), (6, 8), (None, 9)])
def test_patience_counts_epochs_without_a_better_figure_in_the_second_half(patience: int | None, epochs: int) -> None:
    figures = iter([1.0, 2.0, *[2.0] * 7])
    settings = make_settings(epochs=9, patience=patience)
    history, _ = train(BLOCK, make_space(), settings, monitor=lambda space: next(figures))
    assert len(history) == epochs
