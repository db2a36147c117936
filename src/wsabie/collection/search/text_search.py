"""Search by words: items with the tag, items that look like it, and related labels; or by free text.

Words are label names in any language, with synonyms. Several may stand side by side; `-name` or `-"two words"` excludes
items. Words mean labels by name, by synonym, or by knowledge files, and the answer says which.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sqlalchemy import Connection, SelectBase, and_, func, select

from wsabie.collection.db.cache import DatabaseCache
from wsabie.collection.db.database import begin_read, begin_snapshot, group_pairs
from wsabie.collection.db.tables import Query, annotations, items, labels, synonyms
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.collection.learning.zero_shot import find_items_by_text
from wsabie.collection.registry.item_index import ItemNeighbour, find_nearest_items
from wsabie.collection.registry.model_registry import LoadedModel, load_model_in_use
from wsabie.core.arrays import Float32, Int64
from wsabie.core.errors import InputError, UnknownLabelError, require
from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph
from wsabie.search.exact_index import find_top_k
from wsabie.search.query_labels import HierarchyRelatedLabels, QueryMatcher
from wsabie.vocabulary.concept_matching import match_labels
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph
from wsabie.vocabulary.label_names import format_unknown_label

_WORD = re.compile(r'(?P<no>-?)(?:"(?P<quoted>[^"]*)"|(?P<word>[^\s,"]+))|,')
_WORDS_OF_NAME = 6  # longest name that is looked up in knowledge files
RELATED = 6
"""Maximum number of groups of related labels."""
MAX_KNOWN_RELATED = 4
"""Maximum number of groups from knowledge files."""
NEAR = 0.4
"""Lowest cosine of related labels."""
_MAX_LETTERS = 1000
_MAX_CANDIDATES = 2 * RELATED  # related labels that are tried, as some may have no items
_COMBINED = 8  # combinations of labels that are searched if terms have several meanings


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
    """

    terms: list[QueryTerm]
    excluded: dict[int, str]
    notes: list[str]

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
    UnknownLabelError
        No word means a label; the nearest names are suggested.
    InputError
        The query is empty or has unwanted labels only.
    """
    names, matcher = read_names(connection), None if knowledge is None else knowledge.read_matchers(connection)[0]
    terms: list[QueryTerm] = []
    unwanted: dict[int, str] = {}
    for is_excluded, words in _split_phrases(text):
        while words:
            term, n_words = _match_longest(names, words, matcher)
            if is_excluded:
                unwanted |= term.labels
            else:
                terms.append(term)
            words = words[n_words:]
    require(bool(terms), "nothing is searched for; write a label, and what it must not be behind it: dog -puppy")
    return ParsedQuery(terms, unwanted, [term.note for term in terms if term.note])


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


def _match_longest(names: LabelNames, words: Sequence[str], matcher: QueryMatcher | None) -> tuple[QueryTerm, int]:
    """Return the meaning of the longest phrase at the start, and its number of words."""
    for n_words in range(min(len(words), max(names.most_words, _WORDS_OF_NAME)), 0, -1):
        phrase = " ".join(words[:n_words])
        term = names.find(phrase) or (None if matcher is None else _match_knowledge(names, phrase, matcher))
        if term is not None:
            return term, n_words
    raise UnknownLabelError(format_unknown_label(words[0], list(names.labels.values())))


def _match_knowledge(names: LabelNames, phrase: str, matcher: QueryMatcher) -> QueryTerm | None:
    """Return the labels that knowledge files name as synonyms or kinds of a phrase."""
    try:
        match = matcher.match(phrase)
    except UnknownLabelError:
        return None
    return QueryTerm(phrase, {names.ids[name]: name for name in match.labels}, match.sentence)


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


def find_items_of_labels(
    collection: Collection, label_sets: Sequence[Sequence[int]], k: int = 20, *, exclude: Iterable[int] = ()
) -> list[list[ItemNeighbour]]:
    """Return, for each set of label ids, the items that all of them fit best.

    Labels that the model does not know are ignored. A set without known labels finds nothing, and so does every set if
    there is no model or it was not applied yet.
    """
    results = [list[ItemNeighbour]() for _ in label_sets]
    try:
        loaded_model, column_labels = _load_model_and_labels(collection)
        means = [_average_vectors(loaded_model, column_labels, label_set) for label_set in label_sets]
        points = {position: vector for position, vector in enumerate(means) if vector is not None}
        queries, model = list(points.values()), loaded_model.id
        neighbours = find_nearest_items(collection, queries, k, similarity="dot", exclude=exclude, model=model)
    except InputError:
        return results
    for position, near in zip(points, neighbours, strict=True):
        results[position] = near
    return results


def find_nearest_labels(collection: Collection, label_id: int, k: int = 10) -> dict[int, float]:
    """Return the ids and cosines of the labels nearest to a label; empty if the model lacks it."""
    try:
        loaded_model, column_labels = _load_model_and_labels(collection)
    except InputError:
        return {}
    vector = _average_vectors(loaded_model, column_labels, [label_id])
    if vector is None:
        return {}
    n, vectors = min(k + 8, len(column_labels)), loaded_model.model.label_vectors
    ids, cosines = find_top_k(vector[np.newaxis], vectors, n, similarity="cosine")
    neighbours: dict[int, float] = {}
    for label, cosine in zip(column_labels[ids[0]].tolist(), cosines[0].tolist(), strict=True):
        if label not in (label_id, -1):
            neighbours.setdefault(label, cosine)
    return dict(islice(neighbours.items(), k))


def _load_model_and_labels(collection: Collection) -> tuple[LoadedModel, Int64]:
    model = load_model_in_use(collection)
    with begin_read(collection.engine) as connection:
        return model, model.read_current_labels(connection)


def _average_vectors(loaded_model: LoadedModel, column_labels: Int64, label_ids: Sequence[int]) -> Float32 | None:
    """Return the mean of some labels; labels merged into one of them count too."""
    columns = [matches for label_id in label_ids if len(matches := np.flatnonzero(column_labels == label_id))]
    if not columns:
        return None
    vector: Float32 = np.mean([loaded_model.model.label_vectors[matches].mean(axis=0) for matches in columns], axis=0)
    return vector


class RelatedLabel(NamedTuple):
    """Label with the reason and strength of its relation."""

    id: int
    name: str
    reason: str
    score: float | None


class SearchHit(NamedTuple):
    """Item found for a label; score None if it has the tag."""

    item: int
    label: str
    score: float | None


class ResultGroup(NamedTuple):
    """Items found for the same reason."""

    labels: list[str]
    reason: str
    score: float | None
    hits: list[SearchHit]


class SearchResult(NamedTuple):
    """Interpretation of a query and groups of items: tagged, similar, then of related labels."""

    meaning: ParsedQuery
    groups: list[ResultGroup]


def search_items(
    collection: Collection, text: str, k: int = 24, knowledge: LabelKnowledge | None = None
) -> SearchResult:
    """Find items by words; words that are not a label are a free text about untagged items.

    Parameters
    ----------
    collection : Collection
    text : str
        Query of at most 1,000 characters.
    k : int
        Maximum number of items in a group.
    knowledge : LabelKnowledge or None
        Knowledge for words that are not a label, and for parts and other relations.

    Raises
    ------
    UnknownLabelError
        No word means a label; the nearest names are suggested.
    InputError
        The query is empty or has unwanted labels only.
    """
    require(len(text) <= _MAX_LETTERS, f"the text has {len(text):,} characters; search with at most {_MAX_LETTERS:,}")
    with begin_snapshot(collection.engine) as connection:
        try:
            meaning = parse_query(connection, text, knowledge)
        except UnknownLabelError as error:
            result = _search_free_text(collection, connection, text, k, str(error))
            if not result.groups:
                raise
            return result
        # Rejecting one label of a term with several is not a reason against an item.
        single_labels = [label_id for term in meaning.terms if len(term.labels) == 1 for label_id in term.labels]
        excluded_query = _select_decided(single_labels, "rejected").union(_select_decided(meaning.excluded))
        excluded = connection.scalars(excluded_query).all()
        related_first = [*_find_kinds(connection, meaning), *_find_by_knowledge(connection, meaning, knowledge)]
        names = read_names(connection).labels
        related = list(islice(_find_related(collection, meaning, related_first, names), _MAX_CANDIDATES))
        combinations = list(islice(product(*(term.labels.items() for term in meaning.terms)), _COMBINED))
        label_sets = [[label_id for label_id, _ in pairs] for pairs in combinations] + [[label.id] for label in related]
        # The first two groups hold up to 2 k items, which later groups skip.
        neighbours = find_items_of_labels(collection, label_sets, 3 * k, exclude=excluded)
        by_label = [(pairs[0][1], near) for pairs, near in zip(combinations, neighbours, strict=False)]
        groups = _make_main_groups(connection, meaning, k, by_label)
        shown_items, half = {hit.item for group in groups for hit in group.hits}, max(1, k // 2)
        n_newest = len(shown_items) + (RELATED + 1) * half
        is_allowed, related_ids = annotations.c.item_id.not_in(excluded_query), [label.id for label in related]
        tagged = label_store.find_example_items(connection, related_ids, n_newest, is_allowed)
    for label, near in zip(related, neighbours[len(combinations) :], strict=True):
        scores: dict[int, float | None] = {item.id: None for item in tagged[label.id]}
        scores |= {item: score for item, score in near if item not in scores}  # similar ones if few are tagged
        hits = [SearchHit(item, label.name, score) for item, score in scores.items() if item not in shown_items][:half]
        if hits:
            groups.append(ResultGroup([label.name], label.reason, label.score, hits))
            shown_items |= {hit.item for hit in hits}
        if len(groups) == RELATED + 2:
            break
    return SearchResult(meaning, [group for group in groups if group.hits])


def _search_free_text(collection: Collection, connection: Connection, text: str, k: int, note: str) -> SearchResult:
    """Find untagged items by words that are not a label, without those of excluded labels."""
    words: list[str] = []
    excluded: dict[int, str] = {}
    for is_excluded, phrase in _split_phrases(text):
        if is_excluded:
            excluded |= _match_longest(read_names(connection), phrase, None)[0].labels
        else:
            words += phrase
    title = " ".join(words)
    excluded_items = connection.scalars(_select_decided(excluded)).all()
    hits = [SearchHit(item, title, score) for item, score in find_items_by_text(collection, title, k, excluded_items)]
    reason = f"what the network sees is near '{title}'"
    groups = [ResultGroup([title], reason, None, hits)] if hits else []
    return SearchResult(ParsedQuery([], excluded, [f"'{title}' is not a label" if len(words) > 1 else note]), groups)


def _make_main_groups(
    connection: Connection, meaning: ParsedQuery, k: int, by_label: Sequence[tuple[str, list[ItemNeighbour]]]
) -> list[ResultGroup]:
    """Return the groups of tagged and of similar items; of a term's labels the best one counts."""
    tagged = _find_tagged(connection, meaning.terms, k, _select_decided(meaning.excluded))
    similar: dict[int, SearchHit] = {}
    hits = [SearchHit(item, label, score) for label, neighbours in by_label for item, score in neighbours]
    for hit in sorted(hits, key=lambda hit: -(hit.score or 0.0)):
        similar.setdefault(hit.item, hit)
    for hit in tagged:
        similar.pop(hit.item, None)
    title, names = " and ".join(map(str, meaning.terms)), list(meaning.labels.values())
    return [
        ResultGroup(names, f"tagged {title}", None, tagged),
        ResultGroup(names, f"looks like {title}", None, list(similar.values())[:k]),
    ]


