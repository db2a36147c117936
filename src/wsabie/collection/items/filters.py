"""Database queries and conditions of an item filter."""

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from sqlalchemy import FromClause, and_, exists, not_, select

from wsabie.collection.annotations.decisions import has_decision
from wsabie.collection.db.journal import check_time
from wsabie.collection.db.tables import Condition, Query, annotations, item_scores, items, suggestions
from wsabie.core.errors import InputError

_MAX_WORDS, _MAX_LETTERS = 20, 4_000
_MAX_IDS = 1_000


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
        items.
    folder : str or None
        A folder and all below it; "" selects everything.
    root : int or None
        Id of the root.
    taken_from, taken_to : str or None
        Days or times such as "2024-05" or "2024-05-01T12:00"; `taken_to` is inclusive.
    words : str or None
        Words that all occur in the path; A to Z match without case.
    ids : tuple of int or None
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
    ids: tuple[int, ...] | None = None
    no_tag_fits: float | None = None


ALL = ItemFilter()
"""Filter that all present items pass."""


class FilterQuery(NamedTuple):
    """Filter of items with ids in place of names.

    Attributes
    ----------
    criteria : ItemFilter
    label, model : int or None
        Ids of the requested label and of the model in use.
    dialect : str
        "sqlite" or "postgresql".
    """

    criteria: ItemFilter
    label: int | None
    model: int | None
    dialect: str

    @property
    def suggested_label(self) -> int | None:
        """Id of the requested label if its suggestions are requested."""
        return self.label if self.criteria.label_state == "suggested" else None

    def limit_suggestions(self, table: FromClause = suggestions) -> list[Condition]:
        """Return the conditions on `suggestions`: model, label and probability."""
        lowest, highest = self.criteria.min_probability, self.criteria.max_probability
        conditions = [table.c.model_id == self.model, table.c.label_id == self.label]
        conditions += [] if lowest is None else [table.c.probability >= lowest]
        return conditions + ([] if highest is None else [table.c.probability <= highest])

    def limit_scores(self, table: FromClause = item_scores) -> list[Condition]:
        """Return the conditions on `item_scores`: model in use, and too uncertain if requested."""
        precision = self.criteria.no_tag_fits
        return [table.c.model_id == self.model, *([] if precision is None else [table.c.best_precision < precision])]


class FilterClause(NamedTuple):
    """Single requirement of a filter.

    Attributes
    ----------
    item_ids : Select or None
        Query for the ids of matching items, served by an index; None if no index can.
    condition : ColumnElement
        Condition on a row of `items`, written so that the planner uses no index for it.
    remainder : tuple of ColumnElement
        Conditions that `item_ids` leaves unchecked.
    is_scattered : bool
        True if matches are spread over every sort order, so that a walk finds some quickly.
    scans_all : bool
        True if `item_ids` scans all items, so that asking twice doubles the time.
    """

    item_ids: Query | None
    condition: Condition
    remainder: tuple[Condition, ...] = ()
    is_scattered: bool = False
    scans_all: bool = False


def build_clauses(filter_query: FilterQuery) -> list[FilterClause]:
    """Return all requirements of a filter except the state of items.

    Raises
    ------
    InputError
        A time is malformed, or there are too many words or ids.
    """
    criteria, clauses = filter_query.criteria, []
    if filter_query.suggested_label is not None:
        clauses.append(_filter_suggested(filter_query))
    elif filter_query.label is not None:
        clauses.append(_filter_decided(filter_query))
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
        clauses.append(_filter_folder(criteria, criteria.folder.strip("/")[:_MAX_LETTERS]))
    if criteria.taken_from is not None or criteria.taken_to is not None:
        clauses.append(_filter_time(criteria))
    if criteria.words is not None and criteria.words.split():
        clauses.append(_filter_words(filter_query, criteria.words.split()))
    if criteria.ids is not None:
        clauses.append(_filter_ids(criteria.ids))
    return clauses


