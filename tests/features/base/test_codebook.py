"""k-means codebooks: nearest centres, seeds and repeated blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.features.base import codebook as module
from wsabie.features.base.codebook import Codebook, learn_codebook


def make_blobs(n=600, centres=6, spread=0.02, seed=0):
    draw = np.random.default_rng(seed)
    means = draw.normal(size=(centres, 5))
    blob_ids = draw.integers(0, centres, n)
    return (means[blob_ids] + spread * draw.normal(size=(n, 5))).astype(np.float32), blob_ids


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(0, 30), st.integers(0, 2**32 - 1))
def test_blocks_get_the_nearest_centre(n_words, n, seed):
    draw = np.random.default_rng(seed)
    centres, blocks = draw.normal(size=(n_words, 7)), draw.normal(size=(n, 7))
    distances = ((blocks[:, None] - centres) ** 2).sum(axis=2)
    words = Codebook(centres.astype(np.float32)).assign(blocks.astype(np.float32))
    assert words.dtype == np.int32
    np.testing.assert_allclose(distances[np.arange(n), words], distances.min(axis=1), rtol=1e-4, atol=1e-5)


def test_tiles_do_not_change_the_result(monkeypatch):
    blocks, _ = make_blobs()
    codebook = learn_codebook(blocks, 50, seed=1)
    terms = codebook.assign(blocks)
    monkeypatch.setattr(module, "_TILE", 50 * 7)
    np.testing.assert_array_equal(codebook.assign(blocks), terms)


def test_kmeans_finds_the_blobs():
    blocks, blob_ids = make_blobs()
    error = [
        ((blocks - codebook.centres[codebook.assign(blocks)]) ** 2).sum(axis=1).mean()
        for codebook in (learn_codebook(blocks, 12, passes=passes) for passes in (1, 2, 8))
    ]
    assert error[0] >= error[1] >= error[2]
    words = learn_codebook(blocks, 12, passes=8).assign(blocks)
    for term in np.unique(words):
        assert len(np.unique(blob_ids[words == term])) == 1


def test_seed_determines_the_centres():
    blocks, _ = make_blobs()
    first, again, reseeded = (learn_codebook(blocks, 20, seed=s).centres for s in (3, 3, 4))
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != reseeded.tobytes()


def test_equal_blocks_count_once():
    blocks, _ = make_blobs()
    many = np.concatenate([blocks, np.repeat(blocks[:1], 5000, axis=0)])
    np.testing.assert_array_equal(learn_codebook(many, 20).centres, learn_codebook(blocks, 20).centres)


def test_codebook_is_limited_to_distinct_blocks():
    blocks = np.eye(5, dtype=np.float32).repeat(3, axis=0)
    assert sorted(learn_codebook(blocks, 5).assign(np.eye(5, dtype=np.float32)).tolist()) == list(range(5))
    with pytest.raises(InputError, match="5 distinct blocks, fewer than the 6 visual words"):
        learn_codebook(blocks, 6)
