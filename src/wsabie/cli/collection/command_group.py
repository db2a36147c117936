"""The group of commands `wsabie collection`."""

import typer

from wsabie.cli.collection import (
    annotations,
    backups,
    export_and_import,
    item_search,
    labels_and_tags,
    learning,
    map,
    scan_and_history,
)
from wsabie.cli.inputs.options import Command, allow_unreadable_paths

_MODULES = (
    scan_and_history,
    backups,
    learning,
    item_search,
    map,
    export_and_import,
    labels_and_tags,
    annotations,
)
"""Modules in the order of their commands in the help."""


def make_group() -> typer.Typer:
    """Make the group with all its commands."""
    group = typer.Typer(
        name="collection",
        help="Your own collection: a catalogue that keeps tags, learns from them and suggests more.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for module in _MODULES:
        for command in module.COMMANDS:
            name = command.__name__.rstrip("_")  # `import_` is `import`
            group.command(name, cls=Command)(allow_unreadable_paths(command))
    return group
