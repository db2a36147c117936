"""Regions as they are asked for, and which of a picture's regions lies in which."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.formats.region_items import FixedRegionSource, add_full_images, find_pair_rows, find_region_pairs
from wsabie.io.records import Item, ItemList
from wsabie.io.regions import Box, Region, RegionCrop, format_region, parse_region


def region(name: str, label: str, *box: float, picture: str = "a.jpg", full_image: str | None = None) -> Item:
    return Item(f"{picture}#{name}", RegionCrop(Path(picture), Region(Box(*box)), full_image), (label,), picture)


def couples(*items: Item, **options) -> list[tuple[str, str]]:
    return [(couple.container.id[6:], couple.part.id[6:]) for couple in find_region_pairs(items, **options)]


CAR = region("1", "car", 0, 0, 100, 100)


def test_a_part_lies_inside_by_80_of_100() -> None:
    assert couples(CAR, region("2", "wheel", 92, 0, 102, 10)) == [("1", "2")]
    assert couples(CAR, region("2", "wheel", 93, 0, 103, 10)) == []
    assert couples(CAR, region("2", "wheel", 93, 0, 103, 10), share=0.7) == [("1", "2")]


def test_the_smallest_of_those_that_hold_all_of_it() -> None:
    door, mirror = region("2", "door", 10, 10, 50, 60), region("3", "mirror", 20, 20, 30, 30)
    assert couples(CAR, door, mirror) == [("1", "2"), ("2", "3")]


def test_of_two_that_hold_enough_the_one_that_holds_more() -> None:
    door, right = region("1", "door", 0, 0, 19, 50), region("2", "hood", 0, 0, 60, 60)
    assert couples(door, right, region("3", "mirror", 10, 10, 20, 20))[-1] == ("2", "3")


def test_neither_a_twin_nor_a_smaller_one_nor_itself() -> None:
    assert couples(CAR, region("2", "car", 10, 10, 50, 50)) == []
    assert couples(CAR, region("2", "van", 0, 0, 100, 100)) == []


def test_regions_of_other_pictures_do_not_count() -> None:
    assert couples(CAR, region("2", "wheel", 0, 0, 10, 10, picture="b.jpg")) == []


def test_what_a_collection_says_goes_before_what_lies_where() -> None:
    front, back = region("1", "person", 0, 0, 50, 50), region("2", "sofa", 0, 0, 30, 30)
    head = region("3", "head", 10, 10, 20, 20, full_image="a.jpg#1")
    assert couples(front, back, head)[-1] == ("1", "3")
    orphan = region("3", "head", 10, 10, 20, 20, full_image="a.jpg#9")
    assert couples(front, back, orphan)[-1] == ("2", "3")


def test_only_labels_that_are_related() -> None:
    items = CAR, region("2", "door", 10, 10, 50, 60), region("3", "mirror", 20, 20, 30, 30)
    assert couples(*items, related={("car", "mirror")}) == [("1", "3")]
    assert couples(*items, related={("mirror", "car")}) == []


def test_pictures_in_full_hold_what_no_region_holds() -> None:
    source = ItemList(Path("here"), [region("2", "door", 10, 10, 50, 60), region("3", "mirror", 20, 20, 30, 30)])
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
    assert find_pair_rows(couples_, ["a.jpg#3", "a.jpg#2"]).tolist() == [[1, 0]]
    assert find_pair_rows([], []).shape == (0, 2)


def test_a_blank_label_of_pictures_is_refused() -> None:
    with pytest.raises(InputError, match="the label of whole pictures is blank"):
        add_full_images(ItemList(Path("x"), []), " \t")


def test_a_share_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="share is 0"):
        couples(CAR, share=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,3", "has 3 numbers"),
        ("1,2,3,four", "no list of numbers"),
        ("1,2,3,4,5", "has 5 numbers"),
        ("nan,2,3,4", "no list of numbers"),
        ("1e99,2,3,4", "no list of numbers"),
        ("", "no list of numbers"),
        ("1%,2,3,4", "mixes per cent"),
        ("1,2,0,4", "has no area"),
        ("1,2,-3,4", "has no area"),
        ("0,0,5,5,9,9", None),
        ("0,0,5,0,9,0", "has no area"),
    ],
)
def test_what_is_no_region(text: str, message: str | None) -> None:
    if message is None:
        parse_region(text)
        return
    with pytest.raises(InputError, match=message) as caught:
        parse_region(text)
    assert "\n" not in str(caught.value)


@given(st.text(alphabet="0123456789.,%-e n", max_size=40))
def test_any_text_is_a_region_or_a_sentence(result_or_sentence, text: str) -> None:
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
def test_regions_are_written_as_they_are_read(parts: list[list[float]], shares: bool) -> None:
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
def test_several_outlines_are_polygons_of_one_unit(text: str) -> None:
    with pytest.raises(InputError, match=r"region .* (is no list of|has [0-9]+) numbers|mixes per cent and pixels"):
        parse_region(text)
