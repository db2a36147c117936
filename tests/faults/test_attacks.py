"""A few tries of each attack of `make faults`: nothing is lost, nothing ends in a traceback, memory stays bounded."""

from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tests.faults import states
from tests.faults.attacks import (
    changed_files,
    collection_faults,
    full_disks,
    hostile_arrays,
    kills,
    slow_callers,
    small_inputs,
    spoilers,
)
from tests.faults.attacks.attack import Case, Outcome
from tests.faults.attacks.kills import Scenario, kill_once
from tests.faults.attacks.report import run_attack, table_of
from tests.faults.lab import Lab, faults_of, open_lab

ATTACKS = (kills, full_disks, collection_faults, changed_files, small_inputs, hostile_arrays, slow_callers)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with open_lab() as laboratory:
        yield laboratory


@pytest.mark.parametrize("attack", ATTACKS, ids=[module.NAME for module in ATTACKS])
def test_a_few_tries_of_an_attack(lab: Lab, attack: ModuleType) -> None:
    summary = run_attack(lab, attack, 0, short=True)
    assert summary.attempts or summary.skipped
    assert summary.faults == [], table_of([summary])


@pytest.mark.parametrize("attack", ATTACKS, ids=[module.NAME for module in ATTACKS])
def test_cases_are_the_same_by_the_same_seed(attack: Any) -> None:
    assert [case.name for case in attack.make_cases(3, short=False)] == [
        case.name for case in attack.make_cases(3, short=False)
    ]


def test_kills_and_changes_are_as_many_as_promised() -> None:
    assert len(kills.make_cases(0, short=False)) >= 300
    assert changed_files.BATCH * len(changed_files.make_cases(0, short=False)) >= 5000


def test_what_a_command_loses_and_leaves_is_seen(lab: Lab) -> None:
    outcome = kill_once(
        lab, Scenario(states.rows, "rows.txt", call="tests.faults.attacks.spoilers:spoil"), 1.0, tear=False
    )
    messages = [f"{fault.kind}: {fault.message}" for fault in outcome.faults]
    assert "lost: killed at event 3 of 3: rows.txt is changed after the kill" in messages
    assert any(message.endswith("a draft remains: .a.0123456789abcdef.tmp") for message in messages)


@pytest.mark.parametrize(
    ("function", "kinds"),
    [
        (spoilers.crash, ["traceback"]),
        (spoilers.fail, ["traceback"]),
        (spoilers.hoard, ["memory"]),
        (spoilers.wait, ["unusable"]),
    ],
)
def test_ends_that_must_not_be_are_seen(lab: Lab, function: Callable[[], None], kinds: list[str]) -> None:
    with lab.copy() as folder:
        result = lab.call(folder, function, seconds=2.0 if function is spoilers.wait else 60.0)
    assert [fault.kind for fault in faults_of(result, "it", memory=600_000_000)] == kinds


def test_a_case_that_cannot_be_tried_is_a_fault(lab: Lab) -> None:
    def fail(_: Lab) -> Outcome:
        raise KeyError("x")

    attack: Any = SimpleNamespace(
        NAME="made-up", make_cases=lambda seed, short: [Case("a", fail), Case("b", lambda _: Outcome())]
    )
    summary = run_attack(lab, attack, 7, jobs=2)
    assert (summary.attempts, summary.usable, summary.counts["unusable"]) == (2, 1, 1)
    assert "--only made-up --seed 7 --try 0" in table_of([summary])
