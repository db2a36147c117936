"""A collection of rows written as shards in a random order, however large it is.

It is a sort by a random key on the disk. A row's key is a hash of its id, so that the order does not depend on that of
the source, be it sorted by label. Rows are read once, and as many as fit are written as a run, sorted by their keys;
then a shard is what all runs hold between two keys. Runs and shards appear whole or not at all: a conversion that was
stopped goes on behind the last of them, and writes the same bytes.
"""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor, Serial
from wsabie.base.progress import SILENT, Progress
from wsabie.sources.fingerprint import fingerprint
from wsabie.sources.streamed import RowStream, WholeStream
from wsabie.sources.text import reading, shown
from wsabie.storage.atomic import explained, held, readable, remove_drafts, write_text
from wsabie.storage.rejects import Rejects
from wsabie.storage.scratch import refuse_strangers
from wsabie.storage.shards import (
    MAKE_AGAIN,
    MANIFEST,
    NAMES,
    PARTS,
    REJECTED,
    STATISTICS,
    WORK,
    Shards,
    open_shard_folder,
    write_manifest,
)
from wsabie.studies.shard_cuts import Cut, Types, bounds_of, facts_of, repeated
from wsabie.studies.shard_runs import Runs, Wanted, noted, take_over

NONZEROS_PER_SHARD = 1 << 25
_OURS = rf"rows-\d+-of-\d+\.safetensors|{PARTS}|{STATISTICS}|{NAMES}|{REJECTED}|{MANIFEST}"
_SORTED = 2
"""The way in which runs and shards are written; another one does not go on with them."""


def write_shards(
    stream: RowStream,
    out: Path,
    wanted: Wanted,
    *,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
) -> Shards:
    """Write the rows of a source as shards; a stopped run goes on where it was.

    Parameters
    ----------
    stream : RowStream
    out : Path
        A folder, which is made; one with the shards of the same source is verified and left as it is.
    wanted : Wanted
    executor : Executor or None
        Where shards are cut out of the runs and written; None: this process.
    rejects : Rejects or None
        The list that the stream was opened with: what a finished or stopped conversion had rejected is added.

    Raises
    ------
    InputError
        The folder is a file, or holds something else or shards that are damaged; nothing is left of the source; or a
        value that float16 cannot hold.
    """
    rejects = Rejects() if rejects is None else rejects
    with readable(out):
        if out.exists() and not out.is_dir():
            raise InputError(f"{out} is a file; give the name of a folder")
    made_of = _made_of(stream, wanted)
    refuse_strangers(out, _OURS)
    with explained(out):
        out.mkdir(parents=True, exist_ok=True)
    with held(out):
        work = out / PARTS
        if (out / MANIFEST).exists():
            shards = _finished(out, made_of, progress)
            take_over(rejects, _rejected_before(out))
        else:
            _begin(out, work, made_of, stream.path, wanted)
            runs = Runs(work, stream, wanted, rejects)
            runs.write(progress)
            if not isinstance(stream, WholeStream) and _made_of(stream, wanted) != made_of:
                raise InputError(f"{shown(stream.path)} has changed while it was read; {_anew(out)}")
            shards = _carry_out(out, runs, made_of, executor or Serial(), progress)
        shutil.rmtree(work, ignore_errors=True)
    return shards


def _finished(out: Path, made_of: str, progress: Progress) -> Shards:
    """Shards that are there, whole to the last byte, and of the same source."""
    try:
        shards = open_shard_folder(out)
        if shards.made_of != made_of:
            raise InputError(
                f"{out} holds shards of other data, of data that has changed or with other options; name another, or "
                "delete it"
            )
        shards.verify(progress)
    except InputError as error:
        raise InputError(str(error).replace(MAKE_AGAIN, _anew(out))) from error
    return shards


def _anew(out: Path) -> str:
    return f"delete {out} and give the command again"


def _made_of(stream: RowStream, wanted: Wanted) -> str:
    """Changes with the source and with how it is written."""
    if isinstance(stream, WholeStream):
        told: list[Any] = [fingerprint(stream.rows)]
    else:
        with reading(stream.path):
            stats = [(file.name, file.stat()) for file in stream.files]
        told = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
    content = json.dumps([_SORTED, told, *_options(wanted)])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _options(wanted: Wanted) -> tuple[int, str, int]:
    return wanted.rows, wanted.values, wanted.seed


