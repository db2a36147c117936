"""Documents in JSON lines, tables of text, or Parquet with a column `text`, read again on every pass.

A row is a document with its `text`. The labels stand in the first of `labels`, `label`, `tags`, `tag` and
`keywords` that exists, in the forms of `media_folder` and `parquet`; `id`, `group`, `split` and
`time` are used if present. Without an id the number of the line is one, in Parquet that of the row. A
document may have no labels. Only the numbers of documents with repeated ids are held between passes.

Tables are CSV (commas, or semicolons; quoted cells) or have tabs between the cells, which may be in quotes.
Annif's TSV has texts and addresses of subjects; so do columns `subjects` and `subject_uris`.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

from wsabie.core.errors import InputError
from wsabie.core.json_conversion import JsonObject
from wsabie.io.formats.media_folder import normalise_labels
from wsabie.io.formats.parquet_tables import ParquetTable, find_label_columns, is_text_type
from wsabie.io.parsers.array_builders import decode_row
from wsabie.io.parsers.label_cells import LABEL_COLUMNS, LabelCellReader, find_choices, find_flag_columns
from wsabie.io.parsers.text_files import format_path, iterate_bounded_numbered_lines, read_head
from wsabie.io.parsers.text_tables import (
    FILE_COLUMNS,
    TextRow,
    find_column,
    format_column_names,
    iterate_csv_records,
    iterate_json_rows,
    iterate_named_records,
    normalise_columns,
    parse_json_cells,
    to_text_cell,
    unquote_cell,
)
from wsabie.io.records import Item, ItemStream, ReadOptions, scan_items
from wsabie.storage.rejects import Rejects, RowError

log = logging.getLogger("wsabie")
MAX_DOCUMENT_BYTES = 1 << 24
"""Bytes of a document, in UTF-8."""
TEXT_COLUMN = "text"

_LABELS = tuple(name for name in LABEL_COLUMNS if name != TEXT_COLUMN)
_MAX_LINE_BYTES = 4 * MAX_DOCUMENT_BYTES  # JSON writes a letter of two bytes as six
_BATCH = 256
_MAX_COLUMNS = 100  # that are looked at for a sentence
_COLUMN = re.compile(r"\w[\w .:-]*")
_ADDRESS = re.compile(r"<[^<>\s]+:[^<>\s]+>|https?://[^<>\s]+")
_TOO_LONG = f"document of more than {MAX_DOCUMENT_BYTES >> 20} MiB"

TextRows: TypeAlias = Callable[[Rejects], Iterator[TextRow]]
RowReader: TypeAlias = Callable[[Path, Rejects], Iterator[TextRow]]


def read_text_table(path: Path, options: ReadOptions, read_rows: RowReader) -> ItemStream:
    """Read the documents of a text file; `read_rows` is `read_json_rows` or `read_table_rows`.

    Parameters
    ----------
    path : Path
    options : ReadOptions
        Rejected are rows without text, too long, not UTF-8 or otherwise broken, and duplicate ids. There may be no
        labels.
    read_rows : callable
        Gives the rows of the file, and lists others.

    Raises
    ------
    InputError
        Missing, no document, no such column, or labels of mixed types.
    """
    rows = partial(read_rows, path)
    labels = _find_labels(path, rows, options.label_column) if options.has_labels else None
    documents = partial(_iterate_documents, rows, labels, options.split)
    return scan_items(path, documents, options.rejects)


def read_parquet_documents(table: ParquetTable, options: ReadOptions) -> ItemStream:
    """Read documents from Parquet with a column `text`; options and errors as in `read_text_table`."""
    labels = find_label_columns(table, options.label_column, (*_LABELS, "subjects")) if options.has_labels else None
    if options.has_labels and labels is None:
        _log_unlabelled(table.path, table.schema.names)
    documents = partial(_iterate_documents, partial(_iterate_parquet_rows, table, labels), labels, options.split)
    return scan_items(table.path, documents, options.rejects)


def has_text_column(table: ParquetTable) -> bool:
    """Return True if there is a column `text` that holds texts."""
    return table.has_columns(TEXT_COLUMN) and is_text_type(table.schema.field(TEXT_COLUMN).type)


def detect_columns(lines: Sequence[bytes]) -> list[str]:
    """Return the columns of a table or of JSON lines, by their first lines; none where it is neither.

    Without a column `text` a table has two columns or more, and rows.

    Examples
    --------
    >>> detect_columns([b"id,topic,body", b"1,sea,waves"]), detect_columns([b'{"body": "waves"}'])
    (['id', 'topic', 'body'], ['body'])
    >>> detect_columns([b'label;"text"']), detect_columns([b"a text, long", b"and another, longer"])
    (['label', 'text'], [])
    """
    with suppress(RowError):
        return normalise_columns(parse_json_cells(lines[0]))
    head = lines[0].strip(b"\r\n")
    separator = next((s for s in (b"\t", b",", b";", b"|") if s in head), b",")
    names = normalise_columns(c.strip().strip(b'"').decode("utf-8", "replace") for c in head.split(separator))
    has_blanks = any(b in head for b in (b", ", b"; "))  # as a sentence has behind its commas
    is_sentence = has_blanks and (" " in "".join(names) or not {*names} & {"id", "file_name", *_LABELS})
    names = [name for name in names if name]
    has_files = find_column(names, FILE_COLUMNS) is not None  # then others may be labels, of any spelling
    is_plain = all(map(_COLUMN.fullmatch, names)) and len(set(names)) == len(names)
    if is_sentence or not (has_files or is_plain):
        return []
    has_rows = len(names) > 1 and any(separator in line for line in lines[1:])
    is_table = TEXT_COLUMN in names or (has_rows and (has_files or not any(name[0].isdigit() for name in names)))
    return names if is_table else []


def read_json_rows(path: Path, rejects: Rejects) -> Iterator[TextRow]:
    """Return the rows of JSON lines, or of an array."""
    return iterate_json_rows(path, _iterate_lines(path, rejects), rejects)


def _iterate_lines(path: Path, rejects: Rejects) -> Iterator[tuple[int, bytes]]:
    for number, line in iterate_bounded_numbered_lines(path, _MAX_LINE_BYTES):
        if line is None:
            rejects.add(f"{path}:{number}", _TOO_LONG)
        elif line.strip():
            yield number, line


def read_table_rows(path: Path, rejects: Rejects) -> Iterator[TextRow]:
    """Return the rows of a table under its header.

    Raises
    ------
    InputError
        A column is named twice; CSV that is malformed, or has a line of more than 64 MiB.
    """
    # escapes stand for bad bytes until the cell that holds them is looked at
    if b"\t" not in read_head(path).lstrip().partition(b"\n")[0]:
        records = iterate_csv_records(path, _MAX_LINE_BYTES, _MAX_LINE_BYTES, escaped=True)
        return iterate_named_records(path, records, rejects)
    lines = _iterate_lines(path, rejects)
    texts = ((number, line.decode("utf-8", "surrogateescape").split("\t")) for number, line in lines)
    cells = ((number, [*map(unquote_cell, row)]) for number, row in texts)
    return iterate_named_records(path, cells, rejects)


def read_annif_rows(path: Path, rejects: Rejects) -> Iterator[TextRow]:
    """Yield the rows of Annif's TSV: a text, a tab, and the addresses of its subjects."""
    for number, line in _iterate_lines(path, rejects):
        with rejects.catch(path, number):
            text, subjects = split_subjects(decode_row(line))
            if text is None:
                raise RowError("line without a tab", "and addresses of subjects behind it")
            cells: JsonObject = {TEXT_COLUMN: text, _LABELS[0]: subjects}
            yield TextRow(f"{path}:{number}", number, cells)


