"""Search by words: items with the tag, items that look like it, and related labels.

Words are label names in any language, with synonyms. Several may stand side by side; `-name` or `-"two words"` excludes
items. The answer includes the interpretation of the words.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import CompoundSelect, Connection, Select, func, select, union_all

from wsabie.collection.db.database import begin_read, begin_snapshot
from wsabie.collection.db.tables import annotations, items, labels
from wsabie.collection.folder.collection import Collection
from wsabie.collection.registry.item_index import ItemNeighbour, find_nearest_items_each
from wsabie.collection.registry.model_registry import LoadedModel, load_model_in_use
from wsabie.collection.search.query_parsing import (
    LabelKnowledge,
    ParsedQuery,
    QueryTerm,
    find_related_labels,
    parse_query,
    read_names,
)
from wsabie.core.arrays import Float32, Int64
from wsabie.core.errors import InputError
from wsabie.search.exact_index import find_top_k


def find_items_of_labels(
    collection: Collection, label_sets: Sequence[Sequence[int]], k: int = 20, *, exclude: Iterable[int] = ()
) -> list[list[ItemNeighbour]]:
    """Return, for each set of label ids, the items that all of them fit best.

    Labels that the model does not know are ignored. A set without known labels finds nothing, and so does every set if
    there is no model or it was not applied yet.
    """
    results = [list[ItemNeighbour]() for _ in label_sets]
    try:
        loaded_model, column_labels = _load_model_and_labels(collection)
        pairs = (
            (place, _average_vectors(loaded_model, column_labels, label_set))
            for place, label_set in enumerate(label_sets)
        )
        vectors = {place: vector for place, vector in pairs if vector is not None}
        points = list(vectors.values())
        neighbours = (
            find_nearest_items_each(collection, points, k, exclude=exclude, model=loaded_model.number) if points else []
        )
    except InputError:
        return results
    for place, near in zip(vectors, neighbours, strict=True):
        results[place] = near
    return results


def find_nearest_labels(collection: Collection, number: int, k: int = 10) -> list[tuple[int, str, float]]:
    """Return id, name and cosine of the labels nearest to a label; empty if the model lacks it."""
    try:
        loaded_model, column_labels = _load_model_and_labels(collection)
    except InputError:
        return []
    columns = np.flatnonzero(column_labels == number)
    if not len(columns):
        return []
    vectors = loaded_model.model.label_vectors
    ids, cosines = find_top_k(
        vectors[columns].mean(axis=0, keepdims=True), vectors, min(k + 8, len(column_labels)), similarity="cosine"
    )
    with begin_read(collection.engine) as connection:
        names = read_names(connection).labels
    neighbours: dict[int, tuple[int, str, float]] = {}
    for column, cosine in zip(ids[0].tolist(), cosines[0].tolist(), strict=True):
        label = int(column_labels[column])
        if label not in (number, -1) and label in names:
            neighbours.setdefault(label, (label, names[label], float(cosine)))
    return list(neighbours.values())[:k]


def _load_model_and_labels(collection: Collection) -> tuple[LoadedModel, Int64]:
    model = load_model_in_use(collection)
    with begin_read(collection.engine) as connection:
        return model, model.labels_now(connection)


def _average_vectors(loaded_model: LoadedModel, column_labels: Int64, label_ids: Sequence[int]) -> Float32 | None:
    """Return the mean of some labels; labels merged into one of them count too."""
    columns = [matches for number in label_ids if len(matches := np.flatnonzero(column_labels == number))]
    if not columns:
        return None
    vector: Float32 = np.mean([loaded_model.model.label_vectors[matches].mean(axis=0) for matches in columns], axis=0)
    return vector


RELATED = 6
"""Maximum number of groups of related labels."""
MAX_KNOWN_RELATED = 4
"""Maximum number of groups from knowledge files."""
NEAR = 0.4
"""Lowest cosine of related labels."""

_LONGEST = 1000
_MAX_CANDIDATES = 2 * RELATED  # related labels that are tried, as some may have no items
_COMBINED = 8  # combinations of labels that are searched if terms have several meanings


class RelatedLabel(NamedTuple):
    """Label with the reason and strength of its relation."""

    number: int
    name: str
    why: str
    score: float | None


class SearchHit(NamedTuple):
    """Item found for a label; score None if it has the tag."""

    item: int
    label: str
    score: float | None


class ResultGroup(NamedTuple):
    """Items found for the same reason."""

    labels: list[str]
    why: str
    score: float | None
    hits: list[SearchHit]


class SearchResult(NamedTuple):
    """Interpretation of a query and groups of items: tagged, similar, then of related labels."""

    meaning: ParsedQuery
    groups: list[ResultGroup]


def search_items(
    collection: Collection, text: str, k: int = 24, meanings: LabelKnowledge | None = None
) -> SearchResult:
    """Find items by words.

    Parameters
    ----------
    collection : Collection
    text : str
        Query of at most 1,000 characters.
    k : int
        Maximum number of items in a group.
    meanings : LabelKnowledge or None
        Knowledge for words that are no label, and for parts and other relations.

    Raises
    ------
    UnknownLabelError
        No word means a label; the nearest names are suggested.
    InputError
        The query is empty or has unwanted labels only.
    """
    if len(text) > _LONGEST:
        raise InputError(f"the text has {len(text):,} characters; search with at most {_LONGEST:,}")
    with begin_snapshot(collection.engine) as connection:
        meaning = parse_query(connection, text, meanings)
        excluded_query = _select_excluded(meaning)
        excluded = connection.execute(excluded_query).scalars().all()
        candidates = [*_find_kinds(connection, meaning), *_find_by_knowledge(connection, meaning, meanings)]
        related = list(islice(_find_related(collection, meaning, candidates), _MAX_CANDIDATES))
        combinations = list(islice(product(*(term.labels.items() for term in meaning.terms)), _COMBINED))
        label_sets = [[number for number, _ in pairs] for pairs in combinations] + [[label.number] for label in related]
        # The first two groups hold up to 2 k items, which later groups skip.
        neighbours = find_items_of_labels(collection, label_sets, 3 * k, exclude=excluded)
        by_label = [(pairs[0][1], near) for pairs, near in zip(combinations, neighbours, strict=False)]
        groups = _make_main_groups(connection, meaning, k, by_label)
        shown_items, half = {hit.item for group in groups for hit in group.hits}, max(1, k // 2)
        n_newest = len(shown_items) + (RELATED + 1) * half
        tagged = _find_newest(connection, [label.number for label in related], n_newest, excluded_query)
    for label, near in zip(related, neighbours[len(combinations) :], strict=True):
        hits = _find_label_hits(label, half, tagged[label.number], near, shown_items)
        if hits:
            groups.append(ResultGroup([label.name], label.why, label.score, hits))
            shown_items |= {hit.item for hit in hits}
        if len(groups) == RELATED + 2:
            break
    return SearchResult(meaning, [group for group in groups if group.hits])


def _make_main_groups(
    connection: Connection, meaning: ParsedQuery, k: int, by_label: Sequence[tuple[str, list[ItemNeighbour]]]
) -> list[ResultGroup]:
    """Return the groups of tagged and of similar items; of a term's labels the best one counts."""
    tagged = _find_tagged(connection, meaning.terms, k, _select_decided(meaning.excluded))
    tagged_items = {hit.item for hit in tagged}
    best: dict[int, SearchHit] = {}
    for label, neighbours in by_label:
        for neighbour in neighbours:
            if neighbour.item not in tagged_items and (
                neighbour.item not in best or neighbour.score > (best[neighbour.item].score or 0.0)
            ):
                best[neighbour.item] = SearchHit(neighbour.item, label, neighbour.score)
    similar = sorted(best.values(), key=lambda hit: -(hit.score or 0.0))[:k]
    title, names = " and ".join(map(str, meaning.terms)), list(meaning.labels.values())
    return [
        ResultGroup(names, f"tagged {title}", None, tagged),
        ResultGroup(names, f"looks like {title}", None, similar),
    ]


