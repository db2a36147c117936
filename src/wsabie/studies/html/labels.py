"""The labels themselves: who stands beside whom ([W] Table 4), and whether rare ones are found."""

from collections.abc import Mapping

from wsabie.evaluation.frequency import FrequencyBin, by_frequency
from wsabie.studies.charts import Bars, bar_chart, legend
from wsabie.studies.comparison import Entry
from wsabie.studies.headline import list_length
from wsabie.studies.html import words
from wsabie.studies.html.markup import SIBLING, Markup, element, join, label
from wsabie.studies.html.page import Section, chart, numbers
from wsabie.studies.html.svg import Axis
from wsabie.studies.html.words import figure, one, span
from wsabie.studies.report_input import Neighbourhood, ReportInput


def neighbours(given: ReportInput) -> Section | None:
    """Cards of labels with the labels nearest to them."""
    if not given.neighbours:
        return None
    cards = [_near(near, given.label_notes) for near in given.neighbours]
    intro = join(
        f"Labels that fit the same {given.things} end up side by side, whatever they are called: translations, "
        "synonyms, spellings and relatives find each other without a dictionary. The number is the cosine of the "
        "angle between two labels; 1 is the same direction. ",
        given.neighbours_note,
        [" Labels marked ", SIBLING, f" are known siblings: {given.siblings_note}."] if given.siblings_note else None,
    )
    return Section(
        "labels", "Nearest labels", "Which labels it takes for alike", intro, element("ul", cards, class_="near")
    )


def frequency(given: ReportInput) -> Section | None:
    """How well rare and frequent labels are found, by the main model and the best baseline."""
    comparison = given.comparison
    main = comparison[given.main]
    metric = f"p@{list_length(comparison)}"
    baseline = comparison.best(metric, baselines=True)
    entries = [main] + ([baseline] if baseline is not None and baseline is not main else [])
    bands = [by_frequency(entry.evaluation.labels, comparison.task.counts) for entry in entries]
    shown = [i for i, band in enumerate(bands[0]) if band.n_rows]
    if len(shown) < 2:
        return None
    bands = [[band[i] for i in shown] for band in bands]
    drawing = _frequency_chart(given, entries, bands)
    rows = [
        [span(b[0].low, b[0].high), f"{b[0].n_labels:,}", *(figure(band.recall) for band in b)]
        for b in zip(*bands, strict=True)
    ]
    table = numbers([f"training {given.things}", "labels", *(e.title for e in entries)], rows)
    k = main.evaluation.labels.k
    caption = (
        f"How often a label that belongs to a {one(given.things)} is among the first {k} suggestions, for labels with "
        f"few training {given.things} (left) and many (right); every label counts once."
    )
    body = chart(
        f"Found among the first {k}",
        drawing,
        caption,
        legend([(e.title, i) for i, e in enumerate(entries)], bars=True),
        table,
    )
    intro = (
        "Most labels of a large vocabulary are rare. A model that only repeats the frequent ones shows it here."
        + _behind(given, entries, bands)
    )
    charts = element("div", body, _counts_chart(given, bands[0]), class_="charts")
    return Section("rare", "Rare labels", "Does it find rare labels?", intro, charts)


def _behind(given: ReportInput, entries: list[Entry], bands: list[list[FrequencyBin]]) -> str:
    """A sentence that names the labels for which the baseline finds more; empty where it does nowhere."""
    if len(entries) < 2:
        return ""
    worse = [ours for ours, theirs in zip(*bands, strict=True) if theirs.recall > ours.recall]
    if not worse:
        return ""
    listed = [span(band.low, band.high) for band in worse]
    ranges = " and ".join(filter(None, [", ".join(listed[:-1]), listed[-1]]))
    where = f"band {ranges}" if len(worse) == 1 else f"bands {ranges}"
    return f" {entries[1].title} finds more than {entries[0].title} in the {where} of training {given.things}."


def _frequency_chart(given: ReportInput, entries: list[Entry], bands: list[list[FrequencyBin]]) -> Markup:
    groups = [
        Bars(entry.title, [b.recall for b in band], i)
        for i, (entry, band) in enumerate(zip(entries, bands, strict=True))
    ]
    first = bands[0]
    return bar_chart(
        groups,
        words.bands([b.low for b in first], [b.high for b in first]),
        f"training {given.things} that carry the label",
        Axis("share found"),
        title="Label frequency against accuracy",
        description=f"From labels with {first[0].low} to labels with {first[-1].high} training {given.things}.",
    )


def _counts_chart(given: ReportInput, bands: list[FrequencyBin]) -> Markup:
    title = "How many labels are how frequent"
    drawing = bar_chart(
        [Bars("labels", [b.n_labels for b in bands], 3)],
        words.bands([b.low for b in bands], [b.high for b in bands]),
        f"training {given.things} that carry the label",
        Axis("labels"),
        title=title,
        description=f"{bands[0].n_labels:,} labels have {span(bands[0].low, bands[0].high)} training {given.things}.",
    )
    caption = (
        f"The labels that a {one(given.things)} may be given, by the number of training {given.things} behind them."
    )
    return chart(title, drawing, caption)


def _near(near: Neighbourhood, notes: Mapping[str, str]) -> Markup:
    rows = [
        element(
            "li",
            _name(name, notes.get(name), sibling=name in near.siblings),
            element("span", figure(cosine, 2), class_="cosine"),
            style=f"--cosine:{min(max(cosine, 0.0), 1.0):.3f}",
        )
        for name, cosine in near.near
    ]
    head = element("h3", label(near.label), _note(notes.get(near.label)))
    return element("li", head, element("ol", rows), class_="card")


def _name(name: str, note: str | None, *, sibling: bool) -> Markup:
    if not sibling:
        return element("span", label(name), _note(note), class_="name")
    spoken = element("span", ", sibling", class_="hidden")
    return element("span", SIBLING, label(name), spoken, _note(note), class_="name sibling")


def _note(note: str | None) -> Markup | None:
    return element("span", note, class_="note") if note else None
