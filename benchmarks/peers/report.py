"""The tables and curves of a study, as JSON for the documentation and as text."""

from typing import Any

from benchmarks.machine import machine
from benchmarks.peers.environments import code_of
from benchmarks.peers.study import CAPS, EXTENSIONS, OURS, PATIENCE, SCORED_ROWS, SEARCHED_ROWS, Study, mean, median
from benchmarks.visterm_task import compute_task_figures, load

BAR, BARS = 1 / 8, {"M": 1 / 12}
"""Our share of the best peer's time to its own quality: at most this."""
LEVELS = (0.8, 0.9, 0.95, 0.99, 1.0)


def summary(study: Study, task: str, installed: dict[str, Any]) -> dict[str, Any]:
    """Everything found on a task: schema 1."""
    data = load(task)
    systems = {name: _system(study, task, name) for name in study.plan.systems}
    return {
        "schema": 1,
        "task": {"name": task, "train": data.n_train, "test": len(data.y) - data.n_train, **compute_task_figures(data)},
        "machine": machine(study.plan.threads),
        "protocol": {
            "trials": study.plan.trials,
            "training_cap_s": CAPS[task],
            "extended_cap_s": EXTENSIONS[task] * CAPS[task],
            "searched_rows": SEARCHED_ROWS.get(task, data.n_fit),
            "patience": PATIENCE,
            "validation_rows_judged": min(SCORED_ROWS, data.n_train - data.n_fit),
        },
        "installed": installed,
        "systems": {name: figures for name, figures in systems.items() if figures},
        "race": _race(study, task),
        "levels": levels({name: figures["envelope"] for name, figures in systems.items() if figures}),
    }


def _system(study: Study, task: str, system: str) -> dict[str, Any] | None:
    trial = study.best_trial(task, system)
    if trial is None:
        return None
    lines = study.planned_trials(task, system)
    return {
        "trial": trial["trial"],
        "params": trial["params"],
        "epochs": trial["best"]["epochs"],
        "validation": {name: trial["best"][name] for name in ("MRR", "p@1", "hit@10")},
        "trials_run": len(lines),
        "trials_failed": sum(line["status"] != "ok" for line in lines),
        "search_s": round(sum(line["wall_s"] for line in lines), 1),
        "final": _final(study.finals_of(trial, trial["best"]["epochs"])),
        "code": sorted({line.get("code", "") for line in lines}),
        "curve": [[r["seconds"], r["epochs"], r["MRR"]] for r in trial["rounds"]],
        "envelope": envelope(study.repeated_trials(task, system)),
    }


