"""Comparison of methods per relation: a space of all relations, a space of each, and simpler methods."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sklearn.base import clone

from wsabie.core.errors import UnsuitableModelError, require
from wsabie.core.execution import Progress
from wsabie.core.json_conversion import JsonObject
from wsabie.core.machine import collect_versions
from wsabie.evaluation.bootstrap import bootstrap_all, paired_bootstrap
from wsabie.features.base.sampling import WorkContext
from wsabie.io.records import FeatureTable, get_groups
from wsabie.io.space_declaration import SpaceDeclaration
from wsabie.models.entity_space.space import Space
from wsabie.workflows.compare.comparison_table import ComparisonInterrupt, ModelOmission
from wsabie.workflows.compare.entrants import Entrant
from wsabie.workflows.compare.result_store import ModelResult, ResultStore, compute_value_fingerprint, find_or_compute
from wsabie.workflows.data_splits import map_split
from wsabie.workflows.spaces import relation_methods
from wsabie.workflows.spaces.declared_data import EntityFeatureExtractor
from wsabie.workflows.spaces.relation_holdout import ThreeWayRelations, plan_three_way_split, split_three_ways
from wsabie.workflows.spaces.relation_methods import RelationFigures, RelationMethod, RelationTestSet, SpaceComparison
from wsabie.workflows.spaces.space_training import TrainingFingerprints

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
        Number of samples of the bootstrap.
    allow_overlap : bool
        Evaluate on items and pairs of training too.
    store : ResultStore or None
        Saves every result at once, and supplies the results of an interrupted run.
    on_result : callable
        Called with the relation and every finished method.
    """

    popularity: bool = True
    entrants: Sequence[Entrant] = ()
    seed: int = 0
    resamples: int = 1000
    allow_overlap: bool = False
    store: ResultStore | None = None
    on_result: OnResult = lambda relation, result: None


def compare_declaration(
    declared: SpaceDeclaration,
    space: Space,
    holdout_share: float,
    options: ComparisonOptions,
    tested: SpaceDeclaration | None,
    context: WorkContext,
) -> SpaceComparison:
    """Split declared data, extract features as the training side fits them, and compare on the test side.

    Parameters
    ----------
    declared : SpaceDeclaration
    space : Space
        Not fitted: its parameters are those of every space.
    holdout_share : float
        Share of the items with data, and of the pairs between other items. One half chooses the epoch, the other half
        is the test. With test data of their own, the whole share chooses the epoch.
    options : ComparisonOptions
    tested : SpaceDeclaration or None
        Names the test data, as for `evaluate_space`.
    context : WorkContext

    Raises
    ------
    InputError
        Data that cannot be used, or no test pair.
    """
    shares = (holdout_share / 2, holdout_share / 2) if tested is None else (holdout_share, 0.0)
    plan = plan_three_way_split(declared, *shares, options.seed, context.rejects)
    extractor = EntityFeatureExtractor(options.seed, context, fitting_sides=plan.sides)
    data = extractor.extract(declared, plan.data)
    sides = {name: map_split(side, plan.data.rows[name], data.rows[name]) for name, side in plan.sides.items()}
    split = split_three_ways(replace(plan, data=data, sides=sides))
    query_rows = {name: rows.take(sides[name].test) for name, rows in data.rows.items()}
    if tested is not None:
        names = [relation.name for relation in declared.relations]
        training = TrainingFingerprints(names, extractor.fingerprints, data.pair_fingerprints, options.allow_overlap)
        rows_of = partial(extractor.extract_more, fitted_rows=data.rows)
        relations, test_data = training.open_test_data(tested, rows_of, context.rejects)
        split, query_rows = replace(split, test=relations), test_data.rows
    entities = {
        name: {"train": len(side.train), "valid": len(side.valid), "test": len(query_rows.get(name, ()))}
        for name, side in sides.items()
    }
    facts = {
        "source": str(declared.path),
        "test": None if tested is None else str(tested.path),
        "hold_out": holdout_share,
        "parameters": space.get_params(),
        "entities": entities,
        "skipped": len(context.rejects),
    }
    if options.store is not None:
        identity = {
            "data or split": compute_value_fingerprint([split, {name: rows.ids for name, rows in query_rows.items()}]),
            **{name: facts[name] for name in ("hold_out", "parameters")},
            "seed": options.seed,
            "allow_overlap": options.allow_overlap,
            "models": compute_value_fingerprint([(entrant.name, entrant.options) for entrant in options.entrants]),
            "versions": collect_versions(),
        }
        options = replace(options, store=options.store.with_identity(identity))
    figures = compare_relations(split, space, options, query_rows, progress=context.progress)
    return SpaceComparison(figures, facts, options.seed, collect_versions())


