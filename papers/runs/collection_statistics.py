"""Counts of a collection, and the operations of a prediction."""

import numpy as np

from papers.datasets import PaperData
from papers.record import Cell, FindingRow, PaperRecord, RunFindings, RunSettings
from papers.runs.leave_one_out import split_label_holdout
from wsabie.vocabulary.label_similarity import SiblingSimilarity


def count_collection(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Count rows, labels, siblings and features of the collection."""
    data = setting.required_data
    figures: dict[str, Cell] = {
        "Number of Training Images": len(data.train),
        "Number of Test Images": len(data.test),
        "Number of Validation Images": len(data.valid),
        "Number of Labels": len(data.train.label_names),
        "Median Num Siblings per Label": _median_siblings(data),
        "Non-zero features per image": count_nonzeros(data),
    }
    return RunFindings([FindingRow(name, "counted", {"count": value}) for name, value in figures.items()])


def count_image_pairs(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Count images, labels and pairs of the leave-one-out protocol (Guo et al. 2018, Table 1)."""
    sides = split_label_holdout(setting.required_data, setting.seed)
    train = sides["train"]
    figures = {
        "Images": len(train),
        "Labels": len(train.label_names),
        "Train": train.Y.nnz,
        "Test": sides["test"].Y.nnz,
    }
    return RunFindings([FindingRow(name, "counted", {"count": value}) for name, value in figures.items()])


def _median_siblings(data: PaperData) -> float | None:
    similar = None if data.similar is None else data.similar(data.train.label_names)
    return float(np.median(similar.siblings())) if isinstance(similar, SiblingSimilarity) else None


def count_nonzeros(data: PaperData) -> float:
    """Return the mean number of non-zero values of a training row."""
    X = data.train.X
    stored = X.nnz if hasattr(X, "nnz") else X.size
    return float(stored) / max(len(data.train), 1)


def compute_complexity(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Compute the paper's formulas for these data: multiplications of a prediction, stored numbers.

    D = 100, p = 7, float32. Memory counts both tables of the embedding, including V, which the paper leaves out.
    """
    data = setting.required_data
    n, Y, d, dense, D, p = (
        len(data.train),
        len(data.train.label_names),
        data.train.X.shape[1],
        count_nonzeros(data),
        100,
        7,
    )
    formulas = {
        "k-NN": (n * dense, n * dense),
        "Approx. k-NN": ((p + n / 2**p) * dense, n * dense + 2**p * d),
        "One-vs-Rest": (Y * dense, Y * d),
        "PAMIR-IA": (Y * dense, Y * d),
        "WSABIE full": (Y * dense + (Y + dense) * D, Y * d + (Y + d) * D),
        "WSABIE low": ((Y + dense) * D, (Y + d) * D),
    }
    rows = [
        FindingRow(name, "", {"time": f"{time:,.0f} multiplications", "space": f"{space:,.0f} numbers"}, {})
        for name, (time, space) in formulas.items()
    ]
    sizes = f"n = {n:,}, Y = {Y:,}, d = {d:,}, non-zeros per row = {dense:.0f}, D = {D}, p = {p}."
    return RunFindings(rows, notes=[sizes])
