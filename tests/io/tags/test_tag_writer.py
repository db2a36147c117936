"""Tags written beside pictures and into them: only the tags change, or nothing does."""

import os
import shutil
import stat
from io import BytesIO

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from metadata_bytes import FILES, extended, iptc, packet, png_packet, resource, resources, segment, with_segments
from wsabie.core.errors import InputError
from wsabie.io.tags.embedded_metadata import XMP_HEAD, detect_container, iterate_chunks, read_chunk_content
from wsabie.io.tags.image_tags import read_image_tags
from wsabie.io.tags.tag_writer import write_embedded, write_sidecar
from wsabie.samples import get_sample_path
from wsabie.storage.atomic_files import WriteError

TAGS = [("animal", "dog"), ("sea & <sky>",), ("Ольга",), ("🎉 海",)]


def read_other_bytes(path):
    """All bytes of a file but the packet: pieces as they are, and what follows the last one."""
    with path.open("rb") as stream:
        kind = detect_container(stream)
        listed = list(iterate_chunks(stream, kind))
        blocks = []
        for chunk in listed:
            if read_chunk_content(stream, chunk, kind)[0] != "packet" and chunk.name != b"VP8X":
                stream.seek(chunk.begin)
                blocks.append(stream.read(chunk.end - chunk.begin))
        stream.seek(listed[-1].end)
        return [*blocks, stream.read()]


def read_pixels(path):
    with Image.open(path) as image:
        return image.size, image.mode, [read_frame(image, number) for number in range(getattr(image, "n_frames", 1))]


def read_frame(image, number):
    image.seek(number)
    return image.tobytes()


def draw_file(path, mode="RGB", **options):
    image = Image.effect_noise((37, 21), 60).convert(mode)
    ImageDraw.Draw(image).ellipse((5, 3, 30, 18), fill=200 if mode == "L" else (200, 30, 90, 120)[: len(mode)])
    image.save(path, **options)
    return path


EXIF = Image.Exif()
EXIF[0x0112], EXIF[0x010F] = 6, "Maker"
FILE_OPTIONS = {
    "plain.jpg": {},
    "exif.jpg": {"exif": EXIF, "icc_profile": b"profile" * 9, "comment": b"a comment"},
    "progressive.jpg": {"progressive": True, "xmp": packet("old", ("x", "y"))},
    "grey.jpg": {"mode": "L"},
    "plain.png": {},
    "xmp.png": {"mode": "RGBA", "pnginfo": png_packet(packet("old")), "exif": EXIF},
    "packed.png": {"pnginfo": png_packet(packet("old"), zip=True)},
    "lossy.webp": {},
    "lossless.webp": {"lossless": True},
    "alpha.webp": {"mode": "RGBA", "lossless": True},
    "lossy_alpha.webp": {"mode": "RGBA"},
    "exif.webp": {"exif": EXIF, "icc_profile": b"profile" * 9},
    "xmp.webp": {"xmp": packet("old ones")},
}


@pytest.mark.parametrize("name", FILE_OPTIONS)
def test_embedding_changes_only_the_packet(tmp_path, name):
    path = draw_file(tmp_path / name, **FILE_OPTIONS[name])
    old_tags, other_bytes, old_pixels = read_image_tags(path), read_other_bytes(path), read_pixels(path)
    for tags in (TAGS, TAGS[:1], [*TAGS, *((f"tag {i}",) for i in range(99))]):
        assert write_embedded(path, tags)
        new_tags = read_image_tags(path)
        assert list(new_tags.tags) == tags
        assert new_tags[2:] == old_tags[2:]
        assert read_other_bytes(path) == other_bytes
        assert read_pixels(path) == old_pixels
        content = path.read_bytes()
        assert not write_embedded(path, tags[::-1])
        assert path.read_bytes() == content
    assert write_embedded(path, [])
    assert read_image_tags(path).tags == {}


@pytest.mark.parametrize("name", ["lossy.webp", "lossless.webp", "alpha.webp", "lossy_alpha.webp"])
def test_webp_header_equals_that_of_pillow(tmp_path, name):
    ours, theirs = (
        draw_file(tmp_path / name, **FILE_OPTIONS[name]),
        draw_file(tmp_path / "x.webp", **FILE_OPTIONS[name], xmp=packet("sea")),
    )
    write_embedded(ours, ["sea"])
    assert ours.read_bytes()[12:30] == theirs.read_bytes()[12:30]


