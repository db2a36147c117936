"""CSV and JSON Lines: one tag a line with all its facts, or a table of others with files and labels.

Our columns are the fields of `tag_record.Tag`. In CSV, `parents` and `synonyms` are JSON.

Spreadsheets read a cell that begins with = + - @, a tab or a line break as a formula. The writer puts an apostrophe
before such texts, and before texts that begin with apostrophes and one of these; the reader removes one apostrophe from
files of ours. Files of others are read as they are.

Files of others have a column for the item (`FILE_COLUMNS`): a path relative to a root of the collection or to the file
itself, an absolute path, or an address. A column for labels (`text_tables.LABEL_COLUMNS`) may hold several. The columns
`root`, `hash`, `region`, `state` and `language` are optional.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from wsabie.collection.interchange.tag_record import (
    COLUMNS,
    LONGEST,
    ORIGINS,
    OURS,
    STATES,
    SUGGESTED,
    Tag,
    TagLine,
    TagProvenance,
    format_time,
    parse_number,
    parse_text,
    parse_time,
)
from wsabie.core.errors import InputError
from wsabie.io.parsers.array_builders import RowError
from wsabie.io.parsers.text_files import format_path
from wsabie.io.parsers.text_tables import (
    LABEL_COLUMNS,
    choose_separator,
    format_column_names,
    iterate_table_rows,
    list_separators,
)
from wsabie.io.regions import format_region, parse_region
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.rejects import Rejects

FILE_COLUMNS = ("path", "file_name", "file", "filename", "image", "image_path", "sourcefile", "url")
"""Names of the column with the item, in lower case, in order of preference."""
_LABELS = (*LABEL_COLUMNS, "subject")
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_MODEL = re.compile(r"\w[^/\\]*")
_GUARDED = re.compile(r"'+[=+\-@\t\r\n]")


def write_csv(tags: Iterable[Tag], out: Path) -> int:
    """Write tags and return their number."""
    n = 0
    with replace_file(out) as draft, draft.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for n, tag in enumerate(tags, start=1):  # noqa: B007 - the function returns the count
            cells = tag._replace(parents=_dump_list(tag.parents), synonyms=_dump_list(tag.synonyms))
            writer.writerow([escape_formula(cell) if isinstance(cell, str) else cell for cell in cells[2:]])
    return n


def write_jsonl(tags: Iterable[Tag], out: Path) -> int:
    """Write tags and return their number."""
    n = 0
    with replace_file(out) as draft, draft.open("w", encoding="utf-8", newline="\n") as stream:
        for n, tag in enumerate(tags, start=1):  # noqa: B007 - the function returns the count
            stream.write(json.dumps(dict(zip(COLUMNS, tag[2:], strict=True)), ensure_ascii=False) + "\n")
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
    rows = iterate_table_rows(path, rejects, is_json)
    first = next(rows, None)
    if first is None:
        if len(rejects):
            return
        raise InputError(f"{format_path(path)} has no rows; write one for each tag")
    is_ours = first[1].keys() >= OURS
    parse_row = _make_own_parser(is_json) if is_ours else _make_foreign_parser(path, first[1].keys(), is_json)
    for place, row in chain([first], rows):
        line = int(place.rpartition(":")[2])
        try:
            yield parse_row(line, row)
        except RowError as error:
            rejects.add(f"{format_path(path)}:{line}", error.reason, error.detail)


def _make_own_parser(is_json: bool) -> Callable[[int, dict[str, Any]], TagLine]:
    def parse_row(line: int, row: dict[str, Any]) -> TagLine:
        if not is_json:
            row = {name: unescape_formula(cell) for name, cell in row.items()}
        parents, synonyms = row.get("parents") or [], row.get("synonyms") or []
        return TagLine(
            line,
            parse_text(row.get("path"), "path"),
            (parse_text(row.get("label"), "label"),),
            parse_text(row.get("root"), "root"),
            parse_text(row.get("hash"), "hash", 64),
            _parse_region(row.get("region")),
            _parse_state(row.get("state")),
            _parse_provenance(row),
            _parse_language(row),
            tuple(parse_text(name, "parent") for name in _parse_list(parents)),
            tuple(map(_parse_synonym, _parse_list(synonyms))),
            parse_text(row.get("wordnet"), "wordnet"),
        )

    return parse_row


def _parse_provenance(row: dict[str, Any]) -> TagProvenance:
    origin = parse_text(row.get("origin"), "origin")
    if origin not in ORIGINS:
        raise RowError("unknown origin", ascii(origin)[:100])
    by = parse_text(row.get("by"), "name", LONGEST)
    if not by.isprintable():
        raise RowError("name that cannot be seen", ascii(by)[:100])
    model, model_time = parse_text(row.get("model"), "model", 200), parse_text(row.get("model_made"), "time")
    if model and not _MODEL.fullmatch(model):
        raise RowError("model that is no name of a folder", ascii(model)[:100])
    return TagProvenance(
        origin,
        by,
        parse_time(parse_text(row.get("at"), "time")),
        model,
        format_time(parse_time(model_time)) if model_time else "",
        parse_number(row.get("score"), "score"),
        parse_number(row.get("probability"), "probability"),
    )


def _make_foreign_parser(path: Path, columns: Iterable[str], is_json: bool) -> Callable[[int, dict[str, Any]], TagLine]:
    original_names = {name.lower(): name for name in columns}
    file = _find_column(path, original_names, FILE_COLUMNS, "name the files in one")
    labels = _find_column(path, original_names, _LABELS, "put the labels in one of these")
    separator = _detect_separator(path, labels, is_json)

    def parse_row(line: int, row: dict[str, Any]) -> TagLine:
        return TagLine(
            line,
            parse_text(row.get(file), "path"),
            _parse_labels(row.get(labels), separator),
            parse_text(row.get("root"), "root"),
            parse_text(row.get("hash"), "hash", 64),
            _parse_region(row.get("region")),
            _parse_state(row.get("state")) if row.get("state") else None,
            None,
            _parse_language(row),
        )

    return parse_row


def _find_column(path: Path, original_names: dict[str, str], choices: tuple[str, ...], remedy: str) -> str:
    column = next((original_names[name] for name in choices if name in original_names), None)
    if column is None:
        raise InputError(
            f"{format_path(path)} has no column {' or '.join(map(repr, choices))} (it has "
            f"{format_column_names(original_names.values())}); "
            f"{remedy}"
        )
    return column


def _detect_separator(path: Path, column: str, is_json: bool) -> str | None:
    """Return the separator of labels, which only the whole column reveals."""
    separators: set[str] = set()
    for _, row in iterate_table_rows(path, Rejects(most=0), is_json):
        cell = row.get(column)
        if isinstance(cell, str):
            separators |= list_separators(cell)
    return choose_separator(separators, column.lower())


def _parse_labels(cell: Any, separator: str | None) -> tuple[str, ...]:
    if isinstance(cell, str) and separator:
        cell = cell.split(separator)
    cells = cell if isinstance(cell, list) else [cell]
    names = [str(value) if isinstance(value, int) and not isinstance(value, bool) else value for value in cells]
    labels = tuple(name for name in (parse_text(name, "label") for name in names) if name.strip())
    if not labels:
        raise RowError("row without a label")
    return labels


def _parse_region(cell: Any) -> str:
    text = parse_text(cell, "region", 40_000)
    if not text:
        return ""
    try:
        return format_region(parse_region(text))
    except InputError as error:
        raise RowError("region that cannot be read", text) from error


def _parse_state(cell: Any) -> str:
    state = parse_text(cell, "state")
    if state == SUGGESTED:
        raise RowError("suggestion that nobody decided")
    if state not in STATES:
        raise RowError("unknown state", ascii(state)[:100])
    return state


def _parse_language(row: dict[str, Any]) -> str:
    language = parse_text(row.get("language"), "language", 35)
    if not language.isprintable():
        raise RowError("language that cannot be seen", ascii(language))
    return language


def _parse_synonym(pair: Any) -> tuple[str, str]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise RowError("malformed list", ascii(pair)[:100])
    return parse_text(pair[0], "synonym"), parse_text(pair[1], "language", 35)


def _dump_list(names: Any) -> Any:
    return json.dumps(names, ensure_ascii=False) if names else ""


def _parse_list(cell: Any) -> list[Any]:
    if isinstance(cell, str):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError) as error:
            raise RowError("malformed list", cell[:100]) from error
    if not isinstance(cell, list) or len(cell) > LONGEST:
        raise RowError("malformed list", ascii(cell)[:100])
    return cell
