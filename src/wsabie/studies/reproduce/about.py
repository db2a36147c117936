"""The page about one run, in Markdown."""

from collections.abc import Sequence
from typing import Any

from wsabie.studies.comparison import Table
from wsabie.studies.reproduce.claims import OPEN, Verdict
from wsabie.studies.reproduce.record import Findings, Record
from wsabie.studies.results_folder import markdown_table

MADE_BY = "Made by `wsabie reproduce`."
"""How the page ends, so that it is known again."""

_VERSIONS = ("wsabie", "python", "numpy", "numba")


def about(
    record: Record,
    data: dict[str, Any] | None,
    findings: Findings,
    verdicts: Sequence[Verdict],
    run: dict[str, Any],
    table: Table,
) -> str:
    """What was run on what, the table, what became of the paper's claims, and what is wrong in the paper."""
    parts = [
        f"# {record.title}",
        f"{record.document}, {record.place}. {record.here}",
        _run_paragraph(data, run, findings.notes),
        markdown_table(table),
        "![figure](figure.svg)" if findings.charts else "![figure](figure.png)" if findings.drawn else "",
        _missing(findings.missing),
        _claims("What the paper says", [verdict for verdict in verdicts if not verdict.ours]),
        _claims("Asked here besides", [verdict for verdict in verdicts if verdict.ours]),
        _list("Known to be wrong, or open, in the source", record.wrong),
        MADE_BY,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _run_paragraph(data: dict[str, Any] | None, run: dict[str, Any], notes: Sequence[str]) -> str:
    where = "No data are needed: everything is computed."
    if data is not None:
        prints = ", ".join(f"{side} {mark}" for side, mark in data["fingerprint"].items())
        where = f"Data: {data['about']}. Fingerprints: {prints}."
    known = ", ".join(f"{name} {run['versions'][name]}" for name in _VERSIONS)
    given = "".join(f", {name} = {value}" for name, value in run["parameters"].items())
    how = f"Run on {run['date']} with {known}; {run['machine']}, {run['threads']} threads, seed {run['seed']}{given}."
    others = (
        ""
        if data is None
        else "The figures of the paper are those of its own data, and are not to be compared with ours one by one. "
    )
    return " ".join([where, how, others + " ".join(notes)]).strip()


def _missing(missing: dict[str, str]) -> str:
    return _list("Not run", [f"{row}: {reason}" for row, reason in missing.items()])


def _claims(heading: str, verdicts: Sequence[Verdict]) -> str:
    lines = [f"{verdict.text}: **{verdict.here}** here ({told(verdict)})." for verdict in verdicts]
    return _list(heading, lines)


def told(verdict: Verdict) -> str:
    """A verdict in numbers."""
    chance = "; the interval includes 0, so this may be chance" if verdict.here == OPEN else ""
    paper = "; the paper's own figures do not bear it out" if verdict.paper == "does not hold" else ""
    return f"{verdict.words}{chance}{paper}"


def _list(heading: str, lines: Sequence[str]) -> str:
    return "\n".join([f"## {heading}", "", *(f"- {line}" for line in lines)]) if lines else ""
