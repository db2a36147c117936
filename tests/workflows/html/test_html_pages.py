"""HTML pages: text from data never becomes markup."""

from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.workflows.charts.svg_charts import BarChart, BarGroup, ChartAxis, ChartSeries, LineChart
from wsabie.workflows.report.html_pages import (
    EncodedImage,
    encode_image,
    load_environment,
    render_page,
    replace_forbidden,
)

HOSTILE = '"><img src=x onerror=alert(1)></p><script>alert(2)</script>'


class Reader(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


def render_template(template: str, **values: Any) -> Reader:
    return Reader(replace_forbidden(load_environment().from_string(template).render(values)))


@given(st.text())
def test_any_text_is_read_back_as_text(value: str) -> None:
    page = render_template('<p title="{{ value }}">{{ value }}</p>', value=value)
    assert [tag for tag, _ in page.tags] == ["p"]
    allowed = "".join(c for c in value if c.isprintable() or c in "\n\t ")
    readable = "".join(c for c in page.words if c.isprintable() or c in "\n\t ").replace("\ufffd", "")
    assert readable == allowed.replace("\ufffd", "")
    assert set(page.tags[0][1]) == {"title"}


@given(st.text())
def test_any_text_stays_text_in_a_chart(value: str) -> None:
    chart = BarChart(value, [BarGroup(value, [1.0])], [value], value, ChartAxis(value), value)
    page = Reader(render_page("charts.svg", chart=chart))
    assert {tag for tag, _ in page.tags} == {"svg", "title", "text", "line", "rect", *(["desc"] if value else [])}
    assert set(page.tags[0][1]) == {"viewbox", "role", "aria-label", "class"}


def test_hostile_text_stays_inside_its_attribute_and_element() -> None:
    page = render_template(
        '{% from "macros.html" import label %}<p title="{{ text }}">{{ label(text) }}</p>', text=HOSTILE
    )
    assert page.tags == [("p", {"title": HOSTILE}), ("bdi", {"dir": "auto"})]
    assert page.words == HOSTILE


def test_hostile_chart_names_stay_text() -> None:
    chart = LineChart(
        HOSTILE, [ChartSeries(HOSTILE, [0], [1], style=i) for i in (0, -1)], ChartAxis("x"), ChartAxis("y")
    )
    page = render_template(
        '{% from "macros.html" import chart, number_row, number_table %}'
        "{% call chart(figure, text, text, figure.series) %}"
        "{% call number_table([text]) %}{{ number_row(text, [text]) }}{% endcall %}{% endcall %}",
        figure=chart,
        text=HOSTILE,
    )
    assert not {"img", "script"} & {tag for tag, _ in page.tags}
    assert page.words.count(HOSTILE) == 8  # the seven, and the title of the drawing


def test_forbidden_characters_are_replaced() -> None:
    assert replace_forbidden("a\x00b\x1bc\ud800\ufffe") == "a\ufffdb\ufffdc\ufffd\ufffd"
    assert replace_forbidden("line\nnext\ttab") == "line\nnext\ttab"
    replace_forbidden("\ud800").encode("utf-8")


def test_images_that_may_hold_scripts_are_refused() -> None:
    with pytest.raises(InputError, match="type 'image/svg"):
        encode_image(EncodedImage(b"<svg/>", "image/svg+xml"))
    assert encode_image(EncodedImage(b"a", "image/png")) == "data:image/png;base64,YQ=="
