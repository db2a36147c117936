"""Pages of items, filtered, sorted and continued from the end of the previous one; details of an item.

A page begins after the last item of the previous page, not after a number of items, so the thousandth page costs as
much as the first. There are two ways to a page. If many items pass the filter, it is fast to walk the sorted order
until enough pass. If few pass, it is fast to read the items of one clause of the filter and to sort them. The counts of
the clauses, up to `MAX_SORTED`, decide.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import sqlalchemy as sa

from wsabie.collection.annotations import annotation_pages, decisions
from wsabie.collection.db import tables
from wsabie.collection.db.cursors import Cursor, SortValue, make_next_cursor, read_position
from wsabie.collection.db.database import begin_read, group_pairs
from wsabie.collection.db.tables import annotations, bursts, item_scores, items, labels, suggestions
from wsabie.collection.folder.collection import Collection
from wsabie.collection.items.filters import FilterClause, FilterQuery, ItemFilter, build_clauses
from wsabie.collection.labels import label_store
from wsabie.core.errors import InputError, NotFoundError, require

MAX_SORTED = 20_000
"""Largest number of matches of a clause that are sorted; if all clauses have more, the sort order is walked."""
MAX_COUNTED = 5_000
"""Largest number of matches that are counted as well."""
SORTS = ("path", "taken_at", "added_at", "best_probability", "uncertainty", "probability")
"""Names of the sort orders."""
MAX_ALIKE = 100
"""Most items that a decision about a burst covers; a longer burst is several."""
_ROUNDED = 1e-12
# Built once: checking each id as part of a new query takes longer than the query.
_ITEM_IDS: sa.BindParameter[list[int]] = sa.bindparam("item_ids", expanding=True)
_SCORED = sa.and_(item_scores.c.item_id == items.c.id, item_scores.c.model_id == sa.bindparam("model"))
_SCORED_ITEMS = items.outerjoin(item_scores, _SCORED)
_SUGGESTED = sa.and_(
    suggestions.c.item_id == items.c.id,
    suggestions.c.model_id == sa.bindparam("model"),
    suggestions.c.label_id == sa.bindparam("label"),
)
_ROWS = (
    sa.select(
        items.c.id, items.c.path, items.c.folder, items.c.hash, items.c.taken_at, items.c.width, items.c.height,
        items.c.state, item_scores.c.best_probability, item_scores.c.uncertainty, suggestions.c.probability,
        bursts.c.leader,
    )
    .select_from(_SCORED_ITEMS.outerjoin(suggestions, _SUGGESTED).outerjoin(bursts, bursts.c.hash == items.c.hash))
    .where(items.c.id.in_(_ITEM_IDS))
)  # fmt: skip
_PRESENT_ITEMS = bursts.join(items, (items.c.hash == bursts.c.hash) & (items.c.state == "present"))
_IS_LED = bursts.c.leader.in_(sa.bindparam("leaders", expanding=True))
_BURST_ITEMS = sa.select(bursts.c.leader, items.c.id).select_from(_PRESENT_ITEMS).where(_IS_LED).order_by(items.c.id)
_ACCEPTED_LABELS = sa.select(annotations.c.item_id, labels.c.name).where(annotations.c.state == "accepted").join(labels)
_LABEL_NAMES = _ACCEPTED_LABELS.where(annotations.c.item_id.in_(_ITEM_IDS)).order_by(labels.c.name)


class FilterConditions(NamedTuple):
    """Conditions on items.

    Attributes
    ----------
    conditions : list of ColumnElement
    item_ids : list of int or None
        Ids of the items to sort; None walks the items with a value along an index.
    """

    conditions: list[tables.Condition]
    item_ids: list[int] | None

    def restrict(self, query: tables.Query, column: tables.Expression) -> tables.Query:
        """Return the query for these items only; the ids are literals, as there may be too many to bind."""
        query = query.where(*self.conditions)
        if self.item_ids is None:
            return query
        return query.where(column.in_(sa.bindparam("among", self.item_ids, expanding=True, literal_execute=True)))


class _Order(NamedTuple):
    """Source of sort values: table, columns, conditions on its rows, and the items without a value."""

    table: sa.FromClause
    id: tables.Expression
    value: tables.Expression
    having: list[tables.Condition]
    without: tables.Condition | None = None


class SortedQueries(NamedTuple):
    """Queries for ids and values in order.

    Attributes
    ----------
    filter_query : FilterQuery
    sort, descending
        As in `read_item_page`.
    position : Cursor or None
        Last item of the previous page.
    selection : FilterConditions
    """

    filter_query: FilterQuery
    sort: str
    descending: bool
    position: Cursor | None
    selection: FilterConditions

    def build(self, limit: int) -> list[tables.Query]:
        """Return the queries: items with a value, then those without; each needs at most `limit` items."""
        has_value = self.position is None or self.position.value is not None
        is_of_label = self.filter_query.suggested_label is not None
        if self.sort == "uncertainty" and is_of_label and self.selection.item_ids is None:
            return [self._sort_by_uncertainty(limit)] if has_value else []
        order = _choose_order(self.filter_query, self.sort)
        queries = [self._query_with_value(order)] if has_value else []
        return queries if order.without is None else [*queries, self._query_without_value(order.without)]

    def _query_with_value(self, order: _Order) -> tables.Query:
        query = sa.select(order.id, order.value).select_from(order.table).where(*order.having)
        query, value = self.selection.restrict(query, order.id), order.value
        if self.selection.item_ids is not None:  # keeps the planner from walking an index
            value = value.concat("") if self.sort in ("path", "taken_at") else value + 0
        return self._sort(self._continue(query, value, order.id), value, order.id)

    def _query_without_value(self, without: tables.Condition) -> tables.Query:
        c, position = items.c, self.position
        query = self.selection.restrict(sa.select(c.id, sa.literal(None)).where(without), c.id)
        if position is not None and position.value is None:
            query = query.where(c.id < position.id if self.descending else c.id > position.id)
        return self._sort(query, c.id)

    def _sort_by_uncertainty(self, limit: int) -> tables.Query:
        """Return the query by min(p, 1 - p) of a label; it walks the index from 0.5 or from both ends."""
        s, position = suggestions.c, self.position
        halves = []
        for is_lower in (True, False):
            # 1 - p is exact: probabilities from 0.5 on give distinct values.
            value = s.probability if is_lower else 1 - s.probability
            # SQLite starts at one bound: after the first page it must be the cursor's.
            probability = s.probability + 0 if self.descending and position is not None else s.probability
            side = probability < 0.5 if is_lower else probability >= 0.5
            query = sa.select(s.item_id.label("id"), value.label("value"))
            query = query.select_from(suggestions.join(items, items.c.id == s.item_id))
            query = query.where(side, *self.filter_query.limit_suggestions(), *self.selection.conditions)
            if position is not None and isinstance(position.value, float):
                query = self._continue(query, value, s.item_id)
                start = position.value if is_lower else 1 - position.value  # rounded: only the start of the index walk
                is_ascending = is_lower != self.descending
                is_past_start = s.probability >= start - _ROUNDED if is_ascending else s.probability <= start + _ROUNDED
                query = query.where(is_past_start)
            sort_key = s.probability.desc() if is_lower == self.descending else s.probability
            query = query.order_by(sort_key, s.item_id.desc() if self.descending else s.item_id)
            halves.append(sa.select(query.limit(limit).subquery()))
        union = sa.union_all(*halves).subquery()
        return self._sort(sa.select(union.c.id, union.c.value), union.c.value, union.c.id)

    def _continue(self, query: tables.Query, value: tables.Expression, item_id: tables.Expression) -> tables.Query:
        """Return the query for rows after the position."""
        if self.position is None:
            return query
        row_key = sa.tuple_(value, item_id)
        cursor_key = sa.tuple_(sa.literal(self.position.value), sa.literal(self.position.id))
        return query.where(row_key < cursor_key if self.descending else row_key > cursor_key)

    def _sort(self, query: tables.Query, *keys: tables.Expression) -> tables.Query:
        return query.order_by(*(key.desc() for key in keys) if self.descending else keys)


def _choose_order(filter_query: FilterQuery, sort: str) -> _Order:
    c, v, s = items.c, item_scores.c, suggestions.c
    if filter_query.suggested_label is not None and sort in ("uncertainty", "probability"):
        uncertainty = sa.case((s.probability < 0.5, s.probability), else_=1 - s.probability)
        value = s.probability if sort == "probability" else uncertainty
        scored_items = suggestions.join(items, c.id == s.item_id)
        return _Order(scored_items, s.item_id, value, filter_query.limit_suggestions())
    if sort in ("best_probability", "uncertainty"):
        is_scored = sa.and_(v.model_id == filter_query.model, v.item_id == c.id)
        scored_items = item_scores.join(items, c.id == v.item_id)
        return _Order(
            scored_items, v.item_id, v[sort], filter_query.limit_scores(), sa.not_(sa.exists().where(is_scored))
        )
    if sort == "taken_at":
        return _Order(items, c.id, c.taken_at, [c.taken_at.is_not(None)], c.taken_at.is_(None))
    return _Order(items, c.id, c.id if sort == "added_at" else c.path, [])


@dataclass(frozen=True)
class ItemSummary:
    """Item of a page.

    Attributes
    ----------
    folder : str
        Parent folder of the path.
    best_probability, uncertainty : float or None
        Highest probability and highest min(p, 1 - p) by the model in use.
    probability : float or None
        Probability of the requested label if it is suggested.
    labels : tuple of str
        Accepted labels.
    burst : tuple of int
        Ids of the present items of its burst, itself included; empty if it is alone.
    """

    id: int
    path: str
    folder: str
    hash: str | None
    taken_at: str | None
    width: int | None
    height: int | None
    state: Literal["present", "missing", "unreadable"]
    best_probability: float | None
    uncertainty: float | None
    probability: float | None
    labels: tuple[str, ...]
    burst: tuple[int, ...]


@dataclass(frozen=True)
class ItemPage:
    """Page of items.

    Attributes
    ----------
    items : tuple of ItemSummary
    next_cursor : str or None
        Cursor of the next page; None on the last page.
    total : int or None
        Number of items that pass the filter; None if too many to count, and on later pages.
    """

    items: tuple[ItemSummary, ...]
    next_cursor: str | None
    total: int | None


def read_item_page(
    collection: Collection,
    criteria: ItemFilter | None = None,
    *,
    sort: str = "path",
    descending: bool = False,
    cursor: str | None = None,
    limit: int = 100,
) -> ItemPage:
    """Return the page of items after a cursor.

    Parameters
    ----------
    collection : Collection
    criteria : ItemFilter or None
        None selects all items that are present.
    sort : {"path", "taken_at", "added_at", "best_probability", "uncertainty", "probability"}
        Items without the value come last in both directions. "probability" is that of the suggested label; so is
        "uncertainty", min(p, 1 - p), if a suggested label is requested.
    descending : bool
    cursor : str or None
        `next_cursor` of the previous page.
    limit : int
        Page size, 1 to 1,000.

    Raises
    ------
    InputError
        The filter, the order or the cursor is invalid.
    UnknownLabelError
        There is no such label.
    """
    criteria = criteria or ItemFilter()
    require(sort in SORTS, f"items cannot be sorted by {sort!r}; choose one of {', '.join(SORTS)}")
    order = f"-{sort}" if descending else sort
    position = read_position(cursor, order, limit, "items")
    with begin_read(collection.engine) as connection:
        filter_query = _resolve_filter(connection, criteria, sort)
        clauses = build_clauses(filter_query)
        selection = _select_narrowest(connection, filter_query, clauses, sort)
        rows: list[tuple[int, SortValue]] = []
        for query in SortedQueries(filter_query, sort, descending, position, selection).build(limit + 1):
            if len(rows) <= limit:
                rows += [(row[0], row[1]) for row in connection.execute(query.limit(limit + 1 - len(rows)))]
        item_ids = [item_id for item_id, _ in rows[:limit]]
        page_items = _read_page_items(connection, item_ids, filter_query.model, filter_query.suggested_label)
        total = None
        if position is None and not clauses:
            query = sa.select(sa.func.count()).where(items.c.state == criteria.state)
            total = connection.scalar(query)
        elif position is None and not selection.conditions:
            total = len(selection.item_ids or ())
    return ItemPage(page_items, make_next_cursor(rows, order, limit), total)


def select_others(connection: sa.Connection, criteria: ItemFilter) -> list[tables.Query]:
    """Return the query for items that fail a filter, in a list; none if the filter requires nothing.

    Raises
    ------
    InputError, UnknownLabelError
        As `read_item_page`.
    """
    conditions = [clause.condition for clause in build_clauses(_resolve_filter(connection, criteria, "path"))]
    return [sa.select(items.c.id).where(sa.and_(*conditions).is_not(sa.true()))] if conditions else []


def _resolve_filter(connection: sa.Connection, criteria: ItemFilter, sort: str) -> FilterQuery:
    """Return the filter with ids in place of names."""
    model = decisions.find_model_in_use(connection)
    is_pending = criteria.label_state == "suggested"
    needs_model = is_pending or criteria.no_tag_fits is not None
    if model is None and (needs_model or sort in ("best_probability", "uncertainty", "probability")):
        raise decisions.make_no_model_error(connection)
    is_limited = (criteria.min_probability, criteria.max_probability) != (None, None)
    if (criteria.label is None or not is_pending) and (sort == "probability" or is_limited):
        raise InputError('only a suggested label has probabilities; give a label and label_state="suggested"')
    label = None if criteria.label is None else label_store.find_label(connection, criteria.label)
    return FilterQuery(criteria, label, model, connection.dialect.name)


def _select_narrowest(
    connection: sa.Connection, filter_query: FilterQuery, clauses: Sequence[FilterClause], sort: str
) -> FilterConditions:
    """Return the conditions, with the ids of the clause with the fewest matches if they can be sorted."""
    narrowest: FilterClause | None = None
    item_ids: list[int] | None = None
    for clause in clauses:
        is_walked = clause.remainder and sort in ("uncertainty", "probability")  # by suggestions
        if clause.item_ids is not None and not is_walked and item_ids != []:
            limit = (MAX_COUNTED if clause.is_scattered else MAX_SORTED) + 1 if item_ids is None else len(item_ids)
            probe = clause.item_ids.offset(limit - 1).limit(1)  # checks an index first
            if clause.scans_all or connection.execute(probe).first() is None:
                ids = list(connection.scalars(clause.item_ids.limit(limit)))
                if len(ids) < limit:
                    narrowest, item_ids = clause, ids
    conditions = [clause.condition for clause in clauses if clause is not narrowest]
    state = filter_query.criteria.state
    if narrowest is None or item_ids is None:
        return FilterConditions([items.c.state == state, *conditions], None)
    has_state = items.c.state.concat("") == state  # the planner uses no index for it
    selection = FilterConditions([has_state, *conditions, *narrowest.remainder], item_ids)
    if len(item_ids) > MAX_COUNTED:
        return selection
    return FilterConditions([], list(connection.scalars(selection.restrict(sa.select(items.c.id), items.c.id))))


def read_items_by_id(collection: Collection, item_ids: Sequence[int]) -> tuple[ItemSummary, ...]:
    """Return items by their ids, in this order; unknown ids are left out."""
    with begin_read(collection.engine) as connection:
        return _read_page_items(connection, item_ids, decisions.find_model_in_use(connection))


def _read_page_items(
    connection: sa.Connection, item_ids: Sequence[int], model: int | None, label: int | None = None
) -> tuple[ItemSummary, ...]:
    """Return the items that exist, with the probability of a suggested label."""
    parameters = {"item_ids": list(item_ids), "model": model, "label": label}
    rows = {row.id: dict(row._mapping) for row in connection.execute(_ROWS, parameters)}
    names = group_pairs((item, name) for item, name in connection.execute(_LABEL_NAMES, parameters))
    labels_by_item = {item: tuple(dict.fromkeys(item_names)) for item, item_names in names.items()}
    leaders = {row.pop("leader") for row in rows.values()} - {None}
    bursts_by_item = _read_bursts(connection, leaders)
    return tuple(
        ItemSummary(**rows[n], labels=labels_by_item.get(n, ()), burst=bursts_by_item.get(n, ()))
        for n in item_ids
        if n in rows
    )


def _read_bursts(connection: sa.Connection, leaders: set[str]) -> dict[int, tuple[int, ...]]:
    """Return the bursts of several items, by item; a long one in parts of `MAX_ALIKE`."""
    rows = connection.execute(_BURST_ITEMS, {"leaders": list(leaders)})
    members = group_pairs((leader, item) for leader, item in rows)
    parts = [ids[at : at + MAX_ALIKE] for ids in members.values() for at in range(0, len(ids), MAX_ALIKE)]
    return {item: tuple(part) for part in parts if len(part) > 1 for item in part}


@dataclass(frozen=True)
class Suggestion:
    """Undecided suggestion of the model in use; `at` is the time of the prediction."""

    label_id: int
    label: str
    score: float
    probability: float
    at: str | None


@dataclass(frozen=True)
class ItemDetails(ItemSummary):
    """Item with its annotations and suggestions; `labels` are those of the whole item.

    Attributes
    ----------
    size : int or None
        Bytes of its file.
    added_at : str
    annotations : tuple of Annotation
        Sorted by label name.
    suggestions : tuple of Suggestion
        Most probable first.
    """

    size: int | None
    added_at: str
    annotations: tuple[annotation_pages.Annotation, ...]
    suggestions: tuple[Suggestion, ...]


def read_item_details(collection: Collection, item_id: int) -> ItemDetails:
    """Return an item by its id.

    Raises
    ------
    NotFoundError
        There is no such item.
    """
    with begin_read(collection.engine) as connection:
        query = sa.select(items.c.size, items.c.added_at).where(items.c.id == item_id)
        row = connection.execute(query).first() if abs(item_id) < 2**63 else None
        if row is None:
            raise NotFoundError(f"there is no item with id {item_id}")
        model = decisions.find_model_in_use(connection)
        (item,) = _read_page_items(connection, [item_id], model)
        tags = annotation_pages.read_item_annotations(connection, item_id)
        accepted = tuple(tag.label for tag in tags if tag.state == "accepted" and not tag.region)
        facts = vars(item) | dict(row._mapping) | {"labels": accepted}
        return ItemDetails(**facts, annotations=tags, suggestions=_read_suggestions(connection, item_id, model))


def _read_suggestions(connection: sa.Connection, item_id: int, model: int | None) -> tuple[Suggestion, ...]:
    s, names = suggestions.c, labels.c
    is_viewed = sa.and_(item_scores.c.model_id == s.model_id, item_scores.c.item_id == s.item_id)
    query = sa.select(names.id, names.name, s.score, s.probability, item_scores.c.scored_at)
    query = query.select_from(suggestions.join(labels).outerjoin(item_scores, is_viewed))
    query = query.where(s.model_id == model, s.item_id == item_id, ~decisions.has_decision())
    return tuple(Suggestion(*row) for row in connection.execute(query.order_by(s.probability.desc(), names.name)))
