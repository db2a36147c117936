"""A short name for the content of a collection, and marks by which its rows are known again in another one."""

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.arrays import Int64, Matrix, UInt64
from wsabie.base.errors import InputError
from wsabie.base.input_files import open_input
from wsabie.sources.records import ItemSource, Rows
from wsabie.sources.sharded import ShardedRows, together
from wsabie.sources.text import reading

MARKED = 4096
"""Rows of a collection that are marked; 32 KiB in a model's folder."""
_LOOKED_AT = 1 << 16
_32 = np.uint64(32)


def fingerprint(source: Rows | ItemSource) -> str:
    """16 hex digits of a SHA-256 over the content, for reports.

    Rows: shapes, features, labels, names, ids, groups, times. Pictures: ids, labels, groups, times and the
    first 64 KiB of each. Paths, sizes and dates of files do not count.

    Examples
    --------
    >>> from wsabie.sources.records import Item, ItemList
    >>> a = ItemList(Path("here"), [Item("1", b"pixels", ("cat",))])
    >>> b = ItemList(Path("there"), [Item("1", b"pixels", ("cat",))])
    >>> fingerprint(a) == fingerprint(b), len(fingerprint(a))
    (True, 16)
    """
    digest = hashlib.sha256()
    if isinstance(source, Rows):
        _add_matrix(digest, source.X)
        _add_matrix(digest, source.Y)
        _add_words(
            digest,
            [
                source.label_names,
                source.ids,
                source.groups,
                source.times,
                source.counts,
                source.feature_names,
            ],
        )
    else:
        for picture in source:
            _add_words(digest, [picture.id, picture.labels, picture.group, picture.time, *picture.region_told])
            digest.update(hashlib.sha256(_beginning(picture.whole)).digest())
    return digest.hexdigest()[:16]


def fingerprint_or_none(source: Rows | ItemSource) -> str | None:
    """The fingerprint; None where a picture cannot be read, which is for its description to tell."""
    try:
        return fingerprint(source)
    except InputError:
        return None


def marks_of(rows: Rows) -> UInt64:
    """Marks of a collection's rows, ascending: 32 bits of the id before 32 bits of the features.

    Of more than `MARKED` rows those are marked whose ids have the smallest numbers, a sample that any other collection
    can be asked for.

    Examples
    --------
    >>> from scipy.sparse import identity
    >>> X, Y = identity(3, np.float32, "csr"), identity(3, np.int8, "csr")
    >>> marks = marks_of(Rows(X, Y, ["a", "b", "c"], ["1", "2", "3"]))
    >>> known_again(Rows(X[[0, 0]], Y[:2], ["a", "b", "c"], ["1", "2"]), marks)
    (1, 2)
    """
    numbers = _numbers_of_ids(rows)
    return np.sort(_marks(rows, numbers, np.argsort(numbers, kind="stable")[:MARKED]))


def marks_of_shards(rows: ShardedRows) -> UInt64:
    """The same of rows in shards: of those that are not marked nothing is read but their ids."""
    least, places = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    for span in rows.spans(_LOOKED_AT):
        found, at = rows.ids(span)
        numbers = np.concatenate([least, _numbers(found)])
        smallest = np.argsort(numbers, kind="stable")[:MARKED]
        least, places = numbers[smallest], np.concatenate([places, at])[smallest]
    marked = together([rows.at(int(place)) for place in places])
    return np.sort(_marks(marked, least, np.arange(len(marked))))


def known_again(rows: Rows, marks: UInt64) -> tuple[int, int]:
    """How many rows have the id and the features of a marked one, and of how many that can be said."""
    numbers = _numbers_of_ids(rows)
    complete = len(marks) < MARKED
    looked_at = np.arange(len(rows)) if complete else np.flatnonzero(numbers <= marks[-1] >> _32)
    return int(np.isin(_marks(rows, numbers, looked_at), marks).sum()), len(looked_at)


def _numbers_of_ids(rows: Rows) -> UInt64:
    return _numbers(rows.ids)


def _numbers(ids: list[str]) -> UInt64:
    return np.fromiter((zlib.crc32(name.encode("utf-8", "surrogatepass")) for name in ids), np.uint64, len(ids))


def _marks(rows: Rows, numbers: UInt64, index: Int64) -> UInt64:
    features = np.fromiter((zlib.crc32(_row_bytes(rows.X, i)) for i in index.tolist()), np.uint64, len(index))
    return numbers[index] << _32 | features


def _row_bytes(X: Matrix, i: int) -> bytes:
    """Columns and values of a row, of the same types on every machine."""
    if isinstance(X, np.ndarray):
        return np.asarray(X[i], "<f4").tobytes()
    at = slice(X.indptr[i], X.indptr[i + 1])
    order = np.argsort(X.indices[at])
    return bytes(X.indices[at][order].astype("<i4").tobytes() + X.data[at][order].astype("<f4").tobytes())


def _add_matrix(digest: Any, M: Matrix) -> None:
    """Shape and entries; sparse ones sorted, little-endian, of the same types on every machine."""
    dense = isinstance(M, np.ndarray)
    _add_words(digest, ["dense" if dense else "sparse", *(int(n) for n in M.shape)])
    if dense:
        parts = [(M, "<f4")]
    else:
        M = M if M.has_sorted_indices else M.sorted_indices()
        parts = [(M.indptr, "<i8"), (M.indices, "<i4"), (M.data, "<f4")]
    for array, dtype in parts:
        digest.update(np.ascontiguousarray(array, dtype).data)


def _add_words(digest: Any, words: Any) -> None:
    digest.update(json.dumps(words).encode() + b"\n")


def _beginning(content: Path | bytes) -> bytes:
    if isinstance(content, bytes):
        return content[:_LOOKED_AT]
    with reading(content), open_input(content) as stream:
        return stream.read(_LOOKED_AT)
