"""From a collection to a model folder: extract features, hold rows out, train, save; resumable."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.core.errors import InputError
from wsabie.core.executors import Executor
from wsabie.core.progress import Progress
from wsabie.features.base.extraction import extract_to_file, fit_extractor
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.base.table_builder import build_label_table
from wsabie.features.extractor_registry import USUAL, create_extractor, load_extractor
from wsabie.io.alignment import AlignedTable, align_table
from wsabie.io.fingerprints import compute_fingerprint_or_none, compute_row_marks
from wsabie.io.parsers.text_files import format_path
from wsabie.io.recognition import open_source
from wsabie.io.records import FeatureTable, ItemList, ItemSource, Source, count_labels
from wsabie.io.shards.sharded_table import ShardedFeatureTable
from wsabie.models.annotators.annotator import Annotator
from wsabie.models.base.label_model import LabelModel
from wsabie.models.base.validation_monitor import check_metric
from wsabie.models.ensembles.ensemble import Ensemble
from wsabie.models.ensembles.members import group_columns
from wsabie.models.word_vectors.word_vector_ranker import WordVectorRanker
from wsabie.models.wsabie.estimator import Wsabie
from wsabie.models.wsabie.warm_start import reorder_features
from wsabie.storage.atomic_files import lock_folder
from wsabie.storage.model_folder import is_model_folder
from wsabie.storage.rejects import Rejects
from wsabie.training.epoch_stats import EpochStats
from wsabie.training.trainer import Trainer
from wsabie.workflows.collection_splits import require_enough_items, split_collection
from wsabie.workflows.train.shard_preparation import ShardedTrainingData, prepare_shards
from wsabie.workflows.train.work_folder import find_work_folder, hold_work_folder

KEPT = r"terms|features\.parquet|features\.parquet\.parts|checkpoint"
"""Names of the work files beside the model, until it is saved."""


@dataclass(frozen=True)
class TrainingRecipe:
    """Settings of training a model.

    Attributes
    ----------
    source : str
        Name of the data in the model's facts.
    model : Path
        Folder that it is saved to.
    estimator : LabelModel
        Not fitted yet; its threads and seed apply to the other steps too, if it has them.
    description : dict
        Options of the features: describe, augment, and options of `create_extractor`.
    hold_out : float
        Share of the rows (whole groups) that chooses the epoch if there are no validation data.
    metric : str
        Validation metric that chooses the epoch; see `Wsabie.fit`.
    min_rows : int
        Labels with fewer training rows are left out.
    resume : bool
        Continue an interrupted run; False removes its work.
    system : str
        Name of the kind of model in its facts: a key of `wsabie.models.estimator_specs.SYSTEMS`.
    run_options : dict
        seed and threads if the estimator has none.
    start : Annotator or None
        Model whose space is the start of this one.
    """

    source: str
    model: Path
    estimator: LabelModel
    description: dict[str, Any]
    hold_out: float = 0.1
    metric: str = "MAP"
    min_rows: int = 1
    resume: bool = False
    system: str = "wsabie"
    run_options: dict[str, Any] = field(default_factory=dict)
    start: Annotator | None = None

    @property
    def seed(self) -> int:
        """Seed of all random steps."""
        return int(getattr(self.estimator, "seed", self.run_options.get("seed", 0)))

    @property
    def threads(self) -> int | None:
        """Number of threads; None uses every core that this process may use."""
        threads: int | None = getattr(self.estimator, "threads", self.run_options.get("threads"))
        return threads

    @property
    def work(self) -> Path:
        """Folder of unfinished work."""
        return find_work_folder(self.model)


@dataclass(frozen=True)
class SavedModel:
    """A saved model.

    Attributes
    ----------
    facts : dict
        Facts of its data, as saved with the model.
    history : list of EpochStats
    validation : AlignedTable or None
        Separate validation data in the model's features and labels.
    """

    facts: dict[str, Any]
    history: list[EpochStats]
    validation: AlignedTable | None


@dataclass(frozen=True)
class TrainingData:
    """A collection ready for training.

    Attributes
    ----------
    training : FeatureTable
    validation : FeatureTable or None
        With the labels and features of `training`.
    extractor : FeatureExtractor or None
        None where the source is a table.
    aligned_validation : AlignedTable or None
        Separate validation data in the model's features and labels.
    facts : dict
        Facts that a model of these data is saved with.
    """

    training: FeatureTable
    validation: FeatureTable | None
    extractor: FeatureExtractor | None
    aligned_validation: AlignedTable | None
    facts: dict[str, Any]

    @property
    def validation_arguments(self) -> tuple[Any, Any] | None:
        """The `validation` argument of `fit`."""
        return None if self.validation is None else (self.validation.X, self.validation.Y)

    @property
    def training_arguments(self) -> dict[str, Any]:
        """The data arguments of `fit`."""
        return {"X": self.training.X, "Y": self.training.Y, "label_names": self.training.label_names}

    def annotator(self, estimator: Any) -> Annotator:
        """Return the fitted estimator with the feature extractor of new data."""
        training_rows = self.training
        return Annotator(
            estimator,
            self.extractor,
            training_rows.feature_names,
            self.facts,
            training_rows.dictionary,
            compute_row_marks(training_rows),
        )


def train_model(
    source: Source | ShardedFeatureTable,
    valid: Source | None,
    recipe: TrainingRecipe,
    *,
    executor: Executor,
    progress: Progress,
    rejects: Rejects,
    on_epoch: Callable[[EpochStats], None] | None = None,
    trainer: Callable[..., Trainer] | None = None,
) -> SavedModel:
    """Train on a collection and save the model.

    Parameters
    ----------
    source : FeatureTable, ItemSource or ShardedFeatureTable
    valid : FeatureTable, ItemSource or None
        Chooses the epoch; images only if the training data are images. None: `recipe.hold_out` of the rows.
    recipe : TrainingRecipe
    executor : Executor
        Extracts features.
    progress : Progress
    rejects : Rejects
        Lists unreadable images.
    on_epoch : callable or None
        Called with the figures of every epoch.
    trainer : callable or None
        Makes the trainer for shards, as `Wsabie.fit` takes it; None: this process trains.

    Raises
    ------
    InputError
        Data that do not fit each other, too few rows, no label with enough of them, what `Wsabie.fit` refuses, or
        another process that trains this model.
    """
    check_validation_metric(recipe)
    with hold_work_folder(recipe.work, resume=recipe.resume):
        sides: TrainingData | ShardedTrainingData
        if isinstance(source, ShardedFeatureTable):
            validation_rows = None if valid is None else extract_more_rows(None, valid, executor, progress, rejects)
            sides = prepare_shards(source, validation_rows, recipe)
        else:
            sides = prepare_training_data(source, valid, recipe, executor=executor, progress=progress, rejects=rejects)
        estimator: Any = _set_columns(recipe.estimator, sides.training.feature_names, sides.extractor)
        if recipe.start is not None:
            _start_from_model(estimator, recipe.start, sides)
        estimator.fit(
            **sides.training_arguments,
            progress=progress,
            **select_supported_fit_params(
                estimator,
                validation=sides.validation_arguments,
                checkpoint=recipe.work / "checkpoint",
                resume=recipe.resume,
                fingerprint=sides.facts["fingerprint"] or "",
                metric=recipe.metric,
                on_epoch=on_epoch,
                **({} if trainer is None else {"trainer": trainer}),
            ),
        )
        with lock_folder(recipe.model, wait=True):  # a running update would save its older state over this one
            sides.annotator(estimator).save(recipe.model)
    return SavedModel(sides.facts, getattr(estimator, "history_", []), sides.aligned_validation)


def check_validation_metric(recipe: TrainingRecipe, n_labels: int | None = None) -> None:
    """Raise InputError for a metric that cannot choose the epochs of this kind of model."""
    if recipe.metric != "MAP" and not select_supported_fit_params(recipe.estimator, metric=recipe.metric):
        raise InputError(f"this model's epochs are chosen by MAP alone, and not by {recipe.metric!r}; leave it out")
    check_metric(recipe.metric, n_labels, getattr(recipe.estimator, "metrics", ()))


def _start_from_model(estimator: Any, start: Annotator, sides: TrainingData | ShardedTrainingData) -> None:
    """Start an estimator from another model's space, with its features in the order of the data."""
    rows, model = sides.training, start.model
    if not (isinstance(model, Wsabie) and isinstance(estimator, Wsabie)):
        raise InputError(
            f"a model of kind {model.kind} gives no space to begin with; give one of kind wsabie, and train such"
        )
    if sides.extractor is not None or rows.dictionary != start.dictionary:
        raise InputError(
            "the data is described by another dictionary than that of the model to begin with; describe it by that "
            "one first: wsabie features images FOLDER --dictionary MODEL --out FILE"
        )
    if start.feature_names is not None and rows.feature_names is not None:
        model = reorder_features(model, start.feature_names, rows.feature_names)
    estimator.set_params(init=model)


