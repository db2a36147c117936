"""Text search with related labels: images of a query's labels, then images of related labels.

As Mesnil et al. 2014, section 6.6 and Figure 4: a query's label ranks the images by f_I, its parts are found by f_L,
and each of them ranks the images again. An image's score for several labels is that of its best label, unscaled: WARP
compares the labels of one image with each other, so their scores share one scale.
"""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Int64
from wsabie.core.errors import InputError, require
from wsabie.core.validation import check_positive_integer
from wsabie.models.base.label_model import LabelModel
from wsabie.models.embedding_set import EmbeddingSet, require_embeddings
from wsabie.search.exact_index import ExactIndex
from wsabie.search.query_labels import LabelLink, QueryLabels, QueryMatcher, RelatedLabelSource, format_label_list

_LINKS_PER_SOURCE = 50
"""Related labels to request of each source; the model lacks some, and the query means some itself."""


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
        self._index = ExactIndex(items.points, similarity=getattr(model, "similarity", "dot"))
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

    def _rank_items(self, labels: Int64, depth: int) -> list[tuple[int, int, float]]:
        """Return the first items of each label, sorted by score: (item, label, score)."""
        positions, scores = self._index.top_k(self.model.label_vectors[labels], depth, threads=self.model.threads)
        if self._bias is not None:
            scores = scores + self._bias[labels][:, None]
        columns = positions.ravel(), np.repeat(labels, positions.shape[1]), scores.ravel()
        hits = zip(*(column.tolist() for column in columns), strict=True)
        return sorted(hits, key=lambda hit: (-hit[2], hit[0], hit[1]))

    def _select_unshown(
        self, ranked: list[tuple[int, int, float]], k: int, shown_groups: set[str]
    ) -> list[tuple[int, int, float]]:
        best_by_group: dict[str, tuple[int, int, float]] = {}
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
