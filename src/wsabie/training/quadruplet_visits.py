"""Visits of an epoch: quadruplets drawn from labelled pictures and relations between labels.

A quadruplet is an object picture with its label and a part picture with its label, where the labels are related. One of
the labels is ranked and the others are given (Mesnil et al. 2014, section 4.3). The other picture does not touch the
ranked label and falls out of the step (`wsabie.kernels.embedding.relation_patterns`). Drawing quadruplets therefore
means: every annotated pair of picture and label comes once an epoch, with a random relation of the label, as object or
as part. Only the draws of one epoch are stored.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, vstack

from wsabie.core.arrays import Bool, Csr, Float32, Int64, Matrix
from wsabie.core.validation import build_incidence
from wsabie.embedding.protocols import ComposedInputs, EntityInputs, RelationEnds
from wsabie.training.samplers import PAIRS_PER_BLOCK
from wsabie.training.training_data import PairWeighting, RowBlock, TrainingData, build_targets
from wsabie.vocabulary.label_quadruplets import group_images_by_label

NEGATIVES = 256
"""Pictures encoded for a block of quadruplets, to draw negatives from."""
MAX_HIDDEN = 1 << 24
"""Limit of hidden pictures, summed over an epoch's quadruplets; beyond it quadruplets are left out."""
_MAX_TURNS, _MAX_BLOCKS = 32, 8


