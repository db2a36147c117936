"""Image features and their kernel components in one extractor."""

import logging

import numpy as np
import pytest

from wsabie.core.errors import InputError, ModelFolderError, UnreadableItemError
from wsabie.core.execution import ProcessExecutor
from wsabie.features import kernel_pca
from wsabie.features.base.extraction import extract_to_file
from wsabie.features.extractor_registry import create_extractor, load_extractor
from wsabie.features.extractors.composite_extractors import NEGATIVE, ConcatenatedFeatures, KernelPcaExtractor
from wsabie.features.extractors.pyramid_histograms import ColourHistograms, HogFeatures
from wsabie.features.images.image_extractor import ImageFeatureExtractor
from wsabie.features.kernel_pca import KernelPca
from wsabie.io.data_sources import open_source
from wsabie.io.records import ItemList
from wsabie.storage.model_folder import ModelState
from wsabie.storage.rejects import Rejects


class Signed(ImageFeatureExtractor):
    """Mean brightness less `least`: no histogram where it is negative."""

    name, kind, dense = "signed", "signed", True
    n_features_ = 2

    def __init__(self, least):
        super().__init__()
        self.least = least

    def encode(self, view):
        return np.arange(2, dtype=np.int32), np.float32([view.scale_to(8).mean() - self.least, 1])


@pytest.fixture(scope="module")
def fitted(collection):
    return create_extractor("colour,hog", size=32, n_components=9, seed=4).fit(collection)


def test_rows_equal_the_map_of_extracted_features(fitted, collection):
    inner = ConcatenatedFeatures([ColourHistograms(size=32, seed=4), HogFeatures(size=32, seed=4)], "mass").fit(
        collection
    )
    rows = inner.transform(collection)
    by_hand = KernelPca(9, seed=4).fit(rows.X).transform(rows.X)
    mapped = fitted.transform(collection)
    assert mapped.X.dtype == np.float32
    np.testing.assert_array_equal(mapped.X, by_hand)
    assert (mapped.ids, mapped.label_names) == (rows.ids, rows.label_names)
    assert mapped.extractor_fingerprint == fitted.fingerprint()
    assert (fitted.n_features_, fitted.is_dense, fitted.has_counts) == (9, True, False)
    columns, values = fitted.transform_one(collection.items[5].content)
    assert columns.tolist() == list(range(9))
    np.testing.assert_array_equal(values, by_hand[5])


def test_processes_files_and_loading_give_the_same_rows(fitted, collection, tmp_path):
    rows = fitted.transform(collection, augment=1)
    fitted.save(tmp_path / "saved")
    again = load_extractor(tmp_path / "saved")
    assert again.fingerprint() == fitted.fingerprint()
    assert again.pca.report_ == fitted.pca.report_
    np.testing.assert_array_equal(
        again.transform(collection, augment=1, executor=ProcessExecutor(2, local_seconds=0)).X, rows.X
    )
    assert extract_to_file(collection, again, tmp_path / "rows.parquet", augment=1, shard_pictures=7) == 48
    written = open_source(tmp_path / "rows.parquet")
    np.testing.assert_array_equal(written.X, rows.X)
    assert (written.extractor_fingerprint, written.ids) == (fitted.fingerprint(), rows.ids)


def test_fingerprint_depends_on_map_and_features(fitted, collection):
    changed = ({"n_components": 8}, {"n_landmarks": 20}, {"size": 33}, {"balance": "length"})
    options = {"size": 32, "n_components": 9, "seed": 4}
    fingerprints = [
        create_extractor("colour,hog", **{**options, **change}).fit(collection).fingerprint() for change in changed
    ]
    assert len({fitted.fingerprint(), *fingerprints}) == 5
    assert create_extractor("colour,hog", **options).fit(collection).fingerprint() == fitted.fingerprint()


def test_large_source_is_sampled_evenly(collection, monkeypatch):
    monkeypatch.setattr(kernel_pca, "_TRAINING_ROWS", 4)
    monkeypatch.setattr(kernel_pca, "_TEST_ROWS", 2)
    fit_rows, fitted_ids = KernelPca.fit_rows, []
    monkeypatch.setattr(
        KernelPca, "fit_rows", lambda self, rows, **o: fitted_ids.extend(rows.ids) or fit_rows(self, rows, **o)
    )
    KernelPcaExtractor(HogFeatures(size=32), KernelPca(1, 1)).fit(collection)
    assert fitted_ids == [picture.id for picture in collection.items[::4]]


