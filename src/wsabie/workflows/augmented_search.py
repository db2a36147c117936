"""Text search with related labels, and its result as an HTML page or a PNG sheet of images.

As Mesnil et al. 2014, section 6.6 and Figure 4: a query's label ranks the images by f_I, its parts are found by f_L,
and each of them ranks the images again. An image's score for several labels is that of its best label, unscaled: WARP
compares the labels of one image with each other, so their scores share one scale.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Int64
from wsabie.core.errors import InputError, UnreadableItemError, require
from wsabie.core.validation import check_positive_integer
from wsabie.io.records import ItemSource
from wsabie.models.base.label_model import LabelModel
from wsabie.models.embedding_set import EmbeddingSet, require_embeddings
from wsabie.search.exact_index import ExactIndex
from wsabie.search.query_labels import LabelLink, QueryLabels, QueryMatcher, RelatedLabelSource, format_label_list
from wsabie.workflows.charts.chart_files import encode_picture, load_font
from wsabie.workflows.charts.svg_charts import INK, PAPER, SOFT
from wsabie.workflows.report.html_pages import EncodedImage, render_page
from wsabie.workflows.report.report_input import render_thumbnail

ScoredItem = tuple[int, int, float]
"""Number of an item, number of the label that it matches, and the score of that label."""
_LINKS_PER_SOURCE = 50
"""Related labels to request of each source; the model lacks some, and the query means some itself."""
_TILE, _GAP, _ACROSS, _EDGE = 96, 12, 10, 16
_TEXT, _SMALL = 15, 11


class ItemMatch(NamedTuple):
    """A matching item: its id, the label that it matches, and the score of that label."""

    id: str
    label: str
    score: float


class AugmentedGroup(NamedTuple):
    """Items that match for the same reason, best first.

    Attributes
    ----------
    labels : list of str
        The query's own labels, or a related one.
    reason : str
    score : float or None
        Relatedness, by the source of related labels; None for the query's own.
    matches : list of ItemMatch
    """

    labels: list[str]
    reason: str
    score: float | None
    matches: list[ItemMatch]


class AugmentedResult(NamedTuple):
    """The labels of a query, and its matches: first of these labels, then of related ones."""

    query_labels: QueryLabels
    groups: list[AugmentedGroup]


class AugmentedSearch:
    """Find items by text, and items of related labels beside them.

    Parameters
    ----------
    model : LabelModel
        A model with embeddings: `transform` and `label_vectors`.
    items : EmbeddingSet
        Embeddings of the items by this model.
    queries : QueryMatcher or None
        Finds the labels of a query; None: the model's labels only.
    related : sequence of RelatedLabelSource
        Sources of related labels; they take turns, so that none drowns another.
    groups : sequence of str or None
        Groups of the items, in their order: only the best item of a group is shown.

    Raises
    ------
    InputError
        There are no items.

    Examples
    --------
    >>> import numpy as np
    >>> from wsabie import Wsabie
    >>> model = Wsabie(dim=4, epochs=20, threads=1).fit(np.eye(3), ["car", "wheel", "ship"])
    >>> items = EmbeddingSet(["a", "b", "c"], model.transform(np.eye(3)))
    >>> class Parts:
    ...     def related(self, label, k=10):
    ...         return [("wheel", 1.0, f"part of {label}")][: label == "car"]
    >>> for group in AugmentedSearch(model, items, related=[Parts()]).find("Car", k=1).groups:
    ...     print(group.labels, group.reason, [item.id for item in group.matches])
    ['car'] 'car' is a label ['a']
    ['wheel'] part of car ['b']
    """

    def __init__(
        self,
        model: LabelModel,
        items: EmbeddingSet,
        *,
        queries: QueryMatcher | None = None,
        related: Sequence[RelatedLabelSource] = (),
        groups: Sequence[str] | None = None,
    ) -> None:
        require_embeddings(model)
        require(len(items) > 0, "there is nothing to search in; give a collection that holds something")
        self.model, self.items, self.related = model, items, related
        self.queries = queries or QueryMatcher(model.vocabulary_.names(model.vocabulary_.active_ids()))
        self._groups = items.ids if groups is None else groups
        self._index = ExactIndex(items.vectors, similarity=getattr(model, "similarity", "dot"))
        bias = getattr(getattr(model, "space_", None), "bias", None)
        self._bias = None if bias is None or not bias.any() else bias

    def find(self, query: str, k: int = 10, n_related: int = 8) -> AugmentedResult:
        """Find the k best items for a query, then k for each of up to `n_related` related labels.

        An item is shown once, in its first group.

        Parameters
        ----------
        query : str
            A word or a phrase.
        k : int, default 10
            Most items of a group.
        n_related : int, default 8
            Most related labels.

        Returns
        -------
        AugmentedResult

        Raises
        ------
        InputError
            The query means no label (the message suggests some), or only labels without a word vector.
        """
        k, shown_groups = check_positive_integer(k, "k"), set[str]()
        query_labels = drop_labels_without_vector(self.queries.match(query), self.model)
        matches = self._take_best(query_labels.labels, k, shown_groups)
        groups = [AugmentedGroup(query_labels.labels, query_labels.sentence, None, matches)]
        for link in self._find_related(query_labels)[:n_related]:
            if matches := self._take_best([link.label], k, shown_groups):
                groups.append(AugmentedGroup([link.label], link.reason, link.score, matches))
        return AugmentedResult(query_labels, groups)

    def _find_related(self, query_labels: QueryLabels) -> list[LabelLink]:
        """Return related labels that the model has; their sources take turns."""
        vocabulary, excluded = self.model.vocabulary_, {*query_labels.labels, *_labels_without_vector(self.model)}
        links_by_source = [_find_links(source, query_labels) for source in self.related]
        turns = (link for turn in zip_longest(*links_by_source) for link in turn if link is not None)
        return _drop_repeated(link for link in turns if link.label in vocabulary and link.label not in excluded)

    def _take_best(self, labels: Sequence[str], k: int, shown_groups: set[str]) -> list[ItemMatch]:
        """Return the k best new items for any of some labels, and mark them as shown."""
        ids, depth = self.model.vocabulary_.ids(labels), k + len(shown_groups)
        while True:
            depth = min(depth, len(self.items))
            hits = self._select_unshown(self._rank_items(ids, depth), k, shown_groups)
            if len(hits) == k or depth == len(self.items):
                break
            depth *= 4  # items of groups that are shown took the places
        shown_groups.update(self._groups[item] for item, _, _ in hits)
        names = dict(zip(ids.tolist(), labels, strict=True))
        return [ItemMatch(self.items.ids[item], names[label], score) for item, label, score in hits]

    def _rank_items(self, labels: Int64, depth: int) -> list[ScoredItem]:
        """Return the first items of each label, sorted by score: (item, label, score)."""
        positions, scores = self._index.top_k(self.model.label_vectors[labels], depth, threads=self.model.threads)
        if self._bias is not None:
            scores = scores + self._bias[labels][:, None]
        columns = positions.ravel(), np.repeat(labels, positions.shape[1]), scores.ravel()
        hits = zip(*(column.tolist() for column in columns), strict=True)
        return sorted(hits, key=lambda hit: (-hit[2], hit[0], hit[1]))

    def _select_unshown(self, ranked: list[ScoredItem], k: int, shown_groups: set[str]) -> list[ScoredItem]:
        best_by_group: dict[str, ScoredItem] = {}
        for hit in ranked:
            if (group := self._groups[hit[0]]) not in shown_groups:
                best_by_group.setdefault(group, hit)
            if len(best_by_group) == k:
                break
        return list(best_by_group.values())


def drop_labels_without_vector(query_labels: QueryLabels, model: LabelModel) -> QueryLabels:
    """Drop labels without a word vector from a query: every item would be equally near to them.

    Raises
    ------
    InputError
        No label is left.
    """
    missing = _labels_without_vector(model)
    labels = [label for label in query_labels.labels if label not in missing]
    if not labels:
        fact = f"the model has no word vector for {format_label_list(query_labels.labels)}"
        raise InputError(f"{fact}; ask for another label, or train with vectors that have one")
    if n_dropped := len(query_labels.labels) - len(labels):
        sentence = f"{query_labels.sentence} ({n_dropped:,} of them without a word vector left out)"
        return query_labels._replace(labels=labels, sentence=sentence)
    return query_labels


def _labels_without_vector(model: LabelModel) -> frozenset[str]:
    return frozenset(getattr(model, "missing_", ()))


def _find_links(source: RelatedLabelSource, query_labels: QueryLabels) -> list[LabelLink]:
    """Return labels related to the query's concept, or else to each of its labels."""
    names = [query_labels.labels] if query_labels.concept is None else [[query_labels.concept], query_labels.labels]
    for group in names:
        links = [LabelLink(*link) for name in group for link in source.related(name, _LINKS_PER_SOURCE)]
        if links:
            return _drop_repeated(sorted(links, key=lambda link: -link.score))
    return []


