"""Group images: figures side by side, labelled together (Mesnil et al. 2014, section 7).

Some figures are couples. The labels tell who is married to whom; training sees no group image. The figures are emoji of
people, each in several skin tones; a group image has a place for every figure, and neighbours overlap.
"""

from collections import defaultdict
from collections.abc import Sequence
from copy import copy
from io import BytesIO
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from PIL import Image, ImageChops, ImageDraw

from wsabie.core.arrays import Bool, Float32, Float64, Int64
from wsabie.core.errors import require
from wsabie.core.execution import Executor
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.extractor_registry import create_extractor
from wsabie.features.images.image_decoder import decode_image
from wsabie.io.formats.pair_list import read_id_pairs
from wsabie.io.records import Item, ItemList
from wsabie.io.regions import Box, Region, RegionCrop
from wsabie.models.object_parts.ranker import ObjectParts
from wsabie.samples import get_sample_path, get_table_path
from wsabie.storage.rejects import Rejects
from wsabie.workflows.charts.chart_files import load_font

SIDE = 96
SMALLEST = 0.7
"""Smallest height of a figure, as a share of the full height."""
OVERLAP = 0.5
"""Largest overlap, as a share of a figure's width."""
_EQUAL = 1e-4
_COLOURS, _LINES = ("#b3261e", "#0b57d0"), (0, 1)
MATCHINGS = (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2)))
"""The ways to make two couples of four."""


class PersonImage(NamedTuple):
    """An image of one person."""

    id: str
    picture: bytes
    label: str


class GroupImage(NamedTuple):
    """An image of several figures.

    Attributes
    ----------
    id : str
    picture : bytes
        PNG.
    figures : tuple of Figure
        From left to right.
    boxes : tuple of Box
        Box of each figure.
    couples : tuple of (int, int)
        Places of the married figures.
    """

    id: str
    picture: bytes
    figures: tuple[PersonImage, ...]
    boxes: tuple[Box, ...]
    couples: tuple[tuple[int, int], ...]

    def items(self) -> list[Item]:
        """Return the regions of the figures, with their labels."""
        cut = [RegionCrop(self.picture, Region(box)) for box in self.boxes]
        return [
            Item(f"{self.id}/{place}", content, (figure.label,))
            for place, (content, figure) in enumerate(zip(cut, self.figures, strict=True))
        ]


def list_couples() -> list[tuple[str, str]]:
    """Return the couples of the sample collection.

    Examples
    --------
    >>> len(list_couples()), list_couples()[-1]
    (10, ('santa claus', 'mrs. claus'))
    """
    return [(husband, wife) for husband, wife, *_ in read_id_pairs(get_table_path("emoji_couples"), rejects=Rejects())]


def load_person_images() -> list[PersonImage]:
    """Load figures of the bundled emoji: married people by label, other people by title.

    Images that carry the labels of both of a couple ("merperson") are left out, and so are people with fewer than six
    images.
    """
    import pyarrow.parquet as pq

    married_labels, figures_by_label = {label for couple in list_couples() for label in couple}, defaultdict(list)
    columns = ["id", "image", "labels", "title", "category"]
    for row in pq.read_table(get_sample_path("emoji"), columns=columns).to_pylist():
        row_labels = married_labels.intersection(row["labels"])
        if len(row_labels) == 1 or (not row_labels and row["category"].startswith("Smileys & People/person")):
            label = row_labels.pop() if row_labels else row["title"].split(":")[0]
            figures_by_label[label].append(PersonImage(row["id"], row["image"], label))
    return [
        figure
        for label in sorted(figures_by_label)
        if len(figures_by_label[label]) >= 6
        for figure in figures_by_label[label]
    ]


def split_person_images(
    figures: Sequence[PersonImage], rng: np.random.Generator
) -> tuple[list[PersonImage], list[PersonImage]]:
    """Return a random half of each label's images, and the others; variants may be on both sides."""
    labels = np.array([figure.label for figure in figures])
    sides: tuple[list[PersonImage], list[PersonImage]] = ([], [])
    for label in np.unique(labels):
        label_rows = rng.permutation(np.flatnonzero(labels == label))
        for number, row in enumerate(label_rows):
            sides[2 * number >= len(label_rows)].append(figures[row])
    return sides


def draw_groups(
    figures: Sequence[PersonImage],
    couples: Sequence[tuple[str, str]],
    n: int,
    n_couples: int,
    rng: np.random.Generator,
    *,
    overlap: float = OVERLAP,
) -> list[GroupImage]:
    """Draw n group images of different couples, in any order from left to right.

    Raises
    ------
    InputError
        There are fewer couples than a picture is to have, or one has no picture.
    """
    by_label = defaultdict(list)
    for figure in figures:
        by_label[figure.label].append(figure)
    missing = [label for couple in couples for label in couple if label not in by_label]
    require(not missing, f"there is no picture of {', '.join(missing[:3])}; leave the couple out")
    require(
        len(couples) >= n_couples, f"there are {len(couples)} couples and {n_couples} are to be drawn; ask for fewer"
    )
    return [_draw_group(f"group-{number}", by_label, couples, n_couples, rng, overlap) for number in range(n)]


