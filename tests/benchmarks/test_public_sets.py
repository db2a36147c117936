"""Public sets: the choice of a setting, and the table."""

import numpy as np
import pytest

from benchmarks import public_sets
from benchmarks.public_sets import PEER, SYSTEMS, Study, format_markdown
from wsabie.evaluation.score_evaluation import evaluate_scores


def test_validation_rows_choose_the_setting(monkeypatch):
    """The test rows, the last five of twenty-five, are never asked for."""
    study, rows = object.__new__(Study), []
    study.n_train, study.n = 20, 25

    def run(name, params, fit, judged):
        rows.append((fit, judged))
        best_rank = 0 if len(rows) == 3 else 1
        scores = np.array([[2.0, 1.0]]) if best_rank == 0 else np.array([[1.0, 2.0]])
        return evaluate_scores([(0, scores)], np.array([0]), ks=public_sets.KS), {}

    monkeypatch.setattr(study, "run", run)
    trial, params = study.choose_setting("Omikuji", 4)
    assert trial == 2
    assert params == SYSTEMS["Omikuji"].start | params
    assert set(rows) == {((0, 18), (18, 20))}


@pytest.mark.parametrize("name", [name for name, system in SYSTEMS.items() if system.space])
def test_settings_go_on_from_the_first_one(name, monkeypatch):
    study, settings = object.__new__(Study), []
    study.n_train = 20

    def run(name, params, fit, judged):
        settings.append(params)
        return evaluate_scores([(0, np.eye(2)[:1])], np.array([0]), ks=public_sets.KS), {}

    monkeypatch.setattr(study, "run", run)
    assert study.choose_setting(name, 3)[0] == 0
    assert settings[0] == SYSTEMS[name].start
    assert all(params != settings[0] and SYSTEMS[name].start.keys() <= params.keys() for params in settings[1:])


def test_the_table_shows_losses_and_gaps_of_the_published_figures():
    metrics = {f"{kind}@{k}": 0.5 for kind in ("p", "ndcg", "psp") for k in public_sets.KS}
    sizes = {"train_s": 1.0, "cpu_s": 0.5, "peak_mb": 80.0, "model_mb": 2.0}
    gap = {"mean": -0.02, "low": -0.03, "high": -0.01}
    systems = {name: {"metrics": metrics, "ndcg@5_minus_peer": gap, **sizes} for name in ("Wsabie, defaults", PEER)}
    table = format_markdown({"systems": systems, "published": {"FastXML": [63.42, None, None]}}).splitlines()
    assert len({line.count("|") for line in table}) == 1
    assert "| PSP@5 |" in table[0]
    assert "| -2.0 (-3.0 to -1.0) | 1.0 | 0.5 | 80.0 | 2.0 |" in table[2]
    assert table[4].startswith("| FastXML, published | 63.4 |  |  |")
