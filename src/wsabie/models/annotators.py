"""A model with the feature extractor that turns files into its rows, saved in one folder."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Self, TypeAlias, Unpack, cast, overload

import numpy as np

from wsabie.core.arrays import Array, Float32, Float64, Int64, Matrix, UInt64
from wsabie.core.errors import InputError, require
from wsabie.core.execution import SILENT, Executor, Progress
from wsabie.features.base.feature_extractor import FeatureExtractor, NestedConfig
from wsabie.features.base.sampling import RunOptions
from wsabie.features.extractor_registry import restore_extractor
from wsabie.io.alignment import AlignedTable, align_table
from wsabie.io.data_sources import open_source
from wsabie.io.records import FeatureTable, Item, ItemList, ItemSource, ModalityName, Source
from wsabie.io.regions import Region, RegionCrop, parse_region
from wsabie.models.base.label_model import Candidates, LabelModel, LabelScores
from wsabie.models.loader import restore_model
from wsabie.storage.model_folder import ModelState, SavedModel
from wsabie.storage.rejects import Rejects
from wsabie.storage.schema_validation import check_array, read_config

if TYPE_CHECKING:
    from PIL.Image import Image

KIND = "annotator"

ItemData: TypeAlias = "str | Path | bytes | Image"
"""A picture, a sound or a document: a file, its content, a picture of Pillow; a text if documents are expected."""
MIN_CANDIDATES = 100
"""Fewest best labels whose probabilities are compared with the thresholds."""
ThresholdFunction = Callable[[Int64], Float64]
"""Returns the lowest probability with which each label counts, from an array of label numbers."""


@dataclass(frozen=True)
class AnnotatorConfig:
    """The config of a folder of an annotator."""

    model: NestedConfig
    feature_names: list[str] | None
    facts: dict[str, Any]
    extractor_fingerprint: str | None = None
    extractor: NestedConfig | None = None


@dataclass
class Annotator(SavedModel):
    """A fitted model and its features.

    Attributes
    ----------
    model : LabelModel
        Any estimator: `Wsabie`, or another that `load` reads.
    extractor : FeatureExtractor or None
        Turns pictures, sounds or documents into rows; None if the model was trained on rows.
    feature_names : list of str or None
        Names of the columns, if the source has them.
    facts : dict
        Training data: source, fingerprint, counts, split. JSON-able.
    extractor_fingerprint : str or None
        Fingerprint of the extractor that made the features; rows of another one are refused.
    row_hashes : (n,) uint64 or None
        Hashes of id and features that identify training rows, if they were computed.

    Examples
    --------
    >>> import numpy as np
    >>> from wsabie import Wsabie
    >>> annotator = Annotator(Wsabie(dim=4, threads=1).fit(np.eye(2), ["sea", "sky"]), feature_names=["wet", "high"])
    >>> annotator.annotate(np.eye(2)[:1], k=1)[0][0][0]
    'sea'
    """

    kind = KIND
    model: LabelModel
    extractor: FeatureExtractor | None = None
    feature_names: list[str] | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    extractor_fingerprint: str | None = None
    row_hashes: UInt64 | None = None

    @overload
    def annotate(self, data: str | Path | Source, k: int = 10, **options: Any) -> dict[str, LabelScores]: ...

    @overload
    def annotate(self, data: "list[ItemData] | Matrix", k: int = 10, **options: Any) -> list[LabelScores]: ...

    def annotate(
        self,
        data: "str | Path | Source | list[ItemData] | Matrix",
        k: int = 10,
        *,
        rejects: Rejects | None = None,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        **options: Any,
    ) -> dict[str, LabelScores] | list[LabelScores]:
        """Return the k best labels of pictures, sounds, documents or rows, with their scores, best first.

        Parameters
        ----------
        data : str, Path, source, list or array
            A file or a folder of any form that `wsabie.open_source` opens, or what it returns; or a list of files,
            of bytes of files, of pictures of Pillow or, with a model of documents, of texts; or rows of features, (n,
            n_features).
        k : int, default 10
            Most labels of each.
        rejects : Rejects or None, default None
            Collects items of a path or a source that cannot be used; without it a warning counts them. In a list, one
            bad item is an error.
        executor : Executor or None
            Runs the extraction of features; None is this process.
        progress : Progress
            Shows the progress of the extraction.
        **options
            Options of the model's `rank`: `candidates`, `exact`.

        Returns
        -------
        dict of str to list of (name, score)
            Labels by the id of an item, if `data` is a path or a source.
        list of list of (name, score)
            Labels in the order of `data`, if it is a list or an array.

        Raises
        ------
        InputError
            Nothing can be used, or one item of a list, or `data` are of another kind than the model's.
        """
        if not isinstance(data, str | Path | FeatureTable) and not hasattr(data, "modality"):
            return self.model.annotate(self._extract_list(data, executor=executor, progress=progress), k, **options)
        skipped = Rejects() if rejects is None else rejects
        source = self._open(data, skipped, progress) if isinstance(data, str | Path) else cast(Source, data)
        rows = self.rows(source, executor=executor, progress=progress, rejects=skipped).rows
        problem = f"there is nothing to annotate ({skipped.summary() or 'the data are empty'}); give other data"
        require(len(rows) > 0, problem)
        if rejects is None and len(skipped):
            warnings.warn(f"{skipped.summary()}; annotate(..., rejects=wsabie.Rejects()) lists them", stacklevel=2)
        return dict(zip(rows.ids, self.model.annotate(rows.X, k, **options), strict=True))

    def predict(self, data: "list[ItemData] | Matrix", k: int | None = None) -> Array:
        """Return the best labels of a list of items, or of rows, as `LabelModel.predict` does.

        Parameters
        ----------
        data : list of str, Path, bytes or Image; or sparse matrix or array, (n, n_features)
            Items (documents may be texts), or rows.
        k : int or None, default None
            Number of labels of an item; None is the best one alone.

        Returns
        -------
        (n,) or (n, k) array
            Names of labels, or numbers if the model was fitted to numbers.

        Raises
        ------
        InputError
            An item cannot be read, or `data` are of another kind than the model's.
        """
        return self.model.predict(self._extract_list(data), k)

    def predict_proba(self, data: "list[ItemData] | Matrix") -> Float64:
        """Return the probability of each label for a list of items, or for rows.

        Parameters
        ----------
        data : as for `predict`

        Returns
        -------
        (n, n_labels) float64

        Raises
        ------
        NotCalibratedError
            The model was fitted without validation rows.
        """
        probabilities: Float64 = self.model.predict_proba(self._extract_list(data))
        return probabilities

    def _open(self, path: str | Path, rejects: Rejects, progress: Progress) -> Source:
        """Open unlabelled data of the model's modality."""
        modality = None if self.extractor is None else self.extractor.modality
        n_features = self.model.n_features_in_
        return open_source(
            path, labels_from="none", modality=modality, n_features=n_features, rejects=rejects, progress=progress
        )

    def _extract_list(self, data: Any, **options: Unpack[RunOptions]) -> Matrix:
        """Return rows of features of a list of items; rows stay as they are."""
        require(not _is_item(data), "that is one item, or the name of one; give a list, or a folder to annotate")
        data = list(data) if isinstance(data, Iterator) else data
        require(not isinstance(data, list | tuple) or len(data) > 0, "the list is empty; give items or rows")
        if not (isinstance(data, list | tuple) and _is_item(data[0])):
            return data
        if self.extractor is None:
            content = type(data[0]).__name__
            raise InputError(f"this model was trained on rows of features, and the list holds {content}; give rows")
        items = [_make_item(i, content, self.extractor.modality) for i, content in enumerate(data)]
        return self.rows_of_items(items, self.extractor.modality, **options)

    def rows(self, source: Source, *, keep_labels: bool = False, **options: Unpack[RunOptions]) -> AlignedTable:
        """Return the source's rows with the model's features and label numbers; what does not fit is counted.

        Rows with negative values where the model expects counts are added to `rejects`, if it is given.

        Parameters
        ----------
        source : ItemSource or FeatureTable
        keep_labels : bool, default False
            True: rows have the source's own labels, for `partial_fit`.
        executor, progress, rejects
            See `FeatureExtractor.transform`.

        Returns
        -------
        AlignedTable

        Raises
        ------
        InputError
            The source is of another kind than the model's data.
        """
        rows = source if isinstance(source, FeatureTable) else self._extract_features(source, options)
        rows = self._drop_refused_rows(rows, options.get("rejects"))
        vocabulary = None if keep_labels else self.model.vocabulary_
        return align_table(rows, vocabulary, self.feature_names, self.model.n_features_in_, self.extractor_fingerprint)

    def annotate_region(self, picture: str | Path | bytes, region: Region | str, k: int = 10) -> LabelScores:
        """Return the k best labels of a region of a picture, with their scores, best first.

        Parameters
        ----------
        picture : str, Path or bytes
            A file, or its content.
        region : Region or str
            "X,Y,W,H" in pixels, "10%,20%,30%,40%", or the corners of a polygon (`parse_region`).
        k : int

        Returns
        -------
        list of (name, score)

        Raises
        ------
        InputError
            The region is invalid or lies outside, the picture cannot be read, or the model does not take pictures.
        """
        content = picture if isinstance(picture, bytes) else Path(picture)
        item_id = "the picture" if isinstance(content, bytes) else str(content)
        region = parse_region(region) if isinstance(region, str) else region
        X = self.rows_of_items([Item(item_id, RegionCrop(content, region), ())])
        return self.model.annotate(X, k)[0]

    def rows_of_items(
        self, items: list[Item], modality: ModalityName = "pictures", **options: Unpack[RunOptions]
    ) -> Matrix:
        """Return a row for each picture, region, sound or document, in their order.

        Parameters
        ----------
        items : list of Item
        modality : {"pictures", "sounds", "documents"}
        executor, progress
            See `FeatureExtractor.transform`.
        rejects
            Has no effect: an item that cannot be read is an error.

        Returns
        -------
        sparse matrix or array, (n, n_features)

        Raises
        ------
        InputError
            One of them cannot be read.
        """
        options["rejects"] = rejects = Rejects()
        rows = self.rows(ItemList(Path(items[0].id), items, modality), **options).rows
        if rejects.listed:
            item_id, reason, detail = rejects.listed[0]
            raise InputError(f"{item_id}: {reason}{f' ({detail})' if detail else ''}; give another")
        return rows.X

    def extraction_facts(self) -> dict[str, Any]:
        """Return the settings of the feature extractor, JSON-able.

        Keys are "extractor", "size", "crop" below 1, options of a network, "rate". The result is empty if the model was
        trained on rows. Of several sizes the largest is given.

        Returns
        -------
        dict
        """
        if self.extractor is None:
            return {}
        parts: tuple[Any, ...] = getattr(self.extractor, "parts", (self.extractor,))
        parameters: dict[str, Any] = {}
        for part in parts:
            size = parameters.get("size", 0)
            parameters |= part.parameters()
            if "size" in parameters:
                parameters["size"] = max(size, parameters["size"])
        if "rate" in parameters:
            parameters["rate"] = next(part.rate_ for part in parts if hasattr(part, "rate_"))
        if parameters.get("crop") == 1:
            del parameters["crop"]
        names = [name for name in ("size", "crop", "normalise", "output", "rate") if name in parameters]
        return {"extractor": self.extractor.name, **{name: parameters[name] for name in names}}

    def _drop_refused_rows(self, rows: FeatureTable, rejects: Rejects | None) -> FeatureTable:
        """Drop rows that the model's scaling refuses, if there is a list for them."""
        scaling = getattr(getattr(self.model, "joined_", self.model), "scaling_", None)
        if rejects is None or scaling is None or isinstance(rows.X, np.ndarray):
            return rows
        refused = scaling.find_refused_rows(rows.X)
        for row in refused.tolist():
            rejects.add(rows.ids[row], "negative value", "the model was trained on counts")
        return rows.take(np.delete(np.arange(len(rows)), refused)) if len(refused) else rows

    def _extract_features(self, source: ItemSource, options: RunOptions) -> FeatureTable:
        if self.extractor is None:
            fact = f"this model was trained on rows of features, and {source.path} holds {source.modality}"
            raise InputError(f"{fact}; give rows")
        if source.modality != self.extractor.modality:
            fact = f"this model is one of {self.extractor.modality}, and {source.path} holds {source.modality}"
            raise InputError(f"{fact}; give {self.extractor.modality}")
        return self.extractor.transform(source, **options)

    def to_state(self) -> ModelState:
        """Return JSON-able config and named arrays, the inner parts nested.

        Returns
        -------
        ModelState
        """
        model = self.model.to_state()
        config: dict[str, Any] = {
            "model": {"kind": model.kind, "config": model.config},
            "feature_names": self.feature_names,
            "facts": self.facts,
            "extractor_fingerprint": self.extractor_fingerprint,
        }
        tensors = model.add_prefix("model")
        if self.extractor is not None:
            extractor = self.extractor.to_state()
            config["extractor"] = {"kind": extractor.kind, "config": extractor.config}
            tensors |= extractor.add_prefix("extractor")
        if self.row_hashes is not None:
            tensors["row_hashes"] = self.row_hashes
        return ModelState(KIND, config, tensors)

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        fields = read_config(AnnotatorConfig, state.config)
        model = restore_model(state.select_prefix("model", fields.model.kind, fields.model.config))
        extractor, names = None, fields.feature_names
        if (saved := fields.extractor) is not None:
            extractor = restore_extractor(state.select_prefix("extractor", saved.kind, saved.config))
        if names is not None and len(names) != model.n_features_in_:
            raise ValueError(f"feature_names names {len(names):,} of {model.n_features_in_:,} features")
        has_hashes = "row_hashes" in state.tensors
        row_hashes = check_array(state.tensors, "row_hashes", "uint64", (None,)) if has_hashes else None
        return cls(model, extractor, names, fields.facts, fields.extractor_fingerprint, row_hashes)


