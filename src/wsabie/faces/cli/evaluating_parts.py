"""What `wsabie evaluate` asks a model of objects and parts beside labels of pictures."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import couples_in
from wsabie.faces.cli.terminal import note, plural, show_table
from wsabie.labels.quadruplets import numbered
from wsabie.models.part_labels import PartLabels

if TYPE_CHECKING:
    from wsabie.base.arrays import Int64
    from wsabie.studies.judged_parts import PartsJudged, Question, Task

_NAMES = {"rank": "mean rank"}
_WITHOUT = "no relation has two different pictures in the data, one of the object and one of the part"


class PartsAsked(NamedTuple):
    """Options; None where the command line does not name one."""

    n: int | None = None
    seed: int | None = None
    relations: Path | None = None
    among: Path | None = None

    @property
    def stated(self) -> dict[str, Any]:
        """Those that are named, by flag."""
        flags = zip(("quadruplets", "seed", "relations", "among"), self, strict=True)
        return {flag: value for flag, value in flags if value is not None}


def question_of(asked: PartsAsked, model: Any, folder: Path, fewer: str | None) -> "Question | None":
    """What is asked about pairs of pictures; None of another kind of model, and where no quadruplet is wanted.

    `fewer` is an option by which labels are left out of what is ranked.
    """
    from wsabie.studies.judged_parts import question_to, usual_number

    if not isinstance(model, PartLabels):
        refuse_of_parts(asked, folder)
        return None
    if fewer is not None:
        for flag in asked.stated:
            raise InputError(f"--{flag} is about pairs of all labels, and {fewer} leaves some out; give one of the two")
        note(f"pairs of labels are not ranked with {fewer}")
        return None
    if asked.n == 0:
        return None
    relations = None if asked.relations is None else _pairs_in(asked.relations, model, folder)
    couples = None if asked.among is None else _pairs_in(asked.among, model, folder)
    n = usual_number(model, couples) if asked.n is None else asked.n
    if n == 0:
        labels = plural(len(model.vocabulary_), "label")
        note(f"all pairs of {labels} are not ranked unasked: give --among FILE, or --quadruplets N and time")
        return None
    return question_to(model, n, asked.seed or 0, relations, couples)


def refuse_of_parts(asked: PartsAsked, folder: Path) -> None:
    """Refuse the options where the model is none of objects and parts."""
    for flag in asked.stated:
        raise InputError(f"{folder} is no model of objects and parts, which --{flag} is for; leave --{flag} out")


def _pairs_in(file: Path, model: PartLabels, folder: Path) -> "Int64":
    found = numbered(couples_in(file), model.vocabulary_)
    if found.left_out:
        one, other = found.left_out[0]
        told = f"{plural(len(found.left_out), 'pair')} of {file} with a label that {folder} does not know"
        if not len(found.ids):
            raise InputError(f"all {told}, such as {one} and {other}; name labels as `wsabie info` and the data do")
        note(f"{told} left out, such as {one} and {other}")
    return found.ids


def show_parts(found: "PartsJudged") -> None:
    """The figures as a table."""
    asked = found.question
    if asked.not_among:
        note(f"{plural(asked.not_among, 'relation')} left out: not among the given pairs of labels")
    if not found.tasks:
        note(f"no quadruplets: {_WITHOUT} ({plural(len(found.without), 'relation')} looked at)")
        return
    if found.without:
        one, other = found.without[0]
        told = plural(len(found.without), "relation")
        note(f"{told} left out for want of two pictures in the data, such as {one} and {other}")
    title = f"{plural(asked.n, 'quadruplet')} of {plural(found.used, 'relation')}"
    lines = [line for task in found.tasks for line in _lines(task)]
    show_table(title, ["metric", "value", "95 % interval", "pictures alone", "95 % interval"], lines)
    ranked = " and ".join(f"{task.name} among {task.candidates:,}" for task in found.tasks[:2])
    note(f"{ranked}; intervals draw whole relations")


def _lines(task: "Task") -> list[list[str]]:
    group = task.name if task.of == "all" else f"{task.name}, {task.of}"
    return [
        [f"{group} {_NAMES.get(metric, metric)}", *_cells(task, metric, "metrics"), *_cells(task, metric, "alone")]
        for metric in task.metrics
    ]


def _cells(task: "Task", metric: str, of: str) -> list[str]:
    mean, low, high = getattr(task, of)[metric]
    form = ",.1f" if metric == "rank" else ".4f"
    return [f"{mean:{form}}", f"{low:{form}} to {high:{form}}" if task.certain else ""]
