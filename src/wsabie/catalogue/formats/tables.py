"""CSV and JSON lines: a tag a line, with all that is known of it; and lines of others, with a file and its labels.

Our columns are those of `record.Tag`. In CSV `parents` and `synonyms` are JSON.

A spreadsheet takes a cell that begins with = + - @, a tab or an end of line for a formula. Such texts are written with
an apostrophe before them, and so are those that begin with apostrophes before one of these: one apostrophe is taken off
when a file of ours is read, and the text is what it was. Files of others are read as they are.

Others have a column for the file (`FILE_COLUMNS`), relative to a root of the collection or to the file itself,
absolute, or an address; and one for labels (`sources.cells.LABEL_COLUMNS`), which may hold several. `root`, `hash`,
`region`, `state` and `language` are used where they are there.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.catalogue.formats.record import (
    COLUMNS,
    LONGEST,
    ORIGINS,
    OURS,
    STATES,
    SUGGESTED,
    Line,
    Said,
    Tag,
    Told,
    moment,
    number_of,
    text_of,
    written,
)
from wsabie.sources.build import BadRow
from wsabie.sources.cells import LABEL_COLUMNS, first_separator, separators_in
from wsabie.sources.regions import parse_region, write_region
from wsabie.sources.tables import listed_names, table_rows
from wsabie.sources.text import shown
from wsabie.storage.atomic import replacing
from wsabie.storage.rejects import Rejects

FILE_COLUMNS = ("path", "file_name", "file", "filename", "image", "image_path", "sourcefile", "url")
"""Columns that name the item, in small letters, the best known first."""
_LABELS = (*LABEL_COLUMNS, "subject")
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_MODEL = re.compile(r"\w[^/\\]*")
_GUARDED = re.compile(r"'+[=+\-@\t\r\n]")


def write_csv(tags: Iterable[Tag], out: Path) -> int:
    """Write tags; how many there were."""
    n = 0
    with replacing(out) as draft, draft.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for n, tag in enumerate(tags, start=1):  # noqa: B007 - their number is told
            cells = tag._replace(parents=_listed(tag.parents), synonyms=_listed(tag.synonyms))
            writer.writerow([guarded(cell) if isinstance(cell, str) else cell for cell in cells[2:]])
    return n


def write_jsonl(tags: Iterable[Tag], out: Path) -> int:
    """Write tags; how many there were."""
    n = 0
    with replacing(out) as draft, draft.open("w", encoding="utf-8", newline="\n") as stream:
        for n, tag in enumerate(tags, start=1):  # noqa: B007 - their number is told
            stream.write(json.dumps(dict(zip(COLUMNS, tag[2:], strict=True)), ensure_ascii=False) + "\n")
    return n


def guarded(text: str) -> str:
    """A text that no spreadsheet takes for a formula.

    Examples
    --------
    >>> [guarded(text) for text in ("sea", "=1+1", "'sea", "'=1")]
    ['sea', "'=1+1", "'sea", "''=1"]
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(text: str) -> str:
    """The text that `guarded` was given."""
    return text[1:] if _GUARDED.match(text) else text


def read_table(path: Path, rejects: Rejects, *, is_json: bool) -> Iterator[Line]:
    """The lines of CSV or JSON lines, ours or of others.

    Raises
    ------
    InputError
        Malformed as a whole, no rows, or no column that names files or labels.
    """
    rows = table_rows(path, rejects, is_json)
    first = next(rows, None)
    if first is None:
        if len(rejects):
            return
        raise InputError(f"{shown(path)} has no rows; write one for each tag")
    ours = first[1].keys() >= OURS
    read = _ours(is_json) if ours else _of_others(path, first[1].keys(), is_json)
    for where, row in chain([first], rows):
        line = int(where.rpartition(":")[2])
        try:
            yield read(line, row)
        except BadRow as bad:
            yield line, bad


def _ours(is_json: bool) -> Callable[[int, dict[str, Any]], Said]:
    def read(line: int, row: dict[str, Any]) -> Said:
        if not is_json:
            row = {name: unguarded(cell) for name, cell in row.items()}
        parents, synonyms = row.get("parents") or [], row.get("synonyms") or []
        return Said(
            line,
            text_of(row.get("path"), "path"),
            (text_of(row.get("label"), "label"),),
            text_of(row.get("root"), "root"),
            text_of(row.get("hash"), "hash", 64),
            _region(row.get("region")),
            _state(row.get("state")),
            _told(row),
            _language(row),
            tuple(text_of(name, "parent") for name in _list(parents)),
            tuple(map(_synonym, _list(synonyms))),
            text_of(row.get("wordnet"), "wordnet"),
        )

    return read


