"""From data to a model folder: extract features, hold rows out, train, save; resumable."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from wsabie.core.arrays import Int64
from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.features.base.extraction import extract_to_file, fit_extractor
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.base.item_features import build_label_table
from wsabie.features.base.sampling import WorkContext
from wsabie.features.extractor_choice import AUTO
from wsabie.features.extractor_registry import create_extractor, load_extractor
from wsabie.io.alignment import AlignedTable, align_table
from wsabie.io.data_sources import open_source
from wsabie.io.fingerprints import compute_fingerprint_or_none, compute_row_hashes, compute_shard_row_hashes
from wsabie.io.parsers.text_files import format_path
from wsabie.io.records import FeatureTable, ItemList, ItemSource, Source, count_labels, get_groups
from wsabie.io.shards.sharded_table import LabelStatistics, ShardedFeatureTable
from wsabie.models.annotators import Annotator
from wsabie.models.base.label_model import LabelModel
from wsabie.models.base.trained_model import FitOptions
from wsabie.models.base.validation_monitor import MAX_ROWS, check_metric
from wsabie.models.ensemble import Ensemble, group_columns
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.joint_embedding.warm_start import reorder_features
from wsabie.models.word_vector_ranker import WordVectorRanker
from wsabie.storage.atomic_files import lock_folder
from wsabie.storage.model_folder import is_model_folder
from wsabie.storage.rejects import Rejects
from wsabie.training.epoch_stats import EpochStats
from wsabie.training.trainer import Trainer
from wsabie.workflows.data_splits import find_centred_views, group_bursts, require_enough_items, split_rows
from wsabie.workflows.work_folder import find_work_folder, hold_work_folder

Rows = TypeVar("Rows", FeatureTable, ShardedFeatureTable)
WORK_FILES = r"extractor|features\.parquet|features\.parquet\.parts|checkpoint"
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
    feature_options : dict
        "features", "augment", and options of `create_extractor`.
    holdout_share : float
        Share of the rows (whole groups and bursts) that chooses the epoch if there are no validation data.
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
    feature_options: JsonObject
    holdout_share: float = 0.1
    metric: str = "MAP"
    min_rows: int = 1
    resume: bool = False
    system: str = "wsabie"
    run_options: JsonObject = field(default_factory=dict)
    start: Annotator | None = None

    @property
    def seed(self) -> int:
        """Seed of all random steps."""
        return int(getattr(self.estimator, "seed", self.run_options.get("seed") or 0))

    @property
    def threads(self) -> int | None:
        """Number of threads; None uses every core that this process may use."""
        return getattr(self.estimator, "threads", self.run_options.get("threads"))

    @property
    def work(self) -> Path:
        """Folder of unfinished work."""
        return find_work_folder(self.model)


@dataclass(frozen=True)
class TrainingOutcome:
    """Outcome of training a model, which is saved.

    Attributes
    ----------
    facts : dict
        Facts of its data, as saved with the model.
    history : list of EpochStats
    validation : AlignedTable or None
        Separate validation data in the model's features and labels.
    """

    facts: JsonObject
    history: list[EpochStats]
    validation: AlignedTable | None = None


@dataclass(frozen=True)
class PreparedData(Generic[Rows]):
    """Data ready for training; of shards memory holds no rows but the validation rows in use.

    Attributes
    ----------
    training : FeatureTable or ShardedFeatureTable
    validation : FeatureTable or None
        With the labels and features of `training`.
    extractor : FeatureExtractor or None
        None where the source is a table.
    aligned_validation : AlignedTable or None
        Separate validation data in the model's features and labels.
    facts : dict
        Facts that a model of these data is saved with.
    """

    training: Rows
    validation: FeatureTable | None
    extractor: FeatureExtractor | None
    aligned_validation: AlignedTable | None
    facts: JsonObject

    def fit(self, estimator: Any, **options: Any) -> Any:
        """Fit an estimator, with the options that its `fit` takes."""
        rows, validation = self.training, self.validation
        if validation is not None:
            options["validation"] = validation.X, validation.Y
        if isinstance(rows, FeatureTable):
            options["groups"] = get_groups(rows, range(len(rows)))
        options = select_supported_fit_params(estimator, **options)
        if isinstance(rows, ShardedFeatureTable):
            return estimator.fit(rows, **options)
        return estimator.fit(rows.X, rows.Y, label_names=rows.label_names, **options)

    def annotator(self, estimator: Any) -> Annotator:
        """Return the fitted estimator with the feature extractor of new data."""
        rows = self.training
        hashes = compute_shard_row_hashes(rows) if isinstance(rows, ShardedFeatureTable) else compute_row_hashes(rows)
        return Annotator(estimator, self.extractor, rows.feature_names, self.facts, rows.extractor_fingerprint, hashes)


def train_model(
    source: Source | ShardedFeatureTable,
    valid: Source | None,
    recipe: TrainingRecipe,
    context: WorkContext,
    *,
    on_epoch: Callable[[EpochStats], None] | None = None,
    trainer: Callable[..., Trainer] | None = None,
) -> TrainingOutcome:
    """Train on data and save the model.

    Parameters
    ----------
    source : FeatureTable, ItemSource or ShardedFeatureTable
    valid : FeatureTable, ItemSource or None
        Chooses the epoch; images only if the training data are images. None: `recipe.holdout_share` of the rows.
    recipe : TrainingRecipe
    context : WorkContext
        Extracts features, and lists unreadable images.
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
        data = prepare_training_data(source, valid, recipe, context)
        estimator: Any = _set_columns(recipe.estimator, data.training.feature_names, data.extractor)
        if recipe.start is not None:
            _start_from_model(estimator, recipe.start, data)
        data.fit(
            estimator,
            progress=context.progress,
            checkpoint=recipe.work / "checkpoint",
            resume=recipe.resume,
            fingerprint=data.facts["fingerprint"] or "",
            metric=recipe.metric,
            on_epoch=on_epoch,
            **({} if trainer is None else {"trainer": trainer}),
        )
        with lock_folder(recipe.model, wait=True):  # a running update would save its older state over this one
            data.annotator(estimator).save(recipe.model)
    return TrainingOutcome(data.facts, getattr(estimator, "history_", []), data.aligned_validation)


