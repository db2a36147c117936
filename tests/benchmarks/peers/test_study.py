"""Spaces, ledgers, the harness and the race, without any peer."""

import json
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.ledger import Ledger
from benchmarks.peers import environments, protocol, report, rows, spaces
from benchmarks.peers.adapters import omikuji
from benchmarks.peers.harness import Clock, Run
from benchmarks.peers.study import Plan, Study
from wsabie.io.data_sources import open_source

TRIALS = 20


@pytest.mark.parametrize("system", spaces.SYSTEMS)
def test_each_system_has_twenty_settings_that_do_not_change(system):
    settings = [spaces.setting(system, "M", trial) for trial in range(TRIALS)]
    assert settings == [spaces.setting(system, "M", trial) for trial in range(TRIALS)]
    assert len({json.dumps(params, sort_keys=True) for params in settings}) == TRIALS
    assert json.loads(json.dumps(settings)) == settings


def test_softmax_is_tried_on_the_small_task_only():
    losses = {task: {spaces.setting("fasttext", task, t)["loss"] for t in range(TRIALS)} for task in "SM"}
    assert losses == {"S": {"ns", "softmax"}, "M": {"ns"}}


def test_scaled_rows_have_unit_length_and_learn_from_training_rows_alone():
    X = sp.csr_matrix(np.array([[3, 0, 1], [0, 0, 2]], np.float32))
    held_out = sp.csr_matrix(np.array([[1, 1, 0]], np.float32))
    fit, scaled_rows = rows.scale_rows("tfidf", X, [held_out])
    assert pytest.approx([1, 1]) == np.sqrt(fit.multiply(fit).sum(1)).A1
    idf = [np.log(3 / (1 + n)) + 1 for n in (1, 0)]
    assert scaled_rows.toarray()[0] == pytest.approx([*(np.array(idf) / np.hypot(*idf)), 0])
    assert rows.scale_rows("counts", X, [])[0] is X


def line(trial, figure, seconds, system="wsabie", kind="search", epochs=None, repeat=None):
    figures = {"epochs": 2, "seconds": seconds, "MRR": figure, "p@1": 0, "hit@10": 0, "spent_cpu_s": 1}
    figures |= {"peak_rss": 0, "rss_before": 0}
    request = {"task": "tiny", "system": system, "kind": kind, "trial": trial, "threads": 2}
    request |= {"params": spaces.setting(system, "tiny", trial)}
    request |= {"epochs": epochs, "repeat": repeat} if kind == "final" else {}
    outcome = {"best": figures, "rounds": [figures], "notes": {}, "status": "ok", "wall_s": 1.0, "load_before": 0.0}
    return {**request, **outcome}


def test_a_ledger_outlives_a_kill(tmp_path):
    ledger = Ledger(tmp_path / "runs" / "lines.jsonl")
    ledger.add(line(0, 0.3, 1.0))
    with ledger.file.open("a") as out:
        out.write('{"task": "tiny", "sys')
    again = Ledger(ledger.file)
    again.add(line(1, 0.4, 1.0))
    third = Ledger(ledger.file)
    assert [entry["trial"] for entry in third.of("tiny", "wsabie")] == [0, 1]
    request = {name: line(0, 0, 0)[name] for name in ("task", "system", "kind", "trial", "threads")}
    assert third.get(**request, params=spaces.setting("wsabie", "tiny", 0)) is not None
    assert third.get(**request, params={"margin": 7}) is None


def test_a_ledger_forgets_one_system(tmp_path):
    ledger = Ledger(tmp_path / "lines.jsonl")
    for system in ("pecos", "wsabie"):
        ledger.add(line(0, 0.3, 1.0, system))
    ledger.forget("tiny", "wsabie")
    ledger.add(line(1, 0.2, 1.0, "pecos"))
    again = Ledger(ledger.file)
    assert (len(again.of("tiny", "pecos")), again.of("tiny", "wsabie")) == (2, [])


@pytest.fixture
def study(tmp_path):
    plan = Plan(("tiny",), ("wsabie", "pecos"), 3, 1, 2, tmp_path, tmp_path)
    return Study(plan)


