"""Kernel principal components of descriptions: from pictures to few dense columns, in one describer."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from wsabie.base.arrays import Csr, Float32, Int32
from wsabie.base.errors import InputError, ModelFolderError
from wsabie.base.executor import Executor, Processes
from wsabie.base.progress import SILENT, Progress
from wsabie.features.collect import rows_of
from wsabie.features.decode import RejectedItem
from wsabie.features.describer import Describer, PartConfig, refuse_damaged
from wsabie.features.kernel_pca import KIND, KernelPca
from wsabie.features.learning import nothing_read, spread
from wsabie.features.viewer import Described, Encode, Look, Viewer
from wsabie.sources.records import ItemPart, ItemSource
from wsabie.storage.folder import Parts
from wsabie.storage.rejects import Rejects
from wsabie.storage.schema import read_config

NEGATIVE = "negative values of a network"
log = logging.getLogger("wsabie")


@dataclass(frozen=True)
class ComponentsConfig:
    """The config of a folder of components."""

    inner: PartConfig
    map: dict[str, Any]


@dataclass(frozen=True)
class _Mapped:
    encode: Encode
    pca: KernelPca

    def __call__(self, look: Look) -> tuple[Int32, Float32]:
        columns, values = self.encode(look)
        if values.min(initial=0) < 0:
            raise RejectedItem(NEGATIVE)
        row = self.pca.transform_rows(Csr(np.array([0, len(columns)]), columns, values), threads=1)[0]
        return np.arange(len(row), dtype=np.int32), row


class Components(Describer):
    """Pictures as kernel principal components of another description ([P] section 6.1: 500,000 columns to 1,024).

    Parameters
    ----------
    inner : Describer
        One description, or several side by side (`Concatenation`, best with balance "mass"). Values are those of
        histograms, 0 or more.
    pca : KernelPca
        The map; is fitted with `inner`.

    Examples
    --------
    >>> from wsabie.features.hog import Hog
    >>> Components(Hog(), KernelPca(64)).name
    'components of hog'
    """

    kind = "components"
    dense = True

    def __init__(self, inner: Describer, pca: KernelPca) -> None:
        super().__init__(seed=inner.seed)
        self.things = inner.things
        self.inner = inner
        self.pca = pca
        self.name = f"components of {inner.name}"  # type: ignore[misc]  # of this one, not of its kind

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return self._fitted().n_components_

    def fit(
        self,
        source: ItemSource,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
    ) -> Self:
        """Let the inner description learn, then the map from pictures that it describes.

        Those are all pictures, or as many, spread evenly, as the map looks at (`KernelPca.rows_for`: 16,896, or 4 for
        each landmark and 512), so that memory is bounded however large the collection is. The log
        (`logging.getLogger("wsabie")`) tells how much memory learning takes, and then what the map loses.

        Raises
        ------
        InputError
            As `KernelPca.fit`; or no picture can be read.
        """
        self.refuse(source)
        self.check()
        self.pca.landmarks_for(len(source), self.things)  # what cannot be is refused before anything is learned
        sample = ItemPart(source, spread(len(source), self.pca.rows_for(len(source))))
        self.inner.fit(source, executor=executor, progress=progress, rejects=rejects)
        rejects = Rejects() if rejects is None else rejects
        described = self.inner.iterate(sample, executor=executor, progress=progress, rejects=rejects)
        inner, dictionary = self.inner, self.inner.fingerprint()
        rows = rows_of(self._histograms(described), inner.n_features_, dense=inner.dense, dictionary=dictionary)
        if not len(rows):
            raise InputError(nothing_read(source, rejects))
        landmarks, megabytes = self.pca.landmarks_for(len(rows)), self.pca.bytes_to_fit(len(rows)) / 1e6
        log.info("learning components from %s landmarks takes about %s MB", f"{landmarks:,}", f"{megabytes:,.0f}")
        threads = executor.workers if isinstance(executor, Processes) else 1
        self.pca.fit_rows(rows, threads=threads, progress=progress)
        log.info("%d components of %s: %s", self.n_features_, inner.name, self.pca.report_.told())
        return self

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        self.inner.check()

    def viewer(self, augment: int = 0) -> Viewer:
        """How items are looked at."""
        return self.inner.viewer(augment)

    def encoder(self) -> _Mapped:
        """The part that travels to workers, the map with it."""
        encode, pca = self.inner.encoder(), self._fitted()
        if pca.n_features_in_ != self.inner.n_features_:
            raise self._other_version()
        return _Mapped(encode, pca)

    def to_parts(self) -> Parts:
        """JSON-able parameters and named arrays, those of the inner description and of the map nested."""
        inner, mapped = self.inner.to_parts(), self._fitted().to_parts()
        config = {
            "descriptor": self.version,
            "inner": {"kind": inner.kind, "config": inner.config},
            "map": mapped.config,
        }
        return Parts(self.kind, config, inner.nested("inner") | mapped.nested("map"))

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The components that `to_parts` described.

        Raises
        ------
        ModelFolderError
            Of another kind or version, or damaged.
        """
        from wsabie.features.registry import describer_from_parts

        if parts.kind != cls.kind:
            raise ModelFolderError(f"this is a {parts.kind!r} and no {cls.kind!r}; give the folder of one")
        if parts.config.get("descriptor") != cls.version:
            raise cls._other_version()
        with refuse_damaged(f"this {cls.kind!r}"):
            fields = read_config(ComponentsConfig, parts.config)
            return cls(
                describer_from_parts(parts.under("inner", fields.inner.kind, fields.inner.config)),
                KernelPca.from_parts(parts.under("map", KIND, fields.map)),
            )

    def parameters(self) -> dict[str, Any]:
        """The parameters of the inner description and of the map, JSON-able."""
        return {**self.inner.parameters(), **self._own()}

    def identity(self) -> dict[str, Any]:
        """What is described."""
        return self.inner.identity()

    def refuse_other(self, wanted: Describer, where: object, remedy: str) -> None:
        """Raise InputError when this dictionary, at `where`, was made otherwise than `wanted`."""
        if not isinstance(wanted, Components):
            n = self.pca.n_components
            raise InputError(f"the dictionary {where} was made with n_components {n} and not without; {remedy}")
        super().refuse_other(wanted, where, remedy)

    def _compared(self) -> dict[str, Any]:
        return {**self.inner._compared(), **self._own()}

    def _own(self) -> dict[str, Any]:
        return {"n_components": self.pca.n_components, "n_landmarks": self.pca.n_landmarks}

    def _histograms(self, described: Iterator[Described]) -> Iterator[Described]:
        """The same rows, refused at the first that is no histogram."""
        for row in described:
            if row.values.min(initial=0) < 0:
                raise InputError(
                    f"{self.inner.name} gives {row.id} negative values, and the intersection kernel compares "
                    "histograms, whose values are 0 or more; describe without components, or otherwise"
                )
            yield row

    def _fitted(self) -> KernelPca:
        if not hasattr(self.pca, "components_"):
            raise InputError(f"these components have not been learned yet; call fit with {self.things} first")
        return self.pca
