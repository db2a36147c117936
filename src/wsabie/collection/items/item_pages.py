"""Pages of items: filtered, sorted, and continued from the end of the previous page.

A page begins after the last item of the previous page, not after a number of items, so the thousandth page costs as
much as the first. There are two ways to a page. If many items pass the filter, it is fast to walk the sorted order
until enough pass. If few pass, it is fast to read the items of one clause of the filter and to sort them. The counts of
the clauses, up to `MAX_SORTED`, decide.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal,
    not_,
    select,
    tuple_,
    union_all,
)

from wsabie.collection.annotations.decisions import find_model_in_use, make_no_model_error
from wsabie.collection.db import cursors
from wsabie.collection.db.cursors import Cursor
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.tables import annotations, item_scores, items, labels, suggestions
from wsabie.collection.folder.collection import Collection
from wsabie.collection.items.filters import (
    FilterClause,
    FilterQuery,
    ItemFilter,
    ItemNumberQuery,
    build_clauses,
    build_row_state_condition,
    build_score_condition,
    build_state_condition,
    build_suggestion_condition,
)
from wsabie.collection.labels import label_store
from wsabie.collection.registry.model_registry import load_model_in_use
from wsabie.core.errors import InputError

__all__ = [
    "LARGEST",
    "MAX_COUNTED",
    "MAX_SORTED",
    "ItemFilter",
    "ItemPage",
    "PageItem",
    "read_item_page",
    "read_items_by_number",
]

LARGEST = 1_000
"""Maximum number of items on a page."""
MAX_SORTED = 20_000
"""Largest number of matches of a clause that are sorted; if all clauses have more, the sort order is walked."""
MAX_COUNTED = 5_000
"""Largest number of matches that are counted as well."""
SORTS = ("path", "taken_at", "added_at", "best_probability", "uncertainty", "probability")
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
    return is_suggested and sort in ("uncertainty", "probability")


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
    if sort == "uncertainty" and is_sorted_by_suggestion(filter_query, sort) and selection.numbers is None:
        if position is not None and position.value is None:
            return []
        return [_sort_by_uncertainty(filter_query, descending, position, selection, limit)]
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
    c, v, s = items.c, item_scores.c, suggestions.c
    if is_sorted_by_suggestion(filter_query, sort):
        tables = suggestions.join(items, c.id == s.item_id)
        uncertainty = case((s.probability < 0.5, s.probability), else_=1 - s.probability)
        value = s.probability if sort == "probability" else uncertainty
        return _Order(tables, s.item_id, value, build_suggestion_condition(filter_query, s), None)
    if sort in ("best_probability", "uncertainty"):
        is_scored = and_(v.model_id == filter_query.model, v.item_id == c.id)
        tables = item_scores.join(items, c.id == v.item_id)
        return _Order(
            tables, v.item_id, v[sort], build_score_condition(filter_query, v), not_(exists().where(is_scored))
        )
    if sort == "taken_at":
        return _Order(items, c.id, c.taken_at, [c.taken_at.is_not(None)], c.taken_at.is_(None))
    return _Order(items, c.id, c.id if sort == "added_at" else c.path, [], None)


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
        value = (
            value.concat("") if sort in ("path", "taken_at") else value + 0
        )  # keeps the planner from walking an index
    if position is not None:
        row_key, cursor_key = tuple_(value, order.id), tuple_(literal(position.value), literal(position.id))
        query = query.where(row_key < cursor_key if descending else row_key > cursor_key)
    keys = (value, order.id)
    return query.order_by(*(key.desc() for key in keys) if descending else keys)


def _sort_by_uncertainty(
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


# Built once: checking each id as part of a new query takes longer than the query.
_NUMBERS: BindParameter[Any] = bindparam("numbers", expanding=True)
_ROWS = select(
    items.c.id, items.c.root_id, items.c.path, items.c.hash, items.c.taken_at, items.c.width, items.c.height,
    items.c.state, items.c.added_at,
).where(items.c.id.in_(_NUMBERS))  # fmt: skip
_LABEL_NAMES = (
    select(annotations.c.item_id, labels.c.name)
    .join(labels, labels.c.id == annotations.c.label_id)
    .where(annotations.c.item_id.in_(_NUMBERS), annotations.c.state == "accepted")
    .order_by(labels.c.name)
)
_SCORES = select(item_scores.c.item_id, item_scores.c.best_probability, item_scores.c.uncertainty).where(
    item_scores.c.model_id == bindparam("model"), item_scores.c.item_id.in_(_NUMBERS)
)


class PageItem(NamedTuple):
    """Item of a page.

    Attributes
    ----------
    best_probability, uncertainty : float or None
        Highest probability and highest min(p, 1 - p) by the model in use.
    probability : float or None
        Probability of the requested label if it is suggested.
    labels : tuple of str
        Accepted labels.
    """

    id: int
    root: int
    path: str
    hash: str | None
    taken_at: str | None
    width: int | None
    height: int | None
    state: str
    added_at: str
    best_probability: float | None
    uncertainty: float | None
    labels: tuple[str, ...]
    probability: float | None = None


class ItemPage(NamedTuple):
    """Page of items.

    Attributes
    ----------
    items : tuple of PageItem
    next_cursor : str or None
        Cursor of the next page; None on the last page.
    total : int or None
        Number of items that pass the filter; None if too many to count, and on later pages.
    """

    items: tuple[PageItem, ...]
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
    common = (
        None if criteria.no_tag_fits is None else load_model_in_use(collection).threshold(criteria.no_tag_fits).common
    )
    if not 1 <= limit <= LARGEST:
        raise InputError(f"a page has 1 to {LARGEST:,} items, not {limit}; choose another limit")
    if sort not in SORTS:
        raise InputError(f"items cannot be sorted by {sort!r}; choose one of {', '.join(SORTS)}")
    order = f"-{sort}" if descending else sort
    position = None if cursor is None else cursors.decode_cursor(cursor, order)
    with begin_read(collection.engine) as connection:
        filter_query = _resolve_filter(connection, criteria, sort)._replace(common=common)
        clauses = build_clauses(filter_query)
        selection = _select_narrowest(connection, filter_query, clauses, sort)
        rows: list[tuple[int, Any]] = []
        for query in build_sorted_queries(filter_query, sort, descending, position, selection, limit + 1):
            if len(rows) <= limit:
                rows += [(row[0], row[1]) for row in connection.execute(query.limit(limit + 1 - len(rows)))]
        page_items = _read_page_items(connection, [row[0] for row in rows[:limit]], filter_query.model)
        if filter_query.label is not None and criteria.label_state == "suggested":
            page_items = _add_probabilities(connection, page_items, filter_query)
        total = _count_total(connection, filter_query, clauses, selection) if position is None else None
    next_cursor = None
    if len(rows) > limit:
        number, value = rows[limit - 1]
        next_cursor = cursors.encode_cursor(cursors.Cursor(order, value, number))
    return ItemPage(page_items, next_cursor, total)


def _resolve_filter(connection: Connection, criteria: ItemFilter, sort: str) -> FilterQuery:
    """Return the filter with ids in place of names."""
    model = find_model_in_use(connection)
    is_pending = criteria.label_state == "suggested"
    is_suggested = criteria.label is not None and is_pending
    if model is None and (is_pending or sort in ("best_probability", "uncertainty", "probability")):
        raise make_no_model_error(connection)
    if not is_suggested and (
        sort == "probability" or (criteria.min_probability, criteria.max_probability) != (None, None)
    ):
        raise InputError('probabilities are those of a suggested label; give a label and label_state="suggested"')
    label = None if criteria.label is None else label_store.find_label(connection, criteria.label)
    return FilterQuery(criteria, label, model, connection.dialect.name)


def _select_narrowest(
    connection: Connection, filter_query: FilterQuery, clauses: Sequence[FilterClause], sort: str
) -> FilterConditions:
    """Return the conditions, with the ids of the clause with the fewest matches if they can be sorted."""
    narrowest: FilterClause | None = None
    numbers: list[int] | None = None
    for clause in clauses:
        is_walked = clause.remainder is not None and is_sorted_by_suggestion(filter_query, sort)
        if clause.numbers is not None and not is_walked and numbers != []:
            limit = (MAX_COUNTED if clause.is_scattered else MAX_SORTED) + 1 if numbers is None else len(numbers)
            ids = _read_if_fewer(connection, clause.numbers, limit, probe=not clause.scans_all)
            if ids is not None:
                narrowest, numbers = clause, ids
    conditions = [clause.condition for clause in clauses if clause is not narrowest]
    if narrowest is None or numbers is None:
        return FilterConditions([build_state_condition(filter_query), *conditions], None)
    remainder = [] if narrowest.remainder is None else [narrowest.remainder]
    selection = FilterConditions([build_row_state_condition(filter_query), *conditions, *remainder], numbers)
    return selection if len(numbers) > MAX_COUNTED else FilterConditions([], _read_passing_ids(connection, selection))


def _read_if_fewer(connection: Connection, numbers: ItemNumberQuery, limit: int, *, probe: bool) -> list[int] | None:
    """Return the ids of a query if there are fewer than a limit; `probe` checks an index first."""
    if probe and connection.execute(numbers.offset(limit - 1).limit(1)).first() is not None:
        return None
    ids: Any = connection.execute(numbers.limit(limit)).scalars().all()
    return list(ids) if len(ids) < limit else None


def _read_passing_ids(connection: Connection, selection: FilterConditions) -> list[int]:
    query = restrict_to_items(select(items.c.id).where(*selection.conditions), items.c.id, selection.numbers)
    return list(connection.execute(query).scalars().all())


def _count_total(
    connection: Connection, filter_query: FilterQuery, clauses: Sequence[FilterClause], selection: FilterConditions
) -> int | None:
    """Return the number of items, if it is known or an index knows it."""
    if clauses:
        return None if selection.conditions else len(selection.numbers or ())
    return connection.execute(
        select(func.count()).where(build_state_condition(filter_query)).select_from(items)
    ).scalar()


def read_items_by_number(collection: Collection, numbers: Sequence[int]) -> tuple[PageItem, ...]:
    """Return items by their ids, in this order; unknown ids are left out."""
    with begin_read(collection.engine) as connection:
        return _read_page_items(connection, numbers, find_model_in_use(connection))


def _add_probabilities(
    connection: Connection, page_items: Sequence[PageItem], filter_query: FilterQuery
) -> tuple[PageItem, ...]:
    s = suggestions.c
    query = select(s.item_id, s.probability).where(s.model_id == filter_query.model, s.label_id == filter_query.label)
    rows = connection.execute(query.where(s.item_id.in_([item.id for item in page_items])))
    probabilities = {row[0]: row[1] for row in rows}
    return tuple(item._replace(probability=probabilities.get(item.id)) for item in page_items)


def _read_page_items(connection: Connection, numbers: Sequence[int], model: int | None) -> tuple[PageItem, ...]:
    """Return the items that exist."""
    parameters = {"numbers": list(numbers), "model": model}
    rows = {row[0]: row for row in connection.execute(_ROWS, parameters)}
    names_by_item: dict[int, dict[str, None]] = {}
    for item, name in connection.execute(_LABEL_NAMES, parameters):
        names_by_item.setdefault(item, {})[name] = None
    score_rows = connection.execute(_SCORES, parameters) if model is not None else ()
    scores: dict[int, tuple[float | None, float | None]] = {row[0]: (row[1], row[2]) for row in score_rows}
    page_items = []
    for number in numbers:
        if number in rows:
            best, uncertainty = scores.get(number, (None, None))
            page_items.append(
                PageItem(
                    *rows[number],
                    best_probability=best,
                    uncertainty=uncertainty,
                    labels=tuple(names_by_item.get(number, ())),
                )
            )
    return tuple(page_items)
