"""Runs of tables and figures in the terminal."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.cli.framework import argument, command, list_stated, option
from wsabie.cli.knowledge_files import WordOptions, match_data_siblings
from wsabie.cli.output import TerminalProgress, escape_line, out, print_note, show_json, show_table
from wsabie.cli.shared_options import HierarchyOptions, RejectOptions, SeededThreadOptions
from wsabie.core.errors import InputError

if TYPE_CHECKING:
    from papers.record_run import RecordRun
    from wsabie.workflows.compare.comparison_table import TextTable

LIST = "list"
_NAME, _LONG = 25, 60
"""Widths of a name in the list, and of a cell of text."""


class TableDataOptions(WordOptions):
    """Options of the data of some tables."""

    artists: str | None = option(
        "music-bigdata: kind of the names that are artists (default: artist, speaker, instrument).", metavar="KIND"
    )
    inherit: bool = option("parts-table3 and its like: wholes have the parts of what they are a kind of.")
    n_held_out: int | None = option(
        "devise-zero-shot: labels that each split holds out (default: 25).", flag="--held", min=2
    )


class TableOptions(RejectOptions, SeededThreadOptions):
    """Options of a table or figure of the papers."""

    table: str = argument("Name of a table or figure; `list` shows all.", metavar="TABLE")
    data: str | None = option(
        "sample (default), visterm:S (generated; also tiny, M, imagenet, web), or a collection's path."
    )
    out: Path | None = option("Folder for the results (default: paper-results/TABLE).")
    epochs: int | None = option("Passes over the pairs (default: by size).", min=1)
    min_rows: int | None = option("Leave out labels with fewer training rows (default: 1; sample: 2).", min=1)
    seeds: int | None = option(
        "parts-table3, vse-ens-table-2 and their like: trainings of each model (default: 5).", min=1
    )
    labels: HierarchyOptions
    sources: TableDataOptions


@command()
def reproduce_table(options: TableOptions) -> None:
    """Run a table or figure of the papers: their figures beside those of other data, and the verdicts."""
    from papers.datasets import open_data
    from papers.record_run import run_record
    from papers.records.record_index import RECORDS, find_record
    from papers.run_page import MADE_BY
    from wsabie.workflows.compare.comparison_table import require_writable_folder

    table, data, seed = options.table, options.data, options.seed
    if table == LIST:
        _list_tables(RECORDS, options.json)
        return
    record = find_record(table)
    folder = options.out or Path("paper-results") / table
    options.check_outputs(inputs=(None if data is None else Path(data), folder))
    require_writable_folder(folder, MADE_BY)
    if data is not None and not record.needs_data:
        raise InputError(f"{table} is computed from formulas; leave --data out")
    if record.needs_data and data is None and record.opening is None:
        data = "sample"
        print_note("no --data is named: the bundled sample collection is used")
    sources = list_stated(options.sources)
    artists = sources.pop("artists", None)
    refuse_options(set(sources).difference(record.opening.options if record.opening else ()), table)
    paper_data, kinds, similar = None, options.labels.tree, match_data_siblings(options.labels, data)
    with options.collect_rejects() as rejects:
        if record.needs_data and data is not None:
            open_function = open_data if record.opening is None else record.opening.open
            paper_data = open_function(data, seed=seed, **options.resources(rejects=rejects), **sources)
            if paper_data.related is not None:
                print_note(paper_data.about)
            changes: dict[str, Any] = {"similar": similar, "hierarchy": kinds, "artists": artists}
            changes |= options.pick("min_rows")
            paper_data = replace(paper_data, **{name: value for name, value in changes.items() if value is not None})
        parameters = {} if options.epochs is None else options.pick("epochs")
        run: dict[str, Any] = {"parameters": parameters, **options.pick("seed", "threads", "seeds")}
        record_run = run_record(record, paper_data, **run, progress=TerminalProgress())
    files = record_run.write(folder)
    if options.json:
        show_json({**record_run.as_dict(), "files": [str(file) for file in files]})
        return
    _print_run(record_run, files)


def refuse_options(flags: Iterable[str], table: str) -> None:
    """Refuse options that apply only to the data of other tables."""
    for flag in flags:
        raise InputError(f"--{flag} says nothing to {table}; leave --{flag} out")


def _list_tables(records: dict[str, Any], json: bool) -> None:
    if json:
        tables = [
            {
                "table": record.name,
                "title": record.title,
                "document": record.document,
                "place": record.place,
                "needs_data": record.needs_data,
            }
            for record in records.values()
        ]
        show_json({"schema": 1, "tables": tables})
        return
    for document in dict.fromkeys(record.document for record in records.values()):
        out.print(f"\n{document}")
        for record in records.values():
            if record.document == document:
                out.print(f"  {record.name:<{_NAME}} {record.title}{'' if record.needs_data else ' (needs no data)'}")


def _print_run(record_run: "RecordRun", files: list[Path]) -> None:
    from papers.run_page import format_verdict

    table = record_run.table()
    title = f"{record_run.record.title} ({record_run.record.place})"
    if max(len(cell) for line in table.rows for cell in line) > _LONG:
        _print_texts(title, table)
    else:
        show_table(title, table.headers, table.rows)
    for row, reason in record_run.findings.missing.items():
        out.print(f"{row}: {reason}")
    for verdict in record_run.verdicts:
        origin = " (asked here, not by the paper)" if verdict.ours else ""
        out.print(f"{verdict.text}{origin}: {verdict.here} ({format_verdict(verdict)})")
    for line in record_run.findings.notes:
        out.print(line)
    out.print(f"written: {', '.join(str(file) for file in files)}")


def _print_texts(title: str, table: "TextTable") -> None:
    """Print rows whose cells are sentences, one below the other."""
    out.print(title)
    for row in table.rows:
        out.print(f"\n{escape_line(row[0])}")
        for header, cell in zip(table.headers[1:], row[1:], strict=True):
            if cell:
                out.print(f"  {header}: {escape_line(cell)}")
    out.print()
