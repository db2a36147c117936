"""Pictures of every shape and every extractor."""

import io
import itertools

import numpy as np
import pytest
from PIL import Image

from wsabie.features.extractor_registry import create_extractor
from wsabie.features.images.image_decoder import decode_image
from wsabie.io.records import Item, ItemList
from wsabie.io.regions import RegionCrop, parse_region
from wsabie.models.explanations import list_windows

SIDES = (1, 2, 3, 17, 101, 257, 333)
SHAPES = [*itertools.product(SIDES[:5], SIDES[:5]), *((n, n + 1) for n in SIDES), (1, 20_000), (20_000, 1), (3, 60_000),
          (60_000, 3), (2000, 1999)]  # fmt: skip
EXTREME = [shape for shape in SHAPES if max(shape) > 1000]


def make_picture(height, width):
    file = io.BytesIO()
    Image.linear_gradient("L").resize((width, height)).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def encoder_file(tmp_path_factory):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper = onnx.helper
    picture = helper.make_tensor_value_info("picture", 1, [1, 3, 47, 33])
    out = helper.make_tensor_value_info("out", 1, None)
    graph = helper.make_graph([helper.make_node("GlobalAveragePool", ["picture"], ["out"])], "a", [picture], [out])
    path = tmp_path_factory.mktemp("onnx") / "a.onnx"
    opset = [helper.make_opsetid("", 13)]
    path.write_bytes(helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString())
    return path


@pytest.mark.parametrize("name", ["visual-words", "colour", "textons", "hog", "lite0", "onnx"])
def test_every_shape_is_extracted(name, collection, request):
    extractor_name = f"onnx:{request.getfixturevalue('encoder_file')}" if name == "onnx" else name
    options = {"visual-words": {"n_words": 40}, "textons": {"n_textons": 16}}.get(name, {})
    fitted = create_extractor(extractor_name, **options, crop=0.9).fit(collection)
    items = [Item(f"{h} x {w}", make_picture(h, w), ()) for h, w in SHAPES]
    rows = fitted.transform(ItemList(collection.path, items), augment=1)
    assert rows.X.shape == (2 * len(SHAPES), fitted.n_features_)
    assert np.isfinite(rows.X if isinstance(rows.X, np.ndarray) else rows.X.data).all()
    if name == "visual-words":
        for height, width in EXTREME:
            where = fitted.block_map(make_picture(height, width))
            assert (where.width, where.height) == (width, height)


@pytest.mark.parametrize("region", ["0%,0%,1%,1%", "99%,99%,1%,1%", "0,0,1,1", "10%,10%,80%,80%"])
def test_regions_of_every_shape_are_extracted(region):
    for height, width in SHAPES:
        pixels = decode_image(RegionCrop(make_picture(height, width), parse_region(region)), size=64)
        assert min(pixels.shape) >= 1


def test_windows_cover_every_shape():
    for height, width in ((1, 1), (1, 512), (512, 1), (3, 2), (512, 511)):
        is_covered = np.zeros((height, width), bool)
        for left, top, right, bottom in list_windows(width, height):
            assert 0 <= left < right <= width
            assert 0 <= top < bottom <= height
            is_covered[top:bottom, left:right] = True
        assert is_covered.all()
