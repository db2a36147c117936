"""Bounded buffer of earlier rows, replayed among new ones, so that a model does not forget.

Rehearsal ("experience replay") is the usual remedy against forgetting (Robins, "Catastrophic Forgetting, Rehearsal and
Pseudorehearsal", Connection Science 1995). A weighted reservoir chooses the rows (Efraimidis and Spirakis, "Weighted
random sampling with a reservoir", IPL 2006): each row has a ticket, drawn once from the exponential distribution, and
rows with the smallest ticket / weight stay. The weight is 1 / sqrt(rows so far) of the row's rarest label. So a label
with n rows gets about sqrt(n) / (sum of all sqrt) of the buffer, and rare labels stay. Replayed rows are drawn by the
inverse of that weight, which restores the original proportions.

A small buffer alone is overfitted, and the points drift with it. So after training every old point is averaged with its
previous position, weighted by its rows before and now: points between two solutions keep the quality of the first
(Wortsman et al., "Robust fine-tuning of zero-shot models", CVPR 2022).

New labels then rank too high, like classes that are learned later than others (Wu et al., "Large scale incremental
learning", CVPR 2019): among few replayed rows they are far more frequent than among all rows, and a high score for
every row is easier to learn than a difference from labels without rows. `refit_new_labels` trains only these once more,
against fixed points, in about the true proportions, and centred on the mean of all rows. There a new label scores like
an old one with as many rows, so it can only gain by what is special about its rows.

benchmarks/pages/later-labels.md has the figures of this and of other remedies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import csr_matrix

from wsabie.core.arrays import Array, Bool, Csr, Float32, Float64, Int64, Matrix, count_rows, iterate_slices
from wsabie.core.errors import require
from wsabie.core.label_lists import count_label_rows
from wsabie.embedding.joint_space import JointSpace
from wsabie.io.alignment import merge_columns
from wsabie.models.base.feature_matrix import FeatureMatrix, take_rows
from wsabie.models.base.hyperparameters import is_whole
from wsabie.models.base.training_rows import TrainingRows
from wsabie.storage.schema_validation import check_array, check_sparse_indices
from wsabie.training.trainer import Trainer
from wsabie.training.training_data import DrawnData, PairWeighting, RowBlock, TrainingData, build_targets

Size = int | Literal["auto"] | None
AUTO_BUFFER_BYTES = 4 << 20
"""Bytes of the buffer if its size is "auto"."""
REPLAY_RATIO = 4
"""Old rows for each new one in an epoch."""
MIN_REPLAYED = 1000
"""Fewest old rows in an epoch, if the buffer has as many."""
RARITY_EXPONENT = 0.5
"""Exponent: a row's weight is its rarest label's count to the power of -RARITY_EXPONENT; 0 keeps rows evenly."""
NEW_ROW_WEIGHT = 4
"""Weight of a new row relative to an old one when old points are averaged."""
REFIT_FACTOR = 2
"""Factor of the share of new rows when new labels are fitted again."""
MAX_ROWS = 100_000_000
_NAMES = ("labels/indptr", "labels/indices", "labels/values", "weights", "tickets", "label_counts", "met")


@dataclass(frozen=True)
class ReplayBuffer:
    """Earlier rows, scaled by the model.

    Attributes
    ----------
    rows : Csr or (n, width) float16
        Scaled rows; sparse ones have indices uint16 (uint32 beyond 65,536 features) and values float16.
    Y : csr_matrix (n, n_labels) int8
    weights : (n,) float32
        Sample weights.
    tickets : (n,) float32
        Random number of every row, drawn once.
    label_counts : (n_labels,) int64
        Rows of each label among all rows so far; a label with 0 is treated as new.
    feature_counts : (width,) int64
        Rows of each feature among all rows so far.
    n_seen : int
        Number of all rows so far.
    """

    rows: Any
    Y: Matrix
    weights: Float32
    tickets: Float32
    label_counts: Int64
    feature_counts: Int64
    n_seen: int

    @classmethod
    def empty(cls, inputs: FeatureMatrix, width: int, Y: Matrix) -> Self:
        """Return a buffer without rows, for scaled rows and labels such as these."""
        no_rows, no_weights = np.zeros(0, np.int64), np.zeros(0, np.float32)
        counts = np.zeros(Y.shape[1], np.int64), np.zeros(width, np.int64)
        return cls(_convert_to_half(take_rows(inputs, no_rows)), Y[no_rows], no_weights, no_weights, *counts, 0)

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def nbytes(self) -> int:
        """Bytes of the saved arrays."""
        return sum(int(array.nbytes) for array in self.tensors().values())

    def build_data(self, rows: TrainingRows, pair_weighting: PairWeighting, seed: int) -> TrainingData:
        """Return new and newly drawn old rows for every epoch.

        Visits of new and old rows are mixed in one random order.
        """

        def draw(epoch: int) -> RowBlock:
            old_ids = self._sample_rows(rows.targets.shape[0], np.random.default_rng([seed, 6, self.n_seen, epoch]))
            inputs = _stack_rows(rows.inputs, self._decode_rows(old_ids))
            return self._build_block(inputs, old_ids, rows.targets, rows.weights, pair_weighting)

        return DrawnData(draw)

    def build_point_data(
        self, rows: TrainingRows, pair_weighting: PairWeighting, seed: int, times: float
    ) -> TrainingData:
        """Return rows with given points, by number: the new ones, then all rows of the buffer.

        A new row weighs `times` its share among all rows so far, because only some old rows are drawn.
        """
        n_new = rows.targets.shape[0]

        def draw(epoch: int) -> RowBlock:
            old_ids = self._sample_rows(n_new, np.random.default_rng([seed, 8, self.n_seen, epoch]))
            share = np.float32(min(times * len(old_ids) / max(self.n_seen, 1), 1))
            weights = np.full(n_new, share) if rows.weights is None else share * rows.weights
            ids = np.append(np.arange(n_new), n_new + old_ids).astype(np.int32)
            return self._build_block(ids, old_ids, rows.targets, weights, pair_weighting)

        return DrawnData(draw)

    def _build_block(
        self, inputs: Any, old_ids: Int64, targets: Matrix, weights: Float32 | None, pair_weighting: PairWeighting
    ) -> RowBlock:
        """Return a block of new rows, followed by some old rows."""
        Y = _stack_labels(targets, self.Y[old_ids], targets.shape[1])
        new_weights = np.ones(targets.shape[0], np.float32) if weights is None else weights
        return RowBlock(inputs, build_targets(Y, np.append(new_weights, self.weights[old_ids]), pair_weighting))

    def _sample_rows(self, n_new: int, rng: np.random.Generator) -> Int64:
        """Draw rows to replay in about the proportions of all rows so far; return their numbers in order."""
        n = min(len(self), max(MIN_REPLAYED, REPLAY_RATIO * n_new))
        keys = rng.exponential(size=len(self)) * _compute_weights(self.Y, self.label_counts)
        return np.sort(np.argpartition(keys, n - 1)[:n]) if n else np.zeros(0, np.int64)

    def estimate_mean(self, points: Float32) -> Float32:
        """Estimate the mean point of all rows so far from the points of those in the buffer."""
        share = 1 / _compute_weights(self.Y, self.label_counts)
        mean: Float32 = (np.einsum("i,ij->j", share, points) / share.sum()).astype(np.float32)
        return mean

    def _decode_rows(self, row_ids: Int64 | None = None) -> FeatureMatrix:
        """Return some rows, or all, in full precision."""
        rows = self.rows if row_ids is None else take_rows(self.rows, row_ids)
        if isinstance(rows, Csr):
            return Csr(rows.indptr, rows.indices.astype(np.int32), rows.data.astype(np.float32))
        return np.asarray(rows, np.float32)

    def add_rows(self, inputs: FeatureMatrix, Y: Matrix, weights: Float32 | None, size: Size, seed: int) -> Self:
        """Return a buffer with more rows, at most `size` in all; rows of rare labels are preferred."""
        n_old, n_new = len(self), count_rows(inputs)
        new_weights = np.ones(n_new, np.float32) if weights is None else np.asarray(weights, np.float32)
        tickets = np.random.default_rng([seed, 7, self.n_seen]).exponential(size=n_new).astype(np.float32)
        merged = replace(
            self,
            Y=_stack_labels(self.Y, Y, Y.shape[1]),
            weights=np.append(self.weights, new_weights),
            tickets=np.append(self.tickets, tickets),
            label_counts=count_label_rows(Y) + _pad(self.label_counts, Y.shape[1]),
            feature_counts=self.feature_counts + _count_features(inputs, len(self.feature_counts)),
            n_seen=self.n_seen + n_new,
        )
        if size == "auto":
            size = max(1, AUTO_BUFFER_BYTES // _measure_row_bytes((self.rows, inputs), merged.Y))
        order = np.argsort(merged.tickets / _compute_weights(merged.Y, merged.label_counts), kind="stable")
        stored_rows = np.sort(order[:size])
        old_ids, new_ids = stored_rows[stored_rows < n_old], stored_rows[stored_rows >= n_old] - n_old
        rows = _stack_rows(take_rows(self.rows, old_ids), _convert_to_half(take_rows(inputs, new_ids)))
        weights, tickets = merged.weights[stored_rows], merged.tickets[stored_rows]
        return replace(merged, rows=rows, Y=merged.Y[stored_rows], weights=weights, tickets=tickets)

    def renumber_labels(self, current_ids: Int64) -> Self:
        """Return a buffer after merges and removals; `current_ids` has the new number of each label, or -1."""
        active_ids, n = np.flatnonzero(current_ids >= 0), len(current_ids)
        counts = np.zeros(n, np.int64)
        np.add.at(counts, current_ids[active_ids], _pad(self.label_counts, n)[active_ids])
        merged = merge_columns(_stack_labels(self.Y, self.Y[:0], n), current_ids, n)
        return replace(self, Y=merged, label_counts=counts)

    def tensors(self) -> dict[str, Array]:
        """Return the arrays by their names in a model folder."""
        labels = (self.Y.indptr.astype(np.int64), self.Y.indices.astype(np.int32), self.Y.data.astype(np.int8))
        columns = (*labels, self.weights, self.tickets, self.label_counts, self.feature_counts)
        arrays = dict(zip(_NAMES, columns, strict=True))
        if isinstance(self.rows, Csr):
            arrays |= {f"rows/{name}": part for name, part in self.rows._asdict().items()}
        else:
            arrays["rows"] = self.rows
        return {f"replay/{name}": array for name, array in arrays.items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Array], n_seen: int, width: int, n_labels: int) -> Self:
        """Restore a buffer from the arrays of `tensors`; ValueError if they do not agree."""
        weights = check_array(tensors, "replay/weights", "float32", (None,))
        n = len(weights)
        tickets = check_array(tensors, "replay/tickets", "float32", (n,))
        label_counts = check_array(tensors, "replay/label_counts", "int64", (None,), upper_bound=1 << 53)
        feature_counts = check_array(tensors, "replay/met", "int64", (width,), upper_bound=1 << 53)
        if len(label_counts) > n_labels or not (np.isfinite(weights).all() and np.isfinite(tickets).all()):
            raise ValueError("the sizes of replay/label_counts do not agree with the others, or a number is not finite")
        indptr, indices = check_sparse_indices(tensors, "replay/labels", ("int64", "int32"), (n, len(label_counts)))
        values = check_array(tensors, "replay/labels/values", "int8", indices.shape)
        Y = csr_matrix((values, indices, indptr), shape=(n, len(label_counts)))
        if "replay/rows" in tensors:
            rows: Any = check_array(tensors, "replay/rows", "float16", (n, width))
        else:
            indptr, indices = check_sparse_indices(tensors, "replay/rows", ("int64", "uint16 uint32"), (n, width))
            rows = Csr(indptr, indices, check_array(tensors, "replay/rows/data", "float16", indices.shape))
        return cls(rows, Y, weights, tickets, label_counts, feature_counts, n_seen)


def average_weights(
    space: JointSpace, initial_space: JointSpace, old_buffer: ReplayBuffer, new_buffer: ReplayBuffer
) -> None:
    """Average the points of a space with their initial positions, weighted by their rows before and since.

    New labels and features without earlier rows keep the points of training.
    """
    labels = _compute_old_share(_pad(old_buffer.label_counts, len(new_buffer.label_counts)), new_buffer.label_counts)
    features = _compute_old_share(old_buffer.feature_counts, new_buffer.feature_counts)
    space.features += features[:, None] * (initial_space.features - space.features)
    space.labels += labels[:, None] * (initial_space.labels - space.labels)
    space.bias += labels * (initial_space.bias - space.bias)


def refit_new_labels(
    space: JointSpace,
    old_buffer: ReplayBuffer,
    new_buffer: ReplayBuffer,
    rows: TrainingRows,
    pair_weighting: PairWeighting,
    trainer: Trainer,
) -> None:
    """Fit only the new labels again, so that they rank correctly among the old ones.

    Parameters
    ----------
    space : JointSpace
        Space after training and `average_weights`.
    old_buffer, new_buffer : ReplayBuffer
        The buffer without the new rows, and with them.
    rows : TrainingRows
        The new rows.
    trainer : Trainer
        Trainer of the main training, whose settings and progress are used here too.
    """
    new, old = new_buffer.label_counts > 0, old_buffer.label_counts > 0
    new[: len(old)] &= ~old
    if not (new.any() and old.any()):
        return
    new_points, old_points = space.compute_points(rows.inputs), space.compute_points(old_buffer._decode_rows())
    inner = space.similarity == "dot"  # for other similarities a mean point has no mean score
    centre = old_buffer.estimate_mean(old_points) if inner else np.zeros_like(new_points[0])
    # einsum, because threads of a library would change the sums
    level = np.einsum("ij,j->i", space.labels, centre) + space.bias
    level[new] = estimate_score_level(level, new_buffer.label_counts, old, new)
    centred_points = np.concatenate([new_points, old_points])
    centred_points -= centre
    label_space = replace(space, features=centred_points, labels=space.labels.copy(), bias=level, frozen=(True, False))
    data = old_buffer.build_point_data(rows, pair_weighting, trainer.settings.seed, REFIT_FACTOR if inner else 1)
    Trainer(trainer.settings, progress=trainer.progress).train(label_space, data)
    space.labels[new] = label_space.labels[new]
    space.bias[new] = label_space.bias[new] - np.einsum("ij,j->i", label_space.labels[new], centre)


def estimate_score_level(level: Float32, row_counts: Int64, old: Bool, new: Bool) -> Float32:
    """Estimate mean scores for new labels from those of old labels with as many rows.

    Old labels are averaged within octaves of row counts (2 to 3, 4 to 7, ...), with linear interpolation between these
    means, because frequent labels rightly score higher for every row.

    Parameters
    ----------
    level : (n_labels,) float32
        Mean score of each label.
    row_counts : (n_labels,) int64
        Rows of each label.
    old : (n_old,) bool
        True for old labels, at least one.
    new : (n_labels,) bool

    Examples
    --------
    >>> level, seen = np.array([1.0, 2.0, 3.0, 0.0], np.float32), np.array([4, 4, 16, 8])
    >>> estimate_score_level(level, seen, np.array([True, True, True]), seen == 8).tolist()
    [2.25]
    """
    x, y = np.log2(row_counts[: len(old)][old]), level[: len(old)][old]
    _, octave, n = np.unique(x.astype(np.int64), return_inverse=True, return_counts=True)
    xs, ys = np.bincount(octave, x) / n, np.bincount(octave, y) / n
    return np.interp(np.log2(row_counts[new]), xs, ys).astype(np.float32)


def _compute_old_share(old_counts: Int64, new_counts: Int64) -> Float32:
    """Return the weight of a point's old position: 0 without earlier rows, 1 without new ones."""
    return (old_counts / np.maximum(old_counts + NEW_ROW_WEIGHT * (new_counts - old_counts), 1)).astype(np.float32)


