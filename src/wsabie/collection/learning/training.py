"""Train on decisions: from scratch, or from the model in use with the changes since."""

from shlex import quote
from time import monotonic
from typing import Any, NamedTuple

from sqlalchemy import update

from wsabie.collection.annotations.decisions import find_model_in_use
from wsabie.collection.annotations.training_examples import (
    PERSON_WEIGHT,
    TrainingExamples,
    read_examples,
    require_enough,
)
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import begin_entry
from wsabie.collection.db.tables import models
from wsabie.collection.folder.collection import Collection, lock_models
from wsabie.collection.learning import evaluation
from wsabie.collection.learning.feature_store import (
    FeatureStore,
    choose_feature_extractor,
    extract_missing_features,
    open_feature_store,
    save_feature_extractor,
)
from wsabie.collection.learning.model_fitting import EpochCallback, FitResult, FitSettings, fit_model, update_model
from wsabie.collection.learning.retrain_policy import RetrainPlan, TrainingMode, choose_parent, plan_training
from wsabie.collection.learning.suggestions import InferenceResult, infer_suggestions
from wsabie.collection.registry.item_index import renew_indices
from wsabie.collection.registry.model_registry import (
    LoadedModel,
    load_model,
    make_folder_name,
    register_model,
    remove_unfinished_models,
)
from wsabie.collection.registry.thresholds import save_holdout_suggestions
from wsabie.collection.scan.roots import read_modality
from wsabie.core.errors import InputError
from wsabie.core.executors import Executor
from wsabie.core.progress import SILENT, Progress
from wsabie.evaluation.bootstrap import PairedDifference
from wsabie.io.modalities import PICTURES
from wsabie.models.annotators import Annotator

MOST_EPOCHS = 10_000


class TrainingResult(NamedTuple):
    """Outcome of a training.

    Attributes
    ----------
    model : int
        Id of the new model; with "nothing", of the model in use.
    is_in_use : bool
        True if it is in use now. Otherwise `facts["rejection_reason"]` gives the reason.
    mode : {"full", "corrections", "nothing"}
        Mode of the training.
    reason : str
        Reason for the mode.
    facts : dict
        Training data, seconds and learning curve.
    figures : dict
        Number of held-out "items", MAP, p@1 and p@5 on them "now" and "before" (None without an earlier model), and
        the "difference" of each with its interval.
    inference : InferenceResult or None
        Suggestions of the new model.
    unreadable, changed : int
        Tagged items without features: unreadable, or changed since the scan.
    """

    model: int
    is_in_use: bool
    method: TrainingMode
    reason: str
    facts: dict[str, Any]
    figures: dict[str, Any]
    inference: InferenceResult | None
    unreadable: int = 0
    changed: int = 0


