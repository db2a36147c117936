"""Accept, reject and clear labels of items."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, select

from wsabie.collection.annotations.decisions import Decision, DecisionCounts, State, write_decisions
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import begin_entry
from wsabie.collection.db.tables import items, roots
from wsabie.collection.folder.collection import HERE, Collection
from wsabie.collection.labels import label_store
from wsabie.core.errors import InputError

_CHUNK = 500


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
        root = collection.folder if root_path == HERE else Path(root_path)
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
