"""Detection of the format of data, by a table of names, examples, limits, scores and readers.

A score of 1 is for names of files and first bytes that decide alone, .99 for a mark of text that only one format has.
Others grow with the share of first lines that have the form; looser forms score lower. The highest score decides.
Libraries look for marks of first bytes, which text has not (`docs/decisions/format-detection.md`).
"""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from wsabie.core.errors import InputError, require
from wsabie.core.execution import Progress
from wsabie.core.folder_tree import walk_folder
from wsabie.io.datasets.debian_packages import find_package_lists, is_package_list, read_packages
from wsabie.io.datasets.iapr import is_iapr, read_iapr
from wsabie.io.datasets.lear import find_split_lists, is_lear, read_lear
from wsabie.io.datasets.magnatagatune import is_magnatagatune, read_magnatagatune
from wsabie.io.datasets.mirflickr import read_mirflickr
from wsabie.io.datasets.nus_wide import is_nus_wide, read_nus_wide
from wsabie.io.datasets.open_images import read_open_images
from wsabie.io.datasets.spoken_digits import is_spoken_digits, read_spoken_digits
from wsabie.io.formats import documents
from wsabie.io.formats.citation_graph import is_citation_graph, read_citation_graph
from wsabie.io.formats.coco import find_coco_file, read_coco
from wsabie.io.formats.fasttext import read_fasttext
from wsabie.io.formats.file_table import read_file_table
from wsabie.io.formats.media_folder import NAMES, read_file, read_folder
from wsabie.io.formats.mulan import read_mulan
from wsabie.io.formats.pair_list import has_header, read_pairs
from wsabie.io.formats.parquet import read_parquet
from wsabie.io.formats.parquet_tables import MAGIC, list_parquet_files
from wsabie.io.formats.pascal_voc import is_voc, read_voc
from wsabie.io.formats.tool_files import describe_tool
from wsabie.io.formats.wordnet import find_synset_files, is_wordnet_glosses, read_glosses
from wsabie.io.modalities import DOCUMENTS, MEDIA, detect_modality
from wsabie.io.parsers import text_tables
from wsabie.io.parsers.json_values import is_array
from wsabie.io.parsers.text_files import explain_input_errors, read_head
from wsabie.io.records import ItemList, ItemSource, ModalityName, ReadOptions, Source
from wsabie.io.shards.shard_folder import is_shard_folder
from wsabie.io.shards.sharded_table import open_shards
from wsabie.storage.model_folder import is_model_folder
from wsabie.storage.rejects import Rejects

_LINES = 50
_SEVERAL, _SEPARATOR = ("labels", "tags", "keywords", "subject"), re.compile(rb"[;|,]")
_MEDIA_NAME = re.compile(
    "|".join(re.escape(ending) + r"\b" for kind in MEDIA for ending in kind.endings).encode(), re.I
)
_XC = re.compile(rb"\s*\d+[ \t]+\d+[ \t]+\d+\s*")
_SPARSE_ROW = re.compile(rb"\s*([+-]?\d++(\.0*+)?([ \t]*,[ \t]*[+-]?\d++(\.0*+)?)*[ \t]+)?\d++:[-+.\d]")
_RANKING_ROW = re.compile(rb"\s*[-+.\d]+[ \t]+qid:\d")
_PAIR = re.compile(rb"[^\t\0]+\t[^\t\0]+(\t\s*[-+.\d][-+.\deE]*\s*)?")
_ARFF = re.compile(rb"(\s|%[^\n]*\n)*@(relation|attribute)\b", re.IGNORECASE)
_OPEN_IMAGES = re.compile(rb"ImageID,(?>(?:[^\n,]*,)*?LabelName,)(?:[^\n,]*,)*?Confidence\b")
_MIRFLICKR = re.compile(rb"\d+,\d+,[^,]+,\"?\[.*\]\"?\s*")
_JSON_DOCUMENT = re.compile(rb'\s*\{.*"\s*text\s*"\s*:', re.IGNORECASE)
_FASTTEXT = re.compile(rb"(^|\s)__label__\S")
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


