"""Figures drawn from the rows of a run, and checks that look at such rows."""

from collections.abc import Callable
from itertools import pairwise
from math import log10

from wsabie.studies.charts import Series
from wsabie.studies.html.svg import Axis
from wsabie.studies.reproduce.drawing import Chart, log_axis
from wsabie.studies.reproduce.record import Findings, Found, Record

_K = (*range(1, 11), 15, 20, 30, 40, 50)


def by_length(record: Record, findings: Findings) -> list[Chart]:
    """Precision at the first k, and sibling precision where it is known ([W] Figure 1)."""
    charts = []
    for kind, name in (("p", "precision"), ("psib", "sibling precision")):
        lines = [line for line in (_at_k(found, kind, i) for i, found in enumerate(findings.rows)) if line is not None]
        if lines:
            ticks = [(float(k), str(k)) for k in (1, 2, 4, 6, 8, 10)]
            charts.append(Chart(f"{name.capitalize()} at k", lines, Axis("k", ticks), Axis(name, low=0.0)))
    return charts


def _at_k(found: Found, kind: str, style: int) -> Series | None:
    pairs = [(float(k), found.figures.get(f"{kind}@{k}")) for k in _K if k <= 10]
    known = [(k, float(value)) for k, value in pairs if isinstance(value, (int, float))]
    return Series(found.row, [k for k, _ in known], [v for _, v in known], style=style) if known else None


def by_dimension(record: Record, findings: Findings) -> list[Chart]:
    """Metrics against the dimensions, the paper's beside ours, in two charts: they are of different data."""
    charts = []
    for metric in ("p@1", "MAP"):
        ours = [(float(found.row.rpartition(" ")[2]), _value(found, metric)) for found in findings.rows]
        (published,) = record.published
        theirs = [(float(row.rpartition(" ")[2]), published.figure(row, metric)) for row in published.rows]
        for name, pairs, unit in (("here", ours, ""), (published.data, theirs, ", %")):
            known = [(x, float(y)) for x, y in pairs if isinstance(y, (int, float))]
            line = Series(metric, [x for x, _ in known], [y for _, y in known])
            ticks = [(x, f"{x:g}") for x, _ in known]
            charts.append(
                Chart(f"{metric}, {name}", [line], Axis("dimensions", ticks), Axis(f"{metric}{unit}", low=0.0))
            )
    return charts


def by_dimension_of_features(record: Record, findings: Findings) -> list[Chart]:
    """p@3 against the dimensions, a line for each kind of features, the slides' beside ours."""
    (published,) = record.published
    ours = {found.row: found.figures.get("p@3") for found in findings.rows}
    theirs = {row: published.figure(row, "p@3") for row in published.rows}
    charts = []
    for name, rows in (("here", ours), (published.data, theirs)):
        lines: dict[str, list[tuple[float, float]]] = {}
        for row, value in rows.items():
            if isinstance(value, (int, float)):
                dim, _, features = row.removeprefix("d = ").partition(", ")
                lines.setdefault(features, []).append((float(dim), float(value)))
        series = [
            Series(features, [x for x, _ in pairs], [y for _, y in pairs], style=i)
            for i, (features, pairs) in enumerate(lines.items())
        ]
        ticks = [(x, f"{x:g}") for x in sorted({x for pairs in lines.values() for x, _ in pairs})]
        charts.append(Chart(f"p@3, {name}", series, Axis("dimensions", ticks), Axis("p@3", low=0.0)))
    return charts


def by_labels(record: Record, findings: Findings) -> list[Chart]:
    """p@1 and MAP against the number of labels."""
    return [
        _over(findings, "labels", metric, f"{metric} and the number of labels", log=True) for metric in ("p@1", "MAP")
    ]


def by_seconds(record: Record, findings: Findings) -> list[Chart]:
    """p@10 of the validation rows against the seconds of training."""
    return [_over(findings, "seconds", metric, f"{metric} on validation rows") for metric in ("p@10", "MAP")]


def by_epoch(record: Record, findings: Findings) -> list[Chart]:
    """Draws per update against epochs."""
    return [_over(findings, "epoch", "draws per update", "Negatives drawn per update")]


def _over(findings: Findings, x: str, y: str, title: str, *, log: bool = False) -> Chart:
    """A line for each model: rows are called "model, ..."."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for found in findings.rows:
        if found.figures.get(x) is not None and found.figures.get(y) is not None:
            lines.setdefault(_model(found), []).append((_value(found, x), _value(found, y)))
    places = [a for pairs in lines.values() for a, _ in pairs] or [1.0]
    axis = log_axis(x, places) if log else Axis(x)
    series = [
        Series(name, [log10(a) if log else a for a, _ in pairs], [b for _, b in pairs], style=i)
        for i, (name, pairs) in enumerate(lines.items())
    ]
    return Chart(title, series, axis, Axis(y, low=0.0))


def _model(found: Found) -> str:
    return found.row.rpartition(", ")[0]


def _value(found: Found, column: str) -> float:
    value = found.figures.get(column)
    return float(value) if isinstance(value, (int, float)) else float("nan")


def _of(findings: Findings, model: str) -> list[Found]:
    found = [found for found in findings.rows if _model(found) == model]
    if not found:
        raise LookupError(model)
    return found


def smaller(column: str, one: str, other: str) -> Callable[[Findings], tuple[bool, str]]:
    """A check that one row has less of a column than another."""

    def holds(findings: Findings) -> tuple[bool, str]:
        a, b = (_value(findings[row], column) for row in (one, other))
        return a < b, f"{a:.4g} against {b:.4g} {column}"

    return holds


def ends_above(column: str, one: str, other: str) -> Callable[[Findings], tuple[bool, str]]:
    """A check that one model's best epoch is above another's."""

    def holds(findings: Findings) -> tuple[bool, str]:
        a, b = (max(_value(found, column) for found in _of(findings, model)) for model in (one, other))
        return a > b, f"{a:.4g} against {b:.4g} at the best epoch"

    return holds


def falls(column: str, model: str) -> Callable[[Findings], tuple[bool, str]]:
    """A check that a column falls from each row of a model to the next."""

    def holds(findings: Findings) -> tuple[bool, str]:
        values = [_value(found, column) for found in _of(findings, model)]
        return all(a > b for a, b in pairwise(values)), ", ".join(f"{value:.3f}" for value in values)

    return holds


def rises(column: str, model: str) -> Callable[[Findings], tuple[bool, str]]:
    """A check that a column rises from the first to the last row of a model."""

    def holds(findings: Findings) -> tuple[bool, str]:
        values = [_value(found, column) for found in _of(findings, model)]
        return values[-1] > values[0], f"from {values[0]:.4g} to {values[-1]:.4g}"

    return holds
