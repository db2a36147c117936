"""`wsabie shards`, and `wsabie info` of a folder of shards."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from wsabie.cli.inputs.command_inputs import collect_rejects, make_executor
from wsabie.cli.terminal.output import (
    NOTHING_KEPT,
    InterruptExit,
    TerminalProgress,
    format_count,
    out,
    print_note,
    show_json,
    show_table,
)
from wsabie.core.errors import InputError
from wsabie.storage.output_checks import check_output_paths

if TYPE_CHECKING:
    from wsabie.io.shards.shard_folder import ShardFolder
    from wsabie.workflows.shards.sorted_runs import ShardOptions


def run_shards(
    data: Path,
    folder: Path,
    options: "ShardOptions",
    strict: bool,
    rejects_file: Path | None,
    json: bool,
    ray: str | None = None,
) -> None:
    """Write rows as shards; the same command resumes a stopped run."""
    from wsabie.io.stream_recognition import open_row_stream
    from wsabie.workflows.shards.shard_writer import write_shards

    check_output_paths(("rejects", rejects_file), inputs=(data, folder))
    if folder.resolve() == data.resolve() or data.resolve() in folder.resolve().parents:
        raise InputError(f"cannot write {folder}: it is, or lies in, what is read; choose another folder")
    start, executor = time.perf_counter(), make_executor(1, ray, folder)
    progress = TerminalProgress()
    with _explain_interrupt(folder), collect_rejects(rejects_file, strict=strict) as rejects:
        stream = open_row_stream(data, rejects, progress)
        shards = write_shards(stream, folder, options, executor=executor, progress=progress, rejects=rejects)
        skipped = len(rejects)
    if json:
        facts = {**_collect_facts(shards), "skipped": skipped, "seconds": round(time.perf_counter() - start, 3)}
        show_json({"schema": 1, "out": str(folder), **facts})
        return
    rows, labels, parts = (format_count(count, unit) for count, unit in _list_sizes(shards))
    out.print(f"{folder}: {rows} of {shards.facts['features']:,} features and {labels} in {parts}")
    print_note(f"next: wsabie train {quote(str(folder))} --model MODEL")


@contextmanager
def _explain_interrupt(folder: Path) -> Iterator[None]:
    """Tell the user if Ctrl-C comes before anything is kept."""
    from wsabie.workflows.shards.shard_writer import is_anything_finished

    try:
        yield
    except KeyboardInterrupt:
        if is_anything_finished(folder):
            raise
        raise InterruptExit(NOTHING_KEPT) from None


def _list_sizes(shards: "ShardFolder") -> tuple[tuple[int, str], ...]:
    return (len(shards), "row"), (shards.facts["labels"], "label"), (len(shards.files), "shard")


def run_shards_info(folder: Path, verify: bool, json: bool) -> None:
    """Print the contents of shards."""
    from wsabie.io.shards.shard_folder import open_shard_folder

    shards = open_shard_folder(folder)
    if verify:
        shards.verify(TerminalProgress())
    facts = _collect_facts(shards) | ({"verified": True} if verify else {})
    if json:
        show_json({"schema": 1, "shards": str(folder), **facts, "files": shards.files})
        return
    cells = {name: _format_value(value) for name, value in facts.items()}
    show_table(str(folder), ["", ""], [[name.replace("_", " "), value] for name, value in cells.items()])


def _collect_facts(shards: "ShardFolder") -> dict[str, Any]:
    n_bytes = sum(entry["bytes"] for entry in (*shards.files, *shards.beside.values()))
    return {**shards.facts, "shards": len(shards.files), "bytes": n_bytes, "fingerprint": shards.fingerprint}


def _format_value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    return f"{value:,}" if isinstance(value, int | float) else str(value)
