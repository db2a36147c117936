"""Tables with named columns: CSV and JSON lines, row by row, plain or gzip, and their cells as texts.

pandas and PyArrow hold the whole table, and refuse it or drop a bad row without its line
(`docs/decisions/text-readers.md`).
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, NamedTuple, cast

from wsabie.core.errors import InputError
from wsabie.core.input_limits import read_limits
from wsabie.core.json_conversion import JsonObject
from wsabie.io.parsers import text_files
from wsabie.io.parsers.array_builders import decode_row, iterate_parsed
from wsabie.io.parsers.json_values import is_array, iterate_array, parse_json_value
from wsabie.io.parsers.label_cells import FACT_COLUMNS, LABEL_COLUMNS
from wsabie.storage.rejects import Rejects, RowError
from wsabie.vocabulary.label_names import normalise_label_name

FILE_COLUMNS = ("file_name", "path", "file", "image", "img", "picture", "photo", "audio", "image_path", "img_path",
                "file_path", "filepath", "image_file", "image_name", "image index", "image_url", "sourcefile",
                "originalpath", "originalfilename", "image_id")  # fmt: skip
"""Names of columns with files in tables, in lower case, in order of preference."""
_STANDARD_NAMES = {name.replace("_", ""): name for name in (*FACT_COLUMNS, *LABEL_COLUMNS)}
MAX_LINE_BYTES = 1 << 22
_EXCEL = re.compile(rb'"?sep=([,;|\t])"?', re.IGNORECASE)
_MAX_CELL_LENGTH = 1 << 17  # of CSV: a quote that is never closed takes all that follows


def normalise_columns(names: Iterable[str]) -> list[str]:
    """Return names of columns without blanks around them, and known ones in their usual spelling.

    Examples
    --------
    >>> normalise_columns(["File Name", " Tags ", "Site"])
    ['file_name', 'tags', 'Site']
    """
    stripped = [name.strip() for name in names]
    usual = [_STANDARD_NAMES.get(_squash(name), name) for name in stripped]
    return [name if usual.count(new) > 1 else new for name, new in zip(stripped, usual, strict=True)]


def _squash(name: str) -> str:
    return re.sub("[ _-]", "", name).casefold()


def find_column(columns: Collection[str], choices: Iterable[str]) -> str | None:
    """Return the column with the first of these names, in any case and spacing; None without one.

    Examples
    --------
    >>> find_column(["Image", "XMP-dc:Subject"], ("labels", "subject")), find_column(["Image Name"], ["image_name"])
    ('XMP-dc:Subject', 'Image Name')
    """
    usual = zip(normalise_columns(columns), columns, strict=True)
    names = {_squash(name.rpartition(":")[2]): column for name, column in usual}
    return next((names[name] for name in map(_squash, choices) if name in names), None)


def to_text_cell(cell: object) -> str | None:
    """Return an id, group, split or time as text; None when the cell is empty.

    Raises
    ------
    RowError
        Not a single value, or not valid text.
    """
    if cell is None or cell == "":
        return None
    if isinstance(cell, list | tuple | dict | bytes):
        raise RowError("cell that is not a single value", ascii(cell)[:60])
    text = str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)
    if re.search("[\ud800-\udfff]", text):
        raise RowError("text that is not valid", ascii(text)[:60])
    return text


def split_csv_line(line: bytes, delimiter: str) -> list[str]:
    """Return the cells of one line of CSV.

    Raises
    ------
    RowError
        Not UTF-8, or malformed.

    Examples
    --------
    >>> split_csv_line(b'7;"a;b"', ";")
    ['7', 'a;b']
    """
    text = decode_row(line)
    if '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader(io.StringIO(text), delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise RowError("malformed CSV", str(error)) from error


def unquote_cell(cell: str) -> str:
    """Return a cell between tabs without the quotes that a program put around it.

    Examples
    --------
    >>> unquote_cell('"a ""big"" dog"'), unquote_cell('"big" dog "Rex"')
    ('a "big" dog', '"big" dog "Rex"')
    """
    return cell[1:-1].replace('""', '"') if cell[:1] == '"' and re.fullmatch('"(?:[^"]|"")*+"', cell) else cell


class TextRow(NamedTuple):
    """Row of a table: its position for messages, its number, and its cells by column."""

    where: str
    number: int
    cells: JsonObject


def iterate_table_rows(path: Path, rejects: Rejects, is_json: bool | None = None) -> Iterator[TextRow]:
    """Return the rows of JSON lines, of a JSON array, or of CSV.

    By default the content tells an array, and the endings .jsonl and .json or a first brace tell lines.

    The columns of CSV are separated by commas, or else by semicolons or tabs.

    Raises
    ------
    InputError
        Malformed as a whole, a column named twice, or a line of more than 4 MiB.
    """
    if is_json is None:
        has_ending = path.name.lower().removesuffix(".gz").endswith((".jsonl", ".json"))
        is_json = has_ending or is_array(head := text_files.read_head(path)) or head.lstrip()[:1] == b"{"
    if is_json:
        return iterate_json_rows(
            path, text_files.iterate_numbered_lines(path, MAX_LINE_BYTES, skip_blank=True), rejects
        )
    return iterate_named_records(path, iterate_csv_records(path, MAX_LINE_BYTES), rejects)


def iterate_json_rows(path: Path, lines: Iterable[tuple[int, bytes]], rejects: Rejects) -> Iterator[TextRow]:
    """Yield rows of numbered lines of JSON, or of a file's array; a task of Label Studio is a row."""
    if not is_array(text_files.read_head(path)):
        depth, path_text = read_limits().depth, str(path)
        for number, line in lines:
            with rejects.catch(where := f"{path_text}:{number}"):
                yield TextRow(where, number, _normalise_keys(parse_json_cells(line, depth)))
        return
    for number, element in enumerate(iterate_array(path), start=1):
        with rejects.catch(path, number):
            if not isinstance(element, dict):
                raise RowError("not a JSON object", repr(element)[:100])
            yield TextRow(f"{path}:{number}", number, _normalise_keys(flatten_task(element)))


