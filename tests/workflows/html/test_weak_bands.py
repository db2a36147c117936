"""Sentence of the page on the labels where the baseline is ahead."""

from types import SimpleNamespace
from typing import Any

import pytest

from wsabie.evaluation.score_evaluation import FrequencyBin
from wsabie.workflows.report.html_report import name_weak_bands


def make_bands(*recalls: float) -> list[FrequencyBin]:
    return [FrequencyBin(2**i, 2 ** (i + 1) - 1, 5, 5, recall, 0.0) for i, recall in enumerate(recalls)]


@pytest.mark.parametrize(
    ("ours", "theirs", "sentence"),
    [
        ((0.5, 0.6, 0.7), (0.4, 0.6, 0.6), ""),
        ((0.1, 0.6, 0.7), (0.4, 0.5, 0.6), " k-NN finds more than WARP in the band 1 of training pictures."),
        (
            (0.1, 0.2, 0.3),
            (0.4, 0.5, 0.6),
            " k-NN finds more than WARP in the bands 1, 2–3 and 4–7 of training pictures.",
        ),
    ],
)
def test_labels_won_by_the_baseline_are_named(ours: Any, theirs: Any, sentence: str) -> None:
    task: Any = SimpleNamespace(modality="pictures")
    entries: Any = [SimpleNamespace(title="WARP"), SimpleNamespace(title="k-NN")]
    assert name_weak_bands(task, entries, [make_bands(*ours), make_bands(*theirs)]) == sentence
    assert name_weak_bands(task, entries[:1], [make_bands(*ours)]) == ""
