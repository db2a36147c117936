"""Networks in ONNX files, run by ONNX Runtime on pictures, first in a process of its own.

Operators that are not part of ONNX Runtime, and weights in files of their own, are never loaded. A process tries a file
once on one picture, on the CPU, and passes the result to its workers. The trial bounds time and memory: it runs
`python -m wsabie.features.encoders.onnx_network REQUEST` (JSON), which reads the file from standard input, checks it,
and answers with a line of JSON.
"""

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from wsabie.core.arrays import Array, Float32, UInt8
from wsabie.core.errors import InputError, UnreadableItemError, require
from wsabie.core.execution import DEVICE_VARIABLE
from wsabie.core.input_limits import make_limit_error, read_limits
from wsabie.core.json_conversion import JsonObject
from wsabie.core.memory_budget import ITEM_MEMORY
from wsabie.core.optional_packages import import_optional
from wsabie.features.encoders.encoder_list import Pooling
from wsabie.features.encoders.onnx_graph_check import check_graph, has_external_weights
from wsabie.features.images.image_decoder import NOT_FINITE
from wsabie.storage.atomic_files import explain_read_errors

MAX_BYTES = (1 << 31) - 1
"""Longest ONNX file, the limit of a message."""

NORMALISATIONS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "clip": ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
    "symmetric": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "unit": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    "bytes": ((0.0, 0.0, 0.0), (1 / 255, 1 / 255, 1 / 255)),
    "lite": ((127 / 255, 127 / 255, 127 / 255), (128 / 255, 128 / 255, 128 / 255)),
}
"""Mean and deviation of red, green and blue, of values from 0 to 1."""

_USUAL_SIDE = 224
_CHANNELS = 3
_TYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
}
_CPU = "cpu"
_FATAL = 4  # the runtime's own log


class OnnxContent:
    """The content of an ONNX file; equal where the bytes are.

    Parameters
    ----------
    content : (n_bytes,) uint8
    name : str
        Name in messages.
    """

    def __init__(self, content: UInt8, name: str = "the model") -> None:
        self.content = content
        self.name = name

    @cached_property
    def sha256(self) -> str:
        """Hash of the content, 64 hex digits."""
        return hashlib.sha256(self.view()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OnnxContent) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def view(self) -> memoryview:
        """Return the bytes, which are not copied."""
        return np.ascontiguousarray(self.content).data

    def to_bytes(self) -> bytes:
        """Return the bytes, copied unless they were bytes before."""
        base: object = self.content.base
        return base if isinstance(base, bytes) and len(base) == len(self.content) else self.content.tobytes()

    @classmethod
    def load(cls, path: str | Path) -> "OnnxContent":
        """Load the model in a file.

        Raises
        ------
        InputError
            There is no file, or it is too large.
        """
        path = Path(path)
        with explain_read_errors(path):
            require(path.is_file(), f"there is no ONNX file at {path}; give the file of an image encoder")
            length = path.stat().st_size
            problem = f"{path} has {length:,} bytes, and an ONNX file has 1 to {MAX_BYTES:,}"
            require(0 < length <= MAX_BYTES, f"{problem}; give another export of the encoder")
            content = np.frombuffer(path.read_bytes(), np.uint8)
            is_whole = len(content) == length
            require(is_whole, f"{path} changes while it is read; run the same command again when it is whole")
            return cls(content, str(path))


class NetworkInput(NamedTuple):
    """Input of a network."""

    name: str
    batch: int
    height: int
    width: int
    channels_last: bool
    dtype: type[np.generic]


class OnnxNetwork:
    """Opened network.

    Parameters
    ----------
    model : OnnxContent
    side : int or None
        Side of the input, where the model leaves it open; None: 224.
    output : str or None
        Name of the output; None: the first.
    pooling : {"mean", "first"}
        Joining of tokens: their mean, or the first, which some encoders train for that.
    """

    def __init__(self, model: OnnxContent, side: int | None, output: str | None, pooling: Pooling = "mean") -> None:
        self.session = open_session(model)
        self.input = _read_input(self.session.get_inputs(), side)
        names = [node.name for node in self.session.get_outputs()]
        if output is not None and output not in names:
            raise InputError(f"the ONNX model has no output {output!r}; choose from {', '.join(names[:20])}")
        self.output = output or names[0]
        self.pooling = pooling

    def features(self, pixels: UInt8, mean: Float32, deviation: Float32, trial: "TrialCost | None" = None) -> Float32:
        """Compute the features of a picture, (n_features,).

        The largest centred part with the shape of the input is scaled to it. Maps are averaged, and tokens pooled.

        Parameters
        ----------
        pixels : (h, w, 3) uint8
        mean, deviation : (3,) float32
            Normalisation of values from 0 to 1; a network that takes bytes gets them as they are.
        trial : TrialCost or None
            Costs of the first picture.

        Raises
        ------
        UnreadableItemError
            The network gives no finite numbers.
        InputError
            It fails, or gives something other than rows, maps or tokens of numbers, or more or fewer than in its trial.
        """
        n_bytes = min(trial.n_bytes, read_limits().network_bytes) if trial else 0
        with ITEM_MEMORY.share(n_bytes):
            out = self.run(pixels, mean, deviation)
        if trial and len(out) != trial.width:
            problem = f"the ONNX model gives {trial.width:,} numbers for one picture and {len(out):,} for another"
            raise InputError(f"{problem}; give a model whose output has one width")
        if not np.isfinite(out).all():
            raise UnreadableItemError(NOT_FINITE)
        return out

    def run(self, pixels: UInt8, mean: Float32, deviation: Float32) -> Float32:
        """Run the network without a check of values or memory."""
        expected = self.input
        image: Array = np.asarray(crop_centre(pixels, expected.height, expected.width))
        if expected.dtype is not np.uint8:
            image = ((image.astype(np.float32) / 255 - mean) / deviation).astype(expected.dtype)
        image = image if expected.channels_last else image.transpose(2, 0, 1)
        batch = np.ascontiguousarray(np.repeat(image[None], expected.batch, axis=0))
        try:
            (values,) = self.session.run([self.output], {expected.name: batch})
        except Exception as error:  # the runtime raises classes of its own
            raise InputError(
                f"the ONNX model fails on a picture: {get_first_line(error)}; give another model"
            ) from error
        return _pool_values(values, expected.channels_last, self.pooling)


