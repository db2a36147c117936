"""Table of the formats of text: an example, what each cannot hold, and a score of first lines.

A score is 1 for a mark that only this format has, and grows with the share of first lines that have its form; looser
forms score lower. The highest score decides.
"""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from wsabie.core.errors import InputError
from wsabie.io.datasets.debian_packages import is_package_list
from wsabie.io.formats.documents import TEXT_COLUMN, detect_columns, split_subjects
from wsabie.io.formats.pair_list import has_header
from wsabie.io.formats.wordnet import is_wordnet_glosses
from wsabie.io.modalities import MEDIA
from wsabie.io.parsers.json_values import is_array
from wsabie.io.parsers.text_tables import find_column, flatten_task, normalise_columns

FILE_COLUMNS = ("file_name", "path", "file", "image", "img", "picture", "image_path", "img_path", "file_path",
                "filepath", "image_name", "image index", "sourcefile", "originalpath", "originalfilename",
                "image_id")  # fmt: skip
"""Names of columns with files in tables, in lower case, in order of preference."""
_LINES = 50
_SEVERAL, _SEPARATOR = ("labels", "tags", "keywords"), re.compile(rb"[;|,]")
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


class TextHead(NamedTuple):
    """Beginning of a file: its bytes, its first lines that are not blank, and the columns that these name."""

    content: bytes
    lines: Sequence[bytes]
    columns: Sequence[str]


class Rating(NamedTuple):
    """Score of a format for a file, from 0 to 1, with its reason."""

    kind: str
    score: float
    reason: str


class TextFormat(NamedTuple):
    """Format of text: its name in `detect_format`, title, example, what it cannot hold, and rating."""

    kind: str
    title: str
    example: str
    loses: str
    rate: Callable[[TextHead], tuple[float, str]]


def read_text_head(content: bytes) -> TextHead:
    """Return the first lines of a file and the columns that they name."""
    lines = [line for line in content.split(b"\n") if line.strip()][:_LINES]
    columns: Sequence[str] = ()
    if is_array(content):
        with suppress(ValueError, RecursionError):
            text = content.decode("utf-8", "replace")
            row, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
            columns = normalise_columns(flatten_task(row))
    elif lines:
        first = lines[1:] if lines[0].strip().strip(b'"')[:4] == b"sep=" else lines
        columns = detect_columns(first) if first else ()
    return TextHead(content, lines, columns)


def rate_formats(head: TextHead) -> list[Rating]:
    """Return the ratings of all formats above 0, the best first."""
    ratings = (Rating(form.kind, *form.rate(head)) for form in FORMATS)
    return sorted((rating for rating in ratings if rating.score > 0), key=lambda rating: -rating.score)


def is_ranking(head: TextHead) -> bool:
    """Return True if rows have the queries of a ranking (`qid:`)."""
    return any(map(_RANKING_ROW.match, head.lines))


def is_row(line: bytes) -> bool:
    """Return True if a line is one of rows and not of a document."""
    return bool(_SPARSE_ROW.match(line) or _PAIR.fullmatch(line) or _FASTTEXT.search(line))


def _by_mark(is_format: Callable[[bytes], object], reason: str) -> Callable[[TextHead], tuple[float, str]]:
    """Return a rating that is 1 where the first bytes have a mark."""
    return lambda head: (float(bool(is_format(head.content))), reason)


def _by_lines(
    has_form: Callable[[bytes], object], lowest: float, highest: float, reason: str, least: int = 0
) -> Callable[[TextHead], tuple[float, str]]:
    """Return a rating that grows with lines of a form; over `least` % of the first lines must have it."""

    def rate(head: TextHead) -> tuple[float, str]:
        n = sum(bool(has_form(line)) for line in head.lines)
        share = n / len(head.lines)
        is_enough = n > 0 and 100 * share >= least
        return (lowest + (highest - lowest) * share if is_enough else 0.0), f"{n} of {len(head.lines)} lines {reason}"

    return rate


def _has_subjects(line: bytes) -> bool:
    """Return True if addresses stand behind a text: in brackets, or the text has blanks, as no id has."""
    text, subjects = split_subjects(line.decode("utf-8", "replace"))
    return bool(text and subjects) and (b"<" in line or " " in (text or ""))


