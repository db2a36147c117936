"""Search by words: which labels they mean, what is tagged so, what looks so, and what is related.

Words are names of labels in any language, with synonyms; several may stand side by side, `-name` or `-"two words"` is
what an item must not be. What the words are understood as is part of the answer.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, func, select

from wsabie.base.errors import InputError, UnknownLabelError
from wsabie.catalogue import book
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.label_space import neighbours, search_labels
from wsabie.catalogue.one_label import others
from wsabie.catalogue.points import Near
from wsabie.catalogue.tables import annotations, items, journal, labels, synonyms
from wsabie.labels.names import unknown_label

RELATED = 6
"""Groups of related labels, at most."""
NEAR = 0.4
"""Cosine from which on a label is related to another."""

_WORD = re.compile(r'(?P<no>-?)(?:"(?P<quoted>[^"]*)"|(?P<word>[^\s,"]+))|,')
_LONGEST = 1000
_ALWAYS_NEW = -1


class Meaning(NamedTuple):
    """What a text is understood as: labels by number and name, those that it excludes, and sentences that say so."""

    wanted: dict[int, str]
    unwanted: dict[int, str]
    said: list[str]


class Completion(NamedTuple):
    """A label, the other name by which it was found (None: its own), that name's language, and items that have it."""

    id: int
    name: str
    other: str | None
    language: str
    items: int


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


