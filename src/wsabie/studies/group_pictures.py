"""Group pictures: several figures side by side, some of them couples, to be labelled together ([P] section 7).

Who is married to whom is known of the labels; no group picture is seen in training. The figures are emoji of people,
each in several skin tones; a group picture has a place for every figure, and neighbours overlap.
"""

from collections import defaultdict
from collections.abc import Sequence
from copy import copy
from io import BytesIO
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from PIL import Image, ImageChops, ImageDraw

from wsabie.base.arrays import Bool, Float32, Float64, Int64
from wsabie.base.executor import Executor
from wsabie.base.validation import require
from wsabie.features.decode import decode
from wsabie.features.describer import Describer
from wsabie.features.registry import describer
from wsabie.models.parts import Parts
from wsabie.samples import sample_path, table_path
from wsabie.sources.pairs import read_couples
from wsabie.sources.records import Item, ItemList
from wsabie.sources.regions import Box, Cutout, Region
from wsabie.studies.fonts import font

SIDE = 96
SMALLEST = 0.7
"""Of the full height."""
OVERLAP = 0.5
"""Of a figure's width, at most."""
_EQUAL = 1e-4
_COLOURS, _LINES = ("#b3261e", "#0b57d0"), (0, 1)
MATCHINGS = (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2)))
"""The ways to make two couples of four."""


class Figure(NamedTuple):
    """A picture of one person."""

    id: str
    picture: bytes
    label: str


class Group(NamedTuple):
    """A picture of several figures.

    Attributes
    ----------
    id : str
    picture : bytes
        PNG.
    figures : tuple of Figure
        From left to right.
    boxes : tuple of Box
        Where each stands.
    couples : tuple of (int, int)
        Places of those who are married.
    """

    id: str
    picture: bytes
    figures: tuple[Figure, ...]
    boxes: tuple[Box, ...]
    couples: tuple[tuple[int, int], ...]

    def items(self) -> list[Item]:
        """The regions of the figures, with their labels."""
        cut = [Cutout(self.picture, Region(box)) for box in self.boxes]
        return [
            Item(f"{self.id}/{place}", content, (figure.label,))
            for place, (content, figure) in enumerate(zip(cut, self.figures, strict=True))
        ]


def married() -> list[tuple[str, str]]:
    """The couples of the sample collection.

    Examples
    --------
    >>> len(married()), married()[-1]
    (10, ('santa claus', 'mrs. claus'))
    """
    return [(one, other) for one, other, *_ in read_couples(table_path("married"))]


def sample_figures() -> list[Figure]:
    """Figures of the bundled emoji: those who are married, by their label, and other people, by their title.

    Pictures that carry the labels of both of a couple ("merperson") are left out, and so are people with fewer than six
    pictures.
    """
    import pyarrow.parquet as pq

    named, found = {label for couple in married() for label in couple}, defaultdict(list)
    columns = ["id", "image", "labels", "title", "category"]
    for row in pq.read_table(sample_path("emoji"), columns=columns).to_pylist():
        own = named.intersection(row["labels"])
        if len(own) == 1 or (not own and row["category"].startswith("Smileys & People/person")):
            label = own.pop() if own else row["title"].split(":")[0]
            found[label].append(Figure(row["id"], row["image"], label))
    return [figure for label in sorted(found) if len(found[label]) >= 6 for figure in found[label]]


def deal(figures: Sequence[Figure], rng: np.random.Generator) -> tuple[list[Figure], list[Figure]]:
    """Half of each label's pictures, drawn, and the others. Variants of one figure are on both sides."""
    labels = np.array([figure.label for figure in figures])
    sides: tuple[list[Figure], list[Figure]] = ([], [])
    for label in np.unique(labels):
        own = rng.permutation(np.flatnonzero(labels == label))
        for number, at in enumerate(own):
            sides[2 * number >= len(own)].append(figures[at])
    return sides


