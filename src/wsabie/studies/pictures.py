"""A collection of pictures in a comparison: split before its dictionary is learnt, and shown with its pictures."""

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO

from PIL import Image as Pillow

from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.evaluation.splits import Split
from wsabie.features.collect import outline
from wsabie.features.decode import decode
from wsabie.features.describer import Describer
from wsabie.features.extract import learn
from wsabie.features.visual_terms import VisualTerms
from wsabie.labels.similar import Similar
from wsabie.models.annotator import Annotator
from wsabie.models.explain import explain_picture
from wsabie.models.wsabie import Wsabie
from wsabie.sources.records import Item, ItemPart, ItemSource, Rows
from wsabie.sources.regions import Content
from wsabie.storage.rejects import Rejects
from wsabie.studies.comparison import Entry
from wsabie.studies.gather import examples, spread_rows
from wsabie.studies.report_input import Example, HeatMap, Image
from wsabie.studies.splitting import carried

N_EXAMPLES = 24
N_HEAT_MAPS = 4
_SIDE = 320


def describe_split(
    source: ItemSource,
    terms: Describer,
    choose: Callable[[Rows], Split],
    *,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
) -> tuple[Rows, Split]:
    """All pictures as rows of a dictionary that only the training side taught, and the sides of the rows.

    Parameters
    ----------
    source : ItemSource
    terms : Describer
        Is fitted.
    choose : callable
        The split of rows that have ids, labels, groups and times, but no features yet.
    executor, progress, rejects
        As in `Describer.transform`. Pictures that cannot be read are on no side.
    """
    planned = outline(source)
    sides = choose(planned)
    learn(terms, ItemPart(source, sides.train), executor, progress, rejects)
    rows = terms.transform(source, executor=executor, progress=progress, rejects=rejects)
    return rows, carried(sides, planned, rows)


def picture_examples(
    entry: Entry,
    test: Rows,
    source: ItemSource,
    terms: Describer,
    *,
    title: Callable[[str], str] = str,
    similar: Similar | None = None,
) -> list[Example]:
    """Held-out pictures at even steps of accuracy with their labels, the first few also with a heat map.

    Parameters
    ----------
    entry : Entry
    test : Rows
        The evaluated side, with the label columns of the comparison.
    source : ItemSource
        Holds the pictures of `test`, by id.
    terms : Describer
    title : callable
        What a picture is called, by its id.
    similar : Similar or None
        Which labels are siblings.
    """
    chosen = spread_rows(entry.evaluation, N_EXAMPLES, groups=test.groups)
    wanted = {test.ids[row] for row in chosen}
    pictures = {picture.id: picture for picture in source if picture.id in wanted}
    shown = examples(
        entry,
        test,
        chosen,
        lambda row: thumbnail(pictures[test.ids[row]].content),
        title=lambda row: title(test.ids[row]),
        true_labels=lambda row: pictures[test.ids[row]].labels,
        similar=similar,
    )
    explained_by = (
        isinstance(terms, VisualTerms) and isinstance(entry.model, Wsabie) and entry.model.similarity == "dot"
    )
    if not explained_by:
        return shown
    annotator = Annotator(entry.model, terms)
    explained = [
        replace(example, heat_maps=(_heat(annotator, pictures[test.ids[row]], example.suggestions[0].label),))
        for row, example in zip(chosen[:N_HEAT_MAPS], shown, strict=False)
    ]
    return explained + shown[len(explained) :]


def thumbnail(content: Content) -> Image:
    """A picture in small, upright, as WebP.

    Raises
    ------
    RejectedItem
        It cannot be read.
    """
    file = BytesIO()
    Pillow.fromarray(decode(content, size=_SIDE)).save(file, "WEBP", quality=85)
    return Image(file.getvalue(), "image/webp")


def _heat(annotator: Annotator, picture: Item, label: str) -> HeatMap:
    explained = explain_picture(annotator, picture.content, label)
    file = BytesIO()
    explained.picture.save(file, "PNG")
    return HeatMap(explained.label, Image(file.getvalue(), "image/png"), explained.score)
