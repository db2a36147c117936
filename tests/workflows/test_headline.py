"""The result in one sentence."""

from dataclasses import replace

import pytest

from wsabie.evaluation.bootstrap import PairedDifference
from wsabie.workflows.compare.comparison_table import Comparison
from wsabie.workflows.report.html_report import choose_list_length, format_headline, judge_main_model


@pytest.fixture
def comparison(comparison: Comparison) -> Comparison:
    """Comparison that claims ten labels, so that a list of five is a choice."""
    entries = [replace(e, evaluation=replace(e.evaluation, n_labels=10)) for e in comparison.entries]
    return replace(comparison, entries=entries)


def set_difference(comparison: Comparison, low: float, high: float) -> Comparison:
    entry = comparison["wsabie"]
    against = {m: ("nearest", PairedDifference((low + high) / 2, low, high, 0.5)) for m in comparison.metrics}
    baselines = [e for e in comparison.entries if e.name != "wsabie"]
    return replace(comparison, entries=[replace(entry, differences=against), *baselines])


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.01, 0.02, "more than chance explains"),
        (-0.02, -0.01, "less, by more than chance explains"),
        (-0.01, 0.02, "a difference that may be chance"),
    ],
)
def test_headline_states_the_interval(comparison: Comparison, low: float, high: float, words: str) -> None:
    changed = set_difference(comparison, low, high)
    sentence = format_headline(changed, changed["wsabie"], "pictures")
    means = comparison["wsabie"].evaluation.means
    assert sentence == (
        f"With WARP embedding, {means['p@5'] * 5:.1f} of the first 5 labels suggested for each of 24 unseen pictures "
        f"are right on average, "
        f"against {comparison['nearest'].evaluation.means['p@5'] * 5:.1f} with k nearest neighbours "
        f"({words}); at most {comparison.ceilings['p@5'] * 5:.1f} are possible."
    )


def test_headline_without_a_baseline_compares_nothing(comparison: Comparison) -> None:
    without_baselines = replace(comparison, entries=[replace(comparison["wsabie"], differences={})])
    assert "against" not in format_headline(without_baselines, without_baselines["wsabie"])
    assert judge_main_model(without_baselines, without_baselines["wsabie"], "p@10") is None


def test_relative_difference_is_to_the_baseline(comparison: Comparison) -> None:
    changed = set_difference(comparison, 0.1, 0.3)
    judgement = judge_main_model(changed, changed["wsabie"], "p@1")
    assert judgement is not None
    assert judgement.relative == pytest.approx(0.2 / comparison["nearest"].evaluation.means["p@1"])


def test_short_lists_choose_their_own_length(comparison: Comparison) -> None:
    entry = comparison["wsabie"]
    for ks, expected in (((1, 5, 10), 5), ((1, 3, 50), 1), ((20, 50), 20), ((1,), 1)):
        shorter = replace(entry, evaluation=replace(entry.evaluation, ks=ks))
        assert choose_list_length(replace(comparison, entries=[shorter])) == expected
    for n_labels, expected in ((15, 10), (14, 5), (8, 5), (7, 1), (1, 1)):
        fewer = replace(entry, evaluation=replace(entry.evaluation, ks=(1, 5, 10), n_labels=n_labels))
        metrics = [*comparison.metrics, "p@10"]
        assert choose_list_length(replace(comparison, entries=[fewer], metrics=metrics)) == expected
    only_first = replace(
        comparison, entries=[replace(entry, evaluation=replace(entry.evaluation, ks=(1,)), differences={})]
    )
    first = f"{entry.evaluation.means['p@1']:.1%}"
    expected_sentence = f"With WARP embedding, the first label suggested is right for {first} of 24 unseen rows."
    assert format_headline(only_first, only_first["wsabie"]) == expected_sentence


def test_single_label_rows_count_the_first_suggestion(comparison: Comparison) -> None:
    entry = comparison["wsabie"]
    ceilings = {f"p@{k}": 1 / k for k in entry.evaluation.ks}
    entries = [replace(e, evaluation=replace(e.evaluation, ceilings=ceilings)) for e in comparison.entries]
    single = replace(set_difference(comparison, -0.01, 0.02), entries=entries)
    assert choose_list_length(single) == 1
    changed = set_difference(single, -0.01, 0.02)
    shares = [f"{changed[name].evaluation.means['p@1']:.1%}" for name in ("wsabie", "nearest")]
    assert format_headline(changed, changed["wsabie"]) == (
        f"With WARP embedding, the first label suggested is right for {shares[0]} of 24 unseen rows, against "
        f"{shares[1]} with k nearest neighbours (a difference that may be chance)."
    )
