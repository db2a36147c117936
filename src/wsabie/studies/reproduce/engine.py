"""Runs a record and writes what came out: a table, a figure, and a page that says what it was measured on."""

import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.base.machine import available_cores, versions
from wsabie.base.plain import plain
from wsabie.base.progress import SILENT, Progress
from wsabie.studies.comparison import Table
from wsabie.studies.reproduce import claims
from wsabie.studies.reproduce.about import about
from wsabie.studies.reproduce.claims import Verdict
from wsabie.studies.reproduce.data import Data
from wsabie.studies.reproduce.record import Findings, Record, Setting
from wsabie.studies.reproduce.table import figures_table
from wsabie.studies.results_folder import machine, write_results


@dataclass(frozen=True)
class Reproduction:
    """What a run of a record found.

    Attributes
    ----------
    record : Record
    data : dict or None
        `Data.facts`; None where none are needed.
    findings : Findings
    verdicts : list of Verdict
        One for each claim of the record.
    run : dict
        Date, seconds, seed, threads, parameters, machine and versions.
    """

    record: Record
    data: dict[str, Any] | None
    findings: Findings
    verdicts: list[Verdict]
    run: dict[str, Any]

    def table(self) -> Table:
        """The paper's figures beside ours, as text."""
        return figures_table(self.record, self.findings, self.data["name"] if self.data else "computed")

    def about(self) -> str:
        """The page, in Markdown."""
        return about(self.record, self.data, self.findings, self.verdicts, self.run, self.table())

    def as_dict(self) -> dict[str, Any]:
        """Everything for JSON (schema 1)."""
        found: dict[str, Any] = plain(
            {
                "schema": 1,
                "table": self.record.name,
                "title": self.record.title,
                "document": self.record.document,
                "place": self.record.place,
                "data": self.data,
                "paper": [
                    {
                        "data": p.data,
                        "percent": p.percent,
                        "rows": {r: dict(zip(p.columns, c, strict=True)) for r, c in p.rows.items()},
                    }
                    for p in self.record.published
                ],
                "here": [
                    {"row": f.row, "title": f.title, "figures": f.figures, **({"errors": f.errors} if f.errors else {})}
                    for f in self.findings.rows
                ],
                "missing": self.findings.missing,
                "claims": [claims.as_dict(verdict) for verdict in self.verdicts],
                "wrong_in_the_paper": list(self.record.wrong),
                "notes": self.findings.notes,
                "run": self.run,
            }
        )
        return found

    def write(self, folder: Path) -> list[Path]:
        """Write table.csv, about.md, and figure.svg and figure.png where there is a figure; the files written."""
        return write_results(folder, self.table(), self.findings.charts, self.about(), self.findings.drawn)


def reproduce(
    record: Record,
    data: Data | None = None,
    *,
    seed: int = 0,
    threads: int | None = None,
    parameters: dict[str, Any] | None = None,
    seeds: int | None = None,
    progress: Progress = SILENT,
) -> Reproduction:
    """Run one record.

    Parameters
    ----------
    record : Record
        See `wsabie.studies.reproduce.catalogue.record`.
    data : Data or None
        See `wsabie.studies.reproduce.data.open_data`; None for records that need none.
    seed : int
    threads : int or None
        None uses every core that this process may use.
    parameters : dict or None
        Of `Wsabie`, in place of its defaults.
    seeds : int or None
        See `Setting`.

    Raises
    ------
    InputError
        The record needs data and gets none, or the data cannot be used for it.

    Examples
    --------
    >>> from wsabie.studies.reproduce.catalogue import record
    >>> done = reproduce(record("slides-example"))
    >>> [(verdict.text, verdict.here) for verdict in done.verdicts]
    [('AUC prefers both equally', 'holds'), ('L prefers ranks 1 and 101', 'holds')]
    """
    if record.needs_data and data is None:
        wants = "such as --data sample" if record.opening is None else record.opening.wants
        raise InputError(f"{record.name} needs data; name some with --data: {wants}")
    used = data if record.needs_data else None
    started = time.perf_counter()
    setting = Setting(used, seed, threads, parameters or {}, progress, seeds)
    findings = record.run(record, setting)
    if record.chart is not None and findings.rows:
        findings.charts.extend(record.chart(record, findings))
    verdicts = [claims.verdict_of(claim, findings, record.published, seed) for claim in record.claims]
    run = {
        "date": date.today().isoformat(),
        "seconds": round(time.perf_counter() - started, 1),
        "seed": seed,
        "threads": threads or available_cores(),
        "parameters": parameters or {},
        "machine": machine(),
        "versions": versions(),
    }
    return Reproduction(record, used.facts if used else None, findings, verdicts, run)
