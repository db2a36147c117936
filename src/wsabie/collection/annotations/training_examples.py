"""Training examples: decisions about whole items whose files are present, grouped by content."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sqlalchemy import Connection, and_, case, func, select

from wsabie.collection.db.database import select_in
from wsabie.collection.db.journal import read_last_entry
from wsabie.collection.db.tables import annotations, bursts, changes, items, labels
from wsabie.collection.folder.collection import make_rescan_error
from wsabie.core.arrays import Bool, Float32, Float64, Int64, Matrix
from wsabie.core.errors import InputError

HELD_OUT = 0.15
"""Share of the bursts that no model learns from; hashes choose them, so they are the same in every training."""
MIN_ITEMS = 20
"""Minimum number of tagged items; `MIN_LABELS` is the minimum number of labels."""
MIN_LABELS = 2
MIN_HELD_OUT = 5
PERSON_WEIGHT = 2.0
"""Weight of an item with a tag by a person, relative to one with imported tags only."""
_TABLES = annotations.join(items, items.c.id == annotations.c.item_id)
_TABLES = _TABLES.join(labels, labels.c.id == annotations.c.label_id)
_IS_USABLE = and_(items.c.state == "present", items.c.hash.is_not(None), labels.c.merged_into.is_(None))
_IS_USABLE &= annotations.c.region == ""


class TrainingExamples(NamedTuple):
    """Items with decisions; items of the same content count as one.

    Attributes
    ----------
    hashes : list of str, length n, ascending
    leaders : list of str, length n
        Hash of the first picture of each one's burst.
    Y : csr_matrix (n, n_labels) int8
        1 = accepted, -1 = rejected.
    labels : (n_labels,) int64
        Label ids, ascending.
    names : list of str
    weights : (n,) float32
    is_holdout : (n,) bool
    holdout_bound : float
        Position up to which bursts are held out (`compute_hash_positions`).
    unjudged : (n,) bool
        Held-out items with a tag that a model accepted by itself; models are neither trained nor evaluated on them.
    regions : int
        Number of decisions about regions, which training ignores.
    last_entry_id : int
        Last journal entry that the examples include.
    n_absent : int
        Tagged items that are left out because their file is missing or unreadable.
    """

    hashes: list[str]
    leaders: list[str]
    Y: Matrix
    labels: Int64
    names: list[str]
    weights: Float32
    is_holdout: Bool
    holdout_bound: float
    unjudged: Bool
    regions: int
    last_entry_id: int
    n_absent: int = 0

    def take(self, rows: Int64 | Bool | list[int]) -> "TrainingExamples":
        """Return the examples in these rows."""
        rows = np.arange(len(self.hashes))[rows]
        columns = {name: getattr(self, name)[rows] for name in ("Y", "weights", "is_holdout", "unjudged")}
        hashes, leaders = ([names[i] for i in rows] for names in (self.hashes, self.leaders))
        return self._replace(hashes=hashes, leaders=leaders, **columns)

    def read_columns(self, labels: Int64) -> Matrix:
        """Return the columns of some labels in their order; a label without decisions gets an empty one."""
        columns = np.minimum(np.searchsorted(self.labels, labels), len(self.labels) - 1)
        Y = self.Y[:, columns].multiply(self.labels[columns] == labels).tocsr()
        Y.eliminate_zeros()
        return Y


def read_examples(connection: Connection, person_weight: float = PERSON_WEIGHT) -> TrainingExamples:
    """Return the examples of one moment; a person's decision wins, then the latest."""
    a, i = annotations.c, items.c
    origin_rank = case((a.origin == "person", 2), (a.origin == "import", 1), else_=0)
    query = select(i.hash, a.label_id, a.state == "accepted", origin_rank).select_from(_TABLES)
    query = query.where(_IS_USABLE).order_by(origin_rank, a.at, a.id)
    rows = connection.execute(query)
    decisions = {(name, label): (bool(accepted), priority) for name, label, accepted, priority in rows}
    regions = connection.scalar(select(func.count()).where(a.region != "")) or 0
    absent = (a.state == "accepted") & (a.region == "") & (i.state != "present")
    n_absent = connection.scalar(select(func.count(i.id.distinct())).select_from(_TABLES).where(absent)) or 0
    names_by_id = {n: name for n, name in connection.execute(select(labels.c.id, labels.c.name))}  # noqa: C416
    leader_of = {name: leader for name, leader in connection.execute(select(bursts.c.hash, bursts.c.leader))}  # noqa: C416
    examples = _build_examples(decisions, names_by_id, leader_of, person_weight)
    return examples._replace(regions=regions, last_entry_id=read_last_entry(connection), n_absent=n_absent)


