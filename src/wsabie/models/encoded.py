"""A collection as points of a model's space: encoded once, searched often."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from wsabie.base.arrays import Float32
from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.models.annotator import Annotator
from wsabie.models.base import LabelModel
from wsabie.models.loading import load_one_of
from wsabie.sources.records import Source
from wsabie.storage.folder import Parts, save_folder
from wsabie.storage.rejects import Rejects
from wsabie.storage.schema import check_array, read_config

KIND = "points"


@dataclass(frozen=True)
class PointsConfig:
    """The config of a folder of points."""

    ids: list[str]
    origin: str


@dataclass(frozen=True)
class Encoded:
    """Ids and points of a collection.

    Attributes
    ----------
    ids : list of str
    points : (n, dim) float32
        What `transform` of the model gives; may be mapped from a file.
    origin : str
        Says which model and collection they are of, for those who keep them.
    """

    ids: list[str]
    points: Float32
    origin: str = ""

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(
        cls,
        annotator: Annotator,
        source: Source,
        *,
        origin: str = "",
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
    ) -> Self:
        """Describe and encode a collection; what cannot be read is listed and left out.

        Raises
        ------
        InputError
            The model has no points, or the collection is not what it takes.
        """
        refuse_without_points(annotator.model)
        rows = annotator.rows(source, executor=executor, progress=progress, rejects=rejects).rows
        return cls(rows.ids, np.asarray(annotator.model.transform(rows.X), np.float32), origin)

    def save(self, path: str | Path) -> None:
        """Write a folder, atomically."""
        save_folder(path, Parts(KIND, {"ids": self.ids, "origin": self.origin}, {"points": self.points}))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open a saved folder; points are mapped into memory.

        Raises
        ------
        ModelFolderError
            Missing, damaged, or another thing than points.
        """
        found: Self = load_one_of(path, {KIND: cls._restored}, "wsabie search --points")
        return found

    @classmethod
    def _restored(cls, parts: Parts) -> Self:
        fields = read_config(PointsConfig, parts.config)
        return cls(fields.ids, check_array(parts.tensors, "points", "float32", (len(fields.ids), None)), fields.origin)


def refuse_without_points(model: LabelModel) -> None:
    """Refuse a model that has no points of things and of labels."""
    if not hasattr(model, "transform"):
        raise InputError(
            f"a model of kind {model.kind} has no points of things, which a search compares; train a kind that "
            "has, such as wsabie"
        )
