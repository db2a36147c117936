"""The same number of settings for each model, and one-versus-rest within its time."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from papers.datasets import PaperData
from papers.tuning_budget import RATES, equalise_budget, limit_training_time, measure_data_shape
from wsabie.io.records import FeatureTable
from wsabie.models.base.parameter_defaults import default_learning_rate, default_linear_rate
from wsabie.models.linear_ranker import LinearRanker
from wsabie.workflows.compare.entrants import NAMES, build_entrants


@pytest.fixture
def data() -> PaperData:
    rng = np.random.default_rng(0)
    Y = sp.csr_matrix((rng.random((60, 6)) < 0.5).astype(np.int8))
    X = sp.random(60, 8, 0.5, "csr", dtype=np.float32, random_state=0)
    rows = FeatureTable(X, Y, list("abcdef"), [str(i) for i in range(60)])
    return PaperData("toy", "toy", rows, rows, rows)


def test_every_trained_model_has_as_many_settings(data: PaperData) -> None:
    without_settings = {"fusion", "auto", "one-vs-rest", "one-vs-rest-hinge"}  # or others than three
    for entrant in build_entrants([name for name in NAMES if name not in without_settings]):
        options = equalise_budget(entrant, data).options
        assert len(options) == (len(entrant.options) if entrant.quick else len(RATES))


def test_learning_rates_are_multiples_of_the_models_own(data: PaperData) -> None:
    shape = measure_data_shape(data)
    full, low, auc = (equalise_budget(entrant, data) for entrant in build_entrants(["full-rank", "wsabie", "opt-auc"]))
    model = full.build(rate=3.0)
    assert model.embedding.learning_rate == low.build(rate=3.0).learning_rate == 3 * default_learning_rate(shape)
    assert model.linear.learning_rate == 3 * default_linear_rate(LinearRanker(init="random").get_params(), shape)
    assert auc.build(rate=1 / 3, epochs=1).learning_rate == pytest.approx(0.01 / 3)


def test_rare_labels_do_not_count(data: PaperData) -> None:
    counts = np.asarray((data.train.Y > 0).sum(axis=0)).ravel()
    least = int(np.median(counts)) + 1
    frequent = counts[counts >= least]
    assert measure_data_shape(replace(data, min_rows=least))[:3] == (60, frequent.sum(), len(frequent))


def test_negatives_are_limited_where_time_is_short(data: PaperData) -> None:
    (entrant,) = build_entrants(["one-vs-rest-pa"], threads=1)
    assert limit_training_time(entrant, data.train) is entrant
    short_entrant = replace(entrant, build=partial(entrant.build, max_minutes=1e-9))
    limited = limit_training_time(short_entrant, data.train)
    assert limited.build().max_negatives == 100
    assert limited.title.endswith("100 random negatives for each label")
