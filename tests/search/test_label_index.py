"""Recall of an index, measured on queries that had no part in its settings."""

from typing import Any

import numpy as np

from wsabie.search.exact_index import ExactIndex
from wsabie.search.index_tuning import tune_effort
from wsabie.search.label_index import LabelSearchIndex
from wsabie.storage.model_folder import ModelState


class Half(LabelSearchIndex):
    """Finds everything for queries whose first coordinate is positive, and for others with an effort of 2 alone."""

    kind = "half"

    def top_k(
        self, queries: Any, k: int, *, exclude: Any = None, candidates: Any = None, threads: int | None = None
    ) -> Any:
        ids, scores = self.exact.top_k(queries, k, exclude=exclude, candidates=candidates, threads=threads)
        lost = (queries[:, 0] <= 0) & (self.effort < 2)
        ids[lost], scores[lost] = -1, -np.inf
        return ids, scores

    def to_state(self) -> ModelState:
        raise NotImplementedError

    _is_exact_quicker = _search = _restore = to_state  # type: ignore[assignment]


def test_recall_is_that_of_queries_that_did_not_choose() -> None:
    rng = np.random.default_rng(0)
    index = Half(ExactIndex(rng.normal(size=(200, 4)).astype(np.float32)), 1)
    index.queries = "20 rows"
    queries = rng.normal(size=(20, 4)).astype(np.float32)
    queries[:, 0] = np.repeat([1, -1], 10)  # the first half chooses
    tune_effort(index, queries, 0.9, [{"effort": 1}, {"effort": 2}], (1, 2), 1)
    assert (index.effort, index.recall, index.queries) == (1, 0.0, "10 of 20 rows")
    assert [point.recall for point in index.curve] == [0.0, 1.0]
