"""Garbage collection of programs."""

import atexit
import gc

_SELDOM = 50_000
"""New objects between looks for cycles; Python's own 700 has it look through all modules again and again."""


def collect_seldom() -> None:
    """Collect seldom from now on, and not at the end; before imports, it makes them a quarter quicker."""
    gc.set_threshold(_SELDOM)
    atexit.register(gc.freeze)  # a process that ends looks through nothing once more
