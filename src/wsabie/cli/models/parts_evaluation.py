"""`wsabie evaluate` of a model of objects and parts: quadruplets of objects, parts and pictures."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wsabie.cli.inputs.command_inputs import read_label_pairs
from wsabie.cli.terminal.output import format_count, print_note, show_table
from wsabie.core.errors import InputError
from wsabie.models.object_parts.pair_ranker import PairRanker
from wsabie.vocabulary.label_quadruplets import convert_pairs_to_ids

if TYPE_CHECKING:
    from wsabie.core.arrays import Int64
    from wsabie.workflows.object_parts.part_evaluation import PartEvaluation, PartEvaluationRequest, TaskFigures

_METRIC_NAMES = {"rank": "mean rank"}
_NO_QUADRUPLETS = "no relation has two different pictures in the data, one of the object and one of the part"


class PartsOptions(NamedTuple):
    """Options of the command line; None if not given."""

    n: int | None = None
    seed: int | None = None
    relations: Path | None = None
    among: Path | None = None

    @property
    def stated(self) -> dict[str, Any]:
        """Options that the command line states, by flag."""
        flags = zip(("quadruplets", "seed", "relations", "among"), self, strict=True)
        return {flag: value for flag, value in flags if value is not None}


def make_question(
    options: PartsOptions, model: Any, folder: Path, restriction: str | None
) -> "PartEvaluationRequest | None":
    """Build the request for pairs of pictures; None for other models, or if no quadruplets are wanted.

    `restriction` is an option that restricts the ranked labels.
    """
    from wsabie.workflows.object_parts.part_evaluation import build_request, choose_quadruplet_count

    if not isinstance(model, PairRanker):
        refuse_parts_options(options, folder)
        return None
    if restriction is not None:
        for flag in options.stated:
            raise InputError(
                f"--{flag} is about pairs of all labels, and {restriction} leaves some out; give one of the two"
            )
        print_note(f"pairs of labels are not ranked with {restriction}")
        return None
    if options.n == 0:
        return None
    relations = None if options.relations is None else _read_pairs(options.relations, model, folder)
    candidate_pairs = None if options.among is None else _read_pairs(options.among, model, folder)
    n_quadruplets = choose_quadruplet_count(model, candidate_pairs) if options.n is None else options.n
    if n_quadruplets == 0:
        labels = format_count(len(model.vocabulary_), "label")
        print_note(f"all pairs of {labels} are not ranked unasked: give --among FILE, or --quadruplets N and time")
        return None
    return build_request(model, n_quadruplets, options.seed or 0, relations, candidate_pairs)


def refuse_parts_options(options: PartsOptions, folder: Path) -> None:
    """Refuse the options for models without objects and parts."""
    for flag in options.stated:
        raise InputError(f"{folder} is no model of objects and parts, which --{flag} is for; leave --{flag} out")


def _read_pairs(file: Path, model: PairRanker, folder: Path) -> "Int64":
    pairs = convert_pairs_to_ids(read_label_pairs(file), model.vocabulary_)
    if pairs.left_out:
        first, second = pairs.left_out[0]
        summary = f"{format_count(len(pairs.left_out), 'pair')} of {file} with a label that {folder} does not know"
        if not len(pairs.ids):
            raise InputError(
                f"all {summary}, such as {first} and {second}; name labels as `wsabie info` and the data do"
            )
        print_note(f"{summary} left out, such as {first} and {second}")
    return pairs.ids


def show_parts(evaluation: "PartEvaluation") -> None:
    """Show the figures as a table."""
    request = evaluation.question
    if request.not_among:
        print_note(f"{format_count(request.not_among, 'relation')} left out: not among the given pairs of labels")
    if not evaluation.tasks:
        print_note(f"no quadruplets: {_NO_QUADRUPLETS} ({format_count(len(evaluation.without), 'relation')} looked at)")
        return
    if evaluation.without:
        first, second = evaluation.without[0]
        summary = format_count(len(evaluation.without), "relation")
        print_note(f"{summary} left out for want of two pictures in the data, such as {first} and {second}")
    title = f"{format_count(request.n, 'quadruplet')} of {format_count(evaluation.used, 'relation')}"
    lines = [line for task in evaluation.tasks for line in _make_lines(task)]
    show_table(title, ["metric", "value", "95 % interval", "pictures alone", "95 % interval"], lines)
    ranked = " and ".join(f"{task.name} among {task.candidates:,}" for task in evaluation.tasks[:2])
    print_note(f"{ranked}; intervals draw whole relations")


def _make_lines(task: "TaskFigures") -> list[list[str]]:
    group = task.name if task.of == "all" else f"{task.name}, {task.of}"
    return [
        [
            f"{group} {_METRIC_NAMES.get(metric, metric)}",
            *_format_interval(task, metric, "metrics"),
            *_format_interval(task, metric, "image_metrics"),
        ]
        for metric in task.metrics
    ]


def _format_interval(task: "TaskFigures", metric: str, group: str) -> list[str]:
    mean, low, high = getattr(task, group)[metric]
    number_format = ",.1f" if metric == "rank" else ".4f"
    return [f"{mean:{number_format}}", f"{low:{number_format}} to {high:{number_format}}" if task.certain else ""]
