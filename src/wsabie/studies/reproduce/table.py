"""The paper's figures beside ours, row by row."""

from wsabie.studies.comparison import Table
from wsabie.studies.reproduce.record import Cell, Findings, Published, Record

METRICS = ("p@", "psib@", "hp@", "recall@", "MAP", "AUC", "MRR")
"""How names of metrics begin: what is shown in per cent where the paper does so."""

_WIDEST = 12
"""Columns that may stand side by side."""


def figures_table(record: Record, findings: Findings, name: str) -> Table:
    """The table of a record: for each column the paper's figures, by the data they belong to, and ours.

    Parameters
    ----------
    record : Record
    findings : Findings
    name : str
        Of our data.
    """
    columns = [column for column in record.shown if _anywhere(column, record, findings)]
    headers, rows = ["row"], _rows(record, findings)
    for column in columns:
        percent = " %" if record.percent and is_metric(column) else ""
        headers += [f"{column}{percent}, {published.data}" for published in _with(record, column)]
        if _ours(column, findings) or not _with(record, column):
            headers.append(f"{column}{percent}, {name}" if record.needs_data or _with(record, column) else column)
    if len(headers) > _WIDEST:
        return _stacked(columns, record, findings, name)
    return Table(headers, [[row, *_line(row, columns, record, findings)] for row in rows])


def _stacked(columns: list[str], record: Record, findings: Findings, name: str) -> Table:
    """The same with the data in the name of the row, for tables that would be too wide."""
    rows = []
    for row in _rows(record, findings):
        for published in record.published:
            if row in published.rows:
                rows.append([f"{row}, {published.data}", *(shown(published.figure(row, column)) for column in columns)])
        if row in findings:
            rows.append([f"{row}, {name}", *(_our_cell(row, column, record, findings) for column in columns)])
    percent = " %" if record.percent else ""
    return Table(["row", *(f"{column}{percent if is_metric(column) else ''}" for column in columns)], rows)


def is_metric(column: str) -> bool:
    """Whether a column is a metric (a fraction)."""
    return column.startswith(METRICS)


def _rows(record: Record, findings: Findings) -> list[str]:
    """The paper's rows, then ours that it does not have."""
    names = [row for published in record.published for row in published.rows]
    return list(dict.fromkeys([*names, *findings.missing, *(found.row for found in findings.rows)]))


def _with(record: Record, column: str) -> list[Published]:
    return [published for published in record.published if column in published.columns]


def _ours(column: str, findings: Findings) -> bool:
    return any(found.figures.get(column) is not None for found in findings.rows)


def _anywhere(column: str, record: Record, findings: Findings) -> bool:
    return bool(_with(record, column)) or _ours(column, findings)


def _line(row: str, columns: list[str], record: Record, findings: Findings) -> list[str]:
    cells = []
    for column in columns:
        cells += [shown(published.figure(row, column)) for published in _with(record, column)]
        if _ours(column, findings) or not _with(record, column):
            cells.append(_our_cell(row, column, record, findings))
    return cells


def _our_cell(row: str, column: str, record: Record, findings: Findings) -> str:
    if row not in findings:
        return ""
    times = 100 if record.percent and is_metric(column) else 1
    value, error = findings[row].figures.get(column), findings[row].errors.get(column)
    if not isinstance(value, (int, float)):
        return shown(value)
    return shown(times * value) + (f" ± {times * error:.2g}" if error is not None else "")


def shown(value: Cell) -> str:
    """A figure as text: whole numbers with commas, others with four digits that say something.

    Examples
    --------
    >>> shown(2518604), shown(4.03), shown(0.01234567), shown(1234.56), shown(None)
    ('2,518,604', '4.03', '0.01235', '1,235', '')
    """
    if value is None or isinstance(value, str):
        return value or ""
    if value != value:
        return ""
    if float(value).is_integer() or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"
