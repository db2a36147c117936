"""Evaluation on held-out pairs: candidates, exclusions, and metrics that steer training."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from relation_world import GROUPS, N, by, features, like, make, tracks, world
from wsabie.core.errors import InputError
from wsabie.embedding.relation_spaces import MultiRelationSpace
from wsabie.models.entity_space import relation_data
from wsabie.models.entity_space.relation_data import SpaceMonitor, build_holdout_pairs, prepare_relation_data
from wsabie.models.entity_space.relations import EntityKind, Relation
from wsabie.models.entity_space.space import Space
from wsabie.training.kernel_threads import KernelThreads


@pytest.fixture(scope="module")
def fitted() -> Space:
    return make(epochs=3).fit(world())


def make_space(data: Any) -> MultiRelationSpace:
    return MultiRelationSpace.random(data.table_sizes, 20, "dot", np.random.default_rng(0))


def list_cells(matrix: Any) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, j in np.argwhere(matrix.toarray())}


def test_known_entities_are_ranked_without_training_pairs() -> None:
    data = prepare_relation_data(world())
    holdout = data.holdout_pairs(Relation("track", "track", [("t0", "t12"), ("t0", "t6"), ("t3", "t3")]))
    assert holdout.query_ids.tolist() == [0, 12]  # a pair counts both ways; t0 - t6 is of training, t3 - t3 of nothing
    assert holdout.Y.shape == (2, N)
    assert list_cells(holdout.Y) == {(0, 12), (1, 0)}
    assert list_cells(holdout.exclude) == {(0, 0), (0, 6), (1, 6), (1, 12), (1, 18)}


def test_training_pairs_of_another_kind_are_no_candidates() -> None:
    holdout = prepare_relation_data(world()).holdout_pairs(Relation("track", "artist", [("t1", "artist 7")]))
    assert holdout.query_ids.tolist() == [1]
    assert list_cells(holdout.exclude) == {(0, 2), (0, 3)}
    assert list_cells(holdout.Y) == {(0, 7)}


def test_training_kind_gives_the_results_of_its_name() -> None:
    """Its pairs of training are not candidates either way."""
    relations = world()
    data, tracks = prepare_relation_data(relations), relations[0].query
    pairs = [("t0", "t12"), ("t1", "t13")]
    holdout_by_name = data.holdout_pairs(Relation("track", "track", pairs))
    for relation in (
        Relation(tracks, tracks, pairs),
        Relation(tracks, "track", pairs),
        Relation("track", tracks, pairs),
    ):
        holdout = data.holdout_pairs(relation)
        assert list_cells(holdout.Y) == list_cells(holdout_by_name.Y)
        assert list_cells(holdout.exclude) == list_cells(holdout_by_name.exclude)


def test_featured_entities_are_ranked_among_themselves() -> None:
    data = prepare_relation_data(world())
    new = tracks(12, 1, "new ")
    among = data.holdout_pairs(Relation(new, new, like(12, "new "), name="track - track"))
    assert among.Y.shape == (12, 12)
    assert among.exclude.toarray().tolist() == np.eye(12).tolist()  # themselves, and no pair of training
    to_known = data.holdout_pairs(Relation(new, "track", [("new 0", "t5"), ("new 5", "t0")]))
    assert to_known.query_ids.tolist() == [0, 5]
    assert list_cells(to_known.Y) == {(0, 5), (1, 0)}
    assert to_known.exclude is None
    artists = data.holdout_pairs(Relation(new, "artist", by(12, "new ")))
    assert artists.Y.shape == (12, 12)
    assert artists.exclude is None


def test_pairs_of_unknown_names_are_dropped() -> None:
    new = tracks(2, 1, "new ")
    pairs = [("new 0", "artist 1"), ("new 0", "nobody"), ("old", "artist 1"), ("new 1", "nobody")]
    holdout = prepare_relation_data(world()).holdout_pairs(Relation(new, "artist", pairs))
    assert (holdout.query_ids.tolist(), list_cells(holdout.Y)) == ([0], {(0, 1)})


def test_points_cover_chosen_queries_and_all_candidates(fitted: Space) -> None:
    new = tracks(12, 1, "new ")
    pairs = [("new 3", "t1"), ("new 7", "t2")]
    holdout = build_holdout_pairs(Relation(new, "track", pairs), fitted.kinds_)
    with KernelThreads(1) as threads:
        labels, queries = holdout.compute_points(fitted.space_, threads.n)
    assert np.array_equal(labels.table, fitted.compute_points("track"))
    assert np.array_equal(queries, fitted.compute_points("track", features(12, 1))[[3, 7]])


def test_epoch_metric_equals_that_of_the_evaluation(fitted: Space) -> None:
    """Between new entities and known ones nothing is excluded, so that both see the same candidates."""
    new = tracks(24, 1, "new ")
    relations = [Relation(new, "artist", by(24, "new ")), Relation(new, new, like(24, "new "))]
    monitor = SpaceMonitor([build_holdout_pairs(relation, fitted.kinds_) for relation in relations], 1)
    figures, evaluations = monitor.figures(fitted.space_), fitted.evaluate(relations)
    assert list(figures) == ["mean", "track - artist", "track - track"]
    for name, evaluation in evaluations.items():
        assert figures[name] == pytest.approx(evaluation.means["MAP"], abs=1e-6)
    assert figures["mean"] == pytest.approx(np.mean([figures[name] for name in evaluations]))
    first = SpaceMonitor(monitor.holdouts, 1, "track - track").figures(fitted.space_)
    assert next(iter(first)) == "track - track"
    assert first == figures


def test_map_equals_a_manual_computation() -> None:
    """Known points: t0's candidates are all but itself and its pairs of training."""
    data = prepare_relation_data(world())
    space = make_space(data)
    holdout = data.holdout_pairs(Relation("track", "track", [("t0", "t12"), ("t0", "t9")]))
    points = data.entities["track"].compute_points(space, data.inputs["track"])
    precisions = []
    trained = data.pairs[next(r for r in data.pairs if r.name == "track - track")].toarray()
    for query, relevant in ((0, {12, 9}), (12, {0}), (9, {0})):
        scores = points @ points[query]
        order = [c for c in np.argsort(-scores) if c != query and not trained[query, c]]
        places = sorted(order.index(c) + 1 for c in relevant)
        precisions.append(np.mean([(k + 1) / place for k, place in enumerate(places)]))
    assert SpaceMonitor([holdout], 1).figures(space)["track - track"] == pytest.approx(np.mean(precisions), abs=1e-6)


