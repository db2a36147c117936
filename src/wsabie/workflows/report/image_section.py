"""Test images with the model's labels (Weston et al. 2010, Table 9), and heat maps of single labels."""

import base64
from collections.abc import Mapping, Sequence

from wsabie.core.errors import InputError
from wsabie.workflows.charts.html_markup import SIBLING, Markup, build_element, build_label, join_markup
from wsabie.workflows.charts.html_page import PageSection
from wsabie.workflows.report.number_format import singularise
from wsabie.workflows.report.report_input import EncodedImage, HeatMap, ReportExample, ReportInput, Suggestion

MIMES = ("image/webp", "image/png", "image/jpeg", "image/gif")
_MAX_TRUE_LABELS = 120
"""True labels that a card lists; the remaining ones are counted."""


def render_examples_section(report: ReportInput) -> PageSection | None:
    """Render cards of images, each with its suggestions in order."""
    if not report.examples:
        return None
    sibling = build_element("span", SIBLING, "label", class_="chip sibling")
    legend = build_element(
        "ul",
        build_element(
            "li",
            build_element("span", _render_tick(), "label", class_="chip right"),
            f" given to this {singularise(report.things)}",
        ),
        build_element("li", sibling, f" sibling of one: {report.siblings_note}") if report.siblings_note else None,
        build_element("li", build_element("span", "label", class_="chip miss"), " not given to it, though it may fit"),
        class_="key",
    )
    intro = join_markup(
        f"None of these {report.things} were used in training. The labels stand in the order in which the model gave "
        "them; a label counts as right only when the people who labelled the collection gave it too. ",
        report.examples_note,
    )
    cards = build_element(
        "ul", [_render_card(example, report.label_notes) for example in report.examples], class_="cards"
    )
    return PageSection(
        "pictures",
        report.things.capitalize(),
        f"What it says about new {report.things}",
        intro,
        join_markup(legend, cards),
    )


def render_heat_map_section(report: ReportInput) -> PageSection | None:
    """Render images with the places that speak for a label."""
    examples = [example for example in report.examples if example.heat_maps]
    if not examples:
        return None
    body = build_element("ul", [_render_heat_maps(example) for example in examples], class_="explained")
    intro = (
        "A score is a sum over the visual terms of the picture, and a term knows the places it was found at. Warm "
        "places speak for the label, cold places against it."
    )
    return PageSection("why", "Why this label?", "Where it sees a label", intro, body)


def embed_image(image: EncodedImage, alt: str, **attributes: object) -> Markup:
    """Embed an image in the page.

    Raises
    ------
    InputError
        A type that some browsers do not show, or that could hold a script.
    """
    if image.mime not in MIMES:
        raise InputError(f"a picture of type {image.mime!r} cannot go into a report; use one of {', '.join(MIMES)}")
    data = base64.b64encode(image.content).decode("ascii")
    return build_element(
        "img", src=f"data:{image.mime};base64,{data}", alt=alt, loading="lazy", decoding="async", **attributes
    )


def _render_card(example: ReportExample, notes: Mapping[str, str]) -> Markup:
    right = sum(suggestion.right for suggestion in example.suggestions)
    missed = _list_missed_labels(example)
    return build_element(
        "li",
        build_element("div", embed_image(example.picture, example.title), class_="tile"),
        build_element(
            "div",
            build_element("h3", build_label(example.title)) if example.title else None,
            build_element(
                "ol", [_render_chip(suggestion, notes) for suggestion in example.suggestions], class_="chips"
            ),
            build_element("p", f"{right} of {len(example.suggestions)} right", class_="small"),
            _render_missed_labels(missed),
            class_="said",
        ),
        class_="card",
    )


def _render_chip(suggestion: Suggestion, notes: Mapping[str, str]) -> Markup:
    note = notes.get(suggestion.label)
    kind = "right" if suggestion.right else "sibling" if suggestion.sibling else "miss"
    return build_element(
        "li",
        {"right": _render_tick(), "sibling": SIBLING}.get(kind),
        build_label(suggestion.label),
        build_element("span", f", {kind}", class_="hidden") if kind != "miss" else None,
        class_=f"chip {kind}",
        title=f"score {suggestion.score:.3g}" + (f"; {note}" if note else ""),
    )


def _render_tick() -> Markup:
    return build_element("span", "✓", class_="tick-mark", aria_hidden="true")


def _list_missed_labels(example: ReportExample) -> list[str]:
    suggested = {suggestion.label for suggestion in example.suggestions}
    return [name for name in example.true_labels if name not in suggested]


def _render_missed_labels(missed: Sequence[str]) -> Markup | None:
    if not missed:
        return None
    names = [build_element("li", build_label(name), class_="chip true") for name in missed[:_MAX_TRUE_LABELS]]
    n_more = len(missed) - len(names)
    remainder = build_element("li", f"and {n_more:,} more", class_="small") if n_more else None
    summary = f"{len(missed):,} more true label" + ("" if len(missed) == 1 else "s")
    return build_element(
        "details", build_element("summary", summary), build_element("ul", names, remainder, class_="chips")
    )


def _render_heat_maps(example: ReportExample) -> Markup:
    plain = build_element(
        "figure",
        build_element("div", embed_image(example.picture, example.title), class_="tile"),
        build_element("figcaption", "the picture"),
    )
    return build_element("li", plain, [_render_heat_map(example, heat) for heat in example.heat_maps])


def _render_heat_map(example: ReportExample, heat: HeatMap) -> Markup:
    alt = f"{example.title}: the places that speak for “{heat.label}”"
    score = "" if heat.score is None else f" {heat.score:.2f}"
    return build_element(
        "figure",
        build_element("div", embed_image(heat.picture, alt), class_="tile"),
        build_element("figcaption", build_element("strong", build_label(heat.label)), score),
    )
