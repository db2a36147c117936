"""Labels of which a name begins with what somebody types."""

from typing import NamedTuple

from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.one_label import others
from wsabie.catalogue.understanding import names_of

_KEPT = 4  # one place in so many is kept for other names


class Completion(NamedTuple):
    """A label, the other name by which it was found (None: its own), that name's language, and items that have it."""

    id: int
    name: str
    other: str | None
    language: str
    items: int


def complete(collection: Collection, start: str, k: int = 20) -> list[Completion]:
    """Labels of which a name begins so, in any language; those that are called so first.

    A quarter of the places is kept for labels found by another name: "se" finds "See" beside twenty names of others.
    """
    sought = start.casefold()
    with reading(collection.engine) as connection:
        known = names_of(connection)
        own = sorted(
            (one for one in known.labels.items() if one[1].casefold().startswith(sought)),
            key=lambda one: (len(one[1]), one[1]),
        )
        called = {number for number, _ in own}
        by_other: dict[int, str] = {}
        begin = (name for name in known.others if name.casefold().startswith(sought))
        for name in sorted(begin, key=lambda name: (len(name), name)):
            if (number := known.others[name]) not in called:
                by_other.setdefault(number, name)
        kept = max(k - len(own), min(k // _KEPT, len(by_other)))
        found: dict[int, str | None] = {number: None for number, _ in own[: k - kept]}
        found |= dict(list(by_other.items())[:kept])
        there = others(connection, list(found))
    told = []
    for number, other in found.items():
        if (one := there.get(number)) is not None:
            language = one.language if other is None else known.languages[other]
            told.append(Completion(number, one.name, other, language, one.items))
    return told