def _told(row: dict[str, Any]) -> Told:
    origin = text_of(row.get("origin"), "origin")
    if origin not in ORIGINS:
        raise BadRow("unknown origin", ascii(origin)[:100])
    by = text_of(row.get("by"), "name", LONGEST)
    if not by.isprintable():
        raise BadRow("name that cannot be seen", ascii(by)[:100])
    model, made = text_of(row.get("model"), "model", 200), text_of(row.get("model_made"), "time")
    if model and not _MODEL.fullmatch(model):
        raise BadRow("model that is no name of a folder", ascii(model)[:100])
    return Told(
        origin,
        by,
        moment(text_of(row.get("at"), "time")),
        model,
        written(moment(made)) if made else "",
        number_of(row.get("score"), "score"),
        number_of(row.get("probability"), "probability"),
    )


def _of_others(path: Path, columns: Iterable[str], is_json: bool) -> Callable[[int, dict[str, Any]], Said]:
    named = {name.lower(): name for name in columns}
    file = _column(path, named, FILE_COLUMNS, "name the files in one")
    labels = _column(path, named, _LABELS, "put the labels in one of these")
    separator = _separator(path, labels, is_json)

    def read(line: int, row: dict[str, Any]) -> Said:
        return Said(
            line,
            text_of(row.get(file), "path"),
            _labels(row.get(labels), separator),
            text_of(row.get("root"), "root"),
            text_of(row.get("hash"), "hash", 64),
            _region(row.get("region")),
            _state(row.get("state")) if row.get("state") else None,
            None,
            _language(row),
        )

    return read


def _column(path: Path, named: dict[str, str], wanted: tuple[str, ...], remedy: str) -> str:
    found = next((named[name] for name in wanted if name in named), None)
    if found is None:
        raise InputError(
            f"{shown(path)} has no column {' or '.join(map(repr, wanted))} (it has {listed_names(named.values())}); "
            f"{remedy}"
        )
    return found


def _separator(path: Path, column: str, is_json: bool) -> str | None:
    """What separates labels, which the whole column has to be looked at for."""
    found: set[str] = set()
    for _, row in table_rows(path, Rejects(most=0), is_json):
        cell = row.get(column)
        if isinstance(cell, str):
            found |= separators_in(cell)
    return first_separator(found, column.lower())


def _labels(cell: Any, separator: str | None) -> tuple[str, ...]:
    if isinstance(cell, str) and separator:
        cell = cell.split(separator)
    cells = cell if isinstance(cell, list) else [cell]
    names = [str(one) if isinstance(one, int) and not isinstance(one, bool) else one for one in cells]
    found = tuple(name for name in (text_of(name, "label") for name in names) if name.strip())
    if not found:
        raise BadRow("row without a label")
    return found


def _region(cell: Any) -> str:
    text = text_of(cell, "region", 40_000)
    if not text:
        return ""
    try:
        return write_region(parse_region(text))
    except InputError as error:
        raise BadRow("region that cannot be read", text) from error


def _state(cell: Any) -> str:
    state = text_of(cell, "state")
    if state == SUGGESTED:
        raise BadRow("suggestion that nobody decided")
    if state not in STATES:
        raise BadRow("unknown state", ascii(state)[:100])
    return state


def _language(row: dict[str, Any]) -> str:
    found = text_of(row.get("language"), "language", 35)
    if not found.isprintable():
        raise BadRow("language that cannot be seen", ascii(found))
    return found


def _synonym(given: Any) -> tuple[str, str]:
    if not isinstance(given, list) or len(given) != 2:
        raise BadRow("malformed list", ascii(given)[:100])
    return text_of(given[0], "synonym"), text_of(given[1], "language", 35)


def _listed(names: Any) -> Any:
    return json.dumps(names, ensure_ascii=False) if names else ""


def _list(cell: Any) -> list[Any]:
    if isinstance(cell, str):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError) as error:
            raise BadRow("malformed list", cell[:100]) from error
    if not isinstance(cell, list) or len(cell) > LONGEST:
        raise BadRow("malformed list", ascii(cell)[:100])
    return cell
