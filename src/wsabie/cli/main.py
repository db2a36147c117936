"""`wsabie`: the application, and its handling of errors and Ctrl-C."""

import os
import re
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer

from wsabie.cli import serve
from wsabie.cli.collection import backups, history, interchange, learning, scans, tags
from wsabie.cli.collection import labels as collection_labels
from wsabie.cli.collection import map as collection_map
from wsabie.cli.collection import search as collection_search
from wsabie.cli.command import CommandEntry, GroupedCommands
from wsabie.cli.data import features, hierarchy, labels, pairs, shards, split, vectors
from wsabie.cli.errors import WRITING_FAILED, discard_output, explain_error, ignore_full_standard_error
from wsabie.cli.models import (
    annotate,
    compare,
    demo,
    evaluate,
    export,
    index,
    info,
    neighbours,
    parts,
    search,
    train,
    tune,
    update,
)
from wsabie.cli.output import INTERRUPTED, InterruptExit, print_error, show_log_as_notes
from wsabie.core.errors import WsabieError
from wsabie.core.version import VERSION

_STARTS_AGAIN = "unfinished work of this command is not kept, so that it begins anew next time"
_CONTINUES = "what is finished is kept, and the same command again goes on from it"
_INTERRUPT_MESSAGES = {
    "train": "what is finished is kept, and the same command with --resume goes on from it",
    "shards": _CONTINUES,
    "features": _CONTINUES,
    "features kpca": _STARTS_AGAIN,
    "update": "steps that were saved are kept, and the same command again goes on from them",
    "tune": "finished trials are kept, and the same command again goes on from them",
    "serve": "what it had acknowledged is kept",
    "collection init": _CONTINUES,
    "collection add": _CONTINUES,
    "collection scan": _CONTINUES,
    "collection train": "the model in use stays, and the same command begins anew",
}
"""Messages after Ctrl-C of the commands that keep some of their work."""


_COLLECTION = "collection"
_COMMANDS: dict[str, tuple[CommandEntry | str, ...]] = {
    "Everyday": (_COLLECTION, train.train, annotate.annotate, search.search, demo.demo),
    "Models": (
        evaluate.evaluate, compare.compare, tune.tune, update.update, update.edit, neighbours.neighbours, parts.parts,
        index.index, info.info, export.export,
    ),
    "Data": (features.features, split.split, shards.shards),
    "Knowledge of labels": (labels.labels, hierarchy.hierarchy, pairs.pairs, vectors.vectors),
    "Service": (serve.serve, serve.token),
}  # fmt: skip
"""Commands in groups, in the order of the help; a name is that of a group of commands."""
_COLLECTION_COMMANDS = {
    "Files": (scans.init, scans.add, scans.scan, history.status),
    "Tags and labels": (tags.tag, tags.annotations, collection_labels.labels, interchange.import_, interchange.export),
    "Learning and search": (
        learning.train, learning.apply, learning.models, learning.index, collection_search.search, collection_map.map_
    ),
    "History and backups": (history.history, history.undo, backups.backup, backups.restore),
}  # fmt: skip

_Usage: Any = typer.BadParameter.__base__  # of click, or of the copy that typer has of it


class _Application(GroupedCommands):
    """Commands of the program, with clearer usage errors.

    The message of a wrong choice loses the name of its exception. The message about an unknown option tells how to give
    a word that begins with a hyphen.
    """

    order = tuple(entry if isinstance(entry, str) else entry.name for group in _COMMANDS.values() for entry in group)

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
    return f" (what is not wanted is given {example})"


def _make_application() -> typer.Typer:
    """Make the application with all its commands."""
    app = typer.Typer(
        name="wsabie",
        cls=_Application,
        help="Annotate and search large collections with joint embeddings trained by the WARP ranking loss.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    collection = typer.Typer(
        name=_COLLECTION,
        cls=GroupedCommands,
        help="Your own collection: a catalogue that keeps tags, learns from them and suggests more.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for panel, entries in _COLLECTION_COMMANDS.items():
        for entry in entries:
            entry.register(collection, panel)
    for panel, group in _COMMANDS.items():
        for member in group:
            if isinstance(member, str):
                app.add_typer(collection, rich_help_panel=panel)
            else:
                member.register(app, panel)
    return app


app = _make_application()


def _show_version(value: bool) -> None:
    if value:
        typer.echo(VERSION)
        raise typer.Exit


@app.callback()
def set_up(
    version: Annotated[bool, typer.Option(callback=_show_version, is_eager=True, help="Show the version.")] = False,
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
        print_error("an argument holds a zero byte, which no name of a file has; give another")
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
