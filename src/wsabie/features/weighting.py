"""How much a feature tells by being there."""

from typing import Any

import numpy as np

from wsabie.base.arrays import Float32


def idf(seen_in: Any, n: int) -> Float32:
    """Inverse document frequency log((1 + n) / (1 + seen in)) + 1, never zero, so that no row vanishes.

    Parameters
    ----------
    seen_in : (n_features,) integers
        Rows (or pictures) that hold the feature.
    n : int
        All rows.

    Examples
    --------
    >>> idf(np.array([0, 9]), 9)
    array([3.3025851, 1.       ], dtype=float32)
    """
    return (np.log((1 + n) / (1 + np.asarray(seen_in))) + 1).astype(np.float32)
