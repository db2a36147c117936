"""Search by words: what is tagged so, what looks so, and what is related.

Words are names of labels in any language, with synonyms; several may stand side by side, `-name` or `-"two words"` is
what an item must not be. What the words are understood as is part of the answer.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from typing import Any, NamedTuple

from sqlalchemy import CompoundSelect, Connection, Select, func, select, union_all

from wsabie.base.errors import InputError
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import one_state
from wsabie.catalogue.label_space import neighbours, search_labels
from wsabie.catalogue.points import Near
from wsabie.catalogue.tables import annotations, items, labels
from wsabie.catalogue.understanding import Meaning, Meanings, Term, known_related, names_of, understand

RELATED = 6
"""Groups of related labels, at most."""
KNOWN = 4
"""Of these by what files know."""
NEAR = 0.4
"""Cosine from which on a label is related to another."""

_LONGEST = 1000
_LOOKED_AT = 2 * RELATED  # related labels, of which some may have no items
_COMBINED = 8  # labels, or sets of them, that a text with several meanings is searched by


class Related(NamedTuple):
    """A label, why it is related, and how nearly."""

    number: int
    name: str
    why: str
    score: float | None


class Hit(NamedTuple):
    """An item that was found, for which label, and its score (None: it is tagged so)."""

    item: int
    label: str
    score: float | None


class Group(NamedTuple):
    """Items that were found for one reason."""

    labels: list[str]
    why: str
    score: float | None
    hits: list[Hit]


class Answer(NamedTuple):
    """What was asked, and the groups: tagged so, looking so, then related labels."""

    meaning: Meaning
    groups: list[Group]


def search(collection: Collection, text: str, k: int = 24, meanings: Meanings | None = None) -> Answer:
    """Find items by words.

    Parameters
    ----------
    collection : Collection
    text : str
        At most 1,000 characters.
    k : int
        Items of a group, at most.
    meanings : Meanings or None
        For words that are no label but mean some, and for parts and other relations.

    Raises
    ------
    UnknownLabelError
        No word means a label; the nearest names are suggested.
    InputError
        Nothing is asked, or only what is not wanted.
    """
    if len(text) > _LONGEST:
        raise InputError(f"the text has {len(text):,} characters; search with at most {_LONGEST:,}")
    with one_state(collection.engine) as connection:
        meaning = understand(connection, text, meanings)
        out = _decided(meaning)
        hidden = connection.execute(out).scalars().all()
        known = [*_kinds(connection, meaning), *_known(connection, meaning, meanings)]
        related = list(islice(_related(collection, meaning, known), _LOOKED_AT))
        chosen = list(islice(product(*(term.labels.items() for term in meaning.terms)), _COMBINED))
        sets = [[number for number, _ in one] for one in chosen] + [[one.number] for one in related]
        near = search_labels(collection, sets, 3 * k, but=hidden)  # two groups of k may stand before, and are passed by
        own = [(names[0][1], found) for names, found in zip(chosen, near, strict=False)]
        groups = _own_groups(connection, meaning, k, own)
        seen, half = {hit.item for group in groups for hit in group.hits}, max(1, k // 2)
        tagged = _newest(connection, [one.number for one in related], len(seen) + (RELATED + 1) * half, out)
    for one, found in zip(related, near[len(chosen) :], strict=True):
        hits = _of_label(one, half, tagged[one.number], found, seen)
        if hits:
            groups.append(Group([one.name], one.why, one.score, hits))
            seen |= {hit.item for hit in hits}
        if len(groups) == RELATED + 2:
            break
    return Answer(meaning, [group for group in groups if group.hits])


def _own_groups(
    connection: Connection, meaning: Meaning, k: int, near: Sequence[tuple[str, list[Near]]]
) -> list[Group]:
    """What is tagged so, and what looks so: of a term with several labels the best one counts."""
    tagged = _tagged(connection, meaning.terms, k, _having(meaning.unwanted))
    there = {hit.item for hit in tagged}
    best: dict[int, Hit] = {}
    for label, found in near:
        for one in found:
            if one.item not in there and (one.item not in best or one.score > (best[one.item].score or 0.0)):
                best[one.item] = Hit(one.item, label, one.score)
    looking = sorted(best.values(), key=lambda hit: -(hit.score or 0.0))[:k]
    shown, names = " and ".join(map(str, meaning.terms)), list(meaning.wanted.values())
    return [Group(names, f"tagged {shown}", None, tagged), Group(names, f"looks like {shown}", None, looking)]


def _tagged(connection: Connection, terms: Sequence[Term], k: int, out: Any) -> list[Hit]:
    """Items that have a label of each term and are not left out, the newest first."""
    query = select(items.c.id).where(items.c.state == "present").order_by(items.c.id.desc()).limit(k)
    for term in terms:
        query = query.where(items.c.id.in_(_having(term.labels)))
    query = query.where(items.c.id.not_in(out))
    found, a = list(connection.execute(query).scalars()), annotations.c
    first = terms[0].labels
    if len(first) == 1:
        return [Hit(item, name, None) for item in found for name in first.values()]
    had = select(a.item_id, func.min(a.label_id)).where(a.item_id.in_(found), a.label_id.in_(first))
    label = {row[0]: row[1] for row in connection.execute(had.where(a.state == "accepted").group_by(a.item_id))}
    return [Hit(item, first[label[item]], None) for item in found]


def _having(numbers: Iterable[int], state: str = "accepted") -> Select[Any]:
    """Items with one of some labels, or without it for sure."""
    a = annotations.c
    return select(a.item_id).where(a.label_id.in_(list(numbers)), a.state == state)


def _decided(meaning: Meaning) -> CompoundSelect[Any]:
    """Items of which is known that they are not what is asked for: one label of several is no such thing."""
    single = [number for term in meaning.terms if len(term.labels) == 1 for number in term.labels]
    return _having(single, "rejected").union(_having(meaning.unwanted))


def _newest(connection: Connection, numbers: Sequence[int], k: int, out: CompoundSelect[Any]) -> dict[int, list[int]]:
    """The newest items of each label, at most k; one question for all labels."""
    found: dict[int, list[int]] = {number: [] for number in numbers}
    a = annotations.c
    there = select(a.label_id, a.item_id).distinct().join(items, items.c.id == a.item_id)  # once with many regions
    there = there.where(a.state == "accepted", items.c.state == "present", a.item_id.not_in(out))
    there = there.order_by(a.item_id.desc()).limit(k)
    each = [there.where(a.label_id == number).subquery() for number in numbers]
    for label, item in sorted(connection.execute(union_all(*map(select, each))), reverse=True) if each else ():
        found[label].append(item)
    return found


def _of_label(one: Related, k: int, tagged: Sequence[int], near: Sequence[Near], but: set[int]) -> list[Hit]:
    """Items tagged with a related label, and where these are few, those that look so."""
    first = [Hit(item, one.name, None) for item in tagged if item not in but][:k]
    there = but | {hit.item for hit in first}
    return [*first, *(Hit(o.item, one.name, o.score) for o in near if o.item not in there)][:k]


def _kinds(connection: Connection, meaning: Meaning) -> list[Related]:
    """Labels right below those that are wanted."""
    c, wanted = labels.c, meaning.wanted
    query = select(c.id, c.name, c.parent_id).where(c.parent_id.in_(list(wanted)), c.merged_into.is_(None))
    rows = connection.execute(query.order_by(c.name)).all()
    return [Related(row[0], row[1], f"'{row[1]}' is a kind of '{wanted[row[2]]}'", None) for row in rows]


def _known(connection: Connection, meaning: Meaning, meanings: Meanings | None) -> list[Related]:
    """Labels that files know to be parts, kinds or wholes of what was asked."""
    names = names_of(connection)
    links = [link for term in meaning.terms for link in known_related(connection, meanings, term, KNOWN)]
    return [Related(names.number(link.label), link.label, link.why, link.score) for link in links]


def _related(collection: Collection, meaning: Meaning, known: Sequence[Related]) -> Iterator[Related]:
    """Related labels: those that are known, then labels near to what is wanted in the space of the model."""
    told = set(meaning.wanted) | set(meaning.unwanted)
    for one in known:
        if one.number not in told:
            told.add(one.number)
            yield one
    for number, name in islice(meaning.wanted.items(), _COMBINED):
        for other, other_name, cosine in neighbours(collection, number, RELATED):
            if other not in told and cosine >= NEAR:
                told.add(other)
                yield Related(other, other_name, f"near '{name}' in the model's space (cosine {cosine:.2f})", cosine)
