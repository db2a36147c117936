"""Train on decisions: from scratch, or from the model in use with the changes since."""

from collections.abc import Mapping
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import update

from wsabie.collection.annotations import training_examples
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import begin_entry
from wsabie.collection.db.tables import models
from wsabie.collection.folder.collection import Collection, lock_models
from wsabie.collection.learning import evaluation, feature_store, zero_shot
from wsabie.collection.learning.bursts import assign_bursts
from wsabie.collection.learning.model_fitting import EpochCallback, FitResult, FitSettings, fit_model, update_model
from wsabie.collection.learning.retrain_plan import RetrainPlan, TrainingMode, find_parent, plan_training
from wsabie.collection.learning.suggestions import InferenceOptions, InferenceResult, infer_suggestions
from wsabie.collection.registry import model_registry
from wsabie.collection.registry.item_index import renew_indices
from wsabie.collection.registry.thresholds import save_holdout_suggestions
from wsabie.collection.scan.roots import read_modality
from wsabie.core.arrays import Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.core.execution import SILENT, Executor, Progress
from wsabie.core.json_conversion import JsonObject
from wsabie.evaluation.bootstrap import PairedDifference
from wsabie.features.extractor_registry import create_extractor
from wsabie.io.modalities import PICTURES

MAX_EPOCHS = 10_000
MIN_HALF = 20
"""Tagged held-out items in each half for figures by `_Training.cross_fit`."""
MAX_CROSS_FITTED = 1000
"""Tagged held-out items up to which figures are estimated so; with more, the choice of the epoch hardly flatters."""


class TrainingResult(NamedTuple):
    """Outcome of a training.

    Attributes
    ----------
    model : int
        Id of the new model; with "nothing", of the model in use.
    is_in_use : bool
        True if it is in use now. Otherwise `facts["rejection_reason"]` gives the reason.
    method : {"full", "corrections", "nothing"}
    reason : str
        Reason for the method.
    facts : dict
        Training data, seconds and learning curve.
    figures : dict
        Number of held-out "items", MAP, p@1 and p@5 on them as "metrics", "previous_metrics" of the earlier model
        (None without one), and the "difference" of each with its interval; "optimism": how much higher the metrics are
        on the items that chose the epoch (None where `_Training.cross_fit` measures nothing).
    inference : InferenceResult or None
        Suggestions of the new model.
    unreadable, changed : int
        Tagged items without features: unreadable, or changed since the scan.
    """

    model: int
    is_in_use: bool
    method: TrainingMode
    reason: str
    facts: JsonObject
    figures: JsonObject
    inference: InferenceResult | None
    unreadable: int = 0
    changed: int = 0


