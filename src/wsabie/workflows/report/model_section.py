"""The table of models, the differences to the best baseline, and precision by list length."""

from wsabie.workflows.charts.chart_types import (
    ChartSeries,
    IntervalSpan,
    draw_interval_chart,
    draw_legend,
    draw_line_chart,
)
from wsabie.workflows.charts.html_markup import Child, Markup, build_element, join_markup
from wsabie.workflows.charts.html_page import PageSection, render_chart, render_number_table
from wsabie.workflows.charts.svg_elements import ChartAxis
from wsabie.workflows.compare.comparison import Comparison, ModelEntry, ModelOmission
from wsabie.workflows.report.headline import choose_list_length, judge_main_model
from wsabie.workflows.report.number_format import (
    explain_metric,
    format_bytes,
    format_difference,
    format_duration,
    format_metric,
    format_milliseconds,
    singularise,
)
from wsabie.workflows.report.report_input import ReportInput


def render_models_section(report: ReportInput) -> PageSection:
    """Render all comparisons of the models."""
    comparison = report.comparison
    n_rows = comparison[report.main].evaluation.n_rows
    intro = (
        f"Every model learned from the same {comparison.task.facts.train_rows:,} {report.things} and was judged on the "
        f"same {n_rows:,}. Small figures are 95 % intervals: where the value could lie with other test "
        f"{report.things} of "
        "the same kind."
    )
    charts = build_element("div", _draw_precision_curve(report), _draw_differences(report), class_="charts")
    body = join_markup(_render_table(report), _render_notes(comparison), charts)
    return PageSection("models", "Models", "How it compares", intro, body)


def order_entries(comparison: Comparison, main: str) -> list[ModelEntry]:
    """Return the entries with the main model first; the position sets the colour in every chart."""
    return sorted(comparison.entries, key=lambda entry: entry.name != main)


def _render_table(report: ReportInput) -> Markup:
    comparison = report.comparison
    metrics = comparison.metrics
    costs = ("training", f"per {singularise(report.things)}", "memory")
    headers = [
        build_element("th", "model", scope="col", role="columnheader"),
        [
            build_element("th", metric, scope="col", role="columnheader", title=explain_metric(metric))
            for metric in metrics
        ],
        [build_element("th", cost, scope="col", role="columnheader") for cost in costs],
    ]
    best = {metric: max(e.evaluation.means[metric] for e in comparison.entries) for metric in metrics}
    rows = [_render_row(entry, report, best, costs) for entry in order_entries(comparison, report.main)]
    rows.append(_render_ceiling(comparison, len(costs)))
    rows += [_render_omission(skipped, len(metrics) + len(costs)) for skipped in comparison.skipped]
    table = build_element(
        "table",
        build_element("caption", "All models on the same split", class_="hidden"),
        build_element("thead", build_element("tr", headers, role="row"), role="rowgroup"),
        build_element("tbody", rows, role="rowgroup"),
        role="table",
        class_="models",
    )
    glossary = build_element(
        "dl",
        [join_markup(build_element("dt", metric), build_element("dd", explain_metric(metric))) for metric in metrics],
        class_="glossary",
    )
    glossary_box = build_element("details", build_element("summary", "What the columns mean"), glossary)
    return join_markup(
        build_element("div", table, class_="scroll", tabindex=0, role="region", aria_label="Models"), glossary_box
    )


def _render_row(entry: ModelEntry, report: ReportInput, best: dict[str, float], costs: tuple[str, ...]) -> Markup:
    cells = [_render_metric(entry, metric, value) for metric, value in best.items()]
    values = (format_duration(entry.fit_seconds), format_milliseconds(entry.predict_ms), format_bytes(entry.n_bytes))
    setting = ", ".join(f"{name} = {value}" for name, value in entry.chosen.items())
    name = build_element(
        "th",
        build_element("span", entry.title, class_="model"),
        build_element("span", setting, class_="small") if setting else None,
        scope="row",
        role="rowheader",
    )
    cost_cells = [build_element("td", v, data_name=cost, role="cell") for cost, v in zip(costs, values, strict=True)]
    return build_element(
        "tr", name, cells, cost_cells, role="row", class_="main" if entry.name == report.main else None
    )


def _render_metric(entry: ModelEntry, metric: str, highest: float) -> Markup:
    value, best = format_metric(entry.evaluation.means[metric]), entry.evaluation.means[metric] >= highest - 1e-9
    interval = entry.intervals[metric]
    spread = f"{format_metric(interval.low)}–{format_metric(interval.high)}"
    marked_value = (
        join_markup(build_element("b", value, build_element("span", " (best)", class_="hidden"))) if best else value
    )
    return build_element(
        "td", marked_value, build_element("span", spread, class_="small"), data_name=metric, role="cell"
    )


def _render_ceiling(comparison: Comparison, n_costs: int) -> Markup:
    values = [comparison.ceilings.get(metric) for metric in comparison.metrics]
    cells = [
        build_element("td", "" if ceiling is None else format_metric(ceiling), data_name=m, role="cell")
        for m, ceiling in zip(comparison.metrics, values, strict=True)
    ]
    name = build_element("th", "highest possible", scope="row", role="rowheader")
    return build_element("tr", name, cells, [build_element("td", role="cell")] * n_costs, role="row", class_="ceiling")


