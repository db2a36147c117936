"""What sources yield: rows of features with their labels, or pictures, sounds or documents with their labels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from wsabie.base import mapped
from wsabie.base.arrays import Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.sparse import csr_arrays, dense_array, to_csr
from wsabie.sources.regions import Content, Cutout

_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Rows:
    """A collection as arrays.

    Attributes
    ----------
    X : csr_matrix or ndarray, (n, d), float32
        Features.
    Y : csr_matrix, (n, n_labels), int8
        1 for a label of the row, -1 for an explicit negative; sorted indices, no duplicates.
    label_names : list of str, length n_labels
    ids : list of str, length n, unique
    groups : list of str or None
        Rows of one group never sit on both sides of a split.
    times : list of str or None
        ISO 8601 dates, for a split by time.
    counts : bool
        The features are declared counts: never negative.
    feature_names : list of str, length d, or None
        What the columns mean, where the source knows (words, attributes): train and test share columns by name.
    dictionary : str or None
        Fingerprint of the dictionary whose terms the columns are: rows of two dictionaries do not mix.
    augment : int
        Further views of each picture that are rows too: those of the picture "a" are "a#1", "a#2" ... "a#augment".
    open_width : bool
        Nothing says how many features there are: X is as wide as the highest number of one.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> X, Y = csr_matrix(np.eye(2, dtype=np.float32)), csr_matrix(np.eye(2, dtype=np.int8))
    >>> Rows(X, Y, ["sea", "sky"], ["a", "b"]).take(np.array([1])).ids
    ['b']
    """

    X: Matrix
    Y: Matrix
    label_names: list[str]
    ids: list[str]
    groups: list[str] | None = None
    times: list[str] | None = None
    counts: bool = False
    feature_names: list[str] | None = None
    dictionary: str | None = None
    augment: int = 0
    open_width: bool = False

    def __post_init__(self) -> None:
        for name in ("X", "Y"):
            if hasattr(matrix := getattr(self, name), "tocsr"):
                arrays = csr_arrays(matrix, name)  # refuses indices that point outside
                if getattr(matrix, "format", "") != "csr" or matrix.dtype != arrays.data.dtype:
                    object.__setattr__(self, name, to_csr(matrix, name))
            else:
                object.__setattr__(self, name, to_csr(matrix, name) if name == "Y" else dense_array(matrix, name))
        for name in ("label_names", "ids"):
            if not hasattr(names := getattr(self, name), "__len__"):
                raise InputError(f"{name} is {type(names).__name__}; give a list of texts")
        n_rows, sizes = len(self.ids), (*self.X.shape[:1], *self.Y.shape)
        if sizes != (n_rows, n_rows, len(self.label_names)):
            raise InputError(
                f"rows have {n_rows:,} ids and {len(self.label_names):,} label names, but X has {sizes[0]:,} rows and "
                f"Y {sizes[1]:,} rows of {sizes[2]:,} labels; give one of each"
            )

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, index: Sequence[int] | Int64) -> "Rows":
        """The rows at `index`, with the same labels and features."""

        def pick(values: list[str] | None) -> list[str] | None:
            return None if values is None else [values[i] for i in index]

        X, ids = _rows(self.X, np.asarray(index)), [self.ids[i] for i in index]
        return replace(self, X=X, Y=self.Y[index], ids=ids, groups=pick(self.groups), times=pick(self.times))

    def with_labels(self, keep: Sequence[int] | Int64) -> "Rows":
        """The same rows with only the labels of these numbers."""
        return replace(self, Y=self.Y.tocsr()[:, keep], label_names=[self.label_names[y] for y in keep])


def _rows(X: Matrix, index: Int64) -> Matrix:
    """As `X[index]`, a part after the other."""
    if not hasattr(X, "tocsr") or X.nnz * X.dtype.itemsize < mapped.LARGE:
        return X[index]
    counts = np.diff(X.indptr)[index]
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    data, indices = mapped.empty(indptr[-1], X.data.dtype), mapped.empty(indptr[-1], X.indices.dtype)
    for part in mapped.parts(len(index), _ROWS_AT_ONCE):
        some = X[index[part]]
        filled = slice(indptr[part.start], indptr[part.stop])
        data[filled], indices[filled] = some.data, some.indices
    return type(X)((data, indices, indptr), (len(index), X.shape[1]), copy=False)


def label_counts(rows: Rows) -> Int64:
    """Rows of which each label is true, (n_labels,)."""
    Y = rows.Y.tocsr()
    return np.bincount(Y.indices[Y.data > 0], minlength=Y.shape[1])


def groups_of(rows: Rows, index: Sequence[int] | Int64) -> list[str] | None:
    """The groups of some rows, a row without one being its own; None where the rows have no groups."""
    if rows.groups is None:
        return None
    return [rows.groups[i] or f"row {rows.ids[i]}" for i in index]


Things: TypeAlias = Literal["pictures", "sounds", "documents"]
"""What a collection is of."""


class Item(NamedTuple):
    """One picture, sound or document of a collection, not yet decoded."""

    id: str
    content: Content  # a file, or the encoded bytes; of documents UTF-8
    labels: tuple[str, ...]
    group: str | None = None
    time: str | None = None

    @property
    def whole(self) -> Path | bytes:
        """The file or the bytes, of which the item may show a region."""
        return self.content.picture if isinstance(self.content, Cutout) else self.content

    @property
    def region_told(self) -> list[object]:
        """Nothing, or what region it shows, JSON-able."""
        return self.content.region.told() if isinstance(self.content, Cutout) else []


class ItemSource(Protocol):
    """A collection of pictures, sounds or documents that can be read again and again, one at a time."""

    @property
    def path(self) -> Path: ...

    @property
    def things(self) -> Things: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Item]: ...


@dataclass(frozen=True)
class ItemList:
    """A source whose entries are known beforehand (paths, not what they hold, are kept).

    Attributes
    ----------
    kind : str or None
        Of marked pictures: what an item is ("regions", "boxes", "pictures").
    whole : str or None
        Of marked pictures: the label of the whole pictures, where these are items too (`with_pictures`).
    """

    path: Path
    items: list[Item] = field(repr=False)
    things: Things = "pictures"
    kind: str | None = None
    whole: str | None = None

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)


def without_labels(source: Rows | ItemList) -> Rows | ItemList:
    """The same items as what is to be annotated."""
    if isinstance(source, Rows):
        return source
    return replace(source, items=[item._replace(labels=()) for item in source])


@dataclass(frozen=True)
class ItemPart:
    """Some of the items of a source, by their numbers."""

    source: ItemSource
    index: Sequence[int] | Int64

    @property
    def path(self) -> Path:
        return self.source.path

    @property
    def things(self) -> Things:
        return self.source.things

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[Item]:
        kept = set(map(int, self.index))
        return (item for number, item in enumerate(self.source) if number in kept)


Source: TypeAlias = Rows | ItemSource
