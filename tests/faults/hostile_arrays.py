"""Sparse matrices whose arrays lie, given to every door that takes one: an error, and never a signal."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from tests.faults.attack import Case, Fault, Outcome
from tests.faults.lab import Lab, faults_of

NAME = "hostile-arrays"
BATCH = 50
_HUGE = (-1, -5, 7, 1000, 2**20, 2**31 - 1, -(2**31), 2**40, 2**62)
DOORS = (
    "fit",
    "fit labels",
    "validation",
    "rank",
    "exclude",
    "candidates",
    "scores",
    "partial_fit",
    "evaluate",
    "top_k",
)


def make_cases(seed: int, *, short: bool) -> list[Case]:
    """Return batches for each door; with `short` a small one."""
    size, batches = (8, 1) if short else (BATCH, 4)
    return [
        Case(f"{door}, batch {number}", _batch_of(door, f"{seed} {number}", size))
        for door in DOORS
        for number in range(batches)
    ]


def _batch_of(door: str, seed: str, size: int) -> Callable[[Lab], Outcome]:
    return lambda lab: try_batch(lab, door, seed, size)


def try_batch(lab: Lab, door: str, seed: str, size: int) -> Outcome:
    """Try matrices in one child; one that brings it down is a fault, and the others follow in another."""
    faults, memory, first = [], 0, 0
    with lab.copy() as folder:
        while first < size:
            result = lab.call(folder, try_matrices, door, seed, str(first), str(size), seconds=300.0)
            report = json.loads((folder / "report.json").read_text())
            if report["next"] == first:
                raise AssertionError(f"{door}: {result.err[-2000:]}")
            first, memory = report["next"], max(memory, result.memory)
            faults += [Fault("traceback", text) for text in report["faults"]]
            faults += [Fault(one.kind, f"{report['change']}: {one.message}") for one in faults_of(result, door)]
    return Outcome(tuple(faults), memory, size)


def change_arrays(chance: random.Random, matrix: Any) -> tuple[Any, str]:
    """Return a CSR matrix with another number in `indptr` or `indices`, or with arrays of another length or type."""
    name = chance.choice(("indptr", "indices"))
    array = getattr(matrix, name).astype(chance.choice((np.int32, np.int64)))
    way = chance.choice(("number", "number", "number", "all", "short", "long", "falling"))
    value = chance.choice(_HUGE)
    with np.errstate(all="ignore"):
        if way == "number":
            array[chance.randrange(len(array))] = np.int64(value).astype(array.dtype)
        elif way == "all":
            array[:] = np.int64(value).astype(array.dtype)
        elif way == "falling":
            array = array[::-1].copy()
        else:
            array = array[: len(array) // 2] if way == "short" else np.concatenate([array, array])
    object.__setattr__(matrix, name, array)
    return matrix, f"{name} {way} {value} as {array.dtype}"


def try_matrices(door: str, seed: str, first: str, last: str) -> None:
    """Give one changed matrix after the other to a door; errors of the library and of types are answers."""
    from wsabie.base.errors import WsabieError

    tries, faults = _doors(), list[str]()
    for number in range(int(first), int(last)):
        chance = random.Random(f"{seed} {door} {number}")  # noqa: S311
        wide, tall = _usable(chance, 6), _usable(chance, 4, ones=True)
        (wide, what), (tall, _) = change_arrays(chance, wide), change_arrays(random.Random(f"{number} {seed}"), tall)  # noqa: S311
        change = f"{door} {number}: {what}"
        Path("report.json").write_text(json.dumps({"faults": faults, "next": number + 1, "change": change}))
        try:
            tries[door](wide, tall)
        except (WsabieError, TypeError):
            pass
        except Exception as error:
            faults.append(f"{change}: {type(error).__name__}: {error}"[:300])
    Path("report.json").write_text(json.dumps({"faults": faults, "next": int(last), "change": ""}))


def _usable(chance: random.Random, width: int, *, ones: bool = False) -> Any:
    dense = np.array([[chance.random() < 0.5 for _ in range(width)] for _ in range(12)])
    dense[0, 0] = True
    return sp.csr_matrix(dense.astype(np.int8 if ones else np.float32))


def _doors() -> dict[str, Callable[[Any, Any], Any]]:
    """Functions of features (12, 6) and labels (12, 4)."""
    import wsabie

    chance = random.Random(0)  # noqa: S311
    X, Y = _usable(chance, 6), _usable(chance, 4, ones=True)
    settings: dict[str, Any] = {"dim": 4, "threads": 1, "epochs": 1}
    model = wsabie.Wsabie(**settings).fit(X, Y)
    scores = model.scores(X)
    return {
        "fit": lambda x, y: wsabie.Wsabie(**settings).fit(x, Y),
        "fit labels": lambda x, y: wsabie.Wsabie(**settings).fit(X, y),
        "validation": lambda x, y: wsabie.Wsabie(**settings).fit(X, Y, validation=(x, y)),
        "rank": lambda x, y: model.rank(x, 2),
        "exclude": lambda x, y: model.rank(X, 2, exclude=y),
        "candidates": lambda x, y: model.rank(X, 2, candidates=y),
        "scores": lambda x, y: model.scores(x),
        "partial_fit": lambda x, y: wsabie.Wsabie(**settings).fit(X, Y).partial_fit(x, y, epochs=1),
        "evaluate": lambda x, y: wsabie.evaluate_scores([(0, scores)], y),
        "top_k": lambda x, y: wsabie.top_k(model.transform(X), model.label_vectors, 2, exclude=y),
    }
