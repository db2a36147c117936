"""scikit-learn's own contract, with what cannot hold and why."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from toy_tasks import toy
from wsabie.models.ensemble import Ensemble
from wsabie.models.full_rank import FullRank
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.linear_ranker import LinearRanker
from wsabie.models.loader import KINDS, find_model_class
from wsabie.models.object_parts.ranker import ObjectParts

LABELS = "labels are the argument Y, as everywhere here; this check passes y= by keyword"
EXPECTED = {
    "check_n_features_in_after_fitting": LABELS + " to score (the sentence itself is tested with the estimator)",
    "check_sample_weight_equivalence_on_dense_data": LABELS + "; and stochastic steps on a repeated row differ",
    "check_sample_weight_equivalence_on_sparse_data": LABELS + "; and stochastic steps on a repeated row differ",
}


def make() -> Wsabie:
    return Wsabie(dim=20, epochs=2, threads=1)


SMALL = {
    "wsabie": make(),
    "parts": ObjectParts([(0, 1), (1, 2)], dim=20, epochs=2, threads=1),
    "linear": LinearRanker(epochs=2, threads=1),
    "full-rank": FullRank(make(), LinearRanker(epochs=2), blend=1.0, threads=1),
    "ensemble": Ensemble(make(), n=2, threads=1),
}


def name_of(check: Any) -> str:
    return str(getattr(check, "func", check).__name__)


SEARCH_TABLE = "the first search builds the table that all searches read"
EXPECTED_BY_KIND = {
    ("parts", "check_fit2d_1sample"): "one picture has no other that shows a part: another sentence",
    ("parts", "check_dict_unchanged"): SEARCH_TABLE,
    ("wsabie", "check_dict_unchanged"): SEARCH_TABLE,
}
CHECKS = [
    (kind, estimator, check)
    for kind in KINDS
    if kind not in ("devise", "conse")  # labels have to be words that have vectors
    for estimator, check in estimator_checks_generator(SMALL.get(kind) or find_model_class(kind)())
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(CHECKS)), ids=[f"{kind}-{name_of(check)}" for kind, _, check in CHECKS])
def test_scikit_learn_contract_holds(number: int) -> None:
    from unittest import SkipTest

    kind, estimator, check = CHECKS[number]
    reason = EXPECTED.get(name_of(check)) or EXPECTED_BY_KIND.get((kind, name_of(check)))
    try:
        check(estimator)
    except SkipTest as skipped:
        pytest.skip(str(skipped))
    except Exception:
        if reason is None:
            raise
    else:
        assert reason is None, f"{name_of(check)} holds now; take it off the list"


def test_every_expected_failure_is_a_check() -> None:
    assert set(EXPECTED) <= {name_of(check) for _, _, check in CHECKS}
    assert set(EXPECTED_BY_KIND) <= {(kind, name_of(check)) for kind, _, check in CHECKS}


def test_clone_keeps_parameters() -> None:
    model = Wsabie(dim=7, learning_rate={"V": 0.1, "W": 0.2}, rank_weight=[1, 0.5], seed=3)
    assert clone(model).get_params() == model.get_params()
    assert "dim=7" in repr(model)


def test_pipelines_and_searches_work() -> None:
    X, _, answer = toy(60, dense=True)
    first = answer[:, 0]
    pipeline = make_pipeline(StandardScaler(), make().set_params(epochs=30))
    assert pipeline.fit(X, first).score(X, first) == 1
    assert cross_val_score(make(), X, first, cv=3).shape == (3,)
    search = GridSearchCV(make(), {"margin": [0.5, 1.0]}, cv=2).fit(X, first)
    assert search.best_params_["margin"] in (0.5, 1.0)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
