"""What somebody asks for: the labels that a query means, and how that was found out."""

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import numpy as np

from wsabie.base.arrays import Int64, Matrix
from wsabie.base.errors import UnknownLabelError
from wsabie.base.sparse import to_csr
from wsabie.labels.hierarchy import spelling
from wsabie.labels.knowledge import Concept
from wsabie.labels.matching import Matched
from wsabie.labels.names import unknown_label
from wsabie.labels.vectors import Vectors
from wsabie.search.exact import top_k

How = Literal["label", "name", "kinds", "same things", "word vector"]
ALIKE = 0.5
"""Cosine from which two labels are taken to name the same things."""
_LISTED = 8


class Understood(NamedTuple):
    """What a query means.

    Attributes
    ----------
    query : str
    labels : list of str
        Nearest first.
    how : str
        "label": it is one; "name": another name of one; "kinds": labels of what is below it; "same things": it names
        what a label names; "word vector": its vector is nearest to that of a label.
    concept : str or None
        What it means as a whole, where that is known.
    sentence : str
        The same for a person.
    """

    query: str
    labels: list[str]
    how: How
    concept: str | None
    sentence: str


class SameThings:
    """Labels that name the same things of a collection, such as translations of each other.

    Two labels are as alike as the cosine of their columns: things with both, over the root of the product of the
    things with either.

    Parameters
    ----------
    Y : sparse matrix (n_things, n_labels)
        Values above 0 are labels of a thing.
    names : sequence of str

    Examples
    --------
    >>> same = SameThings(np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]]), ["guitar", "guitare", "wood"])
    >>> same.nearest("Guitare", ["guitar", "wood"])
    ('guitar', 1.0)
    >>> same.nearest("violon", ["guitar"]) is None
    True
    """

    def __init__(self, Y: Matrix, names: Sequence[str]) -> None:
        self._rows = (to_csr(Y, "Y") > 0).astype(np.int32)
        self._columns = self._rows.tocsc()
        self._names = list(names)
        self._places = {spelling(name): place for place, name in reversed(list(enumerate(names)))}

    def nearest(self, name: str, among: Collection[str]) -> tuple[str, float] | None:
        """The label among some that is most alike, with its cosine; of equal ones the first. None where none is."""
        place = self._places.get(spelling(name))
        if place is None or not (things := self._things(place)).size:
            return None
        both = np.asarray(self._rows[things].sum(axis=0)).ravel()
        wanted = [y for y in np.flatnonzero(both).tolist() if y != place and self._names[y] in among]
        if not wanted:
            return None
        alike = [float(both[y]) / (len(things) * len(self._things(y))) ** 0.5 for y in wanted]
        best = int(np.argmax(alike))
        return self._names[wanted[best]], alike[best]

    def _things(self, place: int) -> Int64:
        found: Int64 = self._columns.indices[self._columns.indptr[place] : self._columns.indptr[place + 1]]
        return found


class Queries:
    """Finds the labels that queries mean.

    Parameters
    ----------
    labels : sequence of str
    known : Matched or None
        What is known of these labels: synonyms, what is below a word, translations.
    same : SameThings or None
        What a collection's own labels name, of which the labels may be a part.
    vectors : Vectors or None

    Examples
    --------
    >>> from wsabie.labels.knowledge import Knowledge
    >>> from wsabie.labels.matching import match_labels
    >>> known = Knowledge()
    >>> for kind in ("car", "bicycle"):
    ...     known.relate("is-a", kind, "wheeled vehicle")
    >>> labels = ["car", "bicycle", "ship"]
    >>> queries = Queries(labels, match_labels(known, labels))
    >>> queries.understand("Ship").labels, queries.understand("wheeled vehicle").sentence
    (['ship'], "'wheeled vehicle' is no label, but there are 2 below it: car, bicycle")
    """

    def __init__(
        self,
        labels: Sequence[str],
        known: Matched | None = None,
        same: SameThings | None = None,
        vectors: Vectors | None = None,
    ) -> None:
        self.labels, self.known, self.same, self.vectors = list(labels), known, same, vectors
        self._set = frozenset(labels)
        self._spelled: dict[str, str] = {}
        for label in labels:
            self._spelled.setdefault(spelling(label), label)

    def understand(self, query: str) -> Understood:
        """The labels that a query means.

        In this order: it is a label, whatever its case; another name of one; there are labels below it; it names
        the same things as one; its word vector is nearest to that of one.

        Raises
        ------
        UnknownLabelError
            Nothing of these; the message suggests labels that look like it.
        """
        found = self._label(query) or self._known(query) or self._same(query) or self._near(query)
        if found is None:
            raise UnknownLabelError(unknown_label(query, self.labels))
        return found

    def _label(self, query: str) -> Understood | None:
        label = query if query in self._set else self._spelled.get(spelling(query))
        if label is None:
            return None
        return Understood(query, [label], "label", None, f"'{label}' is a label")

    def _known(self, query: str) -> Understood | None:
        known = self.known
        if known is None or not known.knowledge.senses(query):
            return None
        meant = known.expand(query)
        named = [reached for reached in meant.kinds if not reached.steps]
        labels = [known.labels[reached.place] for reached in named or meant.kinds]
        if not labels:
            return None
        called = f"'{query}'{_language(known.knowledge.concept(meant.concept), query)}"
        if named:
            same = " and ".join(f"'{label}'" for label in labels)
            return Understood(query, labels, "name", meant.concept, f"{called} is another name of {same}")
        count = f"there are {len(labels):,}" if len(labels) > 1 else "there is one"
        sentence = f"{called} is no label, but {count} below it: {listed(labels)}"
        return Understood(query, labels, "kinds", meant.concept, sentence)

    def _same(self, query: str) -> Understood | None:
        found = None if self.same is None else self.same.nearest(query, self._set)
        if found is None or found[1] < ALIKE:
            return None
        sentence = f"'{query}' names the same things of the collection as '{found[0]}' (cosine {found[1]:.2f})"
        return Understood(query, [found[0]], "same things", None, sentence)

    def _near(self, query: str) -> Understood | None:
        if self.vectors is None or query not in self.vectors:
            return None
        found = self.vectors.of(self.labels)
        if not len(found.places):
            return None
        ids, cosines = top_k(self.vectors.vector(query)[None], found.table, 1, similarity="cosine")
        if not cosines[0, 0] > 0:  # a vector of zeros is near to nothing
            return None
        label = self.labels[found.places[ids[0, 0]]]
        sentence = f"the word vector of '{query}' is nearest to that of '{label}' (cosine {cosines[0, 0]:.2f})"
        return Understood(query, [label], "word vector", None, sentence)


def listed(names: Sequence[str], most: int = _LISTED) -> str:
    """Names with commas between them, the first few.

    Examples
    --------
    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def _language(concept: Concept, name: str) -> str:
    """In which language a concept has this name, in brackets; nothing for English, or where it is not known."""
    found = {spelling(own): language for own, language in zip(concept.names, concept.languages, strict=True)}
    language = found.get(spelling(name), "")
    return "" if language in ("", "en", "eng") else f" ({language})"
