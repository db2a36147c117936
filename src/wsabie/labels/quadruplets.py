"""Quadruplets of two pictures and their related labels, drawn and never laid out ([P] sections 4.3.1 and 4.3.2).

Annotated pictures and a list of relations between labels make proxy supervision: a quadruplet (I_o, L_o, I_p, L_p)
has a relation L_o, L_p (car, wheel), a picture I_o that carries L_o, and another picture I_p that carries L_p. A
relation of labels with a and b pictures, c of which carry both, has a b - c of them; all relations of the paper
together have more than 100 million.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from wsabie.base.arrays import Int32, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.lists import lists_of
from wsabie.labels.names import Vocabulary, normalise

By = Literal["relation", "quadruplet"]
Pair = tuple[str, str]
"""A relation by name: the label of the object, that of the part."""


class Drawn(NamedTuple):
    """Quadruplets, one at each place of four arrays (n,)."""

    objects: Int64  # rows of the pictures of objects
    object_labels: Int32
    parts: Int64  # rows of the pictures of parts
    part_labels: Int32


class Pictures(NamedTuple):
    """The pictures of label y, sorted: `rows[indptr[y]:indptr[y + 1]]`."""

    indptr: Int64  # (n_labels + 1,)
    rows: Int64  # (nnz,)
    shared: bool  # a picture has two labels

    def of(self, label: int) -> Int64:
        return self.rows[self.indptr[label] : self.indptr[label + 1]]


class Quadruplets:
    """All quadruplets of annotated pictures, to be drawn from.

    Parameters
    ----------
    Y : csr_matrix or array, (n, n_labels)
        Values above zero are the labels of a picture, of which it may have several.
    relations : (n_relations, 2) ints
        Label of the object, label of the part. Any other relation will do: kind and sort, person and spouse.
    rows : (m,) ints or None
        Only these pictures, for instance one side of a split; None = all. Rows are always those of Y.

    Attributes
    ----------
    relations : (n_relations, 2) int32
    counts : (n_relations,) int64
        Quadruplets of each relation.

    Raises
    ------
    InputError
        A relation is no pair of two labels, comes twice, or has no quadruplet (`count_quadruplets` says which have).

    Examples
    --------
    Four pictures, of a car, a car, a wheel, and of both:

    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [1, 1]])
    >>> quadruplets = Quadruplets(Y, [(0, 1)])
    >>> quadruplets.n_possible  # 3 cars and 2 wheels, less the picture that would be its own part
    5
    >>> drawn = quadruplets.sample(1000, np.random.default_rng(0))
    >>> sorted(set(zip(drawn.objects.tolist(), drawn.parts.tolist())))
    [(0, 2), (0, 3), (1, 2), (1, 3), (3, 2)]
    """

    def __init__(self, Y: Matrix, relations: Any, *, rows: Any = None) -> None:
        self._pictures = pictures_of(Y, rows)
        self.relations = checked_relations(relations, Y.shape[1])
        self.counts = _counts(self._pictures, self.relations)
        _refuse_empty(self.relations, self.counts, np.diff(self._pictures.indptr))

    @property
    def n_possible(self) -> int:
        """How many quadruplets there are."""
        return int(self.counts.sum())

    def sample(self, n: int, rng: np.random.Generator, *, by: By = "relation") -> Drawn:
        """Draw n quadruplets, independently and with replacement.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator
        by : {"relation", "quadruplet"}
            "relation": every relation is as likely as any other, then every quadruplet of it, so that relations of
            frequent labels do not crowd out the rest. "quadruplet": every quadruplet is as likely as any other.

        Returns
        -------
        Drawn

        Raises
        ------
        InputError
            n is negative, or `by` is neither of the two.
        """
        if n < 0:
            raise InputError(f"n is {n} but a number of quadruplets is 0 or more; ask for another number")
        if by not in get_args(By):
            raise InputError(f"quadruplets cannot be drawn by {by!r}; choose from {', '.join(map(repr, get_args(By)))}")
        if by == "relation":
            which = rng.integers(len(self.relations), size=n)
        else:
            ends = np.cumsum(self.counts)
            which = np.searchsorted(ends, rng.integers(ends[-1], size=n), side="right")
        objects, parts = self._two_pictures(which, rng)
        return Drawn(objects, self.relations[which, 0], parts, self.relations[which, 1])

    def _two_pictures(self, which: Int64, rng: np.random.Generator) -> tuple[Int64, Int64]:
        """Pictures of the object and of the part of each relation.

        A pair of one picture with itself is drawn anew. That is every second pair at most, since one of the two
        labels has two pictures or more: there are about log2(n) rounds.
        """
        objects, parts = (self._any_picture(self.relations[which, side], rng) for side in (0, 1))
        again = np.flatnonzero(objects == parts)
        while len(again):
            for side, drawn in enumerate((objects, parts)):
                drawn[again] = self._any_picture(self.relations[which[again], side], rng)
            again = again[objects[again] == parts[again]]
        return objects, parts

    def _any_picture(self, labels: Int32, rng: np.random.Generator) -> Int64:
        starts, ends = self._pictures.indptr[labels], self._pictures.indptr[labels + 1]
        return self._pictures.rows[rng.integers(starts, ends)]


def count_quadruplets(Y: Matrix, relations: Any, *, rows: Any = None) -> Int64:
    """How many quadruplets each relation has, (n_relations,); parameters are those of `Quadruplets`.

    Examples
    --------
    >>> count_quadruplets(np.array([[1, 1, 0], [0, 1, 0]]), [(0, 1), (1, 2)])
    array([1, 0])
    """
    return _counts(pictures_of(Y, rows), checked_relations(relations, Y.shape[1]))


class Numbered(NamedTuple):
    """Pairs of labels by number, each once, and those with a label that is not known, or one label twice."""

    ids: Int64  # (n, 2)
    left_out: list[Pair]


def numbered(pairs: Sequence[Pair], labels: Vocabulary) -> Numbered:
    """Pairs of labels as numbers.

    Examples
    --------
    >>> numbered([("car", "wheel"), ("car", "wing"), ("car", "wheel")], Vocabulary(["wheel", "car"]))
    Numbered(ids=array([[1, 0]]), left_out=[('car', 'wing')])
    """
    pairs = list(dict.fromkeys((normalise(one), normalise(other)) for one, other in pairs))
    usable = [pair for pair in pairs if pair[0] != pair[1] and all(end in labels for end in pair)]
    ids, known = labels.ids([end for pair in usable for end in pair]).reshape(-1, 2), set(usable)
    return Numbered(ids, [pair for pair in pairs if pair not in known])


def checked_relations(relations: Any, n_labels: int) -> Int32:
    """Relations as an array (n_relations, 2), after a look at them.

    Raises
    ------
    InputError
        There is none, or one is no pair of two labels below n_labels, or comes twice.
    """
    pairs = np.asarray(relations)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or pairs.dtype.kind not in "iu":
        raise InputError(
            f"relations are of shape {pairs.shape} and {pairs.dtype}; give pairs of whole numbers, the label of the "
            "object and that of the part"
        )
    outside = np.flatnonzero(((pairs < 0) | (pairs >= n_labels)).any(axis=1))
    if len(outside):
        raise InputError(f"relation {tuple(pairs[outside[0]].tolist())} names a label outside 0 to {n_labels - 1}")
    own = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(own):
        raise InputError(f"relation {tuple(pairs[own[0]].tolist())} makes a label its own part; leave it out")
    found, times = np.unique(pairs, axis=0, return_counts=True)
    if times.max() > 1:
        raise InputError(f"relation {tuple(found[times > 1][0].tolist())} comes {times.max()} times; give each once")
    return pairs.astype(np.int32)


def pictures_of(Y: Matrix, rows: Any = None) -> Pictures:
    """The pictures of each label, of all rows or of some."""
    lists = lists_of(Y, Y.shape[1], "Y", lambda data: data > 0)
    of = np.repeat(np.arange(lists.n_rows, dtype=np.int64), np.diff(lists.indptr))
    labels = lists.labels
    if rows is not None:
        chosen = np.zeros(lists.n_rows, bool)
        chosen[rows] = True
        kept = chosen[of]
        of, labels = of[kept], labels[kept]
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels, minlength=Y.shape[1])
    shared = bool(len(of) > 1 and (of[1:] == of[:-1]).any())
    return Pictures(np.concatenate([[0], np.cumsum(counts)]), of[order], shared)


def _counts(pictures: Pictures, relations: Int32) -> Int64:
    sizes = np.diff(pictures.indptr)
    counts: Int64 = sizes[relations[:, 0]] * sizes[relations[:, 1]]
    if not pictures.shared:
        return counts
    carries = np.zeros(pictures.rows.max() + 1, bool)
    last = -1
    for number in np.argsort(relations[:, 0], kind="stable"):  # so that an object's pictures are marked once
        one, other = relations[number]
        if one != last:
            carries[pictures.of(last)] = False
            carries[pictures.of(one)] = True
            last = one
        counts[number] -= np.count_nonzero(carries[pictures.of(other)])
    return counts


def _refuse_empty(relations: Int32, counts: Int64, sizes: Int64) -> None:
    empty = relations[counts == 0]
    if not len(empty):
        return
    named = ", ".join(
        f"{one} (pictures: {sizes[one]}) and {other} ({sizes[other]})" for one, other in empty[:3].tolist()
    )
    raise InputError(
        f"{len(empty)} of {len(relations)} relations have no two different pictures, such as labels {named}; "
        "leave them out (split_quadruplets lists them)"
    )
