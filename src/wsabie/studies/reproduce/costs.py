"""What predictions cost: measured, and taken to the size of the paper's ImageNet by each model's law ([W] Table 8)."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from wsabie.models.approximate import auto_depth
from wsabie.studies.fitting import TIMED_ROWS
from wsabie.studies.reproduce.counting import nonzeros
from wsabie.studies.reproduce.models import compared
from wsabie.studies.reproduce.record import Cell, Findings, Record, Setting

ROWS, IMAGES, LABELS, FEATURES, VALUES, LEAF = 2_518_604, 839_310, 15_952, 10_000, 245, 20_000
"""Of ImageNet in the paper; VALUES are those of a row that are not zero, LEAF the rows of a leaf of its tree."""

TIME, SPACE = "time at ImageNet's size", "space at ImageNet's size"


def prediction_costs(record: Record, setting: Setting) -> Findings:
    """Time and memory measured, and what they come to with the paper's numbers of rows, images, labels and features.

    The time of a row grows with the training rows for k-NN, with the rows of a leaf for the tree, and with the labels
    for the linear models, each times the values of a row; for the embedding with labels plus values. Memory grows with
    the values of all training rows, with labels times features, or with both tables (V is counted).
    """
    data = setting.given
    few = replace(data, test=data.test.take(np.arange(min(len(data.test), TIMED_ROWS))))
    briefly = replace(setting, data=few, parameters={"epochs": 1, **setting.parameters})
    found = compared(record, briefly, untuned=True)  # what a prediction costs does not depend on how good it is
    n, d = data.train.X.shape
    Y = len(data.train.label_names)
    leaf = n / 2 ** auto_depth(n)
    dense = nonzeros(data)
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
    for row in found.rows:
        figures: dict[str, Cell] = dict(row.figures)
        time, space = growth[row.row]
        figures[TIME] = _duration(float(row.figures["s/image"] or 0) * time * IMAGES)
        figures[SPACE] = f"{float(row.figures['MB'] or 0) * space / 1000:.3g} GB"
        rows.append(replace(row, figures=figures))
    note = (
        f"The last two columns take what was measured to {ROWS:,} training rows, {IMAGES:,} images, {LABELS:,} labels "
        f"and {FEATURES:,} features, {VALUES} of them in a row ({dense:.0f} here), by each model's law; no such run "
        "was made."
    )
    return replace(found, rows=rows, notes=[*found.notes, note])


def _duration(seconds: float) -> str:
    """As the paper writes it.

    Examples
    --------
    >>> _duration(5400), _duration(864000)
    ('1.5 h', '10 d')
    """
    hours = seconds / 3600
    return f"{hours:.3g} h" if hours < 48 else f"{hours / 24:.3g} d"
