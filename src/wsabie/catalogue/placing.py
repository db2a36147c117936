"""Labels put below others as the paths of tags in files say (`animal|bird|gull`); what people decided stays."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise

from sqlalchemy import Connection, select

from wsabie.catalogue import book
from wsabie.catalogue.journal import Change
from wsabie.catalogue.tables import changes, labels

_AT_ONCE = 500


def put_below(change: Change, paths: Iterable[Sequence[str]]) -> dict[tuple[str, ...], str]:
    """Give labels that have no parent the one that paths say; labels that are new are added.

    Parameters
    ----------
    change : Change
    paths : iterable of sequence of str
        Names that can be labels, from the broadest. Longer paths come first, for they say more.

    Returns
    -------
    dict
        Why paths could not be followed: they contradict what is known, or a label would be above itself.
    """
    wanted = sorted({tuple(path) for path in paths}, key=lambda path: (-len(path), path))
    numbers = book.ensure(change, [name for path in wanted for name in path])
    parents = _parents(change.connection, numbers.values())
    freed = _freed(change.connection, [n for n in set(numbers.values()) if parents.get(n) is None])
    placed: dict[int, int] = {}
    refused: dict[tuple[str, ...], str] = {}
    broad = {parent for parent in parents.values() if parent is not None}  # nothing else is above anything
    for path in wanted:
        for broader, name in pairwise(path):
            number, parent = numbers[name], numbers[broader]
            if number == parent or (parent in broad and parent in _above(parents, number)):
                continue
            if number in broad and number in _above(parents, parent):
                refused[path] = f"{name!r} is above {broader!r} here"
            elif parents.get(number) is not None or number in freed:
                refused[path] = f"{name!r} is not below {broader!r} here"
            else:
                parents[number] = placed[number] = parent
                broad.add(parent)
    change.set(labels, {number: {"parent_id": parent} for number, parent in placed.items()})
    return refused


def _parents(connection: Connection, numbers: Iterable[int]) -> dict[int, int | None]:
    """Of labels and of all above them."""
    found: dict[int, int | None] = {}
    left = set(numbers)
    while left:
        part = [*islice(left, _AT_ONCE)]
        found |= dict.fromkeys(part)
        for number, parent in connection.execute(select(labels.c.id, labels.c.parent_id).where(labels.c.id.in_(part))):
            found[number] = parent
            if parent is not None:
                left.add(parent)
        left -= found.keys()
    return found


def _above(parents: Mapping[int, int | None], number: int) -> Iterator[int]:
    found = set[int]()
    parent = parents.get(number)
    while parent is not None and parent not in found:
        yield parent
        found.add(parent)
        parent = parents.get(parent)


def _freed(connection: Connection, numbers: Sequence[int]) -> set[int]:
    """Labels that had a parent once, which was taken away: files do not bring it back."""
    found: set[int] = set()
    c = changes.c
    for lo in range(0, len(numbers), _AT_ONCE):
        query = select(c.row, c.before).where(c.table == labels.name, c.row.in_(numbers[lo : lo + _AT_ONCE]))
        found.update(row[0] for row in connection.execute(query) if row[1] and row[1].get("parent_id") is not None)
    return found