def _drop_repeated(links: Iterable[LabelLink]) -> list[LabelLink]:
    """Return the first link of each label."""
    first: dict[str, LabelLink] = {}
    for link in links:
        first.setdefault(link.label, link)
    return list(first.values())


def load_thumbnails(names: Iterable[str], source: ItemSource) -> dict[str, EncodedImage]:
    """Return thumbnails of some images of a source by id; unreadable ones are missing."""
    requested, thumbnails = set(names), dict[str, EncodedImage]()
    for item in source:
        if item.id in requested:
            with suppress(UnreadableItemError):
                thumbnails[item.id] = render_thumbnail(item.content)
    return thumbnails


def render_result_page(
    answer: AugmentedResult,
    pictures: Mapping[str, EncodedImage],
    where: str,
    *,
    files: Mapping[str, str] | None = None,
    labels: Mapping[str, Collection[str]] | None = None,
) -> str:
    """Render a page without script or network.

    Parameters
    ----------
    answer : AugmentedResult
    pictures : mapping of str to EncodedImage
        By id, as `load_thumbnails` returns them.
    where : str
        Name of the searched data.
    files : mapping of str to str or None
        Paths of images that are files of their own, by id; others are named by their id.
    labels : mapping of str to collection of str or None
        Labels of images in the data, by id; matching ones are marked.
    """
    names = [("group-0", "matches")]
    names += [(f"group-{i}", format_label_list(group.labels)) for i, group in enumerate(answer.groups[1:], 1)]
    return render_page(
        "search.html",
        query=answer.query_labels,
        collection=where,
        sections=list(zip(names, answer.groups, strict=False)),
        pictures=pictures,
        files=files or {},
        labels=labels or {},
    )


