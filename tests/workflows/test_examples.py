"""Examples over the whole range of quality, and nearest labels."""

from dataclasses import replace

import numpy as np

from wsabie.vocabulary.label_similarity import SiblingSimilarity
from wsabie.workflows.compare.comparison_table import Comparison
from wsabie.workflows.report.html_pages import EncodedImage
from wsabie.workflows.report.html_report import render_report
from wsabie.workflows.report.report_input import (
    Neighbourhood,
    ReportExample,
    ReportInput,
    Suggestion,
    build_examples,
    build_neighbourhoods,
    list_frequent_labels,
    list_true_labels,
    select_spread_rows,
)


def test_example_rows_range_from_best_to_worst(comparison: Comparison) -> None:
    evaluation = comparison["popularity"].evaluation
    values = dict(zip(evaluation.rows.tolist(), evaluation.per_row["MAP"].tolist(), strict=True))
    rows = select_spread_rows(evaluation, 5)
    row_values = [values[row] for row in rows]
    assert row_values == sorted(row_values, reverse=True)
    assert (row_values[0], row_values[-1]) == (max(values.values()), min(values.values()))
    assert len(select_spread_rows(evaluation, 1000)) == evaluation.n_rows


def test_examples_show_one_row_of_a_group(comparison: Comparison) -> None:
    groups = comparison.task.test.groups
    assert groups is not None
    rows = select_spread_rows(comparison["nearest"].evaluation, 100, groups=groups)
    assert len({groups[row] for row in rows}) == len(rows) == 12


def test_examples_hold_suggestions_and_true_labels(comparison: Comparison) -> None:
    entry, test = comparison["wsabie"], comparison.task.test
    examples = build_examples(entry, test, [3, 0], lambda row: EncodedImage(bytes([row])), k=4)
    ids, _ = entry.model.rank(test.X[[3, 0]], 4)
    for row, example, best in zip([3, 0], examples, ids, strict=True):
        true = [test.label_names[y] for y in np.flatnonzero(test.Y[[row]].toarray()[0] > 0)]
        assert sorted(example.true_labels) == sorted(true) == sorted(list_true_labels(test, row))
        assert [s.label for s in example.suggestions] == [test.label_names[y] for y in best]
        assert [s.right for s in example.suggestions] == [s.label in true for s in example.suggestions]
        assert (example.picture.content, example.title) == (bytes([row]), test.ids[row])


def test_true_labels_may_be_unknown_to_the_model(comparison: Comparison) -> None:
    test = comparison.task.test
    (example,) = build_examples(
        comparison["wsabie"],
        test,
        [0],
        lambda row: EncodedImage(b""),
        title=lambda row: f"row {row}",
        true_labels=lambda row: ["unheard of"],
    )
    assert (example.title, example.true_labels) == ("row 0", ["unheard of"])
    assert not any(s.right for s in example.suggestions)


def test_neighbourhoods_skip_unknown_labels(comparison: Comparison) -> None:
    entry = comparison["wsabie"]
    neighbourhoods = build_neighbourhoods(entry, ["dog", "unheard of", "שמש"], k=3)
    assert [n.label for n in neighbourhoods] == ["dog", "שמש"]
    assert list(neighbourhoods[0].near) == entry.model.neighbours("dog", 3)


def test_frequent_labels_are_listed_by_count(comparison: Comparison) -> None:
    task = comparison.task
    names = list_frequent_labels(task, 3)
    counts = [task.counts[task.train.label_names.index(name)] for name in names]
    assert counts == sorted(task.counts.tolist(), reverse=True)[:3]


def test_siblings_are_marked_in_examples_and_neighbourhoods(comparison: Comparison) -> None:
    entry, test = comparison["wsabie"], comparison.task.test
    similar = SiblingSimilarity(np.ones((len(test.label_names), 1)))
    (example,) = build_examples(entry, test, [0], lambda row: EncodedImage(b""), k=4, similar=similar)
    assert [s.sibling for s in example.suggestions] == [s.label not in example.true_labels for s in example.suggestions]
    (near,) = build_neighbourhoods(entry, ["dog"], 3, similar)
    assert near.siblings == {name for name, _ in near.near}
    assert not build_neighbourhoods(entry, ["dog"], 3)[0].siblings


def test_report_marks_true_and_sibling_labels_without_colour(comparison: Comparison) -> None:
    picture = EncodedImage(b"", "image/png")
    suggestions = [Suggestion("dog", 3.0, True), Suggestion("wolf", 2.0, False, True), Suggestion("car", 1.0, False)]
    report_input = ReportInput(
        "t",
        comparison,
        examples=[ReportExample(picture, "a dog", ["dog"], suggestions)],
        neighbours=[Neighbourhood("dog", [("wolf", 0.9), ("car", 0.1)], {"wolf"})],
        siblings_note="share a folder",
    )
    cards, near = (extract_section(render_report(report_input), name) for name in ("pictures", "labels"))
    sign = '<span class="sign" aria-hidden="true">≈</span>'
    for fragment in (
        "✓</span><bdi",
        f"{sign}<bdi",
        'class="chip miss" title="score 1"><bdi',
        ">, sibling<",
        "share a folder",
    ):
        assert fragment in cards
    assert near.count(f"{sign}<bdi") == 1
    assert "share a folder" in near
    bare = replace(report_input, examples=[ReportExample(picture, "", [], suggestions[::2])], siblings_note="")
    assert "≈" not in extract_section(render_report(bare), "pictures")


def extract_section(page: str, name: str) -> str:
    return page.partition(f'<section id="{name}"')[2].partition("</section>")[0]
