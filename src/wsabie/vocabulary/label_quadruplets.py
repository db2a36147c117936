"""Sampler of quadruplets of two pictures and their related labels (Mesnil et al. 2014, section 4.3).

Annotated pictures and a list of relations between labels make proxy supervision: a quadruplet (I_o, L_o, I_p, L_p)
has a relation L_o, L_p (car, wheel), a picture I_o that carries L_o, and another picture I_p that carries L_p. A
relation of labels with a and b pictures, c of which carry both, has a b - c of them. The relations of the paper have
more than 100 million (sections 4.3.1 and 4.3.2), so that quadruplets are drawn and never enumerated.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from wsabie.core.arrays import Int32, Int64, Matrix
from wsabie.core.errors import InputError, require
from wsabie.core.label_lists import list_positives
from wsabie.vocabulary.label_names import Vocabulary, normalise_label_name

SamplingUnit = Literal["relation", "quadruplet"]
Pair = tuple[str, str]
"""A relation by name: label of the object, label of the part."""


class QuadrupletBatch(NamedTuple):
    """Quadruplets as four parallel arrays (n,)."""

    objects: Int64  # rows of the pictures of objects
    object_labels: Int32
    parts: Int64  # rows of the pictures of parts
    part_labels: Int32


class ImagesByLabel(NamedTuple):
    """The pictures of label y, sorted: `rows[indptr[y]:indptr[y + 1]]`."""

    indptr: Int64  # (n_labels + 1,)
    rows: Int64  # (nnz,)
    shared: bool  # a picture has two labels

    def get_rows(self, label: int) -> Int64:
        return self.rows[self.indptr[label] : self.indptr[label + 1]]


class Quadruplets:
    """Sampler of all quadruplets of annotated pictures.

    Parameters
    ----------
    Y : csr_matrix or array, (n, n_labels)
        Values above zero are the labels of a picture, of which it may have several.
    relations : (n_relations, 2) ints
        Label of the object, label of the part. Other relations, such as kind and sort, work too.
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
        A relation is not a pair of two labels, comes twice, or has no quadruplet (`count_quadruplets` finds those).

    Examples
    --------
    Four pictures, of a car, a car, a wheel, and of both:

    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [1, 1]])
    >>> quadruplets = Quadruplets(Y, [(0, 1)])
    >>> int(quadruplets.counts.sum())  # 3 cars and 2 wheels, less the picture that would be its own part
    5
    >>> batch = quadruplets.sample(1000, np.random.default_rng(0))
    >>> sorted(set(zip(batch.objects.tolist(), batch.parts.tolist())))
    [(0, 2), (0, 3), (1, 2), (1, 3), (3, 2)]
    """

    def __init__(self, Y: Matrix, relations: npt.ArrayLike, *, rows: npt.ArrayLike | None = None) -> None:
        self._pictures = group_images_by_label(Y, rows)
        self.relations = check_relations(relations, Y.shape[1])
        self.counts = _count_by_relation(self._pictures, self.relations)
        _refuse_empty(self.relations, self.counts, np.diff(self._pictures.indptr))

    def sample(self, n: int, rng: np.random.Generator, *, by: SamplingUnit = "relation") -> QuadrupletBatch:
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
        QuadrupletBatch

        Raises
        ------
        InputError
            n is negative, or `by` is neither of the two.
        """
        require(n >= 0, f"n is {n} but a number of quadruplets is 0 or more; ask for another number")
        if by not in get_args(SamplingUnit):
            raise InputError(
                f"quadruplets cannot be drawn by {by!r}; choose from {', '.join(map(repr, get_args(SamplingUnit)))}"
            )
        if by == "relation":
            relation_ids = rng.integers(len(self.relations), size=n)
        else:
            ends = np.cumsum(self.counts)
            relation_ids = np.searchsorted(ends, rng.integers(ends[-1], size=n), side="right")
        objects, parts = self._sample_pictures(relation_ids, rng)
        return QuadrupletBatch(objects, self.relations[relation_ids, 0], parts, self.relations[relation_ids, 1])

    def _sample_pictures(self, relation_ids: Int64, rng: np.random.Generator) -> tuple[Int64, Int64]:
        """Draw a picture of the object and one of the part for each relation."""
        # a pair of one picture with itself is drawn again: at most every second one, as one of the labels has
        # two pictures or more, so that there are about log2(n) rounds
        objects, parts = (self._sample_picture(self.relations[relation_ids, side], rng) for side in (0, 1))
        collisions = np.flatnonzero(objects == parts)
        while len(collisions):
            for side, pictures in enumerate((objects, parts)):
                pictures[collisions] = self._sample_picture(self.relations[relation_ids[collisions], side], rng)
            collisions = collisions[objects[collisions] == parts[collisions]]
        return objects, parts

    def _sample_picture(self, labels: Int32, rng: np.random.Generator) -> Int64:
        starts, ends = self._pictures.indptr[labels], self._pictures.indptr[labels + 1]
        return self._pictures.rows[rng.integers(starts, ends)]


