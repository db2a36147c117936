"""The Markdown page of one run."""

from collections.abc import Sequence
from typing import Any

from papers.claims import OPEN, ClaimVerdict
from papers.record import PaperRecord, RunFindings
from wsabie.workflows.compare.comparison_table import TextTable, format_markdown_table

MADE_BY = "Made by `python -m papers`."
"""Last line of the page, by which a later run recognises it."""

_VERSIONS = ("wsabie", "python", "numpy", "numba")


def render_run_page(
    record: PaperRecord,
    data: dict[str, Any] | None,
    findings: RunFindings,
    verdicts: Sequence[ClaimVerdict],
    run: dict[str, Any],
    table: TextTable,
) -> str:
    """Render data and settings, the table, the verdicts on the claims, and mistakes of the paper."""
    parts = [
        f"# {record.title}",
        f"{record.document}, {record.place}. {record.procedure}",
        _render_run(data, run, findings.notes),
        format_markdown_table(table),
        "![figure](figure.svg)" if findings.charts else "![figure](figure.png)" if findings.image_sheet else "",
        _render_missing(findings.missing),
        _render_claims("What the paper says", [verdict for verdict in verdicts if not verdict.ours]),
        _render_claims("Asked here besides", [verdict for verdict in verdicts if verdict.ours]),
        _render_list("Known to be wrong, or open, in the source", record.wrong),
        MADE_BY,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _render_run(data: dict[str, Any] | None, run: dict[str, Any], notes: Sequence[str]) -> str:
    data_text = "No data are needed: everything is computed."
    if data is not None:
        fingerprints = ", ".join(f"{side} {mark}" for side, mark in data["fingerprint"].items())
        data_text = f"Data: {data['about']}. Fingerprints: {fingerprints}."
    packages = ", ".join(f"{name} {run['versions'][name]}" for name in _VERSIONS)
    parameters = "".join(f", {name} = {value}" for name, value in run["parameters"].items())
    commit = f"from commit {run['commit']} " if run["commit"] else ""
    run_text = (
        f"Run on {run['date']} {commit}with {packages}; {run['machine']}, {run['threads']} threads, "
        f"seed {run['seed']}{parameters}."
    )
    comparison_note = (
        ""
        if data is None
        else "The figures of the paper are those of its own data, and are not to be compared with ours one by one. "
    )
    return " ".join([data_text, run_text, comparison_note + " ".join(notes)]).strip()


def _render_missing(missing: dict[str, str]) -> str:
    return _render_list("Not run", [f"{row}: {reason}" for row, reason in missing.items()])


def _render_claims(heading: str, verdicts: Sequence[ClaimVerdict]) -> str:
    lines = [f"{verdict.text}: **{verdict.here}** here ({format_verdict(verdict)})." for verdict in verdicts]
    return _render_list(heading, lines)


def format_verdict(verdict: ClaimVerdict) -> str:
    """Format a verdict in numbers."""
    chance = "; the interval includes 0, so this may be chance" if verdict.here == OPEN else ""
    paper = "; the paper's own figures do not bear it out" if verdict.paper == "does not hold" else ""
    return f"{verdict.words}{chance}{paper}"


def _render_list(heading: str, lines: Sequence[str]) -> str:
    return "\n".join([f"## {heading}", "", *(f"- {line}" for line in lines)]) if lines else ""
