"""`wsabie update`."""

from pathlib import Path

from wsabie.cli.estimator_options import Replay
from wsabie.cli.framework import Report, command, option
from wsabie.cli.inputs import count_training_rows, load_annotator, read_model_rows
from wsabie.cli.models.index import renew_label_index
from wsabie.cli.output import TerminalProgress, format_count, print_note, show_table
from wsabie.cli.shared_options import Data, DataOptions, Model, ThreadOptions
from wsabie.core.errors import InputError

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
    """Learn new rows and labels.

    The same command resumes a stopped run.
    """
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
        renew_label_index(annotator, folder)
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