def select_supported_fit_params(estimator: Any, **options: Any) -> dict[str, Any]:
    """Select the options that the estimator's `fit` takes: a baseline has no epochs to choose or save."""
    parameters = signature(estimator.fit).parameters
    takes_any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return {name: value for name, value in options.items() if takes_any_name or name in parameters}


def prepare_training_data(
    source: Source,
    valid: Source | None,
    recipe: TrainingRecipe,
    *,
    executor: Executor,
    progress: Progress,
    rejects: Rejects,
) -> TrainingData:
    """Prepare training: extract features, align or hold out validation rows, drop rare labels.

    Parameters and errors are those of `train_model`.
    """
    source_fingerprint = compute_fingerprint_or_none(source)
    if not isinstance(source, FeatureTable) and source.things != "documents":  # their features are quickly extracted
        _check_labels(source, valid, recipe)
    rows, extractor = _extract_rows(source, recipe, executor, progress, rejects)
    learnable = _drop_labels_without_vector(rows, recipe, rejects)
    aligned = None
    if valid is not None:
        validation_rows = extract_more_rows(extractor, valid, executor, progress, rejects)
        aligned = align_table(
            validation_rows, learnable.label_names, rows.feature_names, rows.X.shape[1], rows.dictionary
        )
    training, validation = _split_sides(learnable, aligned, recipe)
    facts = {
        "system": recipe.system,
        "source": format_path(recipe.source),
        "fingerprint": source_fingerprint if rows is source else compute_fingerprint_or_none(rows),
        **(
            {}
            if isinstance(source, FeatureTable)
            else {"source_fingerprint": source_fingerprint, "describe": _name_features(source, recipe)}
        ),
        **_collect_region_settings(source),
        "rows": len(training),
        "validation_rows": 0 if validation is None else len(validation),
        "labels": len(training.label_names),
        "labels_dropped": len(learnable.label_names) - len(training.label_names),
        "rows_without_labels": int((np.diff((training.Y > 0).tocsr().indptr) == 0).sum()),
        "skipped": len(rejects),
    }
    return TrainingData(training, validation, extractor, aligned, facts)