def _filter_decided(filter_query: FilterQuery) -> FilterClause:
    a = annotations.c
    is_requested = (a.label_id == filter_query.label, a.state == filter_query.criteria.label_state)
    item_ids = select(a.item_id).where(*is_requested)
    return FilterClause(item_ids, exists().where(a.item_id == items.c.id, *is_requested))


def _filter_suggested(filter_query: FilterQuery) -> FilterClause:
    """Return the clause for pending suggestions: the whole item has no decision about the label."""
    a, waiting = annotations.c, suggestions.alias("waiting")  # the sort order may use the table itself
    is_decided = exists().where(a.item_id == items.c.id, a.label_id == filter_query.label, a.region == "")
    is_suggested = exists().where(waiting.c.item_id == items.c.id, *filter_query.limit_suggestions(waiting))
    item_ids = select(suggestions.c.item_id).where(*filter_query.limit_suggestions())
    return FilterClause(item_ids, and_(is_suggested, not_(is_decided)), (not_(is_decided),))


def _build_pending_condition(filter_query: FilterQuery) -> Condition:
    """Return the condition that an item has any pending suggestion."""
    s = suggestions.alias("open")
    return exists().where(s.c.model_id == filter_query.model, s.c.item_id == items.c.id, not_(has_decision(s)))


def _filter_uncertain(filter_query: FilterQuery) -> FilterClause:
    """Return the clause for items whose suggestions are all too uncertain."""
    scores = item_scores.alias("unsure")  # the sort order may use the table itself
    is_uncertain = exists().where(scores.c.item_id == items.c.id, *filter_query.limit_scores(scores))
    item_ids = select(item_scores.c.item_id).where(*filter_query.limit_scores())
    return FilterClause(item_ids, is_uncertain, is_scattered=True)


def _filter_folder(criteria: ItemFilter, folder: str) -> FilterClause:
    lower, upper = folder + "/", folder + "0"  # the character after the slash
    item_ids = select(items.c.id).where(items.c.state == criteria.state, items.c.path >= lower, items.c.path < upper)
    path = items.c.path.concat("")
    return FilterClause(item_ids, and_(path >= lower, path < upper))


def _filter_time(criteria: ItemFilter) -> FilterClause:
    lower = "" if criteria.taken_from is None else check_time(criteria.taken_from)
    upper = "" if criteria.taken_to is None else check_time(criteria.taken_to)
    columns = (items.c.taken_at, items.c.taken_at.concat(""))
    limits = [and_(column >= lower, column < upper + "~") for column in columns]  # "~" sorts after every time
    return FilterClause(select(items.c.id).where(items.c.state == criteria.state, limits[0]), limits[1])


def _filter_words(filter_query: FilterQuery, words: list[str]) -> FilterClause:
    if len(words) > _MAX_WORDS or sum(map(len, words)) > _MAX_LETTERS:
        raise InputError(f"too many words; give up to {_MAX_WORDS}")
    patterns = ["%" + re.sub(r"([%_\\])", r"\\\1", word) + "%" for word in words]
    compare = items.c.path.like if filter_query.dialect == "sqlite" else items.c.path.ilike  # LIKE is ILIKE there
    contains_all = and_(*(compare(pattern, escape="\\") for pattern in patterns))
    item_ids = select(items.c.id).where(items.c.state == filter_query.criteria.state, contains_all)
    return FilterClause(item_ids, contains_all, scans_all=True)


def _filter_ids(item_ids: tuple[int, ...]) -> FilterClause:
    if len(item_ids) > _MAX_IDS or any(not 0 < item_id < 2**63 for item_id in item_ids):
        raise InputError(f"a request names up to {_MAX_IDS:,} item ids, each 1 or more; ask for fewer at once")
    return FilterClause(select(items.c.id).where(items.c.id.in_(item_ids)), items.c.id.in_(item_ids))
