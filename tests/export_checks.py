"""Predictions of an exported model in programs without this package, compared with those of the model."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.features.extractors.onnx_encoders import Preprocessing

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


def read_pixels(file: Path, form: dict[str, Any]) -> Any:
    """The pixels of a picture for a graph with an encoder, as docs/how-to/export.md reads them."""
    from PIL import Image, ImageOps

    def reduce(size: tuple[int, int]) -> tuple[int, ...]:
        shrink = min(1, form["longest"] / max(size))
        return tuple(max(1, round(side * shrink)) for side in size)

    picture = Image.open(file)
    picture.draft("RGB", reduce(picture.size))
    picture = picture.convert("RGB").resize(reduce(picture.size), Image.Resampling.BILINEAR, reducing_gap=2)
    picture = ImageOps.exif_transpose(picture)
    left, top = (int((1 - form["crop"]) / 2 * side) for side in picture.size)
    across, down = (round(form["crop"] * side) for side in picture.size)
    part, size = picture.crop((left, top, left + across, top + down)), (form["width"], form["height"])
    if "preprocessing" in form:
        return Preprocessing(**form["preprocessing"]).scale(np.asarray(part))
    scale = min(across / size[0], down / size[1])
    left, top = (across - scale * size[0]) / 2, (down - scale * size[1]) / 2
    return np.asarray(part.resize(size, Image.Resampling.BICUBIC, box=(left, top, across - left, down - top)))


def rank_pictures(file: Path, pictures: list[Path]) -> tuple[dict[str, str], Any, Any]:
    """Metadata, ids and scores of pictures, by ONNX Runtime."""
    session = opened(file)
    (shape,) = (node.shape for node in session.get_inputs())
    facts = session.get_modelmeta().custom_metadata_map
    pixels = np.stack([read_pixels(picture, json.loads(facts["pixels"])) for picture in pictures])
    assert pixels.shape[1:] == tuple(shape[1:])
    if shape[0] == 1:
        parts = [session.run(["ids", "scores"], {"pictures": pixels[i : i + 1]}) for i in range(len(pixels))]
        ids, scores = (np.concatenate(part) for part in zip(*parts, strict=True))
    else:
        ids, scores = session.run(["ids", "scores"], {"pictures": pixels})
    return facts, ids, scores


def assert_labels(facts: dict[str, str], ids: Any, scores: Any, expected: Any, within: float = 1e-3) -> None:
    """The scores of an annotator, and its labels wherever their scores are further apart than that."""
    names = np.array(json.loads(facts["labels"]))
    own_scores = np.array([[score for _, score in row] for row in expected])
    np.testing.assert_allclose(scores, own_scores, atol=within)
    gaps = -np.diff(own_scores, axis=1)
    clear = (gaps[:, :1] > within).ravel()
    assert clear.mean() > 0.5
    assert names[ids[clear, 0]].tolist() == [
        row[0][0] for row, is_clear in zip(expected, clear, strict=True) if is_clear
    ]


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