def check_validation_metric(recipe: TrainingRecipe, n_labels: int | None = None) -> None:
    """Raise InputError for a metric that cannot choose the epochs of this kind of model."""
    if recipe.metric != "MAP" and not select_supported_fit_params(recipe.estimator, metric=recipe.metric):
        raise InputError(f"this model's epochs are chosen by MAP alone, and not by {recipe.metric!r}; leave it out")
    check_metric(recipe.metric, n_labels, getattr(recipe.estimator, "metrics", ()))


def _start_from_model(estimator: Any, start: Annotator, data: PreparedData[Any]) -> None:
    """Start an estimator from another model's space, with its features in the order of the data."""
    rows, model = data.training, start.model
    if not (isinstance(model, Wsabie) and isinstance(estimator, Wsabie)):
        fact = f"a model of kind {model.kind} gives no space to begin with"
        raise InputError(f"{fact}; start from a model of kind wsabie, and train one of this kind")
    if data.extractor is not None or rows.extractor_fingerprint != start.extractor_fingerprint:
        fact = "the features come from another extractor than those of the model to begin with"
        step = "`features.images(FOLDER, extractor=MODEL, out=FILE)`"
        raise InputError(f"{fact}; extract them by that one first: {step}")
    if start.feature_names is not None and rows.feature_names is not None:
        model = reorder_features(model, start.feature_names, rows.feature_names)
    estimator.set_params(init_model=model)


def select_supported_fit_params(estimator: Any, **options: Any) -> JsonObject:
    """Select the options that the estimator's `fit` takes: a baseline has no epochs to choose or save."""
    parameters = signature(estimator.fit).parameters
    names = set(parameters)
    for parameter in parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:  # any name, or those of a TypedDict
            names |= options.keys() if parameter.annotation is Any else FitOptions.__annotations__.keys()
    return {name: value for name, value in options.items() if name in names}


def prepare_training_data(
    source: Source | ShardedFeatureTable, valid: Source | None, recipe: TrainingRecipe, context: WorkContext
) -> PreparedData[Any]:
    """Prepare training: extract features, align or hold out validation rows, drop rare labels.

    Parameters and errors are those of `train_model`.
    """
    if isinstance(source, ShardedFeatureTable):
        validation_rows = None if valid is None else extract_more_rows(None, valid, context)
        return _prepare_shards(source, validation_rows, recipe)
    source_fingerprint = compute_fingerprint_or_none(source)
    extractor: FeatureExtractor | None = None
    source_facts: JsonObject = {}
    if isinstance(source, FeatureTable):
        rows = source
    else:
        if source.modality != "documents":  # their features are quickly extracted
            _check_labels(source, valid, recipe)
        rows, extractor = extract_training_rows(source, recipe.feature_options, recipe.work, recipe.seed, context)
        names = recipe.feature_options.get("features", AUTO)
        extractor_name = extractor.identity()["features"] if names == AUTO else names
        source_facts = {"source_fingerprint": source_fingerprint, "extractor": extractor_name}
    learnable, aligned, n_bursts = _drop_labels_without_vector(rows, recipe, context.rejects), None, 0
    holds_out = valid is None and (recipe.holdout_share or select_supported_fit_params(recipe.estimator, groups=None))
    if holds_out and (rows.near_equality is not None or getattr(source, "modality", None) == "pictures"):
        learnable, n_bursts = group_bursts(learnable)
    if valid is not None:
        aligned = extract_aligned_rows(extractor, valid, learnable, context)
    training, validation = _split_sides(learnable, aligned, recipe)
    regions = {"items": source.kind, "image_label": source.full_image_label} if isinstance(source, ItemList) else {}
    n_unlabelled = int((np.diff((training.Y > 0).tocsr().indptr) == 0).sum())
    facts = {
        "fingerprint": source_fingerprint if rows is source else compute_fingerprint_or_none(rows),
        **source_facts,
        **{name: value for name, value in regions.items() if value},
        "rows": len(training),
        "validation_rows": 0 if validation is None else len(validation),
        "rows_without_labels": n_unlabelled,
        "skipped": len(context.rejects),
        **({"bursts": n_bursts} if n_bursts else {}),
    }
    facts = _add_common_facts(facts, recipe, training.label_names, learnable.label_names)
    return PreparedData(training, validation, extractor, aligned, facts)


