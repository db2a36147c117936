"""Search by words: items of labels, items near to the text by an encoder, then neighbours.

The answer says what the words mean (`wsabie.collection.search.query_parsing`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, product
from typing import NamedTuple

import numpy as np
from sqlalchemy import BindParameter, Connection, SelectBase, and_, bindparam, func, select, union

from wsabie.collection.db.database import begin_read, begin_snapshot
from wsabie.collection.db.errors import format_step
from wsabie.collection.db.tables import Query, annotations, items, labels
from wsabie.collection.folder.collection import Collection
from wsabie.collection.items.filters import ALL, ItemFilter
from wsabie.collection.items.item_pages import select_others
from wsabie.collection.labels import label_store
from wsabie.collection.learning.zero_shot import find_items_by_text, find_model, find_unwanted_items
from wsabie.collection.registry.item_index import ItemNeighbour, find_nearest_items, find_similar_items
from wsabie.collection.registry.model_registry import LoadedModel, find_usable_model, load_model_in_use
from wsabie.collection.search.query_parsing import LabelKnowledge, ParsedQuery, QueryTerm, parse_query, read_names
from wsabie.core.arrays import Float32, Int64
from wsabie.core.errors import InputError, UnknownLabelError, require
from wsabie.search.exact_index import find_top_k
from wsabie.vocabulary.name_suggestions import format_unknown_label

RELATED = 6
"""Maximum number of groups of related labels."""
MAX_KNOWN_RELATED = 4
"""Maximum number of groups from knowledge files."""
NEAR = 0.4
"""Lowest cosine of related labels."""
_MAX_LETTERS = 1000
_MAX_CANDIDATES = 2 * RELATED  # related labels that are tried, as some may have no items
_COMBINED = 8  # combinations of labels that are searched if terms have several meanings


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
        means = [_average_vectors(loaded_model, column_labels, label_set) for label_set in label_sets]
        points = {position: vector for position, vector in enumerate(means) if vector is not None}
        queries, model = list(points.values()), loaded_model.id
        neighbours = find_nearest_items(collection, queries, k, similarity="dot", exclude=exclude, model=model)
    except InputError:
        return results
    for position, near in zip(points, neighbours, strict=True):
        results[position] = near
    return results


def find_nearest_labels(collection: Collection, label_id: int, k: int = 10) -> dict[int, float]:
    """Return the ids and cosines of the labels nearest to a label; empty if the model lacks it."""
    try:
        loaded_model, column_labels = _load_model_and_labels(collection)
    except InputError:
        return {}
    vector = _average_vectors(loaded_model, column_labels, [label_id])
    if vector is None:
        return {}
    n, vectors = min(k + 8, len(column_labels)), loaded_model.model.label_vectors
    ids, cosines = find_top_k(vector[np.newaxis], vectors, n, similarity="cosine")
    neighbours: dict[int, float] = {}
    for label, cosine in zip(column_labels[ids[0]].tolist(), cosines[0].tolist(), strict=True):
        if label not in (label_id, -1):
            neighbours.setdefault(label, cosine)
    return dict(islice(neighbours.items(), k))


def _load_model_and_labels(collection: Collection) -> tuple[LoadedModel, Int64]:
    model = load_model_in_use(collection)
    with begin_read(collection.engine) as connection:
        return model, model.read_current_labels(connection)


def _average_vectors(loaded_model: LoadedModel, column_labels: Int64, label_ids: Sequence[int]) -> Float32 | None:
    """Return the mean of some labels; labels merged into one of them count too."""
    columns = [matches for label_id in label_ids if len(matches := np.flatnonzero(column_labels == label_id))]
    if not columns:
        return None
    vector: Float32 = np.mean([loaded_model.model.label_vectors[matches].mean(axis=0) for matches in columns], axis=0)
    return vector


class RelatedLabel(NamedTuple):
    """Label with the reason and strength of its relation."""

    id: int
    name: str
    reason: str
    score: float | None


class SearchHit(NamedTuple):
    """Item found for a label; score None if it has the tag."""

    item: int
    label: str
    score: float | None


class ResultGroup(NamedTuple):
    """Items found for the same reason."""

    labels: list[str]
    reason: str
    score: float | None
    hits: list[SearchHit]


class SearchResult(NamedTuple):
    """Interpretation of a query and groups of items: of its labels, by the encoder, then neighbours."""

    query: ParsedQuery
    groups: list[ResultGroup]


def search_items(
    collection: Collection, text: str, k: int = 24, knowledge: LabelKnowledge | None = None, criteria: ItemFilter = ALL
) -> SearchResult:
    """Find items by words: those of labels first, then by what the encoder sees, then neighbours.

    Parameters
    ----------
    collection : Collection
    text : str
        Query of at most 1,000 characters.
    k : int
        Maximum number of items in a group.
    knowledge : LabelKnowledge or None
        Knowledge for words that are not a label, and for parts and other relations.
    criteria : ItemFilter
        Filter that all items pass.

    Raises
    ------
    UnknownLabelError
        A word is not a label, and no encoder of words finds anything; the nearest names are suggested.
    InputError
        The query is empty or has excluded words only, or the filter is invalid.
    """
    require(len(text) <= _MAX_LETTERS, f"the text has {len(text):,} characters; search with at most {_MAX_LETTERS:,}")
    with begin_snapshot(collection.engine) as connection:
        query, names = parse_query(connection, text, knowledge), read_names(connection).labels
        left_out = [_select_decided(query.excluded), *select_others(connection, criteria)]
        left_out += _select_unwanted(collection, query, names)
        # Rejecting one label of a term with several is not a reason against an item.
        single_labels = [label_id for term in query.terms if len(term.labels) == 1 for label_id in term.labels]
        excluded_query = union(*left_out, _select_decided(single_labels, "rejected"))
        excluded = connection.scalars(excluded_query).all()
        related_first = [*_find_kinds(connection, query), *_find_by_knowledge(connection, query, knowledge)]
        related = list(islice(_find_related(collection, query, related_first, names), _MAX_CANDIDATES))
        combinations = list(islice(product(*(term.labels.items() for term in query.terms)), _COMBINED))
        label_sets = [[label_id for label_id, _ in pairs] for pairs in combinations] + [[label.id] for label in related]
        # The first groups hold up to 2 k items, which later groups skip.
        neighbours = find_items_of_labels(collection, label_sets, 3 * k, exclude=excluded)
        by_label = [(pairs[0][1], near) for pairs, near in zip(combinations, neighbours, strict=False) if pairs]
        main_hits = _find_tagged(connection, query.terms, k, union(*left_out)) if query.terms else []
        groups = _make_main_groups(query, k, by_label, main_hits)
        shown_items, half = {hit.item for group in groups for hit in group.hits}, max(1, k // 2)
        free_groups = _find_by_encoder(collection, connection, query, k, {*excluded, *shown_items})
        groups = [group for group in (*groups, *free_groups) if group.hits]
        if query.unknown:
            message = format_unknown_label(query.unknown[0], list(names.values()))
            if not groups and criteria == ALL:
                step = format_step("apply", collection.folder, free_words=True)
                hint = f"; to search in free words, run: {step}" if find_model(collection) is None else ""
                raise UnknownLabelError(message + hint)
            query.notes.append(f"'{query.text}' is not a label" if " " in query.text else message)
        shown_items |= {hit.item for group in free_groups for hit in group.hits}
        n_newest, n_first = len(shown_items) + (RELATED + 1) * half, len(groups)
        is_allowed, related_ids = annotations.c.item_id.not_in(excluded_query), [label.id for label in related]
        tagged = label_store.find_example_items(connection, related_ids, n_newest, is_allowed)
    for label, near in zip(related, neighbours[len(combinations) :], strict=True):
        scores: dict[int, float | None] = {item.id: None for item in tagged[label.id]}
        scores |= {item: score for item, score in near if item not in scores}  # similar ones if few are tagged
        hits = [SearchHit(item, label.name, score) for item, score in scores.items() if item not in shown_items][:half]
        if hits:
            groups.append(ResultGroup([label.name], label.reason, label.score, hits))
            shown_items |= {hit.item for hit in hits}
        if len(groups) == n_first + RELATED:
            break
    return SearchResult(query, groups)


def _select_unwanted(collection: Collection, query: ParsedQuery, names: Mapping[int, str]) -> list[Query]:
    """Return the query for items that the encoder puts nearer to excluded words, in a list.

    Excluded labels count as well where the text is not a label.
    """
    phrases = [*query.excluded_phrases, *(query.excluded.values() if query.unknown else ())]
    unwanted = find_unwanted_items(collection, query.text, phrases) if phrases else []
    if unwanted is None and query.excluded_phrases:
        raise UnknownLabelError(format_unknown_label(query.excluded_phrases[0], list(names.values())))
    effect = "is not a label; what the network sees nearer to it is left out"
    query.notes.extend(f"'{phrase}' {effect}" for phrase in query.excluded_phrases)
    item_ids: BindParameter[list[int]] = bindparam("unwanted", unwanted, expanding=True, literal_execute=True)
    return [select(items.c.id).where(items.c.id.in_(item_ids))] if unwanted else []


def _find_by_encoder(
    collection: Collection, connection: Connection, query: ParsedQuery, k: int, exclude: set[int]
) -> list[ResultGroup]:
    """Return the items near to a text, and for words that are not labels those like the first of them."""
    title, model = query.text, find_usable_model(collection)[0]
    if not query.unknown and model is not None and model.is_zero_shot:  # labels are such texts already
        return []
    hits = [SearchHit(item, title, score) for item, score in find_items_by_text(collection, title, k, exclude)]
    groups = [ResultGroup([title], f"what the network sees is near '{title}'", None, hits)] if hits else []
    if query.unknown and hits:
        with suppress(InputError):  # the model in use has not processed the item
            exclude = exclude | {hit.item for hit in hits}
            near = find_similar_items(collection, hits[0].item, max(1, k // 2), exclude=exclude)
            path = connection.scalar(select(items.c.path).where(items.c.id == hits[0].item))
            alike = [SearchHit(item, title, score) for item, score in near]
            groups.append(ResultGroup([title], f"looks like {path}, the first of these", None, alike))
    return groups


def _make_main_groups(
    query: ParsedQuery, k: int, by_label: Sequence[tuple[str, list[ItemNeighbour]]], tagged: list[SearchHit]
) -> list[ResultGroup]:
    """Return the groups of tagged and of similar items; of a term's labels the best one counts."""
    similar: dict[int, SearchHit] = {}
    hits = [SearchHit(item, label, score) for label, neighbours in by_label for item, score in neighbours]
    for hit in sorted(hits, key=lambda hit: -(hit.score or 0.0)):
        similar.setdefault(hit.item, hit)
    for hit in tagged:
        similar.pop(hit.item, None)
    title, names = " and ".join(map(str, query.terms)), list(query.labels.values())
    return [
        ResultGroup(names, f"tagged {title}", None, tagged),
        ResultGroup(names, f"looks like {title}", None, list(similar.values())[:k]),
    ]


