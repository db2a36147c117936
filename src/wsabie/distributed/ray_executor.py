"""Executor on a Ray cluster: results in order, a few items at a time, as in `wsabie.core.execution`."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import lru_cache
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

from wsabie.core.errors import InputError
from wsabie.core.execution import Executor, Item, Result, Shared, WorkerError, disable_blas_threads
from wsabie.distributed.ray_cluster import LOCAL, RETRIES, connect, disconnect

if TYPE_CHECKING:
    from ray import ObjectRef

_QUEUED_PER_CORE = 2  # items sent at a time for each core of the cluster
_RECOUNT_SECONDS = 5.0  # seconds after which the cores are counted again, because nodes come and go
_CACHED_JOBS = 2  # feature extraction and ranking take turns
_job_cache: dict[str, object] = {}  # unpacked jobs, the last used one at the end


class RayExecutor(Executor):
    """Executor of maps on the cores of a Ray cluster; items of a lost worker or node run again elsewhere.

    Results are those of `Serial`, in the order of the items. Items are taken lazily, at most two for each core at a
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
        See `wsabie.distributed.ray_cluster.connect`.
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

        @lru_cache(1)
        def count_cores(period: int) -> int:
            return max(1, int(ray.cluster_resources().get("CPU", 1)))

        try:
            for item in items:
                waiting.append(run_item.remote(job, item))
                while len(waiting) >= _QUEUED_PER_CORE * count_cores(int(time.monotonic() / _RECOUNT_SECONDS)):
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
        raise WorkerError(
            "a node of the Ray cluster has too little memory for its workers; start it with fewer cores "
            "(ray start --num-cpus N)"
        ) from error
    except ray.exceptions.RayError as error:
        raise WorkerError(
            f"the Ray cluster lost an item {RETRIES + 1} times, with its worker or its node "
            f"({type(error).__name__}); look at the cluster and run again"
        ) from error


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


def _unpack_job(job: Any, missing_folder: Path | None = None) -> Any:
    """Return the function and shared value of a job; `missing_folder` is its folder if it is missing here."""
    name = job.hex()
    contents = _job_cache.pop(name, None)
    if contents is None:
        import ray

        if len(_job_cache) >= _CACHED_JOBS:
            del _job_cache[next(iter(_job_cache))]
        contents = deepcopy(ray.get(job))  # Ray's copy is read-only
        if missing_folder is not None:
            _refuse_relative(contents, missing_folder)
        disable_blas_threads()  # afterwards, because unpacking imports libraries
    _job_cache[name] = contents
    return contents


def _refuse_relative(value_to_send: object, folder: Path) -> None:
    """Raise InputError for a relative path whose folder is missing on this node.

    The path would name another file or none, and pictures would count as broken. The pickler visits every value.
    """
    import ray

    class PathChecker(ray.cloudpickle.CloudPickler):  # type: ignore[misc]
        def persistent_id(self, value: object) -> None:
            if isinstance(value, PurePath) and not value.is_absolute():
                raise InputError(
                    f"{value} begins in the folder {folder}, which the node {ray.util.get_node_ip_address()} of the "
                    "Ray cluster does not have at this path; put it where all nodes see it, or give absolute paths"
                )

    PathChecker(SimpleNamespace(write=len)).dump(value_to_send)
