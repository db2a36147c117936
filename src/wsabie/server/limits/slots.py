"""Slots for requests, connections and transfers, with a share for each caller."""

import asyncio
from collections import Counter
from functools import lru_cache
from ipaddress import ip_address

WINDOW = 10.0
"""Seconds over which the speed of a client is measured."""
_MIN_WAIT = 1.0  # seconds of waiting before a client can count as slow


class SlotPool:
    """Limited number of slots, of which each caller may take a share.

    Parameters
    ----------
    n_slots : int
    share : float
        Share of the slots for each caller, at least one slot. The caller "" has no such limit.

    Examples
    --------
    >>> slots = SlotPool(4, 0.5)
    >>> [slots.acquire(caller) for caller in ("eve", "eve", "eve", "adam", "", "")]
    [True, True, False, True, True, False]
    """

    def __init__(self, n_slots: int, share: float = 1.0) -> None:
        self.n_slots, self.share = n_slots, max(1, int(n_slots * share))
        self.n_taken = 0
        self.counts: Counter[str] = Counter()

    def is_full(self, caller: str) -> bool:
        """Return True if there is no slot for this caller."""
        return self.n_taken >= self.n_slots or self.has_share(caller)

    def has_share(self, caller: str) -> bool:
        """Return True if this caller has its full share of slots."""
        return caller != "" and self.counts[caller] >= self.share

    def acquire(self, caller: str) -> bool:
        """Give a slot to a caller; return False if there is none."""
        if self.is_full(caller):
            return False
        self.n_taken += 1
        self.counts[caller] += 1
        return True

    def release(self, caller: str) -> None:
        """Release a slot."""
        self.n_taken -= 1
        self.counts[caller] -= 1
        if not self.counts[caller]:
            del self.counts[caller]


def get_caller_address(client: tuple[str, int] | None) -> str:
    """Return the address that counts for a client; "" for this machine, where a proxy forwards everybody.

    For IPv6 it is the network, since a client usually has all addresses of its network.

    Examples
    --------
    >>> (
    ...     get_caller_address(("192.0.2.7", 1)),
    ...     get_caller_address(("2001:db8::7", 1)),
    ...     get_caller_address(("::ffff:127.0.0.1", 1)),
    ... )
    ('192.0.2.7', '2001:db8::', '')
    """
    return _network(client[0]) if client else ""


@lru_cache(1024)
def _network(host: str) -> str:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return ""
    if address.version == 6 and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.is_loopback:
        return ""
    return str(address) if address.version == 4 else str(ip_address(int(address) >> 64 << 64))


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
