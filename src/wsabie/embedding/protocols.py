"""Protocols of spaces that the training loops can update."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, cast

from wsabie.core.arrays import Array, Csr, Float32, Int32
from wsabie.embedding.tables import compute_padded_width

KernelArrays: TypeAlias = Any
"""A NamedTuple of arrays as kernels take it; its type selects their code."""
EntityInputs = Csr | Float32 | Int32
"""Items as towers take them: sparse rows, dense rows, or (n,) row numbers of a table."""


RangeRunner = Callable[[Callable[[int, int], None], int], None]
"""Runs work(lo, hi) over 0..n - 1, perhaps in threads, from (work, n)."""


def run_in_caller(work: Callable[[int, int], None], n: int) -> None:
    """Run work(0, n) in this thread."""
    work(0, n)


class ComposedInputs(NamedTuple):
    """Examples that are an item with or without a paired label (`wsabie.embedding.relation_spaces`)."""

    items: EntityInputs
    item_ids: Int32  # (n,): the item of an example
    visits: Int32  # (n_visits,): the item of a visit
    label_ids: Int32  # (n,): the paired label, -1 without one


def select_tower_inputs(inputs: EntityInputs | ComposedInputs) -> EntityInputs:
    """Return the items that towers encode."""
    return inputs.items if isinstance(inputs, ComposedInputs) else inputs


class RelationEnds(NamedTuple):
    """Tables and candidates that a relation joins.

    Attributes
    ----------
    name : str
    query, target : str
        Tables by name.
    candidates : Csr, (n, n_features) float32 or None
        Rows of the ranked items, where those have features; None: they are the rows of the table.
    negatives : int
        Candidates with features that are drawn for a block of pairs; 0: only the positives of the same block.
    """

    name: str
    query: str
    target: str
    candidates: EntityInputs | None = None
    negatives: int = 0


class MemoryTraffic(NamedTuple):
    """Bytes read and written for a pair, for a drawn negative, and for a step."""

    pair: float
    draw: float
    step: float


class TrainableTables(Protocol):
    """Tables that an epoch updates: one space, or tables that several relations share.

    Attributes
    ----------
    similarity : str
        Similarity that scores labels; "weights" where they have no points.
    dim : int
        Coordinates of a point; 0 without points.
    candidates : Csr, (n, n_features) float32 or None
        Rows of the candidates, where they are encoded as queries are; None: labels with table rows of their own.
    frozen : (bool, bool)
        True for queries, and for candidates, whose points never move.
    """

    similarity: Any
    dim: int
    candidates: Any = None
    frozen: Any = (False, False)

    def list_arrays(self) -> dict[str, Array]:
        """Return the arrays that training updates, by name."""
        ...

    def finish_epoch(self, max_norm: float | None, max_norm_weights: float | None) -> None:
        """Finish an epoch: apply exact norm limits and write back all cached factors."""
        ...

    def traffic(self, rows_per_pair: float) -> MemoryTraffic:
        """Estimate the bytes moved where `rows_per_pair` features are read for a pair.

        A step reads and writes the rows of two labels and of every feature. A candidate with features counts as one
        row, that of its pool.
        """
        row = 4 * compute_padded_width(self.dim)
        return MemoryTraffic(row * rows_per_pair, row, 2 * row * (rows_per_pair + 2))

    def view(self, ends: RelationEnds | None) -> "EmbeddingSpace":
        """Return the space of one relation, which shares the memory of the tables; itself if there is one."""
        return cast("EmbeddingSpace", self)

    def copy(self) -> Self:
        """Return a copy with memory of its own."""
        ...

    def assign(self, space: Self) -> None:
        """Copy the values of another space of the same shape."""
        arrays = space.list_arrays()
        for name, table in self.list_arrays().items():
            table[:] = arrays[name]


class EmbeddingSpace(TrainableTables, Protocol):
    """Tables that score labels for rows and can be trained by the loops."""

    @property
    def n_features(self) -> int: ...

    @property
    def n_labels(self) -> int: ...

    @property
    def width(self) -> tuple[None, ...]:
        """Padded width of a query's point in the form that kernels take."""
        ...

    def label_arrays(self) -> KernelArrays:
        """Return the labels as kernels take them."""
        ...

    def pattern(self, inputs: Any) -> KernelArrays:
        """Return the relation pattern of these rows, as the loops take it."""
        ...
