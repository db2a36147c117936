"""Tags of Windows, of programs for themselves, and keywords whose encoding is not as stated."""

from pathlib import Path

import pytest
from PIL import Image

from wsabie.io.tags.embedded_metadata import read_iptc_keywords
from wsabie.io.tags.image_tags import read_image_tags, read_keywords
from wsabie.io.tags.tag_writer import write_embedded, write_sidecar
from wsabie.vocabulary.encoding_repair import repair_encoding


def write_exif(path: Path, keywords: str, kind: str = "JPEG") -> Path:
    exif = Image.Exif()
    exif[0x9C9E] = f"{keywords}\0".encode("utf-16-le")
    Image.new("RGB", (40, 30)).save(path, kind, exif=exif)
    return path


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_windows_keywords_are_read_without_other_keywords(tmp_path: Path, kind: str) -> None:
    photo = write_exif(tmp_path / "1.img", "dog;sea  side;;Möwe; dog", kind)
    assert read_keywords(photo) == ("dog", "sea side", "Möwe")
    tags = read_image_tags(photo)
    assert (tags.names, tags.tags["dog",], tags.source) == (("dog", "sea side", "Möwe"), ("XPKeywords",), photo)
    if kind == "JPEG":
        assert write_embedded(photo, ["tern"])
        assert read_keywords(photo) == ("tern",)
    write_sidecar(photo, ["gull"])
    assert read_keywords(photo) == ("gull",)


@pytest.mark.parametrize("content", [b"", b"\0", b"d", b"\0\0\0\0", b"d\0;\0"])
def test_broken_windows_keywords_are_ignored(tmp_path: Path, content: bytes) -> None:
    exif = Image.Exif()
    exif[0x9C9E] = content
    Image.new("RGB", (40, 30)).save(tmp_path / "1.jpg", exif=exif)
    assert read_keywords(tmp_path / "1.jpg") in ((), ("d",))


@pytest.mark.parametrize("program", ["darktable", "_Digikam_Internal_Tags_", "Darktable"])
def test_internal_tags_of_programs_are_no_labels(tmp_path: Path, program: str) -> None:
    photo = tmp_path / "1.jpg"
    Image.new("RGB", (40, 30)).save(photo)
    own = [(program, "changed"), (program, "format", "jpg"), "changed", "jpg", "format", program]
    write_sidecar(photo, [*own, ("animal", "gull"), "sea"])
    assert set(read_keywords(photo)) == {"gull", "sea"}
    assert (program, "changed") in read_image_tags(photo).tags  # whoever writes tags leaves them there
    write_sidecar(photo, [f"{program}|format|jpg", "jpg", "sea"])  # as one keyword
    assert read_keywords(photo) == ("sea",)
    write_sidecar(photo, [program])
    assert read_keywords(photo) == (program,)  # a word that a person wrote


def make_block(*keywords: bytes, mark: bool = False) -> bytes:
    datasets = [b"\x1c\x01\x5a\x00\x03\x1b%G"] * mark
    return b"".join([*datasets, *(b"\x1c\x02\x19" + len(word).to_bytes(2, "big") + word for word in keywords)])


@pytest.mark.parametrize("mark", [False, True])
@pytest.mark.parametrize(
    ("content", "keyword"),
    [
        ("Möwe".encode(), "Möwe"),
        ("Möwe".encode("latin-1"), "Möwe"),
        ("Möwe – “See” 5 €".encode("cp1252"), "Möwe – “See” 5 €"),
        ("Straße".encode().decode("latin-1").encode(), "Straße"),
        ("Möwe – See".encode("cp1252").decode("latin-1").encode(), "Möwe – See"),
        (("ä" * 31 + "xy€").encode()[:64], "ä" * 31 + "xy"),
        ("café".encode("latin-1"), "café"),
        ("海".encode(), "海"),
        (b"\x81\xf6", "\x81ö"),
        (b"sea\0", "sea"),
    ],
)
def test_keywords_are_decoded_by_their_actual_encoding(content: bytes, keyword: str, mark: bool) -> None:
    assert read_iptc_keywords(make_block(content, "Köln".encode(), mark=mark)) == [keyword, "Köln"]


@pytest.mark.parametrize("text", ["", "Möwe", "Ã–", "naïve", "\x81", "日本\x80"])
def test_undamaged_texts_stay(text: str) -> None:
    assert repair_encoding(text) == text


def test_sidecar_in_another_encoding_names_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "1.jpg.xmp").write_bytes("<a>café</a>".encode("latin-1"))
    (problem, *_) = [p for p in read_image_tags(tmp_path / "1.jpg").problems if p.reason == "unreadable sidecar"]
    assert problem.detail.endswith("; save the file as UTF-8")
