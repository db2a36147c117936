"""`wsabie shards`, and what `wsabie info` says of a folder of them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import executor, listing
from wsabie.faces.cli.terminal import NOTHING_KEPT, Stopped, TerminalProgress, note, out, plural, show_json, show_table
from wsabie.storage.outputs import refuse_unwritable

if TYPE_CHECKING:
    from wsabie.storage.shards import Shards
    from wsabie.studies.shard_runs import Wanted


def shards_command(
    data: Path,
    folder: Path,
    wanted: "Wanted",
    strict: bool,
    rejects_file: Path | None,
    json: bool,
    ray: str | None = None,
) -> None:
    """Write rows as shards; a stopped run goes on where it was."""
    from wsabie.sources.row_stream import open_stream
    from wsabie.studies.sharding import write_shards

    refuse_unwritable(("rejects", rejects_file), inputs=(data, folder))
    if folder.resolve() == data.resolve() or data.resolve() in folder.resolve().parents:
        raise InputError(f"cannot write {folder}: it is, or lies in, what is read; choose another folder")
    started, run = time.perf_counter(), executor(1, ray, folder)
    progress = TerminalProgress()
    with _stoppable(folder), listing(rejects_file, strict=strict) as rejects:
        stream = open_stream(data, rejects, progress)
        shards = write_shards(stream, folder, wanted, executor=run, progress=progress, rejects=rejects)
        skipped = len(rejects)
    if json:
        facts = {**_facts(shards), "skipped": skipped, "seconds": round(time.perf_counter() - started, 3)}
        show_json({"schema": 1, "out": str(folder), **facts})
        return
    rows, labels, parts = (plural(n, what) for n, what in _sizes(shards))
    out.print(f"{folder}: {rows} of {shards.facts['features']:,} features and {labels} in {parts}")
    note(f"next: wsabie train {quote(str(folder))} --model MODEL")


@contextmanager
def _stoppable(folder: Path) -> Iterator[None]:
    """Where nothing is kept when Ctrl-C comes, that is said."""
    from wsabie.studies.sharding import is_anything_finished

    try:
        yield
    except KeyboardInterrupt:
        if is_anything_finished(folder):
            raise
        raise Stopped(NOTHING_KEPT) from None


def _sizes(shards: "Shards") -> tuple[tuple[int, str], ...]:
    return (len(shards), "row"), (shards.facts["labels"], "label"), (len(shards.files), "shard")


def info_shards_command(folder: Path, verify: bool, json: bool) -> None:
    """Print what shards hold."""
    from wsabie.storage.shards import open_shard_folder

    shards = open_shard_folder(folder)
    if verify:
        shards.verify(TerminalProgress())
    facts = _facts(shards) | ({"verified": True} if verify else {})
    if json:
        show_json({"schema": 1, "shards": str(folder), **facts, "files": shards.files})
        return
    shown = {name: _shown(value) for name, value in facts.items()}
    show_table(str(folder), ["", ""], [[name.replace("_", " "), value] for name, value in shown.items()])


def _facts(shards: "Shards") -> dict[str, Any]:
    n_bytes = sum(entry["bytes"] for entry in (*shards.files, *shards.beside.values()))
    return {**shards.facts, "shards": len(shards.files), "bytes": n_bytes, "fingerprint": shards.fingerprint}


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    return f"{value:,}" if isinstance(value, int | float) else str(value)