def _rate_sparse(head: TextHead) -> tuple[float, str]:
    if _XC.fullmatch(head.lines[0]):
        return 1.0, "the first line holds three numbers"
    return _by_lines(_SPARSE_ROW.match, 0.91, 0.94, "hold feature:value")(head)


def _rate_documents(head: TextHead) -> tuple[float, str]:
    if is_array(head.content) and TEXT_COLUMN in head.columns:
        return 1.0, "an array of objects with text"
    return _by_lines(_JSON_DOCUMENT.match, 0.96, 0.99, "are objects with text")(head)


def _rate_table(head: TextHead) -> tuple[float, str]:
    is_json = head.lines[0].lstrip()[:1] in (b"{", b"[")
    has_text = TEXT_COLUMN in head.columns and _find_file_column(head) is None and not is_json
    return float(has_text), "the first line names a column text"


def _find_file_column(head: TextHead) -> str | None:
    """Return the column of files; beside a text it is one only if there are names of pictures or sounds."""
    has_text = TEXT_COLUMN in head.columns and not _MEDIA_NAME.search(head.content)
    return None if has_text else find_column(head.columns, FILE_COLUMNS)


def _rate_listing(head: TextHead) -> tuple[float, str]:
    column = _find_file_column(head)
    has_several = find_column(head.columns, _SEVERAL) and any(map(_SEPARATOR.search, head.lines[1:]))
    has_labels = len(head.columns) > 1 and (has_several or not _PAIR.fullmatch(head.lines[0]))
    return (0.9 if column is not None and has_labels else 0.0), f"the column {column} names files"


def _rate_pairs(head: TextHead) -> tuple[float, str]:
    score, reason = _by_lines(_PAIR.fullmatch, 0, 0.8, "are two cells with a tab between them", 50)(head)
    return score, reason + (", below a header" if score and has_header(head.lines) else "")


FORMATS: Sequence[TextFormat] = (
    TextFormat("glosses", "glosses of WordNet", "00001740 03 n 01 entity 0 000 | that which ...", "",
               _by_mark(is_wordnet_glosses, "synsets and glosses")),
    TextFormat("packages", "list of Debian's packages", "Package: sl\nSection: games", "",
               _by_mark(is_package_list, "packages")),
    TextFormat("json", "JSON lines of documents", '{"text": "waves", "labels": ["sea"]}', "", _rate_documents),
    TextFormat("table", "table of documents", "text,labels\nwaves,sea", "lists in cells are texts", _rate_table),
    TextFormat("arff", "Mulan's ARFF", "@relation scene", "order of values", _by_mark(_ARFF.match, "@relation")),
    TextFormat("open-images", "labels of Open Images", "ImageID,Source,LabelName,Confidence", "confidences",
               _by_mark(_OPEN_IMAGES.match, "the first line names its columns")),
    TextFormat("svmlight", "XC or svmlight text", "3,7 0:0.5 4:1", "names of labels and features, ids",
               _rate_sparse),
    TextFormat("fasttext", "fastText text", "__label__sea waves and salt", "case of words is kept, order is not",
               _by_lines(_FASTTEXT.search, 0.95, 0.96, "have __label__ words")),
    TextFormat("annif", "annif TSV", "waves and salt\t<http://www.yso.fi/onto/yso/p3018>", "names of subjects",
               _by_lines(_has_subjects, 0, 0.9, "are a text and addresses", 50)),
    TextFormat("listing", "table of files", "file_name,labels\n1.jpg,sea;sky", "", _rate_listing),
    TextFormat("pairs", "list of id TAB label", "1.jpg\tsea", "sizes of weights", _rate_pairs),
    TextFormat("mirflickr", "tags of MIRFlickr", "1,2,3.jpg,[sea]", "",
               _by_lines(_MIRFLICKR.fullmatch, 0, 0.79, "are numbers and tags", 50)),
)  # fmt: skip
TITLES = {form.kind: form.title for form in FORMATS}


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
        self.fact = f"{path} may be {' or '.join(f'{TITLES[name]} ({reason})' for name, _, reason in ratings)}"
        super().__init__(f"{self.fact}; give data_format, {' or '.join(map(repr, self.formats))}")
