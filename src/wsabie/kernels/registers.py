"""Points that stay in vector registers from one row of a table to the next.

A loop over the numbers of a vector writes its sum to memory for every row that is added, because the compiler cannot
know that the sum is no part of the table, and it takes half of the width of a register where a processor has 512 bits.
So what is summed over many rows is a value here, of a type that says how many vectors of `LANES` floats it has.

Without the compiler a point is a NumPy array, and every function below does as it is written.
"""

from functools import reduce
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload, register_model

from wsabie.base.arrays import LANES
from wsabie.kernels._jit import INLINE

_FLOAT, _INT = ir.FloatType(), ir.IntType(32)
_VECTOR = ir.VectorType(_FLOAT, LANES)
_INTS, _BYTES = (ir.VectorType(ir.IntType(bits), LANES) for bits in (32, 8))
_CHAINS = 4  # sums that a product is taken in: each waits for its last addition
_LINE = 64  # bytes that come into the cache together
_TO_READ, _FIRST_LEVEL, _DATA = 0, 3, 1  # of llvm.prefetch
_FUSED, _ANY_ORDER = ("contract",), ("reassoc", "nsz", "contract")


class Point(types.Type):
    """`n` vectors of LANES floats."""

    def __init__(self, n: int) -> None:
        self.n = n
        super().__init__(name=f"Point({n})")


@register_model(Point)
class _PointModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, point: Point) -> None:
        super().__init__(manager, point, ir.ArrayType(_VECTOR, point.n))


# ---- what each does, and does without the compiler


def nothing(width):
    """The origin."""
    return np.zeros(LANES * len(width), np.float32)


def load(a, width):
    """The point that an array begins with."""
    return np.array(a[: LANES * len(width)])


def store(a, point):
    """Write a point to where an array begins."""
    a[: len(point)] = point


def plus(point, scale, other):
    """point + scale * other."""
    return point + scale * other


def times(point, factor):
    """point * factor."""
    return point * factor


def inner(a, b):
    """sum_k a_k b_k."""
    return np.float32(np.dot(a, b))


def any_beyond(point, number):
    """Whether a coordinate is larger than a number, or is NaN."""
    return bool((~(point <= number)).any())


def largest(point):
    """max_k |a_k|."""
    return np.abs(point).max()


def load_bytes(a, width):
    """The point whose coordinates are the bytes that an array begins with."""
    return a[: LANES * len(width)].astype(np.float32)


def ask_for_bytes(a, width):
    """Have the bytes of a point brought into the cache, without waiting for them."""


def store_bytes(a, point):
    """Write the integers nearest to the coordinates, which lie between -127 and 127, to where an array begins."""
    a[: len(point)] = np.rint(point).astype(np.int8)


# ---- the same in registers


def _refuse_others(a, dtype=types.float32):
    """Nothing but numbers of one type, one after the other, can be read as vectors."""
    if not (isinstance(a, types.Array) and a.dtype == dtype and a.ndim == 1 and a.layout == "C"):
        raise TypingError(f"a point lies in a row of {dtype}, not in {a}")


def _lines(context, builder, kind, array, vector=_VECTOR):
    """The address of an array as that of vectors."""
    return builder.bitcast(context.make_array(kind)(context, builder, array).data, vector.as_pointer())


def _everywhere(builder, number):
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, _INT(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES))


def _vectors(builder, point):
    return [builder.extract_value(point, k) for k in range(point.type.count)]


def _packed(builder, vectors):
    point = ir.Constant(ir.ArrayType(_VECTOR, len(vectors)), ir.Undefined)
    for k, vector in enumerate(vectors):
        point = builder.insert_value(point, vector, k)
    return point


def _fused(builder, a, b, c):
    """a * b + c, in one instruction where there is one."""
    return builder.fadd(builder.fmul(a, b, flags=_FUSED), c, flags=_FUSED)


def _built_in(builder, name, result, *arguments):
    """What LLVM brings along for vectors of LANES floats."""
    kind = ir.FunctionType(result, arguments)
    return cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f32")


@intrinsic
def _nothing(_, width):
    point = Point(len(width))

    def code(context, builder, signature, arguments):
        return ir.Constant(ir.ArrayType(_VECTOR, point.n), None)

    return point(width), code


@intrinsic
def _load(_, a, width):
    _refuse_others(a)
    point = Point(len(width))

    def code(context, builder, signature, arguments):
        lines = _lines(context, builder, signature.args[0], arguments[0])
        return _packed(builder, [builder.load(builder.gep(lines, [_INT(k)]), align=4) for k in range(point.n)])

    return point(a, width), code


@intrinsic
def _store(_, a, point):
    _refuse_others(a)

    def code(context, builder, signature, arguments):
        lines = _lines(context, builder, signature.args[0], arguments[0])
        for k, vector in enumerate(_vectors(builder, arguments[1])):
            builder.store(vector, builder.gep(lines, [_INT(k)]), align=4)
        return context.get_dummy_value()

    return types.void(a, point), code


@intrinsic
def _plus(_, point, scale, other):
    def code(context, builder, signature, arguments):
        into, number, of = arguments
        factor = _everywhere(builder, number)
        pairs = zip(_vectors(builder, of), _vectors(builder, into), strict=True)
        return _packed(builder, [_fused(builder, factor, b, a) for b, a in pairs])

    return point(point, types.float32, other), code


