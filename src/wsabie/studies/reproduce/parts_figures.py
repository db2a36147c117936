"""[P]'s figures of pictures: quadruplets, an object with its parts, and a search that goes on to related labels."""

from io import BytesIO
from typing import Any

import numpy as np

from wsabie.base.errors import InputError
from wsabie.labels.quadruplets import Quadruplets
from wsabie.sources.records import ItemSource
from wsabie.sources.regions import Cutout
from wsabie.studies.fonts import font
from wsabie.studies.found_pictures import Line, lines_of, sheet, thumbnails
from wsabie.studies.reproduce.data import Data
from wsabie.studies.reproduce.parts import models_of, related_of
from wsabie.studies.reproduce.record import Findings, Found, Record, Setting

QUERIES = ("wheeled vehicle", "musical instrument")
_RELATIONS, _EACH = 8, 4
_BEST, _RELATED = 8, 3
_SIDE = 900
_COLOURS = ("#b3261e", "#0b57d0", "#146c2e", "#7d4e00", "#6f2dbd", "#00696e")


def quadruplets_drawn(record: Record, setting: Setting) -> Findings:
    """Pictures of objects and of parts as training draws them ([P] Figure 2)."""
    data, related = setting.given, related_of(setting.given)
    rows, number = data.train, {name: y for y, name in enumerate(setting.given.train.label_names)}
    lines, found, rng = [], [], np.random.default_rng(setting.seed)
    for one, other in related.told[:: max(1, len(related.told) // _RELATIONS)][:_RELATIONS]:
        drawn = Quadruplets(rows.Y, np.array([[number[one], number[other]]])).sample(_EACH, rng)
        pairs = [(rows.ids[a], rows.ids[b]) for a, b in zip(drawn.objects, drawn.parts, strict=True)]
        tiles = [(name, caption) for pair in pairs for name, caption in zip(pair, (one, other), strict=True)]
        lines.append(
            Line(f"{other} is part of {one}", "a picture of the object, a picture of the part, and so on", tiles)
        )
        found.append(Found(f"{one}, {other}", "quadruplets", {"pictures": ", ".join(f"{a} and {b}" for a, b in pairs)}))
    pictures = thumbnails((name for line in lines for name, _ in line.tiles), _source(data))
    return Findings(found, notes=["Pictures come from the training side."], drawn=sheet(lines, pictures, 2 * _EACH))


def object_with_parts(record: Record, setting: Setting) -> Findings:
    """A test picture with its parts marked: the one with most kinds of parts ([P] Figure 3)."""
    data = setting.given
    items = {item.id: item for item in _source(data)}
    parts: dict[str, list[Any]] = {}
    for whole, part in data.couples or ():
        if whole in items and part in items:
            parts.setdefault(whole, []).append(items[part])
    if not parts:
        raise InputError(f"{data.name} has no regions to draw; give a folder of pictures with regions")
    chosen = max(parts, key=lambda whole: len({part.labels for part in parts[whole]}))
    found = [Found(part.id, "region", {"label": part.labels[0]}) for part in parts[chosen]]
    notes = [f"The picture is {chosen}, labelled {items[chosen].labels[0]}. It has the licence of its collection."]
    return Findings(found, notes=notes, drawn=_marked(items[chosen].content, parts[chosen]))


def _marked(picture: Any, parts: list[Any]) -> bytes:
    """The picture with boxes and labels."""
    from PIL import Image, ImageDraw

    from wsabie.features.decode import decode_full

    decoded = decode_full(picture, size=_SIDE)
    image = Image.fromarray(decoded.pixels)
    draw = ImageDraw.Draw(image)
    for number, part in enumerate(parts):
        if isinstance(part.content, Cutout):
            region, colour = part.content.region, _COLOURS[number % len(_COLOURS)]
            width, height = region.frame or (decoded.width, decoded.height)
            box = region.box.scaled(image.width / width, image.height / height)
            draw.rectangle(tuple(box), outline=colour, width=3)
            name, at = part.labels[0].partition(" (")[0], (box.left + 4, box.top + 2)
            draw.rectangle(draw.textbbox(at, name, font=font(15)), fill="#ffffff")
            draw.text(at, name, fill=colour, font=font(15))
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def searched(record: Record, setting: Setting) -> Findings:
    """Pictures for a text, and for the parts of what it means, by the unshared model ([P] Figure 4)."""
    from wsabie.models.encoded import Encoded
    from wsabie.models.related import PartsRelated
    from wsabie.search.asked import Queries
    from wsabie.studies.augmented_search import AugmentedSearch

    data = setting.given
    if data.meaning is None:
        raise InputError(f"{data.name} has no pictures to search in; give --data sample with --knowledge WORDNET")
    (kept,) = next(models_of(record, setting, 1)).models.values()
    rows, model = data.test, kept.model
    items = Encoded(rows.ids, model.transform(rows.X))
    queries = Queries(list(model.vocabulary_), data.meaning(list(model.vocabulary_)))
    search = AugmentedSearch(model, items, queries=queries, related=[PartsRelated(model)], groups=rows.groups)
    lines, found = [], []
    for query in QUERIES:
        answer = search.find(query, _BEST, _RELATED)
        lines += lines_of(answer)
        for group in answer.groups:
            ids = ", ".join(one.id for one in group.found)
            found.append(Found(f"{query}: {', '.join(group.labels)}", group.why, {"why": group.why, "pictures": ids}))
    notes = [f"{len(rows):,} test pictures, which training did not see, are searched."]
    pictures = thumbnails((name for line in lines for name, _ in line.tiles), _source(data))
    return Findings(found, notes=notes, drawn=sheet(lines, pictures, _BEST))


def _source(data: Data) -> ItemSource:
    if data.source is None:
        raise InputError(f"{data.name} has no pictures to draw; give --data sample with --knowledge WORDNET")
    return data.source
