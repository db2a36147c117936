"""Ray clusters: the connection to one, or to a local one that ends with this process, and an executor.

Ray is configured to be quiet: it sends no usage statistics, starts no dashboard, and logs to its own files. With
RAY_LOG_TO_DRIVER=1 in the environment it prints the output of its workers.
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
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from cachetools import LRUCache, TTLCache, cached

from wsabie.core.errors import InputError, require
from wsabie.core.execution import Executor, Item, Result, Shared, WorkerError, disable_blas_threads
from wsabie.core.machine import count_available_cores

if TYPE_CHECKING:
    from ray import ObjectRef


LOCAL = "local"
"""Address of a cluster that is started on this machine."""
CONNECT_SECONDS = 5.0
"""Seconds in which a cluster's port must answer."""
HANDSHAKE_SECONDS = 30.0
"""Seconds in which the port must answer as Ray does."""
RETRIES = 5
"""Number of retries of an item whose worker or node was lost."""
QUIET_VARIABLES = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_task_oom_retries": str(RETRIES),
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # prevents a warning about a coming change
}
LOOPBACK_VARIABLES = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Setting that makes Ray use 127.0.0.1 as this machine's address and listen to no other machine."""

Answer = TypeVar("Answer")
_LOG_VARIABLE = "RAY_LOG_TO_DRIVER"
_address: str | None = None  # of the cluster that this process is connected to


def connect(address: str) -> None:
    """Connect this process to a cluster, once; `disconnect` or the end of the process undo it.

    Parameters
    ----------
    address : str
        HOST:PORT of the head of a cluster with this machine as a node, or "local": a cluster of this machine alone,
        whose processes listen to this machine only and end with this process.

    Raises
    ------
    InputError
        Ray is not installed, the cluster cannot be reached or has other versions than this process, or the process is
        connected to another cluster.
    """
    global _address
    if _address == address:
        return
    if _address is not None:
        raise InputError(f"this process works with the Ray cluster {_address}; end it before it works with {address}")
    ray = _import_ray(address)
    require(not ray.is_initialized(), "Ray was started in this process already; call ray.shutdown() first")
    _start_local_cluster(ray) if address == LOCAL else _join_cluster(ray, address)
    _address = address
    atexit.register(disconnect)
    try:
        _check_versions()
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


def _import_ray(address: str) -> Any:
    """Import Ray after setting the environment variables that it reads on import."""
    is_local = address == LOCAL or _parse_address(address)[0] in ("localhost", "127.0.0.1", "::1")
    for name, value in (QUIET_VARIABLES | LOOPBACK_VARIABLES if is_local else QUIET_VARIABLES).items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        fact = f"`ray` works with Ray, which cannot be imported here ({error})"
        raise InputError(f"{fact}; run: pip install 'wsabie[ray]'") from error
    return ray


def _parse_address(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise InputError(f"`ray={address!r}` is not the address of a Ray cluster; give HOST:PORT of its head, or local")
    return host.strip("[]"), int(port)


def _start_local_cluster(ray: Any) -> None:
    folder = tempfile.mkdtemp(prefix="wsabie-ray-", dir="/tmp")  # socket names must be short
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    options = {"include_dashboard": False, "num_cpus": count_available_cores(), "_temp_dir": folder}
    try:
        _init_ray(ray, address=LOCAL, **options)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"Ray cannot be started on this machine: {_get_first_line(error)}; leave `ray` out") from error


def _join_cluster(ray: Any, address: str) -> None:
    host, port = _parse_address(address)
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except OSError as error:
        fact = f"no Ray cluster can be reached at {address} ({error})"
        raise InputError(f"{fact}; start one by `ray start --head`, or give the address that it printed") from error
    _check_port(ray, address)
    try:
        _init_ray(ray, address=address)
    except (OSError, RuntimeError, ValueError) as error:
        if "Version mismatch" in str(error):
            details = " ".join(str(error).split())
            raise InputError(f"the Ray cluster {address} has other software than this process: {details}") from error
        raise InputError(
            f"the Ray cluster {address} cannot be joined: {_get_first_line(error)}; this machine has to be a node of "
            f"it: run here `ray start --address={address}`"
        ) from error


