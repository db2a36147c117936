"""Regions cut out of pictures of coloured rectangles."""

import io
from array import array
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from wsabie.core.errors import UnreadableItemError
from wsabie.features.base.extraction import extract_to_file
from wsabie.features.extractors.visual_words import VisualWords
from wsabie.features.images.image_decoder import OUTSIDE, decode_image, decode_with_size
from wsabie.io.fingerprints import compute_fingerprint
from wsabie.io.formats.parquet import write_parquet_images
from wsabie.io.records import Item, ItemList
from wsabie.io.regions import Box, Region, RegionCrop

RED, BLUE, GREEN, GREY = (200, 0, 0), (0, 0, 200), (0, 200, 0), (128, 128, 128)


def draw_painting(scale: int = 1, kind: str = "PNG", **options) -> bytes:
    """100 x 60: red on the left, blue on the right, and a green box from 60, 10 to 80, 30."""
    image = Image.new("RGB", (100 * scale, 60 * scale), RED)
    image.paste(BLUE, (50 * scale, 0, 100 * scale, 60 * scale))
    image.paste(GREEN, (60 * scale, 10 * scale, 80 * scale, 30 * scale))
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def cut_region(content: bytes, *box: float, frame: tuple[float, float] | None = None, outlines=(), **options):
    region = Region(Box(*box), tuple(array("f", outline) for outline in outlines), frame)
    return decode_with_size(RegionCrop(content, region), **options)


def list_colours(pixels) -> dict[tuple[int, ...], int]:
    values, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_counts=True)
    return dict(zip(map(tuple, values.tolist()), counts.tolist(), strict=True))


def test_box_shows_only_its_pixels() -> None:
    crop = cut_region(draw_painting(), 60, 10, 80, 30)
    assert list_colours(crop.pixels) == {GREEN: 400}
    assert (crop.width, crop.height, crop.pixels.shape) == (20, 20, (20, 20, 3))
    assert list_colours(cut_region(draw_painting(), 40, 0, 60, 10).pixels) == {RED: 100, BLUE: 100}


def test_box_over_two_colours_has_their_mean() -> None:
    """A quarter of 10 x 10 from 55, 5 is green: x from 60, y from 10."""
    mean = cut_region(draw_painting(), 55, 5, 65, 15).pixels.reshape(-1, 3).mean(axis=0)
    assert mean.tolist() == [0, 0.25 * 200, 0.75 * 200]


def test_box_is_clipped_at_the_edges() -> None:
    assert cut_region(draw_painting(), -30, -5, 10, 5).pixels.shape == (5, 10, 3)
    assert cut_region(draw_painting(), 90, 50, 1000, 1000).pixels.shape == (10, 10, 3)


@pytest.mark.parametrize("box", [(100, 0, 120, 10), (0, 60, 10, 70), (-9, 0, 0, 9), (20, 20, 20, 30), (30, 9, 20, 30)])
def test_region_outside_the_picture_is_refused(box: tuple[float, ...]) -> None:
    with pytest.raises(UnreadableItemError) as caught:
        cut_region(draw_painting(), *box)
    assert (caught.value.reason, caught.value.detail) == (OUTSIDE, "the picture has 100 x 60 pixels")


def test_subpixel_region_is_one_pixel() -> None:
    assert list_colours(cut_region(draw_painting(), 70.2, 20.2, 70.4, 20.4).pixels) == {GREEN: 1}
    assert list_colours(cut_region(draw_painting(), 99.6, 59.7, 99.9, 59.9).pixels) == {BLUE: 1}


def test_pixels_outside_the_outline_are_grey() -> None:
    """A triangle over half of a box of 20 x 20: on its diagonal half of the middles, 20 x 21 / 2 in all, lie inside."""
    counts = list_colours(cut_region(draw_painting(), 60, 10, 80, 30, outlines=[[60, 10, 80.01, 10, 60, 30.01]]).pixels)
    assert counts == {GREEN: 210, GREY: 190}


def test_outline_along_pixels_contains_them_all() -> None:
    box = [60, 10, 80, 10, 80, 30, 60, 30]
    assert list_colours(cut_region(draw_painting(), 55, 5, 80, 30, outlines=[box]).pixels) == {GREEN: 400, GREY: 225}


