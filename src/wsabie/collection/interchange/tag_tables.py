"""Tables of tags in CSV and JSON Lines, with the escape of spreadsheet formulas.

CSV and JSON Lines hold one tag a line with all its facts; tables of others hold files and labels. Our columns are the
fields of `tag_record.Tag`. In CSV, `parents` and `synonyms` are JSON.

Spreadsheets read a cell that begins with = + - @, a tab or a line break as a formula. The writer puts an apostrophe
before such texts, and before texts that begin with apostrophes and one of these; the reader removes one apostrophe from
files of ours. Files of others are read as they are.

Files of others have a column for the item (`FILE_COLUMNS`): a path relative to a root of the collection or to the file
itself, an absolute path, or an address. Labels are found as in data beside pictures (`make_label_reader`). The columns
`root`, `hash`, `region`, `state` and `language` are optional.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias

from wsabie.collection.interchange.tag_record import Tag, TagLine, TagProvenance, format_time, parse_text, parse_time
from wsabie.core.errors import InputError
from wsabie.core.json_conversion import JsonObject
from wsabie.io.formats.file_table import find_label_column
from wsabie.io.formats.media_folder import make_label_reader
from wsabie.io.parsers import text_tables
from wsabie.io.parsers.label_cells import LabelCellReader
from wsabie.io.parsers.text_files import format_path
from wsabie.io.regions import format_region, parse_region
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.rejects import Rejects, RowError

_MAX_NAME_LENGTH = 500
"""Maximum length of the name of a person or a model."""
_ORIGINS = ("person", "import", "model")
_STATES = ("accepted", "rejected")
_SUGGESTED = "suggested"
COLUMNS = Tag._fields[2:]
"""Columns of our files."""
OURS = {"path", "label", "state", "origin", "by", "at"}
"""Columns that identify our files."""
FILE_COLUMNS = ("path", *text_tables.FILE_COLUMNS, "url")
"""Names of the column with the item, in lower case, in order of preference."""
RowParser: TypeAlias = Callable[[int, JsonObject], TagLine]

_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_MODEL = re.compile(r"\w[^/\\]*")
_GUARDED = re.compile(r"'+[=+\-@\t\r\n]")


def write_table(tags: Iterable[Tag], out: Path, *, is_json: bool) -> int:
    """Write tags as CSV or JSON Lines and return their number."""
    n = 0
    with replace_file(out) as draft, draft.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if not is_json:
            writer.writerow(COLUMNS)
        for n, tag in enumerate(tags, start=1):  # noqa: B007 - the function returns the count
            if is_json:
                stream.write(json.dumps(dict(zip(COLUMNS, tag[2:], strict=True)), ensure_ascii=False) + "\n")
            else:
                cells = tag._replace(parents=_dump_list(tag.parents), synonyms=_dump_list(tag.synonyms))
                writer.writerow([escape_formula(cell) if isinstance(cell, str) else cell for cell in cells[2:]])
    return n


def escape_formula(text: str) -> str:
    """Return a text that no spreadsheet reads as a formula.

    Examples
    --------
    >>> [escape_formula(text) for text in ("sea", "=1+1", "'sea", "'=1")]
    ['sea', "'=1+1", "'sea", "''=1"]
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unescape_formula(text: str) -> str:
    """Return the text that `escape_formula` received."""
    return text[1:] if _GUARDED.match(text) else text


def read_table(path: Path, rejects: Rejects, *, is_json: bool) -> Iterator[TagLine]:
    """Yield the usable lines of a CSV or JSON Lines file.

    Raises
    ------
    InputError
        The file is malformed or empty, or has no column of files or labels.
    """
    rows = text_tables.iterate_table_rows(path, rejects, is_json)
    first = next(rows, None)
    if first is None:
        if len(rejects):
            return
        raise InputError(f"{format_path(path)} has no rows; write one for each tag")
    is_own = first.cells.keys() >= OURS
    parse_row = partial(_parse_own_row, is_json) if is_own else _make_foreign_parser(path, is_json)
    for where, row_number, cells in chain([first], rows):
        with rejects.catch(where):
            yield parse_row(row_number, cells)


def _parse_own_row(is_json: bool, line: int, row: JsonObject) -> TagLine:
    if not is_json:
        row = {name: unescape_formula(cell) for name, cell in row.items()}
    return _parse_common_columns(line, row, row.get("path"))._replace(
        labels=(parse_text(row.get("label"), "label"),),
        state=_parse_state(row.get("state")),
        provenance=_parse_provenance(row),
        parents=tuple(parse_text(name, "parent") for name in _parse_list(row.get("parents") or [])),
        synonyms=tuple(map(_parse_synonym, _parse_list(row.get("synonyms") or []))),
        wordnet=parse_text(row.get("wordnet"), "wordnet"),
    )


