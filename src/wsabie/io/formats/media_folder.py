"""Folder of pictures, sounds or documents, labelled by sub-folders, a metadata file, or embedded tags.

Sub-folders: every level gives one label, so `animal/dog/1.jpg` has the labels "animal" and "dog"; some names are never
labels (`vocabulary.folder_labels`). Folders named by
synsets of WordNet (`n02084071`) are called as a file `words.txt` in the folder says, if there is one. Hidden
files and folders (a leading dot) and files of other kinds are left alone; those in formats that are not read
(`Modality.unread`) are rejected. Links to folders are not followed, links to files only inside the folder. The id of an
item is its path in the folder, with `/`; what is rejected is named in the same way. A folder that holds pictures and
sounds, such as albums with their covers, is a collection of that of which
there is more, and of the sounds where there are as many of both. Text is a collection of documents where there is
neither; documents may have no labels.

Metadata are `metadata.csv` or `metadata.jsonl`, in the form of Hugging Face's ImageFolder, in the folder or else in its
sub-folders. Each row has a `file_name`, relative to the folder of the metadata, and a column of labels: the first of
`labels`, `label`, `tags`, `tag`, `keywords` and `text` that is there. A cell is a text or a list; a text holds several
labels between `;`, `|` or `,` (see `label_cells`; `label` and `tag` are one label, never split). Without such a column,
columns of 0 and 1 are the labels. `group`, `split` and `time` are used when they are there. An item may have several
rows, as exports of tags do (one row for each label): their labels are joined. Its `group`, `split` and `time` need to
be said in one of them only; a row that says another is rejected.
"""

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from wsabie.core.errors import InputError, MissingLabelsError, require
from wsabie.core.input_files import is_regular_file
from wsabie.core.json_conversion import JsonObject
from wsabie.io.file_discovery import find_files, format_other_files
from wsabie.io.file_matching import FileMatcher, normalise_relative_path
from wsabie.io.formats.tool_files import find_tool_advice
from wsabie.io.image_errors import refine_by_decoding
from wsabie.io.modalities import DOCUMENTS, MEDIA, Modality, detect_modality
from wsabie.io.parsers import text_tables
from wsabie.io.parsers.array_builders import decode_row, require_rows
from wsabie.io.parsers.label_cells import LABEL_COLUMNS, LabelCellReader, find_choices, find_flag_columns
from wsabie.io.parsers.text_files import explain_input_errors, iterate_content_lines
from wsabie.io.records import Item, ItemList, ReadOptions
from wsabie.io.tags.image_tags import read_keywords
from wsabie.storage.rejects import Rejects, RowError
from wsabie.vocabulary.folder_labels import SPLITS, FolderLabels
from wsabie.vocabulary.label_names import normalise_label_name

NAMES = ("metadata.csv", "metadata.jsonl")
FILE_COLUMN = text_tables.FILE_COLUMNS[0]
_SINGLE_FIELDS = ("group", "time", "split")
Labeller: TypeAlias = Callable[[str, Path], Sequence[str]]
"""Gives the labels of a file by its path in the folder and on disk."""
LABELS_FROM = ("auto", "folders", "metadata", "xmp", "tags", "none")
_TABLES = (".csv", ".tsv", ".json", ".jsonl", ".parquet")
WORDS = "words.txt"
"""Beside folders named by synsets: what they are called, as WordNet and ImageNet list it (`n02084071 TAB dog`)."""
KEYWORD_SAMPLE = 200
"""Number of pictures that are searched for keywords if sub-folders could be labels too."""
MIN_KEYWORD_SHARE = 0.1
"""Lowest share of pictures with keywords that makes keywords the labels: most collections have stray ones."""
log = logging.getLogger("wsabie")
_SYNSET = re.compile(r"(^|/)n\d{8}/")


class MetadataEntry(NamedTuple):
    """Row of the metadata."""

    where: str
    file_name: str
    labels: tuple[str, ...]
    group: str | None
    time: str | None
    split: str | None