def compare_relations(
    sides: ThreeWayRelations,
    space: Space,
    options: ComparisonOptions,
    tested: Mapping[str, FeatureTable] | None = None,
    *,
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
    progress : Progress

    Raises
    ------
    InputError
        No relation has a test pair of items that training knows.
    """
    methods = _MethodRun(RelationTestSet.from_relations(sides), space, options, tested or {}, progress)
    holdouts = methods.test_set.holdouts
    fact = "no held-out pair is of entities that training knows, so that nothing can be judged"
    require(bool(holdouts), f"{fact}; hold out more, or give more pairs")
    results: dict[str, list[RelationMethod | ModelOmission]] = {name: [] for name in holdouts}
    try:
        for name, method in methods.evaluate_methods():
            results[name].append(method)
            options.on_result(name, method)
    except KeyboardInterrupt as stop:
        raise ComparisonInterrupt(methods.summarise(results)) from stop
    return methods.summarise(results)


@dataclass(frozen=True)
class _MethodRun:
    """All methods on one test set."""

    test_set: RelationTestSet
    space: Space
    options: ComparisonOptions
    tested: Mapping[str, FeatureTable]
    progress: Progress

    def evaluate_methods(self) -> Iterator[tuple[str, RelationMethod | ModelOmission]]:
        """Yield every finished method of every relation; the space of all relations comes first."""
        yield from self._evaluate_spaces()
        for name in self.test_set.holdouts:
            for method in self._evaluate_other_methods(name):
                yield name, method

    def _evaluate_spaces(self) -> Iterator[tuple[str, RelationMethod]]:
        """Yield the space of all relations, and one space per relation where there are several."""
        names = list(self.test_set.training)
        groups = [("all", "all relations", names)]
        if len(names) > 1:
            groups += [("alone", "each alone", [name]) for name in self.test_set.test]
        for method, title, group in groups:
            key = json.dumps([method, *group])
            result = find_or_compute(self.options.store, key, partial(self._evaluate_group, group))
            for name, evaluation in result.evaluations.items():
                yield name, RelationMethod(method, title, evaluation, result.facts["seconds"])

    def _evaluate_group(self, names: list[str]) -> ModelResult:
        """Train a space on some relations, and evaluate each that has test pairs."""
        sides = self.test_set.training, self.test_set.valid, self.test_set.test
        training, validation, test = ([side[name] for name in names if name in side] for side in sides)
        space = clone(self.space).fit(training, validation=validation, progress=self.progress)
        seconds = sum(stats.seconds + stats.validation_seconds for stats in space.history_)
        excluded = [relation for relation in self.test_set.excluded if relation.name in names]
        return ModelResult({"seconds": seconds}, space.evaluate(test, ks=relation_methods.KS, trained=excluded))

    def _evaluate_other_methods(self, name: str) -> Iterator[RelationMethod | ModelOmission]:
        """Yield the methods without a space that the ends of the relation allow."""
        relation, holdout = self.test_set.test[name], self.test_set.holdouts[name]
        if self.options.popularity:
            evaluation = relation_methods.evaluate_frequency(self.test_set.counts(relation), holdout)
            yield RelationMethod(POPULARITY, "most frequent", evaluation)
        ends = relation.query, relation.target
        queries, targets = (getattr(end, "X", None) for end in ends)
        maps = [getattr(end, "mapped_by", None) for end in ends]
        if queries is not None and targets is not None and maps[0] == maps[1]:
            train: Any = self.test_set.training[name].query
            tested = queries[holdout.query_ids], targets, holdout.Y
            evaluation = relation_methods.evaluate_cosine(
                train.X, *tested, relation_methods.KS, exclude=holdout.exclude
            )
            yield RelationMethod("cosine", "cosine of features", evaluation)
        elif queries is not None and targets is None:
            for entrant in self.options.entrants:
                yield self._evaluate_entrant(entrant, name)

    def _evaluate_entrant(self, entrant: Entrant, name: str) -> RelationMethod | ModelOmission:
        def evaluate() -> ModelResult:
            try:
                evaluation, seconds = relation_methods.evaluate_classifier(entrant, self.test_set, name, self.progress)
            except UnsuitableModelError as error:
                return ModelResult({"reason": str(error)})
            return ModelResult({"seconds": seconds}, {name: evaluation})

        result = find_or_compute(self.options.store, json.dumps(["classifier", entrant.name, name]), evaluate)
        if "reason" in result.facts:
            return ModelOmission(entrant.name, entrant.title, result.facts["reason"])
        return RelationMethod(entrant.name, entrant.title, result.evaluations[name], result.facts["seconds"])

    def summarise(self, results: Mapping[str, list[RelationMethod | ModelOmission]]) -> list[RelationFigures]:
        """Return the figures of the relations with a finished method."""
        figures = []
        for name, finished in results.items():
            methods = [result for result in finished if isinstance(result, RelationMethod)]
            skipped = [result for result in finished if isinstance(result, ModelOmission)]
            if methods:
                relation = self.test_set.test[name]
                kinds = relation.query_kind, relation.target_kind
                figures.append(self._estimate_intervals(RelationFigures(name, *kinds, methods, skipped)))
        return figures

    def _estimate_intervals(self, figures: RelationFigures) -> RelationFigures:
        """Add the intervals of every method, and its differences to the first."""
        rows, first = self.tested.get(figures.query), figures.methods[0]
        groups = None if rows is None else get_groups(rows, self.test_set.holdouts[figures.name].query_ids)
        options: JsonObject = {"groups": groups, "resamples": self.options.resamples, "seed": self.options.seed}
        methods, reference = [], first.evaluation.per_row
        for method in figures.methods:
            per_row = {metric: method.evaluation.per_row[metric] for metric in figures.metrics}
            pairs = {} if method is first else {m: (values, reference[m]) for m, values in per_row.items()}
            differences = {metric: paired_bootstrap(*pair, **options) for metric, pair in pairs.items()}
            methods.append(replace(method, intervals=bootstrap_all(per_row, **options), differences=differences))
        return replace(figures, methods=methods)
