"""Public sets: the choice of a setting, and the table."""

import numpy as np
import pytest

from benchmarks import public_sets
from benchmarks.public_sets import SYSTEMS, Study, format_markdown
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


def test_seeds_are_averaged_and_compared_row_by_row(monkeypatch):
    """A row that a system ranks right with one of two seeds counts half."""
    study = object.__new__(Study)
    study.n_train, study.n, study.threads = 20, 24, 1
    study.X, study.Y = np.zeros((24, 3)), np.zeros((24, 2))
    monkeypatch.setattr(public_sets.environments, "ensure", lambda name: {})

    def run(name, params, fit, judged, seed=0):
        is_right = name == "AutoRanker" or (name == "Wsabie" and seed == 0)
        scores = np.tile([2.0, 1.0] if is_right else [1.0, 2.0], (4, 1))
        costs = {"train_s": 1.0, "cpu_s": 0.5 + seed, "peak_mb": 80.0, "model_mb": 2.0, "notes": {}}
        return evaluate_scores([(0, scores)], np.zeros(4, int), ks=public_sets.KS), costs

    monkeypatch.setattr(study, "run", run)
    systems = public_sets.measure_set("bibtex", study, trials=1, seeds=2)["systems"]
    assert systems["Wsabie, defaults"]["metrics"]["p@1"] == 0.5
    assert systems["Wsabie, defaults"]["runs"] == 2
    assert systems["Wsabie, defaults"]["cpu_s"] == 1.0
    assert systems["Wsabie, defaults"]["AutoRanker, defaults minus it"]["p@1"]["mean"] == 0.5
    assert systems["Omikuji, Bonsai"]["Wsabie, defaults minus it"]["p@1"]["mean"] == 0.5
    assert systems["Ridge, defaults"]["runs"] == 1
    assert "Wsabie, best setting" not in systems
    assert "Wsabie, 300 dimensions" not in systems
    systems = public_sets.measure_set("bibtex", study, 1, 2, ["Ridge", "Wsabie"])["systems"]
    assert systems.keys() == {"Ridge, defaults", "Wsabie, defaults"}
    assert "AutoRanker, defaults minus it" not in systems["Ridge, defaults"]


def test_the_table_shows_losses_and_gaps_of_the_published_figures():
    names = ("p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5", "ndcg@3", "ndcg@5", "ndcg@10", "MAP")
    metrics = dict.fromkeys(names, 0.5)
    sizes = {"cpu_s": 0.5, "peak_mb": 80.0, "model_mb": 2.0}
    gap = {"AutoRanker, defaults minus it": {"ndcg@10": {"mean": -0.02, "low": -0.03, "high": -0.01}}}
    systems = {
        "AutoRanker, defaults": {"metrics": metrics, **sizes},
        "Ridge, defaults": {"metrics": metrics, **gap, **sizes},
    }
    table = format_markdown({"systems": systems, "published": {"FastXML": [63.42, None, None]}}).splitlines()
    assert len({line.count("|") for line in table}) == 1
    assert "| P@1 | P@3 | P@5 | PSP@1 | PSP@3 | PSP@5 | nDCG@3 | nDCG@5 | nDCG@10 | MAP |" in table[0]
    assert "| -2.0 (-3.0 to -1.0) |  | 0.5 | 80.0 | 2.0 |" in table[3]
    assert table[4].startswith("| FastXML, published | 63.4 |  |  |")
