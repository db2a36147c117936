"""Concatenation of several collections of pictures, sounds or documents into one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wsabie.core.errors import InputError
from wsabie.io.records import FeatureTable, Item, ItemSource, ModalityName, Source


@dataclass(frozen=True)
class ConcatenatedSource:
    """Items of several sources; ids that would clash get their source's path as a prefix."""

    sources: Sequence[ItemSource]
    prefixes: Sequence[str]

    @property
    def path(self) -> Path:
        return self.sources[0].path

    @property
    def things(self) -> ModalityName:
        return self.sources[0].things

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    def __iter__(self) -> Iterator[Item]:
        for prefix, source in zip(self.prefixes, self.sources, strict=True):
            yield from (item._replace(id=prefix + item.id) for item in source) if prefix else source


def concatenate_sources(sources: Sequence[Source]) -> Source:
    """Return several sources as one; a single one unchanged.

    Raises
    ------
    InputError
        Rows of features beside another source, or items of different modalities.

    Examples
    --------
    >>> from wsabie.io.records import ItemList
    >>> one = ItemList(Path("one"), [Item("a", b"", ()), Item("b", b"", ())])
    >>> other = ItemList(Path("other"), [Item("a", b"", ())])
    >>> [item.id for item in concatenate_sources([one, other])]
    ['one/a', 'one/b', 'other/a']
    """
    if len(sources) == 1:
        return sources[0]
    items = [source for source in sources if not isinstance(source, FeatureTable)]
    if len(items) < len(sources):
        raise InputError("rows of features cannot be joined with other data here; give one collection of rows")
    if len({source.things for source in items}) > 1:
        raise InputError(f"{items[0].path} holds {items[0].things} and others do not; give collections of one kind")
    ids = [item.id for source in items for item in source]
    unique = len(set(ids)) == len(ids)
    return ConcatenatedSource(items, ["" if unique else f"{source.path}/" for source in items])
