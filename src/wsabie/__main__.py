"""`wsabie` and `python -m wsabie`: the command line."""

import sys

_INTERRUPTED = 130


def run() -> None:
    """The command that was given; Ctrl-C while it is still being imported ends it as quietly as later."""
    try:
        from wsabie.faces.cli.main import run as begin
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    begin()


if __name__ == "__main__":
    run()
