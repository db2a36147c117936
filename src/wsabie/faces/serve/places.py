"""Places that requests and connections take: so many, of each caller a share, and the slowest makes room."""

import asyncio
from collections import Counter

WINDOW = 10.0
"""Seconds over which it is seen how fast a client sends or reads."""
_NEW = 1.0  # seconds of waiting before which nobody is called slow


class Places:
    """A number of places, of which each caller may have a share.

    Parameters
    ----------
    most : int
    share : float
        Of all places, for each caller; at least one. A caller "" has no such limit.

    Examples
    --------
    >>> places = Places(4, 0.5)
    >>> [places.take(caller) for caller in ("eve", "eve", "eve", "adam", "", "")]
    [True, True, False, True, True, False]
    """

    def __init__(self, most: int, share: float = 1.0) -> None:
        self.most, self.each = most, max(1, int(most * share))
        self.count = 0
        self.counts: Counter[str] = Counter()

    def is_full(self, caller: str) -> bool:
        """Return whether there is no place for this caller."""
        return self.count >= self.most or self.has_share(caller)

    def has_share(self, caller: str) -> bool:
        """Return whether this caller has all the places that one may have."""
        return caller != "" and self.counts[caller] >= self.each

    def take(self, caller: str) -> bool:
        """Give a place to a caller, and return whether there was one."""
        if self.is_full(caller):
            return False
        self.count += 1
        self.counts[caller] += 1
        return True

    def leave(self, caller: str) -> None:
        """Take a place back."""
        self.count -= 1
        self.counts[caller] -= 1
        if not self.counts[caller]:
            del self.counts[caller]


class Transfer:
    """A body that comes, or an answer that goes: what went of it in this window, and how long that was waited for."""

    def __init__(self, caller: str, limit: asyncio.Timeout) -> None:
        self.caller, self.limit = caller, limit
        self.size, self.waited, self.since = 0, 0.0, 0.0

    def begin_wait(self, now: float) -> None:
        """Note that the client is waited for."""
        self.since = now

    def end_wait(self, now: float, size: int, rate: float) -> None:
        """Note that `size` bytes went; a window that had enough of them is followed by a new one."""
        self.waited += now - self.since
        self.since = 0.0
        self.size += size
        if self.size >= rate * WINDOW:
            self.size, self.waited = 0, 0.0

    def speed(self, now: float) -> float:
        """Return bytes a second in this window; infinity while it is too new to tell."""
        waited = self.waited + (now - self.since if self.since else 0.0)
        return self.size / waited if waited > _NEW else float("inf")


class Transfers(Places):
    """Places for transfers; where there is none, the slowest below the lowest rate is ended and makes room.

    Parameters
    ----------
    most : int
    share : float
    rate : float
        Lowest rate, in bytes a second.
    """

    def __init__(self, most: int, share: float, rate: float) -> None:
        super().__init__(most, share)
        self.rate = rate
        self.open: set[Transfer] = set()

    def begin(self, caller: str, limit: asyncio.Timeout) -> Transfer | None:
        """Give a place to a transfer, which `limit` ends where another needs it; None: there is none."""
        if not self.take(caller) and not (self._end_slowest(caller) and self.take(caller)):
            return None
        transfer = Transfer(caller, limit)
        self.open.add(transfer)
        return transfer

    def end(self, transfer: Transfer) -> None:
        """Take its place back, if it still has it."""
        if transfer in self.open:
            self.open.remove(transfer)
            self.leave(transfer.caller)

    def _end_slowest(self, caller: str) -> bool:
        now = asyncio.get_running_loop().time()
        own = self.has_share(caller)
        rivals = [one for one in self.open if not one.limit.expired() and (not own or one.caller == caller)]
        slowest = min(rivals, key=lambda one: one.speed(now), default=None)
        if slowest is None or slowest.speed(now) >= self.rate:
            return False
        slowest.limit.reschedule(now)
        self.end(slowest)
        return True
