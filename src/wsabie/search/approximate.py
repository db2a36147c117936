"""Top k by an approximate index: compressed codes say who comes into question, and the table gives their scores.

So scores are those of an exact search to the last bit, equal ones go by label id, and only who is found is approximate:
which share of the true top ten is measured when an index is built. Where a filter leaves few labels, where many are
hidden, or where as many are asked for as would be scored one by one, all that come into question are scored.
"""

from copy import copy
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.lists import Lists
from wsabie.base.mapped import parts
from wsabie.base.validation import require, whole_number
from wsabie.search.codes import Codes, CodesKind
from wsabie.search.exact import ExactIndex
from wsabie.search.measured import MEASURED_AT, WANTED, MeasuredIndex, fingerprint, sample_of
from wsabie.search.ready import as_rows, hidden_labels
from wsabie.space.joint import SimilarityName
from wsabie.storage.folder import Parts
from wsabie.storage.schema import check_array

KIND = "approximate index"

NARROW = 0.1
"""Share of the labels below which those that come into question are all scored."""

NARROW_GRAPH = 0.3
"""The same of a graph, whose paths lead through what is left out."""

_FEW_CHANGED = 0.02
"""Share of the labels up to which those that changed are scored one by one, beside an index of the others."""

_SHORTLISTS = (10, 20, 40, 80)  # labels that are scored from the table, for each one that is wanted
_ROWS = 1 << 14


class Lift(NamedTuple):
    """The space in which nearest means best: what codes are made of.

    Of inner products [w, bias] gets one coordinate more, such that all labels have one length: then the nearest label
    is that of the highest score, and cells are as good for scores as for distances. A graph takes products as they are.
    """

    similarity: SimilarityName
    biased: bool
    length: float  # of all lifted labels; 0: as they are

    def labels(self, rows: Any, bias: Float32 | None) -> Float32:
        """(n, dim) to (n, lifted dim)."""
        rows = rows.astype(np.float32)
        if self.similarity == "cosine":
            rows /= _lengths(rows)
        columns = [rows] if bias is None else [rows, bias[:, None]]
        if self.length:
            squares = sum(np.einsum("ij,ij->i", column, column) for column in columns)
            columns.append(np.sqrt(np.maximum(self.length**2 - squares, 0))[:, None])
        width = sum(column.shape[1] for column in columns)
        if width % 2:  # codes are made of pairs
            columns.append(np.zeros((len(rows), 1), np.float32))
        return np.ascontiguousarray(np.hstack(columns), np.float32)

    def queries(self, queries: Float32) -> Float32:
        n, dim = queries.shape
        lifted = np.zeros((n, self.dim(dim)), np.float32)
        lifted[:, :dim] = queries
        if self.similarity == "cosine":
            lifted /= _lengths(lifted)
        if self.biased:
            lifted[:, dim] = 1
        if self.length:
            lifted *= self.length / _lengths(lifted)
        return lifted

    def dim(self, dim: int) -> int:
        width = dim + self.biased + bool(self.length)
        return width + width % 2


