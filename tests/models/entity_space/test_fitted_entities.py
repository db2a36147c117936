"""Fitted entity kinds: names, ids, points, and their part of a folder."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from relation_world import features, tracks
from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.embedding.relation_spaces import MultiRelationSpace
from wsabie.models.entity_space.fitted_entities import EntitiesConfig, FittedEntities, fit_entities, restore_tables
from wsabie.models.entity_space.relations import EntityKind


@pytest.fixture
def entities() -> dict[str, FittedEntities]:
    fitted = fit_entities({"track": tracks(), "artist": EntityKind("artist", ids=["a", "b", "c"])})
    space = MultiRelationSpace.random({"track": 30, "artist": 3}, 20, "dot", np.random.default_rng(0))
    track = fitted["track"]
    track.points = track.compute_points(space, track.inputs(features()))
    return fitted


@pytest.mark.parametrize("items", [["t3", "t0"], [3, 0], np.array([3, 0]), np.array(["t3", "t0"]), (np.int32(3), 0)])
def test_names_and_ids_select_the_same_entities(entities: dict[str, FittedEntities], items: Any) -> None:
    assert entities["track"].ids(items).tolist() == [3, 0]
    assert entities["track"].ids(items).dtype == np.int64


def test_single_entity_needs_no_list(entities: dict[str, FittedEntities]) -> None:
    assert entities["track"].ids("t3").tolist() == entities["track"].ids(np.int64(3)).tolist() == [3]
    assert entities["track"].ids([]).tolist() == []


@pytest.mark.parametrize("items", [1.5, None, [1.0], ["t0", 1], [[0, 1]], [True], np.ones(48, bool), np.eye(2)])
def test_other_queries_are_refused(entities: dict[str, FittedEntities], items: Any) -> None:
    with pytest.raises(InputError, match="entities of the kind 'track' are names or whole numbers; these are"):
        entities["track"].ids(items)


@pytest.mark.parametrize("number", [48, -1, 2**70])
def test_unknown_ids_are_refused(entities: dict[str, FittedEntities], number: int) -> None:
    with pytest.raises(InputError, match=f"there is no track number {number}"):
        entities["track"].ids([number])
    with pytest.raises(UnknownLabelError, match="there is no track 'tt'"):
        entities["track"].ids(["tt"])


def test_features_are_refused_for_kinds_without(entities: dict[str, FittedEntities]) -> None:
    assert entities["artist"].inputs(None).tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="entities of the kind 'artist' have no features; give their names or numbers"):
        entities["artist"].inputs(np.eye(3))
    with pytest.raises(InputError, match="X has 29 features, but the kind 'track' is expecting 30 features as input"):
        entities["track"].inputs(features()[:, 1:])
    with pytest.raises(InputError, match="give a sparse matrix"):
        entities["track"].inputs(features().toarray())


@pytest.mark.parametrize("X", [features(), features().toarray()])
def test_saved_kind_is_restored(X: Any) -> None:
    fitted = fit_entities(
        {"k/1": EntityKind("k/1", X), "k": EntityKind("k", 2 * X), "free": EntityKind("free", ids=["a"])}
    )
    tensors: dict[str, Any] = {}
    for name, kind in fitted.items():
        kind.points = None if kind.scaling is None else np.full((48, 4), len(name), np.float32)
        config, entity_tensors = kind.dump()
        tensors |= entity_tensors
        again = FittedEntities.restore(name, EntitiesConfig(**config), {**tensors, "other/points": np.zeros(3)})
        assert (list(again.vocabulary), again.table, again.n_features) == (
            list(kind.vocabulary),
            kind.table,
            kind.n_features,
        )
        assert again.n_rows == kind.n_rows
        if kind.scaling is None:
            assert again.scaling is again.points is None
        else:
            assert np.array_equal(again.points, kind.points)
            with pytest.raises(ValueError, match="the sizes of points do not agree"):
                FittedEntities.restore(name, EntitiesConfig(**config), {**tensors, f"{name}/points": kind.points[:-1]})
            for a, b in zip(again.inputs(X), kind.inputs(X), strict=True):
                assert np.array_equal(a, b)


@pytest.mark.parametrize("broken", ["rows", "columns", "points", "free"])
def test_inconsistent_tables_are_refused(entities: dict[str, FittedEntities], broken: str) -> None:
    """Kernels would read beyond them."""
    tensors = {"tables/track": np.zeros((30, 20), np.float32), "tables/artist": np.zeros((3, 20), np.float32)}
    restore_tables(tensors, 20, "dot", entities.values())
    if broken == "rows":
        tensors["tables/track"] = tensors["tables/track"][:-1]
    elif broken == "columns":
        tensors["tables/artist"] = tensors["tables/artist"][:, :-1]
    elif broken == "free":
        tensors["tables/artist"] = tensors["tables/artist"][:-1]
    else:
        entities["track"].points = np.zeros((48, 19), np.float32)
    with pytest.raises(ValueError, match=r"the sizes of .* do not agree"):
        restore_tables(tensors, 20, "dot", entities.values())


def test_sparse_input_rows_are_not_changed() -> None:
    kind = fit_entities({"k": EntityKind("k", sp.identity(3, format="csr"), scaling=None)})["k"]
    assert kind.scaling is not None
    assert kind.scaling.method == "none"
