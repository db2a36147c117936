"""Kernel functions with one implementation for each type of an argument, chosen at compilation."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

from numba.core.errors import TypingError
from numba.extending import overload

from wsabie.kernels.compiler import INLINE


def dispatch(name: str, *, has_default: bool = False, flags: dict[str, Any] = INLINE) -> Callable[..., Any]:
    """Return a decorator that dispatches a function on the type of a NamedTuple among its arguments.

    `register` of the decorated function makes another function its implementation for some types.

    Parameters
    ----------
    name : str
        Name of the argument.
    has_default : bool
        Run the body of the function for types without an implementation; otherwise they are refused.
    flags : dict
        Options of the compiler for all implementations.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        place = list(signature(function).parameters).index(name)
        implementations: dict[type, Callable[..., Any]] = {}

        def find(kind: type) -> Callable[..., Any]:
            if kind not in implementations and not has_default:
                raise TypingError(f"{function.__name__} has no implementation for {kind.__name__}")
            return implementations.get(kind, function)

        @wraps(function)
        def call(*arguments: Any) -> Any:
            return find(type(arguments[place]))(*arguments)

        def register(*types: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
            return lambda implementation: implementations.update(dict.fromkeys(types, implementation)) or implementation

        overload(call, jit_options=flags, strict=False)(lambda *arguments: find(arguments[place].instance_class))
        call.register = register  # type: ignore[attr-defined]
        return call

    return decorate
