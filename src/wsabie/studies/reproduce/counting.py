"""Runs that count what a collection holds, and what a prediction costs in operations."""

import numpy as np

from wsabie.labels.similar import SharedParents
from wsabie.studies.reproduce.data import Data
from wsabie.studies.reproduce.ids import sides_of
from wsabie.studies.reproduce.record import Cell, Findings, Found, Record, Setting


def statistics(record: Record, setting: Setting) -> Findings:
    """Counts of the collection."""
    data = setting.given
    figures: dict[str, Cell] = {
        "Number of Training Images": len(data.train),
        "Number of Test Images": len(data.test),
        "Number of Validation Images": len(data.valid),
        "Number of Labels": len(data.train.label_names),
        "Median Num Siblings per Label": _median_siblings(data),
        "Non-zero features per image": nonzeros(data),
    }
    return Findings([Found(name, "counted", {"count": value}) for name, value in figures.items()])


def pairs(record: Record, setting: Setting) -> Findings:
    """Images, labels and pairs of the leave-one-out protocol ([V] Table 1)."""
    sides = sides_of(setting.given, setting.seed)
    train = sides["train"]
    figures = {
        "Images": len(train),
        "Labels": len(train.label_names),
        "Train": train.Y.nnz,
        "Test": sides["test"].Y.nnz,
    }
    return Findings([Found(name, "counted", {"count": value}) for name, value in figures.items()])


def _median_siblings(data: Data) -> float | None:
    similar = None if data.similar is None else data.similar(data.train.label_names)
    return float(np.median(similar.siblings())) if isinstance(similar, SharedParents) else None


def nonzeros(data: Data) -> float:
    """Values of a training row that are not zero, on average."""
    X = data.train.X
    stored = X.nnz if hasattr(X, "nnz") else X.size
    return float(stored) / max(len(data.train), 1)


def complexity(record: Record, setting: Setting) -> Findings:
    """The paper's formulas with the numbers of these data put in: multiplications of a prediction, numbers held.

    D = 100, p = 7, float32; memory counts both tables of the embedding, V too, which the paper leaves out.
    """
    data = setting.given
    n, Y, d, dense, D, p = len(data.train), len(data.train.label_names), data.train.X.shape[1], nonzeros(data), 100, 7
    formulas = {
        "k-NN": (n * dense, n * dense),
        "Approx. k-NN": ((p + n / 2**p) * dense, n * dense + 2**p * d),
        "One-vs-Rest": (Y * dense, Y * d),
        "PAMIR-IA": (Y * dense, Y * d),
        "WSABIE full": (Y * dense + (Y + dense) * D, Y * d + (Y + d) * D),
        "WSABIE low": ((Y + dense) * D, (Y + d) * D),
    }
    rows = [
        Found(name, "", {"time": f"{time:,.0f} multiplications", "space": f"{space:,.0f} numbers"}, {})
        for name, (time, space) in formulas.items()
    ]
    sizes = f"n = {n:,}, Y = {Y:,}, d = {d:,}, non-zeros per row = {dense:.0f}, D = {D}, p = {p}."
    return Findings(rows, notes=[sizes])
