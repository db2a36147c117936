"""Plan of the next training: from scratch, from the model in use with the changes since, or none."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from wsabie.collection.annotations import training_examples
from wsabie.collection.db.database import begin_read
from wsabie.collection.folder.collection import Collection
from wsabie.collection.registry import model_registry

MAX_UPDATED_SHARE = 0.2
"""Share of a model's original decisions that may change before the next training starts from scratch."""
_MIN_CHANGES = 20
TrainingMode = Literal["full", "corrections", "nothing"]


class RetrainPlan(NamedTuple):
    """Mode of a training, its reason, and the contents with decisions since the last one."""

    method: TrainingMode
    reason: str
    changed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class RetrainForecast:
    """Mode and reason of the next training, and the number of decisions unknown to the model in use."""

    decisions: int
    method: TrainingMode
    reason: str


def forecast_training(collection: Collection) -> RetrainForecast:
    """Return the mode of the next training; with too few tags it would still be refused."""
    (parent, _), plan = find_parent(collection), plan_training(collection)
    with begin_read(collection.engine) as connection:
        n_decisions = training_examples.count_decisions_since(connection, parent.record.last_entry_id if parent else 0)
    return RetrainForecast(n_decisions, plan.method, plan.reason)


def find_parent(collection: Collection) -> tuple[model_registry.LoadedModel | None, str]:
    """Return the model in use if it learned from decisions, or None and the reason why none did."""
    parent, parent_error = model_registry.find_usable_model(collection)
    if parent is not None and parent.is_zero_shot:
        return None, f"model {parent.id} knows only the names of labels"
    return parent, parent_error


def plan_training(
    collection: Collection, full: bool = False, features: str | None = None, holdout_bound: float = 0.0
) -> RetrainPlan:
    """Choose training from scratch or from the model in use, with the reason.

    Parameters
    ----------
    collection : Collection
    full : bool
        Train from scratch.
    features : str or None
        Fingerprint of the feature extractor; None keeps the current one.
    holdout_bound : float
        Position up to which contents are held out now.
    """
    parent, parent_error = find_parent(collection)
    if full or parent is None:
        return RetrainPlan("full", "as asked" if full else parent_error)
    rejected_reason = _find_rejected(collection, parent.id, features or parent.fingerprint)
    if features not in (None, parent.fingerprint):
        if rejected_reason:
            return RetrainPlan("nothing", rejected_reason)
        return RetrainPlan("full", "the features are not those of the model before")
    if holdout_bound > parent.holdout_bound:
        return RetrainPlan("full", f"too few tags are left on the items that were held out from model {parent.id}")
    facts, model_id = parent.record.facts, parent.id
    max_changes = int(max(_MIN_CHANGES, MAX_UPDATED_SHARE * facts["decisions_of_full"])) - facts["changed_since_full"]
    with begin_read(collection.engine) as connection:
        items = training_examples.find_changed_items(connection, parent.record.last_entry_id, max(max_changes, 0))
        changed = frozenset(training_examples.read_hashes(connection, items or set()))
    if items is not None and not items:
        reason = f"there are no new decisions since model {model_id}; to train anyway, train from scratch"
        return RetrainPlan("nothing", reason)
    if rejected_reason:
        return RetrainPlan("nothing", rejected_reason)
    if items is None:
        return RetrainPlan("full", "many tags changed since the last training from scratch")
    subject = "1 item has" if len(items) == 1 else f"{len(items):,} items have"
    return RetrainPlan("corrections", f"{subject} new decisions since model {model_id}", changed)


def _find_rejected(collection: Collection, parent: int, features: str) -> str:
    """Return why a later model of these features and all decisions is not in use; "" without one."""
    records = model_registry.list_models(collection)
    with begin_read(collection.engine) as connection:
        for record in records:
            is_rejected = record.parent == parent and record.rejection_reason and record.facts["extractor"] == features
            if is_rejected and not training_examples.count_decisions_since(connection, record.last_entry_id):
                fact = f"model {record.id}, which is not in use: {record.rejection_reason}"
                return f"there are no new decisions since {fact}; use that model, or train from scratch"
    return ""
