"""What was gathered from a file, written into the catalogue in one transaction."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sqlalchemy import Connection, insert, select

from wsabie.base.arrays import Int64
from wsabie.base.errors import InputError
from wsabie.base.progress import Progress
from wsabie.catalogue import book
from wsabie.catalogue.collection import WEB, Collection
from wsabie.catalogue.deciding import Decided, Decision, State, decide
from wsabie.catalogue.formats.record import written
from wsabie.catalogue.journal import Change, Row, entry, now, rows_of
from wsabie.catalogue.tables import items, labels, models, roots
from wsabie.sources.text import shown
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.catalogue.importing import Gathered

AT_ODDS = "tag at odds with a later line"

_AT_ONCE = 400
_BLOCK = 10_000


class Settled(NamedTuple):
    """What was written; see `importing.Imported`."""

    items: int
    added: int
    changed: int
    kept: int
    labels: int
    addresses: int
    entry: int | None


def settle(collection: Collection, gathered: "Gathered", *, by: str, rejects: Rejects, progress: Progress) -> Settled:
    """Write down what a file says, once; of lines at odds with each other the last counts, the others are listed."""
    name = shown(gathered.path.name)
    with (
        progress.stage("writing", len(gathered.items), "tags") as stage,
        entry(collection.engine, by, "import") as change,
    ):
        addresses, n_addresses = _addresses(change.connection, list(gathered.addresses))
        numbers, n_labels = _labels(change, gathered, rejects)
        rows = _Rows(gathered, addresses, numbers, _tellers(change, gathered))
        done = Decided()
        for block in rows.blocks():
            rows.tell_odds(block, rejects)
            part = decide(change, rows.decisions(block), origin="import", by=name)
            done = Decided(*(a + b for a, b in zip(done, part, strict=True)))
            stage.advance(len(block))
        change.told = f"{done.added + done.changed:,} tags of {name}"
        number = change.id if change.n_changes else None
    return Settled(len(np.unique(rows.items)), done.added, done.changed, done.kept, n_labels, n_addresses, number)


class _Rows:
    """What was gathered, with the numbers of the catalogue; item by item, in the order of the file within one tag."""

    def __init__(self, gathered: "Gathered", addresses: Int64, labels: Int64, tellers: list[Row]) -> None:
        items = np.array(gathered.items, np.int64)
        new = items < 0
        items[new] = addresses[-1 - items[new]]
        self.items, self.labels = items, labels[np.array(gathered.labels, np.int64)]
        self.regions, self.states = np.array(gathered.regions), np.array(gathered.states)
        self._order = np.lexsort((self.regions, self.labels, self.items))
        self._gathered, self._tellers, self._places = gathered, tellers, list(gathered.places)

    def blocks(self) -> Iterator[Int64]:
        """Numbers of rows; the tags of an item are in one block."""
        at, items = 0, self.items[self._order]
        while at < len(items):
            end = int(np.searchsorted(items, items[min(at + _BLOCK, len(items)) - 1], "right"))
            yield self._order[at:end]
            at = end

    def tell_odds(self, block: Int64, rejects: Rejects) -> None:
        """List rows that say otherwise than a later one of the same tag."""
        keys = np.stack([self.items[block], self.labels[block], self.regions[block]])
        same = (keys[:, 1:] == keys[:, :-1]).all(axis=0)
        for i in block[:-1][same & (self.states[block[1:]] != self.states[block[:-1]])]:
            rejects.add(f"{shown(self._gathered.path)}:{self._gathered.lines[i]}", AT_ODDS)

    def decisions(self, block: Int64) -> Iterator[Decision]:
        """What the rows of a block decide."""
        for i in block.tolist():
            state: State = "accepted" if self.states[i] else "rejected"
            place = self._places[self.regions[i]]
            yield Decision(int(self.items[i]), int(self.labels[i]), state, place, self._told(i))

    def _told(self, i: int) -> Row | None:
        g = self._gathered
        if g.told[i] < 0:
            return None
        score, probability = (None if isnan(x) else x for x in (g.scores[i], g.probabilities[i]))
        return self._tellers[g.told[i]] | {"at": written(g.at[i]), "score": score, "probability": probability}


def _addresses(connection: Connection, wanted: list[str]) -> tuple[Int64, int]:
    """Numbers of the items that addresses are, and how many are new. Items are facts, which no undoing takes back."""
    if not wanted:
        return np.empty(0, np.int64), 0
    web = connection.execute(select(roots.c.id).where(roots.c.path == WEB)).scalar()
    if web is None:
        web = connection.execute(insert(roots).values(path=WEB)).inserted_primary_key[0]  # type: ignore[index]  # it has one
    there = _items_at(connection, web, wanted)
    new = [address for address in wanted if address not in there]
    added = now()
    for lo in range(0, len(new), _BLOCK):
        part = [
            {"root_id": web, "path": path, "folder": path.rpartition("/")[0], "state": "present", "added": added}
            for path in new[lo : lo + _BLOCK]
        ]
        connection.execute(insert(items), part)
    there |= _items_at(connection, web, new)
    return np.array([there[address] for address in wanted], np.int64), len(new)


def _items_at(connection: Connection, root: int, paths: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for lo in range(0, len(paths), _AT_ONCE):
        query = select(items.c.path, items.c.id).where(items.c.root_id == root)
        for path, number in connection.execute(query.where(items.c.path.in_(paths[lo : lo + _AT_ONCE]))):
            found[path] = number
    return found


def _labels(change: Change, gathered: "Gathered", rejects: Rejects) -> tuple[Int64, int]:
    """Numbers of labels, in the order of the file, and how many are new; what is told about them is added to them."""
    about = gathered.about
    languages = {name: told.language for name, told in about.items()}
    names = list(gathered.names)
    above = [name for told in about.values() for name in told.parents]
    wanted = list(dict.fromkeys([*names, *above]))
    known = book.find(change.connection, wanted)
    by_language = defaultdict(list)
    for name in wanted:
        by_language[languages.get(name, "")].append(name)
    numbers: dict[str, int] = {}
    for language, some in by_language.items():
        numbers |= book.ensure(change, some, language)
    meant = {numbers[n]: {"wordnet": told.wordnet} for n, told in about.items() if told.wordnet and n not in known}
    change.set(labels, meant)
    _place_below(change, numbers, {name: told.parents for name, told in about.items() if told.parents}, rejects)
    for name, told in about.items():
        for other in book.add_synonyms(change, numbers[name], dict(told.synonyms)) if told.synonyms else ():
            rejects.add(name, "synonym that another label has", other)
    return np.array([numbers[name] for name in names], np.int64), len(set(numbers.values()) - set(known.values()))


def _place_below(
    change: Change, numbers: dict[str, int], parents: dict[str, tuple[str, ...]], rejects: Rejects
) -> None:
    """Put labels below others where they are below none."""
    pairs: dict[int, int] = {}
    for name, way in parents.items():
        pairs |= {numbers[below]: numbers[above] for above, below in pairwise((*way, name))}
    free = {row["id"] for row in rows_of(change.connection, labels, pairs) if row["parent_id"] is None}
    for below, above in pairs.items():
        if below not in free or below == above:
            continue
        try:
            book.set_parent(change, below, above)
        except InputError as error:
            rejects.add(str(below), "label that would be above itself", str(error))


def _tellers(change: Change, gathered: "Gathered") -> list[Row]:
    """Who decided, as columns of annotations."""
    numbers = {(model, made): _model(change, model, made) for _, _, model, made in gathered.tellers if model}
    return [
        {"origin": origin, "by": by, "model_id": numbers.get((model, made))}
        for origin, by, model, made in gathered.tellers
    ]


def _model(change: Change, folder: str, made: str) -> int:
    """The number of a model; one that is not here is listed as removed."""
    c, other = models.c, f"{folder} of {made}"
    rows = change.connection.execute(select(c.id, c.folder, c.made).where(c.folder.in_([folder, other]))).all()
    for number, _, when in rows:
        if when == made:
            return int(number)
    row = {
        "folder": other if any(name == folder for _, name, _ in rows) else folder,
        "made": made,
        "how": "full",
        "learnt_to": 0,
        "in_use": False,
        "facts": {},
        "figures": {},
        "removed": True,
    }
    return change.add(models, [row])[0]
