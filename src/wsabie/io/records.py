"""Records that sources yield: tables of features, or pictures, sounds and documents, with labels."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from wsabie.core import arrays
from wsabie.core.arrays import Int64, Matrix, allocate_array, iterate_slices
from wsabie.core.errors import InputError
from wsabie.core.label_lists import count_label_rows
from wsabie.core.validation import convert_to_csr, dense_array, extract_csr_arrays
from wsabie.io.parsers.array_builders import require_rows
from wsabie.io.regions import ItemContent, RegionCrop
from wsabie.storage.rejects import Rejects

_ROWS_AT_ONCE = 1 << 14
ModalityName: TypeAlias = Literal["pictures", "sounds", "documents"]
"""Modality of the items of a source."""


@dataclass(frozen=True)
class FeatureTable:
    """Rows of features with their labels, as arrays.

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
        Names of the columns (words, attributes), if the source has them: train and test share columns by name.
    extractor_fingerprint : str or None
        Fingerprint of the extractor whose features the columns are: rows of two extractors do not mix.
    augment : int
        Number of further views of each picture that are rows too: "a#1", "a#2" ... "a#augment" for the picture "a".
    near_equality : float or None
        Lowest cosine of rows of near-copies of a picture; None: cosines of these rows say nothing about copies.
    open_width : bool
        Nothing says how many features there are: X is as wide as the highest number of one.

    Raises
    ------
    InputError
        Sizes do not agree, or indices point outside a matrix.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> X, Y = csr_matrix(np.eye(2, dtype=np.float32)), csr_matrix(np.eye(2, dtype=np.int8))
    >>> FeatureTable(X, Y, ["sea", "sky"], ["a", "b"]).take(np.array([1])).ids
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
    extractor_fingerprint: str | None = None
    augment: int = 0
    near_equality: float | None = None
    open_width: bool = False

    def __post_init__(self) -> None:
        for name in ("X", "Y"):
            if hasattr(matrix := getattr(self, name), "tocsr"):
                arrays = extract_csr_arrays(matrix, name)  # refuses indices that point outside
                if getattr(matrix, "format", "") != "csr" or matrix.dtype != arrays.data.dtype:
                    object.__setattr__(self, name, convert_to_csr(matrix, name))
            else:
                array = convert_to_csr(matrix, name) if name == "Y" else dense_array(matrix, name)
                if name == "Y" or not isinstance(matrix, np.ndarray):  # a mapped array stays one
                    object.__setattr__(self, name, array)
        self._check_sizes()

    def _check_sizes(self) -> None:
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

    def take(self, index: Sequence[int] | Int64) -> "FeatureTable":
        """Return the rows at `index`, with the same labels and features.

        Parameters
        ----------
        index : sequence of int, or (n,) int64
            Row numbers, in any order.

        Returns
        -------
        FeatureTable
        """

        def pick(values: list[str] | None) -> list[str] | None:
            return None if values is None else [values[i] for i in index]

        X, ids = _take_rows(self.X, np.asarray(index)), [self.ids[i] for i in index]
        return replace(self, X=X, Y=self.Y[index], ids=ids, groups=pick(self.groups), times=pick(self.times))

    def with_labels(self, keep: Sequence[int] | Int64) -> "FeatureTable":
        """Return the same rows with only the labels of these numbers.

        Parameters
        ----------
        keep : sequence of int, or (n,) int64
            Label numbers, in their new order.

        Returns
        -------
        FeatureTable
        """
        return replace(self, Y=self.Y.tocsr()[:, keep], label_names=[self.label_names[y] for y in keep])


def _take_rows(X: Matrix, index: Int64) -> Matrix:
    """Return `X[index]`, computed part by part."""
    if not hasattr(X, "tocsr") or X.nnz * X.dtype.itemsize < arrays.MIN_MAPPED_BYTES:
        return X[index]
    counts = np.diff(X.indptr)[index]
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    data, indices = (allocate_array(indptr[-1], part.dtype) for part in (X.data, X.indices))
    for part in iterate_slices(len(index), _ROWS_AT_ONCE):
        rows = X[index[part]]
        span = slice(indptr[part.start], indptr[part.stop])
        data[span], indices[span] = rows.data, rows.indices
    return type(X)((data, indices, indptr), (len(index), X.shape[1]), copy=False)


