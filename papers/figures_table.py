"""The paper's figures beside ours, row by row."""

from papers.record import Cell, PaperRecord, PublishedFigures, RunFindings
from wsabie.workflows.compare.comparison_table import TextTable

METRICS = ("p@", "psib@", "hp@", "recall@", "MAP", "AUC", "MRR")
"""First letters of metrics, which are shown in per cent if the paper does so."""

_MAX_COLUMNS = 12
"""Most columns side by side."""


def build_figures_table(record: PaperRecord, findings: RunFindings, name: str) -> TextTable:
    """Build the table of a record: per column the paper's figures, by their data, and ours.

    Parameters
    ----------
    record : PaperRecord
    findings : RunFindings
    name : str
        Of our data.
    """
    columns = [column for column in record.table_columns if _has_figures(column, record, findings)]
    headers, rows = ["row"], _list_rows(record, findings)
    for column in columns:
        percent = " %" if record.percent and is_metric_column(column) else ""
        headers += [f"{column}{percent}, {published.data}" for published in _find_published(record, column)]
        if _has_our_figures(column, findings) or not _find_published(record, column):
            headers.append(
                f"{column}{percent}, {name}" if record.needs_data or _find_published(record, column) else column
            )
    if len(headers) > _MAX_COLUMNS:
        return _build_stacked_table(columns, record, findings, name)
    return TextTable(headers, [[row, *_format_line(row, columns, record, findings)] for row in rows])


def _build_stacked_table(columns: list[str], record: PaperRecord, findings: RunFindings, name: str) -> TextTable:
    """Build the table with the data in the row names, if it would be too wide."""
    rows = []
    for row in _list_rows(record, findings):
        for published in record.published:
            if row in published.rows:
                rows.append(
                    [f"{row}, {published.data}", *(format_figure(published.figure(row, column)) for column in columns)]
                )
        if row in findings:
            rows.append([f"{row}, {name}", *(_format_our_cell(row, column, record, findings) for column in columns)])
    percent = " %" if record.percent else ""
    return TextTable(["row", *(f"{column}{percent if is_metric_column(column) else ''}" for column in columns)], rows)


def is_metric_column(column: str) -> bool:
    """Return True for a metric (a fraction)."""
    return column.startswith(METRICS)


def _list_rows(record: PaperRecord, findings: RunFindings) -> list[str]:
    """Return the paper's rows, then our additional rows."""
    names = [row for published in record.published for row in published.rows]
    return list(dict.fromkeys([*names, *findings.missing, *(finding.row for finding in findings.rows)]))


def _find_published(record: PaperRecord, column: str) -> list[PublishedFigures]:
    return [published for published in record.published if column in published.columns]


def _has_our_figures(column: str, findings: RunFindings) -> bool:
    return any(finding.figures.get(column) is not None for finding in findings.rows)


def _has_figures(column: str, record: PaperRecord, findings: RunFindings) -> bool:
    return bool(_find_published(record, column)) or _has_our_figures(column, findings)


def _format_line(row: str, columns: list[str], record: PaperRecord, findings: RunFindings) -> list[str]:
    cells = []
    for column in columns:
        cells += [format_figure(published.figure(row, column)) for published in _find_published(record, column)]
        if _has_our_figures(column, findings) or not _find_published(record, column):
            cells.append(_format_our_cell(row, column, record, findings))
    return cells


def _format_our_cell(row: str, column: str, record: PaperRecord, findings: RunFindings) -> str:
    if row not in findings:
        return ""
    times = 100 if record.percent and is_metric_column(column) else 1
    value, error = findings[row].figures.get(column), findings[row].errors.get(column)
    if not isinstance(value, (int, float)):
        return format_figure(value)
    return format_figure(times * value) + (f" ± {times * error:.2g}" if error is not None else "")


def format_figure(value: Cell) -> str:
    """Format a figure: whole numbers with commas, others with four significant digits.

    Examples
    --------
    >>> (
    ...     format_figure(2518604),
    ...     format_figure(4.03),
    ...     format_figure(0.01234567),
    ...     format_figure(1234.56),
    ...     format_figure(None),
    ... )
    ('2,518,604', '4.03', '0.01235', '1,235', '')
    """
    if value is None or isinstance(value, str):
        return value or ""
    if value != value:
        return ""
    if float(value).is_integer() or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"
