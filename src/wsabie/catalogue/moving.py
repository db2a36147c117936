"""Which files are items that were known at other paths: told by their content, of several by name, then by folder.

A file that is renamed leaves its path, and another may have taken it since: of pictures that were renumbered every
path holds the content of another. So what counts as displaced is an item whose path is empty or holds something else.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from wsabie.catalogue.looking import Looked, Stat


class Known(NamedTuple):
    """An item as the catalogue knows it."""

    id: int
    root: int
    path: str
    hash: str | None
    size: int | None
    modified: int | None
    state: str
    sidecar: str | None


class Seen(NamedTuple):
    """A file that was looked at, the item that was known at its path, and the stamp of the sidecar beside it."""

    root: int
    path: str
    looked: Looked
    known: Known | None
    sidecar: str | None = None


class Displaced:
    """Items that may turn up elsewhere.

    Parameters
    ----------
    vanished : iterable of Known
        Nothing is at their paths.
    doubtful : iterable of Known
        Something is at their paths, and it may be something else.
    to_look_at : iterable of Stat
        Of all files that will be looked at.
    """

    def __init__(self, vanished: Iterable[Known], doubtful: Iterable[Known], to_look_at: Iterable[Stat]) -> None:
        self.vanished: defaultdict[str, list[Known]] = defaultdict(list)
        for item in vanished:
            if item.hash is not None:
                self.vanished[item.hash].append(item)
        self._doubtful = {item.hash for item in doubtful} - {None}
        self._sizes = Counter(stat.size for stat in to_look_at)

    def at_once(self, seen: Seen) -> Known | None:
        """The item that a new file is, where no other file can be it too."""
        found = self.vanished.get(seen.looked.hash or "", [])
        alone = seen.looked.stat is not None and self._sizes[seen.looked.stat.size] == 1
        if seen.known is None and len(found) == 1 and alone and seen.looked.hash not in self._doubtful:
            return found[0]
        return None

    def must_wait(self, seen: Seen) -> bool:
        """Whether a file can be judged only after all others: it may be an item, or take the place of one, that is
        elsewhere."""
        content = seen.looked.hash
        if content is not None and (content in self.vanished or content in self._doubtful):
            return True
        if seen.known is None or seen.known.hash is None or seen.known.size is None:
            return False
        same = seen.looked.stat is not None and seen.looked.stat.size == seen.known.size
        return self._sizes[seen.known.size] > int(same)


def settle(waiting: Sequence[Seen], vanished: Mapping[str, Sequence[Known]]) -> dict[int, Known]:
    """Which items files are, by the files' numbers in `waiting`, where it is not the item at their path.

    An item whose path is taken by another item moves only if its own content is somewhere: nothing is displaced into
    nowhere.
    """
    free: defaultdict[str, list[Known]] = defaultdict(list)
    for content, items in vanished.items():
        free[content] += items
    for seen in waiting:
        if seen.known is not None and seen.known.hash is not None:
            free[seen.known.hash].append(seen.known)
    by_content: defaultdict[str, list[int]] = defaultdict(list)
    for number, seen in enumerate(waiting):
        if (found := seen.looked.hash) is not None and found in free:
            by_content[found].append(number)
    moved: dict[int, Known] = {}
    for content, numbers in by_content.items():
        moved |= _paired(numbers, waiting, free[content])
    return _without_homeless(moved, waiting)


def _paired(numbers: Sequence[int], waiting: Sequence[Seen], items: Sequence[Known]) -> dict[int, Known]:
    """Files and items of one content: those of one path first, then of one name, of one folder, and in their order."""
    paired: dict[int, Known] = {}
    left = sorted(items, key=lambda item: item.id)
    for key in (_path, _name, _folder, _anything):
        by_key: defaultdict[object, deque[Known]] = defaultdict(deque)
        for item in left:
            by_key[key(item)].append(item)
        for number in numbers:
            if number not in paired and (alike := by_key[key(waiting[number])]):
                paired[number] = alike.popleft()
        left = sorted((item for alike in by_key.values() for item in alike), key=lambda item: item.id)
    return paired


def _without_homeless(moved: dict[int, Known], waiting: Sequence[Seen]) -> dict[int, Known]:
    """Without moves onto the path of an item that itself has nowhere to go; these may make others homeless."""
    while True:
        at_home = {item.id for item in moved.values()}
        bad = [n for n in moved if (there := waiting[n].known) is not None and there.id not in at_home]
        if not bad:
            return moved
        for number in bad:
            del moved[number]


def _path(one: Seen | Known) -> object:
    return one.root, one.path


def _name(one: Seen | Known) -> object:
    return PurePosixPath(one.path).name


def _folder(one: Seen | Known) -> object:
    return one.root, PurePosixPath(one.path).parent


def _anything(one: Seen | Known) -> object:
    return None
