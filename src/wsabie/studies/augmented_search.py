"""Search by text, augmented by what is related: labels of a query, pictures of them, then related labels and theirs.

[P] section 6.6, Figure 4: a query's label ranks the pictures by f_I, its parts are found by f_L, and each of them ranks
the pictures again. A picture's score for several labels is that of its best one, as it is: WARP compares the labels of
one picture with each other, so that their scores are of one scale.
"""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from wsabie.base.errors import InputError
from wsabie.base.validation import whole_number
from wsabie.models.base import LabelModel
from wsabie.models.encoded import Encoded, refuse_without_points
from wsabie.search.asked import Queries, Understood, listed
from wsabie.search.exact import ExactIndex
from wsabie.search.related import Link, Related


class Found(NamedTuple):
    """A thing that was found: its id, the label that it was found for, and the score of that."""

    id: str
    label: str
    score: float


class Group(NamedTuple):
    """Things that were found for the same reason, best first.

    Attributes
    ----------
    labels : list of str
        The query's own, or one that is related to them.
    why : str
    score : float or None
        How nearly related, by whoever says why; None for the query's own.
    found : list of Found
    """

    labels: list[str]
    why: str
    score: float | None
    found: list[Found]


class Answer(NamedTuple):
    """What a query means, and what was found: for itself first, then for what is related."""

    understood: Understood
    groups: list[Group]


class AugmentedSearch:
    """Finds things of a collection by a text, and things of related labels beside them.

    Parameters
    ----------
    model : LabelModel
        One with points: `transform` and `label_vectors`.
    items : Encoded
        The collection as points of this model.
    queries : Queries or None
        Finds the labels of a query; None: only the model's labels themselves.
    related : sequence of Related
        Who knows related labels. Each has its turn, so that none is drowned by another.
    groups : sequence of str or None
        Of the items, in their order: of one group only the best is shown.

    Examples
    --------
    >>> import numpy as np
    >>> from wsabie import Wsabie
    >>> model = Wsabie(dim=4, epochs=20, threads=1).fit(np.eye(3), ["car", "wheel", "ship"])
    >>> items = Encoded(["a", "b", "c"], model.transform(np.eye(3)))
    >>> class Parts:
    ...     def related(self, label, k=10):
    ...         return [("wheel", 1.0, f"part of {label}")][: label == "car"]
    >>> for group in AugmentedSearch(model, items, related=[Parts()]).find("Car", k=1).groups:
    ...     print(group.labels, group.why, [one.id for one in group.found])
    ['car'] 'car' is a label ['a']
    ['wheel'] part of car ['b']
    """

    def __init__(
        self,
        model: LabelModel,
        items: Encoded,
        *,
        queries: Queries | None = None,
        related: Sequence[Related] = (),
        groups: Sequence[str] | None = None,
    ) -> None:
        refuse_without_points(model)
        if not len(items):
            raise InputError("there is nothing to search in; give a collection that holds something")
        self.model, self.items, self.related = model, items, related
        self.queries = Queries(model.vocabulary_.names(model.vocabulary_.living())) if queries is None else queries
        self._kin = items.ids if groups is None else groups
        self._index = ExactIndex(items.points, similarity=getattr(model, "similarity", "dot"))
        bias = getattr(getattr(model, "space_", None), "bias", None)
        self._bias = None if bias is None or not bias.any() else bias

    def find(self, query: str, k: int = 10, n_related: int = 8) -> Answer:
        """What a query means and the k best things for it, then k for each of up to `n_related` related labels.

        A thing is shown once, where it comes first.

        Raises
        ------
        InputError
            The query means no label (the message suggests some), or only labels without a word vector.
        """
        k, shown = whole_number(k, "k"), set[str]()
        understood = answerable(self.queries.understand(query), self.model)
        groups = [Group(understood.labels, understood.sentence, None, self._best(understood.labels, k, shown))]
        for link in self._related(understood)[:n_related]:
            if found := self._best([link.label], k, shown):
                groups.append(Group([link.label], link.why, link.score, found))
        return Answer(understood, groups)

    def _related(self, understood: Understood) -> list[Link]:
        """Related labels that the model has, those of all who know some in turns."""
        vocabulary, out = self.model.vocabulary_, {*understood.labels, *_missing(self.model)}
        sides = [_links(one, understood) for one in self.related]
        turns: Iterable[Link | None] = (link for turn in zip_longest(*sides) for link in turn)
        found: dict[str, Link] = {}
        for link in turns:
            if link is not None and link.label in vocabulary and link.label not in out:
                found.setdefault(link.label, link)
        return list(found.values())

    def _best(self, labels: Sequence[str], k: int, shown: set[str]) -> list[Found]:
        """The k best things for any of some labels that are not shown yet; they are from now on."""
        ids, depth = self.model.vocabulary_.ids(labels), k + len(shown)
        while True:
            depth = min(depth, len(self.items))
            found = self._unshown(self._ranked(ids, depth), k, shown)
            if len(found) == k or depth == len(self.items):
                break
            depth *= 4  # kin of what is shown took the places
        shown.update(self._kin[place] for place, _, _ in found)
        names = dict(zip(ids.tolist(), labels, strict=True))
        return [Found(self.items.ids[place], names[label], score) for place, label, score in found]

    def _ranked(self, labels: Any, depth: int) -> list[tuple[int, int, float]]:
        """The first things of each label, all together by score: (place, label, score)."""
        places, scores = self._index.top_k(self.model.label_vectors[labels], depth, threads=self.model.threads)
        if self._bias is not None:
            scores = scores + self._bias[labels][:, None]
        lists = zip(labels.tolist(), places.tolist(), scores.tolist(), strict=True)
        all_of_them = [(p, label, s) for label, ps, ss in lists for p, s in zip(ps, ss, strict=True)]
        return sorted(all_of_them, key=lambda one: (-one[2], one[0], one[1]))

    def _unshown(self, ranked: list[tuple[int, int, float]], k: int, shown: set[str]) -> list[tuple[int, int, float]]:
        found: dict[str, tuple[int, int, float]] = {}
        for one in ranked:
            kin = self._kin[one[0]]
            if kin not in shown and kin not in found:
                found[kin] = one
            if len(found) == k:
                break
        return list(found.values())


def answerable(understood: Understood, model: LabelModel) -> Understood:
    """A query without the labels for which the model has no word vector: every thing would be as near to them.

    Raises
    ------
    InputError
        None is left.
    """
    missing = _missing(model)
    labels = [label for label in understood.labels if label not in missing]
    if not labels:
        raise InputError(
            f"the model has no word vector for {listed(understood.labels)}; ask for another label, or train with "
            "vectors that have one"
        )
    if n := len(understood.labels) - len(labels):
        sentence = f"{understood.sentence} ({n:,} of them without a word vector left out)"
        return understood._replace(labels=labels, sentence=sentence)
    return understood


def _missing(model: LabelModel) -> frozenset[str]:
    return frozenset(getattr(model, "missing_", ()))


def _links(who: Related, understood: Understood) -> list[Link]:
    """What somebody knows to be related to the query as a whole, or where that is nothing, to each of its labels."""
    names = [understood.labels] if understood.concept is None else [[understood.concept], understood.labels]
    for some in names:
        links = [Link(*link) for name in some for link in who.related(name, _ASKED)]
        if links:
            best: dict[str, Link] = {}
            for link in sorted(links, key=lambda link: -link.score):
                best.setdefault(link.label, link)
            return list(best.values())
    return []


_ASKED = 50
"""Related labels that each is asked for: some of them the model does not have, or the query means them itself."""
