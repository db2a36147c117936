"""The group of commands, and what they share."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from wsabie.base.errors import InputError
from wsabie.base.machine import user_name
from wsabie.faces.cli.options import Command, opening_itself

if TYPE_CHECKING:
    from wsabie.catalogue.collection import Collection

_LONGEST = 500
"""Letters of a name, as those that are imported."""

Folder: TypeAlias = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the collection.")]
By: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="Who does it, for the journal (default: your login).")
]


def group() -> typer.Typer:
    """All of them."""
    from wsabie.faces.cli.collection import backups, catalogue, decisions, drawing, finding, hygiene, learning, tags

    found = typer.Typer(
        name="collection",
        help="Your own collection: a catalogue that keeps tags, learns from them and suggests more.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for part in (catalogue, backups, learning, finding, drawing, tags, hygiene, decisions):
        for command in part.COMMANDS:
            name = command.__name__.rstrip("_")  # `import_` is `import`
            found.command(name, cls=Command)(opening_itself(command))
    return found


@contextmanager
def opened(folder: Path, *, read_only: bool = False) -> Iterator["Collection"]:
    """The collection, while it is needed."""
    require_database()
    from wsabie.catalogue.collection import open_collection

    with open_collection(folder, read_only=read_only) as found:
        yield found


def require_database() -> None:
    """Refuse, in one sentence, where the database layer is not installed."""
    if any(find_spec(name) is None for name in ("sqlalchemy", "alembic")):
        raise InputError("collections need SQLAlchemy and Alembic; run: pip install 'wsabie[collection]'")


def person(by: str | None) -> str:
    """Return the name for the journal.

    Raises
    ------
    InputError
        It is too long, or has signs that nobody sees.
    """
    name = by or user_name()
    if not name.isprintable() or len(name) > _LONGEST:
        raise InputError(f"the name {ascii(name)[:100]} cannot stand in the journal; give another one with --by")
    return name
