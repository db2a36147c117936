"""Kinds of things and relations between them, as a `Space` is told of them; checked, and numbered by name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wsabie.base.arrays import Matrix
from wsabie.base.errors import InputError, UnknownLabelError
from wsabie.base.sparse import to_csr
from wsabie.base.validation import require
from wsabie.labels.names import Vocabulary, normalise, unknown_label
from wsabie.models.scaling import Rows


@dataclass(frozen=True, eq=False)
class Kind:
    """Things of one kind: tracks, artists, documents.

    Parameters
    ----------
    name : str
        What the kind is called.
    X : sparse matrix or array (n, n_features), or None
        Features of the things; None: each has a free vector, as labels have, and is known by its name alone.
    ids : sequence of str or None
        Names of the things, a row of X each (None: their numbers); without X, those that are known beforehand.
    rows : {"auto", "tfidf", None}
        Scaling of the features, as of `Wsabie`.
    map : str or None
        Kinds of the same map share one map from features to points, and the scaling: documents and the queries for
        them. None: the kind has its own.

    Raises
    ------
    InputError
        No name, features that are no rows, or not one id for each row.

    Examples
    --------
    >>> Kind("track", np.eye(3), ["a", "b", "c"])
    Kind('track', 3 things of 3 features)
    >>> Kind("artist")
    Kind('artist')
    """

    name: str
    X: Any = field(default=None, repr=False)
    ids: Sequence[str] | None = field(default=None, repr=False)
    rows: Rows = "auto"
    map: str | None = None

    def __post_init__(self) -> None:
        require(
            isinstance(self.name, str) and bool(self.name.strip()), f"{self.name!r} is no name for a kind of things"
        )
        if self.X is not None and not hasattr(self.X, "tocsr"):
            object.__setattr__(self, "X", _rows(self.X, f"the features of {self.name!r}"))
        if self.X is None:
            require(self.map is None, f"the kind {self.name!r} has no features, and so no map to share; give X")
        elif self.ids is not None and len(self.ids) != self.X.shape[0]:
            raise InputError(
                f"the kind {self.name!r} has {self.X.shape[0]:,} rows of features and {len(self.ids):,} ids; "
                "give an id for each row"
            )

    def __repr__(self) -> str:
        n = 0 if self.ids is None else len(self.ids)
        if self.X is not None:
            return f"Kind({self.name!r}, {self.X.shape[0]:,} things of {self.X.shape[1]:,} features)"
        return f"Kind({self.name!r}, {n:,} things)" if n else f"Kind({self.name!r})"

    @property
    def mapped_by(self) -> str:
        """The table behind its points: its map, or its own vectors."""
        return self.name if self.map is None else self.map

    def names(self) -> Vocabulary:
        """The things that are known beforehand, in the order of their rows.

        Raises
        ------
        InputError
            Two of them have the same id.
        """
        ids: Iterable[str] = () if self.ids is None else self.ids
        if self.X is not None and self.ids is None:
            ids = map(str, range(self.X.shape[0]))
        try:
            return Vocabulary(map(_text, ids))
        except InputError as error:
            raise InputError(f"the things of the kind {self.name!r} cannot be told apart: {error}") from error


def _rows(X: Any, what: str) -> Any:
    """Rows as an array, whose values are looked at when they are used."""
    try:
        rows = np.asarray(X)
    except ValueError as error:
        raise InputError(f"{what} has rows of different lengths; give every row the same features") from error
    require(rows.ndim == 2, f"{what} has {rows.ndim} dimension(s); give a row of features for each thing")
    return rows


def _text(name: Any) -> str:
    require(isinstance(name, str), f"{name!r} is no text; give names, or leave ids out to go by number")
    return str(name)


@dataclass(frozen=True, eq=False)
class Relation:
    """Pairs of things that belong together; of the second one's kind the best are to be found for the first.

    Parameters
    ----------
    query, target : Kind or str
        Kinds of the two; a name stands for the kind of that name in another relation, or in the fitted space.
    pairs : sequence of (query id, target id), array (n, 2) of names or numbers, or sparse matrix (queries, targets)
        Values above 0 of the matrix are pairs. A pair that comes twice counts once.
    name : str or None
        None: "query - target".
    weight : float
        How often a pair is visited in an epoch: 1 as often as those of other relations, 2 twice, .5 in every other one.

    Raises
    ------
    InputError
        An end that is no kind, or a weight that is no number above 0.

    Notes
    -----
    Where both are of one kind, being together has no direction: (a, b) counts as (b, a) too, and nothing is a candidate
    for itself. A thing that is paired with the query is never a negative for it.

    Examples
    --------
    >>> Relation("track", "artist", [("a", "Bach")]).name
    'track - artist'
    """

    query: Kind | str
    target: Kind | str
    pairs: Any = field(repr=False)
    name: str = ""
    weight: float = 1.0

    def __post_init__(self) -> None:
        for end in (self.query, self.target):
            require(isinstance(end, (Kind, str)), f"{end!r} is no kind of things; give a Kind, or the name of one")
        if not self.name:
            object.__setattr__(self, "name", f"{self.query_kind} - {self.target_kind}")
        usable = isinstance(self.weight, (int, float, np.number)) and bool(0 < self.weight <= 1000)
        require(usable, f"the weight of {self.name!r} is {self.weight!r}; choose a number above 0, 1,000 at most")

    @property
    def query_kind(self) -> str:
        return self.query if isinstance(self.query, str) else self.query.name

    @property
    def target_kind(self) -> str:
        return self.target if isinstance(self.target, str) else self.target.name

    @property
    def n_pairs(self) -> int:
        return int(self.pairs.nnz) if hasattr(self.pairs, "nnz") else len(self.pairs)


def kinds_of(relations: Sequence[Relation]) -> dict[str, Kind]:
    """The kinds of some relations by name; one that is only named has free vectors.

    Raises
    ------
    InputError
        Two different kinds of one name, or two relations of one name.
    """
    refuse_twins(relations)
    found: dict[str, Kind] = {}
    for relation in relations:
        for end in (relation.query, relation.target):
            if isinstance(end, Kind) and found.setdefault(end.name, end) is not end:
                raise InputError(f"two different kinds are called {end.name!r}; make one, and use it in both relations")
    for relation in relations:
        for name in (relation.query_kind, relation.target_kind):
            found.setdefault(name, Kind(name))
    return found


def refuse_twins(relations: Sequence[Relation]) -> None:
    """InputError where two relations have one name."""
    names = [relation.name for relation in relations]
    twice = next((name for name in names if names.count(name) > 1), None)
    require(twice is None, f"there are two relations called {twice!r}; give each a name of its own")


def pair_matrix(relation: Relation, queries: Vocabulary, targets: Vocabulary, grow: tuple[bool, bool]) -> Matrix:
    """The pairs as a csr_matrix (queries, targets) int8 of ones; with `grow` new names are added to their side.

    Where both sides are the same things, a pair counts both ways and none is of a thing with itself.

    Raises
    ------
    InputError
        Something that is no pair, or a thing that is not known.
    """
    from scipy.sparse import csr_matrix

    pairs = _listed(relation)
    try:
        rows, columns = _numbers(pairs, queries, targets, grow, (relation.query_kind, relation.target_kind))
        shape = len(queries), len(targets)
        for ids, n, kind in ((rows, shape[0], relation.query_kind), (columns, shape[1], relation.target_kind)):
            wrong = ids[(ids < 0) | (ids >= n)]
            require(not len(wrong), f"it names number {wrong[:1].sum()} of the {n:,} things of kind {kind!r}")
    except (InputError, UnknownLabelError) as error:
        raise InputError(f"the pairs of {relation.name!r} cannot be used: {error}") from error
    Y = csr_matrix((np.ones(len(rows), np.bool_), (rows, columns)), shape).astype(np.int8)  # twice counts once
    if queries is targets:
        Y = Y.maximum(Y.T.tocsr()).tocsr()
        Y.setdiag(0)
        Y.eliminate_zeros()
    Y.sort_indices()
    return Y


def known_pairs(relation: Relation, queries: Vocabulary, targets: Vocabulary) -> tuple[Relation, int]:
    """The same relation without the pairs that name a thing which is not known, and how many those were."""
    pairs = _listed(relation)
    if not isinstance(pairs, list):
        return relation, 0
    kept = [pair for pair in pairs if not _are_names(pair) or (pair[0] in queries and pair[1] in targets)]
    return replace(relation, pairs=kept), len(pairs) - len(kept)


def _listed(relation: Relation) -> Any:
    """The pairs as a list, but for a sparse matrix and an array of numbers."""
    pairs = relation.pairs
    if hasattr(pairs, "tocoo") or (isinstance(pairs, np.ndarray) and pairs.dtype.kind not in "UO"):
        return pairs
    usable = isinstance(pairs, Iterable) and not isinstance(pairs, (str, bytes))
    require(usable, f"the pairs of {relation.name!r} cannot be used: they are {pairs!r:.80}; give a list of pairs")
    return pairs.tolist() if isinstance(pairs, np.ndarray) else list(pairs)


def _are_names(pair: Any) -> bool:
    return isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(end, str) for end in pair)


def _numbers(
    pairs: Any, queries: Vocabulary, targets: Vocabulary, grow: tuple[bool, bool], kinds: tuple[str, str]
) -> tuple[Any, Any]:
    if hasattr(pairs, "tocoo"):
        found = to_csr(pairs, "the matrix").tocoo()
        return found.row[found.data > 0].astype(np.int64), found.col[found.data > 0].astype(np.int64)
    if isinstance(pairs, list) and pairs and _are_names(pairs[0]):
        return _named(pairs, queries, targets, grow, kinds)
    try:
        given = np.asarray(pairs)
    except ValueError:  # of different lengths
        given = np.empty(1)
    usable = not given.size or (given.ndim == 2 and given.shape[1] == 2 and np.issubdtype(given.dtype, np.integer))
    require(usable, "give (query id, target id) pairs of names, two columns of numbers, or a sparse matrix")
    given = given.reshape(-1, 2).astype(np.int64)
    return given[:, 0], given[:, 1]


def _named(
    pairs: list[Any], queries: Vocabulary, targets: Vocabulary, grow: tuple[bool, bool], kinds: tuple[str, str]
) -> tuple[Any, Any]:
    odd = next((pair for pair in pairs if not _are_names(pair)), None)
    require(odd is None, f"{odd!r} is no pair of names, as others are")
    sides = []
    for side, (known, may_grow) in enumerate(zip((queries, targets), grow, strict=True)):
        names = [pair[side] for pair in pairs]
        if may_grow:
            fresh = dict.fromkeys(normalise(name) for name in dict.fromkeys(names))
            known.add([name for name in fresh if name not in known])
        missing = next((name for name in names if name not in known), None)
        if missing is not None:
            raise UnknownLabelError(unknown_label(missing, list(known), kinds[side]))
        sides.append(known.ids(names))
    return sides[0], sides[1]
