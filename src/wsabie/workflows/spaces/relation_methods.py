"""Methods that find the targets of a relation: spaces, cosine of features, frequencies, classifiers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import numpy as np

from wsabie.core.arrays import Array, Float32, Int64, Matrix
from wsabie.core.execution import Progress
from wsabie.core.json_conversion import JsonObject, to_json_value
from wsabie.core.validation import check_features
from wsabie.evaluation.bootstrap import Interval, PairedDifference
from wsabie.evaluation.score_evaluation import Evaluation, evaluate_scores
from wsabie.io.records import FeatureTable
from wsabie.models.base.feature_matrix import convert_to_matrix, iterate_row_ranges
from wsabie.models.base.row_scaling import RowScaling
from wsabie.models.entity_space import relation_data
from wsabie.models.entity_space.fitted_entities import FittedEntities
from wsabie.models.entity_space.relation_data import HoldoutPairs, build_fitted_pair_matrix, build_holdout_pairs
from wsabie.models.entity_space.relations import EntityKind, Relation
from wsabie.workflows.charts.svg_charts import COLOURS, ChartAxis, ChartSeries, LineChart
from wsabie.workflows.compare import comparison_table
from wsabie.workflows.compare.comparison import choose_tuning_metric, fit_entrant
from wsabie.workflows.compare.comparison_task import build_comparison_task
from wsabie.workflows.compare.entrants import Entrant
from wsabie.workflows.report.html_pages import render_page
from wsabie.workflows.spaces.relation_holdout import ThreeWayRelations

KS = (*range(1, 11), 20, 50)
Relations = Mapping[str, Relation]
MADE_BY = "Made by `wsabie compare`."
"""Last line of the page, by which a later run recognises it."""
METRICS = ("p@1", "p@5", "p@10", "recall@10", "MAP")
_MAX_CHART_K = 10
"""Largest k of the chart."""


@dataclass(frozen=True)
class RelationTestSet:
    """Entities that training knows, with the queries, candidates and pairs of the test for every method.

    Attributes
    ----------
    training, valid, test : dict of str to Relation
        All names of training are listed beforehand, so that every space knows all of them.
    excluded : list of Relation
        Between names: pairs of training and validation, which are not candidates in the test.
    entities : dict of str to FittedEntities
    pairs : dict of str to csr_matrix (fitted queries, fitted targets)
        Pairs of training.
    holdouts : dict of str to HoldoutPairs
    """

    training: Relations
    valid: Relations
    test: Relations
    excluded: list[Relation]
    entities: dict[str, FittedEntities]
    pairs: dict[str, Matrix]
    holdouts: dict[str, HoldoutPairs]

    @classmethod
    def from_relations(cls, sides: ThreeWayRelations) -> "RelationTestSet":
        data = relation_data.prepare_relation_data(sides.training)
        entities = data.entities
        names = {
            name: EntityKind(name, None, list(kind.vocabulary))
            for name, kind in entities.items()
            if not kind.n_features
        }
        training = [
            replace(
                relation,
                query=names.get(relation.query_kind, relation.query),
                target=names.get(relation.target_kind, relation.target),
            )
            for relation in sides.training
        ]
        excluded = [
            relation
            for relation in sides.training_and_validation
            if {relation.query_kind, relation.target_kind} <= set(names)
        ]
        excluded_pairs = {relation.name: build_fitted_pair_matrix(relation, entities) for relation in excluded}
        feature_kinds = {name: kind for name, kind in data.kinds.items() if kind.X is not None}
        test, holdouts = dict[str, Relation](), dict[str, HoldoutPairs]()
        for relation in sides.test:
            if isinstance(relation.target, str):
                relation = replace(relation, target=feature_kinds.get(relation.target, relation.target))
            holdout = build_holdout_pairs(relation, entities, trained=excluded_pairs.get(relation.name))
            if len(holdout.query_ids):
                test[relation.name], holdouts[relation.name] = relation, holdout
        valid = [relation for relation in sides.valid if build_holdout_pairs(relation, entities).Y.nnz]
        pairs = {relation.name: Y for relation, Y in data.pairs.items()}
        return cls(_index_by_name(training), _index_by_name(valid), test, excluded, entities, pairs, holdouts)

    def counts(self, relation: Relation) -> Array | list[int]:
        """Return the training pairs of every candidate; 0 for items that training does not know."""
        counts = np.asarray(self.pairs[relation.name].sum(axis=0)).ravel()
        entities = self.entities[relation.target_kind].vocabulary
        if isinstance(relation.target, str) or relation.target.X is None:
            return counts
        return [counts[entities.ids([name])[0]] if name in entities else 0 for name in relation.target.names()]

    def rows(self, relation: Relation, Y: Matrix, query_rows: Int64) -> FeatureTable:
        """Return chosen queries of a relation as rows, with the names as labels."""
        kind: Any = relation.query  # of items with features
        ids, names = list(kind.names()), list(self.entities[relation.target_kind].vocabulary)
        return FeatureTable(kind.X[query_rows], Y, names, [ids[i] for i in query_rows])


def _index_by_name(relations: Sequence[Relation]) -> dict[str, Relation]:
    return {relation.name: relation for relation in relations}


def evaluate_cosine(
    train: Matrix, queries: Matrix, candidates: Matrix, Y: Matrix, ks: Sequence[int], **options: Any
) -> Evaluation:
    """Evaluate the cosine of features on the candidates of Y; the idf is that of the training rows.

    Parameters
    ----------
    train, queries, candidates : sparse matrix or array, (n, n_features)
    Y : csr_matrix (n_queries, n_candidates)
    ks : sequence of int
    **options
        `exclude`, `similar` and `hops` as in `evaluate_scores`.
    """
    from sklearn.preprocessing import normalize

    scaling = RowScaling.fit(check_features(train), train.shape[1], "tfidf")
    scaled = (convert_to_matrix(scaling(check_features(X)), train.shape[1]) for X in (queries, candidates))
    query_units, candidate_units = map(normalize, scaled)

    def scores(lo: int, hi: int) -> Float32:
        products = query_units[lo:hi] @ candidate_units.T
        return np.asarray(products.toarray() if hasattr(products, "toarray") else products, np.float32)

    return _evaluate(scores, Y, ks, **options)


def evaluate_frequency(counts: Array | list[int], holdout: HoldoutPairs) -> Evaluation:
    """Evaluate the order of candidates by training frequency, (n_candidates,), the same for every query."""
    order = np.asarray(counts, np.float32)
    return _evaluate(lambda lo, hi: np.tile(order, (hi - lo, 1)), holdout.Y, KS, exclude=holdout.exclude)


def evaluate_classifier(
    entrant: Entrant, test_set: RelationTestSet, name: str, progress: Progress
) -> tuple[Evaluation, float]:
    """Evaluate a model of rows and labels where queries have features and candidates are names.

    Names without a training row come last. Returns the figures, and the seconds of the fit.

    Raises
    ------
    UnsuitableModelError
        The model is too large.
    """
    Y, holdout, valid = test_set.pairs[name], test_set.holdouts[name], None
    train = test_set.rows(test_set.training[name], Y, np.arange(Y.shape[0]))
    if name in test_set.valid:
        pairs = build_holdout_pairs(test_set.valid[name], test_set.entities)
        valid = test_set.rows(test_set.valid[name], pairs.Y, pairs.query_ids)
    test = test_set.rows(test_set.test[name], holdout.Y, holdout.query_ids)
    task = build_comparison_task(train, valid, test)
    fitted = fit_entrant(entrant, task, choose_tuning_metric(len(train.label_names)), progress)
    columns = {label: y for y, label in enumerate(train.label_names)}
    fitted_columns = [columns[label] for label in task.train.label_names]
    lowest = np.finfo(np.float32).min

    def scores(lo: int, hi: int) -> Float32:
        scores_of_all = np.full((hi - lo, len(columns)), lowest, np.float32)
        scores_of_all[:, fitted_columns] = fitted.model.scores(test.X[lo:hi])
        return scores_of_all

    return _evaluate(scores, test.Y, KS), fitted.facts["fit_seconds"]


def _evaluate(scores: Callable[[int, int], Float32], Y: Matrix, ks: Sequence[int], **options: Any) -> Evaluation:
    blocks = ((lo, scores(lo, hi)) for lo, hi in iterate_row_ranges(*Y.shape))
    return evaluate_scores(blocks, Y, ks=ks, **options)


@dataclass(frozen=True)
class RelationMethod:
    """A method that finds the targets of a relation.

    Attributes
    ----------
    name, title : str
        For scripts and for people.
    evaluation : Evaluation
    fit_seconds : float or None
        None where nothing is trained.
    intervals : dict of str to Interval
        95 % bootstrap intervals of the means.
    differences : dict of str to PairedDifference
        This method minus the first one, on the same resampled queries.
    """

    name: str
    title: str
    evaluation: Evaluation
    fit_seconds: float | None = None
    intervals: dict[str, Interval] = field(default_factory=dict)
    differences: dict[str, PairedDifference] = field(default_factory=dict)

    def as_dict(self) -> JsonObject:
        """Return plain values for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "fit_seconds": self.fit_seconds,
            "metrics": self.evaluation.means,
            "intervals": comparison_table.list_bounds(self.intervals),
            "differences": {metric: gap._asdict() for metric, gap in self.differences.items()},
        }


