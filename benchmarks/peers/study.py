"""The search of every system, its best setting trained again and timed, and the race to the best peer's quality."""

import os
import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.ledger import Ledger
from benchmarks.peers import environments, spaces
from benchmarks.peers.protocol import Answer, ask
from benchmarks.visterm_task import CACHE, ImageTask, load

OURS = "wsabie"
CAPS = {"tiny": 20.0, "S": 100.0, "M": 100.0}
"""Seconds of training (processor seconds over threads) that a trial may take in all; an epoch begun is finished."""
SEARCHED_ROWS = {"M": 45_000}
"""Rows that a search trains on, where all of them would take days; the best trial is then repeated on all."""
EXTENSIONS = {"tiny": 4, "S": 4, "M": 12}
"""How many times the cap a repeated trial may take."""
SCORED_ROWS = 5000
"""Validation rows looked at in a search, evenly spread; the same for all."""
MEASURING = {"search": 300.0, "extend": 600.0, "final": 1800.0}
"""Seconds that a process may take beside training. Training that cannot be stopped half-way may take twice the cap."""
PATIENCE = 3
ATTEMPTS = 8


@dataclass(frozen=True)
class Plan:
    """Plan of a study.

    Attributes
    ----------
    tasks, systems : tuple of str
    trials : int
        Settings tried per system and task.
    repeats : int
        Final runs per system, with seeds 0, 1, ...
    threads : int
    environments, results : path
    """

    tasks: tuple[str, ...]
    systems: tuple[str, ...]
    trials: int
    repeats: int
    threads: int
    environments: Path
    results: Path


