"""Names of several kinds that a collection gives to its things: `relations_of` finds out where they are."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow
from wsabie.sources.cells import SEPARATORS, LabelCells, label_cells, word
from wsabie.sources.folders import clean_labels, find_files, relative_name
from wsabie.sources.magnatagatune import is_magnatagatune, relations_in_magnatagatune
from wsabie.sources.media import SOUNDS
from wsabie.sources.metadata import FILE_COLUMN, NAMES, find_metadata
from wsabie.sources.million_song import is_million_song, relations_in_million_song
from wsabie.sources.related import Related, Thing
from wsabie.sources.spoken_digits import is_spoken_digits, relations_in_spoken_digits
from wsabie.sources.tables import listed_names, table_rows
from wsabie.sources.tags import tags_in
from wsabie.sources.text import shown
from wsabie.storage.rejects import Rejects

RESERVED = ("group", "split", "time", "text")
"""Columns that are no kinds unless `kinds` names them."""
TAGGED = ("artist", "album", "genre")
"""Kinds that are read from the tags inside sounds."""
_ID_COLUMNS = (FILE_COLUMN, "id")


def relations_of(path: str | Path, *, kinds: Sequence[str] | None = None, rejects: Rejects | None = None) -> Related:
    """Names of all kinds in a collection.

    Parameters
    ----------
    path : str or Path
        A folder of MagnaTagATune, of spoken digits or with the tables of the Million Song Dataset; a table, or a folder
        with `metadata.csv` or `metadata.jsonl` (`relations_in_metadata`); any other folder of sounds
        (`relations_in_tags`).
    kinds : sequence of str or None
        Only these; None: all.
    rejects : Rejects or None
        Collects what is skipped; a strict one refuses instead.

    Returns
    -------
    Related

    Raises
    ------
    InputError
        Nothing there, nothing usable, or no names of a kind that is asked for.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "songs.tsv"
    ...     _ = file.write_text("id\\tartist\\tgenres\\n1\\tEarth, Wind & Fire\\tfunk, soul\\n2\\tNina\\tsoul\\n")
    ...     related = relations_of(file)
    >>> related.pairs["artist"], related.pairs["genres"]
    ([('1', 'Earth, Wind & Fire'), ('2', 'Nina')], [('1', 'funk'), ('1', 'soul'), ('2', 'soul')])
    """
    path = Path(path)
    known = next((read for known, read in _LAYOUTS if path.is_dir() and known(path)), None)
    if known is None and not (path.is_dir() and find_metadata(path) is None):
        return relations_in_metadata(path, kinds=kinds, rejects=rejects)
    related = (known or relations_in_tags)(path, rejects=rejects)
    return related if kinds is None else related.of_kinds(kinds)


def relations_in_metadata(path: Path, *, kinds: Sequence[str] | None = None, rejects: Rejects | None = None) -> Related:
    """Names in the columns of a table.

    A cell holds one name or several, in JSON also a list. The separator is the first of `;` and `|` that occurs
    anywhere in the column, or else `,` where the column is named in the plural: an artist or a genre may have a comma
    in its name. `label` and `tag` hold one name.

    Parameters
    ----------
    path : Path
        CSV (with commas, semicolons or tabs) or JSON lines with a column `file_name` or `id`, or the folder of a
        `metadata.csv` or `metadata.jsonl`.
    kinds : sequence of str or None
        The columns that are read; None: all but `file_name`, `id`, `group`, `split`, `time` and `text`.
    rejects : Rejects or None
        Lists rows without an id, and malformed ones.

    Returns
    -------
    Related
        A thing may have several rows; a column `split` says the sides of a split.

    Raises
    ------
    InputError
        Nothing usable, no such columns, malformed as a whole, or names and numbers mixed in a column.
    """
    rejects = Rejects() if rejects is None else rejects
    if path.is_dir():
        path = _metadata_in(path)
    rows = list(table_rows(path, rejects))
    columns = dict.fromkeys(name for _, row in rows for name in row)
    by = next((name for name in _ID_COLUMNS if name in columns), None)
    if rows and by is None:
        raise InputError(
            f"{shown(path)} has no column {' or '.join(map(repr, _ID_COLUMNS))} (it has {listed_names(columns)}); name "
            "the things in one"
        )
    wanted = [name for name in columns if name not in (*_ID_COLUMNS, *RESERVED)] if kinds is None else list(kinds)
    if missing := [name for name in wanted if name not in columns]:
        raise InputError(f"{shown(path)} has no column {missing[0]!r}; it has {listed_names(columns)}")
    return Related.of(path, _rows(rows, by or "", wanted, rejects), rejects, "rows of things")


def relations_in_tags(folder: Path, *, rejects: Rejects | None = None) -> Related:
    """Artists, albums and genres in the tags of the sounds of a folder.

    Raises
    ------
    InputError
        No sounds, none with tags, or mutagen is not installed.
    """
    rejects = Rejects() if rejects is None else rejects
    _, files = find_files(folder, rejects, SOUNDS)
    return Related.of(folder, _tagged(files, rejects), rejects, "sounds with tags")


_LAYOUTS: tuple[tuple[Callable[[Path], bool], Callable[..., Related]], ...] = (
    (is_magnatagatune, relations_in_magnatagatune),
    (is_spoken_digits, relations_in_spoken_digits),
    (is_million_song, relations_in_million_song),
)


def _metadata_in(folder: Path) -> Path:
    found = find_metadata(folder)
    if found is None:
        raise InputError(f"{shown(folder)} has no {' or '.join(NAMES)}; write one, or give a table")
    return found


def _rows(rows: list[tuple[str, dict[str, Any]]], by: str, kinds: list[str], rejects: Rejects) -> Iterator[Thing]:
    readers = {kind: LabelCells(kind) for kind in kinds}
    columns = [label_cells((row.get(kind) for _, row in rows), kind, _separators(kind)) for kind in kinds]
    sides: dict[str, str] = {}
    for number, (where, row) in enumerate(rows):
        try:
            name, side = word(row.get(by)), word(row.get("split"))
            if name is None:
                raise BadRow("row without an id")
            name = relative_name(name) if by == FILE_COLUMN else name
            if side not in (None, sides.get(name, side)):
                raise BadRow("row at odds with another of its file", f"split {side} and not {sides[name]}")
            said = {
                kind: clean_labels(_read(readers[kind], cells[number], where))
                for kind, cells in zip(kinds, columns, strict=True)
            }
            if side is not None:
                sides[name] = side
            yield Thing(name, said, side, word(row.get("group")))
        except BadRow as bad:
            rejects.add(where, bad.reason, bad.detail)


def _read(reader: LabelCells, cell: object, where: str) -> tuple[str, ...]:
    try:
        return reader.read(cell, where)
    except InputError as error:
        raise InputError(f"{error}, or leave the column out of kinds=") from error


def _separators(kind: str) -> str:
    return SEPARATORS if kind.endswith("s") else SEPARATORS.replace(",", "")


def _tagged(files: dict[str, Path], rejects: Rejects) -> Iterator[Thing]:
    for name, path in files.items():
        try:
            tags = tags_in(path)
            names = {kind: clean_labels(getattr(tags, kind)) for kind in TAGGED}
            if not any(names.values()):
                raise BadRow(SOUNDS.unlabelled)
            yield Thing(name, names)
        except BadRow as bad:
            rejects.add(name, bad.reason, bad.detail)
