"""A model together with what turns the user's files into its rows: the thing that `wsabie train` saves."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from wsabie.base.arrays import Matrix, UInt64
from wsabie.base.errors import InputError
from wsabie.base.executor import Executor, Serial
from wsabie.base.progress import SILENT, Progress
from wsabie.features.describer import Describer, PartConfig
from wsabie.features.registry import describer_from_parts
from wsabie.models.base import LabelModel
from wsabie.models.kinds import model_from
from wsabie.models.loading import load_one_of
from wsabie.sources.align import Aligned, align
from wsabie.sources.records import Item, ItemList, ItemSource, Rows, Source, Things
from wsabie.sources.regions import Cutout, Region, parse_region
from wsabie.storage.folder import Parts, save_folder
from wsabie.storage.rejects import Rejects
from wsabie.storage.schema import check_array, read_config

KIND = "annotator"


@dataclass(frozen=True)
class AnnotatorConfig:
    """The config of a folder of an annotator."""

    model: PartConfig
    feature_names: list[str] | None
    facts: dict[str, Any]
    dictionary: str | None = None
    terms: PartConfig | None = None


@dataclass
class Annotator:
    """A fitted model and its features.

    Attributes
    ----------
    model : LabelModel
        Any estimator: `Wsabie`, or another of `wsabie.models.kinds`.
    terms : Describer or None
        Turns pictures into rows, by visual terms or otherwise; None when the model was trained on rows.
    feature_names : list of str or None
        What the columns of rows mean, where the source knew.
    facts : dict
        What was trained on: source, fingerprint, counts, split. JSON-able.
    dictionary : str or None
        Fingerprint of the dictionary whose terms are the features; other rows are refused.
    marks : (n,) uint64 or None
        By which training rows are known again (`wsabie.sources.fingerprint.marks_of`); None where nobody made them.

    Examples
    --------
    >>> import numpy as np
    >>> from wsabie.models.wsabie import Wsabie
    >>> annotator = Annotator(Wsabie(dim=4, threads=1).fit(np.eye(2), ["sea", "sky"]), feature_names=["wet", "high"])
    >>> annotator.model.annotate(np.eye(2)[:1], k=1)[0][0][0]
    'sea'
    """

    model: LabelModel
    terms: Describer | None = None
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
    ) -> Aligned:
        """The source in the model's terms: its features, its label numbers; what had no place is counted.

        Rows with negative values where the model expects counts are listed by `rejects`, where it is given.
        """
        rows = source if isinstance(source, Rows) else self._described(source, executor, progress, rejects)
        model, rows = self.model, self._usable(rows, rejects)
        return align(rows, model.vocabulary_, self.feature_names, model.n_features_in_, self.dictionary)

    def rows_to_learn(
        self,
        source: Source,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
    ) -> Aligned:
        """The source with the model's features and its own labels, for `partial_fit`; see `rows`."""
        rows = source if isinstance(source, Rows) else self._described(source, executor, progress, rejects)
        rows = self._usable(rows, rejects)
        return align(rows, None, self.feature_names, self.model.n_features_in_, self.dictionary)

    def annotate_region(
        self, picture: str | Path | bytes, region: Region | str, k: int = 10
    ) -> list[tuple[str, float]]:
        """The k best labels of a region of a picture, with their scores, best first.

        Parameters
        ----------
        picture : str, Path or bytes
            A file, or its content.
        region : Region or str
            As `wsabie annotate --region` takes it: "X,Y,W,H" in pixels, or in per cent as "10%,20%,30%,40%", or the
            corners of a polygon.
        k : int

        Raises
        ------
        InputError
            The region is none or lies outside, the picture cannot be read, or the model is not one of pictures.
        """
        content = picture if isinstance(picture, bytes) else Path(picture)
        place = "the picture" if isinstance(content, bytes) else str(content)
        region = parse_region(region) if isinstance(region, str) else region
        X = self.rows_of_all([Item(place, Cutout(content, region), ())])
        return self.model.annotate(X, k)[0]

    def rows_of_all(
        self,
        items: list[Item],
        things: Things = "pictures",
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
    ) -> Matrix:
        """A row for each of some pictures, regions, sounds or documents, in their order.

        Raises
        ------
        InputError
            One of them cannot be read.
        """
        rejects = Rejects()
        source = ItemList(Path(items[0].id), items, things)
        rows = self.rows(source, executor=executor, progress=progress, rejects=rejects).rows
        if rejects.listed:
            where, reason, detail = rejects.listed[0]
            raise InputError(f"{where}: {reason}{f' ({detail})' if detail else ''}; give another")
        return rows.X

    def description(self) -> dict[str, Any]:
        """How items are described, JSON-able: "describe", "size", "crop" below 1, options of a network, "rate".

        Empty where the model was trained on rows. Of descriptions of several sizes the largest is told.
        """
        if self.terms is None:
            return {}
        known: dict[str, Any] = {}
        parts: tuple[Any, ...] = getattr(self.terms, "parts", (self.terms,))
        for part in parts:
            own = part.parameters()
            known |= own | ({"size": max(own["size"], known.get("size", 0))} if "size" in own else {})
        shown: dict[str, Any] = {
            name: known[name] for name in ("size", "crop", "normalise", "output", "rate") if name in known
        }
        if "rate" in shown:
            shown["rate"] = next(part.rate_ for part in parts if hasattr(part, "rate_"))
        if shown.get("crop") == 1:
            del shown["crop"]
        return {"describe": self.terms.name, **shown}

    def _usable(self, rows: Rows, rejects: Rejects | None) -> Rows:
        """Without the rows that the model's scaling refuses, where they can be listed."""
        scaling = getattr(getattr(self.model, "joined_", self.model), "scaling_", None)
        if rejects is None or scaling is None or isinstance(rows.X, np.ndarray):
            return rows
        refused = scaling.refused(rows.X)
        for row in refused.tolist():
            rejects.add(rows.ids[row], "negative value", "the model was trained on counts")
        return rows.take(np.delete(np.arange(len(rows)), refused)) if len(refused) else rows

    def _described(
        self, source: ItemSource, executor: Executor | None, progress: Progress, rejects: Rejects | None
    ) -> Rows:
        if self.terms is None:
            raise InputError(
                f"this model was trained on rows of features, and {source.path} holds {source.things}; give rows"
            )
        if source.things != self.terms.things:
            raise InputError(
                f"this model is one of {self.terms.things}, and {source.path} holds {source.things}; give "
                f"{self.terms.things}"
            )
        return self.terms.transform(source, executor=executor or Serial(), progress=progress, rejects=rejects)

    def to_parts(self) -> Parts:
        """JSON-able config and named arrays, the inner parts nested."""
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
        return Parts(KIND, config, tensors)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The annotator that `to_parts` described."""
        fields = read_config(AnnotatorConfig, parts.config)
        model = model_from(parts.under("model", fields.model.kind, fields.model.config))
        terms, names = None, fields.feature_names
        if fields.terms is not None:
            terms = describer_from_parts(parts.under("terms", fields.terms.kind, fields.terms.config))
        if names is not None and len(names) != model.n_features_in_:
            raise ValueError(f"feature_names names {len(names):,} of {model.n_features_in_:,} features")
        marks = check_array(parts.tensors, "marks", "uint64", (None,)) if "marks" in parts.tensors else None
        return cls(model, terms, names, fields.facts, fields.dictionary, marks)

    def save(self, path: str | Path) -> None:
        """Write the folder, atomically."""
        save_folder(path, self.to_parts())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open a saved annotator."""
        annotator: Self = load_one_of(path, {KIND: cls.from_parts})
        return annotator
