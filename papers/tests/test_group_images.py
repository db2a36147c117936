"""Group pictures: who stands where, and members that are labelled together."""

from io import BytesIO
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from PIL import Image

from papers.runs.object_parts import group_images
from papers.runs.object_parts.group_images import (
    METHODS,
    SIDE,
    GroupImage,
    PersonImage,
    draw_groups,
    extract_image_rows,
    label_groups,
    list_couples,
    load_person_images,
    render_group,
    run_study,
    split_person_images,
)
from wsabie.core.errors import InputError
from wsabie.features.extractor_registry import create_extractor
from wsabie.io.records import Item
from wsabie.models.object_parts.ranker import ObjectParts

COLOURS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "black": (0, 0, 0)}
COUPLES = [("red", "green"), ("blue", "black")]


def plain(name: str) -> PersonImage:
    file = BytesIO()
    Image.new("RGB", (SIDE, SIDE), COLOURS[name]).save(file, "PNG")
    return PersonImage(name, file.getvalue(), name)


def groups_of(n: int, n_couples: int, seed: int = 0, **options: Any) -> list[GroupImage]:
    return draw_groups([plain(name) for name in COLOURS], COUPLES, n, n_couples, np.random.default_rng(seed), **options)


@pytest.mark.parametrize("n_couples", [1, 2])
def test_everyone_stands_in_the_own_box_beside_the_own_spouse(n_couples: int) -> None:
    for group in groups_of(20, n_couples, overlap=0.0):
        pixels = np.asarray(Image.open(BytesIO(group.picture)))
        for figure, box in zip(group.figures, group.boxes, strict=True):
            left, top, right, bottom = (int(end) for end in box)
            assert (pixels[top:bottom, left:right] == COLOURS[figure.label]).all()
        wed = {frozenset(group.figures[place].label for place in couple) for couple in group.couples}
        assert wed <= {frozenset(couple) for couple in COUPLES}
        assert sorted(place for couple in group.couples for place in couple) == list(range(2 * n_couples))


def test_neighbours_overlap_and_the_order_is_any() -> None:
    groups = groups_of(40, 2)
    assert any(left_box.right > right_box.left for group in groups for left_box, right_box in pairwise(group.boxes))
    assert len({tuple(figure.label for figure in group.figures) for group in groups}) > 10
    assert {len(group.couples) for group in groups} == {2}
    assert len({group.couples for group in groups}) > 2
    assert [group.picture for group in groups] == [group.picture for group in groups_of(40, 2)]
    assert [group.picture for group in groups] != [group.picture for group in groups_of(40, 2, seed=1)]


def test_couples_that_cannot_be_drawn_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=r"no picture of mrs\. claus"):
        draw_groups([plain("red")], [("red", "mrs. claus")], 1, 1, rng)
    with pytest.raises(InputError, match="2 couples and 3 are to be drawn"):
        groups_of(1, 3)


@pytest.fixture(scope="module")
def fitted_groups() -> tuple[ObjectParts, list[GroupImage], Any]:
    """Looks tell the first of each couple; those of the second are the same for both."""
    looks = {"red": [1, 0, 0], "blue": [0, 1, 0], "green": [0, 0, 1], "black": [0, 0, 1]}
    names = list(looks) * 20
    X = np.array([looks[name] for name in names], np.float32)
    model = ObjectParts(COUPLES, dim=8, epochs=30, relation_weight=1, scaling=None, threads=1).fit(X, names)
    groups = groups_of(30, 1)
    return model, groups, np.array([looks[figure.label] for group in groups for figure in group.figures], np.float32)


def test_spouse_distinguishes_equal_faces(fitted_groups: tuple[ObjectParts, list[GroupImage], Any]) -> None:
    model, groups, X = fitted_groups
    right = {name: label_groups(model, X, groups, method).right for name, method in METHODS.items()}
    for name in ("f_L", "the list"):
        assert right[name].all()
    single_right = right["each by itself"]
    firsts = np.array([[figure.label in ("red", "blue") for figure in group.figures] for group in groups])
    assert single_right[firsts].all()
    assert 0 < single_right[~firsts].mean() < 1


def test_matching_without_an_edge_is_a_guess(fitted_groups: tuple[ObjectParts, list[GroupImage], Any]) -> None:
    model, _, _ = fitted_groups
    groups = groups_of(30, 2)
    looks = {"red": [1, 0, 0], "blue": [0, 1, 0], "green": [0, 0, 1], "black": [0, 0, 1]}
    X = np.array([looks[figure.label] for group in groups for figure in group.figures], np.float32)
    assert (label_groups(model, X, groups, METHODS["each by itself"]).matched == 1 / 3).all()
    labelling = label_groups(model, X, groups, METHODS["the list"])
    assert labelling.right.shape == (30, 4)
    assert (labelling.matched == 0.5).all()  # the seconds look the same, so that either may be of either


def test_a_group_is_drawn_with_its_labels() -> None:
    (group,) = groups_of(1, 2)
    image = Image.open(BytesIO(render_group(group, ["a", "b", "c", "d"], group.couples)))
    assert image.format == "WEBP"
    assert image.width == 2 * Image.open(BytesIO(group.picture)).width


def test_figures_of_the_sample_are_dealt_by_picture() -> None:
    """And regions of a group picture are rows with the labels of who stands there, as far as they can be told."""
    figures, rng = load_person_images(), np.random.default_rng(0)
    train, test = split_person_images(figures, rng)
    labels = [{figure.label for figure in side} for side in (train, test)]
    assert labels[0] == labels[1] > {label for couple in list_couples() for label in couple}
    assert {figure.id for figure in train}.isdisjoint(figure.id for figure in test)
    wed = {label for couple in list_couples() for label in couple}
    married = [figure for figure in train if figure.label in wed]
    groups = draw_groups(test, list_couples(), 15, 1, rng, overlap=0.2)
    extractor = create_extractor("colour,hog", size=48)
    X = extract_image_rows(extractor, [Item(figure.id, figure.picture, (figure.label,)) for figure in married])
    model = ObjectParts(list_couples(), dim=20, epochs=15, threads=1).fit(X, [[figure.label] for figure in married])
    regions = extract_image_rows(extractor, [item for group in groups for item in group.items()])
    labelling = label_groups(model, regions, groups, METHODS["f_L"])
    assert labelling.right.mean() > 0.6  # chance is .05


def test_a_list_of_wrong_couples_leaves_no_couple_right(monkeypatch: pytest.MonkeyPatch) -> None:
    wed = {label for couple in list_couples() for label in couple}
    figures = [figure for figure in load_person_images() if figure.label in wed]
    monkeypatch.setattr(group_images, "load_person_images", lambda: figures)
    true_list, wrong = (
        run_study(n=20, weights=(0.1,), null=null, threads=1, dim=20, epochs=15) for null in (False, True)
    )
    assert list(true_list) == [f"{name}, picture_weight 0.1" for name in METHODS]
    assert true_list["the list, picture_weight 0.1"]["both"] > 0.5
    assert wrong["the list, picture_weight 0.1"]["both"] == 0
    assert all(0 <= value <= 1 for row in true_list.values() for value in row.values())
