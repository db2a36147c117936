"""`python -m benchmarks.peers all`: this model and its peers on the same tasks. README.md tells what is measured."""

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.peers import environments, plot, report, spaces
from benchmarks.peers.study import Plan, Study

RESULTS = Path(__file__).resolve().parents[1] / "results"


def main() -> int:
    """Parse, make what is needed, run, print."""
    options = _arguments()
    installed = {} if options.stage == "report" else _install(options)
    systems = tuple(s for s in options.systems if s in installed or options.stage == "report")
    if options.stage == "setup":
        return 0 if len(systems) == len(options.systems) else 1
    plan = Plan(
        tuple(options.tasks),
        systems,
        options.trials,
        options.repeats,
        options.threads,
        options.environments,
        options.results,
    )
    if options.stage != "smoke":
        _forget(plan, options.again)
        _run(plan, options.stage, installed)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        _run(replace(plan, tasks=("tiny",), trials=1, repeats=1, results=Path(folder)), "all", installed)
    return 0


def _forget(plan: Plan, systems: list[str]) -> None:
    study = Study(plan)
    for task in plan.tasks:
        for system in systems:
            study.trials.forget(task, system)
            study.finals.forget(task, system)


def _run(plan: Plan, stage: str, installed: dict[str, Any]) -> None:
    study = Study(plan)
    for task in plan.tasks:
        if stage in ("search", "all"):
            study.search(task)
        if stage in ("final", "all"):
            study.final(task)
        content = report.summary(study, task, installed)
        file = plan.results / f"peers-{task}.json"
        if stage == "report" and file.exists():  # nothing was run, so that what it ran on stays
            earlier = json.loads(file.read_text())
            content |= {name: earlier[name] for name in ("machine", "installed")}
        plan.results.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content, indent=1) + "\n")
        plot.curves(content, plan.results / f"peers-{task}.svg")
        sys.stdout.write(report.as_text(content) + "\n\n")
        sys.stdout.flush()


def _install(options: argparse.Namespace) -> dict[str, Any]:
    """Python and packages of each system that can run here; the others are named with the reason."""
    installed = {}
    for system in options.systems:
        try:
            installed[system] = environments.ensure(system, options.environments)
        except environments.MissingError as missing:
            sys.stderr.write(f"left out: {missing}\n")
    return installed


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    stages = ("setup", "smoke", "search", "final", "report", "all")
    parser.add_argument("stage", choices=stages, help="setup makes the environments, smoke tries everything quickly")
    parser.add_argument("--tasks", nargs="+", default=["S", "M"], choices=["tiny", "S", "M"])
    parser.add_argument("--systems", nargs="+", default=list(spaces.SYSTEMS), choices=spaces.SYSTEMS)
    parser.add_argument(
        "--again", nargs="+", default=[], choices=spaces.SYSTEMS, help="forget what these systems have run"
    )
    parser.add_argument("--trials", type=int, default=20, help="settings tried per system (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="final runs per system (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--environments", type=Path, default=environments.HOME, help="folder (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder (default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
