"""Where a number stands among ascending ones."""

from wsabie.kernels._jit import jit


@jit
def first_at_least(ascending, lo, hi, value):
    """The first place from lo on whose number is not below `value`; hi where all are."""
    while lo < hi:
        middle = (lo + hi) >> 1
        if ascending[middle] < value:
            lo = middle + 1
        else:
            hi = middle
    return lo