def count_labels(rows: FeatureTable) -> Int64:
    """Count the rows of which each label is true, (n_labels,)."""
    return count_label_rows(rows.Y.tocsr())


def get_groups(rows: FeatureTable, index: Sequence[int] | Int64) -> list[str] | None:
    """Return the groups of some rows; a row without one is its own; None where there are no groups."""
    if rows.groups is None:
        return None
    return [rows.groups[i] or f"row {rows.ids[i]}" for i in index]


class ReadOptions(NamedTuple):
    """Options that readers of tables share.

    Attributes
    ----------
    rejects : Rejects
        Lists what cannot be used.
    labels_from : str
        "none": without labels; anything else takes the column of labels.
    label_column : str or None
        A column of labels with another name than usual.
    split : str or None
        Keep only rows with this `split`.
    """

    rejects: Rejects
    labels_from: str = "auto"
    label_column: str | None = None
    split: str | None = None

    @property
    def has_labels(self) -> bool:
        """Return True if labels are read."""
        return self.labels_from != "none"


class Item(NamedTuple):
    """Picture, sound or document of a source, not yet decoded.

    Attributes
    ----------
    id : str
    content : Path, bytes or RegionCrop
        A file, its encoded bytes (UTF-8 for documents), or a region of either.
    labels : tuple of str
        Names.
    group : str or None
        Items of one group never sit on both sides of a split.
    time : str or None
        ISO 8601 date, for a split by time.
    """

    id: str
    content: ItemContent
    labels: tuple[str, ...]
    group: str | None = None
    time: str | None = None

    @property
    def full_content(self) -> Path | bytes:
        """Return the file or the bytes, of which the item may show a region."""
        return self.content.picture if isinstance(self.content, RegionCrop) else self.content

    @property
    def region_facts(self) -> list[object]:
        """Return the shown region, JSON-able; empty for a whole item."""
        return self.content.region.to_list() if isinstance(self.content, RegionCrop) else []


class ItemSource(Protocol):
    """Source of pictures, sounds or documents that can be read repeatedly, one item at a time."""

    @property
    def path(self) -> Path: ...

    @property
    def modality(self) -> ModalityName: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Item]: ...


@dataclass(frozen=True)
class ItemList:
    """Source with a fixed list of items; it keeps paths, not their content.

    Attributes
    ----------
    path : Path
        File or folder that the items come from, for messages.
    items : list of Item
    modality : {"pictures", "sounds", "documents"}
    kind : str or None
        Unit of an item of annotated pictures ("regions", "boxes", "pictures").
    full_image_label : str or None
        Label of whole pictures, where these are items beside their regions (`add_full_images`).
    """

    path: Path
    items: list[Item] = field(repr=False)
    modality: ModalityName = "pictures"
    kind: str | None = None
    full_image_label: str | None = None

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)


ItemReader: TypeAlias = Callable[[Rejects], Iterator[tuple[str, Item]]]
"""Yields (where, item), the same on every call, and lists what is wrong with others."""


@dataclass(frozen=True)
class ItemStream:
    """Source of items that is read again on every pass; built by `scan_items`.

    Attributes
    ----------
    path : Path
    read_items : callable
        See `ItemReader`.
    n : int
        Items.
    repeated : frozenset of int
        Items, by their numbers, whose ids came before: they are left out.
    label_counts : Counter of str
        Items of each label.
    """

    path: Path
    read_items: ItemReader = field(repr=False)
    n: int
    repeated: frozenset[int] = field(repr=False)
    label_counts: Counter[str] = field(default_factory=Counter, repr=False)
    modality: ModalityName = "documents"

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[Item]:
        items = enumerate(self.read_items(Rejects(most=0)))
        return (item for number, (_, item) in items if number not in self.repeated)


