"""COCO's JSON: regions, what is wrong with them, and where their pictures lie."""

import json
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.format_detection import detect_format
from wsabie.io.formats import region_items
from wsabie.io.formats.coco import read_coco
from wsabie.io.formats.region_items import add_full_images, find_region_pairs
from wsabie.io.regions import Box
from wsabie.storage.rejects import Rejects

IMAGES: list[Any] = [
    {"id": 7, "file_name": "car1.jpg", "width": 100, "height": 60},
    {"id": "b", "file_name": "car2.jpg"},
]
CATEGORIES: list[Any] = [{"id": 1, "name": "door"}, {"id": 2, "name": "  front   wheel "}]


def make_annotation(
    number: Any = 12, image: Any = 7, category: Any = 1, box=(10, 20, 30, 40), **more
) -> dict[str, Any]:
    return {"id": number, "image_id": image, "category_id": category, "bbox": list(box), **more}


def write_annotations(
    folder: Path, *annotations: Any, file: str = "annotations.json", images=IMAGES, places=("JPEGImages",)
) -> Path:
    for place in places:
        (folder / place).mkdir(parents=True, exist_ok=True)
        for name in ("car1.jpg", "car2.jpg"):
            Image.new("RGB", (100, 60), (200, 0, 0)).save(folder / place / name)
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"images": images, "categories": CATEGORIES, "annotations": annotations}))
    return path


def list_items(path: Path, **options) -> tuple[list[tuple[str, tuple[str, ...]]], list[tuple[str, str]]]:
    rejects = Rejects()
    items = open_source(path, rejects=rejects, **options)
    return [(item.id, item.labels) for item in items], [(where, reason) for where, reason, _ in rejects.listed]


def test_regions_are_items_of_their_picture(tmp_path: Path) -> None:
    write_annotations(tmp_path, make_annotation(), make_annotation(13, "b", 2))
    assert detect_format(tmp_path) == detect_format(tmp_path / "annotations.json") == "coco"
    first, second = open_source(tmp_path)
    assert (first.id, first.labels, first.group) == ("car1.jpg#12", ("door",), "car1.jpg")
    assert first.content.picture == tmp_path / "JPEGImages" / "car1.jpg"
    assert (first.content.region.box, first.content.region.frame) == (Box(10, 20, 40, 60), (100, 60))
    assert (second.id, second.labels, second.content.region.frame) == ("car2.jpg#13", ("front wheel",), None)


def test_polygons_and_boxes_are_regions(tmp_path: Path) -> None:
    triangle = [10, 10, 30, 10, 10, 40]
    write_annotations(tmp_path, make_annotation(box=(0, 0, 90, 50), segmentation=[triangle]))
    (item,) = open_source(tmp_path)
    assert item.content.region.box == Box(10, 10, 30, 40)
    assert item.content.region.outlines == (array("f", triangle),)
    (item,) = open_source(tmp_path, label_column="boxes")
    assert (item.content.region.box, item.content.region.outlines) == (Box(10, 10, 30, 40), ())


def test_pictures_take_the_labels_of_their_regions(tmp_path: Path) -> None:
    write_annotations(
        tmp_path,
        make_annotation(1),
        make_annotation(2, category=2),
        make_annotation(3),
        make_annotation(4, "b", category=9),
    )
    assert list_items(tmp_path, label_column="pictures") == (
        [("car1.jpg", ("door", "front wheel"))],
        [("car2.jpg#4", "region of an unknown category"), ("car2.jpg", "picture without labels")],
    )


def test_regions_are_read_without_labels(tmp_path: Path) -> None:
    write_annotations(tmp_path, make_annotation())
    assert list_items(tmp_path, labels_from="none")[0] == [("car1.jpg#12", ())]
    assert list_items(tmp_path, labels_from="folders")[0] == [
        ("JPEGImages/car1.jpg", ("JPEGImages",)),
        ("JPEGImages/car2.jpg", ("JPEGImages",)),
    ]


