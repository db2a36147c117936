"""Search for labels that could be merged, with the evidence for each pair; nothing is merged."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from sqlalchemy import Connection, func, select

from wsabie.collection.annotations.decisions import find_model_in_use
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import begin_entry, read_rows
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels.label_store import merge_label, read_merge_targets
from wsabie.collection.merge_proposals.evidence import (
    DIFFERENT_WORDS,
    MAX_SEARCHED,
    Cooccurrence,
    Evidence,
    EvidenceCollector,
    LabelCount,
    Pair,
    compute_score,
    is_firm,
    normalise_rows,
    read_cooccurrence,
)
from wsabie.collection.registry.model_registry import LoadedModel, load_model_in_use
from wsabie.core.arrays import Float32
from wsabie.core.errors import InputError
from wsabie.core.progress import SILENT, Progress
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph

LabelEmbeddings = tuple[Float32, list[int]]

MIN_SCORE = 0.7
"""Lowest score of a proposed pair."""
MAX_GROUP_SIZE = 30
"""Largest number of labels in a proposal: a longer chain hardly names one concept."""


class MergeReason(NamedTuple):
    """Evidence for merging two labels of a proposal; negative weights speak against it."""

    first: str
    second: str
    score: float
    evidence: list[Evidence]


class MergeProposal(NamedTuple):
    """Group of labels that could be merged.

    Attributes
    ----------
    target : LabelCount
        In the preferred language if possible, else the most frequent label.
    labels : list of LabelCount
        Labels to merge into the target.
    score : float
        Score of the weakest link, from 0 to 1.
    reasons : list of MergeReason
        Links of the group, one for each of `labels`.
    """

    target: LabelCount
    labels: list[LabelCount]
    score: float
    reasons: list[MergeReason]


class ProposalList(NamedTuple):
    """Proposals, best first, their total number, and sources that were not used, with the reason."""

    proposals: list[MergeProposal]
    total: int
    labels: int
    unused_sources: dict[str, str]


class MergeSummary(NamedTuple):
    """Number of target labels, of merged labels, and of moved annotations."""

    targets: int
    merged: int
    moved: int


def find_proposals(
    collection: Collection,
    *,
    knowledge: KnowledgeGraph | None = None,
    k: int | None = 50,
    min_score: float = MIN_SCORE,
    language: str = "",
    progress: Progress = SILENT,
) -> ProposalList:
    """Find labels that could be merged, best first; excluded pairs are left out.

    Parameters
    ----------
    collection : Collection
    knowledge : KnowledgeGraph or None
        WordNet or another graph of concepts.
    k : int or None
        Largest number of proposals.
    min_score : float
        Lowest score of a pair.
    language : str
        Preferred language of targets; "": the most frequent label is the target.
    progress : Progress
    """
    model, model_message = _load_model(collection)
    with begin_read(collection.engine) as connection:
        labels, places, exclusions = read_labels_by_frequency(connection)
        cooccurrence = read_cooccurrence(connection, places)
        embeddings = None if model is None else _compute_label_means(model, connection, places)
    evidence_by_pair = _collect_evidence(labels, knowledge, embeddings, cooccurrence, progress)
    exclusions |= {
        pair
        for pair, evidence in evidence_by_pair.items()
        if any(entry.weight <= DIFFERENT_WORDS for entry in evidence)
    }
    links = {
        pair: MergeReason(labels[pair[0]].name, labels[pair[1]].name, score, evidence)
        for pair, evidence in evidence_by_pair.items()
        if (score := round(compute_score(evidence), 3)) >= min_score  # the displayed score decides
    }
    proposals = group_links(labels, links, exclusions, language)
    unused_sources = {"model": model_message} if embeddings is None else {}
    unused_sources |= {"knowledge": "none was given"} if knowledge is None else {}
    return ProposalList(proposals[:k], len(proposals), len(labels), unused_sources)


def group_links(
    labels: Sequence[LabelCount], links: Mapping[Pair, MergeReason], exclusions: set[Pair], language: str = ""
) -> list[MergeProposal]:
    """Group linked labels into proposals, best first.

    Parameters
    ----------
    labels : sequence of LabelCount
    links : mapping of (int, int) to MergeReason
        Linked pairs of places in `labels`, the smaller first.
    exclusions : set of (int, int)
        Pairs that must not be in one group.
    language : str
        As in `find_proposals`.
    """
    scores = {pair: compute_score(reason.evidence) for pair, reason in links.items()}
    weak_pairs = {pair for pair, reason in links.items() if not is_firm(reason.evidence)}
    groups = _group_pairs(scores, exclusions, weak_pairs, [label.language for label in labels])
    proposals = [_make_proposal(labels, language, [(pair, links[pair]) for pair in group]) for group in groups]
    return sorted(
        proposals,
        key=lambda proposal: (-proposal.score, -sum(label.items for label in proposal.labels), proposal.target.name),
    )


def read_labels_by_frequency(connection: Connection) -> tuple[list[LabelCount], dict[int, int], set[Pair]]:
    """Return labels, the most frequent first, their places by id, and the excluded pairs of places."""
    labels, parents = _read_labels(connection)
    places = {label.id: i for i, label in enumerate(labels)}
    return labels, places, _read_exclusions(connection, places) | {(min(a, b), max(a, b)) for a, b in parents}


def apply_proposals(collection: Collection, proposals: Sequence[MergeProposal], by: str) -> MergeSummary:
    """Merge the labels of proposals as one journal entry; labels that changed since are skipped."""
    n_moved = n_targets = n_merged = 0
    with begin_entry(collection.engine, by, "tidy") as change:
        for proposal in proposals:
            members = [proposal.target, *proposal.labels]
            rows = read_rows(change.connection, tables.labels, [label.id for label in members])
            names = {row["id"]: row["name"] for row in rows if row["merged_into"] is None}
            unchanged = [label for label in members if names.get(label.id) == label.name]
            if len(unchanged) < 2 or unchanged[0] != proposal.target:
                continue
            merges = [merge_label(change, label.id, proposal.target.id) for label in unchanged[1:]]
            n_targets += 1
            n_merged += len(merges)
            n_moved += sum(merge.moved for merge in merges)
        change.summary = f"merged {n_merged:,} labels into {n_targets:,}"
    return MergeSummary(n_targets, n_merged, n_moved)


def _collect_evidence(
    labels: Sequence[LabelCount],
    knowledge: KnowledgeGraph | None,
    embeddings: LabelEmbeddings | None,
    cooccurrence: Cooccurrence,
    progress: Progress,
) -> dict[Pair, list[Evidence]]:
    """Return all evidence by pair of labels."""
    collector = EvidenceCollector(labels, knowledge)
    steps = [
        collector.add_spelling,
        collector.add_concepts,
        lambda: None if embeddings is None else collector.add_embeddings(*embeddings),
        lambda: collector.add_cooccurrence(cooccurrence),
        collector.add_differences,
    ]
    with progress.stage("comparing labels", len(steps), "") as stage:
        for step in steps:
            step()
            stage.advance()
    return collector.by_pair


def _read_labels(connection: Connection) -> tuple[list[LabelCount], list[Pair]]:
    """Return labels, the most frequent first, and the places of each child and its parent."""
    labels, a = tables.labels.c, tables.annotations.c
    count = select(a.label_id, func.count(a.item_id.distinct()).label("n")).where(a.state == "accepted")
    label_counts = count.group_by(a.label_id).subquery()
    query = (
        select(labels.id, labels.name, labels.language, func.coalesce(label_counts.c.n, 0), labels.parent_id)
        .select_from(tables.labels.outerjoin(label_counts, label_counts.c.label_id == labels.id))
        .where(labels.merged_into.is_(None))
    )
    rows = sorted(connection.execute(query).all(), key=lambda row: (-row[3], row[0]))
    places = {row[0]: i for i, row in enumerate(rows)}
    parents = [(i, places[row[4]]) for i, row in enumerate(rows) if row[4] in places]
    return [LabelCount(*row[:4]) for row in rows], parents


def _read_exclusions(connection: Connection, places: Mapping[int, int]) -> set[Pair]:
    """Return excluded pairs of places; a merged label counts as its target."""
    final_ids = {number: number for number in places} | read_merge_targets(connection)
    pairs = connection.execute(select(tables.merge_exclusions.c.label_a, tables.merge_exclusions.c.label_b)).all()
    exclusions = ((places[final_ids[a]], places[final_ids[b]]) for a, b in pairs)
    return {(min(a, b), max(a, b)) for a, b in exclusions if a != b}


def _load_model(collection: Collection) -> tuple[LoadedModel | None, str]:
    """Return the model in use; None and the reason if there is none or it does not open."""
    with begin_read(collection.engine) as connection:
        if find_model_in_use(connection) is None:
            return None, "none was in use"
    try:
        return load_model_in_use(collection), ""
    except InputError as error:
        return None, f"it has no space of labels ({error})"


def _compute_label_means(model: LoadedModel, connection: Connection, places: Mapping[int, int]) -> LabelEmbeddings:
    """Return label embeddings of a model with their places; merged labels give the mean."""
    vectors, columns = model.model.label_vectors, defaultdict[int, list[int]](list)
    for column, number in enumerate(model.labels_now(connection).tolist()):
        if number in places:
            columns[places[number]].append(column)
    frequent = sorted(columns)[:MAX_SEARCHED]
    means = np.empty((len(frequent), vectors.shape[1]), np.float32)
    for row, label_place in enumerate(frequent):
        means[row] = vectors[columns[label_place]].mean(axis=0)
    return normalise_rows(means), frequent


def _group_pairs(
    scores: Mapping[Pair, float], exclusions: set[Pair], weak_pairs: set[Pair], languages: Sequence[str]
) -> list[list[Pair]]:
    """Return the pairs of each group, best first; no group contains an excluded pair.

    Two words of one language that are always together mean two concepts. So `weak_pairs`, which only co-occurrence
    links, never join two labels of one language.
    """
    group: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    links: dict[int, list[Pair]] = {}
    for pair in sorted(scores, key=lambda pair: (-scores[pair], pair)):
        left_group, right_group = (group.setdefault(place, place) for place in pair)
        left_members, right_members = (
            members.setdefault(left_group, [left_group]),
            members.setdefault(right_group, [right_group]),
        )
        if left_group == right_group or len(left_members) + len(right_members) > MAX_GROUP_SIZE:
            continue
        if any((min(a, b), max(a, b)) in exclusions for a in left_members for b in right_members):
            continue
        if pair in weak_pairs and {languages[a] for a in left_members if languages[a]} & {
            languages[b] for b in right_members
        }:
            continue
        group.update(dict.fromkeys(right_members, left_group))
        members[left_group] = left_members + members.pop(right_group)
        links[left_group] = [*links.get(left_group, []), *links.pop(right_group, []), pair]
    return list(links.values())


def _make_proposal(
    labels: Sequence[LabelCount], language: str, links: Sequence[tuple[Pair, MergeReason]]
) -> MergeProposal:
    places = sorted({place for pair, _ in links for place in pair})
    target = next((place for place in places if language and labels[place].language == language), places[0])
    reasons = [reason for _, reason in links]
    sources = [labels[place] for place in places if place != target]
    return MergeProposal(labels[target], sources, min(reason.score for reason in reasons), reasons)
