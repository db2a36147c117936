"""What training asks of a space, whatever its tables are."""

from typing import Any, NamedTuple, Protocol, Self

from wsabie.base.arrays import Csr, Float32, Int32

Inputs = Csr | Float32 | Int32
"""Things as towers take them: sparse rows, dense rows, or (n,) numbers of rows of a table."""


class Sides(NamedTuple):
    """Examples that are a thing with, or without, a label beside it (`wsabie.space.parts`)."""

    things: Inputs
    who: Int32  # (n,): the thing of an example
    visits: Int32  # (n_visits,): the thing of a visit
    other: Int32  # (n,): the label beside it, -1 without one


def of_things(inputs: Inputs | Sides) -> Inputs:
    """What towers encode."""
    return inputs.things if isinstance(inputs, Sides) else inputs


def things_of(inputs: Inputs | Sides, examples: Int32) -> Int32:
    """Which things some examples are of."""
    return inputs.who[examples] if isinstance(inputs, Sides) else examples


class Traffic(NamedTuple):
    """Bytes that are read and written for a pair, for a drawn negative, and for a step."""

    pair: float
    draw: float
    step: float


class Trainable(Protocol):
    """Tables that an epoch moves, be they one space or shared by several relations.

    Attributes
    ----------
    similarity : str
        How labels are scored; "weights" where they have no points.
    """

    similarity: Any

    def arrays(self) -> dict[str, Any]:
        """Everything that training moves, by name."""
        ...

    def settle(self, max_norm: float | None, max_norm_weights: float | None) -> None:
        """What is due after an epoch: exact norm limits, nothing kept aside."""
        ...

    def traffic(self, rows_per_pair: float) -> Traffic:
        """Bytes moved, where `rows_per_pair` features are read for a pair."""
        ...

    def copy(self) -> Self:
        """The same in memory of its own."""
        ...

    def assign(self, other: Self) -> None:
        """Overwrite with another space of the same shape."""
        ...


class Space(Trainable, Protocol):
    """Tables that score labels for rows and can be trained by the loops.

    Attributes
    ----------
    dim : int
        Coordinates of a point; 0 without points.
    candidates : Csr, (n, n_features) float32 or None
        Rows of what is ranked, where that is encoded as queries are; None: labels, with rows of tables of their own.
    given : (bool, bool)
        Whether what asks, and what is ranked, are given points that never move.
    """

    dim: int
    candidates: Any
    given: Any

    @property
    def n_features(self) -> int: ...

    @property
    def n_labels(self) -> int: ...

    @property
    def width(self) -> tuple[None, ...]:
        """The padded width of a query's point in the form that kernels take."""
        ...

    def label_arrays(self) -> Any:
        """The labels as kernels take them."""
        ...

    def pattern(self, inputs: Any) -> Any:
        """What is scored against the labels for these rows, as the loops take it."""
        ...

    def toy(self) -> Self:
        """One feature and two labels, with arrays of the same types: for compilation."""
        ...
