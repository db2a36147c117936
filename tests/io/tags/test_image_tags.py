"""Tags, dates and sizes in pictures and sidecars; which of them wins; damaged files."""

import os
import shutil
import struct
import tracemalloc
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, TiffImagePlugin, features

from metadata_bytes import FILES, extended, iptc, packet, png_packet, resource, resources, segment, with_segments
from wsabie.io.data_sources import open_source
from wsabie.io.tags.embedded_metadata import (
    MAGIC,
    XMP_HEAD,
    find_iptc_block,
    read_embedded_metadata,
    read_iptc_keywords,
)
from wsabie.io.tags.image_tags import IPTC, read_image_tags, read_keywords
from wsabie.io.tags.tag_writer import write_sidecar
from wsabie.io.tags.xmp import NEW
from wsabie.storage.rejects import RowError


def test_file_of_exiftool_is_read():
    image_tags = read_image_tags(FILES / "iptc.jpg")
    assert image_tags.tags == {("Москва",): (IPTC,), ("sea",): (IPTC,)}
    assert (image_tags.source, image_tags.size, image_tags.orientation, image_tags.problems) == (
        FILES / "iptc.jpg",
        (24, 16),
        6,
        (),
    )
    assert image_tags.date_taken == "2018-05-06T07:08:09+03:00"


def test_sidecar_and_longer_name_win(tmp_path, picture):
    photo = picture(tmp_path / "a.jpg", xmp=packet("inside", ("x", "y")))
    assert read_image_tags(photo).names == ("inside", "y")
    assert read_image_tags(photo).paths == (("x", "y"),)
    assert read_image_tags(photo).source == photo
    (tmp_path / "a.xmp").write_bytes(packet("short"))
    assert read_keywords(photo) == read_image_tags(photo).names == ("short",)
    (tmp_path / "a.jpg.xmp").write_bytes(packet("long"))
    assert read_keywords(photo) == read_image_tags(photo).names == ("long",)
    assert read_image_tags(photo).source == tmp_path / "a.jpg.xmp"


@pytest.mark.parametrize(
    ("name", "sidecar"),
    [
        ("IMG_1.JPG", "img_1.xmp"),
        ("img_1.jpg", "IMG_1.JPG.XMP"),
        ("IMG_1.JPG", "IMG_1.jpg.xmp"),
        ("IMG_1.JPG", "Img_1.xmp"),
        ("caf\u00e9.jpg", "cafe\u0301.xmp"),
        ("CAFE\u0301.JPG", "caf\u00e9.jpg.xmp"),
    ],
)
def test_sidecars_may_differ_in_letter_case_and_accents(tmp_path, picture, name, sidecar):
    photo = picture(tmp_path / name)
    (tmp_path / sidecar).write_bytes(packet("sea"))
    assert (read_keywords(photo), read_image_tags(photo).source) == (("sea",), tmp_path / sidecar)
    assert write_sidecar(photo, ["sky"]) == tmp_path / sidecar


def test_sidecars_of_other_pictures_are_not_taken(tmp_path, picture):
    photos = [picture(tmp_path / name) for name in ("IMG_1.JPG", "img_1.JPG")]
    if photos[0].samefile(photos[1]):
        pytest.skip("the file system ignores letter case")
    (tmp_path / "img_1.xmp").write_bytes(packet("sea"))
    assert [read_keywords(photo) for photo in photos] == [(), ("sea",)]


def test_removed_tags_stay_removed_and_empty_sidecars_remove_none(tmp_path, picture):
    photo = picture(tmp_path / "a.png", pnginfo=png_packet(packet("inside")))
    sidecar = tmp_path / "a.png.xmp"
    sidecar.write_bytes(packet())
    assert read_image_tags(photo).tags == {}
    assert (read_keywords(photo), read_image_tags(photo).source) == ((), sidecar)
    for silent in (NEW, b"", b" \n"):
        sidecar.write_bytes(silent)
        assert read_keywords(photo) == read_image_tags(photo).names == ("inside",)
        assert read_image_tags(photo).problems == ()


