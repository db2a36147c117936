"""LLVM code as the compiled form of plain functions.

Python runs the plain function, its fallback; a compiled caller gets the code in its place, with its own compiler flags.
"""

from collections.abc import Callable
from typing import TypeVar

from llvmlite import ir
from numba.core import types
from numba.core.types.misc import VarArg
from numba.extending import lower_builtin, type_callable

Emitter = TypeVar("Emitter", bound=Callable[..., object])
INT, LONG, FLOAT = ir.IntType(32), ir.IntType(64), ir.FloatType()


def lower(plain: Callable[..., object], result: Callable[..., object]) -> Callable[[Emitter], Emitter]:
    """Return a decorator that makes LLVM code the compiled form of a function.

    Parameters
    ----------
    plain : function
    result : function
        Returns the type of the result for the types of the arguments, or raises TypingError.
    """
    type_callable(plain)(lambda context: result)
    decorate: Callable[[Emitter], Emitter] = lower_builtin(plain, VarArg(types.Any))
    return decorate


def splat(builder, value, lanes):
    """Return a vector with a number in each of its lanes."""
    nothing = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    vector = builder.insert_element(nothing, value, INT(0))
    return builder.shuffle_vector(vector, nothing, ir.Constant(ir.VectorType(INT, lanes), [0] * lanes))
