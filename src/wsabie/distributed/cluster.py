"""A connection to a Ray cluster, or to one that is started on this machine and ends with this process.

Ray keeps quiet: it sends no statistics of use, starts no dashboard, and what its processes log goes to its own files.
With RAY_LOG_TO_DRIVER=1 in the environment it tells what its workers print.
"""

import atexit
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from wsabie.base.errors import InputError
from wsabie.base.machine import available_cores

LOCAL = "local"
"""The address of a cluster that is started on this machine."""
REACHED = 5.0
"""Seconds in which a cluster's port has to answer."""
KNOWN = 30.0
"""Seconds in which what answers has to be Ray."""
RETRIES = 5
"""How often an item is tried again, whose worker or node was lost."""
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_task_oom_retries": str(RETRIES),
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else a warning of what will change
}
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Ray's way to say that 127.0.0.1 is the address of this machine, and that nothing listens to others."""

Answer = TypeVar("Answer")
_SHOWN = "RAY_LOG_TO_DRIVER"
_address: str | None = None  # that this process is connected to


def connect(address: str) -> None:
    """Connect this process to a cluster, once; `disconnect` or the end of the process undo it.

    Parameters
    ----------
    address : str
        HOST:PORT of a cluster's head, of which this machine is a node, or "local": a cluster of this machine alone,
        whose processes listen to this machine only and end with this one, however it ends.

    Raises
    ------
    InputError
        Ray is not installed, the cluster cannot be reached or has other versions than this process, or the process is
        connected to another one.
    """
    global _address
    if _address == address:
        return
    if _address is not None:
        raise InputError(f"this process works with the Ray cluster {_address}; end it before it works with {address}")
    ray = _ray(address)
    if ray.is_initialized():
        raise InputError("Ray was started in this process already; call ray.shutdown() first")
    _start(ray) if address == LOCAL else _join(ray, address)
    _address = address
    atexit.register(disconnect)
    try:
        _refuse_other_versions()
    except BaseException:
        disconnect()
        raise


def disconnect() -> None:
    """End the connection, and a local cluster with it."""
    global _address
    if _address is None:
        return
    import ray

    _address = None
    atexit.unregister(disconnect)
    ray.shutdown()


def _ray(address: str) -> Any:
    """Ray, which reads its settings from the environment when it is imported."""
    here = address == LOCAL or _host(address)[0] in ("localhost", "127.0.0.1", "::1")
    for name, value in (QUIET | LOOPBACK if here else QUIET).items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise InputError(
            f"--ray works with Ray, which cannot be imported here ({error}); run: pip install 'wsabie[ray]'"
        ) from error
    return ray


def _host(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise InputError(f"--ray {address} is no address of a Ray cluster; give HOST:PORT of its head, or local")
    return host.strip("[]"), int(port)


def _start(ray: Any) -> None:
    folder = tempfile.mkdtemp(prefix="wsabie-ray-", dir="/tmp")  # names of sockets have to be short
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    own = {"include_dashboard": False, "num_cpus": available_cores(), "_temp_dir": folder}
    try:
        _init(ray, address=LOCAL, **own)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"Ray cannot be started on this machine: {_line(error)}; leave --ray out") from error


def _join(ray: Any, address: str) -> None:
    host, port = _host(address)
    try:
        socket.create_connection((host, port), REACHED).close()
    except OSError as error:
        raise InputError(
            f"no Ray cluster can be reached at {address} ({error}); start one by `ray start --head`, "
            "or give the address that it told"
        ) from error
    _refuse_others(ray, address)
    try:
        _init(ray, address=address)
    except (OSError, RuntimeError, ValueError) as error:
        if "Version mismatch" in str(error):
            told = " ".join(str(error).split())
            raise InputError(f"the Ray cluster {address} has other software than this process: {told}") from error
        raise InputError(
            f"the Ray cluster {address} cannot be joined: {_line(error)}; this machine has to be a node of it: "
            f"run here `ray start --address={address}`"
        ) from error