def test_several_outlines_show_their_union() -> None:
    left_corner, right = [0, 0, 10, 0, 10, 10, 0, 10], [90, 0, 100, 0, 100, 10, 90, 10]
    assert list_colours(cut_region(draw_painting(), 0, 0, 100, 10, outlines=[left_corner, right]).pixels) == {
        RED: 100,
        BLUE: 100,
        GREY: 800,
    }


def test_outline_follows_the_scaled_picture() -> None:
    crop = cut_region(draw_painting(8), 0, 0, 800, 480, outlines=[[0, 0, 400, 0, 400, 480, 0, 480]], size=50)
    assert crop.pixels.shape == (30, 50, 3)
    assert (crop.pixels[:, :24] == RED).all()
    assert (crop.pixels[:, 25:] == GREY).all()


def test_frame_scales_the_region() -> None:
    stated = cut_region(draw_painting(), 120, 20, 160, 60, frame=(200, 120))
    assert list_colours(stated.pixels) == {GREEN: 400}
    assert (stated.width, stated.height) == (20, 20)
    assert list_colours(cut_region(draw_painting(), 60, 0, 80, 100, frame=(100, 100)).pixels) == {GREEN: 400, BLUE: 800}


def test_small_region_of_a_large_jpeg_keeps_its_detail() -> None:
    """A decoder may shrink as it reads, but no further than the region can bear."""
    crop = cut_region(draw_painting(20, "JPEG", quality=95), 1200, 200, 1600, 600, size=256)
    assert crop.pixels.shape == (256, 256, 3)
    assert (crop.width, crop.height) == (400, 400)
    assert np.abs(crop.pixels[8:-8, 8:-8].astype(int) - GREEN).max() < 12
    full_crop = cut_region(draw_painting(20, "JPEG", quality=95), 0, 0, 2000, 1200, size=100)
    assert full_crop.pixels.shape == (60, 100, 3)


def test_surroundings_cost_no_detail() -> None:
    crop = cut_region(draw_painting(20, "JPEG", quality=95), -100_000, 200, 1600, 600, size=256)
    assert crop.pixels.shape == (64, 256, 3)


def test_region_lies_in_the_upright_picture() -> None:
    """Orientation 6: stored 100 x 60, seen 60 x 100 after a quarter turn to the right; (x, y) comes to (60 - y, x)."""
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = draw_painting(1, "PNG", exif=exif)
    assert decode_image(turned).shape == (100, 60, 3)
    assert list_colours(cut_region(turned, 30, 60, 50, 80).pixels) == {GREEN: 400}
    with pytest.raises(UnreadableItemError) as caught:
        cut_region(turned, 60, 10, 80, 30, frame=(100, 60))
    assert caught.value.reason == "region of a picture that lies on its side"


def test_broken_picture_is_refused() -> None:
    with pytest.raises(UnreadableItemError, match="empty file"):
        cut_region(b"", 0, 0, 9, 9)


def make_regions(content: bytes, *boxes: Box) -> ItemList:
    return ItemList(
        Path("here"), [Item(f"a#{i}", RegionCrop(content, Region(b)), ("x",), "a") for i, b in enumerate(boxes)]
    )


def test_regions_become_rows_and_a_file(tmp_path: Path) -> None:
    source = make_regions(draw_painting(), Box(0, 0, 40, 40), Box(60, 10, 80, 30), Box(200, 0, 210, 10))
    extractor = VisualWords(n_words=2, size=64).fit(source)
    rows = extractor.transform(source)
    assert (rows.ids, rows.groups) == (["a#0", "a#1"], ["a", "a"])
    out = tmp_path / "rows.parquet"
    assert extract_to_file(source, extractor, out) == 2
    indices, values = extractor.transform_one(source.items[1].content)
    assert (rows.X[1].indices.tolist(), rows.X[1].data.tolist()) == (indices.tolist(), values.tolist())
    assert extractor.block_map(source.items[1].content).boxes.max() <= 20


def test_region_is_part_of_the_fingerprint() -> None:
    first, second = (compute_fingerprint(make_regions(draw_painting(), Box(0, 0, 40, n))) for n in (40, 41))
    assert first != second


def test_regions_are_not_copied_as_pictures(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"extract features first: `features.images\('here'"):
        write_parquet_images(make_regions(draw_painting(), Box(0, 0, 40, 40)), tmp_path / "a.parquet")
