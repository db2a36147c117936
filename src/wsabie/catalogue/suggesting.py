"""A model looks at items: what it suggests, how sure it is, and where the items lie in its space."""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, delete, insert, select

from wsabie.base.arrays import Int64
from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.catalogue.alone import alone
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading, writing
from wsabie.catalogue.deciding import Decided, Decision, Written, decide
from wsabie.catalogue.item_index import renew
from wsabie.catalogue.journal import entry, now
from wsabie.catalogue.points import Points, load_points, mark_of, save_points
from wsabie.catalogue.probability import Threshold
from wsabie.catalogue.ranking import Ranking, Top
from wsabie.catalogue.rows import RowStore, describe_missing, opened_rows
from wsabie.catalogue.shelf import OpenModel, open_model
from wsabie.catalogue.tables import annotations, items, suggestions, views

TOP = 10
"""Suggestions of an item, at most."""
FLOOR = 0.01
"""Less probable labels are not suggested."""

_BLOCK = 1000  # items in a transaction
_LISTED = 1000  # items that no tag fits, in an answer


class Looked(NamedTuple):
    """What a look at items came to; `unreadable` and `changed` items have no row."""

    items: int
    suggestions: int
    unreadable: int
    changed: int


class Fitting(NamedTuple):
    """Items whose best suggestion is good enough, and those that no tag fits (some of their numbers)."""

    precision: float
    probability: float | None
    labels_of_their_own: int
    items: int
    none: int
    none_listed: list[int]


class Applied(NamedTuple):
    """What applying a model did."""

    model: int
    looked: Looked
    fitting: Fitting | None
    accepted: Decided | None


