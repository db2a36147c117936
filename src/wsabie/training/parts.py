"""From pictures with labels and relations between labels to what the loops visit: an epoch of drawn quadruplets.

A quadruplet is an object picture and its label, a part picture and its label, where the labels are related; one of the
labels is to be ranked, the rest is given ([P] section 4.3). The other picture does not touch the ranked label, so it
falls out of the step (`wsabie.kernels.beside`), and drawing quadruplets comes to this: every annotated pair of picture
and label comes once an epoch, with a relation of the label drawn anew, be the label its object or its part. Nothing is
laid out but one epoch's draws.
"""

import numpy as np

from wsabie.base.arrays import Bool, Float32, Int64, Matrix
from wsabie.space.protocol import Inputs, Sides
from wsabie.training.part_pictures import PictureVisits
from wsabie.training.targets import Positives, RowBlock, build_targets


class QuadrupletVisits:
    """The epochs of a collection; called with an epoch's number, as `Trainer.train` does.

    A pair whose label is in no relation, or for whose relation there is no other picture, is visited by itself.

    Parameters
    ----------
    inputs : Csr or (n, n_features) float32
        Scaled rows.
    Y : csr_matrix (n, n_labels)
        Of 1 and -1, sorted.
    relations : (m, 2) int64
        Numbers of an object label and a part label.
    weights : (n,) float32 or None
    positives : {"mean", "pairs"}
        A pair weighs 1 / labels of its picture, or 1.
    strict : bool
        No quadruplet without another picture of the other label among these; False when a trained model goes on, which
        has seen others.
    picture_weight : float
        s: what the edge between the two pictures counts. Above 0 there is a second block, which ranks the other picture
        of the quadruplets of the first (`wsabie.training.part_pictures`).
    """

    def __init__(
        self,
        inputs: Inputs,
        Y: Matrix,
        relations: Int64,
        weights: Float32 | None,
        positives: Positives,
        seed: int,
        *,
        strict: bool = True,
        picture_weight: float = 0.0,
    ) -> None:
        self.inputs, self.Y, self.seed, self.strict = inputs, Y, seed, strict
        self.relations = _Relations(relations, Y.shape[1])
        true = Y > 0
        counts = np.diff(true.indptr)
        weights = np.ones(len(counts), np.float32) if weights is None else weights
        self.weights = weights / np.maximum(counts, 1) if positives == "mean" else weights
        self.who = np.repeat(np.arange(len(counts)), counts)
        self.label = true.indices.astype(np.int64)
        self._keys = self.who * Y.shape[1] + self.label  # sorted, as Y is
        self._frequency = np.bincount(self.label, minlength=Y.shape[1])
        self._pictures = PictureVisits(inputs, Y, self.weights, picture_weight) if picture_weight else None

    @property
    def n_pairs(self) -> int:
        """Pairs that an epoch visits; where pictures are ranked, the most that it may visit."""
        asked = 0 if self._pictures is None else int(self.relations.counts[self.label].astype(bool).sum())
        return len(self.label) + asked

    def __call__(self, epoch: int) -> list[RowBlock]:
        """One block: pictures with the labels that are ranked by themselves, then drawn (picture, other label).

        And one more where pictures are ranked.
        """
        rng = np.random.default_rng([self.seed, 2, epoch])
        other, as_object = self.relations.draw(self.label, rng)
        beside = np.flatnonzero((other >= 0) & self._elsewhere(other))
        labels = self._labels_ranked(beside, other, as_object)
        if self._pictures is None:
            return [labels]
        return [self._pictures.beside(labels), self._pictures(self.who[beside], other[beside], rng)]

    def _labels_ranked(self, beside: Int64, other: Int64, as_object: Bool) -> RowBlock:
        from scipy.sparse import csr_matrix, vstack

        alone = np.setdiff1d(np.arange(len(self.label)), beside)
        pictures = np.unique(self.who[alone])
        who, n_labels = self.who[beside], self.Y.shape[1]
        ones = np.ones(len(beside), np.int8)
        by_themselves = csr_matrix((np.ones(len(alone), np.int8), (self.who[alone], self.label[alone])), self.Y.shape)
        drawn = csr_matrix((ones, self.label[beside], np.arange(len(beside) + 1)), (len(beside), n_labels))
        known = vstack([self.Y[pictures] > 0, self._also_true(who, other[beside], as_object[beside])]).tocsr()
        who = np.concatenate([pictures, who])
        targets = vstack([by_themselves[pictures], drawn]).tocsr().astype(np.int8)
        targets = (targets - (self.Y[who] < 0).astype(np.int8)).tocsr()
        targets.sort_indices()
        made = build_targets(targets, self.weights[who], "pairs", hidden=known.astype(np.int8))
        others = np.concatenate([np.full(len(pictures), -1), other[beside]])
        who32 = who.astype(np.int32)
        return RowBlock(Sides(self.inputs, who32, who32[made.rows], others.astype(np.int32)), made)

    def _elsewhere(self, other: Int64) -> Bool:
        """Whether another picture carries the other label."""
        if not self.strict:
            return np.ones(len(other), bool)
        own = self._annotated(self.who, np.maximum(other, 0))
        return self._frequency[np.maximum(other, 0)] - own > 0

    def _annotated(self, who: Int64, labels: Int64) -> Bool:
        keys = who * self.Y.shape[1] + labels
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        found: Bool = self._keys[at] == keys
        return found

    def _also_true(self, who: Int64, other: Int64, as_object: Bool) -> Matrix:
        """Labels of a picture that have the relation to the other label too, (examples, n_labels): no violators."""
        from scipy.sparse import csr_matrix

        example, label = self.relations.with_same(other, as_object)
        true = self._annotated(who[example], label)
        shape = len(other), self.Y.shape[1]
        return csr_matrix((np.ones(int(true.sum()), np.int8), (example[true], label[true])), shape)


class _Relations:
    """Relations by label, from both ends: those where it is the object, then those where it is the part."""

    def __init__(self, relations: Int64, n_labels: int) -> None:
        objects, parts = relations.T
        own, other = np.concatenate([objects, parts]), np.concatenate([parts, objects])
        as_object = np.arange(len(own)) < len(objects)
        order = np.lexsort((other, ~as_object, own))
        self.other, self.as_object = other[order], as_object[order]
        self.starts = np.searchsorted(own[order], np.arange(n_labels + 1))
        self.counts = np.diff(self.starts)
        self.n_as_object = np.bincount(objects, minlength=n_labels)

    def draw(self, labels: Int64, rng: np.random.Generator) -> tuple[Int64, Bool]:
        """A relation of each label, all equally likely: (the other label, -1 where there is none; as its object)."""
        counts = self.counts[labels]
        at = self.starts[labels] + (rng.random(len(labels)) * counts).astype(np.int64)
        at = np.minimum(at, len(self.other) - 1)
        return np.where(counts > 0, self.other[at], -1), self.as_object[at]

    def with_same(self, other: Int64, as_object: Bool) -> tuple[Int64, Int64]:
        """(example, label) of all labels that are objects of the other label (`as_object`), or parts of it."""
        first = np.where(as_object, self.starts[other] + self.n_as_object[other], self.starts[other])
        last = np.where(as_object, self.starts[other + 1], self.starts[other] + self.n_as_object[other])
        counts = last - first
        example = np.repeat(np.arange(len(other)), counts)
        at = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
        return example, self.other[at]
