"""`wsabie`: the application, and its handling of errors and Ctrl-C."""

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Annotated, Any

import typer

from wsabie.cli import collection, data, models, service
from wsabie.cli.error_messages import WRITING_FAILED, discard_output, explain_error, ignore_full_standard_error
from wsabie.cli.framework import CommandEntry, GroupedCommands
from wsabie.cli.output import INTERRUPTED, InterruptExit, print_error, show_log_as_notes
from wsabie.core.errors import WsabieError
from wsabie.core.version import VERSION

_STARTS_AGAIN = "unfinished work of this command is not kept, so that it starts over next time"
_CONTINUES = "what is finished is kept, and the same command again goes on from it"
_INTERRUPT_MESSAGES = {
    "train": "what is finished is kept, and the same command with --resume goes on from it",
    **dict.fromkeys(("shards", "encoders", "features"), _CONTINUES),
    **dict.fromkeys(("collection init", "collection add", "collection scan"), _CONTINUES),
    "features kpca": _STARTS_AGAIN,
    "update": "steps that were saved are kept, and the same command again goes on from them",
    "tune": "finished trials are kept, and the same command again goes on from them",
    "serve": "what it had acknowledged is kept",
    "collection train": "the model in use stays, and the same command starts over",
}
"""Messages after Ctrl-C of the commands that keep some of their work."""


_COMMANDS = {
    "Everyday": ("collection", "train", "annotate", "search", "demo"),
    "Models": ("evaluate", "compare", "tune", "update", "edit", "neighbours", "parts", "index", "info", "export"),
    "Data": ("features", "encoders", "split", "shards"),
    "Knowledge of labels": ("labels", "hierarchy", "pairs", "vectors"),
    "Service": ("serve", "token"),
}
"""Commands in groups, in the order of the help; `collection` is a group of commands."""
_COLLECTION_COMMANDS = {
    "Files": ("init", "add", "scan", "status"),
    "Tags and labels": ("tag", "annotations", "labels", "import", "export"),
    "Learning and search": ("train", "apply", "models", "index", "search", "map"),
    "History and backups": ("history", "undo", "backup", "restore"),
}

_Usage: Any = typer.BadParameter.__base__  # of click, or of the copy that typer has of it


class _Application(GroupedCommands):
    """Commands of the program, with clearer usage errors."""

    order = tuple(chain(*_COMMANDS.values()))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ") + _suggest_separator(error)
            raise
        except _Usage as error:
            option = getattr(error, "option_name", "") if hasattr(error, "possibilities") else ""
            if option[:1] == "-" != option[1:2]:  # of words with two, typer says which are near
                error.message += " (a word that begins with - is given behind --, as in: search photos -- '-dog cat')"
            raise


def _suggest_separator(error: Any) -> str:
    """Suggest `--` if typer read `search photos -kite` as -k with the value "ite"."""
    options = [name for name in getattr(error.param, "opts", ()) if len(name) == 2]
    word = next((word for word in sys.argv if word[:2] in options and word[2:]), None)
    if word is None or getattr(error.ctx, "info_name", "") != "search":
        return ""
    example = f"behind --: search photos -- '{word}'" if " " in word else f"behind a label: search photos 'bird {word}'"
    return f" (write what to leave out as {example})"


def _import_modules(package: ModuleType) -> list[ModuleType]:
    return [import_module(f"{package.__name__}.{module.name}") for module in iter_modules(package.__path__)]


def _register_commands(app: typer.Typer, panels: Mapping[str, Iterable[str]], modules: Iterable[ModuleType]) -> None:
    """Add the commands of modules to an application, below their headings."""
    members = [member for module in modules for member in vars(module).values()]
    entries = {member.name: member for member in members if isinstance(member, CommandEntry)}
    for panel, names in panels.items():
        for name in filter(entries.get, names):
            entries[name].register(app, panel)


