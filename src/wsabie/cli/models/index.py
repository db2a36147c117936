"""`wsabie index`: an index of a model's labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wsabie.cli.command import command, options
from wsabie.cli.inputs import align_rows, get_read_options, load_annotator, open_data, report_unknown_features
from wsabie.cli.options import Model, RecallTarget, RejectOptions, SeededThreadOptions
from wsabie.cli.output import TerminalProgress, out, print_note, show_json, show_table
from wsabie.core.errors import InputError
from wsabie.storage.atomic_files import lock_folder

if TYPE_CHECKING:
    from wsabie.core.arrays import Matrix


@options
class IndexOptions:
    """Options of `wsabie index`."""

    model: Model
    kind: Annotated[
        Literal["ivf", "hnsw", "int8", "tree"],
        typer.Option(
            help="ivf: small, made in seconds; hnsw: a graph, larger, made in minutes; int8: the exact answer, a byte "
            "a coordinate; tree: a label tree. The last two do without faiss."
        ),
    ] = "ivf"
    recall: RecallTarget = 0.95
    queries: Annotated[
        Path | None,
        typer.Option(metavar="DATA", help="Data like those of later queries, to measure on (default: the labels)."),
    ] = None
    machine: SeededThreadOptions = SeededThreadOptions()
    output: RejectOptions = RejectOptions()


@command("index topics", "index topics --kind hnsw --recall 0.99 --queries rows.parquet")
def index(options: IndexOptions) -> None:
    """Make an index of a model's labels, measured against the exact search; `annotate` uses it."""
    with lock_folder(options.model):  # labels that change meanwhile would leave it an index of others
        _index_labels(options)


def _index_labels(options: IndexOptions) -> None:
    """Build the index, save it in the model folder, and show its gain."""
    from wsabie.models.index_files import FOLDER, index_labels, require_indexable

    model, kind, recall = options.model, options.kind, options.recall
    annotator = load_annotator(model, options.machine.threads)
    require_indexable(annotator, kind)  # refuses before data are read
    X = None if options.queries is None else _read_queries(options, annotator, options.queries)
    index = index_labels(annotator, kind=kind, recall=recall, X=X, seed=options.machine.seed, folder=model)
    facts = index.facts()
    if options.output.json:
        curve = [step._asdict() for step in index.curve]
        show_json({"schema": 1, "model": str(model), "target_recall": recall, **facts, "curve": curve})
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


def _read_queries(options: IndexOptions, annotator: Any, queries: Path) -> "Matrix":
    """Read the rows to measure on."""
    modality, n_features = annotator.terms and annotator.terms.modality, annotator.model.n_features_in_
    with options.output.collect() as rejects:
        source = open_data(queries, rejects, "none", n_features, modality, **get_read_options(annotator.facts))
        executor = options.machine.make_executor()
        aligned = align_rows(annotator, options.model, source, executor, TerminalProgress(), rejects)
        report_unknown_features(aligned, queries)
    if not aligned.rows.X.shape[0]:
        raise InputError(f"{queries} has no row to measure on; give data that the model takes")
    return aligned.rows.X


def _format_gain(facts: dict[str, Any], requested_recall: float) -> str:
    speedup = facts["exact_milliseconds"] / max(facts["milliseconds"], 1e-9)
    quality = f"recall@10 {facts['recall@10']:.3f} ({requested_recall:g} was asked for)"
    if facts["kind"] == "int8":
        quality = "the same answer as of an exact search"
    speed = f"1/{speedup:.1f} of" if speedup >= 1 else f"{1 / max(speedup, 1e-9):.1f} times"
    return f"{quality} in {speed} the exact time, {facts['bytes'] / 1e6:.1f} MB; annotate --exact goes without"
