"""`wsabie train`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from wsabie.cli.command import NotFor, command, list_stated, options
from wsabie.cli.epoch_tables import format_epoch_count
from wsabie.cli.estimator_options import EnsembleOptions, EstimatorOptions, ShapeOptions
from wsabie.cli.inputs import (
    find_width,
    has_regions,
    is_training_data,
    load_annotator,
    open_data,
    read_label_pairs,
    refuse_without_effect,
    report_unknown_labels,
)
from wsabie.cli.knowledge_files import make_vector_parameters, refuse_other_kinds
from wsabie.cli.models.resumption import load_trained_model, open_epoch_log, refuse_discard, report_resumable_work
from wsabie.cli.models.train_space import train_space_model
from wsabie.cli.options import (
    ClusterRunOptions,
    Data,
    ExtractionOptions,
    ItemOptions,
    Kind,
    LabelKnowledge,
    MinRows,
    RejectOptions,
    WordVectors,
)
from wsabie.cli.output import TerminalProgress, format_count, out, print_note, show_json
from wsabie.cli.target import IN_TABLES, run_by_data
from wsabie.core.errors import InputError
from wsabie.storage.output_checks import check_output_paths, refuse_unknown_files
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.distributed.averaging_rounds import RoundReport
    from wsabie.io.records import Source
    from wsabie.io.shards.sharded_table import ShardedFeatureTable
    from wsabie.models.base.label_model import LabelModel
    from wsabie.training.epoch_stats import EpochStats
    from wsabie.workflows.model_training import TrainingRecipe

_COUNTED_RELATION = NotFor(labels="which relations of a TOML file count")


def parse_metric(text: str) -> str:
    """Parse a metric of validation rows in any case: MAP, p@10, pairs."""
    return "MAP" if text.upper() == "MAP" else text.lower()


@options
class LabelOptions:
    """Options of knowledge about labels."""

    panel: ClassVar = "Knowledge of labels"

    relations: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="For parts: related labels, object TAB part a line (see `wsabie labels pairs`); "
            "or RELATION=FILE, such as is-a=kinds.tsv.",
        ),
    ] = None
    vectors: WordVectors = None
    knowledge: LabelKnowledge = None
    labels: Annotated[
        Path | None,
        typer.Option(help="Further labels that devise and conse can rank, though no row has them: a file, one a line."),
    ] = None

    def settings(self) -> dict[str, Any]:
        """Return the stated files about the meanings of labels."""
        return {name: value for name, value in list_stated(self).items() if name != "relations"}


@options
class RelationOptions:
    """Options about the relations of a space."""

    panel: ClassVar = "Spaces (FILE.toml)"

    only: Annotated[
        list[str] | None,
        typer.Option(metavar="RELATION", help="Of a TOML file: learn this relation, and others that are named so."),
        _COUNTED_RELATION,
    ] = None
    stop_on: Annotated[
        str | None,
        typer.Option(metavar="RELATION", help="Of a TOML file: the relation that chooses the epoch (default: all)."),
        _COUNTED_RELATION,
    ] = None


@options
class ResumeOptions:
    """Options about unfinished training."""

    panel: ClassVar = "Resuming and logs"

    resume: Annotated[bool, typer.Option(help="Go on from where a stopped run was.")] = False
    restart: Annotated[bool, typer.Option(help="Remove what a stopped run has kept, and begin at the beginning.")] = (
        False
    )
    log: Annotated[Path | None, typer.Option(help="Append the figures of every epoch to this file (JSON lines).")] = (
        None
    )


@options
class TrainClusterOptions(ClusterRunOptions):
    """Options of training on several machines."""

    nodes: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="With --ray and shards: nodes that train at most (default: all)."),
    ] = None


@options
class TrainOptions:
    """Options of `wsabie train`."""

    data: Data
    model: Annotated[Path, typer.Option(help="Folder for the model.")]
    kind: Annotated[Kind, NotFor(space="what a space does not have")] = "wsabie"
    valid: Annotated[
        Path | None, typer.Option(help="Validation data; otherwise --hold-out rows are set aside."), IN_TABLES
    ] = None
    hold_out: Annotated[
        float | None,
        typer.Option(min=0, max=0.9, help="Fraction of rows (whole groups) that choose the epoch (default: 0.1)."),
    ] = None
    metric: Annotated[
        str | None,
        typer.Option(
            parser=parse_metric,
            metavar="FIGURE",
            help="Figure of these rows that chooses the epoch: MAP, p@k; of parts also pairs (default: MAP).",
        ),
        IN_TABLES,
    ] = None
    min_rows: Annotated[MinRows, NotFor(space="what a space does not have")] = 1
    init_model: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Begin with the space of this model of the same features."),
        IN_TABLES,
    ] = None
    shape: ShapeOptions = ShapeOptions()
    estimator: Annotated[EstimatorOptions, IN_TABLES] = EstimatorOptions()
    ensemble: Annotated[EnsembleOptions, IN_TABLES] = EnsembleOptions()
    items: Annotated[ItemOptions, IN_TABLES] = ItemOptions()
    features: Annotated[ExtractionOptions, IN_TABLES] = ExtractionOptions()
    labels: Annotated[LabelOptions, IN_TABLES] = LabelOptions()
    space: RelationOptions = RelationOptions()
    work: ResumeOptions = ResumeOptions()
    machine: TrainClusterOptions = TrainClusterOptions()
    output: RejectOptions = RejectOptions()


@command(
    "train photos/ --model birds",
    "train rows.parquet --model topics --kind linear-warp --hold-out 0.2 --set margin=0.5",
)
def train(options: TrainOptions) -> None:
    """Train a model on tagged data; new data is then annotated with `wsabie annotate`."""
    if options.machine.nodes is not None and options.machine.ray is None:
        raise InputError("--nodes says how many nodes of a cluster train; give its address too: --ray ADDRESS")
    run_by_data(options, _train_model, train_space_model)


def _train_model(options: TrainOptions) -> None:
    """Open the data, train, save the model, and report the result."""
    from wsabie.workflows.model_training import train_model

    recipe = _make_recipe(options)
    finished = _check_before_work(options, recipe)
    _report_order_statistic(recipe.estimator)
    progress, cluster = TerminalProgress(), ClusterReport()
    with report_resumable_work(recipe.work, recipe.resume), options.output.collect() as rejects:
        source, valid = _open_sources(options, recipe, rejects)
        if finished:
            annotator = load_trained_model(recipe, source)
            recipe = replace(recipe, estimator=annotator.model)
            _report_training(options, recipe, annotator.facts, getattr(annotator.model, "history_", []), cluster)
            return
        result = train_model(
            source,
            valid,
            recipe,
            executor=replace(options.machine, threads=recipe.threads).make_executor(options.data, options.valid),
            progress=progress,
            rejects=rejects,
            on_epoch=open_epoch_log(options.work.log, recipe.resume),
            trainer=_make_cluster_trainer(options, source, cluster),
        )
    if result.validation is not None:
        report_unknown_labels(result.validation, options.valid)
    if valid is not None and is_training_data(valid, result.facts):
        print_note(
            f"{options.valid} is the training data itself, so that the epoch was chosen by what is known by heart"
        )
    if recipe.hold_out and valid is None and not result.facts["validation_rows"]:
        print_note("no row that was set aside has a label that other rows have, so that the last epoch was kept")
    _report_training(options, recipe, result.facts, result.history, cluster)
    if not options.output.json:
        asks_parts = recipe.system == "parts" and getattr(source, "modality", None) == "pictures"
        command, data = ("parts", "PICTURE") if asks_parts else ("annotate", "NEW_DATA")
        print_note(f"next: wsabie {command} {quote(str(recipe.model))} {data}")


def _make_recipe(options: TrainOptions) -> "TrainingRecipe":
    """Make the recipe of the training; refuse options that do not fit each other."""
    from wsabie.models.estimator_specs import find_spec
    from wsabie.workflows.model_training import TrainingRecipe

    kind, run, is_trained = options.kind, options.machine.settings(), find_spec(options.kind).trained
    refuse_other_kinds(kind, options.labels.settings())
    _refuse_useless_validation(options, is_trained)
    init_model = None if options.init_model is None else load_annotator(options.init_model, options.machine.threads)
    shape = {} if init_model is None else _list_space_parameters(init_model.model)
    stated = {"hold_out": options.hold_out if is_trained else 0.0, "metric": options.metric}
    return TrainingRecipe(
        str(options.data),
        options.model,
        _make_estimator(options, _collect_parameters(options, shape | options.shape.settings(), run), run),
        options.features.settings(),
        min_rows=options.min_rows,
        resume=options.work.resume,
        system=kind,
        run_options=run,
        start=init_model,
        **{name: value for name, value in stated.items() if value is not None},  # type: ignore[arg-type]
    )


def _list_space_parameters(model: Any) -> dict[str, Any]:
    """List the parameters that the space of another model decides."""
    return {name: getattr(model, name) for name in ("dim", "similarity") if hasattr(model, name)}


def _refuse_useless_validation(options: TrainOptions, is_trained: bool) -> None:
    """Refuse options about epochs without epochs, two sets of validation rows, and a metric without such rows."""
    about_epochs = {
        "valid": options.valid, "hold-out": options.hold_out, "metric": options.metric, "log": options.work.log
    }  # fmt: skip
    for flag, value in about_epochs.items():
        if value and not is_trained:
            raise InputError(f"--{flag} is about epochs, and {options.kind} has none; leave --{flag} out")
    if options.metric is not None and options.hold_out == 0 and options.valid is None:
        raise InputError("--metric chooses the epoch by rows that are set aside; give --valid DATA or more --hold-out")
    if options.valid is not None and options.hold_out:
        raise InputError("--hold-out sets training rows aside and --valid gives others; leave one of them out")


def _collect_parameters(options: TrainOptions, shape: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """Collect the parameters of the estimator; flags override --set and --config."""
    stated = options.estimator.settings(options.kind)
    stated = {name: value for name, value in stated.items() if name not in run}
    parameters = make_vector_parameters(options.kind, shape.get("dim"), **options.labels.settings()) | stated
    return parameters | _parse_relations(options.kind, options.labels.relations, parameters) | shape


def _check_before_work(options: TrainOptions, recipe: "TrainingRecipe") -> bool:
    """Check everything that could fail at the end; return True if the model is finished."""
    from wsabie.storage.model_folder import refuse_foreign_files
    from wsabie.workflows.model_training import WORK_FILES, check_validation_metric

    model, work, inputs = recipe.model, recipe.work, (options.data, options.valid)
    recipe.estimator.check_parameters()
    check_validation_metric(recipe)
    refuse_foreign_files(model)
    refuse_unknown_files(work, WORK_FILES)
    for path in inputs:
        if path is not None and work.resolve() in path.resolve().parents:
            raise InputError(f"{path} lies in {work}, which is emptied at the end; move it or name another model")
    rejects_file, log = options.output.rejects, options.work.log
    check_output_paths(("rejects", rejects_file), ("log", log), inputs=(*inputs, model, work), folder=model)
    return refuse_discard(model, work, resume=recipe.resume, restart=options.work.restart)


@dataclass
class ClusterReport:
    """Training on a cluster: nodes that joined, nodes that were lost, and rounds of averaging."""

    joined: int = 0
    lost: int = 0
    rounds: int = 0

    def add_round(self, report: "RoundReport") -> None:
        """Add a round."""
        self.joined, self.lost, self.rounds = report.n_joined, report.n_lost, self.rounds + 1


def _make_estimator(options: TrainOptions, parameters: dict[str, Any], run: dict[str, Any]) -> "LabelModel":
    """Build the estimator, or an ensemble; `run` has the seed and the threads."""
    from wsabie.models.ensemble import Ensemble
    from wsabie.models.estimator_specs import build_estimator, find_spec

    kind, n_models, by = options.kind, options.ensemble.ensemble, options.ensemble.ensemble_by
    base: Any = build_estimator(kind, parameters, **run)
    if n_models is not None and find_spec(kind).needs:
        raise InputError(f"{kind} makes no ensembles; leave --ensemble out, or choose another kind")
    if parameters.get("replay") is not None and (n_models is not None or base.kind != "wsabie"):
        description = "an ensemble" if n_models is not None else f"a model of kind {kind}"
        raise InputError(f"{description} cannot go on, so that it has nothing to keep rows for; leave replay out")
    if n_models is None:
        if by is not None:
            raise InputError(f"--ensemble-by {by} says how models differ; say how many by --ensemble N")
        return base  # type: ignore[no-any-return]
    shared_parameters = {name: getattr(base, name, None) for name in ("threads", "seed")}
    return Ensemble(base, n=n_models, by=by or "seed", **shared_parameters)  # type: ignore[arg-type]


def _parse_relations(kind: str, option: str | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the related labels for a model of objects and parts: FILE, or RELATION=FILE."""
    if kind != "parts":
        if option is not None:
            raise InputError(f"--relations tells of related labels, and {kind} has none; choose --kind parts")
        return {}
    if option is None and not parameters.get("relations"):
        raise InputError("--kind parts learns from related labels; give --relations FILE, object TAB part a line")
    if option is None:
        return {}
    relation, equals, file = option.partition("=")
    if not equals or Path(option).is_file():  # the name of a file may contain "=" too
        return {"relations": read_label_pairs(Path(option))}
    if not relation or not file:
        raise InputError(f"--relations {option!r} is neither FILE nor RELATION=FILE, such as is-a=kinds.tsv")
    label_pairs = read_label_pairs(Path(file))
    if relation == "part-of":  # part TAB object, as in --pairs
        return {
            "relations": [(object_label, part_label) for part_label, object_label in label_pairs],
            "relation": "has-part",
        }
    return {"relations": label_pairs, "relation": relation}


