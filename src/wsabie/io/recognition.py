"""Recognition of the format of data, and opening of them, whole or as a stream of rows.

Parquet, sparse text, fastText's text and Mulan's ARFF are streamed, so that no more than a part is ever in memory. Rows
of any other format are read whole first: those of published collections, which are small, and lists of pairs, whose
model is larger than they are (each id has its own vector). Labels of a part have the numbers in which their names came
up; the final numbers need the whole source.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from wsabie.core.errors import InputError
from wsabie.core.folder_tree import walk_folder
from wsabie.core.progress import SILENT, Progress
from wsabie.core.validation import require
from wsabie.io.datasets.debian_packages import find_package_lists, is_package_list, read_packages
from wsabie.io.datasets.iapr import is_iapr, read_iapr
from wsabie.io.datasets.lear import find_split_lists, is_lear, read_lear
from wsabie.io.datasets.magnatagatune import is_magnatagatune, read_magnatagatune
from wsabie.io.datasets.mirflickr import read_mirflickr
from wsabie.io.datasets.nus_wide import is_nus_wide, read_nus_wide
from wsabie.io.datasets.open_images import read_open_images
from wsabie.io.datasets.spoken_digits import is_spoken_digits, read_spoken_digits
from wsabie.io.file_matching import find_files
from wsabie.io.formats.citation_graph import is_citation_graph, read_citation_graph
from wsabie.io.formats.coco import find_coco_file, read_coco
from wsabie.io.formats.documents import (
    has_text_column,
    read_annif_rows,
    read_json_rows,
    read_parquet_documents,
    read_table_rows,
    read_text_table,
)
from wsabie.io.formats.fasttext import FastTextStream, read_fasttext
from wsabie.io.formats.file_table import read_file_table
from wsabie.io.formats.media_folder import LABELS_FROM, NAMES, read_file, read_folder
from wsabie.io.formats.mulan import MulanStream, read_mulan
from wsabie.io.formats.pair_list import read_pairs
from wsabie.io.formats.parquet_images import IMAGE_COLUMNS, PATH_COLUMNS, read_parquet_images
from wsabie.io.formats.parquet_rows import DENSE, SPARSE, ParquetStream
from wsabie.io.formats.parquet_tables import MAGIC, ParquetTable, list_parquet_files, open_parquet_table
from wsabie.io.formats.pascal_voc import is_voc, read_voc
from wsabie.io.formats.wordnet import find_synset_files, is_wordnet_glosses, read_glosses
from wsabie.io.modalities import DOCUMENTS, MEDIA, PICTURES, detect_modality
from wsabie.io.parsers.label_cells import LABEL_COLUMNS
from wsabie.io.parsers.text_files import explain_reading_errors, read_head
from wsabie.io.parsers.text_tables import format_column_names
from wsabie.io.records import FeatureTable, ItemList, ItemSource, ModalityName, ReadOptions, remove_labels
from wsabie.io.row_streams import InMemoryStream, RowStream, build_unlabelled_table
from wsabie.io.shards.shard_folder import is_shard_folder
from wsabie.io.shards.sharded_table import open_shards
from wsabie.io.text_formats import (
    TITLES,
    AmbiguousFormatError,
    TextHead,
    is_ranking,
    is_row,
    rate_formats,
    read_text_head,
)
from wsabie.storage.model_folder import is_model_folder
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.folder_labels import SPLITS

SUPPORTED_FORMATS = (
    "a folder of pictures, sounds or documents, shards, Parquet, XC or svmlight text, Mulan ARFF, fastText text with "
    "__label__ words, JSON lines or a table with a column text, a table with a column of files, Annif's TSV, a list of "
    "id TAB label, and the files of WordNet, "
    "Debian's package lists, COCO, Pascal VOC, NUS-WIDE, IAPR TC-12, Open Images, MIRFlickr and LEAR"
)
_HEAD = 1 << 16
_NEAR_TIE = 0.03  # formats whose scores differ by less fit equally well
_BINARIES = (
    (b"PK\3\4", "an archive or a spreadsheet; unpack it, or save it as CSV in UTF-8"),
    (b"SQLite format 3", "a database; export its tags as CSV, or have its program write them into the files"),
    (b"\x93NUMPY", "an array of NumPy, which has no labels; write Parquet with columns features and labels"),
    (b"ARROW1", "a file of Arrow; write Parquet, with pyarrow.parquet.write_table"),
    (b"\x89HDF", "HDF5; write Parquet with columns features and labels"),
    (b"\x80\4", "a pickle, which is never read; write Parquet or CSV"),
    (b"\x80\5", "a pickle, which is never read; write Parquet or CSV"),
    (b"Rar!", "an archive; unpack it"),
    (b"7z\xbc\xaf", "an archive; unpack it"),
)
"""First bytes of files that programs write and that are not read, with advice."""
_MARKUP_OR_BINARY = re.compile(rb"^\s*<|\0")
_OF_DOCUMENTS = ("glosses", "packages", "json", "table", "annif")
_TEXT_TABLES = {"json": read_json_rows, "table": read_table_rows, "annif": read_annif_rows}
_WITH_LABELS: Mapping[str, Callable[..., ItemSource]] = {
    "file": read_file,
    "glosses": read_glosses,
    "packages": read_packages,
}
_ROWS: Mapping[str, Callable[..., FeatureTable | ItemSource]] = {
    "arff": read_mulan,
    "citations": read_citation_graph,
    "iapr": read_iapr,
    "lear": read_lear,
    "mirflickr": read_mirflickr,
    "nus-wide": read_nus_wide,
    "open-images": read_open_images,
    "pairs": read_pairs,
}
OF_REGIONS: Mapping[str, Callable[..., ItemList]] = {"coco": read_coco, "voc": read_voc}
"""Layouts of regions of pictures, or of the pictures."""
OF_SEVERAL_KINDS: Mapping[str, Callable[..., FeatureTable | ItemList]] = {
    "magnatagatune": read_magnatagatune,
    "spoken-digits": read_spoken_digits,
    **OF_REGIONS,
}
"""Layouts with labels of several kinds, or items, and a published split."""
FORMAT_NAMES = ("folder", "file", "shards", "parquet", *TITLES, *OF_SEVERAL_KINDS, *sorted({*_ROWS} - {*TITLES}))
"""Names of all formats."""
_OF_FOLDERS = {"iapr": is_iapr, "magnatagatune": is_magnatagatune, "spoken-digits": is_spoken_digits, "voc": is_voc}
_OF_FILES = {"citations": is_citation_graph, "lear": is_lear}


def open_source(
    path: str | Path,
    *,
    data_format: str | None = None,
    labels_from: str = "auto",
    image_column: str | None = None,
    label_column: str | None = None,
    split: str | None = None,
    counts: bool = False,
    min_count: int = 1,
    n_features: int | None = None,
    modality: ModalityName | None = None,
    rejects: Rejects | None = None,
    progress: Progress = SILENT,
) -> FeatureTable | ItemSource:
    """Open data in any supported format.

    Parameters
    ----------
    path : str or Path
        A folder of pictures, sounds or documents (see `media_folder`), shards (`sharded_table`; all are read), Parquet
        or a folder of its parts (`parquet_images`, `parquet_rows`, `documents`), XC or svmlight text (`svmlight`),
        Mulan ARFF (`mulan`), fastText text (`fasttext`), JSON lines or a table with a column `text` (`documents`), a
        pair list (`pair_list`), files of a published collection (`wordnet`, `debian_packages`, `open_images`,
        `mirflickr`, `nus_wide`, `iapr`, `lear`, `citation_graph`, `magnatagatune`, `spoken_digits`, `coco`,
        `pascal_voc`), or one picture or sound. Text may be gzip. A folder that holds both pictures and Parquet is
        refused, unless the table has labels and names files by their paths.
    data_format : str or None
        The format, as `detect_format` calls it; None: the one that fits best.
    labels_from : {"auto", "folders", "metadata", "xmp", "tags", "none"}
        Where labels of pictures and sounds come from; "none" when there are none (what is to be
        annotated). Unless it is "auto", published collections of sounds are folders like any other, and so are those
        of regions unless it is "none".
    image_column, label_column : str or None
        Columns with other names than usual, in Parquet or in the metadata of an image folder; or the kind of
        label of MagnaTagATune ("tag", "artist", "album") and spoken digits ("digit", "speaker" ...), or of item of
        COCO and VOC ("regions", "boxes", "pictures").
    split : str or None
        Keep only rows whose column `split` says so, or which a published split puts there.
    counts : bool
        The features are declared counts: rows with negative values are skipped.
    min_count : int
        Words of a fastText file that are rarer get no column.
    n_features : int or None
        Width of features where the file does not promise one.
    modality : {"pictures", "sounds", "documents"} or None
        The expected modality, if known: with "documents" a file of text that is no collection of documents is one
        document, and no rows, and a folder is one of text, whatever else it holds.
    rejects : Rejects or None
        Collects what is skipped; a strict one refuses instead.
    progress : Progress
        Reports how far reading is.

    Returns
    -------
    FeatureTable or ItemSource

    Raises
    ------
    InputError
        Nothing there, nothing recognised, or nothing usable; one sentence says what to do.
    AmbiguousFormatError
        Two formats fit a file equally well.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "tags.tsv"
    ...     _ = file.write_text("a\\tsky\\na\\tsea\\nb\\tsea\\n")
    ...     rows = open_source(file)
    >>> rows.label_names, rows.Y.toarray().tolist()
    (['sea', 'sky'], [[1, 1], [1, 0]])
    """
    path = Path(path)
    rejects = Rejects() if rejects is None else rejects
    if labels_from not in LABELS_FROM:
        raise InputError(f"labels_from is {labels_from!r} but has to be one of {', '.join(LABELS_FROM)}")
    data_format = choose_format(path, data_format, plain_text=labels_from == "none", modality=modality)
    if data_format in OF_SEVERAL_KINDS and labels_from not in ("auto", "none" if data_format in OF_REGIONS else ""):
        data_format = "folder"
    if split is not None and data_format not in ("folder", "listing", "parquet", *_TEXT_TABLES, *OF_SEVERAL_KINDS):
        raise InputError(f"{path} has no column of splits to choose {split!r} from; leave split out")
    options = ReadOptions(rejects, labels_from, label_column, split)
    if data_format == "folder":
        folder, documents = path if path.is_dir() else path.parent, DOCUMENTS if modality == "documents" else None
        items = read_folder(folder, image_column=image_column, modality=documents, **options._asdict())
        if modality is None and items.modality == "documents":
            _refuse_rows(path, items.items[0].full_content)
        return items
    if data_format == "parquet":
        return _open_parquet(path, image_column, counts, n_features, options)
    if data_format in _TEXT_TABLES:
        return read_text_table(path, _TEXT_TABLES[data_format], options)
    if data_format == "listing":
        return read_file_table(path, options)
    if data_format in _WITH_LABELS:
        return _WITH_LABELS[data_format](path, labels_from=labels_from, rejects=rejects)
    if data_format in OF_SEVERAL_KINDS:
        published = OF_SEVERAL_KINDS[data_format](path, kind=label_column, split=split, rejects=rejects)
        return remove_labels(published) if data_format in OF_REGIONS and labels_from == "none" else published
    if data_format in _ROWS:
        return _ROWS[data_format](path, rejects=rejects)
    if data_format == "shards":
        return open_shards(path).load()
    if data_format == "fasttext":
        return read_fasttext(path, min_count=min_count, rejects=rejects)
    from wsabie.io.formats.svmlight import SvmlightStream  # compiles, or loads what is compiled

    return SvmlightStream(path, rejects, counts=counts, progress=progress).read_all(n_features)


_OF_BOTH = {"coco": lambda path: find_coco_file(path) is not None, "nus-wide": is_nus_wide}


def detect_published_layout(path: Path) -> str | None:
    """Return the layout of a published collection that consists of several files; None for any other.

    Raises
    ------
    InputError
        A folder that holds both sides of a split.
    """
    is_folder = path.is_dir()
    if is_folder and (sides := find_split_lists(path)):
        raise InputError(f"{path} holds the sides of a split; give one of its lists, such as {sides[-1]}")
    layouts = _OF_FOLDERS | _OF_BOTH if is_folder else _OF_BOTH | _OF_FILES
    return next((data_format for data_format, is_layout in layouts.items() if is_layout(path)), None)


def _open_parquet(
    path: Path, image_column: str | None, counts: bool, n_features: int | None, options: ReadOptions
) -> FeatureTable | ItemSource:
    table = open_parquet_table(path)
    _refuse_splits(table)
    if path.is_dir() and image_column is None:
        _check_neighbouring_pictures(table, options.label_column, options.rejects)
    for column in (image_column, options.label_column, None if options.split is None else "split"):
        if column is not None and not table.has_columns(column):
            raise InputError(f"{path} has no column {column!r}; it has {table.format_columns()}")
    if image_column is None and (table.has_columns(*SPARSE) or table.has_columns(DENSE)):
        return ParquetStream(table, options, counts=counts, unique=True).read_all(n_features)
    if image_column is not None or table.find_column((*IMAGE_COLUMNS, *PATH_COLUMNS)):
        return read_parquet_images(table, options, image_column)
    if has_text_column(table):
        return read_parquet_documents(table, options)
    raise InputError(
        f"{path} has neither pictures ({', '.join((*IMAGE_COLUMNS, *PATH_COLUMNS))}) nor features "
        f"({' with '.join(SPARSE)}, or {DENSE}) nor texts (text); it has {table.format_columns()}"
    )


def _refuse_splits(table: ParquetTable) -> None:
    """Refuse training and test rows side by side: they are not the shards of one table."""
    sides = {re.split(r"[-_.]", file.name.lower())[0] for file in table.files} & SPLITS
    if len(sides) > 1:
        first, second = sorted(sides)[:2]
        raise InputError(
            f"{table.path} holds the sides of a split ({first!r} and {second!r}); give one file, such as "
            f"{table.files[0]}"
        )


def _check_neighbouring_pictures(table: ParquetTable, label_column: str | None, rejects: Rejects) -> None:
    """Refuse pictures in a folder of Parquet, unless the table lists them as a metadata file does."""
    picture_rejects = Rejects()
    _, pictures = find_files(table.path, picture_rejects, PICTURES)
    if not pictures:
        return
    paths = table.find_column(PATH_COLUMNS)
    has_other_content = table.has_columns(*SPARSE) or table.find_column((DENSE, *IMAGE_COLUMNS))
    if paths is None or has_other_content or not table.find_column([label_column or "", *LABEL_COLUMNS]):
        raise InputError(
            f"{table.path} holds both Parquet ({table.files[0].name}) and pictures "
            f"({next(iter(pictures))}), and nothing says which counts; give the Parquet file itself, or move one of "
            "the two to another folder"
        )
    listed_names = {PurePosixPath(cell).as_posix() for cell in table.iterate_cells(paths) if isinstance(cell, str)}
    for where, reason, detail in picture_rejects.listed:
        rejects.add(where, reason, detail)
    for name in pictures:
        if name not in listed_names:
            rejects.add(name, PICTURES.unlabelled_reason, "no row in the table")


def choose_format(
    path: Path, data_format: str | None, *, plain_text: bool = False, modality: ModalityName | None = None
) -> str:
    """Return the requested format, or else that of `detect_format`."""
    if data_format is None:
        return detect_format(path, plain_text=plain_text, modality=modality)
    require(data_format in FORMAT_NAMES, f"there is no format {data_format!r}; there are {', '.join(FORMAT_NAMES)}")
    return data_format


def detect_format(path: Path, *, plain_text: bool = False, modality: ModalityName | None = None) -> str:
    """Return the format of a file or folder, as a word.

    Formats: folder, listing (a table of files), file (a picture, sound or document), shards, parquet, arff, fasttext,
    svmlight, pairs, documents (json, table, annif, glosses, packages), or a published collection (nus-wide, lear, iapr,
    citations, magnatagatune, spoken-digits, open-images, mirflickr).

    Text of no other format is fastText's if `plain_text` is set: lines without labels. Where documents are
    wanted, a file of text that is no collection of them is one.

    Raises
    ------
    InputError
        It is missing, empty, or none of these; or two fit equally well (`AmbiguousFormatError`).
    """
    with explain_reading_errors(path):
        if published := detect_published_layout(path):
            return published
        if path.is_dir():
            if is_model_folder(path):
                raise InputError(f"{path} is a model, and data are wanted here; give what it is to be used on")
            return "shards" if is_shard_folder(path) else _detect_folder_format(path)
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is a pipe or a device, but data are read twice; save them to a file")
    if path.name in NAMES:
        return "folder"
    content = read_head(path, _HEAD)
    if content.startswith(MAGIC):
        return "parquet"
    if detect_modality(path.name):
        return "file"  # an empty one is listed beside others
    if not content.strip():
        raise InputError(f"{path} is empty; give a file that holds data")
    candidates = (*MEDIA, DOCUMENTS) if modality == "documents" else MEDIA
    if (unread_modality := detect_modality(path.name, True, candidates)) is not None:
        raise InputError(
            f"{path} is a {unread_modality.singular} of a format that is not supported; {unread_modality.advice}"
        )
    head = read_text_head(content)
    ratings = rate_formats(head)
    data_format = ratings[0].kind if ratings else None
    if modality == "documents" and data_format not in _OF_DOCUMENTS and not _MARKUP_OR_BINARY.search(content):
        return "file"
    if data_format is None and plain_text and not _MARKUP_OR_BINARY.search(content):
        return "fasttext"
    if data_format is None:
        raise _make_unknown_error(path, head)
    if len(ratings) > 1 and ratings[0].score - ratings[1].score < _NEAR_TIE:
        raise AmbiguousFormatError(path, ratings[:2])
    return data_format


def _make_unknown_error(path: Path, head: TextHead) -> InputError:
    if is_ranking(head):
        return InputError(
            f"{path} holds queries (qid:) with grades of relevance, and no labels; leave the column qid: out if the "
            "first numbers are labels"
        )
    if program := next((name for mark, name in _BINARIES if head.content[: len(mark)] == mark), None):
        return InputError(f"{path} is {program}")
    if head.columns:
        return InputError(
            f"{path} has the columns {format_column_names(head.columns)} and none called text; call that "
            "of the documents text (of pictures or sounds beside the table: file_name) and that of their labels "
            "labels, or give features as Parquet or svmlight text"
        )
    hint = "; of Mulan data give the .arff file" if head.content.lstrip().startswith(b"<") else "; give one of these"
    return InputError(f"{path} is nothing that can be read: looked for {SUPPORTED_FORMATS}{hint}")


def _detect_folder_format(path: Path) -> str:
    if list_parquet_files(path):
        return "parquet"
    if not any(path.iterdir()):
        raise InputError(f"{path} is empty; give a folder of pictures, sounds, documents or Parquet files")
    data_format = "folder"
    if any(is_wordnet_glosses(read_head(file, _HEAD)) for file in find_synset_files(path)):
        data_format = "glosses"
    elif any(is_package_list(read_head(file, _HEAD)) for file in find_package_lists(path)):
        data_format = "packages"
    if data_format != "folder" and any(
        detect_modality(name) for _, _, names in walk_folder(path, lambda _: None) for name in names
    ):
        return "folder"  # not for a program's own folders beside WordNet's files, which hold none
    return data_format


def _refuse_rows(folder: Path, file: Path | bytes) -> None:
    """Refuse a folder whose file holds rows: that file should be given instead."""
    try:
        content = read_head(file, _HEAD) if isinstance(file, Path) else file
    except InputError:  # it is listed when its features are extracted
        return
    lines = read_text_head(content).lines
    rows = sum(map(is_row, lines))
    if 2 * rows > len(lines):
        raise InputError(f"{folder} holds no pictures and no sounds, and {file!s} holds rows; give that file")


def open_row_stream(
    path: Path, rejects: Rejects, progress: Progress = SILENT, data_format: str | None = None
) -> RowStream:
    """Open a source of rows in any format.

    Parameters
    ----------
    path : Path
        Whatever `open_source` takes for rows.
    rejects : Rejects
        Where rows that cannot be used are listed.
    progress : Progress
        Reports how far the reading before the rows is.
    data_format : str or None
        As for `open_source`.

    Raises
    ------
    InputError
        As `open_source`, or pictures, sounds or documents, whose features have to be extracted first.
    """
    stream = _open_stream(choose_format(path, data_format), path, rejects, progress)
    if stream is not None:
        return stream
    rows = open_source(path, data_format=data_format, rejects=rejects, progress=progress)
    if not isinstance(rows, FeatureTable):
        raise InputError(
            f"{path} holds {rows.modality}, and shards hold rows; extract features first with wsabie features, and "
            "give the file that it writes"
        )
    return InMemoryStream(path, rows)


def _open_stream(
    data_format: str, path: Path, rejects: Rejects, progress: Progress = SILENT, *, labelled: bool = True
) -> RowStream | None:
    if data_format == "svmlight":
        from wsabie.io.formats.svmlight import SvmlightStream

        return SvmlightStream(path, rejects, labelled=labelled)
    if data_format == "fasttext":
        return FastTextStream(path, rejects, progress)
    if data_format == "arff":
        return MulanStream(path, rejects)
    if data_format == "parquet":
        table = open_parquet_table(path)
        if table.has_columns(*SPARSE) or table.has_columns(DENSE):
            return ParquetStream(table, ReadOptions(rejects, "auto" if labelled else "none"))
    return None


def open_unlabelled_rows(
    path: Path,
    rejects: Rejects,
    n_features: int | None = None,
    modality: ModalityName | None = None,
    data_format: str | None = None,
) -> Iterator[FeatureTable] | None:
    """Yield the rows of a source without their labels, a part at a time; None for other data than rows.

    No more than a part is in memory, of shards and of sources that `open_row_stream` streams, so that an id
    of Parquet or ARFF may come twice.

    Parameters
    ----------
    path : Path
    rejects : Rejects
        Where rows that cannot be used are listed.
    n_features : int or None
        The width of rows that do not state theirs.
    modality : {"pictures", "sounds", "documents"} or None
        The expected modality; see `open_source`, as which this takes lines of text without labels.
    data_format : str or None
        As for `open_source`.

    Raises
    ------
    InputError
        As `open_source`; of rows that are read, when they are.
    """
    data_format = choose_format(path, data_format, plain_text=True, modality=modality)
    if data_format == "shards":
        return (replace(rows, Y=rows.Y[:, :0], label_names=[]) for rows in open_shards(path).iterate_blocks())
    stream = _open_stream(data_format, path, rejects, labelled=False)
    if stream is None:
        return None
    return (build_unlabelled_table([part.columns], stream.info, n_features or 0) for part in stream.iterate_parts())
