"""Search for labels that could be merged, with the evidence for each pair, and its store.

A comparison of all labels takes seconds, so linked pairs are saved with their evidence while people review them.
Proposals are built from them and from the current labels, so that later merges, renamings and exclusions count at once.
New labels need a new comparison.

    FOLDER/.wsabie/proposals.json
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from sqlalchemy import Connection, func, select

from wsabie.collection.annotations.decisions import find_model_in_use
from wsabie.collection.db import tables
from wsabie.collection.db.cache import DatabaseCache, FileCache
from wsabie.collection.db.database import begin_read, group_pairs
from wsabie.collection.db.journal import begin_entry, format_current_time, read_last_entry, read_rows
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels.label_merge import merge_label
from wsabie.collection.labels.label_store import ITEMS_BY_LABEL, LabelCount, read_merge_targets
from wsabie.collection.merge_proposals.evidence import (
    DIFFERENT_WORDS,
    MAX_SEARCHED,
    EvidenceCollector,
    MergeEvidence,
    Pair,
    compute_score,
    is_firm,
    normalise_rows,
    read_cooccurrence,
)
from wsabie.collection.registry.model_registry import NO_MODEL, LoadedModel, find_usable_model
from wsabie.core.arrays import Float32
from wsabie.core.errors import WsabieError, require
from wsabie.core.execution import SILENT, Progress
from wsabie.core.input_files import read_stamp
from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph
from wsabie.storage.atomic_files import WriteError, write_text
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph

MIN_SCORE = 0.7
"""Lowest score of a proposed pair."""
MAX_GROUP_SIZE = 30
"""Largest number of labels in a proposal: a longer chain hardly names one concept."""
MAX_PROPOSALS = 5_000
"""Largest number of saved proposals, the best."""
_FILE = "proposals.json"
_MAX_BYTES = 64 << 20


@dataclass(frozen=True)
class MergeReason:
    """Evidence for merging two labels of a proposal; negative weights speak against it."""

    first: str
    second: str
    score: float
    evidence: list[MergeEvidence]


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
    """Number of target labels, of merged labels, and of moved tags."""

    targets: int
    merged_labels: int
    moved_tags: int


def find_proposals(
    collection: Collection,
    *,
    knowledge: KnowledgeGraph | None = None,
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
    min_score : float
        Lowest score of a pair.
    language : str
        Preferred language of targets; "": the most frequent label is the target.
    progress : Progress
    """
    model, model_error = find_usable_model(collection)
    with begin_read(collection.engine) as connection:
        labels, ranks, exclusions = read_labels_by_frequency(connection)
        cooccurrence = read_cooccurrence(connection, ranks)
        embeddings = None if model is None else _compute_label_means(model, connection, ranks)
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
    links: dict[Pair, MergeReason] = {}
    for pair, evidence in collector.by_pair.items():
        if any(entry.weight <= DIFFERENT_WORDS for entry in evidence):
            exclusions.add(pair)
        if (score := round(compute_score(evidence), 3)) >= min_score:  # the displayed score decides
            links[pair] = MergeReason(labels[pair[0]].name, labels[pair[1]].name, score, evidence)
    proposals = group_links(labels, links, exclusions, language)
    model_message = "none was in use" if model_error == NO_MODEL else f"it has no space of labels ({model_error})"
    unused_sources = {"model": model_message} if embeddings is None else {}
    unused_sources |= {"knowledge": "none was given"} if knowledge is None else {}
    return ProposalList(proposals, len(proposals), len(labels), unused_sources)


def group_links(
    labels: Sequence[LabelCount], links: Mapping[Pair, MergeReason], exclusions: set[Pair], language: str = ""
) -> list[MergeProposal]:
    """Group linked labels into proposals, best first.

    Parameters
    ----------
    labels : sequence of LabelCount
    links : mapping of (int, int) to MergeReason
        Linked pairs of labels by their ranks in `labels`, the smaller first.
    exclusions : set of (int, int)
        Pairs that must not be in one group.
    language : str
        As in `find_proposals`.
    """
    proposals = []
    for group in _group_pairs(links, exclusions, [label.language for label in labels]):
        reasons, ranks = [links[pair] for pair in group], sorted({rank for pair in group for rank in pair})
        target = next((rank for rank in ranks if language and labels[rank].language == language), ranks[0])
        sources = [labels[rank] for rank in ranks if rank != target]
        proposals.append(MergeProposal(labels[target], sources, min(reason.score for reason in reasons), reasons))
    return sorted(
        proposals,
        key=lambda proposal: (-proposal.score, -sum(label.items for label in proposal.labels), proposal.target.name),
    )


