"""Features of a collection's items, stored by content, once for each feature extractor.

    features/extractor.json             {"schema": 1, "extractor": FINGERPRINT}: the extractor of new models
    features/FINGERPRINT/extractor/     the extractor
    features/FINGERPRINT/00000000.parquet ...   about `SHARD` rows a file, written whole and never changed

All of it may be deleted at any time: it is computed again, and models hold a copy of their extractor.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pyarrow import ArrowException
from pyarrow.parquet import read_table
from scipy.sparse import csr_matrix, vstack
from sqlalchemy import select, update

from wsabie.collection.db.database import begin_write, execute_in, fetch_rows, group_pairs, iterate_chunks
from wsabie.collection.db.tables import items
from wsabie.collection.folder.collection import Collection, make_rescan_error
from wsabie.collection.scan.file_inspection import read_file_stat
from wsabie.core.arrays import Bool, Matrix
from wsabie.core.errors import InputError, WsabieError, require
from wsabie.core.execution import SILENT, Executor, Progress, SerialExecutor, Stage
from wsabie.features.base.extraction import build_shard_path, fit_extractor, read_summary, write_shard
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.base.item_features import ItemFeatures, ItemRejection
from wsabie.features.base.sampling import iterate_item_batches
from wsabie.features.extractor_registry import create_extractor, load_extractor
from wsabie.io.formats.parquet_rows import DENSE
from wsabie.io.records import Item, ItemList
from wsabie.storage.atomic_files import write_text

SHARD = 1024
"""Number of items in a file; a killed command loses about as many."""
SAMPLE = 4000
"""Maximum number of items that an extractor is fitted on."""

_CHUNK = 500
_MIN_PARALLEL = 64  # items that are worth starting processes
_CACHED_SHARDS = 8


class Resources(NamedTuple):
    """Means of a computation: executor of the feature extraction, number of threads, and progress."""

    executor: Executor | None = None
    threads: int | None = None
    progress: Progress = SILENT


class MissingFeatures(NamedTuple):
    """Hashes of items without features: unreadable ones, and those gone or changed since the scan."""

    unreadable: list[str]
    changed: list[str]


@dataclass
class FeatureStore:
    """Features by one extractor.

    Attributes
    ----------
    folder : Path
    extractor : FeatureExtractor
    positions : dict of str to (shard, row)
        Position of each content's row.
    """

    folder: Path
    extractor: FeatureExtractor
    fingerprint: str
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)
    n_shards: int = 0

    def add_shard(self, shard: int, hashes: Iterable[str]) -> None:
        """Register the rows of a shard."""
        self.positions.update((content, (shard, row)) for row, content in enumerate(hashes))
        self.n_shards = max(self.n_shards, shard + 1)

    def matrix(self, hashes: Sequence[str]) -> tuple[Matrix, Bool]:
        """Return the rows of contents in their order, (n_stored, n_features), and a mask of them, (n,)."""
        is_stored = np.array([content in self.positions for content in hashes], bool)
        stored = [self.positions[content] for content in hashes if content in self.positions]
        positions = np.array(stored, np.int64).reshape(-1, 2)
        shards, order = np.unique(positions[:, 0]), np.argsort(positions[:, 0], kind="stable")
        parts = [self._shard(int(shard))[positions[positions[:, 0] == shard, 1]] for shard in shards]
        original_order = np.argsort(order, kind="stable")
        if self.extractor.is_dense:
            matrix = np.concatenate(parts) if parts else np.empty((0, self.extractor.n_features_), np.float32)
            return matrix[original_order], is_stored
        matrix = vstack(parts, format="csr") if parts else csr_matrix((0, self.extractor.n_features_), dtype=np.float32)
        return matrix[original_order], is_stored

    @cached_property
    def _shard(self) -> Callable[[int], Matrix]:
        """Reader of shards, which keeps the last few."""
        return lru_cache(_CACHED_SHARDS)(lambda n: _read_shard(build_shard_path(self.folder, n), self.extractor))


def open_feature_store(collection: Collection, extractor: FeatureExtractor) -> FeatureStore:
    """Return the feature store of an extractor; damaged files are removed and computed again."""
    fingerprint = extractor.fingerprint()
    store = FeatureStore(collection.features / fingerprint, extractor, fingerprint)
    for path in sorted(store.folder.glob("*.parquet")):
        summary = read_summary(path)
        names = None if summary is None or summary.key != fingerprint or not path.stem.isdigit() else _read_names(path)
        if names is None:
            path.unlink(missing_ok=True)
        else:
            store.add_shard(int(path.stem), names)
    return store


def choose_feature_extractor(
    collection: Collection, candidate: FeatureExtractor | None, seed: int, resources: Resources
) -> FeatureExtractor:
    """Return the collection's extractor, or fit the candidate, or else "auto".

    Raises
    ------
    InputError
        No item can be read.
    """
    current = _load_current_extractor(collection)
    if current is not None and (candidate is None or current.has_settings_of(candidate)):
        return current
    hashes = _sample_hashes(collection)
    require(bool(hashes), "the collection has no items yet; put files into its folder, and scan it")
    with SILENT.stage("", None, "") as stage:
        source = ItemList(collection.folder, list(_iterate_files(collection, hashes, [], stage)))
    if not len(source):
        fact = f"of {len(hashes):,} items all files changed or disappeared since the last scan"
        raise make_rescan_error(collection.folder, fact)
    unfitted = candidate or create_extractor(seed=seed)
    extractor = fit_extractor(unfitted, source, executor=resources.executor, progress=resources.progress)
    save_feature_extractor(collection, extractor)
    return extractor


def save_feature_extractor(collection: Collection, extractor: FeatureExtractor) -> None:
    """Make this the extractor of new models."""
    fingerprint = extractor.fingerprint()
    extractor.save(collection.features / fingerprint / "extractor")
    document = json.dumps({"schema": 1, "extractor": fingerprint}) + "\n"
    write_text(collection.features / "extractor.json", document)


def extract_missing_features(
    collection: Collection, store: FeatureStore, hashes: Sequence[str], resources: Resources
) -> MissingFeatures:
    """Compute the rows of contents that have none; unreadable items are marked.

    Parameters
    ----------
    hashes : sequence of str
        Content hashes.
    """
    new_hashes = list(dict.fromkeys(content for content in hashes if content not in store.positions))
    missing_features, executor = MissingFeatures([], []), resources.executor
    if new_hashes:
        run = SerialExecutor() if executor is None or len(new_hashes) < _MIN_PARALLEL else executor
        with resources.progress.stage("extracting features", len(new_hashes), "items") as stage:
            files = _iterate_files(collection, new_hashes, missing_features.changed, stage)
            batches = iterate_item_batches(files, store.extractor.batch_size)
            rows: list[ItemFeatures] = []
            for batch in store.extractor.extract_batches(batches, executor=run):
                for result in batch:
                    if isinstance(result, ItemRejection):
                        missing_features.unreadable.append(result.id)
                    else:
                        rows += result
                stage.advance(len(batch))
                if len(rows) >= SHARD:
                    _write(store, rows)
                    rows = []
            if rows:
                _write(store, rows)
    if missing_features.unreadable:
        mark_unreadable = update(items).where(items.c.state == "present").values(state="unreadable")
        with begin_write(collection.engine) as connection:
            execute_in(connection, mark_unreadable, items.c.hash, missing_features.unreadable)
    return missing_features


def _write(store: FeatureStore, rows: list[ItemFeatures]) -> None:
    shard_number = store.n_shards
    write_shard(build_shard_path(store.folder, shard_number), rows, [], store.fingerprint, store.extractor.is_dense)
    store.add_shard(shard_number, [row.id for row in rows])


def _iterate_files(collection: Collection, hashes: list[str], changed: list[str], stage: Stage) -> Iterator[Item]:
    """Yield one unchanged file for each content; contents without any are `changed`."""
    roots, c = collection.roots(), items.c
    query = select(c.hash, c.root_id, c.path, c.size, c.mtime_ns).where(c.state == "present").order_by(c.id)
    for part in iterate_chunks(hashes, _CHUNK):
        rows = [row for row in fetch_rows(collection.engine, query.where(c.hash.in_(part))) if row.root_id in roots]
        files = group_pairs((row.hash, (roots[row.root_id] / row.path, row.size, row.mtime_ns)) for row in rows)
        for content in part:
            file = next((path for path, *stat in files[content] if _is_unchanged(path, *stat)), None)
            if file is None:
                changed.append(content)
                stage.advance(1)
            else:
                yield Item(content, file, ())


def _is_unchanged(path: Path, size: int | None, mtime_ns: int | None) -> bool:
    stat = read_file_stat(path)
    return stat is not None and size in (None, stat.size) and mtime_ns in (None, stat.mtime_ns)


def _sample_hashes(collection: Collection) -> list[str]:
    """Return contents in the order of their hashes: an arbitrary sample, but always the same."""
    c = items.c
    query = select(c.hash).where(c.state == "present", c.hash.is_not(None)).distinct().order_by(c.hash).limit(SAMPLE)
    return [row[0] for row in fetch_rows(collection.engine, query)]


def _load_current_extractor(collection: Collection) -> FeatureExtractor | None:
    try:
        document = json.loads((collection.features / "extractor.json").read_bytes()[:1000])
        return load_extractor(collection.features / Path(str(document["extractor"])).name / "extractor")
    except (OSError, ValueError, KeyError, TypeError, WsabieError):
        return None  # deleted or damaged: the caller fits it again


def _read_names(path: Path) -> list[str] | None:
    with suppress(ArrowException, OSError):
        return list(read_table(path, columns=["id"], page_checksum_verification=True)["id"].to_pylist())
    return None


def _read_shard(path: Path, extractor: FeatureExtractor) -> Matrix:
    columns = [DENSE] if extractor.is_dense else ["indices", "values"]
    try:
        table = read_table(path, columns=columns, page_checksum_verification=True).combine_chunks()
        lists = [table[name].combine_chunks() for name in columns]
        flat = [values.flatten().to_numpy(zero_copy_only=False) for values in lists]
        if extractor.is_dense:
            return flat[0].astype(np.float32).reshape(len(table), extractor.n_features_)
        starts = np.concatenate([[0], np.cumsum(lists[0].value_lengths().to_numpy(zero_copy_only=False))])
        rows = csr_matrix((flat[1], flat[0].astype(np.int32), starts), (len(table), extractor.n_features_))
        rows.check_format(full_check=True)
    except (ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} is damaged; remove it and run the same command again") from error
    return rows
