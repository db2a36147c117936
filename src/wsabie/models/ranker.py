"""What every model and baseline answers, so that one comparison runs them all."""

from typing import Any, Protocol

from wsabie.base.arrays import Float32, Int64


class Ranker(Protocol):
    """`fit` learns from rows and labels; `rank` orders the labels of new rows, best first."""

    def fit(self, X: Any, Y: Any) -> "Ranker": ...

    def rank(self, X: Any, k: int = 10, *, exclude: Any = None, candidates: Any = None) -> tuple[Int64, Float32]: ...

    def scores(self, X: Any) -> Float32:
        """All scores of a block of rows, (n, n_labels); for evaluation, block by block."""
        ...
