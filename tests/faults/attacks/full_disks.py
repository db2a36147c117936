"""Commands that write find a full disk; when there is space again, the same command completes."""

import random
import shutil
from collections.abc import Callable

from tests.faults.attacks.attack import Case, Fault, Outcome, SkippedError
from tests.faults.attacks.kills import SCENARIOS, Scenario, Trial
from tests.faults.lab import Lab, faults_of, refusal_of
from tests.full_disk import fill, mount_disk

NAME = "full-disks"
LEVELS = (0, 4096, 30_000, 120_000)
"""Bytes that are left; one more level is drawn."""


def make_cases(seed: int, *, short: bool) -> list[Case]:
    """Return levels for each command; with `short` one level for a few commands."""
    chance, cases = random.Random(seed), []  # noqa: S311
    for scenario in [candidate for candidate in SCENARIOS if candidate.quick][::2] if short else SCENARIOS:
        levels = (chance.choice(LEVELS),) if short else (*LEVELS, chance.randrange(1, 1 << 20))
        cases += [Case(f"{scenario.words}, {level:,} bytes left", _try_of(scenario, level)) for level in levels]
    return cases


def _try_of(scenario: Scenario, level: int) -> Callable[[Lab], Outcome]:
    return lambda lab: fill_once(lab, scenario, level)


def fill_once(lab: Lab, scenario: Scenario, level: int) -> Outcome:
    """Run a command with so many bytes left, and again with space."""
    trial = Trial(lab, scenario)
    with lab.copy() as place, mount_disk(place) as allowed:
        if not allowed:
            raise SkippedError("no file system can be mounted here: that wants root")
        folder = place / "work"
        shutil.copytree(lab.base(scenario.build), folder, symlinks=True)
        trial.begin(folder)
        filler = fill(place, level)
        first = scenario.run(lab, folder)
        filler.unlink()
        faults = faults_of(first, "the command")
        if first.code and not faults and not (refusal_of(first) and _names_space(first.err)):
            faults.append(
                Fault("unusable", f"the command did not say that the disk is full: {first.err.strip()[-200:]}")
            )
        faults += trial.finish("after the disk was full")
        return Outcome(tuple(faults), max(first.memory, trial.memory))


def _names_space(text: str) -> bool:
    return "disk is full" in text or "no space left" in text.lower()