class ImageVisits:
    """Quadruplets of a collection whose other picture is ranked.

    Parameters
    ----------
    inputs : Csr or (n, n_features) float32
        Scaled rows.
    Y : csr_matrix (n, n_labels)
    weights : (n,) float32
        Weight of a quadruplet of each picture.
    picture_weight : float
        Weight s of the edge between the two pictures.
    """

    def __init__(self, inputs: EntityInputs, Y: Matrix, weights: Float32, picture_weight: float) -> None:
        self.query_inputs, self.weights = _scale_rows(inputs, picture_weight), weights
        self.pictures = group_images_by_label(Y)
        self.n = Y.shape[0]
        label_of_image = np.repeat(np.arange(Y.shape[1]), np.diff(self.pictures.indptr))
        self._keys = label_of_image * self.n + self.pictures.rows  # sorted
        pictures = RelationEnds("pictures", "items", "items", inputs, NEGATIVES)
        self.ends = RelationEnds("labels", "items", "labels"), pictures
        self.blocks_per_turn = max(1, min(_MAX_BLOCKS, len(label_of_image) // (PAIRS_PER_BLOCK * _MAX_TURNS * 2)))

    def __call__(self, images: Int64, labels: Int64, rng: np.random.Generator) -> RowBlock:
        """Build a block that ranks, for each picture and label, a random picture of the label.

        All pictures of the label and the query picture are hidden, so that none of them is a violator.
        """
        examples = self._select_examples(images, labels, rng)
        images, labels = images[examples], labels[examples]
        row_ids, shape = np.arange(len(images)), (len(images), self.n)
        Y = build_incidence(row_ids, self._sample_images(images, labels, rng), shape, np.int8)
        indptr, rows, _ = self.pictures
        of_labels = csr_matrix((np.ones(len(rows), np.int8), rows, indptr), (len(indptr) - 1, self.n))
        hidden = of_labels[labels] + build_incidence(row_ids, images, shape, np.int8)
        targets = build_targets(Y, self.weights[images], "pairs", hidden=hidden)
        image_ids = images.astype(np.int32)
        sides = ComposedInputs(self.query_inputs, image_ids, image_ids[targets.rows], labels.astype(np.int32))
        return RowBlock(sides, targets, self.ends[1], 1.0, self.blocks_per_turn)

    def _select_examples(self, images: Int64, labels: Int64, rng: np.random.Generator) -> Int64:
        """Select examples with another picture, as many as `MAX_HIDDEN` allows."""
        sizes = np.diff(self.pictures.indptr)[labels]
        examples = rng.permutation(np.flatnonzero(sizes - _locate(self._keys, labels * self.n + images)[1] > 0))
        return np.sort(examples[np.cumsum(sizes[examples] + 1) <= MAX_HIDDEN])

    def _sample_images(self, images: Int64, labels: Int64, rng: np.random.Generator) -> Int64:
        """Draw one picture of each label, uniformly, other than the query picture."""
        (position, is_member), starts = _locate(self._keys, labels * self.n + images), self.pictures.indptr
        choices = starts[labels + 1] - starts[labels] - is_member
        index = starts[labels] + np.minimum((rng.random(len(images)) * choices).astype(np.int64), choices - 1)
        return np.asarray(self.pictures.rows[index + (is_member & (index >= position))])


def _locate(sorted_keys: Int64, keys: Int64) -> tuple[Int64, Bool]:
    """Return the place of each key among the sorted ones, and whether it is one of them."""
    positions = np.searchsorted(sorted_keys, keys)
    return positions, sorted_keys[np.minimum(positions, len(sorted_keys) - 1)] == keys


def _scale_rows(inputs: Any, factor: float) -> Any:
    """Multiply rows by a number."""
    if isinstance(inputs, Csr):
        return inputs._replace(data=inputs.data * np.float32(factor))
    return inputs * np.float32(factor)


class QuadrupletVisits(TrainingData):
    """Epochs of a collection; drawn again for each.

    A pair whose label has no relation, or whose relation has no other picture, is visited without a partner.

    Parameters
    ----------
    inputs : Csr or (n, n_features) float32
        Scaled rows.
    Y : csr_matrix (n, n_labels)
        Values 1 and -1, sorted indices.
    relations : (m, 2) int64
        Numbers of an object label and a part label.
    weights : (n,) float32 or None
    positives : {"mean", "pairs"}
        Weight of a pair: 1 / labels of its picture, or 1.
    strict : bool
        Use only quadruplets with another picture of the other label in Y; False for updates of a trained model, which
        has seen other pictures.
    picture_weight : float
        Weight s of the edge between the two pictures. Above 0 a second block ranks the other picture of the
        quadruplets of the first.
    """

    def __init__(
        self,
        inputs: EntityInputs,
        Y: Matrix,
        relations: Int64,
        weights: Float32 | None,
        pair_weighting: PairWeighting,
        seed: int,
        *,
        strict: bool = True,
        picture_weight: float = 0.0,
    ) -> None:
        self.inputs, self.Y, self.seed, self.strict = inputs, Y, seed, strict
        self.relations = _RelationTable(relations, Y.shape[1])
        true = Y > 0
        counts = np.diff(true.indptr)
        weights = np.ones(len(counts), np.float32) if weights is None else weights
        self.weights = weights / np.maximum(counts, 1) if pair_weighting == "mean" else weights
        self.image = np.repeat(np.arange(len(counts)), counts)
        self.label = true.indices.astype(np.int64)
        self._keys = self.image * Y.shape[1] + self.label  # sorted, as Y is
        self._frequency = np.bincount(self.label, minlength=Y.shape[1])
        self._pictures = ImageVisits(inputs, Y, self.weights, picture_weight) if picture_weight else None
        n_image_pairs = 0 if self._pictures is None else int(self.relations.counts[self.label].astype(bool).sum())
        self.n_pairs = len(self.label) + n_image_pairs

    def read_epoch(self, epoch: int) -> list[RowBlock]:
        """Draw the blocks of an epoch.

        The first holds pictures with labels ranked without a partner, then drawn (picture, other label). A second one
        exists if pictures are ranked.
        """
        rng = np.random.default_rng([self.seed, 2, epoch])
        other_labels, as_object = self.relations.draw(self.label, rng)
        related = np.flatnonzero((other_labels >= 0) & self._has_other_image(other_labels))
        labels = self._build_label_block(related, other_labels, as_object)
        if self._pictures is None:
            return [labels]
        pictures = self._pictures
        # it takes turns with the other block
        labels = labels._replace(ends=pictures.ends[0], blocks_per_turn=pictures.blocks_per_turn)
        return [labels, pictures(self.image[related], other_labels[related], rng)]

    def _build_label_block(self, related: Int64, other_labels: Int64, as_object: Bool) -> RowBlock:
        unrelated = np.setdiff1d(np.arange(len(self.label)), related)
        pictures = np.unique(self.image[unrelated])
        images = self.image[related]
        unrelated_targets = build_incidence(self.image[unrelated], self.label[unrelated], self.Y.shape, np.int8)
        shape = len(related), self.Y.shape[1]
        related_targets = build_incidence(np.arange(len(related)), self.label[related], shape, np.int8)
        related_labels = self._list_related_labels(images, other_labels[related], as_object[related])
        hidden = vstack([self.Y[pictures] > 0, related_labels]).tocsr()
        images = np.concatenate([pictures, images])
        targets = vstack([unrelated_targets[pictures], related_targets]).tocsr().astype(np.int8)
        targets = (targets - (self.Y[images] < 0).astype(np.int8)).tocsr()
        targets.sort_indices()
        training_targets = build_targets(targets, self.weights[images], "pairs", hidden=hidden.astype(np.int8))
        context_labels = np.concatenate([np.full(len(pictures), -1), other_labels[related]]).astype(np.int32)
        image_ids = images.astype(np.int32)
        inputs = ComposedInputs(self.inputs, image_ids, image_ids[training_targets.rows], context_labels)
        return RowBlock(inputs, training_targets)

    def _has_other_image(self, other_labels: Int64) -> Bool:
        """Return whether another picture carries the other label."""
        if not self.strict:
            return np.ones(len(other_labels), bool)
        is_annotated = self._is_annotated(self.image, np.maximum(other_labels, 0))
        return self._frequency[np.maximum(other_labels, 0)] - is_annotated > 0

    def _is_annotated(self, images: Int64, labels: Int64) -> Bool:
        return _locate(self._keys, images * self.Y.shape[1] + labels)[1]

    def _list_related_labels(self, images: Int64, other_labels: Int64, as_object: Bool) -> Matrix:
        """Return labels of a picture with the same relation, (examples, n_labels), which are not violators."""
        example, label = self.relations.find_alternatives(other_labels, as_object)
        true = self._is_annotated(images[example], label)
        shape = len(other_labels), self.Y.shape[1]
        return build_incidence(example[true], label[true], shape, np.int8)


class _RelationTable:
    """Relations by label: first those with the label as object, then those with it as part."""

    def __init__(self, relations: Int64, n_labels: int) -> None:
        objects, parts = relations.T
        labels, partners = np.concatenate([objects, parts]), np.concatenate([parts, objects])
        as_object = np.arange(len(labels)) < len(objects)
        order = np.lexsort((partners, ~as_object, labels))
        self.partner, self.as_object = partners[order], as_object[order]
        self.starts = np.searchsorted(labels[order], np.arange(n_labels + 1))
        self.counts = np.diff(self.starts)
        self.n_as_object = np.bincount(objects, minlength=n_labels)

    def draw(self, labels: Int64, rng: np.random.Generator) -> tuple[Int64, Bool]:
        """Draw a relation of each label: (other label or -1, whether the label is the object)."""
        counts = self.counts[labels]
        index = self.starts[labels] + (rng.random(len(labels)) * counts).astype(np.int64)
        index = np.minimum(index, len(self.partner) - 1)
        return np.where(counts > 0, self.partner[index], -1), self.as_object[index]

    def find_alternatives(self, other_labels: Int64, as_object: Bool) -> tuple[Int64, Int64]:
        """Return (example, label) of all labels that are objects (`as_object`) or parts of the other label."""
        middle = self.starts[other_labels] + self.n_as_object[other_labels]
        first = np.where(as_object, middle, self.starts[other_labels])
        last = np.where(as_object, self.starts[other_labels + 1], middle)
        counts = last - first
        example = np.repeat(np.arange(len(other_labels)), counts)
        index = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
        return example, self.partner[index]
