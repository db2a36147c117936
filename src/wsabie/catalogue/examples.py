"""What a model learns from: decisions about whole items that are there, by the content of the items."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, case, func, select

from wsabie.base.arrays import Bool, Float32, Float64, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.catalogue.journal import last_entry
from wsabie.catalogue.looking import rescan_error
from wsabie.catalogue.tables import annotations, changes, items, labels

HELD_OUT = 0.15
"""Share of the contents that no model learns from. The hash decides, so that they are the same at every training."""
FEWEST_ITEMS = 20
"""Items with a tag, and `FEWEST_LABELS` labels, that a first training asks for."""
FEWEST_LABELS = 2
FEWEST_HELD_OUT = 5
PERSON_WEIGHT = 2.0
"""An item with a tag that a person gave weighs so many times one with imported tags alone."""


class Examples(NamedTuple):
    """Items with decisions, those of one content as one.

    Attributes
    ----------
    hashes : list of str, length n, ascending
    Y : csr_matrix (n, n_labels) int8
        1 = accepted, -1 = rejected.
    labels : (n_labels,) int64
        Numbers of the labels, ascending.
    names : list of str
    weights : (n,) float32
    held_out : (n,) bool
    held_to : float
        The place up to which contents are held out (`places_of`).
    unjudged : (n,) bool
        Held-out items with a tag that a model accepted by itself: nothing is judged by them, nor learnt from them.
    regions : int
        Decisions about regions, which are not learnt from.
    learnt_to : int
        The last entry of the journal that is known here.
    n_absent : int
        Items with a tag whose file is missing or cannot be read, which are left out.
    """

    hashes: list[str]
    Y: Matrix
    labels: Int64
    names: list[str]
    weights: Float32
    held_out: Bool
    held_to: float
    unjudged: Bool
    regions: int
    learnt_to: int
    n_absent: int = 0

    def take(self, rows: Any) -> "Examples":
        """Some of the items."""
        rows = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else rows
        own = {name: getattr(self, name)[rows] for name in ("Y", "weights", "held_out", "unjudged")}
        return self._replace(hashes=[self.hashes[i] for i in rows], **own)


def read_examples(connection: Connection, person_weight: float = PERSON_WEIGHT) -> Examples:
    """Decisions of one moment. About one content a person's counts before others, and then the last."""
    a, i = annotations.c, items.c
    kept = annotations.join(items, i.id == a.item_id).join(labels, labels.c.id == a.label_id)
    usable = (i.state == "present") & i.hash.is_not(None) & labels.c.merged_into.is_(None)
    rank = case((a.origin == "person", 2), (a.origin == "import", 1), else_=0)
    query = select(i.hash, a.label_id, a.state == "accepted", rank).select_from(kept).where(usable, a.region == "")
    found: dict[tuple[str, int], tuple[bool, int]] = {}
    for name, label, accepted, who in connection.execute(query.order_by(rank, a.at, a.id)):
        found[name, label] = bool(accepted), who
    regions = connection.execute(select(func.count()).where(a.region != "")).scalar() or 0
    absent = (a.state == "accepted") & (a.region == "") & (i.state != "present")
    n_absent = connection.execute(select(func.count(i.id.distinct())).select_from(kept).where(absent)).scalar() or 0
    last = last_entry(connection)
    named = {n: name for n, name in connection.execute(select(labels.c.id, labels.c.name))}  # noqa: C416
    return _examples(found, named, person_weight)._replace(regions=regions, learnt_to=last, n_absent=n_absent)


