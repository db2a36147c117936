"""Parents of labels from tag paths in files (`animal|bird|gull`); parents that people chose stay."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise

from sqlalchemy import Connection, select

from wsabie.collection.db.journal import JournalWriter
from wsabie.collection.db.tables import changes, labels
from wsabie.collection.labels import label_store

_BATCH_SIZE = 500


def set_parents_by_path(change: JournalWriter, paths: Iterable[Sequence[str]]) -> dict[tuple[str, ...], str]:
    """Give labels without a parent the one that tag paths imply; new labels are added.

    Parameters
    ----------
    change : JournalWriter
    paths : iterable of sequence of str
        Valid label names, from the broadest. Longer paths take precedence.

    Returns
    -------
    dict
        Reasons of refused paths: they contradict the catalogue, or a label would be above itself.
    """
    sorted_paths = sorted({tuple(path) for path in paths}, key=lambda path: (-len(path), path))
    numbers = label_store.ensure_labels(change, [name for path in sorted_paths for name in path])
    parents = _read_parents(change.connection, numbers.values())
    detached = _find_detached_labels(
        change.connection, [label_id for label_id in set(numbers.values()) if parents.get(label_id) is None]
    )
    new_parents: dict[int, int] = {}
    refusals: dict[tuple[str, ...], str] = {}
    broader_ids = {parent for parent in parents.values() if parent is not None}  # only these have labels below them
    for path in sorted_paths:
        for broader, name in pairwise(path):
            number, parent = numbers[name], numbers[broader]
            if number == parent or (parent in broader_ids and parent in _iterate_ancestors(parents, number)):
                continue
            if number in broader_ids and number in _iterate_ancestors(parents, parent):
                refusals[path] = f"{name!r} is above {broader!r} here"
            elif parents.get(number) is not None or number in detached:
                refusals[path] = f"{name!r} is not below {broader!r} here"
            else:
                parents[number] = new_parents[number] = parent
                broader_ids.add(parent)
    change.set(labels, {number: {"parent_id": parent} for number, parent in new_parents.items()})
    return refusals


def _read_parents(connection: Connection, numbers: Iterable[int]) -> dict[int, int | None]:
    """Return the parents of labels and of all their ancestors."""
    parents: dict[int, int | None] = {}
    pending = set(numbers)
    while pending:
        part = [*islice(pending, _BATCH_SIZE)]
        parents |= dict.fromkeys(part)
        for number, parent in connection.execute(select(labels.c.id, labels.c.parent_id).where(labels.c.id.in_(part))):
            parents[number] = parent
            if parent is not None:
                pending.add(parent)
        pending -= parents.keys()
    return parents


def _iterate_ancestors(parents: Mapping[int, int | None], number: int) -> Iterator[int]:
    visited = set[int]()
    parent = parents.get(number)
    while parent is not None and parent not in visited:
        yield parent
        visited.add(parent)
        parent = parents.get(parent)


def _find_detached_labels(connection: Connection, numbers: Sequence[int]) -> set[int]:
    """Return labels whose parent was removed once: files do not restore it."""
    label_ids: set[int] = set()
    c = changes.c
    for lo in range(0, len(numbers), _BATCH_SIZE):
        query = select(c.row, c.before).where(c.table == labels.name, c.row.in_(numbers[lo : lo + _BATCH_SIZE]))
        label_ids.update(row[0] for row in connection.execute(query) if row[1] and row[1].get("parent_id") is not None)
    return label_ids
