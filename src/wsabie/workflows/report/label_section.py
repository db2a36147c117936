"""Label sections: the nearest labels (as Weston et al. 2010, Table 4), and accuracy on rare labels."""

from collections.abc import Mapping

from wsabie.evaluation.label_frequency import FrequencyBin, group_by_frequency
from wsabie.workflows.charts.chart_types import BarGroup, draw_bar_chart, draw_legend
from wsabie.workflows.charts.html_markup import SIBLING, Markup, build_element, build_label, join_markup
from wsabie.workflows.charts.html_page import PageSection, render_chart, render_number_table
from wsabie.workflows.charts.svg_elements import ChartAxis
from wsabie.workflows.compare.comparison import ModelEntry
from wsabie.workflows.report import number_format
from wsabie.workflows.report.headline import choose_list_length
from wsabie.workflows.report.number_format import format_metric, format_range, singularise
from wsabie.workflows.report.report_input import Neighbourhood, ReportInput


def render_neighbours_section(report: ReportInput) -> PageSection | None:
    """Render cards of labels with their nearest labels."""
    if not report.neighbours:
        return None
    cards = [_render_neighbourhood(neighbourhood, report.label_notes) for neighbourhood in report.neighbours]
    intro = join_markup(
        f"Labels that fit the same {report.things} end up side by side, whatever they are called: translations, "
        "synonyms, spellings and relatives find each other without a dictionary. The number is the cosine of the "
        "angle between two labels; 1 is the same direction. ",
        report.neighbours_note,
        [" Labels marked ", SIBLING, f" are known siblings: {report.siblings_note}."] if report.siblings_note else None,
    )
    return PageSection(
        "labels", "Nearest labels", "Which labels it takes for alike", intro, build_element("ul", cards, class_="near")
    )


def render_frequency_section(report: ReportInput) -> PageSection | None:
    """Render the accuracy on rare and frequent labels of the main model and the best baseline."""
    comparison = report.comparison
    main = comparison[report.main]
    metric = f"p@{choose_list_length(comparison)}"
    baseline = comparison.best(metric, baselines=True)
    entries = [main] + ([baseline] if baseline is not None and baseline is not main else [])
    bands = [group_by_frequency(entry.evaluation.labels, comparison.task.counts) for entry in entries]
    non_empty = [i for i, band in enumerate(bands[0]) if band.n_rows]
    if len(non_empty) < 2:
        return None
    bands = [[band[i] for i in non_empty] for band in bands]
    drawing = _draw_frequency_chart(report, entries, bands)
    rows = [
        [
            format_range(bins[0].low, bins[0].high),
            f"{bins[0].n_labels:,}",
            *(format_metric(band.recall) for band in bins),
        ]
        for bins in zip(*bands, strict=True)
    ]
    table = render_number_table([f"training {report.things}", "labels", *(e.title for e in entries)], rows)
    list_length = main.evaluation.labels.k
    caption = (
        f"How often a label that belongs to a {singularise(report.things)} is among the first {list_length} "
        "suggestions, for "
        "labels with "
        f"few training {report.things} (left) and many (right); every label counts once."
    )
    body = render_chart(
        f"Found among the first {list_length}",
        drawing,
        caption,
        draw_legend([(e.title, i) for i, e in enumerate(entries)], bars=True),
        table,
    )
    intro = (
        "Most labels of a large vocabulary are rare. A model that only repeats the frequent ones shows it here."
        + _name_weak_bands(report, entries, bands)
    )
    charts = build_element("div", body, _draw_counts_chart(report, bands[0]), class_="charts")
    return PageSection("rare", "Rare labels", "Does it find rare labels?", intro, charts)


def _name_weak_bands(report: ReportInput, entries: list[ModelEntry], bands: list[list[FrequencyBin]]) -> str:
    """Return a sentence that names the labels that the baseline finds more often; empty if there are none."""
    if len(entries) < 2:
        return ""
    worse = [main_bin for main_bin, baseline_bin in zip(*bands, strict=True) if baseline_bin.recall > main_bin.recall]
    if not worse:
        return ""
    listed = [format_range(band.low, band.high) for band in worse]
    ranges = " and ".join(filter(None, [", ".join(listed[:-1]), listed[-1]]))
    range_text = f"band {ranges}" if len(worse) == 1 else f"bands {ranges}"
    return f" {entries[1].title} finds more than {entries[0].title} in the {range_text} of training {report.things}."


def _draw_frequency_chart(report: ReportInput, entries: list[ModelEntry], bands: list[list[FrequencyBin]]) -> Markup:
    groups = [
        BarGroup(entry.title, [frequency_bin.recall for frequency_bin in band], i)
        for i, (entry, band) in enumerate(zip(entries, bands, strict=True))
    ]
    first = bands[0]
    return draw_bar_chart(
        groups,
        number_format.format_bands(
            [frequency_bin.low for frequency_bin in first], [frequency_bin.high for frequency_bin in first]
        ),
        f"training {report.things} that carry the label",
        ChartAxis("share found"),
        title="Label frequency against accuracy",
        description=f"From labels with {first[0].low} to labels with {first[-1].high} training {report.things}.",
    )


def _draw_counts_chart(report: ReportInput, bands: list[FrequencyBin]) -> Markup:
    title = "How many labels are how frequent"
    drawing = draw_bar_chart(
        [BarGroup("labels", [frequency_bin.n_labels for frequency_bin in bands], 3)],
        number_format.format_bands(
            [frequency_bin.low for frequency_bin in bands], [frequency_bin.high for frequency_bin in bands]
        ),
        f"training {report.things} that carry the label",
        ChartAxis("labels"),
        title=title,
        description=f"{bands[0].n_labels:,} labels have {format_range(bands[0].low, bands[0].high)} training "
        f"{report.things}.",
    )
    caption = (
        f"The labels that a {singularise(report.things)} may be given, by the number of training {report.things} "
        "behind them."
    )
    return render_chart(title, drawing, caption)


def _render_neighbourhood(neighbourhood: Neighbourhood, notes: Mapping[str, str]) -> Markup:
    rows = [
        build_element(
            "li",
            _render_name(name, notes.get(name), sibling=name in neighbourhood.siblings),
            build_element("span", format_metric(cosine, 2), class_="cosine"),
            style=f"--cosine:{min(max(cosine, 0.0), 1.0):.3f}",
        )
        for name, cosine in neighbourhood.near
    ]
    head = build_element("h3", build_label(neighbourhood.label), _render_note(notes.get(neighbourhood.label)))
    return build_element("li", head, build_element("ol", rows), class_="card")


def _render_name(name: str, note: str | None, *, sibling: bool) -> Markup:
    if not sibling:
        return build_element("span", build_label(name), _render_note(note), class_="name")
    spoken = build_element("span", ", sibling", class_="hidden")
    return build_element("span", SIBLING, build_label(name), spoken, _render_note(note), class_="name sibling")


def _render_note(note: str | None) -> Markup | None:
    return build_element("span", note, class_="note") if note else None
