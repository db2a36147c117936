"""`wsabie collection train`."""

from pathlib import Path
from typing import TYPE_CHECKING

from wsabie.cli import shared_options as shared
from wsabie.cli.collection import CollectionOptions, PersonOptions, reports
from wsabie.cli.framework import Report, command, option
from wsabie.cli.output import format_count, out, print_note, quote_path

if TYPE_CHECKING:
    from wsabie.collection.learning.training import TrainingResult


class CollectionTrainOptions(
    CollectionOptions, PersonOptions, shared.SeededThreadOptions, shared.NetworkOptions, shared.FeatureNameOptions
):
    """Options of `wsabie collection train`."""

    full: bool = option("Train a new model, though the model in use could go on.", flag="--from-scratch")
    dim: int = option("Dimensions of a model from scratch.", 100, min=1, max=4096)
    epochs: int | None = option("Most passes; held-out items choose the best (default: by size).", min=1)
    even_if_worse: bool = option("Use the model even if it is worse or has other features.", flag="--accept-worse")
    person_weight: float = option("Weight of items with a person's tag; imported tags alone weigh 1.", 2.0)


@command("collection train photos", "collection train photos --from-scratch --features colour,hog")
def train(options: CollectionTrainOptions) -> Report:
    """Learn from accepted and rejected tags.

    The new model is then in use, unless it has other features; `undo` puts the old one back.
    """
    with options.open() as collection:
        from wsabie.collection.learning.training import train_collection_model

        values = options.pick("full", "features", "dim", "epochs", "even_if_worse", "person_weight", "threads", "seed")
        extraction = options.pick("crop", "normalise", "output")
        values["feature_options"] = {name: value for name, value in extraction.items() if value is not None}
        result = train_collection_model(collection, by=options.resolve_author(), **values, **options.resources())
    yield result._asdict()
    _show_training(result, options.folder)


def _show_training(result: "TrainingResult", folder: Path) -> None:
    if result.method == "nothing":
        print_note(result.reason)
        return
    facts, figures = result.facts, result.figures
    method = "from scratch" if result.method == "full" else "continued from the model before"
    out.print(f"model {result.model}, {method} ({result.reason}): {reports.format_examples(facts)}")
    if not result.is_in_use:
        out.print(f"not put into use: {facts['rejection_reason']}")
        print_note(f"to use it: wsabie collection models {quote_path(folder)} --use {result.model}")
    reports.show_figures(figures)
    reports.note_skipped_files(result.unreadable, result.changed, folder)
    if facts["repeats"]:
        pictures = format_count(facts["repeats"], "picture")
        print_note(f"{pictures} repeat earlier ones; pictures that repeat each other are held out together")
    if facts["skipped_regions"]:
        print_note(f"{format_count(facts['skipped_regions'], 'tag')} of regions left out of the training")
    if result.inference is not None:
        reports.show_inference(result.inference, folder)
        reports.recommend_service("review the suggestions in a browser", folder)
