"""Logistic regression of many labels on the same dense rows, which share every pass over the rows.

Loss and method are those of liblinear (Fan et al. 2008; Lin et al. 2008): |w|^2 / 2 + C sum_i log(1 + exp(-t_i w.x_i))
with the intercept as the weight of a constant feature, by Newton steps that conjugate gradients solve. Here a step of
all labels is two matrix products, which take a small part of the time of as many products with vectors.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from wsabie.core.arrays import Bool, Float32, Int64, Matrix

BLOCK = 32
"""Labels that share a pass; blocks run on threads, and do not depend on their number."""
TOLERANCE = 1e-4
"""A label has converged when its gradient has this share of the first one, times the share of its rarer class."""
CG_TOLERANCE, MAX_CG_STEPS = 0.1, 30
ARMIJO, ROUNDING, MAX_HALVINGS = 1e-4, 1e-6, 10
"""A Newton step is halved until it lowers the loss by this share of the slope, up to the rounding of the loss."""


def fit_logistic_heads(
    rows: Float32, targets: Matrix, C: float, max_iter: int, threads: int, advance: Callable[[int], object]
) -> tuple[Float32, Float32, Bool]:
    """Fit all labels.

    Parameters
    ----------
    rows : (n, n_features) float32
    targets : csc_matrix (n, n_labels)
        Positive for a label of a row; each label has from 1 to n - 1 rows.
    C : float
        Weight of the loss of a row.
    max_iter : int
        Newton steps.
    threads : int
        The result does not depend on it.
    advance : callable
        Called with the number of labels that have been fitted.

    Returns
    -------
    weights : (n_labels, n_features) float32
    intercept : (n_labels,) float32
    has_converged : (n_labels,) bool
    """
    extended = np.hstack([rows, np.ones((len(rows), 1), np.float32)])
    starts = range(0, targets.shape[1], BLOCK)

    def fit_block(start: int) -> tuple[Float32, Bool]:
        block = _LabelBlock(extended, targets[:, start : start + BLOCK].toarray() > 0, C)
        has_converged = block.fit(max_iter)
        advance(len(has_converged))
        return block.weights, has_converged

    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:  # the libraries' threads would change sums
        weights, has_converged = zip(*pool.map(fit_block, starts), strict=True)
    W = np.concatenate(weights, axis=1)
    return np.ascontiguousarray(W[:-1].T), W[-1].copy(), np.concatenate(has_converged)


class _LabelBlock:
    """Newton's method for some labels that share the passes over the rows."""

    def __init__(self, rows: Float32, is_positive: Bool, C: float) -> None:
        self.rows, self.C = rows, np.float32(C)  # the last feature is constant
        self.signs = np.where(is_positive, np.float32(1), np.float32(-1))
        self.weights = np.zeros((rows.shape[1], is_positive.shape[1]), np.float32)
        self.margins = np.zeros(is_positive.shape, np.float32)  # scores times signs

    def fit(self, max_iter: int) -> Bool:
        """Set the weights; return True for labels that have converged."""
        active, (errors, gradient) = np.arange(self.signs.shape[1]), self._differentiate(slice(None))
        n_positives = (self.signs > 0).sum(axis=0)
        rarer = np.maximum(np.minimum(n_positives, len(self.signs) - n_positives), 1)
        limits = TOLERANCE * rarer / len(self.signs) * np.linalg.norm(gradient, axis=0)
        for _ in range(max_iter):
            self._search_line(active, self._solve(errors, gradient), gradient)
            errors, gradient = self._differentiate(active)
            is_open = np.linalg.norm(gradient, axis=0) > limits[active]
            active, errors, gradient = active[is_open], errors[:, is_open], gradient[:, is_open]
            if not len(active):
                break
        has_converged = np.ones(len(limits), bool)
        has_converged[active] = False
        return has_converged

    def _differentiate(self, labels: Int64 | slice) -> tuple[Float32, Float32]:
        """Return probability minus target of each row, and the gradient of the loss."""
        errors = -self.signs[:, labels] * expit(-self.margins[:, labels])
        return errors, self.weights[:, labels] + self.C * (self.rows.T @ errors)

    def _solve(self, errors: Float32, gradient: Float32) -> Float32:
        """Return the Newton step -(I + C X' D X)^-1 gradient of each label, by conjugate gradients."""
        curvature = self.C * np.abs(errors) * (1 - np.abs(errors))
        solution, residual, direction = np.zeros_like(gradient), -gradient, -gradient
        squares = np.einsum("ij,ij->j", residual, residual)
        limits = CG_TOLERANCE**2 * squares
        for _ in range(MAX_CG_STEPS):
            is_open = squares > limits
            if not is_open.any():
                break
            image = direction + self.rows.T @ (curvature * (self.rows @ direction))
            step = is_open * (squares / np.einsum("ij,ij->j", direction, image))
            solution += step * direction
            residual = residual - step * image
            new_squares = np.einsum("ij,ij->j", residual, residual)
            direction = residual + new_squares / squares * direction
            squares = np.where(is_open, new_squares, squares)
        return solution

    def _search_line(self, labels: Int64, direction: Float32, gradient: Float32) -> None:
        """Move the weights of labels along a direction, by half as much until the loss falls (Armijo)."""
        changes = self.signs[:, labels] * (self.rows @ direction)
        weights, margins = self.weights[:, labels], self.margins[:, labels]
        slopes, loss = np.einsum("ij,ij->j", direction, gradient), self._compute_loss(weights, margins)
        steps = np.ones(len(labels), np.float32)
        for _ in range(MAX_HALVINGS):
            new_loss = self._compute_loss(weights + steps * direction, margins + steps * changes)
            is_worse = new_loss > loss + ARMIJO * steps * slopes + ROUNDING * loss
            if not is_worse.any():
                break
            steps[is_worse] /= 2
        self.weights[:, labels] += steps * direction
        self.margins[:, labels] += steps * changes

    def _compute_loss(self, weights: Float32, margins: Float32) -> Float32:
        penalties, losses = np.einsum("ij,ij->j", weights, weights) / 2, np.logaddexp(0, -margins).sum(axis=0)
        return np.asarray(penalties + self.C * losses, np.float32)