def check_size(size: Any) -> None:
    """Raise InputError for an invalid size of a buffer."""
    is_count = is_whole(size) and 1 <= size <= MAX_ROWS
    message = f'replay is {size!r}; choose a number of rows from 1 to {MAX_ROWS:,}, "auto", or None for no buffer'
    require(size is None or is_count or (isinstance(size, str) and size == "auto"), message)


def _measure_row_bytes(rows: Sequence[Any], Y: Matrix) -> int:
    """Return the mean bytes of a row in the buffer, measured on some rows and their labels."""
    n = max(Y.shape[0], 1)
    narrow = sum(4 * len(part.data) / n for part in rows) + 8 if isinstance(rows[0], Csr) else 2 * rows[0].shape[1]
    return int(narrow + 5 * Y.nnz / n + 16)


def _convert_to_half(inputs: FeatureMatrix) -> Any:
    """Return rows in half precision; values beyond its range are clipped."""
    reach = np.finfo(np.float16).max
    if not isinstance(inputs, Csr):
        return np.clip(inputs, -reach, reach).astype(np.float16)
    narrow = np.uint16 if inputs.indices.max(initial=0) < 1 << 16 else np.uint32
    return Csr(inputs.indptr, inputs.indices.astype(narrow), np.clip(inputs.data, -reach, reach).astype(np.float16))


