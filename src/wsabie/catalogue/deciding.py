"""What is decided about items: which labels fit them and which do not."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import Literal, NamedTuple

from sqlalchemy import Connection, select

from wsabie.base.errors import InputError
from wsabie.catalogue.journal import Change, Row, now
from wsabie.catalogue.tables import annotations, models, suggestions

State = Literal["accepted", "rejected"]
Origin = Literal["person", "import", "model"]

_AT_ONCE = 400


class Decision(NamedTuple):
    """That a label fits an item or not; state None: as if nothing had been decided.

    `told`: what an import knows of how it was decided elsewhere (`origin`, `by`, `at`, `model_id`, `score`,
    `probability`), in place of that it was imported.
    """

    item: int
    label: int
    state: State | None
    region: str = ""
    told: Row | None = None


class Decided(NamedTuple):
    """What decisions did: annotations that are new, changed, gone; and those of persons that an import left alone."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    kept: int = 0


class Written(NamedTuple):
    """The entry of the journal, if anything changed, and what was decided."""

    entry: int | None
    decided: Decided


def decide(change: Change, decisions: Iterable[Decision], *, origin: Origin = "person", by: str = "") -> Decided:
    """Write down decisions; of several about one thing the last counts.

    What the model in use had suggested is kept with them. An import never changes what a person decided.

    Parameters
    ----------
    change : Change
    decisions : iterable of Decision
    origin : {"person", "import", "model"}
    by : str
        The person, or what was imported; default: who changes.
    """
    wanted = {(d.item, d.label, d.region): d for d in decisions}
    there = _annotations(change.connection, sorted({item for item, _, _ in wanted}))
    suggested = _suggestions(change.connection, sorted({item for item, _, _ in wanted})) if origin != "import" else {}
    added: list[Row] = []
    changed: dict[int, Row] = {}
    removed: list[int] = []
    kept = 0
    usual = {"origin": origin, "by": by or change.by, "at": now()}
    for key, decision in wanted.items():
        before, state, told = there.get(key), decision.state, usual | (decision.told or {})
        if before is not None and origin == "import" and before["origin"] == "person":
            kept += 1
        elif before is None and state is not None:
            model = suggested.get(key[:2], _NOBODY) if not key[2] else _NOBODY
            added.append(
                dict(zip(("item_id", "label_id", "region"), key, strict=True)) | {"state": state} | model | told
            )
        elif before is not None and state is None:
            removed.append(before["id"])
        elif before is not None and (before["state"], before["origin"]) != (state, told["origin"]):
            changed[before["id"]] = {"state": state} | told
    change.remove(annotations, removed)
    change.set(annotations, changed)
    change.add(annotations, added)
    return Decided(len(added), len(changed), len(removed), kept)


def model_in_use(connection: Connection) -> int | None:
    """Its number."""
    number: int | None = connection.execute(select(models.c.id).where(models.c.in_use.is_(True))).scalar()
    return number


def no_model(connection: Connection, folder: str | Path = "DIR") -> InputError:
    """What to say of a collection that has no model in use: the others that are there, and how one is made or used."""
    there = (models.c.removed.is_(False)) & (models.c.figures != {})
    made = connection.execute(select(models.c.id).where(there).order_by(models.c.id)).scalars().all()
    who = "the collection" if folder == "DIR" else folder
    if not made:
        return InputError(
            f"{who} has no model yet; run: wsabie collection train {quote(str(folder))}",
            served="the collection has no model yet; let one learn, on the page Training",
        )
    has = f"{len(made)} models, and none" if len(made) > 1 else "one model, which is not"
    return InputError(
        f"{who} has {has} in use; to use it: wsabie collection models {quote(str(folder))} --use {made[-1]}",
        served=f"the collection has {has} in use; choose one on the page Training",
    )


_NOBODY: Row = {"model_id": None, "score": None, "probability": None}


def _annotations(connection: Connection, items: Sequence[int]) -> dict[tuple[int, int, str], Row]:
    found: dict[tuple[int, int, str], Row] = {}
    a = annotations.c
    columns = (a.id, a.item_id, a.label_id, a.region, a.state, a.origin)
    for lo in range(0, len(items), _AT_ONCE):
        for row in connection.execute(select(*columns).where(a.item_id.in_(items[lo : lo + _AT_ONCE]))):
            found[row.item_id, row.label_id, row.region] = dict(row._mapping)
    return found


def _suggestions(connection: Connection, items: Sequence[int]) -> dict[tuple[int, int], Row]:
    model = model_in_use(connection)
    if model is None:
        return {}
    s, found = suggestions.c, {}
    columns = (s.item_id, s.label_id, s.score, s.probability)
    for lo in range(0, len(items), _AT_ONCE):
        query = select(*columns).where(s.model_id == model, s.item_id.in_(items[lo : lo + _AT_ONCE]))
        for item, label, score, probability in connection.execute(query):
            found[item, label] = {"model_id": model, "score": score, "probability": probability}
    return found
