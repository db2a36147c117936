"""Labels that training found to be related: by a model of objects and parts, or by a relation of a space."""

from typing import Any, Literal

from wsabie.base.errors import InputError, UnknownLabelError
from wsabie.labels.knowledge import direction
from wsabie.models.known_space import KnownSpace
from wsabie.search.related import Link

Side = Literal["part", "object"]


class PartsRelated:
    """Parts of a label, or what it is a part of, by f_L(L_o, L_p) = W_Lo . W_Lp ([P] section 3); or any other relation.

    Parameters
    ----------
    model : fitted model of objects and parts
        Answers `related(label, k, side=)` with labels and their f_L.
    side : {"part", "object"}
        What is looked for: the second or the first of the relation's pairs.
    """

    def __init__(self, model: Any, side: Side = "part") -> None:
        self.model, self.side = model, side

    def related(self, label: str, k: int = 10) -> list[Link]:
        """The k labels with the highest f_L above 0; none where the model does not know the label.

        Of those that training was not told of it says so: they follow from what other labels are to each other.
        """
        said = _said(self.model.relation, self.side)
        try:
            found = self.model.related(label, k, side=self.side)
        except UnknownLabelError:
            return []
        told = self._told(label)
        return [
            Link(name, score, f"{'' if name in told else 'perhaps '}{said} {label} (trained, f_L = {score:.2f})")
            for name, score in found
            if score > 0
        ]

    def _told(self, label: str) -> set[str]:
        """What training was told of a label."""
        relations, names = self.model.relations_, self.model.vocabulary_
        (own,) = names.ids([label])
        at, other = (0, 1) if self.side == "part" else (1, 0)
        return set(names.names(relations[relations[:, at] == own, other]))


def _said(relation: str, side: Side) -> str:
    """What is said of one end of a relation, before the other end is named.

    Examples
    --------
    >>> [_said(relation, "part") for relation in ("has-part", "part-of", "is-a", "married-to")]
    ['part of', 'has the part', 'has the kind', 'married-to of']
    >>> [_said(relation, "object") for relation in ("has-part", "part-of", "is-a", "married-to")]
    ['has the part', 'part of', 'kind of', 'married-to']
    """
    stated, inverse = direction(relation)
    noun = "kind" if stated == "is-a" else stated.removesuffix("-of")
    if (side == "object") != inverse:  # it is what the relation is stated of
        return stated if noun == stated else f"{noun} of"
    return f"{stated} of" if noun == stated else f"has the {noun}"


class SpaceRelated:
    """What a relation of a space leads to from a label.

    Parameters
    ----------
    space : Space
    relation : str or None
        One between kinds of things that are labels; None: the space's first.

    Raises
    ------
    InputError
        The space has no such relation.

    Examples
    --------
    >>> from wsabie import Relation, Space
    >>> pairs = [("wheel", "car"), ("door", "car"), ("string", "guitar"), ("neck", "guitar")]
    >>> space = Space(dim=8, epochs=30, threads=1).fit([Relation("whole", "part", [(b, a) for a, b in pairs], "has")])
    >>> sorted(link.label for link in SpaceRelated(space).related("guitar", 2)), SpaceRelated(space).related("ship")
    (['neck', 'string'], [])
    """

    def __init__(self, space: KnownSpace, relation: str | None = None) -> None:
        ends = {name: (query, target) for name, query, target in space.relations_}
        self.relation = next(iter(ends)) if relation is None else relation
        if self.relation not in ends:
            raise InputError(f"the space has no relation {relation!r}; it has {', '.join(ends)}")
        self.space, (self.query, self.target) = space, ends[self.relation]

    def related(self, label: str, k: int = 10) -> list[Link]:
        """The k best things of the relation's second kind; none where the label is none of its first."""
        if label not in self.space.known(self.query).things:
            return []
        (found,) = self.space.annotate(self.query, self.target, [label], k)
        return [Link(name, score, f"{self.relation}: {label} (trained, {score:.2f})") for name, score in found]


def related_by(model: Any, relation: str | None = None, where: str = "the model") -> "PartsRelated | SpaceRelated":
    """What a loaded model, of objects and parts or a space, knows of related labels.

    Raises
    ------
    InputError
        It is neither.
    """
    for one in (model, getattr(model, "model", None)):
        if hasattr(one, "related"):
            return PartsRelated(one)
    space = getattr(model, "space", model)
    if isinstance(space, KnownSpace):
        return SpaceRelated(space, relation)
    raise InputError(f"{where} does not relate labels to each other; give a model of objects and parts, or a space")
