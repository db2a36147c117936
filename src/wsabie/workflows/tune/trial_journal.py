"""Trials as lines of a file, written one by one: a killed run loses at most the current trial."""

import csv
import fcntl
import io
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Literal

from wsabie.core.errors import InputError
from wsabie.core.json_conversion import to_json_value
from wsabie.storage.atomic_files import explain_write_errors, write_text
from wsabie.storage.schema_validation import check_schema

FORMAT = 1


@dataclass(frozen=True)
class Trial:
    """A setting and its figures.

    Attributes
    ----------
    number : int
        0 for the defaults.
    drawn : dict or None
        Its place in the search space; None when it lies outside, as the defaults may.
    parameters : dict
        Parameters of the estimator.
    epochs : int
        Planned.
    figures : list of float
        The metric on the validation rows after every epoch.
    state : {"done", "stopped", "failed"}
        "stopped" fell behind; "failed" diverged, or did not fit into memory.
    reason : str
        Cause of the failure.
    seconds : float
    """

    number: int
    drawn: dict[str, Any] | None
    parameters: dict[str, Any]
    epochs: int
    figures: list[float]
    state: Literal["done", "stopped", "failed"]
    reason: str
    seconds: float

    @property
    def figure(self) -> float | None:
        """Figure of the best epoch; None for a failed trial."""
        return max(self.figures, default=None) if self.state != "failed" else None

    @property
    def epoch(self) -> int:
        """Number of the best epoch, from 1; 0 if there is none."""
        return self.figures.index(max(self.figures)) + 1 if self.figures else 0


def find_best_trial(trials: Sequence[Trial]) -> Trial | None:
    """Return the finished trial with the highest figure, the first of equal ones; skip stopped trials."""
    return max(
        (trial for trial in trials if trial.state == "done"),
        key=lambda trial: (trial.figure or 0.0, -trial.number),
        default=None,
    )


class TrialJournal:
    """The file of one search, locked by one process; opened by `open_journal`.

    Attributes
    ----------
    trials : list of Trial
        All finished trials in order.
    """

    def __init__(self, file: IO[bytes], path: Path, trials: list[Trial]) -> None:
        self._file, self._path = file, path
        self.trials = trials

    def add(self, trial: Trial) -> None:
        """Write a finished trial; it is on the disk when this returns."""
        _append(self._file, self._path, asdict(trial))
        self.trials.append(trial)

    @property
    def seconds(self) -> float:
        """Seconds of all trials."""
        return sum(trial.seconds for trial in self.trials)


@contextmanager
def open_journal(path: Path, identity: dict[str, Any]) -> Iterator[TrialJournal]:
    """Open the file of a search, or create it.

    Parameters
    ----------
    path : Path
    identity : dict
        JSON-able: data, settings and versions that must agree for the trials to be comparable.

    Raises
    ------
    InputError
        The file belongs to another search, is locked by another process, is no journal, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "trials.jsonl"
    ...     with open_journal(path, {"seed": 0}) as first:
    ...         first.add(Trial(0, {}, {}, 1, [0.5], "done", "", 1.0))
    ...     with open_journal(path, {"seed": 0}) as again:
    ...         print(again.trials[0].figure)
    0.5
    """
    identity = to_json_value(identity)
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                f"another run is tuning into {path.parent}; wait for it, or name another folder"
            ) from error
        except OSError:  # this file system has no locks
            pass
        lines = _read_complete_lines(file, path)
        if not lines:
            _append(file, path, {"tuning": FORMAT, **identity})
            yield TrialJournal(file, path, [])
            return
        _refuse_other_search(lines[0], identity, path)
        yield TrialJournal(file, path, [check_schema(Trial, line, path, "name another folder") for line in lines[1:]])


def write_trials_csv(path: Path, trials: Sequence[Trial], names: Sequence[str]) -> None:
    """Write all trials as a table for other programs, with the values of some parameters."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["trial", "state", "figure", "best_epoch", "epochs_trained", "seconds", *names])
    for trial in trials:
        figure = "" if trial.figure is None else f"{trial.figure:.6f}"
        values = [trial.parameters.get(name, "default") for name in names]
        writer.writerow(
            [trial.number, trial.state, figure, trial.epoch, len(trial.figures), f"{trial.seconds:.2f}", *values]
        )
    write_text(path, text.getvalue())


def _read_complete_lines(file: IO[bytes], path: Path) -> list[dict[str, Any]]:
    """Return the complete lines, and cut off a last line that a kill left unfinished."""
    file.seek(0)
    content = file.read()
    complete = content[: content.rfind(b"\n") + 1]
    try:
        lines = [json.loads(line) for line in complete.splitlines()]
        is_journal = all(isinstance(line, dict) for line in lines) and (not lines or "tuning" in lines[0])
    except ValueError:
        is_journal = False
    if not is_journal or (content and not complete and not b'{"tuning":'.startswith(content[:10])):
        raise InputError(f"{path} is no list of trials that tuning wrote; name another folder, or move it away")
    if len(complete) < len(content):
        with explain_write_errors(path):
            os.truncate(path, len(complete))
    return lines


def _refuse_other_search(stored: dict[str, Any], current: dict[str, Any], path: Path) -> None:
    if stored.pop("tuning", None) != FORMAT:
        raise InputError(f"{path} was written by another version of wsabie; name another folder")
    for name in dict.fromkeys([*current, *stored]):
        if stored.get(name) != current.get(name):
            difference = "other data" if name == "data" else f"another {name.replace('_', ' ')}"
            raise InputError(
                f"{path.parent} holds trials with {difference} ({_abbreviate(stored.get(name))}, now "
                f"{_abbreviate(current.get(name))}), "
                "which cannot be compared; name another folder, or move that one away"
            )


def _abbreviate(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _append(file: IO[bytes], path: Path, line: dict[str, Any]) -> None:
    with explain_write_errors(path):
        file.write(json.dumps(to_json_value(line), allow_nan=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
