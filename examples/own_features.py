"""Rows and labels of your own: explicit negatives, weights, a label added later, saving and loading."""

import tempfile
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, vstack

import wsabie

# 300 documents of three kinds; words 0-9 belong to the first, 10-19 to the second, 20-29 to the third.
rng = np.random.default_rng(0)
kind = np.repeat([0, 1, 2], 100)
X = csr_matrix(rng.poisson(0.2 + 2.0 * (np.arange(30) // 10 == kind[:, None])).astype(np.float32))

# 1 = has the label, -1 = is known not to have it, 0 = nobody said.
names = ["sea", "wood", "town", "quiet"]
Y = np.zeros((300, 4), np.int8)
Y[np.arange(300), kind] = 1
Y[:, 3] = np.where(kind == 2, -1, 1)

model = wsabie.Wsabie(dim=16, epochs=20)
model.fit(X, csr_matrix(Y), label_names=names, sample_weight=np.where(kind == 2, 2.0, 1.0))
print("document 0:", sorted(name for name, score in model.annotate(X[:1], k=2)[0]))
print("document 299:", model.annotate(X[299:], k=1)[0][0][0])

# A label that nobody had thought of, for documents of two kinds at once. Old labels keep their numbers.
mixed = vstack([X[:20] + X[280:]]).tocsr()
model.partial_fit(mixed, [["harbour"]] * 20)
print("after partial_fit:", list(model.vocabulary_), "->", model.annotate(mixed[:1], k=1)[0][0][0])

with tempfile.TemporaryDirectory() as folder:
    model.save(Path(folder) / "model")
    again = wsabie.load(Path(folder) / "model")
    print("saved and loaded, same vectors:", bool((again.label_vectors == model.label_vectors).all()))