class Study:
    """Runs a plan; what is already in the ledgers is not run again."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.trials = Ledger(plan.results / "peers-trials.jsonl")
        self.finals = Ledger(plan.results / "peers-finals.jsonl")

    def search(self, task: str) -> None:
        """All trials of all systems on the validation rows, trial by trial, so that a stopped search is a fair one."""
        data = load(task)
        for trial in range(self.plan.trials):
            for system in self.plan.systems:
                params = spaces.setting(system, task, trial)
                request = {"task": task, "system": system, "kind": "search", "trial": trial, "params": params}
                if self.trials.get(**request, threads=self.plan.threads) is None:
                    outcome = self._run(data, {**request, "threads": self.plan.threads})
                    _say(_format_line(self.trials.add(outcome)))

    def final(self, task: str) -> None:
        """The best trial of each system on all training rows, timed; then ours against the best peer's quality."""
        data = load(task)
        for system in self.plan.systems:
            self._extend(data, task, system)
            best = self.best_trial(task, system)
            if best is not None:
                self._final_runs(data, best, best["best"]["epochs"])
        self._race(data, task)

    def _extend(self, data: ImageTask, task: str, system: str) -> None:
        """Repeat the best trial on all rows and at length: the search found its setting, this finds its times.

        Ours are all repeated: which of them is the first to the best peer's quality is not told by the search's rows.
        """
        for trial in self._searched(task, system)[: None if system == OURS else 1]:
            request = {name: trial[name] for name in ("task", "system", "trial", "params", "threads")}
            if self.trials.get(**request, kind="extend") is None:
                _say(_format_line(self.trials.add(self._run(data, {**request, "kind": "extend"}))))

    def _searched(self, task: str, system: str) -> list[dict[str, Any]]:
        """The trials of the search, best first."""
        lines = [line for line in self.planned_trials(task, system) if line["best"] and line["kind"] == "search"]
        return sorted(lines, key=_validation, reverse=True)

    def best_trial(self, task: str, system: str) -> dict[str, Any] | None:
        """The trial with the highest validation MRR, in its repeated form if there is one."""
        searched = self._searched(task, system)
        if not searched:
            return None
        repeated = self.repeated_trials(task, system)
        return next((line for line in repeated if line["trial"] == searched[0]["trial"]), searched[0])

    def repeated_trials(self, task: str, system: str) -> list[dict[str, Any]]:
        """The trials repeated at length: all times told come from them, so that other work may run beside a search."""
        return [line for line in self.planned_trials(task, system) if line["best"] and line["kind"] == "extend"]

    def planned_trials(self, task: str, system: str) -> list[dict[str, Any]]:
        """The trials of this plan and their longer forms; the ledger may hold others, of other spaces or threads."""
        return [line for line in self.trials.of(task, system) if self._is_planned(line)]

    def _is_planned(self, line: dict[str, Any]) -> bool:
        params = spaces.setting(line["system"], line["task"], line["trial"])
        return bool(
            line["trial"] < self.plan.trials and line["params"] == params and line["threads"] == self.plan.threads
        )

    def _final_runs(self, data: ImageTask, trial: dict[str, Any], epochs: int) -> list[dict[str, Any]]:
        names = ("task", "system", "trial", "params", "threads")
        lines = []
        for repeat in range(self.plan.repeats):
            request = {**{name: trial[name] for name in names}, "kind": "final", "epochs": epochs, "repeat": repeat}
            line = self.finals.get(**request)
            if line is None or line["best"] is None:  # a run that gave nothing, when its time was up say
                line = self.finals.add(self._run(data, request))
                _say(_format_line(line))
            lines.append(line)
        return lines

    def finals_of(self, trial: dict[str, Any], epochs: int) -> list[dict[str, Any]]:
        """The successful final runs of a trial's setting with that many epochs."""
        lines = self.finals.of(trial["task"], trial["system"])
        return [
            line
            for line in lines
            if line["trial"] == trial["trial"]
            and line["params"] == trial["params"]
            and line["epochs"] == epochs
            and line["threads"] == trial["threads"]
            and line["repeat"] < self.plan.repeats
            and line["best"]
        ]

    def best_peer(self, task: str) -> dict[str, Any] | None:
        """The best trial of the peer with the highest test MRR in its final runs."""
        ranked = []
        for system in self.plan.systems:
            trial = self.best_trial(task, system)
            runs = self.finals_of(trial, trial["best"]["epochs"]) if trial and system != OURS else []
            if trial and runs:
                ranked.append((mean(runs, "MRR"), system, trial))
        return max(ranked)[2] if ranked else None

    def candidates(self, task: str) -> list[tuple[float, dict[str, Any], int]]:
        """Our trials' rounds that reach the best peer's validation MRR, quickest first: (seconds, trial, epochs)."""
        peer = self.best_peer(task)
        if peer is None:
            return []
        runs = []
        for line in self.repeated_trials(task, OURS):
            reached = [r for r in line["rounds"] if r["MRR"] >= peer["best"]["MRR"]]
            if reached:
                runs.append((float(reached[0]["seconds"]), line, int(reached[0]["epochs"])))
        return sorted(runs, key=lambda run: run[0])[:ATTEMPTS]

    def _race(self, data: ImageTask, task: str) -> None:
        """Time the quickest of our candidates whose final test MRR reaches the best peer's."""
        peer = self.best_peer(task)
        for _, trial, epochs in self.candidates(task):
            runs = [line for line in self._final_runs(data, trial, epochs) if line["best"]]
            if peer and runs and mean(runs, "MRR") >= mean(self.finals_of(peer, peer["best"]["epochs"]), "MRR"):
                return

    def _run(self, data: ImageTask, request: dict[str, Any]) -> dict[str, Any]:
        job = self._job(data, request)
        python = environments.interpreter(request["system"], self.plan.environments)
        load_before = os.getloadavg()[0]
        answer = ask(request["system"], python, job, timeout=2 * job["cap_s"] + MEASURING[request["kind"]])
        code = environments.code_of(request["system"])
        return {**request, **_summarize_answer(answer), "load_before": round(load_before, 2), "code": code}

    def _job(self, data: ImageTask, request: dict[str, Any]) -> dict[str, Any]:
        task, searching = request["task"], request["kind"] != "final"
        n, m = data.n_train, data.n_fit
        fitted = min(m, SEARCHED_ROWS.get(task, m)) if request["kind"] == "search" else m
        return {
            "task": task,
            "data": str(CACHE / f"{task}.npz"),
            "mode": "search" if searching else "final",
            "params": request["params"],
            "epochs": request.get("epochs"),
            "fit_rows": [0, fitted if searching else n],
            "judge_rows": [m, n, max(1, (n - m) // SCORED_ROWS)] if searching else [n, len(data.y), 1],
            "threads": request["threads"],
            "seed": request.get("repeat", 0),
            "dim": spaces.DIM,
            "patience": PATIENCE,
            "cap_s": CAPS[task] * (EXTENSIONS[task] if request["kind"] == "extend" else 1),
            "scratch": str(CACHE / "peers"),
        }


def _validation(line: dict[str, Any]) -> float:
    return float(line["best"]["MRR"])


def mean(runs: list[dict[str, Any]], name: str) -> float:
    """Mean over runs of a figure of their best round."""
    return statistics.fmean(float(run["best"][name]) for run in runs)


def median(runs: list[dict[str, Any]], name: str) -> float:
    """Median over runs of a figure of their best round."""
    return statistics.median(float(run["best"][name]) for run in runs)


def _summarize_answer(answer: Answer) -> dict[str, Any]:
    return {**asdict(answer), "best": answer.best}


def _format_line(line: dict[str, Any]) -> str:
    name = f"{line['task']:>4} {line['system']:<8} {line['kind']:<6} trial {line['trial']:>2}"
    best = line["best"]
    if best is None:
        return f"{name}: {line['status']}, {line['message'].strip().splitlines()[-1:]}  {line['params']}"
    figures = f"MRR {best['MRR']:.4f} after {best['epochs']} epochs, {best['seconds']:.2f} s"
    remark = "" if line["status"] == "ok" else f" ({line['status']})"
    return f"{name}: {figures}, in all {line['wall_s']:.0f} s{remark}  {line['params']}"


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