def _find_tagged(connection: Connection, terms: Sequence[QueryTerm], k: int, excluded: SelectBase) -> list[SearchHit]:
    """Return the newest items that have a label of each term and are not excluded."""
    query = select(items.c.id).where(items.c.state == "present").order_by(items.c.id.desc()).limit(k)
    has_all = and_(*(items.c.id.in_(_select_decided(term.labels)) for term in terms))
    item_ids = list(connection.scalars(query.where(has_all, items.c.id.not_in(excluded))))
    a = annotations.c
    first = terms[0].labels
    label_query = select(a.item_id, func.min(a.label_id)).where(a.item_id.in_(item_ids), a.label_id.in_(first))
    label_of = dict(connection.execute(label_query.where(a.state == "accepted").group_by(a.item_id)).all())
    return [SearchHit(item, first[label_of[item]], None) for item in item_ids]


def _select_decided(label_ids: Iterable[int], state: str = "accepted") -> Query:
    """Return the query for items with a decision of this state about one of some labels."""
    a = annotations.c
    return select(a.item_id).where(a.label_id.in_(list(label_ids)), a.state == state)


def _find_kinds(connection: Connection, meaning: ParsedQuery) -> list[RelatedLabel]:
    """Return the child labels of the requested ones."""
    c, requested = labels.c, meaning.labels
    query = select(c.id, c.name, c.parent_id).where(c.parent_id.in_(list(requested)), c.merged_into.is_(None))
    rows = connection.execute(query.order_by(c.name)).all()
    return [RelatedLabel(row[0], row[1], f"'{row[1]}' is a kind of '{requested[row[2]]}'", None) for row in rows]


