"""Data of a space: scaled items of every kind, and every relation's pairs for training and held-out."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import identity

from wsabie.core.arrays import Csr, Float32, Int64, Matrix, move_to_file
from wsabie.core.errors import require
from wsabie.core.validation import build_incidence
from wsabie.embedding.protocols import EntityInputs, KernelArrays, RangeRunner, RelationEnds, TrainableTables
from wsabie.embedding.relation_spaces import MultiRelationSpace
from wsabie.evaluation import metrics
from wsabie.evaluation.positive_ranks import rank_embeddings
from wsabie.evaluation.score_evaluation import Evaluation, evaluate_scores
from wsabie.models.base.feature_matrix import iterate_row_ranges, take_rows
from wsabie.models.base.hyperparameters import compute_checksum
from wsabie.models.base.parameter_defaults import TrainingShape, default_scaling
from wsabie.models.entity_space.fitted_entities import FittedEntities, find_kind, fit_entities
from wsabie.models.entity_space.relations import (
    EntityKind,
    Relation,
    build_pair_matrix,
    build_pair_targets,
    build_self_exclusion,
    collect_kinds,
    compute_pair_weights,
    drop_unknown_pairs,
)
from wsabie.search.dense_scores import compute_all_scores
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.samplers import PAIRS_PER_BLOCK
from wsabie.training.training_data import RowBlock
from wsabie.vocabulary.label_names import Vocabulary

MAX_SCORES = 50_000_000
"""Most scores for a figure after an epoch (queries at even steps times candidates)."""


class EntityRows(NamedTuple):
    """Some items of a kind.

    Attributes
    ----------
    kind : FittedEntities
    rows : Csr, (n, n_features) float32 or None
        Scaled features of the items; None: all items of the kind.
    """

    kind: FittedEntities
    rows: EntityInputs | None

    def compute_points(self, space: MultiRelationSpace, run: RangeRunner, row_ids: Int64 | None = None) -> Float32:
        """Return the points of all rows or of those in `row_ids`, (n, dim) float32 in C order."""
        if self.rows is None or row_ids is None:
            points = self.kind.compute_points(space, self.rows, run)
            return np.ascontiguousarray(points if row_ids is None else points[row_ids])
        return self.kind.compute_points(space, take_rows(self.rows, row_ids), run)


@dataclass(frozen=True)
class HoldoutPairs:
    """Held-out pairs of a relation.

    Attributes
    ----------
    name : str
    queries, candidates : EntityRows
    Y : csr_matrix (n_chosen, n_candidates)
    exclude : csr_matrix (n_chosen, n_candidates) or None
        Pairs of training, and the query itself, which are not candidates.
    query_ids : (n_chosen,) int64
        Numbers of the queries that have a pair.
    """

    name: str
    queries: EntityRows
    candidates: EntityRows
    Y: Matrix
    exclude: Matrix | None
    query_ids: Int64

    def limit(self, most: int) -> "HoldoutPairs":
        """Reduce the queries at even steps, so that there are at most so many scores."""
        n, most_queries = self.Y.shape[0], max(1, most // max(self.Y.shape[1], 1))
        return self if n <= most_queries else self.select_queries(np.linspace(0, n - 1, most_queries).astype(int))

    def select_queries(self, rows: Int64) -> "HoldoutPairs":
        """Return the pairs of some of the queries."""
        exclude = None if self.exclude is None else self.exclude[rows]
        return replace(self, Y=self.Y[rows], exclude=exclude, query_ids=self.query_ids[rows])

    def compute_points(self, space: MultiRelationSpace, n_threads: int) -> tuple[KernelArrays, Float32]:
        """Return the candidates for the scoring kernels, and the points of the queries."""
        with KernelThreads(n_threads) as threads:
            table = self.candidates.compute_points(space, threads.split)
            queries = self.queries.compute_points(space, threads.split, self.query_ids)
        view = space.view(RelationEnds(self.name, self.queries.kind.table, self.candidates.kind.table))
        return view.build_scoring_arrays(table, np.zeros(len(table), np.float32)), queries


class SpaceMonitor:
    """Mean average precision of each relation on held-out pairs, and their mean.

    Parameters
    ----------
    holdouts : sequence of HoldoutPairs
    stop_on : str
        Figure that chooses the epoch: "mean", or the name of a relation.

    Raises
    ------
    InputError
        There is no held-out pair, or no such relation.
    """

    def __init__(self, holdouts: Sequence[HoldoutPairs], threads: int, stop_on: str = "mean") -> None:
        names = [pairs.name for pairs in holdouts]
        require(
            stop_on == "mean" or stop_on in names,
            f"no epoch can be chosen by {stop_on!r}: choose mean, or a relation held out ({', '.join(names)})",
        )
        empty = next((pairs.name for pairs in holdouts if not pairs.Y.nnz), None)
        require(empty is None, f"no held-out pair of {empty!r} is of known entities and not of training; give others")
        self.holdouts = [pairs.limit(MAX_SCORES) for pairs in holdouts]
        self.threads, self.stop_on = threads, stop_on

    def identity(self) -> list[object]:
        """Return values that must equal a checkpoint's to resume from it, JSON-able."""
        identity: list[object] = [self.stop_on]
        for pairs in self.holdouts:
            sides = (pairs.queries.rows, pairs.candidates.rows)
            arrays = (np.zeros(0, np.int32) if rows is None else rows for rows in sides)
            identity.append([pairs.name, *(compute_checksum(rows, pairs.Y, None) for rows in arrays)])
        return identity

    def figures(self, space: TrainableTables) -> dict[str, float]:
        """Return figures by name; the one that chooses the epoch comes first."""
        if not isinstance(space, MultiRelationSpace):
            raise TypeError(f"no relations in a {type(space).__name__}")
        figures = {pairs.name: self._map(pairs, space) for pairs in self.holdouts}
        figures = {"mean": float(np.mean(list(figures.values()))), **figures}
        return {self.stop_on: figures.pop(self.stop_on), **figures}

    def _map(self, pairs: HoldoutPairs, space: MultiRelationSpace) -> float:
        labels, queries = pairs.compute_points(space, self.threads)
        ranks = rank_embeddings(labels, queries, pairs.Y, exclude=pairs.exclude, threads=self.threads)
        return float(metrics.average_precision(ranks).mean())


