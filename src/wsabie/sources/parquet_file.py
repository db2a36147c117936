"""One Parquet file, or a folder of them, as one table that is read in batches."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from wsabie.base.errors import InputError
from wsabie.base.input_files import open_input
from wsabie.sources.cells import LABEL_COLUMNS, LabelCells, separator_of
from wsabie.sources.parquet_limits import cells_of, check_metadata, expanded_bytes, rows_at_once, text_columns
from wsabie.sources.parquet_pages import check_pages, check_schema_size
from wsabie.sources.text import bytes_on_disk, reading, shown
from wsabie.sources.unpacked import check_expansion

KEY = b"wsabie"
MAGIC = b"PAR1"


class Batch(NamedTuple):
    """Some rows of a table: `first` is the number of the first one in `file`, from 1."""

    file: Path
    first: int
    data: Any  # pyarrow.RecordBatch

    def where(self, row: int) -> str:
        """Where a row of this batch stands, for messages."""
        return f"{shown(self.file)} row {self.first + row}"

    def column(self, name: str | None) -> list[Any]:
        """A column as Python objects; Nones without such a column."""
        if name is None or name not in self.data.schema.names:
            return [None] * self.data.num_rows
        with decoding(self.file):
            return cells_of(self.data.column(name))


@dataclass(frozen=True)
class Table:
    """The shards of a table, which have the same columns."""

    path: Path
    files: list[Path]
    schema: Any  # pyarrow.Schema
    file_rows: list[int]
    promised: dict[str, Any] = field(default_factory=dict)  # what `write_rows` noted in the file

    @property
    def n_rows(self) -> int:
        """Rows of all shards, as their footers promise."""
        return sum(self.file_rows)

    def has(self, *columns: str) -> bool:
        """Whether all of these columns are there."""
        return set(columns) <= set(self.schema.names)

    def first_of(self, columns: Iterable[str]) -> str | None:
        """The first of these columns that is there."""
        return next((name for name in columns if self.has(name)), None)

    def listed_columns(self) -> str:
        """Names of the columns, for messages."""
        names = sorted(ascii(name)[:40] for name in self.schema.names)
        return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")

    def batches(self, columns: Sequence[str | None], size: int, skip: int = 0) -> Iterator[Batch]:
        """Batches of at most `size` rows with some of the columns, in the order of the files, less the first `skip`.

        Raises
        ------
        InputError
            A file is damaged, holds another number of rows than its footer promises, or expands beyond the limits.
        """
        wanted = [name for name in dict.fromkeys(columns) if name is not None]
        for file, promised in zip(self.files, self.file_rows, strict=True):
            first = 1
            if skip >= promised:
                skip -= promised
                continue
            expanded, stored = 0, bytes_on_disk(file)
            with decoding(file), _parquet(file, wanted) as parquet:
                groups = list(range(parquet.num_row_groups))
                while groups and (rows := parquet.metadata.row_group(groups[0]).num_rows) <= skip:
                    first, skip, groups = first + rows, skip - rows, groups[1:]
                # one after the other: texts of a dictionary have another one in each
                for data in chain.from_iterable(
                    parquet.iter_batches(rows_at_once(stored, size), row_groups=[g], columns=wanted) for g in groups
                ):
                    first += data.num_rows
                    expanded += sum(map(expanded_bytes, data.columns))
                    check_expansion(shown(file), stored, expanded)
                    passed = min(skip, data.num_rows)
                    skip -= passed
                    if first - 1 <= promised and passed < data.num_rows:
                        yield Batch(file, first - data.num_rows + passed, data.slice(passed))
            if first - 1 != promised:
                raise InputError(
                    f"{shown(file)} holds {first - 1:,} rows but its footer promises {promised:,}; "
                    "write or fetch it again"
                )


def shards(path: Path) -> list[Path]:
    """The Parquet files that `path` stands for: itself, or those of a folder in the order of their names."""
    with reading(path):
        if not path.is_dir():
            return [path]
        return sorted(p for p in path.iterdir() if p.suffix == ".parquet" and not p.name.startswith("."))


def open_table(path: Path) -> Table:
    """Look at the schema and the notes of every shard.

    Raises
    ------
    InputError
        No Parquet, damaged, without rows, or shards that do not belong together.
    """
    files = shards(path)
    first = None
    file_rows: list[int] = []
    for file in files:
        with decoding(file), _parquet(file, ()) as parquet:
            schema = parquet.schema_arrow
            file_rows.append(parquet.metadata.num_rows)
        if first is not None and (schema.names != first.names or note_of(schema, file) != note_of(first, files[0])):
            raise InputError(
                f"{shown(file)} has other columns or other notes than {shown(files[0].name)} beside it; "
                "keep only shards of one table in a folder"
            )
        first = first or schema
    if first is None or sum(file_rows) == 0:
        raise InputError(f"{shown(path)} holds no rows; give a Parquet file that has some")
    return Table(path, files, first, file_rows, note_of(first, files[0]))


@contextmanager
def decoding(file: Path) -> Iterator[None]:
    """Explain what Arrow says about a file that it cannot read."""
    import pyarrow as pa

    with reading(file):
        try:
            yield
        except (FileNotFoundError, PermissionError, IsADirectoryError):
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError, OverflowError) as error:
            text = " ".join(str(error).split())[:120] or type(error).__name__
            raise InputError(f"{shown(file)} is damaged or no Parquet ({text}); write or fetch it again") from error


@contextmanager
def _parquet(file: Path, columns: Sequence[str]) -> Iterator[Any]:
    """The file, open to read some columns; texts of a dictionary stay numbers of it."""
    from pyarrow.parquet import ParquetFile, read_metadata

    # Column chunks pass through a small buffer: a row group may hold gigabytes of pictures.
    with open_input(file) as stream:
        check_schema_size(file, stream)
        metadata = read_metadata(stream)
        check_metadata(file, metadata)
        if columns:
            check_pages(file, stream, columns)
        texts = text_columns(metadata, columns)
        with ParquetFile(
            stream, metadata=metadata, read_dictionary=texts, buffer_size=1 << 20, pre_buffer=False
        ) as parquet:
            yield parquet


def note_of(schema: Any, file: Path) -> dict[str, Any]:
    """What `write_rows` noted in a file; empty for files of others."""
    content = (schema.metadata or {}).get(KEY)
    if content is None:
        return {}
    try:
        note = json.loads(content)
    except (ValueError, RecursionError):
        note = None
    if not _is_sound(note):
        raise InputError(f"{shown(file)} has damaged notes under the key {KEY.decode()!r}; write the file again")
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
        and (note.get("feature_names") is None or _fit(note["feature_names"], note["n_features"]))
    )


def _fit(names: Any, n: int) -> bool:
    return _are_names(names) and len(names) == n


def _are_names(names: Any) -> bool:
    return isinstance(names, list) and all(isinstance(n, str) for n in names) and len(set(names)) == len(names)


def class_names(schema: Any, column: str) -> list[str] | None:
    """Names of a ClassLabel column as Hugging Face's datasets note them in the schema; None without."""
    try:
        noted = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        feature = noted["info"]["features"][column]
        feature = feature[0] if isinstance(feature, list) else feature.get("feature", feature)
        names = feature.get("names")
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, IndexError):
        return None
    return names if _are_names(names) else None