def _collect_region_settings(source: Source) -> dict[str, str]:
    """Return the settings of marked images, so that other data is read in the same way."""
    settings = (("items", source.kind), ("whole", source.whole)) if isinstance(source, ItemList) else ()
    return {name: value for name, value in settings if value}


def _check_labels(source: ItemSource, valid: Source | None, recipe: TrainingRecipe) -> None:
    """Check the labels, before features are extracted for nothing."""
    labelled_rows = _drop_labels_without_vector(build_label_table(source), recipe, Rejects())
    training, _ = _split_sides(labelled_rows, None, recipe if valid is None else replace(recipe, hold_out=0.0))
    check_validation_metric(recipe, len(training.label_names))
    if hasattr(recipe.estimator, "check_labels"):
        recipe.estimator.check_labels(training.Y, training.label_names)


def _drop_labels_without_vector(rows: FeatureTable, recipe: TrainingRecipe, rejects: Rejects) -> FeatureTable:
    """Drop labels without a word vector, for a model that ranks labels by their words."""
    if not isinstance(recipe.estimator, WordVectorRanker):
        return rows
    matches = recipe.estimator.meant(rows.label_names)
    if not len(matches.places):
        raise InputError(
            f"none of the {len(rows.label_names):,} labels of {recipe.source} has a word vector, such as "
            f"{', '.join(map(repr, matches.missing[:3]))}; give vectors of their words, or --knowledge that names them"
        )
    other_labels = [label for label in dict.fromkeys(recipe.estimator.labels) if label not in set(rows.label_names)]
    for label in (*matches.missing, *(recipe.estimator.meant(other_labels).missing if other_labels else ())):
        rejects.add(label, "label without a word vector")
    return rows.with_labels(matches.places)


