"""The page around the sections: one file, no network, no script."""

from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from wsabie.workflows.charts.html_markup import Child, Markup, build_element, join_markup

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class PageSection(NamedTuple):
    """A part of the page with its own heading.

    Attributes
    ----------
    anchor : str
        Its fragment in the page's address.
    short, heading : str
        In the list of contents, and above the section.
    intro : child
        One or two sentences.
    body : Markup
    """

    anchor: str
    short: str
    heading: str
    intro: Child
    body: Markup


def render_page(title: str, header: Markup, sections: Sequence[PageSection], footer: Child) -> str:
    """Render the complete file."""
    head = build_element(
        "head",
        build_element("meta", charset="utf-8"),
        build_element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        build_element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        build_element("meta", name="color-scheme", content="light dark"),
        build_element("meta", name="generator", content="wsabie"),
        build_element("title", title),
        build_element("style", _load_style_sheet()),
    )
    body = build_element(
        "body",
        build_element("a", "To the results", href="#main", class_="skip"),
        build_element("header", header, _render_contents(sections), class_="top"),
        build_element("main", [_render_section(section) for section in sections], id="main"),
        build_element("footer", footer),
    )
    return f"<!doctype html>\n{build_element('html', head, body, lang='en')}\n"


def render_chart(heading: str, drawing: Markup, caption: Child, *more: Child) -> Markup:
    """Render a chart with its heading, legend or numbers, and a caption."""
    return build_element(
        "figure", build_element("h3", heading), drawing, more, build_element("figcaption", caption), class_="chart"
    )


def render_number_table(heads: Sequence[str], rows: Sequence[Sequence[str]], summary: str = "Numbers") -> Markup:
    """Render the figures of a chart as a table that opens on demand."""
    top = build_element("tr", [build_element("th", name, scope="col") for name in heads])
    lines = [
        build_element("tr", build_element("th", row[0], scope="row"), [build_element("td", cell) for cell in row[1:]])
        for row in rows
    ]
    table = build_element("table", build_element("thead", top), build_element("tbody", lines), class_="plain")
    return build_element("details", build_element("summary", summary), build_element("div", table, class_="scroll"))


def render_facts(pairs: Sequence[tuple[str, Child]]) -> Markup:
    """Render names and values, one below the other, without empty values."""
    lines = [
        build_element("div", build_element("dt", name), build_element("dd", value))
        for name, value in pairs
        if value not in (None, "")
    ]
    return build_element("dl", lines, class_="facts")


def _render_contents(sections: Sequence[PageSection]) -> Markup | None:
    """Render links to the sections if there are several."""
    if len(sections) < 2:
        return None
    links = [build_element("li", build_element("a", s.short, href=f"#{s.anchor}")) for s in sections]
    return build_element("nav", build_element("ul", links), aria_label="Sections")


def _render_section(section: PageSection) -> Markup:
    intro = build_element("p", section.intro, class_="intro") if section.intro else None
    heading = build_element("h2", section.heading, id=f"{section.anchor}-heading")
    return build_element(
        "section",
        join_markup(heading, intro, section.body),
        id=section.anchor,
        aria_labelledby=f"{section.anchor}-heading",
    )


def _load_style_sheet() -> Markup:
    """Return the style sheet."""
    return Markup(files("wsabie.workflows.charts").joinpath("report.css").read_text(encoding="utf-8"))