def _is_item(data: Any) -> bool:
    return isinstance(data, str | PurePath | bytes) or hasattr(data, "getexif")  # a picture of Pillow


def _make_item(number: int, data: "ItemData", modality: ModalityName) -> Item:
    """Make an item of a file, bytes, a picture of Pillow or, where documents are expected, a text."""
    name = f"item {number}"
    require(_is_item(data), f"{name} of the list is {type(data).__name__}; give files, bytes, pictures or texts")
    if isinstance(data, bytes):
        return Item(name, data, ())
    if isinstance(data, str) and modality == "documents":
        return Item(name, data.encode(), ())
    if isinstance(data, str | PurePath):
        return Item(str(data), Path(data), ())
    buffer = BytesIO()
    picture = data if data.mode in ("1", "L", "LA", "I", "P", "RGB", "RGBA") else data.convert("RGB")
    picture.save(buffer, "PNG", compress_level=1, exif=data.getexif())
    return Item(name, buffer.getvalue(), ())


def rank_above(model: Any, X: Any, k: int, least: ThresholdFunction, **options: Any) -> tuple[Int64, Float32, Float64]:
    """Return the best labels of rows among those whose probability reaches the threshold.

    Parameters
    ----------
    model : LabelModel
        Model with probabilities (`calibration_`).
    X : (n_rows, n_features) array or sparse matrix
    k : int
        Most labels of a row.
    least : callable
    **options
        Options of `rank`: `candidates`, `exact`.

    Returns
    -------
    labels, scores, probabilities : (n_rows, up to k) int64, float32, float64
        Best first; after the last label of a row come -1 and 0.

    Examples
    --------
    >>> from wsabie import Wsabie
    >>> X = np.eye(2, dtype=np.float32)
    >>> model = Wsabie(dim=4, threads=1, epochs=20).fit(X, ["red", "green"], validation=(X, ["red", "green"]))
    >>> rank_above(model, X, 1, lambda columns: np.where(columns == 0, 0.0, 1.1))[0].tolist()
    [[0], [0]]
    """
    width = len(options.get("candidates") or model.vocabulary_)
    labels, scores = model.rank(X, min(max(k, MIN_CANDIDATES), width), **options)
    probabilities = compute_probabilities(model, X, labels, scores, options.get("candidates"))
    is_above = (labels >= 0) & (probabilities >= least(labels))
    order = np.argsort(~is_above, axis=1, kind="stable")[:, :k]  # labels above the threshold first, in their order
    labels, scores, probabilities, is_above = (
        np.take_along_axis(table, order, axis=1) for table in (labels, scores, probabilities, is_above)
    )
    labels, scores = np.where(is_above, labels, -1), np.where(is_above, scores, 0).astype(np.float32)
    return labels, scores, np.where(is_above, probabilities, 0.0)


def compute_probabilities(model: Any, X: Any, labels: Int64, scores: Float32, candidates: Candidates = None) -> Float64:
    """Return the probabilities of ranked labels; the best labels of a row compete, ranked or not.

    Parameters
    ----------
    model : LabelModel
        Model with probabilities (`calibration_`).
    X : (n_rows, n_features) array or sparse matrix
    labels, scores : (n_rows, k) int64, float32
        Result of `rank`.
    candidates : list of label names or numbers, or None
        Labels that the ranking was limited to.
    """
    n_best = min(MIN_CANDIDATES, len(model.vocabulary_))
    is_partial = candidates is not None or labels.shape[1] < n_best
    best = model.rank(X, n_best)[::-1] if model.calibration_.competition and is_partial else None
    probabilities: Float64 = model.calibration_.predict_proba(scores, labels, best)
    return probabilities
