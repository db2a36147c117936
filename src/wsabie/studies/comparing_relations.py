"""One comparison for each relation of a declaration: a space of all, a space of each alone, and what needs no space."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from wsabie.base.arrays import Int64, Matrix
from wsabie.base.errors import UnsuitableError
from wsabie.base.executor import Executor
from wsabie.base.machine import versions
from wsabie.base.progress import Progress
from wsabie.base.validation import require
from wsabie.evaluation.bootstrap import bootstrap_all, paired_bootstrap
from wsabie.models.judging import Judged
from wsabie.models.known import KnownKind
from wsabie.models.relations import Kind, Relation
from wsabie.models.space import Space
from wsabie.models.told import judged, known_matrix, told
from wsabie.sources.declaration import Declared
from wsabie.sources.records import Rows, groups_of
from wsabie.storage.rejects import Rejects
from wsabie.studies.comparison import Skipped
from wsabie.studies.dealing import Collected
from wsabie.studies.entrants import Entrant
from wsabie.studies.relating import Seen, asked_by, marks_of
from wsabie.studies.relation_comparison import Method, OneRelation, SpaceComparison
from wsabie.studies.relation_methods import classified, cosines, features_of, frequencies, in_spaces
from wsabie.studies.splitting import carried
from wsabie.studies.things import Things, opened
from wsabie.studies.three_sides import ThreeSides, deal_three, plan

KS = (*range(1, 11), 20, 50)
_MANY_NAMES = 50
POPULARITY = "popularity"


@dataclass(frozen=True)
class How:
    """What takes part besides the spaces, and how intervals are drawn.

    Attributes
    ----------
    popularity : bool
    entrants : sequence of Entrant
        Models of rows and labels: for relations from things with features to names.
    seed : int
    resamples : int
        Of the bootstrap.
    allow_overlap : bool
        Judge things and pairs of training too.
    """

    popularity: bool = True
    entrants: Sequence[Entrant] = ()
    seed: int = 0
    resamples: int = 1000
    allow_overlap: bool = False


def compare_declared(
    declared: Declared,
    space: Space,
    hold_out: float,
    how: How,
    tested: Declared | None = None,
    *,
    executor: Executor,
    progress: Progress,
    rejects: Rejects,
) -> SpaceComparison:
    """Deal out what a file declares, describe it as its training side teaches, and compare on the test side.

    Parameters
    ----------
    declared : Declared
    space : Space
        Not fitted: its parameters are those of every space.
    hold_out : float
        Share of the things with data, and of the pairs between others: one half chooses the epoch, one is the test;
        or all chooses the epoch where test data are given.
    how : How
    tested : Declared or None
        Names the test data, as for `evaluate_space`.
    executor, progress, rejects
        As in `wsabie.studies.training.train`.

    Raises
    ------
    InputError
        Data that cannot be used, or no pair to judge by.
    """
    shares = (hold_out / 2, hold_out / 2) if tested is None else (hold_out, 0.0)
    planned = plan(declared, *shares, how.seed, rejects)
    things = Things(how.seed, executor, progress, rejects, taught_by=planned.sides)
    data = things.described(declared, planned.data, planned.sources)
    sides = {name: carried(side, planned.data.rows[name], data.rows[name]) for name, side in planned.sides.items()}
    dealt = deal_three(declared, planned, data, sides)
    asking = {name: one.take(sides[name].test) for name, one in data.rows.items()}
    if tested is not None:
        relations, asking = _given(tested, declared, how, things, data, rejects)
        dealt = replace(dealt, test=relations)
    sizes = {name: {"train": len(own.train), "valid": len(own.valid)} for name, own in sides.items()}
    facts = {
        "source": str(declared.path),
        "test": None if tested is None else str(tested.path),
        "hold_out": hold_out,
        "parameters": space.get_params(),
        "things": {name: {**counts, "test": len(asking.get(name, ()))} for name, counts in sizes.items()},
        "skipped": len(rejects),
    }
    found = compare_relations(dealt, space, how, asking, progress=progress)
    return SpaceComparison(found, facts, how.seed, versions())


def _given(
    tested: Declared, declared: Declared, how: How, things: Things, known: Collected, rejects: Rejects
) -> tuple[list[Relation], dict[str, Rows]]:
    """Relations of other data, and the things that ask."""
    names = [one.name for one in declared.relations]
    seen = Seen(names, things.fingerprints, marks_of(declared.relations, known), how.allow_overlap)
    relations = seen.of(tested)
    outlines, sources = opened(tested, relations, rejects)
    for name, source in sources.items():
        seen.refuse_things(tested.kinds[name], source)
    data = things.more(outlines, sources, known.rows)
    return asked_by(tested, relations, data, seen), data.rows


def compare_relations(
    sides: ThreeSides, space: Space, how: How, tested: Mapping[str, Rows] | None = None, *, progress: Progress
) -> list[OneRelation]:
    """Judge all methods on the test pairs of every relation that has some.

    Parameters
    ----------
    sides : ThreeSides
    space : Space
        Not fitted.
    how : How
    tested : dict of str to Rows or None
        The test things of kinds with data, whose groups intervals draw.
    progress : Progress

    Raises
    ------
    InputError
        No relation has a test pair of things that training knows.
    """
    world = _World.of(sides)
    require(
        bool(world.asked),
        "no held-out pair is of things that training knows, so that nothing can be judged; hold out more, or give more "
        "pairs",
    )
    found: dict[str, list[Method | Skipped]] = {name: [] for name in world.asked}
    for name, method in _spaces(world, space, progress):
        found[name].append(method)
    for name, methods in found.items():
        methods.extend(_others(world, name, how, progress))
    return [_with_intervals(world, name, methods, how, tested or {}) for name, methods in found.items()]


def _others(world: "_World", name: str, how: How, progress: Progress) -> Iterator[Method | Skipped]:
    """What needs no space, as far as the ends of the relation let it."""
    relation, asked = world.test[name], world.asked[name]
    if how.popularity:
        yield Method(POPULARITY, "most frequent", frequencies(world.counts(relation), asked, KS))
    if _alike(relation):
        train = features_of(world.learnt[name].query)
        ends = features_of(relation.query)[asked.chosen], features_of(relation.target)
        yield Method("cosine", "cosine of features", cosines(train, *ends, asked.Y, KS, exclude=asked.exclude))
    elif features_of(relation.query) is not None and features_of(relation.target) is None:
        for entrant in how.entrants:
            try:
                yield _classifier(entrant, world, name, progress)
            except UnsuitableError as error:
                yield Skipped(entrant.name, entrant.title, str(error))


@dataclass(frozen=True)
class _World:
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
    def of(cls, sides: ThreeSides) -> "_World":
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


def _spaces(world: _World, space: Space, progress: Progress) -> Iterator[tuple[str, Method]]:
    """All relations in one space, and each in its own where there are several."""

    def train(relations: list[Relation], validation: list[Relation]) -> tuple[Space, float]:
        fitted = clone(space).fit(relations, validation=validation, progress=progress)
        return fitted, sum(stats.seconds + stats.validation_seconds for stats in fitted.history_)

    sides = world.learnt, world.valid, world.test
    every = list(world.learnt)
    for found in in_spaces([every], sides, train, KS, world.excluded):
        for name, figures in found.figures.items():
            yield name, Method("all", "all relations", figures, found.told)
    if len(every) > 1:
        for found in in_spaces([[name] for name in world.test], sides, train, KS, world.excluded):
            for name, figures in found.figures.items():
                yield name, Method("alone", "each alone", figures, found.told)


def _alike(relation: Relation) -> bool:
    """Whether both ends have the same features."""
    ends = [end for end in (relation.query, relation.target) if features_of(end) is not None]
    return len(ends) == 2 and ends[0].mapped_by == ends[1].mapped_by  # type: ignore[union-attr]


def _classifier(entrant: Entrant, world: _World, name: str, progress: Progress) -> Method:
    Y, test, valid = world.pairs[name], world.asked[name], None
    train = world.rows(world.learnt[name], Y, np.arange(Y.shape[0]))
    if name in world.valid:
        chooses = judged(world.valid[name], world.known)
        valid = world.rows(world.valid[name], chooses.Y, chooses.chosen)
    tested = world.rows(world.test[name], test.Y, test.chosen)
    tuned_on = "p@10" if len(train.label_names) >= _MANY_NAMES else "MAP"
    figures, seconds = classified(entrant, train, valid, tested, KS, tuned_on, progress)
    return Method(entrant.name, entrant.title, figures, seconds)


def _with_intervals(
    world: _World, name: str, found: list[Method | Skipped], how: How, tested: Mapping[str, Rows]
) -> OneRelation:
    """Intervals of every method, and its differences to the first."""
    relation, methods = world.test[name], [one for one in found if isinstance(one, Method)]
    rows, first = tested.get(relation.query_kind), methods[0].evaluation
    groups = None if rows is None else groups_of(rows, world.asked[name].chosen)
    skipped = [one for one in found if isinstance(one, Skipped)]
    one = OneRelation(name, relation.query_kind, relation.target_kind, methods, skipped)
    drawn: dict[str, Any] = {"groups": groups, "resamples": how.resamples, "seed": how.seed}
    judged_methods = []
    for method in methods:
        per_row = {metric: method.evaluation.per_row[metric] for metric in one.metrics}
        against = {m: paired_bootstrap(values, first.per_row[m], **drawn) for m, values in per_row.items()}
        against = {} if method is methods[0] else against
        judged_methods.append(replace(method, intervals=bootstrap_all(per_row, **drawn), against=against))
    return replace(one, methods=judged_methods)
