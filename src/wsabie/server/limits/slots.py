"""Slots for requests and connections, with a share for each caller."""

from collections import Counter
from functools import lru_cache
from ipaddress import ip_address


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