@pytest.mark.parametrize(
    ("bad", "where", "reason"),
    [
        (make_annotation(iscrowd=1), "E", "crowd of objects"),
        (make_annotation(segmentation={"counts": "aa", "size": [60, 100]}), "E", "mask of run lengths"),
        (make_annotation(segmentation=[[1, 2, 3, 4]]), "E", "malformed region"),
        (make_annotation(segmentation=[[1, 2, 3, 4, 5, 6, 7]]), "E", "malformed region"),
        (make_annotation(segmentation=[["a"] * 6]), "E", "malformed region"),
        (make_annotation(segmentation="a"), "E", "malformed region"),
        (make_annotation(segmentation=[[1.0] * 30_000]), "E", "outline with too many corners"),
        (make_annotation(box=()), "E", "region without a box"),
        (make_annotation(box=(1, 2, 3)), "E", "malformed region"),
        (make_annotation(box=(1, 2, 3, None)), "E", "malformed region"),
        (make_annotation(box=(1, 2, 3, 1e400)), "E", "malformed region"),
        (make_annotation(box=(1, 2, 3, float("nan"))), "E", "malformed region"),
        (make_annotation(box=(10, 10, 0, 20)), "car1.jpg#12", "empty region"),
        (make_annotation(box=(10, 10, -5, 20)), "car1.jpg#12", "empty region"),
        (make_annotation(box=(10, 10, 7, 20)), "car1.jpg#12", "tiny region"),
        (make_annotation(box=(95, 10, 30, 20)), "car1.jpg#12", "tiny region"),
        (make_annotation(box=(200, 10, 30, 20)), "car1.jpg#12", "region outside the picture"),
        (make_annotation(category=99), "car1.jpg#12", "region of an unknown category"),
        (make_annotation(image=99), "J annotation 12", "region of an unknown picture"),
        (make_annotation(number=1), "E", "duplicate id"),
        (make_annotation(number=[1]), "E", "annotation, picture or category without id"),
        (make_annotation(image=None), "E", "annotation, picture or category without image_id"),
        ("text", "E", "not a JSON object"),
    ],
)
def test_unusable_annotations_are_listed(tmp_path: Path, bad: Any, where: str, reason: str) -> None:
    path = write_annotations(tmp_path, make_annotation(1), make_annotation(2, "b"), bad)
    places = {"E": f"{path} element 7", "J annotation 12": f"{path} annotation 12"}
    items, rejected = list_items(tmp_path)
    assert [name for name, _ in items] == ["car1.jpg#1", "car2.jpg#2"]
    assert rejected == [(places.get(where, where), reason)]


def test_missing_pictures_and_pictures_without_regions_are_listed(tmp_path: Path) -> None:
    images = [
        *IMAGES,
        {"id": 8, "file_name": "gone.jpg"},
        {"id": 9, "file_name": "../out.jpg"},
        {"id": 7, "file_name": "a"},
    ]
    path = write_annotations(tmp_path, make_annotation(1), make_annotation(2, 8), images=images)
    Image.new("RGB", (9, 9)).save(tmp_path.parent / "out.jpg")
    assert list_items(tmp_path) == (
        [("car1.jpg#1", ("door",))],
        [
            (f"{path} element 5", "duplicate picture"),
            ("car2.jpg", "picture without regions"),
            ("gone.jpg", "missing picture"),
            ("../out.jpg", "path that leads out of the folder"),
        ],
    )


def test_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    write_annotations(tmp_path / "in", make_annotation(1), make_annotation(2, "b"))
    (tmp_path / "secret.jpg").write_bytes(b"")
    (tmp_path / "in" / "JPEGImages" / "car2.jpg").unlink()
    (tmp_path / "in" / "JPEGImages" / "car2.jpg").symlink_to(tmp_path / "secret.jpg")
    assert list_items(tmp_path / "in")[1] == [("car2.jpg", "missing picture")]


def test_regions_of_a_picture_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region_items, "MAX_REGIONS", 2)
    write_annotations(tmp_path, make_annotation(1), make_annotation(2), make_annotation(3), make_annotation(4, "b"))
    items, rejected = list_items(tmp_path)
    assert [name for name, _ in items] == ["car1.jpg#1", "car1.jpg#2", "car2.jpg#4"]
    assert rejected == [("car1.jpg#3", "too many regions in a picture")]


@pytest.mark.parametrize(
    ("file", "places"),
    [
        ("a.json", (".",)),
        ("a.json", ("images",)),
        ("annotations/instances_train2017.json", ("train2017",)),
        ("annotations/instances_train2017.json", ("images/train2017",)),
    ],
)
def test_pictures_are_found_in_usual_folders(tmp_path: Path, file: str, places: tuple[str, ...]) -> None:
    path = write_annotations(tmp_path, make_annotation(), file=file, places=places)
    (item,) = open_source(path)
    assert item.content.picture.resolve() == (tmp_path / places[0] / "car1.jpg").resolve()


@pytest.mark.parametrize("more", ['"categories": ["sea"]', '"annotations": [{"start": 1}]'])
def test_documents_with_similar_keys_stay_documents(tmp_path: Path, more: str) -> None:
    (tmp_path / "notes.json").write_text(f'{{"text": "waves", {more}}}\n')
    assert detect_format(tmp_path / "notes.json") == "json"


