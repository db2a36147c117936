"""Learning from what was decided: a model from scratch, or the one in use with what changed since on top of it."""

from shlex import quote
from time import monotonic
from typing import Any, NamedTuple

from sqlalchemy import update

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.catalogue.alone import alone
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.curves import Watch
from wsabie.catalogue.database import reading
from wsabie.catalogue.deciding import model_in_use
from wsabie.catalogue.examples import PERSON_WEIGHT, Examples, read_examples, require_enough
from wsabie.catalogue.fitting import Fitted, Run, corrected, fitted
from wsabie.catalogue.item_index import renew
from wsabie.catalogue.journal import entry
from wsabie.catalogue.judging import (
    differences,
    evaluation_of,
    exam_of,
    figures_of,
    stores_of,
    suggested,
    verdict,
    with_rows,
)
from wsabie.catalogue.planning import How, Plan, parent_of_next, plan
from wsabie.catalogue.probability import save_judged
from wsabie.catalogue.roots import medium_of_collection
from wsabie.catalogue.rows import RowStore, describe_missing, describer_for, keep_describer, opened_rows
from wsabie.catalogue.shelf import OpenModel, open_model
from wsabie.catalogue.shelving import new_folder, put, sweep
from wsabie.catalogue.suggesting import Looked, look
from wsabie.catalogue.tables import models
from wsabie.evaluation.bootstrap import Difference
from wsabie.models.annotator import Annotator
from wsabie.sources.media import PICTURES

MOST_EPOCHS = 10_000


class Learnt(NamedTuple):
    """What a training came to.

    Attributes
    ----------
    model : int
        The one that was made; with "nothing" the one in use.
    used : bool
        It is in use now. If not, `facts["kept_back"]` says why.
    how : {"full", "corrections", "nothing"}
    why : str
        Why so.
    facts : dict
        What was learnt from, with seconds and the curve of the epochs.
    figures : dict
        "items" held out, "now" and "before" (None: there was no model) with MAP, p@1 and p@5 on the same ones, and
        the "difference" of each with its interval.
    looked : Looked or None
        What the new model suggests.
    unreadable, changed : int
        Items with tags that have no row: they cannot be read, or are not what was scanned.
    """

    model: int
    used: bool
    how: How
    why: str
    facts: dict[str, Any]
    figures: dict[str, Any]
    looked: Looked | None
    unreadable: int = 0
    changed: int = 0


def train(
    collection: Collection,
    *,
    by: str,
    full: bool = False,
    describe: str | None = None,
    dim: int = 100,
    epochs: int | None = None,
    even_if_worse: bool = False,
    person_weight: float = PERSON_WEIGHT,
    threads: int | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    watch: Watch = lambda _: None,
) -> Learnt:
    """Learn from what was decided, and put the model into use when everything of it is there.

    Accepted labels are right ones, rejected ones explicitly wrong. Decisions about regions are not learnt from. What
    a model accepted by itself is learnt like an import, and nothing is judged by it. Killed at any moment, this leaves
    the model that was in use. So does a model that does worse than it on the held-out items: it is kept on the shelf.

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
    even_if_worse : bool
        Put the model into use although it does worse than the one before, beyond what may be chance (`verdict`).
    person_weight : float
        How many times an item with a person's tag counts as much as one with imported tags alone.
    threads : int or None
    seed : int
    executor : Executor or None
        Where items are described.
    progress : Progress
    watch : callable
        Called with the figures of every epoch.

    Raises
    ------
    InputError
        There is too little to learn from (the sentence says what is missing), no item can be read, or somebody else
        is training.
    """
    _refuse(person_weight, epochs)
    _refuse_unseen(collection)
    run = Run(epochs, threads, seed, executor, progress, watch)
    with alone(collection):
        begun = monotonic()
        sweep(collection)
        with reading(collection.engine) as connection:
            examples = read_examples(connection, person_weight)
        require_enough(examples, collection.folder)
        parent, lost = parent_of_next(collection)
        store = _store(collection, parent, describe, run)
        how = plan(collection, parent, lost, full=full, dictionary=store.fingerprint, held_to=examples.held_to)
        if how.how == "nothing" and parent is not None:
            return Learnt(parent.number, True, "nothing", how.why, parent.about.facts, parent.about.figures, None)
        missed = describe_missing(collection, store, examples.hashes, executor=executor, progress=progress)
        examples = examples.take([i for i, name in enumerate(examples.hashes) if name in store.places])
        examples = examples._replace(n_absent=examples.n_absent + len(missed.unreadable))
        require_enough(examples, collection.folder, len(missed.changed))
        base = parent if how.how == "corrections" else None
        done = fitted(examples, store, dim, run) if base is None else corrected(base, examples, store, how.changed, run)
        _refuse_no_wrong_label(done, collection)
        facts = _facts(examples, done, how, base, store)
        opened = _saved(collection, examples, done, store, parent, how, facts)
        figures = _judged(collection, examples, store, opened, parent, run)
        facts["kept_back"] = "" if even_if_worse or parent is None else _worse(figures, parent.number)
        looked = look(collection, opened, store, threads=threads, executor=executor, progress=progress)
        renew(collection, opened.path, progress)
        facts |= {"curve": done.curve, "seconds": round(monotonic() - begun, 1)}
        _shelve(collection, opened.number, how, facts, figures, by)
    told = opened.number, not facts["kept_back"], how.how, how.why, facts, figures, looked
    return Learnt(*told, len(missed.unreadable), len(missed.changed))


def _refuse_unseen(collection: Collection) -> None:
    """Refuse things that models of a collection do not describe."""
    things = medium_of_collection(collection)
    if things not in (None, PICTURES.things):
        raise InputError(
            f"models of a collection see pictures, and {collection.folder} holds {things}; to learn from these: "
            f"wsabie train {quote(str(collection.folder))} --model MODEL",
            served=f"models of a collection see pictures, and this one holds {things}",
        )


