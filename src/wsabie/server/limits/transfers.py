"""Slots for uploads and long answers; if none is free, the slowest transfer makes room."""

import asyncio

from wsabie.server.limits.slots import SlotPool

WINDOW = 10.0
"""Seconds over which the speed of a client is measured."""
_MIN_WAIT = 1.0  # seconds of waiting before a client can count as slow


class Transfer:
    """Upload or answer in progress: its bytes in this window, and the time spent waiting for them."""

    def __init__(self, caller: str, limit: asyncio.Timeout) -> None:
        self.caller, self.limit = caller, limit
        self.size, self.waited, self.since = 0, 0.0, 0.0

    def begin_wait(self, now: float) -> None:
        """Note that the service starts waiting for the client."""
        self.since = now

    def end_wait(self, now: float, size: int, rate: float) -> None:
        """Note that `size` bytes were transferred; a new window begins after enough of them."""
        self.waited += now - self.since
        self.since = 0.0
        self.size += size
        if self.size >= rate * WINDOW:
            self.size, self.waited = 0, 0.0

    def speed(self, now: float) -> float:
        """Return bytes a second in this window; infinity while it is too new to tell."""
        waited = self.waited + (now - self.since if self.since else 0.0)
        return self.size / waited if waited > _MIN_WAIT else float("inf")


class TransferPool(SlotPool):
    """Slots for transfers; if none is free, the slowest transfer below the lowest rate is ended.

    Parameters
    ----------
    n_slots : int
    share : float
    min_rate : float
        Lowest rate, in bytes a second.
    """

    def __init__(self, n_slots: int, share: float, min_rate: float) -> None:
        super().__init__(n_slots, share)
        self.min_rate = min_rate
        self.open: set[Transfer] = set()

    def begin(self, caller: str, limit: asyncio.Timeout) -> Transfer | None:
        """Give a slot to a transfer, which `limit` ends if another needs it; return None if there is none."""
        if not self.acquire(caller) and not (self._end_slowest(caller) and self.acquire(caller)):
            return None
        transfer = Transfer(caller, limit)
        self.open.add(transfer)
        return transfer

    def end(self, transfer: Transfer) -> None:
        """Release the slot of a transfer, if it still has one."""
        if transfer in self.open:
            self.open.remove(transfer)
            self.release(transfer.caller)

    def _end_slowest(self, caller: str) -> bool:
        now = asyncio.get_running_loop().time()
        has_share = self.has_share(caller)
        rivals = [
            rival for rival in self.open if not rival.limit.expired() and (not has_share or rival.caller == caller)
        ]
        slowest = min(rivals, key=lambda rival: rival.speed(now), default=None)
        if slowest is None or slowest.speed(now) >= self.min_rate:
            return False
        slowest.limit.reschedule(now)
        self.end(slowest)
        return True
