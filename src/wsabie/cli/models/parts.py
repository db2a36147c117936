"""`wsabie parts`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wsabie.cli.inputs.command_inputs import load_annotator, make_executor, read_label_pairs
from wsabie.cli.terminal.output import TerminalProgress, format_count, out, print_note, show_json, show_table
from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.output_checks import check_output_paths
from wsabie.workflows.object_parts.part_detection import (
    DetectedPart,
    draw_parts,
    find_parts,
    label_parts,
    require_object_parts,
)


def run_detected_parts(
    model: Path, picture: Path, object_label: str | None, k: int, target: Path | None, threads: int | None, json: bool
) -> None:
    """Detect the object and its parts in a picture."""
    annotator = _load_parts_model(model, picture, object_label, target, threads)
    pairs = find_parts(
        annotator, picture, object_label, k, executor=make_executor(threads), progress=TerminalProgress()
    )
    _draw_parts(picture, pairs, target)
    if json:
        _show_json(model, picture, [pairs])
        return
    out.print(f"{picture}: {pairs[0].object_label}")
    show_table("", ["part", "score", "where"], [[part.label, f"{part.score:.2f}", f"{part.where}"] for part in pairs])


def run_marked_parts(
    model: Path,
    picture: Path,
    places: Sequence[str | Path],
    object_label: str | None,
    pairs_file: Path | None,
    k: int,
    target: Path | None,
    threads: int | None,
    json: bool,
) -> None:
    """Rank pairs of labels for the picture and each marked place."""
    annotator = _load_parts_model(model, picture, object_label, target, threads)
    label_pairs = None if pairs_file is None else read_label_pairs(pairs_file)
    _refuse_unknown_labels(annotator, pairs_file, label_pairs or ())
    results = label_parts(
        annotator,
        picture,
        places,
        object_label,
        k,
        couples=label_pairs,
        executor=make_executor(threads),
        progress=TerminalProgress(),
    )
    if not any(results):
        raise InputError(f"no pair of {pairs_file} is left for {object_label}; give other pairs, or another --object")
    _draw_parts(picture, [pairs[0] for pairs in results if pairs], target)
    if json:
        _show_json(model, picture, results)
        return
    for pairs in results:
        rows = [[pair.object_label, pair.label, f"{pair.score:.2f}"] for pair in pairs]
        show_table(f"{pairs[0].where}" if pairs else "", ["object", "part", "score"], rows)


def _load_parts_model(
    model: Path, picture: Path, object_label: str | None, target: Path | None, threads: int | None
) -> Any:
    check_output_paths(("picture", target), inputs=(picture, model))
    annotator = load_annotator(model, threads)
    require_object_parts(annotator, str(model))
    annotator.model.vocabulary_.ids([object_label] if object_label else [])  # refuses an unknown label before the work
    if not picture.is_file():
        raise InputError(f"there is no file {picture}; give that of a picture")
    return annotator


def _refuse_unknown_labels(annotator: Any, pairs_file: Path | None, label_pairs: Sequence[tuple[str, str]]) -> None:
    try:
        annotator.model.vocabulary_.ids([label for pair in label_pairs for label in pair])
    except UnknownLabelError as error:
        raise UnknownLabelError(f"{pairs_file}: {error}") from error


def _draw_parts(picture: Path, parts: Sequence[DetectedPart], target: Path | None) -> None:
    if target is None:
        return
    with replace_file(target) as draft:
        draft.write_bytes(draw_parts(picture, parts))
    print_note(
        f"{target}: the picture with {format_count(sum(isinstance(part.where, str) for part in parts), 'part')} marked"
    )


def _show_json(model: Path, picture: Path, results: Sequence[Sequence[DetectedPart]]) -> None:
    entries = [
        {"object": pair.object_label, "part": pair.label, "score": round(pair.score, 6), "where": str(pair.where)}
        for pairs in results
        for pair in pairs
    ]
    show_json({"schema": 1, "model": str(model), "picture": str(picture), "results": entries})
