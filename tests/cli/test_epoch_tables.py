"""The figures of epochs on a terminal of 80 columns."""

import io
import sys
from dataclasses import replace

import numpy as np
import pytest

from wsabie.cli.output import show_epochs
from wsabie.training.epoch_stats import EpochStats


def make_histogram(n_bins: int, middle: float) -> list[int]:
    """Steps by bin of the estimated rank, a hill around a bin."""
    return [int(n) for n in 1e4 * np.exp(-((np.arange(n_bins) - middle) ** 2) / 8)]


def make_history(n: int, n_bins: int) -> list[EpochStats]:
    """The widest figures that are met; the third epoch from the end is the best."""
    return [
        EpochStats(
            epoch=epoch,
            loss=12.34567,
            violation_rate=0.98765,
            mean_draws=1000.0,
            rank_histogram=make_histogram(n_bins, n_bins / (1 + epoch / 4)),
            pairs=20_000,
            skipped=0,
            rejected=0,
            pairs_per_second=1_234_567.0,
            bytes_per_second=12.34e9,
            learning_rate=0.1,
            seconds=1.0,
            validation=0.1 - abs(n - 3 - epoch) / 1000,
            validation_metrics={"MAP": 0.1 - abs(n - 3 - epoch) / 1000, "p@10": 0.04567},
        )
        for epoch in range(n)
    ]


def split_lines(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines() if line.strip()]


@pytest.mark.parametrize("n_bins", [1, 9, 10, 14, 20])
def test_epoch_table_fits_80_columns(capsys: pytest.CaptureFixture[str], n_bins: int) -> None:
    show_epochs(make_history(30, n_bins))
    output = capsys.readouterr().out
    assert max(map(len, output.splitlines())) <= 80
    assert "…" not in output
    first = next(line for line in split_lines(output) if line[0] == "1")
    assert first[1:8] == ["12.3457", "0.988", "1000.0", "1,234,567", "12.3", "0.0730", "0.046"]
    assert 1 <= len(first[8]) <= 10


def test_histograms_of_first_middle_best_and_last_epoch_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    epochs = make_history(9, 14)
    show_epochs(epochs)
    table = capsys.readouterr().out.partition("estimated ranks, %")[2]
    heads, _, *bins = split_lines(table)[1:]
    assert " ".join(heads) == "rank epoch 1 epoch 5 epoch 7 (best) epoch 9"
    assert [line[0] for line in bins][:3] == ["1", "2-3", "4-7"]
    assert bins[-1][0] == "8,192-16,383"
    for column, epoch in enumerate((0, 4, 6, 8), 1):
        counts = epochs[epoch].rank_histogram
        assert [line[column] for line in bins] == [f"{100 * n / sum(counts):.1f}" for n in counts]


def test_drawing_follows_the_histogram(capsys: pytest.CaptureFixture[str]) -> None:
    epoch = replace(make_history(1, 3)[0], rank_histogram=[0, 1, 4, 8])
    show_epochs([epoch])
    assert "·▁▄█" in capsys.readouterr().out


def test_epochs_without_validation_or_steps_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    bare = replace(make_history(1, 3)[0], validation=None, validation_metrics={}, rank_histogram=[])
    show_epochs([bare, replace(bare, epoch=1)])
    output = capsys.readouterr().out
    assert "estimated ranks" not in output
    assert split_lines(output)[-1] == ["2", "12.3457", "0.988", "1000.0", "1,234,567", "12.3"]
    show_epochs([replace(bare, rank_histogram=[3, 1]), bare])
    assert split_lines(capsys.readouterr().out)[-1] == ["2-3", "25.0", "0.0"]


def test_ascii_terminal_gets_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    show_epochs([replace(make_history(1, 3)[0], rank_histogram=[0, 1, 4, 8])])
    terminal.flush()
    assert b".148" in terminal.buffer.getvalue()


def test_deciding_metric_is_named_first(capsys: pytest.CaptureFixture[str]) -> None:
    stats = replace(make_history(1, 3)[0], validation_metrics={"p@1": 0.5, "MAP": 0.25})
    show_epochs([stats])
    heads = next(line for line in capsys.readouterr().out.splitlines() if "loss" in line)
    assert heads.index("p@1") < heads.index("MAP")
