"""`wsabie`: the commands, and what happens to errors and Ctrl-C."""

import os
import sys
from typing import Annotated

import typer

from wsabie import __version__
from wsabie.base.errors import WsabieError
from wsabie.faces.cli import commands

INTERRUPTED = 130  # what typer makes of Ctrl-C

app = typer.Typer(
    name="wsabie",
    help="Annotate and search large collections with joint embeddings trained by the WARP ranking loss.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
commands.register(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Annotate and search large collections with joint embeddings trained by the WARP ranking loss."""


def run() -> None:
    """Entry point: exit code 0 done, 1 the input is at fault, 2 usage, 130 stopped by Ctrl-C."""
    from wsabie.faces.cli.terminal import fail

    try:
        app(standalone_mode=True)
    except WsabieError as error:
        fail(str(error))
        sys.exit(1)
    except MemoryError as error:
        fail(f"there is not enough memory ({error}); use fewer rows, features or dimensions")
        sys.exit(1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            fail("stopped; nothing that was saved is lost, and --resume goes on where a command offers it")
        raise


if __name__ == "__main__":
    run()
