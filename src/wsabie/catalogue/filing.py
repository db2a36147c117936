"""Writing down what a scan saw, a block at a time: each block is one transaction, whole or not there."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, Engine, bindparam, delete, func, insert, select, update

from wsabie.base.errors import InputError
from wsabie.catalogue import book
from wsabie.catalogue.database import writing
from wsabie.catalogue.deciding import Decision, decide
from wsabie.catalogue.journal import Change, entry, now
from wsabie.catalogue.moving import Known, Seen
from wsabie.catalogue.placing import put_below
from wsabie.catalogue.tables import annotations, changes, items, journal

Kind = Literal["new", "moved", "changed", "same", "tags"]
Unsaid = Literal["kept", "withdrawn", "held"]
"""What becomes of tags that came from a file and are not in it; those that are held stay too, and are counted."""

_AT_ONCE = 500


class Filed(NamedTuple):
    """One thing to write down.

    Attributes
    ----------
    kind : {"new", "moved", "changed", "same", "tags"}
        "same": an item whose content is what it was; "tags": one that only gets labels.
    seen : Seen
    item : Known or None
        The item that the file is; None: a new one.
    labels : tuple of str
    by : str
        Where the labels come from.
    unsaid : {"kept", "withdrawn", "held"}
    """

    kind: Kind
    seen: Seen
    item: Known | None = None
    labels: tuple[str, ...] = ()
    by: str = ""
    unsaid: Unsaid = "kept"


class Wrote(NamedTuple):
    """What a block did: how many of each kind, "tagged", "withdrawn", "held" and "found" among them; its line of the
    journal; and files with paths of labels that could not be followed, and why."""

    counts: Counter[str]
    line: int | None
    refused: list[tuple[str, str]]


def known_items(connection: Connection, roots: Sequence[int]) -> list[Known]:
    """All items of roots."""
    c = items.c
    query = select(c.id, c.root_id, c.path, c.hash, c.size, c.modified, c.state, c.sidecar).where(c.root_id.in_(roots))
    return [Known(*row) for row in connection.execute(query)]


def write_block(engine: Engine, by: str, block: Sequence[Filed]) -> Wrote:
    """Write down a block, but for what somebody else wrote down meanwhile."""
    with entry(engine, by, "scan", "a scan that was not finished") as change:
        fresh = _still_true(change.connection, block)
        _move(change.connection, [one for one in fresh if one.kind == "moved"])
        for one in fresh:
            if one.kind != "moved" and one.item is not None:
                _update(change.connection, one.item, _content(one))
        numbers = _add(change.connection, [one.seen for one in fresh if one.item is None])
        refused = _put_below(change, fresh)
        tagged = _tag(change, fresh, numbers)
        unsaid = _withdraw(change, fresh)
        line = change.id if change.n_changes else None
    counts = Counter[str](one.kind for one in fresh) + unsaid
    counts["found"] = sum(one.kind == "same" and one.item is not None and one.item.state == "missing" for one in fresh)
    counts["tagged"] = tagged
    return Wrote(counts, line, refused)


def write_missing(engine: Engine, gone: Sequence[Known]) -> int:
    """Items whose files are nowhere; how many were thought to be there."""
    with writing(engine) as connection:
        places = _places(connection, [item.id for item in gone])
        numbers = [item.id for item in gone if places.get(item.id) == (item.root, item.path)]
        there = items.c.id.in_(numbers) & (items.c.state != "missing")
        return connection.execute(update(items).where(there).values(state="missing")).rowcount


def write_line(engine: Engine, by: str, told: str, lines: Sequence[int]) -> None:
    """One line of the journal in place of those of the blocks, as far as nobody else wrote between them."""
    with entry(engine, by, "scan", told, always=True) as change:
        if not lines:
            return
        connection, last = change.connection, 0
        c = journal.c
        between = select(func.max(c.id)).where(c.id > lines[0], c.id < change.id, c.id.not_in(lines))
        last = connection.execute(between).scalar() or 0
        ours = [line for line in lines if line > last]
        connection.execute(update(changes).where(changes.c.entry_id.in_(ours)).values(entry_id=change.id))
        connection.execute(delete(journal).where(c.id.in_(ours)))


def _still_true(connection: Connection, block: Sequence[Filed]) -> list[Filed]:
    """What still holds: items are where they were, and paths are free, or become so."""
    places = _places(connection, [one.item.id for one in block if one.item is not None])
    taken = _taken(connection, block)
    fresh = [one for one in block if one.item is None or places.get(one.item.id) == (one.item.root, one.item.path)]
    while True:
        leaving = {one.item.id for one in fresh if one.kind == "moved" and one.item is not None}
        kept = []
        for one in fresh:
            there = taken.get((one.seen.root, one.seen.path))
            if there is None or (one.item is not None and there == one.item.id) or there in leaving:
                kept.append(one)
        if len(kept) == len(fresh):
            return kept
        fresh = kept  # what was to come into the place of one that stays waits for the next scan too


def _places(connection: Connection, numbers: Sequence[int]) -> dict[int, tuple[int, str]]:
    c = items.c
    found: dict[int, tuple[int, str]] = {}
    for lo in range(0, len(numbers), _AT_ONCE):
        query = select(c.id, c.root_id, c.path).where(c.id.in_(numbers[lo : lo + _AT_ONCE]))
        found |= {row[0]: (row[1], row[2]) for row in connection.execute(query)}
    return found


def _taken(connection: Connection, block: Sequence[Filed]) -> dict[tuple[int, str], int]:
    """Items at the paths where something is to be."""
    c = items.c
    found: dict[tuple[int, str], int] = {}
    for root in {one.seen.root for one in block}:
        paths = [one.seen.path for one in block if one.seen.root == root]
        for lo in range(0, len(paths), _AT_ONCE):
            query = select(c.path, c.id).where(c.root_id == root, c.path.in_(paths[lo : lo + _AT_ONCE]))
            found |= {(root, row[0]): row[1] for row in connection.execute(query)}
    return found


def _move(connection: Connection, moves: Sequence[Filed]) -> None:
    """Bring items to their new paths; they may take each other's, so that all leave before any arrives."""
    pairs = [(one.item, one) for one in moves if one.item is not None]
    if len(pairs) > 1:
        leave = update(items).where(items.c.id == bindparam("number")).values(path=bindparam("aside"))
        connection.execute(leave, [{"number": item.id, "aside": f"/{item.id}"} for item, _ in pairs])  # no path is so
    for item, one in pairs:
        _update(connection, item, _content(one) | _place(one.seen), always=len(pairs) > 1)


