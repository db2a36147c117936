"""Entities that training knows, and the queries, candidates and pairs of the test."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wsabie.core.arrays import Int64, Matrix
from wsabie.io.records import FeatureTable
from wsabie.models.entity_space.fitted_entities import FittedEntities
from wsabie.models.entity_space.relation_data import (
    build_fitted_pair_matrix,
    build_holdout_pairs,
    prepare_relation_data,
)
from wsabie.models.entity_space.relation_evaluation import HoldoutPairs
from wsabie.models.entity_space.relations import EntityKind, Relation
from wsabie.workflows.spaces.three_way_split import ThreeWayRelations


@dataclass(frozen=True)
class RelationTestSet:
    """Entities that training knows, with the queries, candidates and pairs of the test for every method.

    Attributes
    ----------
    training, valid, test : dict of str to Relation
        All names of training are listed beforehand, so that every space knows all of them.
    excluded : list of Relation
        Between names: pairs of training and validation, which are no candidates in the test.
    entities : dict of str to FittedEntities
    pairs : dict of str to csr_matrix (fitted queries, fitted targets)
        Of training.
    holdouts : dict of str to HoldoutPairs
    """

    training: dict[str, Relation]
    valid: dict[str, Relation]
    test: dict[str, Relation]
    excluded: list[Relation]
    entities: dict[str, FittedEntities]
    pairs: dict[str, Matrix]
    holdouts: dict[str, HoldoutPairs]

    @classmethod
    def from_relations(cls, sides: ThreeWayRelations) -> "RelationTestSet":
        data = prepare_relation_data(sides.learnt)
        entities, pairs = data.known, {relation.name: Y for relation, Y in data.pairs.items()}
        names = {
            name: EntityKind(name, None, list(kind.things)) for name, kind in entities.items() if not kind.n_features
        }
        training = {
            pair_relation.name: replace(
                pair_relation,
                query=names.get(pair_relation.query_kind, pair_relation.query),
                target=names.get(pair_relation.target_kind, pair_relation.target),
            )
            for pair_relation in sides.learnt
        }
        excluded = [
            pair_relation
            for pair_relation in sides.training_and_validation
            if {pair_relation.query_kind, pair_relation.target_kind} <= set(names)
        ]
        excluded_pairs = {
            pair_relation.name: build_fitted_pair_matrix(pair_relation, entities) for pair_relation in excluded
        }
        feature_kinds = {
            end.name: end
            for pair_relation in sides.learnt
            for end in (pair_relation.query, pair_relation.target)
            if isinstance(end, EntityKind)
        }
        test = [
            replace(pair_relation, target=feature_kinds.get(pair_relation.target_kind, pair_relation.target))
            if isinstance(pair_relation.target, str)
            else pair_relation
            for pair_relation in sides.test
        ]
        holdouts = {
            pair_relation.name: build_holdout_pairs(
                pair_relation, entities, trained=excluded_pairs.get(pair_relation.name)
            )
            for pair_relation in test
        }
        holdouts = {name: pair_relation for name, pair_relation in holdouts.items() if len(pair_relation.chosen)}
        valid = {
            pair_relation.name: pair_relation
            for pair_relation in sides.valid
            if build_holdout_pairs(pair_relation, entities).Y.nnz
        }
        return cls(
            training,
            valid,
            {pair_relation.name: pair_relation for pair_relation in test if pair_relation.name in holdouts},
            excluded,
            entities,
            pairs,
            holdouts,
        )

    def counts(self, relation: Relation) -> Any:
        """Return the training pairs of every candidate; 0 for items that training does not know."""
        counts = np.asarray(self.pairs[relation.name].sum(axis=0)).ravel()
        entities = self.entities[relation.target_kind].things
        if isinstance(relation.target, str) or relation.target.X is None:
            return counts
        return [counts[entities.ids([name])[0]] if name in entities else 0 for name in relation.target.names()]

    def rows(self, relation: Relation, Y: Matrix, query_rows: Int64) -> FeatureTable:
        """Return chosen queries of a relation as rows, with the names as labels."""
        kind = relation.query
        if not isinstance(kind, EntityKind):
            raise TypeError("queries of a classifier have features")
        ids, names = list(kind.names()), list(self.entities[relation.target_kind].things)
        return FeatureTable(kind.X[query_rows], Y, names, [ids[i] for i in query_rows])