def test_packet_follows_exif(tmp_path):
    path = draw_file(tmp_path / "a.jpg", exif=EXIF)
    write_embedded(path, ["sea"])
    content = path.read_bytes()
    assert content.index(b"JFIF") < content.index(b"Exif") < content.index(XMP_HEAD) < content.index(b"\xff\xdb")


def test_packaged_pictures_take_tags(tmp_path):
    rows = pq.read_table(get_sample_path("emoji"), columns=["image"]).slice(300, 40).column("image").to_pylist()
    for number, content in enumerate(rows):
        path = tmp_path / f"{number}.webp"
        path.write_bytes(content)
        for ending in (".webp", ".png", ".jpg"):
            path = path.with_suffix(ending)
            if not path.exists():
                with Image.open(BytesIO(content)) as image:
                    image.convert("RGB").save(path)
            old_pixels, other_bytes = read_pixels(path), read_other_bytes(path)
            assert write_embedded(path, TAGS)
            assert list(read_image_tags(path).tags) == TAGS
            assert (read_pixels(path), read_other_bytes(path)) == (old_pixels, other_bytes)
            with Image.open(path) as image:
                assert image.info.get("xmp") or image.info.get("XML:com.adobe.xmp")


def test_animations_and_trailing_bytes_are_kept(tmp_path):
    images = [Image.effect_noise((9, 9), 40 + i) for i in range(3)]
    for name, options in {"a.webp": {"lossless": True}, "a.png": {}}.items():
        path = tmp_path / name
        images[0].save(path, save_all=True, append_images=images[1:], **options)
        path.write_bytes(path.read_bytes() + b"trailer")
        old_pixels = read_pixels(path)
        assert len(old_pixels[2]) == 3
        assert write_embedded(path, TAGS)
        assert read_pixels(path) == old_pixels
        assert path.read_bytes().endswith(b"trailer")
        assert list(read_image_tags(path).tags) == TAGS


def test_multi_picture_jpegs_are_kept_or_refused(tmp_path):
    images = [Image.effect_noise((16, 16), 40 + i) for i in range(2)]
    path = tmp_path / "a.jpg"
    images[0].save(path, "MPO", save_all=True, append_images=images[1:])
    old_pixels = read_pixels(path)
    assert len(old_pixels[2]) == 2
    assert write_embedded(path, TAGS)
    assert read_pixels(path) == old_pixels
    content = path.read_bytes()
    at = content.index(b"\xff\xe1")
    end = at + 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    index_end = content.index(b"MPF\0") - 2
    index_end += int.from_bytes(content[index_end : index_end + 2], "big")
    path.write_bytes(content[:at] + content[end:index_end] + content[at:end] + content[index_end:])
    with pytest.raises(InputError, match=r"several pictures in one file .*; write a sidecar beside it"):
        write_embedded(path, ["other"])


def test_iptc_keywords_are_kept_but_overridden(tmp_path):
    path = tmp_path / "a.jpg"
    shutil.copy(FILES / "iptc.jpg", path)
    other_bytes = read_other_bytes(path)
    assert write_embedded(path, ["new"])
    assert read_image_tags(path).names == ("new",)
    assert read_other_bytes(path) == other_bytes


def test_mode_and_time_are_kept(tmp_path):
    path = draw_file(tmp_path / "a.jpg")
    path.chmod(0o640)
    os.utime(path, (1_000_000_000, 1_000_000_000))
    write_embedded(path, ["sea"], keep_time=True)
    assert (path.stat().st_mtime, stat.S_IMODE(path.stat().st_mode)) == (1_000_000_000, 0o640)
    write_embedded(path, ["sky"])
    assert path.stat().st_mtime > 1_500_000_000
    sidecar = write_sidecar(path, ["sea"])
    sidecar.chmod(0o604)
    assert write_sidecar(path, ["sky"]) == sidecar
    assert stat.S_IMODE(sidecar.stat().st_mode) == 0o604
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.jpg", "a.jpg.xmp"]


