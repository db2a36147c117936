"""Saved = loaded = mapped, with tolerance zero; damaged, foreign and newer folders in a sentence."""

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wsabie
from toy_tasks import names, toy
from wsabie.core.errors import InputError, ModelFolderError
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.storage.model_folder import ModelState, open_model_folder, save_model_folder

X, Y, ANSWER = toy()


def fit_model(**changes: Any) -> Wsabie:
    validation = changes.pop("validation", None)
    model = Wsabie(**{"dim": 20, "epochs": 3, "threads": 1, **changes})
    return model.fit(X, names(ANSWER), validation=validation)


@pytest.fixture(scope="module")
def model() -> Wsabie:
    return fit_model(label_bias=True, validation=(X[:30], names(ANSWER[:30])))


@pytest.mark.parametrize(("similarity", "dim"), [("dot", 20), ("euclidean", 20), ("cosine", 20), ("dot", 16)])
def test_loaded_model_answers_as_the_saved_one(tmp_path: Path, similarity: str, dim: int) -> None:
    """Width 20 is padded in memory, 16 is not."""
    saved = fit_model(similarity=similarity, dim=dim, label_bias=True)
    saved.save(tmp_path / "m")
    loaded = wsabie.load(tmp_path / "m")
    assert isinstance(loaded.space_.labels, np.memmap)
    for a, b in zip(saved.rank(X, 5), loaded.rank(X, 5), strict=True):
        assert np.array_equal(a, b)
    assert np.array_equal(saved.transform(X), loaded.transform(X))
    assert np.array_equal(saved.scores(X), loaded.scores(X))
    assert np.array_equal(saved.label_vectors, loaded.label_vectors)
    assert saved.neighbours("label 3") == loaded.neighbours("label 3")
    assert saved.annotate(X[:4]) == loaded.annotate(X[:4])
    assert saved.score(X, names(ANSWER)) == loaded.score(X, names(ANSWER))


def test_folder_keeps_all_state(tmp_path: Path, model: Wsabie) -> None:
    model.save(tmp_path / "m")
    loaded = Wsabie.load(tmp_path / "m")
    assert loaded.get_params() == model.get_params()
    assert list(loaded.vocabulary_) == list(model.vocabulary_)
    assert loaded.history_ == model.history_
    assert loaded.n_features_in_ == model.n_features_in_
    assert loaded.scaling_.method == model.scaling_.method
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_parameters_of_every_form_are_kept(tmp_path: Path) -> None:
    changes = {"rank_weight": np.array([1, 0.5]), "learning_rate": {"V": 0.1, "W": np.float32(0.2)}, "max_norm": None}
    fit_model(**changes).save(tmp_path / "m")
    loaded = Wsabie.load(tmp_path / "m").get_params()
    assert loaded["rank_weight"] == [1, 0.5]
    assert loaded["learning_rate"] == {"V": 0.1, "W": pytest.approx(0.2)}
    assert loaded["max_norm"] is None


def test_saving_a_loaded_model_writes_the_same_tensors(tmp_path: Path, model: Wsabie) -> None:
    model.save(tmp_path / "a")
    Wsabie.load(tmp_path / "a").save(tmp_path / "b")
    files = [sorted(p.name for p in (tmp_path / f / "tensors").iterdir()) for f in "ab"]
    assert files[0] == files[1]
    Wsabie.load(tmp_path / "a").save(tmp_path / "a")
    assert np.array_equal(Wsabie.load(tmp_path / "a").transform(X), model.transform(X))


def test_loaded_model_continues_training(tmp_path: Path) -> None:
    saved = fit_model()
    saved.save(tmp_path / "m")
    loaded = Wsabie.load(tmp_path / "m")
    for either in (saved, loaded):
        either.partial_fit(X, [["new"]] * 120, epochs=2)
    assert np.array_equal(loaded.space_.labels, saved.space_.labels)
    assert np.array_equal(loaded.space_.features, saved.space_.features)
    assert Wsabie.load(tmp_path / "m").space_.n_labels == 12


def test_pickled_model_answers_alike(model: Wsabie) -> None:
    """For process pools; files on disk are never pickles."""
    copied = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert np.array_equal(copied.transform(X), model.transform(X))


