"""One comparison for each relation of a declaration: a space of all, a space of each alone, and what needs no space."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from wsabie.base.errors import UnsuitableError
from wsabie.base.executor import Executor
from wsabie.base.machine import versions
from wsabie.base.progress import Progress
from wsabie.base.validation import require
from wsabie.evaluation.bootstrap import bootstrap_all, paired_bootstrap
from wsabie.evaluation.evaluate import Evaluation
from wsabie.models.relations import Relation
from wsabie.models.space import Space
from wsabie.models.told import judged
from wsabie.sources.declaration import Declared
from wsabie.sources.records import Rows, groups_of
from wsabie.storage.rejects import Rejects
from wsabie.studies.comparison import Skipped
from wsabie.studies.dealing import Collected
from wsabie.studies.entrants import Entrant
from wsabie.studies.relating import Seen, asked_by, marks_of
from wsabie.studies.relation_comparison import Method, OneRelation, SpaceComparison
from wsabie.studies.relation_methods import classified, cosines, features_of, frequencies, in_spaces
from wsabie.studies.relation_world import World
from wsabie.studies.result_store import Result, ResultStore, digest
from wsabie.studies.splitting import carried
from wsabie.studies.things import Things, opened
from wsabie.studies.three_sides import ThreeSides, deal_three, plan

KS = (*range(1, 11), 20, 50)
_MANY_NAMES = 50
POPULARITY = "popularity"
OnResult = Callable[[str, Method | Skipped], object]


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


class StoppedRelations(KeyboardInterrupt):
    """Ctrl-C in a comparison.

    Parameters
    ----------
    relations : list of OneRelation
        Those with a finished method.
    """

    def __init__(self, relations: list[OneRelation]) -> None:
        super().__init__()
        self.relations = relations


def compare_declared(
    declared: Declared,
    space: Space,
    hold_out: float,
    how: How,
    tested: Declared | None = None,
    *,
    store: ResultStore | None = None,
    on_result: OnResult = lambda relation, result: None,
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
    store : ResultStore or None
        Keeps what is trained as soon as it is judged, and has that of a run that was stopped.
    on_result : callable
        Is told the relation and every method of it that is finished.
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
    if store is not None:
        store = store.with_identity(_identity(dealt, space, how, asking, hold_out))
    found = compare_relations(dealt, space, how, asking, store=store, on_result=on_result, progress=progress)
    return SpaceComparison(found, facts, how.seed, versions())


def _identity(dealt: ThreeSides, space: Space, how: How, asking: Mapping[str, Rows], hold_out: float) -> dict[str, Any]:
    """Return the facts that must agree for results to be comparable."""
    options = [(one.name, one.options) for one in how.entrants]
    run = {"seed": how.seed, "allow_overlap": how.allow_overlap, "hold_out": hold_out, "models": digest(options)}
    data = {"data or split": digest([vars(dealt), {name: rows.ids for name, rows in asking.items()}])}
    return {**data, **run, "parameters": space.get_params(), "versions": versions()}


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
    sides: ThreeSides,
    space: Space,
    how: How,
    tested: Mapping[str, Rows] | None = None,
    *,
    store: ResultStore | None = None,
    on_result: OnResult = lambda relation, result: None,
    progress: Progress,
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
    store, on_result
        As in `compare_declared`.
    progress : Progress

    Raises
    ------
    InputError
        No relation has a test pair of things that training knows.
    """
    world = World.of(sides)
    require(
        bool(world.asked),
        "no held-out pair is of things that training knows, so that nothing can be judged; hold out more, or give more "
        "pairs",
    )
    found: dict[str, list[Method | Skipped]] = {name: [] for name in world.asked}
    try:
        for name, method in _results(world, space, how, store, progress):
            found[name].append(method)
            on_result(name, method)
    except KeyboardInterrupt as stop:
        done = {name: methods for name, methods in found.items() if any(isinstance(one, Method) for one in methods)}
        raise StoppedRelations(_judged_relations(world, done, how, tested or {})) from stop
    return _judged_relations(world, found, how, tested or {})


