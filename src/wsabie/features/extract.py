"""Describe a collection of any size into one Parquet file; killed at any moment, it goes on where it was.

The pictures are taken in runs of `shard_pictures`; each run becomes a shard in the folder `<out>.parts`, and when
all are there they become `out` and the folder goes. Only a few batches of pictures and one shard of rows are ever in
memory.
"""

import hashlib
import json
import os
import shutil
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor, Serial
from wsabie.base.progress import SILENT, Progress
from wsabie.features.describer import AnyDescriber, Describer
from wsabie.features.learning import Run, batches, item_batches, nothing_read
from wsabie.features.shards import OWN_FILES, Finished, finished, merge, shard_path, write_shard
from wsabie.features.viewer import Described, Rejected
from wsabie.sources.records import Item, ItemSource
from wsabie.storage.atomic import explained, held
from wsabie.storage.rejects import Rejects
from wsabie.storage.scratch import refuse_strangers

_FORMAT = 3  # of the file; what was begun in another form is begun again


def learn(
    wanted: AnyDescriber, source: ItemSource, executor: Executor | None, progress: Progress, rejects: Rejects | None
) -> AnyDescriber:
    """`wanted`, fitted on a collection that is described next; what cannot be read is listed here only if this fails.

    All pictures are read again to be described, so that the bad ones of the sample would be counted twice.
    """
    unread = Rejects(strict=rejects is not None and rejects.strict)
    try:
        return wanted.fit(source, executor=executor, progress=progress, rejects=unread)
    except BaseException:
        if rejects is not None:
            rejects.add_all(unread)
        raise


def extract(
    source: ItemSource,
    describer: Describer,
    out: str | Path,
    *,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
    augment: int = 0,
    shard_pictures: int = 1024,
    resume: bool = True,
) -> int:
    """Write the rows of `describer.transform(source, augment=augment)` to a Parquet file that any source reader takes.

    Columns: id, labels list<string>, group and time where the source has them, indices list<uint32> and values
    list<float32>, or features list<float32> where rows are dense; the notes under "wsabie" hold {"schema": 1,
    "n_features", "counts", "dictionary", "augment", "label_names"}. The same source, describer and settings give the
    same file, however often the work was interrupted and wherever it ran.

    Parameters
    ----------
    source : ItemSource
    describer : Describer
        Fitted.
    out : str or Path
        The file; it is there whole or not at all.
    executor : Executor or None
        Where pictures are described; None: this process.
    progress : Progress
    rejects : Rejects or None
        Where pictures that cannot be read are listed, those of an earlier, interrupted run too.
    augment : int
        Further views of each picture as rows of their own.
    shard_pictures : int
        Pictures of a shard: about as many are done again after an interruption.
    resume : bool
        Use what an earlier run of the same work left; False: start anew.

    Returns
    -------
    int
        Rows in the file.

    Raises
    ------
    InputError
        `out` cannot be written, the disk is full, another process writes it, or no picture can be read.
    """
    out, rejects = Path(out), Rejects() if rejects is None else rejects
    if out.is_dir():
        raise InputError(f"{out} is a folder; give the name of a file, such as {out / 'features.parquet'}")
    if shard_pictures < 1:
        raise InputError(f"shard_pictures is {shard_pictures}; give a number of pictures, 1 or more")
    run = Run(executor or Serial(), progress, rejects)
    plan = _plan(source, describer, augment, shard_pictures, out)
    refuse_strangers(plan.folder, OWN_FILES)
    with explained(plan.folder):
        plan.folder.mkdir(parents=True, exist_ok=True)
    with held(plan.folder):  # shards of another command would come between ours
        try:
            whole = finished(out) if resume else None
            if whole is None or whole.key != plan.key:
                return _carry_out(plan, source, describer, out, run, resume).n_rows
            _list(whole.rejected, rejects)
            shutil.rmtree(plan.folder, ignore_errors=True)
            return whole.n_rows
        finally:
            with suppress(OSError):
                plan.folder.rmdir()  # if it is empty


class _Plan(NamedTuple):
    """One extraction, cut into shards."""

    folder: Path
    shard_pictures: int
    augment: int
    keys: list[str]  # of the shards
    sizes: list[int]  # pictures of each shard
    key: str  # of the whole


