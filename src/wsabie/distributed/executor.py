"""Maps on a Ray cluster: results in order, a few items at a time, as in `wsabie.base.executor`."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import Any, Self

from wsabie.base.errors import InputError
from wsabie.base.executor import Item, Result, Shared, WorkerError, compute_on_one_thread
from wsabie.distributed.cluster import LOCAL, RETRIES, connect, disconnect

_AHEAD = 2  # items handed out for each core of the cluster
_COUNTED = 5.0  # seconds after which the cluster's cores are counted again: nodes come and go


class Ray:
    """Runs maps on the cores of a Ray cluster; what is lost with a worker or a node runs again elsewhere.

    Results are those of `Serial`, in the order of the items, which are taken lazily: at most two for each core are
    under way. `shared` travels to each node once for each map, and is unpacked once by each worker. Linear algebra in a
    worker runs on one thread. An error of the function comes out as it was raised.

    Files that items name have to lie at the same path on every node; relative paths begin in the folder of the process
    that asks.

    Parameters
    ----------
    address : str
        HOST:PORT of a cluster's head, or "local": all cores of this machine.

    Raises
    ------
    InputError
        As `wsabie.distributed.cluster.connect`.
    InputError
        While results are taken: a path is relative, and a node lacks the folder in which it begins.
    WorkerError
        While results are taken: an item was lost again and again, with its worker or its node.

    Examples
    --------
    >>> with Ray("local") as executor:          # doctest: +SKIP
    ...     list(executor.map(abs, [-1, 2]))
    [1, 2]
    """

    standing = True

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

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        return self._run(_Alone(function), None, items)

    def map_with(
        self, function: Callable[[Shared, Item], Result], shared: Shared, items: Iterable[Item]
    ) -> Iterator[Result]:
        return self._run(function, shared, items)

    def _run(self, function: Callable[[Any, Item], Result], shared: Any, items: Iterable[Item]) -> Iterator[Result]:
        import ray

        work = ray.remote(num_cpus=1, max_retries=RETRIES, retry_exceptions=False)(_work)
        job, cores = [ray.put((function, shared)), Path.cwd()], _Cores(ray)
        waiting: deque[Any] = deque()
        try:
            for item in items:
                waiting.append(work.remote(job, item))
                while len(waiting) >= _AHEAD * cores.now():
                    yield _result(ray, waiting.popleft())
            while waiting:
                yield _result(ray, waiting.popleft())
        finally:
            # Left early, by an error or by who takes the results. Where the cluster has ended, Ray would start another.
            for one in waiting if ray.is_initialized() else ():
                ray.cancel(one)


class _Alone:
    """A function of an item, as one of something shared and an item."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, _: None, item: Any) -> Any:
        return self.function(item)


class _Cores:
    """How many cores the cluster has, which is asked for now and then."""

    def __init__(self, ray: Any) -> None:
        self.ray, self.counted, self.cores = ray, -_COUNTED, 1

    def now(self) -> int:
        if time.monotonic() - self.counted >= _COUNTED:
            self.cores = max(1, int(self.ray.cluster_resources().get("CPU", 1)))
            self.counted = time.monotonic()
        return self.cores


def _result(ray: Any, one: Any) -> Any:
    """A result of its own: what Ray hands out cannot be written, and holds its memory."""
    try:
        return deepcopy(ray.get(one))
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

_JOBS = 2  # that are kept: items are described and ranked in turns
_kept: dict[str, Any] = {}  # jobs unpacked, the last one asked for behind the others


def _work(job: list[Any], item: Any) -> Any:
    sent, folder = job
    lacking = None if _is_entered(folder) else folder
    function, shared = _unpacked(sent, lacking)
    if lacking is not None:
        _refuse_relative(item, lacking)
    return function(shared, item)


def _is_entered(folder: Path) -> bool:
    """Whether this process works where the one does that sent the job; else it would stay where Ray was started."""
    try:
        os.chdir(folder)
    except OSError:
        return False
    return True


def _unpacked(job: Any, lacking: Path | None = None) -> Any:
    """The function of a job and what is shared; `lacking`: the folder of the job, which is not here."""
    name = job.hex()
    found = _kept.pop(name, None)
    if found is None:
        import ray

        if len(_kept) >= _JOBS:
            del _kept[next(iter(_kept))]
        found = deepcopy(ray.get(job))  # what Ray hands out cannot be written
        if lacking is not None:
            _refuse_relative(found, lacking)
        compute_on_one_thread()  # behind it, because libraries come with what is unpacked
    _kept[name] = found
    return found


def _refuse_relative(sent: Any, folder: Path) -> None:
    """Raise InputError where a path is relative and the folder that it begins in is not here: it would name something
    else, or nothing, and pictures would be counted as broken. The pickler goes through all that can be sent.
    """
    import ray

    class Looking(ray.cloudpickle.CloudPickler):  # type: ignore[misc]
        def persistent_id(self, one: Any) -> None:
            if isinstance(one, PurePath) and not one.is_absolute():
                raise InputError(
                    f"{one} begins in the folder {folder}, which the node {ray.util.get_node_ip_address()} of the Ray "
                    "cluster does not have at this path; put it where all nodes see it, or give absolute paths"
                )

    Looking(SimpleNamespace(write=len)).dump(sent)