class DataHead(NamedTuple):
    """Path of data, and of a file the first bytes, the first lines that are not blank, and the columns."""

    path: Path
    content: bytes = b""
    lines: Sequence[bytes] = ()
    columns: Sequence[str] = ()


class Rating(NamedTuple):
    """Score of a format for data, from 0 to 1, with its reason."""

    kind: str
    score: float
    reason: str


Rate: TypeAlias = Callable[[DataHead], tuple[float, str]]
Read: TypeAlias = Callable[..., Source]


class DataFormat(NamedTuple):
    """Format of data.

    Attributes
    ----------
    kind, title : str
        Its name in `detect_format`, and in messages.
    endings : str
        The usual ones of its files.
    example : str
        First lines of a file, or names of files in a folder.
    loses : str
        What it cannot hold.
    rate : callable
        Gives the score of data, and a reason.
    read : callable
        Reads a path.
    takes : tuple of str
        Options of `open_source` for the reader, beside `rejects`; `kind` is another name of `label_column`.
    """

    kind: str
    title: str
    endings: str
    example: str
    loses: str
    rate: Rate
    read: Read
    takes: tuple[str, ...] = ()


def read_data_head(path: Path) -> DataHead:
    """Return the beginning of a file; only the path of a folder."""
    return DataHead(path) if path.is_dir() else parse_head(path, read_head(path))


def parse_head(path: Path, content: bytes) -> DataHead:
    """Return the first lines of a file and the columns that they name, from its first bytes."""
    lines = [line for line in content.split(b"\n") if line.strip()][:_LINES]
    columns: Sequence[str] = ()
    if is_array(content):
        with suppress(ValueError, RecursionError):
            text = content.decode("utf-8", "replace")
            row, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
            columns = text_tables.normalise_columns(text_tables.flatten_task(row))
    elif lines:
        first = lines[1:] if lines[0].strip().strip(b'"')[:4].lower() == b"sep=" else lines
        columns = documents.detect_columns(first) if first else ()
    return DataHead(path, content, lines, columns)


def rate_formats(head: DataHead) -> list[Rating]:
    """Return the ratings above 0, the best first; the first format with a 1 decides alone."""
    ratings = []
    for form in FORMATS:
        rating = Rating(form.kind, *form.rate(head))
        if rating.score == 1:
            return [rating]
        if rating.score > 0:
            ratings.append(rating)
    return sorted(ratings, key=lambda rating: -rating.score)


def is_ranking(head: DataHead) -> bool:
    """Return True if rows have the queries of a ranking (`qid:`)."""
    return any(map(_RANKING_ROW.match, head.lines))


def find_media_name(line: bytes) -> str | None:
    """Return the name of a picture or sound in a line; None without one."""
    names = (word.decode("utf-8", "replace")[:100] for word in re.split(rb"[\s,;|]+", line) if _MEDIA_NAME.search(word))
    return next(names, None)


def is_row(line: bytes) -> bool:
    """Return True if a line is one of rows and not of a document."""
    return bool(_SPARSE_ROW.match(line) or _PAIR.fullmatch(line) or _FASTTEXT.search(line))


def _by_path(is_layout: Callable[[Path], object], reason: str) -> Rate:
    """Return a rating that is 1 for a file or folder with a layout."""
    return lambda head: (float(bool(is_layout(head.path))), reason)


def _by_folder(is_layout: Callable[[Path], bool], reason: str) -> Rate:
    """Return a rating that is 1 for a folder with a layout."""
    return _by_path(lambda path: path.is_dir() and is_layout(path), reason)


def _by_mark(has_mark: Callable[[bytes], object], reason: str) -> Rate:
    """Return a rating of text whose first bytes have a mark."""
    return lambda head: (0.99 if has_mark(head.content) else 0, reason)


