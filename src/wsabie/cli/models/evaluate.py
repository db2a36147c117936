"""`wsabie evaluate`."""

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from wsabie.cli import inputs
from wsabie.cli import shared_options as shared
from wsabie.cli.framework import Options, Report, Settings, command, list_stated, option
from wsabie.cli.inputs import ONLY_LABELS, read_test_declaration, run_by_model
from wsabie.cli.knowledge_files import match_model_siblings, print_siblings, summarize_siblings
from wsabie.cli.output import TerminalProgress, format_count, format_figure, print_note, show_table
from wsabie.core.errors import InputError, require
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.core.arrays import Float64, Int64, Matrix
    from wsabie.evaluation.bootstrap import Interval
    from wsabie.evaluation.score_evaluation import Evaluation
    from wsabie.io.alignment import AlignedTable
    from wsabie.io.records import FeatureTable, Source
    from wsabie.models.annotators import Annotator
    from wsabie.models.base.label_model import LabelModel
    from wsabie.models.entity_space.space_annotator import SpaceAnnotator
    from wsabie.models.object_parts.pair_ranker import PairRanker
    from wsabie.vocabulary.label_names import Vocabulary
    from wsabie.workflows.object_parts import PartEvaluation, PartEvaluationRequest, TaskFigures


_NO_QUADRUPLETS = "no relation has two different pictures in the data, one of the object and one of the part"
KS, SPACE_KS = (1, 5, 10, 50), (1, 3, 5, 10)
SHOWN_METRICS = ("p@1", "p@5", "p@10", "recall@5", "recall@10", "recall@50", "MAP", "MRR", "ndcg@10", "AUC",
         "psib@1", "psib@5", "psib@10", "hp@5", "hp@10", "herr@5", "psp@1", "psp@3", "psp@5")  # fmt: skip


class PartsOptions(Options, panel="Models of objects and parts"):
    """Options of the evaluation of objects and parts."""

    relations: Path | None = option("Related labels to ask for, object TAB part a line (default: the model's own).")
    candidate_pairs: Path | None = option("Pairs of labels to rank, object TAB part (default: all).", metavar="FILE")
    quadruplets: int | None = option("Pairs of pictures to draw; 0: none (default: up to 10,000).", min=0, max=10**6)
    seed: int | None = option("Seed of the drawn pairs (default: 0).", min=0, max=2**63 - 1)

    def list_flags(self) -> list[str]:
        """List the flags that the command line states."""
        return [name.replace("_", "-") for name in list_stated(self)]


def make_part_request(
    parts: PartsOptions, model: "LabelModel", folder: Path, restriction: str | None
) -> "PartEvaluationRequest | None":
    """Build the request for pairs of pictures; None for other models, or if no quadruplets are wanted.

    `restriction` is an option that restricts the ranked labels.
    """
    from wsabie.models.object_parts.pair_ranker import PairRanker
    from wsabie.workflows.object_parts import build_request, choose_quadruplet_count

    if not isinstance(model, PairRanker):
        refuse_parts_options(parts, folder)
        return None
    if restriction is not None:
        for flag in parts.list_flags():
            reason = f"about pairs of all labels, and {restriction} leaves some out"
            raise InputError(f"--{flag} is {reason}; give one of the two")
        print_note(f"pairs of labels are not ranked with {restriction}")
        return None
    if parts.quadruplets == 0:
        return None
    relations = None if parts.relations is None else _read_pairs(parts.relations, model, folder)
    candidate_pairs = None if parts.candidate_pairs is None else _read_pairs(parts.candidate_pairs, model, folder)
    n_quadruplets = choose_quadruplet_count(model, candidate_pairs) if parts.quadruplets is None else parts.quadruplets
    if n_quadruplets == 0:
        labels = format_count(len(model.vocabulary_), "label")
        print_note(f"all pairs of {labels} take long: to rank them, give --quadruplets N or --candidate-pairs FILE")
        return None
    return build_request(model, n_quadruplets, parts.seed or 0, relations, candidate_pairs)


def refuse_parts_options(parts: PartsOptions, folder: Path) -> None:
    """Refuse the options for models without objects and parts."""
    for flag in parts.list_flags():
        raise InputError(f"{folder} is not a model of objects and parts, which --{flag} is for; leave --{flag} out")


