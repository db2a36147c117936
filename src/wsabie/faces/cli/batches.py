"""`wsabie annotate --out`: labels of any number of rows, into a file."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.faces.cli.common import executor, label_names, least_of, listing, loaded, refuse_unfit
from wsabie.faces.cli.terminal import TerminalProgress, note, out, plural, show_json
from wsabie.faces.cli.using import sources_of
from wsabie.storage.outputs import refuse_unwritable

if TYPE_CHECKING:
    from wsabie.sources.records import ItemList, Rows, Things
    from wsabie.storage.rejects import Rejects


def annotate_to_command(
    model: Path,
    inputs: Sequence[Path],
    file: Path,
    k: int,
    candidates: Path | None,
    threads: int | None,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
    min_precision: float | None = None,
    ray: str | None = None,
    exact: bool = False,
) -> None:
    """Write the best labels of all inputs to a file."""
    from wsabie.sources.open import kind_of
    from wsabie.studies.annotating import annotate_to, form_of

    form_of(file)  # refuses another ending before any work
    refuse_unwritable(("annotations", file), ("rejects", rejects_file), inputs=(*inputs, model))
    annotator, progress = loaded(model, threads), TerminalProgress()
    things = annotator.terms and annotator.terms.things
    for path in inputs:
        kind_of(path, plain_text=True, things=things)  # refuses what cannot be told before work on the others
    run = executor(threads, ray, model, *inputs)
    among = None if candidates is None else label_names(candidates)
    annotator.model.vocabulary_.ids(among or ())  # refuses an unknown label as well
    least = least_of(model, annotator, min_precision)
    with listing(rejects_file, strict=strict) as rejects:
        blocks = _blocks(annotator, model, inputs, things, rejects)
        given: dict[str, Any] = {"candidates": among, "exact": exact, "least": least, "executor": run, "folder": model}
        written = annotate_to(file, annotator, blocks, k, **given, progress=progress, rejects=rejects)
        skipped = len(rejects)
    if json:
        counts = {"rows": written.rows, "skipped": skipped, "unknown_features": written.unknown_features}
        fits = {} if least is None else {"no_tag_fits": written.untagged}
        show_json({"schema": 1, "model": str(model), "out": str(file), **counts, **fits})
        return
    none = "" if least is None else f", {written.untagged:,} of which no tag fits"
    out.print(f"{file}: the best labels of {plural(written.rows, 'row')}{none}")
    if written.unknown_features:
        note(f"{plural(written.unknown_features, 'value')} left out: the model does not know their features")


def _blocks(
    annotator: Any, model: Path, inputs: Sequence[Path], things: "Things | None", rejects: "Rejects"
) -> "Iterator[Rows | ItemList]":
    """Everything that is to be annotated, some at a time; ids of several inputs begin with where they are from."""
    from wsabie.sources.records import Rows
    from wsabie.sources.row_stream import unlabelled_rows
    from wsabie.studies.annotating import in_blocks

    others = []
    for path in inputs:
        blocks = unlabelled_rows(path, rejects, annotator.model.n_features_in_, things)
        if blocks is None:
            others.append(path)
            continue
        for rows in blocks:
            refuse_unfit(annotator, model, rows)
            yield _from("" if len(inputs) == 1 else f"{path}/", rows)
    for place, source in sources_of(others, rejects, annotator, known=False, alone=len(inputs) == 1):
        refuse_unfit(annotator, model, source)
        for block in [source] if isinstance(source, Rows) else in_blocks(source):
            yield _from(place, block)


def _from(place: str, block: "Rows | ItemList") -> "Rows | ItemList":
    """With what tells ids from those of other inputs before them."""
    from wsabie.sources.records import Rows

    if isinstance(block, Rows):
        return replace(block, ids=[place + one for one in block.ids])
    return replace(block, items=[item._replace(id=place + item.id) for item in block])