def _find_tagged(connection: Connection, terms: Sequence[QueryTerm], k: int, excluded: Any) -> list[SearchHit]:
    """Return the newest items that have a label of each term and are not excluded."""
    query = select(items.c.id).where(items.c.state == "present").order_by(items.c.id.desc()).limit(k)
    for term in terms:
        query = query.where(items.c.id.in_(_select_decided(term.labels)))
    query = query.where(items.c.id.not_in(excluded))
    item_ids, a = list(connection.execute(query).scalars()), annotations.c
    first = terms[0].labels
    if len(first) == 1:
        return [SearchHit(item, name, None) for item in item_ids for name in first.values()]
    label_query = select(a.item_id, func.min(a.label_id)).where(a.item_id.in_(item_ids), a.label_id.in_(first))
    label_of = {
        row[0]: row[1] for row in connection.execute(label_query.where(a.state == "accepted").group_by(a.item_id))
    }
    return [SearchHit(item, first[label_of[item]], None) for item in item_ids]


def _select_decided(numbers: Iterable[int], state: str = "accepted") -> Select[Any]:
    """Return the query for items with a decision of this state about one of some labels."""
    a = annotations.c
    return select(a.item_id).where(a.label_id.in_(list(numbers)), a.state == state)


def _select_excluded(meaning: ParsedQuery) -> CompoundSelect[Any]:
    """Return the query for items that cannot match; rejecting one of a term's labels is no reason."""
    label_ids = [number for term in meaning.terms if len(term.labels) == 1 for number in term.labels]
    return _select_decided(label_ids, "rejected").union(_select_decided(meaning.excluded))


