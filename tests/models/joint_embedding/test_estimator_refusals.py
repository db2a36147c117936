"""Refusals of the estimator: parameters, data, and validation rows."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.models.joint_embedding.estimator_toy import ANSWER, X, Y, make

from toy_tasks import N_LABELS, names
from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.models.joint_embedding.estimator import Wsabie


@pytest.fixture(scope="module")
def fitted() -> Wsabie:
    return make().fit(X, Y)


# ---- parameters and data


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"dim": 0}, "dim is 0; choose a whole number from 1 to 4096"),
        ({"dim": 2.5}, "dim is 2.5; choose a whole number"),
        ({"dim": True}, "dim is True"),
        ({"dim": 5000}, "dim is 5000; choose a whole number from 1 to 4096"),
        ({"dim": "auto"}, "dim is 'auto'"),
        ({"loss": "hinge"}, "loss is 'hinge'; choose one of warp, auc"),
        ({"similarity": ["dot"]}, "similarity is .*; choose one of dot, euclidean, cosine"),
        ({"pair_weighting": "sum"}, "pair_weighting is 'sum'"),
        ({"schedule": None}, "schedule is None"),
        ({"scaling": "l2"}, "scaling is 'l2'; choose"),
        ({"epochs": 0.5}, "epochs is 0.5; choose 'auto' or a whole number above 0"),
        ({"epochs": None}, "epochs is None"),
        ({"margin": None}, "margin is None; choose a number above 0"),
        ({"margin": -1}, "margin is -1"),
        ({"max_norm": np.inf}, "max_norm is inf; choose 'auto' or None or a number above 0"),
        ({"max_sampled": 0}, "max_sampled is 0"),
        ({"max_sampled": 1.5}, "max_sampled is 1.5"),
        (
            {"max_sampled": 2**63},
            "max_sampled is 9223372036854775808; choose 'auto' or None or a whole number from 1 to",
        ),
        ({"patience": "auto"}, "patience is 'auto'; choose None or a whole number above 0"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"seed": -1}, "seed is -1; choose a whole number from 0 on"),
        ({"seed": None}, "seed is None"),
        ({"learning_rate": 0}, "learning_rate is 0; choose a number above 0"),
        ({"learning_rate": {"U": 1}}, "learning_rate names the table 'U'; the tables are"),
        ({"learning_rate": {"V": -1}}, "learning_rate is -1"),
        ({"learning_rate": {"W": "fast"}}, "learning_rate is 'fast'"),
        ({"init_scale": np.nan}, "init_scale is nan"),
        ({"label_bias": 1.0}, "label_bias is 1.0; choose one of False, True"),
        ({"deterministic": "no"}, "deterministic is 'no'; choose one of False, True"),
        ({"rank_weight": "recall"}, "rank_weight is 'recall'; choose one of precision, mean_rank, top1, or an array"),
        ({"rank_weight": [1, 2]}, "rank_weight must be .* that never increase"),
    ],
)
def test_invalid_parameters_are_refused_by_name(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make(**change).fit(X, Y)


@pytest.mark.parametrize(
    ("rows", "labels", "options", "sentence"),
    [
        (X[:5], Y, {}, "X has 5 rows and Y has 120"),
        (X[:0], [], {}, r"Found array with 0 sample\(s\)"),
        (X[:, :0], Y, {}, r"Found array with 0 feature\(s\) \(shape=\(120, 0\)\)"),
        (X, sp.csr_matrix((120, 4)), {}, "no row has a label; give at least one"),
        (X, -Y, {}, "no row has a label; give at least one"),
        (X, Y, {"sample_weight": np.ones(3)}, "sample_weight must be 120 finite non-negative numbers"),
        (X, Y, {"sample_weight": -np.ones(120)}, "sample_weight must be 120 finite non-negative numbers"),
        (X, Y, {"sample_weight": np.full(120, np.nan)}, "sample_weight must be 120 finite"),
        (X, Y, {"sample_weight": ["much"] * 120}, "sample_weight must be 120 finite"),
        (X, Y, {"sample_weight": np.ones(120, complex)}, "sample_weight must be 120 finite"),
        (X, Y, {"sample_weight": np.full(120, 1e300)}, "sample_weight must be 120 finite"),
        (X, Y, {"sample_weight": np.zeros(120)}, "sample_weight is zero for every row"),
        (X, Y, {"label_names": ["a", "b"]}, "Y holds label number 11, but there are 2 label names"),
        (X, Y, {"label_names": ["a"] * 12}, "the label name 'a' comes twice"),
        (X, Y, {"validation": (X[:, 1:], Y)}, "validation X has 29 features, but Wsabie is expecting 30 features"),
        (X, Y, {"validation": (X[:3], Y)}, "X has 3 rows and Y has 120"),
        (X, Y, {"validation": X}, "validation must be a pair"),
    ],
)
def test_invalid_data_are_refused(rows: Any, labels: Any, options: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make(epochs=1).fit(rows, labels, **options)


def test_invalid_use_is_refused(fitted: Wsabie) -> None:
    from sklearn.exceptions import NotFittedError

    for use in (lambda m: m.rank(X), lambda m: m.transform(X), lambda m: m.label_vectors, lambda m: m.score(X, Y)):
        with pytest.raises(NotFittedError, match="call fit"):
            use(make())
    with pytest.raises(InputError, match="X has 29 features, but Wsabie is expecting 30 features as input"):
        fitted.rank(X[:, 1:])
    with pytest.raises(InputError, match="X has 29 features, but Wsabie is expecting 30 features as input"):
        fitted.score(X[:, 1:], Y)
    with pytest.raises(InputError, match="k is 0; choose a whole number above 0"):
        fitted.rank(X, 0)
    with pytest.raises(InputError, match=r"k is 2.5; choose a whole number"):
        fitted.annotate(X, 2.5)  # type: ignore[arg-type]
    for mask in (np.arange(12) > 9, [1.7], [True]):
        with pytest.raises(InputError, match=r"labels are names or whole numbers, not .*flatnonzero"):
            fitted.rank(X, candidates=mask)
    with pytest.raises(InputError, match="the labels are the text 'l1'; give a list of names"):
        fitted.rank(X, candidates="l1")
    with pytest.raises(InputError, match="give a sparse matrix"):
        fitted.rank(X.toarray())
    with pytest.raises(InputError, match="there is no label number 99; the 12 labels are numbered from 0"):
        fitted.rank(X, candidates=[99])
    with pytest.raises(UnknownLabelError, match="there is no label 'l' among"):
        fitted.neighbours("l")
    with pytest.raises(InputError, match="there is no label number -1"):
        fitted.neighbours(-1)
    with pytest.raises(InputError, match="epochs is 0"):
        fitted.partial_fit(X, Y, epochs=0)


# ---- validation rows that cannot choose an epoch


@pytest.mark.parametrize("labels", [[["zz"]] * 5, [[]] * 5])
def test_unknown_validation_labels_are_refused_but_scored(labels: Any) -> None:
    """They kept the first epoch's model, because every epoch's figure was 0."""
    with pytest.raises(InputError, match="no validation row has a label that the training rows have"):
        make(epochs=2).fit(X, names(ANSWER), validation=(X[:5], labels))
    assert make(epochs=2).fit(X, names(ANSWER)).score(X[:5], labels) == 0


def test_loaded_model_is_scored_by_its_mapped_table(tmp_path: Any) -> None:
    model = make(epochs=2).fit(X, Y)
    model.save(tmp_path / "m")
    loaded = Wsabie.load(tmp_path / "m")
    monitor = loaded._build_monitor(X, Y, None)
    assert loaded.space_.labels.shape[1] == 20 < loaded.space_.features.shape[1]
    assert monitor(loaded.space_) == pytest.approx(model.score(X, Y), abs=1e-6)


# ---- whole numbers


@pytest.mark.parametrize("name", ["dim", "epochs", "max_sampled", "patience", "threads", "seed"])
def test_fractional_numbers_are_refused_as_integers(name: str) -> None:
    """dim=8.0 used to end in a TypeError; NumPy's integers are as good as Python's."""
    with pytest.raises(InputError, match=f"{name} is 2.0; choose .*a whole number"):
        make(**{"epochs": 1, name: 2.0}).fit(X, Y)
    make(**{"epochs": 1, name: np.int64(2)}).fit(X, Y)


def test_impossible_numbers_of_threads_are_refused() -> None:
    with pytest.raises(InputError, match="threads is 1000000; choose None or a whole number from 1 to 1024"):
        make(threads=10**6).fit(X, Y)


def test_model_with_label_numbers_refuses_names() -> None:
    model = make(epochs=2).fit(X, Y)
    with pytest.raises(InputError, match="Y holds the label name 'x', but the model's labels are the numbers 0 to 11"):
        model.partial_fit(X[:2], [["0"], ["x"]])
    assert len(model.partial_fit(X[:2], [["0"], ["11"]]).vocabulary_) == N_LABELS
