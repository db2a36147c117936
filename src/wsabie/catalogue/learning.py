"""Learning from what was decided: a model from scratch, or the one in use with what changed since on top of it."""

from time import monotonic
from typing import Any, Literal, NamedTuple

from sqlalchemy import update

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.catalogue.alone import alone
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading, writing
from wsabie.catalogue.deciding import model_in_use
from wsabie.catalogue.examples import (
    PERSON_WEIGHT,
    Examples,
    changed_since,
    hashes_of,
    read_examples,
    require_enough,
)
from wsabie.catalogue.fitting import Fitted, Run, corrected, fitted, judged_by
from wsabie.catalogue.journal import entry
from wsabie.catalogue.probability import save_judged
from wsabie.catalogue.rows import RowStore, describe_missing, describer_for, keep_describer, opened_rows
from wsabie.catalogue.shelf import OpenModel, new_folder, open_model, put, sweep
from wsabie.catalogue.suggesting import Looked, look
from wsabie.catalogue.tables import models
from wsabie.models.annotator import Annotator

SMALL = 0.2
"""Share of the decisions that a model from scratch knew: as many may change before there is another from scratch."""
_SMALL_ANYWAY = 20


class Learnt(NamedTuple):
    """What a training came to.

    Attributes
    ----------
    model : int
        The one in use now.
    how : {"full", "corrections", "nothing"}
    why : str
        Why so.
    facts : dict
        What was learnt from, with seconds.
    figures : dict
        "items" held out, "now" and "before" (None: there was no model) with MAP, p@1 and p@5 on the same ones.
    looked : Looked or None
        What the new model suggests.
    unreadable, changed : int
        Items with tags that have no row: they cannot be read, or are not what was scanned.
    """

    model: int
    how: Literal["full", "corrections", "nothing"]
    why: str
    facts: dict[str, Any]
    figures: dict[str, Any]
    looked: Looked | None
    unreadable: int = 0
    changed: int = 0


class _Plan(NamedTuple):
    how: Literal["full", "corrections", "nothing"]
    why: str
    changed: frozenset[str] = frozenset()  # contents


