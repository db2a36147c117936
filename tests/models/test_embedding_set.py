"""Item embeddings in memory and on disk."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import identity

from wsabie import Popularity, Wsabie
from wsabie.core.errors import InputError, ModelFolderError
from wsabie.io.records import FeatureTable
from wsabie.models.annotators import Annotator
from wsabie.models.embedding_set import EmbeddingSet

ROWS = FeatureTable(identity(3, np.float32, "csr"), identity(3, np.int8, "csr"), ["0", "1", "2"], ["a", "b", "c"])


def test_embeddings_equal_the_models_and_are_saved(tmp_path: Path) -> None:
    model = Wsabie(dim=4, epochs=5, threads=1).fit(ROWS.X, ROWS.Y)
    embeddings = EmbeddingSet.of(Annotator(model), ROWS, origin="here")
    assert np.array_equal(embeddings.vectors, model.transform(ROWS.X))
    embeddings.save(tmp_path / "embeddings")
    loaded = EmbeddingSet.load(tmp_path / "embeddings")
    assert (loaded.ids, loaded.origin, len(loaded)) == (["a", "b", "c"], "here", 3)
    assert np.array_equal(loaded.vectors, embeddings.vectors)
    EmbeddingSet(["a"], embeddings.vectors).save(tmp_path / "odd")
    with pytest.raises(ModelFolderError, match="the sizes of vectors do not agree"):
        EmbeddingSet.load(tmp_path / "odd")
    model.save(tmp_path / "model")
    with pytest.raises(ModelFolderError, match="'embeddings' is needed"):
        EmbeddingSet.load(tmp_path / "model")


def test_model_without_embeddings_is_refused() -> None:
    with pytest.raises(InputError, match="a model of kind popularity has no embeddings of items"):
        EmbeddingSet.of(Annotator(Popularity().fit(ROWS.X, ROWS.Y)), ROWS)
