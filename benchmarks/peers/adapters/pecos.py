"""PECOS XR-Linear: a tree of linear classifiers over label clusters, searched by beam.

Its solver runs until it has converged, so a trial is one round. The clusters are a part of training.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.peers.harness import Run, main

BEAM = 100
"""Clusters kept while searching, and labels returned: wider than its default of 10, for better ranks."""


def train(run: Run) -> None:
    """Cluster the labels, train the tree, rank."""
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    options = dict(run.params)
    X, judge_X = run.scale_rows(options.pop("rows"))
    post = options.pop("post_processor")
    tree = {name: options.pop(name) for name in ("nr_splits", "max_leaf_size", "spherical")}
    Y = sp.csc_matrix(
        (np.ones(len(run.y), np.float32), (np.arange(len(run.y)), run.y)), shape=(len(run.y), run.n_labels)
    )
    with run.training():
        points = LabelEmbeddingFactory.create(Y, X, method="pifa")
        clusters = Indexer.gen(points, "hierarchicalkmeans", seed=run.seed, threads=run.threads, **tree)
        model = XLinearModel.train(X, Y, C=clusters, threads=run.threads, **options)
    run.note(model_bytes=sum(_bytes(layer.W) + _bytes(layer.C) for layer in model.model.model_chain))
    run.finish_round(1, _scores(model, judge_X, post, run))


def _scores(model: Any, judge_X: Any, post: str, run: Run) -> Any:
    k = min(BEAM, run.n_labels)

    def scores(lo: int, hi: int) -> Any:
        predictions = model.predict(judge_X[lo:hi], beam_size=k, only_topk=k, post_processor=post, threads=run.threads)
        out = np.full((hi - lo, run.n_labels), -np.inf, np.float32)
        out[np.repeat(np.arange(hi - lo), np.diff(predictions.indptr)), predictions.indices] = predictions.data
        return out

    return scores


def _bytes(matrix: Any) -> int:
    return int(matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes) if matrix is not None else 0


if __name__ == "__main__":
    main(train)
