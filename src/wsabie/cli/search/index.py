"""`wsabie index`: an index of a model's labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.cli.inputs.command_inputs import (
    align_rows,
    collect_rejects,
    get_read_options,
    load_annotator,
    make_executor,
    open_data,
    report_unknown_features,
)
from wsabie.cli.terminal.output import TerminalProgress, out, print_note, show_json, show_table
from wsabie.core.errors import InputError

if TYPE_CHECKING:
    from wsabie.models.index_files import LabelIndexKind


def run_index(
    model: Path,
    kind: "LabelIndexKind",
    recall: float,
    queries: Path | None,
    threads: int | None,
    seed: int,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
) -> None:
    """Build the index, save it in the model folder, and show its gain."""
    from wsabie.models.index_files import FOLDER, index_labels, require_indexable

    annotator = load_annotator(model, threads)
    require_indexable(annotator, kind)  # refuses before data are read
    X = None
    with collect_rejects(rejects_file, strict=strict) as rejects:
        if queries is not None:
            modality = annotator.terms and annotator.terms.things
            read_options = get_read_options(annotator.facts)
            source = open_data(queries, rejects, "none", annotator.model.n_features_in_, modality, **read_options)
            aligned = align_rows(annotator, model, source, make_executor(threads), TerminalProgress(), rejects)
            report_unknown_features(aligned, queries)
            X = aligned.rows.X
            if not X.shape[0]:
                raise InputError(f"{queries} has no row to measure on; give data that the model takes")
    index = index_labels(annotator, kind=kind, recall=recall, X=X, seed=seed, folder=model)
    facts = index.facts()
    if json:
        curve = [step._asdict() for step in index.curve]
        show_json({"schema": 1, "model": str(model), "asked": recall, **facts, "curve": curve})
        return
    rows = [
        [
            f"{step.effort:,}{' *' if step.effort == index.effort else ''}",
            f"{step.recall:.3f}",
            f"{step.milliseconds:.2f}",
        ]
        for step in index.curve
    ]
    rows.append(["exact", "1", f"{index.exact_milliseconds:.2f}"])
    effort_name = {"ivf": "cells", "hnsw": "vectors in sight", "int8": "labels scored", "tree": "nodes of a level"}[
        kind
    ]
    show_table(f"{model}: recall@10 of {index.queries}", [effort_name, "recall@10", "ms a row"], rows)
    out.print(_format_gain(facts, recall))
    if facts["milliseconds"] > 0.9 * facts["exact_milliseconds"]:
        print_note(f"that is no gain: delete {model / FOLDER} to search exactly again")


def _format_gain(facts: dict[str, Any], requested_recall: float) -> str:
    speedup = facts["exact_milliseconds"] / max(facts["milliseconds"], 1e-9)
    quality = f"recall@10 {facts['recall@10']:.3f} ({requested_recall:g} was asked for)"
    if facts["kind"] == "int8":
        quality = "the same answer as of an exact search"
    speed = f"1/{speedup:.1f} of" if speedup >= 1 else f"{1 / max(speedup, 1e-9):.1f} times"
    return f"{quality} in {speed} the exact time, {facts['bytes'] / 1e6:.1f} MB; annotate --exact goes without"
