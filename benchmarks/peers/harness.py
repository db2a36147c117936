"""The adapters' side: reads the job, keeps the clock, measures after each round, says so in JSON lines.

Runs inside each system's environment: Python 3.10, NumPy and SciPy only. README.md describes the protocol.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.peers.ranks import Scorer, measure
from benchmarks.peers.rows import scale_rows

LONGEST = 200
"""Epochs at most in a search, should validation never stop rising."""


class Clock:
    """Seconds (and processor seconds) of training alone, and the most memory held meanwhile."""

    def __init__(self) -> None:
        self.seconds, self.cpu_seconds = 0.0, 0.0
        self.peak_rss, self.rss_before = 0, 0
        self._since: tuple[float, float] | None = None

    def start(self) -> None:
        """Go on counting."""
        _forget_peak_memory()
        self.rss_before = self.rss_before or memory("VmRSS")
        self._since = (time.perf_counter(), time.process_time())

    def stop(self) -> None:
        """Stop counting; nothing happens when it does not run."""
        if self._since is None:
            return
        self.seconds += time.perf_counter() - self._since[0]
        self.cpu_seconds += time.process_time() - self._since[1]
        self._since = None
        self.peak_rss = max(self.peak_rss, memory("VmHWM"))

    def take_off(self, seconds: float) -> None:
        """Count so much less: work of one thread that is told apart."""
        self.seconds -= seconds
        self.cpu_seconds -= seconds

    @property
    def runs(self) -> bool:
        """True while the clock counts."""
        return self._since is not None


class Run:
    """One job: the arrays, the clock, and what was measured.

    Attributes
    ----------
    job : dict
        As README.md describes.
    params : dict
        The setting of this trial.
    X, y : csr_matrix (n, n_words) float32, (n,) int32 or csr_matrix (n, n_labels)
        Training rows, with one label each or several.
    judge_X, judge_y
        The rows that quality is measured on.
    n_labels : int
    searching : bool
        Whether epochs go on until validation stops rising; else `job["epochs"]` are trained in one go.
    """

    def __init__(self, job: dict[str, Any], emit: Callable[..., None]) -> None:
        self.job, self.params, self.emit = job, dict(job["params"]), emit
        self.threads, self.seed = int(job["threads"]), int(job["seed"])
        self.searching = job["mode"] == "search"
        X, y, self.n_labels = _arrays(Path(job["data"]))
        fit, judged_rows = slice(*job["fit_rows"]), slice(*job["judge_rows"])
        self.X, self.y, self.judge_X, self.judge_y = X[fit], y[fit], X[judged_rows], y[judged_rows]
        self.clock = Clock()
        self._best, self._since_best = -1.0, 0

    def steps(self) -> Iterator[int]:
        """Epochs to train before each measurement, of a system that can go on training."""
        if self.searching:
            yield from [1] * LONGEST
        else:
            yield int(self.job["epochs"])

    def lengths(self, first: int) -> Iterator[int]:
        """Epochs of whole runs, doubled while it helps, of a system that cannot go on training."""
        if not self.searching:
            yield int(self.job["epochs"])
            return
        length = first
        while length <= LONGEST:
            yield length
            length *= 2

    def scale_rows(self, name: str) -> tuple[Any, Any]:
        """Training rows and rows to be judged, scaled; the time is told apart."""
        with self.measure_separately("prepare_s"):
            X, judge_X = scale_rows(name, self.X, [self.judge_X])
            return X, judge_X

    @contextmanager
    def measure_separately(self, name: str) -> Iterator[None]:
        """Time something that does not count as training."""
        started = time.perf_counter()
        yield
        self.note(**{name: round(time.perf_counter() - started, 3)})

    @contextmanager
    def training(self) -> Iterator[None]:
        """Time that counts."""
        self.clock.start()
        try:
            yield
        finally:
            self.clock.stop()

    def note(self, **figures: Any) -> None:
        """Tell a figure of the run."""
        self.emit("note", **figures)

    def finish_round(
        self, epochs: int, scores: Scorer, *, seconds: float | None = None, patience: int | None = None
    ) -> bool:
        """Measure after a round, with the clock stopped; True when training should end.

        Parameters
        ----------
        epochs : int
            Epochs that the model now has behind it.
        scores : `scores(lo, hi)` of judged rows
        seconds : float or None
            Training time of this model, when it is not all that the clock has counted.
        patience : int or None
            Rounds without a rise before the search ends; None = the job's.
        """
        counting = self.clock.runs
        self.clock.stop()
        figures = self._measure(scores)
        self.emit(
            "round",
            epochs=epochs,
            seconds=round(self.clock.seconds if seconds is None else seconds, 4),
            spent_s=round(self.clock.seconds, 4),
            spent_cpu_s=round(self.clock.cpu_seconds, 4),
            peak_rss=self.clock.peak_rss,
            rss_before=self.clock.rss_before,
            **figures,
        )
        end = self._is_enough(figures.get("MRR", 0.0), patience)
        if counting:
            self.clock.start()
        return end

    def _measure(self, scores: Scorer) -> dict[str, float]:
        """Measure the judged rows; scores of rows with several labels are saved for the study to measure."""
        if not sp.issparse(self.judge_y):
            return measure(scores, self.judge_y, self.n_labels)
        np.save(self.job["scores"], np.asarray(scores(0, self.judge_X.shape[0]), np.float32))
        return {}

    @property
    def spent(self) -> float:
        """Seconds of training by the processor's clock, over threads: what else the machine does adds nothing."""
        return self.clock.cpu_seconds / self.threads

    def affords(self, seconds: float) -> bool:
        """Return True if so many more seconds fit under the cap of a search; note the end if not."""
        if not self.searching or self.spent + seconds <= float(self.job["cap_s"]):
            return True
        self.note(ended="cap")
        return False

    def _is_enough(self, figure: float, patience: int | None) -> bool:
        self._since_best = 0 if figure > self._best else self._since_best + 1
        self._best = max(self._best, figure)
        if not self.searching:
            return False
        if self._since_best >= (int(self.job["patience"]) if patience is None else patience):
            self.note(ended="validation")
            return True
        return not self.affords(0)


def main(train: Callable[[Run], None]) -> None:
    """Run an adapter: the job is a JSON object on stdin, the answer JSON lines on stdout."""
    # Libraries write to stdout as they please; the protocol keeps the real one for itself.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def emit(event: str, **content: Any) -> None:
        answers.write(json.dumps({"event": event, **content}) + "\n")
        answers.flush()

    try:
        run = Run(json.load(sys.stdin), emit)
        train(run)
        emit("done")
    except Exception as error:
        traceback.print_exc()
        emit("error", message=f"{type(error).__name__}: {error}")
        raise SystemExit(1) from error


def memory(field: str) -> int:
    """A line of /proc/self/status in bytes: VmRSS (now) or VmHWM (most so far); 0 where there is none."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":")), 0)


def _forget_peak_memory() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _arrays(file: Path) -> tuple[Any, Any, int]:
    with np.load(file) as stored:
        parts = {key: stored[key] for key in stored.files}
    indptr = parts["indptr"]
    shape = (len(indptr) - 1, int(parts["indices"].max()) + 1)
    X = sp.csr_matrix((parts["data"], parts["indices"], indptr), shape=shape)
    n_labels = int(parts["n_labels"])
    if "y" in parts:
        return X, parts["y"], n_labels
    labels = parts["label_indices"]
    Y = sp.csr_matrix((np.ones(len(labels), np.int8), labels, parts["label_indptr"]), shape=(X.shape[0], n_labels))
    return X, Y, n_labels
