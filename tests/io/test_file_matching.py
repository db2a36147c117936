"""Names in tables find their files wherever names mean files: other systems, other machines, other folders."""

import json
import unicodedata
from pathlib import Path

import pytest
from PIL import Image

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.file_matching import FileMatcher
from wsabie.io.tags.image_tags import read_keywords
from wsabie.io.tags.tag_writer import write_sidecar
from wsabie.storage.rejects import Rejects

NFC, NFD = (unicodedata.normalize(form, "images/Möwe.jpg") for form in ("NFC", "NFD"))
FILES = ["images/1.jpg", "images/2.JPG", "images/sub/3.jpg", "a/7.jpg", "b/7.jpg", NFD]
SPELLINGS = [
    ("images/1.jpg", "images/1.jpg"),
    ("./images/1.jpg", "images/1.jpg"),
    ("images\\1.jpg", "images/1.jpg"),
    (".\\images\\sub\\3.jpg", "images/sub/3.jpg"),
    ("IMAGES/1.JPG", "images/1.jpg"),
    (NFC, NFD),
    ("/home/eve/set/images/1.jpg", "images/1.jpg"),
    ("C:\\Users\\eve\\images\\2.jpg", "images/2.JPG"),
    ("\\\\nas\\share\\images\\sub\\3.jpg", "images/sub/3.jpg"),
    ("../../label-studio/media/upload/4/1.jpg", "images/1.jpg"),
    ("https://example.org/set/images/sub/3.jpg?width=9", "images/sub/3.jpg"),
    ("s3://bucket/images/1.jpg", "images/1.jpg"),
    ("file:///data/M%C3%B6we.jpg", NFD),
    ("/data/local-files/?d=images/1.jpg", "images/1.jpg"),
    ("http://localhost:8080/data/local-files/?d=images%2F1.jpg", "images/1.jpg"),
    ("1.jpg", "images/1.jpg"),
    ("sub/3.jpg", "images/sub/3.jpg"),
    ("photos/1.jpg", "images/1.jpg"),
    ("/x/a/7.jpg", "a/7.jpg"),
]
OTHERS = ["7.jpg", "c/7.jpg", "4.jpg", "", "/", "..", "images", "1.jpg/", "image\0s/1.jpg", "?d=", "http://[", "1"]


@pytest.mark.parametrize(("name", "path"), SPELLINGS, ids=ascii)
def test_name_finds_its_file(name: str, path: str) -> None:
    assert FileMatcher(FILES).match([name]) == {name: path}


@pytest.mark.parametrize("name", OTHERS, ids=ascii)
def test_unknown_or_ambiguous_name_finds_no_file(name: str) -> None:
    assert FileMatcher(FILES).match([name]).get(name) in (None, "images/1.jpg" if name == "1.jpg/" else None)


