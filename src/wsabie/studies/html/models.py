"""The table of models, the differences to the best baseline, and precision by length of the list."""

from wsabie.studies.charts import Series, Span, interval_chart, legend, line_chart
from wsabie.studies.comparison import Comparison, Entry, Skipped
from wsabie.studies.headline import list_length, verdict
from wsabie.studies.html.markup import Child, Markup, element, join
from wsabie.studies.html.page import Section, chart, numbers
from wsabie.studies.html.svg import Axis
from wsabie.studies.html.words import duration, explained, figure, milliseconds, one, signed, size
from wsabie.studies.report_input import ReportInput


def models(given: ReportInput) -> Section:
    """Everything about how the models compare."""
    comparison = given.comparison
    n = comparison[given.main].evaluation.n_rows
    intro = (
        f"Every model learned from the same {comparison.task.facts.train_rows:,} {given.things} and was judged on the "
        f"same {n:,}. Small figures are 95 % intervals: where the value could lie with other test {given.things} of "
        "the same kind."
    )
    charts = element("div", _curve(given), _differences(given), class_="charts")
    body = join(_table(given), _notes(comparison), charts)
    return Section("models", "Models", "How it compares", intro, body)


def ordered(comparison: Comparison, main: str) -> list[Entry]:
    """The main model first: a model's place here is its colour in every chart."""
    return sorted(comparison.entries, key=lambda entry: entry.name != main)


def _table(given: ReportInput) -> Markup:
    comparison = given.comparison
    metrics = comparison.metrics
    costs = ("training", f"per {one(given.things)}", "memory")
    heads = [
        element("th", "model", scope="col", role="columnheader"),
        [element("th", m, scope="col", role="columnheader", title=explained(m)) for m in metrics],
        [element("th", c, scope="col", role="columnheader") for c in costs],
    ]
    best = {m: max(e.evaluation.means[m] for e in comparison.entries) for m in metrics}
    rows = [_row(entry, given, best, costs) for entry in ordered(comparison, given.main)]
    rows.append(_ceiling(comparison, len(costs)))
    rows += [_skipped(skipped, len(metrics) + len(costs)) for skipped in comparison.skipped]
    table = element(
        "table",
        element("caption", "All models on the same split", class_="hidden"),
        element("thead", element("tr", heads, role="row"), role="rowgroup"),
        element("tbody", rows, role="rowgroup"),
        role="table",
        class_="models",
    )
    glossary = element("dl", [join(element("dt", m), element("dd", explained(m))) for m in metrics], class_="glossary")
    more = element("details", element("summary", "What the columns mean"), glossary)
    return join(element("div", table, class_="scroll", tabindex=0, role="region", aria_label="Models"), more)


def _row(entry: Entry, given: ReportInput, best: dict[str, float], costs: tuple[str, ...]) -> Markup:
    cells = [_metric(entry, metric, value) for metric, value in best.items()]
    values = (duration(entry.fit_seconds), milliseconds(entry.predict_ms), size(entry.n_bytes))
    chosen = ", ".join(f"{name} = {value}" for name, value in entry.chosen.items())
    name = element(
        "th",
        element("span", entry.title, class_="model"),
        element("span", chosen, class_="small") if chosen else None,
        scope="row",
        role="rowheader",
    )
    prices = [element("td", v, data_name=c, role="cell") for c, v in zip(costs, values, strict=True)]
    return element("tr", name, cells, prices, role="row", class_="main" if entry.name == given.main else None)


def _metric(entry: Entry, metric: str, highest: float) -> Markup:
    value, best = figure(entry.evaluation.means[metric]), entry.evaluation.means[metric] >= highest - 1e-9
    interval = entry.intervals[metric]
    spread = f"{figure(interval.low)}–{figure(interval.high)}"
    words = join(element("b", value, element("span", " (best)", class_="hidden"))) if best else value
    return element("td", words, element("span", spread, class_="small"), data_name=metric, role="cell")


def _ceiling(comparison: Comparison, n_costs: int) -> Markup:
    values = [comparison.ceilings.get(metric) for metric in comparison.metrics]
    cells = [
        element("td", "" if v is None else figure(v), data_name=m, role="cell")
        for m, v in zip(comparison.metrics, values, strict=True)
    ]
    name = element("th", "highest possible", scope="row", role="rowheader")
    return element("tr", name, cells, [element("td", role="cell")] * n_costs, role="row", class_="ceiling")


def _skipped(skipped: Skipped, width: int) -> Markup:
    reason = element("td", f"left out: {skipped.reason}", colspan=width, role="cell", class_="reason")
    name = element("th", skipped.title, scope="row", role="rowheader")
    return element("tr", name, reason, role="row", class_="skipped")


