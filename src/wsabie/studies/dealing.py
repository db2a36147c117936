"""What a declaration says, collected: rows of every kind, pairs of every relation, and their two sides."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from wsabie.base.arrays import Matrix
from wsabie.base.errors import InputError
from wsabie.base.validation import require
from wsabie.evaluation.splits import Split, keyed_hash
from wsabie.labels.names import normalise
from wsabie.models.relations import Kind, Relation
from wsabie.sources.declaration import Declared, DeclaredKind, DeclaredRelation
from wsabie.sources.id_lists import of_ids
from wsabie.sources.open import open_source
from wsabie.sources.pairs import read_couples
from wsabie.sources.records import Rows, Source
from wsabie.sources.related import Related
from wsabie.sources.relations import relations_of
from wsabie.sources.text import shown
from wsabie.storage.rejects import Rejects
from wsabie.studies.splitting import refuse_few, split_rows

LABELS = "labels"
MOST_ALIKE = 10
"""Others that a thing is visited with in an epoch where things belong together because they share a name."""
MOST_PAIRS = 20_000_000
"""Of things that share a name: about 60 bytes each while they are collected."""
Couples = list[tuple[str, str]]


@dataclass(frozen=True)
class Collected:
    """The data of a declaration.

    Attributes
    ----------
    rows : dict of str to Rows
        Of the kinds with data.
    couples : dict of str to list of (query id, target id)
        The pairs of every relation.
    """

    rows: dict[str, Rows]
    couples: dict[str, Couples]


def collect(
    declared: Declared,
    relations: list[DeclaredRelation],
    rows_of: Callable[[DeclaredKind, Source], Rows],
    rejects: Rejects,
) -> Collected:
    """Open everything that some relations need; `rows_of` describes what is not rows.

    Raises
    ------
    InputError
        Data that cannot be opened, or a relation without pairs.
    """
    wanted = {name for one in relations for name in (one.query, one.target)}
    related = _related(declared, relations, rejects)  # before the work of describing: a name may be wrong
    for one in relations:
        if one.pairs is not None and not one.pairs.exists():
            raise InputError(f"there is no file or folder {shown(one.pairs)}, the pairs of [relations.{one.name}]")
    rows = {}
    for name, kind in declared.kinds.items():
        if name in wanted and kind.data is not None:
            rows[name] = _grouped(rows_of(kind, _opened(kind, relations, rejects)), related.get(name))
    couples = {one.name: _couples(one, rows, related, rejects) for one in relations}
    return Collected(rows, couples)


def _opened(kind: DeclaredKind, relations: list[DeclaredRelation], rejects: Rejects) -> Source:
    labelled = any(one.names == LABELS and kind.name in (one.query, one.target) for one in relations)
    labels_from = "auto" if labelled or kind.split is not None else "none"
    source = open_source(str(kind.data), labels_from=labels_from, split=kind.split, rejects=rejects)
    return source if kind.ids is None else of_ids(source, kind.ids, rejects=rejects)


def _related(declared: Declared, relations: list[DeclaredRelation], rejects: Rejects) -> dict[str, Related]:
    """What the data of kinds name, by kind, as far as relations ask for it."""
    asked: dict[str, list[str]] = {}
    for one in relations:
        if one.names is not None and one.names != LABELS:
            (things,) = {name for name in (one.query, one.target) if declared.kinds[name].data is not None}
            asked.setdefault(things, []).append(one.names)
    return {
        name: relations_of(str(declared.kinds[name].data), kinds=list(dict.fromkeys(names)), rejects=rejects)
        for name, names in asked.items()
    }


def _grouped(rows: Rows, related: Related | None) -> Rows:
    """The rows with the groups that a table beside them says."""
    if related is None or rows.groups is not None or not related.groups:
        return rows
    return replace(rows, groups=[related.groups.get(name, name) for name in rows.ids])


def _couples(
    relation: DeclaredRelation, rows: dict[str, Rows], related: Mapping[str, Related], rejects: Rejects
) -> Couples:
    """The pairs of a relation; where things belong together because they share a name, (thing, name)."""
    if relation.pairs is not None:
        with_data = [name if name in rows else None for name in (relation.query, relation.target)]
        if relation.among is not None:
            with_data[1] = None
        ends = [None if name is None else _spelt(rows[name]) for name in with_data]
        return list(_with_data(read_couples(relation.pairs, rejects=rejects), ends, relation.pairs, rejects))
    by_query = relation.query in rows
    things = relation.query if by_query else relation.target
    named = _named(rows[things], str(relation.names), related.get(things))
    return named if by_query else [(name, thing) for thing, name in named]


def _spelt(rows: Rows) -> dict[str, str]:
    """The ids of rows by their one spelling; pairs refer to them instead of holding texts of their own."""
    return {normalise(name): name for name in rows.ids}


def _with_data(
    couples: Iterable[tuple[str, str]], ends: list[dict[str, str] | None], path: Path, rejects: Rejects
) -> Iterator[tuple[str, str]]:
    """The pairs whose things have rows, where their kind has any; others are listed.

    Names are in the spelling that a space knows, or a pair could be learnt in one and held out in another.
    """
    query, target = ends
    for a, b in (map(normalise, pair) for pair in couples):
        first, second = a if query is None else query.get(a), b if target is None else target.get(b)
        if first is None or second is None:
            missing = a if first is None else b
            rejects.add(f"{shown(path)} {shown(a)} {shown(b)}", "pair of a thing without data", missing)
        else:
            yield first, second


def _named(rows: Rows, names: str, related: Related | None) -> Couples:
    """(thing, name) of all things that have rows."""
    if related is None or names == LABELS:
        Y = rows.Y.tocoo()
        return [(rows.ids[i], rows.label_names[y]) for i, y, v in zip(Y.row, Y.col, Y.data, strict=True) if v > 0]
    known = set(rows.ids)
    return [pair for pair in related.pairs[names] if pair[0] in known]


def _shares_names(one: DeclaredRelation) -> bool:
    """Whether two things of a kind belong together because they have a name in common."""
    return one.names is not None and one.query == one.target


def related_by(one: DeclaredRelation, couples: Couples, query: Kind | str, target: Kind | str) -> Relation:
    """A relation between these ends as a space is told of it.

    Things that share a name are all positives of each other; an epoch visits about MOST_ALIKE of them for each thing.

    Raises
    ------
    InputError
        Names that are shared by too many things.
    """
    if not _shares_names(one):
        return Relation(query, target, couples, one.name, one.weight)
    if not isinstance(query, Kind):
        raise TypeError("things that share names have data")
    names = {name: number for number, name in enumerate(dict.fromkeys(name for _, name in couples))}
    own, other = (_membership(end, couples, names) for end in (query, target if isinstance(target, Kind) else query))
    n_pairs = int(np.asarray(own.sum(0)).ravel() @ np.asarray(other.sum(0)).ravel())
    require(
        n_pairs <= MOST_PAIRS,
        f"the relation {one.name!r} makes {n_pairs:,} pairs of things that share a name of {one.names!r}, more than "
        f"{MOST_PAIRS:,}; choose other names, or give pairs",
    )
    Y = own @ other.T
    per_thing = Y.nnz / max(Y.shape[0], 1)
    return Relation(query, target, Y, one.name, one.weight * min(1.0, MOST_ALIKE / max(per_thing, 1.0)))


def _membership(kind: Kind, couples: Couples, names: Mapping[str, int]) -> Matrix:
    """Which things have which names, csr_matrix (things, names)."""
    from scipy.sparse import csr_matrix

    number = {name: i for i, name in enumerate(kind.ids or ())}
    pairs = [(number[thing], names[name]) for thing, name in couples if thing in number]
    rows, columns = zip(*pairs, strict=True) if pairs else ((), ())
    return csr_matrix((np.ones(len(pairs), np.int32), (rows, columns)), (len(number), len(names)))


def kind_from(declared: DeclaredKind, rows: Rows) -> Kind:
    """Things with features."""
    return Kind(declared.name, rows.X, rows.ids, declared.scaling, declared.map)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Dealt:
    """Training and held-out relations, and the things that were set aside."""

    learnt: list[Relation]
    held_out: list[Relation]
    aside: list[Kind]

    def numbered(self) -> "Dealt":
        """The same with the pairs of things that have data as numbers, in a tenth of the memory."""
        return Dealt([_numbered(one) for one in self.learnt], [_numbered(one) for one in self.held_out], self.aside)


def deal(
    declared: Declared,
    relations: list[DeclaredRelation],
    data: Collected,
    share: float,
    seed: int,
    sides: Mapping[str, Split] | None = None,
) -> Dealt:
    """Set a share of the things with features aside, with all their pairs, and of the pairs between other things.

    A thing that was set aside asks, and is to be found among its like that were set aside; where both ends are of one
    kind, it looks for those that were not. Pairs with a thing that training will not know judge nothing. `sides` says
    which things are on which side where that is settled.
    """
    if sides is None:
        for rows in data.rows.values() if share else ():
            refuse_few(len(rows), share, "thing")
        sides = {name: split_rows(rows, "auto", share, 0, seed) for name, rows in data.rows.items()} if share else {}
    learnt, held = dict[str, Kind](), dict[str, Kind]()
    for name, rows in data.rows.items():
        kind = declared.kinds[name]
        learnt[name] = kind_from(kind, rows.take(sides[name].train) if share else rows)
        if share:
            held[name] = kind_from(kind, rows.take(sides[name].valid))
    first, second = list[Relation](), list[Relation]()
    parts = {one.name: _dealt(one, data.couples[one.name], learnt, held, share, seed) for one in relations}
    named: dict[str, set[str]] = {}  # things without features that training will know
    for one in relations:
        for a, b in parts[one.name][0]:
            named.setdefault(one.query, set()).add(a)
            named.setdefault(one.target, set()).add(b)
    for one in relations:
        ends = one.query, one.target
        query, target = (learnt.get(name, name) for name in ends)
        couples, rest = parts[one.name]
        first.append(related_by(one, couples, query, target))
        free = [(i, named.get(kind, set())) for i, kind in enumerate(ends) if kind not in learnt]
        rest = [pair for pair in rest if all(pair[i] in known for i, known in free)]
        if rest:
            asking = held.get(one.query, one.query)
            found = target if one.query == one.target else held.get(one.target, one.target)
            judged = related_by(one, rest, asking, found)
            if judged.n_pairs:  # no two that share a name may be left
                second.append(judged)
    return Dealt(first, second, list(held.values()))


def _dealt(
    one: DeclaredRelation, couples: Couples, learnt: dict[str, Kind], held: dict[str, Kind], share: float, seed: int
) -> tuple[Couples, Couples]:
    """The pairs of training, and those that are held out."""
    if _shares_names(one):
        return couples, couples if share else []
    names = (one.query, one.target)
    ends = [end for end in (0, 1) if names[end] in learnt]
    if not ends and not share:
        return couples, []
    if not ends:
        aside = {pair for pair in couples if keyed_hash("\t".join(sorted(pair)), seed) < share * 2.0**64}
        return [pair for pair in couples if pair not in aside], [pair for pair in couples if pair in aside]
    inside = {end: set(learnt[names[end]].ids or ()) for end in ends}
    first = [pair for pair in couples if all(pair[end] in inside[end] for end in ends)]
    if not share:
        return first, []
    outside = {end: set(held[names[end]].ids or ()) for end in ends}
    if one.query == one.target:
        turned = [*couples, *((b, a) for a, b in couples)]
        return first, [pair for pair in turned if pair[0] in outside[0] and pair[1] in inside[0]]
    return first, [pair for pair in couples if all(pair[end] in outside[end] for end in ends)]


def _numbered(relation: Relation) -> Relation:
    query, target, couples = relation.query, relation.target, relation.pairs
    if not (isinstance(query, Kind) and isinstance(target, Kind) and isinstance(couples, list)):
        return relation
    asked, found = ({name: i for i, name in enumerate(kind.ids or ())} for kind in (query, target))
    numbers = (number for a, b in couples for number in (asked[a], found[b]))
    return replace(relation, pairs=np.fromiter(numbers, np.int32, 2 * len(couples)).reshape(-1, 2))