def _examples(found: dict[tuple[str, int], tuple[bool, int]], named: dict[int, str], person_weight: float) -> Examples:
    from scipy.sparse import csr_matrix

    hashes = sorted({name for name, _ in found})
    numbers = np.array(sorted({label for _, label in found}), np.int64)
    at = {name: row for row, name in enumerate(hashes)}
    rows = np.array([at[name] for name, _ in found], np.int64)
    columns = np.searchsorted(numbers, np.array([label for _, label in found], np.int64))
    accepted = np.array([yes for yes, _ in found.values()], bool)
    who = np.array([who for _, who in found.values()], np.int64)
    Y = csr_matrix((np.where(accepted, 1, -1).astype(np.int8), (rows, columns)), (len(hashes), len(numbers)))
    Y.sort_indices()
    weights = np.ones(len(hashes), np.float32)
    weights[rows[accepted & (who == 2)]] = person_weight
    unjudged = np.zeros(len(hashes), bool)
    unjudged[rows[accepted & (who == 0)]] = True
    held_to = _held_to(places_of([hashes[i] for i in np.unique(rows[accepted])]))
    held_out = places_of(hashes) <= held_to
    names = [named[int(n)] for n in numbers]
    return Examples(hashes, Y, numbers, names, weights, held_out, held_to, held_out & unjudged, 0, 0)


def places_of(hashes: Sequence[str]) -> Float64:
    """Where contents lie between 0 and 1, by their hashes: always at the same place, (n,)."""
    return np.array([int(name[:8], 16) for name in hashes], np.float64) / 2**32


def _held_to(tagged: Float64) -> float:
    """The place up to which contents are held out: a share, or where few have tags the `FEWEST_HELD_OUT` lowest.

    It falls as more are tagged and rises when tags are taken away, so that every model keeps the one of its training.
    """
    lowest = np.sort(tagged)[:FEWEST_HELD_OUT]
    return max(HELD_OUT, float(lowest[-1]) if len(lowest) else 0.0)


def require_enough(examples: Examples, folder: Path, n_changed: int = 0) -> None:
    """Refuse to learn from next to nothing.

    Parameters
    ----------
    examples : Examples
    folder : Path
        The collection's, for the sentence.
    n_changed : int
        Files that are left out, as they are gone or not what was scanned.

    Raises
    ------
    InputError
        The sentence says what is there and what is needed.
    """
    tagged = (examples.Y > 0).tocsr()
    n_items = int((np.diff(tagged.indptr) > 0).sum())
    n_labels = len(np.unique(tagged.indices))
    if n_items >= FEWEST_ITEMS and n_labels >= FEWEST_LABELS:
        return
    has = f"{n_items:,} items with tags, of {n_labels:,} labels"
    needs = f"; learning needs at least {FEWEST_ITEMS} such items and {FEWEST_LABELS} labels"
    if n_changed:
        changed = f"{n_changed:,} file{'s' * (n_changed > 1)} changed since the last scan, or went away"
        raise rescan_error(folder, f"{changed}, which leaves {has}{needs}")
    if examples.n_absent:
        has += f", besides {examples.n_absent:,} whose files are missing or cannot be read"
    raise InputError(f"{folder} has {has}{needs}: tag some more, or import tags")


def decisions_since(connection: Connection, entry: int) -> int:
    """Annotations that are new, other or gone after an entry of the journal."""
    c = changes.c
    query = select(func.count(c.row.distinct())).where(c.entry_id > entry, c.table == annotations.name)
    return connection.execute(query).scalar() or 0


def changed_since(connection: Connection, entry: int, at_most: int) -> set[int] | None:
    """Items about which something was decided, or undone, after an entry of the journal.

    None where more than `at_most` decisions were changed.
    """
    c = changes.c
    since = (c.entry_id > entry) & (c.table == annotations.name)
    if (connection.execute(select(func.count()).where(since)).scalar() or 0) > at_most:
        return None
    rows = connection.execute(select(c.before, c.after).where(since))
    return {row["item_id"] for pair in rows for row in pair if row is not None}


def hashes_of(connection: Connection, numbers: set[int]) -> set[str]:
    """The contents of items."""
    wanted, found = sorted(numbers), set[str]()
    for lo in range(0, len(wanted), 500):
        query = select(items.c.hash).where(items.c.id.in_(wanted[lo : lo + 500]), items.c.hash.is_not(None))
        found.update(connection.execute(query).scalars())
    return found