def _judged_relations(
    world: World, found: Mapping[str, list[Method | Skipped]], how: How, tested: Mapping[str, Rows]
) -> list[OneRelation]:
    return [_with_intervals(world, name, methods, how, tested) for name, methods in found.items()]


def _results(
    world: World, space: Space, how: How, store: ResultStore | None, progress: Progress
) -> Iterator[tuple[str, Method | Skipped]]:
    """Every method of every relation, as soon as it is finished: those of a space of all relations come first."""
    yield from _spaces(world, space, store, progress)
    for name in world.asked:
        for method in _others(world, name, how, store, progress):
            yield name, method


def _others(
    world: World, name: str, how: How, store: ResultStore | None, progress: Progress
) -> Iterator[Method | Skipped]:
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
            yield _classifier(entrant, world, name, store, progress)


def _spaces(world: World, space: Space, store: ResultStore | None, progress: Progress) -> Iterator[tuple[str, Method]]:
    """All relations in one space, and each in its own where there are several."""

    def train(relations: list[Relation], validation: list[Relation]) -> tuple[Space, float]:
        fitted = clone(space).fit(relations, validation=validation, progress=progress)
        return fitted, sum(stats.seconds + stats.validation_seconds for stats in fitted.history_)

    def judge(names: list[str]) -> Result:
        (one,) = in_spaces([names], (world.learnt, world.valid, world.test), train, KS, world.excluded)
        return Result({"seconds": one.told}, one.figures)

    every = list(world.learnt)
    groups = [("all", "all relations", every)]
    if len(every) > 1:
        groups += [("alone", "each alone", [name]) for name in world.test]
    for kind, title, names in groups:
        result = _finished(store, json.dumps([kind, *names]), partial(judge, names))
        for name, evaluation in result.evaluations.items():
            yield name, Method(kind, title, evaluation, result.facts["seconds"])


def _finished(store: ResultStore | None, name: str, make: Callable[[], Result]) -> Result:
    """The result of this name: from the store, or made and kept there."""
    result = None if store is None else store.find(name)
    if result is None:
        result = make()
        if store is not None:
            store.add(name, result)
    return result


def _alike(relation: Relation) -> bool:
    """Whether both ends have the same features."""
    ends = [end for end in (relation.query, relation.target) if features_of(end) is not None]
    return len(ends) == 2 and ends[0].mapped_by == ends[1].mapped_by  # type: ignore[union-attr]


def _classifier(
    entrant: Entrant, world: World, name: str, store: ResultStore | None, progress: Progress
) -> Method | Skipped:
    def judge() -> Result:
        try:
            evaluation, seconds = _classified(entrant, world, name, progress)
        except UnsuitableError as error:
            return Result({"reason": str(error)})
        return Result({"seconds": seconds}, {name: evaluation})

    result = _finished(store, json.dumps(["classifier", entrant.name, name]), judge)
    if "reason" in result.facts:
        return Skipped(entrant.name, entrant.title, result.facts["reason"])
    return Method(entrant.name, entrant.title, result.evaluations[name], result.facts["seconds"])


def _classified(entrant: Entrant, world: World, name: str, progress: Progress) -> tuple[Evaluation, float]:
    Y, test, valid = world.pairs[name], world.asked[name], None
    train = world.rows(world.learnt[name], Y, np.arange(Y.shape[0]))
    if name in world.valid:
        chooses = judged(world.valid[name], world.known)
        valid = world.rows(world.valid[name], chooses.Y, chooses.chosen)
    tested = world.rows(world.test[name], test.Y, test.chosen)
    tuned_on = "p@10" if len(train.label_names) >= _MANY_NAMES else "MAP"
    return classified(entrant, train, valid, tested, KS, tuned_on, progress)


def _with_intervals(
    world: World, name: str, found: list[Method | Skipped], how: How, tested: Mapping[str, Rows]
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