def make_unwritable(folder, picture):
    """name -> (path, what the sentence says)"""
    far, near = (extended(packet("far")), extended(packet("far"), name="0" * 32))
    twice = segment(b"\xe1", XMP_HEAD + packet("one"))
    cut = draw_file(folder / "cut.png")
    cut.write_bytes(cut.read_bytes()[:-20])
    (folder / "text.jpg").write_bytes(b"text")
    (folder / "link.jpg").symlink_to(draw_file(folder / "there.jpg"))
    (folder / "odd.webp").write_bytes(b"RIFF\x0e\0\0\0WEBPVP8 \2\0\0\0ab")
    (folder / "bare.webp").write_bytes(b"RIFF\x0c\0\0\0WEBPVP8X\0\0\0\0")
    unfilled = draw_file(folder / "unfilled.webp", exif=EXIF.tobytes() + b"\0" * (len(EXIF.tobytes()) % 2 == 0))
    content = unfilled.read_bytes()[:-1]
    unfilled.write_bytes(content[:4] + (len(content) - 8).to_bytes(4, "little") + content[8:])
    broken = resources(resource(0x0404, iptc(b"sea"))), segment(b"\xe1", XMP_HEAD + b"<a")
    return {
        "tiff": (
            draw_file(folder / "a.tif"),
            "is not a JPEG, PNG or WebP, and only these are written into; write a sidecar",
        ),
        "gif": (draw_file(folder / "a.gif", "L"), "is not a JPEG, PNG or WebP"),
        "text": (folder / "text.jpg", "is not a JPEG, PNG or WebP"),
        "link": (folder / "link.jpg", "is a link; give the file that it leads to"),
        "missing": (folder / "gone.jpg", "there is no file"),
        "cut": (cut, r"unreadable picture \(.* is cut off\); write a sidecar"),
        "bare": (folder / "bare.webp", "no pixels of WebP"),
        "unfilled": (unfilled, "its last chunk is not filled up"),
        "odd": (folder / "odd.webp", "no pixels of WebP"),
        "broken": (with_segments(picture, folder / "b.jpg", *broken), "unreadable XMP packet"),
        "far": (with_segments(picture, folder / "c.jpg", far[0], *far[1]), "the tags lie in it"),
        "checksum": (with_segments(picture, folder / "d.jpg", near[0], *near[1]), "checksum is wrong"),
        "twice": (with_segments(picture, folder / "e.jpg", twice, twice), "there are two packets"),
    }