def _notes(comparison: Comparison) -> Child:
    k, tuned = list_length(comparison), [entry for entry in comparison.entries if entry.tried]
    notes = [
        f"{entry.title}: {len(entry.tried)} settings were tried on the validation rows by {comparison.tuned_on} "
        f"({duration(entry.tuning_seconds)} in all); the time in the table is that of the best one."
        for entry in tuned
    ]
    compiled = [entry for entry in comparison.entries if entry.compile_seconds]
    notes += [
        f"{entry.title}: compilation took {duration(entry.compile_seconds)} and is not counted; it happens once per "
        "machine."
        for entry in compiled
    ]
    tied = ", ".join(f"{entry.title} {entry.evaluation.tied_at_cut[k]:,}" for entry in comparison.entries)
    n_rows = comparison.entries[0].evaluation.n_rows
    notes.append(f"Rows with tied labels at the cut after {k}: {tied} of {n_rows:,}. Ties count as in a random order.")
    return element("ul", [element("li", note) for note in notes], class_="small notes")


def _curve(given: ReportInput) -> Markup:
    comparison = given.comparison
    entries = ordered(comparison, given.main)
    ks = entries[0].evaluation.ks
    series = [_series(entry, i, ks) for i, entry in enumerate(entries)]
    top = Series("highest possible", list(ks), [comparison.ceilings[f"p@{k}"] for k in ks], style=-1)
    drawing = line_chart(
        [*series, top],
        Axis("number of suggestions looked at", _k_ticks(ks)),
        Axis("share that is right", low=0.0),
        title="Precision by length of the list",
        description=_spoken(entries),
    )
    rows = [[str(k), *(figure(e.evaluation.means[f"p@{k}"]) for e in entries), figure(top.y[i])]
            for i, k in enumerate(ks)]  # fmt: skip
    table = numbers(["k", *(e.title for e in entries), "highest possible"], rows)
    caption = (
        "The share of right labels falls the further down the list one looks; the dashed line is what a perfect "
        "model would reach, because some rows have few labels."
    )
    return chart(
        "Precision by length of the list",
        drawing,
        caption,
        legend([*((e.title, i) for i, e in enumerate(entries)), ("highest possible", -1)]),
        table,
    )


def _series(entry: Entry, style: int, ks: tuple[int, ...]) -> Series:
    means = entry.evaluation.means
    low = high = None
    if style == 0:
        low, high = ([getattr(entry.intervals[f"p@{k}"], end) for k in ks] for end in ("low", "high"))
    return Series(entry.title, list(ks), [means[f"p@{k}"] for k in ks], low, high, style)


def _k_ticks(ks: tuple[int, ...]) -> list[tuple[float, str]]:
    """The shortest list, and round lengths that do not crowd."""
    step = max(1, (ks[-1] - ks[0]) // 6)
    shown = [ks[0]]
    for k in ks[1:]:
        if k - shown[-1] >= step and (k % 5 == 0 or ks[-1] <= 10):
            shown.append(k)
    return [(float(k), str(k)) for k in shown]


def _spoken(entries: list[Entry]) -> str:
    ends = {min(entries[0].evaluation.ks), max(entries[0].evaluation.ks)}
    parts = []
    for entry in entries:
        values = [f"{entry.evaluation.means[f'p@{k}']:.2f} at {k}" for k in sorted(ends)]
        parts.append(f"{entry.title}: {', '.join(values)}")
    return "; ".join(parts) + "."


def _differences(given: ReportInput) -> Markup | None:
    comparison, main = given.comparison, given.comparison[given.main]
    found = [v for metric in comparison.metrics if (v := verdict(comparison, given.main, metric)) is not None]
    if not found:
        return None
    spans = [Span(v.metric, v.difference.mean, v.difference.low, v.difference.high) for v in found]
    title = f"{main.title} minus the best baseline"
    drawing = interval_chart(
        spans,
        "difference",
        title=title,
        description="; ".join(f"{s.name} {s.value:+.3f}" for s in spans) + ".",
    )
    rows = [
        [v.metric, v.baseline.title, signed(v.difference.mean), signed(v.difference.low), signed(v.difference.high)]
        for v in found
    ]
    table = numbers(["metric", "best baseline", "difference", "from", "to"], rows)
    caption = (
        "Right of the line the model is ahead. A hollow dot says that its interval holds zero, so that the difference "
        f"may be chance. Differences are taken {_per(given)} and each metric has its own best baseline."
    )
    return chart(title, drawing, caption, table)


def _per(given: ReportInput) -> str:
    return f"{one(given.things)} by {one(given.things)}"