def _draw_group(
    name: str,
    by_label: Any,
    couples: Sequence[tuple[str, str]],
    n_couples: int,
    rng: np.random.Generator,
    overlap: float,
) -> GroupImage:
    couple_ids = rng.choice(len(couples), n_couples, replace=False)
    labels = [label for number in couple_ids for label in couples[number]]
    order = rng.permutation(len(labels))
    figures = tuple(by_label[labels[position]][rng.integers(len(by_label[labels[position]]))] for position in order)
    places = np.argsort(order)
    married_places = tuple(tuple(sorted(places[[2 * number, 2 * number + 1]].tolist())) for number in range(n_couples))
    picture, boxes = _draw_side_by_side(figures, rng, overlap)
    return GroupImage(name, picture, figures, boxes, married_places)


def _draw_side_by_side(
    figures: Sequence[PersonImage], rng: np.random.Generator, overlap: float
) -> tuple[bytes, tuple[Box, ...]]:
    """Draw figures of several sizes on one line, each over its left neighbour as ink over ink."""
    sheet, right_edge, boxes = Image.new("RGB", (SIDE * len(figures), SIDE), "white"), 0, []
    for figure in figures:
        side = int(SIDE * rng.uniform(SMALLEST, 1))
        image = Image.fromarray(decode_image(figure.picture, size=SIDE)).resize((side, side), Image.Resampling.LANCZOS)
        left_edge = max(0, right_edge - int(side * rng.uniform(0, overlap)))
        layer = Image.new("RGB", sheet.size, "white")
        layer.paste(image, (left_edge, SIDE - side))
        sheet, right_edge = ImageChops.darker(sheet, layer), left_edge + side
        boxes.append(Box(left_edge, SIDE - side, right_edge, SIDE))
    file = BytesIO()
    sheet.crop((0, 0, right_edge, SIDE)).save(file, "PNG")
    return file.getvalue(), tuple(boxes)


# ---- labels for the members of a group


class LabellingMethod(NamedTuple):
    """A method to label members and their marriages.

    Attributes
    ----------
    label_scores : {"learned", "known", "none"}
        As of `ObjectParts`.
    same : bool
        A couple may have twice the same label.
    edge : bool
        f_II of the two images counts, too.
    """

    label_scores: Literal["learned", "known", "none"]
    same: bool = False
    edge: bool = False


METHODS = {
    "each by itself": LabellingMethod("none", same=True),
    "two different labels": LabellingMethod("none"),
    "the list": LabellingMethod("known"),
    "f_L": LabellingMethod("learned"),
    "f_II": LabellingMethod("none", same=True, edge=True),
    "f_L and f_II": LabellingMethod("learned", edge=True),
}


class GroupLabelling(NamedTuple):
    """Accuracy of a method on groups of one size.

    Attributes
    ----------
    right : (n, members) bool
        True for a right label.
    matched : (n,) float64
        1 if all couples are right; for equally good answers, the share that is right.
    """

    right: Bool
    matched: Float64


def label_groups(
    model: ObjectParts, X: Any, groups: Sequence[GroupImage], method: LabellingMethod, edge: float = 0.0
) -> GroupLabelling:
    """Label the members of groups of two or four together, by the pairing with the highest f_q.

    Parameters
    ----------
    X : (n * members, n_features)
        Rows of the regions, group by group.
    groups : n Groups
    edge : float
        s, for methods that use it.
    """
    used = copy(model).set_params(label_scores=method.label_scores, same=method.same)
    size, n = len(groups[0].figures), len(groups)
    ways = MATCHINGS if size == 4 else (((0, 1),),)
    answers = {pair: _score_couple(used, X, size, pair) for pair in combinations(range(size), 2)}
    points = model.transform(X).reshape(n, size, -1) * np.float32(np.sqrt(edge if method.edge else 0))
    edges = {(a, b): (points[:, a] * points[:, b]).sum(1) for a, b in answers}
    totals = np.array([sum(answers[pair][0] + edges[pair] for pair in way) for way in ways])  # (ways, n)
    names = [figure.label for group in groups for figure in group.figures]
    best, truth = totals.argmax(0), model.vocabulary_.ids(names).reshape(n, size)
    labels = np.zeros((n, size), np.int64)
    for number, way in enumerate(ways):
        for pair in way:
            is_best = best == number
            labels[np.ix_(is_best, pair)] = answers[pair][1][is_best]
    equal = totals > totals.max(0) - _EQUAL
    true_way = np.array([[set(way) == set(group.couples) for group in groups] for way in ways])
    return GroupLabelling(labels == truth, (equal & true_way).sum(0) / equal.sum(0))


