"""Training figures of the report: a curve for every metric, and all values as tables."""

import re
from dataclasses import replace
from typing import Any

import pytest

from wsabie.workflows.compare.comparison_table import Comparison
from wsabie.workflows.report.html_report import render_report
from wsabie.workflows.report.report_input import ReportInput


def render_body(comparison: Comparison, history: Any) -> str:
    page = render_report(ReportInput("t", comparison, history=history))
    return page.partition('<section id="training"')[2].partition("</section>")[0]


def list_headings(html: str) -> list[str]:
    return re.findall(r"<h3>(.*?)</h3>", html)


def read_table_rows(html: str, summary: str) -> list[list[str]]:
    """The cells of the table below a summary."""
    table = html.partition(f"<summary>{summary}</summary>")[2].partition("</table>")[0]
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line) for line in table.split("<tr>")[1:]]


@pytest.fixture(scope="module")
def history(comparison: Comparison) -> Any:
    """With a figure of a shorter list beside that of all six labels, which says nothing."""
    epochs = comparison["wsabie"].model.history_
    assert list(epochs[0].validation_metrics) == ["MAP", "p@6"]
    return [replace(epoch, validation_metrics={**epoch.validation_metrics, "p@5": 0.25}) for epoch in epochs]


def test_every_metric_has_a_curve(comparison: Comparison, history: Any) -> None:
    assert list_headings(render_body(comparison, history)) == [
        "Quality on validation rows",
        "p@5 on validation rows",
        "Loss",
        "Violations",
        "Search",
        "Estimated ranks by epoch",
        "Estimated ranks",
        "Speed",
        "Memory traffic",
    ]


def test_every_epoch_is_in_the_tables(comparison: Comparison, history: Any) -> None:
    html = render_body(comparison, history)
    heads, *lines = read_table_rows(html, "Every epoch")
    assert heads[:3] == ["epoch", "MAP", "p@5"]
    assert len(lines) == len(history)
    for line, stats in zip(lines, history, strict=True):
        cells = dict(zip(heads, line, strict=True))
        assert cells["MAP"] == f"{stats.validation:.3f}"
        assert cells["pairs/s"] == f"{stats.pairs_per_second:,.0f}"
        assert cells["GB/s"] == f"{stats.bytes_per_second / 1e9:.2f}"
    _, *shares = read_table_rows(html, "Estimated ranks of every epoch, % of steps")
    for line, stats in zip(shares, history, strict=True):
        counts = stats.rank_histogram
        assert line[1 : 1 + len(counts)] == [f"{100 * n / sum(counts):.1f}" for n in counts]


def test_rates_have_decimal_units(comparison: Comparison, history: Any) -> None:
    same = replace(history[0], bytes_per_second=2.5e9, pairs_per_second=40_000.0)
    html = render_body(comparison, [same, replace(same, epoch=1)])
    assert "GB/s" in html
    assert "Memory traffic by epoch. From 2.5 in epoch 1 to 2.5 in epoch 2." in html
    assert ">40k</text>" in html


def test_median_rank_is_drawn_on_powers_of_two(comparison: Comparison, history: Any) -> None:
    many = [replace(history[0], rank_histogram=h) for h in ([0] * 16 + [10], [0, 0, 10])]
    html = render_body(comparison, many)
    assert "Median from 92682 in epoch 1 to 6 in epoch 2." in html  # the middles, 2^16.5 and 2^2.5
    assert ">4,096</text>" in html


def test_missing_metrics_are_left_out(comparison: Comparison, history: Any) -> None:
    old = replace(history[0], validation_metrics={})
    assert list_headings(render_body(comparison, [old]))[:2] == ["Quality on validation rows", "Loss"]
    bare = replace(old, validation=None, rank_histogram=[])
    html = render_body(comparison, [bare])
    assert list_headings(html) == ["Loss", "Violations", "Search", "Speed", "Memory traffic"]
    assert "of steps" not in html
    assert not render_body(comparison, [])
