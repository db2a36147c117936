"""Database queries and conditions of an item filter."""

import re
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, exists, not_, or_, select, union_all

from wsabie.collection.db.tables import annotations, item_scores, items, suggestions
from wsabie.core.errors import InputError

Condition = ColumnElement[bool]
ItemNumberQuery = Select[tuple[Any]]

_TIME = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d)?)?)?)?)?")
_MOST_WORDS, _LONGEST = 20, 4_000
_MOST_NUMBERS = 1_000


@dataclass(frozen=True)
class ItemFilter:
    """Filter of items; every condition that is set must hold.

    Attributes
    ----------
    state : {"present", "missing", "unreadable"}
    label : str or None
        Name or synonym of a label that has the state `label_state`.
    label_state : {"accepted", "rejected", "suggested"}
        Without a label, "suggested" selects items with any pending suggestion.
    min_probability, max_probability : float or None
        Bounds of the probability of the suggested label.
    unlabelled : bool
        Only items without an accepted label.
    no_tag_fits : float or None
        Only unlabelled items for which the model in use has no suggestion of this precision, estimated on held-out
        items. Items that an older version processed are judged by their highest probability.
    folder : str or None
        A folder and all below it; "" selects everything.
    root : int or None
        Id of the root.
    taken_from, taken_to : str or None
        Days or times such as "2024-05" or "2024-05-01T12:00"; `taken_to` is inclusive.
    words : str or None
        Words that all occur in the path; A to Z match without case.
    numbers : tuple of int or None
        Only these item ids, at most 1,000.
    """

    state: Literal["present", "missing", "unreadable"] = "present"
    label: str | None = None
    label_state: Literal["accepted", "rejected", "suggested"] = "accepted"
    min_probability: float | None = None
    max_probability: float | None = None
    unlabelled: bool = False
    folder: str | None = None
    root: int | None = None
    taken_from: str | None = None
    taken_to: str | None = None
    words: str | None = None
    numbers: tuple[int, ...] | None = None
    no_tag_fits: float | None = None


class FilterQuery(NamedTuple):
    """Filter of items with ids in place of names.

    Attributes
    ----------
    criteria : ItemFilter
    label, model : int or None
        Ids of the requested label and of the model in use.
    dialect : str
        "sqlite" or "postgresql".
    common : float or None
        Lowest probability, for any label, whose suggestions reach the precision `no_tag_fits`.
    """

    criteria: ItemFilter
    label: int | None
    model: int | None
    dialect: str
    common: float | None = None


class FilterClause(NamedTuple):
    """Single requirement of a filter.

    Attributes
    ----------
    numbers : Select or None
        Query for the ids of matching items, served by an index; None if no index can.
    condition : ColumnElement
        Condition on a row of `items`, written so that the planner uses no index for it.
    remainder : ColumnElement or None
        Condition that `numbers` leaves unchecked.
    is_scattered : bool
        True if matches are spread over every sort order, so that a walk finds some quickly.
    scans_all : bool
        True if `numbers` scans all items, so that asking twice doubles the time.
    """

    numbers: ItemNumberQuery | None
    condition: Condition
    remainder: Condition | None = None
    is_scattered: bool = False
    scans_all: bool = False


def build_clauses(filter_query: FilterQuery) -> list[FilterClause]:
    """Return all requirements of a filter except the state of items.

    Raises
    ------
    InputError
        A time is malformed, or there are too many words or numbers.
    """
    criteria, clauses = filter_query.criteria, []
    if filter_query.label is not None:
        clauses.append(
            _filter_suggested(filter_query) if criteria.label_state == "suggested" else _filter_decided(filter_query)
        )
    elif criteria.label_state == "suggested":
        clauses.append(FilterClause(None, _build_pending_condition(filter_query)))
    if criteria.no_tag_fits is not None:
        clauses.append(_filter_uncertain(filter_query))
    if criteria.unlabelled or criteria.no_tag_fits is not None:
        a = annotations.c
        clauses.append(FilterClause(None, not_(exists().where(a.item_id == items.c.id, a.state == "accepted"))))
    if criteria.root is not None:
        clauses.append(FilterClause(None, items.c.root_id == criteria.root))
    if criteria.folder:
        clauses.append(_filter_folder(criteria, criteria.folder.strip("/")[:_LONGEST]))
    if criteria.taken_from is not None or criteria.taken_to is not None:
        clauses.append(_filter_time(criteria))
    if criteria.words is not None and criteria.words.split():
        clauses.append(_filter_words(filter_query, criteria.words.split()))
    if criteria.numbers is not None:
        clauses.append(_filter_ids(criteria.numbers))
    return clauses


def build_state_condition(filter_query: FilterQuery) -> Condition:
    """Return the condition that a row of `items` has the requested state."""
    return items.c.state == filter_query.criteria.state


def build_row_state_condition(filter_query: FilterQuery) -> Condition:
    """Return the condition on the state for known rows; the planner uses no index for it."""
    return items.c.state.concat("") == filter_query.criteria.state


def build_suggestion_condition(filter_query: FilterQuery, s: Any) -> list[Condition]:
    """Return the conditions on columns of `suggestions`: model, label and probability."""
    conditions: list[Condition] = [s.model_id == filter_query.model, s.label_id == filter_query.label]
    if filter_query.criteria.min_probability is not None:
        conditions.append(s.probability >= filter_query.criteria.min_probability)
    if filter_query.criteria.max_probability is not None:
        conditions.append(s.probability <= filter_query.criteria.max_probability)
    return conditions