def _by_marked_files(list_files: Callable[[Path], list[Path]], has_mark: Callable[[bytes], bool], reason: str) -> Rate:
    """Return a rating of a file with a mark, or of a folder with such files and no pictures or sounds."""

    def rate(head: DataHead) -> tuple[float, str]:
        if not head.path.is_dir():
            return _by_mark(has_mark, reason)(head)
        has_files = any(has_mark(read_head(file)) for file in list_files(head.path))
        # not for a program's own folders beside WordNet's files, which hold none
        names = (name for _, _, names in walk_folder(head.path, lambda _: None) for name in names)
        return (0.99 if has_files and not any(map(detect_modality, names)) else 0), reason

    return rate


def _by_lines(has_form: Callable[[bytes], object], lowest: float, highest: float, reason: str, least: int = 0) -> Rate:
    """Return a rating that grows with lines of a form; over `least` % of the first lines must have it."""

    def rate(head: DataHead) -> tuple[float, str]:
        n = sum(bool(has_form(line)) for line in head.lines)
        share = n / max(len(head.lines), 1)
        is_enough = n > 0 and 100 * share >= least
        return (lowest + (highest - lowest) * share if is_enough else 0.0), f"{n} of {len(head.lines)} lines {reason}"

    return rate


def _has_subjects(line: bytes) -> bool:
    """Return True if addresses stand behind a text: in brackets, or the text has blanks, as no id has."""
    text, subjects = documents.split_subjects(line.decode("utf-8", "replace"))
    return bool(text and subjects) and (b"<" in line or " " in (text or ""))


def _rate_parquet(head: DataHead) -> tuple[float, str]:
    is_parquet = list_parquet_files(head.path) if head.path.is_dir() else head.content.startswith(MAGIC)
    return float(bool(is_parquet)), "the first four bytes"


def _rate_folder(head: DataHead) -> tuple[float, str]:
    if head.path.name in NAMES and head.lines:
        return 1.0, "a table of the files beside it"
    return (0.5 if head.path.is_dir() else 0), "a folder"


def _rate_sparse(head: DataHead) -> tuple[float, str]:
    if any(map(_XC.fullmatch, head.lines[:1])):
        return 0.99, "the first line holds three numbers"
    return _by_lines(_SPARSE_ROW.match, 0.91, 0.94, "hold feature:value")(head)


def _rate_documents(head: DataHead) -> tuple[float, str]:
    if is_array(head.content) and documents.TEXT_COLUMN in head.columns:
        return 0.99, "an array of objects with text"
    return _by_lines(_JSON_DOCUMENT.match, 0.96, 0.99, "are objects with text")(head)


def _rate_table(head: DataHead) -> tuple[float, str]:
    has_text = documents.TEXT_COLUMN in head.columns and _find_file_column(head) is None
    is_json = has_text and head.lines[0].lstrip()[:1] in (b"{", b"[")
    return (0.99 if has_text and not is_json else 0), "the first line names a column text"


def _find_file_column(head: DataHead) -> str | None:
    """Return the column of files; beside a text it is one only if there are names of pictures or sounds."""
    has_text = documents.TEXT_COLUMN in head.columns and not _MEDIA_NAME.search(head.content)
    return None if has_text else text_tables.find_column(head.columns, text_tables.FILE_COLUMNS)


def _rate_listing(head: DataHead) -> tuple[float, str]:
    column = _find_file_column(head)
    has_several = text_tables.find_column(head.columns, _SEVERAL) and any(map(_SEPARATOR.search, head.lines[1:]))
    has_labels = len(head.columns) > 1 and (has_several or not _PAIR.fullmatch(head.lines[0]))
    return (0.9 if column is not None and has_labels else 0.0), f"the column {column} names files"


def _rate_pairs(head: DataHead) -> tuple[float, str]:
    score, reason = _by_lines(_PAIR.fullmatch, 0, 0.8, "are two cells with a tab between them", 50)(head)
    return score, reason + (", below a header" if score and has_header(head.lines) else "")


