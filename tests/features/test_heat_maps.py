"""Contributions of blocks sum to the score, and lie where the blocks are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from wsabie.core.errors import InputError
from wsabie.features.images.image_extractor import BlockMap
from wsabie.models.explanations import build_heat_map, draw_overlay, share_among_blocks


def make_block_map(seed, n_blocks=30, n_words=12, width=300, height=200):
    draw = np.random.default_rng(seed)
    corner = draw.random((n_blocks, 2)) * [width - 2, height - 2]
    side = 0.5 + draw.random((n_blocks, 2)) * ([width, height] - corner - 0.5)
    words = draw.integers(0, n_words, n_blocks).astype(np.int32)
    contributions = np.where(np.bincount(words, minlength=n_words) > 0, draw.normal(size=n_words), 0)
    return BlockMap(np.hstack([corner, corner + side]), words, width, height), contributions


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.one_of(st.none(), st.tuples(st.integers(1, 90), st.integers(1, 90))))
def test_heat_sums_to_the_score(seed, shape):
    block_map, contributions = make_block_map(seed)
    shares = share_among_blocks(contributions, block_map)
    np.testing.assert_allclose(shares.sum(), contributions.sum(), atol=1e-9)
    heat = build_heat_map(contributions, block_map, shape)
    assert heat.shape == (shape or (200, 300))
    np.testing.assert_allclose(heat.sum(), contributions.sum(), atol=1e-9)


def test_blocks_of_a_word_share_equally():
    block_map, contributions = make_block_map(1)
    shares = share_among_blocks(contributions, block_map)
    for term in np.unique(block_map.words):
        term_shares = shares[block_map.words == term]
        assert np.ptp(term_shares) == 0
        np.testing.assert_allclose(term_shares.sum(), contributions[term])


def test_heat_lies_inside_contributing_blocks():
    boxes = np.array([[0.0, 0, 10, 10], [20, 10, 40, 20]])
    heat = build_heat_map([5.0, -3.0], BlockMap(boxes, np.array([0, 1], np.int32), 40, 20))
    np.testing.assert_allclose(heat[:10, :10], 5 / 100)
    np.testing.assert_allclose(heat[10:, 20:], -3 / 200)
    heat[:10, :10] = heat[10:, 20:] = 0
    np.testing.assert_allclose(heat, 0, atol=1e-15)


def test_large_picture_has_a_small_heat_map():
    block_map = BlockMap(np.array([[0.0, 0, 6000, 100]]), np.array([0], np.int32), 6000, 3000)
    assert build_heat_map([1.0], block_map).shape == (256, 512)


def test_contributions_of_another_picture_are_refused():
    block_map = BlockMap(np.zeros((1, 4)), np.array([2], np.int32), 9, 9)
    with pytest.raises(InputError, match="word 1 contributes but lies nowhere"):
        share_among_blocks([0.0, 1.0, 0.0], block_map)
    with pytest.raises(InputError, match="contributions are given for 2 visual words"):
        share_among_blocks([0.0, 1.0], block_map)


def test_heat_of_a_picture_explains_its_score(extractor, collection):
    for picture in collection.items[:3]:
        indices, values = extractor.transform_one(picture.content)
        weights = np.random.default_rng(0).normal(size=extractor.n_features_)
        contributions = np.zeros(extractor.n_features_)
        contributions[indices] = values * weights[indices]
        heat = build_heat_map(contributions, extractor.block_map(picture.content))
        np.testing.assert_allclose(heat.sum(), values @ weights[indices])


def test_overlay_is_warm_for_and_cold_against():
    heat = np.zeros((64, 64))
    heat[:, :20], heat[:, 44:] = 1.0, -1.0
    overlay = np.asarray(draw_overlay(np.full((32, 32, 3), 128, np.uint8), heat), int)
    assert overlay.shape == (64, 64, 3)
    red, middle, blue = overlay[32, 4], overlay[32, 32], overlay[32, 60]
    assert red[0] > red[2] + 60
    assert blue[2] > blue[0] + 60
    assert np.ptp(middle) < 12


def test_overlay_accepts_any_picture_and_no_heat():
    plain = draw_overlay(Image.new("LA", (10, 5), (70, 255)), np.zeros((20, 40)))
    assert plain.size == (40, 20)
    assert plain.mode == "RGB"
    assert set(np.asarray(plain).ravel()) == {70}


def test_common_scale_makes_heat_comparable():
    heat = np.ones((32, 32))
    weak, strong = (np.asarray(draw_overlay(np.zeros((32, 32, 3), np.uint8), heat, strongest=s)) for s in (10, 1))
    assert weak.sum() < strong.sum()
