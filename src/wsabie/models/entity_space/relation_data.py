"""Training data of a space: scaled items of every kind, and the pairs of every relation."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wsabie.core import file_backed_arrays
from wsabie.core.arrays import Csr, Matrix
from wsabie.core.validation import require
from wsabie.embedding.multi_relation_space import RelationEnds
from wsabie.embedding.protocols import Inputs
from wsabie.models.entity_space.fitted_entities import FittedEntities, fit_entities
from wsabie.models.entity_space.relation_evaluation import EntityRows, HoldoutPairs
from wsabie.models.entity_space.relations import (
    EntityKind,
    Relation,
    build_pair_matrix,
    build_self_exclusion,
    collect_kinds,
    compute_pair_weights,
    drop_unknown_pairs,
)
from wsabie.training.samplers import PAIRS_PER_BLOCK
from wsabie.training.training_data import RowBlock, build_targets
from wsabie.vocabulary.label_names import Vocabulary

_MOST_BLOCKS = 8
_TURNS = 32


@dataclass(frozen=True)
class RelationData:
    """Kinds and pairs of a fit.

    Attributes
    ----------
    kinds : dict of str to EntityKind
        Kinds as given to `fit`.
    entities : dict of str to FittedEntities
    inputs : dict of str to Csr, (n, n_features) float32 or (n,) int32
        Scaled rows of each kind, or the numbers of its free vectors.
    pairs : dict of Relation to csr_matrix (queries, targets) int8
    """

    kinds: dict[str, EntityKind]
    entities: dict[str, FittedEntities]
    inputs: dict[str, Inputs]
    pairs: dict[Relation, Matrix]

    @property
    def n_pairs(self) -> int:
        return sum(Y.nnz for Y in self.pairs.values())

    @property
    def table_sizes(self) -> dict[str, int]:
        """Rows of each table of the space."""
        return {kind.table: kind.n_rows for kind in self.entities.values()}

    def blocks(self, negatives: int) -> list[RowBlock]:
        """Return the pairs of every relation as blocks for the trainer."""
        turn = max(1, min(_MOST_BLOCKS, self.n_pairs // (PAIRS_PER_BLOCK * _TURNS * len(self.pairs))))
        blocks, first = [], 0
        for relation, Y in self.pairs.items():
            query, target = self.entities[relation.query_kind], self.entities[relation.target_kind]
            candidates = self.inputs[target.name] if target.n_features else None
            ends = RelationEnds(relation.name, query.table, target.table, candidates, negatives)
            targets = build_targets(
                Y, compute_pair_weights(Y), "mean", first, build_self_exclusion(Y) if query is target else None
            )
            targets = type(targets)(*map(file_backed_arrays.move_to_file, targets))
            blocks.append(RowBlock(self.inputs[query.name], targets, ends, relation.weight, turn))
            first += Y.nnz
        return blocks

    def checksum(self) -> int:
        """Return the CRC-32 of the training data."""
        crc = 0
        for kind in self.entities.values():
            crc = zlib.crc32(f"{kind.name} {kind.table} {len(kind.vocabulary)}".encode(), crc)
        for inputs in self.inputs.values():
            for array in inputs if isinstance(inputs, Csr) else [inputs]:
                crc = zlib.crc32(np.ascontiguousarray(array).data, crc)
        for relation, Y in self.pairs.items():
            header = f"{relation.name} {relation.query_kind} {relation.target_kind} {relation.weight}"
            crc = zlib.crc32(header.encode(), crc)
            for array in (Y.indptr, Y.indices):
                crc = zlib.crc32(np.ascontiguousarray(array).data, crc)
        return crc

    def holdout_pairs(self, relation: Relation) -> HoldoutPairs:
        """Return the held-out pairs of a relation during training.

        A kind of the training data counts by its name. Items with their own features differ from those of training,
        whatever their names are.
        """
        query, target = (
            end.name if isinstance(end, EntityKind) and end is self.kinds.get(end.name) else end
            for end in (relation.query, relation.target)
        )
        has_new_items = any(isinstance(end, EntityKind) and end.X is not None for end in (query, target))
        trained = (
            None
            if has_new_items
            else next((Y for trained_relation, Y in self.pairs.items() if trained_relation.name == relation.name), None)
        )
        return build_holdout_pairs(replace(relation, query=query, target=target), self.entities, self.inputs, trained)


def prepare_relation_data(relations: Sequence[Relation]) -> RelationData:
    """Prepare the items and pairs of some relations for training.

    Raises
    ------
    InputError
        See `collect_kinds`, `fit_entities` and `build_pair_matrix`; or a relation has no pairs.
    """
    usable = isinstance(relations, Sequence) and all(isinstance(entry, Relation) for entry in relations)
    require(usable, f"the relations are {relations!r:.80}; give a list of Relation(query, target, pairs)")
    require(len(relations) > 0, "there is no relation to learn; give at least one Relation(query, target, pairs)")
    kinds = collect_kinds(relations)
    entities = fit_entities(kinds)
    pairs = {}
    for relation in relations:
        query, target = entities[relation.query_kind], entities[relation.target_kind]
        grow = not query.n_features, not target.n_features
        pairs[relation] = build_pair_matrix(relation, query.vocabulary, target.vocabulary, grow)
        require(pairs[relation].nnz > 0, f"the relation {relation.name!r} has no pairs; give some, or leave it out")
    for relation, Y in pairs.items():  # later relations may have added items
        Y.resize(len(entities[relation.query_kind].vocabulary), len(entities[relation.target_kind].vocabulary))
    inputs = {name: kind.inputs(kinds[name].X, f"the features of {name!r}") for name, kind in entities.items()}
    return RelationData(kinds, entities, inputs, pairs)


def build_holdout_pairs(
    relation: Relation,
    entities: Mapping[str, FittedEntities],
    inputs: Mapping[str, Inputs] | None = None,
    trained: Matrix | None = None,
) -> HoldoutPairs:
    """Return the held-out pairs of a relation for evaluation.

    Items with given features are ranked among themselves, others among all items of the space. Pairs with an unknown
    item are left out.

    Parameters
    ----------
    relation : Relation
    entities : dict of str to FittedEntities
        The kinds of a space.
    inputs : dict or None
        Scaled rows of the space's items, until their points exist.
    trained : csr_matrix or None
        Training pairs; they are no candidates.
    """
    query, names = _open_side(relation.query, entities, inputs)
    target, candidates = query, names
    if relation.target is not relation.query:
        target, candidates = _open_side(relation.target, entities, inputs)
    usable, _ = drop_unknown_pairs(relation, names, candidates)
    Y = build_pair_matrix(usable, names, candidates, (False, False))
    exclude = build_self_exclusion(Y) if names is candidates else None
    if trained is not None:
        hidden = (
            _match_names(names, query.kind.vocabulary) @ trained @ _match_names(candidates, target.kind.vocabulary).T
        )
        exclude = hidden if exclude is None else exclude + hidden
    return HoldoutPairs.of(relation.name, query, target, Y, exclude)


def build_fitted_pair_matrix(relation: Relation, entities: Mapping[str, FittedEntities]) -> Matrix:
    """Return the pairs of a relation between items of the space, csr_matrix (queries, targets) int8."""
    query, target = (_find_entities(name, entities).vocabulary for name in (relation.query_kind, relation.target_kind))
    return build_pair_matrix(drop_unknown_pairs(relation, query, target)[0], query, target, (False, False))


def _find_entities(name: str, entities: Mapping[str, FittedEntities]) -> FittedEntities:
    require(name in entities, f"the space knows no kind {name!r}; it knows {', '.join(entities)}")
    return entities[name]


def _match_names(names: Vocabulary, vocabulary: Vocabulary) -> Matrix:
    """Return a matrix with 1 where a name is that of an item, csr_matrix (names, vocabulary) int8."""
    from scipy.sparse import csr_matrix, identity

    if names is vocabulary:
        return identity(len(vocabulary), np.int8, "csr")
    shared_names = [name for name in names if name in vocabulary]
    return csr_matrix(
        (np.ones(len(shared_names), np.int8), (names.ids(shared_names), vocabulary.ids(shared_names))),
        (len(names), len(vocabulary)),
    )


def _open_side(
    end: EntityKind | str, entities: Mapping[str, FittedEntities], inputs: Mapping[str, Inputs] | None
) -> tuple[EntityRows, Vocabulary]:
    name = end if isinstance(end, str) else end.name
    kind = _find_entities(name, entities)
    if isinstance(end, str) or end.X is None:
        rows = None if inputs is None or not kind.n_features else inputs[name]
        return EntityRows(kind, rows), kind.vocabulary
    return EntityRows(kind, kind.inputs(end.X, f"the features of {name!r}")), end.names()
