"""Points that stay in vector registers from one row of a table to the next.

A loop over the numbers of a vector writes its sum to memory for every row, because the compiler cannot know that the
sum is no part of the table. It also uses half of a register where a processor has 512 bits. So a sum over many rows is
a value here, whose type holds the number of its vectors of `LANES` floats.

Without the compiler a point is a NumPy array, and the functions run as they are written.
"""

from functools import reduce
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload, register_model

from wsabie.core.arrays import LANES
from wsabie.kernels.compiler import INLINE

_FLOAT, _INT = ir.FloatType(), ir.IntType(32)
_VECTOR = ir.VectorType(_FLOAT, LANES)
_INTS, _BYTES = (ir.VectorType(ir.IntType(bits), LANES) for bits in (32, 8))
_CHAINS = 4  # sums that a product is taken in: each waits for its last addition
_LINE = 64  # bytes that come into the cache together
_TO_READ, _FIRST_LEVEL, _DATA = 0, 3, 1  # of llvm.prefetch
_FUSED, _ANY_ORDER = ("contract",), ("reassoc", "nsz", "contract")


class RegisterPoint(types.Type):
    """Type of a point: `n` vectors of LANES floats."""

    def __init__(self, n: int) -> None:
        self.n = n
        super().__init__(name=f"Point({n})")


@register_model(RegisterPoint)
class _PointModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, point: RegisterPoint) -> None:
        super().__init__(manager, point, ir.ArrayType(_VECTOR, point.n))


# ---- functions, as they run without the compiler


def make_origin(width):
    """Return the origin."""
    return np.zeros(LANES * len(width), np.float32)


def load_point(a, width):
    """Return the point at the beginning of an array."""
    return np.array(a[: LANES * len(width)])


def store_point(a, point):
    """Write a point to the beginning of an array."""
    a[: len(point)] = point


def add_scaled(point, scale, direction):
    """Return point + scale * direction."""
    return point + scale * direction


def scale_point(point, factor):
    """Return point * factor."""
    return point * factor


def dot_points(a, b):
    """Return sum_k a_k b_k."""
    return np.float32(np.dot(a, b))


def has_coordinate_beyond(point, number):
    """Return True if a coordinate is larger than a number, or is NaN."""
    return bool((~(point <= number)).any())


def find_max_magnitude(point):
    """Return max_k |a_k|."""
    return np.abs(point).max()


def load_bytes(a, width):
    """Return the point whose coordinates are the bytes at the beginning of an array."""
    return a[: LANES * len(width)].astype(np.float32)


def prefetch_bytes(a, width):
    """Prefetch the bytes of a point into the cache, without waiting for them."""


def store_bytes(a, point):
    """Write the coordinates, from -127 to 127, as nearest integers to the beginning of an array."""
    a[: len(point)] = np.rint(point).astype(np.int8)


# ---- the same in registers


def _require_row(a, dtype=types.float32):
    """Refuse anything but a contiguous row of one type, which alone can be read as vectors."""
    if not (isinstance(a, types.Array) and a.dtype == dtype and a.ndim == 1 and a.layout == "C"):
        raise TypingError(f"a point lies in a row of {dtype}, not in {a}")


def _lines(context, builder, kind, array, vector=_VECTOR):
    """Return the address of an array as one of vectors."""
    return builder.bitcast(context.make_array(kind)(context, builder, array).data, vector.as_pointer())


def _splat(builder, number):
    vector = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, _INT(0))
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES))


def _unpack_vectors(builder, point):
    return [builder.extract_value(point, k) for k in range(point.type.count)]


def _pack_vectors(builder, vectors):
    point = ir.Constant(ir.ArrayType(_VECTOR, len(vectors)), ir.Undefined)
    for k, vector in enumerate(vectors):
        point = builder.insert_value(point, vector, k)
    return point


def _multiply_add(builder, a, b, c):
    """Emit a * b + c, in one instruction where there is one."""
    return builder.fadd(builder.fmul(a, b, flags=_FUSED), c, flags=_FUSED)


def _get_llvm_function(builder, name, result, *arguments):
    """Return an intrinsic of LLVM for vectors of LANES floats."""
    kind = ir.FunctionType(result, arguments)
    return cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f32")


@intrinsic
def _make_zeros(_, width):
    point = RegisterPoint(len(width))

    def code(context, builder, signature, arguments):
        return ir.Constant(ir.ArrayType(_VECTOR, point.n), None)

    return point(width), code


@intrinsic
def _load(_, a, width):
    _require_row(a)
    point = RegisterPoint(len(width))

    def code(context, builder, signature, arguments):
        lines = _lines(context, builder, signature.args[0], arguments[0])
        return _pack_vectors(builder, [builder.load(builder.gep(lines, [_INT(k)]), align=4) for k in range(point.n)])

    return point(a, width), code


@intrinsic
def _store(_, a, point):
    _require_row(a)

    def code(context, builder, signature, arguments):
        lines = _lines(context, builder, signature.args[0], arguments[0])
        for k, vector in enumerate(_unpack_vectors(builder, arguments[1])):
            builder.store(vector, builder.gep(lines, [_INT(k)]), align=4)
        return context.get_dummy_value()

    return types.void(a, point), code


