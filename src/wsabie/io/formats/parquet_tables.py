"""One Parquet file, or a folder of them, as one table that is read in batches.

A page of a few bytes may claim a thousand million copies of one number, and the footer need not say so. So the
headers of pages are read before anything is decoded. Footer and headers are structs of Thrift's compact protocol;
pyarrow gives no access to headers, and damaged notes of a column chunk end the process there.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from wsabie.core.errors import InputError, MissingLabelsError
from wsabie.core.input_files import open_input
from wsabie.core.json_conversion import JsonObject
from wsabie.io.parsers import text_files
from wsabie.io.parsers.label_cells import LABEL_COLUMNS, LabelCellReader, find_flag_columns
from wsabie.io.parsers.text_tables import format_column_names

ArrowObject: TypeAlias = Any
"""An array, a batch or a schema of pyarrow, which ships no types."""
_ThriftStruct: TypeAlias = dict[int, Any]
MAX_BYTES = 64 << 20
"""Bytes of a file whose pages are looked at; a larger one is not a small input."""
_VALUE_BYTES = 4  # in memory, at least
MAGIC = b"PAR1"
_HEADER_BYTES = (1 << 12, 1 << 24)  # that are read; Arrow takes no longer header
# ids of fields: of the footer and its row groups, of the notes of a column, of page headers
_SCHEMA, _GROUPS, _CHUNKS, _NOTES = 2, 4, 1, 3
_PATH, _N_VALUES, _SIZE, _DATA_AT, _DICTIONARY_AT = 3, 5, 7, 9, 11
_EXPANDED, _COMPRESSED, _DATA_HEADERS, _N_IN_PAGE = 2, 3, (5, 8), 1
_MIN_ROWS = 64
"""Rows that are read together, at least."""
KEY = b"wsabie"


def check_schema_size(file: Path, stream: BufferedIOBase) -> None:
    """Refuse a table of more columns than `InputLimits.table_columns` before Arrow makes 2 kB of each.

    Raises
    ------
    InputError
    """
    footer, n = _CompactReader(_read_footer(stream, 1 << 10)), 0
    try:
        for number, kind in footer.iterate_fields():
            if number == _SCHEMA:
                n = footer.read_list_head()[0] - 1
                break
            footer.read_value(kind)
    except (IndexError, ValueError, RecursionError):  # Arrow says what is wrong
        return
    text_files.check_column_count(str(file), n)


def check_pages(file: Path, stream: BufferedIOBase, columns: Collection[str]) -> None:
    """Refuse columns whose pages claim far more values, or bytes, than the file can hold.

    Files larger than `MAX_BYTES` are not examined.

    Raises
    ------
    InputError
        They expand beyond the limits, or are damaged.
    """
    stored, expanded, names = text_files.get_file_size(file), 0, {name.encode() for name in columns}
    if stored > MAX_BYTES:
        return
    try:
        footer = _CompactReader(_read_footer(stream, MAX_BYTES)).read_struct()
        notes = [chunk[_NOTES] for group in footer[_GROUPS] for chunk in group[_CHUNKS]]
        for note in notes:
            if note[_PATH][0] in names or b".".join(note[_PATH]) in names:
                expanded = _check_chunk(file, stream, note, stored, expanded)
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file} is damaged or not Parquet (its pages); write or fetch it again") from error


def _check_chunk(file: Path, stream: BufferedIOBase, note: _ThriftStruct, stored: int, expanded: int) -> int:
    """Add the bytes that the pages of a column chunk expand to, and return the sum."""
    position, n_values = min(note[_DATA_AT], note.get(_DICTIONARY_AT) or note[_DATA_AT]), 0
    end = position + note[_SIZE]
    while n_values < note[_N_VALUES] and position < end:
        header, position = _read_page_header(stream, position)
        n = sum(header[kind][_N_IN_PAGE] for kind in _DATA_HEADERS if kind in header)
        n_values += n
        expanded += max(header[_EXPANDED], _VALUE_BYTES * n)
        text_files.check_expansion(str(file), stored, expanded)
        position += max(0, header[_COMPRESSED])
    return expanded


def _read_page_header(stream: BufferedIOBase, position: int) -> tuple[_ThriftStruct, int]:
    """Read the header at a position; return it and the first byte behind it."""
    for size in _HEADER_BYTES:
        stream.seek(position)
        header = _CompactReader(stream.read(size))
        try:
            return header.read_struct(), position + header.position
        except IndexError:  # it is longer, or cut off
            continue
    raise ValueError("a page without a header")


def _read_footer(stream: BufferedIOBase, most: int) -> bytes:
    """Return the first `most` bytes of the footer; none of a file that is not Parquet."""
    size = stream.seek(0, 2)
    stream.seek(max(0, size - 8))
    end = stream.read(8)
    n = int.from_bytes(end[:4], "little")
    if end[4:] != MAGIC or n + 8 > size:
        return b""
    stream.seek(size - 8 - n)
    return stream.read(min(n, most))


class _CompactReader:
    """Reader of structs in Thrift's compact protocol, as dicts by the ids of fields."""

    def __init__(self, content: bytes) -> None:
        self.content, self.position = content, 0

    def read_struct(self) -> _ThriftStruct:
        return {number: self.read_value(kind) for number, kind in self.iterate_fields()}

    def iterate_fields(self) -> Iterator[tuple[int, int]]:
        """Yield (id, type) of each field; the caller reads its value before the next."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            yield number, head & 15

    def read_value(self, kind: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind in (4, 5, 6):
            return self._integer()
        if kind == 8:
            return self._bytes(self._number())
        if kind in (9, 10):
            n, inner = self.read_list_head()
            return [self._byte() if inner in (1, 2) else self.read_value(inner) for _ in range(n)]
        if kind == 12:
            return self.read_struct()
        if kind in (3, 7):
            return self._bytes(1 if kind == 3 else 8)
        raise ValueError(f"a value of type {kind}")

    def read_list_head(self) -> tuple[int, int]:
        """Read the number and the type of the values of a list."""
        head = self._byte()
        return (head >> 4 if head >> 4 < 15 else self._number()), head & 15

    def _byte(self) -> int:
        self.position += 1
        return self.content[self.position - 1]

    def _bytes(self, n: int) -> bytes:
        if self.position + n > len(self.content):
            raise IndexError("cut off")
        self.position += n
        return self.content[self.position - n : self.position]

    def _number(self) -> int:
        number, shift = 0, 0
        while (byte := self._byte()) & 128:
            number |= (byte & 127) << shift
            shift += 7
        return number | byte << shift

    def _integer(self) -> int:
        number = self._number()
        return number >> 1 ^ -(number & 1)


def list_dictionary_text_columns(metadata: ArrowObject, columns: Iterable[str]) -> list[str]:
    """Return the paths of text columns to read as numbers of a dictionary: it may repeat long texts."""
    names, leaves = set(columns), (metadata.schema.column(number) for number in range(metadata.num_columns))
    texts = (leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY")
    return [path for path in texts if path in names or path.split(".")[0] in names]


def compute_expanded_bytes(array: ArrowObject) -> int:
    """Return the bytes of an Arrow array with every text of a dictionary written out."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types

    kind = array.type
    if types.is_dictionary(kind):
        n_bytes, texts = int(array.indices.nbytes), array.dictionary
        if texts.type not in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()):
            return n_bytes
        return n_bytes + (pc.sum(pc.binary_length(texts).take(array.indices)).as_py() or 0)
    if types.is_struct(kind) or types.is_list(kind) or types.is_large_list(kind):
        inner = array.flatten()
        return 4 * len(array) + sum(map(compute_expanded_bytes, inner if isinstance(inner, list) else [inner]))
    return int(array.nbytes)