def _with_options(read_table: Callable[[Path, ReadOptions], ItemSource]) -> Read:
    return lambda path, **options: read_table(path, ReadOptions(**options))


def _of_texts(read_rows: documents.RowReader) -> Read:
    return _with_options(partial(documents.read_text_table, read_rows=read_rows))


def _read_svmlight(path: Path, *, counts: bool, n_features: int | None, progress: Progress, rejects: Rejects) -> Source:
    from wsabie.io.formats.svmlight import SvmlightStream  # compiles, or loads what is compiled

    return SvmlightStream(path, rejects, counts=counts, progress=progress).read_all(n_features)


def _read_folder(path: Path, *, modality: ModalityName | None, **options: Any) -> ItemList:
    """Read a folder, or the one of a metadata file."""
    folder = path if path.is_dir() else path.parent
    items = read_folder(folder, modality=DOCUMENTS if modality == "documents" else None, **options)
    if modality is None and items.modality == "documents":
        _refuse_rows(path, items.items[0].full_content)
    return items


def _refuse_rows(folder: Path, file: Path | bytes) -> None:
    """Refuse a folder whose file holds rows: that file should be given instead."""
    try:
        content = read_head(file) if isinstance(file, Path) else file
    except InputError:  # it is listed when its features are extracted
        return
    lines = parse_head(folder, content).lines
    if 2 * sum(map(is_row, lines)) > len(lines):
        raise InputError(f"{folder} holds no pictures and no sounds, and {file!s} holds rows; give that file")


