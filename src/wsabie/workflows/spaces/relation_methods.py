"""Methods that find the targets of a relation: spaces, cosine of features, frequencies, classifiers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Matrix
from wsabie.core.progress import Progress
from wsabie.core.validation import check_features
from wsabie.evaluation.score_evaluation import Evaluation, evaluate_scores
from wsabie.io.records import FeatureTable
from wsabie.models.base.feature_matrix import convert_to_matrix, iterate_row_ranges
from wsabie.models.base.row_scaling import RowScaling
from wsabie.models.entity_space.relation_evaluation import HoldoutPairs
from wsabie.models.entity_space.relations import EntityKind, Relation
from wsabie.models.entity_space.space import Space
from wsabie.workflows.compare.comparison_task import build_comparison_task
from wsabie.workflows.compare.entrant_fitting import fit_entrant
from wsabie.workflows.compare.entrants import Entrant

Relations = Mapping[str, Relation]


class SpaceFigures(NamedTuple):
    """Figures of some relations in a space that was trained on them; `facts` holds facts of its training."""

    names: Sequence[str]
    facts: Any
    figures: dict[str, Evaluation]


def evaluate_spaces(
    groups: Sequence[Sequence[str]],
    sides: tuple[Relations, Relations, Relations],
    train: Callable[[list[Relation], list[Relation]], tuple[Space, Any]],
    ks: Sequence[int],
    excluded: Sequence[Relation] = (),
) -> Iterator[SpaceFigures]:
    """Train and evaluate a space for each group of relations.

    Parameters
    ----------
    groups : sequence of sequence of str
    sides : (training, validation, test), by name
        Validation and test hold the relations that have pairs.
    train : callable
        (relations, validation) -> a fitted space, and facts of its training.
    ks : sequence of int
    excluded : sequence of Relation
        As `trained` of `Space.evaluate`.
    """
    training, validation, test = sides
    for names in groups:
        space, facts = train(
            [training[name] for name in names], [validation[name] for name in names if name in validation]
        )
        trained = [relation for relation in excluded if relation.name in names]
        figures = space.evaluate([test[name] for name in names if name in test], ks=ks, trained=trained)
        yield SpaceFigures(names, facts, figures)


def evaluate_cosine(
    train: Any, queries: Any, candidates: Any, Y: Matrix, ks: Sequence[int], **options: Any
) -> Evaluation:
    """Evaluate the cosine of features on the candidates of Y; the idf is that of the training rows.

    Parameters
    ----------
    train, queries, candidates : sparse matrix or array, (n, n_features)
    Y : csr_matrix (n_queries, n_candidates)
    ks : sequence of int
    **judged
        `exclude`, `similar` and `hops` as in `evaluate_scores`.
    """
    scaling = RowScaling.learned(check_features(train), train.shape[1], "tfidf")
    query_units, candidate_units = (
        _normalise(convert_to_matrix(scaling(check_features(X)), train.shape[1])) for X in (queries, candidates)
    )

    def scores(lo: int, hi: int) -> Any:
        products = query_units[lo:hi] @ candidate_units.T
        return np.asarray(products.toarray() if hasattr(products, "toarray") else products, np.float32)

    return _evaluate(scores, Y, ks, **options)


def _normalise(X: Matrix) -> Matrix:
    from sklearn.preprocessing import normalize

    return normalize(X)


def evaluate_frequency(counts: Any, holdout: HoldoutPairs, ks: Sequence[int]) -> Evaluation:
    """Evaluate the order of candidates by training frequency, (n_candidates,), the same for every query."""
    order = np.asarray(counts, np.float32)
    return _evaluate(lambda lo, hi: np.tile(order, (hi - lo, 1)), holdout.Y, ks, exclude=holdout.exclude)


def evaluate_classifier(
    entrant: Entrant,
    train: FeatureTable,
    valid: FeatureTable | None,
    test: FeatureTable,
    ks: Sequence[int],
    tuned_on: str,
    progress: Progress,
) -> tuple[Evaluation, float]:
    """Evaluate a model of rows and labels where queries have features and candidates are names.

    Names without a training row come last. Returns the figures, and the seconds of the fit.

    Raises
    ------
    UnsuitableModelError
        The model is too large.
    """
    task = build_comparison_task(train, valid, test)
    fitted = fit_entrant(entrant, task, tuned_on, progress)
    columns = {name: y for y, name in enumerate(train.label_names)}
    fitted_columns = [columns[name] for name in task.train.label_names]
    lowest = np.finfo(np.float32).min

    def scores(lo: int, hi: int) -> Float32:
        scores_of_all = np.full((hi - lo, len(columns)), lowest, np.float32)
        scores_of_all[:, fitted_columns] = fitted.model.scores(test.X[lo:hi])
        return scores_of_all

    return _evaluate(scores, test.Y, ks), fitted.fit_seconds


def find_end_features(end: EntityKind | str) -> Any:
    """Return the features of the items at an end of a relation; None where they have none."""
    return end.X if isinstance(end, EntityKind) else None


def _evaluate(scores: Callable[[int, int], Any], Y: Matrix, ks: Sequence[int], **options: Any) -> Evaluation:
    blocks = ((lo, scores(lo, hi)) for lo, hi in iterate_row_ranges(*Y.shape))
    return evaluate_scores(blocks, Y, ks=ks, **options)