def _find_by_knowledge(
    connection: Connection, meaning: ParsedQuery, knowledge: LabelKnowledge | None
) -> list[RelatedLabel]:
    """Return labels that knowledge files relate to the query as parts, kinds or wholes."""
    if knowledge is None:
        return []
    names, (_, finder) = read_names(connection), knowledge.read_matchers(connection)
    links = [link for term in meaning.terms for link in finder.related(term.text, MAX_KNOWN_RELATED)]
    return [RelatedLabel(names.ids[link.label], link.label, link.reason, link.score) for link in links]


def _find_related(
    collection: Collection, meaning: ParsedQuery, candidates: Sequence[RelatedLabel], names: Mapping[int, str]
) -> Iterator[RelatedLabel]:
    """Yield related labels: the given ones, then labels near to the query in the model's space."""
    known_ids = set(meaning.labels) | set(meaning.excluded)
    for label in candidates:
        if label.id not in known_ids:
            known_ids.add(label.id)
            yield label
    for label_id, name in islice(meaning.labels.items(), _COMBINED):
        for related_id, cosine in find_nearest_labels(collection, label_id, RELATED).items():
            if related_id not in known_ids and cosine >= NEAR:
                known_ids.add(related_id)
                reason = f"near '{name}' in the model's space (cosine {cosine:.2f})"
                yield RelatedLabel(related_id, names[related_id], reason, cosine)
