"""Conversion of catalogue items to the schemas of responses."""

from collections.abc import Sequence
from typing import Any

from wsabie.collection.folder.collection import Collection
from wsabie.collection.items import item_pages
from wsabie.collection.overview.facets import AnnotatedItem
from wsabie.server.schemas.collection_schemas import Annotation, ItemDetails, ItemSummary, ScoredItem, Suggestion


def serialize_item(item: item_pages.PageItem) -> ItemSummary:
    """Convert an item of a page."""
    return ItemSummary(**_fields(item))


def serialize_item_details(details: AnnotatedItem) -> ItemDetails:
    """Convert an item with its annotations and suggestions."""
    row = {name: details.item[name] for name in ItemDetails.model_fields if name in details.item}
    return ItemDetails(
        **row,
        best=details.best,
        doubt=details.doubt,
        labels=[tag.label for tag in details.annotations if tag.state == "accepted" and not tag.region],
        annotations=[Annotation(**tag._asdict()) for tag in details.annotations],
        suggestions=[Suggestion(**suggestion._asdict()) for suggestion in details.suggestions],
    )


ItemHitSequence = Sequence[tuple[int, str | None, float | None]]
"""Items by number, each with the label that it matched and its score."""


def serialize_hits(collection: Collection, hits: ItemHitSequence) -> list[ScoredItem]:
    """Convert search hits; items that no longer exist are left out."""
    return serialize_hit_groups(collection, [hits])[0]


def serialize_hit_groups(collection: Collection, groups: Sequence[ItemHitSequence]) -> list[list[ScoredItem]]:
    """Convert several groups of search hits with one read of the database; see `serialize_hits`."""
    items = {
        item.id: item
        for item in item_pages.read_items_by_number(collection, sorted({hit[0] for hits in groups for hit in hits}))
    }
    fields = {number: _fields(item) for number, item in items.items()}
    return [
        [ScoredItem(**fields[number], label=label, score=score) for number, label, score in hits if number in fields]
        for hits in groups
    ]


def _fields(item: item_pages.PageItem) -> dict[str, Any]:
    fields = item._asdict() | {"folder": item.path.rpartition("/")[0], "labels": list(item.labels)}
    return {name: fields[name] for name in ItemSummary.model_fields if name in fields}