def _check_port(ray: Any, address: str) -> None:
    """Refuse a port where another program listens; Ray itself would retry for minutes."""
    outcomes: list[Any] = []  # a client or an error

    def open_client() -> None:
        try:
            outcomes.append(ray._raylet.GcsClient(address=address))
        except Exception as error:
            outcomes.append(error)

    thread = threading.Thread(target=open_client, daemon=True)
    thread.start()
    thread.join(HANDSHAKE_SECONDS)
    if outcomes and isinstance(outcomes[0], ray.exceptions.AuthenticationError):
        raise InputError(
            f"the Ray cluster {address} asks for a token; run: export RAY_AUTH_MODE=token, with the token of its head "
            "in ~/.ray/auth_token of this machine too"
        ) from outcomes[0]
    if not outcomes or isinstance(outcomes[0], Exception):
        raise InputError(f"{address} is not a Ray cluster that this Ray knows; give the address of a head")


def _init_ray(ray: Any, **options: Any) -> None:
    shows_logs = os.environ.get(_LOG_VARIABLE) == "1"
    level = logging.WARNING if shows_logs else logging.CRITICAL
    with _defer_interrupts():
        ray.init(log_to_driver=shows_logs, logging_level=level, **options)
    if not shows_logs:
        # raylets would print their reports among the results
        ray._private.worker.print_to_stdstream = lambda *_, **__: None


@contextmanager
def _defer_interrupts() -> Iterator[None]:
    """Defer Ctrl-C until Ray has started; Ray would lose it, or leave processes behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    previous_handler = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)
    if pressed:
        raise KeyboardInterrupt


def run_on_every_node(function: Callable[..., Answer], *arguments: Any) -> dict[str, Answer]:
    """Run a function on every node and return the answers by the node's name; lost nodes are left out."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    task, references, answers = ray.remote(num_cpus=0)(function), {}, {}
    for node in ray.nodes():
        if node["Alive"]:
            placement = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            name = f"{node['NodeManagerHostname']} ({node['NodeID'][:8]})"
            references[name] = task.options(scheduling_strategy=placement).remote(*arguments)
    for name, reference in references.items():
        try:
            answers[name] = ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            fact = f"{_format_mismatch()}: {_get_first_line(error.cause)}"
            raise InputError(f"{fact}; install the same on every node") from error
        except ray.exceptions.RayError:
            continue
    return answers


def check_paths_on_nodes(paths: Iterable[Path]) -> None:
    """Raise InputError for a path that some node cannot read; for a missing path its folder is checked."""
    existing_paths = []
    for path in map(Path.absolute, paths):
        existing_paths.append(str(next(candidate for candidate in (path, *path.parents) if candidate.exists())))
    for node, unreadable in run_on_every_node(_list_unreadable, existing_paths).items():
        if unreadable:
            fact = f"{unreadable[0]} cannot be read on the node {node} of the Ray cluster"
            raise InputError(f"{fact}; put it on a file system that all nodes have at the same path")


def _list_unreadable(paths: list[str]) -> list[str]:
    return [path for path in paths if not os.access(path, os.R_OK)]


def _check_versions() -> None:
    """Refuse a cluster whose nodes have another version of wsabie or Python."""
    expected = _format_versions()
    for node, versions in run_on_every_node(_format_versions).items():
        if versions != expected:
            fact = f"{_format_mismatch()}: {versions} on {node}, and here {expected}"
            raise InputError(f"{fact}; install the same on every node")


def _format_versions() -> str:
    from wsabie.core.version import VERSION

    return f"wsabie {VERSION} on Python {sys.version_info.major}.{sys.version_info.minor}"


def _format_mismatch() -> str:
    return f"the Ray cluster {_address} has other software than this process"


def explain_worker_loss(error: BaseException) -> str:
    """Summarise Ray's page-long explanation of a lost worker in a few words."""
    from ray.exceptions import ActorUnavailableError, OutOfMemoryError

    message = str(error).strip()
    if isinstance(error, OutOfMemoryError):
        return "its node has too little memory"
    if isinstance(error, ActorUnavailableError):
        return "it cannot be reached"
    if "worker process has died" in message:
        return "its process was killed, perhaps for want of memory"
    if "node has died" in message:
        return "its node is gone"
    return (message.splitlines() or [type(error).__name__])[-1].strip()[:300]


def _get_first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


_QUEUED_PER_CORE = 2  # items sent at a time for each core of the cluster
_RECOUNT_SECONDS = 5.0  # seconds after which the cores are counted again, because nodes come and go
_CACHED_JOBS = 2  # feature extraction and ranking take turns