def _set_columns(estimator: LabelModel, names: list[str] | None, extractor: Any) -> LabelModel:
    """Set the columns of an ensemble to the kinds of features, where they can be told apart."""
    if not isinstance(estimator, Ensemble) or estimator.by != "columns" or estimator.columns is not None:
        return estimator
    sizes = [part.n_features_ for part in getattr(extractor, "parts", ())]
    blocks = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]) if sizes else group_columns(names or [])
    estimator.set_params(columns=blocks or None)
    return estimator


def _name_features(source: ItemSource, recipe: TrainingRecipe) -> str:
    """Return the name of the features of a source, as on the command line."""
    return str(recipe.description.get("describe", USUAL[source.things]))


def _extract_rows(
    source: Source, recipe: TrainingRecipe, executor: Executor, progress: Progress, rejects: Rejects
) -> tuple[FeatureTable, FeatureExtractor | None]:
    """Return the rows of a source; features are extracted first, resumably, in the work folder."""
    if isinstance(source, FeatureTable):
        return source, None
    return extract_training_rows(source, recipe.description, recipe.work, recipe.seed, executor, progress, rejects)


def extract_training_rows(
    source: ItemSource,
    description: Mapping[str, Any],
    work: Path,
    seed: int,
    executor: Executor,
    progress: Progress,
    rejects: Rejects,
) -> tuple[FeatureTable, FeatureExtractor]:
    """Extract the features of items; unfinished work in the folder `work` is used."""
    folder, options = work / "terms", dict(description)
    augment = options.pop("augment", 0)
    extractor_of_options = create_extractor(options.pop("describe", None), things=source.things, **options, seed=seed)
    extractor_of_options.viewer(augment)  # refuses impossible views before any fitting
    if is_model_folder(folder):
        extractor = load_extractor(folder)
        extractor.refuse_other(extractor_of_options, folder, "go on with the same options, or begin anew (--anew)")
    else:
        extractor = fit_extractor(extractor_of_options, source, executor, progress, rejects)
        extractor.save(folder)
    table = work / "features.parquet"
    extract_to_file(source, extractor, table, executor=executor, progress=progress, rejects=rejects, augment=augment)
    rows = open_source(table)
    if not isinstance(rows, FeatureTable):
        raise TypeError("features are rows")
    return rows, extractor


def extract_more_rows(
    extractor: FeatureExtractor | None, valid: Source, executor: Executor, progress: Progress, rejects: Rejects
) -> FeatureTable:
    """Return the rows of further data; features are extracted as for the training data.

    Raises
    ------
    InputError
        Images where the training data are a table.
    """
    if isinstance(valid, FeatureTable):
        return valid
    if extractor is None:
        raise InputError(
            f"the training data are rows of features and {valid.path} holds {valid.things}; give the same kind"
        )
    return extractor.transform(valid, executor=executor, progress=progress, rejects=rejects)


def _split_sides(
    rows: FeatureTable, valid: AlignedTable | None, recipe: TrainingRecipe
) -> tuple[FeatureTable, FeatureTable | None]:
    """Return training and validation rows, with the labels that have enough training rows."""
    if not rows.label_names:
        raise InputError(f"nothing in {recipe.source} has a label; label the data, or describe them without training")
    training, held_out = _hold_out(rows, recipe) if valid is None else (rows, valid.rows)
    counts = count_labels(training)
    label_ids = np.flatnonzero(counts >= recipe.min_rows) if recipe.min_rows > 1 else np.arange(len(counts))
    if not len(label_ids):
        raise InputError(f"no label has {recipe.min_rows} training rows; lower --min-rows, or give more rows")
    training, validation = (
        training.with_labels(label_ids),
        None if held_out is None else held_out.with_labels(label_ids),
    )
    if valid is None and validation is not None and not count_labels(validation).any():
        return rows.with_labels(label_ids), None  # rows without a known label cannot choose an epoch
    return training, validation


def _hold_out(rows: FeatureTable, recipe: TrainingRecipe) -> tuple[FeatureTable, FeatureTable | None]:
    """Hold out whole groups of rows, which choose the epoch."""
    share = recipe.hold_out
    if share == 0:
        return rows, None
    require_enough_items(len(rows), share, "row")
    sides = split_collection(rows, "auto", share, 0, recipe.seed)
    return rows.take(sides.train), rows.take(sides.valid)
