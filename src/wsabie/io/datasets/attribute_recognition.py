"""Attributes of the items of a source: `read_attributes` detects where they are."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from wsabie.core.errors import InputError, require
from wsabie.io.datasets.item_attributes import AttributeTable, ItemAttributes
from wsabie.io.datasets.magnatagatune import is_magnatagatune, read_magnatagatune_attributes
from wsabie.io.datasets.million_song import is_million_song, read_million_song_attributes
from wsabie.io.datasets.spoken_digits import is_spoken_digits, read_spoken_digits_attributes
from wsabie.io.file_discovery import find_files
from wsabie.io.file_matching import normalise_relative_path
from wsabie.io.formats.media_folder import FILE_COLUMN, NAMES, find_metadata, normalise_labels
from wsabie.io.modalities import SOUNDS
from wsabie.io.parsers.label_cells import SEPARATORS, LabelCellReader
from wsabie.io.parsers.text_tables import TextRow, format_column_names, iterate_table_rows, to_text_cell
from wsabie.io.tags.audio_tags import read_audio_tags
from wsabie.storage.rejects import Rejects, RowError

RESERVED = ("group", "split", "time", "text")
"""Columns that are not kinds unless `kinds` names them."""
TAGGED = ("artist", "album", "genre")
"""Kinds that are read from the tags inside sounds."""
_ID_COLUMNS = (FILE_COLUMN, "id")
_SINGULAR = SEPARATORS.replace(",", "")
_LAYOUTS: tuple[tuple[Callable[[Path], bool], Callable[..., AttributeTable]], ...] = (
    (is_magnatagatune, read_magnatagatune_attributes),
    (is_spoken_digits, read_spoken_digits_attributes),
    (is_million_song, read_million_song_attributes),
)


def read_attributes(
    path: str | Path, *, kinds: Sequence[str] | None = None, rejects: Rejects | None = None
) -> AttributeTable:
    """Read the attributes of all kinds in a source.

    Parameters
    ----------
    path : str or Path
        A folder of MagnaTagATune, of spoken digits or with the tables of the Million Song Dataset; a table, or a folder
        with `metadata.csv` or `metadata.jsonl` (`read_metadata_attributes`); any other folder of sounds
        (`read_tag_attributes`).
    kinds : sequence of str or None
        Only these; None: all.
    rejects : Rejects or None
        Collects what is skipped; a strict one refuses instead.

    Returns
    -------
    AttributeTable

    Raises
    ------
    InputError
        Nothing there, nothing usable, or no names of a requested kind.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "songs.tsv"
    ...     _ = file.write_text("id\\tartist\\tgenres\\n1\\tEarth, Wind & Fire\\tfunk, soul\\n2\\tNina\\tsoul\\n")
    ...     attributes = read_attributes(file)
    >>> attributes.pairs["artist"], attributes.pairs["genres"]
    ([('1', 'Earth, Wind & Fire'), ('2', 'Nina')], [('1', 'funk'), ('1', 'soul'), ('2', 'soul')])
    """
    path, rejects = Path(path), Rejects() if rejects is None else rejects
    reader = next((reader for is_layout, reader in _LAYOUTS if path.is_dir() and is_layout(path)), None)
    if reader is None and not (path.is_dir() and find_metadata(path) is None):
        return read_metadata_attributes(path, kinds=kinds, rejects=rejects)
    attributes = (reader or read_tag_attributes)(path, rejects=rejects)
    return attributes if kinds is None else attributes.select_kinds(kinds)


def read_metadata_attributes(path: Path, *, kinds: Sequence[str] | None = None, rejects: Rejects) -> AttributeTable:
    """Read names from the columns of a table.

    A cell holds one name or several, in JSON also a list. The separator is the first of `;` and `|` that
    occurs anywhere in the column, or else `,` where the column is named in the plural: an artist or a genre
    may have a comma in its name. `label` and `tag` hold one name.

    Parameters
    ----------
    path : Path
        CSV (with commas, semicolons or tabs) or JSON lines with a column `file_name` or `id`, or the folder of a
        `metadata.csv` or `metadata.jsonl`.
    kinds : sequence of str or None
        The columns that are read; None: all but `file_name`, `id`, `group`, `split`, `time` and `text`.
    rejects : Rejects
        Lists rows without an id, and malformed ones.

    Returns
    -------
    AttributeTable
        An item may have several rows; a column `split` names the sides of a split.

    Raises
    ------
    InputError
        Nothing usable, no such columns, malformed as a whole, or names and numbers mixed in a column.
    """
    if path.is_dir():
        folder, path = path, find_metadata(path) or path
        require(path != folder, f"{folder} has no {' or '.join(NAMES)}; write one, or give a table")
    rows = list(iterate_table_rows(path, rejects))
    columns = dict.fromkeys(name for row in rows for name in row.cells)
    id_column = next((name for name in _ID_COLUMNS if name in columns), None)
    if rows and id_column is None:
        problem = f"{path} has no column {' or '.join(map(repr, _ID_COLUMNS))} (it has {format_column_names(columns)})"
        raise InputError(f"{problem}; name the items in one")
    kind_names = [name for name in columns if name not in (*_ID_COLUMNS, *RESERVED)] if kinds is None else list(kinds)
    if missing := [name for name in kind_names if name not in columns]:
        raise InputError(f"{path} has no column {missing[0]!r}; it has {format_column_names(columns)}")
    items = _iterate_attributes(rows, id_column or "", kind_names, rejects)
    return AttributeTable.from_items(path, items, rejects, "rows of items")


def read_tag_attributes(folder: Path, *, rejects: Rejects) -> AttributeTable:
    """Read artists, albums and genres from the tags of the sounds of a folder.

    Raises
    ------
    InputError
        No sounds, none with tags, or mutagen is not installed.
    """
    files = find_files(folder, rejects, SOUNDS).files
    return AttributeTable.from_items(folder, _iterate_tagged(files, rejects), rejects, "sounds with tags")


def _iterate_attributes(
    rows: list[TextRow], id_column: str, kinds: list[str], rejects: Rejects
) -> Iterator[ItemAttributes]:
    readers = []
    for kind in kinds:
        separators = SEPARATORS if kind.endswith("s") else _SINGULAR
        readers.append(LabelCellReader(kind, None, separators).inspect(row.cells.get(kind) for row in rows))
    sides: dict[str, str] = {}
    for where, _, cells in rows:
        with rejects.catch(where):
            name, side = to_text_cell(cells.get(id_column)), to_text_cell(cells.get("split"))
            if name is None:
                raise RowError("row without an id")
            name = normalise_relative_path(name) if id_column == FILE_COLUMN else name
            if side not in (None, sides.get(name, side)):
                raise RowError("row at odds with another of its file", f"split {side} and not {sides[name]}")
            names = {
                reader.name: normalise_labels(_read_names(reader, cells.get(reader.name), where)) for reader in readers
            }
            if side is not None:
                sides[name] = side
            yield ItemAttributes(name, names, side, to_text_cell(cells.get("group")))


def _read_names(reader: LabelCellReader, cell: object, where: str) -> tuple[str, ...]:
    try:
        return reader.read_labels(cell, where)
    except InputError as error:
        raise InputError(f"{error}, or leave the column out of kinds=") from error


def _iterate_tagged(files: dict[str, Path], rejects: Rejects) -> Iterator[ItemAttributes]:
    for name, path in files.items():
        with rejects.catch(name):
            tags = read_audio_tags(path)
            names = {kind: normalise_labels(getattr(tags, kind)) for kind in TAGGED}
            if not any(names.values()):
                raise RowError(SOUNDS.unlabelled_reason)
            yield ItemAttributes(name, names)
