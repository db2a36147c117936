"""Related labels from training: a model of objects and parts, a relation of a space."""

import numpy as np
import pytest

from wsabie import Relation, Space
from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.models.baselines import Popularity
from wsabie.models.model_relations import ObjectPartRelations, SpaceRelations, _phrase_relation, find_model_relations
from wsabie.vocabulary.label_names import Vocabulary


class Parts:
    """Stand-in for a model of objects and parts."""

    vocabulary_ = Vocabulary(["car", "wheel", "door", "moon"])
    relations_ = np.array([[0, 1]])

    def __init__(self, relation: str = "has-part") -> None:
        self.relation = relation

    def related(self, label: str, k: int = 10, *, side: str | None = None) -> list[tuple[str, float]]:
        assert side == "part"
        if label != "car":
            raise UnknownLabelError("there is no such label")
        return [("wheel", 0.834), ("door", 0.5), ("moon", -0.1)][:k]


def test_part_relations_report_scores() -> None:
    assert ObjectPartRelations(Parts()).related("car", 1) == [("wheel", 0.834, "part of car (trained, f_L = 0.83)")]
    assert [link.reason for link in ObjectPartRelations(Parts()).related("car")] == [
        "part of car (trained, f_L = 0.83)",
        "perhaps part of car (trained, f_L = 0.50)",
    ]
    assert ObjectPartRelations(Parts()).related("ship") == []


def test_other_relations_are_named() -> None:
    def reasons(relation: str) -> list[str]:
        return [link.reason.partition(" (")[0] for link in ObjectPartRelations(Parts(relation)).related("car")]

    assert reasons("is-a") == ["has the kind car", "perhaps has the kind car"]
    assert reasons("has-kind") == ["kind of car", "perhaps kind of car"]
    assert reasons("instance-of") == ["has the instance car", "perhaps has the instance car"]
    assert reasons("part-of") == ["has the part car", "perhaps has the part car"]
    assert reasons("driven-by") == ["driven-by of car", "perhaps driven-by of car"]
    assert reasons("^driven-by") == ["driven-by car", "perhaps driven-by car"]


def test_models_with_related_labels_are_recognised() -> None:
    space = Space(dim=4, epochs=5, threads=1).fit([Relation("whole", "part", [("car", "wheel")], "has")])
    assert isinstance(find_model_relations(Parts()), ObjectPartRelations)
    assert isinstance(find_model_relations(space), SpaceRelations)
    with pytest.raises(InputError, match="no relation 'is'; it has has"):
        find_model_relations(space, "is")
    with pytest.raises(InputError, match="m does not relate labels"):
        find_model_relations(Popularity(), None, "m")


@pytest.mark.parametrize(
    ("relation", "phrase"),
    [
        ("has-part", "part of"), ("part-of", "has the part"), ("is-a", "has the kind"), ("has-kind", "kind of"),
        ("married-to", "married-to of"),
    ],
)  # fmt: skip
def test_relation_has_a_phrase(relation: str, phrase: str) -> None:
    assert _phrase_relation(relation) == phrase