def build_score_condition(filter_query: FilterQuery, v: Any) -> list[Condition]:
    """Return the conditions on columns of `item_scores`: model in use, and uncertain if requested."""
    conditions: list[Condition] = [v.model_id == filter_query.model]
    if filter_query.criteria.no_tag_fits is not None:
        conditions.append(or_(*_build_uncertain_conditions(filter_query, v)))
    return conditions


def _build_uncertain_conditions(filter_query: FilterQuery, v: Any) -> list[Condition]:
    """Return the condition of an uncertain row and the one for rows of older versions."""
    older_version = (
        v.best_precision.is_(None)
        if filter_query.common is None
        else and_(v.best_precision.is_(None), v.best_probability < filter_query.common)
    )
    return [v.best_precision < filter_query.criteria.no_tag_fits, older_version]


def _filter_decided(filter_query: FilterQuery) -> FilterClause:
    a, state = annotations.c, filter_query.criteria.label_state
    numbers = select(a.item_id).where(a.label_id == filter_query.label, a.state == state)
    has_decision = exists().where(a.item_id == items.c.id, a.label_id == filter_query.label, a.state == state)
    return FilterClause(numbers, has_decision)


def _filter_suggested(filter_query: FilterQuery) -> FilterClause:
    """Return the clause for pending suggestions: the whole item has no decision about the label."""
    a, waiting = annotations.c, suggestions.alias("waiting").c  # the sort order may use the table itself
    has_decision = exists().where(a.item_id == items.c.id, a.label_id == filter_query.label, a.region == "")
    is_suggested = exists().where(waiting.item_id == items.c.id, *build_suggestion_condition(filter_query, waiting))
    numbers = select(suggestions.c.item_id).where(*build_suggestion_condition(filter_query, suggestions.c))
    return FilterClause(numbers, and_(is_suggested, not_(has_decision)), not_(has_decision))


def _build_pending_condition(filter_query: FilterQuery) -> Condition:
    """Return the condition that an item has any pending suggestion."""
    a, s = annotations.c, suggestions.alias("open").c
    has_decision = exists().where(a.item_id == s.item_id, a.label_id == s.label_id, a.region == "")
    return exists().where(s.model_id == filter_query.model, s.item_id == items.c.id, not_(has_decision))


def _filter_uncertain(filter_query: FilterQuery) -> FilterClause:
    """Return the clause for items whose suggestions are all too uncertain."""
    scores = item_scores.alias("unsure").c  # the sort order may use the table itself
    is_uncertain = exists().where(scores.item_id == items.c.id, *build_score_condition(filter_query, scores))
    union = union_all(  # each part has its own index
        *(
            select(item_scores.c.item_id).where(item_scores.c.model_id == filter_query.model, condition)
            for condition in _build_uncertain_conditions(filter_query, item_scores.c)
        )
    )
    return FilterClause(select(union.subquery().c.item_id), is_uncertain, is_scattered=True)


def _filter_folder(criteria: ItemFilter, folder: str) -> FilterClause:
    lower, upper = folder + "/", folder + "0"  # the character after the slash
    numbers = select(items.c.id).where(items.c.state == criteria.state, items.c.path >= lower, items.c.path < upper)
    path = items.c.path.concat("")
    return FilterClause(numbers, and_(path >= lower, path < upper))


def _filter_time(criteria: ItemFilter) -> FilterClause:
    limits = []
    for column in (items.c.taken_at, items.c.taken_at.concat("")):
        bounds: list[Condition] = [column.is_not(None)]
        if criteria.taken_from is not None:
            bounds.append(column >= _parse_time(criteria.taken_from))
        if criteria.taken_to is not None:
            bounds.append(column < _parse_time(criteria.taken_to) + "~")  # "~" sorts after every time with this prefix
        limits.append(and_(*bounds))
    return FilterClause(select(items.c.id).where(items.c.state == criteria.state, limits[0]), limits[1])


def _parse_time(text: str) -> str:
    if not _TIME.fullmatch(text):
        raise InputError(f"{text[:40]!r} is no time; write it such as 2024-05 or 2024-05-01T12:00")
    return text


def _filter_words(filter_query: FilterQuery, words: list[str]) -> FilterClause:
    if len(words) > _MOST_WORDS or sum(map(len, words)) > _LONGEST:
        raise InputError(f"these are too many words; give up to {_MOST_WORDS}")
    patterns = ["%" + re.sub(r"([%_\\])", r"\\\1", word) + "%" for word in words]
    compare = items.c.path.like if filter_query.dialect == "sqlite" else items.c.path.ilike  # LIKE is ILIKE there
    contains_all = and_(*(compare(pattern, escape="\\") for pattern in patterns))
    return FilterClause(
        select(items.c.id).where(build_state_condition(filter_query), contains_all), contains_all, scans_all=True
    )


def _filter_ids(numbers: tuple[int, ...]) -> FilterClause:
    if len(numbers) > _MOST_NUMBERS or any(not 0 < number < 2**63 for number in numbers):
        raise InputError(f"items are asked for by up to {_MOST_NUMBERS:,} numbers from 1 on; ask for fewer at once")
    return FilterClause(select(items.c.id).where(items.c.id.in_(numbers)), items.c.id.in_(numbers))
