"""The linear model: learning, memory, and independence of threads."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toy_tasks import names, toy
from wsabie.core.errors import InputError
from wsabie.kernels.training import sequential_loop
from wsabie.models import linear_ranker, ridge
from wsabie.models.base.parameter_defaults import TrainingShape
from wsabie.models.linear_ranker import LinearRanker
from wsabie.models.paper_presets import make_opt_auc, make_pamir, make_vse_ens

X, Y, ANSWER = toy()


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("loss", ["warp", "auc", "owpc", "k-os"])
def test_every_loss_finds_the_labels_of_the_toy(loss: Any, dense: bool) -> None:
    rows = X.toarray() if dense else X
    model = LinearRanker(loss=loss, epochs=10, threads=1).fit(rows, names(ANSWER))
    for top, true in zip(model.annotate(rows, 2), names(ANSWER), strict=True):
        assert {name for name, _ in top} == set(true)


def test_scores_are_products_of_scaled_rows_and_weights() -> None:
    model = LinearRanker(epochs=3, label_bias=True, init="random", threads=1).fit(X, names(ANSWER))
    scaled = X.copy()
    scaled.data = np.log1p(scaled.data)
    scaled = scaled.multiply(1 / np.sqrt(scaled.multiply(scaled).sum(1))).tocsr()
    expected = scaled @ model.coef_.T + model.space_.bias
    np.testing.assert_allclose(model.scores(X), expected, rtol=1e-4, atol=1e-5)


def test_auto_defaults_depend_on_pairs_and_labels() -> None:
    """Few pairs are passed over 10 times and not 30, 100 labels are drawn and not 1,000; "auc" takes larger steps."""
    shape = TrainingShape(100, 100, 20_000)
    settings = LinearRanker(init="random")._resolve_settings(shape)
    assert (settings.epochs, settings.max_sampled) == (10, 100)
    assert settings.weight_rate == settings.learning_rate == pytest.approx(0.1)
    assert LinearRanker()._resolve_settings(shape).weight_rate == pytest.approx(0.01)
    assert make_pamir()._resolve_settings(shape).weight_rate == pytest.approx(1.0)
    explicit_settings = LinearRanker(epochs=25, max_sampled=500)._resolve_settings(shape)
    assert (explicit_settings.epochs, explicit_settings.max_sampled) == (25, 500)
    assert LinearRanker()._resolve_settings(TrainingShape(100, 100, 50)).max_sampled == 50


def test_bias_is_learned_on_request() -> None:
    """A label of five rows in six ranks first where a row says nothing, only with a bias."""
    rows, truth = np.zeros((60, 2), np.float32), [["often"]] * 50 + [["rare"]] * 10
    models = [LinearRanker(label_bias=b, epochs=2, scaling=None, threads=1).fit(rows, truth) for b in (False, True)]
    often, rare = (list(models[1].vocabulary_).index(name) for name in ("often", "rare"))
    assert not models[0].space_.bias.any()
    assert models[1].space_.bias[often] > 0 > models[1].space_.bias[rare]


@pytest.mark.parametrize("changes", [{}, {"l2": 0.01}, {"max_norm": 0.5}])
def test_threads_change_no_bit(changes: dict[str, Any]) -> None:
    single_threaded, two = (LinearRanker(epochs=3, threads=n, **changes).fit(X, names(ANSWER)) for n in (1, 2))
    assert np.array_equal(single_threaded.coef_, two.coef_)


@pytest.mark.parametrize(("changes", "shared"), [({}, True), ({"l2": 0.5}, False), ({"max_norm": 0.5}, False)])
def test_hogwild_scales_weights_in_one_thread(
    changes: dict[str, Any], shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that scale one label at once would destroy it. Alone, the bits are those of the sequential loop."""
    scales: set[int] = set()
    kernel = sequential_loop.run_visits
    monkeypatch.setattr(
        sequential_loop, "run_visits", lambda *arguments: (scales.add(int(arguments[6])), kernel(*arguments))
    )
    options = {"epochs": 2, "deterministic": False, **changes}
    four = LinearRanker(threads=4, **options).fit(X, names(ANSWER))
    assert len(scales) == (4 if shared else 1)
    if not shared:
        single_threaded = LinearRanker(threads=1, **options).fit(X, names(ANSWER))
        assert np.array_equal(four.coef_, single_threaded.coef_)
        assert four.history_[-1].pairs == single_threaded.history_[-1].pairs == sum(map(len, names(ANSWER)))