def _report_order_statistic(estimator: "LabelModel") -> None:
    """Report the order statistic of the loss k-os, of a model or its parts."""
    from wsabie.training.losses import ORDER_STATISTIC

    parameters = estimator.get_params()
    losses = [name for name, value in parameters.items() if name.endswith("loss") and value == "k-os"]
    for requested in dict.fromkeys(str(parameters[f"{name[:-4]}order_statistic"] or "") for name in losses):
        order_statistic = (
            requested or f"{list(ORDER_STATISTIC)} (the k-th highest of n; --set order_statistic=[2,3] takes another)"
        )
        print_note(f"loss k-os ranks one of several positives: order_statistic = {order_statistic}")


def _open_sources(
    options: TrainOptions, recipe: "TrainingRecipe", rejects: Rejects
) -> "tuple[Source | ShardedFeatureTable, Source | None]":
    """Open the data and the validation data."""

    from wsabie.io.shards.shard_folder import is_shard_folder

    if is_shard_folder(options.data) and getattr(recipe.estimator, "reads_shards", False):
        return _open_shard_sources(options, recipe, rejects)
    source = _add_full_images(
        options.items.image_label, options.data, open_data(options.data, rejects, items=options.items.items)
    )
    refuse_without_effect(source, options.data, recipe.description)
    if options.valid is None:
        return source, None
    valid = open_data(options.valid, rejects, n_features=find_width(source), default_items=options.items.items)
    return source, _add_full_images(options.items.image_label, options.valid, valid)


