"""Decisions about items: which labels fit them and which do not."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import Literal, NamedTuple

from sqlalchemy import Connection, select

from wsabie.collection.db.journal import JournalWriter, Row, format_current_time
from wsabie.collection.db.tables import annotations, models, suggestions
from wsabie.core.errors import InputError

State = Literal["accepted", "rejected"]
Origin = Literal["person", "import", "model"]

_CHUNK = 400


class Decision(NamedTuple):
    """Decision that a label fits an item or not; state None withdraws an earlier one.

    `provenance` holds columns that an import supplies in place of its own: `origin`, `by`, `at`, `model_id`, `score`
    and `probability`.
    """

    item: int
    label: int
    state: State | None
    region: str = ""
    provenance: Row | None = None


class DecisionCounts(NamedTuple):
    """Counts of annotations added, changed and removed, and of persons' decisions that an import kept."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    kept: int = 0


class DecisionResult(NamedTuple):
    """Journal entry, None if nothing changed, and counts of the decisions."""

    entry: int | None
    decided: DecisionCounts


def write_decisions(
    change: JournalWriter, decisions: Iterable[Decision], *, origin: Origin = "person", by: str = ""
) -> DecisionCounts:
    """Write decisions; the last one about the same item, label and region counts.

    Scores and probabilities of the model in use are stored with them. An import never changes a person's decision.

    Parameters
    ----------
    change : JournalWriter
    decisions : iterable of Decision
    origin : {"person", "import", "model"}
    by : str
        The person, or the name of the imported file; by default the author of the journal entry.
    """
    latest = {(d.item, d.label, d.region): d for d in decisions}
    existing = _read_annotations(change.connection, sorted({item for item, _, _ in latest}))
    scores = _read_scores(change.connection, sorted({item for item, _, _ in latest})) if origin != "import" else {}
    added: list[Row] = []
    changed: dict[int, Row] = {}
    removed: list[int] = []
    n_kept = 0
    defaults = {"origin": origin, "by": by or change.by, "at": format_current_time()}
    for key, decision in latest.items():
        row, state, values = existing.get(key), decision.state, defaults | (decision.provenance or {})
        if row is not None and origin == "import" and row["origin"] == "person":
            n_kept += 1
        elif row is None and state is not None:
            model = scores.get(key[:2], _NO_MODEL) if not key[2] else _NO_MODEL
            added.append(
                dict(zip(("item_id", "label_id", "region"), key, strict=True)) | {"state": state} | model | values
            )
        elif row is not None and state is None:
            removed.append(row["id"])
        elif row is not None and (row["state"], row["origin"]) != (state, values["origin"]):
            changed[row["id"]] = {"state": state} | values
    change.remove(annotations, removed)
    change.set(annotations, changed)
    change.add(annotations, added)
    return DecisionCounts(len(added), len(changed), len(removed), n_kept)


def find_model_in_use(connection: Connection) -> int | None:
    """Return the id of the model in use, or None."""
    number: int | None = connection.execute(select(models.c.id).where(models.c.in_use.is_(True))).scalar()
    return number


def make_no_model_error(connection: Connection, folder: str | Path = "DIR") -> InputError:
    """Return the error for a collection without a model in use; it names the next command."""
    is_available = (models.c.removed.is_(False)) & (models.c.figures != {})
    model_ids = connection.execute(select(models.c.id).where(is_available).order_by(models.c.id)).scalars().all()
    subject = "the collection" if folder == "DIR" else folder
    if not model_ids:
        return InputError(
            f"{subject} has no model yet; run: wsabie collection train {quote(str(folder))}",
            served="the collection has no model yet; let one learn, on the page Training",
        )
    status = f"{len(model_ids)} models, and none" if len(model_ids) > 1 else "one model, which is not"
    return InputError(
        f"{subject} has {status} in use; "
        f"to use it: wsabie collection models {quote(str(folder))} --use {model_ids[-1]}",
        served=f"the collection has {status} in use; choose one on the page Training",
    )


_NO_MODEL: Row = {"model_id": None, "score": None, "probability": None}


def _read_annotations(connection: Connection, items: Sequence[int]) -> dict[tuple[int, int, str], Row]:
    rows: dict[tuple[int, int, str], Row] = {}
    a = annotations.c
    columns = (a.id, a.item_id, a.label_id, a.region, a.state, a.origin)
    for lo in range(0, len(items), _CHUNK):
        for row in connection.execute(select(*columns).where(a.item_id.in_(items[lo : lo + _CHUNK]))):
            rows[row.item_id, row.label_id, row.region] = dict(row._mapping)
    return rows


def _read_scores(connection: Connection, items: Sequence[int]) -> dict[tuple[int, int], Row]:
    model = find_model_in_use(connection)
    if model is None:
        return {}
    s, scores = suggestions.c, {}
    columns = (s.item_id, s.label_id, s.score, s.probability)
    for lo in range(0, len(items), _CHUNK):
        query = select(*columns).where(s.model_id == model, s.item_id.in_(items[lo : lo + _CHUNK]))
        for item, label, score, probability in connection.execute(query):
            scores[item, label] = {"model_id": model, "score": score, "probability": probability}
    return scores
