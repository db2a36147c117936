"""Fingerprint of a source's content, and hashes that identify its rows in another source."""

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.core.arrays import Int64, Matrix, UInt64
from wsabie.core.errors import InputError
from wsabie.core.input_files import open_input
from wsabie.io.parsers.text_files import explain_input_errors
from wsabie.io.records import FeatureTable, ItemSource
from wsabie.io.shards.sharded_table import ShardedFeatureTable, concatenate_tables

MAX_ROW_HASHES = 4096
"""Most row hashes of a source; 32 KiB in a model's folder."""
_BLOCK = 1 << 16
_ID_SHIFT = np.uint64(32)


def compute_fingerprint(source: FeatureTable | ItemSource) -> str:
    """Return 16 hex digits of a SHA-256 over the content, for reports.

    Rows: shapes, features, labels, names, ids, groups, times. Pictures: ids, labels, groups, times and the
    first 64 KiB of each. Paths, sizes and dates of files do not count.

    Examples
    --------
    >>> from wsabie import Item, ItemList
    >>> a = ItemList(Path("here"), [Item("1", b"pixels", ("cat",))])
    >>> b = ItemList(Path("there"), [Item("1", b"pixels", ("cat",))])
    >>> compute_fingerprint(a) == compute_fingerprint(b), len(compute_fingerprint(a))
    (True, 16)
    """
    digest = hashlib.sha256()
    if isinstance(source, FeatureTable):
        _add_matrix(digest, source.X)
        _add_matrix(digest, source.Y)
        words = ("label_names", "ids", "groups", "times", "counts", "feature_names")
        _add_words(digest, [getattr(source, name) for name in words])
    else:
        for picture in source:
            _add_words(digest, [picture.id, picture.labels, picture.group, picture.time, *picture.region_facts])
            digest.update(hashlib.sha256(_read_beginning(picture.full_content)).digest())
    return digest.hexdigest()[:16]


def compute_fingerprint_or_none(source: FeatureTable | ItemSource) -> str | None:
    """Return the fingerprint; None where a picture cannot be read, which extraction will report."""
    try:
        return compute_fingerprint(source)
    except InputError:
        return None


def compute_row_hashes(rows: FeatureTable) -> UInt64:
    """Return hashes of rows, ascending: 32 bits of the id before 32 bits of the features.

    If there are more than `MAX_ROW_HASHES` rows, those with the smallest id numbers are taken, a sample that any other
    rows can be compared with.

    Examples
    --------
    >>> from scipy.sparse import identity
    >>> X, Y = identity(3, np.float32, "csr"), identity(3, np.int8, "csr")
    >>> row_hashes = compute_row_hashes(FeatureTable(X, Y, ["a", "b", "c"], ["1", "2", "3"]))
    >>> count_known_rows(FeatureTable(X[[0, 0]], Y[:2], ["a", "b", "c"], ["1", "2"]), row_hashes)
    (1, 2)
    """
    numbers = _hash_ids(rows.ids)
    return np.sort(_hash_rows(rows, numbers, np.argsort(numbers, kind="stable")[:MAX_ROW_HASHES]))


def compute_shard_row_hashes(rows: ShardedFeatureTable) -> UInt64:
    """Return the hashes of rows in shards; of the other rows only the ids are read."""
    least, row_numbers = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    for span in rows.list_spans(_BLOCK):
        ids, span_rows = rows.read_ids(span)
        numbers = np.concatenate([least, _hash_ids(ids)])
        smallest = np.argsort(numbers, kind="stable")[:MAX_ROW_HASHES]
        least, row_numbers = numbers[smallest], np.concatenate([row_numbers, span_rows])[smallest]
    marked = concatenate_tables([rows.read_row(row) for row in row_numbers.tolist()])
    return np.sort(_hash_rows(marked, least, np.arange(len(marked))))


def count_known_rows(rows: FeatureTable, row_hashes: UInt64) -> tuple[int, int]:
    """Return how many rows match the id and features of a hash, and how many were comparable."""
    numbers = _hash_ids(rows.ids)
    complete = len(row_hashes) < MAX_ROW_HASHES
    comparable = np.arange(len(rows)) if complete else np.flatnonzero(numbers <= row_hashes[-1] >> _ID_SHIFT)
    return int(np.isin(_hash_rows(rows, numbers, comparable), row_hashes).sum()), len(comparable)


def _hash_ids(ids: list[str]) -> UInt64:
    return np.fromiter((zlib.crc32(name.encode("utf-8", "surrogatepass")) for name in ids), np.uint64, len(ids))


def _hash_rows(rows: FeatureTable, numbers: UInt64, index: Int64) -> UInt64:
    features = np.fromiter((zlib.crc32(_row_bytes(rows.X, i)) for i in index.tolist()), np.uint64, len(index))
    return numbers[index] << _ID_SHIFT | features


def _row_bytes(X: Matrix, i: int) -> bytes:
    """Return columns and values of a row, of the same types on every machine."""
    if isinstance(X, np.ndarray):
        return np.asarray(X[i], "<f4").tobytes()
    entries = slice(X.indptr[i], X.indptr[i + 1])
    order = np.argsort(X.indices[entries])
    return bytes(X.indices[entries][order].astype("<i4").tobytes() + X.data[entries][order].astype("<f4").tobytes())


def _add_matrix(digest: Any, M: Matrix) -> None:
    """Add shape and entries; sparse ones sorted, little-endian, of the same types on every machine."""
    dense = isinstance(M, np.ndarray)
    _add_words(digest, ["dense" if dense else "sparse", *(int(n) for n in M.shape)])
    if dense:
        parts = [(M, "<f4")]
    else:
        M = M if M.has_sorted_indices else M.sorted_indices()
        parts = [(M.indptr, "<i8"), (M.indices, "<i4"), (M.data, "<f4")]
    for array, dtype in parts:
        digest.update(np.ascontiguousarray(array, dtype).data)


def _add_words(digest: Any, words: object) -> None:
    digest.update(json.dumps(words).encode() + b"\n")


def _read_beginning(content: Path | bytes) -> bytes:
    if isinstance(content, bytes):
        return content[:_BLOCK]
    with explain_input_errors(content), open_input(content) as stream:
        return stream.read(_BLOCK)
