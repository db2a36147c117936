"""Items in an order: where the values lie, which index gives them so, and how to go on after an item."""

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

from wsabie.catalogue.cursors import Cursor
from wsabie.catalogue.narrowing import Meaning, suggested_rows, views_of
from wsabie.catalogue.tables import items, suggestions, views

SORTS = ("path", "taken", "added", "best", "doubt", "probability")
"""By what items are sorted."""
_ROUNDED = 1e-12


class Narrowed(NamedTuple):
    """What has to hold of items.

    Attributes
    ----------
    conditions : list of ColumnElement
    numbers : list of int or None
        The items to be sorted; None: those with a value are walked along an index.
    """

    conditions: list[ColumnElement[bool]]
    numbers: list[int] | None


class _Order(NamedTuple):
    """Where values lie: a table, its columns, which of its rows count, and which items have no value."""

    table: FromClause
    id: ColumnElement[Any]
    value: ColumnElement[Any]
    having: list[ColumnElement[bool]]
    without: ColumnElement[bool] | None


def by_suggestion(meant: Meaning, sort: str) -> bool:
    """Whether the order is that of the suggestions of one label, which has an index."""
    asked = meant.label is not None and meant.wanted.label_state == "suggested"
    return asked and sort in ("doubt", "probability")


def phases(
    meant: Meaning, sort: str, descending: bool, after: Cursor | None, narrowed: Narrowed, most: int
) -> list[Any]:
    """Queries for numbers and values of items in order: of those with a value, then of those without.

    Parameters
    ----------
    meant : Meaning
    sort, descending
        As of `items.page`.
    after : Cursor or None
        The last item of the page before.
    narrowed : Narrowed
    most : int
        Items that are wanted of each query, at most.
    """
    if sort == "doubt" and by_suggestion(meant, sort) and narrowed.numbers is None:
        if after is not None and after.value is None:
            return []
        return [_from_the_middle(meant, descending, after, narrowed, most)]
    order = _orders(meant, sort)
    found = []
    if after is None or after.value is not None:
        found.append(_with_value(order, descending, after, narrowed, sort))
    if order.without is not None:
        found.append(_without_value(order.without, descending, after, narrowed))
    return found


def among(query: Any, column: ColumnElement[Any], numbers: list[int] | None) -> Any:
    """The query, of these items alone; written into it as they are, for they may be more than a query's parameters."""
    if numbers is None:
        return query
    return query.where(column.in_(bindparam("among", numbers, expanding=True, literal_execute=True)))


def _orders(meant: Meaning, sort: str) -> _Order:
    c, v, s = items.c, views.c, suggestions.c
    if by_suggestion(meant, sort):
        joined = suggestions.join(items, c.id == s.item_id)
        doubt = case((s.probability < 0.5, s.probability), else_=1 - s.probability)
        value = s.probability if sort == "probability" else doubt
        return _Order(joined, s.item_id, value, suggested_rows(meant, s), None)
    if sort in ("best", "doubt"):
        seen = and_(v.model_id == meant.model, v.item_id == c.id)
        joined = views.join(items, c.id == v.item_id)
        return _Order(joined, v.item_id, v[sort], views_of(meant, v), not_(exists().where(seen)))
    if sort == "taken":
        return _Order(items, c.id, c.taken, [c.taken.is_not(None)], c.taken.is_(None))
    return _Order(items, c.id, c.id if sort == "added" else c.path, [], None)


def _with_value(
    order: _Order,
    descending: bool,
    after: Cursor | None,
    narrowed: Narrowed,
    sort: str,
) -> Any:
    query = select(order.id, order.value).select_from(order.table).where(*order.having, *narrowed.conditions)
    query, value = among(query, order.id, narrowed.numbers), order.value
    if narrowed.numbers is not None:
        value = value.concat("") if sort in ("path", "taken") else value + 0  # sorted, not walked
    if after is not None:
        here, there = tuple_(value, order.id), tuple_(literal(after.value), literal(after.id))
        query = query.where(here < there if descending else here > there)
    keys = (value, order.id)
    return query.order_by(*(key.desc() for key in keys) if descending else keys)


def _from_the_middle(
    meant: Meaning, descending: bool, after: Cursor | None, narrowed: Narrowed, most: int
) -> Select[tuple[Any, Any]]:
    """Items by the doubt of one label, min(p, 1 - p): the index is walked from 0.5 to both sides, or from both ends."""
    s = suggestions.c
    halves = []
    for below in (True, False):
        value = s.probability if below else 1 - s.probability  # exact: no two probabilities from 0.5 on give the same
        # SQLite begins at one bound: past the first page it must be the cursor's.
        bounded = s.probability + 0 if descending and after is not None else s.probability
        side = bounded < 0.5 if below else bounded >= 0.5
        query = select(s.item_id.label("id"), value.label("value"))
        query = query.select_from(suggestions.join(items, items.c.id == s.item_id))
        query = query.where(side, *suggested_rows(meant, s), *narrowed.conditions)
        if after is not None and isinstance(after.value, float):
            here, there = tuple_(value, s.item_id), tuple_(literal(after.value), literal(after.id))
            query = query.where(here < there if descending else here > there)
            begin = after.value if below else 1 - after.value  # rounded, so that only the index begins there
            upward = below != descending
            near = s.probability >= begin - _ROUNDED if upward else s.probability <= begin + _ROUNDED
            query = query.where(near)
        walked = s.probability.desc() if below == descending else s.probability
        query = query.order_by(walked, s.item_id.desc() if descending else s.item_id)
        halves.append(select(query.limit(most).subquery()))
    both = union_all(*halves).subquery()
    keys = (both.c.value, both.c.id)
    return select(both.c.id, both.c.value).order_by(*(key.desc() for key in keys) if descending else keys)


def _without_value(
    without: ColumnElement[bool],
    descending: bool,
    after: Cursor | None,
    narrowed: Narrowed,
) -> Any:
    query = select(items.c.id, literal(None)).where(without, *narrowed.conditions)
    query = among(query, items.c.id, narrowed.numbers)
    if after is not None and after.value is None:
        query = query.where(items.c.id < after.id if descending else items.c.id > after.id)
    return query.order_by(items.c.id.desc() if descending else items.c.id)
