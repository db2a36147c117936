"""`wsabie` and `python -m wsabie`: the command line."""

import sys

from wsabie.core.gc_tuning import reduce_collections

_INTERRUPTED = 130

reduce_collections()  # here, because the processes that `serve` starts import this module first


def run() -> None:
    """Run the command; Ctrl-C while its code is imported ends it as quietly as later."""
    try:
        try:
            from wsabie.cli.main import run as begin
        except KeyboardInterrupt:
            sys.exit(_INTERRUPTED)
        begin()
    finally:
        exec("")  # noqa: S102 - CPython forgets a Ctrl-C inside `exec(text)`, which would replace the exit code


if __name__ == "__main__":
    run()