def test_png_packets_are_read_compressed_or_after_the_pixels(tmp_path, picture):
    packed = picture(tmp_path / "a.png", pnginfo=png_packet(packet("packed"), zip=True))
    assert read_keywords(packed) == ("packed",)
    late = picture(tmp_path / "b.png")
    body = b"XML:com.adobe.xmp\0\0\0\0\0" + packet("late")
    chunk = struct.pack(">I", len(body)) + b"iTXt" + body + struct.pack(">I", zlib.crc32(b"iTXt" + body))
    content = late.read_bytes()
    late.write_bytes(content[:-12] + chunk + content[-12:])
    assert read_keywords(late) == ("late",)
    late.write_bytes(content[:-12] + chunk[:-1] + b"?" + content[-12:])
    assert [problem.reason for problem in read_image_tags(late).problems] == ["unreadable XMP packet"]
    bomb = zlib.compress(b"<a>" + b" " * (160 << 20), 9)
    body = b"XML:com.adobe.xmp\0\1\0\0\0" + bomb
    chunk = struct.pack(">I", len(body)) + b"iTXt" + body + struct.pack(">I", zlib.crc32(b"iTXt" + body))
    late.write_bytes(content[:-12] + chunk + content[-12:])
    tracemalloc.start()
    with pytest.raises(RowError, match="oversized XMP packet"):
        read_keywords(late)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 << 20


@pytest.mark.parametrize("name", ["a.tif", "a.avif"])
def test_other_formats_are_read_through_pillow(tmp_path, picture, name):
    if name == "a.avif" and not features.check("avif"):
        pytest.skip("Pillow was built without AVIF")
    options = {"tiffinfo": {700: packet("sea")}} if name == "a.tif" else {"xmp": packet("sea")}
    photo = picture(tmp_path / name, **options)
    assert read_image_tags(photo).size == (4, 3)
    assert read_keywords(photo) == ("sea",)


