"""Every kind of model: saved = loaded with tolerance zero, and a folder whose parts do not agree is refused."""

from pathlib import Path

import numpy as np
import pytest

import wsabie
from toy_tasks import N_LABELS, names, toy
from wsabie.core.errors import ModelFolderError
from wsabie.core.json_conversion import to_json_value
from wsabie.models.base.label_model import LabelModel
from wsabie.models.base.row_scaling import RowScaling
from wsabie.models.loader import KINDS, find_model_class
from wsabie.storage.model_folder import save_model_folder
from wsabie.vocabulary.word_vectors import WordVectors

X, Y, ANSWER = toy()
WORDS = WordVectors(
    [f"label_{y}" for y in range(N_LABELS)], np.random.default_rng(0).standard_normal((N_LABELS, 4)).astype(np.float32)
)
SMALL = {
    "wsabie": {"dim": 16, "epochs": 3},
    "ensemble": {"n": 2},
    "linear": {"epochs": 3},
    "full-rank": {"blend": 2.0},
    "parts": {"dim": 16, "epochs": 3, "relations": [["label 0", "label 3"]], "tables": "unshared"},
    "one-vs-rest": {"scaling": "auto"},
    "devise": {"epochs": 3, "vectors": WORDS},
    "conse": {"vectors": WORDS},
}


def fit_kind(kind: str, rows: object) -> LabelModel:
    return find_model_class(kind)(**SMALL.get(kind, {})).fit(rows, names(ANSWER))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_loaded_model_answers_as_the_saved_one(tmp_path: Path, kind: str, dense: bool) -> None:
    rows = X.toarray() if dense else X
    saved = fit_kind(kind, rows)
    saved.save(tmp_path / "m")
    loaded = wsabie.load(tmp_path / "m")
    assert type(loaded) is type(saved)
    params = {name: None if name == "vectors" else value for name, value in saved.get_params().items()}
    assert to_json_value(loaded.get_params()) == to_json_value(params)
    assert list(loaded.vocabulary_) == list(saved.vocabulary_)
    for a, b in zip(saved.rank(rows, 5), loaded.rank(rows, 5), strict=True):
        assert np.array_equal(a, b)
    assert np.array_equal(saved.scores(rows), loaded.scores(rows))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "popularity"])  # which scales nothing
def test_interrupted_fit_leaves_the_model_unchanged(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fit_kind(kind, X)
    annotations = model.annotate(X, 3)
    with monkeypatch.context() as patched:
        patched.setattr(RowScaling, "__call__", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X[:, :-1], names(ANSWER)[::-1])
    assert model.annotate(X, 3) == annotations


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("kind", KINDS)
def test_inconsistent_folder_is_refused(tmp_path: Path, kind: str) -> None:
    state = fit_kind(kind, X).to_state()
    inner = state.config["linear"] if kind == "full-rank" else state.config
    inner["label_names"] = inner["label_names"][:-1]
    save_model_folder(tmp_path / "m", state)
    with pytest.raises(ModelFolderError, match="lacks a part"):
        wsabie.load(tmp_path / "m")


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(ModelFolderError, match="no model of kind 'warp-drive'"):
        find_model_class("warp-drive")