def _read_pairs(file: Path, model: "PairRanker", folder: Path) -> "Int64":
    from wsabie.vocabulary.label_quadruplets import convert_pairs_to_ids

    pairs = convert_pairs_to_ids(inputs.read_label_pairs(file), model.vocabulary_)
    if pairs.left_out:
        summary = f"{format_count(len(pairs.left_out), 'pair')} of {file} with a label that {folder} does not know"
        example = f"such as {' and '.join(pairs.left_out[0])}"
        require(len(pairs.ids) > 0, f"all {summary}, {example}; name labels as `wsabie info` and the data do")
        print_note(f"{summary} left out, {example}")
    return pairs.ids


def show_parts(evaluation: "PartEvaluation") -> None:
    """Show the figures as a table."""
    request = evaluation.request
    if request.non_candidates:
        print_note(f"{format_count(request.non_candidates, 'relation')} left out: not among the given pairs of labels")
    if not evaluation.tasks:
        print_note(f"no quadruplets: {_NO_QUADRUPLETS} ({format_count(len(evaluation.without), 'relation')} looked at)")
        return
    if evaluation.without:
        first, second = evaluation.without[0]
        summary = format_count(len(evaluation.without), "relation")
        print_note(f"{summary} left out, such as {first} and {second}: each needs two pictures in the data")
    title = f"{format_count(request.n, 'quadruplet')} of {format_count(evaluation.n_used_relations, 'relation')}"
    lines = []
    for task in evaluation.tasks:
        group = task.name if task.relation_group == "all" else f"{task.name}, {task.relation_group}"
        for metric in task.metrics:
            name = f"{group} {'mean rank' if metric == 'rank' else metric}"
            figures = (_format_interval(task, metric, field) for field in ("metrics", "image_metrics"))
            lines.append([name, *chain.from_iterable(figures)])
    show_table(title, ["metric", "value", "95 % interval", "pictures alone", "95 % interval"], lines)
    ranked = " and ".join(f"{task.name} among {task.candidates:,}" for task in evaluation.tasks[:2])
    print_note(f"{ranked}; intervals draw whole relations")


def _format_interval(task: "TaskFigures", metric: str, field: str) -> list[str]:
    mean, low, high = getattr(task, field)[metric]
    number_format = ",.1f" if metric == "rank" else ".4f"
    return [f"{mean:{number_format}}", f"{low:{number_format}} to {high:{number_format}}" if task.has_intervals else ""]


class EvaluateOptions(shared.DataOptions, shared.ModelClusterOptions):
    """Options of `wsabie evaluate`."""

    model: shared.Model
    data: shared.Data
    candidates: Annotated[shared.Candidates, ONLY_LABELS] = None
    exclude: Path | None = option("Training data of --by one-label: its labels are not candidates.", scope=ONLY_LABELS)
    propensities: Path | None = option(
        "The model's training data: its label counts weight rare labels more, in psp@k.",
        metavar="DATA",
        scope=ONLY_LABELS,
    )
    allow_overlap: shared.AllowOverlap = False
    labels: shared.HierarchyOptions
    parts: PartsOptions


@command("evaluate birds test-photos/", "evaluate birds test-photos/ --hierarchy /usr/share/wordnet --json")
def evaluate(options: EvaluateOptions) -> Report:
    """Measure a model on data with known labels.

    Figures are p@k, recall@k, MAP, AUC, nDCG and coverage, with intervals.

    For objects and parts, also rank labels of two pictures together, and of one given the other's label.
    """
    return run_by_model(options, _evaluate_labels, _evaluate_space)


