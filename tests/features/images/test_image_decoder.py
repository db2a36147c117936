"""Every format and mode comes out right; every broken file is refused with its reason."""

import contextlib
import io
import logging
import os
import resource
import struct
import sys
import threading
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, features

from wsabie.core.errors import InputError, UnreadableItemError
from wsabie.features.images.image_decoder import decode_image, decode_with_size, read_header
from wsabie.io.image_inspection import register_heif

REASONS = {
    "not a picture", "unsupported picture format", "truncated picture", "damaged picture", "empty file",
    "too many pixels", "too much memory", "unreadable file", "region outside the picture",
    "region of a picture that lies on its side", "no finite features",
}  # fmt: skip
"""All reasons for which a picture is refused."""

RED, GREEN, BLUE, WHITE = (230, 20, 10), (20, 220, 40), (10, 30, 200), (255, 255, 255)


def make_quarters(width=64, height=32):
    """Red upper left, green upper right, blue lower left, white lower right."""
    image = Image.new("RGB", (width, height), WHITE)
    image.paste(RED, (0, 0, width // 2, height // 2))
    image.paste(GREEN, (width // 2, 0, width, height // 2))
    image.paste(BLUE, (0, height // 2, width // 2, height))
    return image


def encode_image(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def read_corners(pixels):
    h, w = pixels.shape[:2]
    return [tuple(int(v) for v in pixels[y, x]) for y in (h // 4, 3 * h // 4) for x in (w // 4, 3 * w // 4)]


needs_avif = pytest.mark.skipif(not features.check("avif"), reason="this Pillow was built without AVIF")


def assert_close(actual, expected, tolerance=12):
    return np.abs(np.array(actual, int) - np.array(expected, int)).max() <= tolerance


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("JPEG", {"quality": 95, "subsampling": 0}),
        ("PNG", {}),
        ("WEBP", {"lossless": True}),
        ("GIF", {}),
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("BMP", {}),
        ("PPM", {}),
        pytest.param("AVIF", {"quality": 95, "subsampling": "4:4:4"}, marks=needs_avif),
    ],
)
def test_each_format_is_read(kind, options):
    pixels = decode_image(encode_image(make_quarters(), kind, **options))
    assert pixels.shape == (32, 64, 3)
    assert pixels.dtype == np.uint8
    assert assert_close(read_corners(pixels), [RED, GREEN, BLUE, WHITE])


def test_file_and_bytes_are_read_alike(tmp_path):
    content = encode_image(make_quarters(), "JPEG")
    (tmp_path / "a.jpg").write_bytes(content)
    assert np.array_equal(decode_image(tmp_path / "a.jpg"), decode_image(content))


@pytest.mark.parametrize(("mode", "expected"), [("P", [RED, GREEN, BLUE, WHITE]), ("CMYK", [RED, GREEN, BLUE, WHITE])])
def test_palette_and_cmyk_are_read(mode, expected):
    image = make_quarters().convert(mode) if mode == "CMYK" else make_quarters().quantize(8)
    kind = "TIFF" if mode == "CMYK" else "PNG"
    assert assert_close(read_corners(decode_image(encode_image(image, kind))), expected)


def test_cmyk_jpeg_is_read():
    content = encode_image(make_quarters().convert("CMYK"), "JPEG", quality=95)
    assert Image.open(io.BytesIO(content)).mode == "CMYK"
    assert assert_close(read_corners(decode_image(content)), [RED, GREEN, BLUE, WHITE], 25)


@pytest.mark.parametrize("mode", ["1", "L", "LA"])
def test_grey_is_read(mode):
    image = Image.new("L", (8, 8), 255)
    image.paste(0, (0, 0, 4, 8))
    pixels = decode_image(encode_image(image.convert(mode), "PNG"))
    assert read_corners(pixels) == [(0, 0, 0), WHITE, (0, 0, 0), WHITE]


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bit_grey_is_scaled(kind):
    values = np.array([[0, 257 * 100], [257 * 200, 65535]], np.uint16)
    pixels = decode_image(encode_image(Image.fromarray(values), kind))
    assert pixels[..., 0].tolist() == [[0, 100], [200, 255]]
    assert np.array_equal(pixels[..., 0], pixels[..., 2])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([[0, 257], [65535, 257 * 9]], np.int32), [[0, 1], [255, 9]]),
        (np.array([[-10, 0], [10, 10]], np.int32), [[0, 128], [255, 255]]),
        (np.array([[0.0, 0.2], [0.6, 1.0]], np.float32), [[0, 51], [153, 255]]),
        (np.array([[-1.0, 0.0], [3.0, np.nan]], np.float32), [[0, 64], [255, 64]]),
    ],
)
def test_wide_grey_is_stretched(values, expected):
    assert decode_image(encode_image(Image.fromarray(values), "TIFF"))[..., 1].tolist() == expected


def test_transparency_is_laid_on_white():
    image = Image.new("RGBA", (4, 4), (200, 0, 0, 0))
    image.putpixel((1, 1), (0, 0, 0, 255))
    image.putpixel((2, 2), (0, 0, 0, 51))
    pixels = decode_image(encode_image(image, "PNG"))
    assert pixels[0, 0].tolist() == [255, 255, 255]
    assert pixels[1, 1].tolist() == [0, 0, 0]
    assert pixels[2, 2].tolist() == [204, 204, 204]


@pytest.mark.parametrize("kind", ["PNG", "GIF"])
def test_transparent_palette_entry_is_laid_on_white(kind):
    image = Image.new("P", (4, 4), 0)
    image.putpalette([10, 20, 30, 200, 0, 0])
    image.putpixel((1, 1), 1)
    pixels = decode_image(encode_image(image, kind, transparency=0))
    assert pixels[0, 0].tolist() == [255, 255, 255]
    assert pixels[1, 1].tolist() == [200, 0, 0]


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_first_frame_is_read(kind):
    frames = [Image.new("RGB", (8, 8), c) for c in (RED, BLUE)]
    content = encode_image(frames[0], kind, save_all=True, append_images=frames[1:])
    assert assert_close([decode_image(content)[4, 4]], [RED])


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_exif_orientation_is_applied(kind, orientation):
    upright = make_quarters(64, 32)
    undo = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # Pillow's transpose that EXIF orientation asks to be undone
    stored = upright.transpose(Image.Transpose(undo[orientation])) if orientation > 1 else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    decoded = decode_with_size(encode_image(stored, kind, exif=exif, quality=95), size=32)
    assert (decoded.width, decoded.height) == (64, 32)
    assert decoded.pixels.shape == (16, 32, 3)
    assert assert_close(read_corners(decoded.pixels), [RED, GREEN, BLUE, WHITE], 25)


@pytest.mark.parametrize("exif", [b"Exif\0\0garbage and more of it", b"Exif\0\0II*\0\xff\xff\xff\xff", b"Exif\0\0"])
def test_broken_camera_notes_are_ignored(exif):
    assert decode_image(encode_image(make_quarters(), "JPEG", exif=exif)).shape == (32, 64, 3)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize(
    ("width", "height", "shape"),
    [
        (1000, 500, (128, 256)),
        (500, 1000, (256, 128)),
        (100, 50, (50, 100)),
        (257, 100, (100, 256)),
        (3000, 1, (1, 256)),
    ],
)
def test_longer_side_is_only_scaled_down(kind, width, height, shape):
    decoded = decode_with_size(encode_image(Image.new("RGB", (width, height), GREEN), kind))
    assert decoded.pixels.shape == (*shape, 3)
    assert (decoded.width, decoded.height) == (width, height)
    assert assert_close([decoded.pixels[0, 0]], [GREEN])


def test_draft_mode_reads_the_same_picture():
    image = make_quarters(1024, 512)
    by_draft = decode_image(encode_image(image, "JPEG", quality=95), size=128)
    assert np.abs(by_draft.astype(int) - decode_image(encode_image(image, "PNG"), size=128)).mean() < 3


def find_refusal_reason(content, **options):
    with pytest.raises(UnreadableItemError) as caught:
        decode_image(content, **options)
    assert caught.value.reason in REASONS
    return caught.value.reason


def test_other_files_are_refused(tmp_path):
    (tmp_path / "notes.jpg").write_text("shopping list")
    (tmp_path / "empty.png").touch()
    assert find_refusal_reason(tmp_path / "notes.jpg") == "not a picture"
    assert find_refusal_reason(tmp_path / "empty.png") == "empty file"
    assert find_refusal_reason(b"") == "empty file"
    assert find_refusal_reason(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n") == "not a picture"


def test_jpeg_xl_is_refused_under_any_name(tmp_path):
    (tmp_path / "phone.jpg").write_bytes(b"\0\0\0\x0cJXL \r\n\x87\n" + bytes(40))
    with pytest.raises(UnreadableItemError) as caught:
        decode_image(tmp_path / "phone.jpg")
    assert (caught.value.reason, caught.value.detail) == ("unsupported picture format", "convert it to JPEG or PNG")


@pytest.mark.parametrize("brand", [b"heic", b"mif1"])
def test_missing_heic_decoder_error_names_the_install_command(monkeypatch, brand):
    content = b"\0\0\0\x18ftyp" + brand + bytes(40)
    assert find_refusal_reason(content) == "damaged picture"
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    register_heif.cache_clear()
    with pytest.raises(UnreadableItemError) as caught:
        decode_image(content)
    register_heif.cache_clear()
    assert caught.value.reason == "unsupported picture format"
    assert "pip install 'wsabie[photos]'" in caught.value.detail


def test_heic_is_decoded_upright_with_its_date(tmp_path):
    pillow_heif = pytest.importorskip("pillow_heif")
    pixels = np.zeros((48, 64, 3), np.uint8)
    pixels[:, :32] = 255
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0x9003] = "2024:05:01 12:00:00"
    register_heif()
    photo = tmp_path / "IMG_1.jpg"  # some programs keep the ending of a JPEG
    pillow_heif.from_pillow(Image.fromarray(pixels)).save(photo, exif=exif.tobytes(), quality=90)
    decoded = decode_image(photo)
    assert decoded.shape == (48, 64, 3)
    assert decoded[:, :28].min() > 200
    assert decoded[:, 36:].max() < 60
    with photo.open("rb") as stream:
        assert read_header(stream) == (64, 48, "2024-05-01T12:00:00")
    content = photo.read_bytes()
    assert find_refusal_reason(content[: len(content) // 2]) in ("truncated picture", "damaged picture")


def test_avif_is_unsupported_only_without_its_decoder(monkeypatch):
    damaged = b"\0\0\0\x20ftypavif" + bytes(40)
    for supported, reason in ((True, "damaged picture"), (False, "unsupported picture format")):
        monkeypatch.setattr(features, "check", lambda name, supported=supported: supported)
        assert find_refusal_reason(damaged) == reason


def test_unreadable_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    assert find_refusal_reason(tmp_path / "gone.jpg") == "unreadable file"
    assert find_refusal_reason(tmp_path) == "unreadable file"
    assert find_refusal_reason(tmp_path / "pipe.jpg") == "unreadable file"
    assert find_refusal_reason(tmp_path / "a\0b") == "unreadable file"
    assert find_refusal_reason(Path("/") / ("x" * 5000)) == "unreadable file"


def test_too_many_open_files_do_not_reject_a_picture(tmp_path):
    """A picture that is left out stays out of what is made of the collection."""
    (tmp_path / "a.png").write_bytes(encode_image(Image.new("L", (8, 8)), "PNG"))
    limits, handles = resource.getrlimit(resource.RLIMIT_NOFILE), []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
        with contextlib.suppress(OSError):
            handles.extend(iter(lambda: os.open(tmp_path / "a.png", os.O_RDONLY), None))
        with pytest.raises(InputError, match=r"too many files are open .* run the same command again"):
            decode_image(tmp_path / "a.png")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for handle in handles:
            os.close(handle)
    assert decode_image(tmp_path / "a.png").shape == (8, 8, 3)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP"])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_truncated_picture_is_refused(kind, share):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    content = encode_image(Image.fromarray(noise), kind)
    assert find_refusal_reason(content[: int(share * len(content))]) == "truncated picture"


def test_damaged_pictures_are_refused():
    content = bytearray(encode_image(make_quarters(), "PNG"))
    content[60] ^= 0xFF
    assert find_refusal_reason(bytes(content)) == "damaged picture"
    assert find_refusal_reason(b"\x89PNG\r\n\x1a\n" + bytes(40) + b"IEND") == "damaged picture"
    assert find_refusal_reason(b"\x89PNG\r\n\x1a\n nonsense") == "damaged picture"
    assert find_refusal_reason(b"\x89PNG\r\n\x1a\n\0\0\0\rIH") == "truncated picture"


def make_bomb(width, height):
    """A PNG of a few bytes whose header promises width x height pixels."""

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(64))) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [8_001, 10_000, 60_000])
def test_decompression_bomb_is_refused_before_decoding(side):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_refusal_reason(make_bomb(side, side)) == "too many pixels"


def test_pixel_limit_is_inclusive():
    content = encode_image(make_quarters(10, 10), "PNG")
    assert decode_image(content, max_pixels=100).shape == (10, 10, 3)
    assert find_refusal_reason(content, max_pixels=99) == "too many pixels"


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP"]),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=8),
    st.floats(0, 1),
)
def test_hostile_bytes_are_read_or_refused(kind, edits, share):
    content = bytearray(encode_image(make_quarters(16, 8), kind))
    for place, value in edits:
        content[int(place * len(content))] = value
    try:
        pixels = decode_image(bytes(content[: int(share * len(content))]), max_pixels=1_000_000)
    except UnreadableItemError as rejected:
        pixels, reason = np.zeros((1, 1, 3), np.uint8), rejected.reason
    else:
        reason = None
    assert reason in (None, *REASONS)
    assert pixels.dtype == np.uint8
    assert pixels.shape[2] == 3


def test_threads_keep_the_warning_filters():
    old_filters = list(warnings.filters)
    content = encode_image(make_quarters(200, 200), "PNG")
    threads = [threading.Thread(target=lambda: [decode_image(content) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(warnings.filters) == old_filters


def test_decoders_print_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """libtiff, which writes past Python, and Pillow's log and warnings; afterwards all is as it was before."""
    intact = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)).save(
        intact, "TIFF", compression="tiff_lzw"
    )
    damaged = bytearray(intact.getvalue())
    damaged[9:2000:7] = b"\xff" * len(range(9, 2000, 7))
    samples = bytearray(intact.getvalue())
    entry = samples.index(struct.pack("<HHI", 277, 3, 1))
    samples[entry + 8 : entry + 10] = struct.pack("<H", 45_056)
    for content in (damaged, samples):
        with pytest.raises(UnreadableItemError, match=r"damaged picture|not a picture"):
            decode_image(bytes(content))
    assert capfd.readouterr() == ("", "")
    assert not logging.getLogger("PIL").handlers
    with pytest.raises(OSError, match="decoder error"):
        Image.open(io.BytesIO(damaged)).load()
    assert capfd.readouterr().err