def _add_common_facts(
    facts: JsonObject, recipe: TrainingRecipe, label_names: list[str], all_label_names: list[str]
) -> JsonObject:
    """Add the name of the data, and the numbers of labels."""
    n_dropped = len(all_label_names) - len(label_names)
    names = {"system": recipe.system, "source": format_path(recipe.source)}
    return {**names, **facts, "labels": len(label_names), "labels_dropped": n_dropped}


def _prepare_shards(
    rows: ShardedFeatureTable, valid: FeatureTable | None, recipe: TrainingRecipe
) -> PreparedData[ShardedFeatureTable]:
    """Prepare training on shards; the first held-out rows with a label choose the epoch."""
    training, holdout, aligned = rows, None, None
    if valid is not None:
        aligned = align_table(valid, rows.label_names, rows.feature_names, rows.n_features, rows.extractor_fingerprint)
    elif recipe.holdout_share:
        require_enough_items(len(rows.shards), recipe.holdout_share, "row")
        training, holdout = rows.split_holdout(recipe.holdout_share)
    statistics = _count_shard_labels(training, "training")
    holdout_statistics = None if holdout is None else _count_shard_labels(holdout, "validation")
    label_ids = _select_labels(statistics.of_label, recipe)
    validation, n_validation = None, 0
    if aligned is not None:
        validation = aligned.rows.with_labels(label_ids)
        n_validation = len(validation)
    elif holdout is not None and holdout_statistics is not None:
        if holdout_statistics.of_label[label_ids].any():
            validation = holdout.with_labels(label_ids).read_first(MAX_ROWS)
            validation = validation.take(find_centred_views(validation)) if validation.augment else validation
            n_validation = holdout_statistics.rows
        else:
            training = rows  # rows without a known label cannot choose an epoch
    if len(label_ids) < len(rows.label_names):
        training = training.with_labels(label_ids)
    statistics = training.compute_label_statistics()
    facts = {
        "fingerprint": rows.shards.fingerprint,
        "rows": statistics.rows,
        "validation_rows": n_validation,
        "rows_without_labels": statistics.unlabelled,
        "skipped": 0,
    }
    facts = _add_common_facts(facts, recipe, training.label_names, rows.label_names)
    return PreparedData(training, validation, None, aligned, facts)


def _count_shard_labels(rows: ShardedFeatureTable, side: str) -> LabelStatistics:
    statistics = rows.compute_label_statistics()
    if not statistics.rows:  # whole groups are on one side
        raise InputError(f"the {side} side of the split would be empty; use other fractions or more rows")
    return statistics


def _check_labels(source: ItemSource, valid: Source | None, recipe: TrainingRecipe) -> None:
    """Check the labels, before features are extracted for nothing."""
    labelled_rows = _drop_labels_without_vector(build_label_table(source), recipe, Rejects())
    training, _ = _split_sides(labelled_rows, None, recipe if valid is None else replace(recipe, holdout_share=0.0))
    check_validation_metric(recipe, len(training.label_names))
    if hasattr(recipe.estimator, "check_labels"):
        recipe.estimator.check_labels(training.Y, training.label_names)