def _begin(out: Path, work: Path, made_of: str, source: Path, wanted: Wanted) -> None:
    """Make the folder of unfinished work; that of other work, and shards without either, are refused.

    Of a source that has changed since, as when a bad row was corrected, it is removed if nothing in it is finished."""
    called = {"source": shown(source), "path": shown(source.resolve())}
    told = {"made_of": made_of, **called, "options": list(_options(wanted))}
    begun = _begun(work / WORK)
    if begun.get("made_of") == made_of:
        remove_drafts(out)
        return
    if begun:
        again = all(begun.get(name) == told[name] for name in ("path", "options"))
        if again and is_anything_finished(out):
            raise InputError(
                f"{source} has changed since the unfinished shards in {out} were begun; delete {out} to begin anew"
            )
        if not again:
            raise InputError(
                f"{out} holds unfinished shards of {begun['source']}, of other data or with other options; run that "
                "command again to finish them, name another folder, or delete it"
            )
    with explained(out):
        shutil.rmtree(work, ignore_errors=True)  # of a command that was stopped before it had begun
        remove_drafts(out)
        if lost := sorted(path.name for path in out.iterdir() if path.suffix != ".tmp"):
            raise InputError(
                f"{out} holds {lost[0]}, but no {MANIFEST} that says what it is of; restore that from a copy, name "
                "another folder, or delete it"
            )
        work.mkdir()
    write_text(work / WORK, json.dumps(told, ensure_ascii=False))


def is_anything_finished(out: Path) -> bool:
    """Whether the same command goes on from something: a run, a shard, or what is written beside them."""
    with readable(out):
        if not out.is_dir():
            return False
        beside = any(path.name != PARTS and path.suffix != ".tmp" for path in out.iterdir())
        return beside or any((out / PARTS).glob("run-*.safetensors"))


def _begun(file: Path) -> dict[str, Any]:
    """What the unfinished work is, where there is some."""
    with readable(file):
        if not file.is_file():
            return {}
        try:
            told = json.loads(file.read_text(encoding="utf-8", errors="replace"))
        except ValueError:
            told = None
    return told if isinstance(told, dict) and {"made_of", "source"} <= set(told) else {"source": "what cannot be told"}


def _rejected_before(out: Path) -> Rejects:
    """What was rejected when the shards in a folder were made."""
    file = out / REJECTED
    with readable(out):
        try:
            return noted(json.loads(file.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(
                f"{file}, the list of what was rejected, is missing or damaged; restore it from a copy, or {_anew(out)}"
            ) from error


def _carry_out(out: Path, runs: Runs, made_of: str, executor: Executor, progress: Progress) -> Shards:
    """Write the shards that are missing, then everything beside them."""
    n_rows = runs.total("rows")
    if not n_rows:
        raise InputError(f"no rows are left of {shown(runs.stream.path)}; look at the list that --rejects FILE writes")
    if not runs.total("pairs"):
        raise InputError(f"nothing in {shown(runs.stream.path)} has a label; give rows that have some")
    n_shards = max(1, -(-n_rows // runs.wanted.rows), -(-runs.total("nonzeros") // NONZEROS_PER_SHARD))
    bounds = bounds_of(runs, n_shards)
    gone = repeated(runs, bounds)
    types = Types.of(runs, gone)
    cut, files = Cut(out, runs.work, bounds, gone, types), []
    with progress.stage("writing shards", n_rows - sum(map(len, gone)), "rows") as stage:
        for entry in executor.map_with(Cut.write, cut, range(n_shards)):
            if not (out / entry["file"]).is_file():
                raise InputError(f"{entry['file']} was written on another machine and is not found in {out}; choose a "
                                 "folder that all machines share")  # fmt: skip
            files.append(entry)
            stage.advance(entry["rows"])
    facts, names, statistics = facts_of(out, runs, types, files)
    write_text(out / REJECTED, json.dumps(runs.rejected))
    return write_manifest(out, facts, files, names, statistics, made_of)