def _find_tagged(connection: Connection, terms: Sequence[QueryTerm], k: int, excluded: SelectBase) -> list[SearchHit]:
    """Return the newest items that have a label of each term and are not excluded."""
    statement = select(items.c.id).where(items.c.state == "present").order_by(items.c.id.desc()).limit(k)
    has_all = and_(*(items.c.id.in_(_select_decided(term.labels)) for term in terms))
    item_ids = list(connection.scalars(statement.where(has_all, items.c.id.not_in(excluded))))
    a = annotations.c
    first = terms[0].labels
    label_query = select(a.item_id, func.min(a.label_id)).where(a.item_id.in_(item_ids), a.label_id.in_(first))
    label_of = dict(connection.execute(label_query.where(a.state == "accepted").group_by(a.item_id)).all())
    return [SearchHit(item, first[label_of[item]], None) for item in item_ids]


def _select_decided(label_ids: Iterable[int], state: str = "accepted") -> Query:
    """Return the query for items with a decision of this state about one of some labels."""
    a = annotations.c
    return select(a.item_id).where(a.label_id.in_(list(label_ids)), a.state == state)


def _find_kinds(connection: Connection, query: ParsedQuery) -> list[RelatedLabel]:
    """Return the child labels of the requested ones."""
    c, requested = labels.c, query.labels
    statement = select(c.id, c.name, c.parent_id).where(c.parent_id.in_(list(requested)), c.merged_into.is_(None))
    rows = connection.execute(statement.order_by(c.name)).all()
    return [RelatedLabel(row[0], row[1], f"'{row[1]}' is a kind of '{requested[row[2]]}'", None) for row in rows]


