"""A model with the feature extractor that turns files into its rows: what `wsabie train` saves."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from wsabie.core.arrays import Float32, Float64, Int64, Matrix, UInt64
from wsabie.core.errors import InputError
from wsabie.core.executors import Executor, SerialExecutor
from wsabie.core.progress import SILENT, Progress
from wsabie.core.validation import check_positive_integer, require
from wsabie.features.base.feature_extractor import ExtractorPartConfig, FeatureExtractor
from wsabie.features.extractor_registry import restore_extractor
from wsabie.io.alignment import AlignedTable, align_table
from wsabie.io.records import FeatureTable, Item, ItemList, ItemSource, ModalityName, Source
from wsabie.io.regions import Region, RegionCrop, parse_region
from wsabie.models.base.label_model import LabelModel
from wsabie.models.entity_space.space import Space
from wsabie.models.loader import SavedModel, restore_model
from wsabie.storage.model_folder import ModelState
from wsabie.storage.rejects import Rejects
from wsabie.storage.schema_validation import check_array, read_config

KIND = "annotator"


@dataclass(frozen=True)
class AnnotatorConfig:
    """The config of a folder of an annotator."""

    model: ExtractorPartConfig
    feature_names: list[str] | None
    facts: dict[str, Any]
    dictionary: str | None = None
    terms: ExtractorPartConfig | None = None


@dataclass
class Annotator(SavedModel):
    """A fitted model and its features.

    Attributes
    ----------
    model : LabelModel
        Any estimator: `Wsabie`, or another of `wsabie.models.loader`.
    terms : FeatureExtractor or None
        Turns pictures, sounds or documents into rows; None if the model was trained on rows.
    feature_names : list of str or None
        Names of the columns, if the source has them.
    facts : dict
        Training data: source, fingerprint, counts, split. JSON-able.
    dictionary : str or None
        Fingerprint of the dictionary whose words are the features; rows with another one are refused.
    marks : (n,) uint64 or None
        Marks that identify training rows (`wsabie.io.fingerprints.compute_row_marks`), if they were computed.

    Examples
    --------
    >>> import numpy as np
    >>> from wsabie.models.wsabie.estimator import Wsabie
    >>> annotator = Annotator(Wsabie(dim=4, threads=1).fit(np.eye(2), ["sea", "sky"]), feature_names=["wet", "high"])
    >>> annotator.model.annotate(np.eye(2)[:1], k=1)[0][0][0]
    'sea'
    """

    kind = KIND
    model: LabelModel
    terms: FeatureExtractor | None = None
    feature_names: list[str] | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    dictionary: str | None = None
    marks: UInt64 | None = None

    def rows(
        self,
        source: Source,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
    ) -> AlignedTable:
        """Return the source's rows with the model's features and label numbers; what does not fit is counted.

        Rows with negative values where the model expects counts are added to `rejects`, if it is given.
        """
        rows = (
            source if isinstance(source, FeatureTable) else self._extract_features(source, executor, progress, rejects)
        )
        model, rows = self.model, self._drop_refused_rows(rows, rejects)
        return align_table(rows, model.vocabulary_, self.feature_names, model.n_features_in_, self.dictionary)

    def rows_to_learn(
        self,
        source: Source,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
    ) -> AlignedTable:
        """Return the source's rows with the model's features and the source's own labels, for `partial_fit`."""
        rows = (
            source if isinstance(source, FeatureTable) else self._extract_features(source, executor, progress, rejects)
        )
        rows = self._drop_refused_rows(rows, rejects)
        return align_table(rows, None, self.feature_names, self.model.n_features_in_, self.dictionary)

    def annotate_region(
        self, picture: str | Path | bytes, region: Region | str, k: int = 10
    ) -> list[tuple[str, float]]:
        """Return the k best labels of a region of a picture, with their scores, best first.

        Parameters
        ----------
        picture : str, Path or bytes
            A file, or its content.
        region : Region or str
            In the format of `wsabie annotate --region`: "X,Y,W,H" in pixels, "10%,20%,30%,40%", or the corners of a
            polygon.
        k : int

        Raises
        ------
        InputError
            The region is invalid or lies outside, the picture cannot be read, or the model does not take pictures.
        """
        content = picture if isinstance(picture, bytes) else Path(picture)
        place = "the picture" if isinstance(content, bytes) else str(content)
        region = parse_region(region) if isinstance(region, str) else region
        X = self.rows_of_items([Item(place, RegionCrop(content, region), ())])
        return self.model.annotate(X, k)[0]

    def rows_of_items(
        self,
        items: list[Item],
        modality: ModalityName = "pictures",
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
    ) -> Matrix:
        """Return a row for each picture, region, sound or document, in their order.

        Raises
        ------
        InputError
            One of them cannot be read.
        """
        rejects = Rejects()
        source = ItemList(Path(items[0].id), items, modality)
        rows = self.rows(source, executor=executor, progress=progress, rejects=rejects).rows
        if rejects.listed:
            item_id, reason, detail = rejects.listed[0]
            raise InputError(f"{item_id}: {reason}{f' ({detail})' if detail else ''}; give another")
        return rows.X

    def extraction_facts(self) -> dict[str, Any]:
        """Return the settings of the feature extractor, JSON-able.

        Keys are "extractor", "size", "crop" below 1, options of a network, "rate". The result is empty if the model was
        trained on rows. Of several sizes the largest is given.
        """
        if self.terms is None:
            return {}
        parameters: dict[str, Any] = {}
        parts: tuple[Any, ...] = getattr(self.terms, "parts", (self.terms,))
        for part in parts:
            part_parameters = part.parameters()
            parameters |= part_parameters | (
                {"size": max(part_parameters["size"], parameters.get("size", 0))} if "size" in part_parameters else {}
            )
        summary: dict[str, Any] = {
            name: parameters[name] for name in ("size", "crop", "normalise", "output", "rate") if name in parameters
        }
        if "rate" in summary:
            summary["rate"] = next(part.rate_ for part in parts if hasattr(part, "rate_"))
        if summary.get("crop") == 1:
            del summary["crop"]
        return {"extractor": self.terms.name, **summary}

    def _drop_refused_rows(self, rows: FeatureTable, rejects: Rejects | None) -> FeatureTable:
        """Drop rows that the model's scaling refuses, if there is a list for them."""
        scaling = getattr(getattr(self.model, "joined_", self.model), "scaling_", None)
        if rejects is None or scaling is None or isinstance(rows.X, np.ndarray):
            return rows
        refused = scaling.refused(rows.X)
        for row in refused.tolist():
            rejects.add(rows.ids[row], "negative value", "the model was trained on counts")
        return rows.take(np.delete(np.arange(len(rows)), refused)) if len(refused) else rows

    def _extract_features(
        self, source: ItemSource, executor: Executor | None, progress: Progress, rejects: Rejects | None
    ) -> FeatureTable:
        if self.terms is None:
            raise InputError(
                f"this model was trained on rows of features, and {source.path} holds {source.modality}; give rows"
            )
        if source.modality != self.terms.modality:
            raise InputError(
                f"this model is one of {self.terms.modality}, and {source.path} holds {source.modality}; give "
                f"{self.terms.modality}"
            )
        return self.terms.transform(source, executor=executor or SerialExecutor(), progress=progress, rejects=rejects)

    def to_parts(self) -> ModelState:
        """Return JSON-able config and named arrays, the inner parts nested."""
        model = self.model.to_parts()
        config: dict[str, Any] = {
            "model": {"kind": model.kind, "config": model.config},
            "feature_names": self.feature_names,
            "facts": self.facts,
            "dictionary": self.dictionary,
        }
        tensors = model.nested("model")
        if self.terms is not None:
            terms = self.terms.to_parts()
            config["terms"] = {"kind": terms.kind, "config": terms.config}
            tensors |= terms.nested("terms")
        if self.marks is not None:
            tensors["marks"] = self.marks
        return ModelState(KIND, config, tensors)

    @classmethod
    def from_parts(cls, parts: ModelState) -> Self:
        """Restore the annotator from its parts."""
        fields = read_config(AnnotatorConfig, parts.config)
        model = restore_model(parts.extract("model", fields.model.kind, fields.model.config))
        terms, names = None, fields.feature_names
        if fields.terms is not None:
            terms = restore_extractor(parts.extract("terms", fields.terms.kind, fields.terms.config))
        if names is not None and len(names) != model.n_features_in_:
            raise ValueError(f"feature_names names {len(names):,} of {model.n_features_in_:,} features")
        marks = check_array(parts.tensors, "marks", "uint64", (None,)) if "marks" in parts.tensors else None
        return cls(model, terms, names, fields.facts, fields.dictionary, marks)


