"""Shards of a collection of any size, with its rows in a random order.

The order is a sort by a random key on the disk. A row's key is a hash of its id, so that the order does not depend on
that of the source, even if it is sorted by label. Rows are read once. As many as fit are written as a run, sorted by
their keys; a shard then holds the rows of all runs between two keys. Runs and shards appear whole or not at all: an
interrupted conversion continues behind the last of them, and writes the same bytes.
"""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from wsabie.core.errors import InputError
from wsabie.core.executors import Executor, SerialExecutor
from wsabie.core.progress import SILENT, Progress
from wsabie.io.fingerprints import compute_fingerprint
from wsabie.io.parsers.text_files import explain_reading_errors, format_path
from wsabie.io.row_streams import InMemoryStream, RowStream
from wsabie.io.shards.shard_folder import (
    MAKE_AGAIN,
    MANIFEST,
    NAMES,
    PARTS,
    REJECTED,
    STATISTICS,
    WORK,
    ShardFolder,
    open_shard_folder,
    write_manifest,
)
from wsabie.storage.atomic_files import (
    explain_read_errors,
    explain_write_errors,
    lock_folder,
    remove_drafts,
    write_text,
)
from wsabie.storage.rejects import Rejects
from wsabie.storage.scratch_folders import refuse_unknown_files
from wsabie.workflows.shards.shard_assembly import (
    ShardAssembler,
    SourceTypes,
    collect_shard_facts,
    find_repeated_rows,
    find_shard_bounds,
)
from wsabie.workflows.shards.sorted_runs import ShardOptions, SortedRuns, add_rejects, read_noted_rejects

NONZEROS_PER_SHARD = 1 << 25
_SHARD_FILE = rf"rows-\d+-of-\d+\.safetensors|{PARTS}|{STATISTICS}|{NAMES}|{REJECTED}|{MANIFEST}"
_LAYOUT_VERSION = 2
"""Version of the layout of runs and shards; another version does not continue them."""


def write_shards(
    stream: RowStream,
    out: Path,
    options: ShardOptions,
    *,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
) -> ShardFolder:
    """Write the rows of a source as shards; an interrupted run continues.

    Parameters
    ----------
    stream : RowStream
    out : Path
        A folder, created if missing; one with the shards of the same source is verified and left as it is.
    options : ShardOptions
    executor : Executor or None
        Cuts the shards from the runs and writes them; None: this process.
    rejects : Rejects or None
        The list that the stream was opened with; rejects of a finished or interrupted conversion are added.

    Raises
    ------
    InputError
        The folder is a file, or holds other files or damaged shards; nothing is left of the source; or a value that
        float16 cannot hold.
    """
    rejects = Rejects() if rejects is None else rejects
    with explain_read_errors(out):
        if out.exists() and not out.is_dir():
            raise InputError(f"{out} is a file; give the name of a folder")
    digest = _compute_digest(stream, options)
    refuse_unknown_files(out, _SHARD_FILE)
    with explain_write_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    with lock_folder(out):
        work = out / PARTS
        if (out / MANIFEST).exists():
            shards = _open_finished(out, digest, progress)
            add_rejects(rejects, _read_rejects(out))
        else:
            _prepare_work(out, work, digest, stream.path, options)
            runs = SortedRuns(work, stream, options, rejects)
            runs.write(progress)
            if not isinstance(stream, InMemoryStream) and _compute_digest(stream, options) != digest:
                raise InputError(f"{format_path(stream.path)} has changed while it was read; {_explain_restart(out)}")
            shards = _write_missing_shards(out, runs, digest, executor or SerialExecutor(), progress)
        shutil.rmtree(work, ignore_errors=True)
    return shards


def _open_finished(out: Path, digest: str, progress: Progress) -> ShardFolder:
    """Open and verify finished shards; refuse shards of another source."""
    try:
        shards = open_shard_folder(out)
        if shards.made_of != digest:
            raise InputError(
                f"{out} holds shards of other data, of data that has changed or with other options; name another, or "
                "delete it"
            )
        shards.verify(progress)
    except InputError as error:
        raise InputError(str(error).replace(MAKE_AGAIN, _explain_restart(out))) from error
    return shards


def _explain_restart(out: Path) -> str:
    return f"delete {out} and give the command again"


def _compute_digest(stream: RowStream, options: ShardOptions) -> str:
    """Return a digest of the source and the options."""
    if isinstance(stream, InMemoryStream):
        source_state: list[Any] = [compute_fingerprint(stream.rows)]
    else:
        with explain_reading_errors(stream.path):
            stats = [(file.name, file.stat()) for file in stream.files]
        source_state = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
    content = json.dumps([_LAYOUT_VERSION, source_state, *_list_options(options)])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _list_options(options: ShardOptions) -> tuple[int, str, int]:
    return options.rows, options.values, options.seed


