"""Choice of the kind of model: trials, the smallest that is as good, columns, and storage."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wsabie
from wsabie.models.estimator_specs import find_name
from wsabie.models.stacking import auto_ranker
from wsabie.models.stacking.auto_ranker import choose_model
from wsabie.models.stacking.holdout_scores import FOLDS


def draw_circles(n: int = 600) -> tuple[np.ndarray, list[str]]:
    """Return rows whose label depends on their length, which no linear model can learn."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    turns = np.floor(4 * np.linalg.norm(X, axis=1)).astype(int)
    directions = (X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 0)
    return X, [f"{direction} {turn % 2}" for direction, turn in zip(directions, turns, strict=True)]


def test_smallest_of_equal_models_is_chosen() -> None:
    rng = np.random.default_rng(0)
    best = rng.random(500)
    worse = np.clip(best - 0.1 + 0.05 * rng.standard_normal(500), 0, 1)
    assert choose_model([best, best, worse], sizes=[30, 20, 10]) == 1
    assert choose_model([best, worse], sizes=[30, 10]) == 0


def test_large_model_must_win_beyond_noise() -> None:
    best, worse = np.array([1.0, 0.0, 1.0, 0.9]), np.array([0.9, 0.3, 0.6, 0.9])
    assert choose_model([best, worse], sizes=[2, 1]) == 0


def test_every_candidate_is_tried_and_the_winner_trained_on_all_rows() -> None:
    X, Y = draw_circles()
    model = wsabie.AutoRanker(threads=1).fit(X, Y)
    kinds = [trial.kind for trial in model.trials_]
    assert sorted(kinds[:-1]) == ["linear-warp", "nearest", "nearest-mean", "one-vs-rest", "ridge", "wsabie"]
    assert kinds[-1] == "fusion"
    figures = {trial.kind: trial.ndcg for trial in model.trials_}
    assert figures[model.facts()["kind"]] >= max(figures.values()) - 0.005
    assert all(trial.low <= trial.ndcg <= trial.high for trial in model.trials_)
    assert [trial["kind"] for trial in model.facts()["trials"]] == kinds
    assert np.array_equal(model.scores(X), model.best_.scores(X))
    assert model.annotate(X[:2], k=1) == model.best_.annotate(X[:2], k=1)
    assert model.predict(X[:2]).tolist() == [row[0][0] for row in model.annotate(X[:2], k=1)]
    assert model.score(X, Y) == model.best_.score(X, Y)


def test_folder_holds_the_chosen_model(tmp_path: Path) -> None:
    X, Y = draw_circles(200)
    frame = pd.DataFrame(X, columns=["east", "north", "up"])
    model = wsabie.AutoRanker(threads=1).fit(frame, Y)
    model.save(tmp_path / "m")
    loaded = wsabie.load(tmp_path / "m")
    assert loaded.kind == model.best_.kind
    assert loaded.feature_names_in_.tolist() == ["east", "north", "up"]
    assert np.array_equal(loaded.scores(frame), model.scores(frame))


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The kinds that learn from each part of the rows; two seconds are not allowed in any case."""
    kinds: list[list[str]] = []
    original = auto_ranker.score_fold

    def score_fold(models: list[Any], *data: Any, **options: Any) -> Any:
        kinds.append([find_name(model) for model in models])
        return original(models, *data, **options)

    monkeypatch.setattr(auto_ranker, "score_fold", score_fold)
    monkeypatch.setattr(auto_ranker, "MIN_SECONDS", 0.0)
    return kinds


def test_small_budget_tries_the_cheapest_kinds(rounds: list[list[str]], caplog: pytest.LogCaptureFixture) -> None:
    X, Y = draw_circles()
    with caplog.at_level("INFO", logger="wsabie"):
        model = wsabie.AutoRanker(threads=1, budget=0.1).fit(X, Y)
    assert rounds == [["wsabie"]]
    assert [trial.kind for trial in model.trials_] == ["wsabie", "fusion"]
    (message,) = (record.message for record in caplog.records if "auto tries" in record.message)
    assert message.startswith("auto tries wsabie and their fusion, for about ")
    assert "leaves out what costs more: " in message
    with pytest.raises(wsabie.InputError, match="budget is 0; choose a number above 0"):
        wsabie.AutoRanker(budget=0).fit(X, Y)


def test_larger_budget_holds_out_more_parts(rounds: list[list[str]]) -> None:
    X, Y = draw_circles(200)
    counts = []
    for budget in (2.5, 1e6):
        rounds.clear()
        wsabie.AutoRanker(threads=1, budget=budget).fit(X, Y)
        counts.append(len(rounds))
    assert counts == [1, FOLDS]


def test_losing_kinds_are_dropped_after_each_part(rounds: list[list[str]]) -> None:
    X, Y = draw_circles()
    model = wsabie.AutoRanker(threads=1, budget=1e6).fit(X, Y)
    assert len(rounds[0]) == 6
    assert len(rounds[1]) == len(rounds[2]) == 6  # 120 and 240 rows are too few to tell
    assert all(set(later) <= set(earlier) for earlier, later in pairwise(rounds))
    assert len(rounds[-1]) < 6
    assert {trial.kind for trial in model.trials_} == {*rounds[0], "fusion"}  # their figures stay


def test_labels_with_one_row_each_get_the_default_kind(caplog: pytest.LogCaptureFixture) -> None:
    X, Y = np.eye(6), [f"label {i}" for i in range(6)]
    with caplog.at_level("INFO", logger="wsabie"):
        model = wsabie.AutoRanker(threads=1).fit(X, Y)
    assert "no row can be held out; auto takes kind wsabie untried" in caplog.text
    assert (model.facts()["kind"], model.trials_) == ("wsabie", [])
    assert np.array_equal(model.scores(X), wsabie.Wsabie(threads=1).fit(X, Y).scores(X))


def test_holdout_share_is_passed_on() -> None:
    X, Y = draw_circles(200)
    few, many = (wsabie.AutoRanker(threads=1, hold_out=share).fit(X, Y) for share in (0.1, 0.5))
    width = [model.trials_[0].high - model.trials_[0].low for model in (few, many)]
    assert width[0] > width[1]  # more rows, narrower intervals
    with pytest.raises(wsabie.InputError, match="hold_out is 0; choose None or a number above 0"):
        wsabie.AutoRanker(hold_out=0).fit(X, Y)