def test_folder_describes_itself(tmp_path: Path, model: Wsabie) -> None:
    model.save(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert (config["format"], config["version"], config["kind"]) == ("wsabie", 1, Wsabie.kind)
    assert config["config"]["versions"]["wsabie"] == wsabie.__version__
    assert not list((tmp_path / "m").rglob("*.pkl"))


def test_flipped_bit_in_any_file_is_detected(tmp_path: Path, model: Wsabie) -> None:
    model.save(tmp_path / "m")
    for file in [p for p in (tmp_path / "m").rglob("*") if p.is_file()]:
        content = file.read_bytes()
        file.write_bytes(content[:-5] + bytes([content[-5] ^ 4]) + content[-4:])
        with pytest.raises(ModelFolderError, match=r"is damaged.*restore the folder from a copy or make it again"):
            wsabie.load(tmp_path / "m")
        file.write_bytes(content)
    wsabie.load(tmp_path / "m")


@pytest.mark.parametrize("part", ["label_names", "parameters", "scaling", "history", "calibration"])
def test_config_without_a_part_is_refused(tmp_path: Path, model: Wsabie, part: str) -> None:
    state = model.to_state()
    config = {k: v for k, v in state.config.items() if k != part}
    save_model_folder(tmp_path / "m", ModelState(state.kind, config, state.tensors))
    for load in (wsabie.load, Wsabie.load):
        with pytest.raises(ModelFolderError, match=r"lacks a part .*; restore it from a copy or make"):
            load(tmp_path / "m")


def test_competition_is_saved_if_there_is_any(tmp_path: Path) -> None:
    model = fit_model(validation=(X[:30], names(ANSWER[:30])))
    assert model.calibration_ is not None
    assert "competition" not in model.to_state().config
    model.calibration_ = replace(model.calibration_, competition=0.5)
    model.save(tmp_path / "m")
    loaded = Wsabie.load(tmp_path / "m")
    assert loaded.calibration_ is not None
    assert loaded.calibration_.competition == 0.5
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("tensor", ["features", "labels", "bias", "scaling/weight"])
def test_folder_without_a_tensor_is_refused(tmp_path: Path, model: Wsabie, tensor: str) -> None:
    state = model.to_state()
    tensors = {k: v for k, v in state.tensors.items() if k != tensor}
    save_model_folder(tmp_path / "m", ModelState(state.kind, state.config, tensors))
    with pytest.raises(ModelFolderError, match=f"lacks a part .*{tensor}"):
        wsabie.load(tmp_path / "m")


@pytest.mark.parametrize("tensor", ["features", "labels", "bias"])
def test_inconsistent_tensors_are_refused(tmp_path: Path, model: Wsabie, tensor: str) -> None:
    state = model.to_state()
    tensors = {**state.tensors, tensor: state.tensors[tensor][..., :-1]}
    save_model_folder(tmp_path / "m", ModelState(state.kind, state.config, tensors))
    with pytest.raises(ModelFolderError, match=f"the sizes of .*{tensor}.* do not agree with the rest"):
        wsabie.load(tmp_path / "m")


def test_parameter_of_a_later_version_is_refused(tmp_path: Path, model: Wsabie) -> None:
    state = model.to_state()
    state.config["parameters"]["warp_drive"] = 9
    save_model_folder(tmp_path / "m", state)
    with pytest.raises(ModelFolderError, match=r"lacks a part .*warp_drive"):
        wsabie.load(tmp_path / "m")


@pytest.mark.parametrize("kind", ["checkpoint", "dictionary"])
def test_folder_of_another_kind_is_named(tmp_path: Path, kind: str) -> None:
    save_model_folder(tmp_path / "m", ModelState(kind, {}, {}))
    for load in (wsabie.load, Wsabie.load, wsabie.Annotator.load):
        with pytest.raises(ModelFolderError, match=f"holds '{kind}' where .* is needed; give the folder"):
            load(tmp_path / "m")


def test_full_disk_keeps_the_old_model(tmp_path: Path, model: Wsabie, monkeypatch: Any) -> None:
    import errno

    from wsabie.storage import atomic_files

    model.save(tmp_path / "m")
    saved_parts = open_model_folder(tmp_path / "m")

    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic_files, "_flush", full)
    with pytest.raises(InputError, match=r"the disk is full; free some space and run the same command again"):
        fit_model(seed=9).save(tmp_path / "m")
    monkeypatch.undo()
    loaded = wsabie.load(tmp_path / "m")
    assert np.array_equal(loaded.label_vectors, saved_parts.tensors["labels"])


@pytest.mark.parametrize("model", [Wsabie(), wsabie.LinearRanker(), wsabie.Ensemble(), wsabie.Popularity()])
def test_unfitted_models_are_not_saved(model: Any, tmp_path: Path) -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError, match=r"call fit\(X, Y\) first"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()
