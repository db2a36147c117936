"""Details of one label, its nearest neighbours, example items of labels, and completion of names."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import NamedTuple

import numpy as np
from sqlalchemy import Connection, func, select, union_all

from wsabie.collection.annotations.decisions import find_model_in_use
from wsabie.collection.db.database import begin_read, select_in
from wsabie.collection.db.tables import annotations, items, labels, merge_exclusions, synonyms
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.collection.labels.label_list import Label, build_label_query, make_label
from wsabie.collection.learning.suggestions import build_pending_query
from wsabie.collection.merge_proposals.evidence import LabelCount
from wsabie.collection.registry.model_registry import LoadedModel, load_model_in_use
from wsabie.collection.registry.thresholds import PRECISIONS
from wsabie.collection.search.text_search import find_nearest_labels, read_names
from wsabie.core.errors import InputError

MAX_CHILDREN = 500
"""Largest number of listed children, the most frequent."""

_SYNONYM_SHARE = 4  # one in so many places is reserved for synonyms
_QUERIES_AT_ONCE = 100  # one subquery a label: an index gives the newest few, a window function would read all


class LabelNeighbour(NamedTuple):
    """Nearby label in the embedding space of the model in use."""

    label: LabelCount
    cosine: float


@dataclass(frozen=True)
class LabelSynonym:
    """Other name of a label."""

    name: str
    language: str


@dataclass(frozen=True)
class LabelThreshold:
    """Lowest probability whose suggestions reach `precision`; None if there is none."""

    precision: float
    probability: float | None
    is_label_specific: bool


class LabelEvaluation(NamedTuple):
    """Held-out results of a model for one label.

    Attributes
    ----------
    model : int
    is_trained : bool
        The model was trained on the label.
    suggested, right : int
        Number of suggestions for held-out items, and of correct ones.
    limits : list of LabelThreshold
    """

    model: int
    is_trained: bool
    suggested: int
    right: int
    limits: list[LabelThreshold]


class LabelDetails(NamedTuple):
    """Label with its relatives, suggestions and evaluation.

    Attributes
    ----------
    label : Label
    names : list of LabelSynonym
        Synonyms.
    ancestors : list of LabelCount
        Ancestors, nearest first.
    child_labels : list of LabelCount
        Children.
    merge_exclusions : list of LabelCount
        Labels excluded from merging with it.
    waiting : int
        Number of undecided suggestions of the model in use.
    held_out : LabelEvaluation or None
        Evaluation of the model in use; None if no model opens.
    """

    label: Label
    names: list[LabelSynonym]
    ancestors: list[LabelCount]
    child_labels: list[LabelCount]
    merge_exclusions: list[LabelCount]
    waiting: int
    held_out: LabelEvaluation | None


@dataclass(frozen=True, order=True)
class ExampleItem:
    """Item with the hash of its content."""

    id: int
    hash: str | None


def read_label_details(collection: Collection, number: int) -> LabelDetails:
    """Return a label by its id.

    Raises
    ------
    NotFoundError
        The label is missing or was merged.
    """
    try:
        loaded_model = load_model_in_use(collection)
    except InputError:  # reported by the routes and commands that need a model
        loaded_model = None
    with begin_read(collection.engine) as connection:
        label_store.read_label(connection, number)
        row = connection.execute(build_label_query(number)).one()
        s, c = synonyms.c, labels.c
        query = select(s.name, s.language).where(s.label_id == number).order_by(s.language, s.name)
        names = list(starmap(LabelSynonym, connection.execute(query)))
        is_child = (c.parent_id == number) & c.merged_into.is_(None)
        children = connection.execute(select(c.id).where(is_child)).scalars().all()
        model, merge_targets = find_model_in_use(connection), label_store.read_merge_targets(connection)
        equivalent_ids = [number, *(merged_id for merged_id, target in merge_targets.items() if target == number)]
        child_labels = _read_in_order(connection, children)
        waiting = 0
        if model is not None:
            pending = build_pending_query(model, 0, number).subquery()
            waiting = connection.execute(select(func.count()).select_from(pending)).scalar() or 0
        return LabelDetails(
            make_label(row, [synonym.name for synonym in names], len(children)),
            names,
            _read_in_order(connection, label_store.list_ancestors(connection, number)),
            sorted(child_labels, key=lambda label: (-label.items, label.name))[:MAX_CHILDREN],
            _read_in_order(connection, _read_exclusions(connection, equivalent_ids, merge_targets)),
            waiting,
            None if loaded_model is None else _evaluate_label(loaded_model, connection, equivalent_ids),
        )


def find_label_neighbours(collection: Collection, number: int, k: int = 10) -> list[LabelNeighbour]:
    """Return the nearest labels, nearest first; none if no model knows the label.

    Raises
    ------
    NotFoundError
        There is no such label.
    """
    with begin_read(collection.engine) as connection:
        label_store.read_label(connection, number)
    neighbours = find_nearest_labels(collection, number, k)
    with begin_read(collection.engine) as connection:
        labels_by_id = read_labels_by_number(connection, [neighbour for neighbour, _, _ in neighbours])
    return [LabelNeighbour(labels_by_id[label], cosine) for label, _, cosine in neighbours if label in labels_by_id]


def read_labels_by_number(connection: Connection, numbers: Sequence[int]) -> dict[int, LabelCount]:
    """Return labels by id, without merged ones."""
    a, c = annotations.c, labels.c
    counts = select(a.label_id, func.count(a.item_id.distinct())).where(a.state == "accepted").group_by(a.label_id)
    item_counts = dict(select_in(connection, counts, a.label_id, numbers))
    query = select(c.id, c.name, c.language).where(c.merged_into.is_(None))
    rows = select_in(connection, query, c.id, numbers)
    return {label: LabelCount(label, name, language, item_counts.get(label, 0)) for label, name, language in rows}


def find_example_items(connection: Connection, numbers: Iterable[int], k: int) -> dict[int, list[ExampleItem]]:
    """Return a few items of each label, the newest first."""
    label_ids, a, c = list(numbers), annotations.c, items.c
    joined = annotations.join(items, c.id == a.item_id)
    query = select(a.label_id, a.item_id, c.hash).select_from(joined).distinct()
    query = query.where(a.state == "accepted", c.state == "present").order_by(a.item_id.desc()).limit(k)
    examples: dict[int, list[ExampleItem]] = {number: [] for number in label_ids}
    for lo in range(0, len(label_ids), _QUERIES_AT_ONCE):
        queries = (query.where(a.label_id == number).subquery() for number in label_ids[lo : lo + _QUERIES_AT_ONCE])
        for number, *item in connection.execute(union_all(*map(select, queries))):
            examples[number].append(ExampleItem(*item))
    return {number: sorted(label_items, reverse=True) for number, label_items in examples.items()}


def _read_in_order(connection: Connection, numbers: Sequence[int]) -> list[LabelCount]:
    labels_by_id = read_labels_by_number(connection, numbers)
    return [labels_by_id[number] for number in numbers if number in labels_by_id]


def _read_exclusions(connection: Connection, equivalent_ids: Sequence[int], merge_targets: dict[int, int]) -> list[int]:
    """Return the labels that must not be merged with any of these; merged ones give their targets."""
    c, excluded_ids = merge_exclusions.c, set[int]()
    for column in (c.label_a, c.label_b):
        for pair in select_in(connection, select(c.label_a, c.label_b), column, equivalent_ids):
            excluded_ids |= {merge_targets.get(label_id, label_id) for label_id in pair}
    return sorted(excluded_ids - {equivalent_ids[0]})


def _evaluate_label(
    model: LoadedModel, connection: Connection, equivalent_ids: Sequence[int]
) -> LabelEvaluation | None:
    number = equivalent_ids[0]
    try:
        held_out = model.holdout_suggestions
        limits = [model.threshold(precision) for precision in PRECISIONS]
    except InputError:
        return None
    is_of_label = np.isin(held_out.labels, equivalent_ids)
    return LabelEvaluation(
        model.number,
        bool((model.labels_now(connection) == number).any()),
        int(is_of_label.sum()),
        int(held_out.right[is_of_label].sum()),
        [
            LabelThreshold(limit.precision, limit.by_label.get(number, limit.common), number in limit.by_label)
            for limit in limits
        ],
    )


@dataclass(frozen=True)
class LabelCompletion:
    """Completed label; `synonym` is the one that matches (None: its name), `language` that of the match."""

    id: int
    name: str
    synonym: str | None
    language: str
    items: int


def complete_label(collection: Collection, start: str, k: int = 20) -> list[LabelCompletion]:
    """Return labels with a name that begins with `start`, in any language; main names come first.

    A quarter of the places is reserved for matching synonyms, even if many main names match.
    """
    prefix = start.casefold()
    with begin_read(collection.engine) as connection:
        names_index = read_names(connection)
        own_matches = sorted(
            (entry for entry in names_index.labels.items() if entry[1].casefold().startswith(prefix)),
            key=lambda entry: (len(entry[1]), entry[1]),
        )
        matched_ids = {number for number, _ in own_matches}
        synonyms_by_label: dict[int, str] = {}
        synonyms = (name for name in names_index.synonyms if name.casefold().startswith(prefix))
        for name in sorted(synonyms, key=lambda name: (len(name), name)):
            if (number := names_index.synonyms[name]) not in matched_ids:
                synonyms_by_label.setdefault(number, name)
        n_synonyms = max(k - len(own_matches), min(k // _SYNONYM_SHARE, len(synonyms_by_label)))
        matched_names: dict[int, str | None] = {number: None for number, _ in own_matches[: k - n_synonyms]}
        matched_names |= dict(list(synonyms_by_label.items())[:n_synonyms])
        labels = read_labels_by_number(connection, list(matched_names))
    languages = names_index.languages
    return [
        LabelCompletion(
            number, entry.name, synonym, entry.language if synonym is None else languages[synonym], entry.items
        )
        for number, synonym in matched_names.items()
        if (entry := labels.get(number)) is not None
    ]