def merge_entries(base: MetadataEntry, entry: MetadataEntry) -> MetadataEntry:
    """Fill the empty fields of a row from another row of the same picture; labels aside.

    Raises
    ------
    RowError
        Their values differ.
    """
    merged = {}
    for name in _SINGLE_FIELDS:
        old, new = getattr(base, name), getattr(entry, name)
        if None not in (old, new) and old != new:
            raise RowError("row at odds with another of its file", f"{name} {new} and not {old}")
        merged[name] = new if old is None else old
    return base._replace(**merged)


def find_metadata(folder: Path) -> Path | None:
    """Return the metadata file of a folder, None when there is none.

    Raises
    ------
    InputError
        There are two, and nothing says which one counts.
    """
    files = [folder / name for name in NAMES if is_regular_file(folder / name)]
    require(len(files) <= 1, f"{folder} has both {NAMES[0]} and {NAMES[1]}; remove one of them")
    return files[0] if files else None


def find_metadata_files(folder: Path, files: Iterable[str]) -> dict[str, Path]:
    """Return the metadata file of a folder, or those of sub-folders with files, by path ("" or "sub/")."""
    if (path := find_metadata(folder)) is not None:
        return {"": path}
    parents = {name[: match.start()] for name in files for match in re.finditer("/", name)}
    return {f"{parent}/": path for parent in sorted(parents) if (path := find_metadata(folder / parent)) is not None}


def read_metadata_files(
    tables: dict[str, Path], files: Collection[str], options: ReadOptions, image_column: str | None = None
) -> list[MetadataEntry]:
    """Return usable rows of metadata files by sub-folder; file names become paths of `files` if they can."""
    entries: list[MetadataEntry] = []
    rejects, _, label_column, _ = options
    for parent, path in tables.items():
        rows = read_metadata(path, image_column=image_column, label_column=label_column, rejects=rejects)
        matches = FileMatcher(name.removeprefix(parent) for name in files if name.startswith(parent)).match(
            row.file_name for row in rows
        )
        entries += [row._replace(file_name=parent + matches.get(row.file_name, row.file_name)) for row in rows]
    return entries


def choose_label_source(folder: Path, files: Collection[str], modality: Modality) -> tuple[str, str]:
    """Return the source of labels where nobody names one, and a remark for people ("" where it is plain)."""
    if find_metadata_files(folder, files):
        return "metadata", ""
    if not FolderLabels(files, folder.name).can_distinguish or find_split_sides(files):
        return modality.label_source, ""
    if modality.label_source != "xmp" or not (share := _measure_keyword_share(folder, list(files))):
        return "folders", ""
    statement = f"in {folder} {share:.0%} of the inspected pictures have keywords"
    if share >= MIN_KEYWORD_SHARE:
        note = f"{statement}: these are the tags, not the names of sub-folders (`tags='folders'` takes those)"
        return modality.label_source, note
    return "folders", f"{statement}, but the names of sub-folders are the tags (`tags='xmp'` takes the keywords)"


