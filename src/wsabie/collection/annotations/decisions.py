"""Decisions that labels fit items or do not: accept, reject, clear."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from sqlalchemy import Connection, FromClause, exists, select

from wsabie.collection.db.database import begin_read, select_in
from wsabie.collection.db.errors import format_step
from wsabie.collection.db.journal import JournalWriter, Row, begin_entry, format_current_time
from wsabie.collection.db.tables import Condition, annotations, items, models, roots, suggestions
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.core.errors import InputError, NotFoundError, require
from wsabie.io.file_matching import list_relative_paths
from wsabie.io.regions import parse_region

State = Literal["accepted", "rejected"]
Origin = Literal["person", "import", "model"]
KnownState = Literal["open", "accepted", "rejected"]
_NO_MODEL: Row = {"model_id": None, "score": None, "probability": None}
_SIGN: dict[State | None, str] = {"accepted": "+", "rejected": "-", None: "?"}
_MAX_LISTED_LABELS = 3  # labels in the summary of a review


class Decision(NamedTuple):
    """Decision that a label fits an item or not; state None withdraws an earlier one.

    Nothing is decided where the state is another than `expected`; None expects nothing.
    `provenance` holds columns that an import supplies in place of its own: `origin`, `by`, `at`, `model_id`, `score`
    and `probability`.
    """

    item: int
    label: int
    state: State | None
    region: str = ""
    provenance: Row | None = None
    expected: KnownState | None = None


class DecisionCounts(NamedTuple):
    """Counts of annotations added, changed, removed, and left alone since a person decided them."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    kept_by_person: int = 0


class DecisionResult(NamedTuple):
    """Journal entry, None if nothing changed, counts of the decisions, and names of new labels."""

    entry: int | None
    counts: DecisionCounts
    new_labels: Sequence[str] = ()


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
    item_ids = sorted({item for item, _, _ in latest})
    existing = _read_annotations(change.connection, item_ids)
    scores = _read_scores(change.connection, item_ids) if origin != "import" else {}
    added: list[Row] = []
    changed: dict[int, Row] = {}
    removed: list[int] = []
    n_kept = 0
    defaults = {"origin": origin, "by": by or change.by, "at": format_current_time()}
    for key, decision in latest.items():
        row, state, values = existing.get(key), decision.state, defaults | (decision.provenance or {})
        if decision.expected not in (None, row["state"] if row else "open"):
            continue
        if row is not None and origin == "import" and row["origin"] == "person":
            n_kept += 1
        elif row is None and state is not None:
            item, label, region = key
            model = _NO_MODEL if region else scores.get((item, label), _NO_MODEL)
            added.append({"item_id": item, "label_id": label, "region": region, "state": state} | model | values)
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
    model_id: int | None = connection.scalar(select(models.c.id).where(models.c.in_use.is_(True)))
    return model_id


def require_model(connection: Connection, folder: str | Path = "DIR") -> int:
    """Return the id of the model in use, or raise the error of `make_no_model_error`."""
    if (model_id := find_model_in_use(connection)) is None:
        raise make_no_model_error(connection, folder)
    return model_id


def make_no_model_error(connection: Connection, folder: str | Path = "DIR") -> InputError:
    """Return the error for a collection without a model in use; it names the next step."""
    is_available = (models.c.is_removed.is_(False)) & (models.c.figures != {})
    model_ids = connection.scalars(select(models.c.id).where(is_available).order_by(models.c.id)).all()
    if not model_ids:
        return _hide_folder(f"has no model yet; run: {format_step('train', folder)}", folder)
    status = f"{len(model_ids)} models, and none" if len(model_ids) > 1 else "one model, which is not"
    step = format_step("models", folder, use=model_ids[-1])
    return _hide_folder(f"has {status} in use; to use it: {step}", folder)


def _hide_folder(fact: str, folder: str | Path) -> InputError:
    web_message = f"the collection {fact}"
    return InputError(web_message if folder == "DIR" else f"{folder} {fact}", web_message=web_message)


def has_decision(table: FromClause = suggestions) -> Condition:
    """Return the condition that the label of a suggestion was accepted or rejected for its whole item."""
    a, s = annotations.c, table.c
    return exists().where(a.item_id == s.item_id, a.label_id == s.label_id, a.region == "")


def _read_annotations(connection: Connection, item_ids: Sequence[int]) -> dict[tuple[int, int, str], Row]:
    a = annotations.c
    query = select(a.id, a.item_id, a.label_id, a.region, a.state, a.origin)
    rows = select_in(connection, query, a.item_id, item_ids)
    return {(row.item_id, row.label_id, row.region): dict(row._mapping) for row in rows}


def _read_scores(connection: Connection, item_ids: Sequence[int]) -> dict[tuple[int, int], Row]:
    s = suggestions.c
    query = select(s.item_id, s.label_id, s.model_id, s.score, s.probability)
    rows = select_in(connection, query.where(s.model_id == find_model_in_use(connection)), s.item_id, item_ids)
    return {(item, label): dict(zip(_NO_MODEL, columns, strict=True)) for item, label, *columns in rows}