@pytest.mark.parametrize("name", [
    "tiff", "gif", "text", "link", "missing", "cut", "odd", "bare", "unfilled", "broken", "far", "checksum", "twice"
])  # fmt: skip
def test_unwritable_pictures_are_refused(tmp_path, picture, name):
    path, sentence = make_unwritable(tmp_path, picture)[name]
    contents = {file: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(InputError, match=sentence) as error:
        write_embedded(path, ["sea"])
    assert "\n" not in str(error.value)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == contents


def test_unrelated_extended_xmp_is_kept(tmp_path, picture):
    main, parts = extended(packet("x").replace(b"dc:subject", b"dc:format").replace(b"hierarchicalSubject", b"private"))
    path = with_segments(picture, tmp_path / "a.jpg", main, *parts)
    other_bytes = read_other_bytes(path)
    assert write_embedded(path, TAGS)
    assert (list(read_image_tags(path).tags), read_other_bytes(path)) == (TAGS, other_bytes)


def test_packets_above_64_kilobytes_are_refused_in_jpeg(tmp_path):
    many = [f"tag number {i}" for i in range(10_000)]
    path = draw_file(tmp_path / "a.jpg")
    content = path.read_bytes()
    with pytest.raises(InputError, match=r"oversized XMP packet \(.* a segment of JPEG holds 64 KB\); write a sidecar"):
        write_embedded(path, many)
    assert path.read_bytes() == content
    for name in ("a.png", "a.webp"):
        second_file = draw_file(tmp_path / name)
        assert write_embedded(second_file, many)
        assert list(read_image_tags(second_file).names) == many
    padded = packet("old").replace(b"<?xpacket end", (b" " * 99 + b"\n") * 600 + b"<?xpacket end")
    path = draw_file(tmp_path / "b.jpg", xmp=padded)
    assert write_embedded(path, many[:100])
    assert list(read_image_tags(path).names) == many[:100]


words = st.text("aé犬🎉<&>\"'/ ", min_size=1).filter(str.strip)


@settings(max_examples=25)
@given(tags=st.lists(st.lists(words, min_size=1, max_size=2), max_size=5), name=st.sampled_from(["a.jpg", "a.png"]))
def test_sidecar_and_embedded_tags_agree(tmp_path_factory, tags, name):
    path = draw_file(tmp_path_factory.mktemp("same") / name)
    write_embedded(path, tags)
    inside = read_image_tags(path)
    sidecar = write_sidecar(path, tags)
    assert read_image_tags(path).tags == inside.tags
    assert (sidecar is None) == (not tags)
    assert inside.problems == ()


def test_sidecar_is_written_beside_the_picture(tmp_path):
    photo = tmp_path / "photo.jpg"
    assert write_sidecar(photo, []) is None
    assert write_sidecar(photo, ["sea"]) == tmp_path / "photo.jpg.xmp"
    (tmp_path / "photo.jpg.xmp").rename(tmp_path / "photo.xmp")
    assert write_sidecar(photo, ["sea"]) is None
    assert write_sidecar(photo, ["sky"]) == tmp_path / "photo.xmp"
    shutil.copy(FILES / "darktable.xmp", tmp_path / "photo.jpg.xmp")
    assert write_sidecar(photo, ["sun"]) == tmp_path / "photo.jpg.xmp"
    assert b"<rdf:li>sky" in (tmp_path / "photo.xmp").read_bytes()


def test_empty_sidecar_removes_embedded_tags(tmp_path):
    photo = draw_file(tmp_path / "a.jpg", xmp=packet("inside"))
    assert write_sidecar(photo, []) == tmp_path / "a.jpg.xmp"
    assert read_image_tags(photo).tags == {}
    assert write_sidecar(photo, []) is None


def test_unreadable_sidecar_is_not_overwritten(tmp_path):
    photo, sidecar = tmp_path / "a.jpg", tmp_path / "a.jpg.xmp"
    for content in (b"<a/>", b"text", b"<!DOCTYPE a><a/>", b"<?xml version='1.0'?>\n<x:xmpmeta"):
        sidecar.write_bytes(content)
        with pytest.raises(InputError, match=r"a.jpg.xmp is not written: unreadable XMP packet .*; repair it or move"):
            write_sidecar(photo, ["sea"])
        assert sidecar.read_bytes() == content
    sidecar.write_bytes(b"")
    assert write_sidecar(photo, ["sea"]) == sidecar


def test_links_are_not_written_through(tmp_path):
    photo, sidecar, elsewhere = tmp_path / "a.jpg", tmp_path / "a.jpg.xmp", tmp_path / "else"
    elsewhere.write_bytes(packet("mine"))
    for target in (elsewhere, tmp_path / "gone"):
        sidecar.symlink_to(target)
        with pytest.raises(InputError, match="sidecar that is a link"):
            write_sidecar(photo, ["sea"])
        assert sidecar.is_symlink()
        sidecar.unlink()
    assert elsewhere.read_bytes() == packet("mine")
    assert not (tmp_path / "gone").exists()


def test_unwritable_name_changes_nothing(tmp_path):
    photo = draw_file(tmp_path / "a.jpg")
    content = photo.read_bytes()
    for write in (write_sidecar, write_embedded):
        with pytest.raises(InputError, match="which XMP cannot hold"):
            write(photo, ["sea", "a\x07"])
    assert [file.name for file in tmp_path.iterdir()] == ["a.jpg"]
    assert photo.read_bytes() == content


@pytest.mark.parametrize("write", [write_sidecar, write_embedded])
def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch, write):
    photo = draw_file(tmp_path / "a.jpg")
    write(photo, ["old"])
    contents = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(WriteError, match="the disk is full"):
        write(photo, ["new"])
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == contents


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp"])
@given(at=st.integers(0, 3000), byte=st.integers(0, 255))
def test_flipped_byte_is_kept_or_refused(tmp_path_factory, name, at, byte):
    path = tmp_path_factory.mktemp("flipped") / name
    draw_file(path, **({"pnginfo": png_packet(packet("old"))} if name == "a.png" else {"xmp": packet("old")}))
    content = bytearray(path.read_bytes())
    content[at % len(content)] = byte
    path.write_bytes(content)
    try:
        write_embedded(path, TAGS)
    except InputError:
        assert path.read_bytes() == content
    else:
        assert list(read_image_tags(path).tags) == TAGS
