"""Sort orders of items: the values, the index that serves them, and how to continue after an item."""

from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    and_,
    bindparam,
    case,
    exists,
    literal,
    not_,
    select,
    tuple_,
    union_all,
)

from wsabie.collection.db.cursors import Cursor
from wsabie.collection.db.tables import items, suggestions, views
from wsabie.collection.items.filters import FilterQuery, build_score_condition, build_suggestion_condition

SORTS = ("path", "taken", "added", "best", "doubt", "probability")
"""Names of the sort orders."""
_ROUNDED = 1e-12


class FilterConditions(NamedTuple):
    """Conditions on items.

    Attributes
    ----------
    conditions : list of ColumnElement
    numbers : list of int or None
        Ids of the items to sort; None walks the items with a value along an index.
    """

    conditions: list[ColumnElement[bool]]
    numbers: list[int] | None


class _Order(NamedTuple):
    """Source of sort values: table, columns, conditions on its rows, and the items without a value."""

    table: FromClause
    id: ColumnElement[Any]
    value: ColumnElement[Any]
    having: list[ColumnElement[bool]]
    without: ColumnElement[bool] | None


def is_sorted_by_suggestion(filter_query: FilterQuery, sort: str) -> bool:
    """Return True if the suggestions of one label define the order; these have an index."""
    is_suggested = filter_query.label is not None and filter_query.criteria.label_state == "suggested"
    return is_suggested and sort in ("doubt", "probability")


def build_sorted_queries(
    filter_query: FilterQuery,
    sort: str,
    descending: bool,
    position: Cursor | None,
    selection: FilterConditions,
    limit: int,
) -> list[Any]:
    """Return queries for ids and values in order: items with a value, then those without.

    Parameters
    ----------
    filter_query : FilterQuery
    sort, descending
        As in `item_pages.read_item_page`.
    position : Cursor or None
        Last item of the previous page.
    selection : FilterConditions
    limit : int
        Maximum number of items from each query.
    """
    if sort == "doubt" and is_sorted_by_suggestion(filter_query, sort) and selection.numbers is None:
        if position is not None and position.value is None:
            return []
        return [_sort_by_doubt(filter_query, descending, position, selection, limit)]
    order = _choose_order(filter_query, sort)
    queries = []
    if position is None or position.value is not None:
        queries.append(_query_with_value(order, descending, position, selection, sort))
    if order.without is not None:
        queries.append(_query_without_value(order.without, descending, position, selection))
    return queries


def restrict_to_items(query: Any, column: ColumnElement[Any], numbers: list[int] | None) -> Any:
    """Return the query for these items only; the ids are literals, as there may be too many to bind."""
    if numbers is None:
        return query
    return query.where(column.in_(bindparam("among", numbers, expanding=True, literal_execute=True)))


def _choose_order(filter_query: FilterQuery, sort: str) -> _Order:
    c, v, s = items.c, views.c, suggestions.c
    if is_sorted_by_suggestion(filter_query, sort):
        tables = suggestions.join(items, c.id == s.item_id)
        doubt = case((s.probability < 0.5, s.probability), else_=1 - s.probability)
        value = s.probability if sort == "probability" else doubt
        return _Order(tables, s.item_id, value, build_suggestion_condition(filter_query, s), None)
    if sort in ("best", "doubt"):
        is_scored = and_(v.model_id == filter_query.model, v.item_id == c.id)
        tables = views.join(items, c.id == v.item_id)
        return _Order(
            tables, v.item_id, v[sort], build_score_condition(filter_query, v), not_(exists().where(is_scored))
        )
    if sort == "taken":
        return _Order(items, c.id, c.taken, [c.taken.is_not(None)], c.taken.is_(None))
    return _Order(items, c.id, c.id if sort == "added" else c.path, [], None)


def _query_with_value(
    order: _Order,
    descending: bool,
    position: Cursor | None,
    selection: FilterConditions,
    sort: str,
) -> Any:
    query = select(order.id, order.value).select_from(order.table).where(*order.having, *selection.conditions)
    query, value = restrict_to_items(query, order.id, selection.numbers), order.value
    if selection.numbers is not None:
        value = value.concat("") if sort in ("path", "taken") else value + 0  # keeps the planner from walking an index
    if position is not None:
        row_key, cursor_key = tuple_(value, order.id), tuple_(literal(position.value), literal(position.id))
        query = query.where(row_key < cursor_key if descending else row_key > cursor_key)
    keys = (value, order.id)
    return query.order_by(*(key.desc() for key in keys) if descending else keys)


def _sort_by_doubt(
    filter_query: FilterQuery, descending: bool, position: Cursor | None, selection: FilterConditions, limit: int
) -> Select[tuple[Any, Any]]:
    """Return the query by min(p, 1 - p) of a label; it walks the index from 0.5 or from both ends."""
    s = suggestions.c
    halves = []
    for is_lower in (True, False):
        # 1 - p is exact: probabilities from 0.5 on give distinct values.
        value = s.probability if is_lower else 1 - s.probability
        # SQLite starts at one bound: after the first page it must be the cursor's.
        probability = s.probability + 0 if descending and position is not None else s.probability
        side = probability < 0.5 if is_lower else probability >= 0.5
        query = select(s.item_id.label("id"), value.label("value"))
        query = query.select_from(suggestions.join(items, items.c.id == s.item_id))
        query = query.where(side, *build_suggestion_condition(filter_query, s), *selection.conditions)
        if position is not None and isinstance(position.value, float):
            row_key, cursor_key = tuple_(value, s.item_id), tuple_(literal(position.value), literal(position.id))
            query = query.where(row_key < cursor_key if descending else row_key > cursor_key)
            start = position.value if is_lower else 1 - position.value  # rounded: only the start of the index walk
            is_ascending = is_lower != descending
            is_past_start = s.probability >= start - _ROUNDED if is_ascending else s.probability <= start + _ROUNDED
            query = query.where(is_past_start)
        sort_key = s.probability.desc() if is_lower == descending else s.probability
        query = query.order_by(sort_key, s.item_id.desc() if descending else s.item_id)
        halves.append(select(query.limit(limit).subquery()))
    union = union_all(*halves).subquery()
    keys = (union.c.value, union.c.id)
    return select(union.c.id, union.c.value).order_by(*(key.desc() for key in keys) if descending else keys)


def _query_without_value(
    without: ColumnElement[bool],
    descending: bool,
    position: Cursor | None,
    selection: FilterConditions,
) -> Any:
    query = select(items.c.id, literal(None)).where(without, *selection.conditions)
    query = restrict_to_items(query, items.c.id, selection.numbers)
    if position is not None and position.value is None:
        query = query.where(items.c.id < position.id if descending else items.c.id > position.id)
    return query.order_by(items.c.id.desc() if descending else items.c.id)