def _final(runs: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Test figures are means over runs, times medians."""
    if not runs:
        return None
    notes = runs[0]["notes"]
    return {
        "runs": len(runs),
        **{name: round(mean(runs, name), 4) for name in ("MRR", "p@1", "hit@10")},
        "MRR_of_runs": [run["best"]["MRR"] for run in runs],
        "seconds": round(median(runs, "seconds"), 3),
        "seconds_of_runs": [run["best"]["seconds"] for run in runs],
        "cpu_seconds": round(median(runs, "spent_cpu_s"), 3),
        "apart_s": {name: value for name, value in notes.items() if name.endswith("_s")},
        "peak_rss_mb": round(max(run["best"]["peak_rss"] for run in runs) / 2**20, 1),
        "rss_before_mb": round(runs[0]["best"]["rss_before"] / 2**20, 1),
        "model_mb": round(notes.get("model_bytes", 0) / 2**20, 1),
        "load_before": [run["load_before"] for run in runs],
    }


def envelope(lines: list[dict[str, Any]]) -> list[list[float]]:
    """Highest validation MRR of any of the trials by training seconds: only the points at which it rises."""
    points = sorted((r["seconds"], r["MRR"]) for line in lines for r in line["rounds"])
    rising: list[list[float]] = []
    for seconds, figure in points:
        if not rising or figure > rising[-1][1]:
            rising.append([seconds, figure])
    return rising


def levels(envelopes: dict[str, list[list[float]]]) -> list[dict[str, Any]]:
    """Seconds of training to shares of the peers' best validation MRR: of the quickest peer, and ours."""
    peers = {name: points for name, points in envelopes.items() if name != OURS}
    top = max((points[-1][1] for points in peers.values() if points), default=0.0)
    rows = []
    for share in LEVELS if top else ():
        times = {name: _first_time(points, share * top) for name, points in envelopes.items()}
        reached = {name: seconds for name, seconds in times.items() if name in peers and seconds is not None}
        peer = min(reached, key=lambda name: reached[name])
        ours = times.get(OURS)
        ratio = None if ours is None else round(ours / reached[peer], 4)
        level = {"share": share, "MRR": round(share * top, 4), "peer": peer, "peer_s": reached[peer]}
        rows.append({**level, "ours_s": ours, "ratio": ratio})
    return rows


def _first_time(points: list[list[float]], level: float) -> float | None:
    return next((seconds for seconds, figure in points if figure >= level), None)


def _race(study: Study, task: str) -> dict[str, Any] | None:
    """Our time to the best peer's test MRR over the peer's own time."""
    peer = study.best_peer(task)
    if peer is None:
        return None
    theirs = study.finals_of(peer, peer["best"]["epochs"])
    target, their_s, bar = mean(theirs, "MRR"), median(theirs, "seconds"), BARS.get(task, BAR)
    race: dict[str, Any] = {
        "best_peer": peer["system"],
        "test_MRR": round(target, 4),
        "seconds": round(their_s, 3),
        "bar": round(bar, 4),
        "attempts": [],
    }
    for _, trial, epochs in study.candidates(task):
        runs = study.finals_of(trial, epochs)
        if not runs:
            continue
        ours = {"trial": trial["trial"], "params": trial["params"], "epochs": epochs, **(_final(runs) or {})}
        race["attempts"].append(ours)
        if mean(runs, "MRR") >= target:
            ratio = median(runs, "seconds") / their_s
            return {**race, "ours": ours, "ratio": round(ratio, 4), "met": ratio <= bar}
    return {**race, "ours": None, "ratio": None, "met": False}


def as_text(summary: dict[str, Any]) -> str:
    """The summary for people."""
    task = summary["task"]
    lines = [
        f"Task {task['name']}: {task['train']:,} training rows, {task['test']:,} test rows; "
        f"{summary['machine']['cpu']}, {summary['machine']['threads']} threads; "
        f"{summary['protocol']['trials']} trials each",
        "| system | validation MRR | test MRR | p@1 | hit@10 | train s | CPU s | apart | peak MB | model MB | epochs |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    ordered = sorted(summary["systems"].items(), key=lambda entry: -float((entry[1]["final"] or {}).get("MRR", 0)))
    lines += [_row(name, system) for name, system in ordered]
    lines += [
        f"{name}: figures of {', '.join(system['code'])}, but the code is now {code_of(name)}; see --again"
        for name, system in summary["systems"].items()
        if system["code"] != [code_of(name)]
    ]
    lines += [
        "",
        _verdict(summary["race"]),
        "",
        "Seconds of training to a validation MRR, of the trials repeated at length:",
    ]
    return "\n".join([*lines, *(_level(level) for level in summary["levels"])])


def _row(name: str, system: dict[str, Any]) -> str:
    validation, final = f"{system['validation']['MRR']:.3f}", system["final"]
    if final is None:
        return f"| {name} | {validation} |" + " - |" * 9
    extra_times = ", ".join(f"{key.removesuffix('_s')} {value:.1f}" for key, value in final["apart_s"].items()) or "-"
    cells = [
        f"**{name}**" if name == OURS else name,
        validation,
        *(f"{final[key]:.3f}" for key in ("MRR", "p@1", "hit@10")),
        f"{final['seconds']:.2f}",
        f"{final['cpu_seconds']:.2f}",
        extra_times,
        f"{final['peak_rss_mb']:.0f}",
        f"{final['model_mb']:.1f}",
        str(system["epochs"]),
    ]
    return "| " + " | ".join(cells) + " |"


def _level(level: dict[str, Any]) -> str:
    ours = "not reached" if level["ours_s"] is None else f"{level['ours_s']:.2f} s, ratio {level['ratio']:.3f}"
    return f"- {level['MRR']:.4f} ({level['share']:.0%}): {level['peer']} {level['peer_s']:.2f} s; ours {ours}"


def _verdict(race: dict[str, Any] | None) -> str:
    if race is None:
        return "No peer has a final run yet."
    goal = f"The best peer, {race['best_peer']}, reaches test MRR {race['test_MRR']:.4f} in {race['seconds']:.2f} s"
    if race["ours"] is None:
        return f"{goal}; none of our trials reaches it: bar missed."
    ours = race["ours"]
    return (
        f"{goal}; ours reaches {ours['MRR']:.4f} in {ours['seconds']:.2f} s (trial {ours['trial']}, {ours['epochs']} "
        f"epochs): ratio {race['ratio']:.3f}, bar {race['bar']:.3f}: {'met' if race['met'] else 'MISSED'}."
    )