def train(
    collection: Collection,
    *,
    by: str,
    full: bool = False,
    describe: str | None = None,
    dim: int = 100,
    epochs: int | None = None,
    person_weight: float = PERSON_WEIGHT,
    threads: int | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> Learnt:
    """Learn from what was decided, and put the model into use when everything of it is there.

    Accepted labels are right ones, rejected ones explicitly wrong. Decisions about regions are not learnt from. What
    a model accepted by itself is learnt like an import, and nothing is judged by it. Killed at any moment, this leaves
    the model that was in use.

    Parameters
    ----------
    collection : Collection
    by : str
        Who does it, for the journal.
    full : bool
        Train from scratch. Otherwise a model in use goes on with what changed, as long as that is little (`SMALL`).
    describe : str or None
        How items are described, as `wsabie train --describe` takes it; None: as before, or by visual terms.
    dim : int
        Dimensions of the space, of a model from scratch.
    epochs : int or None
        None: as many as `Wsabie` finds right, or 5 on top of a model; the held-out items choose the best.
    person_weight : float
        How many times an item with a person's tag counts as much as one with imported tags alone.
    threads : int or None
    seed : int
    executor : Executor or None
        Where items are described.
    progress : Progress

    Raises
    ------
    InputError
        There is too little to learn from (the sentence says what is missing), no item can be read, or somebody else
        is training.
    """
    if not 0 < person_weight <= 1000:
        raise InputError(f"a person's weight of {person_weight:g} cannot be; give a number above 0, such as 2")
    with alone(collection):
        begun = monotonic()
        sweep(collection)
        with reading(collection.engine) as connection:
            examples = read_examples(connection, person_weight)
        require_enough(examples, collection.folder)
        parent, lost = _in_use(collection)
        store = _store(collection, parent, describe, seed, executor, progress)
        plan = _plan(collection, parent, lost, store, full)
        if plan.how == "nothing" and parent is not None:
            return Learnt(parent.number, "nothing", plan.why, parent.about.facts, parent.about.figures, None)
        missed = describe_missing(collection, store, examples.hashes, executor=executor, progress=progress)
        examples = examples.take([i for i, name in enumerate(examples.hashes) if name in store.places])
        require_enough(examples, collection.folder)
        base = parent if plan.how == "corrections" else None
        run = Run(epochs, threads, seed, progress)
        done = (
            fitted(examples, store, dim, run) if base is None else corrected(base, examples, store, plan.changed, run)
        )
        facts = _facts(examples, done, plan, base, store, begun)
        opened, figures = _saved(collection, examples, done, store, parent, plan.how, facts)
        looked = look(collection, opened, store, threads=threads, executor=executor, progress=progress)
        facts["seconds"] = round(monotonic() - begun, 1)
        _put_in_use(collection, opened.number, plan, facts, figures, by)
    return Learnt(
        opened.number, plan.how, plan.why, facts, figures, looked, len(missed.unreadable), len(missed.changed)
    )


def _in_use(collection: Collection) -> tuple[OpenModel | None, str]:
    """The model in use, and why it cannot be used if it cannot."""
    with reading(collection.engine) as connection:
        number = model_in_use(connection)
    if number is None:
        return None, "there is no model in use yet"
    try:
        return open_model(collection, number), ""
    except InputError as error:
        return None, str(error)


def _store(
    collection: Collection,
    parent: OpenModel | None,
    describe: str | None,
    seed: int,
    executor: Executor | None,
    progress: Progress,
) -> RowStore:
    """The rows to learn from: those of the model in use, unless another description is asked for."""
    if parent is not None and parent.annotator.terms is not None and describe in (None, parent.about.facts["describe"]):
        made_by = parent.annotator.terms
        store = opened_rows(collection, made_by)
        if not (store.folder / "describer").is_dir():
            keep_describer(collection, made_by)
        return store
    return opened_rows(collection, describer_for(collection, describe, seed=seed, executor=executor, progress=progress))


def _plan(collection: Collection, parent: OpenModel | None, lost: str, store: RowStore, full: bool) -> _Plan:
    """From scratch or on top of the model in use, and why."""
    if full or parent is None:
        return _Plan("full", "as asked" if full else lost)
    if parent.annotator.dictionary != store.fingerprint:
        return _Plan("full", "items are described in another way than before")
    facts, number = parent.about.facts, parent.number
    most = int(max(_SMALL_ANYWAY, SMALL * facts["decisions_of_full"])) - facts["changed_since_full"]
    with reading(collection.engine) as connection:
        items = changed_since(connection, parent.about.learnt_to, max(most, 0))
        changed = frozenset(hashes_of(connection, items or set()))
    if items is None:
        return _Plan("full", "much was decided since the last training from scratch")
    if not items:
        return _Plan("nothing", f"nothing was decided since model {number} learnt; --full trains anyway")
    return _Plan("corrections", f"{len(items):,} items were decided about since model {number} learnt", changed)


def _facts(
    examples: Examples, done: Fitted, plan: _Plan, base: OpenModel | None, store: RowStore, begun: float
) -> dict[str, Any]:
    known = {} if base is None else base.about.facts
    decisions = int(examples.Y.nnz)
    return {
        "items": int((~examples.held_out).sum()),
        "labels": len(done.labels),
        "accepted": int((examples.Y.data > 0).sum()),
        "rejected": int((examples.Y.data < 0).sum()),
        "regions_left_out": examples.regions,
        "rows_learnt": done.n_rows,
        "epochs": done.n_epochs,
        "describe": store.describer.name,
        "describer": store.fingerprint,
        "decisions_of_full": known.get("decisions_of_full", decisions),
        "changed_since_full": known.get("changed_since_full", 0) + (len(plan.changed) if base is not None else 0),
        "seconds": round(monotonic() - begun, 1),
    }


def _saved(
    collection: Collection,
    examples: Examples,
    done: Fitted,
    store: RowStore,
    parent: OpenModel | None,
    how: str,
    facts: dict[str, Any],
) -> tuple[OpenModel, dict[str, Any]]:
    """Write the folder, then the row, of a model that is not in use yet."""
    told = {"system": "wsabie", "source": collection.folder.name, "fingerprint": None, **facts}
    told["label_ids"] = done.labels.tolist()
    folder = new_folder()
    annotator = Annotator(done.model, store.describer, None, told, store.fingerprint)
    annotator.save(collection.models / folder)
    row = {"folder": folder, "how": how, "parent_id": None if parent is None else parent.number, "facts": facts}
    number = put(collection, row | {"learnt_to": examples.learnt_to, "figures": {}})
    opened = open_model(collection, number)
    with reading(collection.engine) as connection:
        now = opened.labels_now(connection)
        before = None if parent is None else parent.labels_now(connection)
    figures, judged = judged_by(examples, store, opened, now, parent, before)
    save_judged(opened.path, judged)
    return opened, figures


def _put_in_use(
    collection: Collection, number: int, plan: _Plan, facts: dict[str, Any], figures: dict[str, Any], by: str
) -> None:
    """From one moment to the next, as an entry that can be undone."""
    with writing(collection.engine) as connection:
        connection.execute(update(models).where(models.c.id == number).values(facts=facts, figures=figures))
    told = f"model {number} in use, {'from scratch' if plan.how == 'full' else 'learnt from corrections'}"
    with entry(collection.engine, by, "train", told) as change:
        before = model_in_use(change.connection)
        change.set(models, {n: {"in_use": n == number} for n in (before, number) if n is not None})