def convert_to_cells(array: ArrowObject) -> list[Any]:
    """Return an Arrow array as Python objects; each text of a dictionary is a single object."""
    import pyarrow.compute as pc
    from pyarrow import types

    kind = array.type
    if types.is_dictionary(kind):
        used = pc.unique(array.indices.drop_null())
        texts = dict(zip(used.to_pylist(), array.dictionary.take(used).to_pylist(), strict=True))
        return [texts.get(number) for number in array.indices.to_pylist()]
    if (types.is_list(kind) or types.is_large_list(kind)) and types.is_dictionary(kind.value_type):
        cells, ends = convert_to_cells(array.flatten()), pc.cumulative_sum(pc.list_value_length(array).fill_null(0))
        spans = zip([0, *ends.to_pylist()], ends.to_pylist(), array.is_valid().to_pylist(), strict=False)
        return [cells[lo:hi] if valid else None for lo, hi, valid in spans]
    if types.is_struct(kind) and any(types.is_dictionary(field.type) for field in kind):
        columns = [convert_to_cells(inner) for inner in array.flatten()]
        names = [field.name for field in kind]
        rows = zip(array.is_valid().to_pylist(), *columns, strict=True)
        return [dict(zip(names, row, strict=True)) if valid else None for valid, *row in rows]
    return list(array.to_pylist())


