"""Runs without data: the law of the rank estimate, and the slides' example of two ranking functions."""

from collections.abc import Callable

import numpy as np

from papers.record import Cell, FindingRow, PaperRecord, RunFindings, RunSettings
from papers.record_charts import build_log_axis
from papers.runs.rank_law import (
    compute_exact_law,
    compute_harmonic_numbers,
    compute_standard_errors,
    compute_unlimited_estimate,
    measure_law,
)
from wsabie.training.rank_losses import compute_rank_losses
from wsabie.workflows.charts.svg_charts import ChartAxis, ChartSeries, LineChart

LABELS = (1_000, 15_952, 109_444)
"""Numbers of labels: a thousand, and those of ImageNet and Web in the first paper."""

RANKS = (1, 2, 5, 10, 100, 1_000)
_TAIL = (
    "The estimate has a heavy tail: its mean over a few hundred pairs may be far from the exact one; that of L is not."
)
TRIALS = 1_000
"""Default limit on the draws, beside that of Algorithm 1."""


def measure_rank_bias(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Compute and measure the rank estimate and its loss; the sampler is the trainer's."""

    def row(n: int, k: int) -> dict[str, Cell]:
        exact, (measured, pairs) = compute_exact_law(n, k), measure_law(n, k, seed=setting.seed)
        return {
            "E[(Y-1)/N] uncut": compute_unlimited_estimate(n, k),
            "E[floor((Y-1)/N)]": exact.estimate,
            "floor measured": measured.estimate,
            "L(k)": float(compute_harmonic_numbers(k)[k]),
            "L~(k)": exact.loss,
            "E[log floor]": compute_exact_law(n, k, losses=np.log(np.maximum(np.arange(n + 1), 1))).loss,
            "L~ measured": measured.loss,
            "pairs": pairs,
            "deviation": _deviation(exact.loss, measured.loss, compute_standard_errors(n, k, pairs).loss),
        }

    return RunFindings(_make_rows(row, setting), notes=[_TAIL])


def count_draws(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Count draws per visit beside the bound of Remark 2, and visits without an update."""

    def row(n: int, k: int) -> dict[str, Cell]:
        exact, (measured, pairs) = compute_exact_law(n, k), measure_law(n, k, seed=setting.seed)
        limited = compute_exact_law(n, k, TRIALS)
        return {
            "bound min((Y-1)/k, Y-1)": min(n / k, n),
            "E[N]": exact.draws,
            "N measured": measured.draws,
            "P(no update)": exact.no_update,
            "measured": measured.no_update,
            f"E[N], T = {TRIALS}": limited.draws,
            f"P(no update), T = {TRIALS}": limited.no_update,
            "pairs": pairs,
            "deviation": _deviation(exact.draws, measured.draws, compute_standard_errors(n, k, pairs).draws),
        }

    return RunFindings(_make_rows(row, setting))


def _deviation(exact: float, measured: float, error: float) -> float:
    """Return the distance in standard errors."""
    return (measured - exact) / max(error, 1e-9)


def _make_rows(compute_row: Callable[[int, int], dict[str, Cell]], setting: RunSettings) -> list[FindingRow]:
    cells = [(Y, k) for Y in LABELS for k in RANKS if k < Y - 1]
    rows = []
    with setting.progress.stage("drawing", len(cells), "laws") as stage:
        for Y, k in cells:
            rows.append(FindingRow(f"Y = {Y:,}, rank {k:,}", "exact and measured", compute_row(Y - 1, k)))
            stage.advance()
    return rows


def check_at_least_loss(findings: RunFindings) -> tuple[bool, str]:
    """Check Remark 1: L~(k) >= L(k), at every k of 1,000 labels and at 60 ranks of 15,952."""
    gaps = [
        (k, law, loss)
        for k, law, loss in _compute_losses(1_000, range(1, 1_000)) + _compute_losses(15_952, _list_ranks(15_951, 60))
    ]
    k, law, loss = min(gaps, key=lambda gap: gap[1] - gap[2])
    return law >= loss, f"the smallest L~ - L is {law - loss:.2e}, at rank {k:,}"


def check_concave(findings: RunFindings) -> tuple[bool, str]:
    """Check Remark 1: L~ has non-increasing steps, as in eq. (4), at every k of 1,000 labels."""
    values = np.array([law for _, law, _ in _compute_losses(1_000, range(1, 1_000))])
    steps = np.diff(np.concatenate([[0.0], values]))
    rise = np.diff(steps)
    worst = int(np.argmax(rise))
    return bool(
        rise[worst] <= 1e-12
    ), f"the largest rise from one step to the next is {rise[worst]:.2e}, at rank {worst + 2:,}"


def check_draw_bound(findings: RunFindings) -> tuple[bool, str]:
    """Check Remark 2: E[N] <= min((Y-1)/k, Y-1) in every row of the table."""
    shares = [
        _get_number(finding, "E[N]") / _get_number(finding, "bound min((Y-1)/k, Y-1)") for finding in findings.rows
    ]
    return max(shares) <= 1 + 1e-9, f"E[N] is {min(shares):.3f} to {max(shares):.3f} of the bound"


def check_agreement(findings: RunFindings) -> tuple[bool, str]:
    """Check that every measured mean is within 4 standard errors of the exact one."""
    far = max(abs(_get_number(finding, "deviation")) for finding in findings.rows)
    return far < 4, f"the largest of {len(findings.rows)} deviations is {far:.1f} standard errors"


def _get_number(finding: FindingRow, column: str) -> float:
    value = finding.figures[column]
    if not isinstance(value, (int, float)):
        raise TypeError(f"{column} is not a number")
    return float(value)


def _compute_losses(Y: int, ranks: "range | list[int]") -> list[tuple[int, float, float]]:
    losses = compute_harmonic_numbers(Y - 1)
    return [(k, compute_exact_law(Y - 1, k, losses=losses).loss, float(losses[k])) for k in ranks]


def _list_ranks(n: int, about: int) -> list[int]:
    """Return ranks at even steps of their logarithm, including 1 and n."""
    return sorted({int(k) for k in np.geomspace(1, n, about).round()})


def compute_rank_approximation(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Compare estimates of the rank: (Y-1)/E[N], E[(Y-1)/N] and the one in use, E[floor((Y-1)/N)]."""
    rows, charts = [], []
    for Y in LABELS[1:]:
        n = Y - 1
        ranks = _list_ranks(n, 25)
        for k in ranks:
            law = compute_exact_law(n, k)
            figures: dict[str, Cell] = {
                "rank": k,
                "p": k / n,
                "(Y-1)/E[N]": n / law.draws,
                "E[(Y-1)/N]": compute_unlimited_estimate(n, k),
                "E[floor((Y-1)/N)]": law.estimate,
            }
            rows.append(FindingRow(f"Y = {Y:,}, rank {k:,}", "exact", figures))
        charts.append(_draw_bias_chart(Y, ranks, rows[-len(ranks) :]))
    return RunFindings(rows, charts=charts)


def _draw_bias_chart(Y: int, ranks: list[int], rows: list[FindingRow]) -> LineChart:
    x = [float(np.log10(k)) for k in ranks]
    names = ("E[(Y-1)/N]", "E[floor((Y-1)/N)]", "(Y-1)/E[N]")
    lines = [
        ChartSeries(name, x, [float(np.log10(_get_number(finding, name))) for finding in rows], style=i)
        for i, name in enumerate(names)
    ]
    axis = build_log_axis("margin rank k", ranks)
    return LineChart(
        f"Estimated rank, {Y:,} labels",
        [*lines, ChartSeries("the rank itself", x, x, style=-1)],
        axis,
        build_log_axis("estimate", [1, *ranks]),
    )


def compare_two_functions(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Compute pairwise violations and L of two true labels at given ranks (1 is the top)."""
    losses = compute_rank_losses("precision", 200)
    rows = []
    for name, ranks in _RANKINGS.items():
        n_labels_above = [rank - 1 for rank in ranks]
        figures: dict[str, Cell] = {
            "violations": sum(n_labels_above),
            "L": float(sum(losses[k] for k in n_labels_above)),
        }
        rows.append(FindingRow(name, "computed", figures))
    return RunFindings(rows)


_RANKINGS = {
    "ranks 1 and 101": (1, 101),
    "ranks 50 and 52": (50, 52),
    "ranks 1 and 100 (first paper)": (1, 100),
    "ranks 50 and 50 (first paper)": (50, 50),
}


def check_equal_violations(findings: RunFindings) -> tuple[bool, str]:
    """Check that AUC prefers the two functions of the slides equally."""
    apart_violations, close_violations = (
        _get_number(findings[row], "violations") for row in ("ranks 1 and 101", "ranks 50 and 52")
    )
    return apart_violations == close_violations, f"{apart_violations:g} and {close_violations:g} violations"


def check_top_preference(findings: RunFindings) -> tuple[bool, str]:
    """Check that L prefers the function with a true label at the top."""
    apart_loss, close_loss = (_get_number(findings[row], "L") for row in ("ranks 1 and 101", "ranks 50 and 52"))
    return apart_loss < close_loss, f"{apart_loss:.3f} against {close_loss:.3f}"


def draw_miss_chart(record: PaperRecord, findings: RunFindings) -> list[LineChart]:
    """Draw P(no update) by rank, for Algorithm 1 and for the default limit on the draws."""
    charts = []
    for Y in LABELS[1:]:
        n = Y - 1
        ranks = _list_ranks(min(n, 1000), 40)
        x = [float(np.log10(k)) for k in ranks]
        lines = [
            ChartSeries(name, x, [compute_exact_law(n, k, trials).no_update for k in ranks], style=i)
            for i, (name, trials) in enumerate((("Algorithm 1", None), (f"at most {TRIALS:,} draws", TRIALS)))
        ]
        axis = build_log_axis("margin rank k", ranks)
        charts.append(
            LineChart(f"Visits without an update, {Y:,} labels", lines, axis, ChartAxis("share", low=0.0, high=1.0))
        )
    return charts
