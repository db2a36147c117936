"""Models by name."""

import pytest

from wsabie.core.errors import InputError
from wsabie.workflows.compare.entrants import NAMES, build_entrants


def test_every_name_builds_its_model_with_its_options() -> None:
    entrants = {
        e.name: e
        for e in build_entrants(NAMES, seed=7, threads=2, max_negatives=9, max_minutes=0.5, parameters={"dim": 16})
    }
    assert tuple(entrants) == NAMES
    assert [e.name for e in entrants.values() if not e.baseline] == [
        "wsabie",
        "ensemble-2",
        "ensemble-3",
        "ensemble-10",
    ]
    assert entrants["ensemble-3"].build(epochs=1).get_params()["estimator__epochs"] == 1
    model = entrants["wsabie"].build(epochs=1)
    assert (model.dim, model.seed, model.threads, model.epochs) == (16, 7, 2, 1)
    assert entrants["one-vs-rest"].build(C=3.0).get_params()["max_minutes"] == 0.5
    for name, learner in (("one-vs-rest-pa", "passive-aggressive"), ("one-vs-rest-hinge", "hinge"), ("svm", "svm")):
        linear = entrants[name].build(**entrants[name].options[0])
        assert (linear.learner, linear.seed, linear.threads, linear.max_negatives) == (learner, 7, 2, 9)
    assert entrants["approximate-nearest"].build().seed == 7
    assert [option["k"] for option in entrants["nearest"].options][:4] == [5, 10, 20, 50]


def test_repeated_names_are_built_once_in_order() -> None:
    assert [e.name for e in build_entrants(["popularity", "nearest", "popularity"])] == ["popularity", "nearest"]


def test_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match="no model called 'neares' to compare; did you mean 'nearest'"):
        build_entrants(["neares"])
    with pytest.raises(InputError, match="choose from wsabie, wsabie-auc, owpc-sgd"):
        build_entrants(["zzz"])
