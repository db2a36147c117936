"""`wsabie update` and `wsabie edit`: changes of a saved model."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from wsabie.cli.inputs.command_inputs import (
    collect_rejects,
    get_read_options,
    load_annotator,
    make_executor,
    open_data,
    refuse_misfit,
    report_unknown_features,
)
from wsabie.cli.terminal.output import TerminalProgress, format_count, print_note, show_json, show_table
from wsabie.core.errors import InputError
from wsabie.io.fingerprints import count_known_rows
from wsabie.storage.output_checks import check_output_paths


def run_update(
    folder: Path,
    data: Path,
    replay: int | str | None,
    remember: Path | None,
    forget: bool,
    step: int,
    epochs: int,
    threads: int | None,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
) -> None:
    """Learn rows step by step, and report the figures of each step before learning it."""
    from wsabie.workflows.train.model_updates import require_updatable, update_model

    annotator, progress = load_annotator(folder, threads), TerminalProgress()
    model = require_updatable(annotator, folder)
    if replay is not None:
        model.set_params(replay=replay)
    elif model.replay is None and remember is not None:
        model.set_params(replay="auto")
    check_output_paths(("rejects", rejects_file), inputs=(data, remember, folder), folder=folder)
    _refuse_forgetting(folder, model.replay is not None and (model.memory_ or remember) is not None, forget)
    with collect_rejects(rejects_file, strict=strict) as rejects:
        if remember is not None and model.memory_ is not None:
            print_note(f"{folder} keeps rows already, so that --remember is passed over")
        elif remember is not None:
            earlier = _read_rows(annotator.rows, annotator, folder, remember, threads, progress, rejects)
            _report_unknown_rows(annotator, folder, earlier, remember)
            model.remember(earlier.X, earlier.Y)
        rows = _read_rows(annotator.rows_to_learn, annotator, folder, data, threads, progress, rejects)
        reports = update_model(annotator, rows, folder, step=step, epochs=epochs, progress=progress)
        _renew_index(annotator, folder)
        skipped = len(rejects)
    if json:
        show_json({"schema": 1, "model": str(folder), "steps": reports, "skipped": skipped})
        return
    columns = ["rows", "new labels", "MAP", "p@1", "ECE", "unseen labels", "moved", "drift"]
    lines = [[_format_field(report, name) for name in _REPORT_FIELDS] for report in reports]
    show_table(f"{folder}, as rows came", columns, lines)
    for number, report in enumerate(reports, 1):
        if report.get("advice"):
            print_note(f"step {number}: {report['advice']}")
    print_note(f"{format_count(sum(report['rows'] for report in reports), 'row')} learnt; the model is in {folder}")


def _refuse_forgetting(folder: Path, has_memory: bool, forget: bool) -> None:
    """Refuse to learn new rows alone, which makes the model forget, unless `forget` is set."""
    if not has_memory and not forget:
        raise InputError(
            f"{folder} keeps no rows of its training, so that it would forget old labels; give the training data by "
            "--remember DATA, or --forget to learn the new rows alone"
        )
    if has_memory and forget:
        raise InputError("--forget learns the new rows alone, and there are rows to see again; leave --forget out")


def _report_unknown_rows(annotator: Any, folder: Path, rows: Any, data: Path) -> None:
    """Report data for --remember with mostly unknown rows."""
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


def _read_rows(
    align: Any, annotator: Any, folder: Path, data: Path, threads: int | None, progress: Any, rejects: Any
) -> Any:
    """Read the rows of data with a method of the annotator."""
    modality = annotator.terms and annotator.terms.things
    n_features = annotator.model.n_features_in_
    source = open_data(data, rejects, "auto", n_features, modality, **get_read_options(annotator.facts))
    refuse_misfit(annotator, folder, source)
    executor = make_executor(threads)
    aligned = align(source, executor=executor, progress=progress, rejects=rejects)
    report_unknown_features(aligned, data)
    return aligned.rows


def _renew_index(annotator: Any, folder: Path) -> None:
    """Renew the index of the folder, which holds the old labels."""
    from wsabie.models.index_files import renew_index

    index = renew_index(annotator, folder)
    if index is not None:
        recall = f"recall@10 {index.recall:.3f} ({index.wanted:g} was asked for)"
        print_note(f"the index of its labels ({index.kind}) was made anew: {recall}")


def run_edit_labels(folder: Path, action: Literal["rename", "merge", "remove"], names: list[str], json: bool) -> None:
    """Change the labels of a model in its folder."""
    from wsabie.workflows.train.model_updates import require_updatable

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
    n_labels = len(model.vocabulary_.living())
    replace(annotator, facts={**annotator.facts, "labels": n_labels}).save(folder)
    _renew_index(annotator, folder)
    if json:
        show_json({"schema": 1, "model": str(folder), "done": action, "labels": n_labels})
        return
    print_note(f"{_format_change(action, names)}: {format_count(n_labels, 'label')} in {folder} now")


def _format_change(action: Literal["rename", "merge", "remove"], names: list[str]) -> str:
    """Format a change of labels as a message."""
    shown_names = ", ".join(map(repr, names[action == "merge" :][:3]))
    more = f" and {len(names) - 3:,} more" if len(names) > 3 + (action == "merge") else ""
    if action == "rename":
        return f"{names[0]!r} is called {names[1]!r}"
    return f"{shown_names}{more} went into {names[0]!r}" if action == "merge" else f"{shown_names}{more} removed"
