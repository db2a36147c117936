"""Items in an order: where the values lie, which index gives them so, and how to go on after an item."""

from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, FromClause, Select, and_, bindparam, exists, literal, not_, select, tuple_

from wsabie.catalogue.cursors import Cursor
from wsabie.catalogue.narrowing import Meaning, suggested_rows
from wsabie.catalogue.tables import items, suggestions, views

SORTS = ("path", "taken", "added", "best", "doubt", "probability")
"""By what items are sorted."""


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


def phases(
    meant: Meaning, sort: str, descending: bool, after: Cursor | None, narrowed: Narrowed
) -> list[Select[tuple[Any, Any]]]:
    """Queries for numbers and values of items in order: of those with a value, then of those without.

    Parameters
    ----------
    meant : Meaning
    sort, descending
        As of `items.page`.
    after : Cursor or None
        The last item of the page before.
    narrowed : Narrowed
    """
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
    if sort in ("best", "doubt"):
        seen = and_(v.model_id == meant.model, v.item_id == c.id)
        joined = views.join(items, c.id == v.item_id)
        return _Order(joined, v.item_id, v[sort], [v.model_id == meant.model], not_(exists().where(seen)))
    if sort == "probability":
        joined = suggestions.join(items, c.id == s.item_id)
        return _Order(joined, s.item_id, s.probability, suggested_rows(meant, s), None)
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