def _update(connection: Connection, item: Known, values: dict[str, Any], *, always: bool = False) -> None:
    told = {"root_id": item.root, **item._asdict()}
    if always or any(told.get(name, ...) != value for name, value in values.items()):
        connection.execute(update(items).where(items.c.id == item.id).values(values))


def _content(one: Filed) -> dict[str, Any]:
    """Columns that follow from what a file holds."""
    seen = one.seen.looked
    stamp = one.seen.sidecar
    if stamp is not None and seen.unlabelled:  # what cannot be read is read again
        stamp = stamp[: stamp.index(":") + 1]
    sidecar = {"sidecar": stamp}
    if one.kind == "tags":
        return sidecar
    state = "unreadable" if seen.reason else "present"
    if seen.hash is None or seen.stat is None:  # it is looked at again, and is then perhaps what it was
        return {"modified": None, "state": state}
    values: dict[str, Any] = {"size": seen.stat.size, "modified": seen.stat.modified, "state": state} | sidecar
    if one.kind == "same":
        return values
    picture = {"width": seen.width, "height": seen.height, "taken": seen.taken}
    return values | {"hash": seen.hash} | picture


def _place(seen: Seen) -> dict[str, Any]:
    parent = PurePosixPath(seen.path).parent.as_posix()
    return {"root_id": seen.root, "path": seen.path, "folder": "" if parent == "." else parent}


