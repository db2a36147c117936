"""An image collection in a comparison: the split before the dictionary is learned, and its examples."""

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO

from PIL import Image as Pillow

from wsabie.core.executors import Executor
from wsabie.core.progress import SILENT, Progress
from wsabie.evaluation.splits import Split
from wsabie.features.base.extraction import fit_extractor
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.base.table_builder import build_label_table
from wsabie.features.images.image_decoder import decode_image
from wsabie.features.images.visual_words import VisualWords
from wsabie.io.records import FeatureTable, Item, ItemSource, ItemSubset
from wsabie.io.regions import ItemContent
from wsabie.models.annotators.annotator import Annotator
from wsabie.models.explanations.score_contributions import explain_picture
from wsabie.models.wsabie.estimator import Wsabie
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.label_similarity import LabelSimilarity
from wsabie.workflows.collection_splits import map_split
from wsabie.workflows.compare.comparison import ModelEntry
from wsabie.workflows.report.example_selection import build_examples, select_spread_rows
from wsabie.workflows.report.report_input import EncodedImage, HeatMap, ReportExample

N_EXAMPLES = 24
N_HEAT_MAPS = 4
_SIDE = 320


def extract_split(
    source: ItemSource,
    extractor: FeatureExtractor,
    choose: Callable[[FeatureTable], Split],
    *,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
) -> tuple[FeatureTable, Split]:
    """Extract the features of all images with a dictionary fitted on the training side alone.

    Parameters
    ----------
    source : ItemSource
    extractor : FeatureExtractor
        Is fitted.
    choose : callable
        The split of rows that have ids, labels, groups and times, but no features yet.
    executor, progress, rejects
        As in `FeatureExtractor.transform`. Unreadable images are on no side.

    Returns
    -------
    rows : FeatureTable
    split : Split
    """
    label_table = build_label_table(source)
    sides = choose(label_table)
    fit_extractor(extractor, ItemSubset(source, sides.train), executor, progress, rejects)
    rows = extractor.transform(source, executor=executor, progress=progress, rejects=rejects)
    return rows, map_split(sides, label_table, rows)


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
    images = {picture.id: picture for picture in source if picture.id in image_ids}
    examples = build_examples(
        entry,
        test,
        rows,
        lambda row: render_thumbnail(images[test.ids[row]].content),
        title=lambda row: title(test.ids[row]),
        true_labels=lambda row: images[test.ids[row]].labels,
        similar=similar,
    )
    can_explain = (
        isinstance(extractor, VisualWords) and isinstance(entry.model, Wsabie) and entry.model.similarity == "dot"
    )
    if not can_explain:
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
    file = BytesIO()
    Pillow.fromarray(decode_image(content, size=_SIDE)).save(file, "WEBP", quality=85)
    return EncodedImage(file.getvalue(), "image/webp")


def _render_heat_map(annotator: Annotator, picture: Item, label: str) -> HeatMap:
    explanation = explain_picture(annotator, picture.content, label)
    file = BytesIO()
    explanation.picture.save(file, "PNG")
    return HeatMap(explanation.label, EncodedImage(file.getvalue(), "image/png"), explanation.score)
