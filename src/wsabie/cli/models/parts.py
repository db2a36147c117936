"""`wsabie parts`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wsabie.cli.framework import JsonObject, Report, argument, command, option
from wsabie.cli.inputs import load_annotator, read_label_pairs
from wsabie.cli.output import format_count, out, print_note, show_table
from wsabie.cli.shared_options import Model, OutputOptions, ThreadOptions
from wsabie.core.errors import InputError, UnknownLabelError, require
from wsabie.storage.atomic_files import write_bytes

if TYPE_CHECKING:
    from wsabie.models.annotators import Annotator
    from wsabie.workflows.object_parts import DetectedPart


class PartsCommandOptions(OutputOptions, ThreadOptions):
    """Options of `wsabie parts`."""

    model: Model
    picture: Path = argument("A picture of an object.", metavar="PICTURE")
    region: list[str] | None = option(
        "Where a part is, in pixels or as 10%,20%,30%,40%; or a polygon X1,Y1,X2,Y2 ...; several are allowed.",
        metavar="X,Y,W,H",
    )
    part: list[Path] | None = option("Another picture, of a part; several are allowed.", metavar="FILE")
    object_label: str | None = option("What the picture shows, where that is known.", flag="--object", metavar="LABEL")
    candidate_pairs: Path | None = option("Only these pairs: object TAB part a line.", metavar="FILE")
    k: int = option("How many parts, or pairs of labels for each region.", 10, flag="-k", min=1)
    out: Path | None = option("PNG of the picture with the parts marked.")


@command("parts cars car.jpg --out marked.png", "parts cars car.jpg --region 40,60,120,80 --object car")
def parts(options: PartsCommandOptions) -> Report:
    """Label an object and its parts in a picture.

    The regions are yours, or those where each part scores best.
    """
    if options.out is not None and options.out.suffix.lower() != ".png":
        raise InputError(f"--out writes PNG, and {options.out} does not end so; give a name that ends in .png")
    regions = [*(options.region or ()), *(options.part or ())]
    if regions:
        return _label_regions(options, regions)
    if options.candidate_pairs is not None:
        raise InputError("--candidate-pairs is for regions given by --region or --part; leave --candidate-pairs out")
    return _find_parts(options)


def _find_parts(options: PartsCommandOptions) -> Report:
    """Detect the object and its parts in a picture."""
    from wsabie.workflows.object_parts import find_parts

    annotator = _load_parts_model(options)
    pairs = find_parts(annotator, options.picture, options.object_label, options.k, **options.resources())
    _draw_parts(options, pairs)
    yield _make_document(options, [pairs])
    out.print(f"{options.picture}: {pairs[0].object_label}")
    show_table("", ["part", "score", "where"], [[part.label, f"{part.score:.2f}", f"{part.region}"] for part in pairs])


def _label_regions(options: PartsCommandOptions, regions: Sequence[str | Path]) -> Report:
    """Rank pairs of labels for the picture and each marked region."""
    from wsabie.workflows.object_parts import label_parts

    annotator, file = _load_parts_model(options), options.candidate_pairs
    label_pairs = None if file is None else read_label_pairs(file)
    try:
        annotator.model.vocabulary_.ids([label for pair in label_pairs or () for label in pair])
    except UnknownLabelError as error:
        raise UnknownLabelError(f"{file}: {error}") from error
    settings = options.resources(couples=label_pairs)
    results = label_parts(annotator, options.picture, regions, options.object_label, options.k, **settings)
    if not any(results):
        raise InputError(f"no pair of {file} is left for {options.object_label}; give other pairs, or another --object")
    _draw_parts(options, [pairs[0] for pairs in results if pairs])
    yield _make_document(options, results)
    for pairs in results:
        rows = [[pair.object_label, pair.label, f"{pair.score:.2f}"] for pair in pairs]
        show_table(f"{pairs[0].region}" if pairs else "", ["object", "part", "score"], rows)


def _load_parts_model(options: PartsCommandOptions) -> "Annotator":
    from wsabie.workflows.object_parts import require_object_parts

    model, picture, object_label = options.model, options.picture, options.object_label
    options.check_outputs(("picture", options.out), inputs=(picture, model))
    annotator = load_annotator(model, options.threads)
    require_object_parts(annotator, str(model))
    annotator.model.vocabulary_.ids([object_label] if object_label else [])  # refuses an unknown label before the work
    require(picture.is_file(), f"there is no file {picture}; give that of a picture")
    return annotator


def _draw_parts(options: PartsCommandOptions, parts: "Sequence[DetectedPart]") -> None:
    from wsabie.workflows.object_parts import draw_parts

    if options.out is None:
        return
    write_bytes(options.out, draw_parts(options.picture, parts))
    n_marked = sum(isinstance(part.region, str) for part in parts)
    print_note(f"{options.out}: the picture with {format_count(n_marked, 'part')} marked")


def _make_document(options: PartsCommandOptions, results: "Sequence[Sequence[DetectedPart]]") -> JsonObject:
    entries = [
        {"object": pair.object_label, "part": pair.label, "score": round(pair.score, 6), "where": str(pair.region)}
        for pairs in results
        for pair in pairs
    ]
    return {"model": options.model, "picture": options.picture, "results": entries}
