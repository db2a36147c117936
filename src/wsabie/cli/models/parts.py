"""`wsabie parts`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsabie.cli.command import command, options
from wsabie.cli.inputs import load_annotator, read_label_pairs
from wsabie.cli.options import Model, OutputOptions, ThreadOptions
from wsabie.cli.output import TerminalProgress, format_count, out, print_note, show_json, show_table
from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.output_checks import check_output_paths

if TYPE_CHECKING:
    from wsabie.workflows.object_parts import DetectedPart


@options
class PartsCommandOptions:
    """Options of `wsabie parts`."""

    model: Model
    picture: Annotated[Path, typer.Argument(metavar="PICTURE", help="A picture of an object.")]
    region: Annotated[
        list[str] | None,
        typer.Option(
            metavar="X,Y,W,H",
            help="Where a part is, in pixels or as 10%,20%,30%,40%; or a polygon X1,Y1,X2,Y2 ...; several are allowed.",
        ),
    ] = None
    part: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Another picture, of a part; several are allowed.")
    ] = None
    object_label: Annotated[
        str | None, typer.Option("--object", metavar="LABEL", help="What the picture shows, where that is known.")
    ] = None
    candidate_pairs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Only these pairs: object TAB part a line.")
    ] = None
    k: Annotated[int, typer.Option("-k", min=1, help="How many parts, or pairs of labels for each place.")] = 10
    out: Annotated[Path | None, typer.Option(help="PNG of the picture with the parts marked.")] = None
    machine: ThreadOptions = ThreadOptions()
    output: OutputOptions = OutputOptions()


@command("parts cars car.jpg --out marked.png", "parts cars car.jpg --region 40,60,120,80 --object car")
def parts(options: PartsCommandOptions) -> None:
    """Label an object and its parts in a picture, where they are shown or wherever they are seen best."""
    if options.out is not None and options.out.suffix.lower() != ".png":
        raise InputError(f"--out writes PNG, and {options.out} does not end so; give a name that ends in .png")
    places = [*(options.region or ()), *(options.part or ())]
    if places:
        _label_places(options, places)
    elif options.candidate_pairs is not None:
        raise InputError(
            "--candidate-pairs says which pairs there are of places shown with --region or --part; "
            "leave --candidate-pairs out"
        )
    else:
        _find_parts(options)


def _find_parts(options: PartsCommandOptions) -> None:
    """Detect the object and its parts in a picture."""
    from wsabie.workflows.object_parts import find_parts

    picture, executor = options.picture, options.machine.make_executor()
    annotator = _load_parts_model(options)
    pairs = find_parts(
        annotator, picture, options.object_label, options.k, executor=executor, progress=TerminalProgress()
    )
    _draw_parts(options, pairs)
    if options.output.json:
        _show_json(options, [pairs])
        return
    out.print(f"{picture}: {pairs[0].object_label}")
    show_table("", ["part", "score", "where"], [[part.label, f"{part.score:.2f}", f"{part.region}"] for part in pairs])


def _label_places(options: PartsCommandOptions, places: Sequence[str | Path]) -> None:
    """Rank pairs of labels for the picture and each marked place."""
    from wsabie.workflows.object_parts import label_parts

    annotator, pairs_file = _load_parts_model(options), options.candidate_pairs
    label_pairs = None if pairs_file is None else read_label_pairs(pairs_file)
    _refuse_unknown_labels(annotator, pairs_file, label_pairs or ())
    results = label_parts(
        annotator,
        options.picture,
        places,
        options.object_label,
        options.k,
        couples=label_pairs,
        executor=options.machine.make_executor(),
        progress=TerminalProgress(),
    )
    if not any(results):
        raise InputError(
            f"no pair of {pairs_file} is left for {options.object_label}; give other pairs, or another --object"
        )
    _draw_parts(options, [pairs[0] for pairs in results if pairs])
    if options.output.json:
        _show_json(options, results)
        return
    for pairs in results:
        rows = [[pair.object_label, pair.label, f"{pair.score:.2f}"] for pair in pairs]
        show_table(f"{pairs[0].region}" if pairs else "", ["object", "part", "score"], rows)


def _load_parts_model(options: PartsCommandOptions) -> Any:
    from wsabie.workflows.object_parts import require_object_parts

    model, picture, object_label = options.model, options.picture, options.object_label
    check_output_paths(("picture", options.out), inputs=(picture, model))
    annotator = load_annotator(model, options.machine.threads)
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


def _draw_parts(options: PartsCommandOptions, parts: "Sequence[DetectedPart]") -> None:
    from wsabie.workflows.object_parts import draw_parts

    if options.out is None:
        return
    with replace_file(options.out) as draft:
        draft.write_bytes(draw_parts(options.picture, parts))
    n_marked = sum(isinstance(part.region, str) for part in parts)
    print_note(f"{options.out}: the picture with {format_count(n_marked, 'part')} marked")


def _show_json(options: PartsCommandOptions, results: "Sequence[Sequence[DetectedPart]]") -> None:
    entries = [
        {"object": pair.object_label, "part": pair.label, "score": round(pair.score, 6), "where": str(pair.region)}
        for pairs in results
        for pair in pairs
    ]
    show_json({"schema": 1, "model": str(options.model), "picture": str(options.picture), "results": entries})
