"""Objects and parts: scores as in Mesnil et al. 2014, and training that finds the relations."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

import wsabie
from wsabie import ObjectParts, Wsabie
from wsabie.core.errors import DivergenceError, InputError, UnknownLabelError
from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.relation_spaces import PartsSpace
from wsabie.models.base.validation_monitor import ValidationMonitor
from wsabie.models.object_parts.ranker import PairMonitor
from wsabie.search.label_pairs import LabelPairIndex
from wsabie.training.quadruplet_visits import QuadrupletVisits
from wsabie.vocabulary.label_quadruplets import QuadrupletBatch

OBJECTS = [f"object {i}" for i in range(8)]
PARTS = [f"part {i}" for i in range(8)]
RELATIONS = list(zip(OBJECTS, PARTS, strict=True))
NAMES = OBJECTS + PARTS


def pictures(n: int = 320, seed: int = 0) -> tuple[Any, list[str]]:
    """Objects are told by their looks; two parts look the same, and what they belong to tells them apart."""
    rng, label = np.random.default_rng(seed), np.arange(n) % 16
    looks = np.where(label < 8, label, 8 + (label - 8) // 2)
    X = np.zeros((n, 36), np.float32)
    for i, look in enumerate(looks):
        X[i, 3 * look + rng.choice(3, 2, replace=False)] = 1
    return X, [NAMES[y] for y in label]


X, Y = pictures()
FRESH, FRESH_Y = pictures(64, seed=1)


def fit_model(**changes: Any) -> ObjectParts:
    validation = changes.pop("validation", None)
    options = {name: changes.pop(name) for name in ("metric", "checkpoint", "resume", "on_epoch") if name in changes}
    return ObjectParts(RELATIONS, **{"dim": 20, "epochs": 12, "threads": 1, "relation_weight": 1.0, **changes}).fit(
        X, Y, validation=validation, **options
    )


def make_quadruplets() -> tuple[Any, Any, list[str], list[str]]:
    """Return a quadruplet of each relation: rows of objects, rows of parts, their labels."""
    objects, parts = ([FRESH_Y.index(name) for name in names] for names in (OBJECTS, PARTS))
    return FRESH[objects], FRESH[parts], OBJECTS, PARTS


@pytest.fixture(scope="module", params=["shared", "unshared"])
def model(request: pytest.FixtureRequest) -> ObjectParts:
    return fit_model(tables=request.param)


def score_all_pairs(model: ObjectParts, objects: Any, parts: Any, weight: float) -> Any:
    """Return f_q of all pairs, (n, n_labels, n_labels), as in Mesnil et al. 2014, section 6.2."""
    V, W = model.space_, model.words_[:, : model.dim]
    a, b = (rows @ V.labels[:, : model.dim].T for rows in (model.transform(objects), model.transform(parts)))
    return a[:, :, None] + b[:, None, :] + weight * (W @ W.T)


def test_related_labels_distinguish_identical_parts(model: ObjectParts) -> None:
    objects, parts, of_objects, of_parts = make_quadruplets()
    assert (model.ranks_of_pairs(objects, parts, of_objects, of_parts) == 1).all()
    conditional = model.annotate_given(parts, of_objects, side="part", k=1)
    assert [top[0][0] for top in conditional] == of_parts
    unconditional = [top[0][0] for top in model.annotate(parts, k=1)]
    assert sum(label == part for label, part in zip(unconditional, of_parts, strict=True)) <= 4
    is_right = [model.related(name, k=1, side="part")[0][0] == part for name, part in RELATIONS]
    is_right += [model.related(part, k=1, side="object")[0][0] == name for name, part in RELATIONS]
    assert (
        sum(is_right) >= 14
    )  # of 16; with shared vectors labels that look the same are near, too (Mesnil et al. 2014, Table 6)
    assert len(model.related("part 1", k=99)) == 15
    few = ObjectParts(RELATIONS[:2], dim=20, epochs=2, threads=1, tables=model.tables).fit(X, Y)
    n_related = 3 if model.tables == "unshared" else 15
    assert len(few.related("part 1", k=99)) == n_related
    assert len(few.related("part 5", k=99)) == (0 if model.tables == "unshared" else 15)


@pytest.mark.parametrize(("label_scores", "weight"), [("learned", 0.3), ("none", 0.0), ("known", 0.0)])
def test_scores_equal_those_of_the_paper(model: ObjectParts, label_scores: Any, weight: float) -> None:
    used = clone(model).set_params(label_scores=label_scores, score_weight=0.3, known_score=7.0, same=True)
    used.__dict__.update({name: value for name, value in vars(model).items() if name.endswith("_")})
    objects, parts, of_objects, of_parts = make_quadruplets()
    scores = score_all_pairs(model, objects, parts, weight)
    relations = used.relations_ if label_scores == "known" else np.zeros((0, 2), np.int64)
    scores[:, relations[:, 0], relations[:, 1]] += 7
    flat = scores.reshape(len(scores), -1)
    first_ids, two, best = used.rank_pairs(objects, parts, k=5)
    np.testing.assert_allclose(best, -np.sort(-flat, axis=1)[:, :5], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(scores[np.arange(8)[:, None], first_ids, two], best, rtol=1e-4, atol=1e-4)
    conditional = used.scores_given(objects, of_parts, side="object")
    part_ids = used.vocabulary_.ids(of_parts)
    marginal = model.transform(parts) @ model.label_vectors.T
    expected = scores[np.arange(8), :, part_ids] - marginal[np.arange(8), part_ids][:, None]
    np.testing.assert_allclose(conditional, expected, rtol=1e-4, atol=1e-4)
    conditional, first = used.scores_given(parts, of_objects, side="part"), used.vocabulary_.ids(of_objects)
    marginal = model.transform(objects) @ model.label_vectors.T
    expected = scores[np.arange(8), first] - marginal[np.arange(8), first][:, None]
    np.testing.assert_allclose(conditional, expected, rtol=1e-4, atol=1e-4)
    ranks = used.ranks_of_pairs(objects, parts, of_objects, of_parts)
    true = flat[np.arange(8), [o * 16 + p for o, p in zip(used.vocabulary_.ids(of_objects), part_ids, strict=True)]]
    assert ranks.tolist() == (1 + (flat > true[:, None] + 1e-4).sum(1)).tolist()


def test_label_pairs_with_itself_only_if_allowed(model: ObjectParts) -> None:
    objects, parts, of_objects, _ = make_quadruplets()
    first_ids, two, _ = model.rank_pairs(objects, parts, k=300)
    assert (first_ids == two)[first_ids >= 0].sum() == 0
    assert (first_ids >= 0).sum(1).tolist() == [16 * 15] * 8
    conditional = model.annotate_given(parts, of_objects, side="part", k=16)
    assert all(len(top) == 15 and label not in dict(top) for label, top in zip(of_objects, conditional, strict=True))
    used = clone(model).set_params(same=True)
    used.__dict__.update({name: value for name, value in vars(model).items() if name.endswith("_")})
    assert (used.rank_pairs(objects, parts, k=300)[0] >= 0).sum(1).tolist() == [16 * 16] * 8


def test_candidate_pairs_limit_the_ranking(model: ObjectParts) -> None:
    objects, parts, _, _ = make_quadruplets()
    couples = [("object 1", "part 5"), ("object 5", "part 1")]
    ranked = model.annotate_pairs(objects, parts, k=5, couples=couples)
    assert all({pair for pair, _ in top} == set(couples) for top in ranked)


def test_pairs_may_be_ids_and_k_any_number(model: ObjectParts) -> None:
    objects, parts, _, _ = make_quadruplets()
    numbers = model.vocabulary_.ids(["object 1", "part 5"]).reshape(1, 2)
    assert model.annotate_pairs(objects[:1], parts[:1], couples=numbers)[0][0][0] == ("object 1", "part 5")
    assert len(model.annotate_pairs(objects[:1], parts[:1], k=10**12)[0]) == 16 * 15


def test_relations_of_missing_labels_in_a_folder_are_refused(model: ObjectParts) -> None:
    parts_of_model = model.to_state()
    for wrong in ([[0, 16]], [[-1, 2]]):
        with pytest.raises(ValueError, match="relations holds a number outside of 0"):
            ObjectParts.from_state(
                replace(parts_of_model, tensors={**parts_of_model.tensors, "relations": np.array(wrong)})
            )


def test_loaded_model_equals_the_saved_one(tmp_path: Path, model: ObjectParts) -> None:
    model.save(tmp_path / "m")
    loaded = wsabie.load(tmp_path / "m")
    assert isinstance(loaded, ObjectParts)
    objects, parts, _, _ = make_quadruplets()
    for values, loaded_values in zip(
        model.rank_pairs(objects, parts, 3), loaded.rank_pairs(objects, parts, 3), strict=True
    ):
        assert np.array_equal(values, loaded_values)
    assert model.related("part 3") == loaded.related("part 3")
    assert np.array_equal(model.relations_, loaded.relations_)
    assert [tuple(pair) for pair in loaded.relations] == RELATIONS
    loaded.partial_fit(X[:32], Y[:32], epochs=1)


@pytest.mark.parametrize("tables", ["shared", "unshared"])
def test_threads_change_no_bit(tables: Any) -> None:
    single_threaded, two = fit_model(tables=tables, epochs=3), fit_model(tables=tables, epochs=3, threads=2)
    assert np.array_equal(single_threaded.words_, two.words_)
    assert np.array_equal(single_threaded.space_.features, two.space_.features)
    reseeded = fit_model(tables=tables, epochs=3, seed=1)
    assert not np.array_equal(single_threaded.words_, reseeded.words_)


def test_hogwild_training_learns() -> None:
    objects, parts, of_objects, of_parts = make_quadruplets()
    ranks = fit_model(deterministic=False, threads=2).ranks_of_pairs(objects, parts, of_objects, of_parts)
    assert ranks.mean() < 2


def test_stopped_training_resumes_bit_for_bit(tmp_path: Path) -> None:
    def stop(stats: Any) -> None:
        if stats.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_model(checkpoint=tmp_path / "c", on_epoch=stop)
    resumed = fit_model(checkpoint=tmp_path / "c", resume=True)
    assert len(resumed.history_) == 12
    assert np.array_equal(resumed.words_, fit_model().words_)
    with pytest.raises(InputError, match="same settings and data"):
        ObjectParts(RELATIONS[:4], dim=20, epochs=12, threads=1).fit(X, Y, checkpoint=tmp_path / "c", resume=True)


def test_pair_metrics_choose_the_epoch() -> None:
    model = fit_model(validation=(FRESH, FRESH_Y), metric="pairs")
    figures = [stats.validation_metrics for stats in model.history_]
    assert next(iter(figures[0])) == "pairs"
    assert figures[-1]["pairs"] > 0.99
    assert figures[-1]["pairs"] > figures[0]["pairs"]
    objects, parts, of_objects, of_parts = make_quadruplets()
    ranks = model.ranks_of_pairs(objects, parts, of_objects, of_parts)
    best = max(stats.validation for stats in model.history_)
    assert abs((1 - (ranks.mean() - 1) / 239) - best) < 0.02  # one of each relation, beside 2,000 drawn
    assert model.predict_proba(FRESH).shape == (64, 16)
    assert "pairs" in fit_model(validation=(FRESH, FRESH_Y)).history_[0].validation_metrics


@pytest.mark.parametrize("many", [False, True])
def test_picture_metrics_choose_the_epoch_without_usable_pairs(monkeypatch: pytest.MonkeyPatch, many: bool) -> None:
    """Without related labels among the validation rows, or where ranking all pairs would take longer than an epoch."""
    if many:
        monkeypatch.setattr("wsabie.models.object_parts.ranker.MAX_PAIRS", 1)
    n = len(FRESH_Y) if many else 1
    model = fit_model(validation=(FRESH[:n], FRESH_Y[:n]), epochs=2)
    assert list(model.history_[-1].validation_metrics) == ["MAP", "p@10"]


def test_many_label_pairs_are_sampled_for_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    all_pairs = fit_model(validation=(FRESH, FRESH_Y), metric="pairs", epochs=3)
    monkeypatch.setattr("wsabie.models.object_parts.ranker.MAX_PAIRS", 200)
    monkeypatch.setattr("wsabie.models.object_parts.ranker._SAMPLED_PAIRS", 200)
    sampled = fit_model(validation=(FRESH, FRESH_Y), metric="pairs", epochs=3)
    figures = [[stats.validation for stats in model.history_] for model in (all_pairs, sampled)]
    assert figures[0] != figures[1]
    np.testing.assert_allclose(figures[0], figures[1], atol=0.03)


@pytest.mark.parametrize("same", [False, True])
def test_self_pairs_are_sampled_if_allowed(monkeypatch: pytest.MonkeyPatch, same: bool) -> None:
    monkeypatch.setattr("wsabie.models.object_parts.ranker.MAX_PAIRS", 200)
    pairs_per_call: list[Any] = []
    counts = LabelPairIndex.counts

    def record_couples(self: LabelPairIndex, *arguments: Any, couples: Any = None) -> Any:
        pairs_per_call.append(couples)
        return counts(self, *arguments, couples=couples)

    monkeypatch.setattr(LabelPairIndex, "counts", record_couples)
    fit_model(validation=(FRESH, FRESH_Y), metric="pairs", epochs=1, same=same)
    assert (pairs_per_call[0][:, 0] == pairs_per_call[0][:, 1]).any() == same


def test_label_tables_are_computed_once_and_released(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model, (objects, parts, *_), builds = fit_model(epochs=2), make_quadruplets(), []
    init = LabelPairIndex.__init__
    monkeypatch.setattr(LabelPairIndex, "__init__", lambda self, *a, **k: (builds.append(1), init(self, *a, **k))[1])

    def top() -> Any:
        return model.rank_pairs(objects, parts, 240)[2]

    first_ranking = top()
    assert np.array_equal(first_ranking, top())
    assert len(builds) == 1
    assert "_paired" not in model.__getstate__()
    model.set_params(score_weight=0.0)
    separate_ranking = top()
    assert len(builds) == 2
    assert not np.array_equal(first_ranking, separate_ranking)
    model.set_params(label_scores="known")
    assert (top()[0] > 50).sum() == len(RELATIONS)
    model.relations = RELATIONS[1:]
    assert (top()[0] > 50).sum() == len(RELATIONS) - 1
    model.set_params(label_scores="learned", score_weight=1.0, relations=RELATIONS)
    model.partial_fit(X, Y[::-1], epochs=2)
    assert "_paired" not in model.__dict__
    retrained_ranking = top()
    assert not np.array_equal(first_ranking, retrained_ranking)
    model.save(tmp_path / "m")
    model = wsabie.load(tmp_path / "m")
    assert np.array_equal(retrained_ranking, top())
    model.fit(X, Y)
    assert "_paired" not in model.__dict__


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("most", [1 << 22, 200])
def test_worst_model_ranks_the_true_pair_last(monkeypatch: pytest.MonkeyPatch, same: bool, most: int) -> None:
    monkeypatch.setattr("wsabie.models.object_parts.ranker.MAX_PAIRS", most)
    space = JointSpace(2, "dot", np.zeros((1, 16), np.float32), np.zeros((4, 16), np.float32), np.zeros(4, np.float32))
    for offset, figure in ((100.0, 1.0), (-100.0, 0.0)):

        def pairs_of(space: Any, offset: float = offset) -> LabelPairIndex:
            return LabelPairIndex(space.words, 0.0, [[0, 1]], offset, same=same)

        batch = QuadrupletBatch(np.array([0]), np.array([0], np.int32), np.array([0]), np.array([1], np.int32))
        pictures = ValidationMonitor(np.ones((1, 1), np.float32), csr_matrix([[1, 0, 0, 0]]), 1, None)
        monitor = PairMonitor(pictures, np.ones((1, 1), np.float32), batch, pairs_of, decides=True)
        assert monitor.figures(PartsSpace(space, space.labels, 1.0))["pairs"] == figure


def test_unrelated_labels_are_learned_as_by_wsabie() -> None:
    """With relations that no label has a share in but two, the others are told apart as well as without."""
    few = ObjectParts(RELATIONS[:1], dim=20, epochs=12, threads=1).fit(X, Y)
    plain = Wsabie(dim=20, epochs=12, threads=1).fit(X, Y)
    assert few.score(FRESH, FRESH_Y) > plain.score(FRESH, FRESH_Y) - 0.05
    assert few.facts()["relations"] == 1


def test_relations_of_missing_labels_are_dropped() -> None:
    model = ObjectParts([*RELATIONS, ("object 1", "anchor")], dim=20, epochs=1, threads=1).fit(X, Y)
    assert len(model.relations_) == len(RELATIONS)


def test_new_labels_and_relations_are_learned_later() -> None:
    more = [*RELATIONS, ("object 0", "bell")]
    model = ObjectParts(more, dim=20, epochs=12, threads=1, relation_weight=1.0).fit(X, Y)
    label_ids = model.vocabulary_.ids(NAMES)
    rows = np.zeros((20, 36), np.float32)
    rows[:, 35] = 1
    model.partial_fit(rows, ["bell"] * 20, epochs=10)
    assert np.array_equal(model.vocabulary_.ids(NAMES), label_ids)
    assert model.annotate(rows[:1], k=1)[0][0][0] == "bell"
    assert "bell" in [name for name, _ in model.related("object 0", k=3)]


def test_later_epochs_sample_new_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = []

    class Noted(QuadrupletVisits):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            seeds.append(self.seed)

    monkeypatch.setattr("wsabie.models.object_parts.ranker.QuadrupletVisits", Noted)
    fit_model(epochs=2).partial_fit(X, Y, epochs=1).partial_fit(X, Y, epochs=1)
    assert seeds == [0, 2, 3]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "tables": ({"tables": "both"}, "tables is 'both'"),
    "scores": ({"label_scores": True}, "label_scores is True"),
    "weight": ({"relation_weight": "much"}, "relation_weight is 'much'"),
    "nan": ({"score_weight": float("nan")}, "score_weight is nan"),
    "loss": ({"loss": "owpc"}, "loss is 'owpc'"),
    "none": ({"relations": ()}, "relations must be a list of pairs"),
    "triples": ({"relations": [("a", "b", "c")]}, "relations must be a list of pairs"),
    "text": ({"relations": "car wheel"}, "relations must be a list of pairs"),
    "number": ({"relations": 3}, "relations must be a list of pairs"),
    "set": ({"relations": {("moon", "crater")}}, "relations must be a list of pairs"),
    "huge": ({"relation_weight": 1e39}, "relation_weight is 1e\\+39; choose a number below 1e\\+30"),
    "same": ({"same": "no"}, "same is 'no'; choose one of False, True"),
    "unknown": ({"relations": [("moon", "crater")]}, "none of the 1 relations"),
    "itself": ({"relations": [("part 1", "part 1")]}, "none of the 1 relations"),
}


@pytest.mark.parametrize(("changes", "message"), WRONG.values(), ids=WRONG)
def test_unlearnable_data_are_refused(changes: dict[str, Any], message: str) -> None:
    model = ObjectParts(**{"relations": RELATIONS, "dim": 20, "epochs": 1, "threads": 1, **changes})
    with pytest.raises(InputError, match=message):
        model.fit(X, Y)
    assert not hasattr(model, "space_")


def test_invalid_queries_are_refused(model: ObjectParts) -> None:
    with pytest.raises(InputError, match="2 rows of objects and 1 of parts"):
        model.rank_pairs(X[:2], X[:1])
    with pytest.raises(InputError, match="give two labels for each"):
        model.ranks_of_pairs(X[:2], X[:2], ["object 1"], ["part 1"])
    with pytest.raises(InputError, match="give one for each row"):
        model.scores_given(X[:2], ["part 1"])
    with pytest.raises(InputError, match="side is 'whole'"):
        model.scores_given(X[:1], ["part 1"], side="whole")  # type: ignore[arg-type]
    with pytest.raises(UnknownLabelError, match="part 33"):
        model.related("part 33")
    for couples in ([("object 1",)], [("object 1", "part 1", "part 2"), ("object 2",)], [1, 2], 5):
        with pytest.raises(InputError, match="couples must be a list of pairs"):
            model.rank_pairs(X[:1], X[:1], couples=couples)
    with pytest.raises(InputError, match="so that no epoch can be chosen"):
        fit_model(validation=(X[:1], Y[:1]), metric="pairs")


def test_diverging_step_leaves_the_model_unchanged(model: ObjectParts) -> None:
    words = model.words_.copy()
    broken = clone(model).set_params(learning_rate=1e9, max_norm=None)
    broken.__dict__.update({name: value for name, value in vars(model).items() if name.endswith("_")})
    with pytest.raises(DivergenceError):
        broken.fit(X, Y)
    assert np.array_equal(model.words_, words)


# ---- an edge between pictures


@pytest.fixture(scope="module", params=[("shared", 0.1), ("unshared", 1.0)], ids=["shared", "unshared"])
def edged(request: pytest.FixtureRequest) -> ObjectParts:
    tables, weight = request.param
    return fit_model(tables=tables, picture_weight=weight)


def list_appearances(rows: Any) -> list[set[tuple[str, int]]]:
    """Looks of the found pictures: whether of an object or a part, and which; two parts share one."""
    looks = [(name[:-2], int(name[-1]) // (2 if name.startswith("part") else 1)) for name in FRESH_Y]
    return [{looks[row] for row in row_ids} for row_ids in rows]


def test_edge_finds_pictures_of_the_part(edged: ObjectParts) -> None:
    """8 of 64 candidates look like the part."""
    objects, _, _, of_parts = make_quadruplets()
    rows, scores = edged.rank_pictures(objects, FRESH, k=8, labels=of_parts)
    assert list_appearances(rows) == [{("part", i // 2)} for i in range(8)]
    queries = edged.picture_weight * edged.transform(objects) + edged.label_vectors[edged.vocabulary_.ids(of_parts)]
    expected = np.sort(queries @ edged.transform(FRESH).T, axis=1)[:, ::-1][:, :8]
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)
    assert (edged.rank_pictures(objects, FRESH, k=99, labels=of_parts)[0] >= 0).sum(1).tolist() == [64] * 8


def test_picture_finds_similar_pictures_then_those_of_its_part() -> None:
    """One map serves both ends of the edge. Without the edge the others after the first four are any."""
    objects, _, _, _ = make_quadruplets()
    rows, _ = fit_model(picture_weight=1.0).rank_pictures(objects, FRESH, k=8)
    assert list_appearances(rows[:, :4]) == [{("object", i)} for i in range(8)]
    assert list_appearances(rows[:, 4:]) == [{("part", i // 2)} for i in range(8)]


def test_labels_are_found_beside_a_picture_edge(edged: ObjectParts) -> None:
    objects, parts, of_objects, of_parts = make_quadruplets()
    assert (edged.ranks_of_pairs(objects, parts, of_objects, of_parts) == 1).all()


def test_picture_edge_is_independent_of_threads_and_stops(tmp_path: Path) -> None:
    def stop(stats: Any) -> None:
        if stats.epoch == 1:
            raise KeyboardInterrupt

    single_threaded, two = (fit_model(epochs=4, picture_weight=0.5, threads=threads) for threads in (1, 2))
    with pytest.raises(KeyboardInterrupt):
        fit_model(epochs=4, picture_weight=0.5, checkpoint=tmp_path / "c", on_epoch=stop)
    resumed = fit_model(epochs=4, picture_weight=0.5, checkpoint=tmp_path / "c", resume=True)
    for variant in (two, resumed):
        assert np.array_equal(single_threaded.words_, variant.words_)
        assert np.array_equal(single_threaded.space_.features, variant.space_.features)
    assert not np.array_equal(single_threaded.space_.features, fit_model(epochs=4).space_.features)
    single_threaded.save(tmp_path / "m")
    assert wsabie.load(tmp_path / "m").picture_weight == 0.5
    single_threaded.partial_fit(X[:32], Y[:32], epochs=1)


def test_unrankable_pictures_are_refused(edged: ObjectParts) -> None:
    for options, sentence in (
        ({"picture_weight": -1}, "picture_weight is -1"),
        ({"picture_weight": 1, "deterministic": False}, "deterministic training"),
    ):
        with pytest.raises(InputError, match=sentence):
            fit_model(**options)
    with pytest.raises(InputError, match="2 rows and 1 labels"):
        edged.rank_pictures(X[:2], X, labels=["part 1"])
    with pytest.raises(UnknownLabelError):
        edged.rank_pictures(X[:1], X, labels=["part 9"])
    with pytest.raises(InputError, match="say which labels"):
        fit_model(epochs=1).rank_pictures(X[:1], X)