def _prepare_work(out: Path, work: Path, digest: str, source: Path, options: ShardOptions) -> None:
    """Create the work folder, and refuse one of other work, or shards without either.

    If the source has changed, as when a bad row was corrected, unfinished work is removed unless a part of it is
    finished.
    """
    names = {"source": format_path(source), "path": format_path(source.resolve())}
    work_facts = {"made_of": digest, **names, "options": list(_list_options(options))}
    unfinished = _read_work_facts(work / WORK)
    if unfinished.get("made_of") == digest:
        remove_drafts(out)
        return
    if unfinished:
        is_same_work = all(unfinished.get(name) == work_facts[name] for name in ("path", "options"))
        if is_same_work and is_anything_finished(out):
            raise InputError(
                f"{source} has changed since the unfinished shards in {out} were begun; delete {out} to begin anew"
            )
        if not is_same_work:
            raise InputError(
                f"{out} holds unfinished shards of {unfinished['source']}, of other data or with other "
                "options; run that "
                "command again to finish them, name another folder, or delete it"
            )
    with explain_write_errors(out):
        shutil.rmtree(work, ignore_errors=True)  # left by a command that stopped too early
        remove_drafts(out)
        if foreign_files := sorted(path.name for path in out.iterdir() if path.suffix != ".tmp"):
            raise InputError(
                f"{out} holds {foreign_files[0]}, but no {MANIFEST} that says what it is of; restore that from "
                "a copy, name "
                "another folder, or delete it"
            )
        work.mkdir()
    write_text(work / WORK, json.dumps(work_facts, ensure_ascii=False))


def is_anything_finished(out: Path) -> bool:
    """Return True if the same command would continue from a run, a shard, or a file beside them."""
    with explain_read_errors(out):
        if not out.is_dir():
            return False
        has_files = any(path.name != PARTS and path.suffix != ".tmp" for path in out.iterdir())
        return has_files or any((out / PARTS).glob("run-*.safetensors"))


def _read_work_facts(file: Path) -> dict[str, Any]:
    """Return the facts of unfinished work, empty if there is none."""
    with explain_read_errors(file):
        if not file.is_file():
            return {}
        try:
            facts = json.loads(file.read_text(encoding="utf-8", errors="replace"))
        except ValueError:
            facts = None
    return (
        facts if isinstance(facts, dict) and {"made_of", "source"} <= set(facts) else {"source": "what cannot be told"}
    )


def _read_rejects(out: Path) -> Rejects:
    """Return the rejects of the finished shards in a folder."""
    file = out / REJECTED
    with explain_read_errors(out):
        try:
            return read_noted_rejects(json.loads(file.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(
                f"{file}, the list of what was rejected, is missing or damaged; restore it from a copy, or "
                f"{_explain_restart(out)}"
            ) from error


def _write_missing_shards(
    out: Path, runs: SortedRuns, digest: str, executor: Executor, progress: Progress
) -> ShardFolder:
    """Write the missing shards, then the files beside them."""
    n_rows = runs.total("rows")
    if not n_rows:
        raise InputError(
            f"no rows are left of {format_path(runs.stream.path)}; look at the list that --rejects FILE writes"
        )
    if not runs.total("pairs"):
        raise InputError(f"nothing in {format_path(runs.stream.path)} has a label; give rows that have some")
    n_shards = max(1, -(-n_rows // runs.options.rows), -(-runs.total("nonzeros") // NONZEROS_PER_SHARD))
    bounds = find_shard_bounds(runs, n_shards)
    dropped = find_repeated_rows(runs, bounds)
    types = SourceTypes.from_runs(runs, dropped)
    assembler, files = ShardAssembler(out, runs.work, bounds, dropped, types), []
    with progress.stage("writing shards", n_rows - sum(map(len, dropped)), "rows") as stage:
        for entry in executor.map_with(ShardAssembler.write, assembler, range(n_shards)):
            if not (out / entry["file"]).is_file():
                raise InputError(f"{entry['file']} was written on another machine and is not found in {out}; choose a "
                                 "folder that all machines share")  # fmt: skip
            files.append(entry)
            stage.advance(entry["rows"])
    facts, names, statistics = collect_shard_facts(out, runs, types, files)
    write_text(out / REJECTED, json.dumps(runs.rejected))
    return write_manifest(out, facts, files, names, statistics, digest)
