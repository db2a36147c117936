"""Number of threads of a computation: its limit, and the number that None means."""

from wsabie.core.machine import count_available_cores

MAX_THREADS = 1024


def resolve_threads(threads: int | None) -> int:
    """Return the number of threads; None: all cores that this process may use.

    Examples
    --------
    >>> resolve_threads(3), resolve_threads(None) >= 1
    (3, True)
    """
    return threads or count_available_cores()
