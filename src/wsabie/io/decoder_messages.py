"""Silencing of messages that Pillow and libtiff write to standard error about bad files."""

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
    """Silence decoders, whose errors are raised and reported; nested calls are counted.

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
    null_handler = logging.NullHandler()  # handlers of whoever wants to know stay
    logging.getLogger("PIL").addHandler(null_handler)
    _silence.callback(logging.getLogger("PIL").removeHandler, null_handler)
    for set_handler in _libtiff_handlers():
        _silence.callback(set_handler, set_handler(None))


@cache
def _libtiff_handlers() -> list[Callable[[Any], Any]]:
    """Return libtiff's setters of message handlers; none where Pillow links it in another way."""
    from PIL import _imaging

    try:
        library = ctypes.CDLL(_imaging.__file__)  # finds those of the libraries that it needs, too
        setters: list[Any] = [library.TIFFSetErrorHandler, library.TIFFSetWarningHandler]
    except (OSError, AttributeError):
        return []
    for setter in setters:
        setter.argtypes, setter.restype = [ctypes.c_void_p], ctypes.c_void_p
    return setters
