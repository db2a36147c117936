"""Preparation of kinds and pairs: growing names, shared maps, training tables, checksums."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.reference.warp import list_positives

from relation_world import N, by, features, like, tracks, world
from wsabie.core.errors import InputError
from wsabie.models.entity_space.relation_data import prepare_relation_data
from wsabie.models.entity_space.relations import EntityKind, Relation, compute_pair_weights


def test_only_free_kinds_grow() -> None:
    data = prepare_relation_data([
        Relation(tracks(), "artist", by(6)),
        Relation("artist", "tag", [("artist 0", "loud"), ("newcomer", "quiet")]),
        Relation("artist", "artist", [("newcomer", "another")]),
    ])  # fmt: skip
    assert list(data.entities["artist"].vocabulary) == [f"artist {k}" for k in range(12)] + ["newcomer", "another"]
    assert [Y.shape for Y in data.pairs.values()] == [(N, 14), (14, 2), (14, 14)]
    assert data.table_sizes == {"track": 30, "artist": 14, "tag": 2}
    assert data.n_pairs == 12 + 2 + 2
    with pytest.raises(InputError, match="'track - artist' cannot be used: there is no track 'zz'"):
        prepare_relation_data([Relation(tracks(), "artist", [("zz", "a")])])


def test_known_entities_keep_their_ids() -> None:
    artists = EntityKind("artist", ids=["first", "second"])
    data = prepare_relation_data([Relation(tracks(), artists, [("t0", "new"), ("t1", "second")])])
    assert list(data.entities["artist"].vocabulary) == ["first", "second", "new"]
    numbered = prepare_relation_data([Relation(tracks(), artists, [(0, 1)])])
    assert numbered.n_pairs == 1
    assert list(artists.names()) == ["first", "second"]  # what was given is not changed


def test_trainer_gets_tables_and_streams_of_each_relation() -> None:
    data = prepare_relation_data(world())
    blocks = data.blocks(7)
    assert [(b.ends.query, b.ends.target, b.ends.negatives) for b in blocks] == [
        ("track", "artist", 7), ("track", "track", 7)
    ]  # fmt: skip
    assert blocks[0].ends.candidates is None
    assert blocks[1].ends.candidates is blocks[1].inputs is blocks[0].inputs
    assert [b.targets.first_pair for b in blocks] == [0, 2 * N]
    assert [len(b.targets.labels) for b in blocks] == [2 * N, 2 * (N - 6)]


def test_entity_is_hidden_only_from_itself() -> None:
    blocks = prepare_relation_data([*world(), Relation("artist", "artist", [("artist 0", "artist 1")])]).blocks(4)
    assert [i in list_positives(b.targets, i) for b in blocks for i in (3,)] == [False, True, True]
    assert blocks[0].targets.n_labels == 12


def test_kinds_of_one_map_share_table_and_scaling() -> None:
    docs, queries = EntityKind("doc", features(9), map="text"), EntityKind("query", 3 * features(9), map="text")
    data = prepare_relation_data([Relation(queries, docs, np.stack([np.arange(9)] * 2, 1))])
    assert data.table_sizes == {"text": 30}
    assert data.entities["query"].scaling is data.entities["doc"].scaling
    assert np.array_equal(data.blocks(0)[0].ends.candidates.data[:3], data.inputs["doc"].data[:3])


def test_dense_rows_have_a_constant_in_the_table() -> None:
    rows = np.random.default_rng(0).random((9, 4))
    assert prepare_relation_data([Relation(EntityKind("k", rows), "tag", [("0", "a"), ("3", "b")])]).table_sizes == {
        "k": 5,
        "tag": 2,
    }


def test_pairs_weigh_more_for_busy_queries() -> None:
    assert compute_pair_weights(sp.identity(4, np.int8, "csr")) == pytest.approx(np.ones(4))
    Y = sp.csr_matrix(np.array([[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0]], np.int8))
    assert compute_pair_weights(Y) == pytest.approx(np.full(3, 3**0.75))
    assert compute_pair_weights(Y).dtype == np.float32


@pytest.mark.parametrize(
    ("relations", "sentence"),
    [
        ([], "there is no relation to learn; give at least one Relation"),
        (Relation("a", "b", [("x", "y")]), "the relations are Relation.*; give a list of Relation"),
        ([[("x", "y")]], "the relations are .*; give a list of Relation"),
        ([Relation("a", "b", [])], "the relation 'a - b' has no pairs; give some, or leave it out"),
        ([Relation("a", "a", [("x", "x")])], "the relation 'a - a' has no pairs"),
        (
            [Relation(EntityKind("k", np.ones((2, 0))), "b", [(0, 0)])],
            "the kind 'k' has 2 rows of 0 features; give at least",
        ),
        ([Relation(EntityKind("k", sp.csr_matrix((2, 0))), "b", [(0, 0)])], "the kind 'k' has 2 rows of 0 features"),
        ([Relation(EntityKind("k", np.ones((0, 2))), "b", [(0, 0)])], "the kind 'k' has 0 rows of 2 features"),
        ([Relation(EntityKind("k", [[1, np.nan]]), "b", [(0, 0)])], "the features of 'k' holds NaN at row 0, column 1"),
        ([Relation(EntityKind("k", [[1, 2]], scaling="l2"), "b", [(0, 0)])], "scaling is 'l2'; choose"),  # type: ignore[arg-type]
        (
            [Relation(EntityKind("k", np.eye(2), map="m"), EntityKind("l", np.ones((2, 3)), map="m"), [(0, 0)])],
            "the kinds of the map 'm' have 2 and 3 features; give them the same features, or leave map out",
        ),
        (
            [Relation(EntityKind("k", np.eye(2), map="m"), EntityKind("l", sp.identity(2), map="m"), [(0, 0)])],
            "trained on dense rows; give a dense array",
        ),
        (
            [Relation(EntityKind("k", np.eye(2), map="b"), "b", [("0", "x")])],
            "'b' is a map of features and a kind without them; call the map otherwise",
        ),
    ],
)
def test_unlearnable_relations_are_refused(relations: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        prepare_relation_data(relations)


OTHER_WORLDS: dict[str, Any] = {
    "pairs": lambda: [world()[0], Relation("track", "track", like(step=12))],
    "features": lambda: world(seed=1),
    "map": lambda: world(map="sound"),
    "weight": lambda: [world()[0], Relation("track", "track", like(), weight=2)],
    "name": lambda: [world()[0], Relation("track", "track", like(), name="alike")],
    "order": lambda: world()[::-1],
    "ends": lambda: [Relation("artist", world()[0].query, [pair[::-1] for pair in by()], name="track - artist")],
}


@pytest.mark.parametrize("change", OTHER_WORLDS)
def test_checksum_covers_all_training_data(change: str) -> None:
    first_checksum = prepare_relation_data(world()).checksum()
    assert prepare_relation_data(world()).checksum() == first_checksum
    assert prepare_relation_data(OTHER_WORLDS[change]()).checksum() != first_checksum