def scan_items(
    path: Path, read_items: ItemReader, rejects: Rejects, modality: ModalityName = "documents", unit: str = "documents"
) -> ItemStream:
    """Read items once, to count them and list unusable ones; 8 bytes an item are held meanwhile.

    Raises
    ------
    InputError
        None is left; `unit` names them in the sentence.
    """
    numbers, counts = array("q"), Counter[str]()
    for _, item in read_items(rejects):
        numbers.append(hash(item.id))
        counts.update(item.labels)
    repeated = _find_repeated(numbers)
    for number, (where, item) in enumerate(read_items(Rejects(most=0)) if repeated else ()):
        if number in repeated:
            rejects.add(where, "duplicate id", item.id)
            counts.subtract(item.labels)
    n = len(numbers) - len(repeated)
    require_rows(n, path, rejects, unit)
    return ItemStream(path, read_items, n, repeated, +counts, modality)


def _find_repeated(numbers: "array[int]") -> frozenset[int]:
    """Return the positions of numbers that came before."""
    values = np.frombuffer(numbers, np.int64)
    order = np.argsort(values, kind="stable")
    is_repeated = values[order[1:]] == values[order[:-1]]
    return frozenset(order[1:][is_repeated].tolist())


def require_kind(kind: str | None, kinds: Sequence[str], path: Path, noun: str = "kind") -> str:
    """Return the requested kind of items or labels; None: the first.

    Raises
    ------
    InputError
        There is no such kind; `noun` names it in the sentence.
    """
    if kind is not None and kind not in kinds:
        raise InputError(f"{path} has no {noun} {kind!r}; choose one of {', '.join(kinds)}")
    return kind or kinds[0]


@dataclass(frozen=True)
class DerivedItemSource:
    """Source whose items are derived from those of another source."""

    source: ItemSource

    @property
    def path(self) -> Path:
        return self.source.path

    @property
    def modality(self) -> ModalityName:
        return self.source.modality


@dataclass(frozen=True)
class ItemSubset(DerivedItemSource):
    """Subset of the items of a source, by their numbers."""

    index: Sequence[int] | Int64

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[Item]:
        numbers = set(map(int, self.index))
        return (item for number, item in enumerate(self.source) if number in numbers)


Source: TypeAlias = FeatureTable | ItemSource


@dataclass(frozen=True)
class ConcatenatedSource(DerivedItemSource):
    """Items of several sources, `source` first; ids that would clash get their source's path as a prefix."""

    sources: Sequence[ItemSource]
    prefixes: Sequence[str]

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    def __iter__(self) -> Iterator[Item]:
        for prefix, source in zip(self.prefixes, self.sources, strict=True):
            yield from (item._replace(id=prefix + item.id) for item in source) if prefix else source


def concatenate_sources(sources: Sequence[Source]) -> Source:
    """Return several sources as one; a single one unchanged.

    Raises
    ------
    InputError
        Rows of features beside another source, or items of different modalities.

    Examples
    --------
    >>> from wsabie import ItemList
    >>> one = ItemList(Path("one"), [Item("a", b"", ()), Item("b", b"", ())])
    >>> other = ItemList(Path("other"), [Item("a", b"", ())])
    >>> [item.id for item in concatenate_sources([one, other])]
    ['one/a', 'one/b', 'other/a']
    """
    if len(sources) == 1:
        return sources[0]
    items = [source for source in sources if not isinstance(source, FeatureTable)]
    if len(items) < len(sources):
        raise InputError("rows of features cannot be joined with other data here; give one source of rows")
    if len({source.modality for source in items}) > 1:
        raise InputError(f"{items[0].path} holds {items[0].modality} and others do not; give sources of one modality")
    ids = [item.id for source in items for item in source]
    unique = len(set(ids)) == len(ids)
    return ConcatenatedSource(items[0], items, ["" if unique else f"{source.path}/" for source in items])
