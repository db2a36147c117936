"""Run of a record and its files: a table, a figure, and a page about data and settings."""

import subprocess
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from papers import claims
from papers.claims import ClaimVerdict
from papers.datasets import PaperData
from papers.figures_table import build_figures_table
from papers.record import PaperRecord, RunFindings, RunSettings
from papers.run_page import render_run_page
from wsabie.core.errors import InputError
from wsabie.core.execution import SILENT, Progress
from wsabie.core.json_conversion import to_json_value
from wsabie.core.machine import collect_versions, resolve_threads
from wsabie.workflows.compare.comparison_table import TextTable, describe_machine, write_results


@dataclass(frozen=True)
class RecordRun:
    """The result of a record's run.

    Attributes
    ----------
    record : PaperRecord
    data : dict or None
        `PaperData.facts`; None for records without data.
    findings : RunFindings
    verdicts : list of ClaimVerdict
        One for each claim of the record.
    run : dict
        Date, seconds, seed, threads, parameters, machine and versions.
    """

    record: PaperRecord
    data: dict[str, Any] | None
    findings: RunFindings
    verdicts: list[ClaimVerdict]
    run: dict[str, Any]

    def table(self) -> TextTable:
        """Build the table of the paper's figures beside ours."""
        return build_figures_table(self.record, self.findings, self.data["name"] if self.data else "computed")

    def about(self) -> str:
        """Build the page in Markdown."""
        return render_run_page(self.record, self.data, self.findings, self.verdicts, self.run, self.table())

    def as_dict(self) -> dict[str, Any]:
        """Return all values for JSON (schema 1)."""
        values: dict[str, Any] = to_json_value(
            {
                "schema": 1,
                "table": self.record.name,
                "title": self.record.title,
                "document": self.record.document,
                "place": self.record.place,
                "data": self.data,
                "paper": [
                    {
                        "data": published_figures.data,
                        "percent": published_figures.percent,
                        "rows": {
                            row_name: dict(zip(published_figures.columns, cells, strict=True))
                            for row_name, cells in published_figures.rows.items()
                        },
                    }
                    for published_figures in self.record.published
                ],
                "here": [
                    {
                        "row": finding.row,
                        "title": finding.title,
                        "figures": finding.figures,
                        **({"errors": finding.errors} if finding.errors else {}),
                    }
                    for finding in self.findings.rows
                ],
                "missing": self.findings.missing,
                "claims": [claims.dump_verdict(verdict) for verdict in self.verdicts],
                "wrong_in_the_paper": list(self.record.wrong),
                "notes": self.findings.notes,
                "run": self.run,
            }
        )
        return values

    def write(self, folder: Path) -> list[Path]:
        """Write table.csv, about.md, and figure.svg and figure.png if there is a figure; return the paths."""
        return write_results(folder, self.table(), self.findings.charts, self.about(), self.findings.image_sheet)


def run_record(
    record: PaperRecord,
    data: PaperData | None = None,
    *,
    seed: int = 0,
    threads: int | None = None,
    parameters: dict[str, Any] | None = None,
    seeds: int | None = None,
    progress: Progress = SILENT,
) -> RecordRun:
    """Run one record.

    Parameters
    ----------
    record : PaperRecord
        See `papers.records.record_index.find_record`.
    data : PaperData or None
        See `papers.datasets.open_data`; None for records without data.
    seed : int
    threads : int or None
        None uses every core that this process may use.
    parameters : dict or None
        Of `Wsabie`, in place of its defaults.
    seeds : int or None
        See `RunSettings`.

    Raises
    ------
    InputError
        The record needs data and gets none, or the data cannot be used for it.

    Examples
    --------
    >>> from papers.records.record_index import find_record
    >>> record_run = run_record(find_record("slides-example"))
    >>> [(verdict.text, verdict.here) for verdict in record_run.verdicts]
    [('AUC prefers both equally', 'holds'), ('L prefers ranks 1 and 101', 'holds')]
    """
    if record.needs_data and data is None:
        data_hint = "such as --data sample" if record.opening is None else record.opening.data_hint
        raise InputError(f"{record.name} needs data; name some with --data: {data_hint}")
    used_data = data if record.needs_data else None
    start_time = time.perf_counter()
    setting = RunSettings(used_data, seed, threads, parameters or {}, progress, seeds)
    findings = record.run(record, setting)
    if record.chart is not None and findings.rows:
        findings.charts.extend(record.chart(record, findings))
    verdicts = [claims.judge_claim(claim, findings, record.published, seed) for claim in record.claims]
    run = {
        "date": date.today().isoformat(),
        "seconds": round(time.perf_counter() - start_time, 1),
        "seed": seed,
        "threads": resolve_threads(threads),
        "parameters": parameters or {},
        "machine": describe_machine(),
        "versions": collect_versions(),
        "commit": find_commit(),
    }
    return RecordRun(record, used_data.facts if used_data else None, findings, verdicts, run)


def find_commit() -> str | None:
    """Return the commit of this tree, "+" if files were changed after it; None outside of a repository."""
    try:
        command = (
            "git",
            "-C",
            str(Path(__file__).parent),
            "describe",
            "--always",
            "--dirty=+",
            "--abbrev=8",
            "--exclude=*",
        )
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
