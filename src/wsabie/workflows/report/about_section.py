"""First and last sections of a report: the result, the data, and how to reproduce both."""

from math import isfinite

from wsabie.workflows.charts.html_markup import Child, Markup, build_element, join_markup
from wsabie.workflows.charts.html_page import PageSection, render_facts
from wsabie.workflows.report.headline import ModelVerdict, choose_list_length, format_headline, judge_main_model
from wsabie.workflows.report.number_format import (
    format_bytes,
    format_difference,
    format_duration,
    format_metric,
    format_milliseconds,
    singularise,
)
from wsabie.workflows.report.report_input import ReportInput


def render_header(report: ReportInput) -> Markup:
    """Render the title, the result in one sentence, and the main figures."""
    cards = build_element("ul", [_render_stat(*stat) for stat in _collect_stats(report)], class_="stats")
    eyebrow = f"wsabie report · {report.created}" if report.created else "wsabie report"
    return join_markup(
        build_element("p", eyebrow, class_="eyebrow"),
        build_element("h1", report.title),
        build_element("p", format_headline(report.comparison, report.main, report.things), class_="lead"),
        cards,
    )


def render_data_section(report: ReportInput) -> PageSection:
    """Render source, licence, counts and split."""
    counts, data = report.comparison.task.facts, report.data
    item_name = report.things
    pairs: list[tuple[str, Child]] = [
        ("Collection", data.name),
        ("Source", data.source),
        ("Licence", data.licence),
        ("Split", data.split),
        (item_name.capitalize(), _format_sides(report)),
        ("Labels", _format_vocabulary(report)),
        ("Training pairs", f"{counts.train_pairs:,} ({singularise(item_name)} and label)"),
        ("Test labels", _format_coverage(report)),
        ("Features", f"{counts.features:,}"),
        ("Fingerprint", join_markup(*_render_fingerprints(counts.fingerprint))),
    ]
    return PageSection("data", "Data", "What the data is", data.description, render_facts(pairs))


def render_provenance_section(report: ReportInput) -> PageSection:
    """Render command, parameters and versions."""
    comparison = report.comparison
    entry = comparison[report.main]
    parameters = {**entry.parameters, **report.parameters}
    parameter_list = render_facts(
        [(name, build_element("code", str(value))) for name, value in sorted(parameters.items())]
    )
    versions = render_facts([(name, value) for name, value in comparison.versions.items()])
    command = build_element("pre", build_element("code", report.command), tabindex=0) if report.command else None
    body = join_markup(
        command,
        build_element("h3", f"Parameters of the {entry.title}"),
        build_element("div", parameter_list, class_="columns"),
        build_element("h3", "Versions"),
        build_element("div", versions, class_="columns"),
    )
    intro = "The same command, versions and seed make the same model on the same kind of machine."
    return PageSection("again", "Reproduce", "How to make it again", intro if command else None, body)


def _collect_stats(report: ReportInput) -> list[tuple[str, str, str]]:
    """Return (figure, name, small print) of each main figure."""
    comparison, entry, k = report.comparison, report.comparison[report.main], choose_list_length(report.comparison)
    metric, base, unit = f"p@{k}", k if k > 1 else 100, "labels" if k > 1 else report.things
    interval = entry.intervals[metric]
    stats = [
        (
            f"{entry.evaluation.means[metric] * base:.1f} of {base}",
            "labels right" if k > 1 else f"{unit} with the first label right",
            f"95 % interval {interval.low * base:.1f}–{interval.high * base:.1f}",
        )
    ]
    verdict = judge_main_model(comparison, report.main, metric)
    if verdict is not None:
        low, high = (format_difference(end * base, 1) for end in (verdict.difference.low, verdict.difference.high))
        stats.append(
            (
                _format_gain(verdict, base),
                f"against {verdict.baseline.title}",
                f"{format_difference(verdict.difference.mean * base, 1)} of {base} {unit}, interval {low} to {high}",
            )
        )
    counts = comparison.task.facts
    ceiling = f"highest possible {metric}: {format_metric(comparison.ceilings[metric])}"
    return [
        *stats,
        (f"{counts.labels:,}", "labels to choose from", ceiling),
        (format_duration(entry.fit_seconds), "of training", f"on {counts.train_rows:,} {report.things}"),
        (
            format_bytes(entry.n_bytes),
            "of model",
            f"{format_milliseconds(entry.predict_ms)} per {singularise(report.things)}",
        ),
    ]


def _format_gain(verdict: ModelVerdict, base: int) -> str:
    """Return the difference in percent of the baseline; in labels or items if the baseline has none right."""
    if isfinite(verdict.relative):
        return f"{verdict.relative:+.0%}".replace("-", "−")
    return f"{format_difference(verdict.difference.mean * base, 1)} of {base}"


def _render_stat(value: str, name: str, small: str) -> Markup:
    return build_element(
        "li",
        build_element("strong", value),
        build_element("span", name),
        build_element("span", small, class_="small"),
    )


def _format_sides(report: ReportInput) -> str:
    counts = report.comparison.task.facts
    return f"{counts.train_rows:,} to train, {counts.valid_rows:,} to choose, {counts.test_rows:,} to judge"


def _format_vocabulary(report: ReportInput) -> str:
    counts = report.comparison.task.facts
    if counts.min_rows == 1:
        minimum, rare_labels = f"that have a training {singularise(report.things)}", "without one"
    else:
        minimum, rare_labels = f"with at least {counts.min_rows} training {report.things}", "rarer ones"
    dropped = f"; {counts.labels_dropped:,} {rare_labels} were left out" if counts.labels_dropped else ""
    return f"{counts.labels:,} {minimum}{dropped}"


def _format_coverage(report: ReportInput) -> str:
    counts = report.comparison.task.facts
    coverage = f"{counts.test_pairs_known:,} of {counts.test_pairs:,} are among those ({counts.coverage:.0%})"
    if not counts.test_rows_without:
        return coverage
    n_rows = counts.test_rows_without
    rows_without = (
        f"1 test {singularise(report.things)} has none and does"
        if n_rows == 1
        else f"{n_rows:,} test {report.things} have none and do"
    )
    return f"{coverage}; {rows_without} not count"


def _render_fingerprints(fingerprints: dict[str, str]) -> list[Child]:
    return [join_markup(f"{side} ", build_element("code", value), " ") for side, value in fingerprints.items()]
