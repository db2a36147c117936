"""Comparison of methods per relation: a space of all relations, a space of each, and simpler methods."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from wsabie.core.errors import UnsuitableModelError
from wsabie.core.executors import Executor
from wsabie.core.machine import collect_versions
from wsabie.core.progress import Progress
from wsabie.core.validation import require
from wsabie.evaluation.bootstrap import bootstrap_all, paired_bootstrap
from wsabie.evaluation.score_evaluation import Evaluation
from wsabie.io.records import FeatureTable, get_groups
from wsabie.io.space_declaration import SpaceDeclaration
from wsabie.models.entity_space.relation_data import build_holdout_pairs
from wsabie.models.entity_space.relations import Relation
from wsabie.models.entity_space.space import Space
from wsabie.storage.rejects import Rejects
from wsabie.workflows.collection_splits import map_split
from wsabie.workflows.compare.comparison import ModelOmission
from wsabie.workflows.compare.entrants import Entrant
from wsabie.workflows.compare.result_store import ModelResult, ResultStore, compute_value_digest
from wsabie.workflows.spaces.entity_features import EntityFeatureExtractor, open_declared_data
from wsabie.workflows.spaces.relation_holdout import DeclaredData
from wsabie.workflows.spaces.relation_methods import (
    evaluate_classifier,
    evaluate_cosine,
    evaluate_frequency,
    evaluate_spaces,
    find_end_features,
)
from wsabie.workflows.spaces.relation_results import RelationFigures, RelationMethod, SpaceComparison
from wsabie.workflows.spaces.relation_test_set import RelationTestSet
from wsabie.workflows.spaces.space_training import TrainingMarks, compute_relation_marks, select_evaluation_relations
from wsabie.workflows.spaces.three_way_split import ThreeWayRelations, plan_three_way_split, split_three_ways

KS = (*range(1, 11), 20, 50)
_MANY_NAMES = 50
POPULARITY = "popularity"
OnResult = Callable[[str, RelationMethod | ModelOmission], object]


@dataclass(frozen=True)
class ComparisonOptions:
    """Methods that take part besides the spaces, and the settings of the intervals.

    Attributes
    ----------
    popularity : bool
        Compare with the order of the most frequent targets.
    entrants : sequence of Entrant
        Models of rows and labels, for relations from items with features to names.
    seed : int
    resamples : int
        Of the bootstrap.
    allow_overlap : bool
        Evaluate on items and pairs of training too.
    """

    popularity: bool = True
    entrants: Sequence[Entrant] = ()
    seed: int = 0
    resamples: int = 1000
    allow_overlap: bool = False


class RelationComparisonInterrupt(KeyboardInterrupt):
    """Ctrl-C in a comparison.

    Parameters
    ----------
    relations : list of RelationFigures
        Relations with a finished method.
    """

    def __init__(self, relations: list[RelationFigures]) -> None:
        super().__init__()
        self.relations = relations


def compare_declaration(
    declared: SpaceDeclaration,
    space: Space,
    hold_out: float,
    options: ComparisonOptions,
    tested: SpaceDeclaration | None = None,
    *,
    store: ResultStore | None = None,
    on_result: OnResult = lambda relation, result: None,
    executor: Executor,
    progress: Progress,
    rejects: Rejects,
) -> SpaceComparison:
    """Split declared data, extract features as the training side fits them, and compare on the test side.

    Parameters
    ----------
    declared : SpaceDeclaration
    space : Space
        Not fitted: its parameters are those of every space.
    hold_out : float
        Share of the items with data, and of the pairs between other items. One half chooses the epoch, the other half
        is the test. With test data of their own, the whole share chooses the epoch.
    options : ComparisonOptions
    tested : SpaceDeclaration or None
        Names the test data, as for `evaluate_space`.
    store : ResultStore or None
        Saves every result at once, and supplies the results of an interrupted run.
    on_result : callable
        Called with the relation and every finished method.
    executor, progress, rejects
        As in `wsabie.workflows.train.model_training.train_model`.

    Raises
    ------
    InputError
        Data that cannot be used, or no test pair.
    """
    shares = (hold_out / 2, hold_out / 2) if tested is None else (hold_out, 0.0)
    plan = plan_three_way_split(declared, *shares, options.seed, rejects)
    extractor = EntityFeatureExtractor(options.seed, executor, progress, rejects, taught_by=plan.sides)
    data = extractor.extract(declared, plan.data, plan.sources)
    sides = {name: map_split(side, plan.data.rows[name], data.rows[name]) for name, side in plan.sides.items()}
    split = split_three_ways(declared, plan, data, sides)
    query_rows = {name: rows.take(sides[name].test) for name, rows in data.rows.items()}
    if tested is not None:
        relations, query_rows = _open_test_data(tested, declared, options, extractor, data, rejects)
        split = replace(split, test=relations)
    sizes = {
        name: {"train": len(split_side.train), "valid": len(split_side.valid)} for name, split_side in sides.items()
    }
    facts = {
        "source": str(declared.path),
        "test": None if tested is None else str(tested.path),
        "hold_out": hold_out,
        "parameters": space.get_params(),
        "things": {name: {**counts, "test": len(query_rows.get(name, ()))} for name, counts in sizes.items()},
        "skipped": len(rejects),
    }
    if store is not None:
        store = store.with_identity(_identity(split, space, options, query_rows, hold_out))
    figures = compare_relations(split, space, options, query_rows, store=store, on_result=on_result, progress=progress)
    return SpaceComparison(figures, facts, options.seed, collect_versions())


def _identity(
    split: ThreeWayRelations,
    space: Space,
    options: ComparisonOptions,
    query_rows: Mapping[str, FeatureTable],
    hold_out: float,
) -> dict[str, Any]:
    """Return the facts that must agree for results to be comparable."""
    entrant_options = [(entrant.name, entrant.options) for entrant in options.entrants]
    run = {
        "seed": options.seed,
        "allow_overlap": options.allow_overlap,
        "hold_out": hold_out,
        "models": compute_value_digest(entrant_options),
    }
    data = {
        "data or split": compute_value_digest(
            [_list_sides(split), {name: rows.ids for name, rows in query_rows.items()}]
        )
    }
    return {**data, **run, "parameters": space.get_params(), "versions": collect_versions()}


def _list_sides(split: ThreeWayRelations) -> dict[str, list[Relation]]:
    """Return the relations by side; the keys enter the digests of stored results."""
    return {"learnt": split.learnt, "valid": split.valid, "test": split.test, "known": split.training_and_validation}


def _open_test_data(
    tested: SpaceDeclaration,
    declared: SpaceDeclaration,
    options: ComparisonOptions,
    extractor: EntityFeatureExtractor,
    data_of_training: DeclaredData,
    rejects: Rejects,
) -> tuple[list[Relation], dict[str, FeatureTable]]:
    """Return the relations of separate test data, and the items that are their queries."""
    names = [relation.name for relation in declared.relations]
    marks = TrainingMarks(
        names,
        extractor.fingerprints,
        compute_relation_marks(declared.relations, data_of_training),
        options.allow_overlap,
    )
    relations = marks.select_learned(tested)
    outlines, sources = open_declared_data(tested, relations, rejects)
    for name, source in sources.items():
        marks.refuse_training_items(tested.kinds[name], source)
    data = extractor.extract_more(outlines, sources, data_of_training.rows)
    return select_evaluation_relations(tested, relations, data, marks), data.rows


def compare_relations(
    sides: ThreeWayRelations,
    space: Space,
    options: ComparisonOptions,
    tested: Mapping[str, FeatureTable] | None = None,
    *,
    store: ResultStore | None = None,
    on_result: OnResult = lambda relation, result: None,
    progress: Progress,
) -> list[RelationFigures]:
    """Evaluate all methods on the test pairs of every relation that has some.

    Parameters
    ----------
    sides : ThreeWayRelations
    space : Space
        Not fitted.
    options : ComparisonOptions
    tested : dict of str to FeatureTable or None
        Test items of the kinds with data; the bootstrap draws their groups.
    store, on_result
        As in `compare_declaration`.
    progress : Progress

    Raises
    ------
    InputError
        No relation has a test pair of items that training knows.
    """
    test_set = RelationTestSet.from_relations(sides)
    require(
        bool(test_set.holdouts),
        "no held-out pair is of things that training knows, so that nothing can be judged; hold out more, or give more "
        "pairs",
    )
    results: dict[str, list[RelationMethod | ModelOmission]] = {name: [] for name in test_set.holdouts}
    try:
        for name, method in _compare_methods(test_set, space, options, store, progress):
            results[name].append(method)
            on_result(name, method)
    except KeyboardInterrupt as stop:
        finished = {
            name: methods
            for name, methods in results.items()
            if any(isinstance(method, RelationMethod) for method in methods)
        }
        raise RelationComparisonInterrupt(_summarise_relations(test_set, finished, options, tested or {})) from stop
    return _summarise_relations(test_set, results, options, tested or {})


def _summarise_relations(
    test_set: RelationTestSet,
    results: Mapping[str, list[RelationMethod | ModelOmission]],
    options: ComparisonOptions,
    tested: Mapping[str, FeatureTable],
) -> list[RelationFigures]:
    return [_estimate_intervals(test_set, name, methods, options, tested) for name, methods in results.items()]


def _compare_methods(
    test_set: RelationTestSet, space: Space, options: ComparisonOptions, store: ResultStore | None, progress: Progress
) -> Iterator[tuple[str, RelationMethod | ModelOmission]]:
    """Yield every finished method of every relation; the space of all relations comes first."""
    yield from _compare_spaces(test_set, space, store, progress)
    for name in test_set.holdouts:
        for method in _compare_other_methods(test_set, name, options, store, progress):
            yield name, method


def _compare_other_methods(
    test_set: RelationTestSet, name: str, options: ComparisonOptions, store: ResultStore | None, progress: Progress
) -> Iterator[RelationMethod | ModelOmission]:
    """Yield the methods without a space that the ends of the relation allow."""
    relation, holdout = test_set.test[name], test_set.holdouts[name]
    if options.popularity:
        yield RelationMethod(POPULARITY, "most frequent", evaluate_frequency(test_set.counts(relation), holdout, KS))
    if _shares_features(relation):
        train = find_end_features(test_set.training[name].query)
        ends = find_end_features(relation.query)[holdout.chosen], find_end_features(relation.target)
        yield RelationMethod(
            "cosine", "cosine of features", evaluate_cosine(train, *ends, holdout.Y, KS, exclude=holdout.exclude)
        )
    elif find_end_features(relation.query) is not None and find_end_features(relation.target) is None:
        for entrant in options.entrants:
            yield _compare_entrant(entrant, test_set, name, store, progress)


def _compare_spaces(
    test_set: RelationTestSet, space: Space, store: ResultStore | None, progress: Progress
) -> Iterator[tuple[str, RelationMethod]]:
    """Yield the space of all relations, and one space per relation where there are several."""

    def fit_space(relations: list[Relation], validation: list[Relation]) -> tuple[Space, float]:
        fitted = clone(space).fit(relations, validation=validation, progress=progress)
        return fitted, sum(stats.seconds + stats.validation_seconds for stats in fitted.history_)

    def evaluate_group(names: list[str]) -> ModelResult:
        (space_figures,) = evaluate_spaces(
            [names], (test_set.training, test_set.valid, test_set.test), fit_space, KS, test_set.excluded
        )
        return ModelResult({"seconds": space_figures.facts}, space_figures.figures)

    relation_names = list(test_set.training)
    groups = [("all", "all relations", relation_names)]
    if len(relation_names) > 1:
        groups += [("alone", "each alone", [name]) for name in test_set.test]
    for kind, title, names in groups:
        result = _find_or_compute(store, json.dumps([kind, *names]), partial(evaluate_group, names))
        for name, evaluation in result.evaluations.items():
            yield name, RelationMethod(kind, title, evaluation, result.facts["seconds"])


def _find_or_compute(store: ResultStore | None, name: str, compute: Callable[[], ModelResult]) -> ModelResult:
    """Return the result of this name: from the store, or computed and stored."""
    result = None if store is None else store.find(name)
    if result is None:
        result = compute()
        if store is not None:
            store.add(name, result)
    return result


def _shares_features(relation: Relation) -> bool:
    """Return True if both ends have the same features."""
    ends = [end for end in (relation.query, relation.target) if find_end_features(end) is not None]
    return len(ends) == 2 and ends[0].mapped_by == ends[1].mapped_by  # type: ignore[union-attr]


def _compare_entrant(
    entrant: Entrant, test_set: RelationTestSet, name: str, store: ResultStore | None, progress: Progress
) -> RelationMethod | ModelOmission:
    def evaluate_entrant() -> ModelResult:
        try:
            evaluation, seconds = _evaluate_entrant(entrant, test_set, name, progress)
        except UnsuitableModelError as error:
            return ModelResult({"reason": str(error)})
        return ModelResult({"seconds": seconds}, {name: evaluation})

    result = _find_or_compute(store, json.dumps(["classifier", entrant.name, name]), evaluate_entrant)
    if "reason" in result.facts:
        return ModelOmission(entrant.name, entrant.title, result.facts["reason"])
    return RelationMethod(entrant.name, entrant.title, result.evaluations[name], result.facts["seconds"])


def _evaluate_entrant(
    entrant: Entrant, test_set: RelationTestSet, name: str, progress: Progress
) -> tuple[Evaluation, float]:
    Y, test, valid = test_set.pairs[name], test_set.holdouts[name], None
    train = test_set.rows(test_set.training[name], Y, np.arange(Y.shape[0]))
    if name in test_set.valid:
        validation_pairs = build_holdout_pairs(test_set.valid[name], test_set.entities)
        valid = test_set.rows(test_set.valid[name], validation_pairs.Y, validation_pairs.chosen)
    tested = test_set.rows(test_set.test[name], test.Y, test.chosen)
    tuned_on = "p@10" if len(train.label_names) >= _MANY_NAMES else "MAP"
    return evaluate_classifier(entrant, train, valid, tested, KS, tuned_on, progress)


def _estimate_intervals(
    test_set: RelationTestSet,
    name: str,
    results: list[RelationMethod | ModelOmission],
    options: ComparisonOptions,
    tested: Mapping[str, FeatureTable],
) -> RelationFigures:
    """Return the intervals of every method, and its differences to the first."""
    relation, methods = test_set.test[name], [result for result in results if isinstance(result, RelationMethod)]
    rows, first = tested.get(relation.query_kind), methods[0].evaluation
    groups = None if rows is None else get_groups(rows, test_set.holdouts[name].chosen)
    skipped = [result for result in results if isinstance(result, ModelOmission)]
    figures = RelationFigures(name, relation.query_kind, relation.target_kind, methods, skipped)
    bootstrap_options: dict[str, Any] = {"groups": groups, "resamples": options.resamples, "seed": options.seed}
    methods_with_intervals = []
    for method in methods:
        per_row = {metric: method.evaluation.per_row[metric] for metric in figures.metrics}
        differences = {
            m: paired_bootstrap(values, first.per_row[m], **bootstrap_options) for m, values in per_row.items()
        }
        differences = {} if method is methods[0] else differences
        methods_with_intervals.append(
            replace(method, intervals=bootstrap_all(per_row, **bootstrap_options), differences=differences)
        )
    return replace(figures, methods=methods_with_intervals)
