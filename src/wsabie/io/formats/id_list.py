"""Lists of ids, one a line, that select items of a collection."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from wsabie.core.errors import InputError
from wsabie.io.parsers.array_builders import decode_row, iterate_parsed, require_rows
from wsabie.io.parsers.text_files import format_path, iterate_numbered_lines
from wsabie.io.records import FeatureTable, ItemSubset, Source
from wsabie.storage.atomic_files import write_text
from wsabie.storage.rejects import Rejects

_MARK = "\ufeff"
"""What is passed over at the beginning of a file."""


def read_ids(path: Path, *, rejects: Rejects | None = None) -> list[str]:
    """Return the ids of a list, each once, in the order of the file.

    Parameters
    ----------
    path : Path
        UTF-8 text, plain or gzip.
    rejects : Rejects or None
        Lists lines that are not UTF-8.

    Raises
    ------
    InputError
        Missing, or without a single id.
    """
    rejects = Rejects() if rejects is None else rejects
    lines = iterate_parsed(path, iterate_numbered_lines(path, pipe=True), decode_row, rejects)
    ids = dict.fromkeys(name for _, line in lines if (name := line.strip()))
    require_rows(len(ids), path, rejects, "ids")
    return list(ids)


def write_ids(path: Path, ids: Iterable[str]) -> None:
    """Write a list that `read_ids` reads.

    Raises
    ------
    InputError
        An id that a line cannot hold.
    """
    listed = list(ids)
    for name in listed:
        refuse_unlistable_id(name)
    write_text(path, "".join(f"{name}\n" for name in listed))


def refuse_unlistable_id(name: str) -> None:
    """Raise InputError for an id that lists of ids, and of pairs of ids, cannot hold."""
    is_unlistable = name != name.strip() or not name or name.splitlines() != [name] or "\t" in name or name[0] == _MARK
    if is_unlistable or name != name.encode("utf-8", "replace").decode():
        raise InputError(
            f"the id {name!r} has blanks at an end, a tab, the end of a line or something that is not UTF-8 in it, "
            "which a list cannot hold; give another id"
        )


def select_listed_ids(source: Source, path: Path, *, rejects: Rejects) -> Source:
    """Return the items of a collection that a list names; ids that it lacks are rejected.

    Raises
    ------
    InputError
        It has none of them.

    Examples
    --------
    >>> import tempfile
    >>> from wsabie.io.records import Item, ItemList
    >>> songs = ItemList(Path("songs"), [Item("a", b"", ()), Item("b", b"", ())], "sounds")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "few.txt"
    ...     write_ids(file, ["b"])
    ...     [item.id for item in select_listed_ids(songs, file, rejects=Rejects())]
    ['b']
    """
    listed_ids = set(read_ids(path, rejects=rejects))
    ids = source.ids if isinstance(source, FeatureTable) else [item.id for item in source]
    index = np.flatnonzero([name in listed_ids for name in ids])
    for name in sorted(listed_ids.difference(ids)):
        rejects.add(f"{format_path(path)} {format_path(name)}", "id without data")
    if not len(index):
        raise InputError(f"the data have none of the ids in {format_path(path)}; give the list that belongs to them")
    return source.take(index) if isinstance(source, FeatureTable) else ItemSubset(source, index)
