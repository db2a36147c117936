"""Nothing that comes from data becomes markup."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.workflows.charts.html_markup import Markup, build_element, build_label, escape_text, join_markup


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


@given(st.text())
def test_any_text_is_read_back_as_text(value: str) -> None:
    found = Reader(build_element("p", value, title=value))
    assert [tag for tag, _ in found.tags] == ["p"]
    allowed = "".join(c for c in value if c.isprintable() or c in "\n\t ")
    readable = "".join(c for c in found.words if c.isprintable() or c in "\n\t ").replace("\ufffd", "")
    assert readable == allowed.replace("\ufffd", "")
    assert set(found.tags[0][1]) == {"title"}


def test_hostile_text_stays_inside_its_attribute_and_element() -> None:
    hostile = '"><img src=x onerror=alert(1)></p><script>alert(2)</script>'
    found = Reader(build_element("p", build_label(hostile), title=hostile))
    assert found.tags == [("p", {"title": hostile}), ("bdi", {"dir": "auto"})]
    assert found.words == hostile


def test_characters_that_html_forbids_are_replaced() -> None:
    assert escape_text("a\x00b\x1bc\ud800\ufffe") == "a\ufffdb\ufffdc\ufffd\ufffd"
    assert escape_text("line\nnext\ttab") == "line\nnext\ttab"
    escape_text("\ud800").encode("utf-8")


def test_attributes_and_children() -> None:
    made = build_element("a", "x", None, [1, Markup("<b>y</b>")], href="#here", hidden=False, data_name="n", class_="c")
    assert made == '<a href="#here" data-name="n" class="c">x1<b>y</b></a>'
    assert build_element("img", alt="") == '<img alt="">'
    assert join_markup(["a", ["b"]], Markup("&amp;")) == "ab&amp;"


@pytest.mark.parametrize("name", ["a b", "on>", "", "1a", 'x"'])
def test_names_never_come_from_data(name: str) -> None:
    with pytest.raises(ValueError, match="no name of a tag"):
        build_element(name)
    with pytest.raises(ValueError, match="no name of a tag"):
        build_element("p", **{name: "value"})
