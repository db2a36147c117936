"""Exact top k among many labels, one query at a time and many."""

from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.libraries.measure import Work, compare
from wsabie.search.exact_index import ExactIndex
from wsabie.search.screening_index import ScreeningIndex

LABELS, DIM, QUERIES, K = 50_000, 100, 256, 10


def run(folder: Path) -> None:
    """Search random points on one thread; a tenth of the labels are copies of others, so that scores tie."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(LABELS, DIM)).astype(np.float32)
    table[-(LABELS // 10) :] = table[: LABELS // 10]
    exact = table.astype(np.float64)
    queries = rng.normal(size=(QUERIES, DIM)).astype(np.float32)
    expected = np.array([_rank(exact, query) for query in queries])
    with threadpool_limits(1):
        screened = ScreeningIndex.build(ExactIndex(table), queries=queries)
        for n in (QUERIES, 1):
            _compare(table, queries[:n], expected[:n], screened)


def _rank(table: Any, query: Any) -> Any:
    """Return the best labels by scores in float64, equal ones by their number."""
    scores = (table @ query.astype(np.float64)).round(9)
    near = np.flatnonzero(scores >= np.partition(scores, -K)[-K])
    return near[np.lexsort((near, -scores[near]))][:K]


def _compare(table: Any, queries: Any, expected: Any, screened: ScreeningIndex) -> None:
    def ours() -> Work:
        index = ExactIndex(table)
        return lambda: index.top_k(queries, K, threads=1)[0]

    def by_bytes() -> Work:
        return lambda: screened.top_k(queries, K, threads=1)[0]

    def numpy() -> Work:
        def work() -> Any:
            scores = queries @ table.T
            best = np.argpartition(-scores, K, axis=1)[:, :K]
            return np.take_along_axis(best, np.argsort(-np.take_along_axis(scores, best, 1), axis=1), 1)

        return work

    def faiss(kind: str) -> Work:
        import faiss as library

        library.omp_set_num_threads(1)
        index = library.index_factory(DIM, kind, library.METRIC_INNER_PRODUCT)
        index.train(table)
        index.add(table)
        return lambda: index.search(queries, K)[1]

    def usearch() -> Work:
        from usearch.index import MetricKind, search

        return lambda: search(table, queries, K, MetricKind.IP, exact=True, threads=1).keys.reshape(-1, K)

    def sklearn() -> Work:
        from sklearn.neighbors import NearestNeighbors

        lengths = np.linalg.norm(table, axis=1)  # the largest inner product is the nearest point on a sphere
        lifted = np.hstack([table, np.sqrt(lengths.max() ** 2 - lengths[:, None] ** 2)])
        points = np.hstack([queries, np.zeros((len(queries), 1), np.float32)])
        neighbours = NearestNeighbors(n_neighbors=K, algorithm="brute", n_jobs=1).fit(lifted)
        return lambda: neighbours.kneighbors(points, return_distance=False)

    def note(ids: Any) -> str:
        right = (ids == expected).all(axis=1).sum()
        among = np.mean([len(set(row) & set(best)) for row, best in zip(ids.tolist(), expected.tolist(), strict=True)])
        return f"{right} of {len(expected)} rows as they should be, {among / K:.4f} of the labels"

    compare(
        f"top {K} of {len(table):,} labels, D = {DIM}, {len(queries)} queries, one thread",
        {
            "ours": ours,
            "ours, screened by bytes": by_bytes,
            "numpy argpartition": numpy,
            "faiss-cpu IndexFlatIP": lambda: faiss("Flat"),
            "faiss-cpu SQ8": lambda: faiss("SQ8"),
            "usearch exact": usearch,
            "scikit-learn NearestNeighbors": sklearn,
        },
        note,
        with_memory=False,
    )
