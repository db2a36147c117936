"""A bounded buffer of earlier rows that are seen again beside new ones, so that a model keeps what it knew.

Rehearsal ("experience replay") is the plain remedy against forgetting (Robins, "Catastrophic Forgetting, Rehearsal and
Pseudorehearsal", Connection Science 1995). Which rows stay is a weighted reservoir (Efraimidis and Spirakis, "Weighted
random sampling with a reservoir", IPL 2006): a row has a ticket, drawn once from the exponential law, and those stay
whose ticket / weight is smallest. The weight is 1 / sqrt(rows seen so far) of its rarest label, so that of a label with
n rows about sqrt(n) / (sum of all sqrt) of the buffer are kept and rare labels stay. When rows are seen again they are
drawn by the inverse of that weight, which brings the old proportions back.

A small buffer alone is learnt by heart and the points wander off with it. So after training every old point is the mean
of where it was and where it came to, weighted by the rows that it has seen before and now: points between two solutions
keep what the first knew (Wortsman et al., "Robust fine-tuning of zero-shot models", CVPR 2022).

New labels then stand too far to the front, as classes do that are learnt after others (Wu et al., "Large scale
incremental learning", CVPR 2019): beside so few old rows they came far more often than among all that went by, and it
is easier to score high everywhere than to be told from labels whose rows are gone. `seat` has them alone move once
more, against points that stay, in about the true proportions, and around the mean of all rows: there a new label
scores what an old one with as many rows does, so that it can only gain by what its rows have of their own.
docs/streams.md has the figures of this and of other remedies.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from wsabie.base.arrays import Bool, Csr, Float32, Int64, Matrix
from wsabie.base.mapped import parts
from wsabie.base.validation import require
from wsabie.models.inputs import Inputs, check_lists, n_rows, take_rows
from wsabie.sources.align import fold_columns
from wsabie.space.joint import JointSpace
from wsabie.storage.schema import check_array
from wsabie.training.targets import Positives, RowBlock, build_targets
from wsabie.training.trainer import Blocks, Trainer

Size = int | Literal["auto"] | None
BYTES = 4 << 20
"""What "auto" lets the buffer hold."""
REPLAYED = 4
"""Old rows beside each new one in an epoch."""
FEWEST = 1000
"""Old rows in an epoch, however few the new ones are, as far as there are so many."""
BALANCE = 0.5
"""A row's weight is its rarest label's count to the power of minus this; 0 keeps rows evenly."""
NEW = 4
"""How many times a new row counts as much as an old one when old points are held."""
SEATED = 2
"""How many times their share new rows count when new labels find their place around a mean."""
MOST = 100_000_000
_NAMES = ("labels/indptr", "labels/indices", "labels/values", "weights", "tickets", "seen", "met")


@dataclass(frozen=True)
class Memory:
    """Earlier rows as a model scales them.

    Attributes
    ----------
    rows : Csr or (n, width) float16
        Scaled rows; of sparse ones indices are uint16 (uint32 beyond 65,536 features) and values float16.
    Y : csr_matrix (n, n_labels) int8
    weights : (n,) float32
        Sample weights.
    tickets : (n,) float32
        Drawn once for every row.
    seen : (n_labels,) int64
        Rows of each label in all that went by; 0 of one that no row had, which is as new.
    met : (width,) int64
        Rows of each feature in these.
    n_seen : int
        All rows that went by.
    """

    rows: Any
    Y: Matrix
    weights: Float32
    tickets: Float32
    seen: Int64
    met: Int64
    n_seen: int

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, as they are saved."""
        return sum(int(array.nbytes) for array in self.tensors().values())

    def beside(
        self, inputs: Inputs, targets: Matrix, weights: Float32 | None, positives: Positives, seed: int
    ) -> tuple[Blocks, int]:
        """What epochs go over: the new rows and old ones among them, drawn anew for every epoch; pairs in the first.

        The visits of a block come in one random order, so that a step sees both.
        """

        def block(epoch: int) -> RowBlock:
            old = self._drawn(n_rows(inputs), np.random.default_rng([seed, 6, self.n_seen, epoch]))
            return self._block(_stacked(inputs, self._opened(old)), old, targets, weights, positives)

        return _one_block(block)

    def beside_points(
        self, n_new: int, targets: Matrix, weights: Float32 | None, positives: Positives, seed: int, times: float
    ) -> tuple[Blocks, int]:
        """The same of rows whose points are given, by number: the new ones, then all of the buffer.

        A new row weighs less than an old one, as there are more old ones than are drawn, but `times` its share.
        """

        def block(epoch: int) -> RowBlock:
            old = self._drawn(n_new, np.random.default_rng([seed, 8, self.n_seen, epoch]))
            share = np.float32(min(times * len(old) / max(self.n_seen, 1), 1))
            own = np.full(n_new, share) if weights is None else share * np.asarray(weights, np.float32)
            ids = np.append(np.arange(n_new), n_new + old).astype(np.int32)
            return self._block(ids, old, targets, own, positives)

        return _one_block(block)

    def _block(
        self, inputs: Any, old: Int64, targets: Matrix, weights: Float32 | None, positives: Positives
    ) -> RowBlock:
        """New rows and some of the old ones behind them."""
        Y = _below(targets, self.Y[old], targets.shape[1])
        own = np.ones(targets.shape[0], np.float32) if weights is None else weights
        return RowBlock(inputs, build_targets(Y, np.append(own, self.weights[old]), positives))

    def _drawn(self, n_new: int, rng: np.random.Generator) -> Int64:
        """Numbers of rows to see again, in their order, in about the proportions of all that went by."""
        n = min(len(self), max(FEWEST, REPLAYED * n_new))
        keys = rng.exponential(size=len(self)) * _weight(self.Y, self.seen)
        return np.sort(np.argpartition(keys, n - 1)[:n]) if n else np.zeros(0, np.int64)

    def mean_of(self, points: Float32) -> Float32:
        """The mean point of all rows that went by, from the points of those that are kept."""
        share = 1 / _weight(self.Y, self.seen)
        mean: Float32 = (np.einsum("i,ij->j", share, points) / share.sum()).astype(np.float32)
        return mean

    def _opened(self, chosen: Int64 | None = None) -> Inputs:
        """Some rows, or all, in full precision."""
        some = self.rows if chosen is None else take_rows(self.rows, chosen)
        if isinstance(some, Csr):
            return Csr(some.indptr, some.indices.astype(np.int32), some.data.astype(np.float32))
        return np.asarray(some, np.float32)

    def after(self, inputs: Inputs, Y: Matrix, weights: Float32 | None, size: Size, seed: int) -> Self:
        """With more rows, and no more than `size` in all; those of rare labels stay sooner."""
        n_old, n_new = len(self), n_rows(inputs)
        own = np.ones(n_new, np.float32) if weights is None else np.asarray(weights, np.float32)
        tickets = np.random.default_rng([seed, 7, self.n_seen]).exponential(size=n_new).astype(np.float32)
        both = replace(
            self,
            Y=_below(self.Y, Y, Y.shape[1]),
            weights=np.append(self.weights, own),
            tickets=np.append(self.tickets, tickets),
            seen=_rows_of_labels(Y) + np.append(self.seen, np.zeros(Y.shape[1] - len(self.seen), np.int64)),
            met=self.met + _rows_of_features(inputs, len(self.met)),
            n_seen=self.n_seen + n_new,
        )
        room = max(1, BYTES // _bytes_of_row((self.rows, inputs), both.Y)) if size == "auto" else int(size or 0)
        kept = np.argsort(both.tickets / _weight(both.Y, both.seen), kind="stable")[:room]
        kept.sort()
        old, new = kept[kept < n_old], kept[kept >= n_old] - n_old
        rows = _stacked(take_rows(self.rows, old), _halved(take_rows(inputs, new)))
        return replace(both, rows=rows, Y=both.Y[kept], weights=both.weights[kept], tickets=both.tickets[kept])

    def following(self, now: Int64) -> Self:
        """With labels merged or removed: `now` says what each became, -1 for none."""
        there, n = np.flatnonzero(now >= 0), len(now)
        seen, before = np.zeros(n, np.int64), np.zeros(n, np.int64)
        before[: len(self.seen)] = self.seen
        np.add.at(seen, now[there], before[there])
        return replace(self, Y=fold_columns(_below(self.Y, self.Y[:0], n), now, len(now)), seen=seen)

    def tensors(self) -> dict[str, Any]:
        """The arrays as a model folder names them."""
        labels = (self.Y.indptr.astype(np.int64), self.Y.indices.astype(np.int32), self.Y.data.astype(np.int8))
        arrays = dict(zip(_NAMES, (*labels, self.weights, self.tickets, self.seen, self.met), strict=True))
        if isinstance(self.rows, Csr):
            arrays |= {f"rows/{name}": part for name, part in self.rows._asdict().items()}
        else:
            arrays["rows"] = self.rows
        return {f"replay/{name}": array for name, array in arrays.items()}

    @classmethod
    def restored(cls, tensors: Mapping[str, Any], n_seen: int, width: int, n_labels: int) -> Self:
        """What `tensors` took apart; parts that do not agree raise ValueError."""
        from scipy.sparse import csr_matrix

        weights = check_array(tensors, "replay/weights", "float32", (None,))
        n = len(weights)
        tickets = check_array(tensors, "replay/tickets", "float32", (n,))
        seen = check_array(tensors, "replay/seen", "int64", (None,), below=1 << 53)
        met = check_array(tensors, "replay/met", "int64", (width,), below=1 << 53)
        if len(seen) > n_labels or not (np.isfinite(weights).all() and np.isfinite(tickets).all()):
            raise ValueError("the sizes of replay/seen do not agree with the rest, or a number is not finite")
        indptr, indices = check_lists("replay/labels", tensors, (n, len(seen)), ("int64", "int32"))
        values = check_array(tensors, "replay/labels/values", "int8", indices.shape)
        Y = csr_matrix((values, indices, indptr), shape=(n, len(seen)))
        if "replay/rows" in tensors:
            rows: Any = check_array(tensors, "replay/rows", "float16", (n, width))
        else:
            indptr, indices = check_lists("replay/rows", tensors, (n, width), ("int64", "uint16 uint32"))
            rows = Csr(indptr, indices, check_array(tensors, "replay/rows/data", "float16", indices.shape))
        return cls(rows, Y, weights, tickets, seen, met, n_seen)


def remembered(
    before: Memory | None, inputs: Inputs, width: int, Y: Matrix, weights: Float32 | None, size: Size, seed: int
) -> Memory:
    """The buffer after some scaled rows; None: the first ones."""
    if before is None:
        none = np.zeros(0, np.int64)
        nothing = np.zeros(0, np.float32)
        counts = np.zeros(Y.shape[1], np.int64), np.zeros(width, np.int64)
        before = Memory(_halved(take_rows(inputs, none)), Y[none], nothing, nothing, *counts, 0)
    return before.after(inputs, Y, weights, size, seed)


def hold(space: JointSpace, began: JointSpace, before: Memory, after: Memory) -> None:
    """Bring the points of a space towards where they began, by the rows that each has seen before and since.

    A new label and a feature that no row had stay where training put them.
    """
    labels = _kept(np.append(before.seen, np.zeros(len(after.seen) - len(before.seen), np.int64)), after.seen)
    features = _kept(before.met, after.met)
    space.features += features[:, None] * (began.features - space.features)
    space.labels += labels[:, None] * (began.labels - space.labels)
    space.bias += labels * (began.bias - space.bias)


def seat(
    space: JointSpace,
    before: Memory,
    after: Memory,
    inputs: Inputs,
    targets: Matrix,
    weights: Float32 | None,
    positives: Positives,
    trainer: Trainer,
) -> None:
    """Move the labels that came with the new rows, and nothing else, to where they stand among the others.

    Parameters
    ----------
    space : JointSpace
        Trained on new rows beside old ones, and held.
    before, after : Memory
        The buffer without the new rows, and with them.
    inputs, targets, weights
        The new rows.
    trainer : Trainer
        That of the training before: its settings hold here too, and its progress is told.
    """
    new, old = after.seen > 0, before.seen > 0
    new[: len(old)] &= ~old
    if not (new.any() and old.any()):
        return
    arrived, known = space.points(inputs), space.points(before._opened())
    inner = space.similarity == "dot"  # of the others a mean point has no mean score
    centre = before.mean_of(known) if inner else np.zeros_like(arrived[0])
    level = np.einsum("ij,j->i", space.labels, centre) + space.bias  # not by a library whose threads decide the sums
    level[new] = expected_level(level, after.seen, old, new)
    around = np.concatenate([arrived, known])
    around -= centre
    own = replace(space, features=around, labels=space.labels.copy(), bias=level, given=(True, False))
    blocks, n_pairs = before.beside_points(
        n_rows(inputs), targets, weights, positives, trainer.settings.seed, SEATED if inner else 1
    )
    Trainer(trainer.settings, progress=trainer.progress).train(own, blocks, n_pairs)
    space.labels[new], space.bias[new] = own.labels[new], own.bias[new] - np.einsum("ij,j->i", own.labels[new], centre)


def expected_level(level: Float32, seen: Int64, old: Bool, new: Bool) -> Float32:
    """The mean scores among all rows that new labels should have, which are those of old labels with as many rows.

    Of the old labels of an octave of row counts (2 to 3, 4 to 7, ...) the means are taken, and between two such
    points a line: what comes often scores higher everywhere, and rightly so.

    Parameters
    ----------
    level : (n_labels,) float32
        Mean score of each label.
    seen : (n_labels,) int64
        Rows of each.
    old : (n_old,) bool
        At least one.
    new : (n_labels,) bool

    Examples
    --------
    >>> level, seen = np.array([1.0, 2.0, 3.0, 0.0], np.float32), np.array([4, 4, 16, 8])
    >>> expected_level(level, seen, np.array([True, True, True]), seen == 8).tolist()
    [2.25]
    """
    x, y = np.log2(seen[: len(old)][old]), level[: len(old)][old]
    _, which, n = np.unique(x.astype(np.int64), return_inverse=True, return_counts=True)
    xs, ys = np.bincount(which, x) / n, np.bincount(which, y) / n
    return np.interp(np.log2(seen[new]), xs, ys).astype(np.float32)


def _one_block(block: Callable[[int], RowBlock]) -> tuple[Blocks, int]:
    """Epochs of a block each, and the pairs of the first."""

    def blocks(epoch: int) -> Iterator[RowBlock]:
        yield block(epoch)

    return blocks, len(block(0).targets.labels)


def _kept(before: Int64, after: Int64) -> Float32:
    """The weight of where a point was: 0 if no row knew it, 1 if no new one does."""
    return (before / np.maximum(before + NEW * (after - before), 1)).astype(np.float32)


def check_size(size: Any) -> None:
    """Refuse what is no size of a buffer; InputError."""
    whole = isinstance(size, (int, np.integer)) and not isinstance(size, bool) and bool(1 <= size <= MOST)
    told = f'replay is {size!r}; choose a number of rows from 1 to {MOST:,}, "auto", or None for no buffer'
    require(size is None or whole or (isinstance(size, str) and size == "auto"), told)


def _bytes_of_row(rows: Sequence[Any], Y: Matrix) -> int:
    """What a row takes in the buffer, on average of some, which have these labels."""
    n = max(Y.shape[0], 1)
    narrow = sum(4 * len(some.data) / n for some in rows) + 8 if isinstance(rows[0], Csr) else 2 * rows[0].shape[1]
    return int(narrow + 5 * Y.nnz / n + 16)


def _halved(inputs: Inputs) -> Any:
    """Rows with half the bytes; values beyond a half's reach are held to it."""
    reach = np.finfo(np.float16).max
    if not isinstance(inputs, Csr):
        return np.clip(inputs, -reach, reach).astype(np.float16)
    narrow = np.uint16 if inputs.indices.max(initial=0) < 1 << 16 else np.uint32
    return Csr(inputs.indptr, inputs.indices.astype(narrow), np.clip(inputs.data, -reach, reach).astype(np.float16))


def _stacked(first: Any, second: Any) -> Any:
    """Rows below each other; of indices of two sizes the larger."""
    if not isinstance(first, Csr):
        return np.concatenate([first, second])
    indptr = np.append(first.indptr, first.indptr[-1] + second.indptr[1:]).astype(np.int64)
    return Csr(indptr, *(np.append(a, b) for a, b in zip(first[1:], second[1:], strict=True)))


def _below(first: Matrix, second: Matrix, n_labels: int) -> Matrix:
    """Label matrices below each other, of so many labels."""
    from scipy.sparse import csr_matrix

    indptr = np.append(first.indptr, first.indptr[-1].astype(np.int64) + second.indptr[1:])
    parts = [np.append(getattr(first, name), getattr(second, name)) for name in ("data", "indices")]
    return csr_matrix((*parts, indptr), (first.shape[0] + second.shape[0], n_labels))


def _rows_of_features(inputs: Inputs, width: int) -> Int64:
    if not isinstance(inputs, Csr):
        return np.full(width, len(inputs), np.int64)
    met = np.zeros(width, np.int64)
    for part in parts(len(inputs.indices)):
        met += np.bincount(inputs.indices[part], minlength=width)
    return met


def _rows_of_labels(Y: Matrix) -> Int64:
    counts: Int64 = np.bincount(Y.indices[Y.data > 0], minlength=Y.shape[1]).astype(np.int64)
    return counts


def _weight(Y: Matrix, seen: Int64) -> Any:
    """How gladly each row is kept, (n,) float64: by its rarest label; of a row without labels as the commonest."""
    each = np.maximum(seen, 1.0) ** -BALANCE
    weight = np.full(Y.shape[0], each.min(initial=1.0))
    true = Y.data > 0
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    np.maximum.at(weight, rows[true], each[Y.indices[true]])
    return weight