def apply(
    collection: Collection,
    *,
    by: str,
    again: bool = False,
    k: int = TOP,
    floor: float = FLOOR,
    min_precision: float | None = None,
    accept_above: float | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> Applied:
    """Let the model in use look at the items that it has not seen, or whose content is another now.

    Parameters
    ----------
    collection : Collection
    by : str
        Who does it, for the journal.
    again : bool
        Look at all items, for what was decided or merged since.
    k, floor : int, float
        Suggestions of an item at most, and the least probability.
    min_precision : float or None
        Tell which items have a suggestion that is right that often, and which have none: no tag fits them.
    accept_above : float or None
        Accept the suggestions from this probability on, as one entry of the journal.
    threads : int or None
    executor : Executor or None
        Where items are described.
    progress : Progress

    Raises
    ------
    InputError
        There is no model, a number is out of range, or somebody else trains or applies.
    """
    _refuse(floor=floor, accept_above=accept_above)
    with alone(collection):
        opened = open_model(collection)
        sure = None if min_precision is None else opened.threshold(min_precision)
        store = opened_rows(collection, opened.annotator.terms)  # type: ignore[arg-type]  # it describes items
        looked = look(collection, opened, store, again=again, k=k, floor=floor, threads=threads, executor=executor,
                      progress=progress)  # fmt: skip
        renew(collection, opened.path, progress)
        if looked.items:  # suggestions are what a model says of items: told, and not undone
            told = f"model {opened.number} looked at {looked.items:,} items and suggests {looked.suggestions:,} labels"
            with entry(collection.engine, by, "apply", told, always=True):
                pass
    fitting = None if sure is None else fitted(collection, opened.number, sure)
    accepted = None if accept_above is None else accept(collection, opened.number, accept_above, by=by).decided
    return Applied(opened.number, looked, fitting, accepted)


def look(
    collection: Collection,
    opened: OpenModel,
    store: RowStore,
    *,
    again: bool = False,
    k: int = TOP,
    floor: float = FLOOR,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> Looked:
    """As `apply` does, with what it opens; whoever calls holds the lock. Killed, it goes on where it was."""
    points = load_points(opened.path, opened.model.dim)
    numbers, hashes = _to_see(collection, opened.number, points, again)
    missed = describe_missing(collection, store, hashes, executor=executor, progress=progress)
    with reading(collection.engine) as connection:
        ranking = Ranking(opened, opened.labels_now(connection))
    seen: list[Points] = []
    written = 0
    stage = progress.stage("suggesting", len(numbers), "items") if len(numbers) else nullcontext()
    with stage as bar:
        for lo in range(0, len(numbers), _BLOCK):
            some, theirs = numbers[lo : lo + _BLOCK], hashes[lo : lo + _BLOCK]
            X, found = store.matrix(theirs)
            if found.any():
                own = some[found]
                marks = [mark_of(name) for name, there in zip(theirs, found, strict=True) if there]
                part = Points(own, np.array(marks, np.uint64), opened.model.transform(X))
                written += _write(collection, opened, ranking, part, k, floor, threads)
                seen.append(part)
            if bar is not None:
                bar.advance(len(some))
    if seen:
        together = Points(*(np.concatenate(column) for column in zip(*seen, strict=True)))
        save_points(opened.path, points.with_others(together))
    return Looked(sum(len(part.items) for part in seen), written, len(missed.unreadable), len(missed.changed))


def accept(collection: Collection, model: int, above: float, *, by: str, label: int | None = None) -> Written:
    """Accept what the model in use suggests from a probability on and nobody decided; `undo` takes it all back."""
    s = suggestions.c
    total = Decided()
    with entry(collection.engine, by, "accept") as change:
        query = waiting(model, above, label).order_by(s.item_id, s.label_id)
        pairs = change.connection.execute(query).all()
        for lo in range(0, len(pairs), 10 * _BLOCK):
            wanted = [Decision(item, label, "accepted") for item, label in pairs[lo : lo + 10 * _BLOCK]]
            done = decide(change, wanted, origin="model", by=f"model {model}")
            total = Decided(*map(sum, zip(total, done, strict=True)))
        change.told = f"{total.added:,} suggestions of model {model} from {above:g} on accepted"
    return Written(change.id if total.added else None, total)


def fitted(collection: Collection, model: int, sure: Threshold) -> Fitting:
    """Which items without a tag have a suggestion that is sure enough, and which have none."""
    s, a = suggestions.c, annotations.c
    tagged = select(a.id).where(a.item_id == views.c.item_id, a.state == "accepted").exists()
    there = select(items.c.id).where(items.c.id == views.c.item_id, items.c.state == "present").exists()
    seen = select(views.c.item_id).where(views.c.model_id == model, there, ~tagged).order_by(views.c.item_id)
    least = min([sure.of(label) for label in sure.own] + [sure.of(-1)])
    query = select(s.item_id, s.label_id, s.probability)
    query = query.where(s.model_id == model, s.probability >= least, ~_decided())
    with reading(collection.engine) as connection:
        good = {item for item, label, p in connection.execute(query) if p >= sure.of(label)}
        none = [item for item in connection.execute(seen).scalars() if item not in good]
    return Fitting(sure.precision, sure.common, len(sure.own), len(good), len(none), none[:_LISTED])


def _refuse(**shares: float | None) -> None:
    for name, share in shares.items():
        if share is not None and not 0 <= share <= 1:
            raise InputError(f"{name} is {share:g}; give a probability from 0 to 1")


def waiting(model: int, above: float, label: int | None = None) -> Any:
    """The query for items and labels that a model suggests from a probability on and of which nothing is decided."""
    s = suggestions.c
    query = select(s.item_id, s.label_id).where(s.model_id == model, s.probability >= above, ~_decided())
    present = select(items.c.id).where(items.c.id == s.item_id, items.c.state == "present").exists()
    return query.where(present) if label is None else query.where(present, s.label_id == label)


def _decided() -> Any:
    a, s = annotations.c, suggestions.c
    same = (a.item_id == s.item_id) & (a.label_id == s.label_id) & (a.region == "")
    return select(a.id).where(same).exists()


def _to_see(collection: Collection, model: int, points: Points, again: bool) -> tuple[Int64, list[str]]:
    """Numbers and contents of the items that the model has not seen, as they are now."""
    seen = select(views.c.item_id).where(views.c.model_id == model, views.c.item_id == items.c.id).exists()
    query = select(items.c.id, items.c.hash, seen).where(items.c.state == "present", items.c.hash.is_not(None))
    numbers: list[int] = []
    hashes: list[str] = []
    with reading(collection.engine) as connection:
        rows = connection.execution_options(yield_per=10 * _BLOCK).execute(query.order_by(items.c.id))
        for part in rows.partitions():
            ids = np.array([row[0] for row in part], np.int64)
            there = points.has(ids, np.array([mark_of(row[1]) for row in part], np.uint64))
            for row, known in zip(part, there, strict=True):
                if again or not known or not row[2]:
                    numbers.append(row[0])
                    hashes.append(row[1])
    return np.array(numbers, np.int64), hashes


def _write(
    collection: Collection, opened: OpenModel, ranking: Ranking, part: Points, k: int, floor: float, threads: int | None
) -> int:
    """Rank the labels of some items and write it down; how many suggestions there are."""
    model, numbers = opened.number, part.items.tolist()
    with reading(collection.engine) as connection:
        decided = list(_pairs(connection, numbers))
    at = {number: place for place, number in enumerate(numbers)}
    exclude = ranking.excluded(((at[item], label) for item, label in decided), len(numbers)) if decided else None
    top = ranking.top(part.points, k, exclude, threads)
    told = list(_told(model, numbers, top, floor))
    doubt = np.minimum(top.probabilities, 1 - top.probabilities).max(axis=1)
    seen = [
        {"model_id": model, "item_id": number, "best": best, "doubt": unsure, "surest": surest}
        for number, best, unsure, surest in zip(
            numbers, top.probabilities[:, 0].tolist(), doubt.tolist(), _surest(opened, top, floor), strict=True
        )
    ]
    with writing(collection.engine) as connection:
        there = set(opened.labels_now(connection).tolist())  # without those that were deleted since the look began
        told = [row for row in told if row["label_id"] in there]
        for table in (suggestions, views):
            for lo in range(0, len(numbers), 500):
                old = table.c.item_id.in_(numbers[lo : lo + 500])
                connection.execute(delete(table).where(table.c.model_id == model, old))
        if told:
            connection.execute(insert(suggestions), told)
        connection.execute(insert(views).values(at=now()), seen)
    return len(told)


def _surest(opened: OpenModel, top: Top, floor: float) -> list[float | None]:
    """How often the surest suggestion of each item is right; None where it is not known any more."""
    try:
        sureness = opened.sureness
    except InputError:
        return [None] * len(top.labels)
    found = sureness.of(top.labels.ravel(), top.probabilities.ravel()).reshape(top.labels.shape)
    shown = (top.labels >= 0) & (top.probabilities >= floor)
    surest: list[float | None] = np.where(shown, found, 0.0).max(axis=1).tolist()
    return surest


def _told(model: int, numbers: list[int], top: Top, floor: float) -> Iterator[dict[str, Any]]:
    for place, rank in zip(*np.nonzero((top.labels >= 0) & (top.probabilities >= floor)), strict=True):
        yield {
            "model_id": model,
            "item_id": numbers[place],
            "label_id": int(top.labels[place, rank]),
            "score": float(top.scores[place, rank]),
            "probability": float(top.probabilities[place, rank]),
        }


def _pairs(connection: Connection, numbers: list[int]) -> Iterator[tuple[int, int]]:
    a = annotations.c
    for lo in range(0, len(numbers), 500):
        query = select(a.item_id, a.label_id).where(a.item_id.in_(numbers[lo : lo + 500]), a.region == "")
        yield from ((row[0], row[1]) for row in connection.execute(query))
