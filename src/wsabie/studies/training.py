"""From a collection to a model folder: describe the pictures, hold rows out, train, save; stopped work goes on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import Progress
from wsabie.features.collect import outline
from wsabie.features.describer import Describer
from wsabie.features.extract import extract, learn
from wsabie.features.registry import USUAL, describer, load_describer
from wsabie.models.annotator import Annotator
from wsabie.models.base import LabelModel
from wsabie.models.ensemble import Ensemble
from wsabie.models.meanings import MeaningRanker
from wsabie.models.members import column_blocks
from wsabie.models.monitor import check_metric
from wsabie.models.warm import with_features
from wsabie.models.wsabie import Wsabie
from wsabie.sources.align import Aligned, align
from wsabie.sources.fingerprint import fingerprint_or_none, marks_of
from wsabie.sources.open import open_source
from wsabie.sources.records import ItemList, ItemSource, Rows, Source, label_counts
from wsabie.sources.sharded import ShardedRows
from wsabie.sources.text import shown
from wsabie.storage.atomic import held
from wsabie.storage.folder import is_model_folder
from wsabie.storage.rejects import Rejects
from wsabie.studies.sharded_sides import ShardedSides, prepare_shards
from wsabie.studies.splitting import refuse_few, split_rows
from wsabie.studies.unfinished import unfinished, work_beside
from wsabie.training.stats import EpochStats
from wsabie.training.trainer import Trainer

KEPT = r"terms|features\.parquet|features\.parquet\.parts|checkpoint"
"""What is kept beside the model until it is saved."""


@dataclass(frozen=True)
class Recipe:
    """How a model is made.

    Attributes
    ----------
    source : str
        What the data are called in the model's facts.
    model : Path
        Folder that it is saved to.
    estimator : LabelModel
        Not yet fitted; its threads and seed serve the rest too, unless it has none.
    description : dict
        How items are described, as far as it is given: describe, augment, and options of `describer`.
    hold_out : float
        Share of the rows (whole groups) that chooses the epoch where no validation data are given.
    metric : str
        The figure of these by which it is chosen; see `Wsabie.fit`.
    min_rows : int
        Labels with fewer training rows are left out.
    resume : bool
        Go on from the work of a run that was stopped; False removes it.
    system : str
        What the model is called in its facts: of `wsabie.models.systems.SYSTEMS`.
    given : dict
        seed and threads where the estimator has none.
    start : Annotator or None
        A model whose space this one begins with.
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
    given: dict[str, Any] = field(default_factory=dict)
    start: Annotator | None = None

    @property
    def seed(self) -> int:
        """Of everything random."""
        return int(getattr(self.estimator, "seed", self.given.get("seed", 0)))

    @property
    def threads(self) -> int | None:
        """None uses every core that this process may use."""
        threads: int | None = getattr(self.estimator, "threads", self.given.get("threads"))
        return threads

    @property
    def work(self) -> Path:
        """Where unfinished work is kept."""
        return work_beside(self.model)


@dataclass(frozen=True)
class Trained:
    """A saved model.

    Attributes
    ----------
    facts : dict
        What is known of its data, as it was saved with the model.
    history : list of EpochStats
    validation : Aligned or None
        The validation data that were given, in the model's terms.
    """

    facts: dict[str, Any]
    history: list[EpochStats]
    validation: Aligned | None


@dataclass(frozen=True)
class Sides:
    """A collection ready to be trained on.

    Attributes
    ----------
    learnt : Rows
    validation : Rows or None
        With the labels and features of `learnt`.
    terms : Describer or None
        Describes pictures; None where the source is rows.
    given : Aligned or None
        The validation data that were given, in the model's terms.
    facts : dict
        What is saved with a model of these data.
    """

    learnt: Rows
    validation: Rows | None
    terms: Describer | None
    given: Aligned | None
    facts: dict[str, Any]

    @property
    def judge(self) -> tuple[Any, Any] | None:
        """What `fit` takes as `validation`."""
        return None if self.validation is None else (self.validation.X, self.validation.Y)

    @property
    def given_to_fit(self) -> dict[str, Any]:
        """What is trained on, as `fit` takes it."""
        return {"X": self.learnt.X, "Y": self.learnt.Y, "label_names": self.learnt.label_names}

    def annotator(self, estimator: Any) -> Annotator:
        """The fitted estimator with what describes new data."""
        rows = self.learnt
        return Annotator(estimator, self.terms, rows.feature_names, self.facts, rows.dictionary, marks_of(rows))


