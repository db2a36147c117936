"""Items of the catalogue as they are sent."""

from collections.abc import Sequence
from typing import Any

from wsabie.catalogue import items
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.facets import One
from wsabie.faces.serve.collection_answers import AnnotationSeen, ItemSeen, ItemWhole, ScoredItem, SuggestionSeen


def item_seen(item: items.Shown) -> ItemSeen:
    """An item of a page."""
    return ItemSeen(**_fields(item))


def item_whole(there: One) -> ItemWhole:
    """An item with all that is known of it."""
    row = {name: there.item[name] for name in ItemWhole.model_fields if name in there.item}
    return ItemWhole(
        **row,
        best=there.best,
        doubt=there.doubt,
        labels=[one.label for one in there.annotations if one.state == "accepted" and not one.region],
        annotations=[AnnotationSeen(**one._asdict()) for one in there.annotations],
        suggestions=[SuggestionSeen(**one._asdict()) for one in there.suggestions],
    )


Hits = Sequence[tuple[int, str | None, float | None]]
"""Items by number, each with the label that it was found for and its score."""


def found(at: Collection, hits: Hits) -> list[ScoredItem]:
    """Items that were found; those that are gone are left out."""
    return found_in_groups(at, [hits])[0]


def found_in_groups(at: Collection, groups: Sequence[Hits]) -> list[list[ScoredItem]]:
    """As `found` for each group, in little more time than for one."""
    there = {item.id: item for item in items.numbered(at, sorted({hit[0] for hits in groups for hit in hits}))}
    fields = {number: _fields(item) for number, item in there.items()}
    return [
        [ScoredItem(**fields[number], label=label, score=score) for number, label, score in hits if number in fields]
        for hits in groups
    ]


def _fields(item: items.Shown) -> dict[str, Any]:
    told = item._asdict() | {"folder": item.path.rpartition("/")[0], "labels": list(item.labels)}
    return {name: told[name] for name in ItemSeen.model_fields if name in told}
