"""Embeddings of items: encoded once, searched often."""

from dataclasses import dataclass
from typing import Self, Unpack

import numpy as np

from wsabie.core.arrays import Float32
from wsabie.core.errors import InputError
from wsabie.features.base.sampling import RunOptions
from wsabie.io.records import Source
from wsabie.models.annotators import Annotator
from wsabie.models.base.label_model import LabelModel
from wsabie.storage.model_folder import ModelState, SavedModel
from wsabie.storage.schema_validation import check_array, read_config


@dataclass(frozen=True)
class EmbeddingSetConfig:
    """The config of a folder of embeddings."""

    ids: list[str]
    origin: str


@dataclass(frozen=True)
class EmbeddingSet(SavedModel):
    """Ids and embeddings of items.

    Attributes
    ----------
    ids : list of str
    vectors : (n, dim) float32
        Embeddings from `transform` of the model; may be mapped from a file.
    origin : str
        Note about the model and the items.
    """

    kind = "embeddings"
    written_by = "`search(embeddings=FOLDER)`"
    ids: list[str]
    vectors: Float32
    origin: str = ""

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(cls, annotator: Annotator, source: Source, *, origin: str = "", **options: Unpack[RunOptions]) -> Self:
        """Extract the features of a source and encode them; unreadable items are added to `rejects`.

        Parameters
        ----------
        annotator : Annotator
            Its model has `transform`.
        source : ItemSource or FeatureTable
        origin : str
            Note about the model and the items.
        executor, progress, rejects
            See `FeatureExtractor.transform`.

        Raises
        ------
        InputError
            The model has no embeddings, or cannot take the source.
        """
        require_embeddings(annotator.model)
        rows = annotator.rows(source, **options).rows
        return cls(rows.ids, np.asarray(annotator.model.transform(rows.X), np.float32), origin)

    def to_state(self) -> ModelState:
        return ModelState(self.kind, {"ids": self.ids, "origin": self.origin}, {"vectors": self.vectors})

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        config = read_config(EmbeddingSetConfig, state.config)
        vectors = check_array(state.tensors, "vectors", "float32", (len(config.ids), None))
        return cls(config.ids, vectors, config.origin)


def require_embeddings(model: LabelModel) -> None:
    """Raise InputError for a model without embeddings of items and labels."""
    if not hasattr(model, "transform"):
        fact = f"a model of kind {model.kind} has no embeddings of items, which a search compares"
        raise InputError(f"{fact}; train a kind that has, such as wsabie")
