"""Omikuji: forests of label trees with linear classifiers (Parabel, Bonsai), searched by beam.

It reads rows as Extreme Classification text; writing and reading it is told apart. Its solver runs until it has
converged, so a trial is one round.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.peers.harness import Run, main
from benchmarks.peers.ranks import dense

BEAM = 100
"""Nodes kept while searching, and labels returned: wider than its default of 10, for better ranks."""


def train(run: Run) -> None:
    """Write, read, train, rank."""
    from omikuji import LossType, Model, ffi, lib

    options = dict(run.params)
    X, judge_X = run.scale_rows(options.pop("rows"))
    settings = Model.default_hyper_param()
    for name, value in options.items():
        setattr(settings, name, LossType[value].value if name == "linear_loss_type" else value)
    settings.min_branch_size = max(settings.min_branch_size, settings.cluster_k)  # it draws k labels to begin with
    pool = ffi.gc(lib.init_omikuji_thread_pool(run.threads), lib.free_omikuji_thread_pool)
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "rows.txt"
        with run.measure_separately("write_s"):
            _write_rows(text, X, run.y, run.n_labels)
        with run.measure_separately("parse_s"):
            path = ffi.new("char[]", str(text).encode())
            rows = ffi.gc(lib.load_omikuji_data_set(path, pool), lib.free_omikuji_data_set)
        with run.training():
            model = Model(lib.train_omikuji_model(rows, settings, pool))
        model.save(str(Path(folder) / "model"))
        run.note(model_bytes=sum(file.stat().st_size for file in (Path(folder) / "model").iterdir()))
    model.init_prediction_thread_pool(run.threads)
    run.finish_round(1, _scores(model, judge_X, run.n_labels))


def _write_rows(file: Path, X: Any, y: Any, n_labels: int) -> None:
    with file.open("w") as out:
        out.write(f"{X.shape[0]} {X.shape[1]} {n_labels}\n")
        for row in range(X.shape[0]):
            labels = y.indices[y.indptr[row] : y.indptr[row + 1]] if sp.issparse(y) else [y[row]]
            features = [f"{j}:{value:.9g}" for j, value in _pairs(X, row)]
            out.write(" ".join([",".join(map(str, labels)), *features]) + "\n")  # a space at the end would be refused


def _pairs(X: Any, row: int) -> list[tuple[int, float]]:
    span = slice(X.indptr[row], X.indptr[row + 1])
    return list(zip(X.indices[span].tolist(), X.data[span].tolist(), strict=True))


def _scores(model: Any, judge_X: Any, n_labels: int) -> Any:
    k = min(BEAM, n_labels)

    def scores(lo: int, hi: int) -> Any:
        rows = [model.predict(_pairs(judge_X, row), beam_size=BEAM, top_k=k) for row in range(lo, hi)]
        ids = [np.array([label for label, _ in row], dtype=int) for row in rows]
        return dense(ids, [np.array([score for _, score in row], np.float32) for row in rows], n_labels)

    return scores


if __name__ == "__main__":
    main(train)
