"""Hostile bodies and files: files that are of another kind, or far larger than they seem."""

import gzip
import json
import os
import shutil
import socket
import struct
import subprocess
import time
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import httpx2 as httpx
import pytest
from PIL import Image
from starlette.testclient import TestClient
from tests.server.conftest import draw_picture, started
from tests.server.test_model_service import png_chunk

from wsabie.collection.folder.collection import create_collection, open_collection
from wsabie.collection.scan.scanner import scan_collection
from wsabie.features.images.image_decoder import UnreadableItemError, decode_image, read_header
from wsabie.storage.rejects import Rejects

PNG = b"\x89PNG\r\n\x1a\n"
MEGABYTE = 1 << 20
PATIENCE = 60.0
"""Seconds after which what should have happened has not."""
MOST_WORK = 4.0
"""Seconds of a processor, of which about one is needed; without the limits these take many times as long."""
SECRET_FILE = "hidden beside the collection"  # noqa: S105 - no password
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
HTML = b"<!doctype html><html><script>alert(1)</script></html>"
RDF = (
    '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><r:Description '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:subject><r:Bag>{}</r:Bag></dc:subject></r:Description></r:RDF>'
)
LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))


def png(width: int, height: int, *chunks: bytes) -> bytes:
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    data = png_chunk(b"IDAT", zlib.compress(b"\0" * 1000))
    return b"".join([PNG, head, *chunks, data, png_chunk(b"IEND", b"")])


def small_png(*chunks: bytes) -> bytes:
    """A picture of 24 x 24 that can be read, with chunks."""
    rows = png_chunk(b"IDAT", zlib.compress(b"\0" * 25 * 24))
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", 24, 24, 8, 0, 0, 0, 0))
    return b"".join([PNG, head, *chunks, rows, png_chunk(b"IEND", b"")])


