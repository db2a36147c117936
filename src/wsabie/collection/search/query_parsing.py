"""Labels that the words of a search mean: by name, by synonym, or by knowledge files.

Names may be in any language. Several may stand side by side; `-name` or `-"two words"` excludes items.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, select

from wsabie.collection.db.cache import DatabaseCache
from wsabie.collection.db.database import group_pairs
from wsabie.collection.db.tables import labels, synonyms
from wsabie.collection.labels import label_store
from wsabie.core.errors import UnknownLabelError, require
from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph
from wsabie.search.query_labels import HierarchyRelatedLabels, QueryMatcher
from wsabie.vocabulary.concept_matching import match_labels
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph

_WORD = re.compile(r'(?P<no>-?)(?:"(?P<quoted>[^"]*)"|(?P<word>[^\s,"]+))|,')
_WORDS_OF_NAME = 6  # longest name that is looked up in knowledge files


class QueryTerm(NamedTuple):
    """Part of a query, the labels that it means (names by id, any may match), and an explanation."""

    text: str
    labels: dict[int, str]
    note: str = ""

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
    text : str
        All words that are not excluded.
    unknown, unwanted : list of str
        Words of the text, and excluded phrases, that are not labels.
    """

    terms: list[QueryTerm]
    excluded: dict[int, str]
    notes: list[str]
    text: str
    unknown: list[str]
    excluded_phrases: list[str]

    @property
    def labels(self) -> dict[int, str]:
        """Labels of all terms."""
        return {label_id: name for term in self.terms for label_id, name in term.labels.items()}


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
        self.read_matchers = DatabaseCache(self._build_matchers)
        """Matcher of words and finder of related labels, for a connection."""

    def _build_matchers(self, connection: Connection) -> tuple[QueryMatcher, HierarchyRelatedLabels]:
        query = select(labels.c.name, labels.c.wordnet).where(labels.c.merged_into.is_(None)).order_by(labels.c.id)
        synsets = {name: synset for name, synset in connection.execute(query)}  # noqa: C416 - rows are not tuples to `dict`
        table = {name: synset for name, synset in synsets.items() if synset and self.knowledge.find(synset)}
        matches = match_labels(self.knowledge, list(synsets), table)
        return QueryMatcher(matches.labels, matches), HierarchyRelatedLabels(matches, source_name=self.called)


def load_label_knowledge(*files: Path) -> LabelKnowledge | None:
    """Return the knowledge of some files about words; None without files.

    Raises
    ------
    InputError
        As `knowledge_graphs.read_knowledge_graph`.
    """
    return LabelKnowledge(read_knowledge_graph(*files), " and ".join(file.stem for file in files)) if files else None


def parse_query(connection: Connection, text: str, knowledge: LabelKnowledge | None = None) -> ParsedQuery:
    """Return the labels that words mean; the longest name of adjacent words counts.

    Raises
    ------
    InputError
        The query is empty or has unwanted words only.
    """
    names, matcher = read_names(connection), None if knowledge is None else knowledge.read_matchers(connection)[0]
    query = ParsedQuery([], {}, [], "", [], [])
    included_words: list[str] = []
    for is_excluded, words in split_phrases(text):
        included_words += [] if is_excluded else words
        while words:
            term, n_words = match_longest(names, words, matcher)
            if term is None and is_excluded:
                query.excluded_phrases.append(" ".join(words))
                break
            if term is None:
                query.unknown.append(words[0])
            elif is_excluded:
                query.excluded.update(term.labels)
            else:
                query.terms.append(term)
            words = words[n_words:]
    require(bool(included_words), "the search has only words to leave out; write a label before them: dog -puppy")
    query.notes.extend(term.note for term in query.terms if term.note)
    return query._replace(text=" ".join(included_words))


class LabelNames:
    """Names and synonyms of all labels."""

    def __init__(self, connection: Connection) -> None:
        self.labels: dict[int, str] = label_store.read_label_names(connection)
        rows = connection.execute(select(synonyms.c.name, synonyms.c.label_id, synonyms.c.language)).all()
        self.synonyms: dict[str, int] = {row[0]: row[1] for row in rows}
        self.languages: dict[str, str] = {row[0]: row[2] for row in rows}
        self.ids = self.synonyms | {name: label_id for label_id, name in self.labels.items()}
        self._ids_by_folded_name = group_pairs((name.casefold(), label_id) for name, label_id in self.ids.items())
        self.most_words = max((name.count(" ") + 1 for name in self.ids), default=1)

    def find(self, phrase: str) -> QueryTerm | None:
        """Return the label of this name, or all labels that differ in case only."""
        exact = self.ids.get(phrase)
        label_ids = [exact] if exact is not None else self._ids_by_folded_name.get(phrase.casefold(), ())
        matches = {label_id: self.labels[label_id] for label_id in label_ids}
        if not matches:
            return None
        if len(matches) > 1:
            return QueryTerm(phrase, matches, f"'{phrase}' is {' or '.join(map(repr, matches.values()))}")
        name = next(iter(matches.values()))
        is_synonym = phrase.casefold() != name.casefold()
        return QueryTerm(name, matches, f"'{phrase}' is another name of '{name}'" if is_synonym else "")


read_names = DatabaseCache(LabelNames)
"""Cached names of a database, read again after every change."""


def match_longest(
    names: LabelNames, words: Sequence[str], matcher: QueryMatcher | None
) -> tuple[QueryTerm | None, int]:
    """Return the meaning of the longest phrase at the start and its number of words, or None and 1."""
    for n_words in range(min(len(words), max(names.most_words, _WORDS_OF_NAME)), 0, -1):
        phrase = " ".join(words[:n_words])
        term = names.find(phrase) or (None if matcher is None else _match_knowledge(names, phrase, matcher))
        if term is not None:
            return term, n_words
    return None, 1


def _match_knowledge(names: LabelNames, phrase: str, matcher: QueryMatcher) -> QueryTerm | None:
    """Return the labels that knowledge files name as synonyms or kinds of a phrase."""
    try:
        match = matcher.match(phrase)
    except UnknownLabelError:
        return None
    return QueryTerm(phrase, {names.ids[name]: name for name in match.labels}, match.sentence)


def split_phrases(text: str) -> Iterator[tuple[bool, list[str]]]:
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
