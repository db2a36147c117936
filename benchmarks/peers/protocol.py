"""Running an adapter: one process in the system's own environment, a JSON job in, JSON lines out."""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = {
    "wsabie": "ours",
    "lightfm": "lightfm",
    "fasttext": "fasttext",
    "napkinxc": "napkinxc",
    "pecos": "pecos",
    "omikuji": "omikuji",
    "estimators": "estimators",
}


@dataclass
class Answer:
    """Report of an adapter.

    Attributes
    ----------
    status : str
        "ok"; "error" and "timeout" may still have rounds from before.
    rounds : list of dict
        One per measurement: epochs, seconds, MRR, p@1, hit@10 ...
    notes : dict
        Figures told apart (prepare_s, parse_s, compile_s, model_bytes ...).
    message : str
        What went wrong.
    wall_s : float
        Life of the process, with measuring.
    """

    status: str = "ok"
    rounds: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    message: str = ""
    wall_s: float = 0.0

    @property
    def best(self) -> dict[str, Any] | None:
        """The first round with the highest MRR; of rows with several labels, whose scores were saved, the first."""
        return max(self.rounds, key=lambda round_figures: float(round_figures.get("MRR", 0)), default=None)


def ask(system: str, python: Path, job: dict[str, Any], timeout: float) -> Answer:
    """Run one job; the process and its children are gone when this returns.

    Parameters
    ----------
    system : str
    python : path
        The interpreter of the system's environment.
    job : dict
        README.md lists its keys.
    timeout : float
        Seconds of life; what was told before then is kept.
    """
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as error_file:
        process = subprocess.Popen(
            [str(python), "-m", f"benchmarks.peers.adapters.{ADAPTERS[system]}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=error_file,
            text=True,
            cwd=ROOT,
            env=_environment(int(job["threads"])),
            start_new_session=True,
        )
        late = threading.Event()

        def too_late() -> None:
            late.set()
            _end(process)

        timer = threading.Timer(timeout, too_late)
        timer.start()
        try:
            answer = _listen(process, job)
        finally:
            timer.cancel()
            _end(process)
            process.wait()
        if late.is_set():
            answer.status, answer.message = "timeout", f"ended after {timeout:.0f} s"
        elif answer.status == "ok" and process.returncode:
            error_file.seek(0)
            answer.status, answer.message = "error", error_file.read()[-2000:] or f"exit status {process.returncode}"
    answer.wall_s = round(time.perf_counter() - started, 2)
    return answer


def _listen(process: subprocess.Popen[str], job: dict[str, Any]) -> Answer:
    answer = Answer()
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(job))
        process.stdin.close()
    except BrokenPipeError:
        pass  # it died before reading; its exit status tells
    for line in process.stdout:
        content = json.loads(line)
        event = content.pop("event")
        if event == "round":
            answer.rounds.append(content)
        elif event == "note":
            answer.notes.update(content)
        elif event == "error":
            answer.status, answer.message = "error", content["message"]
    process.wait()
    return answer


def _environment(threads: int) -> dict[str, str]:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(names, str(threads)), "PYTHONPATH": "", "PYTHONNOUSERSITE": "1"}


def _end(process: subprocess.Popen[str]) -> None:
    """End the process and what it started; its session is its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
