"""Store of merge proposals, kept on disk while people review them.

A comparison of all labels takes seconds, so linked pairs are saved with their evidence. Proposals are built from them
and from the current labels, so that later merges, renamings and exclusions count at once. New labels need a new
comparison.

    FOLDER/.wsabie/proposals.json
"""

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from sqlalchemy import func, select

from wsabie.collection.annotations.decisions import find_model_in_use
from wsabie.collection.db.cache import CatalogueCache, FileCache
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import format_current_time, read_last_entry
from wsabie.collection.db.tables import journal
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels.label_store import read_merge_targets
from wsabie.collection.merge_proposals.evidence import Pair
from wsabie.collection.merge_proposals.proposal_search import (
    MIN_SCORE,
    MergeProposal,
    MergeReason,
    ProposalList,
    find_proposals,
    group_links,
    read_labels_by_frequency,
)
from wsabie.core.errors import InputError, WsabieError
from wsabie.core.progress import SILENT, Progress
from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph
from wsabie.storage.atomic_files import WriteError, write_text
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph

MAX_PROPOSALS = 5_000
"""Largest number of saved proposals, the best."""

_FILE = "proposals.json"
_MAX_BYTES = 64 << 20


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
    labels, total : int
        Number of compared labels, and of proposals.
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
    labels: int
    total: int
    unused_sources: dict[str, str]
    knowledge: list[str]
    language: str
    links: list[tuple[int, int, MergeReason]]
    schema: Literal[1] = 1


class ProposalStatus(NamedTuple):
    """Current proposals, journal entries since the comparison, and whether the model has changed."""

    snapshot: ProposalSnapshot | None
    n_changes: int
    is_other_model: bool
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
    if not 0 <= min_score <= 1:
        raise InputError(f"a score of {min_score:g} cannot be; give one from 0 to 1, such as {MIN_SCORE:g}")
    snapshot = _load_snapshot(collection)
    paths = knowledge if knowledge is not None else [Path(path) for path in snapshot.knowledge] if snapshot else []
    graph, messages = _read_knowledge(paths, must_exist=knowledge is not None)
    with begin_read(collection.engine) as connection:
        entry, model = read_last_entry(connection), find_model_in_use(connection)
    result = find_proposals(
        collection, knowledge=graph, k=None, min_score=min_score, language=language, progress=progress
    )
    result = result._replace(unused_sources=result.unused_sources | messages)
    snapshot = ProposalSnapshot(
        created=format_current_time(),
        entry=entry,
        model=model,
        labels=result.labels,
        total=result.total,
        unused_sources=result.unused_sources,
        knowledge=[str(path.resolve()) for path in paths],
        language=language,
        links=[link for proposal in result.proposals[:MAX_PROPOSALS] for link in _list_links(proposal)],
    )
    with suppress(WriteError) if collection.read_only else nullcontext():
        write_text(collection.place / _FILE, msgspec.json.encode(snapshot).decode() + "\n")
    return result


def read_proposals(collection: Collection) -> ProposalStatus:
    """Return the current proposals; none before the first comparison."""
    snapshot = _load_snapshot(collection)
    if snapshot is None:
        return ProposalStatus(None, 0, False, [])
    with begin_read(collection.engine) as connection:
        n_entries = connection.execute(select(func.count()).where(journal.c.id > snapshot.entry)).scalar() or 0
        is_other_model = find_model_in_use(connection) not in (None, snapshot.model)
        labels, places_by_id, exclusions = _read_labels(connection)
        merge_targets = read_merge_targets(connection)
    links: dict[Pair, MergeReason] = {}
    for left_id, right_id, reason in snapshot.links:
        places = {places_by_id.get(merge_targets.get(number, number)) for number in (left_id, right_id)}
        pair = tuple(sorted(place for place in places if place is not None))
        if len(pair) == 2:
            links.setdefault(pair, reason)  # best first
    proposals = group_links(labels, links, exclusions, snapshot.language)
    return ProposalStatus(snapshot, n_entries, is_other_model, proposals)


_read_labels, _snapshots = CatalogueCache(read_labels_by_frequency), FileCache[ProposalSnapshot](2)


def _list_links(proposal: MergeProposal) -> list[tuple[int, int, MergeReason]]:
    numbers = {label.name: label.id for label in (proposal.target, *proposal.labels)}
    return [(numbers[reason.first], numbers[reason.second], reason) for reason in proposal.reasons]


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
        stat = path.stat()
        if stat.st_size > _MAX_BYTES:
            return None
        key = path, stat.st_mtime_ns, stat.st_ino
        return _snapshots.get(key, lambda: msgspec.json.decode(path.read_bytes(), type=ProposalSnapshot))
    except (OSError, msgspec.MsgspecError):
        return None