def test_max_norm_bounds_weights_and_l2_shortens_them() -> None:
    free, limited, decayed = (
        LinearRanker(epochs=5, init="random", threads=1, **changes).fit(X, names(ANSWER))
        for changes in ({}, {"max_norm": 0.5}, {"l2": 1.0})
    )
    length = [float(np.linalg.norm(model.coef_, axis=1).max()) for model in (free, limited, decayed)]
    assert length[0] > 0.5
    assert length[1] <= 0.5 * (1 + 1e-5)
    assert length[2] < length[0]


def test_best_epoch_is_restored_from_disk() -> None:
    """The first epoch of a run whose rate explodes later is the best; the weights are those of a run of one epoch."""
    validation = (X[:30], names(ANSWER[:30]))
    model = LinearRanker(epochs=4, schedule="constant", threads=1).fit(X, names(ANSWER), validation=validation)
    best = int(np.argmax([stats.validation for stats in model.history_]))
    shorter = LinearRanker(epochs=best + 1, schedule="constant", threads=1).fit(X, names(ANSWER))
    assert np.array_equal(model.coef_, shorter.coef_)
    assert not isinstance(model.coef_, np.memmap)


def test_stopped_training_resumes_bit_for_bit(tmp_path: Path) -> None:
    def fit(**options: Any) -> LinearRanker:
        model = LinearRanker(epochs=4, l2=0.01, max_norm=1.0, threads=1)
        return model.fit(X, names(ANSWER), checkpoint=tmp_path / "c", **options)

    uninterrupted = LinearRanker(epochs=4, l2=0.01, max_norm=1.0, threads=1).fit(X, names(ANSWER))

    class StopError(Exception):
        pass

    def stop(stats: Any) -> None:
        if stats.epoch == 2:
            raise StopError

    with pytest.raises(StopError):
        fit(on_epoch=stop)
    assert np.array_equal(fit(resume=True).coef_, uninterrupted.coef_)


def test_long_weights_are_not_taken_for_divergence() -> None:
    """A vector of length 1,000 has coordinates that are far from overflowing; 1,000,000 is its square."""
    model = LinearRanker(learning_rate=1e5, max_norm=2000.0, margin=1e4, epochs=1, threads=1).fit(X, names(ANSWER))
    assert np.linalg.norm(model.coef_, axis=1).max() > 1500


def test_large_memory_needs_are_announced(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    with caplog.at_level("INFO", "wsabie"):
        LinearRanker(epochs=1, threads=1).fit(X, names(ANSWER))
        assert caplog.text == ""
        monkeypatch.setattr(linear_ranker, "LARGE_MEMORY_BYTES", 1000)
        LinearRanker(epochs=1, threads=1).fit(X, names(ANSWER))
    assert "12 labels with a weight for each of 30 features take 0.00 GB" in caplog.text


def test_adaptive_sampler_is_refused() -> None:
    with pytest.raises(InputError, match="and scores are by weights; choose another sampler"):
        LinearRanker(sampler="adaptive", loss="auc").fit(X, names(ANSWER))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": -1.0}, "learning_rate is -1.0"),
        ({"max_norm": 0}, "max_norm is 0"),
        ({"l2": -0.1}, "l2 is -0.1; choose a number from 0 on"),
        ({"rank_estimator": 0}, "rank_estimator is 0"),
        (
            {"sampler": "frequency", "rank_estimator": "draws"},
            "says nothing about the rank when the sampler is 'frequency'",
        ),
        (
            {"surrogate": "logistic", "rank_estimator": "draws"},
            "about the rank when the surrogate is 'logistic'; choose",
        ),
        ({"loss": "k-os", "order_statistic": (3, 2)}, r"order_statistic is \(3, 2\)"),
        ({"loss": "owpc", "surrogate": "logistic"}, "is a sum of hinges"),
        ({"loss": "owpc", "sampler": "frequency"}, 'scores every label; leave sampler at "uniform" and'),
        ({"loss": "owpc", "rank_estimator": 20}, 'and rank_estimator at "auto"'),
    ],
)
def test_invalid_parameters_are_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LinearRanker(**changes).fit(X, names(ANSWER))


