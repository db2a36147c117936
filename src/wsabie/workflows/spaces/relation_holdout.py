"""Split of declared data: items and pairs in two sides, or in training, validation and test."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from wsabie.core.arrays import Matrix
from wsabie.core.errors import require
from wsabie.evaluation.splits import Split, hash_with_seed
from wsabie.io.records import FeatureTable
from wsabie.io.space_declaration import KindDeclaration, RelationDeclaration, SpaceDeclaration
from wsabie.models.entity_space.relations import EntityKind, Relation
from wsabie.storage.rejects import Rejects
from wsabie.workflows.data_splits import require_enough_items, split_rows
from wsabie.workflows.spaces.declared_data import DeclaredData, IdPairs, open_declared_data, select_relations

MAX_PARTNERS = 10
"""Mean partners of an item per epoch, where shared names make the pairs."""
MAX_PAIRS = 20_000_000
"""Maximum number of pairs that shared names may make; a pair takes about 60 bytes while pairs are collected."""


def _has_shared_names(declared: RelationDeclaration) -> bool:
    """Return True if items of one kind are pairs because they share a name."""
    return declared.names is not None and declared.query == declared.target


def build_relation(
    declared: RelationDeclaration, pairs: IdPairs, query: EntityKind | str, target: EntityKind | str
) -> Relation:
    """Build the relation of a space between these ends.

    Items that share a name are all positives of each other; an epoch visits about MAX_PARTNERS of them for each item.

    Raises
    ------
    InputError
        Names that too many items share.
    """
    if not _has_shared_names(declared):
        return Relation(query, target, pairs, declared.name, declared.weight)
    names = {name: number for number, name in enumerate(dict.fromkeys(name for _, name in pairs))}
    query_names, target_names = (
        _build_name_matrix(end, pairs, names)  # type: ignore[arg-type]  # items that share names have data
        for end in (query, query if isinstance(target, str) else target)
    )
    n_pairs = int(np.asarray(query_names.sum(0)).ravel() @ np.asarray(target_names.sum(0)).ravel())
    require(
        n_pairs <= MAX_PAIRS,
        f"the relation {declared.name!r} makes {n_pairs:,} pairs of entities that share a name of {declared.names!r}, "
        f"more than {MAX_PAIRS:,}; choose other names, or give pairs",
    )
    Y = query_names @ target_names.T
    pairs_per_item = Y.nnz / max(Y.shape[0], 1)
    weight = declared.weight * min(1.0, MAX_PARTNERS / max(pairs_per_item, 1.0))
    return Relation(query, target, Y, declared.name, weight)


def _build_name_matrix(kind: EntityKind, pairs: IdPairs, names: Mapping[str, int]) -> Matrix:
    """Return the names of items as csr_matrix (items, names)."""
    from scipy.sparse import csr_matrix

    positions = {name: i for i, name in enumerate(kind.ids or ())}
    matches = [(positions[item_id], names[name]) for item_id, name in pairs if item_id in positions]
    rows, columns = np.array(matches, np.int64).reshape(-1, 2).T
    return csr_matrix((np.ones(len(matches), np.int32), (rows, columns)), (len(positions), len(names)))


def build_entity_kind(declared: KindDeclaration, rows: FeatureTable) -> EntityKind:
    """Build a kind whose items have features."""
    return EntityKind(declared.name, rows.X, rows.ids, declared.scaling, declared.map)  # type: ignore[arg-type]


@dataclass(frozen=True)
class RelationHoldout:
    """Training and held-out relations, and the held-out items."""

    training: list[Relation]
    holdout: list[Relation]
    holdout_kinds: list[EntityKind]

    def with_numbered_pairs(self) -> "RelationHoldout":
        """Return the same with pairs of items with data as numbers, in a tenth of the memory."""
        training, holdout = ([_number_pairs(relation) for relation in side] for side in (self.training, self.holdout))
        return RelationHoldout(training, holdout, self.holdout_kinds)


def split_relations(
    declared: SpaceDeclaration, data: DeclaredData, share: float, seed: int, sides: Mapping[str, Split] | None = None
) -> RelationHoldout:
    """Hold out a share of the items with features and all their pairs, and of pairs between other items.

    A held-out item is a query, and its targets are other held-out items; where both ends are of one kind, the targets
    are items of training. Pairs with an item that training does not know are dropped. `sides` gives the sides of the
    items where they are settled already.
    """
    if sides is None:
        for rows in data.rows.values() if share else ():
            require_enough_items(len(rows), share, "item")
        sides = {name: split_rows(rows, "auto", share, 0, seed) for name, rows in data.rows.items() if share}
    training_kinds, holdout_kinds = dict[str, EntityKind](), dict[str, EntityKind]()
    for name, rows in data.rows.items():
        kind = declared.kinds[name]
        training_kinds[name] = build_entity_kind(kind, rows.take(sides[name].train) if share else rows)
        if share:
            holdout_kinds[name] = build_entity_kind(kind, rows.take(sides[name].valid))
    training_ids, holdout_ids = (
        {name: set(kind.ids or ()) for name, kind in kinds.items()} for kinds in (training_kinds, holdout_kinds)
    )
    pairs = {
        relation.name: _split_pairs(relation, data.pairs[relation.name], training_ids, holdout_ids, share, seed)
        for relation in declared.relations
    }
    ends_and_pairs = ((relation.query, relation.target, pairs[relation.name][0]) for relation in declared.relations)
    known_ids = collect_known_ids(ends_and_pairs)
    training, holdout = list[Relation](), list[Relation]()
    for relation in declared.relations:
        query, target = (training_kinds.get(name, name) for name in (relation.query, relation.target))
        training_pairs, holdout_pairs = pairs[relation.name]
        training.append(build_relation(relation, training_pairs, query, target))
        ends = enumerate((relation.query, relation.target))
        free_ends = {end: known_ids[kind] for end, kind in ends if kind not in training_kinds}
        if holdout_pairs := select_pairs(holdout_pairs, free_ends):
            candidates = target if relation.query == relation.target else holdout_kinds.get(relation.target, target)
            test = build_relation(relation, holdout_pairs, holdout_kinds.get(relation.query, query), candidates)
            if test.n_pairs:  # no two that share a name may be left
                holdout.append(test)
    return RelationHoldout(training, holdout, list(holdout_kinds.values()))


def select_pairs(pairs: IdPairs, ids_of_ends: Mapping[int, Container[str]]) -> IdPairs:
    """Return the pairs whose ends are among the ids of that end."""
    return [pair for pair in pairs if all(pair[end] in ids for end, ids in ids_of_ends.items())]


def collect_known_ids(relations: Iterable[tuple[str, str, IdPairs]]) -> dict[str, set[str]]:
    """Return the ids of every kind in the pairs of some relations: (query kind, target kind, pairs)."""
    ids: dict[str, set[str]] = {}
    for *kinds, pairs in relations:
        for end, kind in enumerate(kinds):
            ids.setdefault(kind, set()).update(pair[end] for pair in pairs)
    return ids


def _split_pairs(
    declared: RelationDeclaration,
    pairs: IdPairs,
    training_ids: Mapping[str, set[str]],
    holdout_ids: Mapping[str, set[str]],
    share: float,
    seed: int,
) -> tuple[IdPairs, IdPairs]:
    """Return the training pairs and the held-out pairs."""
    if _has_shared_names(declared):
        return pairs, pairs if share else []
    names = (declared.query, declared.target)
    inside = {end: training_ids[names[end]] for end in (0, 1) if names[end] in training_ids}
    training = select_pairs(pairs, inside)
    if not share:
        return training, []
    if not inside:
        holdout = {pair for pair in pairs if hash_with_seed("\t".join(sorted(pair)), seed) < share * 2.0**64}
        return [pair for pair in pairs if pair not in holdout], [pair for pair in pairs if pair in holdout]
    outside = {end: holdout_ids[names[end]] for end in inside}
    if declared.query == declared.target:
        both_directions = [*pairs, *((target_id, query_id) for query_id, target_id in pairs)]
        return training, select_pairs(both_directions, {0: outside[0], 1: inside[1]})
    return training, select_pairs(pairs, outside)


def _number_pairs(relation: Relation) -> Relation:
    query, target, pairs = relation.query, relation.target, relation.pairs
    if not (isinstance(query, EntityKind) and isinstance(target, EntityKind) and isinstance(pairs, list)):
        return relation
    positions = [{name: i for i, name in enumerate(kind.ids or ())} for kind in (query, target)]
    numbers = (positions[end][name] for pair in pairs for end, name in enumerate(pair))
    return replace(relation, pairs=np.fromiter(numbers, np.int32, 2 * len(pairs)).reshape(-1, 2))


@dataclass(frozen=True)
class SplitPlan:
    """The items of every kind and their sides.

    Attributes
    ----------
    declared : SpaceDeclaration
    data : DeclaredData
        Images, audio and documents may have no features yet.
    sides : dict of str to Split
        Row numbers of these kinds; whole groups stay together.
    valid, test : float
        Shares of the items, and of the pairs between items without data.
    seed : int
    """

    declared: SpaceDeclaration
    data: DeclaredData
    sides: dict[str, Split]
    valid: float
    test: float
    seed: int


@dataclass(frozen=True)
class ThreeWayRelations:
    """Relations of the three sides; validation and test hold relations with pairs only.

    Attributes
    ----------
    training, valid, test : list of Relation
        Where both ends are of one kind, targets of the test are items of training and validation.
    training_and_validation : list of Relation
        Training and validation together.
    """

    training: list[Relation]
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
    data = open_declared_data(select_relations(declared), rejects)
    sides = {name: split_rows(rows, "auto", valid, test, seed) for name, rows in data.rows.items()}
    return SplitPlan(declared, data, sides, valid, test, seed)


def split_three_ways(plan: SplitPlan) -> ThreeWayRelations:
    """Return the relations of the three sides."""
    declared, data, sides, seed = plan.declared, plan.data, plan.sides, plan.seed
    outer = {name: Split(np.union1d(side.train, side.valid), side.test, side.test[:0]) for name, side in sides.items()}
    test_holdout = split_relations(declared, data, plan.test, seed, outer)
    free_pairs = {
        relation.name: relation.pairs
        for relation in test_holdout.training
        if not {relation.query_kind, relation.target_kind} & set(data.rows)
    }
    remaining_rows = {name: rows.take(outer[name].train) for name, rows in data.rows.items()}
    remaining_data = DeclaredData(remaining_rows, data.pairs | free_pairs)
    inner = {}
    for name, side in sides.items():
        train, valid = (np.searchsorted(outer[name].train, rows) for rows in (side.train, side.valid))
        inner[name] = Split(train, valid, side.test[:0])
    share = plan.valid / (1 - plan.test)
    valid_holdout = split_relations(declared, remaining_data, share, (seed + 1) % 2**63, inner)
    return ThreeWayRelations(valid_holdout.training, valid_holdout.holdout, test_holdout.holdout, test_holdout.training)
