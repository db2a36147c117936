"""Ctrl-C while something is compiled.

The compiler cannot be stopped halfway: an interrupt that arrives in one of its callbacks is lost, elsewhere it leaves a
function without code. So one that comes then waits until the compiler is done, which takes seconds at most.
"""

import signal
import threading
from typing import Any

from numba.core.event import Event, Listener, register


class _Waiting(Listener):  # type: ignore[misc]
    """Holds interrupts back as long as the main thread has the compiler, or waits for it."""

    def __init__(self) -> None:
        self._depth, self._came = 0, False
        self._before: Any = None

    def on_start(self, event: Event) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth += 1
        if self._depth == 1:
            self._came, self._before = False, signal.getsignal(signal.SIGINT)
            if self._before is not None:  # by another language, which does not tell
                signal.signal(signal.SIGINT, self._held)

    def on_end(self, event: Event) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth -= 1
        if self._depth == 0 and self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            if self._came:
                signal.raise_signal(signal.SIGINT)

    def _held(self, number: int, frame: Any) -> None:
        self._came = True


def hold_interrupts() -> None:
    """From now on, whatever is compiled."""
    register("numba:compiler_lock", _Waiting())
