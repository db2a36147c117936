"""Runs the cases of attacks, and a table of what they showed."""

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from tests.faults.attacks.attack import Case, Fault, Outcome, SkippedError
from tests.faults.lab import Lab

KINDS = ("lost", "traceback", "unusable", "memory")
_EVERY = 5.0  # seconds between lines of progress


@dataclass
class Summary:
    """Counts and faults of the cases of one attack."""

    attack: str
    seed: int
    attempts: int = 0
    usable: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    memory: int = 0
    faults: list[dict[str, str]] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, number: int, case: Case, outcome: Outcome) -> None:
        """Count one case; inputs that it tried are usable unless a fault names one."""
        self.attempts += outcome.attempts
        self.usable += max(0, outcome.attempts - len({fault.message for fault in outcome.faults}))
        self.memory = max(self.memory, outcome.memory)
        for fault in outcome.faults:
            self.counts[fault.kind] += 1
            command = f"python -m benchmarks.faults --only {self.attack} --seed {self.seed} --try {number}"
            self.faults.append({"kind": fault.kind, "case": case.name, "message": fault.message, "command": command})
            _say(_lines_of(self.faults[-1]))

    def as_json(self) -> dict[str, Any]:
        """The same for a JSON document."""
        return {
            "attack": self.attack,
            "tried": self.attempts,
            "usable_afterwards": self.usable,
            "lost": self.counts["lost"],
            "tracebacks": self.counts["traceback"],
            "unusable": self.counts["unusable"],
            "peak_memory_bytes": self.memory,
            "seconds": round(self.seconds, 1),
            "skipped": self.skipped,
            "faults": self.faults,
        }


def run_attack(
    lab: Lab, attack: ModuleType, seed: int, *, short: bool = False, number: int | None = None, jobs: int = 1
) -> Summary:
    """Run all cases of an attack, or one by its number."""
    cases = list(enumerate(attack.make_cases(seed, short=short)))
    summary, start = Summary(attack.NAME, seed), time.monotonic()
    selected_cases = [numbered_case for numbered_case in cases if number is None or numbered_case[0] == number]
    jobs = 1 if getattr(attack, "EXCLUSIVE", False) else jobs
    for n_done, (index, case, outcome) in enumerate(_outcomes(lab, selected_cases, jobs), 1):
        if isinstance(outcome, SkippedError):
            summary.skipped[str(outcome)] = summary.skipped.get(str(outcome), 0) + 1
        else:
            summary.add(index, case, outcome)
        _show_progress(summary, start, n_done, len(selected_cases))
    summary.seconds = time.monotonic() - start
    return summary


def _outcomes(
    lab: Lab, cases: Sequence[tuple[int, Case]], jobs: int
) -> Iterator[tuple[int, Case, Outcome | SkippedError]]:
    with ThreadPoolExecutor(jobs) as pool:
        for (number, case), outcome in zip(
            cases, pool.map(lambda numbered_case: _outcome(lab, numbered_case[1]), cases), strict=True
        ):
            yield number, case, outcome


def _outcome(lab: Lab, case: Case) -> Outcome | SkippedError:
    """Try a case; one that cannot be tried is a fault too."""
    try:
        return case.run(lab)
    except SkippedError as error:
        return error
    except Exception as error:
        return Outcome((Fault("unusable", f"cannot be tried: {type(error).__name__}: {str(error)[-600:]}"),))


_last_shown = [0.0]


def _show_progress(summary: Summary, start: float, n_done: int, n: int) -> None:
    now = time.monotonic()
    if now - _last_shown[0] < _EVERY and n_done < n:
        return
    _last_shown[0] = now
    rate = n_done / max(now - start, 1e-9)
    seconds_left = (n - n_done) / rate
    progress = f"{n_done}/{n} cases, {rate:.1f}/s, {seconds_left / 60:.0f} min left"
    _say(f"{summary.attack}: {progress}, {len(summary.faults)} faults")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _lines_of(fault: dict[str, str]) -> str:
    return f"{fault['kind']}: {fault['case']}: {fault['message']}\n    {fault['command']}"


def table_of(summaries: Sequence[Summary]) -> str:
    """Lines for people: a row for each attack, then each fault with the command that repeats it."""
    columns = (
        ("tried", 8),
        ("usable afterwards", 19),
        ("lost", 7),
        ("tracebacks", 12),
        ("highest memory", 16),
        ("time", 9),
    )
    lines = [f"{'attack':<16}" + "".join(f"{name:>{width}}" for name, width in columns)]
    for summary in summaries:
        memory, seconds = f"{summary.memory / 1e9:.2f} GB", f"{summary.seconds:.0f} s"
        counts = f"{summary.counts['lost']:>7,}{summary.counts['traceback']:>12,}"
        lines.append(f"{summary.attack:<16}{summary.attempts:>8,}{summary.usable:>19,}{counts}{memory:>16}{seconds:>9}")
    for summary in summaries:
        lines += [f"{summary.attack}: {n} cases skipped: {reason}" for reason, n in summary.skipped.items()]
        lines += map(_lines_of, summary.faults)
    return "\n".join(lines)
