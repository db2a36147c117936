"""Held-out pictures with the labels that the model gave them ([W] Table 9), and where it saw them."""

import base64
from collections.abc import Mapping, Sequence

from wsabie.base.errors import InputError
from wsabie.studies.html.markup import SIBLING, Markup, element, join, label
from wsabie.studies.html.page import Section
from wsabie.studies.html.words import one
from wsabie.studies.report_input import Example, HeatMap, Image, ReportInput, Suggestion

MIMES = ("image/webp", "image/png", "image/jpeg", "image/gif")
_MOST_TRUE = 120
"""True labels that a card lists; the rest is counted."""


def examples(given: ReportInput) -> Section | None:
    """Cards of pictures, each with its suggestions in order."""
    if not given.examples:
        return None
    sibling = element("span", SIBLING, "label", class_="chip sibling")
    key = element(
        "ul",
        element("li", element("span", _tick(), "label", class_="chip right"), f" given to this {one(given.things)}"),
        element("li", sibling, f" sibling of one: {given.siblings_note}") if given.siblings_note else None,
        element("li", element("span", "label", class_="chip miss"), " not given to it, though it may fit"),
        class_="key",
    )
    intro = join(
        f"None of these {given.things} were used in training. The labels stand in the order in which the model gave "
        "them; a label counts as right only when the people who labelled the collection gave it too. ",
        given.examples_note,
    )
    cards = element("ul", [_card(example, given.label_notes) for example in given.examples], class_="cards")
    return Section(
        "pictures", given.things.capitalize(), f"What it says about new {given.things}", intro, join(key, cards)
    )


def heat_maps(given: ReportInput) -> Section | None:
    """Pictures with the places that speak for a label."""
    shown = [example for example in given.examples if example.heat_maps]
    if not shown:
        return None
    body = element("ul", [_explained(example) for example in shown], class_="explained")
    intro = (
        "A score is a sum over the visual terms of the picture, and a term knows the places it was found at. Warm "
        "places speak for the label, cold places against it."
    )
    return Section("why", "Why this label?", "Where it sees a label", intro, body)


def picture(image: Image, alt: str, **attributes: object) -> Markup:
    """A picture inside the page.

    Raises
    ------
    InputError
        A type that browsers do not all show, or that could hold a script.
    """
    if image.mime not in MIMES:
        raise InputError(f"a picture of type {image.mime!r} cannot go into a report; use one of {', '.join(MIMES)}")
    data = base64.b64encode(image.content).decode("ascii")
    return element(
        "img", src=f"data:{image.mime};base64,{data}", alt=alt, loading="lazy", decoding="async", **attributes
    )


def _card(example: Example, notes: Mapping[str, str]) -> Markup:
    right = sum(s.right for s in example.suggestions)
    missed = _missed(example)
    return element(
        "li",
        element("div", picture(example.picture, example.title), class_="tile"),
        element(
            "div",
            element("h3", label(example.title)) if example.title else None,
            element("ol", [_chip(s, notes) for s in example.suggestions], class_="chips"),
            element("p", f"{right} of {len(example.suggestions)} right", class_="small"),
            _details(missed),
            class_="said",
        ),
        class_="card",
    )


def _chip(suggestion: Suggestion, notes: Mapping[str, str]) -> Markup:
    note = notes.get(suggestion.label)
    kind = "right" if suggestion.right else "sibling" if suggestion.sibling else "miss"
    return element(
        "li",
        {"right": _tick(), "sibling": SIBLING}.get(kind),
        label(suggestion.label),
        element("span", f", {kind}", class_="hidden") if kind != "miss" else None,
        class_=f"chip {kind}",
        title=f"score {suggestion.score:.3g}" + (f"; {note}" if note else ""),
    )


def _tick() -> Markup:
    return element("span", "✓", class_="tick-mark", aria_hidden="true")


def _missed(example: Example) -> list[str]:
    said = {s.label for s in example.suggestions}
    return [name for name in example.true_labels if name not in said]


def _details(missed: Sequence[str]) -> Markup | None:
    if not missed:
        return None
    names = [element("li", label(name), class_="chip true") for name in missed[:_MOST_TRUE]]
    more = len(missed) - len(names)
    rest = element("li", f"and {more:,} more", class_="small") if more else None
    words = f"{len(missed):,} more true label" + ("" if len(missed) == 1 else "s")
    return element("details", element("summary", words), element("ul", names, rest, class_="chips"))


def _explained(example: Example) -> Markup:
    plain = element(
        "figure",
        element("div", picture(example.picture, example.title), class_="tile"),
        element("figcaption", "the picture"),
    )
    return element("li", plain, [_heat(example, heat) for heat in example.heat_maps])


def _heat(example: Example, heat: HeatMap) -> Markup:
    alt = f"{example.title}: the places that speak for “{heat.label}”"
    score = "" if heat.score is None else f" {heat.score:.2f}"
    return element(
        "figure",
        element("div", picture(heat.picture, alt), class_="tile"),
        element("figcaption", element("strong", label(heat.label)), score),
    )
