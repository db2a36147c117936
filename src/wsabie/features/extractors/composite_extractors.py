"""Feature extractors made of others: a concatenation of several, and kernel PCA over one."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from wsabie.core.arrays import Array, Csr, Float32
from wsabie.core.errors import InputError, UnreadableItemError, require
from wsabie.core.execution import ProcessExecutor
from wsabie.core.json_conversion import JsonObject
from wsabie.features.base.feature_extractor import EncodedRow, FeatureExtractor, NestedConfig
from wsabie.features.base.item_features import ItemFeatures, build_feature_table
from wsabie.features.base.sampling import WorkContext, format_nothing_readable, select_evenly
from wsabie.features.kernel_pca import KIND, KernelPca
from wsabie.io.records import Item, ItemSource, ItemSubset
from wsabie.storage.model_folder import ModelState
from wsabie.storage.schema_validation import read_config

Balance = Literal["length", "mass"]
NEGATIVE = "negative values of a network"
log = logging.getLogger("wsabie")


def balance_part(values: Float32, balance: Balance, logs: bool) -> Float32:
    """Scale one part of a row to the size that all parts have.

    Parameters
    ----------
    values : (nnz,) float32
    balance : {"length", "mass"}
        As in `ConcatenatedFeatures`.
    logs : bool
        With "length": of log(1 + value).

    Examples
    --------
    >>> balance_part(np.array([1, 3], np.float32), "mass", logs=False).tolist()
    [0.25, 0.75]
    >>> balance_part(np.array([3, -4], np.float32), "length", logs=False).round(3).tolist()
    [0.6..., -0.8...]
    """
    if balance == "mass":
        size = float(np.abs(values).sum(dtype=np.float64))
    else:
        values = np.log1p(values) if logs else values
        size = float(np.sqrt(np.square(values, dtype=np.float64).sum()))
    return (values / max(size, 1e-12)).astype(np.float32)


@dataclass(frozen=True)
class ConcatenatedFeaturesConfig:
    """Config of the folder of a concatenation."""

    parts: list[NestedConfig]
    balance: Balance


class CompositeExtractor(FeatureExtractor):
    """Base of extractors of items that their parts decode alike."""

    def __init__(self, parts: Sequence[FeatureExtractor], name: str) -> None:
        self.parts = tuple(parts)
        super().__init__(seed=self.parts[0].seed)
        self.modality = self.parts[0].modality  # type: ignore[misc]
        self.name = name  # type: ignore[misc]  # of the instance, not of the class

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        for part in self.parts:
            part.check()

    def prepare(self, augment: int = 0) -> None:
        """Raise InputError where a part cannot extract features."""
        super().prepare(augment)
        for part in self.parts:
            part.prepare(augment)

    def iterate_views(self, item: Item, augment: int = 0) -> Iterator[Any]:
        """Yield the decoded item as all parts take it."""
        return self.parts[0].iterate_views(item, augment)

    def read_time(self, item: Item) -> str | None:
        """Return the time of an item as its parts read it."""
        return self.parts[0].read_time(item)

    def identity(self) -> JsonObject:
        """Return the settings without defaults of all parts."""
        facts: JsonObject = {}
        for part in self.parts:
            facts |= part.identity()
        return {**facts, "features": ",".join(part.name for part in self.parts)}


class ConcatenatedFeatures(CompositeExtractor):
    """Concatenation of the features of several extractors, scaled so that none dominates.

    Parameters
    ----------
    parts : sequence of FeatureExtractor
        Extractors with the same `crop`, `max_pixels` and `seed`; each keeps its own `size`. A picture is decoded once
        for each size.
    balance : {"length", "mass"}
        "length": each part of a row has unit length, histograms after log(1 + value), as a model would scale it alone;
        for models with dot products. "mass": each part sums to 1, for intersection kernels.

    Examples
    --------
    >>> from wsabie.features.extractors.pyramid_histograms import ColourHistograms
    >>> from wsabie.features.extractors.pyramid_histograms import HogFeatures
    >>> both = ConcatenatedFeatures([ColourHistograms(), HogFeatures()])
    >>> both.n_features_ == ColourHistograms().n_features_ + HogFeatures().n_features_
    True
    """

    kind = "concatenation"

    def __init__(self, parts: Sequence[FeatureExtractor], balance: Balance = "length") -> None:
        require(len(parts) >= 2, "a concatenation needs two extractors or more; use a single one as it is")
        super().__init__(parts, ",".join(part.name for part in parts))
        self.balance: Balance = balance

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return sum(part.n_features_ for part in self.parts)

    @property
    def is_dense(self) -> bool:  # type: ignore[override]  # a row is dense when all of its parts are
        """True if every row holds every column."""
        return all(part.is_dense for part in self.parts)

    def _learn(self, source: ItemSource, context: WorkContext) -> None:
        for part in self.parts:
            part._learn(source, context)

    def check(self) -> None:
        """Raise InputError where a parameter is out of range, or the parts decode items differently."""
        require(self.balance in ("length", "mass"), f'balance is {self.balance!r}; choose "length" or "mass"')
        super().check()
        for part in self.parts:
            if part.modality != self.modality:
                raise InputError(
                    f"{part.name} takes {part.modality} and {self.parts[0].name} {self.modality}; use one of them"
                )
            if part.decoding_parameters() != self.parts[0].decoding_parameters():
                names = ", ".join(part.decoding_parameters())
                raise InputError(f"{part.name} and {self.parts[0].name} differ in one of {names}; use the same")

    def encode(self, view: Any) -> EncodedRow:
        """Return the rows of all parts side by side."""
        columns, values, first = [], [], 0
        for part in self.parts:
            part_columns, part_values = part.encode(view)
            columns.append(part_columns + np.int32(first))
            values.append(balance_part(part_values, self.balance, not part.is_dense))
            first += part.n_features_
        return np.concatenate(columns), np.concatenate(values)

    def to_state(self) -> ModelState:
        """Return JSON-able parameters and named arrays, those of the parts nested."""
        states = [part.to_state() for part in self.parts]
        config = {
            "version": self.version,
            "balance": self.balance,
            "parts": [{"kind": state.kind, "config": state.config} for state in states],
        }
        tensors: dict[str, Array] = {}
        for number, state in enumerate(states):
            tensors |= state.add_prefix(str(number))
        return ModelState(self.kind, config, tensors)

    @classmethod
    def _rebuild(cls, state: ModelState) -> Self:
        from wsabie.features.extractor_registry import restore_extractor

        fields = read_config(ConcatenatedFeaturesConfig, state.config)
        extractors = [
            restore_extractor(state.select_prefix(str(number), part.kind, part.config))
            for number, part in enumerate(fields.parts)
        ]
        extractor = cls(extractors, fields.balance)
        extractor.check()
        return extractor

    def parameters(self) -> JsonObject:
        """Return the balance and the seed."""
        return {"balance": self.balance, **super().parameters()}

    def _list_settings(self) -> JsonObject:
        settings = {f"{part.name} {name}": value for part in self.parts for name, value in part.parameters().items()}
        return {**self.identity(), "balance": self.balance, **settings}


@dataclass(frozen=True)
class KernelPcaExtractorConfig:
    """Config of the folder of an extractor of components."""

    inner: NestedConfig
    map: JsonObject


class KernelPcaExtractor(CompositeExtractor):
    """Kernel principal components of the features of another extractor.

    Mesnil et al. 2014, section 6.1, reduce 500,000 columns to 1,024.

    Parameters
    ----------
    inner : FeatureExtractor
        One extractor, or several (`ConcatenatedFeatures`, best with balance "mass"). Its values are those of
        histograms, 0 or more.
    pca : KernelPca
        The map, fitted with `inner`.

    Examples
    --------
    >>> from wsabie.features.extractors.pyramid_histograms import HogFeatures
    >>> KernelPcaExtractor(HogFeatures(), KernelPca(64)).name
    'components of hog'
    """

    kind = "components"
    is_dense = True

    def __init__(self, inner: FeatureExtractor, pca: KernelPca) -> None:
        super().__init__((inner,), f"components of {inner.name}")
        self.inner = inner
        self.pca = pca

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return self._require_fitted().n_components_

    def _learn(self, source: ItemSource, context: WorkContext) -> None:
        """Fit the inner extractor, then the map to rows of a sample; the log reports memory and loss."""
        # the sample holds as many items, spread evenly, as the map uses (`KernelPca.count_fit_rows`), so that
        # memory is bounded
        self.pca.count_landmarks(len(source), self.modality)  # refuses impossible settings before anything is learned
        sample = ItemSubset(source, select_evenly(len(source), self.pca.count_fit_rows(len(source))))
        inner, (executor, progress, rejects) = self.inner, context
        inner._learn(source, context)
        stream = inner.iterate(sample, executor=executor, progress=progress, rejects=rejects)
        stream = self._refuse_negative(stream)
        rows = build_feature_table(stream, inner.n_features_, dense=inner.is_dense, **inner.table_facts())
        require(len(rows) > 0, format_nothing_readable(source, rejects))
        landmarks, megabytes = self.pca.count_landmarks(len(rows)), self.pca.estimate_fit_bytes(len(rows)) / 1e6
        log.info("learning components from %s landmarks takes about %s MB", f"{landmarks:,}", f"{megabytes:,.0f}")
        threads = executor.workers if isinstance(executor, ProcessExecutor) else 1
        self.pca.fit_rows(rows, threads=threads, progress=progress)
        log.info("%d components of %s: %s", self.n_features_, inner.name, self.pca.report_.format_summary())

    def prepare(self, augment: int = 0) -> None:
        """Raise InputError before `fit`."""
        super().prepare(augment)
        if self._require_fitted().n_features_in_ != self.inner.n_features_:
            raise self._make_version_error()

    def encode(self, view: Any) -> EncodedRow:
        """Return the components of a view."""
        columns, values = self.inner.encode(view)
        if values.min(initial=0) < 0:
            raise UnreadableItemError(NEGATIVE)
        row = self.pca.transform_rows(Csr(np.array([0, len(columns)]), columns, values), threads=1)[0]
        return np.arange(len(row), dtype=np.int32), row

    def to_state(self) -> ModelState:
        """Return JSON-able parameters and named arrays, those of the inner extractor and of the map nested."""
        extractor, pca = self.inner.to_state(), self._require_fitted().to_state()
        config = {
            "version": self.version,
            "inner": {"kind": extractor.kind, "config": extractor.config},
            "map": pca.config,
        }
        return ModelState(self.kind, config, extractor.add_prefix("inner") | pca.add_prefix("map"))

    @classmethod
    def _rebuild(cls, state: ModelState) -> Self:
        from wsabie.features.extractor_registry import restore_extractor

        fields = read_config(KernelPcaExtractorConfig, state.config)
        inner = restore_extractor(state.select_prefix("inner", fields.inner.kind, fields.inner.config))
        return cls(inner, KernelPca.from_state(state.select_prefix("map", KIND, fields.map)))

    def parameters(self) -> JsonObject:
        """Return the parameters of the inner extractor and of the map, JSON-able."""
        return {**self.inner.parameters(), **self._list_pca_parameters()}

    def refuse_other_settings(self, extractor: FeatureExtractor, where: object, remedy: str) -> None:
        """Raise InputError when this extractor, at `where`, has other settings than `extractor`."""
        if not isinstance(extractor, KernelPcaExtractor):
            n = self.pca.n_components
            raise InputError(f"the extractor {where} was made with n_components {n} and not without; {remedy}")
        super().refuse_other_settings(extractor, where, remedy)

    def _list_settings(self) -> JsonObject:
        return {**self.inner._list_settings(), **self._list_pca_parameters()}

    def _list_pca_parameters(self) -> JsonObject:
        return {"n_components": self.pca.n_components, "n_landmarks": self.pca.n_landmarks}

    def _refuse_negative(self, stream: Iterator[ItemFeatures]) -> Iterator[ItemFeatures]:
        """Yield the rows; raise InputError at the first negative value."""
        for row in stream:
            if row.values.min(initial=0) < 0:
                raise InputError(
                    f"{self.inner.name} gives {row.id} negative values, and the intersection kernel compares "
                    "histograms, whose values are 0 or more; leave components out, or take other features"
                )
            yield row

    def _require_fitted(self) -> KernelPca:
        is_fitted = hasattr(self.pca, "components_")
        require(is_fitted, f"these components have not been learned yet; call fit with {self.modality} first")
        return self.pca