def test_exactly_named_file_is_not_taken_by_another_name() -> None:
    assert FileMatcher(["cat/1.jpg"]).match(["dog/1.jpg", "cat/1.jpg"]) == {"cat/1.jpg": "cat/1.jpg"}
    assert FileMatcher(["cat/1.jpg"]).match(["dog/1.jpg", "fox/1.jpg"]) == {}
    assert FileMatcher(["A/1.jpg", "a/1.jpg"]).match(["a/1.jpg", "A/1.JPG"]) == {"a/1.jpg": "a/1.jpg"}


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    for name in ("images/1.jpg", "images/2.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (60, 40), (9, 99, 199)).save(tmp_path / name)
    return tmp_path


NAMES = ["images\\{}.jpg", "/mnt/x/images/{}.jpg", "{}.jpg", "Images/{}.JPG", "http://h/up/{}.jpg", "..\\up\\{}.jpg"]


@pytest.mark.parametrize("pattern", NAMES)
def test_lists_tables_and_regions_find_pictures(pictures: Path, pattern: str) -> None:
    names, labels = [pattern.format(n) for n in (1, 2)], [("dog",), ("cat",)]
    pairs = pictures / "pairs.tsv"
    pairs.write_text("".join(f"{name}\t{label}\n" for name, (label,) in zip(names, labels, strict=True)))
    assert [item.labels for item in open_source(pairs)] == labels
    coco = {"images": [{"id": n, "file_name": name, "width": 60, "height": 40} for n, name in enumerate(names)]}
    coco["categories"] = [{"id": n, "name": label} for n, (label,) in enumerate(labels)]
    coco["annotations"] = [{"id": n, "image_id": n, "category_id": n, "bbox": [5, 5, 20, 20]} for n in range(2)]
    (pictures / "coco.json").write_text(json.dumps(coco))
    assert [item.labels for item in open_source(pictures / "coco.json")] == labels
    rows = [{"file_name": name, "labels": list(label)} for name, label in zip(names, labels, strict=True)]
    (pictures / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (pictures / "coco.json").unlink()
    source = open_source(pictures)
    assert [(item.id, item.labels) for item in source] == [("images/1.jpg", ("dog",)), ("images/2.jpg", ("cat",))]


def test_voc_finds_pictures_by_names_of_other_systems(tmp_path: Path) -> None:
    for name, stated in (("a.JPG", "C:\\x\\JPEGImages\\A.jpg"), ("b.jpg", "/home/eve/b.jpg"), ("c.jpeg", "")):
        for place in ("JPEGImages", "Annotations"):
            (tmp_path / place).mkdir(exist_ok=True)
        Image.new("RGB", (60, 40)).save(tmp_path / "JPEGImages" / name, "JPEG")
        box = "<xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax>"
        marked = f"<object><name>dog</name><bndbox>{box}</bndbox></object>"
        text = f"<annotation><filename>{stated}</filename>{marked}</annotation>"
        (tmp_path / "Annotations" / f"{name[0]}.xml").write_text(text)
    assert [item.id for item in open_source(tmp_path)] == ["a.JPG#1", "b.jpg#1", "c.jpeg#1"]


def test_list_of_missing_pictures_is_refused(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"train\\{n}.jpg\tdog\n" for n in range(9)))
    with pytest.raises(InputError, match=r"names of pictures, such as 'train\\\\0.jpg', and none of these is in"):
        open_source(pairs)
    pairs.write_text("".join(f"node {n}\tdog\n" for n in range(9)))
    assert len(open_source(pairs)) == 9


@pytest.mark.parametrize("name", ["p.XMP", "p.JPG.XMP", "p.xmp", "p.JPG.xmp"])
def test_sidecars_in_capitals_are_read_and_written(tmp_path: Path, name: str) -> None:
    photo = tmp_path / "p.JPG"
    Image.new("RGB", (60, 40)).save(photo, "JPEG")
    write_sidecar(photo, ["sea"]).rename(tmp_path / name)
    assert read_keywords(photo) == ("sea",)
    assert write_sidecar(photo, ["sky"]) == tmp_path / name
    assert [item.labels for item in open_source(tmp_path, rejects=Rejects())] == [("sky",)]


@pytest.mark.parametrize("sidecar", ["sEa_Side.jpg.xmp", "Sea_Side.xmp", "sea_side.Xmp", "SEA_side.JPG.XMP"])
def test_sidecars_of_unusual_spelling_are_listed_with_the_name_to_give_them(tmp_path: Path, sidecar: str) -> None:
    Image.new("RGB", (60, 40)).save(tmp_path / "sea_side.jpg")
    write_sidecar(tmp_path / "sea_side.jpg", ["moss"]).rename(tmp_path / sidecar)
    rejects = Rejects()
    open_source(tmp_path, labels_from="none", rejects=rejects)
    assert rejects.listed == [(sidecar, "unusual sidecar name", "rename it to sea_side.jpg.xmp")]
    (tmp_path / sidecar).rename(tmp_path / rejects.listed[0][2].rpartition(" ")[2])
    assert [item.labels for item in open_source(tmp_path)] == [("moss",)]
