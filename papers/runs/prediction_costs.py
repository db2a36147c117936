"""Costs of predictions, measured and scaled to the paper's ImageNet (Weston et al. 2010, Table 8)."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from papers.record import Cell, PaperRecord, RunFindings, RunSettings
from papers.runs.collection_statistics import count_nonzeros
from papers.runs.model_tables import compare_entries
from wsabie.models.nearest_neighbours import choose_tree_depth
from wsabie.workflows.compare.comparison import TIMED_ROWS

ROWS, IMAGES, LABELS, FEATURES, VALUES, LEAF = 2_518_604, 839_310, 15_952, 10_000, 245, 20_000
"""Sizes of ImageNet in the paper; VALUES: non-zero values of a row, LEAF: rows of a leaf of its tree."""

TIME, SPACE = "time at ImageNet's size", "space at ImageNet's size"


def measure_prediction_costs(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Measure time and memory, and scale them to the paper's rows, images, labels and features.

    The time of a row grows with the training rows for k-NN, with the rows of a leaf for the tree, and with the labels
    for the linear models, each times the values of a row; for the embedding with labels plus values. Memory grows with
    the values of all training rows, with labels times features, or with both tables (V is counted).
    """
    data = setting.required_data
    timed_data = replace(data, test=data.test.take(np.arange(min(len(data.test), TIMED_ROWS))))
    short_setting = replace(setting, data=timed_data, parameters={"epochs": 1, **setting.parameters})
    findings = compare_entries(
        record, short_setting, untuned=True
    )  # the cost of a prediction does not depend on its quality
    n, d = data.train.X.shape
    Y = len(data.train.label_names)
    leaf = n / 2 ** choose_tree_depth(n)
    dense = count_nonzeros(data)
    denser = VALUES / dense
    linear = (LABELS / Y * denser, LABELS * FEATURES / (Y * d))
    growth: Mapping[str, tuple[float, float]] = {
        "k-NN": (ROWS / n * denser, ROWS / n * denser),
        "Approx. k-NN": (LEAF / leaf * denser, ROWS / n * denser),
        "One-vs-Rest": linear,
        "PAMIR-IA": linear,
        "WSABIE full": linear,
        "WSABIE low": ((LABELS + VALUES) / (Y + dense), (LABELS + FEATURES) / (Y + d)),
    }
    rows = []
    for row in findings.rows:
        figures: dict[str, Cell] = dict(row.figures)
        time, space = growth[row.row]
        figures[TIME] = _format_duration(float(row.figures["s/image"] or 0) * time * IMAGES)
        figures[SPACE] = f"{float(row.figures['MB'] or 0) * space / 1000:.3g} GB"
        rows.append(replace(row, figures=figures))
    note = (
        f"The last two columns take what was measured to {ROWS:,} training rows, {IMAGES:,} images, {LABELS:,} labels "
        f"and {FEATURES:,} features, {VALUES} of them in a row ({dense:.0f} here), by each model's law; no such run "
        "was made."
    )
    return replace(findings, rows=rows, notes=[*findings.notes, note])


def _format_duration(seconds: float) -> str:
    """Format a duration like the paper.

    Examples
    --------
    >>> _format_duration(5400), _format_duration(864000)
    ('1.5 h', '10 d')
    """
    hours = seconds / 3600
    return f"{hours:.3g} h" if hours < 48 else f"{hours / 24:.3g} d"