_TABLE = ("labels_from", "label_column", "split")
REGION_FORMATS = ("coco", "voc")
"""Formats of regions of pictures, or of the pictures."""
FORMATS: Sequence[DataFormat] = (
    DataFormat("iapr", "IAPR TC-12", ".eng .txt", "annotations/00/25.eng", "",
               _by_folder(is_iapr, "descriptions or regions"), read_iapr),
    DataFormat("magnatagatune", "MagnaTagATune", ".csv", "annotations_final.csv, clip_info_final.csv, 0/a.mp3", "",
               _by_folder(is_magnatagatune, "its two tables"), read_magnatagatune, ("kind", "split")),
    DataFormat("spoken-digits", "spoken digits", ".wav", "metadata.py, recordings/7_theo_0.wav", "",
               _by_folder(is_spoken_digits, "metadata and recordings"), read_spoken_digits, ("kind", "split")),
    DataFormat("voc", "Pascal VOC", ".xml", "JPEGImages/1.jpg, Annotations/1.xml", "outlines",
               _by_folder(is_voc, "pictures and annotations"), read_voc, ("kind", "split")),
    DataFormat("coco", "COCO", ".json", '{"images": [...], "categories": [...], "annotations": [...]}', "crowds, masks",
               _by_path(find_coco_file, "images, categories and annotations"), read_coco, ("kind", "split")),
    DataFormat("nus-wide", "NUS-WIDE", ".txt .dat", "Final_Tag_List.txt, All_Tags.txt", "",
               _by_path(is_nus_wide, "names of its files"), read_nus_wide),
    DataFormat("citations", "documents with citations", ".docs.txt", "cora.docs.txt, cora.links.txt", "words",
               _by_path(is_citation_graph, "documents and links"), read_citation_graph),
    DataFormat("lear", "lists of LEAR", ".txt .hvecs .csv", "corel5k_train_list.txt, corel5k_dictionary.txt",
               "features", _by_path(is_lear, "a dictionary beside the list"), read_lear),
    DataFormat("shards", "shards", "", "manifest.json, statistics.json", "",
               _by_folder(is_shard_folder, "a manifest"), lambda path, rejects: open_shards(path).load()),
    DataFormat("parquet", "Parquet", ".parquet", "features or indices and values, image, path or text; labels", "",
               _rate_parquet, read_parquet, (*_TABLE, "image_column", "counts", "n_features")),
    DataFormat("file", "a single file", "", "1.jpg", "labels outside the file",
               _by_path(lambda path: path.is_file() and detect_modality(path.name), "the ending of its name"),
               read_file, ("labels_from",)),
    DataFormat("folder", "folder", "", "animal/dog/1.jpg", "",
               _rate_folder, _read_folder, (*_TABLE, "image_column", "modality")),
    DataFormat("glosses", "glosses of WordNet", "", "00001740 03 n 01 entity 0 000 | that which ...", "",
               _by_marked_files(find_synset_files, is_wordnet_glosses, "synsets and glosses"),
               read_glosses, ("labels_from",)),
    DataFormat("packages", "list of Debian's packages", "_Packages", "Package: sl\nSection: games", "",
               _by_marked_files(find_package_lists, is_package_list, "packages"), read_packages, ("labels_from",)),
    DataFormat("json", "JSON lines of documents", ".jsonl .json", '{"text": "waves", "labels": ["sea"]}', "",
               _rate_documents, _of_texts(documents.read_json_rows), _TABLE),
    DataFormat("table", "table of documents", ".csv .tsv", "text,labels\nwaves,sea", "lists in cells are texts",
               _rate_table, _of_texts(documents.read_table_rows), _TABLE),
    DataFormat("arff", "Mulan's ARFF", ".arff", "@relation scene", "order of values",
               _by_mark(_ARFF.match, "@relation"), read_mulan),
    DataFormat("open-images", "labels of Open Images", ".csv", "ImageID,Source,LabelName,Confidence", "confidences",
               _by_mark(_OPEN_IMAGES.match, "the first line names its columns"), read_open_images),
    DataFormat("svmlight", "XC or svmlight text", ".txt .svm", "3,7 0:0.5 4:1", "names of labels and features, ids",
               _rate_sparse, _read_svmlight, ("counts", "n_features", "progress")),
    DataFormat("fasttext", "fastText text", ".txt", "__label__sea waves and salt",
               "case of words is kept, order is not",
               _by_lines(_FASTTEXT.search, 0.95, 0.96, "have __label__ words"), read_fasttext, ("min_count",)),
    DataFormat("annif", "annif TSV", ".tsv", "waves and salt\t<http://www.yso.fi/onto/yso/p3018>", "names of subjects",
               _by_lines(_has_subjects, 0, 0.9, "are a text and addresses", 50),
               _of_texts(documents.read_annif_rows), _TABLE),
    DataFormat("listing", "table of files", ".csv .tsv .json .jsonl", "file_name,labels\n1.jpg,sea;sky", "",
               _rate_listing, _with_options(read_file_table), _TABLE),
    DataFormat("pairs", "list of id TAB label", ".tsv .txt", "1.jpg\tsea", "sizes of weights",
               _rate_pairs, read_pairs),
    DataFormat("mirflickr", "tags of MIRFlickr", ".csv", "1,2,3.jpg,[sea]", "",
               _by_lines(_MIRFLICKR.fullmatch, 0, 0.79, "are numbers and tags", 50), read_mirflickr),
)  # fmt: skip
FORMATS_BY_KIND = {form.kind: form for form in FORMATS}


class AmbiguousFormatError(InputError):
    """File that two formats fit equally well.

    Parameters
    ----------
    path : Path
    ratings : sequence of Rating
        The two, the better one first.
    """

    def __init__(self, path: Path, ratings: Sequence[Rating]) -> None:
        self.formats = [rating.kind for rating in ratings]
        readings = " or ".join(f"{FORMATS_BY_KIND[kind].title} ({reason})" for kind, _, reason in ratings)
        self.fact = f"{path} may be {readings}"
        super().__init__(f"{self.fact}; give data_format, {' or '.join(map(repr, self.formats))}")


