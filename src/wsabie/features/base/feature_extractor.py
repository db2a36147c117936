"""Base of all feature extractors."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from inspect import get_annotations
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias, TypeVar, Unpack

from wsabie.core.arrays import Array, Float32, Int32
from wsabie.core.errors import InputError, ModelFolderError, bracket_detail, require
from wsabie.core.execution import Executor, SerialExecutor
from wsabie.core.json_conversion import JsonObject, to_json_value
from wsabie.features.base import item_features, sampling
from wsabie.features.base.item_features import ItemFeatures, ItemRejection
from wsabie.features.base.sampling import BATCH, RunOptions, WorkContext
from wsabie.features.extractor_names import list_extractor_names
from wsabie.features.images.augmentation import format_view_id
from wsabie.io.records import FeatureTable, Item, ItemSource, ModalityName
from wsabie.io.regions import ItemContent
from wsabie.storage.model_folder import ModelState, SavedObject
from wsabie.storage.schema_validation import check_parameters, read_config

AnyExtractor = TypeVar("AnyExtractor", bound="FeatureExtractor")
EncodedRow: TypeAlias = tuple[Int32, Float32]
"""Columns (nnz,), ascending, and values (nnz,) of a row."""

_DECODING = ("crop", "max_pixels", "max_seconds", "seed")


@dataclass(eq=False, repr=False, kw_only=True)
class FeatureExtractor(SavedObject, ABC):
    """Extractor of features from items: fit it to a source of items, then transform any item.

    Workers get a copy of it. A subclass is a dataclass whose fields are its parameters, and defines `name`, `kind`,
    `n_features_`, `check`, `encode`, and, if it learns, `_learn`, `_dump_tensors` and `_restore`;
    `wsabie.features.extractor_registry` lists it. Most derive from `ImageFeatureExtractor` or `AudioWords`.

    Parameters
    ----------
    seed : int
        Seed of the training sample and of the random views.
    """

    name: ClassVar[str]
    """Name for `create_extractor`."""
    kind: ClassVar[str]
    """Kind in the config of a saved folder."""
    noun: ClassVar[str] = ""
    """Noun for error messages, where the kind is none."""
    modality: ClassVar[ModalityName] = "pictures"
    """Modality of the items."""
    version: ClassVar[int] = 1
    """Version of the rows; increased when the same parameters give other rows."""
    is_dense: ClassVar[bool] = False
    """True if every row holds every column."""
    near_equality: ClassVar[float | None] = None
    """Lowest cosine of rows of near-copies of a picture; None: cosines say nothing about copies."""
    batch_size: ClassVar[int] = BATCH
    """Most items of a batch for a worker."""

    seed: int = 0

    @property
    def has_counts(self) -> bool:
        """True if the values are counts."""
        return False

    @property
    @abstractmethod
    def n_features_(self) -> int:
        """Number of columns."""

    @abstractmethod
    def iterate_views(self, item: Item, augment: int = 0) -> Iterator[Any]:
        """Yield the decoded item as `encode` takes it: the first view, then `augment` further ones.

        Parameters
        ----------
        item : Item
        augment : int, default 0

        Yields
        ------
        object

        Raises
        ------
        UnreadableItemError
            The item cannot be read.
        """

    def read_time(self, item: Item) -> str | None:
        """Return the time that the source states; of pictures, else the capture time in the file; or None."""
        return item.time

    @abstractmethod
    def encode(self, view: Any) -> EncodedRow:
        """Return the row of a view.

        Parameters
        ----------
        view : object
            As `iterate_views` yields it.

        Returns
        -------
        columns : (nnz,) int32
            Ascending.
        values : (nnz,) float32
        """

    def prepare(self, augment: int = 0) -> None:
        """Raise InputError if this extractor cannot make `augment` further views, or is not fitted.

        Parameters
        ----------
        augment : int, default 0
            Further views of each item.

        Raises
        ------
        InputError
            A parameter is out of range, it is not fitted, or items of its modality have no further views.
        """
        self.check()
        self.refuse_views(augment)

    def refuse_views(self, augment: int) -> None:
        """Raise InputError where further views are requested of items that have none.

        Parameters
        ----------
        augment : int
            Further views of each item.
        """
        if augment and self.modality != "pictures":
            raise InputError(f"{self.modality} have no further views as pictures have; leave augment out")

    def fit(self, source: ItemSource, **options: Unpack[RunOptions]) -> Self:
        """Fit to a sample that is spread evenly over a source, if there is something to learn.

        Parameters
        ----------
        source : ItemSource
        executor : Executor or None
            Decodes items; None: this process.
        progress : Progress
        rejects : Rejects or None
            Lists items that cannot be read.

        Raises
        ------
        InputError
            A parameter is out of range, no item can be read, or there is too little to learn from.
        """
        self.check()
        self.refuse(source)
        self._learn(source, WorkContext.from_options(**options))
        return self

    def transform(self, source: ItemSource, *, augment: int = 0, **options: Unpack[RunOptions]) -> FeatureTable:
        """Return the rows of a source in memory; for larger ones see `extract_to_file`.

        Parameters
        ----------
        source : ItemSource
        executor : Executor or None
            Decodes items; None: this process.
        progress : Progress
        rejects : Rejects or None
            Lists items that cannot be read; they are left out.
        augment : int
            Further views of each picture as rows of their own, for training only. Their ids are the picture's with
            "#1", "#2" ... appended. Their group is the picture's (its id where it has none), so that a split by group
            keeps them together.

        Returns
        -------
        FeatureTable
            X is csr_matrix (n, n_features_) float32, or an array where rows are dense; label names in the order of
            their code points.

        Raises
        ------
        InputError
            It is not fitted, or a source of other items.
        """
        stream, facts = self.iterate(source, augment=augment, **options), self.table_facts(augment)
        return item_features.build_feature_table(stream, self.n_features_, dense=self.is_dense, **facts)

    def table_facts(self, augment: int = 0) -> JsonObject:
        """Return what a `FeatureTable` of rows with so many further views states about them.

        Parameters
        ----------
        augment : int, default 0
            Further views of each item.

        Returns
        -------
        dict
            Arguments of `FeatureTable`.
        """
        origin = {"extractor_fingerprint": self.fingerprint(), "near_equality": self.near_equality}
        return {**origin, "counts": self.has_counts, "augment": augment}

    def iterate(self, source: ItemSource, *, augment: int = 0, **options: Unpack[RunOptions]) -> Iterator[ItemFeatures]:
        """Yield the rows of `transform` in order, with only a few batches of items in memory.

        Parameters
        ----------
        source, augment, executor, progress, rejects
            See `transform`.

        Yields
        ------
        ItemFeatures
        """
        self.refuse(source)
        executor, progress, rejects = WorkContext.from_options(**options)
        items = sampling.iterate_item_batches(source, self.batch_size)
        with progress.stage("extracting features", len(source), self.modality) as stage:
            batches = self.extract_batches(items, executor=executor, augment=augment)
            for rows in item_features.iterate_results(batches, stage, rejects):
                yield from rows

    def extract_batches(
        self, groups: Iterable[tuple[Item, ...]], *, executor: Executor | None = None, augment: int = 0
    ) -> Iterator[list[list[ItemFeatures] | ItemRejection]]:
        """Yield the rows, or the rejection, of each item of each group.

        Parameters
        ----------
        groups : iterable of tuple of Item
        executor : Executor or None
            None: this process.
        augment : int, default 0
            Further views of each item.

        Returns
        -------
        iterator of list of (list of ItemFeatures, or ItemRejection)
            A list for every group, in their order.
        """
        self.prepare(augment)
        work = partial(extract_batch, augment=augment)
        return (executor or SerialExecutor()).map_with(work, self, groups)

    def transform_one(self, content: ItemContent) -> EncodedRow:
        """Return the row of one item.

        Parameters
        ----------
        content : Path, bytes or RegionCrop
            A file, its encoded bytes (UTF-8 for documents), or a region of either.

        Returns
        -------
        columns : (nnz,) int32
            Ascending.
        values : (nnz,) float32

        Raises
        ------
        UnreadableItemError
            The item cannot be read.
        """
        self.prepare()
        return self.encode(next(self.iterate_views(Item("", content, ()))))

    def refuse(self, source: object) -> None:
        """Raise InputError for anything but a source of such items.

        Parameters
        ----------
        source : object
        """
        if isinstance(source, FeatureTable):
            raise InputError(f"{self.name} takes {self.modality} and these are rows of features; give {self.modality}")
        if isinstance(source, str | Path):
            raise InputError(f"{str(source)!r} is a path; give the {self.modality} in it: open_source({str(source)!r})")
        modality = getattr(source, "modality", self.modality)
        if modality != self.modality:
            raise InputError(
                f"{self.name} takes {self.modality} and {source.path} holds {modality}; "  # type: ignore[attr-defined]
                f"use {list_extractor_names(modality)}"
            )

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        sampling.check_seed(self.seed)

    def to_state(self) -> ModelState:
        return ModelState(self.kind, {"version": self.version, "parameters": self.parameters()}, self._dump_tensors())

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        """Return the extractor of a saved state.

        Parameters
        ----------
        state : ModelState

        Raises
        ------
        ModelFolderError
            Another kind or version, or arrays are missing.
        """
        if state.kind != cls.kind:
            noun = cls.noun or repr(cls.kind)
            raise ModelFolderError(f"this is a {state.kind!r} and no {noun}; give the folder of one")
        if state.config.get("version") != cls.version:
            raise cls._make_version_error()
        with raise_damaged_state(f"this {cls.kind!r}"):
            return cls._rebuild(state)

    def fingerprint(self) -> str:
        """Return 32 hex digits that change with anything that changes a row.

        Returns
        -------
        str
        """
        state = self.to_state()
        return state.compute_fingerprint(state.config)

    def parameters(self) -> JsonObject:
        """Return the parameters, JSON-able; those of the class come before those of its bases.

        Returns
        -------
        dict
        """
        names = {field.name for field in fields(self) if field.init}
        ordered = [name for kind in type(self).__mro__ for name in get_annotations(kind) if name in names]
        return {name: to_json_value(getattr(self, name)) for name in ordered}

    def decoding_parameters(self) -> JsonObject:
        """Return the parameters that views depend on, and the seed.

        Returns
        -------
        dict
        """
        return {name: value for name, value in self.parameters().items() if name in _DECODING}

    def has_settings_of(self, extractor: "FeatureExtractor") -> bool:
        """Return True if another extractor has the same settings, seeds aside.

        Parameters
        ----------
        extractor : FeatureExtractor

        Returns
        -------
        bool
        """
        settings, other_settings = (
            {name: value for name, value in settings.items() if name.split()[-1] != "seed"}
            for settings in (self._list_settings(), extractor._list_settings())
        )
        return settings == other_settings

    def refuse_other_settings(self, extractor: "FeatureExtractor", where: object, remedy: str) -> None:
        """Raise InputError when this extractor, at `where`, has other settings than `extractor`.

        Parameters
        ----------
        extractor : FeatureExtractor
        where : object
            Place of this extractor, for the message.
        remedy : str
            Last clause of the message: what to do.
        """
        self.refuse_other_options(extractor._list_settings(), where, remedy)

    def refuse_other_options(self, options: Mapping[str, object], where: object, remedy: str) -> None:
        """Raise InputError when this extractor has other settings than these options.

        An option of a concatenation applies to all parts that have it.

        Parameters
        ----------
        options : mapping of str to object
            Values by the name of the setting.
        where : object
            Place of this extractor, for the message.
        remedy : str
            Last clause of the message: what to do.
        """
        settings = self._list_settings()
        pairs = [(name, opt) for opt in options for name in settings if opt in (name, name.split()[-1])]
        differences = [
            f"{name} {settings[name]} and not {options[opt]}" for name, opt in pairs if settings[name] != options[opt]
        ]
        differences = differences or [f"no {option}" for option in options if option not in {opt for _, opt in pairs}]
        require(not differences, f"the extractor {where} was made with {', '.join(differences)}; {remedy}")

    def identity(self) -> JsonObject:
        """Return the settings without defaults, such as the name.

        Returns
        -------
        dict
        """
        return {"features": self.name}

    def _list_settings(self) -> JsonObject:
        """Return the settings that `refuse_other_options` compares."""
        return {**self.identity(), **self.parameters()}

    @classmethod
    def _rebuild(cls, state: ModelState) -> Self:
        """Return the extractor of a saved state of this kind and version."""
        parameters = read_config(FeatureExtractorConfig, state.config).parameters
        check_parameters(cls, parameters)
        extractor = cls(**{name: _convert_to_tuples(value) for name, value in parameters.items()})
        extractor.check()
        extractor._restore(state.tensors)
        return extractor

    def _learn(self, source: ItemSource, context: WorkContext) -> None:
        """Learn from a source whose items are of the right modality."""
        return

    def _dump_tensors(self) -> dict[str, Array]:
        """Return the learned arrays by name."""
        return {}

    def _restore(self, tensors: dict[str, Array]) -> None:
        """Restore the learned arrays from `_dump_tensors`."""
        return

    def _require_learned(self, attribute: str, clause: str) -> None:
        """Raise InputError, which begins with the clause, before `fit`."""
        require(hasattr(self, attribute), f"{clause} yet; call fit with {self.modality} first")

    @classmethod
    def _make_version_error(cls) -> ModelFolderError:
        noun = cls.noun or repr(cls.kind)
        return ModelFolderError(
            f"this {noun} was made by another version of wsabie; install that version, or learn it again"
        )


def extract_batch(
    extractor: FeatureExtractor, batch: tuple[Item, ...], augment: int
) -> list[list[ItemFeatures] | ItemRejection]:
    """Return the rows of each item, or its rejection."""

    def extract(item: Item) -> list[ItemFeatures]:
        group = item.id if item.group is None and augment else item.group
        time = extractor.read_time(item)
        return [
            ItemFeatures(format_view_id(item.id, number), item.labels, group, time, *extractor.encode(view))
            for number, view in enumerate(extractor.iterate_views(item, augment))
        ]

    return [item_features.process_or_reject(item, extract) for item in batch]


@dataclass(frozen=True)
class FeatureExtractorConfig:
    """Config of the folder of an extractor."""

    parameters: JsonObject


@dataclass(frozen=True)
class NestedConfig:
    """Kind and config of an object that is nested in the folder of another."""

    kind: str
    config: JsonObject


@contextmanager
def raise_damaged_state(subject: str) -> Iterator[None]:
    """Turn errors of an inconsistent state into a ModelFolderError."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, MemoryError) as error:
        raise ModelFolderError(
            f"{subject} is damaged{bracket_detail(error)}; restore it from a copy or learn it again"
        ) from error


def _convert_to_tuples(value: Any) -> Any:
    return tuple(_convert_to_tuples(item) for item in value) if isinstance(value, list) else value
