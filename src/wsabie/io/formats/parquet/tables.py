"""One Parquet file, or a folder of them, as one table that is read in batches."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from wsabie.core.errors import InputError
from wsabie.core.input_files import open_input
from wsabie.io.formats.parquet.size_checks import (
    check_pages,
    check_parquet_metadata,
    check_schema_size,
    choose_batch_rows,
    compute_expanded_bytes,
    convert_to_cells,
    list_dictionary_text_columns,
)
from wsabie.io.parsers.gzip_files import check_expansion
from wsabie.io.parsers.table_cells import LABEL_COLUMNS, LabelCellReader, find_separator
from wsabie.io.parsers.text_files import explain_reading_errors, format_path, get_file_size

KEY = b"wsabie"
MAGIC = b"PAR1"


class ParquetBatch(NamedTuple):
    """Rows of a table: `first` is the number of the first one in `file`, from 1."""

    file: Path
    first: int
    data: Any  # pyarrow.RecordBatch

    def where(self, row: int) -> str:
        """Return the place of a row of this batch, for messages."""
        return f"{format_path(self.file)} row {self.first + row}"

    def column(self, name: str | None) -> list[Any]:
        """Return a column as Python objects; Nones without such a column."""
        if name is None or name not in self.data.schema.names:
            return [None] * self.data.num_rows
        with explain_arrow_errors(self.file):
            return convert_to_cells(self.data.column(name))


@dataclass(frozen=True)
class ParquetTable:
    """Shards of a table, which have the same columns."""

    path: Path
    files: list[Path]
    schema: Any  # pyarrow.Schema
    file_rows: list[int]
    promised: dict[str, Any] = field(default_factory=dict)  # what `write_rows` noted in the file

    @property
    def n_rows(self) -> int:
        """Return the rows of all shards, as their footers promise."""
        return sum(self.file_rows)

    def has(self, *columns: str) -> bool:
        """Return whether the table has all of these columns."""
        return set(columns) <= set(self.schema.names)

    def first_of(self, columns: Iterable[str]) -> str | None:
        """Return the first of these columns that exists."""
        return next((name for name in columns if self.has(name)), None)

    def listed_columns(self) -> str:
        """Return the names of the columns, for messages."""
        names = sorted(ascii(name)[:40] for name in self.schema.names)
        return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")

    def batches(self, columns: Sequence[str | None], size: int, skip: int = 0) -> Iterator[ParquetBatch]:
        """Yield batches of at most `size` rows with some columns, in file order, after the first `skip`.

        Raises
        ------
        InputError
            A file is damaged, holds another number of rows than its footer promises, or expands beyond the limits.
        """
        names = [name for name in dict.fromkeys(columns) if name is not None]
        for file, promised in zip(self.files, self.file_rows, strict=True):
            first = 1
            if skip >= promised:
                skip -= promised
                continue
            expanded, stored = 0, get_file_size(file)
            with explain_arrow_errors(file), _open_parquet(file, names) as parquet:
                groups = list(range(parquet.num_row_groups))
                while groups and (rows := parquet.metadata.row_group(groups[0]).num_rows) <= skip:
                    first, skip, groups = first + rows, skip - rows, groups[1:]
                # one after the other: texts of a dictionary have another one in each
                for data in chain.from_iterable(
                    parquet.iter_batches(choose_batch_rows(stored, size), row_groups=[g], columns=names) for g in groups
                ):
                    first += data.num_rows
                    expanded += sum(map(compute_expanded_bytes, data.columns))
                    check_expansion(format_path(file), stored, expanded)
                    n_passed = min(skip, data.num_rows)
                    skip -= n_passed
                    if first - 1 <= promised and n_passed < data.num_rows:
                        yield ParquetBatch(file, first - data.num_rows + n_passed, data.slice(n_passed))
            if first - 1 != promised:
                raise InputError(
                    f"{format_path(file)} holds {first - 1:,} rows but its footer promises {promised:,}; "
                    "write or fetch it again"
                )


def list_parquet_files(path: Path) -> list[Path]:
    """Return the Parquet files at `path`: itself, or those of a folder in the order of their names."""
    with explain_reading_errors(path):
        if not path.is_dir():
            return [path]
        return sorted(p for p in path.iterdir() if p.suffix == ".parquet" and not p.name.startswith("."))


def open_parquet_table(path: Path) -> ParquetTable:
    """Read the schema and the notes of every shard.

    Raises
    ------
    InputError
        No Parquet, damaged, without rows, or shards that do not belong together.
    """
    files = list_parquet_files(path)
    first = None
    file_rows: list[int] = []
    for file in files:
        with explain_arrow_errors(file), _open_parquet(file, ()) as parquet:
            schema = parquet.schema_arrow
            file_rows.append(parquet.metadata.num_rows)
        if first is not None and (
            schema.names != first.names or read_schema_note(schema, file) != read_schema_note(first, files[0])
        ):
            raise InputError(
                f"{format_path(file)} has other columns or other notes than {format_path(files[0].name)} beside it; "
                "keep only shards of one table in a folder"
            )
        first = first or schema
    if first is None or sum(file_rows) == 0:
        raise InputError(f"{format_path(path)} holds no rows; give a Parquet file that has some")
    return ParquetTable(path, files, first, file_rows, read_schema_note(first, files[0]))


@contextmanager
def explain_arrow_errors(file: Path) -> Iterator[None]:
    """Turn Arrow's errors of reading a file into a sentence."""
    import pyarrow as pa

    with explain_reading_errors(file):
        try:
            yield
        except (FileNotFoundError, PermissionError, IsADirectoryError):
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError, OverflowError) as error:
            text = " ".join(str(error).split())[:120] or type(error).__name__
            raise InputError(
                f"{format_path(file)} is damaged or no Parquet ({text}); write or fetch it again"
            ) from error