def tag_items(
    collection: Collection,
    item_ids: Sequence[int],
    *,
    accept: Iterable[str] = (),
    reject: Iterable[str] = (),
    clear: Iterable[str] = (),
    by: str,
) -> DecisionResult:
    """Decide labels of items in one journal entry.

    Parameters
    ----------
    collection : Collection
    item_ids : sequence of int
        Item ids.
    accept, reject, clear : iterable of str
        Labels that fit all items, that fit none of them, and whose decisions are withdrawn. Accepted labels may be new.
    by : str

    Raises
    ------
    InputError
        An item or label is unknown, or one label is listed for two of these.
    """
    names_by_state: dict[State | None, Iterable[str]] = {"accepted": accept, "rejected": reject, None: clear}
    pairs = [(state, label_store.normalise_name(name)) for state, names in names_by_state.items() for name in names]
    summary = ", ".join(f"{_SIGN[state]}{name}" for state, name in pairs)
    require(bool(item_ids), "give the items to tag, by path or id")
    with begin_entry(collection.engine, by, "tag", f"{_format_items(item_ids)}: {summary}") as change:
        label_ids, new_names = _resolve_names(change, item_ids, pairs)
        states_by_label: dict[int, State | None] = {}
        for state, name in pairs:
            if states_by_label.setdefault(label_ids[name], state) != state:
                raise InputError(f"{name!r} cannot be accepted, rejected and cleared at once; choose one")
        decisions = [Decision(item, label_ids[name], state) for item in item_ids for state, name in pairs]
        counts = write_decisions(change, decisions)
    return DecisionResult(change.entry, counts, new_names)


@dataclass(frozen=True)
class ReviewDecision:
    """Decision about an item and a label by name; without a state it withdraws an earlier one.

    Nothing is decided where the state is another than `expected`, if that is set.
    """

    item: int
    label: str
    state: State | None
    region: str = ""
    expected: KnownState | None = None


def review_items(collection: Collection, decisions: Sequence[ReviewDecision], *, by: str) -> DecisionResult:
    """Decide about items in one journal entry; accepted labels may be new.

    Raises
    ------
    InputError
        An item is unknown, or a label name or region is malformed.
    UnknownLabelError
        A rejected or cleared label is unknown.
    """
    for region in filter(None, (decision.region for decision in decisions)):
        parse_region(region)
    names = {decision.label: label_store.normalise_name(decision.label) for decision in decisions}
    changes = list(dict.fromkeys(f"{_SIGN[d.state]}{d.label}" for d in decisions))
    item_ids = {d.item for d in decisions}
    remainder = f" and {len(changes) - _MAX_LISTED_LABELS} more" if len(changes) > _MAX_LISTED_LABELS else ""
    summary = f"{_format_items(item_ids)}: {', '.join(changes[:_MAX_LISTED_LABELS])}{remainder}"
    with begin_entry(collection.engine, by, "review", summary) as change:
        label_ids, _ = _resolve_names(change, item_ids, [(d.state, names[d.label]) for d in decisions])
        rows = [Decision(d.item, label_ids[names[d.label]], d.state, d.region, expected=d.expected) for d in decisions]
        counts = write_decisions(change, rows)
    return DecisionResult(change.id if counts.added + counts.changed + counts.removed else None, counts)


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
        return [_resolve_item(collection, connection, name, base_folder) for name in names]


def _resolve_item(collection: Collection, connection: Connection, name: str, base_folder: Path) -> int:
    if name.isascii() and name.isdigit() and len(name) < 18:
        return int(name)
    full_path = (base_folder / name).absolute()
    folders = [(folder, items.c.root_id == root_id) for root_id, folder in collection.roots().items()]
    spellings = (full_path.parent.resolve() / full_path.name, full_path)
    candidates = [match for spelling in spellings for match in list_relative_paths(spelling, folders)]
    for is_in_root, path in [*candidates, (items.c.root_id.in_(select(roots.c.id)), name)]:
        query = select(items.c.id).where(is_in_root, items.c.path == path).order_by(items.c.root_id).limit(1)
        if (item := connection.scalar(query)) is not None:
            return int(item)
    paths = [full_path, *(folder / name for folder, _ in folders)]
    if (inside := next((path for path in paths if path.is_dir()), None)) is not None:
        raise InputError(f"{name!r} is a folder; name the files in it, such as {inside}/*.jpg")
    raise InputError(f"{name!r} is not an item of {collection.folder}; scan its folder first, or give an item's id")


def _format_items(item_ids: set[int] | Sequence[int]) -> str:
    return f"{len(item_ids):,} {'item' if len(item_ids) == 1 else 'items'}"


def _resolve_names(
    change: JournalWriter, item_ids: Iterable[int], pairs: Sequence[tuple[State | None, str]]
) -> tuple[dict[str, int], list[str]]:
    """Refuse unknown items; return the ids of labels by name, and the accepted names that are new."""
    unknown = set(item_ids)
    possible = sorted(item for item in unknown if 0 < item < 2**63)  # a database refuses others
    unknown -= {row[0] for row in select_in(change.connection, select(items.c.id), items.c.id, possible)}
    if unknown:
        raise NotFoundError(f"there is no item with id {min(unknown)}; `collection.status()` counts them")
    accepted = list(dict.fromkeys(name for state, name in pairs if state == "accepted"))
    existing = label_store.find_labels(change.connection, accepted)
    label_ids = label_store.ensure_labels(change, accepted)
    label_ids |= {name: label_store.find_label(change.connection, name) for _, name in pairs if name not in label_ids}
    return label_ids, [name for name in accepted if name not in existing]
