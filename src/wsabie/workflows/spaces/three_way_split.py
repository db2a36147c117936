"""Split of declared data into training, validation and test, before features are extracted."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from wsabie.evaluation.splits import Split
from wsabie.io.records import Source
from wsabie.io.space_declaration import SpaceDeclaration
from wsabie.models.entity_space.relations import Relation
from wsabie.storage.rejects import Rejects
from wsabie.workflows.collection_splits import split_collection
from wsabie.workflows.spaces.entity_features import open_declared_data
from wsabie.workflows.spaces.relation_holdout import DeclaredData, split_relations
from wsabie.workflows.spaces.space_training import select_relations


@dataclass(frozen=True)
class SplitPlan:
    """The items of every kind and their sides.

    Attributes
    ----------
    data : DeclaredData
        Images, audio and documents have no features yet.
    sources : dict of str to Source
        Of the kinds with data.
    sides : dict of str to Split
        Row numbers of these kinds; whole groups stay together.
    valid, test : float
        Shares of the items, and of the pairs between items without data.
    seed : int
    """

    data: DeclaredData
    sources: dict[str, Source]
    sides: dict[str, Split]
    valid: float
    test: float
    seed: int


@dataclass(frozen=True)
class ThreeWayRelations:
    """Relations of the three sides; validation and test hold relations with pairs only.

    Attributes
    ----------
    learnt, valid, test : list of Relation
        Where both ends are of one kind, targets of the test are items of training and validation.
    training_and_validation : list of Relation
        Training and validation together.
    """

    learnt: list[Relation]
    valid: list[Relation]
    test: list[Relation]
    training_and_validation: list[Relation]


def plan_three_way_split(
    declared: SpaceDeclaration, valid: float, test: float, seed: int, rejects: Rejects
) -> SplitPlan:
    """Open all data, and split the items of the kinds with data as `split_relations` does first.

    Raises
    ------
    InputError
        As `collect_declared_data`; or a side stays empty.
    """
    data, sources = open_declared_data(declared, select_relations(declared, ()), rejects)
    sides = {name: split_collection(rows, "auto", valid, test, seed) for name, rows in data.rows.items()}
    return SplitPlan(data, sources, sides, valid, test, seed)


def split_three_ways(
    declared: SpaceDeclaration,
    plan: SplitPlan,
    data: DeclaredData | None = None,
    sides: Mapping[str, Split] | None = None,
) -> ThreeWayRelations:
    """Return the relations of the three sides; `data` and `sides` replace those of the plan."""
    data, sides = data or plan.data, sides or plan.sides
    relations, seed = declared.relations, plan.seed
    outer = {name: Split(_join_sides(side), side.test, side.test[:0]) for name, side in sides.items()}
    test_holdout = split_relations(declared, relations, data, plan.test, seed, outer)
    remaining_data = DeclaredData(
        {name: rows.take(outer[name].train) for name, rows in data.rows.items()},
        {
            relation.name: data.couples[relation.name]
            if {relation.query_kind, relation.target_kind} & set(data.rows)
            else relation.pairs
            for relation in test_holdout.learnt
        },
    )
    inner = {
        name: Split(
            np.searchsorted(outer[name].train, side.train),
            np.searchsorted(outer[name].train, side.valid),
            side.test[:0],
        )
        for name, side in sides.items()
    }
    valid_holdout = split_relations(
        declared, relations, remaining_data, plan.valid / (1 - plan.test), (seed + 1) % 2**63, inner
    )
    return ThreeWayRelations(valid_holdout.learnt, valid_holdout.held_out, test_holdout.held_out, test_holdout.learnt)


def _join_sides(side: Split) -> np.ndarray:
    return np.sort(np.concatenate([side.train, side.valid]))
