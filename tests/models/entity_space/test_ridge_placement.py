"""Ridge starts of spaces: where they apply, what they gain, and that threads change nothing."""

from typing import Any

import numpy as np
import pytest

from relation_world import GROUPS, N, by, features, make, same, tracks, world
from wsabie import EntityKind, Relation, Space
from wsabie.core.errors import InputError


def fit(relations: list[Relation], **changes: Any) -> Space:
    return make(**{"learning_rate": "auto", "epochs": 1, **changes}).fit(relations)


def test_one_epoch_after_a_ridge_start_ranks_artists_of_new_tracks() -> None:
    def compute_precision(init: str) -> float:
        space = fit([Relation(tracks(), "artist", by())], init=init)
        artists, _ = space.rank("track", "artist", features(30, 1), 2)
        return float((artists // 2 == (np.arange(30) % GROUPS)[:, None]).mean())

    assert compute_precision("auto") > 0.95 > compute_precision("random")


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dense", [False, True])
def test_threads_change_no_bit_of_a_ridge_start(reverse: bool, dense: bool) -> None:
    track = EntityKind("track", features().toarray() if dense else features(), [f"t{i}" for i in range(N)])
    artists = Relation("artist", track, [pair[::-1] for pair in by()]) if reverse else Relation(track, "artist", by())
    first, *others = (fit([artists], threads=n) for n in (1, 2, 3))
    assert not same(first, fit([artists], init="random"))
    assert all(same(first, other) for other in others)


@pytest.mark.parametrize(
    ("relations", "changes"),
    [
        (world(), {}),  # tracks like a track
        (world()[:1], {"learning_rate": 0.03}),
        (world()[:1], {"init_scale": 0.1}),
        (world()[:1], {"loss": "auc"}),
        (world()[:1], {"similarity": "euclidean"}),
        ([Relation("artist", "tag", [("a", "b"), ("c", "d")])], {}),
        ([Relation("artist", "tag", [("a", "b"), ("c", "d")])], {"init": "ridge"}),
    ],
)
def test_other_spaces_begin_at_random(relations: list[Relation], changes: dict[str, Any]) -> None:
    assert same(fit(relations, **changes), fit(relations, **{**changes, "init": "random"}))


@pytest.mark.parametrize("changes", [{}, {"learning_rate": 0.03}, {"similarity": "euclidean"}])
def test_stated_ridge_start_is_taken(changes: dict[str, Any]) -> None:
    assert not same(fit(world(), init="ridge", **changes), fit(world(), init="random", **changes))


def test_kinds_of_free_vectors_share_the_regression_of_a_map() -> None:
    """Each group has a singer and a player; half of the tracks have no pair."""
    track, pairs = tracks(), by(N // 2)
    singers, players = pairs[::2], pairs[1::2]
    space = fit([Relation(track, "singer", singers), Relation("player", track, [pair[::-1] for pair in players])])
    for kind in ("singer", "player"):
        ids, _ = space.rank("track", kind, features(30, 1), 1)
        assert (ids[:, 0] == np.arange(30) % GROUPS).mean() > 0.9


def test_second_kind_with_features_begins_at_random() -> None:
    """Free vectors belong to the first kind that is paired with them."""
    other = EntityKind("cover", features(seed=3), [f"t{i}" for i in range(N)])
    relations = [Relation(tracks(), "artist", by()), Relation(other, "artist", by())]
    options: dict[str, Any] = {"learning_rate": 1e-9, "max_norm": None}
    ridge, random = (fit(relations, init=init, **options).space_.tables for init in ("ridge", "random"))
    assert np.allclose(ridge["cover"], random["cover"], atol=1e-4)
    assert not np.allclose(ridge["track"], random["track"], atol=1e-2)


@pytest.mark.parametrize(
    ("scaling", "per_track", "expected"), [("auto", 2, "tfidf"), ("auto", 1, "log"), (None, 2, "none")]
)
def test_tracks_with_several_artists_get_idf_weights(scaling: Any, per_track: int, expected: str) -> None:
    space = fit([Relation(tracks(scaling=scaling), "artist", by()[:: 3 - per_track])])
    assert space.kinds_["track"].scaling is not None
    assert space.kinds_["track"].scaling.method == expected


def test_two_stated_starts_are_refused() -> None:
    with pytest.raises(InputError, match='init="ridge" and init_scale both say where training begins; leave one out'):
        fit(world(), init="ridge", init_scale=0.1)
