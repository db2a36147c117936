"""The work of `wsabie index`: an index of a model's labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import aligned_rows, executor, listing, loaded, opened, read_as, tell_unknown_features
from wsabie.faces.cli.terminal import TerminalProgress, note, out, show_json, show_table

if TYPE_CHECKING:
    from wsabie.models.indexed import LabelIndexKind


def index_command(
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
    """Make the index, keep it in the model's folder, and show what it brings."""
    from wsabie.models.indexed import FOLDER, index_labels, indexable

    annotator = loaded(model, threads)
    indexable(annotator, kind)  # refuses before data are read
    X = None
    with listing(rejects_file, strict=strict) as rejects:
        if queries is not None:
            things = annotator.terms and annotator.terms.things
            read = read_as(annotator.facts)
            source = opened(queries, rejects, "none", annotator.model.n_features_in_, things, **read)
            aligned = aligned_rows(annotator, model, source, executor(threads), TerminalProgress(), rejects)
            tell_unknown_features(aligned, queries)
            X = aligned.rows.X
            if not X.shape[0]:
                raise InputError(f"{queries} has no row to measure on; give data that the model takes")
    found = index_labels(annotator, kind=kind, recall=recall, X=X, seed=seed, folder=model)
    facts = found.facts()
    if json:
        curve = [one._asdict() for one in found.curve]
        show_json({"schema": 1, "model": str(model), "asked": recall, **facts, "curve": curve})
        return
    rows = [
        [f"{one.effort:,}{' *' if one.effort == found.effort else ''}", f"{one.recall:.3f}", f"{one.milliseconds:.2f}"]
        for one in found.curve
    ]
    rows.append(["exact", "1", f"{found.exact_milliseconds:.2f}"])
    looks = {"ivf": "cells", "hnsw": "vectors in sight", "int8": "labels scored", "tree": "nodes of a level"}[kind]
    show_table(f"{model}: recall@10 of {found.queries}", [looks, "recall@10", "ms a row"], rows)
    out.print(_sentence(facts, recall))
    if facts["milliseconds"] > 0.9 * facts["exact_milliseconds"]:
        note(f"that is no gain: delete {model / FOLDER} to search exactly again")


def _sentence(facts: dict[str, Any], wanted: float) -> str:
    share = facts["exact_milliseconds"] / max(facts["milliseconds"], 1e-9)
    found = f"recall@10 {facts['recall@10']:.3f} ({wanted:g} was asked for)"
    if facts["kind"] == "int8":
        found = "the same answer as of an exact search"
    time = f"1/{share:.1f} of" if share >= 1 else f"{1 / max(share, 1e-9):.1f} times"
    return f"{found} in {time} the exact time, {facts['bytes'] / 1e6:.1f} MB; annotate --exact goes without"
