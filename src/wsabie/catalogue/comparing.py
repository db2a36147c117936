"""Models of a collection side by side: the same items, which none of them has learnt from, and their tags of today."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.catalogue.alone import alone
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.examples import read_examples
from wsabie.catalogue.judging import (
    Exam,
    differences,
    evaluation_of,
    exam_of,
    figures_of,
    stores_of,
    verdict,
    with_rows,
)
from wsabie.catalogue.looking import rescan_error
from wsabie.catalogue.rows import describe_missing
from wsabie.catalogue.shelf import OpenModel, open_model
from wsabie.evaluation.bootstrap import Difference
from wsabie.evaluation.evaluate import Evaluation

MOST = 8
"""Models in a comparison."""
_MOVED = 10  # labels that are listed as gained, and as lost


class Moved(NamedTuple):
    """A label that is found better or worse: mean of 1 / its place on the `items` that have it, before and after."""

    label: str
    items: int
    before: float
    after: float


class Beside(NamedTuple):
    """A model in a comparison.

    Attributes
    ----------
    model : int
    labels : int
        That it knows, among those that are judged.
    describe : str
        How it describes items.
    figures : dict
        MAP, p@1 and p@5.
    difference : dict of str to Difference, or None
        From the first model, with 95 % intervals; None of the first.
    verdict : {"better", "worse", "alike"} or None
        What the difference in MAP says.
    gained, lost : tuple of Moved
        The labels that moved most, weighed by their items.
    """

    model: int
    labels: int
    describe: str
    figures: dict[str, float]
    difference: dict[str, Difference] | None
    verdict: str | None
    gained: tuple[Moved, ...]
    lost: tuple[Moved, ...]


class Comparison(NamedTuple):
    """Models side by side.

    Attributes
    ----------
    items, labels, tags : int
        What they are judged by; labels that none of them knows are left out.
    models : tuple of Beside
    told : tuple of str
        What else is to be known: items that are not counted, and why.
    """

    items: int
    labels: int
    tags: int
    models: tuple[Beside, ...]
    told: tuple[str, ...]


def compare(
    collection: Collection,
    numbers: Sequence[int],
    *,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> Comparison:
    """Judge models by the items that were held out from all of them, with the tags that these have now.

    Parameters
    ----------
    collection : Collection
    numbers : sequence of int
        Two models or more; the others are compared with the first.
    executor : Executor or None
        Where items are described that have no row.
    progress : Progress

    Raises
    ------
    InputError
        Fewer than two models or more than `MOST`, one twice, one that is not there or damaged, or no item with a tag
        was held out from all of them.
    """
    if not 2 <= len(numbers) <= MOST or len(set(numbers)) < len(numbers):
        asked = ", ".join(map(str, numbers)) or "none"
        raise InputError(f"models to compare: {asked}; give two to {MOST} different ones")
    models = [open_model(collection, number) for number in numbers]
    with reading(collection.engine) as connection:
        examples = read_examples(connection)
        now = [model.labels_now(connection) for model in models]
    whole = exam_of(examples, models, now)
    exam, rows = _rows(collection, models, whole, executor, progress)
    lost = len(whole.hashes) - len(exam.hashes)
    if not len(exam.items) and lost:
        raise rescan_error(collection.folder, f"none of the {lost:,} held-out items can be read as it was scanned")
    if not len(exam.items):
        raise InputError("no item with a tag was held out from all of these models; tag some more items")
    seen = int((examples.held_out & ~examples.unjudged).sum()) - len(whole.hashes)
    found = []
    with progress.stage("judging", len(models), "models") as stage:
        for one in zip(models, now, rows, strict=True):
            found.append(evaluation_of(*one, exam))
            stage.advance(1)
    return Comparison(
        items=found[0].n_rows,
        labels=len(exam.labels),
        tags=int((exam.Y > 0).sum()),
        models=tuple(
            _beside(model, np.isin(exam.labels, columns), one, found[0], exam)
            for model, columns, one in zip(models, now, found, strict=True)
        ),
        told=tuple(_told(models, seen, lost)),
    )


def as_json(found: Comparison) -> dict[str, Any]:
    """The same as a document."""
    return found._asdict() | {"models": [_beside_as_json(one) for one in found.models], "told": list(found.told)}


def _beside_as_json(one: Beside) -> dict[str, Any]:
    gap = None if one.difference is None else {name: value._asdict() for name, value in one.difference.items()}
    moved = {name: [label._asdict() for label in getattr(one, name)] for name in ("gained", "lost")}
    return one._asdict() | {"difference": gap} | moved


def _rows(
    collection: Collection, models: list[OpenModel], exam: Exam, executor: Executor | None, progress: Progress
) -> tuple[Exam, list[Any]]:
    """Rows for every model; those that are gone, or were never made for a description of long ago, are made."""
    stores = stores_of(collection, models)
    missing = any(name not in store.places for store in stores.values() for name in exam.hashes)
    with alone(collection) if missing else nullcontext():
        if missing:
            stores = stores_of(collection, models)
        for store in stores.values():
            describe_missing(collection, store, exam.hashes, executor=executor, progress=progress)
    return with_rows(exam, models, stores)


def _beside(model: OpenModel, known: Any, found: Evaluation, first: Evaluation, exam: Exam) -> Beside:
    gap = None if found is first else differences(found, first)
    moved = [] if found is first else _moved(found, first, exam.names)
    return Beside(
        model=model.number,
        labels=int(known.sum()),
        describe=model.describer.name,
        figures=figures_of(found),
        difference=gap,
        verdict=None if gap is None else verdict(gap["MAP"], found.n_rows),
        gained=tuple(one for one in moved[:_MOVED] if one.after > one.before),
        lost=tuple(one for one in moved[: -_MOVED - 1 : -1] if one.after < one.before),
    )


def _moved(found: Evaluation, first: Evaluation, names: list[str]) -> list[Moved]:
    """Labels of the judged items, those that gained most first."""
    support, after, before = found.labels.support, found.labels.reciprocal_rank, first.labels.reciprocal_rank
    there = np.flatnonzero(support)
    order = there[np.argsort(-(support * (after - before))[there], kind="stable")]
    return [Moved(names[i], int(support[i]), round(float(before[i]), 4), round(float(after[i]), 4)) for i in order]


def _told(models: list[OpenModel], seen: int, lost: int) -> Iterator[str]:
    if len({model.dictionary for model in models}) > 1:
        each = ", ".join(f"model {model.number} by {model.describer.name}" for model in models)
        yield f"items are described in different ways: {each}"
    if seen:
        yield f"not counted: {seen:,} of the items that are held out now, as one of the models has learnt from them"
    if lost:
        yield f"not counted: {lost:,} of the held-out items, as they cannot be read or are not what was scanned"
