"""Binary search in ascending numbers."""

from wsabie.kernels.compiler import jit


@jit
def find_first_at_least(ascending, lo, hi, value):
    """Return the first place from lo on whose number is not below `value`; hi where all are."""
    while lo < hi:
        middle = (lo + hi) >> 1
        if ascending[middle] < value:
            lo = middle + 1
        else:
            hi = middle
    return lo
