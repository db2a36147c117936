"""Decide whether the next training starts from scratch or from the model in use."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from sqlalchemy import Connection

from wsabie.collection.annotations.decisions import find_model_in_use
from wsabie.collection.annotations.training_examples import count_decisions_since, find_changed_items, read_hashes
from wsabie.collection.db.database import begin_read
from wsabie.collection.folder.collection import Collection
from wsabie.collection.registry.model_registry import (
    LoadedModel,
    ModelRecord,
    list_models,
    load_model,
    load_model_in_use,
)
from wsabie.core.errors import InputError

SMALL = 0.2
"""Share of a model's original decisions that may change before the next training starts from scratch."""
_MIN_CHANGES = 20

TrainingMode = Literal["full", "corrections", "nothing"]


class RetrainPlan(NamedTuple):
    """Mode of a training, its reason, and the contents with decisions since the last one."""

    method: TrainingMode
    reason: str
    changed: frozenset[str] = frozenset()


class RetrainForecast(NamedTuple):
    """Mode and reason of the next training, and the number of decisions unknown to the model in use."""

    decisions: int
    method: TrainingMode
    reason: str


def forecast_training(collection: Collection) -> RetrainForecast:
    """Return the mode of the next training; with too few tags it would still be refused."""
    parent, parent_error = choose_parent(collection, load_model_in_use)
    plan = plan_training(collection, parent, parent_error)
    with begin_read(collection.engine) as connection:
        return RetrainForecast(
            count_decisions_since(connection, parent.record.last_entry_id if parent else 0), plan.method, plan.reason
        )


def choose_parent(
    collection: Collection, load: Callable[[Collection], LoadedModel] = load_model
) -> tuple[LoadedModel | None, str]:
    """Return the model in use, or None and the reason why it is unusable."""
    with begin_read(collection.engine) as connection:
        number = find_model_in_use(connection)
    if number is None:
        return None, "there is no model in use yet"
    try:
        return load(collection), ""
    except InputError as error:
        return None, str(error)


def plan_training(
    collection: Collection,
    parent: LoadedModel | None,
    parent_error: str,
    *,
    full: bool = False,
    dictionary: str | None = None,
    holdout_bound: float = 0.0,
) -> RetrainPlan:
    """Choose training from scratch or from the model in use, with the reason.

    Parameters
    ----------
    collection : Collection
    parent, parent_error : LoadedModel or None, str
        Results of `choose_parent`.
    full : bool
        Train from scratch.
    dictionary : str or None
        Fingerprint of the feature extractor; None keeps the current one.
    holdout_bound : float
        Position up to which contents are held out now.
    """
    if full or parent is None:
        return RetrainPlan("full", "as asked" if full else parent_error)
    if dictionary not in (None, parent.dictionary):
        return RetrainPlan("full", "items are described in another way than before")
    if holdout_bound > parent.holdout_bound:
        return RetrainPlan("full", f"too few tags are left on the items that model {parent.number} never learnt from")
    facts, number = parent.record.facts, parent.number
    max_changes = int(max(_MIN_CHANGES, SMALL * facts["decisions_of_full"])) - facts["changed_since_full"]
    records = list_models(collection)
    with begin_read(collection.engine) as connection:
        items = find_changed_items(connection, parent.record.last_entry_id, max(max_changes, 0))
        changed = frozenset(read_hashes(connection, items or set()))
        rejected_model = _find_rejected(connection, records, number)
    if items is not None and not items:
        return RetrainPlan("nothing", f"nothing was decided since model {number} learnt; --from-scratch trains anyway")
    if rejected_model is not None:
        return RetrainPlan(
            "nothing",
            f"nothing was decided since model {rejected_model} learnt, which did worse than model {number} "
            "and is not in use; --from-scratch trains from scratch",
        )
    if items is None:
        return RetrainPlan("full", "much was decided since the last training from scratch")
    subject = "1 item was" if len(items) == 1 else f"{len(items):,} items were"
    return RetrainPlan("corrections", f"{subject} decided about since model {number} learnt", changed)


def _find_rejected(connection: Connection, records: list[ModelRecord], parent: int) -> int | None:
    """Return a later model that knows all decisions but did worse than the one in use."""
    for record in records:
        if (
            record.parent == parent
            and record.rejection_reason
            and not count_decisions_since(connection, record.last_entry_id)
        ):
            return record.number
    return None