@intrinsic
def _add_scaled(_, point, scale, direction):
    def code(context, builder, signature, arguments):
        into, number, of = arguments
        factor = _splat(builder, number)
        pairs = zip(_unpack_vectors(builder, of), _unpack_vectors(builder, into), strict=True)
        return _pack_vectors(builder, [_multiply_add(builder, factor, b, a) for b, a in pairs])

    return point(point, types.float32, direction), code


@intrinsic
def _times(_, point, factor):
    def code(context, builder, signature, arguments):
        factor = _splat(builder, arguments[1])
        return _pack_vectors(
            builder, [builder.fmul(vector, factor) for vector in _unpack_vectors(builder, arguments[0])]
        )

    return point(point, types.float32), code


@intrinsic
def _inner(_, a, b):
    def code(context, builder, signature, arguments):
        pairs = list(zip(*(_unpack_vectors(builder, point) for point in arguments), strict=True))
        chains = [builder.fmul(*pair) for pair in pairs[:_CHAINS]]
        for k, pair in enumerate(pairs[_CHAINS:]):
            chains[k % _CHAINS] = _multiply_add(builder, pair[0], pair[1], chains[k % _CHAINS])
        while len(chains) > 1:
            chains = [
                builder.fadd(*chains[k : k + 2]) if k + 1 < len(chains) else chains[k] for k in range(0, len(chains), 2)
            ]
        across = _get_llvm_function(builder, "vector.reduce.fadd", _FLOAT, _FLOAT, _VECTOR)
        return builder.call(across, [_FLOAT(0.0), chains[0]], fastmath=_ANY_ORDER)

    return types.float32(a, b), code


@intrinsic
def _has_beyond(_, point, number):
    def code(context, builder, signature, arguments):
        limit = _splat(builder, arguments[1])
        comparisons = [builder.fcmp_unordered(">", vector, limit) for vector in _unpack_vectors(builder, arguments[0])]
        bits = builder.bitcast(reduce(builder.or_, comparisons), ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))

    return types.boolean(point, types.float32), code


@intrinsic
def _find_max(_, point):
    def code(context, builder, signature, arguments):
        size, larger = (
            _get_llvm_function(builder, *operation)
            for operation in (("fabs", _VECTOR, _VECTOR), ("maxnum", *[_VECTOR] * 3))
        )
        sizes = [builder.call(size, [vector]) for vector in _unpack_vectors(builder, arguments[0])]
        across = _get_llvm_function(builder, "vector.reduce.fmax", _FLOAT, _VECTOR)
        return builder.call(across, [reduce(lambda a, b: builder.call(larger, [a, b]), sizes)])

    return types.float32(point), code


@intrinsic
def _load_bytes(_, a, width):
    _require_row(a, types.int8)
    point = RegisterPoint(len(width))

    def code(context, builder, signature, arguments):
        lines = _lines(context, builder, signature.args[0], arguments[0], _BYTES)
        numbers = [builder.load(builder.gep(lines, [_INT(k)]), align=1) for k in range(point.n)]
        return _pack_vectors(builder, [builder.sitofp(builder.sext(number, _INTS), _VECTOR) for number in numbers])

    return point(a, width), code


@intrinsic
def _prefetch_bytes(_, a, width):
    _require_row(a, types.int8)

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
    _require_row(a, types.int8)

    def code(context, builder, signature, arguments):
        lines = _lines(context, builder, signature.args[0], arguments[0], _BYTES)
        nearest = _get_llvm_function(builder, "rint", _VECTOR, _VECTOR)
        for k, vector in enumerate(_unpack_vectors(builder, arguments[1])):
            integers = builder.fptosi(builder.call(nearest, [vector]), _INTS)
            builder.store(builder.trunc(integers, _BYTES), builder.gep(lines, [_INT(k)]), align=1)
        return context.get_dummy_value()

    return types.void(a, point), code


@overload(make_origin, jit_options=INLINE)
def _(width):
    return lambda width: _make_zeros(width)


@overload(load_point, jit_options=INLINE)
def _(a, width):
    return lambda a, width: _load(a, width)


@overload(store_point, jit_options=INLINE)
def _(a, point):
    return lambda a, point: _store(a, point)


@overload(add_scaled, jit_options=INLINE)
def _(point, scale, direction):
    return lambda point, scale, direction: _add_scaled(point, scale, direction)


@overload(scale_point, jit_options=INLINE)
def _(point, factor):
    return lambda point, factor: _times(point, factor)


@overload(dot_points, jit_options=INLINE)
def _(a, b):
    return lambda a, b: _inner(a, b)


@overload(has_coordinate_beyond, jit_options=INLINE)
def _(point, number):
    return lambda point, number: _has_beyond(point, number)


@overload(find_max_magnitude, jit_options=INLINE)
def _(point):
    return lambda point: _find_max(point)


@overload(load_bytes, jit_options=INLINE)
def _(a, width):
    return lambda a, width: _load_bytes(a, width)


@overload(prefetch_bytes, jit_options=INLINE)
def _(a, width):
    return lambda a, width: _prefetch_bytes(a, width)


@overload(store_bytes, jit_options=INLINE)
def _(a, point):
    return lambda a, point: _store_bytes(a, point)
