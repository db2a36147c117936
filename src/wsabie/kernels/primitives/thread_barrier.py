"""Barrier at which the threads of one kernel wait for each other, without Python in between.

A block of the deterministic loop takes about a millisecond and the threads meet twice in it; waking a thread of a pool
takes a tenth of that, so they watch each other's counters instead. numba offers no atomic access on the CPU, LLVM does.
"""

import os
from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from wsabie.kernels.compiler import INLINE, jit_noinline

_PATIENCE = 1000  # looks at a counter before the core is offered to others; there may be fewer cores than threads
_yield = types.ExternalFunction("sched_yield", types.int32())


def read_counter(counts: Any, t: int) -> Any:
    """Return counts[t, 0] and acquire what its thread wrote before."""
    return counts[t, 0]


def write_counter(counts: Any, t: int, value: int) -> Any:
    """Set counts[t, 0] and release everything that this thread wrote before."""
    counts[t, 0] = value


def yield_core() -> Any:
    """Yield the core to another thread."""
    os.sched_yield()


def _address(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the pointer to counts[t, 0]."""
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


@overload(read_counter, jit_options=INLINE)
def _overload_read_counter(counts, t):
    return lambda counts, t: _read_acquire(counts, t)


@overload(write_counter, jit_options=INLINE)
def _overload_write_counter(counts, t, value):
    return lambda counts, t, value: _write_release(counts, t, value)


@overload(yield_core, jit_options=INLINE)
def _give_way():
    return lambda: _yield()


@jit_noinline
def wait_for_threads(counts, t):
    """Wait until every thread has arrived as often as thread t; return False if a thread will not come.

    `counts`, (threads + 1, 16) int64, begins with zeros. Any other number in the last row cancels the wait.
    """
    n = len(counts) - 1
    turn = read_counter(counts, t) + 1
    write_counter(counts, t, turn)
    for u in range(n):
        looks = 0
        while read_counter(counts, u) < turn:
            if read_counter(counts, n) != 0:
                return False
            looks += 1
            if looks > _PATIENCE:
                yield_core()
    return read_counter(counts, n) == 0