def _find_by_knowledge(
    connection: Connection, query: ParsedQuery, knowledge: LabelKnowledge | None
) -> list[RelatedLabel]:
    """Return labels that knowledge files relate to the query as parts, kinds or wholes."""
    if knowledge is None:
        return []
    names, (_, finder) = read_names(connection), knowledge.read_matchers(connection)
    links = [link for term in query.terms for link in finder.related(term.text, MAX_KNOWN_RELATED)]
    return [RelatedLabel(names.ids[link.label], link.label, link.reason, link.score) for link in links]


def _find_related(
    collection: Collection, query: ParsedQuery, candidates: Sequence[RelatedLabel], names: Mapping[int, str]
) -> Iterator[RelatedLabel]:
    """Yield related labels: the given ones, then labels near to the query in the model's space."""
    known_ids = set(query.labels) | set(query.excluded)
    for label in candidates:
        if label.id not in known_ids:
            known_ids.add(label.id)
            yield label
    for label_id, name in islice(query.labels.items(), _COMBINED):
        for related_id, cosine in find_nearest_labels(collection, label_id, RELATED).items():
            if related_id not in known_ids and cosine >= NEAR:
                known_ids.add(related_id)
                reason = f"near '{name}' in the model's space (cosine {cosine:.2f})"
                yield RelatedLabel(related_id, names[related_id], reason, cosine)
