"""Numbers of 16 bits, read as halves to save memory traffic and computed as float32.

numba has no float16, so that a table of halves is given as uint16, the same bits; only its type tells kernels what it
is, so that one source serves both widths.
"""

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

from wsabie.kernels.compiler import INLINE


def to_float32(x):
    """Return a float32, or the half in 16 bits, as float32."""
    return np.uint16(x).view(np.float16).astype(np.float32) if isinstance(x, np.uint16) else x


@intrinsic
def _widened(_, bits):
    def widened(context, builder, signature, arguments):
        half = builder.bitcast(arguments[0], ir.HalfType())
        return builder.fpext(half, ir.FloatType())

    return types.float32(types.uint16), widened


@overload(to_float32, jit_options=INLINE)
def _number(x):
    if x == types.uint16:
        return lambda x: _widened(x)
    return lambda x: x
