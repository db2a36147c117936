"""Memory of decoding: estimated from headers, shared between threads, refused where it is too much."""

import io
import json
import re
import struct
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, features

from wsabie.core.errors import UnreadableItemError
from wsabie.core.memory_budget import ITEM_MEMORY
from wsabie.features.images import image_decoder as decoding
from wsabie.features.images import image_scaling
from wsabie.features.images.image_decoder import decode_image, read_header
from wsabie.io.image_inspection import inspect_avif

MEASURE = """
import json, sys
from pathlib import Path
from wsabie.features.images import image_decoder as decoding

def resident(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))

estimates, estimate = [], decoding.estimate_decoding_bytes
decoding.estimate_decoding_bytes = lambda *given, **named: estimates.append(estimate(*given, **named)) or estimates[-1]
paths = [Path(name) for name in sys.argv[1:]]
for path in paths:  # libraries are loaded
    decoding.decode_image(path, size=64)
figures = {}
for path in paths:
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    decoding.decode_image(path)
    figures[path.name] = resident("VmHWM") - before, estimates[-1]
print(json.dumps(figures))
"""
SIDE = 1600
KINDS = {
    "grey16.png": ("I;16", {}),
    "rgba.png": ("RGBA", {}),
    "palette.png": ("P", {"transparency": 0}),
    "progressive.jpg": ("RGB", {"progressive": True, "subsampling": 0}),
    "plain.jpg": ("RGB", {}),
    "cmyk.jpg": ("CMYK", {"progressive": True}),
    "float.tif": ("F", {"compression": "tiff_adobe_deflate"}),
    "strip.tif": ("RGB", {"compression": "tiff_lzw", "tiffinfo": {278: SIDE}}),
    "jpeg.tif": ("RGB", {"compression": "jpeg", "tiffinfo": {278: SIDE // 8 * 8}}),
    "alpha.tif": ("RGBA", {}),
    "whole.webp": ("RGBA", {"lossless": True}),
    "lossy.webp": ("RGB", {}),
    "moving.gif": ("P", {}),
    "a.bmp": ("RGB", {}),
    "a.pgm": ("I;16", {}),
}


def test_estimate_bounds_the_measured_memory(tmp_path):
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("this system does not tell the peak of memory")
    kinds = KINDS | ({"a.avif": ("RGB", {"speed": 10})} if features.check("avif") else {})
    for name, (mode, options) in kinds.items():
        Image.new(mode, (SIDE, SIDE)).save(tmp_path / name, **options)
    words = [sys.executable, "-c", MEASURE, *(str(tmp_path / name) for name in kinds)]
    figures = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    assert figures.keys() == kinds.keys()
    assert {name: bytes_pair for name, bytes_pair in figures.items() if bytes_pair[0] > bytes_pair[1]} == {}


def find_refusal_reason(content, **options):
    with pytest.raises(UnreadableItemError) as caught:
        decode_image(content, **options)
    return caught.value


def encode_image(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def test_picture_above_the_limit_is_refused_before_decoding(monkeypatch):
    content = encode_image(Image.new("RGB", (3000, 3000)), "PNG")
    monkeypatch.setattr(Image.Image, "load", None)
    monkeypatch.setenv("WSABIE_LIMITS", "picture_bytes=2e7")
    verdict = find_refusal_reason(content)
    assert verdict.reason == "too much memory"
    assert "at most 20,000,000 are allowed" in verdict.detail
    assert re.search(r'WSABIE_LIMITS="picture_bytes=\d+"', verdict.detail)


def test_threads_wait_for_their_share_of_memory(monkeypatch):
    content, most = encode_image(Image.new("RGBA", (1000, 1000)), "WEBP", lossless=True), []
    need = 20_000_000 + (24 << 20) + (6 << 20)
    monkeypatch.setenv("WSABIE_LIMITS", f"picture_bytes={2 * need}")
    shrink = image_scaling.shrink_image
    monkeypatch.setattr(
        image_scaling, "shrink_image", lambda *arguments: most.append(ITEM_MEMORY.used) or shrink(*arguments)
    )
    threads = [threading.Thread(target=decode_image, args=(content,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 8
    assert max(most) <= 2 * need
    assert ITEM_MEMORY.used == 0


# ---- headers, and what stands beside a picture


def make_chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def make_png(*, early_chunk=b"", late_chunk=b"", side=40):
    head = make_chunk(b"IHDR", struct.pack(">IIBBBBB", side, side // 2, 8, 0, 0, 0, 0))
    data = make_chunk(b"IDAT", zlib.compress(bytes((side + 1) * (side // 2))))
    return b"\x89PNG\r\n\x1a\n" + head + early_chunk + data + late_chunk + make_chunk(b"IEND", b"")


@pytest.mark.parametrize("place", ["early_chunk", "late_chunk"])
def test_header_of_a_png_is_read_without_decoding(place, monkeypatch):
    exif = Image.Exif()
    exif[0x0112] = 6
    content = make_png(**{place: make_chunk(b"eXIf", exif.tobytes()[6:])})
    assert decoding.decode_with_size(content).width == 20
    monkeypatch.setattr(Image.Image, "load", None)
    assert read_header(io.BytesIO(content)) == (20, 40, None)
    assert read_header(io.BytesIO(make_png())) == (40, 20, None)


def test_excess_chunks_are_refused():
    assert decode_image(make_png(late_chunk=make_chunk(b"teSt", b"") * 100)).shape == (20, 40, 3)
    for place in ("early_chunk", "late_chunk"):
        assert "chunks" in find_refusal_reason(make_png(**{place: make_chunk(b"teSt", b"") * 10_001})).detail
    assert "EXIF" in find_refusal_reason(make_png(early_chunk=make_chunk(b"eXIf", bytes(2 << 20)))).detail


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("big", [False, True])
def test_excess_strips_are_refused(order, big):
    entry = struct.pack(order + ("HHQQ" if big else "HHII"), 273, 4, 1 << 21, 8)
    head = struct.pack(order + "HHHQ", 43, 8, 0, 16) if big else struct.pack(order + "HI", 42, 8)
    count = struct.pack(order + ("Q" if big else "H"), 1)
    content = (b"II" if order == "<" else b"MM") + head + count + entry
    assert "numbers in entry 273" in find_refusal_reason(content.ljust(64, b"\0")).detail


def test_excess_exif_is_refused():
    content = encode_image(Image.new("L", (8, 8)), "JPEG")
    segment = b"\xff\xe1\xff\xfeExif\0\0" + bytes(0xFFFE - 8)
    assert decode_image(content[:2] + segment + content[2:]).shape == (8, 8, 3)
    assert "bytes of EXIF" in find_refusal_reason(content[:2] + segment * 17 + content[2:]).detail


@pytest.mark.skipif(not features.check("avif"), reason="this Pillow was built without AVIF")
@pytest.mark.parametrize("frames", [1, 2])
def test_avif_memory_follows_the_decoded_size(frames):
    more = [Image.new("RGB", (640, 480), "red")] * (frames - 1)
    content = encode_image(Image.new("RGB", (640, 480)), "AVIF", save_all=True, append_images=more)
    assert inspect_avif(io.BytesIO(content)) == 640 * 480
    stated = content.replace(b"ispe\0\0\0\0" + struct.pack(">II", 640, 480), b"ispe\0\0\0\0" + struct.pack(">II", 8, 8))
    assert inspect_avif(io.BytesIO(stated)) == 640 * 480


def test_tiled_decoding_equals_whole_decoding():
    """Scaled at once by Pillow, and a tile at a time: the same bits."""
    draw = np.random.default_rng(0)
    for width, height in ((1500, 1301), (2_100_000, 2), (700, 3)):
        image = Image.fromarray(draw.integers(0, 256, (height, width, 4), np.uint8), "RGBA")
        target = image_scaling.compute_scaled_size(width, height, 96)
        small = image.resize(target, Image.Resampling.BILINEAR, reducing_gap=2.0)
        white = Image.alpha_composite(Image.new("RGBA", target, "white"), small).convert("RGB")
        assert np.array_equal(image_scaling.shrink_image(image, 96), white)
