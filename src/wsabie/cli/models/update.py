"""`wsabie update` and `wsabie edit`: changes of a saved model."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from wsabie.cli.estimator_options import Replay
from wsabie.cli.framework import Report, argument, command, option
from wsabie.cli.inputs import count_training_rows, load_annotator, read_model_rows
from wsabie.cli.output import TerminalProgress, format_count, print_note, show_table
from wsabie.cli.shared_options import Data, DataOptions, Model, OutputOptions, ThreadOptions
from wsabie.core.errors import InputError, require

if TYPE_CHECKING:
    from wsabie.models.annotators import Annotator

_REPORT_FIELDS = {
    "rows": "rows", "new labels": "new_labels", "MAP": "map", "p@1": "p_at_1", "ECE": "ece",
    "unseen labels": "unseen_labels", "movement": "movement", "drift": "drift",
}  # fmt: skip
"""Fields of the report of a step, by the heads of their columns."""


class UpdateOptions(DataOptions, ThreadOptions):
    """Options of `wsabie update`."""

    model: Model
    data: Data
    replay: Replay = None
    remember: Path | None = option("Data that the model was trained on, where it keeps no rows yet.", metavar="DATA")
    without_replay: bool = option("Learn the new rows alone, if the model keeps no others; it forgets old labels.")
    step: int = option("Rows to learn before the model is saved.", 2000, min=1)
    epochs: int = option("Passes over the rows of a step.", 10, min=1)


@command(
    "update birds july-photos/", "update birds july-photos/ --remember june-photos/ --replay auto", locks_model=True
)
def update(options: UpdateOptions) -> Report:
    """Learn new rows and labels; the same command resumes a stopped run."""
    from wsabie.workflows.model_updates import require_updatable, update_model

    folder, data, remember = options.model, options.data, options.remember
    annotator = load_annotator(folder, options.threads)
    model = require_updatable(annotator, folder)
    if options.replay is not None:
        model.set_params(replay=options.replay)
    elif model.replay is None and remember is not None:
        model.set_params(replay="auto")
    options.check_outputs(inputs=(data, remember, folder), folder=folder)
    has_memory = model.replay is not None and (model.replay_buffer_ or remember) is not None
    _refuse_forgetting(folder, has_memory, options.without_replay)
    with options.collect_rejects() as rejects:
        if remember is not None and model.replay_buffer_ is not None:
            print_note(f"{folder} keeps rows already, so --remember has no effect")
        elif remember is not None:
            resources = options.resources(rejects=rejects)
            earlier = read_model_rows(options, annotator, remember, resources)
            n_known, n_checked, counts = count_training_rows(annotator, earlier, remember)
            if 2 * n_known < n_checked:
                print_note(f"{counts} are training rows of {folder}; it may forget labels that the other rows lack")
            model.fill_replay_buffer(earlier.X, earlier.Y)
        resources = options.resources(rejects=rejects, keep_labels=True)
        rows = read_model_rows(options, annotator, data, resources)
        reports = update_model(annotator, rows, folder, **options.pick("step", "epochs"), progress=TerminalProgress())
        _renew_index(annotator, folder)
    yield {"model": folder, "steps": reports, "skipped": len(rejects)}
    lines = [[_format_field(report.get(name)) for name in _REPORT_FIELDS.values()] for report in reports]
    show_table(f"{folder}, as rows came", list(_REPORT_FIELDS), lines)
    for number, report in enumerate(reports, 1):
        if report.get("advice"):
            print_note(f"step {number}: {report['advice']}")
    print_note(f"{format_count(sum(report['rows'] for report in reports), 'row')} learned; the model is in {folder}")


def _refuse_forgetting(folder: Path, has_memory: bool, without_replay: bool) -> None:
    """Refuse to learn new rows alone, which makes the model forget, unless asked."""
    if not has_memory and not without_replay:
        remedy = "give the training data by --remember DATA, or --without-replay to learn the new rows alone"
        raise InputError(f"{folder} keeps no rows of its training, so that it would forget old labels; {remedy}")
    if has_memory and without_replay:
        raise InputError("--without-replay learns the new rows alone, and there are rows to see again; leave it out")


def _format_field(value: object) -> str | int:
    if value is None or value == "":
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else value if isinstance(value, int) else str(value)


def _renew_index(annotator: "Annotator", folder: Path) -> None:
    """Renew the index of the folder, which holds the old labels."""
    from wsabie.models.index_files import renew_index

    index = renew_index(annotator, folder)
    if index is not None:
        recall = f"recall@10 {index.recall:.3f} ({index.target_recall:g} was asked for)"
        print_note(f"the index of its labels ({index.kind}) was made again: {recall}")


class EditOptions(OutputOptions):
    """Options of `wsabie edit`."""

    model: Model
    action: Literal["rename", "merge", "remove"] = argument("Change of the labels.", metavar="rename|merge|remove")
    names: list[str] = argument("rename OLD NEW; merge INTO OTHER ...; remove LABEL ...", metavar="LABEL...")


@command("edit birds rename robbin robin", "edit birds merge sea ocean sea-side", locks_model=True)
def edit(options: EditOptions) -> Report:
    """Rename, merge or remove labels of a model; the ids of labels stay."""
    from wsabie.workflows.model_updates import require_updatable

    folder, action, names = options.model, options.action, options.names
    annotator = load_annotator(folder)
    model = require_updatable(annotator, folder)
    if action == "rename":
        require(len(names) == 2, "rename takes two names, the old and the new one: wsabie edit MODEL rename OLD NEW")
        model.rename_label(*names)
        change = f"{names[0]!r} is called {names[1]!r}"
    elif action == "merge":
        if len(names) < 2:
            raise InputError("merge takes two names or more, the first stays: wsabie edit MODEL merge INTO OTHER ...")
        model.merge_labels(names[0], names[1:])
        change = f"{_format_labels(names[1:])} went into {names[0]!r}"
    else:
        model.remove_labels(names)
        change = f"{_format_labels(names)} removed"
    n_labels = len(model.vocabulary_.active_ids())
    replace(annotator, facts={**annotator.facts, "labels": n_labels}).save(folder)
    _renew_index(annotator, folder)
    yield {"model": folder, "action": action, "labels": n_labels}
    print_note(f"{change}: {format_count(n_labels, 'label')} in {folder} now")


def _format_labels(names: list[str]) -> str:
    """Format the first labels and the number of others."""
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return ", ".join(map(repr, names[:3])) + more
