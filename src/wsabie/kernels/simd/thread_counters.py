"""Counters by which the threads of a kernel meet without leaving it, and the yield of a core.

A block of training takes about a millisecond and the threads meet twice in it. They watch each other's counters,
because waking a thread of a pool takes longer than the work between two meetings. A return to Python after each phase
cost a fifth of the training rate on two threads.

numba has no atomic access on the CPU, LLVM does. Without it a compiler may read a counter once and wait for ever, or
move the writes to a table behind the counter that announces them. The plain fallback reads and writes the array:
Python runs it, and there every access is made in order.
"""

import os

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from wsabie.core.arrays import Int64
from wsabie.kernels.simd.lowering import INT, lower


def allocate_counters(threads: int) -> Int64:
    """Return a counter per thread and one that cancels, (threads + 1, 16): zeros, a cache line each."""
    return np.zeros((threads + 1, 16), np.int64)


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
