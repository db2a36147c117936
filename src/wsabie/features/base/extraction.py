"""Feature extraction from a source into one Parquet file, resumed after an interruption.

Each run of `shard_pictures` pictures becomes a shard in the folder `<out>.parts`. When all shards are complete they are
merged into `out` and the folder is removed. Memory holds only a few batches of pictures and one shard of rows.
"""

import hashlib
import json
import os
import shutil
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.features.base import sampling
from wsabie.features.base.feature_extractor import AnyExtractor, FeatureExtractor
from wsabie.features.base.item_features import ItemFeatures, ItemRejection
from wsabie.features.base.sampling import RunOptions, WorkContext
from wsabie.io.formats.parquet_rows import DENSE
from wsabie.io.formats.parquet_tables import KEY
from wsabie.io.records import Item, ItemSource
from wsabie.storage.atomic_files import explain_write_errors, lock_folder, replace_file
from wsabie.storage.output_checks import refuse_unknown_files
from wsabie.storage.rejects import Rejects

KEY_NOTE = b"wsabie.extract.key"
REJECTS_NOTE = b"wsabie.extract.rejects"
_COMPRESSION = "zstd"
_MAX_LISTED = 100_000  # skipped pictures that a file's notes name
_FIELDS = {DENSE: "values"}  # of `ItemFeatures`, where the column has another name
SHARD_FILES = r"\d+\.parquet|merged\.parquet"
"""Names in the folder of shards."""
_FORMAT = 4  # version of the file; work begun in another version starts again


class ShardSummary(NamedTuple):
    """Summary in the metadata of a complete file."""

    key: str
    n_rows: int
    rejected: list[ItemRejection]


def build_shard_path(folder: Path, number: int) -> Path:
    """Return the path of shard `number` in a folder.

    Examples
    --------
    >>> build_shard_path(Path("a.parts"), 3).name
    '00000003.parquet'
    """
    return folder / f"{number:08d}.parquet"


def write_shard(path: Path, rows: list[ItemFeatures], rejected: list[ItemRejection], key: str, dense: bool) -> None:
    """Write a shard, atomically; `dense` rows hold every column.

    Raises
    ------
    InputError
        The folder cannot be written, or the disk is full.
    """
    from pyarrow import Table
    from pyarrow.parquet import write_table

    schema = _build_schema(["group", "time"], dense).with_metadata(_build_notes(key, rejected))
    columns = {name: [getattr(row, _FIELDS.get(name, name)) for row in rows] for name in schema.names}
    with replace_file(path) as draft:
        write_table(Table.from_pydict(columns, schema), draft, compression=_COMPRESSION, write_page_checksum=True)