def test_mass_is_balanced_by_default():
    assert create_extractor("colour,hog", n_components=9).inner.balance == "mass"
    assert create_extractor("colour,hog", n_components=9, balance="length").inner.balance == "length"
    assert create_extractor("colour,hog").balance == "length"
    mapped = create_extractor("visual-words", n_components=9, n_landmarks=12, n_words=40, seed=7)
    assert (mapped.pca.n_landmarks, mapped.pca.seed, mapped.inner.n_words) == (12, 7, 40)


def test_log_reports_the_loss(collection, caplog):
    with caplog.at_level(logging.INFO, "wsabie"):
        fitted_extractor = create_extractor("hog", size=32, n_components=5).fit(collection)
    assert caplog.messages[-1] == f"5 components of hog: {fitted_extractor.pca.report_.format_summary()}"
    assert "24 landmarks takes about" in caplog.messages[0]


def test_unreadable_pictures_are_listed(fitted, spoilt, collection):
    rejects = Rejects()
    extractor = KernelPcaExtractor(fitted.inner, KernelPca(9, seed=4)).fit(spoilt, rejects=rejects)
    assert len(rejects) == 3
    np.testing.assert_array_equal(extractor.pca.components_, fitted.pca.components_)
    nothing = ItemList(spoilt.path, [spoilt.items[0]])
    with pytest.raises(InputError, match=r"none of the pictures of .* can be read: words\.jpg"):
        create_extractor("hog", n_components=1).fit(nothing)


def test_negative_features_are_refused(collection):
    with pytest.raises(InputError, match=r"signed gives sky-0\.png negative values, and the intersection kernel"):
        KernelPcaExtractor(Signed(300), KernelPca(1)).fit(collection)
    extractor = KernelPcaExtractor(Signed(0), KernelPca(1)).fit(collection)
    extractor.inner.least = 300  # a network that is negative for new pictures only
    rejects = Rejects()
    assert len(extractor.transform(collection, rejects=rejects)) == 0
    assert rejects.counts == {NEGATIVE: 24}
    with pytest.raises(UnreadableItemError):
        extractor.transform_one(collection.items[0].content)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_components": 25}, "25 components are asked for, but 24 pictures have no more than 24; ask for at most 24"),
        ({"n_components": 9, "n_landmarks": 5}, "9 components are asked for, but 5 landmarks have no more than 5"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 2, "crop": 2}, "crop is 2"),
        ({"n_landmarks": 5}, "landmarks are those of kernel components"),
    ],
)
def test_unusable_sources_are_refused(collection, options, sentence):
    with pytest.raises(InputError, match=sentence):
        create_extractor("hog", **options).fit(collection)


def test_unfitted_extractor_is_refused():
    with pytest.raises(InputError, match="these components have not been learned yet; call fit with pictures first"):
        create_extractor("hog", n_components=9).prepare()


def test_mismatch_of_a_saved_extractor_is_explained(fitted):
    fitted.refuse_other_settings(create_extractor("colour,hog", size=32, n_components=9, seed=4), "here", "x")
    fitted.refuse_other_options(
        {"n_components": 9, "n_landmarks": "auto", "features": "colour,hog", "size": 32}, "here", "x"
    )
    for options, sentence in (
        (
            create_extractor("colour,hog", size=32, seed=4, balance="mass"),
            "made with n_components 9 and not without; x",
        ),
        (create_extractor("colour,hog", size=32, seed=4, n_components=8), "made with n_components 9 and not 8; x"),
        (create_extractor("hog", size=32, seed=4, n_components=9), "made with features colour,hog and not hog"),
    ):
        with pytest.raises(InputError, match=sentence):
            fitted.refuse_other_settings(options, "here", "x")
    with pytest.raises(InputError, match="made with no n_components, no n_landmarks; x"):
        fitted.inner.refuse_other_settings(fitted, "here", "x")


def test_foreign_and_damaged_folders_are_refused(fitted):
    state = fitted.to_state()
    with pytest.raises(ModelFolderError, match="this is a 'hog' and no 'components'"):
        KernelPcaExtractor.from_state(HogFeatures().to_state())
    with pytest.raises(ModelFolderError, match="another version of wsabie"):
        KernelPcaExtractor.from_state(ModelState(state.kind, {**state.config, "version": 99}, state.tensors))
    with pytest.raises(ModelFolderError, match="this map of kernel components is damaged"):
        KernelPcaExtractor.from_state(
            ModelState(state.kind, state.config, {**state.tensors, "map/bias": np.zeros(2, np.float32)})
        )
    with pytest.raises(ModelFolderError, match="another version of wsabie"):  # a kernel would read where nothing is
        KernelPcaExtractor(HogFeatures(size=32), fitted.pca).prepare()
