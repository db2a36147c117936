"""Tables with a column of files and one of labels, as tools write them beside pictures or sounds.

They are CSV, with tabs too, JSON lines, or a JSON array as exiftool writes it. A name means a file as `FileMatcher`
finds it in the folder of the table, with or without its ending.
"""

import logging
import re
from collections import Counter
from pathlib import Path

from wsabie.core.errors import InputError
from wsabie.io.file_matching import find_listed_files
from wsabie.io.formats.media_folder import label_by_metadata, read_metadata
from wsabie.io.modalities import PICTURES, detect_modality
from wsabie.io.parsers.array_builders import require_rows
from wsabie.io.parsers.label_cells import LABEL_COLUMNS
from wsabie.io.parsers.text_tables import find_column, format_column_names, iterate_table_rows
from wsabie.io.records import ItemList, ReadOptions
from wsabie.storage.rejects import Rejects

_LABELS = ("subject", "keywords", "xpkeywords")
"""Columns of labels that exiftool writes, in lower case."""
log = logging.getLogger("wsabie")


def read_file_table(path: Path, options: ReadOptions) -> ItemList:
    """List the pictures or sounds that a table names.

    Parameters
    ----------
    path : Path
    options : ReadOptions
        Rejected are rows without labels or without a file.

    Raises
    ------
    InputError
        No labels, or none of the files lies beside the table.
    """
    label_column = options.label_column or find_label_column(path)[1]
    entries = read_metadata(path, label_column=label_column, rejects=options.rejects)
    if all(re.fullmatch(r"\d+\.0", entry.file_name) for entry in entries):  # as pandas writes numbers
        entries = [entry._replace(file_name=entry.file_name[:-2]) for entry in entries]
    listed_files = find_listed_files(path.parent, [entry.file_name for entry in entries])
    if entries and not listed_files:
        problem = f"{path} names files such as {entries[0].file_name[:100]!r}, and none of them lies beside it"
        raise InputError(f"{problem}; put the table into the folder of the files")
    names = {name: file.relative_to(path.parent).as_posix() for name, file in listed_files.items()}
    entries = [entry._replace(file_name=names.get(entry.file_name, entry.file_name)) for entry in entries]
    files = {name: path.parent / name for name in names.values()}
    modality = detect_modality(next(iter(files), "")) or PICTURES
    items = label_by_metadata(files, set(), entries, modality, options)
    require_rows(len(items), path, options.rejects, f"labelled {modality.name}")
    if not options.has_labels:
        items = [item._replace(labels=()) for item in items]
    return ItemList(path, items, modality.name)


def find_label_column(path: Path, is_json: bool | None = None) -> tuple[list[str], str | None]:
    """Return the columns of a table, and exiftool's that holds most labels; None if others hold them."""
    columns, counts = dict[str, None](), Counter[str]()
    for row in iterate_table_rows(path, Rejects(most=0), is_json):
        columns |= dict.fromkeys(row.cells)
        counts.update(name for name, cell in row.cells.items() if cell)
    names = [column for name in _LABELS if (column := find_column(columns, [name]))]
    if not names or find_column(columns, LABEL_COLUMNS[:4]):
        return list(columns), None
    label_column = max(names, key=lambda column: counts[column])
    if others := [column for column in names if counts[column] and column != label_column]:
        log.warning("labels of %s are those in %r; %s are not read", path, label_column, format_column_names(others))
    return list(columns), label_column