@intrinsic
def _times(_, point, factor):
    def code(context, builder, signature, arguments):
        factor = _everywhere(builder, arguments[1])
        return _packed(builder, [builder.fmul(vector, factor) for vector in _vectors(builder, arguments[0])])

    return point(point, types.float32), code


@intrinsic
def _inner(_, a, b):
    def code(context, builder, signature, arguments):
        pairs = list(zip(*(_vectors(builder, point) for point in arguments), strict=True))
        chains = [builder.fmul(*pair) for pair in pairs[:_CHAINS]]
        for k, pair in enumerate(pairs[_CHAINS:]):
            chains[k % _CHAINS] = _fused(builder, pair[0], pair[1], chains[k % _CHAINS])
        while len(chains) > 1:
            chains = [
                builder.fadd(*chains[k : k + 2]) if k + 1 < len(chains) else chains[k] for k in range(0, len(chains), 2)
            ]
        across = _built_in(builder, "vector.reduce.fadd", _FLOAT, _FLOAT, _VECTOR)
        return builder.call(across, [_FLOAT(0.0), chains[0]], fastmath=_ANY_ORDER)

    return types.float32(a, b), code


@intrinsic
def _any_beyond(_, point, number):
    def code(context, builder, signature, arguments):
        limit = _everywhere(builder, arguments[1])
        found = [builder.fcmp_unordered(">", vector, limit) for vector in _vectors(builder, arguments[0])]
        bits = builder.bitcast(reduce(builder.or_, found), ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))

    return types.boolean(point, types.float32), code


@intrinsic
def _largest(_, point):
    def code(context, builder, signature, arguments):
        size, larger = (_built_in(builder, *told) for told in (("fabs", _VECTOR, _VECTOR), ("maxnum", *[_VECTOR] * 3)))
        sizes = [builder.call(size, [vector]) for vector in _vectors(builder, arguments[0])]
        across = _built_in(builder, "vector.reduce.fmax", _FLOAT, _VECTOR)
        return builder.call(across, [reduce(lambda a, b: builder.call(larger, [a, b]), sizes)])

    return types.float32(point), code


@intrinsic
def _load_bytes(_, a, width):
    _refuse_others(a, types.int8)
    point = Point(len(width))

    def code(context, builder, signature, arguments):
        lines = _lines(context, builder, signature.args[0], arguments[0], _BYTES)
        numbers = [builder.load(builder.gep(lines, [_INT(k)]), align=1) for k in range(point.n)]
        return _packed(builder, [builder.sitofp(builder.sext(number, _INTS), _VECTOR) for number in numbers])

    return point(a, width), code


@intrinsic
def _ask_for_bytes(_, a, width):
    _refuse_others(a, types.int8)

    def code(context, builder, signature, arguments):
        first = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        kind = ir.FunctionType(ir.VoidType(), [first.type, *[_INT] * 3])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        for byte in range(0, LANES * len(width), _LINE):
            builder.call(prefetch, [builder.gep(first, [_INT(byte)]), *map(_INT, (_TO_READ, _FIRST_LEVEL, _DATA))])
        return context.get_dummy_value()

    return types.void(a, width), code


@intrinsic
def _store_bytes(_, a, point):
    _refuse_others(a, types.int8)

    def code(context, builder, signature, arguments):
        lines = _lines(context, builder, signature.args[0], arguments[0], _BYTES)
        nearest = _built_in(builder, "rint", _VECTOR, _VECTOR)
        for k, vector in enumerate(_vectors(builder, arguments[1])):
            whole = builder.fptosi(builder.call(nearest, [vector]), _INTS)
            builder.store(builder.trunc(whole, _BYTES), builder.gep(lines, [_INT(k)]), align=1)
        return context.get_dummy_value()

    return types.void(a, point), code


@overload(nothing, jit_options=INLINE)
def _(width):
    return lambda width: _nothing(width)


@overload(load, jit_options=INLINE)
def _(a, width):
    return lambda a, width: _load(a, width)


@overload(store, jit_options=INLINE)
def _(a, point):
    return lambda a, point: _store(a, point)


@overload(plus, jit_options=INLINE)
def _(point, scale, other):
    return lambda point, scale, other: _plus(point, scale, other)


@overload(times, jit_options=INLINE)
def _(point, factor):
    return lambda point, factor: _times(point, factor)


@overload(inner, jit_options=INLINE)
def _(a, b):
    return lambda a, b: _inner(a, b)


@overload(any_beyond, jit_options=INLINE)
def _(point, number):
    return lambda point, number: _any_beyond(point, number)


@overload(largest, jit_options=INLINE)
def _(point):
    return lambda point: _largest(point)


@overload(load_bytes, jit_options=INLINE)
def _(a, width):
    return lambda a, width: _load_bytes(a, width)


@overload(ask_for_bytes, jit_options=INLINE)
def _(a, width):
    return lambda a, width: _ask_for_bytes(a, width)


@overload(store_bytes, jit_options=INLINE)
def _(a, point):
    return lambda a, point: _store_bytes(a, point)
