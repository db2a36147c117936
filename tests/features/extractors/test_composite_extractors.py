"""Several extractors in one row, and their names."""

import numpy as np
import pytest

from wsabie.core.errors import InputError, ModelFolderError
from wsabie.features.extractor_registry import create_extractor, restore_extractor
from wsabie.features.extractors.composite_extractors import ConcatenatedFeatures
from wsabie.features.extractors.pyramid_histograms import ColourHistograms, HogFeatures
from wsabie.features.extractors.visual_words import VisualWords
from wsabie.storage.model_folder import ModelState


@pytest.mark.parametrize("balance", ["length", "mass"])
def test_parts_are_concatenated_with_equal_weight(collection, extractor, balance):
    parts = (extractor, ColourHistograms(scales=1), HogFeatures())
    rows = ConcatenatedFeatures(parts, balance).transform(collection)
    first = 0
    for part in parts:
        part_rows = rows.X[:, first : first + part.n_features_].toarray()
        first += part.n_features_
        single_rows = part.transform(collection).X.toarray().astype(np.float64)
        if balance == "mass":
            expected = single_rows / single_rows.sum(axis=1, keepdims=True)
        else:
            expected = np.log1p(single_rows) / np.linalg.norm(np.log1p(single_rows), axis=1, keepdims=True)
        np.testing.assert_allclose(part_rows, expected, rtol=1e-4, atol=1e-9)
    assert first == rows.X.shape[1]


def test_each_part_keeps_its_size(collection):
    mixed = ConcatenatedFeatures([ColourHistograms(size=16, scales=1), HogFeatures(size=40)])
    small, large = ColourHistograms(size=16, scales=1), HogFeatures(size=40)
    X_mixed = mixed.transform(collection, augment=1).X
    separate = [part.transform(collection, augment=1).X for part in (small, large)]
    assert [(X_mixed[:, : small.n_features_] > 0).nnz, (X_mixed[:, small.n_features_ :] > 0).nnz] == [
        X.nnz for X in separate
    ]


def test_parts_with_different_views_are_refused(collection):
    with pytest.raises(InputError, match="hog and colour differ in one of crop, max_pixels, seed"):
        ConcatenatedFeatures([ColourHistograms(), HogFeatures(crop=0.5)]).fit(collection)
    with pytest.raises(InputError, match="two extractors or more"):
        ConcatenatedFeatures([HogFeatures()])
    with pytest.raises(InputError, match="balance is 'equal'"):
        ConcatenatedFeatures([ColourHistograms(), HogFeatures()], "equal").fit(collection)


def test_options_reach_the_parts_that_take_them():
    mixed = create_extractor("visual-words, hog", size=64, n_words=50, seed=3, balance="mass")
    assert mixed.name == "visual-words,hog"
    assert [part.size for part in mixed.parts] == [64, 64]
    assert mixed.parts[0].n_words == 50
    assert mixed.seed == 3
    assert isinstance(create_extractor(), VisualWords)


@pytest.mark.parametrize(
    ("names", "options", "sentence"),
    [
        ("visual-words,colours", {}, "no features called 'colours'; did you mean 'colour'?"),
        ("hog,hog", {}, "names hog twice"),
        (" , ", {}, "no features are named; choose from visual-words"),
        ("onnx", {}, "write onnx:FILE"),
        ("hog:a", {}, "write onnx:FILE"),
        ("hog", {"n_words": 9}, "words is not an option of hog"),
        ("hog", {"balance": "mass"}, "balance weighs several features"),
    ],
)
def test_unknown_names_are_refused(names, options, sentence):
    with pytest.raises(InputError, match=sentence.replace("?", r"\?")):
        create_extractor(names, **options)


def test_mismatch_of_a_saved_extractor_is_explained(extractor):
    with pytest.raises(InputError, match="was made with n_words 60 and not 50; delete it"):
        extractor.refuse_other_settings(VisualWords(50), "here", "delete it")
    mixed = ConcatenatedFeatures([extractor, HogFeatures()])
    with pytest.raises(InputError, match="made with visual-words n_words 60 and not 50; x"):
        mixed.refuse_other_options({"n_words": 50, "size": 256}, "here", "x")
    with pytest.raises(InputError, match="made with no n_textons; x"):
        mixed.refuse_other_options({"n_textons": 50}, "here", "x")
    with pytest.raises(InputError, match="made with features visual-words,hog and not visual-words"):
        mixed.refuse_other_settings(extractor, "here", "x")
    mixed.refuse_other_settings(ConcatenatedFeatures([VisualWords(60), HogFeatures()]), "here", "x")


def test_folder_of_another_kind_is_refused():
    with pytest.raises(ModelFolderError, match="no extractor of pictures"):
        restore_extractor(ModelState("annotator", {}, {}))
    state = HogFeatures().to_state()
    with pytest.raises(ModelFolderError, match="another version of wsabie"):
        restore_extractor(ModelState(state.kind, {**state.config, "version": 99}, {}))