def _measure_keyword_share(folder: Path, files: Sequence[str]) -> float:
    sample = files[:: -(-len(files) // KEYWORD_SAMPLE)]  # from the whole library, which begins with its oldest folder
    n_tagged = 0
    for name in sample:
        with suppress(RowError):
            n_tagged += bool(read_keywords(folder / name))
    return n_tagged / len(sample)


def find_split_sides(files: Iterable[str]) -> list[str]:
    """Return the sub-folders if they are the sides of a split: "train" and "test" are hardly labels."""
    folders = sorted({name.partition("/")[0] for name in files if "/" in name})
    sides = {name.lower() for name in folders}
    return folders if len(sides) > 1 and sides <= SPLITS else []


def read_metadata(
    path: Path, *, image_column: str | None = None, label_column: str | None = None, rejects: Rejects
) -> list[MetadataEntry]:
    """Return all usable rows of a metadata file.

    Parameters
    ----------
    path : Path
    image_column : str or None
        The column of file names; None takes the first of `text_tables.FILE_COLUMNS` that is there.
    label_column : str or None
        The column of labels; None takes the first of `label_cells.LABEL_COLUMNS` that is there.
    rejects : Rejects
        Where the other rows are listed.

    Raises
    ------
    InputError
        No rows, no such columns, malformed as a whole, a line of more than 4 MiB, or labels of mixed types.
    """
    n_rejects = len(rejects)
    rows = list(text_tables.iterate_table_rows(path, rejects))
    if not rows and len(rejects) == n_rejects:
        raise InputError(f"{path} has no rows; write one for each file, or remove the file")
    if not rows:
        return []
    columns = dict.fromkeys(name for row in rows for name in row.cells)
    image_column = image_column or text_tables.find_column(columns, text_tables.FILE_COLUMNS) or FILE_COLUMN
    if image_column not in columns:
        problem = f"{path} has no column {image_column!r} (it has {text_tables.format_column_names(columns)})"
        raise InputError(f"{problem}; name the files in one")
    reader = make_label_reader(path, lambda: (row.cells for row in rows), columns, label_column)
    entries = []
    for where, _, cells in rows:
        with rejects.catch(where):
            labels = reader.read_labels(reader.get_cell(cells), where)
            file_name, *facts = (text_tables.to_text_cell(cells.get(name)) for name in (image_column, *_SINGLE_FIELDS))
            if file_name is None:
                raise RowError("row without a file name")
            entries.append(MetadataEntry(where, file_name, labels, *facts))
    return entries


def make_label_reader(
    path: Path, iterate_cells: Callable[[], Iterable[JsonObject]], columns: Collection[str], label_column: str | None
) -> LabelCellReader:
    """Return the reader of the labels of a table: of a column, of answers, or of columns of 0 and 1.

    Raises
    ------
    InputError
        There are no such columns, or they hold no labels.
    """
    choices = text_tables.normalise_columns([label_column]) if label_column else LABEL_COLUMNS
    names = [name for name in choices if name in columns]
    answers = find_choices(columns) if not label_column and names in ([], ["text"]) else None
    if column := answers or next(iter(names), None):
        return LabelCellReader(column).inspect(row.get(column) for row in iterate_cells()).check(path)
    if label_column is None and (flags := find_flag_columns(iterate_cells())):
        return flags
    raise InputError(
        f"{path} has no column {' or '.join(map(repr, choices))} (it has "
        f"{text_tables.format_column_names(columns)}); put the labels in one of these"
    )


def read_folder(
    folder: Path, *, image_column: str | None = None, modality: Modality | None = None, **options: Any
) -> ItemList:
    """List the pictures, sounds or documents of a folder with their labels; nothing is decoded.

    Parameters
    ----------
    folder : Path
    image_column : str or None
        Column of files in the metadata file, when it has another name than usual.
    modality : Modality or None
        Expected modality; None: the most frequent one.
    labels_from : {"auto", "folders", "metadata", "xmp", "tags", "none"}
        "auto": metadata files if there are any, otherwise sub-folders if their names tell items apart and fewer than a
        tenth of the pictures have keywords, otherwise what is embedded in the files or lies beside them: XMP and IPTC
        keywords of pictures ("xmp"), genres and artists in the tags of sounds ("tags"). The choice is logged.
        "none": items to annotate, without labels; so are documents that are not in sub-folders.
    label_column : str or None
        Column of labels in the metadata file, when it has another name than usual.
    split : str or None
        Keep only the rows of the metadata file with this `split`.
    rejects : Rejects
        Lists items without labels or of unsupported formats, labels without an item, links and paths that lead out of
        the folder.

    Returns
    -------
    ItemList

    Raises
    ------
    InputError
        Missing, without pictures, sounds and documents, or without a single one that is labelled.
    """
    reading = ReadOptions(**options)
    rejects, labels_from, _, split = reading
    n_listed = len(rejects.listed)
    modality, files, endings = find_files(folder, rejects, modality)
    if files and (note := format_other_files(folder, endings)):
        log.info("%s", note)
    tables = find_metadata_files(folder, files) if labels_from in ("auto", "metadata") else {}
    metadata = next(iter(tables.values()), None)
    if labels_from == "metadata" and metadata is None:
        raise InputError(f"{folder} has no {' or '.join(NAMES)}; write one, or take labels from elsewhere")
    if not files:
        raise _make_no_files_error(folder, metadata, modality, rejects)
    if metadata is not None:
        entries = read_metadata_files(tables, files, reading, image_column)
        if split is not None and not any(entry.split == split for entry in entries):
            raise InputError(f"no row of {metadata} has the split {split!r}; check the name, or leave it out")
        unread = {where for where, reason, _ in rejects.listed[n_listed:] if reason == modality.unsupported_reason}
        items, labels_from = label_by_metadata(files, unread, entries, modality, reading), "metadata"
    else:
        source = labels_from
        if labels_from == "auto":
            if sides := find_split_sides(files):
                raise InputError(
                    f"the sub-folders of {folder} are {sides[0]!r} and {sides[1]!r}, which look like a split and not "
                    'like labels; give one of them, or say labels_from="folders"'
                )
            source, note = choose_label_source(folder, files, modality)
            if note:
                log.warning("%s", note)
        labels = make_labeller(folder, files, source, modality)
        if modality is DOCUMENTS and labels_from != source == "none":
            labels = _read_subjects
        items = _build_items(files.items(), labels, source, modality, rejects)
        if source == "xmp":
            LabelCellReader("keywords").inspect(list(item.labels) for item in items).check(folder)
    _require_labelled(folder, items, labels_from, modality, rejects)
    return ItemList(folder, items, modality.name)


def _make_no_files_error(folder: Path, metadata: Path | None, modality: Modality, rejects: Rejects) -> InputError:
    if n_unread := rejects.counts[modality.unsupported_reason]:
        return InputError(
            f"{folder} holds no {modality.name} that can be read, but {n_unread:,} in formats that are "
            f"not supported ({modality.unread_examples}); {modality.advice.replace(' it ', ' them ')}"
        )
    metadata_hint = f"; {metadata.name} alone is not enough" if metadata else ""
    candidates = (DOCUMENTS,) if modality is DOCUMENTS else (*MEDIA, DOCUMENTS)
    endings = ", ".join(candidate.endings[0] for candidate in candidates)
    kinds = modality.name if modality is DOCUMENTS else "pictures and no sounds or documents"
    problem = f"{folder} holds no {kinds} (such as {endings}){metadata_hint}"
    return InputError(f"{problem}; give a folder that has some, or the file itself when the data are in one")


def read_file(path: Path, *, labels_from: str = "auto", rejects: Rejects) -> ItemList:
    """Read a single picture, sound or document, with the labels inside it unless `labels_from` is "none"."""
    modality = detect_modality(path.name) or DOCUMENTS
    with explain_input_errors(path):
        path.stat()
    labels = make_labeller(path, (), labels_from if labels_from == "none" else modality.label_source, modality)
    items = _build_items([(path.name, path)], labels, labels_from, modality, rejects)
    _require_labelled(path, items, labels_from, modality, rejects)
    return ItemList(path, items, modality.name)


def label_by_metadata(
    files: dict[str, Path], unread: set[str], entries: list[MetadataEntry], modality: Modality, options: ReadOptions
) -> list[Item]:
    """Return the labelled items of metadata rows; `unread` are the paths of unsupported files."""
    listed_names: set[str] = set()
    rows: dict[str, MetadataEntry] = {}  # of each item, with a file or without
    labels: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for entry in entries:
        with options.rejects.catch(entry.where):
            name = normalise_relative_path(entry.file_name)
            listed_names.add(name)
            row_labels = normalise_labels(entry.labels)
            rows[name] = merge_entries(rows.get(name, entry), entry)
            labels[name].update(dict.fromkeys(row_labels))
    for name in files:
        if name not in listed_names:
            options.rejects.add(name, modality.unlabelled_reason, "no row in the metadata")
    items = []
    for name, row in rows.items():
        if options.split is not None and row.split != options.split:
            continue
        if name in files and labels[name]:
            items.append(Item(name, files[name], tuple(labels[name]), row.group, row.time))
        elif name not in unread:
            reason = modality.unlabelled_reason if name in files else f"labels without a {modality.singular}"
            options.rejects.add(row.where, reason, name)
    return items


def normalise_labels(names: Iterable[str]) -> tuple[str, ...]:
    """Return names in one spelling, each once, in their order; blank ones are left out.

    Raises
    ------
    RowError
        A name is not valid text.
    """
    try:
        return tuple(dict.fromkeys(name for name in map(normalise_label_name, names) if name))
    except InputError as error:
        raise RowError("label that is not valid text", ascii(list(names))[:100]) from error


def _read_subjects(_: str, path: Path) -> list[str]:
    """Return the labels in the file beside a document, as Annif has them: `<address> TAB name`, or names."""
    paths = (path.with_suffix(ending) for ending in (".tsv", ".key"))
    lines = (decode_row(line) for file in paths if file.is_file() for _, line in iterate_content_lines(file))
    return [line.partition("\t")[2] or line.strip().strip("<>") for line in lines]


def make_labeller(folder: Path, files: Iterable[str], labels_from: str, modality: Modality) -> Labeller:
    """Return a function that gives the labels of a file; a metadata file is read elsewhere."""
    if labels_from == "folders":
        words, labels = folder / WORDS, FolderLabels(files, folder.name, keep_any=True)
        names = text_tables.read_code_names(words) if words.is_file() and any(map(_SYNSET.search, files)) else {}
        return lambda name, path: tuple(names.get(part, part) for part in labels.get_labels(name))
    if labels_from == modality.label_source:
        return lambda name, path: modality.read_labels(path)
    if labels_from in {candidate.label_source for candidate in MEDIA}:
        raise InputError(f"{modality.name} have no {labels_from}; say labels_from={modality.label_source!r}")
    return lambda name, path: ()


def _build_items(
    files: Iterable[tuple[str, Path]], labels_of: Labeller, labels_from: str, modality: Modality, rejects: Rejects
) -> list[Item]:
    items = []
    keep_all = labels_from == "none" or modality is DOCUMENTS
    for name, path in files:
        try:
            labels = normalise_labels(labels_of(name, path))
            if not labels and not keep_all:
                raise RowError(modality.unlabelled_reason)
            items.append(Item(name, path, labels))
        except RowError as error:
            row_error = refine_by_decoding(error, path)
            rejects.add(name, row_error.reason, row_error.detail)
    return items


def _require_labelled(folder: Path, items: list[Item], labels_from: str, modality: Modality, rejects: Rejects) -> None:
    if items:
        return
    n_without_labels = rejects.counts[modality.unlabelled_reason] + rejects.counts[modality.unsupported_reason]
    if labels_from == "auto" and n_without_labels == len(rejects):
        tables = sorted(path for path in folder.iterdir() if path.suffix.lower() in _TABLES) if folder.is_dir() else []
        table_hint = f", or give {tables[0]}, which may hold labels" if tables else ""
        advice = find_tool_advice(folder)
        raise MissingLabelsError(
            f"the {modality.name} of {folder} have no labels: there are no sub-folders to tell them "
            f"apart, no {' or '.join(NAMES)}, and no {modality.label_description}; "
            f"label them in one of these ways{f'; {advice}' if advice else table_hint}"
        )
    try:
        require_rows(0, folder, rejects, f"labelled {modality.name}")
    except InputError as error:
        if not rejects.counts[modality.unlabelled_reason]:
            raise
        raise MissingLabelsError(*error.args) from None
