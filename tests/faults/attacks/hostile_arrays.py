"""Sparse matrices whose arrays lie, given to every door that takes one: an error, and never a signal."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.faults.attacks.attack import Case, Fault, Outcome
from tests.faults.changes.matrices import LABELS, WIDTH, N, doors, hostile_matrix
from tests.faults.lab import Lab, faults_of

NAME = "hostile-arrays"
ROUNDS, CASES = 10, 5
"""Matrices that one child gives to each door, and children of the full version."""


def make_cases(seed: int, *, short: bool) -> list[Case]:
    """Return rounds through all doors; with `short` one."""
    rounds, cases = (1, 1) if short else (ROUNDS, CASES)
    return [Case(f"rounds {number}", _rounds_of(f"{seed}", f"{number}", rounds)) for number in range(cases)]


def _rounds_of(seed: str, number: str, rounds: int) -> Callable[[Lab], Outcome]:
    return lambda lab: try_rounds(lab, seed, number, rounds)


def try_rounds(lab: Lab, seed: str, number: str, rounds: int) -> Outcome:
    """Try all doors in one child; one that brings it down is a fault, and the others follow in another."""
    faults, memory, first, refusals = [], 0, 0, 0
    with lab.copy() as folder:
        while True:
            result = lab.call(folder, try_doors, seed, number, str(first), str(rounds), seconds=600.0)
            report = json.loads((folder / "report.json").read_text())
            memory, refusals = max(memory, result.memory), refusals + report["refusals"]
            faults += [Fault("traceback", text) for text in report["faults"]]
            faults += [
                Fault(fault.kind, f"{report['door']}: {fault.message}") for fault in faults_of(result, "a matrix")
            ]
            if result.code == 0:
                break
            if report["next"] == first:
                raise AssertionError(result.err[-2000:])
            first = report["next"]
    if refusals < report["next"] / 2:
        faults.append(Fault("unusable", f"{refusals} of {report['next']} matrices are refused"))
    return Outcome(tuple(faults), memory, report["next"])


def try_doors(seed: str, number: str, first: str, rounds: str) -> None:
    """Give hostile matrices to one door after the other, from try number `first` on; an error of ours is an answer."""
    from wsabie.core.errors import WsabieError

    report: dict[str, Any] = {"faults": [], "refusals": 0, "next": int(first), "door": ""}
    tries = [(name, door) for name, door in doors().items() for _ in range(int(rounds))]
    for index in range(int(first), len(tries)):
        name, door = tries[index]
        rng = np.random.default_rng([int(seed), int(number), index])
        matrices = (
            hostile_matrix(rng, (N, WIDTH)),
            hostile_matrix(rng, (N, LABELS), binary=True),
            hostile_matrix(rng, (LABELS, LABELS), binary=True),
        )
        report |= {"next": index + 1, "door": f"{name} {index}"}
        Path("report.json").write_text(json.dumps(report))
        try:
            door(*matrices)
        except WsabieError:
            report["refusals"] += 1
        except Exception as error:
            report["faults"].append(f"{name} {index}: {type(error).__name__}: {error}"[:300])
    Path("report.json").write_text(json.dumps(report))