def read_labels_by_frequency(connection: Connection) -> tuple[list[LabelCount], dict[int, int], set[Pair]]:
    """Return labels, the most frequent first, their ranks by id, and the excluded pairs of ranks.

    Excluded are children and their parents, and what people keep apart; a merged label counts as its target.
    """
    labels, excluded, label_counts = tables.labels.c, tables.merge_exclusions.c, ITEMS_BY_LABEL.subquery()
    n_items, is_counted = func.coalesce(label_counts.c.n, 0), label_counts.c.label_id == labels.id
    query = select(labels.id, labels.name, labels.language, n_items, labels.parent_id)
    query = query.select_from(tables.labels.outerjoin(label_counts, is_counted)).where(labels.merged_into.is_(None))
    rows = sorted(connection.execute(query).all(), key=lambda row: (-row[3], row[0]))
    ranks = {row[0]: i for i, row in enumerate(rows)}
    final_ids = {label_id: label_id for label_id in ranks} | read_merge_targets(connection)
    pairs = [(ranks[row[0]], ranks[row[4]]) for row in rows if row[4] in ranks]
    for left, right in connection.execute(select(excluded.label_a, excluded.label_b)):
        pairs.append((ranks[final_ids[left]], ranks[final_ids[right]]))
    exclusions = {(min(i, j), max(i, j)) for i, j in pairs if i != j}
    return [LabelCount(*row[:4]) for row in rows], ranks, exclusions


def apply_proposals(collection: Collection, proposals: Sequence[MergeProposal], by: str) -> MergeSummary:
    """Merge the labels of proposals as one journal entry; labels that changed since are skipped."""
    groups = []
    with begin_entry(collection.engine, by, "tidy") as change:
        for proposal in proposals:
            members = [proposal.target, *proposal.labels]
            rows = read_rows(change.connection, tables.labels, [label.id for label in members])
            names = {row["id"]: row["name"] for row in rows if row["merged_into"] is None}
            unchanged = [label for label in members if names.get(label.id) == label.name]
            if len(unchanged) < 2 or unchanged[0] != proposal.target:
                continue
            groups.append([merge_label(change, label.id, proposal.target.id) for label in unchanged[1:]])
        merges = [merge for group in groups for merge in group]
        change.summary = f"merged {len(merges):,} labels into {len(groups):,}"
    return MergeSummary(len(groups), len(merges), sum(merge.moved for merge in merges))


def _compute_label_means(
    model: LoadedModel, connection: Connection, ranks: Mapping[int, int]
) -> tuple[Float32, list[int]]:
    """Return label embeddings of a model with their ranks; merged labels give the mean."""
    vectors, label_ids = model.model.label_vectors, model.read_current_labels(connection).tolist()
    columns = group_pairs((ranks[label_id], column) for column, label_id in enumerate(label_ids) if label_id in ranks)
    frequent = sorted(columns)[:MAX_SEARCHED]
    means = np.empty((len(frequent), vectors.shape[1]), np.float32)
    for row, label_rank in enumerate(frequent):
        means[row] = vectors[columns[label_rank]].mean(axis=0)
    return normalise_rows(means), frequent


def _group_pairs(reasons: Mapping[Pair, MergeReason], exclusions: set[Pair], languages: list[str]) -> list[list[Pair]]:
    """Return the pairs of each group, best first; no group contains an excluded pair."""
    # two words of one language that are always together mean two concepts, so pairs that only co-occurrence links
    # never join two labels of one language
    scores = {pair: compute_score(reason.evidence) for pair, reason in reasons.items()}
    group: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    links: dict[int, list[Pair]] = {}
    for pair in sorted(scores, key=lambda pair: (-scores[pair], pair)):
        left_group, right_group = (group.setdefault(rank, rank) for rank in pair)
        left_members, right_members = (members.setdefault(i, [i]) for i in (left_group, right_group))
        if left_group == right_group or len(left_members) + len(right_members) > MAX_GROUP_SIZE:
            continue
        if any((min(a, b), max(a, b)) in exclusions for a in left_members for b in right_members):
            continue
        left_languages, right_languages = ({languages[i] for i in part} for part in (left_members, right_members))
        if not is_firm(reasons[pair].evidence) and (left_languages & right_languages) - {""}:
            continue
        group.update(dict.fromkeys(right_members, left_group))
        members[left_group] = left_members + members.pop(right_group)
        links[left_group] = [*links.get(left_group, []), *links.pop(right_group, []), pair]
    return list(links.values())


@dataclass(frozen=True)
class ProposalSnapshot:
    """Result of one comparison of all labels.

    Attributes
    ----------
    created : str
        Time of the comparison.
    entry : int
        Last journal entry before the comparison.
    model : int or None
        Model in use.
    unused_sources : dict of str to str
        Sources that were not used, with the reason.
    knowledge : list of str
        Absolute paths of the knowledge files.
    language : str
        Preferred language of targets.
    links : list of (int, int, MergeReason)
        Linked pairs of label ids.
    """

    created: str
    entry: int
    model: int | None
    unused_sources: dict[str, str]
    knowledge: list[str]
    language: str
    links: list[tuple[int, int, MergeReason]]
    schema: Literal[1] = 1


