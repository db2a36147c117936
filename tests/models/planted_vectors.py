"""Rows whose labels have word vectors; the last labels have no row in training."""

import numpy as np

from wsabie.vocabulary.word_vectors import WordVectors

DIM, N_SEEN, UNSEEN, EACH = 12, 24, 6, 12
LABELS = [f"word{i}" for i in range(N_SEEN + UNSEEN)]


def planted(seed=0, noise=0.3):
    """Rows that a random map makes of the vectors of their labels: (vectors, X, label of each row)."""
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((len(LABELS), DIM)).astype(np.float32)
    y = np.repeat(np.arange(len(LABELS)), EACH)
    X = table[y] @ rng.standard_normal((DIM, 40)) + noise * rng.standard_normal((len(y), 40))
    return WordVectors(LABELS, table), X.astype(np.float32), y


VECTORS, X, TRUE = planted()
TRAIN, TEST = TRUE < N_SEEN, TRUE >= N_SEEN


def fit_model(model, rows=X):
    return model.fit(rows[TRAIN], [LABELS[y] for y in TRUE[TRAIN]])