class ApproximateIndex(MeasuredIndex):
    """Label vectors searched by compressed codes; made by `build`.

    Attributes
    ----------
    exact, effort, recall, curve, exact_milliseconds, queries, n_bytes
        See `MeasuredIndex`; the effort counts cells that are looked into, or vectors of the graph that are kept in
        sight.
    kind : {"ivf", "hnsw"}
    shortlist : int
        Labels that are scored from the table, for each one that is wanted.

    Examples
    --------
    >>> table = np.random.default_rng(0).normal(size=(2000, 8)).astype(np.float32)
    >>> index = ApproximateIndex.build(ExactIndex(table), recall=0.9)
    >>> ids, scores = index.top_k(table[:3], 2)
    >>> ids.shape, index.recall > 0.8
    ((3, 2), True)
    """

    def __init__(self, exact: ExactIndex, codes: Codes, lift: Lift) -> None:
        super().__init__(exact, codes.efforts[-1])
        self.kind: CodesKind = codes.kind
        self._codes, self._lift = codes, lift
        self._places: Int64 | None = None  # of what has a code in the table, -1: it is gone; None: they are the same
        self._tail: Int64 = np.empty(0, np.int64)  # what came since
        self.shortlist = _SHORTLISTS[0]

    @classmethod
    def build(
        cls,
        exact: ExactIndex,
        *,
        kind: CodesKind = "ivf",
        recall: float = WANTED,
        queries: Any = None,
        seed: int = 0,
        threads: int | None = None,
    ) -> "ApproximateIndex":
        """Make codes of the labels, and find the least effort that reaches `recall`.

        Parameters
        ----------
        exact : ExactIndex
        kind : {"ivf", "hnsw"}
            "ivf": cells, a quarter of a byte a coordinate and 8 bytes a label, made in seconds; "hnsw": a graph, a byte
            a coordinate and some 140 bytes a label, made in minutes.
        recall : float
            Share of the exact top 10 that is to be found.
        queries : (n, dim) float32 or None
            Points of rows, of which at most 400 are taken: half choose the effort, half measure what it brings. None:
            labels of the table.
        seed : int
        threads : int or None
            A graph is the same bits with one thread only.

        Raises
        ------
        InputError
            faiss is not there, or a distance has a bias, or there are too few labels or queries.
        """
        require(kind in ("ivf", "hnsw"), f'there is no index of kind {kind!r}; choose "ivf" or "hnsw"')
        require(0 < recall <= 1, f"recall is a share of the top {MEASURED_AT} such as 0.95, not {recall}")
        table, bias = exact.table, exact.bias
        if exact.similarity == "euclidean" and bias is not None:
            raise InputError("distances with a bias per label have no index; search them exactly")
        rng, lift, there = np.random.default_rng(seed), _lift_of(exact, kind), exact.there()
        asked, told = sample_of(exact, queries, rng)
        codes = Codes.of(
            lambda which: lift.labels(table[there[which]], None if bias is None else bias[there[which]]),
            len(there),
            lift.dim(table.shape[1]),
            kind=kind,
            products=_by_products(exact, kind),
            seed=seed,
            threads=threads,
        )
        index = cls(exact, codes, lift)
        index._places = there if len(exact.gone) else None
        index.queries = told
        index.n_bytes = codes.as_bytes().nbytes
        efforts = codes.efforts
        settings = [partial(index._set, *both) for both in product(_SHORTLISTS, efforts)]
        index.tune(rng.permutation(asked), recall, settings, efforts, threads)
        return index

    def top_k(
        self,
        queries: Any,
        k: int,
        *,
        exclude: Matrix | None = None,
        candidates: Any = None,
        threads: int | None = None,
    ) -> tuple[Int64, Float32]:
        """About the k best labels of each query, as `ExactIndex.top_k` gives them; no row gets fewer than there."""
        k, n = whole_number(k, "k"), len(self.exact.table)
        queries = self.exact.checked(queries)[0]
        chosen, exclude = self.exact.among(candidates), as_rows(exclude)
        hidden = hidden_labels(exclude, len(queries), n, None)
        most = 0 if hidden is None else int(np.diff(hidden.indptr).max(initial=0))
        left, asked = n if chosen is None else len(chosen), self.shortlist * k + most
        if (
            left < (NARROW_GRAPH if self.kind == "hnsw" else NARROW) * n
            or asked > NARROW * left
            or len(self._tail) > NARROW * n
        ):
            return self.exact.top_k(queries, k, exclude=exclude, candidates=chosen, threads=threads)
        effort = -(-self.effort * n // left)
        lifted = self._lift.queries(self._centred(queries))
        ids = self._codes.search(lifted, asked, effort, self._coded(chosen), threads)
        if self._places is not None:
            ids = np.where(ids >= 0, self._places[ids], -1)
        if hidden is not None:
            drop(ids, hidden)
        tail = self._tail
        if chosen is not None and len(tail):
            tail = np.intersect1d(tail, chosen, assume_unique=True)
        if len(tail):
            came, _ = self.exact.top_k(queries, k, exclude=exclude, candidates=tail, threads=threads)
            ids = np.hstack([ids, came])
        ids, scores = self.exact.rescored(queries, ids, k)
        few = np.flatnonzero(ids[:, -1] < 0)
        if len(few):
            out = None if exclude is None else exclude[few]
            ids[few], scores[few] = self.exact.top_k(queries[few], k, exclude=out, candidates=chosen, threads=threads)
        return ids, scores

    def over(self, exact: ExactIndex, places: Int64) -> "ApproximateIndex":
        """The same codes for a table that has changed: what went is not found, and what came is scored one by one.

        Parameters
        ----------
        exact : ExactIndex
            Of the table as it is now.
        places : (n,) int64
            Where in it each vector is that has a code, unchanged; -1: nowhere.
        """
        moved = copy(self)
        moved.exact, moved._places = exact, places
        here = np.zeros(len(exact.table), bool)
        here[exact.gone] = here[places[places >= 0]] = True
        moved._tail = np.flatnonzero(~here)
        return moved

    def following(self, exact: ExactIndex, changed: Int64) -> "ApproximateIndex | None":
        """See `MeasuredIndex.following`: what changed is scored one by one, as far as it is a fiftieth of all."""
        n, places = len(exact.table), self._places
        places = np.arange(n) if places is None else places.copy()
        places[np.isin(places, changed)] = -1
        same_space = self.exact.centre is None is exact.centre and (self.exact.bias is None) == (exact.bias is None)
        return self.over(exact, places) if same_space and (places < 0).sum() <= _FEW_CHANGED * n else None

    def to_parts(self) -> Parts:
        """What a folder keeps: the codes, of which table they are, and which of its labels have one."""
        config = self.told() | {"length": self._lift.length, "shortlist": self.shortlist}
        places = {} if self._places is None else {"places": self._places}
        return Parts(KIND, config, {"codes": self._codes.as_bytes(), **places})

    @classmethod
    def from_parts(cls, parts: Parts, exact: ExactIndex, places: Int64 | None = None) -> "ApproximateIndex | None":
        """The index of these labels; None when it was made of others. With `places` as `over` gives it.

        Raises
        ------
        ValueError, KeyError, TypeError
            The parts hold something else.
        """
        config = parts.config
        if parts.kind != KIND or config["kind"] not in ("ivf", "hnsw"):
            raise ValueError(f"it holds {parts.kind!r} and no index")
        if places is None and config["table"] != fingerprint(exact):
            return None
        if places is None and "places" in parts.tensors:
            places, known = np.asarray(parts.tensors["places"]), np.append(exact.there(), -1)
            if places.dtype != np.int64 or places.ndim != 1 or not np.isin(places, known).all():
                raise ValueError("it names labels that do not exist")
        lift = Lift(exact.similarity, exact.bias is not None, float(config["length"]))
        content = check_array(parts.tensors, "codes", "uint8", (None,))
        n, dim = len(exact.table) if places is None else len(places), exact.table.shape[1]
        index = cls(exact, Codes.from_bytes(content, config["kind"], n, lift.dim(dim)), lift)
        index.tell(config)
        index.shortlist, index.n_bytes = int(config["shortlist"]), content.nbytes
        return index if places is None else index.over(exact, places)

    def _coded(self, chosen: Int64 | None) -> Int64 | None:
        """Labels that alone come into question, as the codes number them."""
        if chosen is None or self._places is None:
            return chosen
        wanted = np.zeros(len(self.exact.table) + 1, bool)
        wanted[chosen] = True
        return np.flatnonzero(wanted[self._places])  # -1 is the last, which is never wanted

    def _centred(self, queries: Float32) -> Float32:
        return queries if self.exact.centre is None else queries - self.exact.centre

    def _set(self, shortlist: int, effort: int) -> None:
        self.shortlist, self.effort = shortlist, effort


def _by_products(exact: ExactIndex, kind: CodesKind) -> bool:
    return kind == "hnsw" and exact.similarity != "euclidean"


def _lift_of(exact: ExactIndex, kind: CodesKind) -> Lift:
    biased = exact.bias is not None
    plain = Lift(exact.similarity, biased, 0.0)
    if exact.similarity == "euclidean" or _by_products(exact, kind):
        return plain
    longest = 0.0
    for part in parts(len(exact.table), _ROWS):
        lifted = plain.labels(exact.table[part], None if exact.bias is None else exact.bias[part])
        longest = max(longest, float(np.einsum("ij,ij->i", lifted, lifted).max(initial=0)))
    return plain._replace(length=float(np.sqrt(longest)) or 1.0)


def _lengths(rows: Float32) -> Float32:
    """(n, 1), not 0."""
    found: Float32 = np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), np.float32(1e-30))[:, None]
    return found


def drop(ids: Int64, hidden: Lists) -> None:
    """Set labels that a query is not to get to -1."""
    for i in np.flatnonzero(np.diff(hidden.indptr)):
        out = hidden.labels[hidden.indptr[i] : hidden.indptr[i + 1]]
        ids[i, np.isin(ids[i], out)] = -1
