"""Charts of a run's rows, and checks of such rows."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log10

from papers.record import FindingRow, PaperRecord, RunFindings
from wsabie.workflows.charts.svg_charts import ChartAxis, ChartSeries, LineChart, format_tick

_K = (*range(1, 11), 15, 20, 30, 40, 50)


def build_log_axis(name: str, values: Sequence[float]) -> ChartAxis:
    """Build an axis for base-10 logarithms of values, with marks at the powers of ten.

    Examples
    --------
    >>> build_log_axis("rank", [1, 300]).ticks
    [(0.0, '1'), (1.0, '10'), (2.0, '100'), (3.0, '1k')]
    """
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    ticks = [(float(power), format_tick(10.0**power)) for power in range(low, high + 1)]
    return ChartAxis(name, ticks, float(low), float(high))


def draw_by_length(record: PaperRecord, findings: RunFindings) -> list[LineChart]:
    """Draw precision at k, and sibling precision where it is known (Weston et al. 2010, Figure 1)."""
    charts = []
    for kind, name in (("p", "precision"), ("psib", "sibling precision")):
        lines = [
            line
            for line in (_draw_at_k(finding, kind, i) for i, finding in enumerate(findings.rows))
            if line is not None
        ]
        if lines:
            ticks = [(float(k), str(k)) for k in (1, 2, 4, 6, 8, 10)]
            charts.append(
                LineChart(f"{name.capitalize()} at k", lines, ChartAxis("k", ticks), ChartAxis(name, low=0.0))
            )
    return charts


def _draw_at_k(finding: FindingRow, kind: str, style: int) -> ChartSeries | None:
    pairs = [(float(k), finding.figures.get(f"{kind}@{k}")) for k in _K if k <= 10]
    points = [(k, float(value)) for k, value in pairs if isinstance(value, (int, float))]
    return (
        ChartSeries(finding.row, [k for k, _ in points], [point_value for _, point_value in points], style=style)
        if points
        else None
    )


def draw_by_dimension(record: PaperRecord, findings: RunFindings) -> list[LineChart]:
    """Draw metrics against the dimensions, the paper's and ours in two charts: the data differ."""
    charts = []
    for metric in ("p@1", "MAP"):
        ours = [(float(finding.row.rpartition(" ")[2]), _get_value(finding, metric)) for finding in findings.rows]
        (published,) = record.published
        theirs = [(float(row.rpartition(" ")[2]), published.figure(row, metric)) for row in published.rows]
        for name, pairs, unit in (("here", ours, ""), (published.data, theirs, ", %")):
            points = [(x, float(y)) for x, y in pairs if isinstance(y, (int, float))]
            line = ChartSeries(metric, [x for x, _ in points], [y for _, y in points])
            ticks = [(x, f"{x:g}") for x, _ in points]
            charts.append(
                LineChart(
                    f"{metric}, {name}", [line], ChartAxis("dimensions", ticks), ChartAxis(f"{metric}{unit}", low=0.0)
                )
            )
    return charts


def draw_by_feature_dimension(record: PaperRecord, findings: RunFindings) -> list[LineChart]:
    """Draw p@3 against the dimensions, a line for each kind of features, the slides' beside ours."""
    (published,) = record.published
    ours = {finding.row: finding.figures.get("p@3") for finding in findings.rows}
    theirs = {row: published.figure(row, "p@3") for row in published.rows}
    charts = []
    for name, rows in (("here", ours), (published.data, theirs)):
        lines: dict[str, list[tuple[float, float]]] = {}
        for row, value in rows.items():
            if isinstance(value, (int, float)):
                dim, _, features = row.removeprefix("d = ").partition(", ")
                lines.setdefault(features, []).append((float(dim), float(value)))
        series = [
            ChartSeries(features, [x for x, _ in pairs], [y for _, y in pairs], style=i)
            for i, (features, pairs) in enumerate(lines.items())
        ]
        ticks = [(x, f"{x:g}") for x in sorted({x for pairs in lines.values() for x, _ in pairs})]
        charts.append(LineChart(f"p@3, {name}", series, ChartAxis("dimensions", ticks), ChartAxis("p@3", low=0.0)))
    return charts