@dataclass(frozen=True)
class RelationFigures:
    """All methods on the same queries and candidates.

    Attributes
    ----------
    name, query, target : str
    methods : list of RelationMethod
    skipped : list of ModelOmission
        Models that did not take part, with the reason.
    """

    name: str
    query: str
    target: str
    methods: list[RelationMethod]
    skipped: list[comparison_table.ModelOmission]

    @property
    def title(self) -> str:
        evaluation = self.methods[0].evaluation
        queries = f"{evaluation.n_rows:,} {'query' if evaluation.n_rows == 1 else 'queries'}"
        return f"{self.name} ({self.query} to {self.target}): {queries}, {evaluation.n_labels:,} candidates"

    @property
    def metrics(self) -> list[str]:
        """Metrics that can differ between methods; recall over all candidates is 1 for every method."""
        n_candidates = self.methods[0].evaluation.n_labels
        return [name for name in METRICS if name == "p@1" or int(name.partition("@")[2] or 0) < n_candidates]

    def table(self) -> comparison_table.TextTable:
        """Build the table of means and of the MAP difference to the first row with its interval."""
        rows = []
        for method in self.methods:
            figures = [f"{method.intervals[metric].mean:.3f}" for metric in self.metrics]
            gap = method.differences.get("MAP")
            gap_text = "" if gap is None else f"{gap.mean:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})"
            seconds = "" if method.fit_seconds is None else f"{method.fit_seconds:.1f}"
            rows.append([method.title, *figures, gap_text, seconds])
        headers = ["method", *self.metrics, "MAP minus first row", "train s"]
        return comparison_table.TextTable(headers, rows).add_omissions(self.skipped)

    def chart(self) -> LineChart:
        """Build the chart of p@k of every method against k."""
        ks = [k for k in self.methods[0].evaluation.ks if k <= min(_MAX_CHART_K, self.methods[0].evaluation.n_labels)]
        series = [
            ChartSeries(method.title, ks, [method.evaluation.means[f"p@{k}"] for k in ks], style=i % len(COLOURS))
            for i, method in enumerate(self.methods)
        ]
        return LineChart(self.name, series, ChartAxis("k"), ChartAxis("p@k", low=0.0))

    def as_dict(self) -> JsonObject:
        """Return plain values for JSON."""
        evaluation = self.methods[0].evaluation
        return {
            "query": self.query,
            "target": self.target,
            "queries": evaluation.n_rows,
            "candidates": evaluation.n_labels,
            "methods": [method.as_dict() for method in self.methods],
            "skipped": [skipped._asdict() for skipped in self.skipped],
        }


