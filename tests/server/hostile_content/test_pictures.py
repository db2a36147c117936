"""Pictures that are far larger than they look, and files of another kind in a collection."""

import gzip
import json
import time
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from starlette.testclient import TestClient
from tests.server.hostile_content.conftest import (
    HTML,
    HUGE,
    LAUGHS,
    MEGABYTE,
    MOST_WORK,
    RDF,
    SECRET_FILE,
    SVG,
    Watched,
    compress_zeros,
    make_gif,
    make_progressive_jpeg,
    make_small_png,
    make_tiff,
)
from tests.server.test_model_service import make_png_chunk

from wsabie.collection.folder.collection import create_collection, open_collection
from wsabie.collection.scan.scanner import scan_collection
from wsabie.core.errors import UnreadableItemError
from wsabie.features.images.image_decoder import decode_image, read_header
from wsabie.storage.rejects import Rejects


@pytest.mark.parametrize("kind", HUGE)
def test_decompression_bombs_are_refused(watched: Watched, kind: str) -> None:
    memory_before = watched.begin()
    for path in ("search/picture", "annotate/picture", "explain/picture"):
        refused = watched.client.post(f"/api/v1/{path}", files={"file": HUGE[kind]})
        assert refused.status_code == 415, refused.text
    assert watched.more_since(memory_before) < 50 * MEGABYTE
    assert watched.work_since() < MOST_WORK


def test_pixel_limit_applies_to_the_decoded_picture(watched: Watched) -> None:
    """64 million pixels are allowed: what they cost at most."""
    out = BytesIO()
    Image.new("L", (8000, 8000), 200).save(out, "PNG")
    memory_before = watched.begin()
    assert watched.client.post("/api/v1/search/picture", files={"file": out.getvalue()}).status_code == 200
    assert watched.more_since(memory_before) < 500 * MEGABYTE


@pytest.mark.parametrize(
    "chunk",
    [
        make_png_chunk(b"zTXt", b"Comment\0\0" + compress_zeros(256 * MEGABYTE)),
        make_png_chunk(b"iTXt", b"Comment\0\1\0\0\0" + compress_zeros(256 * MEGABYTE)),
        make_png_chunk(b"iCCP", b"icc\0\0" + compress_zeros(256 * MEGABYTE)),
        make_png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + compress_zeros(256 * MEGABYTE)),
        make_png_chunk(b"zTXt", b"a\0\0" + compress_zeros(MEGABYTE)) * 200,
        make_png_chunk(b"tEXt", b"a\0b") * 100_000,
        make_png_chunk(
            b"eXIf", b"II*\0\x08\0\0\0\x01\0\x69\x87\x04\0\x01\0\0\0\x08\0\0\0\0\0\0\0"
        ),  # a directory in itself
    ],
    ids=["zTXt", "iTXt", "iCCP", "XMP", "many zTXt", "many tEXt", "EXIF"],
)
def test_hostile_chunks_are_not_expanded(watched: Watched, chunk: bytes) -> None:
    content = make_small_png(chunk)
    memory_before = watched.begin()
    answer = watched.client.post("/api/v1/search/picture", files={"file": content})
    assert answer.status_code in (200, 415), answer.text
    assert watched.more_since(memory_before) < 120 * MEGABYTE
    assert watched.work_since() < MOST_WORK


def test_only_the_first_frame_is_read(watched: Watched) -> None:
    memory_before = watched.begin()
    directories = make_tiff(24, 24, 8)  # which goes on with itself
    for content, status in ((make_gif(24, 24, frames=40_000), 200), (directories, 422)):  # which has no pixels
        assert watched.client.post("/api/v1/search/picture", files={"file": content}).status_code == status
    assert watched.more_since(memory_before) < 50 * MEGABYTE
    assert watched.work_since() < MOST_WORK


def test_progressive_pictures_of_ten_scans_are_read() -> None:
    assert decode_image(make_progressive_jpeg(0), size=16).shape == (16, 16, 3)
    assert read_header(BytesIO(make_progressive_jpeg(90))).width == 4000
    with pytest.raises(UnreadableItemError, match="scans"):
        read_header(BytesIO(make_progressive_jpeg(100)))
    with pytest.raises(UnreadableItemError, match="scans"):
        decode_image(make_progressive_jpeg(100))


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


