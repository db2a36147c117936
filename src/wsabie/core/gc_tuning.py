"""Tuning of Python's garbage collector for commands that end soon."""

import atexit
import gc

_ALLOCATIONS_PER_COLLECTION = 50_000
"""Python's default of 700 traverses all modules again and again while they are imported."""


def reduce_collections() -> None:
    """Collect garbage rarely from now on and not at exit; called first, it speeds up imports."""
    gc.set_threshold(_ALLOCATIONS_PER_COLLECTION)
    atexit.register(gc.freeze)  # no collection at exit