class TrialCost(NamedTuple):
    """Costs of a network for its first picture.

    Attributes
    ----------
    width : int
        Numbers of the output.
    n_bytes : int
        Memory beside the weights.
    """

    width: int
    n_bytes: int


open_network = lru_cache(maxsize=2)(OnnxNetwork)
"""Return the network of a model, opened once in a process."""


def crop_centre(pixels: UInt8, height: int, width: int) -> Image.Image:
    """Crop the largest centred part with the shape `height` x `width`, scaled to it (bicubic).

    Examples
    --------
    >>> crop_centre(np.zeros((10, 40, 3), np.uint8), 5, 5).size
    (5, 5)
    """
    h, w = pixels.shape[:2]
    scale = min(h / height, w / width)
    across, down = min(scale * width, w), min(scale * height, h)  # rounded up, they would reach beyond the picture
    left, top = (w - across) / 2, (h - down) / 2
    box = (left, top, min(left + across, w), min(top + down, h))
    return Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC, box=box)


def open_session(model: OnnxContent) -> Any:
    """Return the session of the runtime for a checked model, on the device of this process.

    Raises
    ------
    InputError
        There is no runtime, the model cannot be opened, or the device cannot be used.
    """
    providers = list_providers()
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # pictures are shared out among processes
    options.log_severity_level = _FATAL
    options.enable_cpu_mem_arena = False  # returns the memory of a large picture
    options.add_session_config_entry("session.load_model_format", "ONNX")  # the format that was checked
    try:
        session = InferenceSession(model.to_bytes(), options, providers=providers)
    except Exception as error:  # the runtime raises classes of its own
        raise build_opening_error(model, error) from error
    is_in_use = providers[0] in session.get_providers()  # without its driver, the runtime takes the CPU and goes on
    require(is_in_use, f"ONNX Runtime has {providers[0]}, but cannot use it here; install its driver, or choose cpu")
    return session


def list_providers() -> list[str]:
    """Return the providers of the runtime for the device of this process, that of the CPU last.

    Raises
    ------
    InputError
        There is no runtime, or it knows no such device.
    """
    runtime: Any = import_optional("onnxruntime", "an ONNX model needs ONNX Runtime", "onnx")
    device, ending = os.environ.get(DEVICE_VARIABLE) or _CPU, "ExecutionProvider"
    providers = {name.removesuffix(ending).lower(): name for name in runtime.get_available_providers()}
    if device not in providers:
        fact = f"ONNX Runtime here has no provider of the device {device!r}; it has {', '.join(sorted(providers))}"
        raise InputError(f"{fact}; choose one of them, or install another build, such as onnxruntime-gpu for cuda")
    return list(dict.fromkeys((providers[device], providers[_CPU])))


def build_opening_error(model: OnnxContent, error: Exception) -> InputError:
    """Return the error of a model that is not an ONNX file, or not one for this runtime."""
    return InputError(
        f"ONNX Runtime cannot open {model.name} ({get_first_line(error)}); give an ONNX file of standard operators"
    )