MIN_CANDIDATES = 100
"""Fewest best labels whose probabilities are compared with the thresholds."""

ThresholdFunction = Callable[[Int64], Float64]
"""Returns the lowest probability with which each label counts, from an array of label numbers."""


def rank_above(model: Any, X: Any, k: int, least: ThresholdFunction, **among: Any) -> tuple[Int64, Float32, Float64]:
    """Return the best labels of rows among those whose probability reaches the threshold.

    Parameters
    ----------
    model : LabelModel
        With probabilities (`calibration_`).
    X : (n_rows, n_features) array or sparse matrix
    k : int
        Most labels of a row.
    least : callable
    **among
        Options of `rank`: `candidates`, `exact`.

    Returns
    -------
    labels, scores, probabilities : (n_rows, up to k) int64, float32, float64
        Best first; after the last label of a row come -1 and 0.

    Examples
    --------
    >>> from wsabie.models.wsabie.estimator import Wsabie
    >>> X = np.eye(2, dtype=np.float32)
    >>> model = Wsabie(dim=4, threads=1, epochs=20).fit(X, ["red", "green"], validation=(X, ["red", "green"]))
    >>> rank_above(model, X, 1, lambda columns: np.where(columns == 0, 0.0, 1.1))[0].tolist()
    [[0], [0]]
    """
    width = len(among.get("candidates") or model.vocabulary_)
    labels, scores = model.rank(X, min(max(k, MIN_CANDIDATES), width), **among)
    probabilities = model.calibration_.predict_proba(scores, labels)
    is_above = (labels >= 0) & (probabilities >= least(labels))
    order = np.argsort(~is_above, axis=1, kind="stable")[:, :k]  # labels above the threshold first, in their order
    labels, scores, probabilities, is_above = (
        np.take_along_axis(table, order, axis=1) for table in (labels, scores, probabilities, is_above)
    )
    return (
        np.where(is_above, labels, -1),
        np.where(is_above, scores, 0).astype(np.float32),
        np.where(is_above, probabilities, 0.0),
    )