def evaluate_relation(
    pairs: HoldoutPairs, space: MultiRelationSpace, threads: int, ks: Sequence[int], options: Mapping[str, Any]
) -> Evaluation:
    """Return all figures of a relation, of queries with a pair; `options` are those of `evaluate_scores`."""
    require(len(pairs.query_ids) > 0, f"no pair of {pairs.name!r} names entities that the space knows; give others")
    labels, queries = pairs.compute_points(space, threads)

    def blocks() -> Iterator[tuple[int, Float32]]:
        for lo, hi in iterate_row_ranges(len(queries), len(labels.table)):
            yield lo, compute_all_scores(labels, queries[lo:hi], threads=threads)

    return evaluate_scores(blocks(), pairs.Y, ks=ks, exclude=pairs.exclude, **options)


_MAX_BLOCKS = 8
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
    ridge_pairs : dict of str to dict of str to csr_matrix
        For a ridge start: for each kind with features, its pairs with kinds of free vectors, by their names.
    """

    kinds: dict[str, EntityKind]
    entities: dict[str, FittedEntities]
    inputs: dict[str, EntityInputs]
    pairs: dict[Relation, Matrix]
    ridge_pairs: dict[str, dict[str, Matrix]]

    @property
    def n_pairs(self) -> int:
        return sum(Y.nnz for Y in self.pairs.values())

    @property
    def table_sizes(self) -> dict[str, int]:
        """Rows of each table of the space."""
        return {kind.table: kind.n_rows for kind in self.entities.values()}

    def blocks(self, negatives: int) -> list[RowBlock]:
        """Return the pairs of every relation as blocks for the trainer."""
        turn = max(1, min(_MAX_BLOCKS, self.n_pairs // (PAIRS_PER_BLOCK * _TURNS * len(self.pairs))))
        blocks, first = [], 0
        for relation, Y in self.pairs.items():
            query, target = self.entities[relation.query_kind], self.entities[relation.target_kind]
            candidates = self.inputs[target.name] if target.n_features else None
            ends = RelationEnds(relation.name, query.table, target.table, candidates, negatives)
            weights = None if self.ridge_pairs else compute_pair_weights(Y)  # small steps after a ridge start
            targets = build_pair_targets(Y, first, is_within_kind=query is target, weights=weights)
            targets = type(targets)(*map(move_to_file, targets))
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
        trained = next((Y for training, Y in self.pairs.items() if training.name == relation.name), None)
        if any(isinstance(end, EntityKind) and end.X is not None for end in (query, target)):
            trained = None  # these items are new
        return build_holdout_pairs(replace(relation, query=query, target=target), self.entities, self.inputs, trained)


def prepare_relation_data(relations: Sequence[Relation], init: str = "random") -> RelationData:
    """Prepare the items and pairs of some relations for training and its start (`Space.init`).

    Raises
    ------
    InputError
        See `collect_kinds`, `fit_entities` and `build_pair_matrix`; or a relation has no pairs.
    """
    is_usable = isinstance(relations, Sequence) and all(isinstance(entry, Relation) for entry in relations)
    require(is_usable, f"the relations are {relations!r:.80}; give a list of Relation(query, target, pairs)")
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
    ridge_pairs = {} if init == "random" else _collect_ridge_pairs(entities, pairs, is_certain=init == "ridge")
    for name, pairs_by_kind in ridge_pairs.items():
        _choose_scaling(kinds, entities, name, pairs_by_kind)
    inputs = {name: kind.inputs(kinds[name].X, f"the features of {name!r}") for name, kind in entities.items()}
    return RelationData(kinds, entities, inputs, pairs, ridge_pairs)


def _collect_ridge_pairs(
    entities: Mapping[str, FittedEntities], pairs: Mapping[Relation, Matrix], is_certain: bool
) -> dict[str, dict[str, Matrix]]:
    """Return `RelationData.ridge_pairs`; a table belongs to the first kind with features that meets it."""
    # unless `is_certain` there are none if a relation joins two kinds with features, which needs the larger steps
    # of a random start
    owners: dict[str, str] = {}
    ridge_pairs: dict[str, dict[str, Matrix]] = {}
    for relation, Y in pairs.items():
        ends = relation.query_kind, relation.target_kind
        if all(entities[name].n_features for name in ends) and not is_certain:
            return {}
        for (name, free_name), matrix in ((ends, Y), (ends[::-1], Y.T.tocsr())):
            kind, free_kind = entities[name], entities[free_name]
            if not kind.n_features or free_kind.n_features:
                continue
            if owners.setdefault(kind.table, name) == name == owners.setdefault(free_name, name):
                pairs_by_kind = ridge_pairs.setdefault(name, {})
                pairs_by_kind[free_name] = pairs_by_kind.get(free_name, 0) + matrix
    return ridge_pairs


def _choose_scaling(
    kinds: Mapping[str, EntityKind], entities: Mapping[str, FittedEntities], name: str, pairs: Mapping[str, Matrix]
) -> None:
    """Fit the scaling of a kind, and of others with its map, to what "auto" is after a ridge start."""
    n_pairs = np.sum([np.diff(Y.indptr) for Y in pairs.values()], axis=0)
    shape = TrainingShape(int((n_pairs > 0).sum()), int(n_pairs.sum()), 0)
    scaling = default_scaling({"init": "ridge", "scaling": kinds[name].scaling}, shape)
    if scaling != kinds[name].scaling:
        same_map = {other: kind for other, kind in kinds.items() if kind.mapped_by == kinds[name].mapped_by}
        changed = {other: replace(kind, scaling=scaling) for other, kind in same_map.items()}
        for other, fitted in fit_entities(changed).items():
            entities[other].scaling = fitted.scaling


def build_holdout_pairs(
    relation: Relation,
    entities: Mapping[str, FittedEntities],
    inputs: Mapping[str, EntityInputs] | None = None,
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
        Training pairs; they are not candidates.
    """
    query, names = _open_side(relation.query, entities, inputs)
    target, candidates = query, names
    if relation.target is not relation.query:
        target, candidates = _open_side(relation.target, entities, inputs)
    known_relation, _ = drop_unknown_pairs(relation, names, candidates)
    Y = build_pair_matrix(known_relation, names, candidates, (False, False))
    exclude = build_self_exclusion(Y) if names is candidates else None
    if trained is not None:
        hidden = _match_names(names, query.kind.vocabulary) @ trained
        hidden = hidden @ _match_names(candidates, target.kind.vocabulary).T
        exclude = hidden if exclude is None else exclude + hidden
    if exclude is not None:
        Y = Y - Y.multiply(exclude != 0)
        Y.eliminate_zeros()
    with_pairs = np.flatnonzero(np.diff(Y.indptr)).astype(np.int64)
    return HoldoutPairs(relation.name, query, target, Y, exclude, np.arange(Y.shape[0])).select_queries(with_pairs)


