"""Small files that ask for gigabytes."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = "0 1:1\n1 2:1\n" * 20


def write_hostile(folder: Path) -> dict[str, Path]:
    """Write one file of each kind, and return them by the limit that refuses it (or "ok", "rejected")."""
    files = {}
    for name, write in _KINDS.items():
        file = folder / name.partition(" ")[2]
        write(file)
        files[name.partition(" ")[0] + " " + file.name] = file
    return files


def _arff(file: Path) -> None:
    names = "".join(f"@attribute a{i} numeric\n" for i in range(20_000))
    dense = ",".join("1" * 20_000)
    file.write_text(f"@relation x\n{names}@attribute l {{0,1}}\n@data\n{dense},1\n" + "{}\n" * 50_000)
    file.with_suffix(".xml").write_text('<labels><label name="l"/></labels>')


def _nominal(file: Path) -> None:
    values = ",".join(map(str, range(20_000)))
    file.write_text(f"@relation x\n@attribute {'a' * 100_000} {{{values}}}\n@attribute l {{0,1}}\n@data\n0,1\n")
    file.with_suffix(".xml").write_text('<labels><label name="l"/></labels>')


def _lists(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1, dtype=np.int32)), values)


def _table(
    file: Path, n: int, label: str = "x", ident: str | None = None, note: object = None, groups: int = 1
) -> None:
    """Write rows that are all the same, as a dictionary stores them."""
    texts = {label, ident or ""}
    of = {text: pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), pa.array([text])) for text in texts}
    columns = {
        "labels": _lists(of[label]),
        "indices": _lists(pa.array(np.ones(n, np.uint32))),
        "values": _lists(pa.array(np.ones(n, np.float32))),
    }
    if ident is not None:
        columns["id"] = of[ident]
    table = pa.table(columns)
    if note:
        table = table.replace_schema_metadata({b"wsabie": json.dumps(note).encode()})
    with pq.ParquetWriter(file, table.schema, compression="zstd", dictionary_pagesize_limit=1 << 26) as writer:
        for _ in range(groups):
            writer.write_table(table)


def _dense(file: Path) -> None:
    wide, n = pa.array(np.zeros(1_000_000, np.float32)), 2_000
    starts = pa.array(np.r_[0, np.full(n, len(wide))].astype(np.int32))
    labels = _lists(pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), pa.array(["x"])))
    pq.write_table(pa.table({"labels": labels, "features": pa.ListArray.from_arrays(starts, wide)}), file)


def _varint(n: int) -> bytes:
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + _varint(n >> 7)


def _one_row(file: Path) -> None:
    """Write a row of 200 million zeros, which its page claims and the footer does not."""
    pq.write_table(
        pa.table({"labels": pa.array([["x"]]), "features": pa.array([[0.0] * 9], pa.list_(pa.float32()))}), file
    )
    content, n = file.read_bytes(), 200_000_000
    note = pq.read_metadata(file).row_group(0).column(1)
    more = _varint((n - 1) << 1) + b"\1"  # levels of all values but the first
    repetitions, definitions = b"\2\0" + more, _varint(n << 1) + b"\3"
    levels = b"".join(
        len(level_bytes).to_bytes(4, "little") + level_bytes for level_bytes in (repetitions, definitions)
    )
    page = levels + b"\1" + _varint(n << 1) + b"\0"
    size = _varint(2 * len(page))
    header = b"\x15\0\x15" + size + b"\x15" + size + b"\x2c\x15" + _varint(2 * n) + b"\x15\x10\x15\6\x15\6\0\0"
    begin, end = note.data_page_offset, note.dictionary_page_offset + note.total_compressed_size
    file.write_bytes(content[:begin] + (header + page).ljust(end - begin, b"\0") + content[end:])


def _columns(file: Path) -> None:
    pq.write_table(pa.table({str(number): pa.array([], pa.int8()) for number in range(100_001)}), file)


def _zipped(content: bytes) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(gzip.compress(content, 6))


_NAMES = ",".join(f"c{number:06}" for number in range(100_000))


def _many_values(file: Path) -> None:
    values = ",".join(str(i) for i in range(200_000))
    file.write_text(f"@relation x\n@attribute a {{{values}}}\n@attribute l {{0,1}}\n@data\n1,1\n")
    file.with_suffix(".xml").write_text('<labels><label name="l"/></labels>')


_NOTE = {"schema": 1, "n_features": 2_000_000_000, "counts": False, "label_names": ["x"]}
_KINDS: dict[str, Callable[[Path], object]] = {
    "empty_labels header.txt": lambda file: file.write_text("2 2000000000 2000000000\n1 1:1\n0 0:1\n"),
    "empty_columns wide_header.txt": lambda file: file.write_text("40 2000000000 2\n" + ROWS),
    "empty_columns wide.txt": lambda file: file.write_text(ROWS + "1 2000000000:1\n"),
    "empty_rows lines.txt.gz": _zipped(b"99999999 2 2\n" + b"\n" * 60_000_000),
    "ratio line.txt.gz": _zipped(b"1 " + b"1:1 " * 12_000_000),
    "ratio word.txt.gz": _zipped(b"__label__a " + b"w" * 50_000_000),
    "empty_columns mixed.arff": _arff,
    "table_columns values.arff": _many_values,
    "ratio nominal.arff": _nominal,
    "empty_rows rows.parquet": lambda file: _table(file, 400_000, groups=3),
    "ratio one.parquet": _one_row,
    "table_columns wide.csv": lambda file: file.write_text(
        "text," + ",".join(f"c{i:06}" for i in range(100_000)) + "\na"
    ),
    "table_columns wide.parquet": _columns,
    "ratio labels.parquet": lambda file: _table(file, 5_000, label="x" * 1_000_000),
    "ratio ids.parquet": lambda file: _table(file, 5_000, ident="x" * 1_000_000),
    "ratio page.parquet": lambda file: _table(file, 2, label="x" * 60_000_000),
    "empty_columns note.parquet": lambda file: _table(file, 40, note=_NOTE),
    "ok dense.parquet": _dense,
}
