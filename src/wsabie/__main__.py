"""`wsabie` and `python -m wsabie`: the command line."""

import atexit
import gc
import sys

_INTERRUPTED = 130
_SELDOM = 50_000
"""New objects between looks for cycles; Python's own 700 has it look through all modules again and again."""


def run() -> None:
    """The command that was given; Ctrl-C while it is still being imported ends it as quietly as later."""
    gc.set_threshold(_SELDOM)
    atexit.register(gc.freeze)  # a process that ends looks through nothing once more
    try:
        from wsabie.cli.main import run as begin
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    begin()


if __name__ == "__main__":
    run()
