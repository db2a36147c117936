"""Training on quadruplets beside training on pairs, in one run: `python -m benchmarks.quadruplet_rate [COLLECTION]`.

A pair encodes a picture. A quadruplet ranks one of its two labels, and the picture of the other one falls out of the
step (`wsabie.kernels.embedding.relation_patterns`), so that it encodes one picture too, and a label beside it. Both see
the same rows, as often, and differ by what a step costs: with tables of their own a draw reads two rows in place of
one. What an epoch takes to draw its quadruplets counts. Bar: 80 % of the rate of pairs per non-zero that is encoded.
"""

import argparse
import json
from statistics import median
from typing import Any

import numpy as np

from benchmarks.machine import machine, told, verdict
from papers.data.planted_parts import generate_planted_parts
from wsabie.models.object_parts.object_parts import ObjectParts
from wsabie.models.wsabie.estimator import Wsabie

DIM, THREADS, EPOCHS, ROUNDS = 100, 2, 4, 3
BAR = 0.8


def rates(name: str, threads: int) -> dict[str, Any]:
    """Non-zeros encoded a second, by model: the median of the epochs of all rounds, the first epoch left out."""
    task = generate_planted_parts(name)
    train = task.split.train
    X, y = task.pictures.X[train], task.pictures.y[train]
    told_of = task.training.tolist()
    seen: dict[str, list[float]] = {}
    draws: dict[str, float] = {}
    for _ in range(ROUNDS):
        models = {
            "pairs": Wsabie(dim=DIM, epochs=EPOCHS, threads=threads),
            "quadruplets, shared": ObjectParts(told_of, dim=DIM, tables="shared", epochs=EPOCHS, threads=threads),
            "quadruplets, unshared": ObjectParts(told_of, dim=DIM, epochs=EPOCHS, threads=threads),
        }
        for name_of, model in models.items():
            model.fit(X, y)
            own = [stats.pairs_per_second for stats in model.history_[1:]]
            seen.setdefault(name_of, []).extend(own)
            draws[name_of] = float(np.mean([stats.mean_draws for stats in model.history_[1:]]))
    per_row = X.nnz / X.shape[0]
    return {
        name_of: {
            "non_zeros_per_second": median(own) * per_row,
            "pairs_per_second": median(own),
            "draws": draws[name_of],
        }
        for name_of, own in seen.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", nargs="?", default="parts:S")
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = rates(asked.collection, asked.threads)
    pairs = found["pairs"]["non_zeros_per_second"]
    if asked.json:
        print(json.dumps({"machine": machine(), "collection": asked.collection, "rates": found}))
        return
    print(told())
    for name, one in found.items():
        share = one["non_zeros_per_second"] / pairs
        bar = "" if name == "pairs" else f"  {share:.2f} of pairs, {verdict(share, least=BAR)}"
        millions, rate, draws = one["non_zeros_per_second"] / 1e6, one["pairs_per_second"], one["draws"]
        print(f"{name:22} {millions:6.2f} M non-zeros/s  {rate:9,.0f} steps/s  {draws:5.1f} draws{bar}")


if __name__ == "__main__":
    main()