def _refuse(person_weight: float, epochs: int | None) -> None:
    if not 0 < person_weight <= 1000:
        raise InputError(f"a person's weight of {person_weight:g} cannot be; give a number above 0, such as 2")
    if epochs is not None and not 1 <= epochs <= MOST_EPOCHS:
        raise InputError(f"{epochs} epochs cannot be; give a number from 1 to {MOST_EPOCHS:,}")


def _refuse_no_wrong_label(done: Fitted, collection: Collection) -> None:
    """Refuse a model without probabilities."""
    if done.model.calibration_ is None:
        raise InputError(
            f"the held-out items of {collection.folder} carry all labels, so that nothing tells right suggestions from "
            "wrong ones; tag items that lack some of the labels, then train again"
        )


def _store(collection: Collection, parent: OpenModel | None, describe: str | None, run: Run) -> RowStore:
    """The rows to learn from: those of the model in use, unless another description is asked for."""
    if parent is not None and describe in (None, parent.about.facts["describe"]):
        store = opened_rows(collection, parent.describer)
        if not (store.folder / "describer").is_dir():
            keep_describer(collection, parent.describer)
        return store
    made_by = describer_for(collection, describe, seed=run.seed, executor=run.executor, progress=run.progress)
    return opened_rows(collection, made_by)


def _facts(examples: Examples, done: Fitted, how: Plan, base: OpenModel | None, store: RowStore) -> dict[str, Any]:
    known = {} if base is None else base.about.facts
    return {
        "items": int((~examples.held_out).sum()),
        "labels": len(done.labels),
        "accepted": int((examples.Y.data > 0).sum()),
        "rejected": int((examples.Y.data < 0).sum()),
        "regions_left_out": examples.regions,
        "held_to": examples.held_to,
        "rows_learnt": done.n_rows,
        "epochs": done.n_epochs,
        "best_epoch": done.best,
        "describe": store.describer.name,
        "describer": store.fingerprint,
        "decisions_of_full": known.get("decisions_of_full", int(examples.Y.nnz)),
        "changed_since_full": known.get("changed_since_full", 0) + (len(how.changed) if base is not None else 0),
    }


def _saved(
    collection: Collection,
    examples: Examples,
    done: Fitted,
    store: RowStore,
    parent: OpenModel | None,
    how: Plan,
    facts: dict[str, Any],
) -> OpenModel:
    """Write the folder, then the row, of a model that is not in use yet."""
    told = {"system": "wsabie", "source": collection.folder.name, "fingerprint": None, **facts}
    told["label_ids"] = done.labels.tolist()
    folder = new_folder()
    annotator = Annotator(done.model, store.describer, None, told, store.fingerprint)
    annotator.save(collection.models / folder)
    row = {"folder": folder, "how": how.how, "parent_id": None if parent is None else parent.number, "facts": facts}
    return open_model(collection, put(collection, row | {"learnt_to": examples.learnt_to, "figures": {}}))


def _judged(
    collection: Collection,
    examples: Examples,
    store: RowStore,
    opened: OpenModel,
    parent: OpenModel | None,
    run: Run,
) -> dict[str, Any]:
    """Figures of the model and of the one before on the same items; what it suggests for them is kept beside it."""
    both = [opened] if parent is None else [opened, parent]
    with reading(collection.engine) as connection:
        now = [model.labels_now(connection) for model in both]
    exam = exam_of(examples, both, now)
    if not len(exam.items):  # what the one before never learnt from has no tags any more
        both, now = both[:1], now[:1]
        exam = exam_of(examples, both, now)
    stores = stores_of(collection, both[1:]) | {store.fingerprint: store}
    for one in stores.values():
        describe_missing(collection, one, exam.hashes, executor=run.executor, progress=run.progress)
    exam, rows = with_rows(exam, both, stores)
    save_judged(opened.path, suggested(opened, now[0], rows[0], exam))
    found = [evaluation_of(*one, exam) for one in zip(both, now, rows, strict=True)]
    told: dict[str, Any] = {"items": found[0].n_rows, "labels": len(exam.labels), "now": figures_of(found[0])}
    if len(found) == 1:
        return told | {"before": None, "difference": None}
    gap = {name: one._asdict() for name, one in differences(found[0], found[1]).items()}
    return told | {"before": figures_of(found[1]), "difference": gap}


def _worse(figures: dict[str, Any], before: int) -> str:
    """Why a model is not put into use: in what it does worse; empty where that cannot be said."""
    if figures["difference"] is None:
        return ""
    gap = Difference(**figures["difference"]["MAP"])
    if verdict(gap, figures["items"]) != "worse":
        return ""
    return (
        f"it does worse than model {before} on {figures['items']:,} held-out items: MAP {gap.mean:+.3f} "
        f"[{gap.low:+.3f}, {gap.high:+.3f}]"
    )


def _shelve(
    collection: Collection, number: int, how: Plan, facts: dict[str, Any], figures: dict[str, Any], by: str
) -> None:
    """From one moment to the next the model is whole, and in use unless it is kept back; that can be undone."""
    told = f"model {number} {'in use' if not facts['kept_back'] else 'not put into use'}, "
    told += "from scratch" if how.how == "full" else "learnt from corrections"
    told += f": {facts['kept_back']}" if facts["kept_back"] else ""
    with entry(collection.engine, by, "train", told, always=True) as change:
        change.connection.execute(update(models).where(models.c.id == number).values(facts=facts, figures=figures))
        if not facts["kept_back"]:
            before = model_in_use(change.connection)
            change.set(models, {n: {"in_use": n == number} for n in (before, number) if n is not None})