def test_date_comes_from_sidecar_exif_or_packet_in_this_order(tmp_path, picture):
    exif = Image.Exif()
    exif[0x0112] = 8
    exif.get_ifd(0x8769)[0x9003] = "2001:02:03 04:05:06"
    inside = (FILES / "lightroom.xmp").read_bytes()
    photo = picture(tmp_path / "a.jpg", exif=exif, xmp=inside)
    assert (read_image_tags(photo).date_taken, read_image_tags(photo).orientation) == ("2001-02-03T04:05:06", 8)
    shutil.copy(FILES / "darktable.xmp", tmp_path / "a.jpg.xmp")
    assert read_image_tags(photo).date_taken == "2022-06-18T12:00:01.000"
    for date, offset, expected in [
        ("0000:00:00 00:00:00", "+01:00", "2019-08-04T17:21:09.52"),
        ("2001:02:03 04:05:06", "+01:00", "2001-02-03T04:05:06+01:00"),
        ("2001:02:03 04:05:06", "east", "2001-02-03T04:05:06"),
    ]:
        exif.get_ifd(0x8769).update({0x9003: date, 0x9011: offset})
        exif[0x0112] = 77
        photo = picture(tmp_path / "b.jpg", exif=exif, xmp=inside)
        assert (read_image_tags(photo).date_taken, read_image_tags(photo).orientation) == (expected, 1)
    broken = picture(tmp_path / "c.jpg", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff", xmp=inside)
    assert read_image_tags(broken).date_taken == "2019-08-04T17:21:09.52"


@pytest.mark.parametrize(
    ("block", "keywords"),
    [
        (iptc(b"sea", "кот".encode()), ["sea", "кот"]),
        (iptc(b"sea", b"k\xf6ln"), ["sea", "köln"]),
        (iptc("кот".encode() + b"\xd0", utf8=True), ["кот"]),
        (iptc(b"sea\0", utf8=True), ["sea"]),
        (iptc(), None),
        (b"", None),
        (b"\x1c\x02\x19\x80\x04\0\0\0\x03sea", ["sea"]),
    ],
)
def test_iptc_character_sets_are_decoded(block, keywords):
    assert read_iptc_keywords(block) == keywords


def test_heic_keywords_are_labels(tmp_path):
    pillow_heif = pytest.importorskip("pillow_heif")
    photo = tmp_path / "IMG_1.HEIC"
    pillow_heif.from_pillow(Image.new("RGB", (64, 64))).save(photo, xmp=packet("sea", "dog"))
    assert read_image_tags(photo).names == ("sea", "dog")
    assert [item.labels for item in open_source(tmp_path)] == [("sea", "dog")]


def test_iptc_counts_only_without_packet_tags(tmp_path, picture):
    caption = resource(0x03ED, b"abc", name=b"Caption")
    resource_block = caption + resource(0x0404, iptc(b"sea", b" sea ", b"sky", b""))
    photo = with_segments(picture, tmp_path / "a.jpg", resources(resource_block[:30]), resources(resource_block[30:]))
    assert read_image_tags(photo).tags == {("sea",): (IPTC,), ("sky",): (IPTC,)}
    assert read_keywords(photo) == ("sea", "sky")
    xmp = segment(b"\xe1", XMP_HEAD + packet("inside"))
    assert read_keywords(with_segments(picture, tmp_path / "b.jpg", resources(resource_block), xmp)) == ("inside",)


@pytest.mark.parametrize(
    "broken",
    [
        resource(0x0404, iptc(b"sea"))[:-3],
        resource(0x0404, iptc(b"sea")[:-1] + b""),
        resource(0x0404, b"\x1c\x02\x19\xff\xff" + b"\xff" * 30),
        resource(0x0404, b"\x1c\x02\x19\x80\x04\xff\xff\xff\xff"),
        resource(0x0404, b"\x1c\x02"),
        b"8BIM\x04\x04\0\0\xff\xff\xff\xff",
    ],
)
def test_iptc_with_wrong_lengths_is_refused(tmp_path, picture, broken):
    photo = with_segments(picture, tmp_path / "a.jpg", resources(broken))
    with pytest.raises(RowError, match="unreadable IPTC keywords"):
        read_keywords(photo)
    assert read_image_tags(photo).size == (4, 3)


@given(st.binary(max_size=80))
def test_any_resources_give_keywords_or_a_reason(content):
    for head in (b"", b"8BIM\x04\x04\0\0\0\0\0" + bytes([len(content)]), b"\x1c\x02\x19"):
        for parse in (find_iptc_block, read_iptc_keywords):
            with suppress(RowError):
                parse(head + content)


def test_extended_xmp_is_read_in_any_order(tmp_path, picture):
    main, parts = extended(packet("far", ("a", "b")))
    assert len(parts) > 1
    photo = with_segments(picture, tmp_path / "a.jpg", main, *parts[::-1])
    assert read_keywords(photo) == ("far", "b")


@pytest.mark.parametrize("fault", ["name", "missing", "twice", "length", "none"])
def test_incomplete_extended_xmp_is_refused(tmp_path, picture, fault):
    options = {"name": {"name": "0" * 32}, "length": {"total_bytes": 1 << 30}}.get(fault, {})
    main, parts = extended(packet("far"), **options)
    parts = {"missing": parts[1:], "twice": [*parts, parts[0]], "none": []}.get(fault, parts)
    photo = with_segments(picture, tmp_path / "a.jpg", main, *parts, resources(resource(0x0404, iptc(b"near"))))
    with pytest.raises(RowError, match="unreadable extended XMP"):
        read_keywords(photo)
    assert read_image_tags(photo).names == ("near",)
    assert [problem.reason for problem in read_image_tags(photo).problems] == ["unreadable extended XMP"]


def test_damaged_tags_are_listed_beside_readable_ones(tmp_path, picture):
    photo = with_segments(
        picture, tmp_path / "a.jpg", segment(b"\xe1", XMP_HEAD + b"<a"), resources(resource(0x0404, iptc(b"sea")))
    )
    sidecar = tmp_path / "a.jpg.xmp"
    sidecar.write_bytes(b"<!DOCTYPE a><a/>")
    image_tags = read_image_tags(photo)
    assert (image_tags.names, image_tags.source, image_tags.size) == (("sea",), photo, (4, 3))
    assert [problem.reason for problem in image_tags.problems] == ["unreadable sidecar", "unreadable XMP packet"]
    assert "a.jpg.xmp: the XMP packet has a document type" in image_tags.problems[0].detail
    with pytest.raises(RowError, match="unreadable sidecar"):
        read_keywords(photo)
    sidecar.write_bytes(packet("beside"))
    assert (read_keywords(photo), read_image_tags(photo).names) == (("beside",), ("beside",))
    photo.write_bytes(b"no picture")
    image_tags = read_image_tags(photo)
    assert (image_tags.names, image_tags.size, image_tags.orientation) == (("beside",), None, 1)
    assert [problem.reason for problem in image_tags.problems] == ["unreadable picture"]


def test_unreadable_paths_are_problems(tmp_path):
    for name in ("gone.jpg", "x" * 251 + ".jpg", "folder"):
        (tmp_path / "folder").mkdir(exist_ok=True)
        assert [problem.reason for problem in read_image_tags(tmp_path / name).problems] == ["unreadable picture"]
        with pytest.raises(RowError, match="unreadable picture"):
            read_keywords(tmp_path / name)


def test_unreadable_sidecar_is_listed(tmp_path, picture, monkeypatch):
    photo = picture(tmp_path / "a.jpg", xmp=packet("inside"))
    (tmp_path / "a.jpg.xmp").write_bytes(packet("beside"))
    monkeypatch.setattr(
        "wsabie.io.tags.image_tags.open_input",
        lambda path: path.open("x") if path.suffix == ".xmp" else path.open("rb"),
    )
    assert read_image_tags(photo).names == ("inside",)
    assert read_image_tags(photo).problems[0].detail == "a.jpg.xmp: File exists"


@pytest.mark.parametrize("value", [1 << 30, "text"])
def test_tiff_packet_of_a_wrong_type_is_listed(tmp_path, picture, value):
    directory = TiffImagePlugin.ImageFileDirectory_v2()
    directory[700] = value
    directory.tagtype[700] = 2 if value == "text" else 4
    photo = picture(tmp_path / "a.tif", tiffinfo=directory)
    assert read_image_tags(photo)[:2] == ({}, None)
    assert [problem.reason for problem in read_image_tags(photo).problems] == ["unreadable XMP packet"] * (
        value == "text"
    )


def test_foreign_or_endless_sidecars_are_not_opened(tmp_path, picture):
    photo = picture(tmp_path / "a.jpg", xmp=packet("inside"))
    secret = tmp_path / "secret"
    secret.write_bytes(packet("secret"))
    sidecar = tmp_path / "a.jpg.xmp"
    for make, reason in [
        (lambda: sidecar.symlink_to(secret), "sidecar that is a link"),
        (lambda: sidecar.symlink_to(tmp_path / "gone"), "sidecar that is a link"),
        (lambda: os.mkfifo(sidecar), "sidecar that is not a file"),
        (lambda: os.truncate(os.open(sidecar, os.O_CREAT | os.O_WRONLY), 1 << 40), "oversized XMP packet"),
    ]:
        make()
        assert read_image_tags(photo).names == ("inside",)
        assert [problem.reason for problem in read_image_tags(photo).problems] == [reason]
        with pytest.raises(RowError, match=reason):
            read_keywords(photo)
        sidecar.unlink()


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xd8\xff\xe1\xff\xff" + XMP_HEAD,
        b"\xff\xd8\xff\xe1\0\0",
        b"\xff\xd8\xff\xe1\0\1",
        b"\xff\xd8" + b"\xff" * 1000,
        b"\xff\xd8",
        b"\xff\xd8" + b"\xff\xe2\0\2" * 1_000_001,
        b"\x89PNG\r\n\x1a\n",
        b"\x89PNG\r\n\x1a\n\x40\0\0\0iTXtXML:com.adobe.xmp\0",
        b"RIFF\xff\xff\xff\x7fWEBPXMP \0\0\0\x40<a",
        b"RIFF\x04\0\0\0WEBP",
    ],
)
def test_wrong_lengths_give_a_reason(tmp_path, content):
    photo = tmp_path / "a.jpg"
    photo.write_bytes(content)
    with pytest.raises(RowError, match="unreadable picture"):
        read_embedded_metadata(photo)
    assert [problem.reason for problem in read_image_tags(photo).problems] == ["unreadable picture"]


