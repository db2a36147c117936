"""Attributes of items, as pairs of an item and a name of some kind: artist, album, tag."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from wsabie.core.errors import InputError
from wsabie.io.modalities import SOUNDS
from wsabie.io.parsers.array_builders import require_rows
from wsabie.io.records import Item
from wsabie.storage.rejects import Rejects


class ItemAttributes(NamedTuple):
    """One item and its names of each kind, in one spelling."""

    id: str
    names: Mapping[str, tuple[str, ...]]
    split: str | None = None
    group: str | None = None


@dataclass(frozen=True)
class AttributeTable:
    """Attributes of all items of a source.

    Attributes
    ----------
    path : Path
    ids : list of str, unique
        Ids of items in the order of the files, as in `open_source`.
    pairs : dict of str to list of (str, str)
        For each kind (such as "artist") the unique pairs of an item and a name, in the order of the files.
    splits : dict of str to str
        The side of the published split of each item, if there is one.
    groups : dict of str to str
        The group of each item (the song of a clip), if it is stated.

    Examples
    --------
    >>> a = ItemAttributes("a", {"artist": ("Nina",), "tag": ("slow", "piano")}, "train")
    >>> attributes = AttributeTable.from_items(Path("songs"), [a, ItemAttributes("b", {"artist": ("Nina",)}, "test")])
    >>> attributes.pairs
    {'artist': [('a', 'Nina'), ('b', 'Nina')], 'tag': [('a', 'slow'), ('a', 'piano')]}
    >>> attributes.select_side("test").pairs
    {'artist': [('b', 'Nina')], 'tag': []}
    """

    path: Path
    ids: list[str] = field(repr=False)
    pairs: dict[str, list[tuple[str, str]]] = field(repr=False)
    splits: dict[str, str] = field(repr=False)
    groups: dict[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def from_items(
        cls, path: Path, items: Iterable[ItemAttributes], rejects: Rejects | None = None, unit: str = "items"
    ) -> "AttributeTable":
        """Collect items; those with the same id are joined.

        Raises
        ------
        InputError
            There is none.
        """
        ids, splits, groups = dict[str, None](), dict[str, str](), dict[str, str]()
        pairs: defaultdict[str, dict[tuple[str, str], None]] = defaultdict(dict)
        for item in items:
            ids[item.id] = None
            if item.split is not None:
                splits[item.id] = item.split
            if item.group is not None:
                groups[item.id] = item.group
            for kind, names in item.names.items():
                pairs[kind].update(((item.id, name), None) for name in names)
        require_rows(len(ids), path, rejects or Rejects(), unit)
        pairs_by_kind = {kind: list(kind_pairs) for kind, kind_pairs in pairs.items() if kind_pairs}
        return cls(path, list(ids), pairs_by_kind, splits, groups)

    def __len__(self) -> int:
        return len(self.ids)

    def select_items(self, ids: Iterable[str]) -> "AttributeTable":
        """Return only these items; all kinds stay."""
        id_set = set(ids)
        return AttributeTable(
            self.path,
            [name for name in self.ids if name in id_set],
            {kind: [pair for pair in pairs if pair[0] in id_set] for kind, pairs in self.pairs.items()},
            {name: side for name, side in self.splits.items() if name in id_set},
            {name: group for name, group in self.groups.items() if name in id_set},
        )

    def select_kinds(self, kinds: Iterable[str]) -> "AttributeTable":
        """Return only names of these kinds; all items stay.

        Raises
        ------
        InputError
            There are none of one kind.
        """
        kinds = list(kinds)
        if missing := [kind for kind in kinds if kind not in self.pairs]:
            raise InputError(
                f"{self.path} has no names of the kind {missing[0]!r}; choose among {', '.join(self.pairs)}"
            )
        return replace(self, pairs={kind: self.pairs[kind] for kind in kinds})

    def select_side(self, side: str) -> "AttributeTable":
        """Return only the items on one side of the split.

        Raises
        ------
        InputError
            There is none.
        """
        require_split_side(side, self.splits.values(), self.path)
        return self.select_items(name for name, item_side in self.splits.items() if item_side == side)


def select_split_side(items: list[ItemAttributes], side: str | None, path: Path) -> list[ItemAttributes]:
    """Return the items on one side of the split (None: all); InputError where there are none."""
    if side is None:
        return items
    require_split_side(side, (item.split for item in items), path)
    return [item for item in items if item.split == side]


def require_split_side(side: str, sides: Iterable[str | None], path: Path) -> None:
    """Refuse a side of a split that no item is on.

    Raises
    ------
    InputError
        The sentence names those that there are.
    """
    names = {name for name in sides if name is not None}
    if side not in names:
        remedy = f"choose one of {', '.join(sorted(names))}" if names else "leave it out"
        raise InputError(f"nothing in {path} is on the side {side!r} of a split; {remedy}")


def make_attribute_items(
    attributes: Iterable[ItemAttributes], kind: str, files: Mapping[str, Path], rejects: Rejects
) -> list[Item]:
    """Return the items that are sounds, labelled with names of one kind; others go to `rejects`."""
    items = []
    for entry in attributes:
        labels = entry.names.get(kind, ())
        if entry.id not in files:
            rejects.add(entry.id, f"labels without a {SOUNDS.singular}")
        elif not labels:
            rejects.add(entry.id, SOUNDS.unlabelled_reason, f"no {kind}")
        else:
            items.append(Item(entry.id, files[entry.id], labels, entry.group))
    return items