SPACE_KIND = "space-annotator"


@dataclass(frozen=True)
class ColumnsConfig:
    """The part of a folder's config about the columns of a kind."""

    feature_names: list[str] | None = None
    dictionary: str | None = None


@dataclass(frozen=True)
class SpaceAnnotatorConfig:
    """The config of a folder of a space with its features."""

    space: dict[str, Any]
    columns: dict[str, ColumnsConfig]
    facts: dict[str, Any]
    terms: dict[str, ExtractorPartConfig]


@dataclass
class SpaceAnnotator(SavedModel):
    """A fitted space and the features of its kinds.

    Attributes
    ----------
    space : Space
    terms : dict of str to FeatureExtractor
        Extractors of the kinds that consist of pictures, sounds or documents.
    columns : dict of str to dict
        "feature_names" and "dictionary" of the kinds with data, if the rows have them.
    facts : dict
        Training data, JSON-able.
    """

    kind = SPACE_KIND
    space: Space
    terms: dict[str, FeatureExtractor] = field(default_factory=dict)
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def rows(
        self,
        kind: str,
        source: Source,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
    ) -> AlignedTable:
        """Return items of a kind with its features; values without a place there are counted.

        Raises
        ------
        InputError
            The kind has no features, or other ones.
        """
        entities = self.space.find_entities(kind)
        if not entities.n_features:
            raise InputError(f"things of the kind {kind!r} are known by their names alone; give names")
        if not isinstance(source, FeatureTable):
            if kind not in self.terms:
                raise InputError(f"the kind {kind!r} was trained on rows of features, and {source.path} holds "
                                 f"{source.modality}; give rows")  # fmt: skip
            source = self.terms[kind].transform(
                source, executor=executor or SerialExecutor(), progress=progress, rejects=rejects
            )
        columns = self.columns.get(kind, {})
        return align_table(source, None, columns.get("feature_names"), entities.n_features, columns.get("dictionary"))

    def text(self, kind: str, text: str) -> Any:
        """Return the features of a text or a word, (1, n_features), for a kind of documents.

        Raises
        ------
        InputError
            Items of the kind are no documents, or no word of the text is known.
        """
        from scipy.sparse import csr_matrix

        terms = self.terms.get(kind)
        if terms is None or str(terms.modality) != "documents":
            raise InputError(f"things of the kind {kind!r} are no documents; give a kind that is made of text")
        columns, values = terms.transform_one(text.encode())
        require(len(columns) > 0, f"no word of {text!r} is in the dictionary; give another text")
        return csr_matrix((values, columns, [0, len(columns)]), (1, terms.n_features_))

    def words_near(self, kind: str, text: str, k: int = 10) -> list[tuple[str, float]]:
        """Return the words nearest to a word or a text by cosine, with their cosines.

        A word counts as a document of one word.

        Raises
        ------
        InputError
            Items of the kind are no documents, its words are hashed, or no word of the text is known.
        """
        from wsabie.search.exact_index import find_top_k

        row = self.text(kind, text)
        words: Any = getattr(self.terms[kind], "words_", None)
        if words is None:
            raise InputError(
                f"the words of the kind {kind!r} are hashed, so that they have no names; train without hashing"
            )
        space = self.space.space_
        table = space.tables[self.space.find_entities(kind).table][:, : space.dim]
        k = min(check_positive_integer(k, "k"), len(words) - row.nnz)
        ids, cosines = find_top_k(self.space.points(kind, row), table, k + row.nnz, similarity="cosine")
        near = [(int(j), float(c)) for j, c in zip(ids[0], cosines[0], strict=True) if j not in row.indices][:k]
        return [(words.word(j), cosine) for j, cosine in near]

    def to_parts(self) -> ModelState:
        """Return JSON-able config and named arrays, the inner parts nested."""
        space = self.space.to_parts()
        config: dict[str, Any] = {"space": space.config, "columns": self.columns, "facts": self.facts, "terms": {}}
        tensors = space.nested("space")
        for name, extractor in self.terms.items():
            extractor_state = extractor.to_parts()
            config["terms"][name] = {"kind": extractor_state.kind, "config": extractor_state.config}
            tensors |= extractor_state.nested(f"terms/{name}")
        return ModelState(SPACE_KIND, config, tensors)

    @classmethod
    def from_parts(cls, parts: ModelState) -> Self:
        """Restore the annotator from its parts."""
        fields = read_config(SpaceAnnotatorConfig, parts.config)
        space = Space.from_parts(parts.extract("space", Space.kind, fields.space))
        terms = {
            name: restore_extractor(parts.extract(f"terms/{name}", extractor.kind, extractor.config))
            for name, extractor in fields.terms.items()
        }
        if unknown := terms.keys() - space.kinds_.keys():
            raise ValueError(f"it describes the kinds {', '.join(sorted(unknown))}, which its space does not know")
        return cls(space, terms, parts.config["columns"], fields.facts)
