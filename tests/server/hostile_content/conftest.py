"""Pictures larger than they look, and services whose memory and work are measured."""

import os
import shutil
import struct
import subprocess
import zlib
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path

import httpx2 as httpx
import pytest
from PIL import Image
from tests.server.conftest import draw_picture, start_service
from tests.server.test_model_service import make_png_chunk

PNG = b"\x89PNG\r\n\x1a\n"
MEGABYTE = 1 << 20
PATIENCE = 60.0
MOST_WORK = 4.0
SECRET_FILE = "hidden beside the collection"  # noqa: S105 - no password
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
HTML = b"<!doctype html><html><script>alert(1)</script></html>"
RDF = (
    '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><r:Description '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:subject><r:Bag>{}</r:Bag></dc:subject></r:Description></r:RDF>'
)
LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))


def make_png(width: int, height: int, *chunks: bytes) -> bytes:
    head = make_png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    data = make_png_chunk(b"IDAT", zlib.compress(b"\0" * 1000))
    return b"".join([PNG, head, *chunks, data, make_png_chunk(b"IEND", b"")])


def make_small_png(*chunks: bytes) -> bytes:
    """A picture of 24 x 24 that can be read, with chunks."""
    rows = make_png_chunk(b"IDAT", zlib.compress(b"\0" * 25 * 24))
    head = make_png_chunk(b"IHDR", struct.pack(">IIBBBBB", 24, 24, 8, 0, 0, 0, 0))
    return b"".join([PNG, head, *chunks, rows, make_png_chunk(b"IEND", b"")])


@cache
def compress_zeros(size: int) -> bytes:
    """So many zeros, compressed: a thousandth of it."""
    packer = zlib.compressobj(9)
    piece = bytes(MEGABYTE)
    return b"".join([packer.compress(piece) for _ in range(size // MEGABYTE)] + [packer.flush()])


def make_webp(width: int, height: int) -> bytes:
    inside = (
        b"VP8X"
        + struct.pack("<I", 10)
        + b"\0" * 4
        + (width - 1).to_bytes(3, "little")
        + (height - 1).to_bytes(3, "little")
    )
    inside += b"VP8L" + struct.pack("<I", 8) + b"\x2f" + b"\0" * 7
    return b"RIFF" + struct.pack("<I", 4 + len(inside)) + b"WEBP" + inside


def make_gif(width: int, height: int, frames: int = 1) -> bytes:
    out = BytesIO()
    Image.new("1", (8, 8)).save(out, "GIF")
    frame = out.getvalue()[out.getvalue().index(b",\0\0\0\0\x08\0") : -1]
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff" + frame * frames + b";"


def make_tiff(width: int, height: int, next_directory: int = 0) -> bytes:
    entries = [
        (256, 4, width),
        (257, 4, height),
        (258, 3, 8),
        (259, 3, 1),
        (262, 3, 1),
        (273, 4, 8),
        (278, 4, height),
        (279, 4, 8),
    ]
    listed = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in entries)
    return (
        b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(entries)) + listed + struct.pack("<I", next_directory)
    )


def make_bmp(width: int, height: int) -> bytes:
    return b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54, 0, 0, 54, 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)


def make_jpeg(width: int, height: int) -> bytes:
    out = BytesIO()
    Image.new("L", (8, 8)).save(out, "JPEG")
    content = bytearray(out.getvalue())
    at = content.index(b"\xff\xc0")
    content[at + 5 : at + 9] = struct.pack(">HH", height, width)
    return bytes(content)


def make_progressive_jpeg(more: int) -> bytes:
    """A progressive picture that goes over itself again and again: 95 bytes a time."""
    out = BytesIO()
    Image.new("L", (4000, 4000), 128).save(out, "JPEG", progressive=True)
    content = out.getvalue()
    last, end = content.rindex(b"\xff\xda"), content.rindex(b"\xff\xd9")
    return content[:end] + content[last:end] * more + content[end:]


HUGE = {
    "png": make_png(60_000, 60_000),
    "png of lines": make_png(2**31 - 1, 1),
    "webp": make_webp(16_383, 16_383),
    "webp beyond": make_webp(2**24, 2**24),
    "gif": make_gif(65_535, 65_535),
    "tiff": make_tiff(2**31 - 1, 2**31 - 1),
    "bmp": make_bmp(50_000, 50_000),
    "bmp upside down": make_bmp(50_000, -50_000),
    "jpeg": make_jpeg(65_500, 65_500),
    "jpeg of scans": make_progressive_jpeg(2000),
}


# ---- the memory of a running service


class Watched:
    """A running service: what it answers, and how much memory and time of a processor that costs."""

    def __init__(self, client: httpx.Client, process: "subprocess.Popen[str]") -> None:
        self.client, self.process = client, process
        self.place = Path(f"/proc/{process.pid}")

    def _figure(self, name: str) -> int:
        line = next(
            status_line
            for status_line in (self.place / "status").read_text().splitlines()
            if status_line.startswith(name)
        )
        return int(line.split()[1]) * 1024

    def _worked(self) -> float:
        """Seconds of a processor since it was started, which do not count what else the machine does."""
        fields = (self.place / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def begin(self) -> int:
        """From now on the peak and the work are counted; what is in memory now."""
        (self.place / "clear_refs").write_text("5")
        self.work_before = self._worked()
        return self._figure("VmRSS")

    def more_since(self, start_memory: int) -> int:
        return self._figure("VmHWM") - start_memory

    def work_since(self) -> float:
        return self._worked() - self.work_before


@pytest.fixture(scope="module")
def watched(trained_collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    place = tmp_path_factory.mktemp("watched") / "photos"
    shutil.copytree(trained_collection, place)
    with start_service(place, "--max-megabytes", "4") as (client, process):
        client.timeout = httpx.Timeout(PATIENCE)
        client.get("/api/v1/items/1/thumbnail")
        client.post("/api/v1/search/picture", files={"file": draw_picture("red", 1)})  # the model is in memory
        yield Watched(client, process)


@pytest.fixture(scope="module")
def impatient_service(trained_collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A service that gives 3 seconds to each request."""
    place = tmp_path_factory.mktemp("hurried") / "photos"
    shutil.copytree(trained_collection, place)
    with start_service(place, "--timeout", "3") as (client, _):
        yield client
