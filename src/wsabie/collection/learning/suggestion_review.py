"""Review suggestions: decide about some by label name, or accept all above a probability."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import func, select

from wsabie.collection.annotations.decisions import (
    Decision,
    DecisionResult,
    State,
    find_model_in_use,
    make_no_model_error,
    write_decisions,
)
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import begin_entry, read_rows
from wsabie.collection.db.tables import items
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.collection.learning.suggestions import accept_suggestions, build_pending_query
from wsabie.core.errors import NotFoundError
from wsabie.io.regions import parse_region

_N_LISTED = 3


class ReviewDecision(NamedTuple):
    """Decision that a label, by name, fits an item or region or not; state None withdraws one."""

    item: int
    label: str
    state: State | None
    region: str = ""


def review_items(collection: Collection, decisions: Sequence[ReviewDecision], *, by: str) -> DecisionResult:
    """Decide about items in one journal entry; accepted labels may be new.

    Raises
    ------
    InputError
        An item is unknown, or a label name or region is malformed.
    UnknownLabelError
        A rejected or cleared label is unknown.
    """
    for decision in decisions:
        if decision.region:
            parse_region(decision.region)
    names = {decision.label: label_store.normalise_name(decision.label) for decision in decisions}
    with begin_entry(collection.engine, by, "review", _summarize(decisions)) as change:
        numbers = {decision.item for decision in decisions}
        existing = {row["id"] for row in read_rows(change.connection, items, numbers)}
        if numbers - existing:
            raise NotFoundError(f"there is no item {min(numbers - existing)}")
        accepted = [names[decision.label] for decision in decisions if decision.state == "accepted"]
        label_ids = label_store.ensure_labels(change, accepted)
        for name in {names[decision.label] for decision in decisions} - label_ids.keys():
            label_ids[name] = label_store.find_label(change.connection, name)
        rows = [Decision(d.item, label_ids[names[d.label]], d.state, d.region) for d in decisions]
        counts = write_decisions(change, rows)
    return DecisionResult(change.id if counts.added + counts.changed + counts.removed else None, counts)


def count_suggestions_above(collection: Collection, probability: float, label: str | None = None) -> int:
    """Return the number of pending suggestions of the model in use from a probability on."""
    with begin_read(collection.engine) as connection:
        model = find_model_in_use(connection)
        number = None if label is None else label_store.find_label(connection, label)
        if model is None:
            return 0
        pending = build_pending_query(model, probability, number).subquery()
        return connection.execute(select(func.count()).select_from(pending)).scalar() or 0


def accept_suggestions_above(
    collection: Collection, probability: float, label: str | None = None, *, by: str
) -> DecisionResult:
    """Accept pending suggestions from a probability on, in one journal entry.

    Raises
    ------
    InputError
        There is no model.
    """
    with begin_read(collection.engine) as connection:
        model = find_model_in_use(connection)
        number = None if label is None else label_store.find_label(connection, label)
        if model is None:
            raise make_no_model_error(connection, collection.folder)
    return accept_suggestions(collection, model, probability, label=number, by=by)


def _summarize(decisions: Sequence[ReviewDecision]) -> str:
    """Return the journal line: labels and number of items."""
    signs: dict[State | None, str] = {"accepted": "+", "rejected": "-", None: "?"}
    changes = list(dict.fromkeys(f"{signs[decision.state]}{decision.label}" for decision in decisions))
    n_items = len({decision.item for decision in decisions})
    suffix = f" and {len(changes) - _N_LISTED} more" if len(changes) > _N_LISTED else ""
    return f"{n_items:,} {'item' if n_items == 1 else 'items'}: {', '.join(changes[:_N_LISTED])}{suffix}"
