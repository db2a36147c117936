"""What is said of the things of a collection, as pairs of a thing and a name of some kind: artist, album, tag."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from wsabie.base.errors import InputError
from wsabie.sources.build import require_rows
from wsabie.sources.media import Medium
from wsabie.sources.records import Item
from wsabie.sources.text import shown
from wsabie.storage.rejects import Rejects


class Thing(NamedTuple):
    """One thing of a collection, and the names that it has of each kind, in one spelling."""

    id: str
    names: Mapping[str, tuple[str, ...]]
    split: str | None = None
    group: str | None = None


@dataclass(frozen=True)
class Related:
    """What a collection says of its things.

    Attributes
    ----------
    path : Path
    ids : list of str, unique
        The things in the order of the files; what `open_source` calls them.
    pairs : dict of str to list of (str, str)
        For each kind (such as "artist") the pairs of a thing and a name, in the order of the files, unique.
    splits : dict of str to str
        The side of the published split on which a thing is, where there is one.
    groups : dict of str to str
        What a thing is a part of (the song of a clip), where that is said.

    Examples
    --------
    >>> a = Thing("a", {"artist": ("Nina",), "tag": ("slow", "piano")}, "train")
    >>> related = Related.of(Path("songs"), [a, Thing("b", {"artist": ("Nina",)}, "test")])
    >>> related.pairs
    {'artist': [('a', 'Nina'), ('b', 'Nina')], 'tag': [('a', 'slow'), ('a', 'piano')]}
    >>> related.on("test").pairs
    {'artist': [('b', 'Nina')], 'tag': []}
    """

    path: Path
    ids: list[str] = field(repr=False)
    pairs: dict[str, list[tuple[str, str]]] = field(repr=False)
    splits: dict[str, str] = field(repr=False)
    groups: dict[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, path: Path, things: Iterable[Thing], rejects: Rejects | None = None, what: str = "things") -> "Related":
        """Collect things; those of one id are joined.

        Raises
        ------
        InputError
            There is none.
        """
        ids, splits, groups = dict[str, None](), dict[str, str](), dict[str, str]()
        pairs: defaultdict[str, dict[tuple[str, str], None]] = defaultdict(dict)
        for thing in things:
            ids[thing.id] = None
            if thing.split is not None:
                splits[thing.id] = thing.split
            if thing.group is not None:
                groups[thing.id] = thing.group
            for kind, names in thing.names.items():
                pairs[kind].update(((thing.id, name), None) for name in names)
        require_rows(len(ids), path, rejects or Rejects(), what)
        return cls(path, list(ids), {kind: list(held) for kind, held in pairs.items() if held}, splits, groups)

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, ids: Iterable[str]) -> "Related":
        """Only these things; all kinds stay."""
        kept = set(ids)
        return Related(
            self.path,
            [name for name in self.ids if name in kept],
            {kind: [pair for pair in pairs if pair[0] in kept] for kind, pairs in self.pairs.items()},
            {name: side for name, side in self.splits.items() if name in kept},
            {name: group for name, group in self.groups.items() if name in kept},
        )

    def of_kinds(self, kinds: Iterable[str]) -> "Related":
        """Only names of these kinds; all things stay.

        Raises
        ------
        InputError
            There are none of one kind.
        """
        kinds = list(kinds)
        if missing := [kind for kind in kinds if kind not in self.pairs]:
            raise InputError(
                f"{shown(self.path)} has no names of the kind {missing[0]!r}; choose among {', '.join(self.pairs)}"
            )
        return replace(self, pairs={kind: self.pairs[kind] for kind in kinds})

    def on(self, side: str) -> "Related":
        """Only the things on one side of the split.

        Raises
        ------
        InputError
            There is none.
        """
        require_side(side, self.splits.values(), self.path)
        return self.take(name for name, at in self.splits.items() if at == side)


def require_side(side: str, sides: Iterable[str | None], path: Path) -> None:
    """Refuse a side of a split that nothing is on.

    Raises
    ------
    InputError
        The sentence names those that there are.
    """
    found = {name for name in sides if name is not None}
    if side not in found:
        known = f"choose one of {', '.join(sorted(found))}" if found else "leave it out"
        raise InputError(f"nothing in {shown(path)} is on the side {side!r} of a split; {known}")


def items_of(
    things: Iterable[Thing], kind: str, files: Mapping[str, Path], medium: Medium, rejects: Rejects
) -> list[Item]:
    """The things that are files, with their names of one kind as labels; those without either are listed."""
    items = []
    for thing in things:
        labels = thing.names.get(kind, ())
        if thing.id not in files:
            rejects.add(shown(thing.id), f"labels without a {medium.thing}")
        elif not labels:
            rejects.add(shown(thing.id), medium.unlabelled, f"no {kind}")
        else:
            items.append(Item(thing.id, files[thing.id], labels, thing.group))
    return items


def require_kind(kind: str | None, kinds: tuple[str, ...], path: Path) -> str:
    """The kind whose names are labels: the first where none is asked for.

    Raises
    ------
    InputError
        Another one.
    """
    if kind is not None and kind not in kinds:
        raise InputError(f"{shown(path)} has no labels of the kind {kind!r}; choose one of {', '.join(kinds)}")
    return kind or kinds[0]
