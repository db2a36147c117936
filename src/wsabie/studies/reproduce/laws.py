"""Runs that need no data: the law of the rank estimate, and the slides' example of two ranking functions."""

from collections.abc import Callable

import numpy as np

from wsabie.studies.charts import Series
from wsabie.studies.html.svg import Axis
from wsabie.studies.reproduce.drawing import Chart, log_axis
from wsabie.studies.reproduce.rank_law import exact_law, harmonic, measured_law, standard_errors, uncut_estimate
from wsabie.studies.reproduce.record import Cell, Findings, Found, Record, Setting
from wsabie.training.losses import rank_losses

LABELS = (1_000, 15_952, 109_444)
"""Numbers of labels: a thousand, and those of ImageNet and Web in the first paper."""

RANKS = (1, 2, 5, 10, 100, 1_000)
_TAIL = (
    "The estimate has a heavy tail: its mean over a few hundred pairs may be far from the exact one; that of L is not."
)
TRIALS = 1_000
"""The default limit on the draws, which is shown beside Algorithm 1's."""


def bias(record: Record, setting: Setting) -> Findings:
    """The rank estimate and the loss that it leads to: exact, and measured with the trainer's sampler."""

    def row(n: int, k: int) -> dict[str, Cell]:
        exact, (measured, pairs) = exact_law(n, k), measured_law(n, k, seed=setting.seed)
        return {
            "E[(Y-1)/N] uncut": uncut_estimate(n, k),
            "E[floor((Y-1)/N)]": exact.estimate,
            "floor measured": measured.estimate,
            "L(k)": float(harmonic(k)[k]),
            "L~(k)": exact.loss,
            "E[log floor]": exact_law(n, k, losses=np.log(np.maximum(np.arange(n + 1), 1))).loss,
            "L~ measured": measured.loss,
            "pairs": pairs,
            "deviation": _deviation(exact.loss, measured.loss, standard_errors(n, k, pairs).loss),
        }

    return Findings(_over_ranks(row, setting), notes=[_TAIL])


def draws(record: Record, setting: Setting) -> Findings:
    """Draws per visit beside the bound of Remark 2, and visits without an update."""

    def row(n: int, k: int) -> dict[str, Cell]:
        exact, (measured, pairs) = exact_law(n, k), measured_law(n, k, seed=setting.seed)
        limited = exact_law(n, k, TRIALS)
        return {
            "bound min((Y-1)/k, Y-1)": min(n / k, n),
            "E[N]": exact.draws,
            "N measured": measured.draws,
            "P(no update)": exact.no_update,
            "measured": measured.no_update,
            f"E[N], T = {TRIALS}": limited.draws,
            f"P(no update), T = {TRIALS}": limited.no_update,
            "pairs": pairs,
            "deviation": _deviation(exact.draws, measured.draws, standard_errors(n, k, pairs).draws),
        }

    return Findings(_over_ranks(row, setting))


def _deviation(exact: float, measured: float, error: float) -> float:
    """The distance in standard errors."""
    return (measured - exact) / max(error, 1e-9)


def _over_ranks(row: Callable[[int, int], dict[str, Cell]], setting: Setting) -> list[Found]:
    cells = [(Y, k) for Y in LABELS for k in RANKS if k < Y - 1]
    found = []
    with setting.progress.stage("drawing", len(cells), "laws") as stage:
        for Y, k in cells:
            found.append(Found(f"Y = {Y:,}, rank {k:,}", "exact and measured", row(Y - 1, k)))
            stage.advance()
    return found


def more_than_loss(findings: Findings) -> tuple[bool, str]:
    """Remark 1: L~(k) >= L(k), at every k of 1,000 labels and at 60 ranks of 15,952."""
    gaps = [(k, law, loss) for k, law, loss in _losses(1_000, range(1, 1_000)) + _losses(15_952, _spread(15_951, 60))]
    k, law, loss = min(gaps, key=lambda gap: gap[1] - gap[2])
    return law >= loss, f"the smallest L~ - L is {law - loss:.2e}, at rank {k:,}"


def concave(findings: Findings) -> tuple[bool, str]:
    """Remark 1: L~ has non-increasing steps, as eq. (4) asks, at every k of 1,000 labels."""
    values = np.array([law for _, law, _ in _losses(1_000, range(1, 1_000))])
    steps = np.diff(np.concatenate([[0.0], values]))
    rise = np.diff(steps)
    worst = int(np.argmax(rise))
    return bool(
        rise[worst] <= 1e-12
    ), f"the largest rise from one step to the next is {rise[worst]:.2e}, at rank {worst + 2:,}"


