"""RAW photos are read by their preview, and are one item with the JPEG beside them."""

import io
import sys

import pytest
from PIL import Image
from tests.raw_files import make_dng

from wsabie.core.errors import UnreadableItemError
from wsabie.features.images.image_decoder import decode_image, detect_media_type, read_header
from wsabie.io.file_discovery import RAW_TWIN, find_files
from wsabie.io.raw_photos import is_raw
from wsabie.io.tags.image_tags import read_image_tags, read_keywords
from wsabie.storage.rejects import Rejects

XMP = (
    b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    b'<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:subject><rdf:Bag><rdf:li>sea</rdf:li></rdf:Bag>'
    b"</dc:subject></rdf:Description></rdf:RDF></x:xmpmeta>"
)


@pytest.fixture
def preview():
    image = Image.new("RGB", (64, 48), "white")
    image.paste("black", (32, 0, 64, 48))
    return image


@pytest.mark.parametrize(
    ("orientation", "size", "first", "last"),
    [(1, (64, 48), 255, 0), (3, (64, 48), 0, 255), (6, (48, 64), 255, 0), (8, (48, 64), 0, 255)],
)
def test_preview_is_decoded_upright_with_its_date(preview, orientation, size, first, last):
    pytest.importorskip("rawpy")
    content = make_dng(preview, orientation)
    pixels = decode_image(content)
    assert pixels.shape == (*size[::-1], 3)
    assert abs(int(pixels[4, 4, 0]) - first) < 10
    assert abs(int(pixels[-5, -5, 0]) - last) < 10
    assert read_header(io.BytesIO(content)) == (*size, "2024-05-01T12:00:00")


def test_limits_hold_for_the_preview(preview):
    pytest.importorskip("rawpy")
    with pytest.raises(UnreadableItemError, match="too many pixels"):
        decode_image(make_dng(preview), max_pixels=40)


def test_raw_photo_is_not_served_as_jpeg(preview):
    pytest.importorskip("rawpy")
    assert detect_media_type(make_dng(preview)) == "application/octet-stream"


def test_raw_photo_without_a_preview_is_refused():
    pytest.importorskip("rawpy")
    with pytest.raises(UnreadableItemError, match=r"unsupported picture format.*no preview that can be read"):
        decode_image(make_dng(None))


def test_missing_decoder_error_names_the_install_command(preview, monkeypatch):
    monkeypatch.setitem(sys.modules, "rawpy", None)
    with pytest.raises(UnreadableItemError) as caught:
        decode_image(make_dng(preview))
    assert caught.value.reason == "unsupported picture format"
    assert "pip install 'wsabie[photos]'" in caught.value.detail


def test_damaged_raw_photo_is_refused():
    pytest.importorskip("rawpy")
    with pytest.raises(UnreadableItemError, match="damaged picture"):
        decode_image(b"FUJIFILMCCD-RAW 0201" + bytes(400))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\0\0\0\x18ftypcrx " + bytes(9), True),
        (b"\0\0\0\x18ftypheic" + bytes(9), False),
        (b"IIU\0" + bytes(12), True),
        (b"II*\0\x10\0\0\0CR\2\0" + bytes(4) + b"\1\0\0\1\4\0\1\0\0\0\x40\0\0\0", True),
        (b"II*\0\xff\xff\xff\xff", False),
    ],
)
def test_raw_photos_are_recognised_by_content(content, expected):
    assert is_raw(io.BytesIO(content)) is expected


def test_plain_tiff_is_no_raw_photo(preview):
    file = io.BytesIO()
    preview.save(file, "TIFF", tiffinfo={271: "Camera"})
    assert not is_raw(file)


def test_tags_inside_a_dng_are_read(preview, tmp_path):
    pytest.importorskip("rawpy")
    photo = tmp_path / "1.dng"
    photo.write_bytes(make_dng(preview, 6, XMP))
    assert read_keywords(photo) == ("sea",)
    tags = read_image_tags(photo)
    assert (tags.size, tags.orientation, tags.problems) == ((64, 48), 6, ())


def test_raw_photo_beside_its_jpeg_is_listed(preview, tmp_path):
    for name in ("1.dng", "2.dng", "3.DNG", "deep/1.dng"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(make_dng(preview))
    preview.save(tmp_path / "1.jpg")
    preview.save(tmp_path / "3.JPG")
    rejects = Rejects()
    assert list(find_files(tmp_path, rejects).files) == ["1.jpg", "2.dng", "3.JPG", "deep/1.dng"]
    assert sorted(row[:2] for row in rejects.listed) == [("1.dng", RAW_TWIN), ("3.DNG", RAW_TWIN)]
