"""A short name for the content of a collection, the same wherever and however it is stored."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.arrays import Matrix
from wsabie.base.errors import InputError
from wsabie.sources.records import PictureSource, Rows
from wsabie.sources.text import reading

_LOOKED_AT = 1 << 16


def fingerprint(source: Rows | PictureSource) -> str:
    """16 hex digits of a SHA-256 over the content, for reports.

    Rows: shapes, features, labels, names, ids, groups, times. Pictures: ids, labels, groups, times and the
    first 64 KiB of each. Paths, sizes and dates of files do not count.

    Examples
    --------
    >>> from wsabie.sources.records import Picture, PictureList
    >>> a = PictureList(Path("here"), [Picture("1", b"pixels", ("cat",))])
    >>> b = PictureList(Path("there"), [Picture("1", b"pixels", ("cat",))])
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
            _add_words(digest, [picture.id, picture.labels, picture.group, picture.time])
            digest.update(hashlib.sha256(_beginning(picture.content)).digest())
    return digest.hexdigest()[:16]


def fingerprint_or_none(source: Rows | PictureSource) -> str | None:
    """The fingerprint; None where a picture cannot be read, which is for its description to tell."""
    try:
        return fingerprint(source)
    except InputError:
        return None


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
    with reading(content), content.open("rb") as stream:
        return stream.read(_LOOKED_AT)
