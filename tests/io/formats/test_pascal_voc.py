"""Pascal VOC's XML: objects, their parts, and published splits."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.format_detection import detect_format
from wsabie.io.formats.pascal_voc import read_voc
from wsabie.io.formats.region_items import find_region_pairs
from wsabie.io.regions import Box
from wsabie.storage.rejects import Rejects


def make_box(x_min: object, top: object, right: object, bottom: object) -> str:
    edges = zip(("xmin", "ymin", "xmax", "ymax"), (x_min, top, right, bottom), strict=True)
    return f"<bndbox>{''.join(f'<{name}>{value}</{name}>' for name, value in edges)}</bndbox>"


HEAD = f"<part><name>head</name>{make_box(31, 6, 50, 25)}</part>"
PERSON = f"<object><name>person</name><difficult>0</difficult>{make_box(11, 1, 60, 60)}{HEAD}</object>"
SOFA = f"<object><name>sofa</name>{make_box(1, 1, 100, 60)}</object>"
SIZE = "<size><width>100</width><height>60</height><depth>3</depth></size>"


def write_annotations(folder: Path, **annotations: str) -> Path:
    for name in ("JPEGImages", "Annotations", "ImageSets/Main"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for stem, content in annotations.items():
        Image.new("RGB", (100, 60), (200, 0, 0)).save(folder / "JPEGImages" / f"{stem}.jpg")
        document = f"<annotation><filename>{stem}.jpg</filename>{SIZE}{content}</annotation>"
        (folder / "Annotations" / f"{stem}.xml").write_text(document if content[:1] == "<" else content)
    return folder


def list_items(path: Path, **options) -> tuple[list[tuple[str, tuple[str, ...]]], list[tuple[str, str]]]:
    rejects = Rejects()
    items = open_source(path, rejects=rejects, **options)
    return [(item.id, item.labels) for item in items], [(where, reason) for where, reason, _ in rejects.listed]


def test_objects_and_parts_are_regions(tmp_path: Path) -> None:
    assert detect_format(write_annotations(tmp_path, a=SOFA + PERSON)) == "voc"
    sofa, person, head = open_source(tmp_path)
    assert [(item.id, item.labels, item.group) for item in (sofa, person, head)] == [
        ("a.jpg#1", ("sofa",), "a.jpg"),
        ("a.jpg#2", ("person",), "a.jpg"),
        ("a.jpg#3", ("head",), "a.jpg"),
    ]
    assert person.content.region.box == Box(10, 0, 60, 60)
    assert person.content.region.frame == (100, 60)
    assert (person.content.container_id, head.content.container_id) == (None, "a.jpg#2")
    couples = [(couple.container.id, couple.part.id) for couple in find_region_pairs([sofa, person, head])]
    assert couples == [("a.jpg#1", "a.jpg#2"), ("a.jpg#2", "a.jpg#3")]


def test_pictures_take_the_labels_of_objects_and_parts(tmp_path: Path) -> None:
    write_annotations(tmp_path, a=SOFA + PERSON, b=SOFA)
    assert list_items(tmp_path, label_column="pictures")[0] == [
        ("a.jpg", ("sofa", "person", "head")),
        ("b.jpg", ("sofa",)),
    ]


def test_published_splits_are_read(tmp_path: Path) -> None:
    write_annotations(tmp_path, a=SOFA, b=PERSON)
    (tmp_path / "ImageSets" / "Main" / "val.txt").write_text("b\nmissing\n")
    (tmp_path / "ImageSets" / "Main" / "sofa_val.txt").write_text("a  1\nb -1\n")
    assert list_items(tmp_path, split="val") == (
        [("b.jpg#1", ("person",)), ("b.jpg#2", ("head",))],
        [("missing", "picture without annotations")],
    )
    for name in ("train", "sofa_val", "../../Annotations/a"):
        with pytest.raises(InputError, match=r"has no split .*; choose one of val"):
            open_source(tmp_path, split=name)


@pytest.mark.parametrize(
    ("content", "where", "reason"),
    [
        ("nonsense", "Annotations/b.xml", "malformed annotations"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><annotation/>', "Annotations/b.xml", "malformed annotations"),
        ("<object><name>x</name></object>" + SOFA, "b.jpg#1", "region without a box"),
        (f"<object><name>x</name>{make_box('one', 1, 2, 3)}</object>" + SOFA, "b.jpg#1", "malformed region"),
        (f"<object><name>x</name>{make_box('nan', 1, 2, 3)}</object>" + SOFA, "b.jpg#1", "malformed region"),
        (f"<object><name>x</name>{make_box(50, 50, 40, 40)}</object>" + SOFA, "b.jpg#1", "empty region"),
        (f"<object><name>x</name>{make_box(5, 5, 9, 9)}</object>" + SOFA, "b.jpg#1", "tiny region"),
        (f"<object><name>x</name>{make_box(205, 5, 299, 50)}</object>" + SOFA, "b.jpg#1", "region outside the picture"),
        (f"<object><name> </name>{make_box(5, 5, 50, 50)}</object>" + SOFA, "b.jpg#1", "region without a label"),
        ("<note/>", "Annotations/b.xml", "picture without regions"),
    ],
)
def test_unusable_annotations_are_listed(tmp_path: Path, content: str, where: str, reason: str) -> None:
    write_annotations(tmp_path, a=SOFA, b=content)
    if content[:9] == "<!DOCTYPE":
        (tmp_path / "Annotations" / "b.xml").write_text(content)
    items, rejected = list_items(tmp_path)
    assert [name for name, _ in items] == ["a.jpg#1", *(["b.jpg#2"] if where == "b.jpg#1" else [])]
    assert rejected == [(where, reason)]


def test_pictures_are_found_by_file_name(tmp_path: Path) -> None:
    write_annotations(tmp_path, a=SOFA, b=SOFA, c=SOFA)
    (tmp_path / "JPEGImages" / "b.jpg").rename(tmp_path / "JPEGImages" / "b.png")
    (tmp_path / "JPEGImages" / "c.jpg").unlink()
    items, rejected = list_items(tmp_path)
    assert [name for name, _ in items] == ["a.jpg#1", "b.png#1"]
    assert rejected == [("Annotations/c.xml", "missing picture")]


def test_zero_size_is_ignored(tmp_path: Path) -> None:
    write_annotations(tmp_path, a=SOFA)
    file = tmp_path / "Annotations" / "a.xml"
    file.write_text(file.read_text().replace(SIZE, "<size><width>0</width><height>0</height></size>"))
    (item,) = open_source(tmp_path)
    assert item.content.region.frame is None


def test_annotations_without_regions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no regions of pictures are left") as caught:
        open_source(write_annotations(tmp_path, a="nonsense"))
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="not well-formed"):
        open_source(tmp_path, rejects=Rejects(strict=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_annotations(tmp_path_factory.mktemp("voc"), a=SOFA, b=SOFA)


PIECES = st.sampled_from([SOFA, PERSON, HEAD, SIZE, "<object>", "</object>", "<name>", "&amp;", "x", "<size/>", "\0"])


@given(st.lists(PIECES, max_size=6).map("".join) | st.text(max_size=20))
def test_any_text_gives_regions_or_is_listed(folder: Path, result_or_sentence, content: str) -> None:
    (folder / "Annotations" / "b.xml").write_text(f"<annotation>{content}</annotation>", "utf-8", "replace")
    voc_items = result_or_sentence(read_voc, folder, rejects=Rejects())
    assert voc_items is not None
    assert voc_items.items[0].id == "a.jpg#1"


def test_picture_labels_need_no_box(tmp_path: Path) -> None:
    write_annotations(
        tmp_path, a="<object><name>cat</name></object>", b=f"<object><name>bat</name>{make_box(5, 5, 6, 6)}</object>"
    )
    assert list_items(tmp_path, label_column="pictures") == ([("a.jpg", ("cat",)), ("b.jpg", ("bat",))], [])