def _render_omission(skipped: ModelOmission, width: int) -> Markup:
    reason = build_element("td", f"left out: {skipped.reason}", colspan=width, role="cell", class_="reason")
    name = build_element("th", skipped.title, scope="row", role="rowheader")
    return build_element("tr", name, reason, role="row", class_="skipped")


def _render_notes(comparison: Comparison) -> Child:
    k, tuned = choose_list_length(comparison), [entry for entry in comparison.entries if entry.tried]
    notes = [
        f"{entry.title}: {len(entry.tried)} settings were tried on the validation rows by {comparison.tuned_on} "
        f"({format_duration(entry.tuning_seconds)} in all); the time in the table is that of the best one."
        for entry in tuned
    ]
    compiled = [entry for entry in comparison.entries if entry.compile_seconds]
    notes += [
        f"{entry.title}: compilation took {format_duration(entry.compile_seconds)} and is not counted; it happens "
        "once per "
        "machine."
        for entry in compiled
    ]
    tie_counts = ", ".join(f"{entry.title} {entry.evaluation.tied_at_cut[k]:,}" for entry in comparison.entries)
    n_rows = comparison.entries[0].evaluation.n_rows
    notes.append(
        f"Rows with tied labels at the cut after {k}: {tie_counts} of {n_rows:,}. Ties count as in a random order."
    )
    return build_element("ul", [build_element("li", note) for note in notes], class_="small notes")


def _draw_precision_curve(report: ReportInput) -> Markup:
    comparison = report.comparison
    entries = order_entries(comparison, report.main)
    ks = entries[0].evaluation.ks
    series = [_build_series(entry, i, ks) for i, entry in enumerate(entries)]
    ceiling = ChartSeries("highest possible", list(ks), [comparison.ceilings[f"p@{k}"] for k in ks], style=-1)
    drawing = draw_line_chart(
        [*series, ceiling],
        ChartAxis("number of suggestions looked at", _choose_ticks(ks)),
        ChartAxis("share that is right", low=0.0),
        title="Precision by length of the list",
        description=_describe_curves(entries),
    )
    rows = [[str(k), *(format_metric(e.evaluation.means[f"p@{k}"]) for e in entries), format_metric(ceiling.y[i])]
            for i, k in enumerate(ks)]  # fmt: skip
    table = render_number_table(["k", *(e.title for e in entries), "highest possible"], rows)
    caption = (
        "The share of right labels falls the further down the list one looks; the dashed line is what a perfect "
        "model would reach, because some rows have few labels."
    )
    return render_chart(
        "Precision by length of the list",
        drawing,
        caption,
        draw_legend([*((e.title, i) for i, e in enumerate(entries)), ("highest possible", -1)]),
        table,
    )


def _build_series(entry: ModelEntry, style: int, ks: tuple[int, ...]) -> ChartSeries:
    means = entry.evaluation.means
    low = high = None
    if style == 0:
        low, high = ([getattr(entry.intervals[f"p@{k}"], end) for k in ks] for end in ("low", "high"))
    return ChartSeries(entry.title, list(ks), [means[f"p@{k}"] for k in ks], low, high, style)


def _choose_ticks(ks: tuple[int, ...]) -> list[tuple[float, str]]:
    """Return the shortest list, and round lengths that do not crowd."""
    step = max(1, (ks[-1] - ks[0]) // 6)
    lengths = [ks[0]]
    for k in ks[1:]:
        if k - lengths[-1] >= step and (k % 5 == 0 or ks[-1] <= 10):
            lengths.append(k)
    return [(float(k), str(k)) for k in lengths]


def _describe_curves(entries: list[ModelEntry]) -> str:
    ends = {min(entries[0].evaluation.ks), max(entries[0].evaluation.ks)}
    parts = []
    for entry in entries:
        values = [f"{entry.evaluation.means[f'p@{k}']:.2f} at {k}" for k in sorted(ends)]
        parts.append(f"{entry.title}: {', '.join(values)}")
    return "; ".join(parts) + "."


def _draw_differences(report: ReportInput) -> Markup | None:
    comparison, main = report.comparison, report.comparison[report.main]
    verdicts = [
        verdict
        for metric in comparison.metrics
        if (verdict := judge_main_model(comparison, report.main, metric)) is not None
    ]
    if not verdicts:
        return None
    spans = [
        IntervalSpan(verdict.metric, verdict.difference.mean, verdict.difference.low, verdict.difference.high)
        for verdict in verdicts
    ]
    title = f"{main.title} minus the best baseline"
    drawing = draw_interval_chart(
        spans,
        "difference",
        title=title,
        description="; ".join(f"{span.name} {span.value:+.3f}" for span in spans) + ".",
    )
    rows = [
        [
            verdict.metric,
            verdict.baseline.title,
            format_difference(verdict.difference.mean),
            format_difference(verdict.difference.low),
            format_difference(verdict.difference.high),
        ]
        for verdict in verdicts
    ]
    table = render_number_table(["metric", "best baseline", "difference", "from", "to"], rows)
    caption = (
        "Right of the line the model is ahead. A hollow dot says that its interval holds zero, so that the difference "
        f"may be chance. Differences are taken {_format_unit(report)} and each metric has its own best baseline."
    )
    return render_chart(title, drawing, caption, table)


def _format_unit(report: ReportInput) -> str:
    return f"{singularise(report.things)} by {singularise(report.things)}"
