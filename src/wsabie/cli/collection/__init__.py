"""`wsabie collection`: the commands of a collection."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from wsabie.cli.framework import Options, argument, option
from wsabie.cli.shared_options import OutputOptions
from wsabie.core.errors import InputError
from wsabie.core.machine import get_user_name

if TYPE_CHECKING:
    from wsabie.collection.folder.collection import Collection


_LONGEST = 500
"""Longest name of a person, in letters; the same limit holds for imported names."""


class PersonOptions(Options, panel="Output"):
    """Options of commands that the history lists."""

    by: str | None = option("Who does it, for the journal (default: your login).", metavar="NAME")

    def resolve_author(self) -> str:
        """Return the name of the author for the journal.

        Raises
        ------
        InputError
            The name is too long or has invisible characters.
        """
        name = self.by or get_user_name()
        if not name.isprintable() or len(name) > _LONGEST:
            raise InputError(f"the name {ascii(name)[:100]} cannot be in the journal; give another one with --by")
        return name


class CollectionOptions(OutputOptions):
    """Options of commands of a collection."""

    folder: Path = argument("The folder of the collection.", metavar="DIR")

    def open(self, *, read_only: bool = False) -> "Collection":
        """Open the collection."""
        require_database()
        from wsabie.collection.folder.collection import open_collection

        return open_collection(self.folder, read_only=read_only)


def require_database() -> None:
    """Raise InputError if the database layer is not installed."""
    if any(find_spec(name) is None for name in ("sqlalchemy", "alembic")):
        raise InputError("collections need SQLAlchemy and Alembic; run: pip install 'wsabie[collection]'")
