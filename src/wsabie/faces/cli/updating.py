"""`wsabie update` and `wsabie edit`: a saved model goes on."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import executor, listing, loaded, opened, read_as, refuse_unfit, tell_unknown_features
from wsabie.faces.cli.terminal import TerminalProgress, note, plural, show_json, show_table
from wsabie.sources.fingerprint import known_again
from wsabie.storage.outputs import refuse_unwritable


def update_command(
    place: Path,
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
    """Learn rows step by step, and tell how each did before it was learnt."""
    from wsabie.studies.updating import require_stream, update

    annotator, progress = loaded(place, threads), TerminalProgress()
    model = require_stream(annotator, place)
    if replay is not None:
        model.set_params(replay=replay)
    elif model.replay is None and remember is not None:
        model.set_params(replay="auto")
    refuse_unwritable(("rejects", rejects_file), inputs=(data, remember, place), folder=place)
    _refuse_forgetting(place, model.replay is not None and (model.memory_ or remember) is not None, forget)
    with listing(rejects_file, strict=strict) as rejects:
        if remember is not None and model.memory_ is not None:
            note(f"{place} keeps rows already, so that --remember is passed over")
        elif remember is not None:
            earlier = _rows(annotator.rows, annotator, place, remember, threads, progress, rejects)
            _tell_strange(annotator, place, earlier, remember)
            model.remember(earlier.X, earlier.Y)
        rows = _rows(annotator.rows_to_learn, annotator, place, data, threads, progress, rejects)
        told = update(annotator, rows, place, step=step, epochs=epochs, progress=progress)
        _renew_index(annotator, place)
        skipped = len(rejects)
    if json:
        show_json({"schema": 1, "model": str(place), "steps": told, "skipped": skipped})
        return
    columns = ["rows", "new labels", "MAP", "p@1", "ECE", "unseen labels", "moved", "drift"]
    lines = [[_told(one, name) for name in _SHOWN] for one in told]
    show_table(f"{place}, as rows came", columns, lines)
    for number, one in enumerate(told, 1):
        if one.get("advice"):
            note(f"step {number}: {one['advice']}")
    note(f"{plural(sum(one['rows'] for one in told), 'row')} learnt; the model is in {place}")


def _refuse_forgetting(place: Path, remembers: bool, forget: bool) -> None:
    """Refuse to learn new rows alone, which replaces the model by one that knows less, unless that is asked for."""
    if not remembers and not forget:
        raise InputError(
            f"{place} keeps no rows of its training, so that it would forget old labels; give the training data by "
            "--remember DATA, or --forget to learn the new rows alone"
        )
    if remembers and forget:
        raise InputError("--forget learns the new rows alone, and there are rows to see again; leave --forget out")


def _tell_strange(annotator: Any, place: Path, rows: Any, data: Path) -> None:
    """Say so where most rows are none that the model was trained on."""
    if annotator.marks is None:
        return
    known, looked_at = known_again(rows, annotator.marks)
    if 2 * known < looked_at:
        note(
            f"{known:,} of {plural(looked_at, 'row')} of {data} that were looked at are training rows of {place}: what "
            "the others do not show it may forget"
        )


_SHOWN = ("rows", "new_labels", "map", "p_at_1", "ece", "unseen_labels", "moved", "drift")


def _told(figures: dict[str, Any], name: str) -> str:
    value = figures.get(name)
    if value is None or value == "":
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _rows(read: Any, annotator: Any, place: Path, data: Path, threads: int | None, progress: Any, rejects: Any) -> Any:
    """The rows of some data, as a method of the annotator reads a source."""
    things = annotator.terms and annotator.terms.things
    width = annotator.model.n_features_in_
    source = opened(data, rejects, "auto", width, things, **read_as(annotator.facts))
    refuse_unfit(annotator, place, source)
    run = executor(threads)
    aligned = read(source, executor=run, progress=progress, rejects=rejects)
    tell_unknown_features(aligned, data)
    return aligned.rows


def _renew_index(annotator: Any, place: Path) -> None:
    """An index that the folder has is of the labels as they were."""
    from wsabie.models.indexed import renew_index

    made = renew_index(annotator, place)
    if made is not None:
        reached = f"recall@10 {made.recall:.3f} ({made.wanted:g} was asked for)"
        note(f"the index of its labels ({made.kind}) was made anew: {reached}")


def edit_command(place: Path, what: Literal["rename", "merge", "remove"], names: list[str], json: bool) -> None:
    """Change the labels of a model in its folder."""
    from wsabie.studies.updating import require_stream

    annotator = loaded(place)
    model = require_stream(annotator, place)
    if what == "rename" and len(names) != 2:
        raise InputError("rename takes two names, the old and the new one: wsabie edit MODEL rename OLD NEW")
    if what == "merge" and len(names) < 2:
        raise InputError("merge takes two names or more, the first stays: wsabie edit MODEL merge INTO OTHER ...")
    if what == "rename":
        model.rename_label(*names)
    elif what == "merge":
        model.merge_labels(names[0], names[1:])
    else:
        model.remove_labels(names)
    left = len(model.vocabulary_.living())
    replace(annotator, facts={**annotator.facts, "labels": left}).save(place)
    _renew_index(annotator, place)
    if json:
        show_json({"schema": 1, "model": str(place), "done": what, "labels": left})
        return
    note(f"{_done(what, names)}: {plural(left, 'label')} in {place} now")


def _done(what: Literal["rename", "merge", "remove"], names: list[str]) -> str:
    """What became of labels, in words."""
    some = ", ".join(map(repr, names[what == "merge" :][:3]))
    more = f" and {len(names) - 3:,} more" if len(names) > 3 + (what == "merge") else ""
    if what == "rename":
        return f"{names[0]!r} is called {names[1]!r}"
    return f"{some}{more} went into {names[0]!r}" if what == "merge" else f"{some}{more} removed"