def _normalise_keys(row: JsonObject) -> JsonObject:
    names = _normalise_names(keys := tuple(row))
    return row if names == keys else dict(zip(names, row.values(), strict=True))


@lru_cache(256)
def _normalise_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(normalise_columns(names))


def flatten_task(row: JsonObject) -> JsonObject:
    """Return the cells of a task of Label Studio, with all answers as labels; other rows as they are.

    Examples
    --------
    >>> result = [{"type": "choices", "value": {"choices": ["sea"]}}]
    >>> flatten_task({"id": 3, "data": {"text": "waves"}, "annotations": [{"result": result}]})
    {'text': 'waves', 'id': 3, 'labels': ['sea']}
    """
    data, annotations = row.get("data"), row.get("annotations")
    if not isinstance(data, dict) or not isinstance(annotations, list):
        return row
    results = [
        result
        for annotation in annotations
        if isinstance(annotation, dict) and not annotation.get("was_cancelled")
        for result in annotation.get("result") or ()
        if isinstance(result, dict) and isinstance(result.get("value"), dict)
    ]
    answers = [result["value"].get(result.get("type")) for result in results]
    names = [name for answer in answers if isinstance(answer, list) for name in answer]
    names = [name[-1] if isinstance(name, list) and name else name for name in names]  # of a taxonomy
    return {**data, "id": row.get("id"), "labels": list(dict.fromkeys(n for n in names if isinstance(n, str)))}


def iterate_named_records(
    path: Path, records: Iterator[tuple[int, list[str]]], rejects: Rejects, needed: Iterable[str] = ()
) -> Iterator[TextRow]:
    """Yield the rows of numbered records, of which the first names the columns.

    Raises
    ------
    InputError
        A column is named twice, one of `needed` is missing, or there are too many.
    """
    (number, header), path_text = next(records, (1, [])), str(path)
    where = f"{path_text}:{number}"
    text_files.check_column_count(where, len(header))
    header = normalise_columns(header)
    if len({*filter(None, header)}) < len([*filter(None, header)]):
        raise InputError(f"{where} names a column twice; rename one")
    if missing := [name for name in needed if name not in header]:
        raise InputError(
            f"{where} has no column {missing[0]!r} (it has {format_column_names(header)}); fetch the table again"
        )
    for number, cells in records:
        with rejects.catch(where := f"{path_text}:{number}"):
            if len(cells) != len(header):
                raise RowError("wrong number of cells", f"{len(cells)} of {len(header)}")
            yield TextRow(where, number, dict(zip(header, cells, strict=True)))


def iterate_line_rows(path: Path, needed: Iterable[str], rejects: Rejects) -> Iterator[TextRow]:
    """Return the rows of a table with tabs between quoted cells and one record a line.

    A bad line spoils no other.

    Raises
    ------
    InputError
        A column of `needed` is missing, or as `iterate_table_rows`.
    """
    lines = text_files.iterate_numbered_lines(path, MAX_LINE_BYTES, skip_blank=True)
    records = iterate_parsed(path, lines, lambda line: split_csv_line(line, "\t"), rejects)
    return iterate_named_records(path, records, rejects, needed)


