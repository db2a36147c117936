"""The page around the sections: one file, no network, no script."""

from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from wsabie.studies.html.markup import Child, Markup, element, join

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class Section(NamedTuple):
    """A part of the page with its own heading.

    Attributes
    ----------
    anchor : str
        Its place in the page's address.
    short, heading : str
        In the list of contents, and above the section.
    intro : child
        What to look at, in a sentence or two.
    body : Markup
    """

    anchor: str
    short: str
    heading: str
    intro: Child
    body: Markup


def page(title: str, header: Markup, sections: Sequence[Section], footer: Child) -> str:
    """The whole file."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content="wsabie"),
        element("title", title),
        element("style", _css()),
    )
    body = element(
        "body",
        element("a", "To the results", href="#main", class_="skip"),
        element("header", header, _contents(sections), class_="top"),
        element("main", [_section(section) for section in sections], id="main"),
        element("footer", footer),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def chart(heading: str, drawing: Markup, caption: Child, *more: Child) -> Markup:
    """A chart with its heading above, legend or numbers below, and one plain sentence."""
    return element("figure", element("h3", heading), drawing, more, element("figcaption", caption), class_="chart")


def numbers(heads: Sequence[str], rows: Sequence[Sequence[str]], summary: str = "Numbers") -> Markup:
    """The figures of a chart as a table that opens on demand."""
    top = element("tr", [element("th", name, scope="col") for name in heads])
    lines = [
        element("tr", element("th", row[0], scope="row"), [element("td", cell) for cell in row[1:]]) for row in rows
    ]
    table = element("table", element("thead", top), element("tbody", lines), class_="plain")
    return element("details", element("summary", summary), element("div", table, class_="scroll"))


def facts(pairs: Sequence[tuple[str, Child]]) -> Markup:
    """Names and values, one below the other; empty values are left out."""
    lines = [
        element("div", element("dt", name), element("dd", value)) for name, value in pairs if value not in (None, "")
    ]
    return element("dl", lines, class_="facts")


def _contents(sections: Sequence[Section]) -> Markup | None:
    """Links to the sections, where there is more than one."""
    if len(sections) < 2:
        return None
    links = [element("li", element("a", s.short, href=f"#{s.anchor}")) for s in sections]
    return element("nav", element("ul", links), aria_label="Sections")


def _section(section: Section) -> Markup:
    intro = element("p", section.intro, class_="intro") if section.intro else None
    heading = element("h2", section.heading, id=f"{section.anchor}-heading")
    return element(
        "section",
        join(heading, intro, section.body),
        id=section.anchor,
        aria_labelledby=f"{section.anchor}-heading",
    )


def _css() -> Markup:
    """The style sheet, which holds no markup."""
    return Markup(files("wsabie.studies.html").joinpath("report.css").read_text(encoding="utf-8"))
