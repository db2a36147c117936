"""`wsabie reproduce`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.faces.cli.common import executor, listing
from wsabie.faces.cli.terminal import TerminalProgress, note, out, show_json, show_table

if TYPE_CHECKING:
    from wsabie.studies.reproduce.engine import Reproduction

LIST = "list"
_NAME = 25


def reproduce_command(
    table: str,
    data: str | None,
    folder: Path | None,
    parameters: dict[str, Any],
    threads: int | None,
    seed: int,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
) -> None:
    """List the tables, or run one, print it and write its files."""
    from wsabie.studies.reproduce.catalogue import RECORDS, record
    from wsabie.studies.reproduce.data import open_data
    from wsabie.studies.reproduce.engine import reproduce

    if table == LIST:
        _list(RECORDS, json)
        return
    wanted, progress = record(table), TerminalProgress()
    if wanted.needs_data and data is None:
        data = "sample"
        note("no --data is named: the bundled sample collection is used")
    given = None
    if wanted.needs_data and data is not None:
        with listing(rejects_file, strict=strict) as rejects:
            given = open_data(data, seed=seed, executor=executor(threads), progress=progress, rejects=rejects)
    done = reproduce(wanted, given, seed=seed, threads=threads, parameters=parameters, progress=progress)
    folder = folder or Path("wsabie-reproduce") / table
    files = done.write(folder)
    if json:
        show_json({**done.as_dict(), "files": [str(file) for file in files]})
        return
    _show(done, files)


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
    show_table(f"{done.record.title} ({done.record.place})", table.headers, table.rows)
    for row, reason in done.findings.missing.items():
        out.print(f"{row}: {reason}")
    for verdict in done.verdicts:
        out.print(f"{verdict.text}: {verdict.here} ({told(verdict)})")
    for line in done.findings.notes:
        out.print(line)
    out.print(f"written: {', '.join(str(file) for file in files)}")
