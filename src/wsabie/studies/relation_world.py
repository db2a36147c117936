"""What training knows of relations, and the queries, candidates and pairs of the test."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wsabie.base.arrays import Int64, Matrix
from wsabie.models.judging import Judged
from wsabie.models.known import KnownKind
from wsabie.models.relations import Kind, Relation
from wsabie.models.told import judged, known_matrix, told
from wsabie.sources.records import Rows
from wsabie.studies.three_sides import ThreeSides


@dataclass(frozen=True)
class World:
    """What training knows, and the queries, candidates and pairs of the test, the same for all methods.

    Attributes
    ----------
    learnt, valid, test : dict of str to Relation
        Names are told beforehand, so that every space knows all of them.
    excluded : list of Relation
        Between names: pairs of training and validation, which are no candidates in the test.
    known : dict of str to KnownKind
    pairs : dict of str to csr_matrix (known queries, known targets)
        Of training.
    asked : dict of str to Judged
    """

    learnt: dict[str, Relation]
    valid: dict[str, Relation]
    test: dict[str, Relation]
    excluded: list[Relation]
    known: dict[str, KnownKind]
    pairs: dict[str, Matrix]
    asked: dict[str, Judged]

    @classmethod
    def of(cls, sides: ThreeSides) -> "World":
        world = told(sides.learnt)
        known, pairs = world.known, {one.name: Y for one, Y in world.pairs.items()}
        names = {name: Kind(name, None, list(kind.things)) for name, kind in known.items() if not kind.n_features}
        learnt = {
            one.name: replace(
                one, query=names.get(one.query_kind, one.query), target=names.get(one.target_kind, one.target)
            )
            for one in sides.learnt
        }
        excluded = [one for one in sides.known if {one.query_kind, one.target_kind} <= set(names)]
        both = {one.name: known_matrix(one, known) for one in excluded}
        mapped = {end.name: end for one in sides.learnt for end in (one.query, one.target) if isinstance(end, Kind)}
        test = [
            replace(one, target=mapped.get(one.target_kind, one.target)) if isinstance(one.target, str) else one
            for one in sides.test
        ]
        asked = {one.name: judged(one, known, trained=both.get(one.name)) for one in test}
        asked = {name: one for name, one in asked.items() if len(one.chosen)}
        valid = {one.name: one for one in sides.valid if judged(one, known).Y.nnz}
        return cls(learnt, valid, {one.name: one for one in test if one.name in asked}, excluded, known, pairs, asked)

    def counts(self, relation: Relation) -> Any:
        """Training pairs of every candidate; 0 of things that training does not know."""
        found = np.asarray(self.pairs[relation.name].sum(axis=0)).ravel()
        things = self.known[relation.target_kind].things
        if isinstance(relation.target, str) or relation.target.X is None:
            return found
        return [found[things.ids([name])[0]] if name in things else 0 for name in relation.target.names()]

    def rows(self, relation: Relation, Y: Matrix, chosen: Int64) -> Rows:
        """Some queries of a relation as rows, the names as their labels."""
        kind = relation.query
        if not isinstance(kind, Kind):
            raise TypeError("queries of a classifier have features")
        ids, names = list(kind.names()), list(self.known[relation.target_kind].things)
        return Rows(kind.X[chosen], Y, names, [ids[i] for i in chosen])
