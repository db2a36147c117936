"""Labels that could be one: proposals with what speaks for each. Nothing is merged here."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from sqlalchemy import Connection, func, select

from wsabie.base.arrays import Float32
from wsabie.base.errors import InputError
from wsabie.base.progress import SILENT, Progress
from wsabie.catalogue import tables
from wsabie.catalogue.book import merge
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.company import SEARCHED, Company, at_unit_length, company_of
from wsabie.catalogue.database import reading
from wsabie.catalogue.deciding import model_in_use
from wsabie.catalogue.evidence import (
    OWN_WORDS,
    Evidence,
    Found,
    Known,
    Pair,
    firm,
    from_company,
    from_differences,
    from_meanings,
    from_space,
    from_spelling,
    score,
    senses_of,
)
from wsabie.catalogue.journal import entry, rows_of
from wsabie.catalogue.points import opened_model
from wsabie.catalogue.shelf import OpenModel
from wsabie.labels.knowledge import Knowledge

Space = tuple[Float32, list[int]]

LEAST = 0.7
"""Score from which a pair is proposed."""
LARGEST = 30
"""Labels in one proposal, at most: a longer chain is no group of names of one thing."""


class Named(NamedTuple):
    """A label, and how many items have it."""

    id: int
    name: str
    language: str
    items: int


class Reason(NamedTuple):
    """What speaks for two labels of a proposal being one (or against it: weight below 0)."""

    one: str
    other: str
    score: float
    evidence: list[Evidence]


class Proposal(NamedTuple):
    """Labels that could be one.

    Attributes
    ----------
    into : Named
        The one to keep: of the language that was asked for, else the most frequent.
    labels : list of Named
        Those to merge into it.
    score : float
        From 0 to 1: of the weakest link.
    why : list of Reason
        A link for each of `labels`.
    """

    into: Named
    labels: list[Named]
    score: float
    why: list[Reason]


class Tidied(NamedTuple):
    """Proposals, the surest first; how many there are in all, of how many labels; what was not asked, and why."""

    proposals: list[Proposal]
    found: int
    labels: int
    not_asked: dict[str, str]


class MergedAll(NamedTuple):
    """Labels that others went into, labels that are gone, annotations that moved."""

    into: int
    merged: int
    moved: int


def proposals(
    collection: Collection,
    *,
    knowledge: Knowledge | None = None,
    k: int | None = 50,
    least: float = LEAST,
    keep: str = "",
    progress: Progress = SILENT,
) -> Tidied:
    """Labels that could be one, the surest first; none that somebody keeps apart.

    Parameters
    ----------
    collection : Collection
    knowledge : Knowledge or None
        What WordNet or another says of words.
    k : int or None
        At most so many.
    least : float
        Score from which a pair counts.
    keep : str
        Language whose labels are kept where there is one; "" = the most frequent label is kept.
    progress : Progress
    """
    opened, why_not = _opened(collection)
    with reading(collection.engine) as connection:
        labels, place, apart = labels_now(connection)
        company = company_of(connection, place)
        space = None if opened is None else _space(opened, connection, place)
    known = Known(*([getattr(label, field) for label in labels] for field in ("name", "language", "items")))
    found = _found(known, knowledge, space, company, progress)
    apart |= {pair for pair, evidence in found.items() if any(one.weight <= OWN_WORDS for one in evidence)}
    links = {
        pair: Reason(labels[pair[0]].name, labels[pair[1]].name, sure, evidence)
        for pair, evidence in found.items()
        if (sure := round(score(evidence), 3)) >= least  # what is told decides
    }
    made = proposed(labels, links, apart, keep)
    not_asked = {"model": why_not} if space is None else {}
    not_asked |= {"knowledge": "none was given"} if knowledge is None else {}
    return Tidied(made[:k], len(made), len(labels), not_asked)


def proposed(labels: Sequence[Named], links: Mapping[Pair, Reason], apart: set[Pair], keep: str = "") -> list[Proposal]:
    """Groups of labels that are linked, the surest first.

    Parameters
    ----------
    labels : sequence of Named
    links : mapping of (int, int) to Reason
        Pairs of places in `labels`, the smaller first, that could be one.
    apart : set of (int, int)
        Pairs that are not in one group.
    keep : str
        As in `proposals`.
    """
    linked = {pair: score(reason.evidence) for pair, reason in links.items()}
    loose = {pair for pair, reason in links.items() if not firm(reason.evidence)}
    groups = _groups(linked, apart, loose, [label.language for label in labels])
    made = [_proposal(labels, keep, [(pair, links[pair]) for pair in group]) for group in groups]
    return sorted(made, key=lambda one: (-one.score, -sum(label.items for label in one.labels), one.into.name))


def labels_now(connection: Connection) -> tuple[list[Named], dict[int, int], set[Pair]]:
    """All labels, the most frequent first; their places by number; and places that are to stay two."""
    labels, parents = _labels(connection)
    place = {label.id: i for i, label in enumerate(labels)}
    return labels, place, _kept_apart(connection, place) | {(min(a, b), max(a, b)) for a, b in parents}


def merge_proposals(collection: Collection, wanted: Sequence[Proposal], by: str) -> MergedAll:
    """Merge the labels of proposals, as one entry of the journal; labels that changed since are left alone."""
    moved = into = merged = 0
    with entry(collection.engine, by, "tidy") as change:
        for proposal in wanted:
            ours = [proposal.into, *proposal.labels]
            now = {row["id"]: row for row in rows_of(change.connection, tables.labels, [label.id for label in ours])}
            same = [i for i in ours if i.id in now and (now[i.id]["name"], now[i.id]["merged_into"]) == (i.name, None)]
            if len(same) < 2 or same[0] != proposal.into:
                continue
            done = [merge(change, label.id, proposal.into.id) for label in same[1:]]
            moved, into, merged = moved + sum(one.moved for one in done), into + 1, merged + len(done)
        change.told = f"merged {merged:,} labels into {into:,}"
    return MergedAll(into, merged, moved)


def _found(
    known: Known, knowledge: Knowledge | None, space: Space | None, company: Company, progress: Progress
) -> Found:
    """Pairs of labels that something speaks for, with all that speaks for them and against."""
    found: Found = defaultdict(list)
    senses = [] if knowledge is None else senses_of(known, knowledge)
    with progress.stage("comparing labels", 5, "") as stage:
        from_spelling(known, found)
        stage.advance()
        if knowledge is not None:
            from_meanings(known, knowledge, senses, found)
        stage.advance()
        if space is not None:
            from_space(*space, found)
        stage.advance()
        from_company(known, company, found)
        stage.advance()
        if knowledge is not None:
            from_differences(known, knowledge, senses, found)
        stage.advance()
    return found


def _labels(connection: Connection) -> tuple[list[Named], list[Pair]]:
    """All labels, the most frequent first, and places of those that are below another, with its own."""
    labels, a = tables.labels.c, tables.annotations.c
    count = select(a.label_id, func.count(a.item_id.distinct()).label("n")).where(a.state == "accepted")
    counted = count.group_by(a.label_id).subquery()
    query = (
        select(labels.id, labels.name, labels.language, func.coalesce(counted.c.n, 0), labels.parent_id)
        .select_from(tables.labels.outerjoin(counted, counted.c.label_id == labels.id))
        .where(labels.merged_into.is_(None))
    )
    rows = sorted(connection.execute(query).all(), key=lambda row: (-row[3], row[0]))
    place = {row[0]: i for i, row in enumerate(rows)}
    parents = [(i, place[row[4]]) for i, row in enumerate(rows) if row[4] in place]
    return [Named(*row[:4]) for row in rows], parents


def _kept_apart(connection: Connection, place: Mapping[int, int]) -> set[Pair]:
    """Places of labels that are to stay two; of those that were merged since, of what they became."""
    became = {number: number for number in place} | merged_into(connection)
    pairs = connection.execute(select(tables.kept_apart.c.label_a, tables.kept_apart.c.label_b)).all()
    found = ((place[became[a]], place[became[b]]) for a, b in pairs)
    return {(min(a, b), max(a, b)) for a, b in found if a != b}


def merged_into(connection: Connection) -> dict[int, int]:
    """What merged labels became in the end, by their numbers."""
    labels = tables.labels.c
    query = select(labels.id, labels.merged_into).where(labels.merged_into.is_not(None))
    steps = {number: into for number, into in connection.execute(query)}  # noqa: C416 - rows are no tuples to `dict`
    for number, into in steps.items():
        way = {number}
        while into in steps:
            if into in way:
                raise RecursionError("labels were merged in a circle")
            way.add(into)
            into = steps[into]
        steps[number] = into
    return steps


def _opened(collection: Collection) -> tuple[OpenModel | None, str]:
    """The model in use; None, and why, where there is none or it cannot be opened."""
    with reading(collection.engine) as connection:
        if model_in_use(connection) is None:
            return None, "none was in use"
    try:
        return opened_model(collection), ""
    except InputError as error:
        return None, f"it has no space of labels ({error})"


def _space(opened: OpenModel, connection: Connection, place: Mapping[int, int]) -> Space:
    """Vectors of the labels that a model knows, with their places; of merged ones, the point between them."""
    vectors, columns = opened.model.label_vectors, defaultdict[int, list[int]](list)
    for column, number in enumerate(opened.labels_now(connection).tolist()):
        if number in place:
            columns[place[number]].append(column)
    frequent = sorted(columns)[:SEARCHED]
    points = np.empty((len(frequent), vectors.shape[1]), np.float32)
    for row, at in enumerate(frequent):
        points[row] = vectors[columns[at]].mean(axis=0)
    return at_unit_length(points), frequent


def _groups(
    linked: Mapping[Pair, float], apart: set[Pair], loose: set[Pair], languages: Sequence[str]
) -> list[list[Pair]]:
    """Links of each group, from the surest on; no group has two labels that are kept apart.

    People who write two words of one language always together mean two things: links that are `loose`, by company
    alone, make no group with two labels of one language.
    """
    group: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    links: dict[int, list[Pair]] = {}
    for pair in sorted(linked, key=lambda pair: (-linked[pair], pair)):
        one, other = (group.setdefault(place, place) for place in pair)
        ours, theirs = members.setdefault(one, [one]), members.setdefault(other, [other])
        if one == other or len(ours) + len(theirs) > LARGEST:
            continue
        if any((min(a, b), max(a, b)) in apart for a in ours for b in theirs):
            continue
        if pair in loose and {languages[a] for a in ours if languages[a]} & {languages[b] for b in theirs}:
            continue
        group.update(dict.fromkeys(theirs, one))
        members[one] = ours + members.pop(other)
        links[one] = [*links.get(one, []), *links.pop(other, []), pair]
    return list(links.values())


def _proposal(labels: Sequence[Named], keep: str, links: Sequence[tuple[Pair, Reason]]) -> Proposal:
    places = sorted({place for pair, _ in links for place in pair})
    into = next((place for place in places if keep and labels[place].language == keep), places[0])
    why = [reason for _, reason in links]
    others = [labels[place] for place in places if place != into]
    return Proposal(labels[into], others, min(reason.score for reason in why), why)
