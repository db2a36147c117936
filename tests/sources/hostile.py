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


def _zipped(content: bytes) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(gzip.compress(content, 6))


_NOTE = {"schema": 1, "n_features": 2_000_000_000, "counts": False, "label_names": ["x"]}
_KINDS: dict[str, Callable[[Path], object]] = {
    "empty_labels header.txt": lambda file: file.write_text("2 2000000000 2000000000\n1 1:1\n0 0:1\n"),
    "empty_columns wide_header.txt": lambda file: file.write_text("40 2000000000 2\n" + ROWS),
    "empty_columns wide.txt": lambda file: file.write_text(ROWS + "1 2000000000:1\n"),
    "empty_rows lines.txt.gz": _zipped(b"99999999 2 2\n" + b"\n" * 60_000_000),
    "ratio line.txt.gz": _zipped(b"1 " + b"1:1 " * 12_000_000),
    "ratio word.txt.gz": _zipped(b"__label__a " + b"w" * 50_000_000),
    "empty_columns mixed.arff": _arff,
    "ratio nominal.arff": _nominal,
    "empty_rows rows.parquet": lambda file: _table(file, 400_000, groups=3),
    "ratio labels.parquet": lambda file: _table(file, 5_000, label="x" * 1_000_000),
    "ratio ids.parquet": lambda file: _table(file, 5_000, ident="x" * 1_000_000),
    "ratio page.parquet": lambda file: _table(file, 2, label="x" * 60_000_000),
    "empty_columns note.parquet": lambda file: _table(file, 40, note=_NOTE),
    "ok dense.parquet": _dense,
}
