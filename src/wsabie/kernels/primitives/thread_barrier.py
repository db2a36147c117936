"""Barrier for threads that meet often.

They watch each other's counters, because waking a thread of a pool takes longer than the work between two meetings.

numba offers no atomic access on the CPU, LLVM does. Without the compiler, counters are plain reads and writes.
"""

import os

from llvmlite import ir
from numba import types
from numba.core import cgutils

from wsabie.kernels.compiler import jit_noinline
from wsabie.kernels.simd.lowering import INT, lower

_MAX_SPINS = 1000
"""Reads of a counter before the thread yields its core; there may be fewer cores than threads."""


def read_counter(counts, t):
    """Return counts[t, 0] and acquire what its thread wrote before."""
    return counts[t, 0]


def write_counter(counts, t, value):
    """Set counts[t, 0] and release everything that this thread wrote before."""
    counts[t, 0] = value


def yield_core():
    """Yield the core to another thread."""
    os.sched_yield()


def _address(context, builder, signature, arguments):
    """Return the pointer to counts[t, 0]."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    indices = [arguments[1], context.get_constant(types.intp, 0)]
    return cgutils.get_item_pointer(context, builder, signature.args[0], array, indices)


@lower(read_counter, lambda counts, t: types.int64(counts, types.intp))
def _(context, builder, signature, arguments):
    return builder.load_atomic(_address(context, builder, signature, arguments), "acquire", 8)


@lower(write_counter, lambda counts, t, value: types.void(counts, types.intp, types.int64))
def _(context, builder, signature, arguments):
    builder.store_atomic(arguments[2], _address(context, builder, signature, arguments), "release", 8)
    return context.get_dummy_value()


@lower(yield_core, lambda: types.void())
def _(context, builder, signature, arguments):
    function_type = ir.FunctionType(INT, [])
    builder.call(cgutils.get_or_insert_function(builder.module, function_type, "sched_yield"), [])
    return context.get_dummy_value()


@jit_noinline
def wait_for_threads(counts, t):
    """Wait until every thread has arrived as often as thread t; return False if a thread will not come.

    `counts`, (threads + 1, 16) int64, begins with zeros. Any other number in the last row cancels the wait.
    """
    n = len(counts) - 1
    turn = read_counter(counts, t) + 1
    write_counter(counts, t, turn)
    for u in range(n):
        spins = 0
        while read_counter(counts, u) < turn:
            if read_counter(counts, n) != 0:
                return False
            spins += 1
            if spins > _MAX_SPINS:
                yield_core()
    return read_counter(counts, n) == 0
