"""Saying of items which labels fit them and which do not."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, select

from wsabie.base.errors import InputError
from wsabie.catalogue import book
from wsabie.catalogue.collection import HERE, Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.deciding import Decided, Decision, State, decide
from wsabie.catalogue.journal import entry
from wsabie.catalogue.tables import items, roots

_AT_ONCE = 500


class Tagged(NamedTuple):
    """What was decided, and labels that are new."""

    decided: Decided
    new: list[str]


def tag(
    collection: Collection,
    numbers: Sequence[int],
    *,
    accept: Iterable[str] = (),
    reject: Iterable[str] = (),
    clear: Iterable[str] = (),
    by: str,
) -> Tagged:
    """Decide labels of items, as one entry of the journal.

    Parameters
    ----------
    collection : Collection
    numbers : sequence of int
        Of items.
    accept, reject, clear : iterable of str
        Labels that fit all of them; that do not; of which nothing is to be decided. Those to accept may be new.
    by : str

    Raises
    ------
    InputError
        There is no such item or label, or one label is to be two of these.
    """
    wanted: dict[State | None, list[str]] = {
        "accepted": [book.spelt(name) for name in accept],
        "rejected": [book.spelt(name) for name in reject],
        None: [book.spelt(name) for name in clear],
    }
    named = [name for names in wanted.values() for name in names]
    told = ", ".join(f"{_SIGN[state]}{name}" for state, names in wanted.items() for name in names)
    with entry(
        collection.engine, by, "tag", f"{len(numbers):,} {'item' if len(numbers) == 1 else 'items'}: {told}"
    ) as c:
        _refuse_unknown(c.connection, numbers)
        there = book.find(c.connection, wanted["accepted"])
        known = book.ensure(c, wanted["accepted"]) | {
            name: book.found_one(c.connection, name) for name in [*wanted["rejected"], *wanted[None]]
        }
        twice = [name for name in named if [known[n] for n in named].count(known[name]) > 1]
        if len({state for state, names in wanted.items() for name in names if name in twice}) > 1:
            raise InputError(f"{twice[0]!r} cannot be accepted, rejected and cleared at once; choose one")
        decisions = [
            Decision(item, known[name], state) for item in numbers for state, names in wanted.items() for name in names
        ]
        decided = decide(c, decisions)
    return Tagged(decided, [name for name in dict.fromkeys(wanted["accepted"]) if name not in there])


def items_called(collection: Collection, names: Sequence[str], here: Path) -> list[int]:
    """Numbers of items that are named by their number, path or address.

    Parameters
    ----------
    collection : Collection
    names : sequence of str
        A whole number is an item's; anything else a path, from `here` or within a root, or an address.
    here : Path
        The folder that paths begin in.

    Raises
    ------
    InputError
        There is no such item.
    """
    with reading(collection.engine) as connection:
        folders = {number: str(path) for number, path in connection.execute(select(roots.c.id, roots.c.path))}
        return [_called(collection, connection, folders, name, here) for name in names]


_SIGN: dict[State | None, str] = {"accepted": "+", "rejected": "-", None: "?"}


def _called(collection: Collection, connection: Connection, folders: dict[int, str], name: str, here: Path) -> int:
    if name.isascii() and name.isdigit() and len(name) < 18:
        return int(name)
    whole = (here / name).absolute()
    ways = [(number, name) for number in folders]
    places = [whole]
    for number, place in folders.items():
        root = collection.folder if place == HERE else Path(place)
        places.append(root / name)
        for there in (whole, whole.parent.resolve() / whole.name):
            if there.is_relative_to(root):
                ways.insert(0, (number, there.relative_to(root).as_posix()))
    for number, path in ways:
        found = select(items.c.id).where(items.c.root_id == number, items.c.path == path)
        if (item := connection.execute(found).scalar()) is not None:
            return int(item)
    if (inside := next((place for place in places if place.is_dir()), None)) is not None:
        raise InputError(f"{name!r} is a folder; name the files in it, such as {inside}/*.jpg")
    raise InputError(f"{name!r} is no item of {collection.folder}; scan its folder first, or give an item's number")


def _refuse_unknown(connection: Connection, numbers: Sequence[int]) -> None:
    wanted = set(numbers)
    if not wanted:
        raise InputError("give the items to tag, by path or number")
    for lo in range(0, len(numbers), _AT_ONCE):
        found = select(items.c.id).where(items.c.id.in_(numbers[lo : lo + _AT_ONCE]))
        wanted -= set(connection.execute(found).scalars())
    if wanted:
        raise InputError(f"there is no item number {min(wanted)}; `wsabie collection status` tells what there is")
