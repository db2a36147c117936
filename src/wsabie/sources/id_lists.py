"""Lists of ids, one a line, that say which things of a collection are meant."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow, require_rows
from wsabie.sources.records import ItemPart, Rows, Source
from wsabie.sources.text import numbered_lines, shown
from wsabie.storage.atomic import write_text
from wsabie.storage.rejects import Rejects

_MARK = "\ufeff"
"""What is passed over at the beginning of a file."""


def read_ids(path: Path, *, rejects: Rejects | None = None) -> list[str]:
    """The ids of a list, each once, in the order of the file.

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
    found: dict[str, None] = {}
    for number, line in numbered_lines(path, pipe=True):
        try:
            name = _text(line).strip()
        except BadRow as bad:
            rejects.add(f"{shown(path)}:{number}", bad.reason, bad.detail)
            continue
        if name:
            found[name] = None
    require_rows(len(found), path, rejects, "ids")
    return list(found)


def _text(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRow("text that is not UTF-8", repr(line[:60])) from error


def write_ids(path: Path, ids: Iterable[str]) -> None:
    """Write a list that `read_ids` reads.

    Raises
    ------
    InputError
        An id that a line cannot hold.
    """
    listed = list(ids)
    for name in listed:
        refuse_awkward(name)
    write_text(path, "".join(f"{name}\n" for name in listed))


def refuse_awkward(name: str) -> None:
    """InputError where lists of ids, and of pairs of ids, cannot hold an id."""
    awkward = name != name.strip() or not name or name.splitlines() != [name] or "\t" in name or name[0] == _MARK
    if awkward or name != name.encode("utf-8", "replace").decode():
        raise InputError(
            f"the id {name!r} has blanks at an end, a tab, the end of a line or something that is not UTF-8 in it, "
            "which a list cannot hold; give another id"
        )


def of_ids(source: Source, path: Path, *, rejects: Rejects) -> Source:
    """The things of a collection that a list names; ids that it does not have are listed.

    Raises
    ------
    InputError
        It has none of them.

    Examples
    --------
    >>> import tempfile
    >>> from wsabie.sources.records import Item, ItemList
    >>> songs = ItemList(Path("songs"), [Item("a", b"", ()), Item("b", b"", ())], "sounds")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "few.txt"
    ...     write_ids(file, ["b"])
    ...     [item.id for item in of_ids(songs, file, rejects=Rejects())]
    ['b']
    """
    wanted = set(read_ids(path, rejects=rejects))
    ids = source.ids if isinstance(source, Rows) else [item.id for item in source]
    index = np.flatnonzero([name in wanted for name in ids])
    for name in sorted(wanted.difference(ids)):
        rejects.add(f"{shown(path)} {shown(name)}", "id without data")
    if not len(index):
        raise InputError(f"the data have none of the ids in {shown(path)}; give the list that belongs to them")
    return source.take(index) if isinstance(source, Rows) else ItemPart(source, index)