def _read_input(inputs: list[Any], side: int | None) -> NetworkInput:
    problem = f"the ONNX model has {len(inputs)} inputs ({', '.join(node.name for node in inputs[:5])})"
    require(len(inputs) == 1, f"{problem}; give an image encoder, which has one")
    (node,) = inputs
    shape, dtype = list(node.shape), _TYPES.get(node.type)
    fixed_sizes = [size if isinstance(size, int) and size > 0 else None for size in shape]
    if dtype is None or len(shape) != 4 or not {_CHANNELS, None} & {fixed_sizes[1], fixed_sizes[3]}:
        raise InputError(
            f"the ONNX model takes {node.type} of shape {shape}; give one that takes float or uint8 pictures of three "
            "channels, as (batch, 3, height, width) or (batch, height, width, 3)"
        )
    channels_last = fixed_sizes[1] != _CHANNELS and fixed_sizes[3] == _CHANNELS
    sides = fixed_sizes[1:3] if channels_last else fixed_sizes[2:4]
    if side is not None and any(size not in (None, side) for size in sides):
        raise InputError(f"the ONNX model takes pictures of {sides[0]} x {sides[1]} pixels, and side is {side}")
    height, width = (size or side or _USUAL_SIDE for size in sides)
    batch = fixed_sizes[0] or 1
    n_bytes = batch * height * width * _CHANNELS * 4
    if n_bytes > read_limits().network_bytes:
        excess = f"the input of the ONNX model, {shape}, has {n_bytes:,} bytes"
        raise make_limit_error("network_bytes", excess, 2 * n_bytes)
    return NetworkInput(node.name, batch, height, width, channels_last, dtype)


def _pool_values(values: Any, channels_last: bool, pooling: Pooling) -> Float32:
    """Return the first of a batch: numbers, the mean of a map, or the mean or the first of tokens."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f" or not 2 <= values.ndim <= 4 or not values.size:
        kind = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
        raise InputError(f"the ONNX model gives {kind}; choose an output of numbers, (batch, n) or maps or tokens of n")
    first: Float32 = values[0].astype(np.float32)
    if first.ndim == 3:
        return np.asarray(first.mean(axis=(0, 1) if channels_last else (1, 2)))
    if first.ndim == 2:
        return np.asarray(first[0] if pooling == "first" else first.mean(axis=0))
    return first


def get_first_line(error: Exception) -> str:
    """Return the first line of an error, or its class where it says nothing."""
    return (str(error).strip() or type(error).__name__).split("\n")[0][:200]


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
    list_providers()
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
            env={**os.environ, "PYTHONSAFEPATH": "1", DEVICE_VARIABLE: _CPU},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _make_refusal(model, "network_seconds") from error
    if process.returncode:
        raise _make_refusal(model, "network_seconds" if process.returncode == -signal.SIGXCPU else "")
    answer: JsonObject = json.loads(process.stdout)
    if "error" in answer:
        raise InputError(answer["error"])
    if "exceeds" in answer:
        raise _make_refusal(model, answer["exceeds"])
    return TrialCost(answer["width"], answer["n_bytes"])


def _make_refusal(model: OnnxContent, exceeds: str) -> InputError:
    units = {"network_seconds": "seconds", "network_bytes": "bytes of memory"}
    if exceeds in units:
        excess = f"{model.name} takes too many {units[exceeds]} for its first picture"
        return make_limit_error(exceeds, excess, 2 * getattr(read_limits(), exceeds))
    return InputError(f"{model.name} ends the process that runs it; give another export of the encoder")


def answer_request() -> JsonObject:
    """Check and run the model in standard input, and return the result."""
    request = json.loads(sys.argv[1])
    model = OnnxContent(np.frombuffer(sys.stdin.buffer.read(), np.uint8), request["name"])
    _limit_process(request["n_bytes"] + _COPIES * len(model.content))
    try:
        require_safe_model(model)  # here, where the limits stop an endless graph
        network = OnnxNetwork(model, request["side"], request["output"])
        n_before = _read_memory_figure("VmRSS")
        shape = network.input
        grey = np.full((shape.height, shape.width, 3), 128, np.uint8)
        width = len(network.run(grey, np.zeros(3, np.float32), np.ones(3, np.float32)))
    except MemoryError:
        return {"exceeds": "network_bytes"}
    except InputError as error:
        short = any(words in str(error) for words in _MEMORY_WORDS)
        return {"exceeds": "network_bytes"} if short else {"error": str(error)}
    return {"width": width, "n_bytes": max(0, _read_memory_figure("VmHWM") - n_before)}


def require_safe_model(model: OnnxContent) -> None:
    """Raise InputError for an unsafe model, without opening it."""
    content = model.view()
    try:
        outside = has_external_weights(content)
    except ValueError as error:
        raise build_opening_error(model, error) from error
    require(not outside, "the ONNX model keeps its weights in other files; export the encoder into a single ONNX file")
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
    size = _read_memory_figure("VmData")
    if size:
        _lower_limit(resource.RLIMIT_DATA, size + n_bytes, size + n_bytes)


def _lower_limit(limit: int, soft: int, hard: int) -> None:
    """Lower a limit of this process, unless it is lower already."""
    maximum = resource.getrlimit(limit)[1]
    if maximum != resource.RLIM_INFINITY:
        soft, hard = min(soft, maximum), min(hard, maximum)
    resource.setrlimit(limit, (soft, hard))


def _read_memory_figure(name: str) -> int:
    """Return a memory figure of this process in bytes; 0 where the system has none."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(name + ":")), 0)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(answer_request()) + "\n")
