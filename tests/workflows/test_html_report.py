"""The HTML report: self-contained, safe against its own data, and accessible."""

import io
import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from awkward_rows import NAMES
from PIL import Image as Pillow

from wsabie.core.errors import InputError
from wsabie.workflows.compare.comparison_table import Comparison, ModelOmission
from wsabie.workflows.report import html_report
from wsabie.workflows.report.html_pages import EncodedImage
from wsabie.workflows.report.html_report import (
    _quantile,
    choose_list_length,
    render_report,
    shrink_report_image,
    write_report,
)
from wsabie.workflows.report.report_input import HeatMap, ReportInput, build_examples, build_neighbourhoods

HOSTILE = '<img src=x onerror="alert(1)">'
VOID = {"meta", "img", "br", "link", "input", "hr", "wbr"}


class Page(HTMLParser):
    """Every element with its attributes, and whether all of them close in order."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def find_tags(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def encode_small_picture(side: int = 8, mime: str = "PNG") -> bytes:
    out = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 255, (side, side, 3), dtype=np.uint8)
    Pillow.fromarray(noise).save(out, mime)
    return out.getvalue()


@pytest.fixture(scope="module")
def full(comparison: Comparison) -> ReportInput:
    """Every section, with hostile words wherever words come from data."""
    entry, test = comparison["wsabie"], comparison.task.test
    picture = EncodedImage(encode_small_picture(), "image/png")
    cards = build_examples(entry, test, range(6), lambda row: picture, title=lambda row: f"{HOSTILE} {row}")
    cards[0] = replace(cards[0], heat_maps=[HeatMap(HOSTILE, picture, 1.5)])
    return ReportInput(
        HOSTILE,
        replace(comparison, skipped=[ModelOmission("x", HOSTILE, HOSTILE)]),
        modality="pictures",
        description=HOSTILE,
        data=dict.fromkeys(("Collection", "Source", "Licence", "Split"), HOSTILE),
        history=entry.model.history_,
        examples=cards,
        examples_note=HOSTILE,
        neighbours=build_neighbourhoods(entry, NAMES, 3),
        label_notes=dict.fromkeys(NAMES, HOSTILE),
        parameters={"note": HOSTILE},
        command=f"wsabie demo {HOSTILE}",
        created="2024-05-31",
    )


@pytest.fixture(scope="module")
def page(full: ReportInput) -> Page:
    return Page(render_report(full))


def test_words_from_data_never_become_markup(page: Page) -> None:
    tags = {tag for tag, _ in page.elements}
    assert "script" not in tags
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert all((image["src"] or "").startswith("data:image/png;base64,") for image in page.find_tags("img"))
    assert HOSTILE in page.words
    assert "".join(page.words).count("<script>alert(1)</script>") >= 2  # the label's name, as words


def test_ties_at_the_cut_are_reported_for_every_model(comparison: Comparison, page: Page) -> None:
    note = next(words for words in page.words if words.startswith("Rows with tied labels at the cut after"))
    k = choose_list_length(comparison)
    for entry in comparison.entries:
        assert f"{entry.title} {entry.evaluation.tied_at_cut[k]:,}" in note
    assert note.endswith(f"of {comparison.entries[0].evaluation.n_rows:,}. Ties count as in a random order.")


def test_every_element_is_closed_in_order(page: Page) -> None:
    assert page.open == []


def test_page_loads_nothing(full: ReportInput, page: Page) -> None:
    html = render_report(full)
    assert not re.search(r"(?:src|href|url)\s*[=(]\s*[\"']?(?!data:|#)[a-z/]", re.sub(re.escape("src=x"), "", html))
    assert "@import" not in html
    assert page.find_tags("link") == page.find_tags("iframe") == page.find_tags("object") == []
    (policy,) = [m for m in page.find_tags("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in (policy["content"] or "")
    assert all((link["href"] or "").startswith("#") for link in page.find_tags("a"))


def test_links_lead_to_existing_sections_and_ids_are_unique(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert {(link["href"] or "")[1:] for link in page.find_tags("a")} <= set(ids)
    assert len(page.find_tags("section")) == 8
    assert {section["aria-labelledby"] for section in page.find_tags("section")} <= set(ids)


def test_pictures_and_charts_have_texts_and_headings_skip_no_level(page: Page) -> None:
    assert all(image["alt"] for image in page.find_tags("img"))
    charts = [svg for svg in page.find_tags("svg") if svg.get("class") == "chart"]
    assert len(charts) >= 7
    assert all(svg["role"] == "img" and svg["aria-label"] for svg in charts)
    assert all(svg.get("aria-hidden") for svg in page.find_tags("svg") if svg.get("class") != "chart")
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    assert page.find_tags("html")[0]["lang"] == "en"


def test_labels_keep_their_writing_direction(full: ReportInput) -> None:
    html = render_report(full)
    assert '<bdi dir="auto">שמש</bdi>' in html
    assert '<bdi dir="auto">مطر غزير</bdi>' in html


def test_true_labels_are_marked_without_colour(full: ReportInput) -> None:
    html = render_report(full)
    right = sum(s.right for example in full.examples for s in example.suggestions)
    assert right > 0
    assert html.count('class="chip right"') == right + 1  # and the one in the key
    assert html.count(">, right</span>") == right


def test_page_supports_phones_and_dark_mode(full: ReportInput) -> None:
    html = render_report(full)
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in html
    assert "prefers-color-scheme: dark" in html
    assert "max-width: 760px" in html


def test_wide_tables_scroll_in_their_own_boxes(full: ReportInput) -> None:
    """Or the page is wider than the window."""
    html = render_report(full)
    boxes = re.findall(r"<(\w+)([^>]*)><table", html)
    assert len(boxes) == html.count("<table") > 3
    assert all(tag == "div" and 'class="scroll"' in attributes for tag, attributes in boxes)
    assert len(re.findall(r'class="scroll" tabindex="0" role="region" aria-label="Models"><table', html)) == 1


def test_metrics_are_those_of_the_comparison(full: ReportInput) -> None:
    words = "|".join(Page(render_report(full)).words)
    for entry in full.comparison.entries:
        for metric in full.comparison.metrics:
            assert f"{entry.evaluation.means[metric]:.3f}" in words
    for value in full.comparison.task.facts.fingerprint.values():
        assert value in words
    assert "2024-05-31" in words
    assert f"numpy|{np.__version__}" in words


def test_missing_input_has_no_section(comparison: Comparison) -> None:
    bare = Page(render_report(ReportInput("A title", comparison)))
    headings = [section["id"] for section in bare.find_tags("section")]
    assert headings == ["models", "rare", "data", "again"]
    assert bare.open == []
    assert bare.find_tags("img") == []


def test_comparison_without_baselines_is_reported(comparison: Comparison) -> None:
    without_baselines = replace(comparison, entries=[replace(comparison["wsabie"], differences={})])
    assert Page(render_report(ReportInput("A title", without_baselines))).open == []


def test_report_is_about_the_first_model_that_is_no_baseline(comparison: Comparison) -> None:
    assert "With WARP embedding, " in render_report(ReportInput("t", comparison))
    baselines = replace(comparison, entries=[comparison["nearest"], comparison["popularity"]])
    assert "With k nearest neighbours, " in render_report(ReportInput("t", baselines))
    only = replace(comparison, entries=[comparison["popularity"]])
    assert "With most frequent labels, " in render_report(ReportInput("t", only))


def test_one_epoch_without_validation_is_reported(comparison: Comparison) -> None:
    history = [replace(comparison["wsabie"].model.history_[0], validation=None, rank_histogram=[])]
    page = Page(render_report(ReportInput("A title", comparison, history=history)))
    assert "Quality on validation rows" not in page.words
    assert "Loss" in page.words


def test_report_is_small_and_written_atomically(full: ReportInput, tmp_path: Path) -> None:
    written = write_report(tmp_path / "deep" / "report.html", full)
    content = (tmp_path / "deep" / "report.html").read_bytes()
    assert len(content) == written < 400_000
    assert content.startswith(b"<!doctype html>")
    assert content.decode("utf-8") == render_report(full)


def test_large_pictures_are_scaled_and_excess_ones_dropped(full: ReportInput, monkeypatch: pytest.MonkeyPatch) -> None:
    large = EncodedImage(encode_small_picture(700), "image/png")
    small = shrink_report_image(large)
    assert len(small.content) < len(large.content) / 10
    with Pillow.open(io.BytesIO(small.content)) as opened:
        assert max(opened.size) == 320
        assert opened.format == "WEBP"
    assert shrink_report_image(EncodedImage(encode_small_picture(), "image/png")).mime == "image/png"
    monkeypatch.setattr(html_report, "PICTURE_BYTES", 4 * len(encode_small_picture()))
    page = Page(render_report(full))
    words = " ".join(page.words)
    assert len(page.find_tags("img")) == 5  # the first example: a card, the plain picture, its heat map; then two cards
    assert "3 more were left out to keep this file small" in words


def test_bad_input_gives_one_sentence(full: ReportInput, comparison: Comparison) -> None:
    def with_picture(image: EncodedImage) -> Any:
        return replace(full, examples=[replace(full.examples[0], picture=image, heat_maps=[])])

    with pytest.raises(InputError, match="type 'image/svg"):
        render_report(with_picture(EncodedImage(b"<svg/>", "image/svg+xml")))
    with pytest.raises(InputError, match="cannot be read"):
        render_report(with_picture(EncodedImage(b"no picture" * 10_000)))
    skipped = replace(comparison, entries=[], skipped=[ModelOmission("space", "Space", "it was too large")])
    with pytest.raises(InputError, match="no model took part in the comparison: it was too large"):
        render_report(ReportInput("t", skipped))
    with pytest.raises(InputError, match="no model took part in the comparison"):
        render_report(ReportInput("t", replace(comparison, entries=[])))
    with pytest.raises(InputError, match="cannot write"):
        write_report("/proc/no/report.html", full)


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ({}, ["6 that have a training picture", "(100%)"]),
        ({"labels_dropped": 1234}, ["6 that have a training picture; 1,234 without one were left out"]),
        (
            {"min_rows": 2, "labels_dropped": 3, "test_rows_unlabelled": 1},
            ["6 with at least 2 training pictures; 3 rarer ones were left out", "1 test picture has none and does not"],
        ),
        ({"test_rows_unlabelled": 2000}, ["; 2,000 test pictures have none and do not count"]),
    ],
)
def test_ignored_labels_and_rows_are_reported(
    comparison: Comparison, changes: dict[str, int], sentences: list[str]
) -> None:
    task = replace(comparison.task, facts=replace(comparison.task.facts, **changes))
    html = render_report(ReportInput("t", replace(comparison, task=task), modality="pictures"))
    for sentence in sentences:
        assert sentence in html


def test_quantile_of_powers_of_two() -> None:
    """Each bin counts as evenly filled."""
    assert (_quantile([0, 10, 10], 0.5), _quantile([0, 10, 10], 0.25)) == (2.0, 1.5)
