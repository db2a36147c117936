"""Client addresses that count as one caller, for shares and rates."""

from functools import lru_cache
from ipaddress import ip_address


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
