"""Rows of features of a collection's items, by content, each made once for each describer.

    features/describer.json             {"schema": 1, "describer": FINGERPRINT}: the one that new models take
    features/FINGERPRINT/describer/     the describer
    features/FINGERPRINT/00000000.parquet ...   rows, about `SHARD` to a file, written whole and never changed

All of it can be deleted at any time: it is made again, and models hold a copy of their describer.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, select, update

from wsabie.base.arrays import Bool, Matrix
from wsabie.base.errors import InputError, WsabieError
from wsabie.base.executor import Executor, Serial
from wsabie.base.progress import SILENT, Progress, Stage
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading, writing
from wsabie.catalogue.looking import rescan_error, stat_of
from wsabie.catalogue.tables import items
from wsabie.features.describer import Describer
from wsabie.features.extract import learn
from wsabie.features.learning import item_batches
from wsabie.features.registry import describer, load_describer
from wsabie.features.shards import finished, shard_path, write_shard
from wsabie.features.viewer import Described, Rejected
from wsabie.sources.parquet_features import DENSE
from wsabie.sources.records import Item, ItemList
from wsabie.storage.atomic import write_text
from wsabie.storage.rejects import Rejects

SHARD = 1024
"""Items of a file of rows: a kill loses about as many."""
SAMPLE = 4000
"""Items that a describer is learnt from, at most."""

_AT_ONCE = 500
_FEW = 64  # items for which no other process is worth starting
_KEPT = 8  # files of rows in memory


class Missed(NamedTuple):
    """Items that have no row, by hash: unreadable ones, and those whose file is gone or not what was scanned."""

    unreadable: list[str]
    changed: list[str]


@dataclass
class RowStore:
    """The rows that one describer made.

    Attributes
    ----------
    folder : Path
    describer : Describer
    places : dict of str to (shard, row)
        Where the row of a content is.
    """

    folder: Path
    describer: Describer
    fingerprint: str
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    n_shards: int = 0
    _cache: "OrderedDict[int, Matrix]" = field(default_factory=OrderedDict)

    def note(self, shard: int, hashes: Iterable[str]) -> None:
        """Know the rows of a file."""
        self.places.update((name, (shard, row)) for row, name in enumerate(hashes))
        self.n_shards = max(self.n_shards, shard + 1)

    def matrix(self, hashes: Sequence[str]) -> tuple[Matrix, Bool]:
        """Rows of contents in their order, (n_found, n_features), and which of them have one, (n,)."""
        found = np.array([name in self.places for name in hashes], bool)
        at = np.array([self.places[name] for name in hashes if name in self.places], np.int64).reshape(-1, 2)
        shards, order = np.unique(at[:, 0]), np.argsort(at[:, 0], kind="stable")
        parts = [self._shard(int(shard))[at[at[:, 0] == shard, 1]] for shard in shards]
        back = np.argsort(order, kind="stable")
        if self.describer.dense:
            whole = np.concatenate(parts) if parts else np.empty((0, self.describer.n_features_), np.float32)
            return whole[back], found
        from scipy.sparse import csr_matrix, vstack

        whole = vstack(parts, format="csr") if parts else csr_matrix((0, self.describer.n_features_), dtype=np.float32)
        return whole[back], found

    def _shard(self, number: int) -> Matrix:
        if number not in self._cache:
            self._cache[number] = _read(shard_path(self.folder, number), self.describer)
            while len(self._cache) > _KEPT:
                self._cache.popitem(last=False)
        self._cache.move_to_end(number)
        return self._cache[number]


def opened_rows(collection: Collection, made_by: Describer) -> RowStore:
    """The rows that a describer has made so far; files that are damaged are removed, to be made again."""
    fingerprint = made_by.fingerprint()
    store = RowStore(collection.features / fingerprint, made_by, fingerprint)
    for path in sorted(store.folder.glob("*.parquet")):
        told = finished(path)
        names = None if told is None or told.key != fingerprint or not path.stem.isdigit() else _names(path)
        if names is None:
            path.unlink(missing_ok=True)
        else:
            store.note(int(path.stem), names)
    return store


def describer_for(
    collection: Collection, asked: str | None, *, seed: int, executor: Executor | None, progress: Progress
) -> Describer:
    """What describes the items: the one that was learnt before, unless another is asked for, which is learnt now.

    Raises
    ------
    InputError
        No item can be read, or there is no such description.
    """
    kept = _kept(collection)
    wanted = describer(asked, seed=seed)
    if kept is not None and (asked is None or kept.name == wanted.name):
        return kept
    hashes, missed = _sample(collection), Missed([], [])
    if not hashes:
        raise InputError(
            f"{collection.folder} has no items yet; run: wsabie collection scan {quote(str(collection.folder))}",
            served="the collection has no items yet; put files into its folder, and press Scan on the page Status",
        )
    with SILENT.stage("", None, "") as stage:
        source = ItemList(collection.folder, list(_to_describe(collection, hashes, missed, stage)))
    if not len(source):
        raise rescan_error(
            collection.folder, f"of {len(hashes):,} items all files changed since the last scan, or went away"
        )
    learnt = learn(wanted, source, executor, progress, Rejects())
    keep_describer(collection, learnt)
    return learnt


def keep_describer(collection: Collection, learnt: Describer) -> None:
    """Let new models take this describer."""
    fingerprint = learnt.fingerprint()
    learnt.save(collection.features / fingerprint / "describer")
    told = json.dumps({"schema": 1, "describer": fingerprint}) + "\n"
    write_text(collection.features / "describer.json", told)


def describe_missing(
    collection: Collection,
    store: RowStore,
    wanted: Sequence[str],
    *,
    executor: Executor | None = None,
    progress: Progress,
) -> Missed:
    """Make the rows of contents that have none; items that cannot be read are marked so.

    Parameters
    ----------
    wanted : sequence of str
        Hashes.
    """
    missing = list(dict.fromkeys(name for name in wanted if name not in store.places))
    missed = Missed([], [])
    if missing:
        run = Serial() if executor is None or len(missing) < _FEW else executor
        with progress.stage("describing items", len(missing), "items") as stage:
            batches = item_batches(_to_describe(collection, missing, missed, stage), store.describer.together)
            _fill(store, store.describer.describe(batches, executor=run), missed, stage)
    _mark(collection, missed.unreadable)
    return missed


def _fill(store: RowStore, described: Iterable[list[Any]], missed: Missed, stage: Stage) -> None:
    rows: list[Described] = []
    for batch in described:
        for one in batch:
            if isinstance(one, Rejected):
                missed.unreadable.append(one.id)
            else:
                rows += one
        stage.advance(len(batch))
        if len(rows) >= SHARD:
            _write(store, rows)
            rows = []
    if rows:
        _write(store, rows)


def _write(store: RowStore, rows: list[Described]) -> None:
    number = store.n_shards
    write_shard(shard_path(store.folder, number), rows, [], store.fingerprint, store.describer.dense)
    store.note(number, [row.id for row in rows])


def _to_describe(collection: Collection, hashes: list[str], missed: Missed, stage: Stage) -> Iterator[Item]:
    """One file of each content, as long as it is what was scanned."""
    roots = collection.roots()
    for lo in range(0, len(hashes), _AT_ONCE):
        part = hashes[lo : lo + _AT_ONCE]
        with reading(collection.engine) as connection:
            files = _files(connection, part, roots)
        for name in part:
            path = next((file for file, size, modified in files.get(name, ()) if _is(file, size, modified)), None)
            if path is None:
                missed.changed.append(name)
                stage.advance(1)
            else:
                yield Item(name, path, ())


def _files(
    connection: Connection, hashes: list[str], roots: dict[int, Path]
) -> dict[str, list[tuple[Path, int | None, int | None]]]:
    c = items.c
    query = select(c.hash, c.root_id, c.path, c.size, c.modified).where(c.hash.in_(hashes), c.state == "present")
    found: dict[str, list[tuple[Path, int | None, int | None]]] = {}
    for name, root, path, size, modified in connection.execute(query.order_by(c.id)):
        if root in roots:
            found.setdefault(name, []).append((roots[root] / path, size, modified))
    return found


def _is(path: Path, size: int | None, modified: int | None) -> bool:
    stat = stat_of(path)
    return stat is not None and size in (None, stat.size) and modified in (None, stat.modified)


def _mark(collection: Collection, unreadable: list[str]) -> None:
    for lo in range(0, len(unreadable), _AT_ONCE):
        part = unreadable[lo : lo + _AT_ONCE]
        with writing(collection.engine) as connection:
            query = update(items).where(items.c.hash.in_(part), items.c.state == "present")
            connection.execute(query.values(state="unreadable"))


def _sample(collection: Collection) -> list[str]:
    """Contents in the order of their hashes: as good as drawn at random, and the same ones again."""
    c = items.c
    query = select(c.hash).where(c.state == "present", c.hash.is_not(None)).distinct().order_by(c.hash).limit(SAMPLE)
    with reading(collection.engine) as connection:
        return list(connection.execute(query).scalars())


def _kept(collection: Collection) -> Describer | None:
    try:
        told = json.loads((collection.features / "describer.json").read_bytes()[:1000])
        return load_describer(collection.features / Path(str(told["describer"])).name / "describer")
    except (OSError, ValueError, KeyError, TypeError, WsabieError):
        return None  # deleted or damaged: what can be made again is made again


def _names(path: Path) -> list[str] | None:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_table

    try:
        names: list[str] = read_table(path, columns=["id"], page_checksum_verification=True)["id"].to_pylist()
    except (ArrowException, OSError):
        return None
    return names


def _read(path: Path, made_by: Describer) -> Matrix:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_table
    from scipy.sparse import csr_matrix

    columns = [DENSE] if made_by.dense else ["indices", "values"]
    try:
        table = read_table(path, columns=columns, page_checksum_verification=True).combine_chunks()
        lists = [table[name].combine_chunks() for name in columns]
        flat = [one.flatten().to_numpy(zero_copy_only=False) for one in lists]
        if made_by.dense:
            return flat[0].astype(np.float32).reshape(len(table), made_by.n_features_)
        starts = np.concatenate([[0], np.cumsum(lists[0].value_lengths().to_numpy(zero_copy_only=False))])
        rows = csr_matrix((flat[1], flat[0].astype(np.int32), starts), (len(table), made_by.n_features_))
        rows.check_format(full_check=True)
    except (ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} is damaged; remove it and run the same command again") from error
    return rows
