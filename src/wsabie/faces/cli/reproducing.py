"""`wsabie reproduce`."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import executor, listing
from wsabie.faces.cli.hierarchies import kinds_in, siblings_in
from wsabie.faces.cli.terminal import TerminalProgress, note, one_line, out, show_json, show_table
from wsabie.storage.outputs import refuse_unwritable

if TYPE_CHECKING:
    from wsabie.studies.comparison import Table
    from wsabie.studies.reproduce.engine import Reproduction

LIST = "list"
_NAME, _LONG = 25, 60
"""Widths: of a name in the list, and of a cell that is no figure."""


def reproduce_command(
    table: str,
    data: str | None,
    folder: Path | None,
    parameters: dict[str, Any],
    threads: int | None,
    seed: int,
    seeds: int | None,
    min_rows: int | None,
    hierarchy: Sequence[Path] | None,
    parent_first: bool,
    artists: str | None,
    options: dict[str, Any],
    strict: bool,
    rejects_file: Path | None,
    json: bool,
) -> None:
    """List the tables, or run one, print it and write its files."""
    from wsabie.studies.reproduce.about import MADE_BY
    from wsabie.studies.reproduce.catalogue import RECORDS, record
    from wsabie.studies.reproduce.data import open_data
    from wsabie.studies.reproduce.engine import reproduce
    from wsabie.studies.results_folder import refuse_folder

    if table == LIST:
        _list(RECORDS, json)
        return
    wanted, progress = record(table), TerminalProgress()
    folder = folder or Path("wsabie-reproduce") / table
    refuse_unwritable(("rejects", rejects_file), inputs=(None if data is None else Path(data), folder))
    refuse_folder(folder, MADE_BY)
    if data is not None and not wanted.needs_data:
        raise InputError(f"{table} is computed from formulas; leave --data out")
    if wanted.needs_data and data is None and wanted.opening is None:
        data = "sample"
        note("no --data is named: the bundled sample collection is used")
    refuse_options(set(options).difference(wanted.opening.options if wanted.opening else ()), table)
    given, kinds = None, kinds_in(hierarchy, parent_first)
    similar = siblings_in(kinds, hierarchy, data)
    with listing(rejects_file, strict=strict) as rejects:
        if wanted.needs_data and data is not None:
            opened = open_data if wanted.opening is None else wanted.opening.open
            given = opened(data, seed=seed, executor=executor(threads), progress=progress, rejects=rejects, **options)
            if given.related is not None:
                note(given.about)
            changes: dict[str, Any] = {"similar": similar, "hierarchy": kinds, "min_rows": min_rows, "artists": artists}
            given = replace(given, **{name: value for name, value in changes.items() if value is not None})
        run: dict[str, Any] = {"seed": seed, "threads": threads, "parameters": parameters, "seeds": seeds}
        done = reproduce(wanted, given, **run, progress=progress)
    files = done.write(folder)
    if json:
        show_json({**done.as_dict(), "files": [str(file) for file in files]})
        return
    _show(done, files)


def refuse_options(flags: Iterable[str], table: str) -> None:
    """Refuse options that only the data of other tables have."""
    for flag in flags:
        raise InputError(f"--{flag} says nothing to {table}; leave --{flag} out")


def _list(records: dict[str, Any], json: bool) -> None:
    if json:
        known = [
            {"table": r.name, "title": r.title, "document": r.document, "place": r.place, "needs_data": r.needs_data}
            for r in records.values()
        ]
        show_json({"schema": 1, "tables": known})
        return
    for document in dict.fromkeys(r.document for r in records.values()):
        out.print(f"\n{document}")
        for r in records.values():
            if r.document == document:
                out.print(f"  {r.name:<{_NAME}} {r.title}{'' if r.needs_data else ' (needs no data)'}")


def _show(done: "Reproduction", files: list[Path]) -> None:
    from wsabie.studies.reproduce.about import told

    table = done.table()
    title = f"{done.record.title} ({done.record.place})"
    if max(len(cell) for line in table.rows for cell in line) > _LONG:
        _show_texts(title, table)
    else:
        show_table(title, table.headers, table.rows)
    for row, reason in done.findings.missing.items():
        out.print(f"{row}: {reason}")
    for verdict in done.verdicts:
        asked = " (asked here, not by the paper)" if verdict.ours else ""
        out.print(f"{verdict.text}{asked}: {verdict.here} ({told(verdict)})")
    for line in done.findings.notes:
        out.print(line)
    out.print(f"written: {', '.join(str(file) for file in files)}")


def _show_texts(title: str, table: "Table") -> None:
    """Rows whose cells are sentences, one below the other."""
    out.print(title)
    for row in table.rows:
        out.print(f"\n{one_line(row[0])}")
        for header, cell in zip(table.headers[1:], row[1:], strict=True):
            if cell:
                out.print(f"  {header}: {one_line(cell)}")
    out.print()
