"""Agreement of scan and decoder: trailing data, missing ends, reduced sizes."""

import io

import numpy as np
import pytest
from PIL import Image, JpegImagePlugin

from wsabie.core.errors import UnreadableItemError
from wsabie.features.images.image_decoder import decode_image, read_header

FILM = b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + bytes(4000) + b"moov" + bytes(60)  # of a motion photo
NOTES = b"\0\0\x01\x0a" + bytes(40) + b"SEFH" + bytes(20) + b"SEFT"  # of a Samsung phone


def encode(kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    pixels = np.random.default_rng(5).integers(0, 255, (90, 120, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, kind, **options)
    return file.getvalue()


def read_reasons(content: bytes) -> tuple[str, str]:
    """Return the reasons of the scan and of the decoder; "" where it can be read."""
    reasons = []
    for read in (lambda: read_header(io.BytesIO(content)), lambda: decode_image(content)):
        try:
            read()
            reasons.append("")
        except UnreadableItemError as error:
            reasons.append(error.reason)
    return reasons[0], reasons[1]


@pytest.mark.parametrize("behind", [FILM, NOTES, bytes(5000), b"\n", encode("JPEG") + FILM], ids=len)
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "BMP"])
def test_trailing_data_are_ignored(kind: str, behind: bytes) -> None:
    assert read_reasons(encode(kind) + behind) == ("", "")


def test_multi_frame_and_progressive_pictures_agree() -> None:
    second = Image.new("RGB", (60, 40), "red")
    assert read_reasons(encode("MPO", save_all=True, append_images=[second]) + NOTES) == ("", "")
    assert read_reasons(encode("JPEG", progressive=True) + FILM) == ("", "")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP"])
def test_half_a_picture_is_refused_by_both(kind: str) -> None:
    content = encode(kind)
    assert read_reasons(content[: len(content) // 2]) == ("truncated picture",) * 2


def test_missing_end_mark_is_accepted_if_decodable() -> None:
    assert read_reasons(encode("PNG")[:-12]) == ("", "")
    jpeg = encode("JPEG")
    scan, decoder = read_reasons(jpeg[:-2])
    assert scan == decoder


def test_damage_before_trailing_data_is_no_missing_end() -> None:
    content = bytearray(encode("PNG") + FILM)
    start = content.index(b"IDAT")
    content[start + 40 : start + 80] = bytes(40)
    with pytest.raises(UnreadableItemError, match="damaged picture"):
        decode_image(bytes(content))


@pytest.fixture(scope="module")
def photo() -> bytes:
    """200 megapixels, as phones take them; more than Pillow opens."""
    file = io.BytesIO()
    Image.new("L", (16_320, 12_240), 90).save(file, "JPEG")
    return file.getvalue()


def test_pixel_limit_applies_to_decoded_pixels(photo: bytes) -> None:
    assert JpegImagePlugin.JpegImageFile(io.BytesIO(photo)).size == (16_320, 12_240)
    assert read_reasons(photo) == ("", "")
    assert decode_image(photo).shape == (192, 256, 3)
    assert read_header(io.BytesIO(photo))[:2] == (16_320, 12_240)
    with pytest.raises(UnreadableItemError, match=r"2040 x 1530, at most 1,000,000 \(16320 x 12240 reduced\)"):
        decode_image(photo, max_pixels=1_000_000)


def test_formats_decoded_at_full_size_are_limited() -> None:
    with pytest.raises(UnreadableItemError, match="120 x 90, at most 10,000'"):
        decode_image(encode("PNG"), max_pixels=10_000)