class RayExecutor(Executor):
    """Executor of maps on the cores of a Ray cluster; items of a lost worker or node run again elsewhere.

    Results are those of one process, in the order of the items. Items are taken lazily, at most two for each core at a
    time. `shared` travels to each node once for each map, and each worker unpacks it once. Linear algebra in a worker
    runs on one thread. An error of the function is raised unchanged.

    Files that items name need the same path on every node; relative paths begin in the folder of the calling process.

    Parameters
    ----------
    address : str
        HOST:PORT of a cluster's head, or "local": all cores of this machine.

    Raises
    ------
    InputError
        Ray is not installed, the cluster cannot be reached or has other versions than this process, or the process is
        connected to another cluster.
    InputError
        While results are taken: a path is relative, and a node lacks the folder that it begins in.
    WorkerError
        While results are taken: an item was lost too often, with its worker or its node.

    Examples
    --------
    >>> with RayExecutor("local") as executor:          # doctest: +SKIP
    ...     list(executor.map(abs, [-1, 2]))
    [1, 2]
    """

    has_persistent_workers = True

    def __init__(self, address: str = LOCAL) -> None:
        connect(address)
        self.address = address

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster; a local one ends."""
        disconnect()

    def map_with(
        self, function: Callable[[Shared, Item], Result], shared: Shared, items: Iterable[Item]
    ) -> Iterator[Result]:
        import ray

        run_item = ray.remote(num_cpus=1, max_retries=RETRIES, retry_exceptions=False)(_run_item)
        job = [ray.put((function, shared)), Path.cwd()]
        waiting: deque[ObjectRef] = deque()

        @cached(TTLCache(1, _RECOUNT_SECONDS))
        def count_cores() -> int:
            return max(1, int(ray.cluster_resources().get("CPU", 1)))

        try:
            for item in items:
                waiting.append(run_item.remote(job, item))
                while len(waiting) >= _QUEUED_PER_CORE * count_cores():
                    yield _fetch_result(ray, waiting.popleft())
            while waiting:
                yield _fetch_result(ray, waiting.popleft())
        finally:
            # After an error or an early stop. Without the check, Ray would start another cluster if this one has ended.
            for reference in waiting if ray.is_initialized() else ():
                ray.cancel(reference)


def _fetch_result(ray: Any, reference: "ObjectRef") -> Any:
    """Return a copy of a result, because Ray's is read-only and holds its memory."""
    try:
        return deepcopy(ray.get(reference))
    except ray.exceptions.RayTaskError as error:
        raise (error.cause if isinstance(error.cause, Exception) else error) from None
    except ray.exceptions.OutOfMemoryError as error:
        fact = "a node of the Ray cluster has too little memory for its workers"
        raise WorkerError(f"{fact}; start it with fewer cores (ray start --num-cpus N)") from error
    except ray.exceptions.RayError as error:
        fact = f"the Ray cluster lost an item {RETRIES + 1} times, with its worker or its node ({type(error).__name__})"
        raise WorkerError(f"{fact}; look at the cluster and run again") from error


# ---- in a worker


def _run_item(job: list["ObjectRef"], item: Any) -> Any:
    (job_reference, folder), missing_folder = job, None
    try:
        os.chdir(folder)  # the working folder of the process that sent the job
    except OSError:
        missing_folder = folder
    function, shared = _unpack_job(job_reference, missing_folder)
    if missing_folder is not None:
        _refuse_relative(item, missing_folder)
    return function(shared, item)


@cached(LRUCache(_CACHED_JOBS), key=lambda job, _: job.hex())
def _unpack_job(job: Any, missing_folder: Path | None) -> Any:
    """Return the function and shared value of a job; `missing_folder` is its folder if it is missing here."""
    import ray

    contents = deepcopy(ray.get(job))  # Ray's copy is read-only
    if missing_folder is not None:
        _refuse_relative(contents, missing_folder)
    disable_blas_threads()  # afterwards, because unpacking imports libraries
    return contents


def _refuse_relative(value_to_send: object, folder: Path) -> None:
    """Raise InputError for a relative path whose folder is missing on this node."""
    # the path would name another file or none, and pictures would count as broken; the pickler visits every value
    import ray

    class PathChecker(ray.cloudpickle.CloudPickler):  # type: ignore[misc]
        def persistent_id(self, value: object) -> None:
            if isinstance(value, PurePath) and not value.is_absolute():
                raise InputError(
                    f"{value} begins in the folder {folder}, which the node {ray.util.get_node_ip_address()} of the "
                    "Ray cluster does not have at this path; put it where all nodes see it, or give absolute paths"
                )

    PathChecker(SimpleNamespace(write=len)).dump(value_to_send)
