"""Labels that words of a query mean: by name, by synonym, or by knowledge files."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, select

from wsabie.collection.db.cache import CatalogueCache
from wsabie.collection.db.tables import labels, synonyms
from wsabie.collection.labels import label_store
from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph
from wsabie.search.query_labels import QueryMatcher
from wsabie.search.related_labels import HierarchyRelatedLabels, LabelLink
from wsabie.vocabulary.concept_matching import match_labels
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph
from wsabie.vocabulary.label_names import format_unknown_label

_WORD = re.compile(r'(?P<no>-?)(?:"(?P<quoted>[^"]*)"|(?P<word>[^\s,"]+))|,')
_WORDS_OF_NAME = 6  # longest name that is looked up in knowledge files


class QueryTerm(NamedTuple):
    """Part of a query and the labels that it means, names by id; any of them may match."""

    text: str
    labels: dict[int, str]

    def __str__(self) -> str:
        return f"'{self.text if len(self.labels) > 1 else next(iter(self.labels.values()))}'"


class ParsedQuery(NamedTuple):
    """Labels that a text means.

    Attributes
    ----------
    terms : list of QueryTerm
        Terms that an item has to fit, all of them.
    excluded : dict of int to str
        Labels that an item must not have.
    notes : list of str
        Sentences that explain the interpretation.
    """

    terms: list[QueryTerm]
    excluded: dict[int, str]
    notes: list[str]

    @property
    def labels(self) -> dict[int, str]:
        """Labels of all terms."""
        return {number: name for term in self.terms for number, name in term.labels.items()}


class LabelKnowledge:
    """Knowledge, such as WordNet, about a collection's labels; renewed when labels change.

    A label with a synset has that meaning; any other label has the usual meaning of its name.

    Parameters
    ----------
    knowledge : KnowledgeGraph
    called : str
        Name of the source in explanations.
    """

    def __init__(self, knowledge: KnowledgeGraph, called: str) -> None:
        self.knowledge, self.called = knowledge, called
        self.of = CatalogueCache(self._of)
        """Matcher of words and finder of related labels, for a connection."""

    def _of(self, connection: Connection) -> tuple[QueryMatcher, HierarchyRelatedLabels]:
        query = select(labels.c.name, labels.c.wordnet).where(labels.c.merged_into.is_(None)).order_by(labels.c.id)
        rows = [(name, synset) for name, synset in connection.execute(query)]
        table = {name: synset for name, synset in rows if synset and self.knowledge.find(synset)}
        label_matches = match_labels(self.knowledge, [name for name, _ in rows], table)
        return QueryMatcher(label_matches.labels, label_matches), HierarchyRelatedLabels(
            label_matches, source_name=self.called
        )


def load_label_knowledge(*files: Path) -> LabelKnowledge | None:
    """Return the knowledge of some files about words; None without files.

    Raises
    ------
    InputError
        As `knowledge_graphs.read_knowledge_graph`.
    """
    return LabelKnowledge(read_knowledge_graph(*files), " and ".join(file.stem for file in files)) if files else None


def parse_query(connection: Connection, text: str, meanings: LabelKnowledge | None = None) -> ParsedQuery:
    """Return the labels that words mean; the longest name of adjacent words counts.

    Raises
    ------
    UnknownLabelError
        No word means a label; the nearest names are suggested.
    InputError
        The query is empty or has unwanted labels only.
    """
    names, matcher = read_names(connection), None if meanings is None else meanings.of(connection)[0]
    terms: list[QueryTerm] = []
    unwanted: dict[int, str] = {}
    notes: list[str] = []
    for is_excluded, words in _split_phrases(text):
        while words:
            term, n_words, sentence = _match_longest(names, words, matcher)
            if is_excluded:
                unwanted |= term.labels
            else:
                terms.append(term)
                notes += [sentence] if sentence else []
            words = words[n_words:]
    if not terms:
        raise InputError("nothing is searched for; write a label, and what it must not be behind it: dog -puppy")
    return ParsedQuery(terms, unwanted, notes)


def find_related_labels(
    connection: Connection, meanings: LabelKnowledge | None, term: QueryTerm, k: int
) -> list[LabelLink]:
    """Return labels related to a term by knowledge: parts, kinds and wholes."""
    return [] if meanings is None else meanings.of(connection)[1].related(term.text, k)


class LabelNames:
    """Names and synonyms of all labels."""

    def __init__(self, connection: Connection) -> None:
        self.labels: dict[int, str] = label_store.read_label_names(connection)
        rows = connection.execute(select(synonyms.c.name, synonyms.c.label_id, synonyms.c.language)).all()
        self.synonyms: dict[str, int] = {row[0]: row[1] for row in rows}
        self.languages: dict[str, str] = {row[0]: row[2] for row in rows}
        self._numbers = self.synonyms | {name: number for number, name in self.labels.items()}
        self._ids_by_folded_name: dict[str, list[int]] = {}
        for name, number in self._numbers.items():
            self._ids_by_folded_name.setdefault(name.casefold(), []).append(number)
        self.most_words = max((name.count(" ") + 1 for name in self._numbers), default=1)

    def get_id(self, name: str) -> int:
        """Return the id of the label with this exact name."""
        return self._numbers[name]

    def find(self, phrase: str) -> tuple[QueryTerm, str] | None:
        """Return the label of this name, or all labels that differ in case only, and an explanation."""
        exact = self._numbers.get(phrase)
        numbers = [exact] if exact is not None else self._ids_by_folded_name.get(phrase.casefold(), ())
        matches = {number: self.labels[number] for number in numbers}
        if not matches:
            return None
        if len(matches) > 1:
            return QueryTerm(phrase, matches), f"'{phrase}' is {' or '.join(repr(name) for name in matches.values())}"
        name = next(iter(matches.values()))
        is_synonym = phrase.casefold() != name.casefold()
        return QueryTerm(name, matches), f"'{phrase}' is another name of '{name}'" if is_synonym else ""


read_names = CatalogueCache(LabelNames)
"""Cached names of a database, read again after every change."""


def _match_longest(names: LabelNames, words: Sequence[str], matcher: QueryMatcher | None) -> tuple[QueryTerm, int, str]:
    """Return the meaning of the longest phrase at the start, its number of words, and an explanation."""
    for n_words in range(min(len(words), max(names.most_words, _WORDS_OF_NAME)), 0, -1):
        phrase = " ".join(words[:n_words])
        match = names.find(phrase) or (None if matcher is None else _match_knowledge(names, phrase, matcher))
        if match is not None:
            return match[0], n_words, match[1]
    raise UnknownLabelError(format_unknown_label(words[0], list(names.labels.values())))


def _match_knowledge(names: LabelNames, phrase: str, matcher: QueryMatcher) -> tuple[QueryTerm, str] | None:
    """Return the labels that knowledge files name as synonyms or kinds of a phrase."""
    try:
        match = matcher.match(phrase)
    except UnknownLabelError:
        return None
    return QueryTerm(phrase, {names.get_id(name): name for name in match.labels}), match.sentence


def _split_phrases(text: str) -> Iterator[tuple[bool, list[str]]]:
    """Yield adjacent words and whether they are excluded; quotes keep words together and apart."""
    phrase: list[str] = []
    for match in _WORD.finditer(text):
        word = match["quoted"] if match["quoted"] is not None else match["word"]
        if word is not None and not match["no"] and match["quoted"] is None:
            phrase.append(word)
            continue
        if phrase:
            yield False, phrase
            phrase = []
        if word:
            yield bool(match["no"]), word.split()
    if phrase:
        yield False, phrase
