"""`wsabie collection apply`."""

from pathlib import Path
from typing import TYPE_CHECKING

from wsabie.cli import shared_options as shared
from wsabie.cli.collection import CollectionOptions, PersonOptions
from wsabie.cli.collection.reports import show_inference
from wsabie.cli.framework import Report, command, option
from wsabie.cli.output import format_count, out, print_note, quote_path

if TYPE_CHECKING:
    from wsabie.collection.learning.suggestions import ApplyResult


class ApplyOptions(CollectionOptions, PersonOptions, shared.ThreadOptions):
    """Options of `wsabie collection apply`."""

    again: bool = option("Suggest for all items, not only for new and changed ones.", flag="--all-items")
    k: int = option("Most suggestions for an item.", 10, flag="-k", min=1, max=1000)
    floor: float = option("Lowest probability of a suggestion.", 0.01, flag="--min-probability")
    min_precision: float | None = option("Count the items with a suggestion of this precision, and those without.")
    accept_above: float | None = option("Accept suggestions with this probability or more.", metavar="P")
    free_words: bool = option("Prepare searches in free words, also in a collection that began with tags.")


@command("collection apply photos", "collection apply photos --accept-above 0.95")
def apply(options: ApplyOptions) -> Report:
    """Let the model in use suggest labels for new items."""
    with options.open() as collection:
        from wsabie.collection.learning.suggestions import apply_model

        settings = options.pick("again", "k", "floor", "min_precision", "accept_above", "free_words", "threads")
        result = apply_model(collection, by=options.resolve_author(), **settings, **options.resources())
    yield result._asdict()
    _show_suggestions(result, options.folder)


def _show_suggestions(result: "ApplyResult", folder: Path) -> None:
    show_inference(result.inference, folder)
    if result.is_zero_shot:
        print_note("the model knows labels by name only, so many are wrong; accept and reject some in the gallery")
        if result.calibrated_on:
            print_note(f"their probabilities follow {result.calibrated_on:,} decisions")
        else:
            print_note("weak: their probabilities follow no decision yet; apply again after 20")
        print_note(f"then: wsabie collection train {quote_path(folder)}")
    if (coverage := result.coverage) is not None:
        if coverage.probability is None:
            precision = f"a precision of {coverage.precision:g} on the held-out items"
            print_note(f"no probability is high enough for {precision}; tag more items, and train again")
        else:
            precision = f"at least {coverage.precision:.0%} are right"
            out.print(f"with a probability of {coverage.probability:.2f} or more, {precision}")
        uncovered = format_count(coverage.uncovered, "untagged item")
        out.print(f"{format_count(coverage.items, 'item')} with a suggestion above it; {uncovered} that no tag fits")
    if result.accepted is not None:
        out.print(f"{format_count(result.accepted.added, 'suggestion')} accepted")
