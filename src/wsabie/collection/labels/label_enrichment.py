"""Enrichment of labels from WordNet or another graph: synset, language, parent and synonyms."""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import Connection, select

from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read, group_pairs
from wsabie.collection.db.journal import Row, begin_entry
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.core.errors import InputError
from wsabie.vocabulary.concept_hierarchy import make_lookup_key
from wsabie.vocabulary.concept_matching import match_labels
from wsabie.vocabulary.knowledge_graph import UP, KnowledgeGraph

_MAX_ID = 20  # characters of the column
_MAX_LANGUAGE = 35


class EnrichmentCounts(NamedTuple):
    """Number of labels that got each field, and of labels without a known concept."""

    labels: int
    meanings: int
    languages: int
    parents: int
    synonyms: int
    unknown: int


class LabelEnrichment(NamedTuple):
    """New fields of a label; "" and () for fields that stay."""

    label: str
    wordnet: str
    language: str
    parent: str
    synonyms: tuple[str, ...]


def plan_enrichment(
    collection: Collection, knowledge: KnowledgeGraph, *, table: Mapping[str, str] | None = None
) -> list[LabelEnrichment]:
    """Return the changes that `enrich_labels` would make, by label name.

    Raises
    ------
    InputError
        The table has an unknown id.
    """
    names, concepts = _match_concepts(collection, knowledge, table)
    with begin_read(collection.engine) as connection:
        columns, new_names = _make_plan(connection, knowledge, names, concepts)
    synonyms = group_pairs((row["label_id"], row["name"]) for row in new_names)
    enrichments = []
    for label_id, new in columns.items():
        if new or label_id in synonyms:
            parent = names[new["parent_id"]] if "parent_id" in new else ""
            fields = new.get("wordnet", ""), new.get("language", ""), parent, tuple(synonyms.get(label_id, ()))
            enrichments.append(LabelEnrichment(names[label_id], *fields))
    return sorted(enrichments)


def enrich_labels(
    collection: Collection, knowledge: KnowledgeGraph, by: str, *, table: Mapping[str, str] | None = None
) -> EnrichmentCounts:
    """Fill empty fields of labels from a knowledge graph; existing values stay.

    A label gets its synset, the language of its name if that is unique, the nearest more general label of the
    collection as its parent, and the names of the synset whose first sense it is as synonyms, unless they are labels.

    Parameters
    ----------
    collection : Collection
    knowledge : KnowledgeGraph
    by : str
    table : mapping of str to str, or None
        Concept ids by label, chosen by hand; an empty id means no concept.

    Raises
    ------
    InputError
        The table has an unknown id.
    """
    names, concepts = _match_concepts(collection, knowledge, table)
    with begin_entry(collection.engine, by, "fill") as change:
        columns, new_names = _make_plan(change.connection, knowledge, names, concepts)
        fields = ("wordnet", "language", "parent_id")
        meanings, languages, parents = (sum(field in new for new in columns.values()) for field in fields)
        change.update(tables.labels, columns)
        change.add(tables.synonyms, new_names)
        change.summary = f"filled in {len(concepts):,} labels: {parents:,} parents, {len(new_names):,} synonyms"
    return EnrichmentCounts(len(names), meanings, languages, parents, len(new_names), len(names) - len(concepts))


def _match_concepts(
    collection: Collection, knowledge: KnowledgeGraph, table: Mapping[str, str] | None
) -> tuple[dict[int, str], dict[int, str]]:
    """Return label names by id, and the concepts of the labels that match one."""
    with begin_read(collection.engine) as connection:
        names = label_store.read_label_names(connection)
    matches = match_labels(knowledge, list(names.values()), table)
    pairs = zip(names, matches.concepts, strict=True)
    return names, {label_id: concept for label_id, concept in pairs if concept is not None}


def _make_plan(
    connection: Connection, knowledge: KnowledgeGraph, names: Mapping[int, str], concepts: dict[int, str]
) -> tuple[dict[int, Row], list[Row]]:
    """Return new columns by label id, and rows of new synonyms."""
    ancestors, synonyms = _find_broader_labels(knowledge, concepts), _find_synonyms(knowledge, concepts)
    query = select(tables.labels).where(tables.labels.c.merged_into.is_(None))
    rows: dict[int, Row] = {row["id"]: dict(row) for row in connection.execute(query).mappings()}
    columns: dict[int, Row] = {}
    parents = {label_id: row["parent_id"] for label_id, row in rows.items()}
    for label_id, concept in concepts.items():
        if label_id not in rows or rows[label_id]["name"] != names[label_id]:
            continue  # merged or renamed since
        columns[label_id] = new = _fill_columns(knowledge, rows[label_id], concept)
        if rows[label_id]["parent_id"] is None:
            for parent in ancestors[label_id]:  # none that would put the label above itself
                if parent in rows and label_id not in (parent, *label_store.iterate_ancestors(parents, parent)):
                    new["parent_id"] = parents[label_id] = parent
                    break
    existing = label_store.find_labels(connection, synonyms)
    new_names = [
        {"name": name, "label_id": label_id, "language": language}
        for name, (label_id, language) in synonyms.items()
        if name not in existing and label_id in columns
    ]
    return columns, new_names


def _fill_columns(knowledge: KnowledgeGraph, row: Row, concept: str) -> Row:
    """Return new values of the empty columns of a label."""
    new: Row = {}
    if not row["wordnet"] and len(concept) <= _MAX_ID:
        new["wordnet"] = concept
    concept_entry, key = knowledge.concept(concept), make_lookup_key(row["name"])
    entries = zip(concept_entry.names, concept_entry.languages, strict=True)
    languages = {language for name, language in entries if make_lookup_key(name) == key}
    if not row["language"] and len(languages) == 1 and 0 < len(language := languages.pop()) <= _MAX_LANGUAGE:
        new["language"] = language
    return new


def _find_broader_labels(knowledge: KnowledgeGraph, concepts: dict[int, str]) -> dict[int, list[int]]:
    """Return up to five more general labels of each label, nearest first."""
    first_labels = {concept: label_id for label_id, concept in reversed(concepts.items())}
    broader_labels: dict[int, list[int]] = {}
    for label_id, concept in concepts.items():
        broader_concepts = (broader for broader in knowledge.reach([concept], UP) if broader != concept)
        broader_labels[label_id] = [first_labels[c] for c in broader_concepts if c in first_labels][:5]
    return broader_labels


def _find_synonyms(knowledge: KnowledgeGraph, concepts: Mapping[int, str]) -> dict[str, tuple[int, str]]:
    """Return synonyms of concepts with label id and language; the first label of a concept wins."""
    synonyms: dict[str, tuple[int, str]] = {}
    for label_id, concept in concepts.items():
        concept_entry = knowledge.concept(concept)
        for name, language in zip(concept_entry.names, concept_entry.languages, strict=True):
            try:
                synonym = label_store.normalise_name(name)
            except InputError:
                continue
            if knowledge.find_senses(name)[:1] == [concept] and len(language) <= _MAX_LANGUAGE:
                synonyms.setdefault(synonym, (label_id, language))
    return synonyms