class ProposalStatus(NamedTuple):
    """Current proposals, facts of the comparison, and whether journal and model have changed since."""

    created: str | None
    changes: int
    is_other_model: bool
    unused_sources: dict[str, str]
    proposals: list[MergeProposal]


def refresh_proposals(
    collection: Collection,
    *,
    knowledge: Sequence[Path] | None = None,
    min_score: float = MIN_SCORE,
    language: str = "",
    progress: Progress = SILENT,
) -> ProposalList:
    """Compare all labels, save the proposals and return them.

    Parameters
    ----------
    collection : Collection
    knowledge : sequence of Path or None
        Knowledge files; None: those of the last comparison.
    min_score, language
        As in `find_proposals`.
    progress : Progress

    Raises
    ------
    InputError
        A given knowledge file is unreadable, or `min_score` is not between 0 and 1.
    """
    require(0 <= min_score <= 1, f"a score of {min_score:g} cannot be; give one from 0 to 1, such as {MIN_SCORE:g}")
    snapshot = _load_snapshot(collection)
    paths = knowledge if knowledge is not None else [Path(path) for path in snapshot.knowledge] if snapshot else []
    graph, messages = _read_knowledge(paths, must_exist=knowledge is not None)
    with begin_read(collection.engine) as connection:
        entry, model = read_last_entry(connection), find_model_in_use(connection)
    result = find_proposals(collection, knowledge=graph, min_score=min_score, language=language, progress=progress)
    result = result._replace(unused_sources=result.unused_sources | messages)
    knowledge_paths = [str(path.resolve()) for path in paths]
    links = [link for proposal in result.proposals[:MAX_PROPOSALS] for link in _list_links(proposal)]
    facts = result.unused_sources, knowledge_paths, language, links
    snapshot = ProposalSnapshot(format_current_time(), entry, model, *facts)
    with suppress(WriteError) if collection.read_only else nullcontext():
        write_text(collection.place / _FILE, msgspec.json.encode(snapshot).decode() + "\n")
    return result


def read_proposals(collection: Collection) -> ProposalStatus:
    """Return the current proposals; none before the first comparison."""
    snapshot = _load_snapshot(collection)
    if snapshot is None:
        return ProposalStatus(None, 0, False, {}, [])
    with begin_read(collection.engine) as connection:
        n_entries = connection.scalar(select(func.count()).where(tables.journal.c.id > snapshot.entry)) or 0
        is_other_model = find_model_in_use(connection) not in (None, snapshot.model)
        labels, ranks_by_id, exclusions = _read_cached_labels(connection)
        merge_targets = read_merge_targets(connection)
    links: dict[Pair, MergeReason] = {}
    for left_id, right_id, reason in snapshot.links:
        ranks = {ranks_by_id.get(merge_targets.get(label_id, label_id)) for label_id in (left_id, right_id)}
        pair = tuple(sorted(rank for rank in ranks if rank is not None))
        if len(pair) == 2:
            links.setdefault(pair, reason)  # best first
    proposals = group_links(labels, links, exclusions, snapshot.language)
    return ProposalStatus(snapshot.created, n_entries, is_other_model, snapshot.unused_sources, proposals)


_read_cached_labels, _snapshots = DatabaseCache(read_labels_by_frequency), FileCache[ProposalSnapshot](2)
_decoder = msgspec.json.Decoder(ProposalSnapshot)


def _list_links(proposal: MergeProposal) -> list[tuple[int, int, MergeReason]]:
    ids_by_name = {label.name: label.id for label in (proposal.target, *proposal.labels)}
    return [(ids_by_name[reason.first], ids_by_name[reason.second], reason) for reason in proposal.reasons]


def _read_knowledge(paths: Sequence[Path], *, must_exist: bool) -> tuple[KnowledgeGraph | None, dict[str, str]]:
    """Read a knowledge graph; an unreadable file from an earlier comparison gives None and a message."""
    if not paths:
        return None, {}
    try:
        return read_knowledge_graph(*paths), {}
    except WsabieError as error:
        if must_exist:
            raise
        return None, {"knowledge": str(error)}


def _load_snapshot(collection: Collection) -> ProposalSnapshot | None:
    """Return the saved snapshot; None if it is missing, damaged or of another version."""
    path = collection.place / _FILE
    try:
        if path.stat().st_size > _MAX_BYTES:
            return None
        return _snapshots.get((path, read_stamp(path)), lambda: _decoder.decode(path.read_bytes()))
    except (OSError, msgspec.MsgspecError):
        return None
