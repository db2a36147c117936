"""What turns items into rows: one base for visual terms, histograms, networks, words of sound and of documents."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from wsabie.base.arrays import Float32, Int32
from wsabie.base.errors import InputError, ModelFolderError, bracket_detail
from wsabie.base.executor import Executor, Serial
from wsabie.base.progress import SILENT, Progress
from wsabie.features.collect import rows_of
from wsabie.features.learning import BATCH, item_batches
from wsabie.features.viewer import Described, Describing, Encode, Rejected, Viewer, describe_batch
from wsabie.sources.records import Item, ItemSource, Rows, Things
from wsabie.sources.regions import Content
from wsabie.storage.folder import Array, Parts, load_folder, save_folder
from wsabie.storage.rejects import Rejects
from wsabie.storage.schema import check_parameters, read_config

OTHERWISE = {
    "pictures": "describe them as terms, colour, textons, hog or onnx:FILE",
    "sounds": "describe them as mfcc, sai or both",
    "documents": "describe them as words",
}
AnyDescriber = TypeVar("AnyDescriber", bound="Describer")


class Describer(ABC):
    """Turns items into rows: learns what it has to from a collection, then describes any item.

    A kind of its own brings `name`, `kind`, `_names`, `n_features_`, `encoder`, and where it learns something `fit`,
    `_tensors` and `_restore`; `wsabie.features.registry` has to know it. Most are a `PictureDescriber` or a
    `SoundDescriber`.

    Parameters
    ----------
    seed : int
        Of everything random: the sample that it learns from, the random views.
    """

    name: ClassVar[str]
    """What `--describe` calls it."""
    kind: ClassVar[str]
    """What its folder says that it holds."""
    things: Things = "pictures"
    """What it describes."""
    version: ClassVar[int] = 1
    """Raised when the same parameters give other rows."""
    dense: bool = False
    """Every row holds every column."""
    together: ClassVar[int] = BATCH
    """Items that travel to a worker together at most."""

    _names: ClassVar[tuple[str, ...]]  # of its parameters
    _common: ClassVar[tuple[str, ...]] = ("seed",)

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    @property
    def counts(self) -> bool:
        """The values are counts."""
        return False

    @property
    @abstractmethod
    def n_features_(self) -> int:
        """Number of columns."""

    @abstractmethod
    def encoder(self) -> Encode:
        """The part that travels to workers.

        Raises
        ------
        InputError
            It has not learned yet.
        """

    def fit(
        self,
        source: ItemSource,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
    ) -> Self:
        """Learn from a collection, where there is something to learn.

        Raises
        ------
        InputError
            A parameter is out of range.
        """
        self.check()
        self.refuse(source)
        return self

    def transform(
        self,
        source: ItemSource,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
        augment: int = 0,
    ) -> Rows:
        """The collection as rows in memory; for what does not fit there see `extract`.

        Parameters
        ----------
        source : ItemSource
        executor : Executor or None
            Where items are decoded; None: this process.
        progress : Progress
        rejects : Rejects or None
            Where items that cannot be read are listed; they are left out.
        augment : int
            Further views of each picture as rows of their own, for training only. Their ids are the picture's with
            "#1", "#2" ... behind, their group is the picture's (its id where it has none), so that a split by group
            keeps them together.

        Returns
        -------
        Rows
            X is csr_matrix (n, n_features_) float32, or an array where rows are dense; label names in the order of
            their code points.
        """
        rejects = Rejects() if rejects is None else rejects
        described = self.iterate(source, executor=executor, progress=progress, rejects=rejects, augment=augment)
        return rows_of(
            described,
            self.n_features_,
            counts=self.counts,
            dense=self.dense,
            dictionary=self.fingerprint(),
            augment=augment,
        )

    def iterate(
        self,
        source: ItemSource,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
        augment: int = 0,
    ) -> Iterator[Described]:
        """The rows of `transform` one by one, in order, with only a few batches of items in memory."""
        self.refuse(source)
        rejects = Rejects() if rejects is None else rejects
        with progress.stage(f"describing {self.things}", len(source), self.things) as stage:
            for seen in self.describe(item_batches(source, self.together), executor=executor, augment=augment):
                for one in seen:
                    if isinstance(one, Rejected):
                        rejects.add(*one)
                    else:
                        yield from one
                stage.advance(len(seen))

    def describe(
        self, groups: Iterable[tuple[Item, ...]], *, executor: Executor | None = None, augment: int = 0
    ) -> Iterator[list[list[Described] | Rejected]]:
        """For each group of items, for each item: its rows, or why it was skipped."""
        job = Describing(self.viewer(augment), self.encoder())
        return (executor or Serial()).map_with(describe_batch, job, groups)

    def transform_one(self, content: Content) -> tuple[Int32, Float32]:
        """Columns (nnz,), ascending, and values (nnz,) of one item.

        Raises
        ------
        RejectedItem
            The item cannot be read.
        """
        row = Describing(self.viewer(), self.encoder()).rows(Item("", content, ()))[0]
        return row.indices, row.values

    @abstractmethod
    def viewer(self, augment: int = 0) -> Viewer:
        """How items are looked at, listened to, or read."""

    def refuse(self, source: object) -> None:
        """Raise InputError for what is no source of such items."""
        if isinstance(source, Rows):
            raise InputError(f"{self.things} are described and these are rows of features; give {self.things}")
        if isinstance(source, str | Path):
            raise InputError(f"{str(source)!r} is a path; give the {self.things} in it: open_source({str(source)!r})")
        held = getattr(source, "things", self.things)
        if held != self.things:
            raise InputError(f"{self.name} describes {self.things} and {source.path} holds {held}; {OTHERWISE[held]}")  # type: ignore[attr-defined]

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        if not (isinstance(self.seed, int | np.integer) and 0 <= self.seed < 2**63):
            raise InputError(f"seed is {self.seed}; choose a whole number from 0 to {2**63 - 1}")

    def to_parts(self) -> Parts:
        """JSON-able parameters and named arrays."""
        return Parts(self.kind, {"descriptor": self.version, "parameters": self.parameters()}, self._tensors())

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The describer that `to_parts` described.

        Raises
        ------
        ModelFolderError
            Of another kind or version, or without its arrays.
        """
        if parts.kind != cls.kind:
            raise ModelFolderError(f"this is a {parts.kind!r} and no {cls.kind!r}; give the folder of one")
        if parts.config.get("descriptor") != cls.version:
            raise cls._other_version()
        with refuse_damaged(f"this {cls.kind!r}"):
            parameters = read_config(DescriberConfig, parts.config).parameters
            check_parameters(cls, parameters)
            describer = cls(**{name: _tupled(value) for name, value in parameters.items()})
            describer.check()
            describer._restore(parts.tensors)
            return describer

    def save(self, path: str | Path) -> None:
        """Write the folder of the describer, atomically."""
        save_folder(path, self.to_parts())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open a saved describer of this kind.

        Raises
        ------
        ModelFolderError
            Missing, damaged, something else, or of another version.
        """
        return cls.from_parts(load_folder(path))

    def fingerprint(self) -> str:
        """32 hex digits that change with anything that changes a row."""
        parts = self.to_parts()
        digest = hashlib.sha256(json.dumps(parts.config, sort_keys=True).encode())
        for name in sorted(parts.tensors):
            digest.update(np.ascontiguousarray(parts.tensors[name]).data)
        return digest.hexdigest()[:32]

    def parameters(self) -> dict[str, Any]:
        """The parameters, JSON-able."""
        return {name: _listed(getattr(self, name)) for name in (*self._names, *self._common)}

    def refuse_other(self, wanted: "Describer", where: object, remedy: str) -> None:
        """Raise InputError when this dictionary, at `where`, was made otherwise than `wanted`."""
        self.refuse_options(wanted._compared(), where, remedy)

    def refuse_options(self, options: Mapping[str, Any], where: object, remedy: str) -> None:
        """Raise InputError when this dictionary, at `where`, was made with others than these options.

        An option of several parts side by side is meant for all that have it.
        """
        made = self._compared()
        asked = [(name, opt) for opt in options for name in made if opt in (name, name.split()[-1])]
        differ = [f"{name} {made[name]} and not {options[opt]}" for name, opt in asked if made[name] != options[opt]]
        differ = differ or [f"no {option}" for option in options if option not in {known for _, known in asked}]
        if differ:
            raise InputError(f"the dictionary {where} was made with {', '.join(differ)}; {remedy}")

    def identity(self) -> dict[str, Any]:
        """What is described, beside parameters that have defaults."""
        return {"describe": self.name}

    def _compared(self) -> dict[str, Any]:
        """What `refuse_options` looks at."""
        return {**self.identity(), **self.parameters()}

    def _tensors(self) -> dict[str, Array]:
        """What was learned, as named arrays."""
        return {}

    def _restore(self, tensors: dict[str, Array]) -> None:
        """Take over what `_tensors` gave."""
        return

    @classmethod
    def _other_version(cls) -> ModelFolderError:
        return ModelFolderError(
            f"this {cls.kind!r} was made by another version of wsabie; install that version, or learn it again"
        )


def _listed(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return [_listed(one) for one in value] if isinstance(value, tuple) else value


@dataclass(frozen=True)
class DescriberConfig:
    """The config of a folder of a description."""

    parameters: dict[str, Any]


@dataclass(frozen=True)
class PartConfig:
    """The config of a part of a folder: its kind and its own config."""

    kind: str
    config: dict[str, Any]


@contextmanager
def refuse_damaged(what: str) -> Iterator[None]:
    """Turn what goes wrong with parts that do not agree into a ModelFolderError."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, MemoryError) as error:
        raise ModelFolderError(
            f"{what} is damaged{bracket_detail(error)}; restore it from a copy or learn it again"
        ) from error


def _tupled(value: Any) -> Any:
    return tuple(_tupled(one) for one in value) if isinstance(value, list) else value