def _add(connection: Connection, new: Sequence[Seen]) -> dict[tuple[int, str], int]:
    """Numbers of new items by root and path."""
    time = now()
    rows = [
        {"hash": None, "size": None, "width": None, "height": None, "taken": None, "added": time, "sidecar": None}
        | _content(Filed("new", seen))
        | _place(seen)
        for seen in new
    ]
    if rows:
        connection.execute(insert(items), rows)
    return _taken(connection, [Filed("new", seen) for seen in new])


def _tag(change: Change, fresh: Iterable[Filed], numbers: Mapping[tuple[int, str], int]) -> int:
    """Accept the labels that files say; how many are new. What was decided before stays."""
    tagged = 0
    wanted = [one for one in fresh if one.labels]
    there = _accepted(change.connection, [one.item.id for one in wanted if one.item is not None])
    for by in sorted({one.by for one in wanted}):
        ours = [one for one in wanted if one.by == by]
        labels = book.ensure(change, [label for one in ours for label in one.labels])
        decisions = [
            Decision(one.item.id if one.item else numbers[one.seen.root, one.seen.path], labels[label], "accepted")
            for one in ours
            for label in one.labels
            if one.item is None or (one.item.id, labels[label]) not in there
        ]
        done = decide(change, decisions, origin="import", by=by)
        tagged += done.added + done.changed
    return tagged


def _withdraw(change: Change, fresh: Iterable[Filed]) -> Counter[str]:
    """Take back the tags that files brought and say no more; how many, and how many are held."""
    asked = {one.item.id: one for one in fresh if one.item is not None and one.unsaid != "kept"}
    beneath = {item: usable(one.seen.looked.underneath)[0] for item, one in asked.items()}
    names = {name for item, one in asked.items() for name in (*one.labels, *beneath[item])}
    meant = book.find(change.connection, names)
    still = {(item, meant.get(name)) for item, one in asked.items() for name in one.labels}
    inside = {(item, meant.get(name)) for item, found in beneath.items() for name in found}
    a, numbers, gone, counts = annotations.c, list(asked), list[int](), Counter[str]()
    for lo in range(0, len(numbers), _AT_ONCE):
        of_files = (a.origin == "import") & (a.state == "accepted") & (a.region == "")
        query = select(a.id, a.item_id, a.label_id, a.by).where(of_files, a.item_id.in_(numbers[lo : lo + _AT_ONCE]))
        for number, item, label, by in change.connection.execute(query):
            if by == asked[item].by and (item, label) not in still:
                unsaid = "held" if (item, label) in inside else asked[item].unsaid
                counts[unsaid] += 1
                gone += [number] * (unsaid == "withdrawn")
    change.remove(annotations, gone)
    return counts


def _put_below(change: Change, fresh: Iterable[Filed]) -> list[tuple[str, str]]:
    """Labels go below the broader ones of their paths in files; what stands against that, by file."""
    said = [(one.seen.path, path) for one in fresh if one.labels for path in one.seen.looked.paths]
    if not said:
        return []
    spelled = {path: tuple(good) for _, path in said if len(good := usable(path)[0]) == len(path)}
    refused = put_below(change, spelled.values())
    told = [
        (file, refused.get(spelled[path], "") if path in spelled else "a name cannot be a label") for file, path in said
    ]
    return [(file, why) for file, why in told if why]


def _accepted(connection: Connection, numbers: Sequence[int]) -> set[tuple[int, int]]:
    """Items and labels that are accepted already, whoever did it: files say this too once tags are written to them."""
    a, found = annotations.c, set[tuple[int, int]]()
    for lo in range(0, len(numbers), _AT_ONCE):
        of_these = a.item_id.in_(numbers[lo : lo + _AT_ONCE]) & (a.state == "accepted")
        found.update((row[0], row[1]) for row in connection.execute(select(a.item_id, a.label_id).where(of_these)))
    return found


def usable(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Names that can be labels, as they are kept, and those that cannot."""
    good: list[str] = []
    bad: list[str] = []
    for name in names:
        try:
            good.append(book.spelt(name))
        except InputError:
            bad.append(name)
    return good, bad