def bounded(findings: Findings) -> tuple[bool, str]:
    """Remark 2: E[N] <= min((Y-1)/k, Y-1) in every row of the table."""
    shares = [_number(found, "E[N]") / _number(found, "bound min((Y-1)/k, Y-1)") for found in findings.rows]
    return max(shares) <= 1 + 1e-9, f"E[N] is {min(shares):.3f} to {max(shares):.3f} of the bound"


def agrees(findings: Findings) -> tuple[bool, str]:
    """Every measured mean is within 4 standard errors of the exact one."""
    far = max(abs(_number(found, "deviation")) for found in findings.rows)
    return far < 4, f"the largest of {len(findings.rows)} deviations is {far:.1f} standard errors"


def _number(found: Found, column: str) -> float:
    value = found.figures[column]
    if not isinstance(value, (int, float)):
        raise TypeError(f"{column} is no number")
    return float(value)


def _losses(Y: int, ranks: "range | list[int]") -> list[tuple[int, float, float]]:
    losses = harmonic(Y - 1)
    return [(k, exact_law(Y - 1, k, losses=losses).loss, float(losses[k])) for k in ranks]


def _spread(n: int, about: int) -> list[int]:
    """Ranks at even steps of their logarithm, 1 and n among them."""
    return sorted({int(k) for k in np.geomspace(1, n, about).round()})


def approximation(record: Record, setting: Setting) -> Findings:
    """How near to the rank the estimate is: (Y-1)/E[N], E[(Y-1)/N] and what is used, E[floor((Y-1)/N)]."""
    rows, charts = [], []
    for Y in LABELS[1:]:
        n = Y - 1
        ranks = _spread(n, 25)
        for k in ranks:
            law = exact_law(n, k)
            figures: dict[str, Cell] = {
                "rank": k,
                "p": k / n,
                "(Y-1)/E[N]": n / law.draws,
                "E[(Y-1)/N]": uncut_estimate(n, k),
                "E[floor((Y-1)/N)]": law.estimate,
            }
            rows.append(Found(f"Y = {Y:,}, rank {k:,}", "exact", figures))
        charts.append(_bias_chart(Y, ranks, rows[-len(ranks) :]))
    return Findings(rows, charts=charts)


def _bias_chart(Y: int, ranks: list[int], rows: list[Found]) -> Chart:
    x = [float(np.log10(k)) for k in ranks]
    names = ("E[(Y-1)/N]", "E[floor((Y-1)/N)]", "(Y-1)/E[N]")
    lines = [
        Series(name, x, [float(np.log10(_number(found, name))) for found in rows], style=i)
        for i, name in enumerate(names)
    ]
    axis = log_axis("margin rank k", ranks)
    return Chart(
        f"Estimated rank, {Y:,} labels",
        [*lines, Series("the rank itself", x, x, style=-1)],
        axis,
        log_axis("estimate", [1, *ranks]),
    )


def two_functions(record: Record, setting: Setting) -> Findings:
    """Pairwise violations and L of two true labels at given ranks (1 is the top)."""
    losses = rank_losses("precision", 200)
    rows = []
    for name, ranks in _FUNCTIONS.items():
        above = [rank - 1 for rank in ranks]
        figures: dict[str, Cell] = {"violations": sum(above), "L": float(sum(losses[k] for k in above))}
        rows.append(Found(name, "computed", figures))
    return Findings(rows)


_FUNCTIONS = {
    "ranks 1 and 101": (1, 101),
    "ranks 50 and 52": (50, 52),
    "ranks 1 and 100 (first paper)": (1, 100),
    "ranks 50 and 50 (first paper)": (50, 50),
}


def same_violations(findings: Findings) -> tuple[bool, str]:
    """AUC prefers the two functions of the slides equally."""
    one, two = (_number(findings[row], "violations") for row in ("ranks 1 and 101", "ranks 50 and 52"))
    return one == two, f"{one:g} and {two:g} violations"


def first_preferred(findings: Findings) -> tuple[bool, str]:
    """L prefers the function that has a true label at the top."""
    one, two = (_number(findings[row], "L") for row in ("ranks 1 and 101", "ranks 50 and 52"))
    return one < two, f"{one:.3f} against {two:.3f}"


def miss_chart(record: Record, findings: Findings) -> list[Chart]:
    """P(no update) by rank, for Algorithm 1 and for the default limit on the draws."""
    charts = []
    for Y in LABELS[1:]:
        n = Y - 1
        ranks = _spread(min(n, 1000), 40)
        x = [float(np.log10(k)) for k in ranks]
        lines = [
            Series(name, x, [exact_law(n, k, trials).no_update for k in ranks], style=i)
            for i, (name, trials) in enumerate((("Algorithm 1", None), (f"at most {TRIALS:,} draws", TRIALS)))
        ]
        axis = log_axis("margin rank k", ranks)
        charts.append(Chart(f"Visits without an update, {Y:,} labels", lines, axis, Axis("share", low=0.0, high=1.0)))
    return charts