def test_invalid_sources_give_one_sentence(tmp_path: Path) -> None:
    path = write_annotations(tmp_path, make_annotation())
    with pytest.raises(InputError, match="has no kind 'masks'; choose one of regions, boxes, pictures"):
        open_source(path, label_column="masks")
    with pytest.raises(InputError, match="has no splits to choose 'train' from"):
        open_source(path, split="train")
    with pytest.raises(InputError, match="no regions of pictures are left"):
        open_source(write_annotations(tmp_path / "crowds", make_annotation(iscrowd=1)))
    path.write_text(path.read_text()[:-30])
    with pytest.raises(InputError, match=r"its end|a broken value"):
        open_source(path)
    write_annotations(tmp_path, make_annotation(), file="other.json")
    with pytest.raises(InputError, match="holds several files of annotations; give one"):
        open_source(tmp_path)


def test_strict_stops_at_the_first_bad_annotation(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="crowd of objects"):
        open_source(
            write_annotations(tmp_path, make_annotation(1), make_annotation(iscrowd=1)), rejects=Rejects(strict=True)
        )


VALUES = st.recursive(
    st.none() | st.integers(-9, 200) | st.floats() | st.sampled_from(["car1.jpg", "door", "b", "../x", "\0", ""]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "id",
                    "file_name",
                    "name",
                    "image_id",
                    "category_id",
                    "bbox",
                    "segmentation",
                    "width",
                    "height",
                    "path",
                ]
            ),
            inner,
        )
    ),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("coco")
    write_annotations(folder)
    return folder


@given(st.lists(VALUES, max_size=3), st.lists(VALUES, max_size=3))
def test_any_json_gives_regions_or_one_sentence(
    folder: Path, result_or_sentence, images: list[Any], annotations: list[Any]
) -> None:
    content = {"images": [*IMAGES, *images], "categories": CATEGORIES, "annotations": [make_annotation(), *annotations]}
    (folder / "annotations.json").write_text(json.dumps(content))
    region_items = result_or_sentence(read_coco, folder, rejects=Rejects())
    assert region_items is not None
    assert region_items.items[0].id == "car1.jpg#12"


def test_car_parts_are_read(data: Path) -> None:
    rejects = Rejects()
    source = open_source(data / "car_parts" / "testset", rejects=rejects)
    assert (len(source), len({label for item in source for label in item.labels})) == (808, 18)
    assert rejects.counts == {"tiny region": 3}
    related = {("car", label) for item in source for label in item.labels}
    couples = list(find_region_pairs(add_full_images(source, "car"), related=related))
    assert len(couples) == 808
    inside = [(c.container.labels[0], c.part.labels[0]) for c in find_region_pairs(source)]
    assert ("front_right_door", "right_mirror") in inside


def test_picture_labels_need_no_shape(tmp_path: Path) -> None:
    marks = [
        make_annotation(1, "b", iscrowd=1),
        make_annotation(2, "b", category=2, segmentation={"counts": [5, 9], "size": [60, 100]}),
        make_annotation(3, 7, box=()),
        make_annotation(4, 7, category=2, segmentation=[[1, 2, 3, 4]]),
        make_annotation(4, 7, category=2, box=(0, 0, 1, 1)),
    ]
    write_annotations(tmp_path, *marks)
    labels = ("door", "front wheel")
    assert list_items(tmp_path, label_column="pictures") == ([("car1.jpg", labels), ("car2.jpg", labels)], [])


@pytest.mark.parametrize("segmentation", [{"counts": "aa", "size": [60, 100]}, [[1, 2, 3, 4]], ["a"], "a", []])
def test_box_needs_no_outline(tmp_path: Path, segmentation: Any) -> None:
    write_annotations(tmp_path, make_annotation(box=(10, 10, 60, 45), segmentation=segmentation))
    (item,) = open_source(tmp_path, label_column="boxes")
    assert (item.content.region.box, item.content.region.outlines) == (Box(10, 10, 70, 55), ())


def test_box_is_the_region_if_outlines_are_empty(tmp_path: Path) -> None:
    write_annotations(tmp_path, make_annotation(box=(10, 10, 60, 45), segmentation=[[]]))
    (item,) = open_source(tmp_path)
    assert item.content.region.box == Box(10, 10, 70, 55)


def test_single_outline_is_accepted(tmp_path: Path) -> None:
    write_annotations(tmp_path, make_annotation(segmentation=[10, 10, 30, 10, 10, 40], iscrowd="0"))
    (item,) = open_source(tmp_path)
    assert item.content.region.box == Box(10, 10, 30, 40)


def test_ids_may_be_texts_missing_or_repeated(tmp_path: Path) -> None:
    expected = [("car1.jpg#1", ("door",)), ("car2.jpg#1", ("door",))]
    images = [{"id": number, "file_name": f"car{number}.jpg"} for number in (1, 2)]
    for name, ids in {
        "texts": ("1", "2", "1"),
        "floats": (1.0, 2.0, 1),
        "none": (1, 2, None),
        "same": (1, 2, 1),
    }.items():
        marks = [make_annotation(ids[2], image) for image in ids[:2]]
        write_annotations(tmp_path / name, *marks, images=images)
        assert list_items(tmp_path / name) == (expected, [])
