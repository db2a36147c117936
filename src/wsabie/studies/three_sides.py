"""What a declaration says dealt out to training, validation and test, before anything is described."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from wsabie.evaluation.splits import Split
from wsabie.models.relations import Relation
from wsabie.sources.declaration import Declared
from wsabie.sources.records import Source
from wsabie.storage.rejects import Rejects
from wsabie.studies.dealing import Collected, deal
from wsabie.studies.relating import chosen
from wsabie.studies.splitting import split_rows
from wsabie.studies.things import opened


@dataclass(frozen=True)
class Planned:
    """The things of every kind and their sides.

    Attributes
    ----------
    data : Collected
        Rows of what is not rows have no features yet.
    sources : dict of str to Source
        Of the kinds with data.
    sides : dict of str to Split
        Numbers of the things of these kinds, whole groups together.
    valid, test : float
        Shares of the things, and of the pairs between things without data.
    seed : int
    """

    data: Collected
    sources: dict[str, Source]
    sides: dict[str, Split]
    valid: float
    test: float
    seed: int


@dataclass(frozen=True)
class ThreeSides:
    """Relations of the three sides; of validation and test those that have pairs.

    Attributes
    ----------
    learnt, valid, test : list of Relation
        Test things look for things of training and validation where both ends are of one kind.
    known : list of Relation
        Those of training and validation together.
    """

    learnt: list[Relation]
    valid: list[Relation]
    test: list[Relation]
    known: list[Relation]


def plan(declared: Declared, valid: float, test: float, seed: int, rejects: Rejects) -> Planned:
    """Open everything, and deal out the things of the kinds with data; the first deal is that of `deal`.

    Raises
    ------
    InputError
        As `collect`; or a side stays empty.
    """
    data, sources = opened(declared, chosen(declared, ()), rejects)
    sides = {name: split_rows(rows, "auto", valid, test, seed) for name, rows in data.rows.items()}
    return Planned(data, sources, sides, valid, test, seed)


def deal_three(
    declared: Declared, planned: Planned, data: Collected | None = None, sides: Mapping[str, Split] | None = None
) -> ThreeSides:
    """The relations of the three sides; `data` and `sides` are those of the plan unless things were described since."""
    data, sides = data or planned.data, sides or planned.sides
    relations, seed = declared.relations, planned.seed
    outer = {name: Split(_joined(side), side.test, side.test[:0]) for name, side in sides.items()}
    first = deal(declared, relations, data, planned.test, seed, outer)
    rest = Collected(
        {name: rows.take(outer[name].train) for name, rows in data.rows.items()},
        {
            one.name: data.couples[one.name] if {one.query_kind, one.target_kind} & set(data.rows) else one.pairs
            for one in first.learnt
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
    second = deal(declared, relations, rest, planned.valid / (1 - planned.test), (seed + 1) % 2**63, inner)
    return ThreeSides(second.learnt, second.held_out, first.held_out, first.learnt)


def _joined(side: Split) -> np.ndarray:
    return np.sort(np.concatenate([side.train, side.valid]))