def test_the_race_takes_the_quickest_setting_that_reaches_the_peers_test_figure(study):
    study.trials.add(line(0, 0.40, 80.0, "pecos"))
    study.finals.add(line(0, 0.41, 90.0, "pecos", "final", 2, 0))
    for trial, figure, seconds in ((0, 0.39, 1.0), (1, 0.40, 5.0), (2, 0.50, 9.0)):
        study.trials.add(line(trial, figure, seconds / 2))  # times of a search do not count
        study.trials.add(line(trial, figure, seconds, kind="extend"))
    assert [(seconds, entry["trial"]) for seconds, entry, _ in study.candidates("tiny")] == [(5.0, 1), (9.0, 2)]
    study.finals.add(line(1, 0.405, 6.0, kind="final", epochs=2, repeat=0))
    study.finals.add(line(2, 0.49, 10.0, kind="final", epochs=2, repeat=0))
    race = report._race(study, "tiny")
    assert (race["best_peer"], race["ours"]["trial"], race["ratio"]) == ("pecos", 2, round(10 / 90, 4))
    assert race["met"] is True
    assert [attempt["trial"] for attempt in race["attempts"]] == [1, 2]


def test_trials_of_another_plan_do_not_count(study):
    study.trials.add(line(5, 0.9, 1.0))
    study.trials.add({**line(1, 0.8, 1.0), "params": {"margin": 9}})
    study.trials.add(line(2, 0.3, 1.0))
    assert study.best_trial("tiny", "wsabie")["trial"] == 2


def test_a_best_trial_counts_in_its_longer_form(study, monkeypatch):
    study.trials.add(line(0, 0.3, 20.0, "pecos"))
    study.trials.add(line(1, 0.4, 20.0, "pecos"))
    trial_numbers = []

    def longer(data, request):
        trial_numbers.append(request["trial"])
        return line(1, 0.45, 70.0, "pecos", "extend")

    monkeypatch.setattr(study, "_run", longer)
    for _ in range(2):
        study._extend(None, "tiny", "pecos")
    assert trial_numbers == [1]
    assert study.best_trial("tiny", "pecos")["best"]["seconds"] == 70.0


def test_the_race_has_a_choice_of_ours_repeated_at_length(tmp_path, monkeypatch):
    study = Study(Plan(("tiny",), ("wsabie", "pecos"), 6, 1, 2, tmp_path, tmp_path))
    for trial in range(6):
        study.trials.add(line(trial, trial / 10, 1.0))
        study.trials.add(line(trial, trial / 10, 1.0, "pecos"))
    monkeypatch.setattr(
        study, "_run", lambda data, request: {**line(request["trial"], 0.7, 2.0, request["system"]), **request}
    )
    for system in ("wsabie", "pecos"):
        study._extend(None, "tiny", system)
    repeated = [(entry["system"], entry["trial"]) for entry in study.trials.lines.values() if entry["kind"] == "extend"]
    assert repeated == [*(("wsabie", trial) for trial in (5, 4, 3, 2, 1, 0)), ("pecos", 5)]
    assert study.best_trial("tiny", "pecos")["best"]["MRR"] == 0.7
    study.finals.add(line(5, 0.4, 9.0, "pecos", "final", 2, 0))
    assert {entry["kind"] for _, entry, _ in study.candidates("tiny")} == {"extend"}


def test_levels_compare_with_the_quickest_peer():
    envelopes = {"wsabie": [[1.0, 0.2], [2.0, 0.39]], "pecos": [[5.0, 0.33]], "lightfm": [[8.0, 0.36], [40.0, 0.4]]}
    levels_by_share = {level["share"]: level for level in report.levels(envelopes)}
    assert (levels_by_share[0.8]["peer"], levels_by_share[0.8]["ours_s"], levels_by_share[0.8]["ratio"]) == (
        "pecos",
        2.0,
        0.4,
    )
    assert (levels_by_share[0.95]["peer"], levels_by_share[0.95]["ratio"]) == ("lightfm", 0.05)
    assert levels_by_share[1.0]["ours_s"] is None
    assert report.levels({"wsabie": [], "pecos": []}) == []  # searched, nothing repeated at length yet


def test_envelope_keeps_only_rises():
    lines = [{"rounds": [{"seconds": s, "MRR": f} for s, f in points]} for points in ([(1, 0.2), (3, 0.1)], [(2, 0.3)])]
    assert report.envelope(lines) == [[1, 0.2], [2, 0.3]]


def job(tmp_path, **changes):
    X = sp.identity(4, np.float32, "csr")
    arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "y": np.arange(4, dtype=np.int32)}
    np.savez(tmp_path / "task.npz", **arrays, n_labels=4)
    content = {"data": str(tmp_path / "task.npz"), "mode": "search", "params": {}, "threads": 1, "seed": 0, "epochs": 3}
    return {**content, "fit_rows": [0, 3], "judge_rows": [3, 4], "patience": 2, "cap_s": 100.0, **changes}