def label_column_of(table: Table, wanted: str | None) -> str:
    """The column of labels.

    Raises
    ------
    InputError
        There is none.
    """
    found = table.first_of((wanted,) if wanted else LABEL_COLUMNS)
    if found is None:
        choices = " or ".join(repr(c) for c in ((wanted,) if wanted else LABEL_COLUMNS))
        raise InputError(
            f"{shown(table.path)} has no column {choices} (it has {table.listed_columns()}); put the labels in one"
        )
    return found


class LabelColumn:
    """The labels of a table, row by row, whatever form they have in the column."""

    def __init__(self, table: Table, name: str) -> None:
        self.name = name
        self._cells = LabelCells(name, class_names(table.schema, name))  # one for all shards: their types must agree
        self._separator = _separator(table, name)

    def read(self, cell: Any, where: str) -> tuple[str, ...]:
        """The labels in a cell, as `LabelCells.read` has them; a text may hold several."""
        split = self._separator and isinstance(cell, str)
        return self._cells.read(cell.split(self._separator) if split else cell, where)


def _separator(table: Table, column: str) -> str | None:
    from pyarrow import types

    kind = table.schema.field(column).type
    if not (types.is_string(kind) or types.is_large_string(kind)):
        return None
    texts = (cell for batch in table.batches([column], 1 << 14) for cell in batch.column(column) if cell)
    return separator_of(texts, column)
