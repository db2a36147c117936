"""`wsabie annotate --out`: labels of any number of rows, into a file."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.cli.inputs.command_inputs import (
    collect_rejects,
    load_annotator,
    load_thresholds,
    make_executor,
    read_label_names,
    refuse_misfit,
)
from wsabie.cli.models.model_queries import open_inputs
from wsabie.cli.terminal.output import TerminalProgress, format_count, out, print_note, show_json
from wsabie.storage.output_checks import check_output_paths

if TYPE_CHECKING:
    from wsabie.io.records import FeatureTable, ItemList, ModalityName
    from wsabie.storage.rejects import Rejects


def run_annotate_to_file(
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
    from wsabie.io.recognition import detect_source_kind
    from wsabie.workflows.batch_annotation import annotate_to_file, detect_output_format

    detect_output_format(file)  # refuses an unknown ending before any work
    check_output_paths(("annotations", file), ("rejects", rejects_file), inputs=(*inputs, model))
    annotator, progress = load_annotator(model, threads), TerminalProgress()
    modality = annotator.terms and annotator.terms.things
    for path in inputs:
        detect_source_kind(
            path, plain_text=True, things=modality
        )  # refuses an unknown format before work on the others
    executor = make_executor(threads, ray, model, *inputs)
    candidate_names = None if candidates is None else read_label_names(candidates)
    annotator.model.vocabulary_.ids(candidate_names or ())  # refuses an unknown label as well
    thresholds = load_thresholds(model, annotator, min_precision)
    with collect_rejects(rejects_file, strict=strict) as rejects:
        blocks = _iterate_blocks(annotator, model, inputs, modality, rejects)
        result = annotate_to_file(
            file,
            annotator,
            blocks,
            k,
            candidates=candidate_names,
            exact=exact,
            least=thresholds,
            executor=executor,
            folder=model,
            progress=progress,
            rejects=rejects,
        )
        skipped = len(rejects)
    if json:
        counts = {"rows": result.rows, "skipped": skipped, "unknown_features": result.unknown_features}
        untagged = {} if thresholds is None else {"no_tag_fits": result.untagged}
        show_json({"schema": 1, "model": str(model), "out": str(file), **counts, **untagged})
        return
    untagged_note = "" if thresholds is None else f", {result.untagged:,} of which no tag fits"
    out.print(f"{file}: the best labels of {format_count(result.rows, 'row')}{untagged_note}")
    if result.unknown_features:
        print_note(f"{format_count(result.unknown_features, 'value')} left out: the model does not know their features")


def _iterate_blocks(
    annotator: Any, model: Path, inputs: Sequence[Path], modality: "ModalityName | None", rejects: "Rejects"
) -> "Iterator[FeatureTable | ItemList]":
    """Iterate over blocks of all inputs; ids of several inputs begin with their path."""
    from wsabie.io.records import FeatureTable
    from wsabie.io.stream_recognition import open_unlabelled_rows
    from wsabie.workflows.batch_annotation import iterate_item_blocks

    item_inputs = []
    for path in inputs:
        blocks = open_unlabelled_rows(path, rejects, annotator.model.n_features_in_, modality)
        if blocks is None:
            item_inputs.append(path)
            continue
        for rows in blocks:
            refuse_misfit(annotator, model, rows)
            yield _prefix_ids("" if len(inputs) == 1 else f"{path}/", rows)
    for prefix, source in open_inputs(item_inputs, rejects, annotator, has_labels=False, is_single=len(inputs) == 1):
        refuse_misfit(annotator, model, source)
        for block in [source] if isinstance(source, FeatureTable) else iterate_item_blocks(source):
            yield _prefix_ids(prefix, block)


def _prefix_ids(prefix: str, block: "FeatureTable | ItemList") -> "FeatureTable | ItemList":
    """Put a prefix before the ids of a block."""
    from wsabie.io.records import FeatureTable

    if isinstance(block, FeatureTable):
        return replace(block, ids=[prefix + row_id for row_id in block.ids])
    return replace(block, items=[item._replace(id=prefix + item.id) for item in block])