def _evaluate_labels(options: EvaluateOptions) -> Report:
    """Score every row with a known label, and print the metrics with bootstrap intervals."""
    from wsabie.evaluation.bootstrap import bootstrap_all
    from wsabie.evaluation.metrics import select_informative_lengths
    from wsabie.io.records import get_groups
    from wsabie.workflows.batch_inference import evaluate_model
    from wsabie.workflows.object_parts import evaluate_parts

    model, data, parts = options.model, options.data, options.parts
    candidates, exclude = options.candidates, options.exclude
    reference = options.propensities
    options.check_outputs(inputs=(data, model, exclude, reference, candidates, parts.relations, parts.candidate_pairs))
    annotator, progress = inputs.load_annotator(model, options.threads), TerminalProgress()
    executor = options.make_executor(data, model)
    estimator, vocabulary = annotator.model, annotator.model.vocabulary_
    label_ids = _select_label_ids(vocabulary, candidates)
    restriction = "--candidates" if candidates is not None else "--exclude" if exclude is not None else None
    part_request = make_part_request(parts, estimator, model, restriction)
    tree, siblings = options.labels.tree, match_model_siblings(options.labels, annotator, label_ids)
    names = vocabulary.names(label_ids) if tree is not None else []
    hops, heights = (None, None) if tree is None else (tree.find_distances(names), tree.find_ancestors(names))
    with options.collect_rejects() as rejects:
        aligned = _read_rows(options, annotator, {"executor": executor, "progress": progress, "rejects": rejects})
        rows = aligned.rows.with_labels(label_ids)
        if candidates is not None and not (rows.Y.data > 0).any():
            fact = f"no row has a label that {candidates} names"
            raise InputError(f"{fact}; give candidates that are right for some rows")
        excluded = None if exclude is None else _read_excluded_labels(options, exclude, rows, rejects)
        workers = (executor, model) if executor.has_persistent_workers else None
        settings: Settings = {"exclude": excluded, "workers": workers, "similar": siblings}
        settings["label_ids"] = label_ids if len(label_ids) < len(vocabulary) else None
        settings["propensities"] = None if reference is None else _read_propensities(options, reference, rows, rejects)
        ks = select_informative_lengths(KS if reference is None else (*KS, 3), len(rows.label_names))
        evaluation = evaluate_model(estimator, rows, ks, "scoring", progress, hops=hops, heights=heights, **settings)
        intervals = bootstrap_all(_select_metrics(evaluation), groups=get_groups(rows, evaluation.rows))
        part_evaluation = None if part_request is None else evaluate_parts(estimator, rows, part_request, progress)
    sibling_facts = {} if siblings is None else {"siblings": summarize_siblings(siblings)}
    quadruplets = {} if part_evaluation is None else {"quadruplets": part_evaluation.as_dict()}
    names, bounds = aligned.unknown_labels, {name: [i.low, i.high] for name, i in intervals.items()}
    unknown = {"labels": len(names), "pairs": aligned.unknown_pairs, "names": names}
    yield {**evaluation.as_dict(), "intervals": bounds, "unknown": unknown, **sibling_facts, **quadruplets}
    _show_evaluation(evaluation, intervals)
    if siblings is not None:
        print_siblings(summarize_siblings(siblings))
    if part_evaluation is not None:
        show_parts(part_evaluation)


def _read_rows(options: EvaluateOptions, annotator: "Annotator", resources: Settings) -> "AlignedTable":
    """Read the rows with known labels; refuse training data."""
    model, data, width = options.model, options.data, annotator.model.n_features_in_
    source = options.open_data(data, resources["rejects"], n_features=width, **inputs.get_read_options(annotator.facts))
    if not options.allow_overlap:
        _refuse_training_data(annotator, source, data)
    aligned = inputs.align_rows(annotator, model, source, **resources)
    if not options.allow_overlap:
        _refuse_training_data(annotator, aligned.rows, data)
        if options.exclude is None:  # otherwise the same rows have other labels on each side
            _refuse_training_rows(annotator, aligned.rows, data)
    _refuse_unlabelled(aligned, model, data)
    inputs.report_unknown_labels(aligned, data)
    return aligned


def _select_metrics(evaluation: "Evaluation") -> Settings:
    """Select the values per row of the metrics that are shown."""
    return {name: evaluation.per_row[name] for name in SHOWN_METRICS if name in evaluation.per_row}


def _evaluate_space(options: EvaluateOptions, annotator: "SpaceAnnotator") -> Report:
    """Evaluate every relation, with bootstrap intervals."""
    from wsabie.evaluation.bootstrap import bootstrap_all
    from wsabie.workflows.spaces.space_training import evaluate_space

    refuse_parts_options(options.parts, options.model)
    refusal = f"{options.model} is a space of several kinds of entities; give a file such as that of its training"
    declaration = read_test_declaration(options.data, refusal)
    options.check_outputs(inputs=(options.data, options.model))
    with options.collect_rejects() as rejects:
        run = shared.make_work_context(rejects, options.threads, options.ray)
        overlap = options.pick("allow_overlap")
        evaluations = evaluate_space(annotator, declaration, SPACE_KS, run, hierarchy=options.labels.tree, **overlap)
    relations = {}
    for name, evaluation in evaluations.items():
        intervals = bootstrap_all(_select_metrics(evaluation))
        bounds = {metric: [i.low, i.high] for metric, i in intervals.items()}
        relations[name] = {**evaluation.as_dict(), "intervals": bounds}
        if not options.json:
            lines = [[metric, f"{i.mean:.4f}", f"{i.low:.4f} to {i.high:.4f}"] for metric, i in intervals.items()]
            title = f"{name}: {format_count(evaluation.n_rows, 'query', 'queries')}, {evaluation.n_labels:,} candidates"
            show_table(title, ["metric", "value", "95 % interval"], lines)
    yield {"model": options.model, "relations": relations}


