"""The estimator of many entity kinds: known answers, queries, threads and refusals."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfTransformer

from relation_world import GROUPS, N, by, features, like, make, same, stopping, tracks, world
from wsabie import EntityKind, Relation, Space
from wsabie.core.errors import DivergenceError, InputError, UnknownLabelError

HELD_OUT = Relation("track", "track", like(step=12))


@pytest.fixture(scope="module")
def fitted() -> Space:
    return make().fit(world())


# ---- known answers


@pytest.mark.parametrize("loss", ["warp", "auc"])
@pytest.mark.parametrize("similarity", ["dot", "euclidean", "cosine"])
@pytest.mark.parametrize("negatives", [0, 32])
def test_all_relations_are_learned_together(loss: str, similarity: str, negatives: int) -> None:
    """New tracks find the artists of their group, and known tracks of it."""
    model = make(loss=loss, similarity=similarity, negatives=negatives, epochs=40).fit(world())
    new, group = features(30, 1), np.arange(30) % GROUPS
    artists, _ = model.rank("track", "artist", new, 2)
    assert (np.sort(artists, 1) == np.stack([2 * group, 2 * group + 1], 1)).all(1).mean() > 0.95
    near, _ = model.rank("track", "track", new, 4)
    assert (near % GROUPS == group[:, None]).mean() > 0.95
    assert model.history_[-1].loss < model.history_[0].loss


def test_dense_features_learn_the_same_task() -> None:
    tracks = EntityKind("track", features().toarray(), [f"t{i}" for i in range(N)])
    model = make(epochs=40).fit([Relation(tracks, "artist", by()), Relation(tracks, tracks, like())])
    artists, _ = model.rank("track", "artist", features(30, 1).toarray(), 2)
    assert (artists // 2 == (np.arange(30) % GROUPS)[:, None]).mean() > 0.95


def test_initial_lengths_follow_init_scale() -> None:
    def lengths(scale: Any) -> list[float]:  # of the tracks' map, of the artists
        space = make(epochs=1, learning_rate=1e-9, max_norm=None, init_scale=scale).fit(world()).space_
        return [float(space.tables[kind][:, :20].std()) for kind in ("track", "artist")]

    assert lengths(None) == pytest.approx([20**-0.5] * 2, rel=0.15)
    assert lengths(0.3) == pytest.approx([0.3, 0.3], rel=0.15)
    assert lengths({"V": 0.05}) == pytest.approx([0.05, 20**-0.5], rel=0.15)


def test_names_ids_and_matrices_train_the_same_space() -> None:
    artists = EntityKind("artist", ids=[f"artist {k}" for k in range(2 * GROUPS)])
    numbers = np.array([(i, 2 * (i % GROUPS) + offset) for i in range(N) for offset in (0, 1)])
    matrix = sp.csr_matrix((np.ones(2 * N), numbers.T), (N, 2 * GROUPS))
    models = [make(epochs=2).fit([Relation(tracks(), artists, pairs)]) for pairs in (by(), numbers, matrix)]
    assert same(models[0], models[1])
    assert same(models[0], models[2])


def test_space_without_features_is_learned() -> None:
    """Free vectors on either side, and among their like in one table."""
    tags = [(f"artist {k}", f"tag {k // 2}") for k in range(12)]
    alike = [(f"artist {k}", f"artist {k + 1}") for k in range(0, 12, 2)]
    model = make(epochs=60).fit([Relation("artist", "tag", tags), Relation("artist", "artist", alike)])
    assert [row[0][0] for row in model.annotate("artist", "tag", model.entity_names("artist"), 1)] == [
        t for _, t in tags
    ]
    assert {(a, model.find_similar("artist", a, 1)[0][0]) for a, _ in alike} == set(alike)


def test_kinds_of_one_map_share_word_vectors() -> None:
    """Queries and documents share words: what is learned of a word holds for both."""
    docs, queries = EntityKind("doc", features(), map="words"), EntityKind("query", features(seed=2), map="words")
    model = make(epochs=40).fit([Relation(queries, docs, [(i, j) for i in range(N) for j in range(i % 6, N, 6)])])
    assert list(model.space_.tables) == ["words"]
    ids, _ = model.rank("query", "doc", features(12, 3), 5)
    assert (ids % GROUPS == (np.arange(12) % GROUPS)[:, None]).mean() > 0.95
    assert np.array_equal(model.compute_points("doc", features(2, 3)), model.compute_points("query", features(2, 3)))


# ---- determinism


@pytest.mark.parametrize("negatives", [0, 32])
def test_threads_change_no_bit(negatives: int) -> None:
    new = tracks(12, 1, "new ")
    held_out = [HELD_OUT, Relation(new, "artist", by(12, "new "))]
    single_threaded, *multi_threaded = (
        make(epochs=3, threads=n, negatives=negatives).fit(world(), validation=held_out) for n in (1, 2, 3)
    )
    assert all(same(single_threaded, fitted_space) for fitted_space in multi_threaded)
    for fitted_space in multi_threaded:
        for a, b in zip(
            single_threaded.rank("track", "artist", None, 5), fitted_space.rank("track", "artist", None, 5), strict=True
        ):
            assert np.array_equal(a, b)


def test_seed_determines_the_space() -> None:
    first, again, reseeded = (make(epochs=2, seed=seed).fit(world()) for seed in (3, 3, 4))
    assert same(first, again)
    assert not same(first, reseeded)


# ---- use


def rank_by_brute_force(model: Space, similarity: str, q: Any, W: Any) -> Any:
    if similarity == "euclidean":
        return -np.linalg.norm(q[:, None] - W[None], axis=2)
    if similarity == "cosine":
        q, W = (t / np.linalg.norm(t, axis=1, keepdims=True) for t in (q, W))
    return q @ W.T


@pytest.mark.parametrize("similarity", ["dot", "euclidean", "cosine"])
def test_rank_equals_brute_force(similarity: str) -> None:
    model = make(similarity=similarity, epochs=2).fit(world())
    new = model.compute_points("track", features(9, 1)).astype(float)
    tables = {name: model.compute_points(name).astype(float) for name in ("track", "artist")}
    for target, W in tables.items():
        expected = rank_by_brute_force(model, similarity, new, W)
        ids, scores = model.rank("track", target, features(9, 1), 7)
        assert (ids.dtype, scores.dtype) == (np.int64, np.float32)
        assert np.array_equal(ids, np.argsort(-expected, 1)[:, :7])
        np.testing.assert_allclose(scores, -np.sort(-expected, 1)[:, :7], rtol=1e-4, atol=1e-5)
    expected = rank_by_brute_force(
        model, similarity, tables["artist"], tables["track"]
    )  # a relation that was not learned
    assert np.array_equal(model.rank("artist", "track", None, 5)[0], np.argsort(-expected, 1)[:, :5])


def test_known_entity_is_no_candidate_for_itself(fitted: Space) -> None:
    for items in (None, list(range(N)), fitted.entity_names("track"), np.arange(N)):
        ids, scores = fitted.rank("track", "track", items, N)
        assert (np.sort(ids, 1)[:, 1:] == [[j for j in range(N) if j != i] for i in range(N)]).all()
        assert (ids[:, -1] == -1).all()
        assert (scores[:, -1] == -np.inf).all()
    assert (np.sort(fitted.rank("track", "track", features(), N)[0], 1) == np.arange(N)).all()  # by features it is


def test_rank_excludes_and_selects_candidates(fitted: Space) -> None:
    exclude = sp.csr_matrix(([1, 2.0, -1], ([0, 0, 1], [3, 40, 7])), (2, N))
    for form in (exclude, exclude.toarray()):
        ids, _ = fitted.rank("track", "track", ["t1", "t2"], N, exclude=form)
        assert [set(range(-1, N)) - set(row) for row in ids.tolist()] == [{1, 3, 40}, {2, 7}]
    ids, _ = fitted.rank("track", "artist", ["t1"], 3, candidates=["artist 4", "artist 0"])
    assert {*ids[0].tolist()} == {0, 4, -1}
    assert np.array_equal(ids, fitted.rank("track", "artist", [1], 3, candidates=[0, 4])[0])


def test_annotate_returns_names_and_similar_returns_cosines(fitted: Space) -> None:
    annotations = fitted.annotate("track", "artist", ["t1", "t2"], 2)
    ids, scores = fitted.rank("track", "artist", ["t1", "t2"], 2)
    names = fitted.entity_names("artist")
    assert annotations == [
        [(names[y], float(s)) for y, s in zip(*row, strict=True)] for row in zip(ids, scores, strict=True)
    ]
    assert [len(row) for row in fitted.annotate("track", "artist", ["t1"], 10**12)] == [12]
    near = fitted.find_similar("artist", "artist 4", 11)
    points = fitted.compute_points("artist").astype(float)
    cosines = rank_by_brute_force(fitted, "cosine", points[[4]], points)[0]
    assert [name for name, _ in near] == [names[y] for y in np.argsort(-cosines) if y != 4]
    assert [c for _, c in near] == pytest.approx(sorted(np.delete(cosines, 4), reverse=True), abs=1e-5)
    assert near == fitted.find_similar("artist", 4, 10**12)
    assert near[0][0] == "artist 5"


def test_known_points_equal_those_of_their_features(fitted: Space) -> None:
    assert np.array_equal(fitted.compute_points("track"), fitted.compute_points("track", features()))
    assert np.array_equal(fitted.compute_points("track", ["t5", "t0"]), fitted.compute_points("track")[[5, 0]])
    assert fitted.compute_points("artist", "artist 3").shape == (1, 20)


def test_facts_are_json_values(fitted: Space) -> None:
    facts = json.loads(json.dumps(fitted.facts()))
    assert facts["kinds"] == {"track": N, "artist": 2 * GROUPS}
    assert facts["relations"] == ["track - artist", "track - track"]
    assert facts["bytes_of_points"] == 4 * 20 * (30 + 2 * GROUPS)
    assert facts["epochs"] == 12


# ---- the epoch that is kept


def test_best_epoch_is_kept_and_patience_stops_training() -> None:
    new = tracks(24, 1, "new ")
    held_out = [Relation(new, "artist", by(24, "new ")), Relation(new, new, like(24, "new "))]
    model = make(epochs=40, patience=3).fit(world(), validation=held_out, stop_on="track - track")
    figures = [stats.validation for stats in model.history_]
    best = int(np.argmax(figures))
    assert len(figures) == max(best + 1 + 3, 21) < 40
    assert list(model.history_[0].validation_metrics) == ["track - track", "mean", "track - artist"]
    assert model.evaluate(held_out)["track - track"].means["MAP"] == pytest.approx(figures[best], abs=1e-6)
    assert model.facts()["validation"] == model.history_[best].validation_metrics


# ---- a fit that does not come to its end


@pytest.mark.parametrize("wrong", ["interrupt", "divergence", "pairs", "parameters", "validation"])
def test_failed_fit_leaves_the_space_unchanged(wrong: str) -> None:
    model = make(epochs=2).fit(world())
    original, artist_names = pickle.loads(pickle.dumps(model)), model.entity_names("artist")  # noqa: S301
    answers = model.rank("track", "track", None, 5)
    relations, options = [Relation(tracks(9), "artist", [("t0", "somebody new"), ("t1", "x")])], {}
    if wrong == "interrupt":
        options = {"on_epoch": stopping(0)}
    elif wrong == "divergence":
        model.set_params(learning_rate=1e9, max_norm=None)
    elif wrong == "pairs":
        relations.append(Relation("track", "tag", [("zz", "loud")]))
    elif wrong == "parameters":
        model.set_params(dim=0)
    else:
        options = {"validation": [Relation("track", "artist", [("zz", "x")])]}
    with pytest.raises((KeyboardInterrupt, InputError, DivergenceError)):
        model.fit(relations, **options)
    assert same(model, original)
    assert model.entity_names("artist") == artist_names
    assert model.relations_ == original.relations_
    model.__dict__.pop("_searched", None)
    assert all(np.array_equal(a, b) for a, b in zip(model.rank("track", "track", None, 5), answers, strict=True))


def test_interrupted_first_fit_leaves_no_state() -> None:
    model = make()
    with pytest.raises(KeyboardInterrupt):
        model.fit(world(), on_epoch=stopping(1))
    with pytest.raises(NotFittedError):
        model.rank("track", "artist", ["t0"])


def test_search_is_rebuilt_after_another_fit() -> None:
    model = make(epochs=2).fit(world())
    old_scores = model.rank("track", "artist", None, 3)[1]
    assert "_searched" in model.__dict__
    assert "_searched" not in model.__getstate__()
    new_scores = model.set_params(seed=9).fit(world()).rank("track", "artist", None, 3)[1]
    assert not np.array_equal(old_scores, new_scores)


# ---- scikit-learn


def test_clone_copies_parameters_and_no_state(fitted: Space) -> None:
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "space_")
    assert repr(Space()) == "Space()"
    assert Space().set_params(dim=3).get_params()["dim"] == 3


# ---- refusals


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"dim": 0}, "dim is 0; choose a whole number from 1 to 4096"),
        ({"loss": "owpc"}, "loss is 'owpc'; choose one of warp, auc"),
        ({"loss": ["warp"]}, "loss is .*; choose one of warp, auc"),
        ({"similarity": "l2"}, "similarity is 'l2'; choose one of dot, euclidean, cosine"),
        ({"max_norm": 0}, "max_norm is 0"),
        ({"epochs": 0}, "epochs is 0"),
        ({"learning_rate": -1}, "learning_rate is -1"),
        ({"schedule": "cosine"}, "schedule is 'cosine'"),
        ({"margin": "1"}, "margin is '1'"),
        ({"rank_weight": "recall"}, "rank_weight is 'recall'"),
        ({"max_sampled": 0}, "max_sampled is 0"),
        ({"negatives": -1}, "negatives is -1; choose a whole number from 0 to 65,536"),
        ({"negatives": 65537}, "negatives is 65537; choose a whole number from 0 to 65,536"),
        ({"negatives": 2.0}, "negatives is 2.0; choose a whole number"),
        ({"negatives": True}, "negatives is True; choose a whole number"),
        ({"negatives": None}, "negatives is None; choose a whole number"),
        ({"init_scale": 0}, "init_scale is 0; choose a number above 0"),
        ({"init_scale": {"U": 0.1}}, "init_scale names the table 'U'"),
        ({"patience": 0}, "patience is 0"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_invalid_parameters_are_refused_by_name(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make(**change).fit(world())


def test_invalid_queries_are_refused(fitted: Space) -> None:
    for use in (
        lambda m: m.rank("track", "artist", ["t0"]),
        lambda m: m.compute_points("track"),
        lambda m: m.entity_names("track"),
        lambda m: m.find_similar("track", "t0"),
        lambda m: m.evaluate([]),
        lambda m: m.facts(),
        lambda m: m.to_state(),
    ):
        with pytest.raises(NotFittedError, match=r"not fitted yet; call fit\(relations\) first"):
            use(Space())
    for unknown in (lambda: fitted.rank("tag", "track", ["t0"]), lambda: fitted.annotate("track", "tag", ["t0"])):
        with pytest.raises(InputError, match="the space knows no kind 'tag'; it knows track, artist"):
            unknown()
    with pytest.raises(UnknownLabelError, match="there is no artist 'artist 99'; did you mean 'artist"):
        fitted.find_similar("artist", "artist 99")
    for k in (0, 2.5, True):
        with pytest.raises(InputError, match=f"k is {k}; choose a whole number above 0"):
            fitted.rank("track", "artist", ["t0"], k)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="X has 29 features, but the kind 'track' is expecting 30 features as input"):
        fitted.rank("track", "artist", features()[:, 1:])
    with pytest.raises(InputError, match="entities of the kind 'artist' have no features; give their names or numbers"):
        fitted.rank("artist", "track", features())
    for target in ("track", "artist"):
        with pytest.raises(InputError, match=r"exclude has (2 rows|99 columns)"):
            fitted.rank("track", target, ["t0"], exclude=sp.csr_matrix((2, 99)))
    with pytest.raises(InputError, match="names or whole numbers; these are"):
        fitted.rank("track", "artist", features().toarray().tolist())


# ---- on real data


def read_cora(folder: Path) -> tuple[Any, np.ndarray]:
    """Binary bags of 1,433 words, and the pairs of papers of which one cites the other."""
    docs = [line.split("\t") for line in (folder / "cora.docs.txt").read_text().splitlines()]
    words = [[int(word) for word in doc[2].split()] for doc in docs]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in words])])
    X = sp.csr_matrix((np.ones(starts[-1], np.float32), np.concatenate(words).astype(int), starts), (len(docs), 1433))
    return X, np.loadtxt(folder / "cora.links.txt", dtype=np.int64)


def test_citations_of_unseen_papers_are_found(data_dir: Path) -> None:
    """A fifth of Cora is held out wholly: which known papers does it cite, or is it cited by? Words alone are given."""
    X, links = read_cora(data_dir / "planetoid_docs")
    n = X.shape[0]
    is_held_out = np.zeros(n, bool)
    is_held_out[np.random.default_rng(0).permutation(n)[: n // 5]] = True
    training_ids, new = np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)
    place = np.empty(n, np.int64)
    place[training_ids], place[new] = np.arange(len(training_ids)), np.arange(len(new))
    papers = EntityKind("paper", X[training_ids])
    inside = links[~is_held_out[links].any(1)]
    across = np.array([link if is_held_out[link[0]] else link[::-1] for link in links[is_held_out[links].sum(1) == 1]])
    model = Space(dim=100, threads=1).fit([Relation(papers, papers, place[inside])])
    citations = Relation(EntityKind("paper", X[new]), "paper", place[across])
    evaluation = model.evaluate([citations], ks=[10])["paper - paper"]
    rows = TfidfTransformer().fit(X[training_ids])
    cosines = (rows.transform(X[new]) @ rows.transform(X[training_ids]).T).toarray()
    best = np.argsort(-cosines, 1, kind="stable")[:, :10]
    Y = sp.csr_matrix((np.ones(len(across)), place[across].T), (len(new), len(training_ids))).toarray() > 0
    has_citation = Y.any(1)
    baseline = (np.take_along_axis(Y, best, 1).sum(1)[has_citation] / Y.sum(1)[has_citation]).mean()
    assert evaluation.n_rows == has_citation.sum() > 400
    assert 0.2 < baseline < 0.28
    assert evaluation.means["recall@10"] > baseline + 0.03
