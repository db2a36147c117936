"""Labels for things, and labels for labels, in one space: objects and their parts ([P] section 3).

f_I(I, L) = (V I) . W_L     or, with a table of its own, (V I) . U_L      how well a label fits a thing
f_L(L, M) = W_L . W_M                                                     how well it fits another label
f_II(I, J) = (V I) . (V J)                                                how well a thing fits another thing
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wsabie.base.arrays import LANES, Float32, under_one_type
from wsabie.space import tables
from wsabie.space.joint import JointSpace
from wsabie.space.protocol import Sides, Traffic
from wsabie.space.shared import Ends


@dataclass
class ThingSpace(JointSpace):
    """Things that are ranked for a label, or for a thing and a label: (V J) . (U_L + s V I), s V I = V (s I).

    `features` and `labels` are V both, `candidates` the things, and a label is asked for as it is to things.

    Attributes
    ----------
    asked : (n_labels, padded dim) float32
        U.
    """

    asked: Float32 = field(default_factory=lambda: np.zeros((1, LANES), np.float32))

    def pattern(self, inputs: Any) -> Any:
        """Things, multiplied by s already, with labels beside them."""
        from wsabie.kernels.beside import Beside

        who, visits, other, asked = map(under_one_type, (*inputs[1:], self.asked))
        return Beside(self.tower(inputs.things), who, visits, other, asked, np.float32(1))

    def copy(self) -> "ThingSpace":
        """The same points in memory of their own."""
        return ThingSpace(**{**vars(super().copy()), "asked": self.asked.copy()})

    def toy(self) -> "ThingSpace":
        """One feature and two things."""
        toy = super().toy()
        return ThingSpace(**{**vars(toy), "asked": toy.features})


@dataclass
class PartsSpace:
    """A space of things and labels, and the labels as they are to each other.

    Attributes
    ----------
    things : JointSpace
        V, and the labels as they are to things: W, or U where that is a table of its own. Inner products.
    words : (n_labels, padded dim) float32
        W; the label table of `things` itself where it is shared.
    weight : float
        r: what f_L counts beside f_I.
    """

    things: JointSpace
    words: Float32
    weight: float
    candidates: None = None
    given: tuple[bool, bool] = (False, False)

    @classmethod
    def of(cls, things: JointSpace, words: Float32 | None, weight: float) -> "PartsSpace":
        """The space of a shared table (`words` None), or with one more."""
        return cls(things, things.labels if words is None else words, weight)

    @property
    def shared(self) -> bool:
        return self.words is self.things.labels

    @property
    def dim(self) -> int:
        return self.things.dim

    @property
    def similarity(self) -> str:
        return "dot" if self.shared else "dot of both halves"

    @property
    def n_features(self) -> int:
        return self.things.n_features

    @property
    def n_labels(self) -> int:
        return self.things.n_labels

    @property
    def width(self) -> tuple[None, ...]:
        """Of a query: that of a point, or of two of them side by side."""
        return self.things.width * (1 if self.shared else 2)

    def arrays(self) -> dict[str, Any]:
        """Everything that training moves."""
        return self.things.arrays() | ({} if self.shared else {"words": self.words})

    def label_arrays(self) -> Any:
        """The labels as kernels take them."""
        from wsabie.kernels.candidates import Joined

        points = self.things.label_arrays()
        return points if self.shared else Joined(points, under_one_type(self.words), self.things.width)

    def view(self, ends: Ends) -> "PartsSpace | ThingSpace":
        """What ranks labels, or what ranks the things of a relation that brings some; it shares the memory."""
        if ends.candidates is None:
            return self
        V, none = self.things.features, np.zeros(0, np.float32)
        return ThingSpace(self.dim, "dot", V, V, none, ends.candidates, ends.negatives, asked=self.things.labels)

    def pattern(self, inputs: Sides) -> Any:
        """Things with labels beside them, as the loops take them."""
        from wsabie.kernels.beside import Apart, Beside

        tower, words = self.things.tower(inputs.things), under_one_type(self.words)
        who, visits, other = map(under_one_type, inputs[1:])
        beside = Beside(tower, who, visits, other, words, np.float32(self.weight))
        return beside if self.shared else Apart(*beside, self.things.width)

    def settle(self, max_norm: float | None, max_norm_weights: float | None) -> None:
        """Hold the rows of all tables to the limit."""
        self.things.settle(max_norm, max_norm_weights)
        if not self.shared:  # a second time would change last digits
            tables.project_rows(self.words, max_norm)

    def traffic(self, rows_per_pair: float) -> Traffic:
        """A step reads and writes one more label; a draw reads two rows where tables are not shared."""
        row = 4 * LANES * len(self.things.width)
        tables_of_labels = 1 if self.shared else 2
        step = 2 * row * (rows_per_pair + 2 * tables_of_labels + 1)
        return Traffic(row * (rows_per_pair + 1), row * tables_of_labels, step)

    def copy(self) -> "PartsSpace":
        """The same points in memory of their own."""
        things = self.things.copy()
        return replace(self, things=things, words=things.labels if self.shared else self.words.copy())

    def assign(self, other: "PartsSpace") -> None:
        """Overwrite the points with those of another space of the same shape."""
        self.things.assign(other.things)
        self.words[:] = other.words

    def toy(self) -> "PartsSpace":
        """One feature and two labels."""
        things = self.things.toy()
        return replace(self, things=things, words=things.labels if self.shared else things.labels.copy())