def _open_shard_sources(
    options: TrainOptions, recipe: "TrainingRecipe", rejects: Rejects
) -> "tuple[ShardedFeatureTable, Source | None]":
    from wsabie.io.shards.sharded_table import open_shards

    rows = open_shards(options.data)
    refuse_without_effect(rows, options.data, recipe.description)
    if options.items.items or options.items.image_label:
        raise InputError("--items and --image-label are about marked pictures, and shards hold rows; leave them out")
    return rows, None if options.valid is None else open_data(options.valid, rejects, n_features=rows.n_features)


def _add_full_images(image_label: str | None, path: Path, source: "Source") -> "Source":
    """Add the full pictures of marked regions as items with the label `image_label`."""
    from wsabie.io.region_nesting import add_full_images

    if image_label is None:
        return source
    if not has_regions(source):
        raise InputError(
            f"--image-label labels the pictures that regions are in, and {path} has no regions; leave it out"
        )
    return add_full_images(source, image_label)


def _report_training(
    options: TrainOptions,
    recipe: "TrainingRecipe",
    facts: dict[str, Any],
    history: "list[EpochStats]",
    cluster: ClusterReport,
) -> None:
    from wsabie.storage.model_folder import measure_folder_bytes

    model_facts = recipe.estimator.facts()
    validation_map = model_facts.get("validation_map")
    n_bytes = measure_folder_bytes(recipe.model)
    if options.output.json:
        summary = {"schema": 1, "model": str(recipe.model), "bytes": n_bytes, "epochs": len(history)}
        summary |= {"models": model_facts["models"]} if "models" in model_facts else {}
        summary |= {"nodes": {"joined": cluster.joined, "lost": cluster.lost}} if cluster.rounds else {}
        show_json(
            {**summary, "validation_map": validation_map, **facts, "history": [stats.as_dict() for stats in history]}
        )
        return
    epochs_text = format_epoch_count(history, model_facts)
    if "blend" in model_facts:
        epochs_text = f"{epochs_text}, blend {model_facts['blend']:.3g}"
    elif model_facts.get("kept_epoch") is not None:
        epochs_text = f"epoch {model_facts['kept_epoch']} of {len(history)}"
    epochs_text += "" if validation_map is None else f", validation MAP {validation_map:.3f}"
    n_dropped = facts["labels_dropped"]
    dropped_text = f" ({n_dropped:,} with fewer than {recipe.min_rows} rows left out)" if n_dropped else ""
    labels, rows = format_count(facts["labels"], "label"), format_count(facts["rows"], "row")
    n_unlabelled = facts["rows_without_labels"]
    rows += f" ({n_unlabelled:,} without a label)" if n_unlabelled else ""
    out.print(
        f"{recipe.model}: {labels}{dropped_text} from {rows}, "
        f"{epochs_text + ', ' if history else ''}{n_bytes / 1e6:.1f} MB"
    )
    if cluster.rounds:
        lost = f", {cluster.lost} of them lost" if cluster.lost else ""
        print_note(
            f"{format_count(cluster.joined, 'node')} took part{lost}; their tables came together "
            f"{format_count(cluster.rounds, 'time')}"
        )
    _report_unused_relations(recipe.estimator)