def read_summary(path: Path) -> ShardSummary | None:
    """Return the summary of a file of rows; None when there is none, or it cannot be read."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            notes = file.schema_arrow.metadata or {}
            rejected = [ItemRejection(*fields) for fields in json.loads(notes[REJECTS_NOTE])]
            return ShardSummary(notes[KEY_NOTE].decode(), file.metadata.num_rows, rejected)
    except (OSError, ArrowException, KeyError, ValueError, TypeError):
        return None


def merge_shards(folder: Path, n_shards: int, out: Path, key: str, facts: JsonObject, dense: bool) -> ShardSummary:
    """Merge the shards of a folder into `out`, one row group each, and remove the folder.

    The metadata of the file hold `facts`. Columns that no row fills are left out.

    Raises
    ------
    InputError
        The disk is full, `out` cannot be written, or a shard was damaged meanwhile; the shards stay.
    """
    from pyarrow.parquet import ParquetWriter

    shards = [build_shard_path(folder, number) for number in range(n_shards)]
    summaries = [summary for summary in map(read_summary, shards) if summary is not None]
    rejected = [rejection for summary in summaries for rejection in summary.rejected]
    columns, label_names = _survey_shards(shards)
    note = {"schema": 1, **facts, "label_names": label_names}
    notes = {KEY: json.dumps(note, ensure_ascii=False).encode(), **_build_notes(key, rejected[:_MAX_LISTED])}
    schema = _build_schema(columns, dense).with_metadata(notes)
    draft = folder / "merged.parquet"
    with replace_file(draft) as file, ParquetWriter(file, schema, compression=_COMPRESSION) as writer:
        for shard in shards:
            table = _read_columns(shard, schema.names)
            if table.num_rows:
                writer.write_table(table.replace_schema_metadata(schema.metadata), row_group_size=table.num_rows)
    with replace_file(out) as final_draft:
        draft.replace(final_draft)  # the shards go only when `out` is on the disk
    shutil.rmtree(folder, ignore_errors=True)
    return ShardSummary(key, sum(summary.n_rows for summary in summaries), rejected)


def _survey_shards(shards: list[Path]) -> tuple[list[str], list[str]]:
    """Return the optional columns that have values, and all label names in the order of their code points."""
    filled_columns, label_names = set[str](), set[str]()
    for shard in shards:
        table = _read_columns(shard, ["group", "time", "labels"])
        filled_columns.update(name for name in ("group", "time") if table[name].null_count < len(table))
        label_names.update(table["labels"].combine_chunks().flatten().unique().to_pylist())
    return sorted(filled_columns), sorted(label_names)


def _read_columns(shard: Path, columns: list[str]) -> Any:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_table

    try:
        return read_table(shard, columns=columns, page_checksum_verification=True)
    except (ArrowException, OSError) as error:
        raise InputError(f"{shard} is damaged; remove {shard.parent} and run the same command again") from error


def _build_notes(key: str, rejected: list[ItemRejection]) -> dict[bytes, bytes]:
    return {KEY_NOTE: key.encode(), REJECTS_NOTE: json.dumps(rejected).encode()}


def _build_schema(optional: list[str], dense: bool) -> Any:
    import pyarrow as pa

    fields = [("id", pa.string()), ("labels", pa.list_(pa.string()))]
    fields += [(name, pa.string()) for name in optional]
    numbers = pa.list_(pa.float32())
    fields += [(DENSE, numbers)] if dense else [("indices", pa.list_(pa.uint32())), ("values", numbers)]
    return pa.schema(fields)


def fit_extractor(extractor: AnyExtractor, source: ItemSource, **options: Unpack[RunOptions]) -> AnyExtractor:
    """Fit an extractor to a source; list unreadable items only if this fails.

    Extraction reads all items again, so that the bad ones of the sample would be counted twice.
    """
    rejects = options.get("rejects")
    options["rejects"] = sample_rejects = Rejects(strict=rejects is not None and rejects.strict)
    try:
        return extractor.fit(source, **options)
    except BaseException:
        if rejects is not None:
            rejects.add_all(sample_rejects)
        raise


def extract_to_file(
    source: ItemSource,
    extractor: FeatureExtractor,
    out: str | Path,
    *,
    augment: int = 0,
    shard_pictures: int = 1024,
    resume: bool = True,
    **options: Unpack[RunOptions],
) -> int:
    """Write the rows of `extractor.transform(source, augment=augment)` to a Parquet file.

    Columns: id, labels list<string>, group and time where the source or the pictures have them, indices list<uint32>
    and values list<float32>, or features list<float32> where rows are dense; the metadata under "wsabie" holds
    {"schema": 1, "n_features", "counts", "extractor_fingerprint", "augment", "near_equality", "label_names"}. The same
    source, extractor and settings give the same file, after any number of interruptions and on any executor.

    Parameters
    ----------
    source : ItemSource
    extractor : FeatureExtractor
        Fitted.
    out : str or Path
        The file, written atomically.
    executor : Executor or None
        Runs the extraction; None: this process.
    progress : Progress
    rejects : Rejects or None
        Lists pictures that cannot be read, also those of an earlier, interrupted run.
    augment : int
        Further views of each picture as rows of their own.
    shard_pictures : int
        Pictures of a shard; about as many are processed again after an interruption.
    resume : bool
        Use the shards of an earlier run of the same work; False: start again.

    Returns
    -------
    int
        Rows in the file.

    Raises
    ------
    InputError
        `out` cannot be written, the disk is full, another process writes it, or no picture can be read.
    """
    out, context = Path(out), WorkContext.from_options(**options)
    require(not out.is_dir(), f"{out} is a folder; give the name of a file, such as {out / 'features.parquet'}")
    require(shard_pictures >= 1, f"shard_pictures is {shard_pictures}; give a number of pictures, 1 or more")
    plan = _plan_shards(source, extractor, augment, shard_pictures, out)
    refuse_unknown_files(plan.folder, SHARD_FILES)
    with explain_write_errors(plan.folder):
        plan.folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(plan.folder):  # another command would mix its shards with ours
        try:
            summary = read_summary(out) if resume else None
            if summary is None or summary.key != plan.key:
                return _run_plan(plan, source, extractor, out, context, resume).n_rows
            _list_rejections(summary.rejected, context.rejects)
            shutil.rmtree(plan.folder, ignore_errors=True)
            return summary.n_rows
        finally:
            with suppress(OSError):
                plan.folder.rmdir()  # if it is empty


class _Plan(NamedTuple):
    """Shards of an extraction, with the keys by which finished ones are recognised."""

    folder: Path
    shard_pictures: int
    augment: int
    keys: list[str]  # of the shards
    sizes: list[int]  # pictures of each shard
    key: str  # of the merged file


def _plan_shards(
    source: ItemSource, extractor: FeatureExtractor, augment: int, shard_pictures: int, out: Path
) -> _Plan:
    settings = hashlib.blake2b(
        json.dumps([_FORMAT, extractor.fingerprint(), augment, shard_pictures]).encode(), digest_size=16
    )
    keys, sizes = [], []
    for shard in sampling.iterate_batches(map(_digest_item, source), shard_pictures):
        digest = settings.copy()
        for identity in shard:
            digest.update(identity)
        keys.append(digest.hexdigest())
        sizes.append(len(shard))
    key = hashlib.blake2b("".join(keys).encode(), digest_size=16).hexdigest()
    return _Plan(out.with_name(f"{out.name}.parts"), shard_pictures, augment, keys, sizes, key)


def _digest_item(picture: Item) -> bytes:
    """Return a digest of everything of a picture that its row depends on."""
    content_source = picture.full_content
    if isinstance(content_source, bytes):
        content = hashlib.blake2b(content_source, digest_size=16).hexdigest()
    else:
        try:
            stat = content_source.stat()
            content = f"{stat.st_size} {stat.st_mtime_ns} {os.access(content_source, os.R_OK)}"
        except (OSError, ValueError):
            content = "missing"
    fields = [picture.id, picture.labels, picture.group, picture.time, content, *picture.region_facts]
    return hashlib.blake2b(json.dumps(fields).encode(), digest_size=16).digest()


def _run_plan(
    plan: _Plan, source: ItemSource, extractor: FeatureExtractor, out: Path, context: WorkContext, resume: bool
) -> ShardSummary:
    """Extract the missing shards, then merge all."""
    for shard_file in () if resume else plan.folder.iterdir():
        shard_file.unlink()
    summaries = {number: read_summary(build_shard_path(plan.folder, number)) for number in range(len(plan.keys))}
    finished = {n: summary for n, summary in summaries.items() if summary and summary.key == plan.keys[n]}
    for shard in finished.values():
        _list_rejections(shard.rejected, context.rejects)
    n_rows = sum(shard.n_rows for shard in finished.values())
    n_rows += _extract_missing(plan, set(finished), source, extractor, context)
    if not n_rows:
        shutil.rmtree(plan.folder, ignore_errors=True)
        raise InputError(sampling.format_nothing_readable(source, context.rejects))
    facts = {"n_features": extractor.n_features_, **extractor.table_facts(plan.augment)}
    return merge_shards(plan.folder, len(plan.keys), out, plan.key, facts, extractor.is_dense)


def _extract_missing(
    plan: _Plan, finished_shards: set[int], source: ItemSource, extractor: FeatureExtractor, context: WorkContext
) -> int:
    """Write the missing shards, each as soon as it is complete; return their rows."""
    pending_shards: deque[int] = deque()  # shards of the batches that were handed out

    def iterate_pending() -> Iterator[tuple[Item, ...]]:
        numbered = ((position // plan.shard_pictures, picture) for position, picture in enumerate(source))
        for number, shard in groupby(numbered, key=lambda pair: pair[0]):
            if number not in finished_shards and number < len(plan.keys):  # a source may grow meanwhile
                for batch in sampling.iterate_item_batches((picture for _, picture in shard), extractor.batch_size):
                    pending_shards.append(number)
                    yield batch

    n_rows, n_shards, n_pictures = 0, len(finished_shards), 0
    rows, rejected = list[ItemFeatures](), list[ItemRejection]()
    with context.progress.stage("extracting features", sum(plan.sizes), source.modality) as stage:
        stage.advance(sum(plan.sizes[number] for number in finished_shards))
        for batch in extractor.extract_batches(iterate_pending(), executor=context.executor, augment=plan.augment):
            number = pending_shards.popleft()
            for result in batch:
                if isinstance(result, ItemRejection):
                    rejected.append(result)
                    context.rejects.add(*result)
                else:
                    rows += result
            n_pictures += len(batch)
            stage.advance(len(batch))
            if n_pictures == plan.sizes[number]:
                path = build_shard_path(plan.folder, number)
                write_shard(path, rows, rejected, plan.keys[number], extractor.is_dense)
                n_rows, n_shards, n_pictures, rows, rejected = n_rows + len(rows), n_shards + 1, 0, [], []
    if n_shards < len(plan.keys):
        raise InputError(f"{source.path} lost {source.modality} while it was read; run the same command again")
    return n_rows


def _list_rejections(rejected: list[ItemRejection], rejects: Rejects) -> None:
    for rejection in rejected:
        rejects.add(*rejection)