@dataclass(frozen=True)
class SpaceComparison:
    """The comparisons of all relations.

    Attributes
    ----------
    relations : list of RelationFigures
    facts : dict
        Facts of the data and the spaces, JSON-able.
    seed : int
    versions : dict of str to str
    """

    relations: list[RelationFigures]
    facts: JsonObject
    seed: int
    versions: dict[str, str]

    def table(self) -> comparison_table.TextTable:
        """Build a table with a line per figure: its interval, and its difference to the first method."""
        rows = []
        for relation in self.relations:
            for method in relation.methods:
                for metric, interval in method.intervals.items():
                    gap = method.differences.get(metric, ())
                    cells = [f"{number:.6f}" for number in (*interval, *gap[:3])]
                    rows.append([relation.name, method.name, metric, *cells, *[""] * (6 - len(cells))])
        figures = ["value", "low", "high", "difference", "difference_low", "difference_high"]
        return comparison_table.TextTable(["relation", "method", "metric", *figures], rows)

    def charts(self) -> list[LineChart]:
        """Build the p@k charts of all relations."""
        return [relation.chart() for relation in self.relations if len(relation.methods[0].evaluation.ks) > 1]

    def page(self, command: str) -> str:
        """Build a Markdown page of data, settings and tables."""
        return render_page(
            "comparison.md",
            comparison=self,
            command=command,
            today=date.today().isoformat(),
            machine=comparison_table.describe_machine(),
            tables=[comparison_table.format_markdown_table(relation.table()) for relation in self.relations],
            made_by=MADE_BY,
        )

    def as_dict(self) -> JsonObject:
        """Return all values for JSON (schema 1); None where a figure is not defined."""
        relations = {relation.name: relation.as_dict() for relation in self.relations}
        facts = {"schema": 1, **self.facts, "seed": self.seed, "relations": relations, "versions": self.versions}
        return to_json_value(facts)  # type: ignore[no-any-return]