def _iterate_parquet_rows(table: ParquetTable, labels: LabelCellReader | None, rejects: Rejects) -> Iterator[TextRow]:
    names = [TEXT_COLUMN, "id", "group", "time", "split", *(labels.columns if labels else [])]
    names = [name for name in names if table.has_columns(name)]
    number = 0
    for batch in table.iterate_batches(names, _BATCH):
        for row, cells in enumerate(zip(*(batch.get_column(name) for name in names), strict=True)):
            number += 1
            yield TextRow(batch.format_position(row), number, dict(zip(names, cells, strict=True)))


def split_subjects(line: str) -> tuple[str | None, list[str]]:
    r"""Return the text of a line of Annif's and its subjects; None without a tab before addresses alone.

    Examples
    --------
    >>> split_subjects("waves\tand salt\t<http://a/1> http://a/2"), split_subjects("waves\tsea")
    (('waves\tand salt', ['http://a/1', 'http://a/2']), (None, []))
    """
    cells = line.split("\t")
    n = len(cells)
    while n > 1 and all(map(_ADDRESS.fullmatch, cells[n - 1].split())):
        n -= 1
    return ("\t".join(cells[:n]) if n < len(cells) else None), _list_addresses(" ".join(cells[n:]))


def _list_addresses(cell: object) -> list[str]:
    return re.findall(r"[^<>\s]+", cell) if isinstance(cell, str) else []