def _score_couple(model: ObjectParts, X: Any, size: int, pair: tuple[int, int]) -> tuple[Float32, Int64]:
    """Return score (n,) and labels (n, 2) of the best two labels for two places, in either direction."""
    left_rows, right_rows = (X[place::size] for place in pair)
    first_of_left, second_of_left, score = (column[:, 0] for column in model.rank_pairs(left_rows, right_rows, k=1))
    second, first, reverse_score = (column[:, 0] for column in model.rank_pairs(right_rows, left_rows, k=1))
    is_forward = score >= reverse_score
    labels = np.where(is_forward[:, None], np.stack([first_of_left, second_of_left], 1), np.stack([first, second], 1))
    return np.maximum(score, reverse_score), labels


def extract_image_rows(extractor: FeatureExtractor, items: Sequence[Item], executor: Executor | None = None) -> Any:
    """Extract the features of readable images or regions."""
    return extractor.transform(ItemList(get_sample_path("emoji"), list(items)), executor=executor).X


def run_study(
    seed: int = 0,
    *,
    n: int = 200,
    weights: Sequence[float] = (0.0, 0.1),
    null: bool = False,
    executor: Executor | None = None,
    threads: int | None = None,
    **options: Any,
) -> dict[str, dict[str, float]]:
    """Train on half of the figures and the list of couples, and label group images of the other half.

    Parameters
    ----------
    seed : int
        Of the split, the group pictures and the models.
    n : int
        Group pictures with one couple, and as many with two.
    weights : floats
        `picture_weight` of the models. Where it is 0, f_II counts .1 in labelling although it was never trained.
    null : bool
        Training is told of wrong couples, the group pictures have the right ones.
    **options
        Of `ObjectParts`.

    Returns
    -------
    dict
        By "METHOD, picture_weight W": "both" (right labels, of pictures with one couple), "all four" and "each" (with
        two couples), "married" (who to whom, with two).
    """
    rng = np.random.default_rng(seed)
    train, test = split_person_images(load_person_images(), rng)
    extractor = create_extractor("colour,hog", size=SIDE)
    X = extract_image_rows(extractor, [Item(figure.id, figure.picture, (figure.label,)) for figure in train], executor)
    couples = draw_groups(test, list_couples(), n, 1, rng), draw_groups(test, list_couples(), n, 2, rng)
    regions = [
        extract_image_rows(extractor, [item for group in group_set for item in group.items()], executor)
        for group_set in couples
    ]
    training_couples, accuracy = list_couples(), {}
    if null:
        training_couples = [
            (husband, wife)
            for (husband, _), (_, wife) in zip(
                training_couples, training_couples[1:] + training_couples[:1], strict=True
            )
        ]
    for weight in weights:
        parameters = {"dim": 50, "picture_weight": weight, "threads": threads, "seed": seed, **options}
        model = ObjectParts(training_couples, **parameters).fit(X, [[figure.label] for figure in train])
        for name, method in METHODS.items():
            two, four = (
                label_groups(model, rows, group_set, method, weight or 0.1)
                for rows, group_set in zip(regions, couples, strict=True)
            )
            accuracy[f"{name}, picture_weight {weight:g}"] = {
                "both": float(two.right.all(1).mean()),
                "each": float(four.right.mean()),
                "all four": float(four.right.all(1).mean()),
                "married": float(four.matched.mean()),
            }
    return accuracy


def render_group(
    group: GroupImage, labels: Sequence[str], couples: Sequence[tuple[int, int]], *, scale: int = 2
) -> bytes:
    """Draw a group image as WebP with a box and a label for each figure, and a colour for each couple."""
    colour = {place: _COLOURS[number] for number, couple in enumerate(couples) for place in couple}
    image = Image.open(BytesIO(group.picture))
    sheet = Image.new("RGB", (image.width * scale, (image.height + 14 * len(_LINES)) * scale), "white")
    sheet.paste(image.resize((image.width * scale, image.height * scale), Image.Resampling.LANCZOS))
    draw, font = ImageDraw.Draw(sheet), load_font(8 * scale)
    for place, (box, name) in enumerate(zip(group.boxes, labels, strict=True)):
        left_edge, top, right_edge, bottom = (int(end * scale) for end in box)
        draw.rectangle((left_edge + 1, top + 1, right_edge - 2, bottom - 2), outline=colour[place], width=2)
        line = bottom + (4 + 12 * (place % len(_LINES))) * scale
        draw.text(((left_edge + right_edge) // 2, line), name, fill=colour[place], font=font, anchor="ma")
    file = BytesIO()
    sheet.save(file, "WEBP", quality=80)
    return file.getvalue()
