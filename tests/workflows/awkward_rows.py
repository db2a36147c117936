"""Small rows whose labels have awkward names."""

import numpy as np
import scipy.sparse as sp

from wsabie.io.records import FeatureTable

NAMES = ["<script>alert(1)</script>", "שמש", "مطر غزير", 'a "quoted" & <b>bold</b> name', "x" * 90, "dog"]


def toy_rows(n: int, prefix: str, seed: int, names: list[str] = NAMES) -> FeatureTable:
    """Rows of three features per label, each row with one or two labels, its features those of its labels."""
    rng = np.random.default_rng(seed)
    Y = np.zeros((n, len(names)), np.int8)
    Y[np.arange(n), np.arange(n) % len(names)] = 1
    Y[np.arange(n), rng.integers(len(names), size=n)] = 1
    X = np.kron(Y, np.ones(3)) * rng.integers(1, 4, (n, 3 * len(names))) + (rng.random((n, 3 * len(names))) < 0.05)
    ids = [f"{prefix}{i}" for i in range(n)]
    groups = [f"{prefix}group{i // 2}" for i in range(n)]
    return FeatureTable(sp.csr_matrix(X.astype(np.float32)), sp.csr_matrix(Y), names, ids, groups)