def _make_application() -> typer.Typer:
    """Make the application with all its commands."""
    make_group = partial(typer.Typer, no_args_is_help=True, rich_markup_mode=None)
    examples = "wsabie collection init photos\nwsabie train photos/ --model birds"
    app = make_group(name="wsabie", cls=_Application, epilog=examples, pretty_exceptions_enable=False)
    text = "Your own collection, which keeps tags and suggests more."
    examples = "wsabie collection init photos\nwsabie collection train photos"
    group = make_group(name="collection", cls=GroupedCommands, help=text, epilog=examples)
    _register_commands(group, _COLLECTION_COMMANDS, _import_modules(collection))
    app.add_typer(group, rich_help_panel="Everyday")
    _register_commands(app, _COMMANDS, chain(*map(_import_modules, (data, models, service))))
    return app


app = _make_application()


def _show_version(value: bool | None) -> None:
    if value:
        typer.echo(VERSION)
        raise typer.Exit


@app.callback()
def set_up(
    version: Annotated[
        bool | None, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = None,
) -> None:
    """Annotate and search large collections with joint embeddings trained by the WARP ranking loss."""


def run(application: Callable[..., object] = app) -> None:
    """Run the command line; exit code 0 success, 1 bad input, 2 usage, 130 stopped by Ctrl-C."""
    with ignore_full_standard_error():
        _run(application)


def _run(application: Callable[..., object]) -> None:
    _refuse_empty(sys.argv[1:])
    _require_utf8()
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 - closed by the caller: no results
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a label that cannot be shown must not end the command
    try:
        with show_log_as_notes():
            _run_command(application)
    except BrokenPipeError:
        discard_output(sys.stdout)  # or the interpreter complains at its end
        sys.exit(1)
    except RuntimeError as error:
        if not str(error).startswith("Symlink loop"):  # of `Path.resolve`
            raise
        print_error(f"a link leads back to itself: {str(error).removeprefix('Symlink loop from ')}; name what is there")
        sys.exit(1)
    except (WsabieError, MemoryError, OSError, UnicodeEncodeError) as error:
        if isinstance(error, OSError) and error.filename is None and error.errno in WRITING_FAILED:
            discard_output(sys.stdout)
        if sys.flags.dev_mode:  # `python -X dev -m wsabie ...` shows where an error comes from
            raise
        print_error(explain_error(error))
        sys.exit(1)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            names = (" ".join(sys.argv[1:3]), sys.argv[1])
            message = next((_INTERRUPT_MESSAGES[name] for name in names if name in _INTERRUPT_MESSAGES), _STARTS_AGAIN)
            _wait_for_compilers()
            print_error(stop.sentence if isinstance(stop, InterruptExit) else f"stopped; {message}")
        raise


def _require_utf8() -> None:
    """Restart in Python's UTF-8 mode if the locale reads file names as ASCII."""
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"
        with suppress(OSError):  # a program that may not be started again goes on as it is
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this program itself


def _refuse_empty(words: list[str]) -> None:
    """Refuse empty arguments: they mean the current folder, and mostly come from an unset variable."""
    if any("\0" in word for word in words):  # not of a shell, but of a program that calls this one
        print_error("an argument holds a zero byte, which no file name may have; give another")
        sys.exit(2)
    if any(re.fullmatch("(--[a-z-]+=)?", word) for word in words):
        command = f"wsabie {shlex.join(words)}"
        print_error(f"an argument of `{command}` is empty, perhaps a variable that is not set; give a value")
        sys.exit(2)


def _run_command(application: Callable[..., object]) -> None:
    """Run the command and flush its results, so that a failed write is reported."""
    try:
        application(standalone_mode=True)
    except SystemExit:
        sys.stdout.flush()
        raise


def _wait_for_compilers() -> None:
    """Wait for compiling threads, which must not lose their interpreter half-way."""
    if (module := sys.modules.get("numba.core.compiler_lock")) is not None:
        with module.global_compiler_lock:
            pass


if __name__ == "__main__":
    run()
