"""EfficientNet-Lite0 on photos: known accuracies, and the same bits for every method."""

import csv
import io
import sys

import numpy as np
import pytest
from PIL import Image

from wsabie.core.errors import InputError
from wsabie.core.execution import ProcessExecutor
from wsabie.features.extractor_registry import create_extractor, load_extractor
from wsabie.features.extractors.onnx_encoders import Lite0Encoder, find_network
from wsabie.io.records import Item, ItemList

needs_network = pytest.mark.usefixtures("network")


@pytest.fixture(scope="module")
def network():
    pytest.importorskip("onnxruntime")
    pytest.importorskip("wsabie_lite0", reason="wsabie-lite0 is not installed; run `make setup`")


@pytest.fixture(scope="module")
def photos(data_dir):
    """1,000 photos of 200 kinds, five of each."""
    files = sorted((data_dir / "imagen_200x5" / "images").iterdir())
    return ItemList(data_dir, [Item(file.name, file, (file.name.split("_")[0],)) for file in files])


def take_first(photos, n_photos):
    return ItemList(photos.path, photos.items[:n_photos])


# ---- on photos


@needs_network
def test_nearest_class_mean_is_right_half_of_the_time(photos):
    """A photo is left out of the mean of its class; columns are standardised. Chance is .005."""
    X = Lite0Encoder().fit(photos).transform(photos, executor=ProcessExecutor(2)).X
    assert X.shape == (1000, 1280)
    kinds = np.unique([item.labels[0] for item in photos], return_inverse=True)[1]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    sums = np.stack([X[kinds == kind].sum(axis=0) for kind in range(200)])
    n_correct = 0
    for row, kind in zip(X, kinds, strict=True):
        means = sums.copy()
        means[kind] -= row
        n_correct += (means @ row / np.linalg.norm(means, axis=1)).argmax() == kind
    assert 0.52 < n_correct / 1000 < 0.58


@needs_network
def test_photos_of_trained_classes_are_named(photos, data_dir):
    """Logits of the 1,000 classes, in the order of their ids in WordNet."""
    text = (data_dir / "imagenet_synsets" / "ilsvrc2012_1k.txt").read_text(encoding="utf-8")
    positions = {name: place for place, name in enumerate(sorted(text.split()))}
    assert len(positions) == 1000
    items = [item for item in photos if item.labels[0] in positions][:100]
    logits = create_extractor("lite0", output="classes").transform(ItemList(photos.path, items)).X
    assert logits.shape == (100, 1000)
    assert np.mean(logits.argmax(axis=1) == [positions[item.labels[0]] for item in items]) > 0.6


@needs_network
def test_rows_are_close_to_another_implementation(data_dir):
    """Those were computed from photos in full, and these photos are scaled down."""
    folder = data_dir / "photos_clothing"
    with np.load(folder / "features_1280.npz") as arrays:
        expected = dict(zip(arrays["image"].tolist(), arrays["X"].astype(np.float32), strict=True))
    with (folder / "labels.csv").open(encoding="utf-8") as file:
        names = [row["image"] for row in csv.DictReader(file)][:20]
    items = [Item(name, folder / "images" / name, ("a",)) for name in names]
    rows = create_extractor("lite0").transform(ItemList(folder, items)).X
    for name, row in zip(names, rows, strict=True):
        other_row = expected[name.removesuffix(".jpg")]
        assert row @ other_row > 0.9 * np.linalg.norm(row) * np.linalg.norm(other_row)


@needs_network
def test_every_method_gives_the_same_bits(photos, tmp_path, monkeypatch):
    few = take_first(photos, 12)
    encoder = Lite0Encoder().fit(few)
    rows = encoder.transform(few).X
    np.testing.assert_array_equal(create_extractor("lite0").transform(few).X, rows)
    np.testing.assert_array_equal(encoder.transform(few, executor=ProcessExecutor(2, local_seconds=0)).X, rows)
    encoder.save(tmp_path / "saved")
    monkeypatch.setitem(sys.modules, "wsabie_lite0", None)
    saved_encoder = load_extractor(tmp_path / "saved")
    assert isinstance(saved_encoder, Lite0Encoder)
    assert saved_encoder.fingerprint() == encoder.fingerprint()
    np.testing.assert_array_equal(saved_encoder.transform(few).X, rows)


# ---- without photos


@needs_network
def test_grey_is_the_input_zero():
    """A byte of 127 is 0 for the network, whatever the size of the picture."""
    expected = run_network(np.zeros((224, 224, 3), np.float32))
    np.testing.assert_allclose(encode_pixels(np.full((400, 300, 3), 127)), expected, atol=1e-4)


@needs_network
def test_network_takes_the_centre_crop():
    """A frame of 16 pixels around 224 does not count, and the rest is taken as it is."""
    pixels = np.random.default_rng(0).integers(0, 256, (256, 320, 3))
    expected = run_network((pixels[16:-16, 48:-48] - 127) / 128)
    np.testing.assert_allclose(encode_pixels(pixels), expected, atol=1e-3)
    pixels[:16] = pixels[-16:] = pixels[:, :48] = pixels[:, -48:] = 0
    np.testing.assert_allclose(encode_pixels(pixels), expected, atol=1e-3)


def encode_pixels(pixels):
    """Return the features of pixels (h, w, 3)."""
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "PNG")
    return Lite0Encoder().transform_one(file.getvalue())[1]


def run_network(pixels):
    """Return the features of normalised pixels (224, 224, 3) by ONNX Runtime alone."""
    import onnxruntime

    session = onnxruntime.InferenceSession(find_network(), providers=["CPUExecutionProvider"])
    return session.run(["features"], {"pictures": pixels.transpose(2, 0, 1)[None].astype(np.float32)})[0][0]


@needs_network
def test_network_combines_with_colours_in_one_row(collection):
    extractor = create_extractor("lite0,colour").fit(collection)
    assert extractor.name == "lite0,colour"
    assert extractor.transform(collection).X.shape == (24, 1280 + 9072)


def test_options_reach_the_network():
    extractor = create_extractor("lite0", crop=0.9, normalise="imagenet", output="classes")
    assert (extractor.crop, extractor.normalise, extractor.output) == (0.9, "imagenet", "classes")
    with pytest.raises(InputError, match="write onnx:FILE"):
        create_extractor("lite0:file.onnx")
    with pytest.raises(InputError, match="did you mean 'lite0'"):
        create_extractor("lite")


def test_missing_network_error_names_the_install_command(collection, monkeypatch):
    monkeypatch.setitem(sys.modules, "wsabie_lite0", None)
    with pytest.raises(InputError, match=r"pip install 'wsabie\[photos\]'"):
        create_extractor("lite0").fit(collection)