class ParquetBatch(NamedTuple):
    """Rows of a table: `first` is the number of the first one in `file`, from 1."""

    file: Path
    first: int
    data: ArrowObject  # pyarrow.RecordBatch

    def format_position(self, row: int) -> str:
        """Return the position of a row of this batch, for messages."""
        return f"{self.file} row {self.first + row}"

    def get_column(self, name: str | None) -> list[Any]:
        """Return a column as Python objects; Nones without such a column."""
        if name is None or name not in self.data.schema.names:
            return [None] * self.data.num_rows
        with explain_arrow_errors(self.file):
            return convert_to_cells(self.data.column(name))

    def get_label_cells(self, reader: LabelCellReader | None) -> list[Any]:
        """Return the cells that a reader of labels takes; Nones without one."""
        if reader is None or reader.columns == [reader.name]:
            return self.get_column(reader.name if reader else None)
        rows = zip(*map(self.get_column, reader.columns), strict=True)
        return [reader.get_cell(dict(zip(reader.columns, cells, strict=True))) for cells in rows]


@dataclass(frozen=True)
class ParquetTable:
    """Shards of a table, which have the same columns."""

    path: Path
    files: list[Path]
    schema: ArrowObject  # pyarrow.Schema
    file_rows: list[int]
    note: JsonObject = field(default_factory=dict)  # what `write_parquet_rows` noted in the file

    @property
    def n_rows(self) -> int:
        """Return the rows of all shards, as their footers promise."""
        return sum(self.file_rows)

    def has_columns(self, *columns: str) -> bool:
        """Return True if the table has all of these columns."""
        return set(columns) <= set(self.schema.names)

    def find_column(self, columns: Iterable[str]) -> str | None:
        """Return the first of these columns that exists."""
        return next((name for name in columns if self.has_columns(name)), None)

    def format_columns(self) -> str:
        """Return the names of the columns, for messages."""
        return format_column_names(self.schema.names)

    def iterate_cells(self, name: str) -> Iterator[Any]:
        """Yield the cells of a column."""
        return (cell for batch in self.iterate_batches([name], 1 << 14) for cell in batch.get_column(name))

    def iterate_batches(self, columns: Sequence[str | None], size: int, skip: int = 0) -> Iterator[ParquetBatch]:
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
            expanded, stored = 0, text_files.get_file_size(file)
            batch_size = min(size, max(_MIN_ROWS, stored >> 14))  # fewer of a small file, which may expand
            with explain_arrow_errors(file), _open_parquet(file, names) as parquet:
                groups = list(range(parquet.num_row_groups))
                while groups and (rows := parquet.metadata.row_group(groups[0]).num_rows) <= skip:
                    first, skip, groups = first + rows, skip - rows, groups[1:]
                # one after the other: texts of a dictionary have another one in each
                for data in chain.from_iterable(
                    parquet.iter_batches(batch_size, row_groups=[g], columns=names) for g in groups
                ):
                    first += data.num_rows
                    expanded += sum(map(compute_expanded_bytes, data.columns))
                    text_files.check_expansion(str(file), stored, expanded)
                    n_passed = min(skip, data.num_rows)
                    skip -= n_passed
                    if first - 1 <= promised and n_passed < data.num_rows:
                        yield ParquetBatch(file, first - data.num_rows + n_passed, data.slice(n_passed))
            if first - 1 != promised:
                raise InputError(
                    f"{file} holds {first - 1:,} rows but its footer promises {promised:,}; write or fetch it again"
                )


def list_parquet_files(path: Path) -> list[Path]:
    """Return the Parquet files at `path`: itself, or those of a folder in the order of their names."""
    with text_files.explain_input_errors(path):
        if not path.is_dir():
            return [path]
        return sorted(p for p in path.iterdir() if p.suffix.lower() == ".parquet" and not p.name.startswith("."))


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
            problem = f"{file} has other columns or other notes than {files[0].name} beside it"
            raise InputError(f"{problem}; keep only shards of one table in a folder")
        first = first or schema
    if first is None or sum(file_rows) == 0:
        raise InputError(f"{path} holds no rows; give a Parquet file that has some")
    return ParquetTable(path, files, first, file_rows, read_schema_note(first, files[0]))


@contextmanager
def explain_arrow_errors(file: Path) -> Iterator[None]:
    """Turn Arrow's errors of reading a file into a sentence."""
    import pyarrow as pa

    with text_files.explain_input_errors(file):
        try:
            yield
        except (FileNotFoundError, PermissionError, IsADirectoryError):
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError, OverflowError) as error:
            text = " ".join(str(error).split())[:120] or type(error).__name__
            raise InputError(f"{file} is damaged or not Parquet ({text}); write or fetch it again") from error