def search(collection: Collection, text: str, k: int = 24) -> Answer:
    """Find items by words.

    Parameters
    ----------
    collection : Collection
    text : str
        At most 1,000 characters.
    k : int
        Items of a group, at most.

    Raises
    ------
    UnknownLabelError
        No word means a label; the nearest names are suggested.
    InputError
        Nothing is asked, or only what is not wanted.
    """
    if len(text) > _LONGEST:
        raise InputError(f"the text has {len(text):,} characters; search with at most {_LONGEST:,}")
    with reading(collection.engine) as connection:
        meaning = understand(connection, text)
        tagged = _tagged(connection, list(meaning.wanted), list(meaning.unwanted), k)
        hidden = _decided(connection, meaning)
        kinds = _kinds(connection, meaning.wanted)
    shown = " and ".join(f"'{name}'" for name in meaning.wanted.values())
    names = list(meaning.wanted.values())
    groups = [Group(names, f"tagged {shown}", None, [Hit(item, names[0], None) for item in tagged])]
    near = _looking(collection, list(meaning.wanted), k, hidden | set(tagged))
    groups.append(Group(names, f"looks like {shown}", None, [Hit(one.item, names[0], one.score) for one in near]))
    seen = set(tagged) | {one.item for one in near} | hidden
    for number, name, why, score in _related(collection, meaning, kinds):
        hits = _of_label(collection, number, name, max(1, k // 2), seen)
        if hits:
            groups.append(Group([name], why, score, hits))
            seen |= {hit.item for hit in hits}
        if len(groups) == RELATED + 2:
            break
    return Answer(meaning, [group for group in groups if group.hits])


def understand(connection: Connection, text: str) -> Meaning:
    """The labels that words mean; of words side by side the longest name counts."""
    known = _Names(connection)
    wanted: dict[int, str] = {}
    unwanted: dict[int, str] = {}
    said: list[str] = []
    for no, words in _phrases(text):
        while words:
            number, used = known.longest(words)
            name, asked = known.name(number), " ".join(words[:used])
            if not no and asked != name:
                said.append(f"'{asked}' is another name of '{name}'" if asked.casefold() != name.casefold() else "")
            (unwanted if no else wanted)[number] = name
            words = words[used:]
    if not wanted:
        raise InputError("nothing is searched for; write a label, and what it must not be behind it: dog -puppy")
    return Meaning(wanted, unwanted, [line for line in said if line])


def complete(collection: Collection, start: str, k: int = 20) -> list[Completion]:
    """Labels of which a name begins so, in any language; those that are called so first."""
    sought = start.casefold()
    with reading(collection.engine) as connection:
        known = _Names(connection)
        own = sorted(
            (one for one in known.labels.items() if one[1].casefold().startswith(sought)),
            key=lambda one: (len(one[1]), one[1]),
        )
        found: dict[int, str | None] = {number: None for number, _ in own[:k]}
        begin = sorted(name for name in known.others if name.casefold().startswith(sought)) if len(found) < k else ()
        for name in begin:
            found.setdefault(known.others[name], name)
        there = others(connection, list(found)[:k])
    told = []
    for number, other in found.items():
        if (one := there.get(number)) is not None:
            language = one.language if other is None else known.languages[other]
            told.append(Completion(number, one.name, other, language, one.items))
    return told


class _Names:
    """All names of labels, read when the journal has grown."""

    _kept: "dict[str, tuple[int, _Names]]" = {}  # noqa: RUF012 - of the last collections that were asked

    def __new__(cls, connection: Connection) -> "_Names":
        key = str(connection.engine.url)
        stamp = connection.execute(select(func.max(journal.c.id))).scalar() or _ALWAYS_NEW
        there = cls._kept.get(key)
        if there is not None and there[0] == stamp and stamp != _ALWAYS_NEW:
            return there[1]
        found = super().__new__(cls)
        found._read(connection)
        if len(cls._kept) > 8:
            cls._kept.clear()
        cls._kept[key] = (stamp, found)
        return found

    def _read(self, connection: Connection) -> None:
        self.labels: dict[int, str] = book.names(connection)
        query = select(synonyms.c.name, synonyms.c.label_id, synonyms.c.language)
        rows = connection.execute(query).all()
        self.others: dict[str, int] = {row[0]: row[1] for row in rows}
        self.languages: dict[str, str] = {row[0]: row[2] for row in rows}
        self._spelt = {name.casefold(): number for name, number in self.others.items()}
        self._spelt |= {name.casefold(): number for number, name in self.labels.items()}
        self._most = max((name.count(" ") + 1 for name in self._spelt), default=1)

    def name(self, number: int) -> str:
        return self.labels[number]

    def longest(self, words: Sequence[str]) -> tuple[int, int]:
        """The label that the first words name, and how many words that is."""
        for n in range(min(len(words), self._most), 0, -1):
            number = self._spelt.get(" ".join(words[:n]).casefold())
            if number is not None:
                return number, n
        raise UnknownLabelError(unknown_label(words[0], list(self.labels.values())))


def _phrases(text: str) -> Iterator[tuple[bool, list[str]]]:
    """Words side by side, and whether they are unwanted; quotes keep words together and apart from others."""
    together: list[str] = []
    for found in _WORD.finditer(text):
        word = found["quoted"] if found["quoted"] is not None else found["word"]
        if word is not None and not found["no"] and found["quoted"] is None:
            together.append(word)
            continue
        if together:
            yield False, together
            together = []
        if word:
            yield bool(found["no"]), word.split()
    if together:
        yield False, together


def _tagged(connection: Connection, wanted: Sequence[int], unwanted: Sequence[int], k: int) -> list[int]:
    """Items with all labels that are wanted and none that is not, the newest first."""
    query = select(items.c.id).where(items.c.state == "present").order_by(items.c.id.desc()).limit(k)
    for number in wanted:
        query = query.where(_has(number))
    for number in unwanted:
        query = query.where(~_has(number))
    return list(connection.execute(query).scalars())


def _has(number: int) -> ColumnElement[bool]:
    a = annotations.c
    return items.c.id.in_(select(a.item_id).where(a.label_id == number, a.state == "accepted"))


def _decided(connection: Connection, meaning: Meaning) -> set[int]:
    """Items of which is known that they are not what is asked for."""
    a = annotations.c
    rejected = select(a.item_id).where(a.label_id.in_(list(meaning.wanted)), a.state == "rejected")
    other = select(a.item_id).where(a.label_id.in_(list(meaning.unwanted)), a.state == "accepted")
    return set(connection.execute(rejected).scalars()) | set(connection.execute(other).scalars())


def _looking(collection: Collection, wanted: Sequence[int], k: int, but: Iterable[int]) -> list[Near]:
    """Items that the model finds nearest to labels; none where there is no model or it does not know them."""
    try:
        return search_labels(collection, wanted, k, but=but)
    except InputError:
        return []


def _of_label(collection: Collection, number: int, name: str, k: int, but: set[int]) -> list[Hit]:
    with reading(collection.engine) as connection:
        tagged = [item for item in _tagged(connection, [number], (), k + len(but)) if item not in but][:k]
    near = _looking(collection, [number], k - len(tagged), but | set(tagged)) if len(tagged) < k else []
    return [*(Hit(item, name, None) for item in tagged), *(Hit(one.item, name, one.score) for one in near)]


def _kinds(connection: Connection, wanted: dict[int, str]) -> list[tuple[int, str, str, float | None]]:
    """Labels right below those that are wanted."""
    c = labels.c
    query = select(c.id, c.name, c.parent_id).where(c.parent_id.in_(list(wanted)), c.merged_into.is_(None))
    rows = connection.execute(query.order_by(c.name)).all()
    return [(row[0], row[1], f"'{row[1]}' is a kind of '{wanted[row[2]]}'", None) for row in rows]


def _related(
    collection: Collection, meaning: Meaning, kinds: Sequence[tuple[int, str, str, float | None]]
) -> Iterator[tuple[int, str, str, float | None]]:
    """Related labels and why: kinds of what is wanted, then labels near to it in the space of the model."""
    told = set(meaning.wanted) | set(meaning.unwanted)
    for one in kinds:
        if one[0] not in told:
            told.add(one[0])
            yield one
    for number, name in meaning.wanted.items():
        for other, other_name, cosine in neighbours(collection, number, RELATED):
            if other not in told and cosine >= NEAR:
                told.add(other)
                yield other, other_name, f"near '{name}' in the model's space (cosine {cosine:.2f})", cosine