def test_disguised_pages_and_drawings_are_never_served(api: TestClient, folder: Path) -> None:
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


def test_file_that_becomes_a_page_is_not_served(api: TestClient, folder: Path) -> None:
    item = api.get("/api/v1/items?k=1").json()["items"][0]
    for content in (HTML, SVG, b""):
        (folder / item["path"]).write_bytes(content)
        assert api.get(f"/api/v1/items/{item['id']}/file").status_code in (415, 422)
        assert api.get(f"/api/v1/items/{item['id']}/thumbnail").status_code in (415, 422)


def test_picture_that_is_also_html_is_served_as_a_picture(api: TestClient, folder: Path) -> None:
    item = api.get("/api/v1/items?k=1").json()["items"][0]
    for content, kind in (
        (make_gif(24, 24) + HTML, "image/gif"),
        (make_small_png(make_png_chunk(b"tEXt", b"a\0" + HTML)), "image/png"),
    ):
        (folder / item["path"]).write_bytes(content)
        response = api.get(f"/api/v1/items/{item['id']}/file")
        assert (response.status_code, response.headers["content-type"]) == (200, kind)
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["content-security-policy"] == "default-src 'none'; sandbox"


@pytest.mark.parametrize("sent_as", ["image/svg+xml", "text/html", "image/png"])
@pytest.mark.parametrize("content", [SVG, HTML, b"\xef\xbb\xbf" + HTML, gzip.compress(SVG, mtime=0)])
def test_uploaded_pages_and_drawings_are_refused(api: TestClient, content: bytes, sent_as: str) -> None:
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
def test_hostile_metadata_expand_and_read_no_files(tmp_path: Path, kind: str, place: str) -> None:
    """In SQLite alone: what is read of them is judged before a database is asked."""
    secret = tmp_path / "secret.txt"
    secret.write_text(SECRET_FILE)
    packet = SIDECARS[kind].replace("{}", str(secret)).encode()
    photos = tmp_path / "photos"
    photos.mkdir()
    if place == "inside":
        chunk = make_png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + packet)
        (photos / "a.png").write_bytes(make_small_png(chunk))
    else:
        (photos / "a.png").write_bytes(make_small_png())
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


def test_hostile_tables_name_no_outside_files(tmp_path: Path, database: str | None) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    (tmp_path / "secret.png").write_bytes(make_small_png())
    (photos / "a.png").write_bytes(make_small_png())
    lines = ["../secret.png,x", f"{tmp_path}/secret.png,x", "a/../../secret.png,x", "a.png,good", "..\\secret.png,x"]
    (photos / "metadata.csv").write_text("\n".join(["file_name,labels", *lines]))
    rejects = Rejects()
    with create_collection(photos, database) as collection:
        assert scan_collection(collection, by="eve", rejects=rejects).new == 1
    reasons = [reason for _, reason, _ in rejects.listed]
    assert reasons.count("path that leads out of the folder") == 3
    assert reasons.count("labels without a file") == 1


def test_hostile_json_lists_are_rejected_line_by_line(tmp_path: Path, database: str | None) -> None:
    """Lines of tags that nest or never end are refused, each told in one line; the others count."""
    good = '{"file_name": "a.png", "labels": ["x"]}'
    deep = '{"file_name": "a.png", "labels": ' + "[" * 100_000
    bad = ["[" * 200_000, deep + "}", deep + "]" * 100_000 + "}", json.dumps({"a": 1}) * 3]
    (tmp_path / "a.png").write_bytes(make_small_png())
    (tmp_path / "metadata.jsonl").write_text("\n".join([*bad, good]))
    rejects = Rejects()
    with create_collection(tmp_path, database) as collection:
        result = scan_collection(collection, by="eve", rejects=rejects)
    assert (result.new, result.added_tags) == (1, 1)
    assert [reason for _, reason, _ in rejects.listed] == ["JSON that nests too deeply"] * 3 + ["malformed JSON"]
    assert [str(where).rpartition(":")[2] for where, *_ in rejects.listed] == ["1", "2", "3", "4"]
    assert not any("\n" in detail or len(detail) > 500 for *_, detail in rejects.listed)
