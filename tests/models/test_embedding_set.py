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
    assert np.array_equal(embeddings.points, model.transform(ROWS.X))
    embeddings.save(tmp_path / "points")
    loaded = EmbeddingSet.load(tmp_path / "points")
    assert (loaded.ids, loaded.origin, len(loaded)) == (["a", "b", "c"], "here", 3)
    assert np.array_equal(loaded.points, embeddings.points)
    EmbeddingSet(["a"], embeddings.points).save(tmp_path / "odd")
    with pytest.raises(ModelFolderError, match="the sizes of points do not agree"):
        EmbeddingSet.load(tmp_path / "odd")
    model.save(tmp_path / "model")
    with pytest.raises(ModelFolderError, match="'points' is needed"):
        EmbeddingSet.load(tmp_path / "model")


def test_model_without_embeddings_is_refused() -> None:
    with pytest.raises(InputError, match="a model of kind popularity has no points of items"):
        EmbeddingSet.of(Annotator(Popularity().fit(ROWS.X, ROWS.Y)), ROWS)
