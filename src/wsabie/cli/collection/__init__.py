"""`wsabie collection`: a module for each command; shared options are here, reports in `reports`."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wsabie.cli.framework import Options, argument, option
from wsabie.cli.shared_options import ListedRejectOptions, OutputOptions, ThreadOptions
from wsabie.core.errors import InputError
from wsabie.core.machine import get_user_name

if TYPE_CHECKING:
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.scan.scanner import ScanResult
    from wsabie.storage.rejects import Rejects


_LONGEST = 500
"""Longest name of a person, in letters; the same limit holds for imported names."""
TagsOption = Annotated[
    Literal["auto", "xmp", "tags", "folders", "metadata", "none"] | None,
    typer.Option(
        help="Where tags are found: metadata.csv, sub-folders, inside pictures (xmp) or sounds (tags), or the first of "
        "these with tags (auto); kept for later scans (default: as before, at first auto)."
    ),
]


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


class ScanningOptions(ListedRejectOptions, PersonOptions, ThreadOptions):
    """Options of commands that scan a collection."""

    not_labels: str | None = option(
        "Names of sub-folders that are not labels, separated by commas; kept for later scans. Tags that they gave go.",
        metavar="NAMES",
    )

    def scan(self, collection: "Collection", rejects: "Rejects", **settings: Any) -> "ScanResult":
        """Scan the folders of a collection."""
        from wsabie.collection.scan.scanner import scan_collection

        names = [name for name in (self.not_labels or "").split(",") if name.strip()]
        settings |= {"by": self.resolve_author(), "not_labels": names, **self.resources(rejects=rejects)}
        return scan_collection(collection, **settings)


def require_database() -> None:
    """Raise InputError if the database layer is not installed."""
    if any(find_spec(name) is None for name in ("sqlalchemy", "alembic")):
        raise InputError("collections need SQLAlchemy and Alembic; run: pip install 'wsabie[collection]'")
