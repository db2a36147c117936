"""Predictions of an exported model in programs without this package, compared with those of the model."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

WITHOUT = "import sys; sys.modules.update(dict.fromkeys(('wsabie', 'scipy', 'sklearn', 'numba', 'onnx'))); "


def fed(X: Any) -> dict[str, Any]:
    """Rows as a graph takes them: dense ones as they are, sparse ones padded to the longest."""
    if not hasattr(X, "tocsr"):
        return {"rows": np.asarray(X, np.float32)}
    X = X.tocsr()
    lengths = np.diff(X.indptr)
    inside = np.arange(max(1, lengths.max(initial=0))) < lengths[:, None]
    indices, values = np.zeros(inside.shape, np.int64), np.zeros(inside.shape, np.float32)
    indices[inside], values[inside] = X.indices, X.data
    return {"indices": indices, "values": values}


def opened(file: Path) -> Any:
    """A session in ONNX Runtime, of a graph that the checker of onnx takes."""
    import onnx
    from onnxruntime import InferenceSession

    onnx.checker.check_model(file, full_check=True)
    return InferenceSession(file, providers=["CPUExecutionProvider"])


def ranked(file: Path, X: Any) -> tuple[Any, Any]:
    """(ids, scores) by ONNX Runtime."""
    ids, scores = opened(file).run(["ids", "scores"], fed(X))
    return ids, scores


def predicted(folder: Path, X: Any, k: int) -> tuple[Any, Any]:
    """(ids, scores) by the exported example, in a process that has NumPy alone."""
    if hasattr(X, "tocsr"):
        X = X.tocsr()
        np.savez(folder.parent / "rows.npz", p=X.indptr, i=X.indices, x=X.data.astype(np.float32))
        rows = "r = np.load('rows.npz'); at = lambda a: np.split(r[a], r['p'][1:-1]); rows = zip(at('i'), at('x')); "
    else:
        np.save(folder.parent / "rows.npy", np.asarray(X, np.float32))
        rows = "rows = np.load('rows.npy'); "
    code = f"{WITHOUT}import numpy as np; sys.path.insert(0, {str(folder)!r}); import predict; {rows}"
    code += f"ids, scores = predict.rank(rows, {k}); np.savez('found.npz', ids=ids, scores=scores)"
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=folder.parent, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    predictions = np.load(folder.parent / "found.npz")
    return predictions["ids"], predictions["scores"]


def assert_same(model: Any, X: Any, predictions: tuple[Any, Any], within: float = 1e-4) -> None:
    """The model's own answers: scores up to `within`, and ids wherever scores are further apart than that."""
    ids, scores = predictions
    own_ids, own_scores = model.rank(X, ids.shape[1])
    finite = np.isfinite(own_scores)
    assert (np.isfinite(scores) == finite).all()
    assert np.abs(scores[finite] - own_scores[finite]).max(initial=0) < within
    assert (ids[~finite] == -1).all()
    every = model.scores(X)
    theirs = np.take_along_axis(every, np.maximum(ids, 0), axis=1)
    assert (
        np.abs(theirs[finite] - own_scores[finite]).max(initial=0) < within
    )  # another label only where it scores the same
    with np.errstate(invalid="ignore"):  # between two that are not candidates
        gaps = np.abs(np.diff(own_scores, axis=1, prepend=np.inf, append=-np.inf))
    clear = finite & (gaps[:, :-1] > within) & (gaps[:, 1:] > within)
    clear[:, -1] = False  # whoever comes next may score the same
    assert (ids[clear] == own_ids[clear]).all()
    assert clear.any()