def make_groups(
    figures: Sequence[Figure],
    couples: Sequence[tuple[str, str]],
    n: int,
    n_couples: int,
    rng: np.random.Generator,
    *,
    overlap: float = OVERLAP,
) -> list[Group]:
    """Draw n group pictures of different couples, in any order from left to right.

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
    return [_group(f"group-{number}", by_label, couples, n_couples, rng, overlap) for number in range(n)]


def _group(
    name: str,
    by_label: Any,
    couples: Sequence[tuple[str, str]],
    n_couples: int,
    rng: np.random.Generator,
    overlap: float,
) -> Group:
    chosen = rng.choice(len(couples), n_couples, replace=False)
    labels = [label for number in chosen for label in couples[number]]
    order = rng.permutation(len(labels))
    figures = tuple(by_label[labels[at]][rng.integers(len(by_label[labels[at]]))] for at in order)
    places = np.argsort(order)
    wed = tuple(tuple(sorted(places[[2 * number, 2 * number + 1]].tolist())) for number in range(n_couples))
    picture, boxes = _side_by_side(figures, rng, overlap)
    return Group(name, picture, figures, boxes, wed)


def _side_by_side(figures: Sequence[Figure], rng: np.random.Generator, overlap: float) -> tuple[bytes, tuple[Box, ...]]:
    """Figures of several sizes on one line, each over its left neighbour as ink over ink."""
    sheet, right, boxes = Image.new("RGB", (SIDE * len(figures), SIDE), "white"), 0, []
    for figure in figures:
        side = int(SIDE * rng.uniform(SMALLEST, 1))
        image = Image.fromarray(decode(figure.picture, size=SIDE)).resize((side, side), Image.Resampling.LANCZOS)
        left = max(0, right - int(side * rng.uniform(0, overlap)))
        layer = Image.new("RGB", sheet.size, "white")
        layer.paste(image, (left, SIDE - side))
        sheet, right = ImageChops.darker(sheet, layer), left + side
        boxes.append(Box(left, SIDE - side, right, SIDE))
    file = BytesIO()
    sheet.crop((0, 0, right, SIDE)).save(file, "PNG")
    return file.getvalue(), tuple(boxes)


# ---- labels for the members of a group


class Method(NamedTuple):
    """How members are labelled, and who is married to whom.

    Attributes
    ----------
    label_scores : {"learned", "known", "none"}
        As of `Parts`.
    same : bool
        Whether two who are married may have the same label.
    edge : bool
        Whether f_II of the two pictures counts, too.
    """

    label_scores: Literal["learned", "known", "none"]
    same: bool = False
    edge: bool = False


METHODS = {
    "each by itself": Method("none", same=True),
    "two different labels": Method("none"),
    "the list": Method("known"),
    "f_L": Method("learned"),
    "f_II": Method("none", same=True, edge=True),
    "f_L and f_II": Method("learned", edge=True),
}


class Labelled(NamedTuple):
    """What a method says of groups with as many members each.

    Attributes
    ----------
    right : (n, members) bool
        Whether the label of each is right.
    matched : (n,) float64
        Whether all are married to the right one; of equally good answers, the share that is right.
    """

    right: Bool
    matched: Float64


def label_groups(model: Parts, X: Any, groups: Sequence[Group], method: Method, edge: float = 0.0) -> Labelled:
    """The members of groups of two or four labelled together: of all ways to marry them, the one with the highest f_q.

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
    answers = {pair: _couple(used, X, size, pair) for pair in combinations(range(size), 2)}
    points = model.transform(X).reshape(n, size, -1) * np.float32(np.sqrt(edge if method.edge else 0))
    edges = {(a, b): (points[:, a] * points[:, b]).sum(1) for a, b in answers}
    totals = np.array([sum(answers[pair][0] + edges[pair] for pair in way) for way in ways])  # (ways, n)
    names = [figure.label for group in groups for figure in group.figures]
    best, truth = totals.argmax(0), model.vocabulary_.ids(names).reshape(n, size)
    said = np.zeros((n, size), np.int64)
    for number, way in enumerate(ways):
        for pair in way:
            chosen = best == number
            said[np.ix_(chosen, pair)] = answers[pair][1][chosen]
    equal = totals > totals.max(0) - _EQUAL
    true_way = np.array([[set(way) == set(group.couples) for group in groups] for way in ways])
    return Labelled(said == truth, (equal & true_way).sum(0) / equal.sum(0))


