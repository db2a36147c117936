"""Kinds of items and relations between them, the input of a `Space`, checked and numbered by name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import identity

from wsabie.core.arrays import Array, Float32, Int64, Matrix
from wsabie.core.errors import InputError, UnknownLabelError, require
from wsabie.core.validation import as_array, build_incidence, convert_to_csr
from wsabie.embedding.protocols import KernelArrays
from wsabie.models.base.row_scaling import Scaling
from wsabie.training.training_data import build_targets
from wsabie.vocabulary.label_names import Vocabulary, normalise_label_name
from wsabie.vocabulary.name_suggestions import format_unknown_label


@dataclass(frozen=True, eq=False)
class EntityKind:
    """Items of one kind: tracks, artists, documents.

    Parameters
    ----------
    name : str
        Name of the kind.
    X : sparse matrix or array (n, n_features), or None
        Features of the items; None: each item has a free vector, like a label, and only a name.
    ids : sequence of str or None
        Names of the items, one for each row of X (None: their numbers); without X, names to begin with.
    scaling : {"auto", "tfidf", None}
        Scaling of the features, see `Wsabie`.
    map : str or None
        Kinds with the same `map` share the scaling and one map from features to points, such as documents and the
        queries for them. None: the kind has its own.

    Raises
    ------
    InputError
        There is no name, features are not rows, or the numbers of ids and rows differ.

    Examples
    --------
    >>> EntityKind("track", np.eye(3), ["a", "b", "c"])
    Kind('track', 3 entities of 3 features)
    >>> EntityKind("artist")
    Kind('artist')
    """

    name: str
    X: Matrix = field(default=None, repr=False)
    ids: Sequence[str] | None = field(default=None, repr=False)
    scaling: Scaling = "auto"
    map: str | None = None

    def __post_init__(self) -> None:
        problem = f"{self.name!r} is not a name for a kind of entities"
        require(isinstance(self.name, str) and bool(self.name.strip()), problem)
        if self.X is not None and not hasattr(self.X, "tocsr"):
            object.__setattr__(self, "X", _convert_to_rows(self.X, f"the features of {self.name!r}"))
        if self.X is None:
            require(self.map is None, f"the kind {self.name!r} has no features, and so no map to share; give X")
        elif self.ids is not None and len(self.ids) != self.X.shape[0]:
            fact = f"the kind {self.name!r} has {self.X.shape[0]:,} rows of features and {len(self.ids):,} ids"
            raise InputError(f"{fact}; give an id for each row")

    def __repr__(self) -> str:
        n = 0 if self.ids is None else len(self.ids)
        if self.X is not None:
            return f"Kind({self.name!r}, {self.X.shape[0]:,} entities of {self.X.shape[1]:,} features)"
        return f"Kind({self.name!r}, {n:,} entities)" if n else f"Kind({self.name!r})"

    @property
    def mapped_by(self) -> str:
        """Name of the table of its points: its map, or its own vectors."""
        return self.name if self.map is None else self.map

    def names(self) -> Vocabulary:
        """Return the names of the given items, in the order of their rows.

        Returns
        -------
        Vocabulary

        Raises
        ------
        InputError
            Two items have the same id.
        """
        ids: Iterable[str] = () if self.ids is None else self.ids
        if self.X is not None and self.ids is None:
            ids = map(str, range(self.X.shape[0]))
        try:
            return Vocabulary(map(_check_text, ids))
        except InputError as error:
            raise InputError(f"the entities of the kind {self.name!r} cannot be told apart: {error}") from error


def _convert_to_rows(X: Matrix, input_name: str) -> Array:
    """Return rows as an array; its values are checked when they are used."""
    rows = as_array(X, input_name, "features")
    require(rows.ndim == 2, f"{input_name} has {rows.ndim} dimension(s); give a row of features for each entity")
    return rows


def _check_text(name: object) -> str:
    require(isinstance(name, str), f"{name!r} is not text; give names, or leave ids out to go by number")
    return str(name)


@dataclass(frozen=True, eq=False)
class Relation:
    """Pairs of items that belong together; training ranks items of the target kind for a query.

    Parameters
    ----------
    query, target : EntityKind or str
        Kinds of the two; a name stands for the kind of that name in another relation, or in the fitted space.
    pairs : sequence of (query id, target id), array (n, 2) of names or numbers, or sparse matrix (queries, targets)
        Values above 0 of the matrix are pairs. A repeated pair counts once.
    name : str or None
        None: "query - target".
    weight : float
        Visits of each pair in an epoch, relative to other relations: 2 is twice, .5 every other epoch.

    Raises
    ------
    InputError
        An end is not a kind, or the weight is not a number above 0.

    Notes
    -----
    Pairs within one kind have no direction: (a, b) counts as (b, a) too, and no item is a candidate for itself. An item
    that is paired with the query is never a negative for it.

    Examples
    --------
    >>> Relation("track", "artist", [("a", "Bach")]).name
    'track - artist'
    """

    query: EntityKind | str
    target: EntityKind | str
    pairs: Any = field(repr=False)
    name: str = ""
    weight: float = 1.0

    def __post_init__(self) -> None:
        for end in (self.query, self.target):
            problem = f"{end!r} is not a kind of entities; give a Kind, or the name of one"
            require(isinstance(end, (EntityKind, str)), problem)
        if not self.name:
            object.__setattr__(self, "name", f"{self.query_kind} - {self.target_kind}")
        is_usable = isinstance(self.weight, (int, float, np.number)) and bool(0 < self.weight <= 1000)
        require(is_usable, f"the weight of {self.name!r} is {self.weight!r}; choose a number above 0, 1,000 at most")

    @property
    def query_kind(self) -> str:
        """Name of the kind of the queries."""
        return self.query if isinstance(self.query, str) else self.query.name

    @property
    def target_kind(self) -> str:
        """Name of the kind of the targets."""
        return self.target if isinstance(self.target, str) else self.target.name

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return int(self.pairs.nnz) if hasattr(self.pairs, "nnz") else len(self.pairs)


def collect_kinds(relations: Sequence[Relation]) -> dict[str, EntityKind]:
    """Return the kinds of some relations by name; a kind that is only named has free vectors.

    Raises
    ------
    InputError
        Two different kinds or two relations have the same name.
    """
    require_unique_names(relations)
    kinds: dict[str, EntityKind] = {}
    for relation in relations:
        for end in (relation.query, relation.target):
            if isinstance(end, EntityKind) and kinds.setdefault(end.name, end) is not end:
                raise InputError(f"two different kinds are called {end.name!r}; make one, and use it in both relations")
    for relation in relations:
        for name in (relation.query_kind, relation.target_kind):
            kinds.setdefault(name, EntityKind(name))
    return kinds


def require_unique_names(relations: Sequence[Relation]) -> None:
    """Raise InputError if two relations have the same name."""
    names = [relation.name for relation in relations]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    require(duplicate is None, f"there are two relations called {duplicate!r}; give each a name of its own")


def build_pair_matrix(relation: Relation, queries: Vocabulary, targets: Vocabulary, grow: tuple[bool, bool]) -> Matrix:
    """Return the pairs as a csr_matrix (queries, targets) int8 of ones; `grow` adds new names to a side.

    If both sides are the same items, a pair counts both ways, and pairs of an item with itself are dropped.

    Raises
    ------
    InputError
        An entry is not a pair, or an item is unknown.
    """
    pairs = _list_pairs(relation)
    sides = ((queries, relation.query_kind, grow[0]), (targets, relation.target_kind, grow[1]))
    try:
        if isinstance(pairs, list) and pairs and _are_names(pairs[0]):
            non_pair = next((pair for pair in pairs if not _are_names(pair)), None)
            require(non_pair is None, f"{non_pair!r} is not a pair of names, as others are")
            numbers = [number_names([pair[i] for pair in pairs], *side) for i, side in enumerate(sides)]
        else:
            numbers = _read_numbers(pairs)
        for ids, (vocabulary, kind, _) in zip(numbers, sides, strict=True):
            out_of_range = ids[(ids < 0) | (ids >= len(vocabulary))]
            problem = f"it names number {out_of_range[:1].sum()} of the {len(vocabulary):,} entities of kind {kind!r}"
            require(not len(out_of_range), problem)
    except (InputError, UnknownLabelError) as error:
        raise InputError(f"the pairs of {relation.name!r} cannot be used: {error}") from error
    # a repeated pair counts once
    Y = build_incidence(numbers[0], numbers[1], (len(queries), len(targets)), bool).astype(np.int8)
    if queries is targets:
        Y = Y.maximum(Y.T.tocsr()).tocsr()
        Y.setdiag(0)
        Y.eliminate_zeros()
    Y.sort_indices()
    return Y


def drop_unknown_pairs(relation: Relation, queries: Vocabulary, targets: Vocabulary) -> tuple[Relation, int]:
    """Return the relation without pairs that name an unknown item, and the number of these."""
    pairs = _list_pairs(relation)
    if not isinstance(pairs, list):
        return relation, 0
    known_pairs = [pair for pair in pairs if not _are_names(pair) or (pair[0] in queries and pair[1] in targets)]
    return replace(relation, pairs=known_pairs), len(pairs) - len(known_pairs)


def _list_pairs(relation: Relation) -> Any:
    """Return the pairs as a list, unless they are a sparse matrix or an array of numbers."""
    pairs = relation.pairs
    if hasattr(pairs, "tocoo") or (isinstance(pairs, np.ndarray) and pairs.dtype.kind not in "UO"):
        return pairs
    is_usable = isinstance(pairs, Iterable) and not isinstance(pairs, (str, bytes))
    require(is_usable, f"the pairs of {relation.name!r} cannot be used: they are {pairs!r:.80}; give a list of pairs")
    return pairs.tolist() if isinstance(pairs, np.ndarray) else list(pairs)


def _are_names(pair: object) -> bool:
    return isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(end, str) for end in pair)


def _read_numbers(pairs: Any) -> list[Int64]:
    """Return the numbers of both sides of pairs that are not names."""
    if hasattr(pairs, "tocoo"):
        matrix = convert_to_csr(pairs, "the matrix").tocoo()
        return [side[matrix.data > 0].astype(np.int64) for side in (matrix.row, matrix.col)]
    try:
        array = np.asarray(pairs)
    except ValueError:  # of different lengths
        array = np.empty(1)
    is_usable = not array.size or (array.ndim == 2 and array.shape[1] == 2 and np.issubdtype(array.dtype, np.integer))
    require(is_usable, "give (query id, target id) pairs of names, two columns of numbers, or a sparse matrix")
    return list(array.reshape(-1, 2).astype(np.int64).T)


def number_names(names: Sequence[str], vocabulary: Vocabulary, kind: str, may_grow: bool = False) -> Int64:
    """Return the numbers of names; unknown ones are added or refused (UnknownLabelError)."""
    if may_grow:
        labels = dict.fromkeys(normalise_label_name(name) for name in dict.fromkeys(names))
        vocabulary.add([name for name in labels if name not in vocabulary])
    missing = next((name for name in names if name not in vocabulary), None)
    if missing is not None:
        raise UnknownLabelError(format_unknown_label(missing, list(vocabulary), kind))
    return vocabulary.ids(names)


def compute_pair_weights(Y: Matrix) -> Float32:
    """Return the weight of each query's pairs, (n,); it grows like the learning rate of `Wsabie`."""
    per_query = Y.nnz / max(int((np.diff(Y.indptr) > 0).sum()), 1)
    return np.full(Y.shape[0], max(1.0, per_query) ** 0.75, np.float32)


def build_pair_targets(
    Y: Matrix, first_pair: int, *, is_within_kind: bool, weights: Float32 | None = None
) -> KernelArrays:
    """Return the pairs of a relation as targets of training; no item is a candidate for itself."""
    hidden = build_self_exclusion(Y) if is_within_kind else None
    return build_targets(Y, weights, "mean", first_pair, hidden)


def build_self_exclusion(Y: Matrix) -> Matrix:
    """Return a matrix that excludes each item as a candidate for itself."""
    return identity(Y.shape[0], np.int8, "csr")