def _find_newest(
    connection: Connection, numbers: Sequence[int], k: int, excluded: CompoundSelect[Any]
) -> dict[int, list[int]]:
    """Return the newest items of each label, at most k, in one query."""
    newest: dict[int, list[int]] = {number: [] for number in numbers}
    a = annotations.c
    query = select(a.label_id, a.item_id).distinct().join(items, items.c.id == a.item_id)  # once with many regions
    query = query.where(a.state == "accepted", items.c.state == "present", a.item_id.not_in(excluded))
    query = query.order_by(a.item_id.desc()).limit(k)
    queries = [query.where(a.label_id == number).subquery() for number in numbers]
    for label, item in sorted(connection.execute(union_all(*map(select, queries))), reverse=True) if queries else ():
        newest[label].append(item)
    return newest


def _find_label_hits(
    label: RelatedLabel, k: int, tagged: Sequence[int], neighbours: Sequence[ItemNeighbour], shown_items: set[int]
) -> list[SearchHit]:
    """Return items tagged with a related label, then similar ones if these are few."""
    hits = [SearchHit(item, label.name, None) for item in tagged if item not in shown_items][:k]
    excluded = shown_items | {hit.item for hit in hits}
    return [
        *hits,
        *(
            SearchHit(neighbour.item, label.name, neighbour.score)
            for neighbour in neighbours
            if neighbour.item not in excluded
        ),
    ][:k]


def _find_kinds(connection: Connection, meaning: ParsedQuery) -> list[RelatedLabel]:
    """Return the child labels of the requested ones."""
    c, requested = labels.c, meaning.labels
    query = select(c.id, c.name, c.parent_id).where(c.parent_id.in_(list(requested)), c.merged_into.is_(None))
    rows = connection.execute(query.order_by(c.name)).all()
    return [RelatedLabel(row[0], row[1], f"'{row[1]}' is a kind of '{requested[row[2]]}'", None) for row in rows]


def _find_by_knowledge(
    connection: Connection, meaning: ParsedQuery, meanings: LabelKnowledge | None
) -> list[RelatedLabel]:
    """Return labels that knowledge files relate to the query as parts, kinds or wholes."""
    names = read_names(connection)
    links = [
        link for term in meaning.terms for link in find_related_labels(connection, meanings, term, MAX_KNOWN_RELATED)
    ]
    return [RelatedLabel(names.get_id(link.label), link.label, link.why, link.score) for link in links]


def _find_related(
    collection: Collection, meaning: ParsedQuery, candidates: Sequence[RelatedLabel]
) -> Iterator[RelatedLabel]:
    """Yield related labels: the given ones, then labels near to the query in the model's space."""
    known_ids = set(meaning.labels) | set(meaning.excluded)
    for label in candidates:
        if label.number not in known_ids:
            known_ids.add(label.number)
            yield label
    for number, name in islice(meaning.labels.items(), _COMBINED):
        for related_id, related_name, cosine in find_nearest_labels(collection, number, RELATED):
            if related_id not in known_ids and cosine >= NEAR:
                known_ids.add(related_id)
                yield RelatedLabel(
                    related_id, related_name, f"near '{name}' in the model's space (cosine {cosine:.2f})", cosine
                )