def test_threads_do_not_change_metrics_of_free_vectors() -> None:
    relations = [*world(), Relation("artist", "artist", [("artist 0", "artist 1"), ("artist 2", "artist 3")])]
    data = prepare_relation_data(relations)
    holdouts = [
        data.holdout_pairs(Relation("track", "artist", [(f"t{i}", "artist 11") for i in range(4)])),
        data.holdout_pairs(Relation("artist", "artist", [("artist 0", "artist 5"), ("artist 4", "artist 5")])),
    ]
    space = make_space(data)
    assert SpaceMonitor(holdouts, 1).figures(space) == SpaceMonitor(holdouts, 2).figures(space)


def test_many_queries_are_sampled_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relation_data, "MAX_SCORES", 5 * N)
    holdout = prepare_relation_data(world()).holdout_pairs(Relation("track", "track", like(step=12)))
    few = SpaceMonitor([holdout], 1).holdouts[0]
    assert (
        few.query_ids.tolist() == holdout.query_ids[np.linspace(0, len(holdout.query_ids) - 1, 5).astype(int)].tolist()
    )
    assert few.Y.shape[0] == few.exclude.shape[0] == 5
    assert not (few.Y.toarray() * few.exclude.toarray()).any()


@pytest.mark.parametrize(
    ("held_out", "sentence"),
    [
        (Relation("track", "x", []), "the space knows no kind 'x'; it knows track, artist"),
        (
            Relation("track", "artist", [("zz", "artist 0")]),
            "no held-out pair of 'track - artist' is of known entities",
        ),
        (Relation("track", "artist", by()[:9]), "is of known entities and not of training; give others"),
        (Relation("track", "artist", []), "no held-out pair of 'track - artist'"),
        (Relation("track", "artist", [(0, 99)]), "it names number 99 of the 12 entities of kind 'artist'"),
        (
            Relation(EntityKind("track", sp.identity(3)), "artist", []),
            "the features of 'track' has 3 features, but the kind",
        ),
        (Relation(EntityKind("artist", sp.identity(3)), "track", []), "entities of the kind 'artist' have no features"),
    ],
)
def test_pairs_without_information_are_refused(held_out: Relation, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make(epochs=1).fit(world(), validation=[held_out])


def test_epoch_choice_uses_a_reported_metric() -> None:
    held_out = Relation("track", "track", [("t0", "t12")])
    sentence = r"no epoch can be chosen by 'track - artist': choose mean, or a relation held out \(track - track"
    with pytest.raises(InputError, match=sentence):
        make(epochs=1).fit(world(), validation=[held_out], stop_on="track - artist")
    with pytest.raises(InputError, match="there are two relations called 'track - track'"):
        make(epochs=1).fit(world(), validation=[held_out, held_out])


def test_invalid_evaluations_are_refused(fitted: Space) -> None:
    with pytest.raises(
        InputError, match="no pair of 'track - artist' names entities that the space knows; give others"
    ):
        fitted.evaluate([Relation("track", "artist", [("zz", "artist 0")])])
    with pytest.raises(InputError, match="the space knows no kind 'tag'; it knows track, artist"):
        fitted.evaluate([Relation("tag", "artist", [("zz", "artist 0")])])
    with pytest.raises(InputError, match="there are two relations called 'track - artist'"):
        fitted.evaluate([Relation("track", "artist", by())] * 2)
    with pytest.raises(InputError, match="every k must be 1 or more"):
        fitted.evaluate([Relation("track", "artist", by())], ks=[0])


def test_recall_equals_a_manual_computation(fitted: Space) -> None:
    """New tracks to known ones of their group, against a product of points."""
    new = tracks(GROUPS, 1, "new ")
    pairs = [(f"new {i}", f"t{j}") for i in range(GROUPS) for j in range(N) if j % GROUPS == i]
    scores = fitted.compute_points("track", features(GROUPS, 1)) @ fitted.compute_points("track").T
    best = np.argsort(-scores, 1)[:, :5]
    expected = np.mean([(row % GROUPS == i).sum() / (N // GROUPS) for i, row in enumerate(best)])
    evaluation = fitted.evaluate([Relation(new, "track", pairs)], ks=[5])["track - track"]
    assert evaluation.means["recall@5"] == pytest.approx(expected)
    assert evaluation.n_rows == GROUPS


def test_training_pairs_are_no_candidates_in_any_form() -> None:
    """By the name of the kind, with the features of all of them, and with those of some in another order."""
    space = make(epochs=3).fit(world())
    held_out, training_pairs = [("t0", "t40"), ("t7", "t30")], world()[1]
    indices = [0, 40, 7, 30, 6]
    ends: dict[str, Any] = {
        "track": "track",
        "all": tracks(),
        "some": EntityKind("track", features()[indices], [f"t{i}" for i in indices]),
    }
    evaluations = {
        name: space.evaluate([Relation(end, end, held_out)], trained=[training_pairs])["track - track"]
        for name, end in ends.items()
    }
    raw = space.evaluate([Relation("track", "track", held_out)])["track - track"]
    assert evaluations["all"].means == evaluations["track"].means
    assert evaluations["track"].means["MAP"] > raw.means["MAP"]
    points = space.compute_points("track")[indices]
    scores = points @ points.T
    order = [c for c in np.argsort(-scores[0]) if c not in (0, indices.index(6))]  # t6 is a track like t0, as was said
    assert 1 / (order.index(1) + 1) == pytest.approx(evaluations["some"].per_row["MAP"][0], abs=1e-6)