class _SubjectReader(LabelCellReader):
    """Reader of Annif's column of addresses with blanks between them, in angle brackets or not."""

    def get_cell(self, row: Mapping[str, object]) -> object:
        """Return the addresses of a row."""
        return _list_addresses(row.get(self.name))


def _find_labels(path: Path, rows: TextRows, label_column: str | None) -> LabelCellReader | None:
    """Return the reader of the column of labels, or of columns of 0 and 1, by the whole file; else None."""
    names = normalise_columns([label_column]) if label_column else _LABELS
    readers = {name: LabelCellReader(name) for name in names}
    if not label_column:
        readers |= {"subjects": LabelCellReader("subjects"), "subject_uris": _SubjectReader("subject_uris")}
    columns, choices = dict[str, None](), set[str]()
    for row in rows(Rejects(most=0)):
        if len(columns) < _MAX_COLUMNS:
            columns |= dict.fromkeys(row.cells)
        choices |= {name for name, cell in row.cells.items() if isinstance(cell, dict) and "choices" in cell}
        for reader in readers.values():
            reader.add(reader.get_cell(row.cells))
    if (title := find_column(columns, ("title",))) and title != label_column:
        log.info("%s: the column %r is not read; to use it, put each title before its text", format_path(path), title)
    column = next((name for name in readers if name in columns), None) or (
        next(iter(choices)) if len(choices) == 1 else find_choices(columns)
    )
    if column in readers:
        return readers[column].check(path)
    all_cells = (row.cells for row in rows(Rejects(most=0)))
    if column is not None:
        return LabelCellReader(column).inspect(cells.get(column) for cells in all_cells).check(path)
    if label_column:
        listed = format_column_names(columns)
        raise InputError(f"{path} has no column {label_column!r} (it has {listed}); name the column of labels")
    if (labels := find_flag_columns(all_cells)) is None:
        _log_unlabelled(path, columns)
    return labels


def _log_unlabelled(path: Path, columns: Iterable[str]) -> None:
    """Log that documents have no column of labels, for users who gave it another name."""
    log.info(
        "%s has no column of labels, which would be called %s (it has %s)",
        format_path(path), f"{', '.join(_LABELS[:-1])} or {_LABELS[-1]}", format_column_names(columns),
    )  # fmt: skip


def _iterate_documents(
    rows: TextRows, labels: LabelCellReader | None, split: str | None, rejects: Rejects
) -> Iterator[tuple[str, Item]]:
    for where, number, cells in rows(rejects):
        with rejects.catch(where):
            if split is not None and to_text_cell(cells.get("split")) != split:
                continue
            if TEXT_COLUMN not in cells:
                raise RowError("document without text", f"it has {format_column_names(cells)}")
            content = encode_text(cells[TEXT_COLUMN])
            names = () if labels is None else normalise_labels(labels.read_labels(labels.get_cell(cells), where))
            ident = to_text_cell(cells.get("id")) or str(number)
            yield where, Item(ident, content, names, to_text_cell(cells.get("group")), to_text_cell(cells.get("time")))


def encode_text(text: object) -> bytes:
    """Encode a document's text as UTF-8.

    Raises
    ------
    RowError
        It is not text, blank, too long, or cannot be written as UTF-8.
    """
    if not isinstance(text, str) or not text or text.isspace():
        raise RowError("document without text")
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise RowError("not UTF-8, convert the file", "for instance with iconv") from error
    if len(content) > MAX_DOCUMENT_BYTES:
        raise RowError(_TOO_LONG, f"{len(content):,} bytes")
    return content