class SheetLine(NamedTuple):
    """A row of images.

    Attributes
    ----------
    heading, reason : str
        Lines above them.
    tiles : list of (str, str)
        Id of each image, and the text below it.
    """

    heading: str
    reason: str
    tiles: list[tuple[str, str]]


def list_sheet_lines(answer: AugmentedResult) -> list[SheetLine]:
    """Return the lines of a sheet for a search result."""
    lines = []
    for group in answer.groups:
        has_several_labels = len(group.labels) > 1
        tiles = [
            (match.id, f"{match.label} {match.score:.2f}" if has_several_labels else f"{match.score:.2f}")
            for match in group.matches
        ]
        heading = answer.query_labels.query if group.score is None else format_label_list(group.labels)
        lines.append(SheetLine(heading, group.reason, tiles))
    return lines


def render_sheet(lines: Sequence[SheetLine], pictures: Mapping[str, EncodedImage], across: int = _ACROSS) -> bytes:
    """Draw a sheet of images as PNG, at most `across` in a row, as wide as these and the lines above them."""
    from PIL import Image as Pillow
    from PIL import ImageDraw

    step, text = _TILE + _GAP, _TEXT + 6
    heights = [2 * text + -(-len(line.tiles) // across) * (step + _SMALL) + _GAP for line in lines]
    width = 2 * _EDGE + across * step - _GAP
    paper = Pillow.new("RGB", (width, 2 * _EDGE + sum(heights)), PAPER)
    draw, top, right = ImageDraw.Draw(paper), _EDGE, 0
    for line, height in zip(lines, heights, strict=True):
        heading = _draw_text(draw, (_EDGE, top), line.heading, _TEXT + 2, INK, width - 2 * _EDGE)
        reason = _draw_text(draw, (_EDGE, top + text), line.reason, _SMALL + 1, SOFT, width - 2 * _EDGE)
        right = max(right, heading, reason, min(len(line.tiles), across) * step - _GAP)
        for number, (name, caption) in enumerate(line.tiles):
            x, y = _EDGE + number % across * step, top + 2 * text + number // across * (step + _SMALL)
            if name in pictures:
                small = Pillow.open(BytesIO(pictures[name].content))
                small.thumbnail((_TILE, _TILE))
                paper.paste(small, (x + (_TILE - small.width) // 2, y + (_TILE - small.height) // 2))
            _draw_text(draw, (x, y + _TILE), caption, _SMALL, SOFT, _TILE)
        top += height
    return encode_picture(paper.crop((0, 0, min(width, right + 2 * _EDGE), paper.height)), optimize=True)


def _draw_text(draw: Any, position: tuple[int, int], text: str, size: int, colour: str, room: int) -> int:
    """Draw a line of text, cut to its room, and return its width."""
    font = load_font(size)
    while text and draw.textlength(text, font=font) > room:
        text = text.rstrip("…")[:-1] + "…" if len(text) > 2 else ""
    draw.text(position, text, fill=colour, font=font)
    return int(draw.textlength(text, font=font)) + 1
