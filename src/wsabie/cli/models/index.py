"""`wsabie index`: an index of a model's labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from wsabie.cli.framework import JsonObject, Report, command, option
from wsabie.cli.inputs import load_annotator, read_model_rows
from wsabie.cli.output import format_bytes, out, print_note, show_table
from wsabie.cli.shared_options import DataOptions, Model, RecallTarget, SeededThreadOptions
from wsabie.core.errors import require

if TYPE_CHECKING:
    from wsabie.models.annotators import Annotator


class IndexOptions(DataOptions, SeededThreadOptions):
    """Options of `wsabie index`."""

    model: Model
    kind: Literal["ivf", "hnsw", "int8", "tree"] = option(
        "ivf: small, made in seconds; hnsw: a graph, larger, made in minutes; int8: the exact answer, a byte a "
        "coordinate; tree: a label tree. The last two do without faiss.",
        "ivf",
    )
    recall: RecallTarget = 0.95
    queries: Path | None = option("Data to measure on, like later queries (default: the labels).", metavar="DATA")


@command("index topics", "index topics --kind hnsw --recall 0.99 --queries rows.parquet", locks_model=True)
def index(options: IndexOptions) -> Report:
    """Make an index of a model's labels, for a faster `annotate`.

    It is measured against the exact search.
    """
    from wsabie.models.index_files import FOLDER, index_labels, require_indexable

    model, kind, recall = options.model, options.kind, options.recall
    annotator = load_annotator(model, options.threads)
    require_indexable(annotator, kind)  # refuses before data are read
    X = None
    if options.queries is not None:
        with options.collect_rejects() as rejects:
            resources = options.resources(rejects=rejects)
            queries = read_model_rows(options, annotator, options.queries, resources, "none")
        require(len(queries) > 0, f"{options.queries} has no row to measure on; give data that the model takes")
        X = queries.X
    index = index_labels(annotator, kind=kind, recall=recall, X=X, seed=options.seed, folder=model)
    facts = index.facts()
    yield {"model": model, "target_recall": recall, **facts, "curve": index.curve}
    rows = []
    for step in index.curve:
        effort = f"{step.effort:,}{' *' if step.effort == index.effort else ''}"
        rows.append([effort, f"{step.recall:.3f}", f"{step.milliseconds:.2f}"])
    rows.append(["exact", "1", f"{index.exact_milliseconds:.2f}"])
    efforts = {"ivf": "cells", "hnsw": "vectors in sight", "int8": "labels scored", "tree": "nodes of a level"}
    show_table(f"{model}: recall@10 of {index.queries}", [efforts[kind], "recall@10", "ms a row"], rows)
    out.print(_format_gain(facts, recall))
    if facts["milliseconds"] > 0.9 * facts["exact_milliseconds"]:
        print_note(f"the index saves no time: delete {model / FOLDER} to search exactly again")


def _format_gain(facts: JsonObject, requested_recall: float) -> str:
    speedup = facts["exact_milliseconds"] / max(facts["milliseconds"], 1e-9)
    quality = f"recall@10 {facts['recall@10']:.3f} ({requested_recall:g} was asked for)"
    if facts["kind"] == "int8":
        quality = "the same answer as of an exact search"
    speed = f"1/{speedup:.1f} of" if speedup >= 1 else f"{1 / max(speedup, 1e-9):.1f} times"
    return f"{quality} in {speed} the exact time, {format_bytes(facts['bytes'])}; annotate --exact goes without"


def renew_label_index(annotator: "Annotator", folder: Path) -> None:
    """Renew the index of the folder, which holds the old labels."""
    from wsabie.models.index_files import renew_index

    index = renew_index(annotator, folder)
    if index is not None:
        recall = f"recall@10 {index.recall:.3f} ({index.target_recall:g} was asked for)"
        print_note(f"the index of its labels ({index.kind}) was made again: {recall}")
