"""ConSE: averages of vectors by probability, terms that are looked up, refusals."""

import numpy as np
import pytest
from tests.models.planted_vectors import VECTORS, X, fit_model

from wsabie.core.errors import InputError
from wsabie.models.conse import Conse
from wsabie.vocabulary.word_vectors import WordVectors


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"seed": -1}, "seed is -1"), ({"threads": "all"}, "threads is 'all'"), ({"max_iter": 1.5}, "max_iter is 1.5")],
)
def test_invalid_conse_parameters_are_refused_by_name(wrong, message):
    with pytest.raises(InputError, match=message):
        fit_model(Conse(VECTORS, **wrong))


def test_conse_averages_vectors_by_probability():
    model = fit_model(Conse(VECTORS, top=3))
    chances = model.classifier_.probabilities(X[:1])[0]
    best = np.argsort(-chances)[:3]
    unit = VECTORS.table / np.linalg.norm(VECTORS.table, axis=1, keepdims=True)
    assert model.transform(X[:1])[0] == pytest.approx(chances[best] @ unit[best] / chances[best].sum(), abs=1e-5)


@pytest.mark.parametrize(("terms_per_label", "ids"), [(1, [0, -1]), (2, [0, 1])])
def test_conse_looks_up_the_stated_number_of_terms(terms_per_label, ids):
    words = WordVectors(["red", "crimson", "blue"], np.array([[1, 0], [0.9, 0.1], [0, 1]], np.float32))
    model = Conse(words, top=1, terms_per_label=terms_per_label).fit(np.eye(2), ["red, crimson", "blue"])
    assert model.rank(np.eye(2)[:1], k=2)[0].tolist() == [ids]
