"""ARFF, Weka's format: attributes with types, then dense (`1,0.5,red`) or sparse (`{3 1,7 red}`) rows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wsabie.core.errors import InputError
from wsabie.io.parsers.array_builders import RowError
from wsabie.io.parsers.gzip_files import check_column_count
from wsabie.io.parsers.text_files import format_path, iterate_numbered_lines

_WORD = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_WORD}|[^\s{{]+)(?:\s+|(?={{))(\{{.*\}}|[^{{].*)", re.IGNORECASE)
_QUOTED = re.compile(rf"\s*({_WORD})\s*(,|$)")
_PAIR = re.compile(rf"\s*(\d{{1,9}})\s+({_WORD}|[^,'\"\s]+)\s*(,|$)")
_ESCAPE = re.compile(r"\\(.)")
_NUMERIC = ("numeric", "real", "integer")


@dataclass(frozen=True)
class ArffAttribute:
    """Column: its name and type; `values` are those of a nominal one, else None."""

    name: str
    kind: str  # "numeric", "nominal" or "other" (string, date, relational)
    values: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ArffHeader:
    """Header of a file; `read_arff_rows` reads the rows."""

    path: Path
    attributes: list[ArffAttribute]
    data_line: int


def read_arff_header(path: Path) -> ArffHeader:
    """Read everything up to `@data`.

    Raises
    ------
    InputError
        Not ARFF: a malformed or repeated attribute, or no `@data`.
    """
    attributes: list[ArffAttribute] = []
    names: set[str] = set()
    for number, raw in iterate_numbered_lines(path):
        line = _decode(path, number, raw).strip()
        if line[:5].lower() == "@data":
            if not attributes:
                raise InputError(
                    f"{format_path(path)}:{number} begins the data before any @attribute; repair the header"
                )
            return ArffHeader(path, attributes, number)
        if line[:10].lower() == "@attribute":
            attribute = _parse_attribute(path, number, line)
            if attribute.name in names:
                raise InputError(
                    f"{format_path(path)}:{number} names the attribute {attribute.name!r} again; rename one"
                )
            names.add(attribute.name)
            attributes.append(attribute)
    raise InputError(f"{format_path(path)} has no line @data, so it holds no rows; give a whole ARFF file")


def read_arff_rows(arff: ArffHeader, skip: int = 0) -> Iterator[tuple[int, dict[int, str] | list[str] | RowError]]:
    """Yield (line number, cells or error) of each row behind the first `skip` lines.

    Cells are a dict for a sparse row, a list for a dense one.
    """
    for number, raw in iterate_numbered_lines(arff.path):
        line = raw.strip()
        if number <= max(arff.data_line, skip) or not line or line.startswith(b"%"):
            continue
        try:
            text = line.decode("utf-8")
            yield number, _parse_sparse(text, arff) if text.startswith("{") else _parse_dense(text, arff)
        except UnicodeDecodeError:
            yield number, RowError("text that is not UTF-8")
        except RowError as error:
            yield number, error


def _decode(path: Path, number: int, line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{format_path(path)}:{number} is not UTF-8 text; convert the file, for instance with iconv"
        ) from error


def _parse_attribute(path: Path, number: int, line: str) -> ArffAttribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise InputError(f"{format_path(path)}:{number} is no attribute; write @attribute name type")
    name, kind = _unquote(match[1]), match[2].strip()
    if kind.startswith("{"):
        check_column_count(f"{format_path(path)}:{number}", kind.count(",") + 1)  # a value is a column
        try:
            return ArffAttribute(name, "nominal", tuple(_split_cells(kind[1:-1])))
        except RowError as error:
            raise InputError(f"{format_path(path)}:{number} has malformed values; write {{a,b,c}}") from error
    return ArffAttribute(name, "numeric" if kind.split()[0].lower() in _NUMERIC else "other")


def _unquote(word: str) -> str:
    if word[:1] in ("'", '"') and len(word) > 1:
        return _ESCAPE.sub(r"\1", word[1:-1])
    return word


def _split_cells(text: str, most: int | None = None) -> list[str]:
    """Split comma-separated cells, some of them quoted; RowError above `most` cells."""
    if "'" not in text and '"' not in text:
        if most is not None and text.count(",") >= most:
            raise RowError("wrong number of values", f"{text.count(',') + 1} values for {most} attributes")
        return [cell.strip() for cell in text.split(",")]
    cells: list[str] = []
    position, more = 0, True
    while more:
        if most is not None and len(cells) >= most:
            raise RowError("wrong number of values", f"more than {most} values for {most} attributes")
        match = _QUOTED.match(text, position)
        if match:
            cells.append(_unquote(match[1]))
            position, more = match.end(), bool(match[2])
            continue
        end = text.find(",", position)
        cell, comma = (text[position:], "") if end < 0 else (text[position:end], ",")
        if "'" in cell or '"' in cell:
            raise RowError("malformed row", cell[:40])
        cells.append(cell.strip())
        position, more = position + len(cell) + 1, bool(comma)
    return cells


def _parse_dense(text: str, arff: ArffHeader) -> list[str]:
    cells = _split_cells(text, len(arff.attributes))
    if len(cells) != len(arff.attributes):
        raise RowError("wrong number of values", f"{len(cells)} values for {len(arff.attributes)} attributes")
    return cells


def _parse_sparse(text: str, arff: ArffHeader) -> dict[int, str]:
    if not text.endswith("}"):
        raise RowError("malformed row", text[-40:])
    cells: dict[int, str] = {}
    body, position = text[1:-1].strip(), 0
    while position < len(body):
        match = _PAIR.match(body, position)
        if match is None:
            raise RowError("malformed row", body[position : position + 40])
        column = int(match[1])
        if column >= len(arff.attributes):
            raise RowError("attribute out of range", f"{column} of {len(arff.attributes)} attributes")
        if column in cells:
            raise RowError("attribute given twice", str(column))
        cells[column] = _unquote(match[2])
        position = match.end()
    return cells
