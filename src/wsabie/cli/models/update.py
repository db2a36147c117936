"""`wsabie update` and `wsabie edit`: changes of a saved model."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wsabie.cli.command import command, options
from wsabie.cli.estimator_options import Replay
from wsabie.cli.inputs import get_read_options, load_annotator, open_data, refuse_misfit, report_unknown_features
from wsabie.cli.options import Data, Model, OutputOptions, RejectOptions, ThreadOptions
from wsabie.cli.output import TerminalProgress, format_count, print_note, show_json, show_table
from wsabie.core.errors import InputError
from wsabie.storage.atomic_files import lock_folder
from wsabie.storage.output_checks import check_output_paths

if TYPE_CHECKING:
    from wsabie.storage.rejects import Rejects


@options
class UpdateOptions:
    """Options of `wsabie update`."""

    model: Model
    data: Data
    replay: Replay = None
    remember: Annotated[
        Path | None,
        typer.Option(metavar="DATA", help="Data that the model was trained on, where it keeps no rows yet."),
    ] = None
    without_replay: Annotated[
        bool, typer.Option(help="Learn the new rows alone, where the model keeps no others: it forgets old labels.")
    ] = False
    step: Annotated[int, typer.Option(min=1, help="Rows that are learnt before the model is saved.")] = 2000
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the rows of a step.")] = 10
    machine: ThreadOptions = ThreadOptions()
    output: RejectOptions = RejectOptions()


@command("update birds july-photos/", "update birds july-photos/ --remember june-photos/ --replay auto")
def update(options: UpdateOptions) -> None:
    """Learn new rows and labels; the same command resumes a stopped run."""
    with lock_folder(options.model):
        _learn_rows(options)


def _learn_rows(options: UpdateOptions) -> None:
    """Learn rows step by step, and report the figures of each step before learning it."""
    from wsabie.workflows.model_updates import require_updatable, update_model

    folder, data, remember, output = options.model, options.data, options.remember, options.output
    annotator = load_annotator(folder, options.machine.threads)
    model = require_updatable(annotator, folder)
    if options.replay is not None:
        model.set_params(replay=options.replay)
    elif model.replay is None and remember is not None:
        model.set_params(replay="auto")
    check_output_paths(("rejects", output.rejects), inputs=(data, remember, folder), folder=folder)
    has_memory = model.replay is not None and (model.memory_ or remember) is not None
    _refuse_forgetting(folder, has_memory, options.without_replay)
    with output.collect() as rejects:
        if remember is not None and model.memory_ is not None:
            print_note(f"{folder} keeps rows already, so that --remember is passed over")
        elif remember is not None:
            earlier = _read_rows(options, annotator, annotator.rows, remember, rejects)
            _report_unknown_rows(annotator, folder, earlier, remember)
            model.remember(earlier.X, earlier.Y)
        rows = _read_rows(options, annotator, annotator.rows_to_learn, data, rejects)
        reports = update_model(
            annotator, rows, folder, step=options.step, epochs=options.epochs, progress=TerminalProgress()
        )
        _renew_index(annotator, folder)
        skipped = len(rejects)
    if output.json:
        show_json({"schema": 1, "model": str(folder), "steps": reports, "skipped": skipped})
        return
    columns = ["rows", "new labels", "MAP", "p@1", "ECE", "unseen labels", "moved", "drift"]
    lines = [[_format_field(report, name) for name in _REPORT_FIELDS] for report in reports]
    show_table(f"{folder}, as rows came", columns, lines)
    for number, report in enumerate(reports, 1):
        if report.get("advice"):
            print_note(f"step {number}: {report['advice']}")
    print_note(f"{format_count(sum(report['rows'] for report in reports), 'row')} learnt; the model is in {folder}")


def _refuse_forgetting(folder: Path, has_memory: bool, without_replay: bool) -> None:
    """Refuse to learn new rows alone, which makes the model forget, unless asked."""
    if not has_memory and not without_replay:
        raise InputError(
            f"{folder} keeps no rows of its training, so that it would forget old labels; give the training data by "
            "--remember DATA, or --without-replay to learn the new rows alone"
        )
    if has_memory and without_replay:
        raise InputError("--without-replay learns the new rows alone, and there are rows to see again; leave it out")


def _report_unknown_rows(annotator: Any, folder: Path, rows: Any, data: Path) -> None:
    """Report data for --remember with mostly unknown rows."""

    from wsabie.io.fingerprints import count_known_rows

    if annotator.marks is None:
        return
    n_known, n_checked = count_known_rows(rows, annotator.marks)
    if 2 * n_known < n_checked:
        print_note(
            f"{n_known:,} of {format_count(n_checked, 'row')} of {data} that were looked at are training rows of "
            f"{folder}: what "
            "the others do not show it may forget"
        )


_REPORT_FIELDS = ("rows", "new_labels", "map", "p_at_1", "ece", "unseen_labels", "moved", "drift")


def _format_field(report: dict[str, Any], name: str) -> str:
    value = report.get(name)
    if value is None or value == "":
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _read_rows(options: UpdateOptions, annotator: Any, align: Any, data: Path, rejects: "Rejects") -> Any:
    """Read the rows of data with a method of the annotator."""
    modality, n_features = annotator.terms and annotator.terms.modality, annotator.model.n_features_in_
    source = open_data(data, rejects, "auto", n_features, modality, **get_read_options(annotator.facts))
    refuse_misfit(annotator, options.model, source)
    aligned = align(source, executor=options.machine.make_executor(), progress=TerminalProgress(), rejects=rejects)
    report_unknown_features(aligned, data)
    return aligned.rows


def _renew_index(annotator: Any, folder: Path) -> None:
    """Renew the index of the folder, which holds the old labels."""
    from wsabie.models.index_files import renew_index

    index = renew_index(annotator, folder)
    if index is not None:
        recall = f"recall@10 {index.recall:.3f} ({index.target_recall:g} was asked for)"
        print_note(f"the index of its labels ({index.kind}) was made anew: {recall}")


@options
class EditOptions:
    """Options of `wsabie edit`."""

    model: Model
    action: Annotated[
        Literal["rename", "merge", "remove"],
        typer.Argument(metavar="rename|merge|remove", help="Change of the labels."),
    ]
    names: Annotated[
        list[str], typer.Argument(metavar="LABEL...", help="rename OLD NEW; merge INTO OTHER ...; remove LABEL ...")
    ]
    output: OutputOptions = OutputOptions()


@command("edit birds rename robbin robin", "edit birds merge sea ocean sea-side")
def edit(options: EditOptions) -> None:
    """Rename, merge or remove labels of a model; the ids of labels stay."""
    with lock_folder(options.model):
        _edit_labels(options)


def _edit_labels(options: EditOptions) -> None:
    """Change the labels of a model in its folder."""
    from wsabie.workflows.model_updates import require_updatable

    folder, action, names = options.model, options.action, options.names
    annotator = load_annotator(folder)
    model = require_updatable(annotator, folder)
    if action == "rename" and len(names) != 2:
        raise InputError("rename takes two names, the old and the new one: wsabie edit MODEL rename OLD NEW")
    if action == "merge" and len(names) < 2:
        raise InputError("merge takes two names or more, the first stays: wsabie edit MODEL merge INTO OTHER ...")
    if action == "rename":
        model.rename_label(*names)
    elif action == "merge":
        model.merge_labels(names[0], names[1:])
    else:
        model.remove_labels(names)
    n_labels = len(model.vocabulary_.active_ids())
    replace(annotator, facts={**annotator.facts, "labels": n_labels}).save(folder)
    _renew_index(annotator, folder)
    if options.output.json:
        show_json({"schema": 1, "model": str(folder), "action": action, "labels": n_labels})
        return
    print_note(f"{_format_change(action, names)}: {format_count(n_labels, 'label')} in {folder} now")


def _format_change(action: Literal["rename", "merge", "remove"], names: list[str]) -> str:
    """Format a change of labels as a message."""
    shown_names = ", ".join(map(repr, names[action == "merge" :][:3]))
    more = f" and {len(names) - 3:,} more" if len(names) > 3 + (action == "merge") else ""
    if action == "rename":
        return f"{names[0]!r} is called {names[1]!r}"
    return f"{shown_names}{more} went into {names[0]!r}" if action == "merge" else f"{shown_names}{more} removed"
