"""Messages about bad files that Pillow and libtiff would write to standard error themselves."""

import ctypes
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

_lock = threading.Lock()
_silence = ExitStack()
_depth = 0


@contextmanager
def silence_decoders() -> Iterator[None]:
    """Silence decoders, whose errors are raised and reported; counted, since this changes the whole process.

    Examples
    --------
    >>> with silence_decoders():
    ...     logging.getLogger("PIL.TiffImagePlugin").error("More samples per pixel than can be decoded: 9")
    """
    global _depth
    with _lock:
        if _depth == 0:
            _begin_silence()
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _silence.close()


def _begin_silence() -> None:
    _silence.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    nowhere = logging.NullHandler()  # handlers of whoever wants to know stay
    logging.getLogger("PIL").addHandler(nowhere)
    _silence.callback(logging.getLogger("PIL").removeHandler, nowhere)
    for set_handler in _libtiff_handlers():
        _silence.callback(set_handler, set_handler(None))


@cache
def _libtiff_handlers() -> list[Callable[[Any], Any]]:
    """Return what sets the functions of libtiff that write; none where Pillow holds it in a way of its own."""
    from PIL import _imaging

    try:
        library = ctypes.CDLL(_imaging.__file__)  # finds those of the libraries that it needs, too
        setters: list[Any] = [library.TIFFSetErrorHandler, library.TIFFSetWarningHandler]
    except (OSError, AttributeError):
        return []
    for setter in setters:
        setter.argtypes, setter.restype = [ctypes.c_void_p], ctypes.c_void_p
    return setters