def train_collection_model(
    collection: Collection,
    *,
    by: str,
    full: bool = False,
    features: str | None = None,
    feature_options: Mapping[str, Any] | None = None,
    dim: int = 100,
    epochs: int | None = None,
    even_if_worse: bool = False,
    person_weight: float = training_examples.PERSON_WEIGHT,
    threads: int | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    watch: EpochCallback = lambda _: None,
) -> TrainingResult:
    """Train a model on the decisions and put it into use once it is complete.

    Accepted labels are positives, rejected ones explicit negatives. Decisions about regions are ignored. Tags that a
    model accepted by itself train like imports, but never evaluate. If the command is killed, the model in use stays.
    It also stays if the new model does worse on the held-out items, or has other features; the new one is then stored
    but not used.

    Parameters
    ----------
    collection : Collection
    by : str
        Author of the journal entry.
    full : bool
        Train from scratch. Otherwise the model in use is updated, unless too much has changed (`MAX_UPDATED_SHARE`).
    features : str or None
        Name of the feature extractor (`create_extractor`); None keeps the current one, or takes "auto".
    feature_options : mapping of str to object, or None
        Options of `create_extractor`: crop, and normalise and output of a network.
    dim : int
        Dimensions of the space of a model from scratch.
    epochs : int or None
        None lets `Wsabie` choose, or takes 5 for an update; the held-out items choose the best epoch.
    even_if_worse : bool
        Put the model into use even if it has other features than the previous one or does significantly worse
        (`judge_difference`).
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
    _check_request(collection, person_weight, epochs)
    run = FitSettings(epochs, seed, feature_store.Resources(executor, threads, progress), watch)
    with lock_models(collection):
        start = monotonic()
        model_registry.remove_unfinished_models(collection)
        examples = _read_examples(collection, person_weight)
        parent, _ = find_parent(collection)
        store = _open_store(collection, parent, features, feature_options or {}, run)
        missing = feature_store.extract_missing_features(collection, store, examples.hashes, run.resources)
        assign_bursts(collection, store)
        examples = _read_examples(collection, person_weight)
        plan = plan_training(collection, full, store.fingerprint, examples.holdout_bound)
        if plan.method == "nothing" and parent is not None:
            facts, figures = parent.record.facts, parent.record.figures
            return TrainingResult(parent.id, True, "nothing", plan.reason, facts, figures, None)
        examples = examples.take([i for i, name in enumerate(examples.hashes) if name in store.positions])
        training_examples.require_enough(examples, collection.folder, len(missing.changed))
        training = _Training(collection, examples, store, parent, plan, run)
        fit = training.fit(dim)
        facts = training.collect_facts(fit)
        model = training.save_model(fit, facts)
        figures = training.evaluate(model, dim)
        facts["rejection_reason"] = "" if even_if_worse or parent is None else training.explain_decline(figures, parent)
        inference = infer_suggestions(collection, model, InferenceOptions(run.resources))
        renew_indices(collection, model.path, progress)
        facts |= {"curve": fit.curve.points, "seconds": round(monotonic() - start, 1)}
        training.publish(model.id, facts, figures, by)
    outcome = model.id, not facts["rejection_reason"], plan.method, plan.reason, facts, figures, inference
    return TrainingResult(*outcome, len(missing.unreadable), len(missing.changed))


class _Training(NamedTuple):
    """Training whose data and mode are known."""

    collection: Collection
    examples: training_examples.TrainingExamples
    store: feature_store.FeatureStore
    parent: model_registry.LoadedModel | None
    plan: RetrainPlan
    run: FitSettings

    @property
    def base(self) -> model_registry.LoadedModel | None:
        """Model to update, if the training does not start from scratch."""
        return self.parent if self.plan.method == "corrections" else None

    def fit(self, dim: int) -> FitResult:
        """Fit or update a model; raise if it has no probabilities."""
        # where names of labels are points among the features, labels also begin there; the held-out items
        # choose
        if self.base is None:
            names = zero_shot.find_model(self.collection)
            is_start = names is not None and names.fingerprint == self.store.fingerprint
            starts = (None, names.model) if names and is_start else (None,)
            fits = [fit_model(self.examples, self.store, dim, self.run, start) for start in starts]
            fit = max(fits, key=lambda fit: fit.curve.best_figure)
        else:
            fit = update_model(self.base, self.examples, self.store, self.plan.changed, self.run)
        if fit.model.calibration_ is None:
            fact = f"the held-out items of {self.collection.folder} carry all labels"
            reason = "so that nothing tells right suggestions from wrong ones"
            raise InputError(f"{fact}, {reason}; tag items that lack some of the labels, then train again")
        return fit

    def collect_facts(self, fit: FitResult) -> JsonObject:
        """Return the training data and settings, without its outcome."""
        examples, base = self.examples, self.base
        base_facts = {} if base is None else base.record.facts
        n_changed = 0 if base is None else len(self.plan.changed)
        return {
            "items": int((~examples.is_holdout).sum()),
            "labels": len(fit.labels),
            "accepted": int((examples.Y.data > 0).sum()),
            "rejected": int((examples.Y.data < 0).sum()),
            "skipped_regions": examples.regions,
            "repeats": sum(leader != name for leader, name in zip(examples.leaders, examples.hashes, strict=True)),
            "holdout_bound": examples.holdout_bound,
            "n_rows": fit.n_rows,
            "epochs": len(fit.model.history_),
            "best_epoch": fit.curve.best,
            "features": self.store.extractor.name,
            "extractor": self.store.fingerprint,
            "decisions_of_full": base_facts.get("decisions_of_full", int(examples.Y.nnz)),
            "changed_since_full": base_facts.get("changed_since_full", 0) + n_changed,
        }

    def save_model(self, fit: FitResult, facts: JsonObject) -> model_registry.LoadedModel:
        """Save the folder, then the row, of a model that is not in use yet."""
        collection, extractor, label_ids = self.collection, self.store.extractor, fit.labels.tolist()
        row: JsonObject = {"method": self.plan.method, "facts": facts, "figures": {}}
        row |= {"parent_id": self.parent and self.parent.id, "last_entry_id": self.examples.last_entry_id}
        model_id = model_registry.save_model(collection, fit.model, extractor, row, label_ids=label_ids)
        return model_registry.load_model(collection, model_id)

    def evaluate(self, model: model_registry.LoadedModel, dim: int) -> JsonObject:
        """Return the metrics of a model and its predecessor on the same items; save its suggestions."""
        # both models were chosen by these items, so their difference is that of the models; `cross_fit`
        # estimates the level
        collection, examples = self.collection, self.examples
        models = [model] if self.parent is None else [model, self.parent]
        with begin_read(collection.engine) as connection:
            column_labels = [model.read_current_labels(connection) for model in models]
        holdout = evaluation.make_holdout_set(examples, models, column_labels)
        if not len(evaluation.find_tagged_rows(holdout)):  # items held out from the predecessor have no tags any more
            models, column_labels = models[:1], column_labels[:1]
            holdout = evaluation.make_holdout_set(examples, models, column_labels)
        stores = evaluation.open_feature_stores(collection, models[1:]) | {self.store.fingerprint: self.store}
        holdout, rows = evaluation.read_features(collection, holdout, models, stores, self.run.resources)
        suggestions = evaluation.score_suggestions(model, column_labels[0], rows[0], holdout)
        save_holdout_suggestions(model.path, suggestions)
        contestants = zip(models, column_labels, rows, strict=True)
        result, *previous = (evaluation.evaluate_model(m.model, labels, X, holdout) for m, labels, X in contestants)
        metrics, level = evaluation.summarize_metrics(result), self.cross_fit(dim, column_labels[0], rows[0], holdout)
        optimism = level and {name: round(metrics[name] - level[name], 6) for name in level}
        figures: JsonObject = {"items": result.n_rows, "labels": len(holdout.labels), "metrics": level or metrics}
        figures["optimism"] = optimism
        if not previous:
            return figures | {"previous_metrics": None, "difference": None}
        differences = evaluation.compute_differences(result, previous[0])
        difference = {name: difference._asdict() for name, difference in differences.items()}
        previous_metrics = evaluation.summarize_metrics(previous[0], optimism)
        return figures | {"previous_metrics": previous_metrics, "difference": difference}

    def cross_fit(
        self, dim: int, column_labels: Int64, X: Matrix, holdout: training_examples.TrainingExamples
    ) -> dict[str, float] | None:
        """Return the metrics of two more fits, each on the half of the bursts that did not choose its epoch."""
        # None with too few held-out items for halves, or with so many that the choice flatters little
        half_of_row = _assign_halves(holdout.leaders)
        n_tagged = np.bincount(half_of_row[evaluation.find_tagged_rows(holdout)], minlength=2)
        if n_tagged.min() < MIN_HALF or n_tagged.sum() > MAX_CROSS_FITTED:
            return None
        examples, evaluations = self.examples, []
        for half in range(2):
            rows = np.flatnonzero(~examples.is_holdout | (_assign_halves(examples.leaders) != half))
            run = self.run._replace(watch=lambda _: None)
            try:
                fit = self._replace(examples=examples.take(rows), run=run).fit(dim)
            except InputError:  # the half has no label that was learned, or nothing but right ones
                return None
            test = half_of_row == half
            evaluations.append(evaluation.evaluate_model(fit.model, column_labels, X[test], holdout.take(test)))
        sizes = [part.n_rows for part in evaluations]
        parts = [evaluation.summarize_metrics(part) for part in evaluations]
        return {name: round(float(np.average([part[name] for part in parts], weights=sizes)), 6) for name in parts[0]}

    def explain_decline(self, figures: JsonObject, parent: model_registry.LoadedModel) -> str:
        """Return why the model does not replace its predecessor: worse, or other features; or ""."""
        if figures["difference"] is not None:
            difference = PairedDifference(**figures["difference"]["MAP"])
            if evaluation.judge_difference(difference, figures["items"]) == "worse":
                fact = f"it does worse than model {parent.id} on {figures['items']:,} held-out items"
                return f"{fact}: MAP {difference.mean:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"
        is_same = self.store.fingerprint == parent.fingerprint
        return "" if is_same else f"its features are not those of model {parent.id}"

    def publish(self, model_id: int, facts: JsonObject, figures: JsonObject, by: str) -> None:
        """Complete the model's row and put it into use unless it is held back; `undo` reverts the use."""
        rejection = facts["rejection_reason"]
        message = f"model {model_id} {'not put into use' if rejection else 'in use'}, "
        message += "from scratch" if self.plan.method == "full" else "learned from corrections"
        message += f": {rejection}" if rejection else ""
        with begin_entry(self.collection.engine, by, "train", message, always=True) as change:
            statement = update(models).where(models.c.id == model_id).values(facts=facts, figures=figures)
            change.connection.execute(statement)
            if not rejection:
                model_registry.put_into_use(change, model_id)