def test_file_cut_off_after_its_packet_keeps_tags(tmp_path, picture):
    for name, options in {"a.jpg": {"xmp": packet("sea")}, "a.png": {"pnginfo": png_packet(packet("sea"))}}.items():
        photo = picture(tmp_path / name, **options)
        content = photo.read_bytes()
        photo.write_bytes(content[: content.index(b"<?xpacket end") + 40])
        assert read_image_tags(photo).names == ("sea",)


@given(head=st.sampled_from([*MAGIC.values(), b"RIFF\0\1\0\0WEBP", b"\xff\xd8\xff\xe1"]), tail=st.binary(max_size=60))
def test_any_bytes_give_metadata_or_a_reason(tmp_path_factory, head, tail):
    photo = tmp_path_factory.mktemp("any") / "a.jpg"
    photo.write_bytes(head + tail)
    with suppress(RowError):
        read_embedded_metadata(photo)
    assert read_image_tags(photo).tags == {}


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp", "a.tif", "iptc.jpg"])
@given(at=st.integers(0, 4000), byte=st.integers(0, 255))
def test_flipped_byte_gives_tags_or_problems(tmp_path_factory, name, at, byte):
    photo = tmp_path_factory.mktemp("flipped") / name
    if name == "iptc.jpg":
        shutil.copy(FILES / name, photo)
    else:
        options = {"a.png": {"pnginfo": png_packet(packet("sea"))}, "a.tif": {"tiffinfo": {700: packet("sea")}}}
        options = options.get(name, {"xmp": packet("sea")})
        Image.new("RGB", (3, 3)).save(photo, **options)
    content = bytearray(photo.read_bytes())
    content[at % len(content)] = byte
    photo.write_bytes(content)
    image_tags = read_image_tags(photo)
    assert all(isinstance(tag, str) for tag in image_tags.names)
    assert all(problem.reason for problem in image_tags.problems)