@contextmanager
def _open_parquet(file: Path, columns: Sequence[str]) -> Iterator[ArrowObject]:
    """Open a file to read some columns; texts of a dictionary stay numbers of it."""
    from pyarrow.parquet import ParquetFile, read_metadata

    # Column chunks pass through a small buffer: a row group may hold gigabytes of pictures.
    with open_input(file) as stream:
        check_schema_size(file, stream)
        metadata = read_metadata(stream)
        stored, groups = (
            text_files.get_file_size(file),
            (metadata.row_group(group) for group in range(metadata.num_row_groups)),
        )
        text_files.check_row_count(str(file), stored, metadata.num_rows)
        # only totals are looked at: Arrow ends the process over the damaged notes of a single column
        text_files.check_expansion(str(file), stored, sum(group.total_byte_size for group in groups))
        if columns:
            check_pages(file, stream, columns)
        texts = list_dictionary_text_columns(metadata, columns)
        with ParquetFile(
            stream, metadata=metadata, read_dictionary=texts, buffer_size=1 << 20, pre_buffer=False
        ) as parquet:
            yield parquet


def read_schema_note(schema: ArrowObject, file: Path) -> JsonObject:
    """Return the note of `write_parquet_rows` in a file; empty for other files."""
    content = (schema.metadata or {}).get(KEY)
    if content is None:
        return {}
    with suppress(ValueError, RecursionError):
        if _is_sound(note := json.loads(content)):
            return dict(note)
    raise InputError(f"{file} has damaged notes under the key {KEY.decode()!r}; write the file again")


def _is_sound(note: object) -> bool:
    return (
        isinstance(note, dict)
        and note.get("schema") == 1
        and isinstance(note.get("counts"), bool)
        and type(note.get("n_features")) is int
        and 0 <= note["n_features"] < 2**31
        and _are_names(note.get("label_names"))
        and isinstance(note.get("extractor_fingerprint"), str | None)
        and type(note.get("augment", 0)) is int
        and note.get("augment", 0) >= 0
        and isinstance(note.get("near_equality"), float | None)
        and ((names := note.get("feature_names")) is None or (_are_names(names) and len(names) == note["n_features"]))
    )


def _are_names(names: object) -> bool:
    return isinstance(names, list) and all(isinstance(n, str) for n in names) and len(set(names)) == len(names)


def read_class_names(schema: ArrowObject, column: str) -> list[str] | None:
    """Return the names of a ClassLabel column as Hugging Face's datasets note them; None without."""
    with suppress(ValueError, RecursionError, KeyError, TypeError, AttributeError, IndexError):
        noted = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        feature = noted["info"]["features"][column]
        feature = feature[0] if isinstance(feature, list) else feature.get("feature", feature)
        return feature["names"] if _are_names(feature["names"]) else None
    return None


def open_label_column(table: ParquetTable, label_column: str | None) -> LabelCellReader:
    """Return the reader of labels: one column, the first with a usual name, or columns of 0 and 1.

    Raises
    ------
    InputError
        There is none.
    """
    reader = find_label_columns(table, label_column)
    if reader is None:
        names = " or ".join(map(repr, (label_column,) if label_column else LABEL_COLUMNS))
        kind = InputError if label_column else MissingLabelsError
        raise kind(f"{table.path} has no column {names} (it has {table.format_columns()}); put the labels in one")
    return reader


def find_label_columns(
    table: ParquetTable, label_column: str | None, choices: Sequence[str] = LABEL_COLUMNS
) -> LabelCellReader | None:
    """Return the reader of the labels, one for all shards, by all cells; None without one."""
    from pyarrow import types

    name = table.find_column((label_column,) if label_column else choices)
    if name is not None:
        kind, reader = table.schema.field(name).type, LabelCellReader(name, read_class_names(table.schema, name))
        is_scalar = types.is_integer(kind) or types.is_floating(kind)  # nothing in them is to be inspected
        return reader.inspect(() if is_scalar else table.iterate_cells(name)).check(table.path)
    fields = [(field.name, field.type) for field in table.schema if label_column is None]
    is_number = (types.is_integer, types.is_boolean, types.is_floating)
    names = [name for name, kind in fields if any(is_type(kind) for is_type in is_number)]
    batches = table.iterate_batches(names, 1 << 12) if len(names) > 1 else ()
    cell_rows = (cells for batch in batches for cells in zip(*map(batch.get_column, names), strict=True))
    return find_flag_columns(dict(zip(names, cells, strict=True)) for cells in cell_rows)


def is_text_type(kind: ArrowObject) -> bool:
    """Return True if an Arrow type is one of texts, whatever their encoding."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return any(is_type(kind) for is_type in (types.is_string, types.is_large_string, types.is_string_view))
