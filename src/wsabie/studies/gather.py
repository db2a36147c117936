"""From a finished comparison to what a report shows: examples that were not hand-picked, and nearest labels."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from wsabie.evaluation.evaluate import Evaluation
from wsabie.labels.similar import Mark, Similar, marks
from wsabie.models.wsabie import Wsabie
from wsabie.sources.records import Rows
from wsabie.studies.comparison import Entry
from wsabie.studies.report_input import Example, Image, Neighbourhood, ReportInput, Suggestion
from wsabie.studies.task import Task

SPREAD = "They were not picked by hand: they stand at even steps between the best and the worst annotated one."
"""What to say about examples chosen by `spread_rows`."""


def spread_rows(
    evaluation: Evaluation, n: int, *, metric: str = "MAP", groups: Sequence[str] | None = None
) -> list[int]:
    """Row numbers at even steps of accuracy, from the best to the worst.

    Parameters
    ----------
    evaluation : Evaluation
    n : int
        At most so many.
    metric : str
    groups : sequence of str or None
        Of all rows of the evaluated side: at most one row of a group is taken.

    Returns
    -------
    list of int
        Numbers of the evaluated side's rows, best first.

    Examples
    --------
    >>> from wsabie.evaluation.evaluate import evaluate_scores
    >>> found = evaluate_scores([(0, np.array([[0.1, 0.9], [0.9, 0.1], [0.8, 0.2]]))], np.array([0, 0, 1]), ks=(1,))
    >>> spread_rows(found, 1), spread_rows(found, 2)
    ([1], [1, 2])
    """
    order = np.argsort(-np.nan_to_num(evaluation.per_row[metric], nan=-1.0), kind="stable")
    rows = [int(row) for row in evaluation.rows[order]]
    if groups is not None:
        first_of: dict[str, int] = {}
        for row in rows:
            first_of.setdefault(groups[row] or f"row {row}", row)
        rows = list(first_of.values())
    steps = np.linspace(0, len(rows) - 1, min(n, len(rows))).round().astype(int)
    return [rows[i] for i in steps]


def examples(
    entry: Entry,
    side: Rows,
    rows: Sequence[int],
    picture: Callable[[int], Image],
    *,
    title: Callable[[int], str] | None = None,
    true_labels: Callable[[int], Sequence[str]] | None = None,
    k: int = 10,
    similar: Similar | None = None,
) -> list[Example]:
    """Rows as the report shows them, with the k best labels of a model.

    Parameters
    ----------
    entry : Entry
    side : Rows
        The evaluated rows, with the label columns of the comparison (`comparison.task.test`).
    rows : sequence of int
    picture, title, true_labels : callable
        What belongs to a row number; by default the id, and the labels among the columns.
    k : int
    similar : Similar or None
        Which labels are siblings, by the label columns.
    """
    suggested = entry.model.annotate(side.X[list(rows)], k)
    found = []
    for row, best in zip(rows, suggested, strict=True):
        true = list(true_labels(row)) if true_labels is not None else labels_of(side, row)
        signs = marked(entry, [name for name, _ in best], true, similar)
        found.append(
            Example(
                picture(row),
                side.ids[row] if title is None else title(row),
                true,
                [
                    Suggestion(name, score, sign == "true", sign == "sibling")
                    for (name, score), sign in zip(best, signs, strict=True)
                ],
            )
        )
    return found


def labels_of(side: Rows, row: int) -> list[str]:
    """Names of the true labels of a row."""
    line = side.Y[[row]].tocsr()
    return [side.label_names[y] for y, value in zip(line.indices, line.data, strict=True) if value > 0]


def neighbourhoods(
    entry: Entry, labels: Sequence[str], k: int = 8, similar: Similar | None = None
) -> list[Neighbourhood]:
    """The nearest labels of each label that the model knows, and which of them are siblings; others are passed over."""
    found = []
    for name in labels:
        if name in entry.model.vocabulary_:
            near = entry.model.neighbours(name, k)
            signs = marked(entry, [other for other, _ in near], [name], similar)
            siblings = {other for (other, _), sign in zip(near, signs, strict=True) if sign == "sibling"}
            found.append(Neighbourhood(name, near, siblings))
    return found


def marked(entry: Entry, names: Sequence[str], true: Sequence[str], similar: Similar | None) -> list[Mark]:
    """What each label is to the true ones; those of these that the model does not know have no siblings."""
    if similar is None:
        return ["true" if name in true else "other" for name in names]
    known = entry.model.vocabulary_
    return marks(known.ids(names), known.ids([name for name in true if name in known]), similar)


def with_model(given: ReportInput, labels: Sequence[str], similar: Similar | None = None) -> ReportInput:
    """The input with what its embedding model tells: epochs, parameters, nearest labels of some labels.

    Without such a model in the comparison it stays as it is.
    """
    entries = [entry for entry in given.comparison.entries if isinstance(entry.model, Wsabie)]
    if not entries:
        return given
    model = entries[0].model
    return replace(
        given,
        history=model.history_,
        parameters={**entries[0].parameters, **model.settings_},
        neighbours=neighbourhoods(entries[0], labels, similar=similar),
    )


def frequent_labels(task: Task, n: int) -> list[str]:
    """The n labels with the most training rows, the most frequent first."""
    order = np.argsort(-task.counts, kind="stable")[:n]
    return [task.train.label_names[y] for y in order]
