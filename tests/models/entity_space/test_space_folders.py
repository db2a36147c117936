"""Checkpoints and folders of the estimator of many kinds."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relation_world import N, by, features, like, make, same, stopping, tracks, world
from wsabie import EntityKind, Relation, Space
from wsabie.core.errors import InputError, ModelFolderError
from wsabie.storage.model_folder import ModelState, save_model_folder

HELD_OUT = Relation("track", "track", like(step=12))


@pytest.fixture(scope="module")
def fitted() -> Space:
    return make().fit(world())


# ---- checkpoints


@pytest.mark.usefixtures("every_epoch")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("validation", "init"), [((), "random"), ((HELD_OUT,), "random"), ((HELD_OUT,), "ridge")])
def test_resumed_fit_equals_an_uninterrupted_one(tmp_path: Path, threads: int, validation: Any, init: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        make(epochs=6, init=init).fit(world(), validation=validation, checkpoint=tmp_path / "c", on_epoch=stopping(3))
    epochs: list[int] = []
    model = make(epochs=6, threads=threads, init=init).fit(
        world(), validation=validation, checkpoint=tmp_path / "c", resume=True,
        on_epoch=lambda stats: epochs.append(stats.epoch),
    )  # fmt: skip
    assert epochs == [3, 4, 5]
    assert same(model, make(epochs=6, init=init).fit(world(), validation=validation))


OTHER_DATA: dict[str, Any] = {
    "pairs": lambda: {"relations": [world()[0]]},
    "features": lambda: {"relations": world(seed=1)},
    "map": lambda: {"relations": world(map="sound")},
    "validation": lambda: {"validation": [Relation("track", "track", like(step=18))]},
    "no validation": lambda: {"validation": []},
    "validation's features": lambda: {"validation": [HELD_OUT, Relation(tracks(9, 1), "artist", by(9))]},
    "stop_on": lambda: {"stop_on": "track - track"},
    "fingerprint": lambda: {"fingerprint": "other"},
}


@pytest.mark.usefixtures("every_epoch")
@pytest.mark.parametrize("change", OTHER_DATA)
def test_checkpoint_of_other_data_is_refused(tmp_path: Path, change: str) -> None:
    data = {"relations": world(), "validation": [HELD_OUT]}
    with pytest.raises(KeyboardInterrupt):
        make(epochs=4).fit(**data, checkpoint=tmp_path / "c", on_epoch=stopping(2))
    with pytest.raises(InputError, match="was made with other data; use the same settings and data"):
        make(epochs=4).fit(**{**data, **OTHER_DATA[change]()}, checkpoint=tmp_path / "c", resume=True)


@pytest.mark.usefixtures("every_epoch")
@pytest.mark.parametrize(
    "change",
    [{"dim": 21}, {"similarity": "cosine"}, {"negatives": 0}, {"init_scale": 1.0}, {"seed": 5}, {"learning_rate": 0.2}],
)
def test_checkpoint_of_other_settings_is_refused_by_name(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(KeyboardInterrupt):
        make(epochs=4).fit(world(), checkpoint=tmp_path / "c", on_epoch=stopping(2))
    with pytest.raises(InputError, match=f"was made with other .*{next(iter(change))}"):
        make(epochs=4, **change).fit(world(), checkpoint=tmp_path / "c", resume=True)


# ---- folders


@pytest.mark.parametrize(("similarity", "dim"), [("dot", 20), ("euclidean", 32), ("cosine", 20)])
@pytest.mark.parametrize("dense", [False, True])
def test_loaded_space_answers_as_the_saved_one(tmp_path: Path, similarity: str, dim: int, dense: bool) -> None:
    X = features().toarray() if dense else features()
    tracks = EntityKind("track/of sound", X, [f"t{i}" for i in range(N)], map="m")
    relations = [Relation(tracks, "artist", by()), Relation(tracks, tracks, like())]
    saved = make(similarity=similarity, dim=dim, epochs=2).fit(relations)
    saved.save(tmp_path / "m")
    loaded = Space.load(tmp_path / "m")
    assert same(saved, loaded)
    assert loaded.get_params() == saved.get_params()
    assert loaded.relations_ == saved.relations_
    assert loaded.settings_ == saved.settings_
    assert {name: list(kind.vocabulary) for name, kind in loaded.kinds_.items()} == {
        "track/of sound": saved.entity_names("track/of sound"), "artist": saved.entity_names("artist")
    }  # fmt: skip
    for target in ("artist", "track/of sound"):
        for items in (X[:5], ["t3", "t4"], None):
            pairs = zip(*(m.rank("track/of sound", target, items, 7) for m in (saved, loaded)), strict=True)
            assert all(np.array_equal(a, b) for a, b in pairs)
    assert loaded.find_similar("artist", "artist 3") == saved.find_similar("artist", "artist 3")
    held_out = [Relation(EntityKind("track/of sound", X[:6]), "artist", [(i, i) for i in range(6)])]
    assert loaded.evaluate(held_out)["track/of sound - artist"].means == (
        saved.evaluate(held_out)["track/of sound - artist"].means
    )
    loaded.save(tmp_path / "m")
    assert same(Space.load(tmp_path / "m"), saved)


def test_fitted_space_ignores_later_parameter_changes(tmp_path: Path) -> None:
    model = make(epochs=2).fit(world())
    old_ranking = model.rank("track", "artist", None, 3)
    model.set_params(dim=7, similarity="cosine").save(tmp_path / "m")
    del model._searched
    for now in (model, Space.load(tmp_path / "m")):
        assert all(np.array_equal(a, b) for a, b in zip(now.rank("track", "artist", None, 3), old_ranking, strict=True))


def test_pickled_space_answers_alike(fitted: Space) -> None:
    fitted.rank("track", "artist", ["t0"])
    copied = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    assert same(copied, fitted)
    assert copied.annotate("track", "artist", ["t0"]) == fitted.annotate("track", "artist", ["t0"])


def test_flipped_bit_in_any_file_is_detected(tmp_path: Path, fitted: Space) -> None:
    fitted.save(tmp_path / "m")
    for file in [p for p in (tmp_path / "m").rglob("*") if p.is_file()]:
        content = file.read_bytes()
        file.write_bytes(content[:-5] + bytes([content[-5] ^ 4]) + content[-4:])
        with pytest.raises(ModelFolderError, match=r"is damaged.*restore the folder from a copy or make it again"):
            Space.load(tmp_path / "m")
        file.write_bytes(content)
    Space.load(tmp_path / "m")


@pytest.mark.parametrize("part", ["parameters", "kinds", "relations", "settings", "history"])
def test_config_without_a_part_is_refused(tmp_path: Path, fitted: Space, part: str) -> None:
    state = fitted.to_state()
    config = {name: value for name, value in state.config.items() if name != part}
    save_model_folder(tmp_path / "m", ModelState(state.kind, config, state.tensors))
    with pytest.raises(ModelFolderError, match=f"lacks a part .*{part}.*; restore it from a copy"):
        Space.load(tmp_path / "m")


def test_folder_with_missing_or_resized_tensor_is_refused(tmp_path: Path, fitted: Space) -> None:
    state = fitted.to_state()
    for name, array in state.tensors.items():
        remaining = {key: value for key, value in state.tensors.items() if key != name}
        sizes = [remaining] if not len(array) else [remaining, {**remaining, name: array[:-1]}]
        for tensors in sizes:
            save_model_folder(tmp_path / "m", ModelState(state.kind, state.config, tensors))
            with pytest.raises(ModelFolderError, match=r"lacks a part .*; restore it from a copy or make"):
                Space.load(tmp_path / "m")


def test_folder_of_another_kind_is_named(tmp_path: Path) -> None:
    save_model_folder(tmp_path / "m", ModelState("wsabie", {}, {}))
    with pytest.raises(ModelFolderError, match="holds 'wsabie' where 'space' is needed"):
        Space.load(tmp_path / "m")
