"""DeViSE and ConSE: learning, unseen labels, fixed word vectors, saving and refusals."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from tests.models.planted_vectors import DIM, EACH, LABELS, N_SEEN, TEST, TRAIN, TRUE, VECTORS, X, fit_model

import wsabie
from wsabie.core.errors import InputError, NotCalibratedError
from wsabie.models.conse import Conse
from wsabie.models.devise import Devise
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph
from wsabie.vocabulary.word_vectors import WordVectors


def measure_hits(model, candidates, k=1, rows=X):
    ids, _ = model.rank(rows[TEST], k, candidates=candidates)
    names = np.array([*list(model.vocabulary_), ""])
    return float(np.mean([LABELS[y] in names[ids_of_row] for y, ids_of_row in zip(TRUE[TEST], ids, strict=True)]))


@pytest.mark.parametrize("estimator", [Devise, Conse])
def test_unseen_labels_are_found(estimator):
    """Six labels that no row had: chance is 1/6; over all thirty 1/30 and 5/30 at five."""
    model = fit_model(estimator(VECTORS, labels=LABELS[N_SEEN:], scaling=None, threads=1))
    assert measure_hits(model, LABELS[N_SEEN:]) > 3 / 6
    assert measure_hits(model, None, 5) > 3 * 5 / 30
    assert model.score(X[TRAIN], [LABELS[y] for y in TRUE[TRAIN]]) > 0.8


def test_sparse_rows_learn_as_dense_ones():
    rows = np.where(X > 1, X, 0).astype(np.float32)
    models = [
        fit_model(Devise(VECTORS, labels=LABELS[N_SEEN:], scaling=None, threads=1), r)
        for r in (rows, sp.csr_matrix(rows))
    ]
    assert models[1].transform(sp.csr_matrix(rows)) == pytest.approx(models[0].transform(rows), abs=2e-3)


@pytest.mark.parametrize("loss", ["warp", "auc", "owpc", "k-os"])
def test_every_loss_learns(loss):
    model = fit_model(Devise(VECTORS, loss=loss, rank_weight="precision", scaling=None, epochs=20, threads=1))
    ids, _ = model.rank(X[TRAIN], 5)
    assert np.mean([y in row for y, row in zip(TRUE[TRAIN], ids, strict=True)]) > 0.6


def test_word_vectors_stay_and_unseen_labels_are_no_negatives():
    """The same map, to the bit, whether labels without rows are known or not."""
    plain, extended = (fit_model(Devise(VECTORS, labels=more, threads=1)) for more in ([], LABELS[N_SEEN:]))
    assert np.array_equal(plain.transform(X), extended.transform(X))
    unit = VECTORS.table / np.linalg.norm(VECTORS.table, axis=1, keepdims=True)
    assert extended.label_vectors == pytest.approx(unit, abs=1e-6)
    for model in (extended, fit_model(Devise(VECTORS, max_norm=0.5, l2=0.1, threads=1))):
        assert model.space_.labels[:, :DIM] == pytest.approx(unit[:N_SEEN], abs=1e-6)  # of which training takes a copy


def test_labels_are_added_later():
    """Labels added later rank as if they had been given at the start."""
    model = fit_model(Devise(VECTORS, threads=1)).add_labels(LABELS[N_SEEN:], VECTORS)
    extended = fit_model(Devise(VECTORS, labels=LABELS[N_SEEN:], threads=1))
    assert all(np.array_equal(a, b) for a, b in zip(model.rank(X, 5), extended.rank(X, 5), strict=True))
    with pytest.raises(InputError, match="comes twice"):
        model.add_labels(["word0"], VECTORS)
    with pytest.raises(InputError, match="have 2 dimensions but those of the model 12"):
        model.add_labels(["new"], WordVectors(["new"], np.ones((1, 2), np.float32)))
    with pytest.raises(InputError, match="vectors are the word vectors"):
        model.add_labels(["new"], None)


def test_threads_change_no_bit():
    maps = [fit_model(Devise(VECTORS, threads=n)).transform(X) for n in (1, 2)]
    assert np.array_equal(*maps)


def test_scores_are_cosines_and_agree_with_ranks():
    model = fit_model(Devise(VECTORS, labels=LABELS[N_SEEN:], threads=1))
    ids, best = model.rank(X, 4)
    scores = model.scores(X)
    assert np.take_along_axis(scores, ids, axis=1) == pytest.approx(best, abs=1e-5)
    assert np.abs(scores).max() <= 1 + 1e-6


def test_labels_without_a_vector_are_dropped():
    y = [LABELS[t] if t else "unheard of" for t in TRUE[TRAIN]]
    model = Devise(VECTORS, threads=1, epochs=2).fit(X[TRAIN], y)
    assert model.missing_ == ["unheard of"]
    assert np.all(model.scores(X)[:, 0] == -np.inf)
    assert not np.any(model.rank(X, N_SEEN)[0] == 0)
    assert model.facts()["labels_with_a_vector"] == N_SEEN - 1


def test_synsets_find_vectors_by_their_terms():
    """Two cranes: the term stands for both, whichever a row has."""
    graph = KnowledgeGraph()
    graph.add("n1", ["word0", "unheard of"])
    graph.add("n2", ["word0"])
    y = [{0: "n1", 1: "n2"}.get(t, LABELS[t]) for t in TRUE[TRAIN]]
    model = Devise(VECTORS, knowledge=graph, threads=1).fit(X[TRAIN], y)
    assert set(model.vocabulary_.names(model.rank(X[:1], 2)[0][0])) == {"n1", "n2"}


def test_labels_without_any_vector_are_refused():
    with pytest.raises(InputError, match="none of the 2 labels of the rows has a word vector, such as 'a', 'b'"):
        Devise(VECTORS).fit(np.eye(2), ["a", "b"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"vectors": None}, "needs word vectors"),
        ({"use": "last"}, "use is 'last'; choose one of first, random, mean"),
        ({"expand": "none"}, "expand is 'none'"),
        ({"knowledge": "wordnet"}, "knowledge says which terms"),
        ({"terms_per_label": 0}, "terms_per_label"),
        ({"margin": -1.0}, "margin is -1.0"),
        ({"labels": "zebra"}, "labels are 'zebra'; give a list of names"),
        ({"labels": 3}, "labels are 3"),
        ({"labels": [3]}, "labels are .3."),
    ],
)
def test_invalid_parameters_are_refused_by_name(wrong, message):
    with pytest.raises(InputError, match=message):
        fit_model(Devise(**{"vectors": VECTORS, **wrong}))


def test_validation_uses_only_trained_labels():
    y = [LABELS[t] for t in TRUE]
    model = Devise(VECTORS, epochs=4, labels=LABELS[N_SEEN:], threads=1)
    model.fit(X[TRAIN], y[: TRAIN.sum()], validation=(X, y))
    assert [stats.validation is not None for stats in model.history_] == [True] * 4
    with pytest.raises(NotCalibratedError, match="cosines"):
        model.predict_proba(X)


@pytest.mark.parametrize("estimator", [Devise(VECTORS, epochs=3, threads=1), Conse(VECTORS)])
def test_loaded_model_takes_more_labels(tmp_path, estimator):
    model = fit_model(clone(estimator).set_params(labels=LABELS[N_SEEN : N_SEEN + 2]))
    model.save(tmp_path / "m")
    loaded = wsabie.load(tmp_path / "m")
    assert all(np.array_equal(a, b) for a, b in zip(model.rank(X, 5), loaded.rank(X, 5), strict=True))
    for current in (model, loaded):
        current.add_labels(LABELS[N_SEEN + 2 :], VECTORS)
    assert np.array_equal(model.scores(X), loaded.scores(X))
    with pytest.raises(InputError, match="needs word vectors"):
        loaded.fit(X, TRUE)


def test_checkpoint_of_other_vectors_is_refused(tmp_path):
    y = [LABELS[t] for t in TRUE[TRAIN]]
    Devise(VECTORS, epochs=2, threads=1).fit(X[TRAIN], y, checkpoint=tmp_path / "c")
    other_vectors = WordVectors(LABELS, VECTORS.table[::-1].copy())
    with pytest.raises(InputError):
        Devise(other_vectors, epochs=2, threads=1).fit(X[TRAIN], y, checkpoint=tmp_path / "c", resume=True)


def test_warm_start_keeps_rare_labels_near_their_vectors():
    """A label with one row stays near its word vector, one with many goes away from it."""
    indices = np.concatenate([np.flatnonzero(y == TRUE)[: 1 if y % 2 else EACH] for y in range(N_SEEN)])
    y = [LABELS[t] for t in TRUE[indices]]
    model = wsabie.Wsabie(DIM, init_labels=VECTORS, epochs=30, threads=1).fit(X[indices], y)
    unit = VECTORS.table / np.linalg.norm(VECTORS.table, axis=1, keepdims=True)
    unit_vectors = model.label_vectors / np.linalg.norm(model.label_vectors, axis=1, keepdims=True)
    cosines = np.einsum("ij,ij->i", unit_vectors, unit[:N_SEEN])
    assert cosines.mean() > 0.7  # two random points of twelve dimensions have 0 +- 0.3
    moved = np.linalg.norm(model.label_vectors - unit[:N_SEEN], axis=1)
    assert moved[::2].mean() > moved[1::2].mean() > 0


def test_warm_start_needs_the_dimensions_of_the_vectors():
    with pytest.raises(InputError, match="init_labels have 12 dimensions and dim is 100; set dim=12"):
        fit_model(wsabie.Wsabie(init_labels=VECTORS))


def test_warm_started_model_is_saved_without_the_vectors(tmp_path):
    model = fit_model(wsabie.Wsabie(DIM, init_labels=VECTORS, epochs=2, threads=1))
    model.save(tmp_path / "m")
    loaded = wsabie.load(tmp_path / "m")
    assert loaded.init_labels is None
    assert np.array_equal(loaded.scores(X), model.scores(X))


def test_missing_vectors_and_empty_candidates_are_refused():
    model = fit_model(Devise(VECTORS, labels=["unheard of"], epochs=1, threads=1))
    for candidates in (["unheard of"], []):
        ids, scores = model.rank(X[:2], 3, candidates=candidates)
        assert np.all(ids == -1)
        assert np.all(scores == -np.inf)
    assert model.annotate(X[:1], candidates=["unheard of"]) == [[]]