def count_tagged(connection: Connection, *, imported: bool = False) -> tuple[int, int]:
    """Return the number of tagged contents and that of their labels, at most `MIN_ITEMS` and `MIN_LABELS`.

    With `imported`, only tags that files or tables supplied count.
    """
    tagged = and_(_IS_USABLE, annotations.c.state == "accepted", *[annotations.c.origin == "import"] * imported)
    limits = {items.c.hash: MIN_ITEMS, annotations.c.label_id: MIN_LABELS}
    queries = (select(c).select_from(_TABLES).where(tagged).distinct().limit(limit) for c, limit in limits.items())
    n_items, n_labels = (len(connection.execute(query).all()) for query in queries)
    return n_items, n_labels


def _build_examples(
    decisions: dict[tuple[str, int], tuple[bool, int]],
    names_by_id: dict[int, str],
    leader_of: dict[str, str],
    person_weight: float,
) -> TrainingExamples:
    from scipy.sparse import csr_matrix

    contents, rows = np.unique(np.array([name for name, _ in decisions], np.str_), return_inverse=True)
    label_ids, columns = np.unique(np.array([label for _, label in decisions], np.int64), return_inverse=True)
    hashes: list[str] = contents.tolist()
    accepted = np.array([is_accepted for is_accepted, _ in decisions.values()], bool)
    priority = np.array([priority for _, priority in decisions.values()], np.int64)
    Y = csr_matrix((np.where(accepted, 1, -1).astype(np.int8), (rows, columns)), (len(hashes), len(label_ids)))
    Y.sort_indices()
    weights = np.ones(len(hashes), np.float32)
    weights[rows[accepted & (priority == 2)]] = person_weight
    unjudged = np.zeros(len(hashes), bool)
    unjudged[rows[accepted & (priority == 0)]] = True
    # At least `MIN_HELD_OUT` tagged bursts are held out; the bound changes with the tags, so models store theirs.
    leaders = [leader_of.get(name, name) for name in hashes]
    positions = compute_hash_positions(leaders)
    lowest = np.unique(positions[rows[accepted]])[:MIN_HELD_OUT]
    holdout_bound = max([HELD_OUT, *lowest[-1:].tolist()])
    is_holdout, unjudged = positions <= holdout_bound, unjudged & (positions <= holdout_bound)
    names = [names_by_id[int(n)] for n in label_ids]
    return TrainingExamples(hashes, leaders, Y, label_ids, names, weights, is_holdout, holdout_bound, unjudged, 0, 0)


def compute_hash_positions(hashes: Sequence[str]) -> Float64:
    """Return the fixed position of each content in [0, 1), derived from its hash, (n,)."""
    return np.array([int(name[:8], 16) for name in hashes], np.float64) / 2**32


def require_enough(examples: TrainingExamples, folder: Path, n_changed: int = 0) -> None:
    """Raise if there are too few tagged items or labels to learn from.

    Parameters
    ----------
    examples : TrainingExamples
    folder : Path
        Folder of the collection, for the message.
    n_changed : int
        Files that are left out because they are gone or changed since the scan.

    Raises
    ------
    InputError
        The message says how many there are and how many are needed.
    """
    positives = (examples.Y > 0).tocsr()
    n_items = int((np.diff(positives.indptr) > 0).sum())
    n_labels = len(np.unique(positives.indices))
    if n_items >= MIN_ITEMS and n_labels >= MIN_LABELS:
        return
    amounts = f"{n_items:,} items with tags, of {n_labels:,} labels"
    needs = f"; training needs at least {MIN_ITEMS} items with tags, and {MIN_LABELS} labels"
    if n_changed:
        changed = f"{n_changed:,} file{'s' * (n_changed > 1)} changed or disappeared since the last scan"
        raise make_rescan_error(folder, f"{changed}, which leaves {amounts}{needs}")
    if examples.n_absent:
        amounts += f", besides {examples.n_absent:,} whose files are missing or cannot be read"
    raise InputError(f"{folder} has {amounts}{needs}: tag some more, or import tags")


def count_decisions_since(connection: Connection, entry: int) -> int:
    """Return the number of annotations added, changed or removed after a journal entry."""
    c = changes.c
    query = select(func.count(c.row.distinct())).where(c.entry_id > entry, c.table == annotations.name)
    return connection.scalar(query) or 0


def find_changed_items(connection: Connection, entry: int, at_most: int) -> set[int] | None:
    """Return the ids of items with decisions made or undone after a journal entry.

    None if more than `at_most` decisions changed.
    """
    since = (changes.c.entry_id > entry) & (changes.c.table == annotations.name)
    rows = connection.execute(select(changes.c.old_row, changes.c.new_row).where(since).limit(at_most + 1)).all()
    if len(rows) > at_most:
        return None
    return {row["item_id"] for pair in rows for row in pair if row is not None}


def read_hashes(connection: Connection, item_ids: set[int]) -> set[str]:
    """Return the content hashes of items."""
    query = select(items.c.hash).where(items.c.hash.is_not(None))
    return {row[0] for row in select_in(connection, query, items.c.id, sorted(item_ids))}
