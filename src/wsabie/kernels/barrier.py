"""Where the threads of one kernel wait for each other, without Python in between.

A block of the deterministic loop takes about a millisecond and the threads meet twice in it; waking a thread of a pool
takes a tenth of that, so they watch each other's counters instead. numba offers no atomic access on the CPU, LLVM does.
"""

import os
from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from wsabie.kernels._jit import INLINE, cold

_PATIENCE = 1000  # looks at a counter before the core is offered to others; there may be fewer cores than threads
_yield = types.ExternalFunction("sched_yield", types.int32())


def read(counts: Any, t: int) -> Any:
    """counts[t, 0], and what its thread wrote before it."""
    return counts[t, 0]


def write(counts: Any, t: int, value: int) -> Any:
    """counts[t, 0] = value, after everything that this thread wrote before."""
    counts[t, 0] = value


def give_way() -> Any:
    """Let another thread have the core."""
    os.sched_yield()


def _address(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The pointer to counts[t, 0]."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    where = [arguments[1], context.get_constant(types.intp, 0)]
    return cgutils.get_item_pointer(context, builder, signature.args[0], array, where)


@intrinsic
def _read_acquire(typing: Any, counts: Any, t: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_address(context, builder, signature, arguments), "acquire", 8)

    return types.int64(counts, types.intp), code


@intrinsic
def _write_release(typing: Any, counts: Any, t: Any, value: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], _address(context, builder, signature, arguments), "release", 8)
        return context.get_dummy_value()

    return types.void(counts, types.intp, types.int64), code


@overload(read, jit_options=INLINE)
def _read(counts, t):
    return lambda counts, t: _read_acquire(counts, t)


@overload(write, jit_options=INLINE)
def _write(counts, t, value):
    return lambda counts, t, value: _write_release(counts, t, value)


@overload(give_way, jit_options=INLINE)
def _give_way():
    return lambda: _yield()


@cold
def meet(counts, t):
    """Wait until every thread has been here as often as thread t; False: leave, for somebody will not come.

    `counts`, (threads + 1, 16) int64, begins with zeros. Whoever writes anything else into the last row calls it off.
    """
    n = len(counts) - 1
    turn = read(counts, t) + 1
    write(counts, t, turn)
    for u in range(n):
        looks = 0
        while read(counts, u) < turn:
            if read(counts, n) != 0:
                return False
            looks += 1
            if looks > _PATIENCE:
                give_way()
    return read(counts, n) == 0