def test_a_search_ends_when_validation_stops_rising(tmp_path):
    events = []
    run = Run(job(tmp_path), lambda event, **content: events.append({"event": event, **content}))
    places = iter([2, 1, 1, 2])  # labels above the true one, which is number 3

    def scores(lo, hi):
        out = np.zeros((1, 4))
        out[0, : next(places)] = 2
        out[0, 3] = 1
        return out

    ends = [run.finish_round(epoch, scores) for epoch in (1, 2, 3, 4)]
    assert ends == [False, False, False, True]
    figures = [entry["MRR"] for entry in events if entry["event"] == "round"]
    assert figures == [round(1 / 3, 5), 0.5, 0.5, round(1 / 3, 5)]
    assert events[-1] == {"event": "note", "ended": "validation"}


def test_scores_of_rows_with_several_labels_are_saved_for_the_study(tmp_path):
    content = job(tmp_path, mode="final", judge_rows=[2, 4], scores=str(tmp_path / "scores.npy"))
    with np.load(tmp_path / "task.npz") as stored:
        arrays = {name: stored[name] for name in stored.files if name != "y"}
    np.savez(tmp_path / "task.npz", **arrays, label_indices=[3, 0, 1, 2], label_indptr=[0, 1, 1, 3, 4])
    events = []
    run = Run(content, lambda event, **figures: events.append(figures))
    assert run.y.toarray().tolist() == [[0, 0, 0, 1], [0] * 4, [1, 1, 0, 0]]
    assert run.finish_round(1, lambda lo, hi: np.arange(8.0).reshape(2, 4)[lo:hi]) is False
    assert np.load(tmp_path / "scores.npy").tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert "MRR" not in events[0]


@pytest.mark.parametrize("y", [np.array([2, 0]), sp.csr_matrix([[0, 1, 1], [0, 0, 0]])])
def test_text_for_omikuji_holds_the_same_rows(tmp_path, y):
    X = sp.csr_matrix(np.array([[0, 0.1, 0], [3, 0, 1e-9]], np.float32))
    omikuji._write_rows(tmp_path / "rows.txt", X, y, 3)
    table = open_source(tmp_path / "rows.txt")
    assert np.array_equal(table.X.toarray(), X.toarray())
    expected = y.toarray() if sp.issparse(y) else np.eye(3)[y]
    assert np.array_equal(table.Y.toarray(), expected)


def test_a_search_ends_at_the_cap_and_a_final_run_does_not(tmp_path):
    rising = iter(range(1, 9))

    def scores(lo, hi):
        return np.array([[2.0, 2.0, 0.0, next(rising)]])

    events = []
    capped = Run(job(tmp_path), lambda event, **content: events.append(content))
    capped.clock.seconds = 300.0  # much of which other work took
    capped.clock.cpu_seconds = 99.0 * capped.threads
    assert capped.finish_round(1, scores) is False
    capped.clock.cpu_seconds = 101.0 * capped.threads
    assert capped.finish_round(2, scores) is True
    assert events[-1] == {"ended": "cap"}
    final = Run(job(tmp_path, mode="final"), lambda *a, **k: None)
    final.clock.cpu_seconds = 101.0 * final.threads
    assert final.finish_round(1, scores) is False
    assert list(final.steps()) == [3]
    assert list(final.lengths(5)) == [3]
    assert list(capped.lengths(5))[:4] == [5, 10, 20, 40]


def test_measuring_stops_the_clock(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    run = Run(job(tmp_path), lambda *a, **k: None)

    def scores(lo, hi):
        now[0] += 50
        return np.eye(4)[[3]]

    with run.training():
        now[0] += 2
        run.finish_round(1, scores)
        now[0] += 3
    assert run.clock.seconds == 5


def test_clock_leaves_out_separate_measurements():
    clock = Clock()
    clock.seconds = 3.0
    clock.take_off(1.0)
    clock.stop()
    assert clock.seconds == 2.0


def test_a_failing_or_hanging_adapter_is_reported_with_its_reason(tmp_path, monkeypatch):
    broken = tmp_path / "broken"
    broken.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'raise ValueError(\"no such thing\")'\n")
    slow = tmp_path / "slow"
    slow.write_text('#!/bin/sh\necho \'{"event": "round", "MRR": 0.5}\'\nsleep 60 & wait\n')
    for script in (broken, slow):
        script.chmod(0o755)
    failed = protocol.ask("wsabie", broken, job(tmp_path), timeout=30)
    assert failed.status == "error"
    assert "no such thing" in failed.message
    late = protocol.ask("wsabie", slow, job(tmp_path), timeout=0.5)
    assert (late.status, late.best) == ("timeout", {"MRR": 0.5})
    assert late.wall_s < 20


def test_a_missing_python_is_named_with_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(environments, "pythons", lambda: {"3.13": tmp_path})
    with pytest.raises(environments.MissingError, match=r"lightfm needs Python 3\.10 .*has 3\.13; install one"):
        environments.ensure("lightfm", tmp_path)
