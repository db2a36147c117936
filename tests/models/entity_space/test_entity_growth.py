"""Growth of a fitted space by entities and pairs."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from relation_world import by, features, make, same, tracks, world
from wsabie.core.errors import InputError
from wsabie.models.base.hyperparameters import resolve_continued_settings
from wsabie.models.base.parameter_defaults import TrainingShape
from wsabie.models.entity_space import fitted_entities
from wsabie.models.entity_space.relations import EntityKind, Relation
from wsabie.models.entity_space.space import Space
from wsabie.training.trainer import Trainer
from wsabie.training.training_data import TrainingData


@pytest.fixture(scope="module")
def fitted() -> Space:
    return make(epochs=30).fit(world())


def grown(fitted: Space, *relations: Relation, **options: Any) -> Space:
    """A space that has more, from a copy."""
    return deepcopy(fitted).partial_fit(list(relations), **options)


def test_new_artist_is_placed_among_its_tracks(fitted: Space) -> None:
    """The artist of group 0's new tracks is placed among them; a track of another group is not theirs."""
    fresh = tracks(24, seed=1, prefix="n")
    pairs = [(f"n{i}", "newcomer") for i in range(0, 24, 6)]
    more = grown(fitted, Relation(fresh, "artist", pairs))
    assert more.entity_names("artist") == [*fitted.entity_names("artist"), "newcomer"]
    assert more.entity_names("track") == [*fitted.entity_names("track"), *(f"n{i}" for i in range(24))]
    new_features = features(12, seed=2)
    artists = [[name for name, _ in top] for top in more.annotate("track", "artist", new_features, k=3)]
    assert all("newcomer" in artists[i] for i in (0, 6))
    assert not any("newcomer" in artists[i][:2] for i in (1, 2, 3, 4, 5)), "the two of their own group come first"


def test_growth_keeps_maps_and_moves_free_vectors(fitted: Space) -> None:
    more = grown(fitted, Relation("track", "artist", [("t0", "artist 3")]))
    assert np.array_equal(more.space_.tables["track"], fitted.space_.tables["track"])
    assert np.array_equal(more.compute_points("track"), fitted.compute_points("track"))
    moved = (more.compute_points("artist") != fitted.compute_points("artist")).any(1)
    assert moved[fitted.entity_names("artist").index("artist 3")]
    assert len(more.history_) == len(fitted.history_) + 5
    assert [stats.epoch for stats in more.history_] == list(range(35))


def test_new_features_of_a_known_track_move_its_point(fitted: Space) -> None:
    again = EntityKind("track", features(1, seed=9), ["t5"])
    more = grown(fitted, Relation(again, "artist", [("t5", "artist 0")]), epochs=1)
    where = fitted.entity_names("track").index("t5")
    assert np.allclose(more.compute_points("track", ["t5"]), fitted.compute_points("track", features(1, seed=9)))
    is_unchanged = np.arange(48) != where
    assert np.array_equal(more.compute_points("track")[is_unchanged], fitted.compute_points("track")[is_unchanged])


def test_entities_of_one_kind_are_added_without_training(fitted: Space) -> None:
    """Nothing is trained: where features are on both sides there is no free vector to move."""
    fresh = tracks(6, seed=3, prefix="n")
    more = grown(fitted, Relation(fresh, fresh, [("n0", "n1")]))
    assert len(more.history_) == len(fitted.history_)
    assert np.array_equal(more.compute_points("artist"), fitted.compute_points("artist"))
    assert np.array_equal(
        more.compute_points("track", [f"n{i}" for i in range(6)]), fitted.compute_points("track", features(6, seed=3))
    )


def test_new_kind_and_relation_are_learned(fitted: Space) -> None:
    genres = [(f"artist {a}", f"genre {a // 2}") for a in range(12)]
    more = grown(fitted, Relation("artist", "genre", genres), epochs=30)
    assert ("artist - genre", "artist", "genre") in more.relations_
    best = [top[0][0] for top in more.annotate("artist", "genre", [f"artist {a}" for a in range(12)], k=1)]
    assert np.mean([best[a] == f"genre {a // 2}" for a in range(12)]) > 0.8


def test_threads_change_no_bit(fitted: Space) -> None:
    relation = Relation("track", "artist", [(f"t{i}", f"artist {i % 7}") for i in range(48)])
    shared = deepcopy(fitted).set_params(threads=2)
    assert same(grown(fitted, relation), grown(shared, relation))


