"""`wsabie`: the commands, and what happens to errors and Ctrl-C."""

import os
import re
import shlex
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from wsabie import __version__
from wsabie.base.errors import WsabieError
from wsabie.faces.cli import commands
from wsabie.faces.cli.error_sentences import WRITING_FAILED, explain_error

_ANEW = "unfinished work of this command is not kept, so that it begins anew next time"
_KEPT = "what is finished is kept, and the same command again goes on from it"
_GOES_ON = {
    "train": "what is finished is kept, and the same command with --resume goes on from it",
    "shards": _KEPT,
    "features": _KEPT,
    "features kpca": _ANEW,
    "update": "steps that were saved are kept, and the same command again goes on from them",
    "tune": "finished trials are kept, and the same command again goes on from them",
    "serve": "what it had acknowledged is kept",
    "collection init": _KEPT,
    "collection add": _KEPT,
    "collection scan": _KEPT,
    "collection train": "the model in use stays, and the same command begins anew",
}
"""What Ctrl-C leaves of the commands that do not begin anew."""


_Usage: Any = typer.BadParameter.__base__  # of click, or of the copy that typer has of it


class _Commands(TyperGroup):
    """The commands; what typer says of a wrong choice loses the name of the exception that it is inside, and of a word
    that it takes for an option it is told how to give one.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ") + _meant(error)
            raise
        except _Usage as error:
            option = getattr(error, "option_name", "") if hasattr(error, "possibilities") else ""
            if option[:1] == "-" != option[1:2]:  # of words with two, typer says which are near
                error.message += " (a word that begins with - is given behind --, as in: search photos -- '-dog cat')"
            raise


def _meant(error: Any) -> str:
    """What to do where `search photos -kite` was read as -k with the value "ite"; alone it would find nothing."""
    options = [name for name in getattr(error.param, "opts", ()) if len(name) == 2]
    word = next((word for word in sys.argv if word[:2] in options and word[2:]), None)
    if word is None or getattr(error.ctx, "info_name", "") != "search":
        return ""
    how = f"behind --: search photos -- '{word}'" if " " in word else f"behind a label: search photos 'bird {word}'"
    return f" (what is not wanted is given {how})"


app = typer.Typer(
    name="wsabie",
    cls=_Commands,
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
    from wsabie.faces.cli.standard_error import lossy_standard_error

    with lossy_standard_error():
        _run()


def _run() -> None:
    from wsabie.faces.cli.standard_error import discard_output
    from wsabie.faces.cli.terminal import INTERRUPTED, Stopped, fail, log_as_notes

    _refuse_empty(sys.argv[1:])
    _speak_utf8()
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 - closed by the caller: no results
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a label that cannot be shown must not end the command
    try:
        with log_as_notes():
            _obey()
    except BrokenPipeError:
        discard_output(sys.stdout)  # or the interpreter complains at its end
        sys.exit(1)
    except RuntimeError as error:
        if not str(error).startswith("Symlink loop"):  # of `Path.resolve`
            raise
        fail(f"a link leads back to itself: {str(error).removeprefix('Symlink loop from ')}; name what is there")
        sys.exit(1)
    except (WsabieError, MemoryError, OSError, UnicodeEncodeError) as error:
        if isinstance(error, OSError) and error.filename is None and error.errno in WRITING_FAILED:
            discard_output(sys.stdout)
        if sys.flags.dev_mode:  # `python -X dev -m wsabie ...` shows where an error comes from
            raise
        fail(explain_error(error))
        sys.exit(1)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            kept = _GOES_ON.get(" ".join(sys.argv[1:3])) or _GOES_ON.get(sys.argv[1], _ANEW)
            _wait_for_compilers()
            fail(stop.sentence if isinstance(stop, Stopped) else f"stopped; {kept}")
        raise


def _speak_utf8() -> None:
    """Begin again in Python's UTF-8 mode where the locale takes file names for ASCII: a catalogue has them in UTF-8."""
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"
        with suppress(OSError):  # a program that may not be started again goes on as it is
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this program itself


def _refuse_empty(words: list[str]) -> None:
    """An empty path would mean the current folder, and mostly comes from a variable that is not set."""
    from wsabie.faces.cli.terminal import fail

    if any("\0" in word for word in words):  # not of a shell, but of a program that calls this one
        fail("an argument holds a zero byte, which no name of a file has; give another")
        sys.exit(2)
    if any(re.fullmatch("(--[a-z-]+=)?", word) for word in words):
        fail(f"an argument of `wsabie {shlex.join(words)}` is empty, perhaps a variable that is not set; give a value")
        sys.exit(2)


def _obey() -> None:
    """Carry out the command line; results that wait to be written fail here, and not when the interpreter ends."""
    try:
        app(standalone_mode=True)
    except SystemExit:
        sys.stdout.flush()
        raise


def _wait_for_compilers() -> None:
    """Another thread may be inside the compiler, under which a process that ends takes everything away."""
    if (module := sys.modules.get("numba.core.compiler_lock")) is not None:
        with module.global_compiler_lock:
            pass


if __name__ == "__main__":
    run()
