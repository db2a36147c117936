"""The first picture of a network, in a process that can be ended: nothing else bounds the time and memory of a runtime.

The process begins with `python -m wsabie.features.onnx_trial REQUEST` (JSON), reads the file from standard input, looks
it through, and answers with a line of JSON. A file is tried once in a process; workers are told what came of it.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.errors import InputError
from wsabie.base.limits import current_limits, limit_error
from wsabie.features.onnx_graph import check_graph
from wsabie.features.onnx_message import names_other_files
from wsabie.features.onnx_network import Model, Network, Trial, check_runtime, refuse_opening

_COPIES = 6  # of the weights, while a session is made
_MEMORY_WORDS = ("bad_alloc", "allocate memory", "bad allocation", "would require more than")  # of the runtime
_STARTING = 30  # seconds that a busy machine may take for the process itself


@lru_cache(maxsize=8)
def try_network(model: Model, side: int | None, output: str | None) -> Trial:
    """Look a network through and run it on a grey picture.

    Parameters
    ----------
    model : Model
    side : int or None
    output : str or None
        As in `Network`.

    Raises
    ------
    InputError
        It cannot be used, or takes more time or memory than `Limits` allow.
    """
    check_runtime()
    limits = current_limits()
    request = {"side": side, "output": output, "name": model.name, "n_bytes": limits.network_bytes}
    words = [sys.executable, "-m", __name__, json.dumps(request)]
    try:
        done = subprocess.run(  # noqa: S603 - our own
            words,
            input=model.view(),  # gigabytes, which are not copied
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=limits.network_seconds + _STARTING,
            env={**os.environ, "PYTHONSAFEPATH": "1"},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _refusal(model, "network_seconds") from error
    answer: dict[str, Any] = (
        json.loads(done.stdout) if done.returncode == 0 else {"exceeds": _ended_by(done.returncode)}
    )
    if "error" in answer:
        raise InputError(answer["error"])
    if "exceeds" in answer:
        raise _refusal(model, answer["exceeds"])
    return Trial(answer["width"], answer["n_bytes"])


def _ended_by(code: int) -> str:
    return "network_seconds" if code == -signal.SIGXCPU else ""


def _refusal(model: Model, exceeds: str) -> InputError:
    units = {"network_seconds": "seconds", "network_bytes": "bytes of memory"}
    if exceeds in units:
        excess = f"{model.name} takes too many {units[exceeds]} for its first picture"
        return limit_error(exceeds, excess, 2 * getattr(current_limits(), exceeds))
    return InputError(f"{model.name} ends the process that runs it; give another export of the encoder")


def answer_request() -> dict[str, Any]:
    """Check and run the model in standard input, and return what came of it."""
    request = json.loads(sys.argv[1])
    model = Model(np.frombuffer(sys.stdin.buffer.read(), np.uint8), request["name"])
    _bound(request["n_bytes"] + _COPIES * len(model.content))
    try:
        check_model(model)  # here, where a graph without end is ended
        network = Network(model, request["side"], request["output"])
        n_before = _memory_figure("VmRSS")
        shape = network.wanted
        grey = np.full((shape.height, shape.width, 3), 128, np.uint8)
        width = len(network.run(grey, np.zeros(3, np.float32), np.ones(3, np.float32)))
    except MemoryError:
        return {"exceeds": "network_bytes"}
    except InputError as error:
        short = any(words in str(error) for words in _MEMORY_WORDS)
        return {"exceeds": "network_bytes"} if short else {"error": str(error)}
    return {"width": width, "n_bytes": max(0, _memory_figure("VmHWM") - n_before)}


def check_model(model: Model) -> None:
    """Raise InputError where a model should not be opened; nothing is opened."""
    content = model.view()
    try:
        outside = names_other_files(content)
    except ValueError as error:
        raise refuse_opening(model, error) from error
    if outside:
        raise InputError("the ONNX model keeps its weights in other files; export the encoder into a single ONNX file")
    try:
        check_graph(content)
    except ValueError as error:
        raise InputError(f"{model.name} is not run: {error}; export the image encoder alone, without it") from error


def _bound(n_bytes: int) -> None:
    """Let this process, as it is now, take so many bytes more, and only so many seconds."""
    from onnxruntime import InferenceSession  # noqa: F401 - before the bound

    seconds = current_limits().network_seconds + int(time.process_time()) + 1
    _lower(resource.RLIMIT_CPU, seconds, seconds + 1)
    _lower(resource.RLIMIT_CORE, 0, 0)
    size = _memory_figure("VmData")
    if size:
        _lower(resource.RLIMIT_DATA, size + n_bytes, size + n_bytes)


def _lower(limit: int, soft: int, hard: int) -> None:
    """Lower a limit of this process, which whoever started it may have lowered further."""
    most = resource.getrlimit(limit)[1]
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(limit, (soft, hard))


def _memory_figure(name: str) -> int:
    """Return a figure of this process in bytes; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(name + ":")), 0)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(answer_request()) + "\n")
