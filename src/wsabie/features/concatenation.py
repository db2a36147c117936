"""Several descriptions of an item side by side in one row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from wsabie.base.arrays import Float32, Int32
from wsabie.base.errors import InputError, ModelFolderError
from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.features.describer import Describer, PartConfig, refuse_damaged
from wsabie.features.viewer import Encode, Viewer
from wsabie.sources.records import ItemSource
from wsabie.storage.folder import Array, Parts
from wsabie.storage.rejects import Rejects
from wsabie.storage.schema import read_config

Balance = Literal["length", "mass"]


def balanced(values: Float32, balance: Balance, logs: bool) -> Float32:
    """One part of a row, brought to the size that all parts have.

    Parameters
    ----------
    values : (nnz,) float32
    balance : {"length", "mass"}
        As in `Concatenation`.
    logs : bool
        With "length": of log(1 + value).

    Examples
    --------
    >>> balanced(np.array([1, 3], np.float32), "mass", logs=False).tolist()
    [0.25, 0.75]
    >>> balanced(np.array([3, -4], np.float32), "length", logs=False).round(3).tolist()
    [0.6..., -0.8...]
    """
    if balance == "mass":
        size = float(np.abs(values).sum(dtype=np.float64))
    else:
        values = np.log1p(values) if logs else values
        size = float(np.sqrt(np.square(values, dtype=np.float64).sum()))
    return (values / max(size, 1e-12)).astype(np.float32)


@dataclass(frozen=True)
class ConcatenationConfig:
    """The config of a folder of descriptions side by side."""

    parts: list[PartConfig]
    balance: Balance


@dataclass(frozen=True)
class _SideBySide:
    parts: tuple[tuple[Encode, int, bool], ...]  # encoder, first column, of logarithms
    balance: Balance

    def __call__(self, look: Any) -> tuple[Int32, Float32]:
        columns, values = [], []
        for encode, first, logs in self.parts:
            found, value = encode(look)
            columns.append(found + np.int32(first))
            values.append(balanced(value, self.balance, logs))
        return np.concatenate(columns), np.concatenate(values)


class Concatenation(Describer):
    """Rows that hold several descriptions side by side; none drowns the others.

    Parameters
    ----------
    parts : sequence of Describer
        Of one `crop`, `max_pixels` and `seed`; each keeps its own `size`. What a row holds of a picture is decoded once
        for each size.
    balance : {"length", "mass"}
        "length": each part of a row has unit length, histograms after log(1 + value), as a model would scale it alone:
        for models that take dot products. "mass": each part sums to 1, for intersection kernels.

    Examples
    --------
    >>> from wsabie.features.colour import ColourHistograms
    >>> from wsabie.features.hog import Hog
    >>> both = Concatenation([ColourHistograms(), Hog()])
    >>> both.n_features_ == ColourHistograms().n_features_ + Hog().n_features_
    True
    """

    kind = "concatenation"
    _names = ("balance",)

    def __init__(self, parts: Sequence[Describer], balance: Balance = "length") -> None:
        self.parts = tuple(parts)
        self.balance: Balance = balance
        if len(self.parts) < 2:
            raise InputError("a concatenation needs two descriptions or more; use a single one as it is")
        first = self.parts[0]
        super().__init__(seed=first.seed)
        self.things = first.things
        self.name = ",".join(part.name for part in self.parts)  # type: ignore[misc]  # of this one, not of its kind

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return sum(part.n_features_ for part in self.parts)

    @property
    def dense(self) -> bool:  # type: ignore[override]  # a row is dense when all of its parts are
        """Every row holds every column."""
        return all(part.dense for part in self.parts)

    def fit(
        self,
        source: ItemSource,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
    ) -> Self:
        """Let every part learn."""
        self.check()
        self.refuse(source)
        for part in self.parts:
            part.fit(source, executor=executor, progress=progress, rejects=rejects)
        return self

    def check(self) -> None:
        """Raise InputError where a parameter is out of range, or the parts do not look alike."""
        if self.balance not in ("length", "mass"):
            raise InputError(f'balance is {self.balance!r}; choose "length" or "mass"')
        for part in self.parts:
            part.check()
            if part.things != self.things:
                raise InputError(
                    f"{part.name} describes {part.things} and {self.parts[0].name} {self.things}; use one of them"
                )
            if part.viewer() != self.viewer():
                other = ", ".join(name for name in part._common if name != "size")
                raise InputError(f"{part.name} and {self.parts[0].name} differ in one of {other}; use the same")

    def viewer(self, augment: int = 0) -> Viewer:
        """How items are looked at: as all parts do."""
        return self.parts[0].viewer(augment)

    def encoder(self) -> _SideBySide:
        """The part that travels to workers."""
        self.check()
        parts, first = [], 0
        for part in self.parts:
            parts.append((part.encoder(), first, not part.dense))
            first += part.n_features_
        return _SideBySide(tuple(parts), self.balance)

    def to_parts(self) -> Parts:
        """JSON-able parameters and named arrays, those of the parts nested."""
        inner = [part.to_parts() for part in self.parts]
        config = {
            "descriptor": self.version,
            "balance": self.balance,
            "parts": [{"kind": one.kind, "config": one.config} for one in inner],
        }
        tensors: dict[str, Array] = {}
        for number, one in enumerate(inner):
            tensors |= one.nested(str(number))
        return Parts(self.kind, config, tensors)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The concatenation that `to_parts` described.

        Raises
        ------
        ModelFolderError
            Of another kind or version.
        """
        from wsabie.features.registry import describer_from_parts

        if parts.kind != cls.kind:
            raise ModelFolderError(f"this is a {parts.kind!r} and no {cls.kind!r}; give the folder of one")
        if parts.config.get("descriptor") != cls.version:
            raise cls._other_version()
        with refuse_damaged(f"this {cls.kind!r}"):
            fields = read_config(ConcatenationConfig, parts.config)
            inner = [
                describer_from_parts(parts.under(str(number), one.kind, one.config))
                for number, one in enumerate(fields.parts)
            ]
            described = cls(inner, fields.balance)
            described.check()
            return described

    def identity(self) -> dict[str, Any]:
        """What is described, side by side."""
        found: dict[str, Any] = {}
        for part in self.parts:
            found |= part.identity()
        return {**found, **super().identity()}

    def _compared(self) -> dict[str, Any]:
        inner = {f"{part.name} {name}": value for part in self.parts for name, value in part.parameters().items()}
        return {**self.identity(), "balance": self.balance, **inner}
