"""Image figures of Mesnil et al. 2014: quadruplets, an object with its parts, an augmented search."""

from io import BytesIO
from typing import Any

import numpy as np

from papers.datasets import PaperData
from papers.record import FindingRow, PaperRecord, RunFindings, RunSettings
from papers.runs.object_parts.part_tables import require_relations, train_models
from wsabie.core.errors import InputError
from wsabie.io.records import ItemSource
from wsabie.io.regions import RegionCrop
from wsabie.vocabulary.label_quadruplets import Quadruplets
from wsabie.workflows.augmented_search import SheetLine, list_sheet_lines, load_thumbnails, render_sheet
from wsabie.workflows.charts.chart_files import load_font

QUERIES = ("wheeled vehicle", "musical instrument")
_RELATIONS, _EACH = 8, 4
_BEST, _RELATED = 8, 3
_SIDE = 900
_COLOURS = ("#b3261e", "#0b57d0", "#146c2e", "#7d4e00", "#6f2dbd", "#00696e")


def draw_quadruplets(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Draw images of objects and of parts as in training (Mesnil et al. 2014, Figure 2)."""
    data, related = setting.required_data, require_relations(setting.required_data)
    rows, label_ids = data.train, {name: y for y, name in enumerate(setting.required_data.train.label_names)}
    lines, findings, rng = [], [], np.random.default_rng(setting.seed)
    for object_label, part_label in related.training[:: max(1, len(related.training) // _RELATIONS)][:_RELATIONS]:
        quadruplets = Quadruplets(rows.Y, np.array([[label_ids[object_label], label_ids[part_label]]])).sample(
            _EACH, rng
        )
        pairs = [(rows.ids[a], rows.ids[b]) for a, b in zip(quadruplets.objects, quadruplets.parts, strict=True)]
        tiles = [
            (name, caption) for pair in pairs for name, caption in zip(pair, (object_label, part_label), strict=True)
        ]
        lines.append(
            SheetLine(
                f"{part_label} is part of {object_label}",
                "a picture of the object, a picture of the part, and so on",
                tiles,
            )
        )
        findings.append(
            FindingRow(
                f"{object_label}, {part_label}",
                "quadruplets",
                {"pictures": ", ".join(f"{a} and {b}" for a, b in pairs)},
            )
        )
    pictures = load_thumbnails((name for line in lines for name, _ in line.tiles), _require_source(data))
    return RunFindings(
        findings, notes=["Pictures come from the training side."], image_sheet=render_sheet(lines, pictures, 2 * _EACH)
    )


def draw_object_with_parts(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Draw the test image with most kinds of parts, with its parts marked (Mesnil et al. 2014, Figure 3)."""
    data = setting.required_data
    items = {item.id: item for item in _require_source(data)}
    parts: dict[str, list[Any]] = {}
    for object_id, part in data.couples or ():
        if object_id in items and part in items:
            parts.setdefault(object_id, []).append(items[part])
    if not parts:
        raise InputError(f"{data.name} has no regions to draw; give a folder of pictures with regions")
    best_object = max(parts, key=lambda object_id: len({part.labels for part in parts[object_id]}))
    findings = [FindingRow(part.id, "region", {"label": part.labels[0]}) for part in parts[best_object]]
    notes = [
        f"The picture is {best_object}, labelled {items[best_object].labels[0]}. It has the licence of its collection."
    ]
    return RunFindings(findings, notes=notes, image_sheet=_draw_marked(items[best_object].content, parts[best_object]))


def _draw_marked(picture: Any, parts: list[Any]) -> bytes:
    """Draw the image with boxes and labels."""
    from PIL import Image, ImageDraw

    from wsabie.features.images.image_decoder import decode_with_size

    decoded = decode_with_size(picture, size=_SIDE)
    image = Image.fromarray(decoded.pixels)
    draw = ImageDraw.Draw(image)
    for number, part in enumerate(parts):
        if isinstance(part.content, RegionCrop):
            region, colour = part.content.region, _COLOURS[number % len(_COLOURS)]
            width, height = region.frame or (decoded.width, decoded.height)
            box = region.box.scale(image.width / width, image.height / height)
            draw.rectangle(tuple(box), outline=colour, width=3)
            name, position = part.labels[0].partition(" (")[0], (box.left + 4, box.top + 2)
            draw.rectangle(draw.textbbox(position, name, font=load_font(15)), fill="#ffffff")
            draw.text(position, name, fill=colour, font=load_font(15))
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def draw_search_result(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Draw images for a text and for its related parts (unshared model; Mesnil et al. 2014, Figure 4)."""
    from wsabie.models.embedding_set import EmbeddingSet
    from wsabie.models.model_relations import ObjectPartRelations
    from wsabie.search.query_labels import QueryMatcher
    from wsabie.workflows.augmented_search import AugmentedSearch

    data = setting.required_data
    if data.meaning is None:
        raise InputError(f"{data.name} has no pictures to search in; give --data sample with --knowledge WORDNET")
    (best_model,) = next(train_models(record, setting, 1)).models.values()
    rows, model = data.test, best_model.model
    items = EmbeddingSet(rows.ids, model.transform(rows.X))
    queries = QueryMatcher(list(model.vocabulary_), data.meaning(list(model.vocabulary_)))
    search = AugmentedSearch(model, items, queries=queries, related=[ObjectPartRelations(model)], groups=rows.groups)
    lines, findings = [], []
    for query in QUERIES:
        answer = search.find(query, _BEST, _RELATED)
        lines += list_sheet_lines(answer)
        for group in answer.groups:
            ids = ", ".join(match.id for match in group.matches)
            findings.append(
                FindingRow(f"{query}: {', '.join(group.labels)}", group.reason, {"why": group.reason, "pictures": ids})
            )
    notes = [f"{len(rows):,} test pictures, which training did not see, are searched."]
    pictures = load_thumbnails((name for line in lines for name, _ in line.tiles), _require_source(data))
    return RunFindings(findings, notes=notes, image_sheet=render_sheet(lines, pictures, _BEST))


def _require_source(data: PaperData) -> ItemSource:
    if data.source is None:
        raise InputError(f"{data.name} has no pictures to draw; give --data sample with --knowledge WORDNET")
    return data.source