def _assign_halves(leaders: list[str]) -> Int64:
    """Return the half, 0 or 1, of the burst of each item, (n,)."""
    return np.array([int(leader[-1], 16) % 2 for leader in leaders], np.int64)


def _read_examples(collection: Collection, person_weight: float) -> training_examples.TrainingExamples:
    """Return the examples of this moment; raise if there are too few."""
    with begin_read(collection.engine) as connection:
        examples = training_examples.read_examples(connection, person_weight)
    training_examples.require_enough(examples, collection.folder)
    return examples


def _check_request(collection: Collection, person_weight: float, epochs: int | None) -> None:
    """Raise for numbers out of range, or if the models of a collection cannot process its modality."""
    if not 0 < person_weight <= 1000:
        raise InputError(f"a person's weight of {person_weight:g} cannot be; give a number above 0, such as 2")
    if epochs is not None and not 1 <= epochs <= MAX_EPOCHS:
        raise InputError(f"{epochs} epochs cannot be; give a number from 1 to {MAX_EPOCHS:,}")
    modality = read_modality(collection)
    if modality not in (None, PICTURES.name):
        fact = f"models of a collection see pictures, and this one holds {modality}"
        raise InputError(f"{fact}; train a model on its files instead")


def _open_store(
    collection: Collection,
    parent: model_registry.LoadedModel | None,
    features: str | None,
    feature_options: Mapping[str, Any],
    run: FitSettings,
) -> feature_store.FeatureStore:
    """Return the feature store of the model in use, or of another extractor if it is requested."""
    candidate = create_extractor(features, **feature_options, seed=run.seed) if features or feature_options else None
    if parent is not None and (candidate is None or parent.extractor.has_settings_of(candidate)):
        store = feature_store.open_feature_store(collection, parent.extractor)
        if not (store.folder / "extractor").is_dir():
            feature_store.save_feature_extractor(collection, parent.extractor)
        return store
    extractor = feature_store.choose_feature_extractor(collection, candidate, run.seed, run.resources)
    return feature_store.open_feature_store(collection, extractor)
