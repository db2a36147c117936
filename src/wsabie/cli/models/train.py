"""`wsabie train`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from wsabie.cli import inputs
from wsabie.cli import shared_options as shared
from wsabie.cli.estimator_options import EnsembleOptions, EstimatorOptions, ShapeOptions
from wsabie.cli.framework import Options, Report, Settings, command, list_stated, option
from wsabie.cli.inputs import IN_TABLES, ONLY_LABELS, ONLY_SPACES, list_declared_files, run_by_data
from wsabie.cli.knowledge_files import LabelOptions
from wsabie.cli.models import resumption
from wsabie.cli.output import format_bytes, format_count, format_epoch_count, out, print_note, quote_path, show_table
from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.models.estimator_specs import SYSTEMS, build_estimator, find_spec
from wsabie.storage.output_checks import refuse_unknown_files
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.distributed.averaging_rounds import RoundReport
    from wsabie.io.records import Source
    from wsabie.io.shards.sharded_table import ShardedFeatureTable
    from wsabie.io.space_declaration import SpaceDeclaration
    from wsabie.models.base.label_model import LabelModel
    from wsabie.workflows.model_training import TrainingOutcome, TrainingRecipe
    from wsabie.workflows.spaces.space_training import SpaceRecipe

HOLDS_OUT = ("fusion", "auto")
"""Kinds that hold rows out of the data by themselves."""


def parse_metric(text: str) -> str:
    """Parse a metric of validation rows in any case: MAP, p@10, pairs."""
    return "MAP" if text.upper() == "MAP" else text.lower()


class RelationOptions(Options, panel="Spaces (FILE.toml)"):
    """Options about the relations of a space."""

    only: list[str] | None = option("Of a TOML file: only this relation; repeatable.", metavar="RELATION")
    stop_on: str | None = option(
        "Of a TOML file: the relation that chooses the epoch (default: all).", metavar="RELATION"
    )


class ResumeOptions(Options, panel="Resuming and logs"):
    """Options about unfinished training."""

    resume: bool = option("Continue a stopped run.")
    restart: bool = option("Delete the work of a stopped run, and start over.")
    log: Path | None = option("Append the figures of every epoch to this file (JSON lines).")


class TrainClusterOptions(shared.ClusterRunOptions):
    """Options of training on several machines."""

    nodes: int | None = option("With --ray and shards: nodes that train at most (default: all).", min=1, metavar="N")


class TrainOptions(shared.DataOptions, TrainClusterOptions):
    """Options of `wsabie train`."""

    data: shared.Data
    model: Path = option("Folder for the model.")
    kind: str = option(f"Kind of model: {', '.join(SYSTEMS)}.", "wsabie", scope=ONLY_LABELS)
    valid: Path | None = option("Validation data; otherwise --hold-out rows are set aside.", scope=IN_TABLES)
    hold_out: float | None = option(
        "Fraction of rows (whole groups and bursts of pictures) that choose the epoch (default: 0.1); of auto and "
        "fusion, those that choose kind and weights.",
        min=0,
        max=0.9,
    )
    tags: Literal["auto", "folders", "metadata", "xmp", "tags"] = option(
        "Where the labels of a folder are found, as in `collection init`: metadata.csv, sub-folders, inside pictures "
        "(xmp) or sounds (tags), or the first of these with labels (auto).",
        "auto",
        scope=IN_TABLES,
    )
    metric: str | None = option(
        "Figure of these rows that chooses the epoch: MAP, p@k; of parts also pairs (default: MAP).",
        parser=parse_metric,
        metavar="FIGURE",
        scope=IN_TABLES,
    )
    min_rows: Annotated[shared.MinRows, ONLY_LABELS] = 1
    init_model: Path | None = option("Start from this model of the same features.", metavar="MODEL", scope=IN_TABLES)
    shape: ShapeOptions
    estimator: Annotated[EstimatorOptions, IN_TABLES]
    ensemble: Annotated[EnsembleOptions, IN_TABLES]
    items: Annotated[shared.ItemOptions, IN_TABLES]
    features: Annotated[shared.ExtractionOptions, IN_TABLES]
    labels: Annotated[LabelOptions, IN_TABLES]
    space: Annotated[RelationOptions, ONLY_SPACES]
    work: ResumeOptions


@command(
    "train photos/ --model birds",
    "train rows.parquet --model topics --kind linear-warp --hold-out 0.2 --set margin=0.5",
)
def train(options: TrainOptions) -> Report:
    """Train a model on tagged data.

    `wsabie annotate` then annotates new data with it.
    """
    if options.nodes is not None and options.ray is None:
        raise InputError("--nodes says how many nodes of a cluster train; give its address too: --ray ADDRESS")
    return run_by_data(options, _train_model, _train_space)


def _train_model(options: TrainOptions) -> Report:
    """Open the data, train, save the model, and report the result."""
    from wsabie.workflows.model_training import train_model

    recipe = _make_recipe(options)
    finished = _check_before_work(options, recipe)
    _report_order_statistic(recipe.estimator)
    _report_random_start(recipe.estimator)
    if options.kind == "fusion":
        time = "twice the time of its members" + ("" if options.hold_out else ", six times with fewer than 5,000 rows")
        print_note(f"a fusion compares its members on held-out rows before it learns from all: about {time}")
    rounds: list[RoundReport] = []
    with resumption.report_resumable_work(recipe.work, recipe.resume), options.collect_rejects() as rejects:
        source, valid = _open_sources(options, recipe, rejects)
        if finished:
            recipe, result = resumption.load_trained_model(recipe, source)
        else:
            work = shared.make_work_context(rejects, recipe.threads, options.ray, options.data, options.valid)
            on_epoch = resumption.open_epoch_log(options.work.log, recipe.resume)
            trainer = _make_cluster_trainer(options, source, rounds)
            result = train_model(source, valid, recipe, work, on_epoch=on_epoch, trainer=trainer)
    if finished:
        yield from _report_training(recipe, result, rounds)
        return
    if result.validation is not None:
        inputs.report_unknown_labels(result.validation, options.valid)
    if valid is not None and inputs.is_training_data(valid, result.facts):
        reason = "so that the epoch was chosen on rows of the training"
        print_note(f"{options.valid} is the training data itself, {reason}")
    if recipe.holdout_share and valid is None and not result.facts["validation_rows"]:
        print_note("no row that was set aside has a label that other rows have, so that the last epoch was kept")
    inputs.report_bursts(result.facts.get("bursts", 0))
    yield from _report_training(recipe, result, rounds)
    asks_parts = recipe.system == "parts" and getattr(source, "modality", None) == "pictures"
    command, data = ("parts", "PICTURE") if asks_parts else ("annotate", "NEW_DATA")
    print_note(f"next: wsabie {command} {quote_path(recipe.model)} {data}")


def _make_recipe(options: TrainOptions) -> "TrainingRecipe":
    """Make the recipe of the training; refuse options that do not fit each other."""
    from wsabie.workflows.model_training import TrainingRecipe

    kind, run, is_trained = options.kind, options.run_settings(), find_spec(options.kind).trained
    options.labels.refuse_useless(kind)
    _refuse_useless_validation(options, is_trained)
    init_model, shape = None, list_stated(options.shape)
    if options.init_model is not None:
        init_model = inputs.load_annotator(options.init_model, options.threads)
        fixed = {name: getattr(init_model.model, name, None) for name in ("dim", "similarity")}
        shape = {name: value for name, value in fixed.items() if hasattr(init_model.model, name)} | shape
    settings = {name: value for name, value in options.estimator.settings(kind).items() if name not in run}
    parameters = options.labels.make_parameters(kind, shape.get("dim")) | settings
    parameters |= _parse_relations(kind, options.labels.relations, parameters) | shape  # flags go before --set
    parameters |= {"hold_out": options.hold_out} if kind in HOLDS_OUT and options.hold_out is not None else {}
    stated = {"holdout_share": options.hold_out if is_trained else 0.0, "metric": options.metric}
    return TrainingRecipe(
        str(options.data),
        options.model,
        _make_estimator(options, parameters, run),
        options.features.settings(),
        min_rows=options.min_rows,
        resume=options.work.resume,
        system=kind,
        run_options=run,
        start=init_model,
        **{name: value for name, value in stated.items() if value is not None},  # type: ignore[arg-type]
    )


def _refuse_useless_validation(options: TrainOptions, is_trained: bool) -> None:
    """Refuse options about epochs without epochs, two validation sets, and a metric without such rows."""
    about_epochs = {
        "valid": options.valid, "hold-out": options.hold_out, "metric": options.metric, "log": options.work.log
    }  # fmt: skip
    holds_out = options.kind in HOLDS_OUT
    for flag, value in about_epochs.items():
        if not value or is_trained or (holds_out and flag == "hold-out"):
            continue
        fact = f"{options.kind} chooses by the nDCG of rows of the data that it holds out"
        require(not holds_out or flag == "log", f"{fact}; leave --{flag} out, or choose their share by --hold-out")
        raise InputError(f"--{flag} is about epochs, and {options.kind} has none; leave --{flag} out")
    if options.metric is not None and options.hold_out == 0 and options.valid is None:
        raise InputError("--metric chooses the epoch by rows that are set aside; give --valid DATA or more --hold-out")
    if options.valid is not None and options.hold_out:
        raise InputError("--hold-out sets training rows aside and --valid gives others; leave one of them out")


def _check_before_work(options: TrainOptions, recipe: "TrainingRecipe") -> bool:
    """Check everything that could fail at the end; return True if the model is finished."""
    from wsabie.workflows.model_training import WORK_FILES, check_validation_metric

    recipe.estimator.check_parameters()
    check_validation_metric(recipe)
    for path in (options.data, options.valid):
        if path is not None and recipe.work.resolve() in path.resolve().parents:
            fact = f"{path} lies in {recipe.work}, which is emptied at the end"
            raise InputError(f"{fact}; move it or name another model")
    return _prepare_training(options, recipe.work, WORK_FILES, (options.data, options.valid))


def _prepare_training(options: TrainOptions, work: Path, work_files: str, inputs: Sequence[Path | None]) -> bool:
    """Check that outputs can be written; return True if the model is finished and `resume` has no work."""
    from wsabie.storage.model_folder import refuse_foreign_files

    refuse_foreign_files(options.model)
    refuse_unknown_files(work, work_files)
    options.check_outputs(("log", options.work.log), inputs=(*inputs, options.model, work), folder=options.model)
    return resumption.refuse_discard(options.model, work, resume=options.work.resume, restart=options.work.restart)


def _make_estimator(options: TrainOptions, parameters: Settings, run: Settings) -> "LabelModel":
    """Build the estimator, or an ensemble; `run` has the seed and the threads."""
    from wsabie.models.ensemble import Ensemble

    kind, n_models, by = options.kind, options.ensemble.ensemble, options.ensemble.ensemble_by
    base: Any = build_estimator(kind, parameters, **run)
    if n_models is not None and find_spec(kind).needs:
        raise InputError(f"{kind} makes no ensembles; leave --ensemble out, or choose another kind")
    if parameters.get("replay") is not None and (n_models is not None or base.kind != "wsabie"):
        description = "an ensemble" if n_models is not None else f"a model of kind {kind}"
        raise InputError(f"{description} cannot go on, so that it has nothing to keep rows for; leave replay out")
    if n_models is None:
        require(by is None, "--ensemble-by needs the number of models; add --ensemble N")
        return base  # type: ignore[no-any-return]
    shared_parameters = {name: getattr(base, name, None) for name in ("threads", "seed")}
    return Ensemble(base, n=n_models, by=by or "seed", **shared_parameters)  # type: ignore[arg-type]


def _parse_relations(kind: str, option: str | None, parameters: Settings) -> Settings:
    """Parse the related labels for a model of objects and parts: FILE, or RELATION=FILE."""
    if kind == "parts" and option is None and not parameters.get("relations"):
        raise InputError("--kind parts learns from related labels; give --relations FILE, object TAB part a line")
    if option is None:
        return {}
    require(kind == "parts", f"--relations is for models of objects and parts, and {kind} is none; choose --kind parts")
    relation, equals, file = option.partition("=")
    if not equals or Path(option).is_file():  # the name of a file may contain "=" too
        return {"relations": inputs.read_label_pairs(Path(option))}
    if not relation or not file:
        raise InputError(f"--relations {option!r} is neither FILE nor RELATION=FILE, such as is-a=kinds.tsv")
    label_pairs = inputs.read_label_pairs(Path(file))
    if relation == "part-of":  # part TAB object, as in --pairs
        label_pairs, relation = [(object_label, part_label) for part_label, object_label in label_pairs], "has-part"
    return {"relations": label_pairs, "relation": relation}


def _report_order_statistic(estimator: "LabelModel") -> None:
    """Report the order statistic of the loss k-os, of a model or its parts."""
    from wsabie.training.rank_losses import ORDER_STATISTIC

    parameters = estimator.get_params()
    losses = [name for name, value in parameters.items() if name.endswith("loss") and value == "k-os"]
    for requested in dict.fromkeys(str(parameters[f"{name[:-4]}order_statistic"] or "") for name in losses):
        usual = f"{list(ORDER_STATISTIC)} (the k-th highest of n; --set order_statistic=[2,3] takes another)"
        print_note(f"loss k-os ranks one of several positives: order_statistic = {requested or usual}")


def _report_random_start(estimator: "LabelModel") -> None:
    """Report that a stated learning rate, of a model or its parts, makes training begin at random."""
    from wsabie.models.base.parameter_defaults import has_ridge_start

    parameters = estimator.get_params()
    for name in parameters:
        prefix, _, last = name.rpartition("init")
        if last or f"{prefix}learning_rate" not in parameters:
            continue
        part = {key.removeprefix(prefix): value for key, value in parameters.items() if key.startswith(prefix)}
        if not has_ridge_start(part) and has_ridge_start({**part, "learning_rate": "auto"}):
            print_note("with a stated learning rate training begins at random; --set init=ridge takes the usual start")
            return


def _open_sources(
    options: TrainOptions, recipe: "TrainingRecipe", rejects: Rejects
) -> "tuple[Source | ShardedFeatureTable, Source | None]":
    """Open the data and the validation data."""
    from wsabie.io.shards.shard_folder import is_shard_folder
    from wsabie.io.shards.sharded_table import open_shards

    items, image_label, valid = options.items.items, options.items.image_label, None
    if options.tags != "auto" and not options.data.is_dir():
        raise InputError(f"--tags is for labels of a folder, and {options.data} is none; leave --tags out")
    source: Source | ShardedFeatureTable
    is_sharded = is_shard_folder(options.data) and getattr(recipe.estimator, "reads_shards", False)
    if is_sharded and (items or image_label):
        raise InputError("--items and --image-label are about marked pictures, and shards hold rows; leave them out")
    if is_sharded:
        source = shards = open_shards(options.data)
        width: int | None = shards.n_features
    else:
        source = data = options.open_data(options.data, rejects, options.tags, items=items, image_label=image_label)
        _require_regions(image_label, options.data, data)
        width = inputs.find_width(data)
    options.features.refuse_rows(source, options.data)
    if options.valid is not None:
        valid = options.open_data(options.valid, rejects, "auto", width, default_items=items, image_label=image_label)
        _require_regions(image_label, options.valid, valid)
    return source, valid


def _require_regions(image_label: str | None, path: Path, source: "Source") -> None:
    """Refuse a label of the full pictures that marked regions are in if there are no regions."""
    fact = f"--image-label labels the pictures that regions are in, and {path} has no regions"
    require(image_label is None or inputs.has_regions(source), f"{fact}; leave it out")


def _report_training(recipe: "TrainingRecipe", result: "TrainingOutcome", rounds: "list[RoundReport]") -> Report:
    from wsabie.storage.model_folder import measure_folder_bytes

    facts, history, model_facts = result.facts, result.history, recipe.estimator.facts()
    n_bytes = measure_folder_bytes(recipe.model)
    validation_map = model_facts.get("validation_map")
    summary = {"model": recipe.model, "bytes": n_bytes, "epochs": len(history)}
    summary |= {"models": model_facts["models"]} if "models" in model_facts else {}
    summary |= {"nodes": {"joined": rounds[-1].n_joined, "lost": rounds[-1].n_lost}} if rounds else {}
    trials = model_facts.get("trials")
    summary |= {"kind": model_facts["kind"], "trials": trials} if trials else {}
    yield {**summary, "validation_map": validation_map, **facts, "history": history}
    if trials:
        _show_trials(model_facts)
    epochs_text = format_epoch_count(history, model_facts)
    if "blend" in model_facts:
        epochs_text = f"{epochs_text}, blend {model_facts['blend']:.3g}"
    elif model_facts.get("best_epoch") is not None:
        epochs_text = f"epoch {model_facts['best_epoch']} of {len(history)}"
    epochs_text += "" if validation_map is None else f", validation MAP {validation_map:.3f}"
    n_dropped = facts["labels_dropped"]
    dropped_text = f" ({n_dropped:,} with fewer than {recipe.min_rows} rows left out)" if n_dropped else ""
    labels, rows = format_count(facts["labels"], "label"), format_count(facts["rows"], "row")
    n_unlabelled = facts["rows_without_labels"]
    rows += f" ({n_unlabelled:,} without a label)" if n_unlabelled else ""
    training = f"{epochs_text + ', ' if history else ''}{format_bytes(n_bytes)}"
    out.print(f"{recipe.model}: {labels}{dropped_text} from {rows}, {training}")
    if rounds:
        lost = f", {rounds[-1].n_lost} of them lost" if rounds[-1].n_lost else ""
        nodes, times = format_count(rounds[-1].n_joined, "node"), format_count(len(rounds), "time")
        print_note(f"{nodes} took part{lost}; their tables came together {times}")
    _report_unused_relations(recipe.estimator)


def _show_trials(facts: JsonObject) -> None:
    """Show the candidates of `AutoRanker` and the one that was kept."""
    rows = []
    for trial in facts["trials"]:
        quality = f"{trial['ndcg']:.3f}", f"{trial['low']:.3f} to {trial['high']:.3f}"
        costs = f"{trial['n_bytes'] / 1e6:.1f}", f"{trial['seconds']:.1f}"
        rows.append([find_spec(trial["kind"]).title, *quality, *costs])
    show_table("held-out rows", ["model", f"nDCG@{facts['list_length']}", "95 % interval", "MB", "seconds"], rows)
    members = f" of {', '.join(facts['members'])}" if "members" in facts else ""
    out.print(f"kept: {find_spec(facts['kind']).title}{members}, the smallest that is as good as the best")


def _make_cluster_trainer(
    options: TrainOptions, source: "Source | ShardedFeatureTable", rounds: "list[RoundReport]"
) -> Callable[..., Any] | None:
    """Make the trainer for a Ray cluster and rows in shards; None if this process trains."""
    from wsabie.distributed.averaging_trainer import make_averaging_trainer
    from wsabie.io.shards.shard_folder import is_shard_folder
    from wsabie.io.shards.sharded_table import ShardedFeatureTable

    if options.ray is None:
        return None
    if not isinstance(source, ShardedFeatureTable):
        note = "rows in shards are trained on the cluster, and these on this machine; see wsabie shards --help"
        if is_shard_folder(options.data):
            note = "models of this kind, and ensembles, are trained on this machine; the cluster only extracts features"
        print_note(note)
        return None
    return make_averaging_trainer(options.ray, options.nodes, rounds.append)


def _report_unused_relations(model: "LabelModel") -> None:
    """Report relations without examples, and a label that may be misspelt."""
    from wsabie.vocabulary.name_suggestions import format_unknown_label

    unused_pairs = model.list_unused_relations() if hasattr(model, "list_unused_relations") else []
    if unused_pairs:
        first, second = unused_pairs[0]
        relations = format_count(len(unused_pairs), "relation")
        print_note(f"{relations} left out, such as {first} and {second}: each needs two pictures")
        vocabulary = model.vocabulary_
        if missing := next((name for pair in unused_pairs for name in pair if name not in vocabulary), None):
            print_note(format_unknown_label(missing, list(vocabulary)))


def _train_space(options: TrainOptions, declaration: "SpaceDeclaration") -> Report:
    """Train a space by a declaration, save it, and report the result."""
    from wsabie.models.entity_space.space import Space
    from wsabie.workflows.spaces.space_training import WORK_FILES, SpaceRecipe, apply_parameters, train_space

    space = apply_parameters(Space(), declaration, list_stated(options.shape) | options.run_settings())
    relations = tuple(options.space.only or ()), options.space.stop_on or "mean"
    hold_out = 0.1 if options.hold_out is None else options.hold_out
    recipe = SpaceRecipe(declaration, options.model, space, hold_out, *relations, options.work.resume)
    space.check_parameters()
    finished = _prepare_training(options, recipe.work, WORK_FILES, (options.data, *list_declared_files(declaration)))
    with resumption.report_resumable_work(recipe.work, options.work.resume), options.collect_rejects() as rejects:
        if finished:
            recipe, result = resumption.load_trained_space(recipe, rejects)
        else:
            run = shared.make_work_context(rejects, space.threads)
            result = train_space(recipe, run, resumption.open_epoch_log(options.work.log, options.work.resume))
    yield from _report_space(recipe, result)


def _report_space(recipe: "SpaceRecipe", result: "TrainingOutcome") -> Report:
    from wsabie.storage.model_folder import measure_folder_bytes

    facts, n_bytes = recipe.space.facts(), measure_folder_bytes(recipe.model)
    yield {"model": recipe.model, "bytes": n_bytes, **facts, **result.facts, "history": result.history}
    holdout, figures = result.facts["holdout_pairs"], facts["validation"]
    rows = [
        [name, pairs, holdout.get(name, 0), f"{figures[name]:.3f}" if name in figures else ""]
        for name, pairs in result.facts["pairs"].items()
    ]
    title = f"{recipe.model}: {format_count(facts['epochs'], 'epoch')}, {format_bytes(n_bytes)}"
    show_table(title, ["relation", "pairs", "held out", "MAP of these"], rows)
    out.print("entities: " + ", ".join(f"{name} {n:,}" for name, n in facts["kinds"].items()))
    first = recipe.space.relations_[0][1]
    has_features = bool(recipe.space.find_entities(first).n_features)
    query = "NEW_DATA" if has_features else f"the name of an entity of the kind {first!r}"
    print_note(f"next: wsabie annotate {quote_path(recipe.model)} with {query}, or wsabie neighbours with a name")
