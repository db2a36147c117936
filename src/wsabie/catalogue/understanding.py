"""What words mean: labels of a collection, by their own names, by other names, or by what files know of the words."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, select

from wsabie.base.errors import InputError, UnknownLabelError
from wsabie.catalogue import book
from wsabie.catalogue.remembered import Remembered
from wsabie.catalogue.tables import labels, synonyms
from wsabie.labels.knowledge import Knowledge
from wsabie.labels.matching import match_labels
from wsabie.labels.names import unknown_label
from wsabie.search.asked import Queries
from wsabie.search.related import KnownRelated, Link
from wsabie.sources.knowledge import read_knowledge

_WORD = re.compile(r'(?P<no>-?)(?:"(?P<quoted>[^"]*)"|(?P<word>[^\s,"]+))|,')
_WORDS_OF_NAME = 6  # that are looked up together in what files know


class Term(NamedTuple):
    """Some of the words: the labels that they mean, by number and name; any of them will do."""

    asked: str
    labels: dict[int, str]

    def __str__(self) -> str:
        return f"'{self.asked if len(self.labels) > 1 else next(iter(self.labels.values()))}'"


class Meaning(NamedTuple):
    """What a text is understood as.

    Attributes
    ----------
    terms : list of Term
        An item is to fit each of them.
    unwanted : dict of int to str
        Labels that it must not have.
    said : list of str
        Sentences that say how it was understood.
    """

    terms: list[Term]
    unwanted: dict[int, str]
    said: list[str]

    @property
    def wanted(self) -> dict[int, str]:
        """Labels of all terms."""
        return {number: name for term in self.terms for number, name in term.labels.items()}


class Meanings:
    """What files such as those of WordNet know of a collection's labels; looked up anew when labels have changed.

    A label with a synset means that; another what its name usually means.

    Parameters
    ----------
    knowledge : Knowledge
    called : str
        What is said to know it.
    """

    def __init__(self, knowledge: Knowledge, called: str) -> None:
        self.knowledge, self.called = knowledge, called
        self.of = Remembered(self._of)
        """Who understands words, and who knows related labels; of a connection."""

    def _of(self, connection: Connection) -> tuple[Queries, KnownRelated]:
        query = select(labels.c.name, labels.c.wordnet).where(labels.c.merged_into.is_(None)).order_by(labels.c.id)
        rows = [(name, synset) for name, synset in connection.execute(query)]
        table = {name: synset for name, synset in rows if synset and self.knowledge.find(synset)}
        matched = match_labels(self.knowledge, [name for name, _ in rows], table)
        return Queries(matched.labels, matched), KnownRelated(matched, called=self.called)


def meanings_in(*files: Path) -> Meanings | None:
    """What some files know of words; None without files.

    Raises
    ------
    InputError
        As `sources.knowledge.read_knowledge`.
    """
    return Meanings(read_knowledge(*files), " and ".join(file.stem for file in files)) if files else None


def understand(connection: Connection, text: str, meanings: Meanings | None = None) -> Meaning:
    """The labels that words mean; of words side by side the longest name counts.

    Raises
    ------
    UnknownLabelError
        No word means a label; the nearest names are suggested.
    InputError
        Nothing is asked, or only what is not wanted.
    """
    known, queries = names_of(connection), None if meanings is None else meanings.of(connection)[0]
    terms: list[Term] = []
    unwanted: dict[int, str] = {}
    said: list[str] = []
    for no, words in _phrases(text):
        while words:
            term, used, sentence = _first(known, words, queries)
            if no:
                unwanted |= term.labels
            else:
                terms.append(term)
                said += [sentence] if sentence else []
            words = words[used:]
    if not terms:
        raise InputError("nothing is searched for; write a label, and what it must not be behind it: dog -puppy")
    return Meaning(terms, unwanted, said)


def known_related(connection: Connection, meanings: Meanings | None, term: Term, k: int) -> list[Link]:
    """Labels related to what was asked, by what files know: parts, kinds, wholes."""
    return [] if meanings is None else meanings.of(connection)[1].related(term.asked, k)


class Names:
    """All names of labels."""

    def __init__(self, connection: Connection) -> None:
        self.labels: dict[int, str] = book.names(connection)
        rows = connection.execute(select(synonyms.c.name, synonyms.c.label_id, synonyms.c.language)).all()
        self.others: dict[str, int] = {row[0]: row[1] for row in rows}
        self.languages: dict[str, str] = {row[0]: row[2] for row in rows}
        self._numbers = self.others | {name: number for number, name in self.labels.items()}
        self._alike: dict[str, list[int]] = {}
        for name, number in self._numbers.items():
            self._alike.setdefault(name.casefold(), []).append(number)
        self.most_words = max((name.count(" ") + 1 for name in self._numbers), default=1)

    def number(self, name: str) -> int:
        """Of a label, by its own name."""
        return self._numbers[name]

    def named(self, asked: str) -> tuple[Term, str] | None:
        """The label that has this name, else all of which a name differs in case alone; what is to be said of it."""
        exact = self._numbers.get(asked)
        numbers = [exact] if exact is not None else self._alike.get(asked.casefold(), ())
        found = {number: self.labels[number] for number in numbers}
        if not found:
            return None
        if len(found) > 1:
            return Term(asked, found), f"'{asked}' is {' or '.join(repr(name) for name in found.values())}"
        name = next(iter(found.values()))
        other = asked.casefold() != name.casefold()
        return Term(name, found), f"'{asked}' is another name of '{name}'" if other else ""


names_of = Remembered(Names)
"""Those of a catalogue, read anew when the journal has grown."""


def _first(known: Names, words: Sequence[str], queries: Queries | None) -> tuple[Term, int, str]:
    """What the first words mean, as many of them as mean something together; how many, and what is to be said."""
    for n in range(min(len(words), max(known.most_words, _WORDS_OF_NAME)), 0, -1):
        asked = " ".join(words[:n])
        found = known.named(asked) or (None if queries is None else _by_knowledge(known, asked, queries))
        if found is not None:
            return found[0], n, found[1]
    raise UnknownLabelError(unknown_label(words[0], list(known.labels.values())))


def _by_knowledge(known: Names, asked: str, queries: Queries) -> tuple[Term, str] | None:
    """Labels that this is another name of, or that are kinds of it, by what files know."""
    try:
        found = queries.understand(asked)
    except UnknownLabelError:
        return None
    return Term(asked, {known.number(name): name for name in found.labels}), found.sentence


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
