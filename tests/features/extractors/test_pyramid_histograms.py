"""Colours, textons and gradients against manual values, and their counts over the cells of a pyramid."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter1d

from wsabie.core.errors import InputError, ModelFolderError
from wsabie.core.execution import ProcessExecutor, SerialExecutor
from wsabie.features.base.extraction import extract_to_file
from wsabie.features.extractor_names import EXTRACTOR_NAMES
from wsabie.features.extractor_registry import EXTRACTORS, create_extractor, load_extractor
from wsabie.features.extractors.pyramid_histograms import (
    MASS,
    ORDERS,
    ColourHistograms,
    HogFeatures,
    Textons,
    assign_cells,
    assign_colour_bins,
    build_filter_matrix,
    check_levels,
    compute_cell_histograms,
    compute_filter_responses,
    compute_spatial_histograms,
    count_cells,
    normalise_blocks,
)
from wsabie.io.data_sources import open_source
from wsabie.storage.rejects import Rejects

EVERY = ("colour", "textons", "hog", "visual-words,colour,textons,hog")


def fit_extractor(name, collection):
    options = {"n_words": 40} if "visual-words" in name.split(",") else {}
    return create_extractor(name, **options, **({"n_textons": 16} if "textons" in name else {})).fit(collection)


@pytest.fixture(scope="module", params=EVERY)
def fitted(request, collection):
    return fit_extractor(request.param, collection)


def are_equal(a, b):
    assert (a.X != b.X).nnz == 0
    assert (a.ids, a.label_names, a.groups) == (b.ids, b.label_names, b.groups)


# ---- what all have in common


def test_help_names_every_extractor():
    names = {(modality, name.partition(":")[0]) for modality in EXTRACTOR_NAMES for name in EXTRACTOR_NAMES[modality]}
    assert names == {(kind.modality, kind.name) for kind in EXTRACTORS}


def test_rows_are_histograms(fitted, collection):
    rows = fitted.transform(collection)
    assert rows.X.shape == (24, fitted.n_features_)
    assert rows.X.dtype == np.float32
    assert rows.X.data.min() > 0
    assert rows.X.has_sorted_indices
    assert not rows.counts


def test_pictures_of_a_kind_are_similar(fitted, collection):
    X = np.log1p(fitted.transform(collection).X.toarray())
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    likeness = X @ X.T - 2 * np.eye(len(X))
    kinds = np.array([picture.labels[1] for picture in collection])
    assert (kinds[likeness.argmax(axis=1)] == kinds).mean() > 0.9


def test_every_method_gives_the_same_rows(fitted, collection, spoilt, tmp_path):
    rows = fitted.transform(collection, augment=1)
    fitted.save(tmp_path / "saved")
    again = load_extractor(tmp_path / "saved")
    assert again.fingerprint() == fitted.fingerprint() == rows.extractor_fingerprint
    rejects = Rejects()
    run = ProcessExecutor(2, local_seconds=0) if "," in fitted.name else SerialExecutor()
    extract_to_file(spoilt, again, tmp_path / "a.parquet", augment=1, shard_pictures=7, executor=run, rejects=rejects)
    are_equal(open_source(tmp_path / "a.parquet"), rows)
    assert len(rejects) == 3
    columns, values = again.transform_one(collection.items[3].content)
    row = rows.X[rows.ids.index(collection.items[3].id)]
    assert (columns.tolist(), values.tolist()) == (row.indices.tolist(), row.data.tolist())


def test_pictures_of_one_pixel_are_accepted(fitted, tmp_path):
    from PIL import Image

    for size in ((1, 1), (1, 40), (3, 2)):
        Image.new("RGB", size, (200, 10, 10)).save(tmp_path / "small.png")
        columns, values = fitted.transform_one(tmp_path / "small.png")
        assert len(columns) == len(values)
        assert np.isfinite(values).all()
        assert columns.max(initial=0) < fitted.n_features_


# ---- colours


def test_colour_bins_have_the_documented_order():
    pixels = np.array([[[0, 0, 0], [255, 255, 255], [85, 86, 170], [171, 0, 0]]], np.uint8)
    assert assign_colour_bins(pixels, 3).tolist() == [[0, 26, 0 * 9 + 1 * 3 + 1, 2 * 9]]


def test_colours_are_counted_in_their_cell(tmp_path):
    from PIL import Image

    picture = Image.new("RGB", (8, 8), (255, 0, 0))
    picture.paste((0, 0, 255), (4, 4, 8, 8))
    picture.save(tmp_path / "a.png")
    columns, values = ColourHistograms(2, (1, 2), 1).transform_one(tmp_path / "a.png")
    blue, red, quarter = 1, 4, MASS / 4
    expected = {
        blue: quarter,
        red: 3 * quarter,
        8 + red: quarter,
        16 + red: quarter,
        24 + red: quarter,
        32 + blue: quarter,
    }
    assert dict(zip(columns.tolist(), values.tolist(), strict=True)) == expected


# ---- textons


@pytest.mark.parametrize(("n", "stride", "sigma"), [(31, 2, 1.0), (40, 3, 4.0), (3, 1, 2.0)])
def test_filters_are_derivatives_of_a_gaussian(n, stride, sigma):
    line = np.random.default_rng(0).normal(size=n)
    for order in range(3):
        response = build_filter_matrix(n, stride, sigma, order) @ line
        derived = gaussian_filter1d(line, sigma, order=order, mode="nearest", truncate=4)[::stride]
        cut_off = 3e-3 if order == 2 else 1e-5  # of the filter beyond its reach
        np.testing.assert_allclose(response, derived * sigma**order, atol=cut_off)


def test_responses_equal_two_dimensional_filters():
    pixels = np.random.default_rng(1).integers(0, 256, (20, 26, 3)).astype(np.uint8)
    grey = pixels @ np.array([0.299, 0.587, 0.114]) / 255
    raw = []
    for sigma in (1.0, 2.0):
        for orders in ORDERS:
            out = grey
            for axis, order in enumerate(orders):
                out = gaussian_filter1d(out, sigma, axis=axis, order=order, mode="nearest", truncate=4)
            raw.append(out[::2, ::2] * sigma ** sum(orders))
    raw = np.stack(raw, axis=-1)
    size = np.linalg.norm(raw, axis=-1, keepdims=True)
    expected = raw * np.log(1 + size / 0.03) / size
    np.testing.assert_allclose(compute_filter_responses(pixels, (1.0, 2.0), 2), expected, atol=5e-3)


def test_brightness_does_not_change_responses():
    pixels = np.random.default_rng(2).integers(0, 100, (16, 16, 3)).astype(np.uint8)
    dark, light = (compute_filter_responses(p, (1.0,), 1) for p in (pixels, pixels + np.uint8(100)))
    np.testing.assert_allclose(dark, light, atol=1e-4)


def test_textons_need_fitting():
    with pytest.raises(InputError, match="have not been learned yet"):
        Textons().prepare()


# ---- gradients


def compute_cell_gradients(pixels, cells, n):
    """Cell histograms, pixel by pixel."""
    height, width = pixels.shape[:2]
    values = pixels / 255
    histogram = np.zeros((cells, cells, n))
    for y in range(height):
        for x in range(width):
            dy = values[min(y + 1, height - 1), x] - values[max(y - 1, 0), x]
            dx = values[y, min(x + 1, width - 1)] - values[y, max(x - 1, 0)]
            channel = int(np.argmax(dx**2 + dy**2))
            strength = np.hypot(dx[channel], dy[channel])
            direction = (np.arctan2(dy[channel], dx[channel]) % np.pi) / np.pi * n
            low = int(direction)
            cell = histogram[y * cells // height, x * cells // width]
            cell[low % n] += strength * (1 - (direction - low))
            cell[(low + 1) % n] += strength * (direction - low)
    return histogram * cells * cells / (height * width)


def test_cells_count_the_directions_of_their_pixels():
    pixels = np.random.default_rng(3).integers(0, 256, (13, 17, 3)).astype(np.uint8)
    np.testing.assert_allclose(compute_cell_histograms(pixels, 4, 9), compute_cell_gradients(pixels, 4, 9), atol=1e-12)


def test_vertical_edge_has_the_first_direction():
    pixels = np.zeros((8, 8, 3), np.uint8)
    pixels[:, 4:] = 255
    histograms = compute_cell_histograms(pixels, 1, 9)
    assert histograms[0, 0].tolist() == [2 * 8 / 64, *[0.0] * 8]
    np.testing.assert_allclose(compute_cell_histograms(255 - pixels, 1, 9), histograms)  # an edge and its reverse


def test_blocks_are_clipped_and_have_unit_length():
    histograms = np.random.default_rng(4).random((3, 3, 9)) ** 8
    blocks = normalise_blocks(histograms).reshape(4, 36)
    np.testing.assert_allclose(np.linalg.norm(blocks, axis=1), 1, atol=1e-3)
    first = np.concatenate([histograms[0, 0], histograms[0, 1], histograms[1, 0], histograms[1, 1]])
    cut = np.minimum(first / np.sqrt(first @ first + 1e-4), 0.2)
    np.testing.assert_allclose(blocks[0], cut / np.sqrt(cut @ cut + 1e-4))


def test_flat_picture_has_no_directions(tmp_path):
    assert not normalise_blocks(compute_cell_histograms(np.full((9, 9, 3), 77, np.uint8), 3, 9)).any()


# ---- bad input


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ColourHistograms(1), "bins is 1; cut each channel"),
        (lambda: ColourHistograms(scales=0), "scales is 0"),
        (lambda: Textons(1), "n_textons is 1"),
        (lambda: Textons(sigmas=()), "sigmas is "),
        (lambda: Textons(stride=0), "stride is 0"),
        (lambda: HogFeatures(n_directions=1), "n_directions is 1"),
        (lambda: HogFeatures(levels=()), "levels is "),
        (lambda: HogFeatures(size=0), "size is 0"),
        (lambda: ColourHistograms(crop=2), "crop is 2"),
    ],
)
def test_invalid_parameters_are_refused(make, sentence, collection):
    with pytest.raises(InputError, match=sentence):
        make().fit(collection)


def test_folder_of_another_kind_is_refused(collection, tmp_path):
    HogFeatures().save(tmp_path / "hog")
    with pytest.raises(ModelFolderError, match="this is a 'hog' and no 'colour_histograms'"):
        ColourHistograms.load(tmp_path / "hog")


def count_pixels(bins, n_bins, levels):
    histograms = []
    for level in levels:
        cells = np.zeros((level, level, n_bins))
        for y in range(bins.shape[0]):
            for x in range(bins.shape[1]):
                cells[y * level // bins.shape[0], x * level // bins.shape[1], bins[y, x]] += 1
        histograms.append(cells.ravel())
    return np.concatenate(histograms) * MASS / bins.size


@given(
    height=st.integers(1, 9),
    width=st.integers(1, 9),
    levels=st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple),
    seed=st.integers(0, 99),
)
def test_every_pixel_is_counted_once_a_level(height, width, levels, seed):
    bins = np.random.default_rng(seed).integers(0, 4, (height, width))
    histograms = compute_spatial_histograms(bins, 4, levels)
    np.testing.assert_allclose(histograms, count_pixels(bins, 4, levels), rtol=1e-6)
    assert histograms.shape == (4 * count_cells(levels),)
    np.testing.assert_allclose(histograms.sum(), MASS * len(levels), rtol=1e-5)


def test_finer_levels_add_up_to_coarser_ones():
    bins = np.random.default_rng(0).integers(0, 3, (13, 10))
    coarse, parts = compute_spatial_histograms(bins, 3, (1,)), compute_spatial_histograms(bins, 3, (4,))
    np.testing.assert_allclose(parts.reshape(16, 3).sum(axis=0), coarse, rtol=1e-6)


def test_cells_of_a_picture_smaller_than_the_grid_are_filled():
    assert assign_cells(1, 2, 4).tolist() == [[0, 2]]


@pytest.mark.parametrize("levels", [(), (0,), (33,), (1.5,)])
def test_invalid_levels_are_refused(levels):
    with pytest.raises(InputError, match="give one number from 1 to 32"):
        check_levels(levels)