def count_quadruplets(Y: Matrix, relations: npt.ArrayLike, *, rows: npt.ArrayLike | None = None) -> Int64:
    """Count the quadruplets of each relation, (n_relations,); parameters are those of `Quadruplets`.

    Examples
    --------
    >>> count_quadruplets(np.array([[1, 1, 0], [0, 1, 0]]), [(0, 1), (1, 2)])
    array([1, 0])
    """
    return _count_by_relation(group_images_by_label(Y, rows), check_relations(relations, Y.shape[1]))


class LabelIdPairs(NamedTuple):
    """Distinct pairs of labels by number, and the pairs left out: an unknown label, or one label twice."""

    ids: Int64  # (n, 2)
    left_out: list[Pair]


def convert_pairs_to_ids(pairs: Sequence[Pair], labels: Vocabulary) -> LabelIdPairs:
    """Convert pairs of label names to numbers.

    Examples
    --------
    >>> convert_pairs_to_ids([("car", "wheel"), ("car", "wing"), ("car", "wheel")], Vocabulary(["wheel", "car"]))
    LabelIdPairs(ids=array([[1, 0]]), left_out=[('car', 'wing')])
    """
    pairs = list(dict.fromkeys((normalise_label_name(first), normalise_label_name(second)) for first, second in pairs))
    usable = [pair for pair in pairs if pair[0] != pair[1] and all(end in labels for end in pair)]
    ids, usable_pairs = labels.ids([end for pair in usable for end in pair]).reshape(-1, 2), set(usable)
    return LabelIdPairs(ids, [pair for pair in pairs if pair not in usable_pairs])


def check_relations(relations: npt.ArrayLike, n_labels: int) -> Int32:
    """Validate relations and return them as an array (n_relations, 2).

    Raises
    ------
    InputError
        There is none, or one is not a pair of two labels below n_labels, or comes twice.
    """
    pairs = np.asarray(relations)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or pairs.dtype.kind not in "iu":
        problem = f"relations are of shape {pairs.shape} and {pairs.dtype}"
        raise InputError(f"{problem}; give pairs of whole numbers, the label of the object and that of the part")
    outside = np.flatnonzero(((pairs < 0) | (pairs >= n_labels)).any(axis=1))
    if len(outside):
        raise InputError(f"relation {tuple(pairs[outside[0]].tolist())} names a label outside 0 to {n_labels - 1}")
    self_relations = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(self_relations):
        raise InputError(
            f"relation {tuple(pairs[self_relations[0]].tolist())} makes a label its own part; leave it out"
        )
    unique_pairs, counts = np.unique(pairs, axis=0, return_counts=True)
    if counts.max() > 1:
        raise InputError(
            f"relation {tuple(unique_pairs[counts > 1][0].tolist())} comes {counts.max()} times; give each once"
        )
    return pairs.astype(np.int32)


def group_images_by_label(Y: Matrix, rows: npt.ArrayLike | None = None) -> ImagesByLabel:
    """Group the pictures, of all rows or of some, by label."""
    lists = list_positives(Y, Y.shape[1])
    entry_rows, labels = lists.rows, lists.labels
    if rows is not None:
        row_mask = np.zeros(lists.n_rows, bool)
        row_mask[np.asarray(rows)] = True
        entry_mask = row_mask[entry_rows]
        entry_rows, labels = entry_rows[entry_mask], labels[entry_mask]
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels, minlength=Y.shape[1])
    shared = bool(len(entry_rows) > 1 and (entry_rows[1:] == entry_rows[:-1]).any())
    return ImagesByLabel(np.concatenate([[0], np.cumsum(counts)]), entry_rows[order], shared)


def _count_by_relation(pictures: ImagesByLabel, relations: Int32) -> Int64:
    sizes = np.diff(pictures.indptr)
    counts: Int64 = sizes[relations[:, 0]] * sizes[relations[:, 1]]
    if not pictures.shared:
        return counts
    carries = np.zeros(pictures.rows.max() + 1, bool)
    last = -1
    for number in np.argsort(relations[:, 0], kind="stable"):  # sorted by object, whose pictures are then marked once
        object_label, part_label = relations[number]
        if object_label != last:
            carries[pictures.get_rows(last)] = False
            carries[pictures.get_rows(object_label)] = True
            last = object_label
        counts[number] -= np.count_nonzero(carries[pictures.get_rows(part_label)])
    return counts


def _refuse_empty(relations: Int32, counts: Int64, sizes: Int64) -> None:
    empty = relations[counts == 0]
    if not len(empty):
        return
    examples = ", ".join(
        f"{object_label} (pictures: {sizes[object_label]}) and {part_label} ({sizes[part_label]})"
        for object_label, part_label in empty[:3].tolist()
    )
    problem = f"{len(empty)} of {len(relations)} relations have no two different pictures, such as labels {examples}"
    raise InputError(f"{problem}; leave them out (split_quadruplets lists them)")