def _refuse_others(ray: Any, address: str) -> None:
    """Refuse a port where something else listens; left to itself Ray would go on asking for minutes."""
    known: list[Any] = []

    def ask() -> None:
        try:
            known.append(ray._raylet.GcsClient(address=address))
        except Exception as error:
            known.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(KNOWN)
    if known and isinstance(known[0], ray.exceptions.AuthenticationError):
        raise InputError(
            f"the Ray cluster {address} asks for a token; run: export RAY_AUTH_MODE=token, with the token of its head "
            "in ~/.ray/auth_token of this machine too"
        ) from known[0]
    if not known or isinstance(known[0], Exception):
        raise InputError(f"what answers at {address} is no Ray cluster that this Ray knows; give the address of a head")


def _init(ray: Any, **options: Any) -> None:
    shown = os.environ.get(_SHOWN) == "1"
    level = logging.WARNING if shown else logging.CRITICAL
    with _interrupted_after():
        ray.init(log_to_driver=shown, logging_level=level, **options)
    if not shown:
        # what raylets report would be printed among the results
        ray._private.worker.print_to_stdstream = lambda *_, **__: None


@contextmanager
def _interrupted_after() -> Iterator[None]:
    """Ctrl-C while Ray starts counts when it has started: Ray would lose it, or leave processes behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


def on_every_node(function: Callable[..., Answer], *given: Any) -> dict[str, Answer]:
    """The answer of a worker of each node, by the node's name; of nodes that are just lost there is none."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    asked = ray.remote(num_cpus=0)(function)
    nodes = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]}
    places = {node: NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes}
    told = {node: asked.options(scheduling_strategy=place).remote(*given) for node, place in places.items()}
    answers = {}
    for node, answer in told.items():
        try:
            answers[f"{nodes[node]} ({node[:8]})"] = ray.get(answer)
        except ray.exceptions.RayTaskError as error:
            raise InputError(f"{_other()}: {_line(error.cause)}; install the same on every node") from error
        except ray.exceptions.RayError:
            continue
    return answers


def refuse_unseen(paths: Iterable[Path]) -> None:
    """Raise InputError for a file or folder that some node cannot read at the same path; of what is not there yet, for
    the folder where it will be.
    """
    wanted = [str(next(one for one in (path, *path.parents) if one.exists())) for path in map(Path.absolute, paths)]
    for node, unseen in on_every_node(_unseen, wanted).items():
        if unseen:
            raise InputError(
                f"{unseen[0]} cannot be read on the node {node} of the Ray cluster; put it on a file system that all "
                "nodes have at the same path"
            )


def _unseen(paths: list[str]) -> list[str]:
    return [path for path in paths if not os.access(path, os.R_OK)]


def _refuse_other_versions() -> None:
    """What this process sends has to mean the same on every node."""
    for node, theirs in on_every_node(_versions).items():
        if theirs != _versions():
            raise InputError(f"{_other()}: {theirs} on {node}, and here {_versions()}; install the same on every node")


def _versions() -> str:
    from wsabie import __version__

    return f"wsabie {__version__} on Python {sys.version_info.major}.{sys.version_info.minor}"


def _other() -> str:
    return f"the Ray cluster {_address} has other software than this process"


def why_lost(error: BaseException) -> str:
    """What Ray knows of a worker that is lost, in a few words: it takes a page, and causes that it might have."""
    from ray.exceptions import ActorUnavailableError, OutOfMemoryError

    told = str(error).strip()
    if isinstance(error, OutOfMemoryError):
        return "its node has too little memory"
    if isinstance(error, ActorUnavailableError):
        return "it cannot be reached"
    if "worker process has died" in told:
        return "its process was killed, perhaps for want of memory"
    if "node has died" in told:
        return "its node is gone"
    return (told.splitlines() or [type(error).__name__])[-1].strip()[:300]


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