def _stack_rows(first: Any, second: Any) -> Any:
    """Stack rows; of two index types the larger is used."""
    if not isinstance(first, Csr):
        return np.concatenate([first, second])
    indptr = np.append(first.indptr, first.indptr[-1] + second.indptr[1:]).astype(np.int64)
    return Csr(indptr, *(np.append(a, b) for a, b in zip(first[1:], second[1:], strict=True)))


def _stack_labels(first: Matrix, second: Matrix, n_labels: int) -> Matrix:
    """Stack label matrices, with so many columns."""
    indptr = np.append(first.indptr, first.indptr[-1].astype(np.int64) + second.indptr[1:])
    parts = [np.append(getattr(first, name), getattr(second, name)) for name in ("data", "indices")]
    return csr_matrix((*parts, indptr), (first.shape[0] + second.shape[0], n_labels))


def _pad(counts: Int64, n_labels: int) -> Int64:
    """Counts of so many labels; new ones have 0."""
    return np.append(counts, np.zeros(n_labels - len(counts), np.int64))


def _count_features(inputs: FeatureMatrix, width: int) -> Int64:
    if not isinstance(inputs, Csr):
        return np.full(width, len(inputs), np.int64)
    counts = np.zeros(width, np.int64)
    for part in iterate_slices(len(inputs.indices)):
        counts += np.bincount(inputs.indices[part], minlength=width)
    return counts


def _compute_weights(Y: Matrix, label_counts: Int64) -> Float64:
    """Return the reservoir weight of each row, (n,) float64; no label counts as the commonest one."""
    each = np.maximum(label_counts, 1.0) ** -RARITY_EXPONENT
    weight = np.full(Y.shape[0], each.min(initial=1.0))
    true = Y.data > 0
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    np.maximum.at(weight, rows[true], each[Y.indices[true]])
    return weight