def test_unfitted_space_is_fitted() -> None:
    model = make(epochs=12)
    assert len(model.partial_fit(world(), epochs=3).history_) == 3
    assert model.epochs == 12


@pytest.mark.parametrize(
    ("relation", "sentence"),
    [
        (
            Relation(EntityKind("song", features(2), ["a", "b"]), "artist", [("a", "x")]),
            "knows no kind 'song'; fit it again",
        ),
        (
            Relation(EntityKind("artist", features(2), ["a", "b"]), "track", [("a", "t0")]),
            "entities of the kind 'artist' have no",
        ),
        (Relation(EntityKind("track", np.ones((1, 4)), ["a"]), "artist", [("a", "x")]), "has 4 features"),
        (Relation("track", "artist", [("unknown", "artist 0")]), "the pairs of 'track - artist' cannot be used"),
    ],
)
def test_refused_growth_changes_nothing(fitted: Space, relation: Relation, sentence: str) -> None:
    state = fitted.entity_names("artist"), fitted.compute_points("artist").copy()
    with pytest.raises(InputError, match=sentence):
        fitted.partial_fit([relation])
    assert fitted.entity_names("artist") == state[0]
    assert np.array_equal(fitted.compute_points("artist"), state[1])


def test_entities_are_placed_by_their_map_alone(fitted: Space) -> None:
    more = deepcopy(fitted).add(tracks(6, seed=3, prefix="n"))
    assert more.entity_names("track")[48:] == [f"n{i}" for i in range(6)]
    assert np.array_equal(more.compute_points("track")[48:], fitted.compute_points("track", features(6, seed=3)))
    assert np.array_equal(more.compute_points("artist"), fitted.compute_points("artist"))
    assert (
        more.annotate("artist", "track", ["artist 0"], k=54)[0]
        != fitted.annotate("artist", "track", ["artist 0"], k=48)[0]
    )
    with pytest.raises(InputError, match="have no features; give their names alone"):
        deepcopy(fitted).add(EntityKind("artist", features(1), ["x"]))


@pytest.mark.parametrize("rows", ["auto", None])
def test_feature_points_never_move(rows: Any) -> None:
    """Free vectors are held to the limit beside given points that are far longer than it."""
    tracks = EntityKind("track", 40 * features(), [f"t{i}" for i in range(48)], scaling=rows)
    space = make(epochs=3).fit([Relation(tracks, "artist", by())])
    pairs = [*by(), *((f"t{i}", "newcomer") for i in range(48))]
    relations = [Relation("track", "artist", pairs), Relation("artist", "track", [(b, a) for a, b in pairs])]
    more = fitted_entities.grow_space(space.kinds_, space.space_, relations, 0)
    old_tables = {name: table.copy() for name, table in more.points.tables.items()}
    settings = resolve_continued_settings(space._list_parameters(), space.settings_, TrainingShape(1, 1, 9), 3, 0)
    Trainer(settings).train(more.points, TrainingData(more.blocks))
    assert np.array_equal(more.points.tables["track"], old_tables["track"])
    assert not np.array_equal(more.points.tables["artist"], old_tables["artist"])


def test_kind_named_as_a_map_is_refused() -> None:
    documents = EntityKind("document", features(), [f"t{i}" for i in range(48)], map="words")
    space = make(epochs=2).fit([Relation(documents, "artist", by())])
    copied = deepcopy(space)
    with pytest.raises(InputError, match="'words' is a map of features in this space; rename the new kind"):
        space.partial_fit([Relation("document", "words", [("t0", f"word {i}") for i in range(40)])])
    assert same(space, copied)


def test_untrained_relation_is_not_a_learned_one(fitted: Space) -> None:
    fresh = tracks(6, seed=3, prefix="n")
    more = grown(fitted, Relation(fresh, fresh, [("n0", "n1")], "near"))
    assert more.relations_ == fitted.relations_


def test_new_free_vector_has_the_length_of_its_kind(fitted: Space) -> None:
    more = fitted_entities.grow_space(
        fitted.kinds_, fitted.space_, [Relation("track", "artist", [("t0", "newcomer")])], 0
    )
    lengths = np.linalg.norm(more.points.tables["artist"], axis=1)
    assert lengths[-1] == pytest.approx(lengths[:-1].mean(), rel=1e-5)
    t0 = fitted.compute_points("track", ["t0"])[0]
    assert more.points.tables["artist"][-1, :20] @ t0 == pytest.approx(lengths[-1] * np.linalg.norm(t0), rel=1e-5)
