"""Several collections of pictures, sounds or documents read one after the other, as one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.sources.records import Item, ItemSource, Rows, Source, Things


@dataclass(frozen=True)
class Joined:
    """Items of several sources; ids that would come twice are told apart by where each source is."""

    sources: Sequence[ItemSource]
    prefixes: Sequence[str]

    @property
    def path(self) -> Path:
        return self.sources[0].path

    @property
    def things(self) -> Things:
        return self.sources[0].things

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    def __iter__(self) -> Iterator[Item]:
        for prefix, source in zip(self.prefixes, self.sources, strict=True):
            yield from (item._replace(id=prefix + item.id) for item in source) if prefix else source


def joined(sources: Sequence[Source]) -> Source:
    """Several sources as one; a single one as it is.

    Raises
    ------
    InputError
        Rows of features beside another source, or things of different kinds.

    Examples
    --------
    >>> from wsabie.sources.records import ItemList
    >>> one = ItemList(Path("one"), [Item("a", b"", ()), Item("b", b"", ())])
    >>> other = ItemList(Path("other"), [Item("a", b"", ())])
    >>> [item.id for item in joined([one, other])]
    ['one/a', 'one/b', 'other/a']
    """
    if len(sources) == 1:
        return sources[0]
    items = [source for source in sources if not isinstance(source, Rows)]
    if len(items) < len(sources):
        raise InputError("rows of features cannot be joined with other data here; give one collection of rows")
    if len({source.things for source in items}) > 1:
        raise InputError(f"{items[0].path} holds {items[0].things} and others do not; give collections of one kind")
    ids = [item.id for source in items for item in source]
    unique = len(set(ids)) == len(ids)
    return Joined(items, ["" if unique else f"{source.path}/" for source in items])