def choose_format(
    path: Path, data_format: str | None, *, plain_text: bool = False, modality: ModalityName | None = None
) -> str:
    """Return the requested format, or else that of `detect_format`."""
    if data_format is None:
        return detect_format(path, plain_text=plain_text, modality=modality)
    names = ", ".join(FORMATS_BY_KIND)
    require(data_format in FORMATS_BY_KIND, f"there is no format {data_format!r}; there are {names}")
    return data_format


def detect_format(path: Path, *, plain_text: bool = False, modality: ModalityName | None = None) -> str:
    """Return the format of a file or folder, by its `kind` in `FORMATS`.

    Text of no other format is fastText's if `plain_text` is set: lines without labels. Where documents are
    wanted, a file of text that is not a collection of them is one.

    Raises
    ------
    InputError
        It is missing, empty, or none of these; or two fit equally well (`AmbiguousFormatError`).
    """
    with explain_input_errors(path):
        _refuse_unusable(path)
        head = read_data_head(path)
        ratings = rate_formats(head)
    if ratings and ratings[0].score == 1:
        return ratings[0].kind
    if not path.is_dir():
        _refuse_unread(head, modality)
        is_plain_text = not _MARKUP_OR_BINARY.search(head.content)
        if modality == "documents" and is_plain_text and not (ratings and ratings[0].kind in _OF_DOCUMENTS):
            if head.columns and path.suffix.lower() in (".csv", ".tsv"):
                raise _make_unknown_error(path, head)
            return "file"
        if not ratings and plain_text and is_plain_text:
            return "fasttext"
    if not ratings:
        raise _make_unknown_error(path, head)
    if len(ratings) > 1 and ratings[0].score - ratings[1].score < _NEAR_TIE:
        raise AmbiguousFormatError(path, ratings[:2])
    return ratings[0].kind


def _refuse_unusable(path: Path) -> None:
    """Refuse what is not data, whatever it holds."""
    if not path.is_dir():
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is a pipe or a device, but data are read twice; save them to a file")
        return
    if sides := find_split_lists(path):
        raise InputError(f"{path} holds the sides of a split; give one of its lists, such as {sides[-1]}")
    require(not is_model_folder(path), f"{path} is a model; give the data to use it on")
    require(any(path.iterdir()), f"{path} is empty; give a folder of pictures, sounds, documents or Parquet files")


def _refuse_unread(head: DataHead, modality: ModalityName | None) -> None:
    """Refuse an empty file, and one whose ending is that of a format which is not read."""
    require(bool(head.lines), f"{head.path} is empty; give a file that holds data")
    candidates = (*MEDIA, DOCUMENTS) if modality == "documents" else MEDIA
    if (unread_modality := detect_modality(head.path.name, True, candidates)) is not None:
        raise InputError(
            f"{head.path} is a {unread_modality.singular} of a format that is not supported; {unread_modality.advice}"
        )


def _make_unknown_error(path: Path, head: DataHead) -> InputError:
    if is_ranking(head):
        problem = f"{path} holds queries (qid:) with grades of relevance, and no labels"
        return InputError(f"{problem}; leave the column qid: out if the first numbers are labels")
    if advice := describe_tool(path, head.content):
        return InputError(advice)
    if program := next((name for mark, name in _BINARIES if head.content[: len(mark)] == mark), None):
        return InputError(f"{path} is {program}")
    if head.columns:
        return InputError(
            f"{path} has the columns {text_tables.format_column_names(head.columns)} and none called text; "
            "rename the column of texts to text (that of file names to file_name), and that of labels to labels"
        )
    if name := find_media_name(head.lines[0]):
        fact = f"{path} names files such as {name!r} and not its columns"
        return InputError(f"{fact}; put a first line file_name,labels above the rows, and commas into these")
    titles = ", ".join(form.title for form in FORMATS)
    hint = "; of Mulan data give the .arff file" if head.content.lstrip().startswith(b"<") else "; give one of these"
    return InputError(f"{path} has no format that wsabie reads: looked for {titles}{hint}")