@contextmanager
def _open_parquet(file: Path, columns: Sequence[str]) -> Iterator[Any]:
    """Open a file to read some columns; texts of a dictionary stay numbers of it."""
    from pyarrow.parquet import ParquetFile, read_metadata

    # Column chunks pass through a small buffer: a row group may hold gigabytes of pictures.
    with open_input(file) as stream:
        check_schema_size(file, stream)
        metadata = read_metadata(stream)
        check_parquet_metadata(file, metadata)
        if columns:
            check_pages(file, stream, columns)
        texts = list_dictionary_text_columns(metadata, columns)
        with ParquetFile(
            stream, metadata=metadata, read_dictionary=texts, buffer_size=1 << 20, pre_buffer=False
        ) as parquet:
            yield parquet


def read_schema_note(schema: Any, file: Path) -> dict[str, Any]:
    """Return the note of `write_parquet_rows` in a file; empty for other files."""
    content = (schema.metadata or {}).get(KEY)
    if content is None:
        return {}
    try:
        note = json.loads(content)
    except (ValueError, RecursionError):
        note = None
    if not _is_sound(note):
        raise InputError(f"{format_path(file)} has damaged notes under the key {KEY.decode()!r}; write the file again")
    return dict(note)


def _is_sound(note: Any) -> bool:
    return (
        isinstance(note, dict)
        and note.get("schema") == 1
        and isinstance(note.get("counts"), bool)
        and type(note.get("n_features")) is int
        and 0 <= note["n_features"] < 2**31
        and _are_names(note.get("label_names"))
        and isinstance(note.get("dictionary"), str | None)
        and type(note.get("augment", 0)) is int
        and note.get("augment", 0) >= 0
        and (note.get("feature_names") is None or _has_n_names(note["feature_names"], note["n_features"]))
    )


def _has_n_names(names: Any, n: int) -> bool:
    return _are_names(names) and len(names) == n


def _are_names(names: Any) -> bool:
    return isinstance(names, list) and all(isinstance(n, str) for n in names) and len(set(names)) == len(names)


def read_class_names(schema: Any, column: str) -> list[str] | None:
    """Return the names of a ClassLabel column as Hugging Face's datasets note them; None without."""
    try:
        noted = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        feature = noted["info"]["features"][column]
        feature = feature[0] if isinstance(feature, list) else feature.get("feature", feature)
        names = feature.get("names")
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, IndexError):
        return None
    return names if _are_names(names) else None


def find_label_column(table: ParquetTable, label_column: str | None) -> str:
    """Return the column of labels.

    Raises
    ------
    InputError
        There is none.
    """
    column = table.first_of((label_column,) if label_column else LABEL_COLUMNS)
    if column is None:
        choices = " or ".join(repr(c) for c in ((label_column,) if label_column else LABEL_COLUMNS))
        raise InputError(
            f"{format_path(table.path)} has no column {choices} (it has {table.listed_columns()}); put the labels in "
            "one"
        )
    return column


class ParquetLabelColumn:
    """Labels of a table, row by row, in any form that a column may have."""

    def __init__(self, table: ParquetTable, name: str) -> None:
        self.name = name
        self._cells = LabelCellReader(
            name, read_class_names(table.schema, name)
        )  # one for all shards: their types must agree
        self._separator = _detect_separator(table, name)

    def read_labels(self, cell: Any, where: str) -> tuple[str, ...]:
        """Return the labels in a cell, as `LabelCellReader.read_labels` does; a text may hold several."""
        split = self._separator and isinstance(cell, str)
        return self._cells.read_labels(cell.split(self._separator) if split else cell, where)


def _detect_separator(table: ParquetTable, column: str) -> str | None:
    from pyarrow import types

    kind = table.schema.field(column).type
    if not (types.is_string(kind) or types.is_large_string(kind)):
        return None
    texts = (cell for batch in table.batches([column], 1 << 14) for cell in batch.column(column) if cell)
    return find_separator(texts, column)
