"""Compressed deltas of whole tables between machines: rounded to 8 bits, added, joined, applied.

A row that moved by d is sent as integers of 8 bits and one scale, a power of two between max |d_j| / 128 and
max |d_j| / 64. Its multiples are exact, so that sums have the same bits on any machine.
"""

import numpy as np

from wsabie.kernels.compiler import jit, jit_entry

MIN_SQUARED_MOVE = np.float32(1e-6)
"""Squared move, relative to its length, from which a row's delta is sent; rounding errors are smaller."""


@jit
def _compute_scale(a, b):
    """Return a power of two of which max |a - b| is 64 to 128 times as large; NaN or infinity if that is."""
    high = np.uint32(0)
    for j in range(len(a)):  # numbers that are not negative go in the order of their bits, NaN as the largest
        bits = np.uint32(np.float32(abs(a[j] - b[j])).view(np.uint32))
        high = bits if bits > high else high
    return np.uint32(high & np.uint32(0x7F800000)).view(np.float32) / np.float32(64)


@jit
def _has_moved(a, b):
    moved = length = np.float32(0)
    for j in range(len(a)):
        moved += (a[j] - b[j]) * (a[j] - b[j])
        length += b[j] * b[j]
    return not moved <= MIN_SQUARED_MOVE * length  # NaN counts as moved


@jit_entry
def round_deltas(table, base, subtract_deltas, rows, scales, values):
    """Fill in the steps of the rows that moved from `base` to `table`; return the number of these rows.

    Parameters
    ----------
    table, base : (n, dim) float32
    subtract_deltas : bool
        Subtract the rounded steps from `table`, which keeps the rounding errors; else add them to `base`.
    rows : (n,) int32
    scales : (n,) float32
    values : (n, dim) int8
    """
    n = 0
    for i in range(len(table)):
        a, b, q = table[i], base[i], values[n]
        if _has_moved(a, b):
            scale = _compute_scale(a, b)
            inverse = np.float32(1) / scale
            for j in range(len(a)):
                level = min(np.int32((a[j] - b[j]) * inverse + np.float32(128.5)), np.int32(255)) - np.int32(128)
                q[j] = np.int8(level)
                if subtract_deltas:
                    a[j] -= scale * np.float32(level)
                else:
                    b[j] += scale * np.float32(level)
            rows[n], scales[n] = i, scale
            n += 1
    return n


@jit_entry
def add_deltas(total, squares, rows, scales, values):
    """Add a worker's steps to total, (n, dim) float32, and their squared lengths to squares, (n,) float32."""
    for k in range(len(rows)):
        scale, q, sum_row = scales[k], values[k], total[rows[k]]
        square = np.float32(0)
        for j in range(len(q)):
            step = scale * np.float32(q[j])
            sum_row[j] += step
            square += step * step
        squares[rows[k]] += square


@jit_entry
def join_deltas(table, rate, total, squares, sums):
    """Move each row by rate * total / max(1, |total|^2 / squares), and set total and squares to zero.

    Parameters
    ----------
    table, total : (n, dim) float32
    rate : float32
    squares : (n,) float32
    sums : (3,) float64
        To these are added: all squares, the squared length of all totals, and that of the table as it was.
    """
    for i in range(len(table)):
        row, sum_row = table[i], total[i]
        length = norm2 = np.float32(0)
        for j in range(len(row)):
            length += sum_row[j] * sum_row[j]
            norm2 += row[j] * row[j]
        sums[0] += squares[i]
        sums[1] += length
        sums[2] += norm2
        if squares[i] != 0:
            share = rate / max(np.float32(1), length / squares[i])
            for j in range(len(row)):
                row[j] += share * sum_row[j]
                sum_row[j] = 0
            squares[i] = 0


@jit_entry
def move_rows(table, base, rows, scales, values):
    """Move rows of both tables, (n, dim) float32, by the same steps."""
    for k in range(len(rows)):
        scale, q, a, b = scales[k], values[k], table[rows[k]], base[rows[k]]
        for j in range(len(q)):
            step = scale * np.float32(q[j])
            a[j] += step
            b[j] += step
