"""`wsabie shards`."""

import time
from pathlib import Path
from typing import Literal

from wsabie.cli.framework import Report, argument, command, option
from wsabie.cli.inputs import choose_format
from wsabie.cli.output import InterruptExit, TerminalProgress, format_count, out, print_note, quote_path
from wsabie.cli.shared_options import DataOptions, RayAddress, Seed, make_executor
from wsabie.core.errors import InputError


class ShardsOptions(DataOptions):
    """Options of `wsabie shards`."""

    data: Path = argument(
        "Rows of features: Parquet, svmlight/XC, Mulan ARFF or others. `wsabie features` makes them "
        "from pictures, sounds and documents.",
        metavar="DATA",
    )
    out: Path = option("Folder for the shards; it is a source for every other command.")
    rows: int = option("Rows of a shard, about; fewer where they are long.", 1 << 16, min=1, max=1 << 24)
    values: Literal["exact", "half"] = option(
        "exact: the smallest type of numbers that holds every value as it is; half: two bytes a value, with an error "
        "of one part in 2,048 at most.",
        "exact",
    )
    seed: Seed = 0
    ray: RayAddress = None


@command("shards rows.parquet --out shards", "shards rows.txt --out shards --values half")
def shards(options: ShardsOptions) -> Report:
    """Write rows as shards, to train on more than memory holds.

    A repeated command resumes the run.
    """
    from wsabie.io.data_sources import open_row_stream
    from wsabie.workflows.shard_runs import ShardOptions
    from wsabie.workflows.shard_writer import has_finished_parts, write_shards

    data, folder = options.data, options.out
    options.check_outputs(inputs=(data, folder))
    if folder.resolve() == data.resolve() or data.resolve() in folder.resolve().parents:
        raise InputError(f"cannot write {folder}: it is, or lies in, the data; choose another folder")
    start, executor, progress = time.perf_counter(), make_executor(1, options.ray, folder), TerminalProgress()
    settings = ShardOptions(options.rows, options.values, options.seed)
    try:
        with options.collect_rejects() as rejects:
            stream = open_row_stream(data, rejects, progress, choose_format(data, options.data_format))
            written = write_shards(stream, folder, settings, executor=executor, progress=progress, rejects=rejects)
    except KeyboardInterrupt:
        if has_finished_parts(folder):
            raise
        raise InterruptExit from None
    seconds = round(time.perf_counter() - start, 3)
    yield {"out": folder, **written.summarise(), "skipped": len(rejects), "seconds": seconds}
    rows, parts = format_count(len(written), "row"), format_count(len(written.files), "shard")
    labels = format_count(written.facts["labels"], "label")
    out.print(f"{folder}: {rows} of {written.facts['features']:,} features and {labels} in {parts}")
    print_note(f"next: wsabie train {quote_path(folder)} --model MODEL")
