"""Decisions that labels fit items or do not: accept, reject and clear."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import Literal, NamedTuple

from sqlalchemy import Connection, select

from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import JournalWriter, Row, begin_entry, format_current_time
from wsabie.collection.db.tables import annotations, items, models, roots, suggestions
from wsabie.collection.folder.collection import COLLECTION_ROOT, Collection
from wsabie.collection.labels import label_store
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
    change.update(annotations, changed)
    change.add(annotations, added)
    return DecisionCounts(len(added), len(changed), len(removed), n_kept)


def find_model_in_use(connection: Connection) -> int | None:
    """Return the id of the model in use, or None."""
    number: int | None = connection.execute(select(models.c.id).where(models.c.in_use.is_(True))).scalar()
    return number


def make_no_model_error(connection: Connection, folder: str | Path = "DIR") -> InputError:
    """Return the error for a collection without a model in use; it names the next command."""
    is_available = (models.c.is_removed.is_(False)) & (models.c.figures != {})
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


class TaggingResult(NamedTuple):
    """Counts of the decisions and names of new labels."""

    decided: DecisionCounts
    new: list[str]


def tag_items(
    collection: Collection,
    numbers: Sequence[int],
    *,
    accept: Iterable[str] = (),
    reject: Iterable[str] = (),
    clear: Iterable[str] = (),
    by: str,
) -> TaggingResult:
    """Decide labels of items in one journal entry.

    Parameters
    ----------
    collection : Collection
    numbers : sequence of int
        Item ids.
    accept, reject, clear : iterable of str
        Labels that fit all items, that fit none of them, and whose decisions are withdrawn. Accepted labels may be new.
    by : str

    Raises
    ------
    InputError
        An item or label is unknown, or one label is listed for two of these.
    """
    names_by_state: dict[State | None, list[str]] = {
        "accepted": [label_store.normalise_name(name) for name in accept],
        "rejected": [label_store.normalise_name(name) for name in reject],
        None: [label_store.normalise_name(name) for name in clear],
    }
    all_names = [name for names in names_by_state.values() for name in names]
    summary = ", ".join(f"{_SIGN[state]}{name}" for state, names in names_by_state.items() for name in names)
    with begin_entry(
        collection.engine, by, "tag", f"{len(numbers):,} {'item' if len(numbers) == 1 else 'items'}: {summary}"
    ) as change:
        _refuse_unknown(change.connection, numbers)
        existing = label_store.find_labels(change.connection, names_by_state["accepted"])
        label_ids = label_store.ensure_labels(change, names_by_state["accepted"]) | {
            name: label_store.find_label(change.connection, name)
            for name in [*names_by_state["rejected"], *names_by_state[None]]
        }
        duplicates = [name for name in all_names if [label_ids[n] for n in all_names].count(label_ids[name]) > 1]
        if len({state for state, names in names_by_state.items() for name in names if name in duplicates}) > 1:
            raise InputError(f"{duplicates[0]!r} cannot be accepted, rejected and cleared at once; choose one")
        decisions = [
            Decision(item, label_ids[name], state)
            for item in numbers
            for state, names in names_by_state.items()
            for name in names
        ]
        counts = write_decisions(change, decisions)
    return TaggingResult(counts, [name for name in dict.fromkeys(names_by_state["accepted"]) if name not in existing])


def find_items(collection: Collection, names: Sequence[str], base_folder: Path) -> list[int]:
    """Return the ids of items that are named by id, path or address.

    Parameters
    ----------
    collection : Collection
    names : sequence of str
        An integer is an item id; anything else is a path, relative to `base_folder` or to a root, or an address.
    base_folder : Path
        Folder that relative paths start in.

    Raises
    ------
    InputError
        There is no such item.
    """
    with begin_read(collection.engine) as connection:
        folders = {number: str(path) for number, path in connection.execute(select(roots.c.id, roots.c.path))}
        return [_resolve_item(collection, connection, folders, name, base_folder) for name in names]


_SIGN: dict[State | None, str] = {"accepted": "+", "rejected": "-", None: "?"}


def _resolve_item(
    collection: Collection, connection: Connection, folders: dict[int, str], name: str, base_folder: Path
) -> int:
    if name.isascii() and name.isdigit() and len(name) < 18:
        return int(name)
    full_path = (base_folder / name).absolute()
    candidates = [(number, name) for number in folders]
    paths = [full_path]
    for number, root_path in folders.items():
        root = collection.folder if root_path == COLLECTION_ROOT else Path(root_path)
        paths.append(root / name)
        for spelling in (full_path, full_path.parent.resolve() / full_path.name):
            if spelling.is_relative_to(root):
                candidates.insert(0, (number, spelling.relative_to(root).as_posix()))
    for number, path in candidates:
        query = select(items.c.id).where(items.c.root_id == number, items.c.path == path)
        if (item := connection.execute(query).scalar()) is not None:
            return int(item)
    if (inside := next((root_path for root_path in paths if root_path.is_dir()), None)) is not None:
        raise InputError(f"{name!r} is a folder; name the files in it, such as {inside}/*.jpg")
    raise InputError(f"{name!r} is no item of {collection.folder}; scan its folder first, or give an item's number")


def _refuse_unknown(connection: Connection, numbers: Sequence[int]) -> None:
    unknown = set(numbers)
    if not unknown:
        raise InputError("give the items to tag, by path or number")
    for lo in range(0, len(numbers), _CHUNK):
        query = select(items.c.id).where(items.c.id.in_(numbers[lo : lo + _CHUNK]))
        unknown -= set(connection.execute(query).scalars())
    if unknown:
        raise InputError(f"there is no item number {min(unknown)}; `wsabie collection status` tells what there is")