def train(
    source: Source | ShardedRows,
    valid: Source | None,
    recipe: Recipe,
    *,
    executor: Executor,
    progress: Progress,
    rejects: Rejects,
    on_epoch: Callable[[EpochStats], None] | None = None,
    trainer: Callable[..., Trainer] | None = None,
) -> Trained:
    """Train on a collection and save the model.

    Parameters
    ----------
    source : Rows, ItemSource or ShardedRows
    valid : Rows, ItemSource or None
        Chooses the epoch; pictures only where the training data are pictures. None: `recipe.hold_out` of the rows.
    recipe : Recipe
    executor : Executor
        Where pictures are described.
    progress : Progress
    rejects : Rejects
        Where pictures that cannot be read are listed.
    on_epoch : callable or None
        Is told the figures of every epoch.
    trainer : callable or None
        Makes what trains on shards, as `Wsabie.fit` takes it; None: this process.

    Raises
    ------
    InputError
        Data that do not fit each other, too few rows, no label with enough of them, what `Wsabie.fit` refuses, or
        another process that trains this model.
    """
    refuse_metric(recipe)
    with unfinished(recipe.work, resume=recipe.resume):
        sides: Sides | ShardedSides
        if isinstance(source, ShardedRows):
            judge = None if valid is None else transformed(None, valid, executor, progress, rejects)
            sides = prepare_shards(source, judge, recipe)
        else:
            sides = prepare(source, valid, recipe, executor=executor, progress=progress, rejects=rejects)
        estimator: Any = _with_columns(recipe.estimator, sides.learnt.feature_names, sides.terms)
        if recipe.start is not None:
            _begin(estimator, recipe.start, sides)
        estimator.fit(
            **sides.given_to_fit,
            progress=progress,
            **taken_by(
                estimator,
                validation=sides.judge,
                checkpoint=recipe.work / "checkpoint",
                resume=recipe.resume,
                fingerprint=sides.facts["fingerprint"] or "",
                metric=recipe.metric,
                on_epoch=on_epoch,
                **({} if trainer is None else {"trainer": trainer}),
            ),
        )
        with held(recipe.model, wait=True):  # an update that is under way would put what it began with back
            sides.annotator(estimator).save(recipe.model)
    return Trained(sides.facts, getattr(estimator, "history_", []), sides.given)


def refuse_metric(recipe: Recipe, n_labels: int | None = None) -> None:
    """Refuse a figure by which the epochs of this kind of model cannot be chosen; InputError."""
    if recipe.metric != "MAP" and not taken_by(recipe.estimator, metric=recipe.metric):
        raise InputError(f"this model's epochs are chosen by MAP alone, and not by {recipe.metric!r}; leave it out")
    check_metric(recipe.metric, n_labels, getattr(recipe.estimator, "metrics", ()))


def _begin(estimator: Any, start: Annotator, sides: Sides | ShardedSides) -> None:
    """Have an estimator begin with another model's space, whose features are brought into the order of the data."""
    rows, model = sides.learnt, start.model
    if not (isinstance(model, Wsabie) and isinstance(estimator, Wsabie)):
        raise InputError(
            f"a model of kind {model.kind} gives no space to begin with; give one of kind wsabie, and train such"
        )
    if sides.terms is not None or rows.dictionary != start.dictionary:
        raise InputError(
            "the data is described by another dictionary than that of the model to begin with; describe it by that "
            "one first: wsabie features images FOLDER --dictionary MODEL --out FILE"
        )
    if start.feature_names is not None and rows.feature_names is not None:
        model = with_features(model, start.feature_names, rows.feature_names)
    estimator.set_params(init=model)