def _drop_labels_without_vector(rows: FeatureTable, recipe: TrainingRecipe, rejects: Rejects) -> FeatureTable:
    """Drop labels without a word vector, for a model that ranks labels by their words."""
    if not isinstance(recipe.estimator, WordVectorRanker):
        return rows
    matches = recipe.estimator.compute_targets(rows.label_names)
    if not len(matches.positions):
        raise InputError(
            f"none of the {len(rows.label_names):,} labels of {recipe.source} has a word vector, such as "
            f"{', '.join(map(repr, matches.missing[:3]))}; give vectors of their words, or `knowledge` that names them"
        )
    other_labels = [label for label in dict.fromkeys(recipe.estimator.labels) if label not in set(rows.label_names)]
    for label in (*matches.missing, *(recipe.estimator.compute_targets(other_labels).missing if other_labels else ())):
        rejects.add(label, "label without a word vector")
    return rows.with_labels(matches.positions)


def _set_columns(estimator: LabelModel, names: list[str] | None, extractor: Any) -> LabelModel:
    """Set the columns of an ensemble to the kinds of features, where they can be told apart."""
    if not isinstance(estimator, Ensemble) or estimator.by != "columns" or estimator.columns is not None:
        return estimator
    sizes = [part.n_features_ for part in getattr(extractor, "parts", ())]
    blocks = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]) if sizes else group_columns(names or [])
    estimator.set_params(columns=blocks or None)
    return estimator


def extract_training_rows(
    source: ItemSource,
    feature_options: Mapping[str, Any],
    work: Path | None,
    seed: int,
    context: WorkContext,
    fitting_items: ItemSource | None = None,
) -> tuple[FeatureTable, FeatureExtractor]:
    """Extract features of items, fitted on `fitting_items` or all; `work` may hold unfinished work."""
    options, fitting_items = dict(feature_options), source if fitting_items is None else fitting_items
    augment = options.pop("augment", 0)
    extractor = create_extractor(options.pop("features", None), source=source, **options, seed=seed)
    extractor.refuse_views(augment)  # refuses impossible views before any fitting
    if work is None:
        extractor = fit_extractor(extractor, fitting_items, **context._asdict())
        return extractor.transform(source, **context._asdict()), extractor
    folder, table = work / "extractor", work / "features.parquet"
    if is_model_folder(folder):
        requested_extractor, extractor = extractor, load_extractor(folder)
        remedy = "go on with the same options, or start over (`restart`)"
        extractor.refuse_other_settings(requested_extractor, folder, remedy)
    else:
        extractor = fit_extractor(extractor, fitting_items, **context._asdict())
        extractor.save(folder)
    extract_to_file(source, extractor, table, **context._asdict(), augment=augment)
    return open_source(table), extractor  # type: ignore[return-value]


def extract_more_rows(extractor: FeatureExtractor | None, source: Source, context: WorkContext) -> FeatureTable:
    """Return the rows of further data; features are extracted as for the training data.

    Raises
    ------
    InputError
        Images where the training data are a table.
    """
    if isinstance(source, FeatureTable):
        return source
    if extractor is None:
        fact = f"the training data are rows of features and {source.path} holds {source.modality}"
        raise InputError(f"{fact}; give the same kind")
    return extractor.transform(source, **context._asdict())


def extract_aligned_rows(
    extractor: FeatureExtractor | None, source: Source, training: FeatureTable, context: WorkContext
) -> AlignedTable:
    """Return the rows of further data in the labels and features of the training rows."""
    rows, features = extract_more_rows(extractor, source, context), (training.feature_names, training.X.shape[1])
    return align_table(rows, training.label_names, *features, training.extractor_fingerprint)


def _split_sides(
    rows: FeatureTable, valid: AlignedTable | None, recipe: TrainingRecipe
) -> tuple[FeatureTable, FeatureTable | None]:
    """Return training and validation rows, with the labels that have enough training rows."""
    remedy = "label the data, or extract features without training"
    require(bool(rows.label_names), f"nothing in {recipe.source} has a label; {remedy}")
    training, holdout = rows, None if valid is None else valid.rows
    if valid is None and recipe.holdout_share:
        require_enough_items(len(rows), recipe.holdout_share, "row")
        sides = split_rows(rows, "auto", recipe.holdout_share, 0, recipe.seed)
        training, holdout = rows.take(sides.train), rows.take(sides.valid)
    label_ids = _select_labels(count_labels(training), recipe)
    if holdout is None:
        return training.with_labels(label_ids), None
    validation = holdout.with_labels(label_ids)
    if valid is None and not count_labels(validation).any():
        return rows.with_labels(label_ids), None  # rows without a known label cannot choose an epoch
    return training.with_labels(label_ids), validation


def _select_labels(counts: Int64, recipe: TrainingRecipe) -> Int64:
    """Return the ids of labels with enough training rows."""
    label_ids = np.flatnonzero(counts >= recipe.min_rows) if recipe.min_rows > 1 else np.arange(len(counts))
    require(len(label_ids) > 0, f"no label has {recipe.min_rows} training rows; lower `min_rows`, or give more rows")
    return label_ids
