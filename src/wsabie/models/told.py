"""What a space is told, made ready for training: scaled things of every kind, and the pairs of every relation."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wsabie.base import mapped
from wsabie.base.arrays import Csr, Matrix
from wsabie.base.validation import require
from wsabie.labels.names import Vocabulary
from wsabie.models.judging import Judged, Things
from wsabie.models.known import KnownKind, known_kinds
from wsabie.models.relations import Kind, Relation, kinds_of, known_pairs, pair_matrix
from wsabie.space.protocol import Inputs
from wsabie.space.shared import Ends
from wsabie.training.samplers import PAIRS_PER_BLOCK
from wsabie.training.targets import RowBlock, build_targets

_MOST_BLOCKS = 8
_TURNS = 32


@dataclass(frozen=True)
class Told:
    """Kinds and pairs of a fit.

    Attributes
    ----------
    kinds : dict of str to Kind
        As they were given.
    known : dict of str to KnownKind
    inputs : dict of str to Csr, (n, n_features) float32 or (n,) int32
        Scaled rows of each kind, or the numbers of its free vectors.
    pairs : dict of Relation to csr_matrix (queries, targets) int8
    """

    kinds: dict[str, Kind]
    known: dict[str, KnownKind]
    inputs: dict[str, Inputs]
    pairs: dict[Relation, Matrix]

    @property
    def n_pairs(self) -> int:
        return sum(Y.nnz for Y in self.pairs.values())

    @property
    def table_sizes(self) -> dict[str, int]:
        """Rows of each table of the space."""
        return {kind.table: kind.n_rows for kind in self.known.values()}

    def blocks(self, negatives: int) -> list[RowBlock]:
        """The pairs of every relation as the trainer eats them."""
        turn = max(1, min(_MOST_BLOCKS, self.n_pairs // (PAIRS_PER_BLOCK * _TURNS * len(self.pairs))))
        found, first = [], 0
        for relation, Y in self.pairs.items():
            query, target = self.known[relation.query_kind], self.known[relation.target_kind]
            candidates = self.inputs[target.name] if target.n_features else None
            ends = Ends(relation.name, query.table, target.table, candidates, negatives)
            targets = build_targets(Y, pair_weights(Y), "mean", first, itself(Y) if query is target else None)
            targets = type(targets)(*map(mapped.settled, targets))
            found.append(RowBlock(self.inputs[query.name], targets, ends, relation.weight, turn))
            first += Y.nnz
        return found

    def checksum(self) -> int:
        """CRC-32 of everything that is told."""
        crc = 0
        for kind in self.known.values():
            crc = zlib.crc32(f"{kind.name} {kind.table} {len(kind.things)}".encode(), crc)
        for inputs in self.inputs.values():
            for array in inputs if isinstance(inputs, Csr) else [inputs]:
                crc = zlib.crc32(np.ascontiguousarray(array).data, crc)
        for relation, Y in self.pairs.items():
            told = f"{relation.name} {relation.query_kind} {relation.target_kind} {relation.weight}"
            crc = zlib.crc32(told.encode(), crc)
            for array in (Y.indptr, Y.indices):
                crc = zlib.crc32(np.ascontiguousarray(array).data, crc)
        return crc

    def judged(self, relation: Relation) -> Judged:
        """Held-out pairs of a relation, while training goes on; a kind that training was given is known by its name.

        Things with features of their own are others than those of training, whatever they are called.
        """
        query, target = (
            end.name if isinstance(end, Kind) and end is self.kinds.get(end.name) else end
            for end in (relation.query, relation.target)
        )
        others = any(isinstance(end, Kind) and end.X is not None for end in (query, target))
        trained = None if others else next((Y for own, Y in self.pairs.items() if own.name == relation.name), None)
        return judged(replace(relation, query=query, target=target), self.known, self.inputs, trained)


def told(relations: Sequence[Relation]) -> Told:
    """Everything that is said in some relations.

    Raises
    ------
    InputError
        As `kinds_of`, `known_kinds` and `pair_matrix`; or a relation without pairs.
    """
    usable = isinstance(relations, Sequence) and all(isinstance(one, Relation) for one in relations)
    require(usable, f"the relations are {relations!r:.80}; give a list of Relation(query, target, pairs)")
    require(len(relations) > 0, "there is no relation to learn; give at least one Relation(query, target, pairs)")
    kinds = kinds_of(relations)
    known = known_kinds(kinds)
    pairs = {}
    for relation in relations:
        query, target = known[relation.query_kind], known[relation.target_kind]
        grow = not query.n_features, not target.n_features
        pairs[relation] = pair_matrix(relation, query.things, target.things, grow)
        require(pairs[relation].nnz > 0, f"the relation {relation.name!r} has no pairs; give some, or leave it out")
    for relation, Y in pairs.items():  # later relations may have brought more things
        Y.resize(len(known[relation.query_kind].things), len(known[relation.target_kind].things))
    inputs = {name: kind.inputs(kinds[name].X, f"the features of {name!r}") for name, kind in known.items()}
    return Told(kinds, known, inputs, pairs)


def judged(
    relation: Relation,
    known: Mapping[str, KnownKind],
    inputs: Mapping[str, Inputs] | None = None,
    trained: Matrix | None = None,
) -> Judged:
    """The pairs of a relation as they are judged: things whose features are given are ranked among themselves, others
    among all that are known; pairs with a thing that is not known are left out.

    Parameters
    ----------
    relation : Relation
    known : dict of str to KnownKind
        The kinds of a space.
    inputs : dict or None
        Scaled rows of the known things, while their points are not there yet.
    trained : csr_matrix or None
        Pairs of known things that are no candidates, wherever both are among those that are judged.
    """
    query, names = _side(relation.query, known, inputs)
    target, candidates = query, names
    if relation.target is not relation.query:
        target, candidates = _side(relation.target, known, inputs)
    usable, _ = known_pairs(relation, names, candidates)
    Y = pair_matrix(usable, names, candidates, (False, False))
    exclude = itself(Y) if names is candidates else None
    if trained is not None:
        hidden = _selected(names, query.kind.things) @ trained @ _selected(candidates, target.kind.things).T
        exclude = hidden if exclude is None else exclude + hidden
    return Judged.of(relation.name, query, target, Y, exclude)


def known_matrix(relation: Relation, known: Mapping[str, KnownKind]) -> Matrix:
    """The pairs of a relation between known things, csr_matrix (queries, targets) int8; others are left out."""
    query, target = (_known(name, known).things for name in (relation.query_kind, relation.target_kind))
    return pair_matrix(known_pairs(relation, query, target)[0], query, target, (False, False))


def _known(name: str, known: Mapping[str, KnownKind]) -> KnownKind:
    require(name in known, f"the space knows no kind {name!r}; it knows {', '.join(known)}")
    return known[name]


def _selected(names: Vocabulary, known: Vocabulary) -> Matrix:
    """Which of the known things each of some names is, csr_matrix (names, known) int8."""
    from scipy.sparse import csr_matrix, identity

    if names is known:
        return identity(len(known), np.int8, "csr")
    both = [name for name in names if name in known]
    return csr_matrix((np.ones(len(both), np.int8), (names.ids(both), known.ids(both))), (len(names), len(known)))


def _side(
    end: Kind | str, known: Mapping[str, KnownKind], inputs: Mapping[str, Inputs] | None
) -> tuple[Things, Vocabulary]:
    name = end if isinstance(end, str) else end.name
    kind = _known(name, known)
    if isinstance(end, str) or end.X is None:
        rows = None if inputs is None or not kind.n_features else inputs[name]
        return Things(kind, rows), kind.things
    return Things(kind, kind.inputs(end.X, f"the features of {name!r}")), end.names()


def pair_weights(Y: Matrix) -> Any:
    """What a query's pairs weigh together, (n,): more where queries have many, as the rate of `Wsabie` grows."""
    per_query = Y.nnz / max(int((np.diff(Y.indptr) > 0).sum()), 1)
    return np.full(Y.shape[0], max(1.0, per_query) ** 0.75, np.float32)


def itself(Y: Matrix) -> Matrix:
    """The thing itself, which is no candidate among its like."""
    from scipy.sparse import identity

    return identity(Y.shape[0], np.int8, "csr")