def build_fitted_pair_matrix(relation: Relation, entities: Mapping[str, FittedEntities]) -> Matrix:
    """Return the pairs of a relation between items of the space, csr_matrix (queries, targets) int8."""
    query, target = (find_kind(name, entities).vocabulary for name in (relation.query_kind, relation.target_kind))
    return build_pair_matrix(drop_unknown_pairs(relation, query, target)[0], query, target, (False, False))


def _match_names(names: Vocabulary, vocabulary: Vocabulary) -> Matrix:
    """Return a matrix with 1 where a name is that of an item, csr_matrix (names, vocabulary) int8."""
    if names is vocabulary:
        return identity(len(vocabulary), np.int8, "csr")
    shared_names = [name for name in names if name in vocabulary]
    shape = len(names), len(vocabulary)
    return build_incidence(names.ids(shared_names), vocabulary.ids(shared_names), shape, np.int8)


def _open_side(
    end: EntityKind | str, entities: Mapping[str, FittedEntities], inputs: Mapping[str, EntityInputs] | None
) -> tuple[EntityRows, Vocabulary]:
    name = end if isinstance(end, str) else end.name
    kind = find_kind(name, entities)
    if isinstance(end, str) or end.X is None:
        rows = None if inputs is None or not kind.n_features else inputs[name]
        return EntityRows(kind, rows), kind.vocabulary
    return EntityRows(kind, kind.inputs(end.X, f"the features of {name!r}")), end.names()