def draw_by_label_count(record: PaperRecord, findings: RunFindings) -> list[LineChart]:
    """Draw p@1 and MAP against the number of labels."""
    return [
        _draw_over(findings, "labels", metric, f"{metric} and the number of labels", log=True)
        for metric in ("p@1", "MAP")
    ]


def draw_by_seconds(record: PaperRecord, findings: RunFindings) -> list[LineChart]:
    """Draw p@10 and MAP of the validation rows against the seconds of training."""
    return [_draw_over(findings, "seconds", metric, f"{metric} on validation rows") for metric in ("p@10", "MAP")]


def draw_by_epoch(record: PaperRecord, findings: RunFindings) -> list[LineChart]:
    """Draw the draws per visit against epochs."""
    return [_draw_over(findings, "epoch", "draws per visit", "Negatives drawn per visit")]


def _draw_over(findings: RunFindings, x: str, y: str, title: str, *, log: bool = False) -> LineChart:
    """Draw a line for each model; row names are "model, ..."."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for finding in findings.rows:
        if finding.figures.get(x) is not None and finding.figures.get(y) is not None:
            lines.setdefault(_parse_model(finding), []).append((_get_value(finding, x), _get_value(finding, y)))
    places = [a for pairs in lines.values() for a, _ in pairs] or [1.0]
    axis = build_log_axis(x, places) if log else ChartAxis(x)
    series = [
        ChartSeries(name, [log10(a) if log else a for a, _ in pairs], [b for _, b in pairs], style=i)
        for i, (name, pairs) in enumerate(lines.items())
    ]
    return LineChart(title, series, axis, ChartAxis(y, low=0.0))


def _parse_model(finding: FindingRow) -> str:
    return finding.row.rpartition(", ")[0]


def _get_value(finding: FindingRow, column: str) -> float:
    value = finding.figures.get(column)
    return float(value) if isinstance(value, (int, float)) else float("nan")


def _select_model(findings: RunFindings, model: str) -> list[FindingRow]:
    rows = [finding for finding in findings.rows if _parse_model(finding) == model]
    if not rows:
        raise LookupError(model)
    return rows


def check_smaller(column: str, row_name: str, larger_row: str) -> Callable[[RunFindings], tuple[bool, str]]:
    """Return a check that one row has less of a column than another."""

    def holds(findings: RunFindings) -> tuple[bool, str]:
        a, b = (_get_value(findings[row_of_pair], column) for row_of_pair in (row_name, larger_row))
        return a < b, f"{a:.4g} against {b:.4g} {column}"

    return holds


def check_ends_above(column: str, higher_model: str, lower_model: str) -> Callable[[RunFindings], tuple[bool, str]]:
    """Return a check that one model's best epoch is above another's."""

    def holds(findings: RunFindings) -> tuple[bool, str]:
        a, b = (
            max(_get_value(finding, column) for finding in _select_model(findings, model))
            for model in (higher_model, lower_model)
        )
        return a > b, f"{a:.4g} against {b:.4g} at the best epoch"

    return holds


def check_falls(column: str, model: str) -> Callable[[RunFindings], tuple[bool, str]]:
    """Return a check that a column falls from each row of a model to the next."""

    def holds(findings: RunFindings) -> tuple[bool, str]:
        values = [_get_value(finding, column) for finding in _select_model(findings, model)]
        return all(a > b for a, b in pairwise(values)), ", ".join(f"{value:.3f}" for value in values)

    return holds


def check_rises(column: str, model: str) -> Callable[[RunFindings], tuple[bool, str]]:
    """Return a check that a column rises from the first to the last row of a model."""

    def holds(findings: RunFindings) -> tuple[bool, str]:
        values = [_get_value(finding, column) for finding in _select_model(findings, model)]
        return values[-1] > values[0], f"from {values[0]:.4g} to {values[-1]:.4g}"

    return holds