def format_column_names(columns: Iterable[str]) -> str:
    """Return the first names of columns, for a sentence."""
    names = sorted(ascii(name)[:40] for name in columns)
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


def iterate_csv_records(
    path: Path, longest: int, longest_cell: int = _MAX_CELL_LENGTH, *, escaped: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line on which it begins, cells) of each record that is not blank.

    A quoted cell may hold ends of lines.

    Parameters
    ----------
    path : Path
    longest, longest_cell : int
        Letters of a line and of a cell, at most.
    escaped : bool
        Bytes that are not UTF-8 are kept as escapes, and not refused.

    Raises
    ------
    InputError
        Malformed CSV, a longer line, or text that is not UTF-8.
    """
    with text_files.explain_input_errors(path), text_files.open_decompressed(path) as stream:
        # escapes stand for bad bytes until the line that holds them is known: text is decoded by the block
        text = io.TextIOWrapper(cast(IO[bytes], stream), "utf-8", errors="surrogateescape", newline="")
        lines = text_files.iterate_bounded_lines(text, path, longest)
        lines = lines if escaped else _refuse_bad_encoding(lines, path)
        delimiter, n_lines = detect_delimiter(path)
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        for _ in range(n_lines):
            next(lines, None)
        while True:
            number = reader.line_num + n_lines + 1
            try:
                cells = _read_record(reader, longest_cell)
            except csv.Error as error:
                raise InputError(
                    f"{path}:{number} begins a row of malformed CSV ({error}); close every quote in it, "
                    "and double one that stands inside a quoted text"
                ) from error
            if cells is None:
                return
            if cells:
                yield number, cells


def detect_delimiter(path: Path) -> tuple[str, int]:
    """Return what separates the cells of CSV, and the lines that only say so (Excel's `sep=;`)."""
    first = text_files.read_head(path).lstrip().partition(b"\n")[0]
    if match := _EXCEL.fullmatch(first.strip()):
        return match[1].decode("latin-1"), 1
    return next((d for d in ",;\t|" if d.encode() in first), ","), 0


def _read_record(reader: Iterator[list[str]], longest_cell: int) -> list[str] | None:
    """Read a record; the limit on cells is the whole process's, so it is restored at once."""
    old_limit = csv.field_size_limit(longest_cell)
    try:
        return next(reader, None)
    finally:
        csv.field_size_limit(old_limit)


def _refuse_bad_encoding(lines: Iterable[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if not line.isascii():
            text_files.decode_text(line.encode("utf-8", "surrogateescape"), path, number)
        yield line


def parse_json_cells(line: bytes, most_depth: int | None = None) -> JsonObject:
    """Return the cells of a line of JSON by column; `most_depth` as in `parse_json_value`.

    Raises
    ------
    RowError
        It is not a JSON object, or nests too deeply.
    """
    try:
        cells = parse_json_value(line.decode(), most_depth)
    except UnicodeDecodeError as error:
        raise RowError("not UTF-8") from error
    except InputError as error:
        raise RowError("JSON that nests too deeply", str(error)) from error
    except (ValueError, RecursionError) as error:
        raise RowError("malformed JSON", str(error)[:100]) from error
    if not isinstance(cells, dict):
        raise RowError("line that is not a JSON object")
    return cells


def read_code_names(path: Path, delimiter: str = "\t") -> dict[str, str]:
    """Read a file of `code TAB name` lines, or of `code,name` ones; further columns are ignored.

    Codes that share a name get it with their code in parentheses. Of a code that comes twice the first name counts; a
    code with an empty name is its own name.

    Raises
    ------
    InputError
        Missing, not UTF-8, or a line with a single column.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "words.txt"
    ...     _ = file.write_text("n02012849\\tcrane\\nn03126707\\tcrane\\nn01440764\\ttench, Tinca tinca\\n")
    ...     read_code_names(file)
    {'n02012849': 'crane (n02012849)', 'n03126707': 'crane (n03126707)', 'n01440764': 'tench, Tinca tinca'}
    """
    names: dict[str, str] = {}
    for number, line in text_files.iterate_numbered_lines(path, skip_blank=True):
        text = text_files.decode_text(line, path, number)
        cells = next(csv.reader(io.StringIO(text))) if delimiter == "," else text.split(delimiter)
        if len(cells) < 2:
            raise InputError(f"{path}:{number} has no name behind the code {cells[0]!r}; write both on one line")
        code = cells[0].strip()
        names.setdefault(code, normalise_label_name(cells[1]) or code)
    times = Counter(names.values())
    return {code: name if times[name] == 1 else f"{name} ({code})" for code, name in names.items()}
