"""What may find the things of a relation: spaces, the cosine of features, how often things are found, classifiers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Matrix
from wsabie.base.progress import Progress
from wsabie.base.validation import check_features
from wsabie.evaluation.evaluate import Evaluation, evaluate_scores
from wsabie.models.inputs import as_matrix, row_ranges
from wsabie.models.judging import Judged
from wsabie.models.relations import Kind, Relation
from wsabie.models.scaling import RowScaling
from wsabie.models.space import Space
from wsabie.sources.records import Rows
from wsabie.studies.entrants import Entrant
from wsabie.studies.fitting import fit
from wsabie.studies.task import make_task

Relations = Mapping[str, Relation]


class InSpace(NamedTuple):
    """The figures of some relations in a space that was trained on them; `told` is what its training tells besides."""

    names: Sequence[str]
    told: Any
    figures: dict[str, Evaluation]


def in_spaces(
    groups: Sequence[Sequence[str]],
    sides: tuple[Relations, Relations, Relations],
    train: Callable[[list[Relation], list[Relation]], tuple[Space, Any]],
    ks: Sequence[int],
    excluded: Sequence[Relation] = (),
) -> Iterator[InSpace]:
    """A space for each group of relations, trained and judged.

    Parameters
    ----------
    groups : sequence of sequence of str
    sides : (learnt, held out, test), by name
        Of the last two those that have pairs.
    train : callable
        (relations, validation) -> a fitted space, and what there is to tell of it.
    ks : sequence of int
    excluded : sequence of Relation
        As `trained` of `Space.evaluate`.
    """
    learnt, held, test = sides
    for names in groups:
        space, told = train([learnt[name] for name in names], [held[name] for name in names if name in held])
        trained = [one for one in excluded if one.name in names]
        figures = space.evaluate([test[name] for name in names if name in test], ks=ks, trained=trained)
        yield InSpace(names, told, figures)


def cosines(train: Any, queries: Any, candidates: Any, Y: Matrix, ks: Sequence[int], **judged: Any) -> Evaluation:
    """How well the cosine of features finds the candidates of Y; idf is that of the training rows.

    Parameters
    ----------
    train, queries, candidates : sparse matrix or array, (n, n_features)
    Y : csr_matrix (n_queries, n_candidates)
    ks : sequence of int
    **judged
        `exclude`, `similar` and `hops` as in `evaluate_scores`.
    """
    scaling = RowScaling.learned(check_features(train), train.shape[1], "tfidf")
    asked, known = (_unit(as_matrix(scaling(check_features(X)), train.shape[1])) for X in (queries, candidates))

    def scores(lo: int, hi: int) -> Any:
        found = asked[lo:hi] @ known.T
        return np.asarray(found.toarray() if hasattr(found, "toarray") else found, np.float32)

    return _evaluated(scores, Y, ks, **judged)


def _unit(X: Matrix) -> Matrix:
    from sklearn.preprocessing import normalize

    return normalize(X)


def frequencies(counts: Any, one: Judged, ks: Sequence[int]) -> Evaluation:
    """How well the order of how often candidates are found in training, (n_candidates,), does for every query."""
    order = np.asarray(counts, np.float32)
    return _evaluated(lambda lo, hi: np.tile(order, (hi - lo, 1)), one.Y, ks, exclude=one.exclude)


def classified(
    entrant: Entrant, train: Rows, valid: Rows | None, test: Rows, ks: Sequence[int], tuned_on: str, progress: Progress
) -> tuple[Evaluation, float]:
    """A model of rows and labels, where queries have features and candidates are names; the figures, and its seconds.

    Names without a training row come last.

    Raises
    ------
    UnsuitableError
        The model is too large.
    """
    task = make_task(train, valid, test)
    fitted = fit(entrant, task, tuned_on, progress)
    place = {name: y for y, name in enumerate(train.label_names)}
    known = [place[name] for name in task.train.label_names]
    last = np.finfo(np.float32).min

    def scores(lo: int, hi: int) -> Float32:
        found = np.full((hi - lo, len(place)), last, np.float32)
        found[:, known] = fitted.model.scores(test.X[lo:hi])
        return found

    return _evaluated(scores, test.Y, ks), fitted.fit_seconds


def features_of(end: Kind | str) -> Any:
    """The features of the things at an end of a relation; None where they have none."""
    return end.X if isinstance(end, Kind) else None


def _evaluated(scores: Callable[[int, int], Any], Y: Matrix, ks: Sequence[int], **judged: Any) -> Evaluation:
    blocks = ((lo, scores(lo, hi)) for lo, hi in row_ranges(*Y.shape))
    return evaluate_scores(blocks, Y, ks=ks, **judged)