def _parse_common_columns(line: int, row: JsonObject, path: object) -> TagLine:
    name = parse_text(path, "path")
    root = parse_text(row.get("root"), "root")
    digest = parse_text(row.get("hash"), "hash", 64)
    region = _parse_region(row.get("region"))
    language = _parse_visible_text(row.get("language"), "language", 35)
    return TagLine(line, name, (), root, digest, region, language=language)


def _parse_provenance(row: JsonObject) -> TagProvenance:
    origin = parse_text(row.get("origin"), "origin")
    if origin not in _ORIGINS:
        raise RowError("unknown origin", ascii(origin)[:100])
    by = _parse_visible_text(row.get("by"), "name", _MAX_NAME_LENGTH)
    model, model_time = parse_text(row.get("model"), "model", 200), parse_text(row.get("model_made"), "time")
    if model and not _MODEL.fullmatch(model):
        raise RowError("model that is not the name of a folder", ascii(model)[:100])
    at = parse_time(parse_text(row.get("at"), "time"))
    model_made = format_time(parse_time(model_time)) if model_time else ""
    score, probability = (_parse_number(row.get(column), column) for column in ("score", "probability"))
    return TagProvenance(origin, by, at, model, model_made, score, probability)


def _make_foreign_parser(path: Path, is_json: bool) -> RowParser:
    columns, label_column = find_label_column(path, is_json)
    file = text_tables.find_column(columns, FILE_COLUMNS)
    if file is None:
        names, choices = text_tables.format_column_names(columns), " or ".join(map(repr, FILE_COLUMNS[:2]))
        raise InputError(f"{format_path(path)} has no column {choices} (it has {names}); name the files in one")

    def iterate_cells() -> Iterator[JsonObject]:
        return (row.cells for row in text_tables.iterate_table_rows(path, Rejects(most=0), is_json))

    reader = make_label_reader(path, iterate_cells, columns, label_column)

    def parse_row(line: int, row: JsonObject) -> TagLine:
        return _parse_common_columns(line, row, row.get(file))._replace(
            labels=_parse_labels(reader.get_cell(row), reader),
            state=_parse_state(row.get("state")) if row.get("state") else None,
        )

    return parse_row


def _parse_labels(cell: object, reader: LabelCellReader) -> tuple[str, ...]:
    try:
        names = reader.read_labels(cell, "")
    except InputError:
        names = (cell,)  # type: ignore[assignment]  # which is refused below
    labels = tuple(name for name in (parse_text(name, "label") for name in names) if name.strip())
    if not labels:
        raise RowError("row without a label")
    return labels


def _parse_region(cell: object) -> str:
    text = parse_text(cell, "region", 40_000)
    if not text:
        return ""
    try:
        return format_region(parse_region(text))
    except InputError as error:
        raise RowError("region that cannot be read", text) from error


def _parse_state(cell: object) -> str:
    state = parse_text(cell, "state")
    if state == _SUGGESTED:
        raise RowError("suggestion without a decision")
    if state not in _STATES:
        raise RowError("unknown state", ascii(state)[:100])
    return state


def _parse_visible_text(cell: object, column: str, longest: int) -> str:
    text = parse_text(cell, column, longest)
    if not text.isprintable():
        raise RowError(f"{column} that cannot be seen", ascii(text)[:100])
    return text


def _parse_synonym(pair: Any) -> tuple[str, str]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise RowError("malformed list", ascii(pair)[:100])
    return parse_text(pair[0], "synonym"), parse_text(pair[1], "language", 35)


def _dump_list(names: tuple[object, ...]) -> Any:
    return json.dumps(names, ensure_ascii=False) if names else ""


def _parse_number(cell: Any, column: str) -> float | None:
    """Return a cell that is a finite number, or None if it is empty; raise RowError otherwise."""
    if cell is None or cell == "":
        return None
    with suppress(TypeError, ValueError, OverflowError):
        if isfinite(number := float(cell)):
            return number
    raise RowError(f"{column} that is not a number", ascii(cell)[:100])


def _parse_list(cell: Any) -> list[Any]:
    with suppress(ValueError, RecursionError):
        values = json.loads(cell) if isinstance(cell, str) else cell
        if isinstance(values, list) and len(values) <= _MAX_NAME_LENGTH:
            return values
    raise RowError("malformed list", ascii(cell)[:100])