def _couple(model: Parts, X: Any, size: int, pair: tuple[int, int]) -> tuple[Float32, Int64]:
    """Score and labels of the best two labels for two places, whoever comes first in the relation: (n,), (n, 2)."""
    left, right = (X[place::size] for place in pair)
    one, two, score = (found[:, 0] for found in model.rank_pairs(left, right, k=1))
    second, first, turned = (found[:, 0] for found in model.rank_pairs(right, left, k=1))
    as_told = score >= turned
    labels = np.where(as_told[:, None], np.stack([one, two], 1), np.stack([first, second], 1))
    return np.maximum(score, turned), labels


def rows_of(describer: Describer, items: Sequence[Item], executor: Executor | None = None) -> Any:
    """Features of pictures or regions, all of which can be read."""
    return describer.transform(ItemList(sample_path("emoji"), list(items)), executor=executor).X


def study(
    seed: int = 0,
    *,
    n: int = 200,
    weights: Sequence[float] = (0.0, 0.1),
    null: bool = False,
    executor: Executor | None = None,
    threads: int | None = None,
    **options: Any,
) -> dict[str, dict[str, float]]:
    """Train on half of the figures and the list of couples, and label group pictures of the other half.

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
        Of `Parts`.

    Returns
    -------
    dict
        By "METHOD, picture_weight W": "both" (right labels, of pictures with one couple), "all four" and "each" (with
        two couples), "married" (who to whom, with two).
    """
    rng = np.random.default_rng(seed)
    train, test = deal(sample_figures(), rng)
    describes = describer("colour,hog", size=SIDE)
    X = rows_of(describes, [Item(one.id, one.picture, (one.label,)) for one in train], executor)
    couples = make_groups(test, married(), n, 1, rng), make_groups(test, married(), n, 2, rng)
    regions = [rows_of(describes, [item for group in own for item in group.items()], executor) for own in couples]
    told, found = married(), {}
    if null:
        told = [(one, other) for (one, _), (_, other) in zip(told, told[1:] + told[:1], strict=True)]
    for weight in weights:
        given = {"dim": 50, "picture_weight": weight, "threads": threads, "seed": seed, **options}
        model = Parts(told, **given).fit(X, [[one.label] for one in train])
        for name, method in METHODS.items():
            two, four = (
                label_groups(model, rows, own, method, weight or 0.1)
                for rows, own in zip(regions, couples, strict=True)
            )
            found[f"{name}, picture_weight {weight:g}"] = {
                "both": float(two.right.all(1).mean()),
                "each": float(four.right.mean()),
                "all four": float(four.right.all(1).mean()),
                "married": float(four.matched.mean()),
            }
    return found


def drawn_group(group: Group, labels: Sequence[str], couples: Sequence[tuple[int, int]], *, scale: int = 2) -> bytes:
    """A group picture as WebP, a box and a label for each, the two of a couple in one colour."""
    colour = {place: _COLOURS[number] for number, couple in enumerate(couples) for place in couple}
    image = Image.open(BytesIO(group.picture))
    sheet = Image.new("RGB", (image.width * scale, (image.height + 14 * len(_LINES)) * scale), "white")
    sheet.paste(image.resize((image.width * scale, image.height * scale), Image.Resampling.LANCZOS))
    draw, text = ImageDraw.Draw(sheet), font(8 * scale)
    for place, (box, name) in enumerate(zip(group.boxes, labels, strict=True)):
        left, top, right, bottom = (int(end * scale) for end in box)
        draw.rectangle((left + 1, top + 1, right - 2, bottom - 2), outline=colour[place], width=2)
        line = bottom + (4 + 12 * (place % len(_LINES))) * scale
        draw.text(((left + right) // 2, line), name, fill=colour[place], font=text, anchor="ma")
    file = BytesIO()
    sheet.save(file, "WEBP", quality=80)
    return file.getvalue()
