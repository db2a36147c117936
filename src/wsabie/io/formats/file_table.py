"""Tables with a column of files and one of labels, as tools and competitions write them beside pictures or sounds.

They are CSV, with tabs too, JSON lines, or a JSON array as exiftool writes it. A name is a path from the folder of the
table, or else the name of a single file in it, with or without its ending.
"""

from collections import defaultdict
from pathlib import Path, PurePosixPath

from wsabie.core.errors import InputError
from wsabie.io.file_matching import find_files, find_local_file, list_spellings
from wsabie.io.formats.media_folder import label_by_metadata, read_metadata
from wsabie.io.modalities import PICTURES, detect_modality
from wsabie.io.parsers.array_builders import require_rows
from wsabie.io.parsers.text_tables import iterate_table_rows
from wsabie.io.records import ItemList, ReadOptions
from wsabie.io.text_formats import find_file_column
from wsabie.storage.rejects import Rejects

_LABELS = ("subject", "keywords")
"""Columns of labels beside the usual ones, in lower case."""


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
    columns = next((list(row) for _, row in iterate_table_rows(path, Rejects(most=0))), [])
    file_column = find_file_column(columns) or ""
    other_labels = (name for name in columns if name.rpartition(":")[2].lower() in _LABELS)
    label_column = options.label_column or next(other_labels, None)
    entries = read_metadata(path, image_column=file_column, label_column=label_column, rejects=options.rejects)
    names = _match_names(path.parent, dict.fromkeys(entry.file_name for entry in entries))
    if entries and not names:
        raise InputError(
            f"{path} names files such as {entries[0].file_name[:100]!r}, and none of them lies beside it; put the "
            "table into the folder of the files"
        )
    entries = [entry._replace(file_name=names.get(entry.file_name, entry.file_name)) for entry in entries]
    files = {name: path.parent / name for name in names.values()}
    modality = detect_modality(next(iter(files), "")) or PICTURES
    items = label_by_metadata(files, set(), entries, options.split, modality, options.rejects)
    require_rows(len(items), path, options.rejects, f"labelled {modality.name}")
    if not options.has_labels:
        items = [item._replace(labels=()) for item in items]
    return ItemList(path, items, modality.name)


def _match_names(folder: Path, names: dict[str, None]) -> dict[str, str]:
    """Return the path in the folder of each name that is one of a file."""
    matches = {}
    for name in names:
        spellings = [spelling for spelling in list_spellings(name) if find_local_file(folder, spelling) is not None]
        if spellings and detect_modality(spellings[0]) is not None:
            matches[name] = PurePosixPath(spellings[0]).as_posix()
    if len(matches) == len(names):
        return matches
    _, files = find_files(folder, Rejects(most=0))
    places: defaultdict[str, list[str]] = defaultdict(list)
    for file in files:
        for key in {PurePosixPath(file).name, PurePosixPath(file).stem}:
            places[key].append(file)
    for name in names:
        key = list_spellings(name)[-1].rpartition("/")[2]
        if name not in matches and len(places.get(key, ())) == 1:
            matches[name] = places[key][0]
    return matches
