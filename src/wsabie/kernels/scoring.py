"""All scores of rows against labels that have weights: label by label, so that its weights stay in cache."""

from wsabie.kernels._jit import entry
from wsabie.kernels.candidates import score
from wsabie.kernels.patterns import recall


@entry
def score_rows_of(pattern, labels, points, out, first, last, lo, hi, width):
    """out[i, y] = f_y of row i, for the rows first..last-1 and the labels lo..hi-1.

    `points` holds the points of the rows, (n, padded dim) float32, or any row where the pattern has none.
    """
    for y in range(lo, hi):
        for i in range(first, last):
            q = recall(pattern, i, 0, points[min(i, len(points) - 1)], width)
            out[i, y] = score(labels, q, y, width)
