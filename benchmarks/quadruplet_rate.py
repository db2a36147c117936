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

from benchmarks.machine import describe_machine, machine, verdict
from papers.data.planted_parts import generate_planted_parts
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.object_parts.ranker import ObjectParts

DIM, THREADS, EPOCHS, ROUNDS = 100, 2, 4, 3
BAR = 0.8


def rates(name: str, threads: int) -> dict[str, Any]:
    """Non-zeros encoded a second, by model: the median of the epochs of all rounds, the first epoch left out."""
    task = generate_planted_parts(name)
    train = task.split.train
    X, y = task.pictures.X[train], task.pictures.y[train]
    told_of = task.training.tolist()
    rates_by_input: dict[str, list[float]] = {}
    draws: dict[str, float] = {}
    for _ in range(ROUNDS):
        models = {
            "pairs": Wsabie(dim=DIM, epochs=EPOCHS, threads=threads),
            "quadruplets, shared": ObjectParts(told_of, dim=DIM, tables="shared", epochs=EPOCHS, threads=threads),
            "quadruplets, unshared": ObjectParts(told_of, dim=DIM, epochs=EPOCHS, threads=threads),
        }
        for name_of, model in models.items():
            model.fit(X, y)
            epoch_rates = [stats.pairs_per_second for stats in model.history_[1:]]
            rates_by_input.setdefault(name_of, []).extend(epoch_rates)
            draws[name_of] = float(np.mean([stats.mean_draws for stats in model.history_[1:]]))
    per_row = X.nnz / X.shape[0]
    return {
        name_of: {
            "non_zeros_per_second": median(epoch_rates) * per_row,
            "pairs_per_second": median(epoch_rates),
            "draws": draws[name_of],
        }
        for name_of, epoch_rates in rates_by_input.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", nargs="?", default="parts:S")
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = rates(options.collection, options.threads)
    pairs = report["pairs"]["non_zeros_per_second"]
    if options.json:
        print(json.dumps({"machine": machine(), "collection": options.collection, "rates": report}))
        return
    print(describe_machine())
    for name, rate_figures in report.items():
        share = rate_figures["non_zeros_per_second"] / pairs
        bar = "" if name == "pairs" else f"  {share:.2f} of pairs, {verdict(share, least=BAR)}"
        millions, rate, draws = (
            rate_figures["non_zeros_per_second"] / 1e6,
            rate_figures["pairs_per_second"],
            rate_figures["draws"],
        )
        print(f"{name:22} {millions:6.2f} M non-zeros/s  {rate:9,.0f} steps/s  {draws:5.1f} draws{bar}")


if __name__ == "__main__":
    main()
