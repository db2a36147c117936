"""Trials as lines of a file: written one by one, so that a run that is killed loses at most the trial it was in."""

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

from wsabie.base.errors import InputError
from wsabie.base.plain import plain
from wsabie.storage.atomic import explained, write_text
from wsabie.storage.schema import check_schema

FORMAT = 1


@dataclass(frozen=True)
class Trial:
    """One setting and what came of it.

    Attributes
    ----------
    number : int
        0 is the defaults.
    drawn : dict or None
        Its place in the search space; None when it lies outside, as the defaults may.
    parameters : dict
        What the estimator was given.
    epochs : int
        Planned.
    figures : list of float
        The metric on the validation rows after every epoch.
    state : {"done", "stopped", "failed"}
        "stopped" fell behind; "failed" diverged, or did not fit into memory.
    reason : str
        Why it failed.
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
        """The best epoch's; None when it failed."""
        return max(self.figures, default=None) if self.state != "failed" else None

    @property
    def epoch(self) -> int:
        """The number of the best epoch, from 1 on; 0 when there is none."""
        return self.figures.index(max(self.figures)) + 1 if self.figures else 0


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """The trial with the highest figure, of equal ones the first; a trial that was stopped is none."""
    return max((t for t in trials if t.state == "done"), key=lambda t: (t.figure or 0.0, -t.number), default=None)


class Journal:
    """The file of one search, held by one process; opened by `journal`.

    Attributes
    ----------
    trials : list of Trial
        All that were finished, in their order.
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
        """What all trials took."""
        return sum(trial.seconds for trial in self.trials)


@contextmanager
def journal(path: Path, identity: dict[str, Any]) -> Iterator[Journal]:
    """Open the file of a search, or begin it.

    Parameters
    ----------
    path : Path
    identity : dict
        JSON-able: data, settings and versions that must agree for the trials to be comparable.

    Raises
    ------
    InputError
        The file is another search's, is held by another process, is no such file, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "trials.jsonl"
    ...     with journal(path, {"seed": 0}) as first:
    ...         first.add(Trial(0, {}, {}, 1, [0.5], "done", "", 1.0))
    ...     with journal(path, {"seed": 0}) as again:
    ...         print(again.trials[0].figure)
    0.5
    """
    identity = plain(identity)
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                f"another run is tuning into {path.parent}; wait for it, or name another folder"
            ) from error
        except OSError:  # there are no locks here
            pass
        lines = _whole_lines(file, path)
        if not lines:
            _append(file, path, {"tuning": FORMAT, **identity})
            yield Journal(file, path, [])
            return
        _refuse_other(lines[0], identity, path)
        yield Journal(file, path, [check_schema(Trial, line, path, "name another folder") for line in lines[1:]])


def write_csv(path: Path, trials: Sequence[Trial], names: Sequence[str]) -> None:
    """All trials as a table for other programs, with the values of some parameters."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["trial", "state", "figure", "best_epoch", "epochs_trained", "seconds", *names])
    for t in trials:
        figure = "" if t.figure is None else f"{t.figure:.6f}"
        values = [t.parameters.get(name, "default") for name in names]
        lines.writerow([t.number, t.state, figure, t.epoch, len(t.figures), f"{t.seconds:.2f}", *values])
    write_text(path, text.getvalue())


def _whole_lines(file: IO[bytes], path: Path) -> list[dict[str, Any]]:
    """The lines so far; what a kill left of the last one is cut off."""
    file.seek(0)
    content = file.read()
    whole = content[: content.rfind(b"\n") + 1]
    try:
        lines = [json.loads(line) for line in whole.splitlines()]
        ours = all(isinstance(line, dict) for line in lines) and (not lines or "tuning" in lines[0])
    except ValueError:
        ours = False
    if not ours or (content and not whole and not b'{"tuning":'.startswith(content[:10])):
        raise InputError(f"{path} is no list of trials that tuning wrote; name another folder, or move it away")
    if len(whole) < len(content):
        with explained(path):
            os.truncate(path, len(whole))
    return lines


def _refuse_other(found: dict[str, Any], wanted: dict[str, Any], path: Path) -> None:
    if found.pop("tuning", None) != FORMAT:
        raise InputError(f"{path} was written by another version of wsabie; name another folder")
    for name in dict.fromkeys([*wanted, *found]):
        if found.get(name) != wanted.get(name):
            what = "other data" if name == "data" else f"another {name.replace('_', ' ')}"
            raise InputError(
                f"{path.parent} holds trials with {what} ({_told(found.get(name))}, now {_told(wanted.get(name))}), "
                "which cannot be compared; name another folder, or move that one away"
            )


def _told(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _append(file: IO[bytes], path: Path, line: dict[str, Any]) -> None:
    with explained(path):
        file.write(json.dumps(plain(line), allow_nan=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