def train_model(
    collection: Collection,
    *,
    by: str,
    full: bool = False,
    features: str | None = None,
    dim: int = 100,
    epochs: int | None = None,
    even_if_worse: bool = False,
    person_weight: float = PERSON_WEIGHT,
    threads: int | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    watch: EpochCallback = lambda _: None,
) -> TrainingResult:
    """Train a model on the decisions and put it into use once it is complete.

    Accepted labels are positives, rejected ones explicit negatives. Decisions about regions are ignored. Tags that a
    model accepted by itself train like imports, but never evaluate. If the command is killed, the model in use stays.
    It also stays if the new model does worse on the held-out items; the new one is then stored but not used.

    Parameters
    ----------
    collection : Collection
    by : str
        Author of the journal entry.
    full : bool
        Train from scratch. Otherwise the model in use is updated, unless too much has changed (`SMALL`).
    features : str or None
        Name of the feature extractor, as for `wsabie train`; None keeps the current one, or takes visual words.
    dim : int
        Dimensions of the space of a model from scratch.
    epochs : int or None
        None lets `Wsabie` choose, or takes 5 for an update; the held-out items choose the best epoch.
    even_if_worse : bool
        Put the model into use even if it does significantly worse than the previous one (`judge_difference`).
    person_weight : float
        Weight of an item with a person's tag, relative to one with imported tags only.
    threads : int or None
    seed : int
    executor : Executor or None
        Executor of the feature extraction.
    progress : Progress
    watch : callable
        Receives the figures of every epoch.

    Raises
    ------
    InputError
        There is too little to learn from (the message says what is missing), no item can be read, or another command is
        training.
    """
    _check_options(person_weight, epochs)
    _check_modality(collection)
    run = FitSettings(epochs, threads, seed, executor, progress, watch)
    with lock_models(collection):
        start = monotonic()
        remove_unfinished_models(collection)
        with begin_read(collection.engine) as connection:
            examples = read_examples(connection, person_weight)
        require_enough(examples, collection.folder)
        parent, parent_error = choose_parent(collection)
        store = _open_store(collection, parent, features, run)
        plan = plan_training(
            collection,
            parent,
            parent_error,
            full=full,
            dictionary=store.fingerprint,
            holdout_bound=examples.holdout_bound,
        )
        if plan.method == "nothing" and parent is not None:
            return TrainingResult(
                parent.number, True, "nothing", plan.reason, parent.record.facts, parent.record.figures, None
            )
        missing = extract_missing_features(collection, store, examples.hashes, executor=executor, progress=progress)
        examples = examples.take([i for i, name in enumerate(examples.hashes) if name in store.places])
        examples = examples._replace(n_absent=examples.n_absent + len(missing.unreadable))
        require_enough(examples, collection.folder, len(missing.changed))
        base = parent if plan.method == "corrections" else None
        fit = (
            fit_model(examples, store, dim, run)
            if base is None
            else update_model(base, examples, store, plan.changed, run)
        )
        _require_probabilities(fit, collection)
        facts = _collect_facts(examples, fit, plan, base, store)
        loaded_model = _save_model(collection, examples, fit, store, parent, plan, facts)
        figures = _evaluate(collection, examples, store, loaded_model, parent, run)
        facts["rejection_reason"] = "" if even_if_worse or parent is None else _explain_decline(figures, parent.number)
        inference = infer_suggestions(
            collection, loaded_model, store, threads=threads, executor=executor, progress=progress
        )
        renew_indices(collection, loaded_model.path, progress)
        facts |= {"curve": fit.curve, "seconds": round(monotonic() - start, 1)}
        _publish(collection, loaded_model.number, plan, facts, figures, by)
    outcome = loaded_model.number, not facts["rejection_reason"], plan.method, plan.reason, facts, figures, inference
    return TrainingResult(*outcome, len(missing.unreadable), len(missing.changed))


def _check_modality(collection: Collection) -> None:
    """Raise if the models of a collection cannot process its modality."""
    modality = read_modality(collection)
    if modality not in (None, PICTURES.name):
        raise InputError(
            f"models of a collection see pictures, and {collection.folder} holds {modality}; to learn from these: "
            f"wsabie train {quote(str(collection.folder))} --model MODEL",
            served=f"models of a collection see pictures, and this one holds {modality}",
        )


def _check_options(person_weight: float, epochs: int | None) -> None:
    if not 0 < person_weight <= 1000:
        raise InputError(f"a person's weight of {person_weight:g} cannot be; give a number above 0, such as 2")
    if epochs is not None and not 1 <= epochs <= MOST_EPOCHS:
        raise InputError(f"{epochs} epochs cannot be; give a number from 1 to {MOST_EPOCHS:,}")


def _require_probabilities(fit: FitResult, collection: Collection) -> None:
    """Raise if the model has no probabilities."""
    if fit.model.calibration_ is None:
        raise InputError(
            f"the held-out items of {collection.folder} carry all labels, so that nothing tells right suggestions from "
            "wrong ones; tag items that lack some of the labels, then train again"
        )


def _open_store(
    collection: Collection, parent: LoadedModel | None, features: str | None, run: FitSettings
) -> FeatureStore:
    """Return the feature store of the model in use, or of another extractor if it is requested."""
    if parent is not None and features in (None, parent.record.facts["features"]):
        store = open_feature_store(collection, parent.extractor)
        if not (store.folder / "extractor").is_dir():
            save_feature_extractor(collection, parent.extractor)
        return store
    extractor = choose_feature_extractor(
        collection, features, seed=run.seed, executor=run.executor, progress=run.progress
    )
    return open_feature_store(collection, extractor)


def _collect_facts(
    examples: TrainingExamples, fit: FitResult, plan: RetrainPlan, base: LoadedModel | None, store: FeatureStore
) -> dict[str, Any]:
    base_facts = {} if base is None else base.record.facts
    return {
        "items": int((~examples.held_out).sum()),
        "labels": len(fit.labels),
        "accepted": int((examples.Y.data > 0).sum()),
        "rejected": int((examples.Y.data < 0).sum()),
        "skipped_regions": examples.regions,
        "holdout_bound": examples.holdout_bound,
        "n_rows": fit.n_rows,
        "epochs": fit.n_epochs,
        "best_epoch": fit.best,
        "features": store.extractor.name,
        "extractor": store.fingerprint,
        "decisions_of_full": base_facts.get("decisions_of_full", int(examples.Y.nnz)),
        "changed_since_full": base_facts.get("changed_since_full", 0) + (len(plan.changed) if base is not None else 0),
    }


