"""ARFF, Weka's format: attributes with types, then dense (`1,0.5,red`) or sparse (`{3 1,7 red}`) rows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow
from wsabie.sources.text import numbered_lines, shown
from wsabie.sources.unpacked import check_table_columns

_WORD = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_WORD}|[^\s{{]+)(?:\s+|(?={{))(\{{.*\}}|[^{{].*)", re.IGNORECASE)
_QUOTED = re.compile(rf"\s*({_WORD})\s*(,|$)")
_PAIR = re.compile(rf"\s*(\d{{1,9}})\s+({_WORD}|[^,'\"\s]+)\s*(,|$)")
_ESCAPE = re.compile(r"\\(.)")
_NUMERIC = ("numeric", "real", "integer")


@dataclass(frozen=True)
class Attribute:
    """A column: its name and type; `values` are those of a nominal one, else None."""

    name: str
    kind: str  # "numeric", "nominal" or "other" (string, date, relational)
    values: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Arff:
    """The header of a file; rows are read by `arff_rows`."""

    path: Path
    attributes: list[Attribute]
    data_line: int


def read_arff_header(path: Path) -> Arff:
    """Everything up to `@data`.

    Raises
    ------
    InputError
        Not ARFF: a malformed or repeated attribute, or no `@data`.
    """
    attributes: list[Attribute] = []
    seen: set[str] = set()
    for number, raw in numbered_lines(path):
        line = _decoded(path, number, raw).strip()
        if line[:5].lower() == "@data":
            if not attributes:
                raise InputError(f"{shown(path)}:{number} begins the data before any @attribute; repair the header")
            return Arff(path, attributes, number)
        if line[:10].lower() == "@attribute":
            attribute = _attribute(path, number, line)
            if attribute.name in seen:
                raise InputError(f"{shown(path)}:{number} names the attribute {attribute.name!r} again; rename one")
            seen.add(attribute.name)
            attributes.append(attribute)
    raise InputError(f"{shown(path)} has no line @data, so it holds no rows; give a whole ARFF file")


def arff_rows(arff: Arff, skip: int = 0) -> Iterator[tuple[int, dict[int, str] | list[str] | BadRow]]:
    """(line number, cells) of each row behind the first `skip` lines: a dict for a sparse one, a list for a dense one,
    or what is wrong.
    """
    for number, raw in numbered_lines(arff.path):
        line = raw.strip()
        if number <= max(arff.data_line, skip) or not line or line.startswith(b"%"):
            continue
        try:
            text = line.decode("utf-8")
            yield number, _sparse(text, arff) if text.startswith("{") else _dense(text, arff)
        except UnicodeDecodeError:
            yield number, BadRow("text that is not UTF-8")
        except BadRow as bad:
            yield number, bad


def _decoded(path: Path, number: int, line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{shown(path)}:{number} is not UTF-8 text; convert the file, for instance with iconv"
        ) from error


def _attribute(path: Path, number: int, line: str) -> Attribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise InputError(f"{shown(path)}:{number} is no attribute; write @attribute name type")
    name, kind = _unquoted(match[1]), match[2].strip()
    if kind.startswith("{"):
        check_table_columns(f"{shown(path)}:{number}", kind.count(",") + 1)  # a value is a column
        try:
            return Attribute(name, "nominal", tuple(_cells(kind[1:-1])))
        except BadRow as bad:
            raise InputError(f"{shown(path)}:{number} has malformed values; write {{a,b,c}}") from bad
    return Attribute(name, "numeric" if kind.split()[0].lower() in _NUMERIC else "other")


def _unquoted(word: str) -> str:
    if word[:1] in ("'", '"') and len(word) > 1:
        return _ESCAPE.sub(r"\1", word[1:-1])
    return word


def _cells(text: str, most: int | None = None) -> list[str]:
    """Comma-separated cells, some of them quoted; BadRow as soon as there are more than `most`."""
    if "'" not in text and '"' not in text:
        if most is not None and text.count(",") >= most:
            raise BadRow("wrong number of values", f"{text.count(',') + 1} values for {most} attributes")
        return [cell.strip() for cell in text.split(",")]
    cells: list[str] = []
    at, more = 0, True
    while more:
        if most is not None and len(cells) >= most:
            raise BadRow("wrong number of values", f"more than {most} values for {most} attributes")
        match = _QUOTED.match(text, at)
        if match:
            cells.append(_unquoted(match[1]))
            at, more = match.end(), bool(match[2])
            continue
        end = text.find(",", at)
        cell, comma = (text[at:], "") if end < 0 else (text[at:end], ",")
        if "'" in cell or '"' in cell:
            raise BadRow("malformed row", cell[:40])
        cells.append(cell.strip())
        at, more = at + len(cell) + 1, bool(comma)
    return cells


def _dense(text: str, arff: Arff) -> list[str]:
    cells = _cells(text, len(arff.attributes))
    if len(cells) != len(arff.attributes):
        raise BadRow("wrong number of values", f"{len(cells)} values for {len(arff.attributes)} attributes")
    return cells


def _sparse(text: str, arff: Arff) -> dict[int, str]:
    if not text.endswith("}"):
        raise BadRow("malformed row", text[-40:])
    cells: dict[int, str] = {}
    body, at = text[1:-1].strip(), 0
    while at < len(body):
        match = _PAIR.match(body, at)
        if match is None:
            raise BadRow("malformed row", body[at : at + 40])
        column = int(match[1])
        if column >= len(arff.attributes):
            raise BadRow("attribute out of range", f"{column} of {len(arff.attributes)} attributes")
        if column in cells:
            raise BadRow("attribute given twice", str(column))
        cells[column] = _unquoted(match[2])
        at = match.end()
    return cells