def _select_label_ids(vocabulary: "Vocabulary", candidates: Path | None) -> "Int64":
    import numpy as np

    if candidates is None:
        return vocabulary.active_ids()
    label_ids = np.unique(vocabulary.ids(inputs.read_label_file(candidates)))
    require(len(label_ids) >= 2, f"{candidates} names one label, which is always right; give two or more")
    return label_ids


def _read_excluded_labels(options: EvaluateOptions, exclude: Path, rows: "FeatureTable", rejects: Rejects) -> "Matrix":
    """Read labels of the rows in other data, which are not candidates."""
    from wsabie.io.alignment import look_up_labels

    data = options.data
    table = inputs.make_label_table(options.open_data(exclude, rejects))
    labels = look_up_labels(table, rows.ids, rows.label_names)
    require(labels.nnz > 0, f"no row of {data} has a label in {exclude}; give the training data of the same split")
    n_excluded = int((labels.multiply(rows.Y > 0)).nnz)
    if n_excluded:
        print_note(f"{format_count(n_excluded, 'pair')} of {data} left out: {exclude} has them too")
    return labels


def _read_propensities(options: EvaluateOptions, data: Path, rows: "FeatureTable", rejects: Rejects) -> "Float64":
    """Count the labels in the training data, and compute their propensities."""
    from wsabie.evaluation.metrics import compute_propensities
    from wsabie.io.alignment import align_table
    from wsabie.io.records import count_labels

    table = inputs.make_label_table(options.open_data(data, rejects))
    counts = count_labels(align_table(table, rows.label_names).rows)
    require(bool(counts.any()), f"no row of {data} has a label of the model; give the data that it was trained on")
    return compute_propensities(counts, len(table))


def _refuse_training_data(annotator: "Annotator", source: "Source", data: Path) -> None:
    if inputs.is_training_data(source, annotator.facts):
        raise InputError(f"{data} is what the model was trained on; give other data, or add --allow-overlap")


def _refuse_training_rows(annotator: "Annotator", rows: "FeatureTable", data: Path) -> None:
    """Refuse data with mostly training rows, and report fewer: some rows may be equal by chance."""
    n_known, n_checked, counts = inputs.count_training_rows(annotator, rows, data)
    finding = f"{counts} have id and features of training rows"
    require(2 * n_known <= n_checked, f"{finding}; give other data, or add --allow-overlap")
    if n_known:
        print_note(f"{finding}; figures are too good by those")


def _refuse_unlabelled(aligned: "AlignedTable", model: Path, data: Path) -> None:
    if (aligned.rows.Y.data > 0).any():
        return
    unknown, known_names = aligned.unknown_labels, aligned.rows.label_names
    if not aligned.unknown_pairs:
        raise InputError(f"no row of {data} has a label, so nothing can be measured; give data with labels")
    labels = f"{format_count(len(unknown), 'label')} of {data}, such as {inputs.format_names(unknown)}"
    fact = f"{model} knows none of the {labels}; it knows {inputs.format_names(known_names)} and the like"
    raise InputError(f"{fact}: give data with labels that it knows, or train on labels like these")


def _show_evaluation(evaluation: "Evaluation", intervals: "dict[str, Interval]") -> None:
    lines = [
        [name, f"{i.mean:.4f}", f"{i.low:.4f} to {i.high:.4f}", format_figure(evaluation.ceilings.get(name), ".4f")]
        for name, i in intervals.items()
    ]
    k = 10 if 10 in evaluation.coverage else max(evaluation.coverage)
    lines.append([f"coverage@{k}", f"{evaluation.coverage[k]:.4f}", "", ""])
    title = f"{format_count(evaluation.n_rows, 'row')}, {format_count(evaluation.n_labels, 'label')}"
    show_table(title, ["metric", "value", "95 % interval", "highest possible"], lines)
    if tied := evaluation.tied_at_cut.get(k):
        rows = format_count(tied, "row")
        print_note(f"{rows} with tied labels at the cut after {k}; ties count as in a random order")
