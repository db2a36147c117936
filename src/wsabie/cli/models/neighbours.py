"""`wsabie neighbours`."""

from typing import TYPE_CHECKING, Annotated

from wsabie.cli.framework import Report, argument, command, option
from wsabie.cli.inputs import ONLY_LABELS, ONLY_SPACES, load_annotator, run_by_model
from wsabie.cli.knowledge_files import match_model_siblings
from wsabie.cli.output import show_table
from wsabie.cli.shared_options import HierarchyOptions, LabelLimit, Model, OutputOptions
from wsabie.core.errors import InputError, require

if TYPE_CHECKING:
    from wsabie.models.entity_space.space_annotator import SpaceAnnotator


class NeighbourOptions(OutputOptions):
    """Options of `wsabie neighbours`."""

    model: Model
    label: str = argument("A label of the model, or an entity of a space.", metavar="LABEL")
    k: LabelLimit = 10
    entity_kind: str | None = option("Of a space: the kind of the entity.", metavar="KIND", scope=ONLY_SPACES)
    words: bool = option("Of documents in a space: words nearest to a word.", scope=ONLY_SPACES)
    labels: Annotated[HierarchyOptions, ONLY_LABELS]


@command("neighbours birds penguin", "neighbours my-texts mutex --words -k 5")
def neighbours(options: NeighbourOptions) -> Report:
    """Find the labels nearest to a label.

    They are synonyms, translations or near misses.
    """
    return run_by_model(options, _show_label_neighbours, _show_space_neighbours)


def _show_label_neighbours(options: NeighbourOptions) -> Report:
    """Print the nearest labels; with a hierarchy, mark siblings, as in Weston et al. 2010, table 4."""
    from wsabie.models.base.label_model import LabelModel
    from wsabie.vocabulary.label_similarity import classify_labels

    annotator, label = load_annotator(options.model), options.label
    # not the neighbours of rows, which nearest-neighbour models override
    neighbours = LabelModel.neighbours(annotator.model, label, options.k)
    siblings = match_model_siblings(options.labels, annotator)
    lines, columns, mark_fields = [[name, f"{cosine:.3f}"] for name, cosine in neighbours], ["label", "cosine"], {}
    if siblings is not None:
        ids = annotator.model.vocabulary_.ids
        marks = classify_labels(ids([name for name, _ in neighbours]), ids([label]), siblings)
        lines = [[*line, "" if mark == "other" else mark] for line, mark in zip(lines, marks, strict=True)]
        columns, mark_fields = [*columns, ""], {"marks": marks}
    yield {"label": label, "neighbours": _round_cosines(neighbours), **mark_fields}
    show_table(f"nearest to {label}", columns, lines)


def _show_space_neighbours(options: NeighbourOptions, annotator: "SpaceAnnotator") -> Report:
    """Print the items nearest to an item of their kind, or the words nearest to a word."""
    item, kind = options.label, options.entity_kind
    if options.words:
        query_kind = kind or next(iter(annotator.extractors), next(iter(annotator.space.kinds_)))
        kind, neighbours = "word", annotator.words_near(query_kind, item, options.k)
    else:
        kind = kind or _find_kind(annotator, item)
        neighbours = annotator.space.find_similar(kind, item, options.k)
    yield {"kind": kind, "label": item, "neighbours": _round_cosines(neighbours)}
    show_table(f"nearest to {item}", [kind, "cosine"], [[name, f"{cosine:.3f}"] for name, cosine in neighbours])


def _find_kind(annotator: "SpaceAnnotator", item: str) -> str:
    """Find the only kind that has this item."""
    from wsabie.vocabulary.name_suggestions import format_unknown_label

    kinds = annotator.space.kinds_
    holders = [name for name, fitted_kind in kinds.items() if item in fitted_kind.vocabulary]
    require(len(holders) < 2, f"{item!r} is an entity of the kinds {', '.join(holders)}; choose one by --entity-kind")
    if not holders:
        names = [name for fitted_kind in kinds.values() for name in fitted_kind.vocabulary]
        raise InputError(format_unknown_label(item, names, "entity"))
    return holders[0]


def _round_cosines(neighbours: list[tuple[str, float]]) -> list[list[str | float]]:
    return [[name, round(cosine, 6)] for name, cosine in neighbours]
