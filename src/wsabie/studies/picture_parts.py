"""What a picture shows, and which parts of it where, by a trained model of objects and parts."""

from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.features.decode import RejectedItem, decode_full
from wsabie.models.annotator import Annotator
from wsabie.models.parts import Parts
from wsabie.sources.records import Item
from wsabie.sources.regions import SMALLEST, Box, Cutout, Region, parse_region
from wsabie.studies.fonts import font

_SCALES = (2, 3)  # windows of a half and of a third of the sides, each shifted by half of itself
_COLOURS = ("#b3261e", "#0b57d0", "#146c2e", "#7d4e00", "#6f2dbd", "#00696e")


class Part(NamedTuple):
    """A part of what a picture shows."""

    object_label: str
    label: str
    score: float
    where: str | Path  # a region of the picture, as it was asked for or in per cent; or another picture


def windows() -> list[str]:
    """Regions that cover a picture at two sizes, in per cent.

    Examples
    --------
    >>> len(windows()), windows()[:2]
    (34, ['0%,0%,50%,50%', '25%,0%,50%,50%'])
    """
    found = []
    for n in _SCALES:
        starts = [f"{50 * step / n:.4g}%" for step in range(2 * n - 1)]
        side = f"{100 / n:.4g}%"
        found += [f"{x},{y},{side},{side}" for y in starts for x in starts]
    return found


def model_of(annotator: Annotator, where: str = "the model") -> Parts:
    """The model of objects and parts in an annotator.

    Raises
    ------
    InputError
        It is another kind, or takes rows.
    """
    if not isinstance(annotator.model, Parts):
        raise InputError(f"{where} is no model of objects and parts; train one with --kind parts --relations FILE")
    if annotator.terms is None:
        raise InputError(f"{where} was trained on rows of features, and cannot look at pictures")
    return annotator.model


def find_parts(
    annotator: Annotator,
    picture: Path,
    object_label: str | None = None,
    k: int = 10,
    *,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> list[Part]:
    """What a picture shows, and the k parts that are seen best in it, each where it is seen best.

    The object is the best of the labels that have parts, by f_I of the whole picture. Then every window
    of `windows` is asked for a part of that, by f_I + r f_L ([P] 6.2, "triplet"): for those that training was told of,
    or, where it was told of none, for all labels that are parts.

    Raises
    ------
    InputError
        Not a model of objects and parts, an unreadable picture, a label that the model does not know, or the only part
        that it knows.
    """
    model = model_of(annotator)
    items = [Item(str(picture), picture, ())]
    items += [Item(text, Cutout(picture, parse_region(text)), ()) for text in windows()]
    X = annotator.rows_of_all(items, executor=executor, progress=progress)
    names = list(model.vocabulary_)
    if object_label is None:
        objects = [names[y] for y in np.unique(model.relations_[:, 0])]
        ((object_label, _),) = model.annotate(X[:1], k=1, candidates=objects)[0]
    (own,) = model.vocabulary_.ids([object_label])
    told = model.relations_[model.relations_[:, 0] == own, 1]
    candidates = np.setdiff1d(told if len(told) else model.relations_[:, 1], [own])
    if not len(candidates):
        raise InputError(f"{object_label} is the only part that the model knows; give another object")
    scores = model.scores_given(X[1:], [object_label] * (X.shape[0] - 1), side="part")[:, candidates]
    best, seen = scores.max(0), scores.argmax(0)
    order = np.argsort(-best, kind="stable")[:k]
    return [Part(names[own], names[candidates[j]], float(best[j]), items[1 + int(seen[j])].id) for j in order]


def label_parts(
    annotator: Annotator,
    picture: Path,
    places: Sequence[str | Path],
    object_label: str | None = None,
    k: int = 10,
    *,
    couples: Sequence[tuple[str, str]] | None = None,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> list[list[Part]]:
    """For each place the k best pairs of labels, of the picture as a whole and of the part that is there.

    Parameters
    ----------
    picture : Path
    places : sequence of str or Path
        Regions of the picture as `parse_region` takes them, or other pictures (a `Path`).
    object_label : str or None
        What the picture shows, where that is known: only the part is then asked for.
    couples : list of (object label, part label) or None
        Only these pairs.

    Raises
    ------
    InputError
        As `find_parts`; or a region that is none, or smaller than any that training takes.
    """
    model = model_of(annotator)
    items = [Item(str(picture), picture, ())]
    for place in places:
        content = place if isinstance(place, Path) else Cutout(picture, _region(picture, place))
        items.append(Item(str(place), content, ()))
    X = annotator.rows_of_all(items, executor=executor, progress=progress)
    if object_label is None:
        wholes = X[np.zeros(len(places), int)]
        pairs = model.annotate_pairs(wholes, X[1:], k, couples=couples)
    else:
        if couples is not None:
            couples = [couple for couple in couples if couple[0] == object_label]
        given = model.annotate_given(X[1:], [object_label] * len(places), side="part", k=len(model.vocabulary_))
        known = None if couples is None else {part for _, part in couples}
        pairs = [
            [((object_label, part), score) for part, score in top if known is None or part in known][:k]
            for top in given
        ]
    return [[Part(*labels, score, where) for labels, score in top] for top, where in zip(pairs, places, strict=True)]


def _region(picture: Path, place: str) -> Region:
    region = parse_region(place)
    with suppress(RejectedItem):  # what cannot be read is told when it is described
        whole = decode_full(picture, size=16)
        across, down = region.frame or (whole.width, whole.height)
        box = region.box.scaled(whole.width / across, whole.height / down)
        seen = box.within(Box(0, 0, whole.width, whole.height))
        if seen.area > 0 and min(seen.width, seen.height) < SMALLEST:
            raise InputError(
                f"region {place[:60]!r} shows {seen.width:.3g} x {seen.height:.3g} pixels of {picture}; give one of "
                f"{SMALLEST} or more a side"
            )
    return region


def drawn(picture: Path, parts: Sequence[Part], *, side: int = 900) -> bytes:
    """The picture as PNG with a box and a name for every part that has a region in it.

    Raises
    ------
    RejectedItem
        The picture cannot be read.
    """
    decoded = decode_full(picture, size=side)
    image = Image.fromarray(decoded.pixels)
    draw, text = ImageDraw.Draw(image), font(max(12, side // 55))
    for number, (label, where) in enumerate((one.label, one.where) for one in parts if isinstance(one.where, str)):
        region = parse_region(where)
        across, down = region.frame or (decoded.width, decoded.height)
        box = region.box.scaled(image.width / across, image.height / down)
        colour = _COLOURS[number % len(_COLOURS)]
        draw.rectangle(box, outline=colour, width=3)
        at = box.left + 4, min(box.top + 3 + number % 3 * 18, image.height - 20)
        draw.text(at, label, fill="white", stroke_width=3, stroke_fill=colour, font=text)
    file = BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()