def squeezed(size: int) -> bytes:
    """So many zeros, compressed: a thousandth of it."""
    packer = zlib.compressobj(9)
    piece = bytes(MEGABYTE)
    return b"".join([packer.compress(piece) for _ in range(size // MEGABYTE)] + [packer.flush()])


def webp(width: int, height: int) -> bytes:
    inside = (
        b"VP8X"
        + struct.pack("<I", 10)
        + b"\0" * 4
        + (width - 1).to_bytes(3, "little")
        + (height - 1).to_bytes(3, "little")
    )
    inside += b"VP8L" + struct.pack("<I", 8) + b"\x2f" + b"\0" * 7
    return b"RIFF" + struct.pack("<I", 4 + len(inside)) + b"WEBP" + inside


def gif(width: int, height: int, frames: int = 1) -> bytes:
    out = BytesIO()
    Image.new("1", (8, 8)).save(out, "GIF")
    frame = out.getvalue()[out.getvalue().index(b",\0\0\0\0\x08\0") : -1]
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff" + frame * frames + b";"


def tiff(width: int, height: int, next_directory: int = 0) -> bytes:
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


def bmp(width: int, height: int) -> bytes:
    return b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54, 0, 0, 54, 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)


def jpeg(width: int, height: int) -> bytes:
    out = BytesIO()
    Image.new("L", (8, 8)).save(out, "JPEG")
    content = bytearray(out.getvalue())
    at = content.index(b"\xff\xc0")
    content[at + 5 : at + 9] = struct.pack(">HH", height, width)
    return bytes(content)


def with_scans(more: int) -> bytes:
    """A progressive picture that goes over itself again and again: 95 bytes a time."""
    out = BytesIO()
    Image.new("L", (4000, 4000), 128).save(out, "JPEG", progressive=True)
    content = out.getvalue()
    last, end = content.rindex(b"\xff\xda"), content.rindex(b"\xff\xd9")
    return content[:end] + content[last:end] * more + content[end:]


HUGE = {
    "png": png(60_000, 60_000),
    "png of lines": png(2**31 - 1, 1),
    "webp": webp(16_383, 16_383),
    "webp beyond": webp(2**24, 2**24),
    "gif": gif(65_535, 65_535),
    "tiff": tiff(2**31 - 1, 2**31 - 1),
    "bmp": bmp(50_000, 50_000),
    "bmp upside down": bmp(50_000, -50_000),
    "jpeg": jpeg(65_500, 65_500),
    "jpeg of scans": with_scans(2000),
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
    with started(place, "--max-megabytes", "4") as (client, process):
        client.timeout = httpx.Timeout(PATIENCE)
        client.get("/api/v1/items/1/thumbnail")
        client.post("/api/v1/search/picture", files={"file": draw_picture("red", 1)})  # the model is in memory
        yield Watched(client, process)


@pytest.fixture(scope="module")
def hurried(trained_collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A service that gives 3 seconds to each request."""
    place = tmp_path_factory.mktemp("hurried") / "photos"
    shutil.copytree(trained_collection, place)
    with started(place, "--timeout", "3") as (client, _):
        yield client


# ---- bodies


def _connected(client: httpx.Client) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port or 80), 20)


def _chunk(size: int) -> bytes:
    return b"%x\r\n%s\r\n" % (size, b"x" * size)


@pytest.mark.parametrize("path", ["/api/v1/search/picture", "/api/v1/decisions", "/api/v1/annotate/text"])
def test_a_body_without_a_length_is_refused_at_the_limit(watched: Watched, path: str) -> None:
    """100 megabytes in chunks, of which 4 are allowed."""
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n"
    head = head.replace("Host: a", "Host: localhost")
    if "picture" in path or "text" in path:
        head = head.replace("application/json", "multipart/form-data; boundary=b")
    memory_before, answer = watched.begin(), b""
    with _connected(watched.client) as to:
        to.sendall(head.encode())
        if "json" not in head:
            start = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
            to.sendall(b"%x\r\n%s\r\n" % (len(start), start))
        to.setblocking(False)
        piece, n_sent = _chunk(MEGABYTE), 0
        for _ in range(100):
            to.settimeout(PATIENCE)
            to.sendall(piece)
            n_sent += 1
            to.settimeout(0.001)
            try:
                answer += to.recv(65536)
                break
            except OSError:
                pass
    assert answer.startswith(b"HTTP/1.1 413 "), answer[:100]
    assert n_sent < 60  # it is told while it is sent
    assert watched.more_since(memory_before) < 40 * MEGABYTE


def test_a_body_that_tells_its_length_is_refused_unread(watched: Watched) -> None:
    with _connected(watched.client) as to:
        to.sendall(b"POST /api/v1/search/picture HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
        assert to.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_a_refused_body_is_not_read_for_ever(hurried: httpx.Client) -> None:
    until, closed = time.monotonic() + PATIENCE, False
    with _connected(hurried) as to:
        to.sendall(b"POST /api/v1/undo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
        while not closed and time.monotonic() < until:
            try:
                to.sendall(b"x")
                time.sleep(0.05)
            except OSError:
                closed = True
    assert closed


UNDO = b"POST /api/v1/undo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
FORM = b"POST /api/v1/search/picture HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n"
PART = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'


@pytest.mark.parametrize(
    "first_bytes",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
        UNDO + b"Content-Length: 999\r\n\r\n{",
        UNDO + b"Transfer-Encoding: chunked\r\n\r\n3e7\r\n",
        FORM + b"Content-Length: 999\r\n\r\n" + PART,
    ],
)
def test_who_sends_slowly_is_not_waited_for(hurried: httpx.Client, first_bytes: bytes) -> None:
    """A byte now and then, and never an end; the time for a request is 3 seconds here."""
    until, answer, closed = time.monotonic() + PATIENCE, b"", False
    with _connected(hurried) as to:
        to.sendall(first_bytes)
        to.settimeout(0.2)
        while not closed and time.monotonic() < until:
            try:
                piece = to.recv(65536)
                answer += piece
                closed = not piece
            except TimeoutError:
                try:
                    to.sendall(b" " if first_bytes else b"")
                except OSError:
                    closed = True
            except OSError:
                closed = True
    assert closed
    assert not answer or answer.startswith(b"HTTP/1.1 408 ")
    assert hurried.get("/api/v1/health").status_code == 200


def test_compressed_bodies_are_not_unpacked(watched: Watched) -> None:
    content = gzip.compress(bytes(200 * MEGABYTE))
    memory_before = watched.begin()
    for encoding in ("gzip", "deflate", "br", "gzip, gzip"):
        headers = {"content-encoding": encoding, "content-type": "application/json"}
        refused = watched.client.post("/api/v1/decisions", content=content, headers=headers)
        assert refused.status_code == 415, encoding
        assert refused.headers["content-type"] == "application/problem+json"
    assert watched.more_since(memory_before) < 20 * MEGABYTE


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 90_000,
        b'{"a":' * 90_000,
        b"[" * 90_000 + b"]" * 90_000,
        b'{"entry":' + b"9" * 1_000_000 + b"}",
        b'{"entry":' + b"9" * 4000 + b"}",
        b'{"entry":1e' + b"9" * 10_000 + b"}",
        b'{"entry":-' + b"0" * 100_000 + b"}",
        b'{"entry":1,"entry":"' + b"\\u0000" * 1000 + b'"}',
        b'{"' + b"k" * 1_000_000 + b'":1}',
        b'{"entry":"\\ud800"}',
        b"\xff\xfe{\0}\0",
        b'{"entry":"' + b"\xff" * 1000 + b'"}',
        b"NaN",
        b"",
    ],
)
def test_json_that_hurts_is_refused(watched: Watched, content: bytes) -> None:
    memory_before = watched.begin()
    refused = watched.client.post("/api/v1/undo", content=content, headers={"content-type": "application/json"})
    assert refused.status_code in (400, 422), refused.text[:200]
    assert len(refused.content) < 10_000  # it is not sent back
    assert watched.more_since(memory_before) < 100 * MEGABYTE
    assert watched.work_since() < MOST_WORK


@pytest.mark.parametrize(
    ("piece", "status"),
    [
        (b"{},", 413),
        (b"[],", 413),
        (b'{"dense":[]},', 413),
        (b"[[[[[[[[[[", 413),
        (b"0,", 422),
        (b'"ab",', 422),
        (b'"{",', 413),
    ],
)
def test_json_of_many_small_things_is_refused(watched: Watched, piece: bytes, status: int) -> None:
    content = b'{"rows":[' + piece * (3 * MEGABYTE // len(piece)) + b"{}]}"
    memory_before = watched.begin()
    headers = {"content-type": "application/json"}
    refused = watched.client.post("/api/v1/annotate/rows", content=content, headers=headers)
    assert refused.status_code == status
    assert watched.more_since(memory_before) < (10 if status == 413 else 100) * MEGABYTE


def test_values_are_counted_but_not_those_of_pictures(api: TestClient) -> None:
    many = b'{"rows":[{"dense":[' + b"0," * 5_000_001 + b"0]}]}"
    refused = api.post("/api/v1/annotate/rows", content=many, headers={"content-type": "application/json"})
    assert refused.status_code == 413
    assert "more than 5,000,000 values" in refused.json()["detail"]
    picture = small_png(png_chunk(b"teXt", b"{[," * 200_000))
    assert api.post("/api/v1/search/picture", files={"file": picture}).status_code == 200


def test_forms_of_many_parts_are_refused(watched: Watched) -> None:
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nx\r\n'
    headers = {"content-type": "multipart/form-data; boundary=b"}
    refused = watched.client.post("/api/v1/search/picture", content=part * 30_000 + b"--b--\r\n", headers=headers)
    assert refused.status_code == 400
    long = b"--b\r\nContent-Disposition: form-data; name=" + b"a" * 2 * MEGABYTE + b"\r\n\r\nx\r\n--b--\r\n"
    assert watched.client.post("/api/v1/search/picture", content=long, headers=headers).status_code in (400, 422)


# ---- pictures


@pytest.mark.parametrize("kind", HUGE)
def test_pictures_that_are_larger_than_they_look_are_refused(watched: Watched, kind: str) -> None:
    memory_before = watched.begin()
    for path in ("search/picture", "annotate/picture", "explain/picture"):
        refused = watched.client.post(f"/api/v1/{path}", files={"file": HUGE[kind]})
        assert refused.status_code == 415, refused.text
    assert watched.more_since(memory_before) < 50 * MEGABYTE
    assert watched.work_since() < MOST_WORK


def test_the_limit_of_pixels_is_that_of_the_picture_and_not_of_its_file(watched: Watched) -> None:
    """64 million pixels are allowed: what they cost at most."""
    out = BytesIO()
    Image.new("L", (8000, 8000), 200).save(out, "PNG")
    memory_before = watched.begin()
    assert watched.client.post("/api/v1/search/picture", files={"file": out.getvalue()}).status_code == 200
    assert watched.more_since(memory_before) < 500 * MEGABYTE


@pytest.mark.parametrize(
    "chunk",
    [
        png_chunk(b"zTXt", b"Comment\0\0" + squeezed(256 * MEGABYTE)),
        png_chunk(b"iTXt", b"Comment\0\1\0\0\0" + squeezed(256 * MEGABYTE)),
        png_chunk(b"iCCP", b"icc\0\0" + squeezed(256 * MEGABYTE)),
        png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + squeezed(256 * MEGABYTE)),
        png_chunk(b"zTXt", b"a\0\0" + squeezed(MEGABYTE)) * 200,
        png_chunk(b"tEXt", b"a\0b") * 100_000,
        png_chunk(b"eXIf", b"II*\0\x08\0\0\0\x01\0\x69\x87\x04\0\x01\0\0\0\x08\0\0\0\0\0\0\0"),  # a directory in itself
    ],
    ids=["zTXt", "iTXt", "iCCP", "XMP", "many zTXt", "many tEXt", "EXIF"],
)
def test_chunks_of_pictures_do_not_unfold(watched: Watched, chunk: bytes) -> None:
    content = small_png(chunk)
    memory_before = watched.begin()
    answer = watched.client.post("/api/v1/search/picture", files={"file": content})
    assert answer.status_code in (200, 415), answer.text
    assert watched.more_since(memory_before) < 120 * MEGABYTE
    assert watched.work_since() < MOST_WORK


def test_of_many_frames_one_is_read(watched: Watched) -> None:
    memory_before = watched.begin()
    directories = tiff(24, 24, 8)  # which goes on with itself
    for content, status in ((gif(24, 24, frames=40_000), 200), (directories, 422)):  # which has no pixels
        assert watched.client.post("/api/v1/search/picture", files={"file": content}).status_code == status
    assert watched.more_since(memory_before) < 50 * MEGABYTE
    assert watched.work_since() < MOST_WORK


def test_pictures_of_ten_scans_are_read() -> None:
    assert decode_image(with_scans(0), size=16).shape == (16, 16, 3)
    assert read_header(BytesIO(with_scans(90))).width == 4000
    with pytest.raises(UnreadableItemError, match="scans"):
        read_header(BytesIO(with_scans(100)))
    with pytest.raises(UnreadableItemError, match="scans"):
        decode_image(with_scans(100))


# ---- files in a collection


DISGUISED = {
    "page.html": HTML,
    "drawing.svg": SVG,
    "drawing.svgz": gzip.compress(SVG),
    "page.png": HTML,
    "drawing.jpg": SVG,
    "drawing.webp": b"<?xml version='1.0'?>" + SVG,
    "script.gif": b"<script>alert(1)</script>",
}


def test_pages_and_drawings_are_never_given_out(api: TestClient, folder: Path) -> None:
    for name, content in DISGUISED.items():
        (folder / name).write_bytes(content)
    rejects = Rejects()
    with open_collection(folder) as collection:
        scan_collection(collection, by="eve", rejects=rejects)
    assert {name for name, *_ in rejects.listed} >= set(DISGUISED) - {"page.html", "drawing.svgz"}
    present = {item["path"] for item in api.get("/api/v1/items?k=100").json()["items"]}
    assert not present & set(DISGUISED)
    unread = api.get("/api/v1/items?state=unreadable&k=100").json()["items"]
    assert unread
    for item in unread:
        for view in ("file", "thumbnail", "heat?label=red"):
            refused = api.get(f"/api/v1/items/{item['id']}/{view}")
            assert refused.status_code in (415, 422)
            assert b"alert" not in refused.content


def test_a_file_that_becomes_a_page_is_not_given_out(api: TestClient, folder: Path) -> None:
    item = api.get("/api/v1/items?k=1").json()["items"][0]
    for content in (HTML, SVG, b""):
        (folder / item["path"]).write_bytes(content)
        assert api.get(f"/api/v1/items/{item['id']}/file").status_code in (415, 422)
        assert api.get(f"/api/v1/items/{item['id']}/thumbnail").status_code in (415, 422)


def test_a_picture_that_is_a_page_too_stays_a_picture(api: TestClient, folder: Path) -> None:
    item = api.get("/api/v1/items?k=1").json()["items"][0]
    for content, kind in (
        (gif(24, 24) + HTML, "image/gif"),
        (small_png(png_chunk(b"tEXt", b"a\0" + HTML)), "image/png"),
    ):
        (folder / item["path"]).write_bytes(content)
        response = api.get(f"/api/v1/items/{item['id']}/file")
        assert (response.status_code, response.headers["content-type"]) == (200, kind)
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["content-security-policy"] == "default-src 'none'; sandbox"


@pytest.mark.parametrize("sent_as", ["image/svg+xml", "text/html", "image/png"])
@pytest.mark.parametrize("content", [SVG, HTML, b"\xef\xbb\xbf" + HTML, gzip.compress(SVG, mtime=0)])
def test_pages_and_drawings_that_are_sent_are_refused(api: TestClient, content: bytes, sent_as: str) -> None:
    for path in ("search/picture", "annotate/picture", "explain/picture"):
        refused = api.post(f"/api/v1/{path}", files={"file": ("x.svg", content, sent_as)})
        assert (refused.status_code, refused.headers["content-type"]) == (415, "application/problem+json")


SIDECARS = {
    "laughs": f'<!DOCTYPE x [<!ENTITY a0 "ha">{LAUGHS}]>' + RDF.format("<r:li>&a11;</r:li>"),
    "external": '<!DOCTYPE x [<!ENTITY f SYSTEM "file://{}">]>' + RDF.format("<r:li>&f;</r:li>"),
    "parameter": '<!DOCTYPE x [<!ENTITY % f SYSTEM "file://{}"> %f;]>' + RDF.format("<r:li>a</r:li>"),
    "include": RDF.format('<r:li><i:include xmlns:i="http://www.w3.org/2001/XInclude" href="{}"/></r:li>'),
    "deep": RDF.format("<r:li>" * 100_000 + "</r:li>" * 100_000),
    "wide": RDF.format("<r:li/>" * 400_000),
    "long": RDF.format("<r:li>" + "x" * 17 * MEGABYTE + "</r:li>"),
    "attributes": RDF.format("<r:li " + " ".join(f"a{n}=''" for n in range(200_000)) + ">a</r:li>"),
    "cut": RDF.format("<r:li>a</r:li>")[:-20],
}


@pytest.mark.parametrize("kind", SIDECARS)
@pytest.mark.parametrize("place", ["beside", "inside"])
def test_tags_of_strangers_do_not_unfold_or_look_elsewhere(tmp_path: Path, kind: str, place: str) -> None:
    """In SQLite alone: what is read of them is judged before a database is asked."""
    secret = tmp_path / "secret.txt"
    secret.write_text(SECRET_FILE)
    packet = SIDECARS[kind].replace("{}", str(secret)).encode()
    photos = tmp_path / "photos"
    photos.mkdir()
    if place == "inside":
        chunk = png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + packet)
        (photos / "a.png").write_bytes(small_png(chunk))
    else:
        (photos / "a.png").write_bytes(small_png())
        (photos / "a.png.xmp").write_bytes(packet)
    began = time.process_time()
    with create_collection(photos) as collection:
        result = scan_collection(collection, by="eve", tags="xmp")
        with collection.engine.connect() as connection:
            names = [row[0] for row in connection.exec_driver_sql("SELECT name FROM labels")]
    assert (result.new, result.unreadable) == (1, 0)  # the picture itself is none the worse
    assert time.process_time() - began < 10
    assert len(names) <= 1
    assert not any(SECRET_FILE in name or "ha" in name or len(name) > 500 for name in names)


def test_tables_name_no_files_outside(tmp_path: Path, database: str | None) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    (tmp_path / "secret.png").write_bytes(small_png())
    (photos / "a.png").write_bytes(small_png())
    lines = ["../secret.png,x", f"{tmp_path}/secret.png,x", "a/../../secret.png,x", "a.png,good", "..\\secret.png,x"]
    (photos / "metadata.csv").write_text("\n".join(["file_name,labels", *lines]))
    rejects = Rejects()
    with create_collection(photos, database) as collection:
        assert scan_collection(collection, by="eve", rejects=rejects).new == 1
    reasons = [reason for _, reason, _ in rejects.listed]
    assert reasons.count("path that leads out of the folder") == 3
    assert reasons.count("labels without a file") == 1


def test_json_lists_of_strangers(tmp_path: Path, database: str | None) -> None:
    """Lines of tags that nest or never end are refused, each told in one line; the others count."""
    good = '{"file_name": "a.png", "labels": ["x"]}'
    deep = '{"file_name": "a.png", "labels": ' + "[" * 100_000
    bad = ["[" * 200_000, deep + "}", deep + "]" * 100_000 + "}", json.dumps({"a": 1}) * 3]
    (tmp_path / "a.png").write_bytes(small_png())
    (tmp_path / "metadata.jsonl").write_text("\n".join([*bad, good]))
    rejects = Rejects()
    with create_collection(tmp_path, database) as collection:
        result = scan_collection(collection, by="eve", rejects=rejects)
    assert (result.new, result.tagged) == (1, 1)
    assert [reason for _, reason, _ in rejects.listed] == ["JSON that nests too deeply"] * 3 + ["malformed JSON"]
    assert [str(where).rpartition(":")[2] for where, *_ in rejects.listed] == ["1", "2", "3", "4"]
    assert not any("\n" in detail or len(detail) > 500 for *_, detail in rejects.listed)