@pytest.mark.parametrize("loss", ["warp", "k-os"])
def test_logistic_surrogate_weighs_by_a_counted_rank(loss: Any) -> None:
    """Its first draw is taken, so that floor(Y_neg / N) would be Y_neg at every step: one bin, the highest."""
    model = LinearRanker(loss=loss, surrogate="logistic", epochs=8, threads=1).fit(X, names(ANSWER))
    ranks = model.history_[-1].rank_histogram
    assert model.history_[-1].mean_draws == 1
    assert ranks[0] > 0.9 * sum(ranks)
    assert model.score(X, names(ANSWER)) > 0.95


@pytest.mark.parametrize("preset", [make_vse_ens, make_opt_auc, make_pamir])
def test_paper_presets_learn_the_toy(preset: Any) -> None:
    changes = {} if preset is make_pamir else {"dim": 16, "learning_rate": 0.1}
    model = preset(epochs=40, threads=1, **changes).fit(X, names(ANSWER))
    assert model.score(X, names(ANSWER)) > 0.95


def test_ridge_start_has_ridge_weights_with_unit_margin() -> None:
    rows, truth = X.toarray().astype(np.float32), names(ANSWER)
    model = LinearRanker(init="ridge", learning_rate=1e-30, epochs=1, margin=2.0, threads=1).fit(rows, truth)
    scaled = model.scaling_(rows)
    targets = model._build_truth(truth, len(rows)).toarray() > 0
    gram = scaled.T.astype(np.float64) @ scaled + linear_ranker.RIDGE_PENALTY * np.eye(scaled.shape[1])
    expected = np.linalg.solve(gram, scaled.T @ targets).T
    np.testing.assert_allclose(model.coef_ / np.abs(model.coef_).max(), expected / np.abs(expected).max(), atol=1e-4)
    scores = scaled @ model.coef_.T
    assert np.median((scores - scores.mean(axis=1, keepdims=True))[targets]) == pytest.approx(2, abs=1e-3)


def test_row_weights_count_in_a_ridge_start() -> None:
    truth, repeats = names(ANSWER), np.where(np.arange(X.shape[0]) % 2, 1, 3)
    options = {"init": "ridge", "learning_rate": 1e-30, "epochs": 1, "scaling": None, "threads": 1}
    weighted = LinearRanker(**options).fit(X, truth, sample_weight=repeats)
    rows = np.repeat(np.arange(X.shape[0]), repeats)
    repeated = LinearRanker(**options).fit(X[rows], [truth[row] for row in rows])
    cosines = np.einsum("ij,ij->i", weighted.coef_, repeated.coef_)
    lengths = np.linalg.norm(weighted.coef_, axis=1) * np.linalg.norm(repeated.coef_, axis=1)
    np.testing.assert_allclose(cosines, lengths, rtol=1e-4)


@pytest.mark.parametrize("n_exact", [0, 2048])
def test_ridge_start_is_independent_of_threads(n_exact: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ridge, "MAX_EXACT_FEATURES", n_exact)
    models = [LinearRanker(epochs=2, threads=threads).fit(X, names(ANSWER)) for threads in (1, 2)]
    assert np.array_equal(models[0].coef_, models[1].coef_)
