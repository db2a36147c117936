"""Related labels that a trained model knows: one of objects and parts, or a relation of a space."""

from typing import Any

from wsabie.core.errors import InputError, UnknownLabelError, require
from wsabie.models.entity_space.fitted_space import FittedSpace
from wsabie.models.object_parts.pair_ranker import PairRanker
from wsabie.search.query_labels import LabelLink, RelatedLabelSource
from wsabie.vocabulary.knowledge_graph import parse_direction


class ObjectPartRelations:
    """Labels related to a label, such as its parts, by f_L(L_o, L_p) = W_Lo . W_Lp (Mesnil et al. 2014).

    Parameters
    ----------
    model : fitted model of objects and parts
        Its `related(label, k, side="part")` returns labels and their f_L.
    """

    def __init__(self, model: PairRanker) -> None:
        self.model = model

    def related(self, label: str, k: int = 10) -> list[LabelLink]:
        """Return the k labels with the highest f_L above 0; none if the model does not know the label.

        Links that were not in the training relations are marked "perhaps": they follow from other relations.
        """
        phrase = _phrase_relation(self.model.relation)
        try:
            matches = self.model.related(label, k, side="part")
        except UnknownLabelError:
            return []
        relations, names = self.model.relations_, self.model.vocabulary_
        (label_id,) = names.ids([label])
        trained_labels = set(names.names(relations[relations[:, 0] == label_id, 1]))
        phrases = {name: phrase if name in trained_labels else f"perhaps {phrase}" for name, _ in matches}
        return [
            LabelLink(name, score, f"{phrases[name]} {label} (trained, f_L = {score:.2f})")
            for name, score in matches
            if score > 0
        ]


def _phrase_relation(relation: str) -> str:
    """Return the phrase for the second label of a relation that precedes the name of the first."""
    stated, inverse = parse_direction(relation)
    noun = "kind" if stated == "is-a" else stated.removesuffix("-of")
    if inverse:  # the relation is named from this side
        return stated if noun == stated else f"{noun} of"
    return f"{stated} of" if noun == stated else f"has the {noun}"


class SpaceRelations:
    """Labels related to a label by a relation of a space.

    Parameters
    ----------
    space : Space
    relation : str or None
        Name of a relation between kinds of labels; None: the first of the space.

    Raises
    ------
    InputError
        The space has no such relation.

    Examples
    --------
    >>> from wsabie import Relation, Space
    >>> pairs = [("wheel", "car"), ("door", "car"), ("string", "guitar"), ("neck", "guitar")]
    >>> space = Space(dim=8, epochs=30, threads=1).fit([Relation("whole", "part", [(b, a) for a, b in pairs], "has")])
    >>> sorted(link.label for link in SpaceRelations(space).related("guitar", 2)), SpaceRelations(space).related("ship")
    (['neck', 'string'], [])
    """

    def __init__(self, space: FittedSpace, relation: str | None = None) -> None:
        ends = {name: (query, target) for name, query, target in space.relations_}
        self.relation = next(iter(ends)) if relation is None else relation
        require(self.relation in ends, f"the space has no relation {relation!r}; it has {', '.join(ends)}")
        self.space, (self.query, self.target) = space, ends[self.relation]

    def related(self, label: str, k: int = 10) -> list[LabelLink]:
        """Return the k best items of the relation's target kind; none if the label is not in its query kind."""
        if label not in self.space.find_entities(self.query).vocabulary:
            return []
        (matches,) = self.space.annotate(self.query, self.target, [label], k)
        return [LabelLink(name, score, f"{self.relation}: {label} (trained, {score:.2f})") for name, score in matches]


def find_model_relations(model: Any, relation: str | None = None, where: str = "the model") -> RelatedLabelSource:
    """Return the label relations of a loaded model of objects and parts, or of a space.

    Raises
    ------
    InputError
        The model is neither.
    """
    candidates: tuple[Any, Any] = model, getattr(model, "model", None)
    for candidate in candidates:
        if hasattr(candidate, "related"):
            return ObjectPartRelations(candidate)
    space = getattr(model, "space", model)
    if isinstance(space, FittedSpace):
        return SpaceRelations(space, relation)
    raise InputError(f"{where} does not relate labels to each other; give a model of objects and parts, or a space")