def _make_cluster_trainer(
    options: TrainOptions, source: "Source | ShardedFeatureTable", cluster: ClusterReport
) -> Callable[..., Any] | None:
    """Make the trainer for a Ray cluster and rows in shards; None if this process trains."""
    from wsabie.distributed.averaging_trainer import make_averaging_trainer
    from wsabie.io.shards.shard_folder import is_shard_folder
    from wsabie.io.shards.sharded_table import ShardedFeatureTable

    if options.machine.ray is None:
        return None
    if not isinstance(source, ShardedFeatureTable):
        shards_note = (
            "models of this kind, and ensembles, are trained on this machine; the cluster describes items alone"
        )
        rows_note = "rows in shards are trained on the cluster, and these on this machine; see wsabie shards --help"
        print_note(shards_note if is_shard_folder(options.data) else rows_note)
        return None
    return make_averaging_trainer(options.machine.ray, options.machine.nodes, cluster.add_round)


def _report_unused_relations(model: Any) -> None:
    """Report relations without examples, and a label that may be misspelt."""
    from wsabie.vocabulary.label_names import format_unknown_label

    unused_pairs = model.unused() if hasattr(model, "unused") else []
    if unused_pairs:
        first, second = unused_pairs[0]
        print_note(
            f"{format_count(len(unused_pairs), 'relation')} left out for want of two pictures, such as {first} and "
            f"{second}"
        )
        vocabulary = model.vocabulary_
        if missing := next((name for pair in unused_pairs for name in pair if name not in vocabulary), None):
            print_note(format_unknown_label(missing, list(vocabulary)))
