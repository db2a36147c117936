"""Trial of a network on one picture in a process of its own, which bounds its time and memory.

The process runs `python -m wsabie.features.encoders.onnx_sandbox REQUEST` (JSON), reads the file from standard input,
checks it, and answers with a line of JSON. A process tries a file once and passes the result to its workers.
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

from wsabie.core.errors import InputError
from wsabie.core.input_limits import make_limit_error, read_limits
from wsabie.features.encoders.onnx_graph_check import check_graph, has_external_weights
from wsabie.features.encoders.onnx_network import (
    OnnxContent,
    OnnxNetwork,
    TrialCost,
    build_opening_error,
    require_runtime,
)

_COPIES = 6  # of the weights, while a session is made
_MEMORY_WORDS = ("bad_alloc", "allocate memory", "bad allocation", "would require more than")  # of the runtime
_STARTING = 30  # seconds that a busy machine may take to start the process


@lru_cache(maxsize=8)
def try_network(model: OnnxContent, side: int | None, output: str | None) -> TrialCost:
    """Check a network and run it on a grey picture.

    Parameters
    ----------
    model : OnnxContent
    side : int or None
    output : str or None
        As in `OnnxNetwork`.

    Raises
    ------
    InputError
        It cannot be used, or takes more time or memory than `InputLimits` allow.
    """
    require_runtime()
    limits = read_limits()
    request = {"side": side, "output": output, "name": model.name, "n_bytes": limits.network_bytes}
    command = [sys.executable, "-m", __name__, json.dumps(request)]
    try:
        process = subprocess.run(  # noqa: S603 - our own
            command,
            input=model.view(),  # gigabytes, which are not copied
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=limits.network_seconds + _STARTING,
            env={**os.environ, "PYTHONSAFEPATH": "1"},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _make_refusal(model, "network_seconds") from error
    answer: dict[str, Any] = (
        json.loads(process.stdout) if process.returncode == 0 else {"exceeds": _find_exceeded_limit(process.returncode)}
    )
    if "error" in answer:
        raise InputError(answer["error"])
    if "exceeds" in answer:
        raise _make_refusal(model, answer["exceeds"])
    return TrialCost(answer["width"], answer["n_bytes"])


def _find_exceeded_limit(code: int) -> str:
    return "network_seconds" if code == -signal.SIGXCPU else ""


def _make_refusal(model: OnnxContent, exceeds: str) -> InputError:
    units = {"network_seconds": "seconds", "network_bytes": "bytes of memory"}
    if exceeds in units:
        excess = f"{model.name} takes too many {units[exceeds]} for its first picture"
        return make_limit_error(exceeds, excess, 2 * getattr(read_limits(), exceeds))
    return InputError(f"{model.name} ends the process that runs it; give another export of the encoder")


def answer_request() -> dict[str, Any]:
    """Check and run the model in standard input, and return the result."""
    request = json.loads(sys.argv[1])
    model = OnnxContent(np.frombuffer(sys.stdin.buffer.read(), np.uint8), request["name"])
    _limit_process(request["n_bytes"] + _COPIES * len(model.content))
    try:
        require_safe_model(model)  # here, where the limits stop an endless graph
        network = OnnxNetwork(model, request["side"], request["output"])
        n_before = _memory_figure("VmRSS")
        shape = network.input
        grey = np.full((shape.height, shape.width, 3), 128, np.uint8)
        width = len(network.run(grey, np.zeros(3, np.float32), np.ones(3, np.float32)))
    except MemoryError:
        return {"exceeds": "network_bytes"}
    except InputError as error:
        short = any(words in str(error) for words in _MEMORY_WORDS)
        return {"exceeds": "network_bytes"} if short else {"error": str(error)}
    return {"width": width, "n_bytes": max(0, _memory_figure("VmHWM") - n_before)}


def require_safe_model(model: OnnxContent) -> None:
    """Raise InputError for an unsafe model, without opening it."""
    content = model.view()
    try:
        outside = has_external_weights(content)
    except ValueError as error:
        raise build_opening_error(model, error) from error
    if outside:
        raise InputError("the ONNX model keeps its weights in other files; export the encoder into a single ONNX file")
    try:
        check_graph(content)
    except ValueError as error:
        raise InputError(f"{model.name} is not run: {error}; export the image encoder alone, without it") from error


def _limit_process(n_bytes: int) -> None:
    """Limit the further memory and time of this process."""
    from onnxruntime import InferenceSession  # noqa: F401 - before the bound

    seconds = read_limits().network_seconds + int(time.process_time()) + 1
    _lower_limit(resource.RLIMIT_CPU, seconds, seconds + 1)
    _lower_limit(resource.RLIMIT_CORE, 0, 0)
    size = _memory_figure("VmData")
    if size:
        _lower_limit(resource.RLIMIT_DATA, size + n_bytes, size + n_bytes)


def _lower_limit(limit: int, soft: int, hard: int) -> None:
    """Lower a limit of this process, unless it is lower already."""
    maximum = resource.getrlimit(limit)[1]
    if maximum != resource.RLIM_INFINITY:
        soft, hard = min(soft, maximum), min(hard, maximum)
    resource.setrlimit(limit, (soft, hard))


def _memory_figure(name: str) -> int:
    """Return a memory figure of this process in bytes; 0 where the system has none."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(name + ":")), 0)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(answer_request()) + "\n")
