"""Detection of an object and its parts in an image, by regions of two sizes or at marked regions."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Unpack

import numpy as np
from PIL import Image, ImageDraw

from wsabie.core.errors import InputError, UnreadableItemError, require
from wsabie.features.base.sampling import RunOptions
from wsabie.features.images.image_decoder import decode_with_size
from wsabie.io.records import Item
from wsabie.io.regions import MIN_SIDE, Box, Region, RegionCrop, parse_region
from wsabie.models.annotators import Annotator
from wsabie.models.object_parts.ranker import ObjectParts
from wsabie.workflows.charts.chart_files import encode_picture, load_font

_WINDOW_DIVISORS = (2, 3)  # windows of a half and of a third of the sides, each shifted by half of itself
_DRAWING_SIDE = 900
_COLOURS = ("#b3261e", "#0b57d0", "#146c2e", "#7d4e00", "#6f2dbd", "#00696e")


class DetectedPart(NamedTuple):
    """A part of the object in an image."""

    object_label: str
    label: str
    score: float
    region: str | Path  # region of the image, as requested or in per cent; or another image


def list_regions() -> list[str]:
    """Return regions that cover an image at two sizes, in per cent.

    Examples
    --------
    >>> len(list_regions()), list_regions()[:2]
    (34, ['0%,0%,50%,50%', '25%,0%,50%,50%'])
    """
    regions = []
    for scale in _WINDOW_DIVISORS:
        starts = [f"{50 * step / scale:.4g}%" for step in range(2 * scale - 1)]
        side = f"{100 / scale:.4g}%"
        regions += [f"{x},{y},{side},{side}" for y in starts for x in starts]
    return regions


def require_object_parts(annotator: Annotator, where: str = "the model") -> ObjectParts:
    """Return the annotator's model of objects and parts.

    Raises
    ------
    InputError
        It is another kind of model, or takes rows.
    """
    if not isinstance(annotator.model, ObjectParts):
        raise InputError(f"{where} is not a model of objects and parts; train one with --kind parts --relations FILE")
    require(annotator.extractor is not None, f"{where} was trained on rows of features, and cannot look at pictures")
    return annotator.model


def find_parts(
    annotator: Annotator, picture: Path, object_label: str | None = None, k: int = 10, **context: Unpack[RunOptions]
) -> list[DetectedPart]:
    """Return the k parts that score best in an image, each with its best region.

    The object is the best of the labels that have parts, by f_I of the whole image. Every window of `list_regions` is
    then scored for the parts of this object by f_I + r f_L (Mesnil et al. 2014, section 6.2, "triplet"). The candidates
    are the parts that training knew for the object, or all part labels if it knew none.

    Raises
    ------
    InputError
        Not a model of objects and parts, an unreadable image, a label that the model does not know, or the only part
        that it knows.
    """
    model = require_object_parts(annotator)
    items = [Item(str(picture), picture, ())]
    items += [Item(text, RegionCrop(picture, parse_region(text)), ()) for text in list_regions()]
    X = annotator.rows_of_items(items, **context)
    names = list(model.vocabulary_)
    if object_label is None:
        objects = [names[y] for y in np.unique(model.relations_[:, 0])]
        ((object_label, _),) = model.annotate(X[:1], k=1, candidates=objects)[0]
    (object_id,) = model.vocabulary_.ids([object_label])
    object_parts = model.relations_[model.relations_[:, 0] == object_id, 1]
    candidates = np.setdiff1d(object_parts if len(object_parts) else model.relations_[:, 1], [object_id])
    require(len(candidates) > 0, f"{object_label} is the only part that the model knows; give another object")
    scores = model.scores_given(X[1:], [object_label] * (X.shape[0] - 1), side="part")[:, candidates]
    best_scores, best_windows = scores.max(0), scores.argmax(0)
    order = np.argsort(-best_scores, kind="stable")[:k]
    return [
        DetectedPart(names[object_id], names[candidates[j]], float(best_scores[j]), items[1 + int(best_windows[j])].id)
        for j in order
    ]


def label_parts(
    annotator: Annotator,
    picture: Path,
    regions: Sequence[str | Path],
    object_label: str | None = None,
    k: int = 10,
    *,
    couples: Sequence[tuple[str, str]] | None = None,
    **context: Unpack[RunOptions],
) -> list[list[DetectedPart]]:
    """Return for each region the k best pairs of labels: of the whole image, and of the region.

    Parameters
    ----------
    picture : Path
    regions : sequence of str or Path
        Regions of the image as `parse_region` takes them, or other images (a `Path`).
    object_label : str or None
        The object, if it is known: only the part is predicted.
    couples : list of (object label, part label) or None
        Only these pairs.

    Raises
    ------
    InputError
        As `find_parts`; or an invalid region, or one smaller than training takes.
    """
    model = require_object_parts(annotator)
    items = [Item(str(picture), picture, ())]
    for region in regions:
        content = region if isinstance(region, Path) else RegionCrop(picture, _parse_visible_region(picture, region))
        items.append(Item(str(region), content, ()))
    X = annotator.rows_of_items(items, **context)
    if object_label is None:
        pairs = model.annotate_pairs(X[np.zeros(len(regions), int)], X[1:], k, couples=couples)
    else:
        parts = None if couples is None else {part for label, part in couples if label == object_label}
        ranked_parts = model.annotate_given(X[1:], [object_label] * len(regions), side="part", k=len(model.vocabulary_))
        pairs = [
            [((object_label, part), score) for part, score in ranking if parts is None or part in parts][:k]
            for ranking in ranked_parts
        ]
    return [
        [DetectedPart(*labels, score, region) for labels, score in ranking]
        for ranking, region in zip(pairs, regions, strict=True)
    ]


def _parse_visible_region(picture: Path, text: str) -> Region:
    region = parse_region(text)
    with suppress(UnreadableItemError):  # extracting its features reports an unreadable image
        image = decode_with_size(picture, size=16)
        columns, rows = region.frame or (image.width, image.height)
        box = region.box.scale(image.width / columns, image.height / rows)
        visible = box.intersect(Box(0, 0, image.width, image.height))
        if visible.area > 0 and min(visible.width, visible.height) < MIN_SIDE:
            size = f"{visible.width:.3g} x {visible.height:.3g} pixels of {picture}"
            raise InputError(f"region {text[:60]!r} shows {size}; give one of {MIN_SIDE} or more a side")
    return region


def draw_parts(picture: Path, parts: Sequence[DetectedPart]) -> bytes:
    """Draw the image as PNG with a box and a name for every part that has a region in it.

    Raises
    ------
    UnreadableItemError
        The image cannot be read.
    """
    decoded = decode_with_size(picture, size=_DRAWING_SIDE)
    image = Image.fromarray(decoded.pixels)
    draw, font = ImageDraw.Draw(image), load_font(_DRAWING_SIDE // 55)
    regions = [(part.label, part.region) for part in parts if isinstance(part.region, str)]
    for number, (label, region_text) in enumerate(regions):
        region = parse_region(region_text)
        columns, rows = region.frame or (decoded.width, decoded.height)
        box = region.box.scale(image.width / columns, image.height / rows)
        colour = _COLOURS[number % len(_COLOURS)]
        draw.rectangle(box, outline=colour, width=3)
        position = box.left + 4, min(box.top + 3 + number % 3 * 18, image.height - 20)
        draw.text(position, label, fill="white", stroke_width=3, stroke_fill=colour, font=font)
    return encode_picture(image, optimize=True)