def taken_by(estimator: Any, **options: Any) -> dict[str, Any]:
    """Those of some options that the estimator's `fit` takes: a baseline has no epochs to choose or to keep."""
    known = signature(estimator.fit).parameters
    any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    return {name: value for name, value in options.items() if any_name or name in known}


def prepare(
    source: Source,
    valid: Source | None,
    recipe: Recipe,
    *,
    executor: Executor,
    progress: Progress,
    rejects: Rejects,
) -> Sides:
    """Everything before training: pictures are described, validation rows aligned or set aside, rare labels left out.

    Parameters and errors are those of `train`.
    """
    own = fingerprint_or_none(source)
    if not isinstance(source, Rows) and source.things != "documents":  # these are quickly described
        _refuse_labels(source, valid, recipe)
    rows, terms = _described(source, recipe, executor, progress, rejects)
    learnable = _with_words(rows, recipe, rejects)
    aligned = None
    if valid is not None:
        judged = transformed(terms, valid, executor, progress, rejects)
        aligned = align(judged, learnable.label_names, rows.feature_names, rows.X.shape[1], rows.dictionary)
    learnt, validation = _sides(learnable, aligned, recipe)
    facts = {
        "system": recipe.system,
        "source": shown(recipe.source),
        "fingerprint": own if rows is source else fingerprint_or_none(rows),
        **({} if isinstance(source, Rows) else {"source_fingerprint": own, "describe": _named(source, recipe)}),
        **_how_regions(source),
        "rows": len(learnt),
        "validation_rows": 0 if validation is None else len(validation),
        "labels": len(learnt.label_names),
        "labels_dropped": len(learnable.label_names) - len(learnt.label_names),
        "rows_without_labels": int((np.diff((learnt.Y > 0).tocsr().indptr) == 0).sum()),
        "skipped": len(rejects),
    }
    return Sides(learnt, validation, terms, aligned, facts)


def _how_regions(source: Source) -> dict[str, str]:
    """Of marked pictures, what an item was and what whole pictures were called, so that others are read alike."""
    told = (("items", source.kind), ("whole", source.whole)) if isinstance(source, ItemList) else ()
    return {name: value for name, value in told if value}


def _refuse_labels(source: ItemSource, valid: Source | None, recipe: Recipe) -> None:
    """What labels alone tell, before items are described for nothing."""
    told = _with_words(outline(source), recipe, Rejects())
    learnt, _ = _sides(told, None, recipe if valid is None else replace(recipe, hold_out=0.0))
    refuse_metric(recipe, len(learnt.label_names))
    if hasattr(recipe.estimator, "check_labels"):
        recipe.estimator.check_labels(learnt.Y, learnt.label_names)


def _with_words(rows: Rows, recipe: Recipe, rejects: Rejects) -> Rows:
    """For a model that ranks labels by their words, the rows without the labels that have no word vector."""
    if not isinstance(recipe.estimator, MeaningRanker):
        return rows
    found = recipe.estimator.meant(rows.label_names)
    if not len(found.places):
        raise InputError(
            f"none of the {len(rows.label_names):,} labels of {recipe.source} has a word vector, such as "
            f"{', '.join(map(repr, found.missing[:3]))}; give vectors of their words, or --knowledge that names them"
        )
    further = [label for label in dict.fromkeys(recipe.estimator.labels) if label not in set(rows.label_names)]
    for label in (*found.missing, *(recipe.estimator.meant(further).missing if further else ())):
        rejects.add(label, "label without a word vector")
    return rows.with_labels(found.places)


