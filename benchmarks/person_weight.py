"""Best weight of a person's tag: `python -m benchmarks.person_weight [--seeds 3]`.

Drawings of the sample collection come with imported tags, of which a share is wrong (another label instead). For a
tenth of them a person has put right what is wrong. The model is trained from scratch with items of persons weighing 1,
2, 4 and 8 times those of imports, and judged on drawings that are not part of the collection.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.corrections import AT_LEAST, _counts, evaluate_pictures, interval, prepare_collection
from benchmarks.machine import describe_machine
from wsabie.collection.annotations.decisions import Decision, write_decisions
from wsabie.collection.db.journal import begin_entry
from wsabie.collection.folder.collection import Collection, open_collection
from wsabie.collection.labels import label_store
from wsabie.collection.learning.training import train_collection_model

WEIGHTS = (1.0, 2.0, 4.0, 8.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pictures", type=int, default=1600)
    parser.add_argument("--wrong", type=float, default=0.4, help="share of the imported tags that are wrong")
    parser.add_argument("--features", default="colour,hog")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    print(describe_machine())
    with tempfile.TemporaryDirectory() as place:
        base, test = prepare_collection(Path(place) / "base", options.pictures)
        per_picture = np.stack(
            [run(base, test, seed, options) for seed in range(options.seeds)]
        )  # seed, weight, picture
    print("| weight | MAP | beyond weight 1 |\n|---|---|---|")
    for i, weight in enumerate(WEIGHTS):
        gain = interval(per_picture[:, i] - per_picture[:, 0])
        print(
            f"| {weight:g} | {per_picture[:, i].mean():.4f} | {gain['mean']:+.4f} "
            f"[{gain['low']:+.4f}, {gain['high']:+.4f}] |"
        )


def run(base: Path, test: list[dict[str, Any]], seed: int, arguments: SimpleNamespace | Any) -> Any:
    """Average precision of the test pictures with each weight."""
    truth = [set(labels) for labels in json.loads((base / "truth.json").read_text())]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "copy"
        shutil.copytree(base, folder)
        with open_collection(folder) as collection:
            numbers = tag_items(collection, truth, arguments.wrong, np.random.default_rng([seed, 3]))
            per_row = []
            for weight in WEIGHTS:
                options = {"features": arguments.features, "threads": arguments.threads, "seed": seed}
                train_collection_model(collection, by="oracle", full=True, person_weight=weight, **options)
                per_row.append(evaluate_pictures(collection, test, numbers))
            shutil.copytree(collection.features, base / ".wsabie/features", dirs_exist_ok=True)
    return np.array(per_row)


def tag_items(collection: Collection, truth: list[set[str]], wrong: float, rng: Any) -> dict[str, int]:
    """Imported tags, some wrong, and what a person made of those of a tenth of the pictures."""
    names = [name for name, n in _counts(truth).items() if n >= AT_LEAST]
    imported, by_hand = [], []
    for item, labels in enumerate(truth, 1):
        right = sorted(labels & set(names))
        tags = {name if rng.random() > wrong else names[rng.integers(len(names))] for name in right}
        imported += [(item, name, "accepted") for name in sorted(tags)]
        if rng.random() < 0.1:
            by_hand += [(item, name, "accepted") for name in right]
            by_hand += [(item, name, "rejected") for name in sorted(tags - set(right))]
    with begin_entry(collection.engine, "oracle", "tag") as change:
        numbers = label_store.ensure_labels(change, names)
        for decisions, origin in ((imported, "import"), (by_hand, "person")):
            write_decisions(change, [Decision(item, numbers[n], state) for item, n, state in decisions], origin=origin)
    return numbers


if __name__ == "__main__":
    main()
