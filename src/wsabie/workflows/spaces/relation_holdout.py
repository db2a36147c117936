"""Data of a declaration: rows of every kind, pairs of every relation, and their split into two sides."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from wsabie.core.arrays import Matrix
from wsabie.core.errors import InputError
from wsabie.core.validation import require
from wsabie.evaluation.splits import Split, hash_with_seed
from wsabie.io.datasets.attribute_recognition import read_attributes
from wsabie.io.datasets.item_attributes import AttributeTable
from wsabie.io.formats.id_list import select_listed_ids
from wsabie.io.formats.pair_list import read_id_pairs
from wsabie.io.parsers.text_files import format_path
from wsabie.io.recognition import open_source
from wsabie.io.records import FeatureTable, Source
from wsabie.io.space_declaration import KindDeclaration, RelationDeclaration, SpaceDeclaration
from wsabie.models.entity_space.relations import EntityKind, Relation
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.label_names import normalise_label_name
from wsabie.workflows.collection_splits import require_enough_items, split_collection

LABELS = "labels"
MOST_ALIKE = 10
"""Partners of an item per epoch, where shared names make the pairs."""
MOST_PAIRS = 20_000_000
"""Most pairs that shared names may make; a pair takes about 60 bytes while pairs are collected."""
IdPairs = list[tuple[str, str]]


@dataclass(frozen=True)
class DeclaredData:
    """The data of a declaration.

    Attributes
    ----------
    rows : dict of str to FeatureTable
        Of the kinds with data.
    couples : dict of str to list of (query id, target id)
        The pairs of every relation.
    """

    rows: dict[str, FeatureTable]
    couples: dict[str, IdPairs]


def collect_declared_data(
    declared: SpaceDeclaration,
    relations: list[RelationDeclaration],
    rows_of: Callable[[KindDeclaration, Source], FeatureTable],
    rejects: Rejects,
) -> DeclaredData:
    """Open all data that some relations need; `rows_of` extracts features of items without.

    Raises
    ------
    InputError
        Data that cannot be opened, or a relation without pairs.
    """
    kind_names = {name for relation in relations for name in (relation.query, relation.target)}
    related = _read_attributes(declared, relations, rejects)  # before the work of describing: a name may be wrong
    for relation in relations:
        if relation.pairs is not None and not relation.pairs.exists():
            raise InputError(
                f"there is no file or folder {format_path(relation.pairs)}, the pairs of [relations.{relation.name}]"
            )
    rows = {}
    for name, kind in declared.kinds.items():
        if name in kind_names and kind.data is not None:
            rows[name] = _add_groups(rows_of(kind, _open_source(kind, relations, rejects)), related.get(name))
    couples = {relation.name: _collect_pairs(relation, rows, related, rejects) for relation in relations}
    return DeclaredData(rows, couples)


def _open_source(kind: KindDeclaration, relations: list[RelationDeclaration], rejects: Rejects) -> Source:
    has_labels = any(
        relation.names == LABELS and kind.name in (relation.query, relation.target) for relation in relations
    )
    labels_from = "auto" if has_labels or kind.split is not None else "none"
    source = open_source(str(kind.data), labels_from=labels_from, split=kind.split, rejects=rejects)
    return source if kind.ids is None else select_listed_ids(source, kind.ids, rejects=rejects)


def _read_attributes(
    declared: SpaceDeclaration, relations: list[RelationDeclaration], rejects: Rejects
) -> dict[str, AttributeTable]:
    """Return the attributes of items by kind, as far as the relations use them."""
    names_by_kind: dict[str, list[str]] = {}
    for relation in relations:
        if relation.names is not None and relation.names != LABELS:
            (kind_name,) = {name for name in (relation.query, relation.target) if declared.kinds[name].data is not None}
            names_by_kind.setdefault(kind_name, []).append(relation.names)
    return {
        name: read_attributes(str(declared.kinds[name].data), kinds=list(dict.fromkeys(names)), rejects=rejects)
        for name, names in names_by_kind.items()
    }


def _add_groups(rows: FeatureTable, related: AttributeTable | None) -> FeatureTable:
    """Return the rows with the groups that their attribute table lists."""
    if related is None or rows.groups is not None or not related.groups:
        return rows
    return replace(rows, groups=[related.groups.get(name, name) for name in rows.ids])


def _collect_pairs(
    relation: RelationDeclaration,
    rows: dict[str, FeatureTable],
    related: Mapping[str, AttributeTable],
    rejects: Rejects,
) -> IdPairs:
    """Return the pairs of a relation; (item, name) where shared names make the pairs."""
    if relation.pairs is not None:
        with_data = [name if name in rows else None for name in (relation.query, relation.target)]
        if relation.among is not None:
            with_data[1] = None
        ends = [None if name is None else _index_by_spelling(rows[name]) for name in with_data]
        return list(
            _select_pairs_with_data(read_id_pairs(relation.pairs, rejects=rejects), ends, relation.pairs, rejects)
        )
    by_query = relation.query in rows
    kind_name = relation.query if by_query else relation.target
    pairs = _list_named_items(rows[kind_name], str(relation.names), related.get(kind_name))
    return pairs if by_query else [(name, item_id) for item_id, name in pairs]


def _index_by_spelling(rows: FeatureTable) -> dict[str, str]:
    """Return the ids of rows by their normalised spelling, so that pairs share these strings."""
    return {normalise_label_name(name): name for name in rows.ids}


def _select_pairs_with_data(
    couples: Iterable[tuple[str, str]], ends: list[dict[str, str] | None], path: Path, rejects: Rejects
) -> Iterator[tuple[str, str]]:
    """Yield the pairs whose items have rows, where their kind has any; reject the others.

    Names are normalised as in a space. Otherwise one pair could stand in training and, spelt differently, in
    validation.
    """
    query, target = ends
    for query_id, target_id in (map(normalise_label_name, pair) for pair in couples):
        first, second = (
            query_id if query is None else query.get(query_id),
            target_id if target is None else target.get(target_id),
        )
        if first is None or second is None:
            missing = query_id if first is None else target_id
            rejects.add(
                f"{format_path(path)} {format_path(query_id)} {format_path(target_id)}",
                "pair of a thing without data",
                missing,
            )
        else:
            yield first, second


def _list_named_items(rows: FeatureTable, names: str, related: AttributeTable | None) -> IdPairs:
    """Return (item, name) for all items with rows."""
    if related is None or names == LABELS:
        Y = rows.Y.tocoo()
        return [(rows.ids[i], rows.label_names[y]) for i, y, v in zip(Y.row, Y.col, Y.data, strict=True) if v > 0]
    item_ids = set(rows.ids)
    return [pair for pair in related.pairs[names] if pair[0] in item_ids]


def _shares_names(declared: RelationDeclaration) -> bool:
    """Return True if items of one kind are pairs because they share a name."""
    return declared.names is not None and declared.query == declared.target


def build_relation(
    declared: RelationDeclaration, couples: IdPairs, query: EntityKind | str, target: EntityKind | str
) -> Relation:
    """Build the relation of a space between these ends.

    Items that share a name are all positives of each other; an epoch visits about MOST_ALIKE of them for each item.

    Raises
    ------
    InputError
        Names that too many items share.
    """
    if not _shares_names(declared):
        return Relation(query, target, couples, declared.name, declared.weight)
    if not isinstance(query, EntityKind):
        raise TypeError("things that share names have data")
    names = {name: number for number, name in enumerate(dict.fromkeys(name for _, name in couples))}
    query_names, target_names = (
        _membership(end, couples, names) for end in (query, target if isinstance(target, EntityKind) else query)
    )
    n_pairs = int(np.asarray(query_names.sum(0)).ravel() @ np.asarray(target_names.sum(0)).ravel())
    require(
        n_pairs <= MOST_PAIRS,
        f"the relation {declared.name!r} makes {n_pairs:,} pairs of things that share a name of "
        f"{declared.names!r}, more than "
        f"{MOST_PAIRS:,}; choose other names, or give pairs",
    )
    Y = query_names @ target_names.T
    pairs_per_item = Y.nnz / max(Y.shape[0], 1)
    return Relation(query, target, Y, declared.name, declared.weight * min(1.0, MOST_ALIKE / max(pairs_per_item, 1.0)))


def _membership(kind: EntityKind, couples: IdPairs, names: Mapping[str, int]) -> Matrix:
    """Return the names of items as csr_matrix (items, names)."""
    from scipy.sparse import csr_matrix

    positions = {name: i for i, name in enumerate(kind.ids or ())}
    pairs = [(positions[item_id], names[name]) for item_id, name in couples if item_id in positions]
    rows, columns = zip(*pairs, strict=True) if pairs else ((), ())
    return csr_matrix((np.ones(len(pairs), np.int32), (rows, columns)), (len(positions), len(names)))


def build_entity_kind(declared: KindDeclaration, rows: FeatureTable) -> EntityKind:
    """Build a kind whose items have features."""
    return EntityKind(declared.name, rows.X, rows.ids, declared.scaling, declared.map)  # type: ignore[arg-type]


@dataclass(frozen=True)
class RelationHoldout:
    """Training and held-out relations, and the held-out items."""

    learnt: list[Relation]
    held_out: list[Relation]
    aside: list[EntityKind]

    def with_numbered_pairs(self) -> "RelationHoldout":
        """Return the same with pairs of items with data as numbers, in a tenth of the memory."""
        return RelationHoldout(
            [_number_pairs(relation) for relation in self.learnt],
            [_number_pairs(relation) for relation in self.held_out],
            self.aside,
        )


def split_relations(
    declared: SpaceDeclaration,
    relations: list[RelationDeclaration],
    data: DeclaredData,
    share: float,
    seed: int,
    sides: Mapping[str, Split] | None = None,
) -> RelationHoldout:
    """Hold out a share of the items with features and all their pairs, and of pairs between other items.

    A held-out item is a query, and its targets are other held-out items; where both ends are of one kind, the targets
    are items of training. Pairs with an item that training does not know are dropped. `sides` gives the sides of the
    items where they are settled already.
    """
    if sides is None:
        for rows in data.rows.values() if share else ():
            require_enough_items(len(rows), share, "thing")
        sides = (
            {name: split_collection(rows, "auto", share, 0, seed) for name, rows in data.rows.items()} if share else {}
        )
    training_kinds, held_out_kinds = dict[str, EntityKind](), dict[str, EntityKind]()
    for name, rows in data.rows.items():
        kind = declared.kinds[name]
        training_kinds[name] = build_entity_kind(kind, rows.take(sides[name].train) if share else rows)
        if share:
            held_out_kinds[name] = build_entity_kind(kind, rows.take(sides[name].valid))
    training, held_out = list[Relation](), list[Relation]()
    pairs_by_relation = {
        declared_relation.name: _split_pairs(
            declared_relation, data.couples[declared_relation.name], training_kinds, held_out_kinds, share, seed
        )
        for declared_relation in relations
    }
    free_ids: dict[str, set[str]] = {}  # things without features that training will know
    for declared_relation in relations:
        for query_id, target_id in pairs_by_relation[declared_relation.name][0]:
            free_ids.setdefault(declared_relation.query, set()).add(query_id)
            free_ids.setdefault(declared_relation.target, set()).add(target_id)
    for declared_relation in relations:
        ends = declared_relation.query, declared_relation.target
        query, target = (training_kinds.get(name, name) for name in ends)
        training_pairs, held_out_pairs = pairs_by_relation[declared_relation.name]
        training.append(build_relation(declared_relation, training_pairs, query, target))
        free_ends = [(i, free_ids.get(kind, set())) for i, kind in enumerate(ends) if kind not in training_kinds]
        held_out_pairs = [pair for pair in held_out_pairs if all(pair[i] in ids for i, ids in free_ends)]
        if held_out_pairs:
            queries = held_out_kinds.get(declared_relation.query, declared_relation.query)
            candidates = (
                target
                if declared_relation.query == declared_relation.target
                else held_out_kinds.get(declared_relation.target, declared_relation.target)
            )
            relation = build_relation(declared_relation, held_out_pairs, queries, candidates)
            if relation.n_pairs:  # no two that share a name may be left
                held_out.append(relation)
    return RelationHoldout(training, held_out, list(held_out_kinds.values()))


def _split_pairs(
    declared: RelationDeclaration,
    couples: IdPairs,
    training_kinds: dict[str, EntityKind],
    held_out_kinds: dict[str, EntityKind],
    share: float,
    seed: int,
) -> tuple[IdPairs, IdPairs]:
    """Return the training pairs and the held-out pairs."""
    if _shares_names(declared):
        return couples, couples if share else []
    names = (declared.query, declared.target)
    ends = [end for end in (0, 1) if names[end] in training_kinds]
    if not ends and not share:
        return couples, []
    if not ends:
        held_out = {pair for pair in couples if hash_with_seed("\t".join(sorted(pair)), seed) < share * 2.0**64}
        return [pair for pair in couples if pair not in held_out], [pair for pair in couples if pair in held_out]
    inside = {end: set(training_kinds[names[end]].ids or ()) for end in ends}
    training = [pair for pair in couples if all(pair[end] in inside[end] for end in ends)]
    if not share:
        return training, []
    outside = {end: set(held_out_kinds[names[end]].ids or ()) for end in ends}
    if declared.query == declared.target:
        both_directions = [*couples, *((query_id_, target_id_) for target_id_, query_id_ in couples)]
        return training, [pair for pair in both_directions if pair[0] in outside[0] and pair[1] in inside[0]]
    return training, [pair for pair in couples if all(pair[end] in outside[end] for end in ends)]


def _number_pairs(relation: Relation) -> Relation:
    query, target, couples = relation.query, relation.target, relation.pairs
    if not (isinstance(query, EntityKind) and isinstance(target, EntityKind) and isinstance(couples, list)):
        return relation
    query_positions, target_positions = ({name: i for i, name in enumerate(kind.ids or ())} for kind in (query, target))
    numbers = (
        number for query_id, target_id in couples for number in (query_positions[query_id], target_positions[target_id])
    )
    return replace(relation, pairs=np.fromiter(numbers, np.int32, 2 * len(couples)).reshape(-1, 2))
