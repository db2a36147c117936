"""Input of a report: its contents, and examples from a comparison that are not picked by hand."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Unpack

import numpy as np
from PIL import Image as Pillow

from wsabie.evaluation.score_evaluation import Evaluation
from wsabie.evaluation.splits import Split
from wsabie.features.base.extraction import fit_extractor
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.base.item_features import build_label_table
from wsabie.features.base.sampling import RunOptions
from wsabie.features.extractors.visual_words import VisualWords
from wsabie.features.images.image_decoder import decode_image
from wsabie.io.records import FeatureTable, Item, ItemSource, ItemSubset
from wsabie.io.regions import ItemContent
from wsabie.models.annotators import Annotator
from wsabie.models.explanations import explain_picture
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.training.epoch_stats import EpochStats
from wsabie.vocabulary.label_names import Vocabulary
from wsabie.vocabulary.label_similarity import LabelMatch, LabelSimilarity, classify_labels
from wsabie.workflows.charts.chart_files import encode_picture
from wsabie.workflows.compare.comparison_table import Comparison, ModelEntry
from wsabie.workflows.compare.comparison_task import ComparisonTask
from wsabie.workflows.data_splits import group_bursts, map_split
from wsabie.workflows.report.html_pages import EncodedImage

N_EXAMPLES = 24
N_HEAT_MAPS = 4
_SIDE = 320
SPREAD = "They were not picked by hand: they stand at even steps between the best and the worst annotated one."
"""Note beside examples chosen by `select_spread_rows`."""


class Suggestion(NamedTuple):
    """A label that the model suggests: a true one (`right`), a sibling of a true one, or another."""

    label: str
    score: float
    right: bool
    sibling: bool = False


class HeatMap(NamedTuple):
    """Heat map of a label, drawn over the image."""

    label: str
    picture: EncodedImage
    score: float | None = None


@dataclass(frozen=True)
class ReportExample:
    """A test image with the model's suggestions.

    Attributes
    ----------
    picture : EncodedImage
    title : str
        Text alternative of the image; never shown to the model.
    true_labels : sequence of str
    suggestions : sequence of Suggestion
        Best first.
    heat_maps : sequence of HeatMap
    """

    picture: EncodedImage
    title: str
    true_labels: Sequence[str]
    suggestions: Sequence[Suggestion]
    heat_maps: Sequence[HeatMap] = ()


class Neighbourhood(NamedTuple):
    """A label and its nearest labels with their cosines; `siblings` are known siblings among them."""

    label: str
    near: Sequence[tuple[str, float]]
    siblings: Collection[str] = ()


@dataclass(frozen=True)
class ReportInput:
    """Contents of a report.

    Attributes
    ----------
    title : str
    comparison : Comparison
    modality : str
        Name of the rows, in the plural, such as "pictures".
    description : str
        The data in one or two sentences.
    data : mapping of str to str
        Further facts of the data, such as "Source", "Licence" and "Split".
    history : sequence of EpochStats
        Epochs of the main model.
    examples : sequence of ReportExample
    examples_note : str
        A sentence about their choice.
    neighbours : sequence of Neighbourhood
    neighbours_note : str
        A sentence about their choice.
    siblings_note : str
        The is-a list that makes labels siblings: half a sentence, such as "share a category of the data". Empty
        without known siblings.
    label_notes : mapping of str to str
        Short words beside labels, such as the languages that use them.
    parameters : mapping
        Parameters of the main model, as resolved.
    command : str
        Command that makes this report again.
    created : str
        Date as shown.
    """

    title: str
    comparison: Comparison
    modality: str = "rows"
    description: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    history: Sequence[EpochStats] = ()
    examples: Sequence[ReportExample] = ()
    examples_note: str = ""
    neighbours: Sequence[Neighbourhood] = ()
    neighbours_note: str = ""
    siblings_note: str = ""
    label_notes: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    created: str = ""


def select_spread_rows(evaluation: Evaluation, n: int, *, groups: Sequence[str] | None = None) -> list[int]:
    """Return row numbers at even steps of average precision, from the best to the worst.

    Parameters
    ----------
    evaluation : Evaluation
    n : int
        Maximum number of rows.
    groups : sequence of str or None
        Groups of all rows of the evaluated side; at most one row of a group is taken.

    Returns
    -------
    list of int
        Numbers of the evaluated side's rows, best first.

    Examples
    --------
    >>> from wsabie import evaluate_scores
    >>> result = evaluate_scores([(0, np.array([[0.1, 0.9], [0.9, 0.1], [0.8, 0.2]]))], np.array([0, 0, 1]), ks=(1,))
    >>> select_spread_rows(result, 1), select_spread_rows(result, 2)
    ([1], [1, 2])
    """
    order = np.argsort(-np.nan_to_num(evaluation.per_row["MAP"], nan=-1.0), kind="stable")
    rows = [int(row) for row in evaluation.rows[order]]
    if groups is not None:
        first_of: dict[str, int] = {}
        for row in rows:
            first_of.setdefault(groups[row] or f"row {row}", row)
        rows = list(first_of.values())
    steps = np.linspace(0, len(rows) - 1, min(n, len(rows))).round().astype(int)
    return [rows[i] for i in steps]


def build_examples(
    entry: ModelEntry,
    side: FeatureTable,
    rows: Sequence[int],
    picture: Callable[[int], EncodedImage],
    *,
    title: Callable[[int], str] | None = None,
    true_labels: Callable[[int], Sequence[str]] | None = None,
    k: int = 10,
    similar: LabelSimilarity | None = None,
) -> list[ReportExample]:
    """Build a report's examples from rows, with the k best labels of a model.

    Parameters
    ----------
    entry : ModelEntry
    side : FeatureTable
        The evaluated rows, with the label columns of the comparison (`comparison.task.test`).
    rows : sequence of int
    picture, title, true_labels : callable
        Return the image, title and true labels of a row number; by default the id, and the labels among the columns.
    k : int
    similar : LabelSimilarity or None
        Sibling labels, by the label columns.
    """
    suggested = entry.model.annotate(side.X[list(rows)], k)
    examples = []
    for row, suggestions in zip(rows, suggested, strict=True):
        true = list(true_labels(row)) if true_labels is not None else list_true_labels(side, row)
        signs = mark_suggestions(entry.model.vocabulary_, [name for name, _ in suggestions], true, similar)
        examples.append(
            ReportExample(
                picture(row),
                side.ids[row] if title is None else title(row),
                true,
                [
                    Suggestion(name, score, sign == "true", sign == "sibling")
                    for (name, score), sign in zip(suggestions, signs, strict=True)
                ],
            )
        )
    return examples


def list_true_labels(side: FeatureTable, row: int) -> list[str]:
    """Return the names of the true labels of a row."""
    line = side.Y[[row]].tocsr()
    return [side.label_names[y] for y, value in zip(line.indices, line.data, strict=True) if value > 0]


def build_neighbourhoods(
    entry: ModelEntry, labels: Sequence[str], k: int = 8, similar: LabelSimilarity | None = None
) -> list[Neighbourhood]:
    """Return the nearest labels of each label, with siblings marked; skip labels that the model lacks."""
    neighbourhoods = []
    for name in labels:
        if name in entry.model.vocabulary_:
            near = entry.model.neighbours(name, k)
            names = [neighbour for neighbour, _ in near]
            signs = mark_suggestions(entry.model.vocabulary_, names, [name], similar)
            siblings = {neighbour for (neighbour, _), sign in zip(near, signs, strict=True) if sign == "sibling"}
            neighbourhoods.append(Neighbourhood(name, near, siblings))
    return neighbourhoods


def mark_suggestions(
    vocabulary: Vocabulary, names: Sequence[str], true: Sequence[str], similar: LabelSimilarity | None
) -> list[LabelMatch]:
    """Classify labels against the true ones; true labels that the model does not know have no siblings."""
    if similar is None:
        return ["true" if name in true else "other" for name in names]
    known_names = [name for name in true if name in vocabulary]
    return classify_labels(vocabulary.ids(names), vocabulary.ids(known_names), similar)


def add_model_facts(report: ReportInput, labels: Sequence[str], similar: LabelSimilarity | None = None) -> ReportInput:
    """Add facts of the embedding model to the input: epochs, parameters, nearest labels of some labels.

    Without such a model in the comparison the input stays as it is.
    """
    entries = [entry for entry in report.comparison.entries if isinstance(entry.model, Wsabie)]
    if not entries:
        return report
    model = entries[0].model
    return replace(
        report,
        history=model.history_,
        parameters={**entries[0].parameters, **model.settings_},
        neighbours=build_neighbourhoods(entries[0], labels, similar=similar),
    )


def list_frequent_labels(task: ComparisonTask, n: int) -> list[str]:
    """Return the n labels with the most training rows, the most frequent first."""
    order = np.argsort(-task.counts, kind="stable")[:n]
    return [task.train.label_names[y] for y in order]


def extract_split(
    source: ItemSource,
    extractor: FeatureExtractor,
    split: Callable[[FeatureTable], Split],
    **context: Unpack[RunOptions],
) -> tuple[FeatureTable, Split]:
    """Extract the features of all images with an extractor fitted on the training side alone.

    Parameters
    ----------
    source : ItemSource
    extractor : FeatureExtractor
        Is fitted.
    split : callable
        Splits rows that have ids, labels, groups and times, but no features yet.
    executor, progress, rejects
        As in `FeatureExtractor.transform`. Unreadable images are on no side.

    Returns
    -------
    rows : FeatureTable
    split : Split
    """
    label_table = build_label_table(source)
    sides = split(label_table)
    fit_extractor(extractor, ItemSubset(source, sides.train), **context)
    rows = extractor.transform(source, **context)
    return rows, map_split(sides, label_table, rows)


def extract_split_by_burst(
    source: ItemSource,
    extractor: FeatureExtractor,
    split: Callable[[FeatureTable], Split],
    **context: Unpack[RunOptions],
) -> tuple[FeatureTable, Split, int]:
    """Extract features as `extract_split` does, of pictures whose bursts the split keeps together.

    Bursts show in the features, so the pictures are split twice. An extractor that learns is then fitted again, on the
    training side of the second split.

    Returns
    -------
    rows : FeatureTable
    split : Split
    n_bursts : int
        Bursts of several pictures (`group_bursts`).
    """
    rows, sides = extract_split(source, extractor, split, **context)
    grouped, n_bursts = group_bursts(rows)
    if not n_bursts:
        return rows, sides, 0
    sides = split(grouped)
    training_ids, fingerprint = {rows.ids[row] for row in sides.train}, extractor.fingerprint()
    training = ItemSubset(source, [number for number, item in enumerate(source) if item.id in training_ids])
    context["rejects"] = None  # they are listed already
    if fit_extractor(extractor, training, **context).fingerprint() != fingerprint:
        rows = extractor.transform(source, **context)
    return rows, sides, n_bursts


def build_image_examples(
    entry: ModelEntry,
    test: FeatureTable,
    source: ItemSource,
    extractor: FeatureExtractor,
    *,
    title: Callable[[str], str] = str,
    similar: LabelSimilarity | None = None,
) -> list[ReportExample]:
    """Return test images at even steps of accuracy with their labels, the first few with a heat map.

    Parameters
    ----------
    entry : ModelEntry
    test : FeatureTable
        The evaluated side, with the label columns of the comparison.
    source : ItemSource
        Holds the images of `test`, by id.
    extractor : FeatureExtractor
    title : callable
        Returns the title of an image id.
    similar : LabelSimilarity or None
        Sibling labels.
    """
    rows = select_spread_rows(entry.evaluation, N_EXAMPLES, groups=test.groups)
    image_ids = {test.ids[row] for row in rows}
    images = {item.id: item for item in source if item.id in image_ids}
    examples = build_examples(
        entry,
        test,
        rows,
        lambda row: render_thumbnail(images[test.ids[row]].content),
        title=lambda row: title(test.ids[row]),
        true_labels=lambda row: images[test.ids[row]].labels,
        similar=similar,
    )
    is_embedding = isinstance(extractor, VisualWords) and isinstance(entry.model, Wsabie)
    if not (is_embedding and entry.model.similarity == "dot"):
        return examples
    annotator = Annotator(entry.model, extractor)
    explained_examples = [
        replace(example, heat_maps=(_render_heat_map(annotator, images[test.ids[row]], example.suggestions[0].label),))
        for row, example in zip(rows[:N_HEAT_MAPS], examples, strict=False)
    ]
    return explained_examples + examples[len(explained_examples) :]


def render_thumbnail(content: ItemContent) -> EncodedImage:
    """Return a small, upright version of an image as WebP.

    Raises
    ------
    UnreadableItemError
        It cannot be read.
    """
    return EncodedImage(encode_picture(Pillow.fromarray(decode_image(content, size=_SIDE)), "WEBP", quality=85))


def _render_heat_map(annotator: Annotator, item: Item, label: str) -> HeatMap:
    explanation = explain_picture(annotator, item.content, label)
    picture = EncodedImage(encode_picture(explanation.picture), "image/png")
    return HeatMap(explanation.label, picture, explanation.score)