def _save_model(
    collection: Collection,
    examples: TrainingExamples,
    fit: FitResult,
    store: FeatureStore,
    parent: LoadedModel | None,
    plan: RetrainPlan,
    facts: dict[str, Any],
) -> LoadedModel:
    """Save the folder, then the row, of a model that is not in use yet."""
    annotator_facts = {"system": "wsabie", "source": collection.folder.name, "fingerprint": None, **facts}
    annotator_facts["label_ids"] = fit.labels.tolist()
    folder = make_folder_name()
    annotator = Annotator(fit.model, store.extractor, None, annotator_facts, store.fingerprint)
    annotator.save(collection.models / folder)
    row = {
        "folder": folder,
        "method": plan.method,
        "parent_id": None if parent is None else parent.number,
        "facts": facts,
    }
    return load_model(
        collection, register_model(collection, row | {"last_entry_id": examples.last_entry_id, "figures": {}})
    )


def _evaluate(
    collection: Collection,
    examples: TrainingExamples,
    store: FeatureStore,
    loaded_model: LoadedModel,
    parent: LoadedModel | None,
    run: FitSettings,
) -> dict[str, Any]:
    """Return the metrics of a model and its predecessor on the same items; save its suggestions."""
    compared_models = [loaded_model] if parent is None else [loaded_model, parent]
    with begin_read(collection.engine) as connection:
        column_labels = [model.labels_now(connection) for model in compared_models]
    holdout = evaluation.make_holdout_set(examples, compared_models, column_labels)
    if not len(holdout.items):  # items held out from the predecessor have no tags any more
        compared_models, column_labels = compared_models[:1], column_labels[:1]
        holdout = evaluation.make_holdout_set(examples, compared_models, column_labels)
    stores = evaluation.open_feature_stores(collection, compared_models[1:]) | {store.fingerprint: store}
    for other_store in stores.values():
        extract_missing_features(collection, other_store, holdout.hashes, executor=run.executor, progress=run.progress)
    holdout, rows = evaluation.select_items_with_features(holdout, compared_models, stores)
    save_holdout_suggestions(
        loaded_model.path, evaluation.score_suggestions(loaded_model, column_labels[0], rows[0], holdout)
    )
    evaluations = [
        evaluation.evaluate_model(model, columns, X, holdout)
        for model, columns, X in zip(compared_models, column_labels, rows, strict=True)
    ]
    figures: dict[str, Any] = {
        "items": evaluations[0].n_rows,
        "labels": len(holdout.labels),
        "now": evaluation.summarize_metrics(evaluations[0]),
    }
    if len(evaluations) == 1:
        return figures | {"before": None, "difference": None}
    difference = {
        name: difference._asdict()
        for name, difference in evaluation.compute_differences(evaluations[0], evaluations[1]).items()
    }
    return figures | {"before": evaluation.summarize_metrics(evaluations[1]), "difference": difference}


def _explain_decline(figures: dict[str, Any], predecessor: int) -> str:
    """Return in what a model does significantly worse than its predecessor, or ""."""
    if figures["difference"] is None:
        return ""
    difference = PairedDifference(**figures["difference"]["MAP"])
    if evaluation.judge_difference(difference, figures["items"]) != "worse":
        return ""
    return (
        f"it does worse than model {predecessor} on {figures['items']:,} held-out items: MAP {difference.mean:+.3f} "
        f"[{difference.low:+.3f}, {difference.high:+.3f}]"
    )


def _publish(
    collection: Collection, number: int, plan: RetrainPlan, facts: dict[str, Any], figures: dict[str, Any], by: str
) -> None:
    """Complete the model's row and put it into use unless it is held back; `undo` reverts the use."""
    message = f"model {number} {'in use' if not facts['rejection_reason'] else 'not put into use'}, "
    message += "from scratch" if plan.method == "full" else "learnt from corrections"
    message += f": {facts['rejection_reason']}" if facts["rejection_reason"] else ""
    with begin_entry(collection.engine, by, "train", message, always=True) as change:
        change.connection.execute(update(models).where(models.c.id == number).values(facts=facts, figures=figures))
        if not facts["rejection_reason"]:
            previous = find_model_in_use(change.connection)
            change.update(models, {n: {"in_use": n == number} for n in (previous, number) if n is not None})
