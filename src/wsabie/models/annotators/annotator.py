"""A model with the feature extractor that turns files into its rows: what `wsabie train` saves."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from wsabie.core.arrays import Matrix, UInt64
from wsabie.core.errors import InputError
from wsabie.core.executors import Executor, SerialExecutor
from wsabie.core.progress import SILENT, Progress
from wsabie.features.base.feature_extractor import ExtractorPartConfig, FeatureExtractor
from wsabie.features.extractor_registry import restore_extractor
from wsabie.io.alignment import AlignedTable, align_table
from wsabie.io.records import FeatureTable, Item, ItemList, ItemSource, ModalityName, Source
from wsabie.io.regions import Region, RegionCrop, parse_region
from wsabie.models.base.folder_reader import load_by_kind
from wsabie.models.base.label_model import LabelModel
from wsabie.models.base.model_kinds import restore_model
from wsabie.storage.model_folder import ModelState, save_model_folder
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
class Annotator:
    """A fitted model and its features.

    Attributes
    ----------
    model : LabelModel
        Any estimator: `Wsabie`, or another of `wsabie.models.base.model_kinds`.
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
        X = self.rows_of_all([Item(place, RegionCrop(content, region), ())])
        return self.model.annotate(X, k)[0]

    def rows_of_all(
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

    def description(self) -> dict[str, Any]:
        """Return the settings of the feature extractor, JSON-able.

        Keys are "describe", "size", "crop" below 1, options of a network, "rate". The result is empty if the model was
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
        return {"describe": self.terms.name, **summary}

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
                f"this model was trained on rows of features, and {source.path} holds {source.things}; give rows"
            )
        if source.things != self.terms.things:
            raise InputError(
                f"this model is one of {self.terms.things}, and {source.path} holds {source.things}; give "
                f"{self.terms.things}"
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
        model = restore_model(parts.under("model", fields.model.kind, fields.model.config))
        terms, names = None, fields.feature_names
        if fields.terms is not None:
            terms = restore_extractor(parts.under("terms", fields.terms.kind, fields.terms.config))
        if names is not None and len(names) != model.n_features_in_:
            raise ValueError(f"feature_names names {len(names):,} of {model.n_features_in_:,} features")
        marks = check_array(parts.tensors, "marks", "uint64", (None,)) if "marks" in parts.tensors else None
        return cls(model, terms, names, fields.facts, fields.dictionary, marks)

    def save(self, path: str | Path) -> None:
        """Write the folder, atomically."""
        save_model_folder(path, self.to_parts())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open a saved annotator."""
        annotator: Self = load_by_kind(path, {KIND: cls.from_parts})
        return annotator
