"""`wsabie train`."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from os import SEEK_END
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from wsabie.cli.inputs.command_inputs import (
    collect_rejects,
    find_width,
    has_regions,
    is_training_data,
    make_executor,
    open_data,
    read_label_pairs,
    refuse_without_effect,
    report_unknown_labels,
)
from wsabie.cli.inputs.knowledge_files import make_vector_parameters
from wsabie.cli.inputs.parameter_file import read_parameters
from wsabie.cli.models.resumption import load_trained_model
from wsabie.cli.terminal.epoch_tables import format_epoch_count
from wsabie.cli.terminal.output import (
    NOTHING_KEPT,
    InterruptExit,
    TerminalProgress,
    format_count,
    out,
    print_note,
    resume_line,
    show_json,
)
from wsabie.core.errors import InputError, WsabieError
from wsabie.io.records import Source
from wsabie.io.shards.shard_folder import is_shard_folder
from wsabie.io.shards.sharded_table import ShardedFeatureTable, open_shards
from wsabie.storage.atomic_files import WriteError, explain_write_errors, lock_folder
from wsabie.storage.model_folder import is_model_folder
from wsabie.storage.output_checks import check_output_paths
from wsabie.storage.rejects import Rejects
from wsabie.storage.scratch_folders import refuse_unknown_files
from wsabie.training.epoch_stats import EpochStats

if TYPE_CHECKING:
    from wsabie.distributed.averaging_rounds import RoundReport
    from wsabie.models.base.label_model import LabelModel
    from wsabie.workflows.train.model_training import TrainingRecipe


@dataclass
class ClusterReport:
    """Training on a cluster: nodes that came, nodes that were lost, and rounds of averaging."""

    came: int = 0
    lost: int = 0
    rounds: int = 0

    def add_round(self, report: "RoundReport") -> None:
        """Add a round."""
        self.came, self.lost, self.rounds = report.came, report.lost, self.rounds + 1


@dataclass(frozen=True)
class TrainRequest:
    """Request of the command line: data, recipe and outputs of a training."""

    data: Path
    valid: Path | None
    recipe: "TrainingRecipe"
    log: Path | None
    rejects: Path | None
    strict: bool
    json: bool
    items: str | None = None
    image_label: str | None = None
    ray: str | None = None
    nodes: int | None = None
    restart: bool = False


def make_estimator(
    kind: str, parameters: dict[str, Any], run: dict[str, Any], n_models: int | None, by: str | None
) -> "LabelModel":
    """Build the estimator, or an ensemble of `n_models`; `run` has the seed and the threads."""
    from wsabie.models.ensembles.ensemble import Ensemble
    from wsabie.models.estimator_specs import build_estimator, find_spec

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


def parse_relations(kind: str, option: str | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
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


def refuse_without_epochs(kind: str, options: dict[str, Any]) -> None:
    """Refuse options about epochs for kinds without epochs."""
    from wsabie.models.estimator_specs import find_spec

    for flag, value in options.items():
        if value and not find_spec(kind).trained:
            raise InputError(f"--{flag} is about epochs, and {kind} has none; leave --{flag} out")


def refuse_held_out_twice(valid: Path | None, hold_out: float | None, metric: str | None) -> None:
    """Refuse two sets of validation rows, and a metric without validation rows."""
    if metric is not None and hold_out == 0 and valid is None:
        raise InputError("--metric chooses the epoch by rows that are set aside; give --valid DATA or more --hold-out")
    if valid is not None and hold_out:
        raise InputError("--hold-out sets training rows aside and --valid gives others; leave one of them out")


def collect_parameters(
    kind: str,
    config: Path | None,
    shape: dict[str, Any],
    run: dict[str, Any],
    label_options: dict[str, Any],
    relations: str | None,
) -> dict[str, Any]:
    """Collect the parameters of the estimator; options (`shape`, `run`) override those of a file.

    `label_options` has the files about meanings of labels: `vectors`, `knowledge` and `labels`.
    """
    file_parameters = {} if config is None else read_parameters(config, kind)
    file_parameters = {name: value for name, value in file_parameters.items() if name not in run}
    parameters = make_vector_parameters(kind, dim=shape.get("dim"), **label_options) | file_parameters
    return parameters | parse_relations(kind, relations, parameters) | shape


def run_train(request: TrainRequest) -> None:
    """Open the data, train, save the model, and report the result."""
    from wsabie.workflows.train.model_training import train_model

    finished = _check_before_work(request)
    _report_order_statistic(request.recipe.estimator)
    progress, recipe, cluster = TerminalProgress(), request.recipe, ClusterReport()
    with (
        report_resumable_work(recipe.work, recipe.resume),
        collect_rejects(request.rejects, strict=request.strict) as rejects,
    ):
        source, valid = _open_sources(request, rejects)
        if finished:
            annotator = load_trained_model(recipe, source)
            request = replace(request, recipe=replace(recipe, estimator=annotator.model))
            _report_training(request, annotator.facts, getattr(annotator.model, "history_", []), cluster)
            return
        result = train_model(
            source,
            valid,
            recipe,
            executor=make_executor(recipe.threads, request.ray, request.data, request.valid),
            progress=progress,
            rejects=rejects,
            on_epoch=open_epoch_log(request.log, recipe.resume),
            trainer=_make_cluster_trainer(request, source, cluster),
        )
    if result.validation is not None:
        report_unknown_labels(result.validation, request.valid)
    if valid is not None and is_training_data(valid, result.facts):
        print_note(
            f"{request.valid} is the training data itself, so that the epoch was chosen by what is known by heart"
        )
    if recipe.hold_out and valid is None and not result.facts["validation_rows"]:
        print_note("no row that was set aside has a label that other rows have, so that the last epoch was kept")
    _report_training(request, result.facts, result.history, cluster)
    if not request.json:
        command = "parts" if recipe.system == "parts" and getattr(source, "things", None) == "pictures" else "annotate"
        print_note(
            f"next: wsabie {command} {quote(str(recipe.model))} {'PICTURE' if command == 'parts' else 'NEW_DATA'}"
        )


@contextmanager
def report_resumable_work(work: Path, resume: bool) -> Iterator[None]:
    """Report the work that is kept in the folder `work` if training ends early."""
    try:
        yield
    except WriteError as error:
        resume_command = "the same command again with --resume"
        sentence = str(error).replace("the same command again", resume_command)
        sentence = sentence.replace(
            "choose a folder that you may write to", f"make that possible and run {resume_command}"
        )
        raise WriteError(sentence) from error
    except KeyboardInterrupt:
        unfinished = format_unfinished_work(work)
        raise InterruptExit(
            f"stopped; {unfinished} kept in {work}; go on with: {resume_line()}" if unfinished else NOTHING_KEPT
        ) from None
    except WsabieError:
        if (unfinished := format_unfinished_work(work)) and not resume:  # a resumed run has told the user already
            print_note(f"{unfinished} kept in {work}; --resume goes on from that")
        raise
    finally:
        with suppress(OSError):
            work.rmdir()  # if it is empty


def format_unfinished_work(work: Path) -> str:
    """Describe the unfinished work in a folder, with a verb; "" if there is none."""
    if is_model_folder(work / "checkpoint") or any(work.glob("checkpoint/*/config.json")):
        return "finished epochs are"
    if (work / "features.parquet").exists():
        return "the description of the items is"
    return "what is described already is" if any(work.glob("*")) else ""


def _check_before_work(request: TrainRequest) -> bool:
    """Check everything that could fail at the end; return True if the model is finished."""
    from wsabie.storage.model_folder import refuse_foreign_files
    from wsabie.workflows.train.model_training import KEPT, check_validation_metric

    model, work = request.recipe.model, request.recipe.work
    request.recipe.estimator.check_parameters()
    check_validation_metric(request.recipe)
    refuse_foreign_files(model)
    refuse_unknown_files(work, KEPT)
    for path in (request.data, request.valid):
        if path is not None and work.resolve() in path.resolve().parents:
            raise InputError(f"{path} lies in {work}, which is emptied at the end; move it or name another model")
    check_output_paths(
        ("rejects", request.rejects),
        ("log", request.log),
        inputs=(request.data, request.valid, model, work),
        folder=model,
    )
    return refuse_discard(model, work, resume=request.recipe.resume, restart=request.restart)


def refuse_discard(model: Path, work: Path, *, resume: bool, restart: bool) -> bool:
    """Refuse to discard unfinished work; return True if the model is finished and `resume` has no work."""
    with lock_folder(work):
        pass  # raises while another process trains this model
    has_work, has_model = (path.is_dir() and any(path.iterdir()) for path in (work, model))
    if resume and restart:
        raise InputError("--resume goes on from unfinished training and --anew removes it; leave one of them out")
    if has_work and not (resume or restart):
        raise InputError(f"{work} holds unfinished training; give --resume to go on from it, or --anew to begin anew")
    if is_model_folder(model) and resume and not has_work:
        return True
    if has_model:
        print_note(f"{model} holds a model; it is replaced when training is done")
    if resume and not has_work:
        print_note(f"there is no unfinished training at {work}; this one begins at the beginning")
    return False


def _report_order_statistic(estimator: "LabelModel") -> None:
    """Report the order statistic of the loss k-os, of a model or its parts."""
    from wsabie.training.losses import ORDER_STATISTIC

    parameters = estimator.get_params()
    losses = [name for name, value in parameters.items() if name.endswith("loss") and value == "k-os"]
    for requested in dict.fromkeys(str(parameters[f"{name[:-4]}order_statistic"] or "") for name in losses):
        order_statistic = requested or f"{list(ORDER_STATISTIC)} (the k-th highest of n; --config FILE takes another)"
        print_note(f"loss k-os ranks one of several positives: order_statistic = {order_statistic}")


def _open_sources(request: TrainRequest, rejects: Rejects) -> tuple[Source | ShardedFeatureTable, Source | None]:
    """Open the data and the validation data."""
    if is_shard_folder(request.data) and getattr(request.recipe.estimator, "reads_shards", False):
        return _open_shard_sources(request, rejects)
    source = _add_full_images(request.image_label, request.data, open_data(request.data, rejects, items=request.items))
    refuse_without_effect(source, request.data, request.recipe.description)
    if request.valid is None:
        return source, None
    valid = open_data(request.valid, rejects, n_features=find_width(source), default_items=request.items)
    return source, _add_full_images(request.image_label, request.valid, valid)


def _open_shard_sources(request: TrainRequest, rejects: Rejects) -> tuple[ShardedFeatureTable, Source | None]:
    rows = open_shards(request.data)
    refuse_without_effect(rows, request.data, request.recipe.description)
    if request.items or request.image_label:
        raise InputError("--items and --whole say what of marked pictures counts, and shards hold rows; leave them out")
    return rows, None if request.valid is None else open_data(request.valid, rejects, n_features=rows.n_features)


def _add_full_images(image_label: str | None, path: Path, source: Source) -> Source:
    """Add the full pictures of marked regions as items with the label `image_label`."""
    from wsabie.io.region_nesting import add_full_images

    if image_label is None:
        return source
    if not has_regions(source):
        raise InputError(
            f"--whole labels the pictures that regions are in, and {path} has no regions; leave --whole out"
        )
    return add_full_images(source, image_label)


def _report_training(
    request: TrainRequest, facts: dict[str, Any], history: list[EpochStats], cluster: ClusterReport
) -> None:
    from wsabie.storage.model_folder import measure_folder_bytes

    model_facts = request.recipe.estimator.facts()
    validation_map = model_facts.get("validation_map")
    n_bytes = measure_folder_bytes(request.recipe.model)
    if request.json:
        summary = {"schema": 1, "model": str(request.recipe.model), "bytes": n_bytes, "epochs": len(history)}
        summary |= {"models": model_facts["models"]} if "models" in model_facts else {}
        summary |= {"nodes": {"came": cluster.came, "lost": cluster.lost}} if cluster.rounds else {}
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
    dropped_text = f" ({n_dropped:,} with fewer than {request.recipe.min_rows} rows left out)" if n_dropped else ""
    labels, rows = format_count(facts["labels"], "label"), format_count(facts["rows"], "row")
    n_unlabelled = facts["rows_without_labels"]
    rows += f" ({n_unlabelled:,} without a label)" if n_unlabelled else ""
    out.print(
        f"{request.recipe.model}: {labels}{dropped_text} from {rows}, "
        f"{epochs_text + ', ' if history else ''}{n_bytes / 1e6:.1f} MB"
    )
    if cluster.rounds:
        lost = f", {cluster.lost} of them lost" if cluster.lost else ""
        print_note(
            f"{format_count(cluster.came, 'node')} took part{lost}; their tables came together "
            f"{format_count(cluster.rounds, 'time')}"
        )
    _report_unused_relations(request.recipe.estimator)


def _make_cluster_trainer(
    request: TrainRequest, source: Source | ShardedFeatureTable, cluster: ClusterReport
) -> Callable[..., Any] | None:
    """Make the trainer for a Ray cluster and rows in shards; None if this process trains."""
    from wsabie.distributed.averaging_trainer import make_averaging_trainer

    if request.ray is None:
        return None
    if not isinstance(source, ShardedFeatureTable):
        shards_note = (
            "models of this kind, and ensembles, are trained on this machine; the cluster describes items alone"
        )
        rows_note = "rows in shards are trained on the cluster, and these on this machine; see wsabie shards --help"
        print_note(shards_note if is_shard_folder(request.data) else rows_note)
        return None
    return make_averaging_trainer(request.ray, request.nodes, cluster.add_round)


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


def open_epoch_log(log: Path | None, resume: bool) -> Callable[[EpochStats], None] | None:
    """Open a log that gets one flushed JSON line per epoch, for watching a run; None without a path.

    A resumed run repeats the epochs after the last checkpoint; identical epochs get no second line. With lock-free
    threads, here or on a cluster, epochs differ, and their lines follow those of the first run.
    """
    if log is None:
        return None
    logged = _read_logged_epochs(log) if resume else set()
    with explain_write_errors(log):
        log.parent.mkdir(parents=True, exist_ok=True)

    def write(stats: EpochStats) -> None:
        if (stats.epoch, stats.loss) not in logged:
            with explain_write_errors(log), log.open("a", encoding="utf-8") as lines:
                lines.write(("\n" if _is_cut_off(log) else "") + json.dumps(stats.as_dict()) + "\n")

    return write


def _is_cut_off(log: Path) -> bool:
    """Return True if the last line is incomplete after a full disk or a killed process."""
    with log.open("rb") as lines:
        size = lines.seek(0, SEEK_END)
        lines.seek(max(size - 1, 0))
        return lines.read() not in (b"", b"\n")


def _read_logged_epochs(log: Path) -> set[tuple[Any, Any]]:
    """Read the epoch and the loss of every complete line."""
    epochs = set()
    with explain_write_errors(log):
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    for line in lines:
        with suppress(ValueError, AttributeError):
            stats = json.loads(line)
            epochs.add((stats.get("epoch"), stats.get("loss")))
    return epochs