def _plan(source: ItemSource, describer: Describer, augment: int, shard_pictures: int, out: Path) -> _Plan:
    settings = hashlib.blake2b(
        json.dumps([_FORMAT, describer.fingerprint(), augment, shard_pictures]).encode(), digest_size=16
    )
    keys, sizes = [], []
    for shard in batches(map(_identity, source), shard_pictures):
        digest = settings.copy()
        for identity in shard:
            digest.update(identity)
        keys.append(digest.hexdigest())
        sizes.append(len(shard))
    whole = hashlib.blake2b("".join(keys).encode(), digest_size=16).hexdigest()
    return _Plan(out.with_name(f"{out.name}.parts"), shard_pictures, augment, keys, sizes, whole)


def _identity(picture: Item) -> bytes:
    """Changes with anything of a picture that a row holds or depends on."""
    whole = picture.whole
    if isinstance(whole, bytes):
        content = hashlib.blake2b(whole, digest_size=16).hexdigest()
    else:
        try:
            stat = whole.stat()
            content = f"{stat.st_size} {stat.st_mtime_ns} {os.access(whole, os.R_OK)}"
        except (OSError, ValueError):
            content = "missing"
    beside = [picture.id, picture.labels, picture.group, picture.time, content, *picture.region_told]
    return hashlib.blake2b(json.dumps(beside).encode(), digest_size=16).digest()


def _carry_out(plan: _Plan, source: ItemSource, describer: Describer, out: Path, run: Run, resume: bool) -> Finished:
    """Describe what is missing, then put everything together."""
    for old in () if resume else plan.folder.iterdir():
        old.unlink()
    found = {number: finished(shard_path(plan.folder, number)) for number in range(len(plan.keys))}
    done = {number: one for number, one in found.items() if one is not None and one.key == plan.keys[number]}
    for shard in done.values():
        _list(shard.rejected, run.rejects)
    n_rows = sum(shard.n_rows for shard in done.values()) + _describe_missing(plan, set(done), source, describer, run)
    if not n_rows:
        shutil.rmtree(plan.folder, ignore_errors=True)
        raise InputError(nothing_read(source, run.rejects))
    noted = {
        "n_features": describer.n_features_,
        "counts": describer.counts,
        "dictionary": describer.fingerprint(),
        "augment": plan.augment,
    }
    return merge(plan.folder, len(plan.keys), out, plan.key, noted, describer.dense)


def _describe_missing(plan: _Plan, done: set[int], source: ItemSource, describer: Describer, run: Run) -> int:
    """Write the shards that are not `done`, each as soon as it is whole; returns their rows."""
    under_way: deque[int] = deque()  # shards of the batches that were handed out

    def handed_out() -> Iterator[tuple[Item, ...]]:
        for number, batch in _missing(plan, done, source, describer.together):
            under_way.append(number)
            yield batch

    n_rows, n_shards, shard = 0, len(done), _Shard([], [])
    with run.progress.stage(f"describing {source.things}", sum(plan.sizes), source.things) as stage:
        stage.advance(sum(plan.sizes[number] for number in done))
        for batch in describer.describe(handed_out(), executor=run.executor, augment=plan.augment):
            number = under_way.popleft()
            shard.add(batch, run.rejects)
            stage.advance(len(batch))
            if shard.n_pictures == plan.sizes[number]:
                path = shard_path(plan.folder, number)
                write_shard(path, shard.rows, shard.rejected, plan.keys[number], describer.dense)
                n_rows, n_shards, shard = n_rows + len(shard.rows), n_shards + 1, _Shard([], [])
    if n_shards < len(plan.keys):
        raise InputError(f"{source.path} lost {source.things} while it was read; run the same command again")
    return n_rows


@dataclass
class _Shard:
    """A shard that is being filled."""

    rows: list[Described]
    rejected: list[Rejected]
    n_pictures: int = 0

    def add(self, batch: list[list[Described] | Rejected], rejects: Rejects) -> None:
        self.n_pictures += len(batch)
        for one in batch:
            if isinstance(one, Rejected):
                self.rejected.append(one)
                rejects.add(*one)
            else:
                self.rows.extend(one)


def _missing(plan: _Plan, done: set[int], source: ItemSource, together: int) -> Iterator[tuple[int, tuple[Item, ...]]]:
    """(shard, batch of pictures) of all shards that are not done."""
    numbered = ((place // plan.shard_pictures, picture) for place, picture in enumerate(source))
    for number, shard in groupby(numbered, key=lambda pair: pair[0]):
        if number not in done and number < len(plan.keys):  # a collection may grow meanwhile
            for batch in item_batches((picture for _, picture in shard), together):
                yield number, batch


def _list(rejected: list[Rejected], rejects: Rejects) -> None:
    for one in rejected:
        rejects.add(*one)