def _with_columns(estimator: LabelModel, names: list[str] | None, terms: Any) -> LabelModel:
    """An ensemble by columns that are not said gets the kinds of features, as far as they can be told apart."""
    if not isinstance(estimator, Ensemble) or estimator.by != "columns" or estimator.columns is not None:
        return estimator
    sizes = [part.n_features_ for part in getattr(terms, "parts", ())]
    blocks = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]) if sizes else column_blocks(names or [])
    estimator.set_params(columns=blocks or None)
    return estimator


def _named(source: ItemSource, recipe: Recipe) -> str:
    """How the items of a source are described, as the command line says it."""
    return str(recipe.description.get("describe", USUAL[source.things]))


def _described(
    source: Source, recipe: Recipe, executor: Executor, progress: Progress, rejects: Rejects
) -> tuple[Rows, Describer | None]:
    """The rows of a source; pictures are described first, resumably, in the folder of unfinished work."""
    if isinstance(source, Rows):
        return source, None
    return described(source, recipe.description, recipe.work, recipe.seed, executor, progress, rejects)


def described(
    source: ItemSource,
    description: Mapping[str, Any],
    work: Path,
    seed: int,
    executor: Executor,
    progress: Progress,
    rejects: Rejects,
) -> tuple[Rows, Describer]:
    """The rows of items, and what describes them; what lies in the folder `work` from a run before is used again."""
    folder, options = work / "terms", dict(description)
    augment = options.pop("augment", 0)
    wanted = describer(options.pop("describe", None), things=source.things, **options, seed=seed)
    wanted.viewer(augment)  # what cannot be is refused before anything is learned
    if is_model_folder(folder):
        terms = load_describer(folder)
        terms.refuse_other(wanted, folder, "go on with the same options, or begin anew (--anew)")
    else:
        terms = learn(wanted, source, executor, progress, rejects)
        terms.save(folder)
    table = work / "features.parquet"
    extract(source, terms, table, executor=executor, progress=progress, rejects=rejects, augment=augment)
    rows = open_source(table)
    if not isinstance(rows, Rows):
        raise TypeError("features are rows")
    return rows, terms


def transformed(
    terms: Describer | None, valid: Source, executor: Executor, progress: Progress, rejects: Rejects
) -> Rows:
    """Rows of further data, its pictures described by the dictionary of the training data.

    Raises
    ------
    InputError
        Pictures where the training data are rows.
    """
    if isinstance(valid, Rows):
        return valid
    if terms is None:
        raise InputError(
            f"the training data are rows of features and {valid.path} holds {valid.things}; give the same kind"
        )
    return terms.transform(valid, executor=executor, progress=progress, rejects=rejects)


def _sides(rows: Rows, valid: Aligned | None, recipe: Recipe) -> tuple[Rows, Rows | None]:
    """Training and validation rows, with the labels that have enough training rows."""
    if not rows.label_names:
        raise InputError(f"nothing in {recipe.source} has a label; label the data, or describe them without training")
    learnt, held_out = _held_out(rows, recipe) if valid is None else (rows, valid.rows)
    counts = label_counts(learnt)
    keep = np.flatnonzero(counts >= recipe.min_rows) if recipe.min_rows > 1 else np.arange(len(counts))
    if not len(keep):
        raise InputError(f"no label has {recipe.min_rows} training rows; lower --min-rows, or give more rows")
    learnt, judged = learnt.with_labels(keep), None if held_out is None else held_out.with_labels(keep)
    if valid is None and judged is not None and not label_counts(judged).any():
        return rows.with_labels(keep), None  # nothing can be chosen by rows without a known label
    return learnt, judged


def _held_out(rows: Rows, recipe: Recipe) -> tuple[Rows, Rows | None]:
    """Whole groups set aside to choose the epoch."""
    share = recipe.hold_out
    if share == 0:
        return rows, None
    refuse_few(len(rows), share, "row")
    sides = split_rows(rows, "auto", share, 0, recipe.seed)
    return rows.take(sides.train), rows.take(sides.valid)
