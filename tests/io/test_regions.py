"""Regions as they are asked for, and which of a picture's regions lies in which."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.formats.region_items import FixedRegionSource, add_full_images, find_region_pairs
from wsabie.io.records import Item, ItemList
from wsabie.io.regions import Box, Region, RegionCrop, format_region, parse_region


def make_region(name: str, label: str, *box: float, picture: str = "a.jpg", full_image: str | None = None) -> Item:
    return Item(f"{picture}#{name}", RegionCrop(Path(picture), Region(Box(*box)), full_image), (label,), picture)


def list_couples(*items: Item, **options) -> list[tuple[str, str]]:
    return [(couple.container.id[6:], couple.part.id[6:]) for couple in find_region_pairs(items, **options)]


CAR = make_region("1", "car", 0, 0, 100, 100)


def test_part_lies_inside_by_80_per_cent() -> None:
    assert list_couples(CAR, make_region("2", "wheel", 92, 0, 102, 10)) == [("1", "2")]
    assert list_couples(CAR, make_region("2", "wheel", 93, 0, 103, 10)) == []
    assert list_couples(CAR, make_region("2", "wheel", 93, 0, 103, 10), share=0.7) == [("1", "2")]


def test_smallest_containing_region_wins() -> None:
    door, mirror = make_region("2", "door", 10, 10, 50, 60), make_region("3", "mirror", 20, 20, 30, 30)
    assert list_couples(CAR, door, mirror) == [("1", "2"), ("2", "3")]


def test_region_that_contains_more_wins() -> None:
    door, right = make_region("1", "door", 0, 0, 19, 50), make_region("2", "hood", 0, 0, 60, 60)
    assert list_couples(door, right, make_region("3", "mirror", 10, 10, 20, 20))[-1] == ("2", "3")


def test_equal_and_smaller_regions_contain_nothing() -> None:
    assert list_couples(CAR, make_region("2", "car", 10, 10, 50, 50)) == []
    assert list_couples(CAR, make_region("2", "van", 0, 0, 100, 100)) == []


def test_regions_of_other_pictures_contain_nothing() -> None:
    assert list_couples(CAR, make_region("2", "wheel", 0, 0, 10, 10, picture="b.jpg")) == []


def test_stated_containers_precede_geometry() -> None:
    front, back = make_region("1", "person", 0, 0, 50, 50), make_region("2", "sofa", 0, 0, 30, 30)
    head = make_region("3", "head", 10, 10, 20, 20, full_image="a.jpg#1")
    assert list_couples(front, back, head)[-1] == ("1", "3")
    orphan = make_region("3", "head", 10, 10, 20, 20, full_image="a.jpg#9")
    assert list_couples(front, back, orphan)[-1] == ("2", "3")


def test_related_labels_limit_couples() -> None:
    items = CAR, make_region("2", "door", 10, 10, 50, 60), make_region("3", "mirror", 20, 20, 30, 30)
    assert list_couples(*items, related={("car", "mirror")}) == [("1", "3")]
    assert list_couples(*items, related={("mirror", "car")}) == []


def test_full_images_contain_the_remaining_regions() -> None:
    source = ItemList(
        Path("here"), [make_region("2", "door", 10, 10, 50, 60), make_region("3", "mirror", 20, 20, 30, 30)]
    )
    with_full_images = add_full_images(source, "car")
    assert with_full_images.items[0] == Item("a.jpg", Path("a.jpg"), ("car",), "a.jpg")
    couples_ = list(find_region_pairs(with_full_images))
    assert [(couple.container.id, couple.part.id) for couple in couples_] == [
        ("a.jpg", "a.jpg#2"),
        ("a.jpg#2", "a.jpg#3"),
    ]
    related = {("car", "door"), ("car", "mirror")}
    assert [couple.container.id for couple in find_region_pairs(with_full_images, related=related)] == [
        "a.jpg",
        "a.jpg",
    ]


def test_blank_full_image_label_is_refused() -> None:
    with pytest.raises(InputError, match="the label of whole pictures is blank"):
        add_full_images(ItemList(Path("x"), []), " \t")


def test_zero_share_is_refused() -> None:
    with pytest.raises(InputError, match="share is 0"):
        list_couples(CAR, share=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,3", "has 3 numbers"),
        ("1,2,3,four", "is not a list of numbers"),
        ("1,2,3,4,5", "has 5 numbers"),
        ("nan,2,3,4", "is not a list of numbers"),
        ("1e99,2,3,4", "is not a list of numbers"),
        ("", "is not a list of numbers"),
        ("1%,2,3,4", "mixes per cent"),
        ("1,2,0,4", "has no area"),
        ("1,2,-3,4", "has no area"),
        ("0,0,5,5,9,9", None),
        ("0,0,5,0,9,0", "has no area"),
    ],
)
def test_invalid_regions_are_refused(text: str, message: str | None) -> None:
    if message is None:
        parse_region(text)
        return
    with pytest.raises(InputError, match=message) as caught:
        parse_region(text)
    assert "\n" not in str(caught.value)


@given(st.text(alphabet="0123456789.,%-e n", max_size=40))
def test_any_text_gives_a_region_or_one_sentence(result_or_sentence, text: str) -> None:
    region_ = result_or_sentence(parse_region, text)
    assert region_ is None or (region_.box.area > 0 and np.isfinite(region_.box).all())


def test_regions_of_regions_are_refused() -> None:
    with pytest.raises(InputError, match="holds regions already"):
        list(FixedRegionSource.from_texts(ItemList(Path("here"), [CAR]), ["0,0,9,9"]))


corner = st.integers(0, 40_000).map(lambda n: n / 8)  # exact in float32 too
polygon = st.lists(corner, min_size=6, max_size=12).filter(lambda one: len(one) % 2 == 0)


@given(
    st.one_of(
        st.lists(corner, min_size=4, max_size=4).map(lambda box: [box]), st.lists(polygon, min_size=1, max_size=3)
    ),
    st.booleans(),
)
def test_printed_regions_are_parsed_back(parts: list[list[float]], shares: bool) -> None:
    sign = "%" if shares else ""
    text = " ; ".join(", ".join(f"{number:.5f}{sign}" for number in part) for part in parts)
    try:
        parsed = parse_region(text)
    except InputError as error:
        assert "has no area" in str(error)  # noqa: PT017 - corners on a line
        return
    assert len(parsed.outlines) == (0 if len(parts[0]) == 4 else len(parts))
    again = parse_region(format_region(parsed))
    assert again.to_list() == parsed.to_list()


@pytest.mark.parametrize(
    "text", ["1,2,3,4;5,6,7,8", "1,2,3,4,5,6;7,8,9,10", "1,2,3,4,5,6;", ";", "1%,2%,3%,4%,5%,6%;1,2,3,4,5,6"]
)
def test_several_outlines_share_one_unit(text: str) -> None:
    with pytest.raises(InputError, match=r"region .* (is not a list of|has [0-9]+) numbers|mixes per cent and pixels"):
        parse_region(text)
