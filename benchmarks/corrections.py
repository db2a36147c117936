"""Does reviewing suggestions help? `python -m benchmarks.corrections [--seeds 5] [--out FOLDER]`.

A collection of drawings of the sample collection begins with a few tags of every label. A model is trained, its
suggestions are reviewed by somebody who knows the answers (accepted where the picture has the label, rejected where
not), and after every fortieth of the first suggestions it is trained again, in the way that the collection finds right.
All of it goes through what `wsabie collection` calls: decisions, training, suggestions. After each training the MAP of
the model in use is taken on drawings that are not part of the collection. Suggestions are reviewed in three orders: the
ones that the model doubts most (probability nearest to a half), the most probable, and at random. So much is decided
that all of these trainings are from scratch; one line more goes on with the model before each time (`GOING_ON`).
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sqlalchemy import insert, select

from benchmarks.machine import describe_machine, machine
from wsabie.collection.annotations.decisions import Decision, write_decisions
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read, begin_write
from wsabie.collection.db.journal import begin_entry, format_current_time
from wsabie.collection.folder.collection import Collection, create_collection, open_collection
from wsabie.collection.labels import label_store
from wsabie.collection.learning import retrain_plan
from wsabie.collection.learning.evaluation import pool_scores_by_label
from wsabie.collection.learning.training import train_collection_model
from wsabie.collection.registry.model_registry import load_model
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.io.records import Item, ItemList
from wsabie.samples import get_sample_path

ORDERS = ("doubt", "best", "random")
GOING_ON = "random, going on"
"""At random, and every training but the first is on top of the model before, however much was decided."""
ROUNDS = 4
SHARE = 0.025  # of the first suggestions, in a round
AT_LEAST = 25  # pictures of a label
FIRST = 4  # tags of a label at the start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--pictures", type=int, default=1600, help="in the collection; a third as many are the test")
    parser.add_argument("--features", default="colour,hog")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write corrections.json, corrections.svg and about.md to this folder")
    options = parser.parse_args()
    print(describe_machine())
    with tempfile.TemporaryDirectory() as place:
        base, test = prepare_collection(Path(place) / "base", options.pictures)
        runs_by_order = {
            line: [run(base, test, line, s, options) for s in range(options.seeds)] for line in (*ORDERS, GOING_ON)
        }
    summary = summarise_runs(runs_by_order)
    page = format_page(summary, options)
    print(page)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        content = {
            "schema": 1,
            "machine": machine(),
            "pictures": options.pictures,
            "features": options.features,
            **summary,
        }
        (options.out / "corrections.json").write_text(json.dumps(content, indent=1) + "\n")
        (options.out / "about.md").write_text(page)
        draw_curves(summary, options.out / "corrections.svg")


def prepare_collection(folder: Path, n: int) -> tuple[Path, list[dict[str, Any]]]:
    """A collection of drawings that nobody has tagged, and the test; whole groups are on one side."""
    import pyarrow.parquet as pq

    rows = pq.read_table(get_sample_path("drawings"), columns=["id", "image", "labels", "group"]).to_pylist()
    groups = sorted({row["group"] for row in rows})
    place = dict(zip(groups, np.random.default_rng(7).permutation(len(groups)), strict=True))
    rows.sort(key=lambda row: (place[row["group"]], row["id"]))
    pool, other_rows = rows[:n], [row for row in rows[n:] if row["group"] != rows[n - 1]["group"]]
    with create_collection(folder) as collection:
        for number, row in enumerate(pool):
            (folder / f"{number}.webp").write_bytes(row["image"])
        (folder / "truth.json").write_text(json.dumps([row["labels"] for row in pool]))
        with begin_write(collection.engine) as connection:
            connection.execute(insert(tables.items), [_item(folder / f"{i}.webp", i + 1) for i in range(len(pool))])
    return folder, other_rows[: n // 3]


def _item(path: Path, number: int) -> dict[str, Any]:
    from hashlib import blake2b

    stat, name = path.stat(), blake2b(path.read_bytes(), digest_size=16).hexdigest()
    columns = {"id": number, "root_id": 1, "path": path.name, "folder": "", "hash": name, "size": stat.st_size}
    return columns | {"mtime_ns": stat.st_mtime_ns, "state": "present", "added_at": format_current_time()}


def run(base: Path, test: list[dict[str, Any]], line: str, seed: int, arguments: Any) -> dict[str, Any]:
    """Average precision of every test picture after each training, and how many suggestions were reviewed by then."""
    order, most = (line, retrain_plan.MAX_UPDATED_SHARE) if line != GOING_ON else ("random", 1e6)
    rng = np.random.default_rng([seed, 1])
    truth = [set(labels) for labels in json.loads((base / "truth.json").read_text())]
    names = [name for name, n in _counts(truth).items() if n >= AT_LEAST]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "copy"
        shutil.copytree(base, folder)  # times of change are kept
        with open_collection(folder) as collection, patch.object(retrain_plan, "MAX_UPDATED_SHARE", most):
            numbers = _first_tags(collection, truth, names, rng)
            options = {"by": "oracle", "features": arguments.features, "threads": arguments.threads, "seed": seed}
            options["even_if_worse"] = True  # what each training brings is measured
            methods = [train_collection_model(collection, **options).method]
            shutil.copytree(collection.features, base / ".wsabie/features", dirs_exist_ok=True)
            per_row, right, reviewed = [evaluate_pictures(collection, test, numbers)], [], [0]
            at_once = int(SHARE * len(_suggestions(collection)))
            for _ in range(ROUNDS):
                right.append(review(collection, truth, numbers, order, at_once, rng))
                methods.append(train_collection_model(collection, **options).method)
                per_row.append(evaluate_pictures(collection, test, numbers))
                reviewed.append(reviewed[-1] + at_once)
    print(line, seed, reviewed[-1], [round(float(p.mean()), 4) for p in per_row], methods, [round(r, 2) for r in right])
    return {"reviewed": reviewed, "per_row": np.array(per_row), "how": methods, "right": right, "labels": len(names)}


def _counts(truth: list[set[str]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in sorted(name for labels in truth for name in labels):
        counts[name] = counts.get(name, 0) + 1
    return counts


def _first_tags(collection: Collection, truth: list[set[str]], names: list[str], rng: Any) -> dict[str, int]:
    with begin_entry(collection.engine, "oracle", "tag", "a few tags of every label") as change:
        numbers = label_store.ensure_labels(change, names)
        for name in names:
            have = [place for place, labels in enumerate(truth) if name in labels]
            places = rng.choice(have, FIRST, replace=False)
            write_decisions(change, [Decision(int(place) + 1, numbers[name], "accepted") for place in places])
    return numbers


def _suggestions(collection: Collection) -> list[tuple[int, int, float]]:
    """(item, label, probability) of the model in use, but for what is decided."""
    s, a, m = tables.suggestions.c, tables.annotations.c, tables.models.c
    decided = select(a.id).where(a.item_id == s.item_id, a.label_id == s.label_id).exists()
    query = select(s.item_id, s.label_id, s.probability).join(tables.models, m.id == s.model_id)
    with begin_read(collection.engine) as connection:
        rows = connection.execute(query.where(m.in_use, ~decided).order_by(s.item_id, s.label_id))
        return [(item, label, p) for item, label, p in rows]


def review(
    collection: Collection, truth: list[set[str]], numbers: dict[str, int], order: str, n: int, rng: Any
) -> float:
    """Decide about n suggestions; how many of them were right."""
    suggestions = _suggestions(collection)
    p = np.array([probability for _, _, probability in suggestions])
    key = {"doubt": -np.minimum(p, 1 - p), "best": -p, "random": rng.random(len(p))}[order]
    name_of = {number: name for name, number in numbers.items()}
    reviewed_suggestions = [suggestions[i] for i in np.argsort(key, kind="stable")[:n]]
    right = [name_of[label] in truth[item - 1] for item, label, _ in reviewed_suggestions]
    decisions = [
        Decision(item, label, "accepted" if yes else "rejected")
        for (item, label, _), yes in zip(reviewed_suggestions, right, strict=True)
    ]
    with begin_entry(collection.engine, "oracle", "review", f"{n} suggestions") as change:
        write_decisions(change, decisions)
    return float(np.mean(right))


_feature_rows: dict[str, Any] = {}


def evaluate_pictures(collection: Collection, test: list[dict[str, Any]], numbers: dict[str, int]) -> Any:
    """Average precision of each test picture that has one of the labels."""
    from scipy.sparse import csr_matrix

    opened = load_model(collection)
    name = opened.annotator.extractor_fingerprint
    if name not in _feature_rows:
        source = ItemList(Path("test"), [Item(str(i), row["image"], ()) for i, row in enumerate(test)])
        _feature_rows[name] = opened.annotator.extractor.transform(source).X
    label_ids = np.array(sorted(numbers.values()))
    column = {label: place for place, label in enumerate(label_ids)}
    pairs = [
        (i, column[numbers[label]]) for i, row in enumerate(test) for label in set(row["labels"]) if label in numbers
    ]
    truth = csr_matrix((np.ones(len(pairs), np.int8), tuple(zip(*pairs, strict=True))), (len(test), len(label_ids)))
    with begin_read(collection.engine) as connection:
        now_called = opened.read_current_labels(connection)
    scores = pool_scores_by_label(opened.model.scores(_feature_rows[name]), now_called, label_ids)
    return evaluate_scores([(0, scores)], truth).per_row["MAP"]


def summarise_runs(runs_by_order: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Curves, gains and areas, with intervals over seeds and pictures drawn again together."""
    per_row = {
        order: np.stack([run_figures["per_row"] for run_figures in runs]) for order, runs in runs_by_order.items()
    }  # seed, time, row
    area = {order: (values[:, 1:] + values[:, :-1]).mean(axis=1) / 2 for order, values in per_row.items()}
    first = next(iter(runs_by_order.values()))[0]
    return {
        "labels": first["labels"],
        "test": per_row["doubt"].shape[2],
        "reviewed": np.mean(
            [run_figures["reviewed"] for runs in runs_by_order.values() for run_figures in runs], axis=0
        )
        .round()
        .tolist(),
        "curves": {order: values.mean(axis=(0, 2)).tolist() for order, values in per_row.items()},
        "per_seed": {order: values.mean(axis=2).tolist() for order, values in per_row.items()},
        "right": {
            order: np.mean([run_figures["right"] for run_figures in runs], axis=0).tolist()
            for order, runs in runs_by_order.items()
        },
        "how": {order: [run_figures["how"] for run_figures in runs] for order, runs in runs_by_order.items()},
        "gain": {order: interval(values[:, -1] - values[:, 0]) for order, values in per_row.items()},
        "area over random": {order: interval(area[order] - area["random"]) for order in ("doubt", "best", GOING_ON)},
    }


def interval(differences: Any, resamples: int = 2000) -> dict[str, Any]:
    """The mean of paired differences (seeds, pictures), and 95 per cent of the means where both are drawn again."""
    rng = np.random.default_rng(0)
    seeds, rows = differences.shape
    means = [
        differences[rng.integers(seeds, size=seeds)][:, rng.integers(rows, size=rows)].mean() for _ in range(resamples)
    ]
    low, high = np.percentile(means, [2.5, 97.5])
    return {
        "mean": float(differences.mean()), "low": float(low), "high": float(high),
        "seeds": differences.mean(axis=1).tolist(),
    }  # fmt: skip


def format_page(summary: dict[str, Any], options: Any) -> str:
    """The page about it."""
    counts = [f"{int(n):,}" for n in summary["reviewed"]]
    lines = [
        "# Reviewing suggestions",
        "",
        f"`python -m benchmarks.corrections`: {options.pictures:,} drawings of the sample collection, "
        f"{summary['labels']} labels that begin with {FIRST} tags each, features `{options.features}`; MAP on "
        f"{summary['test']:,} other drawings, mean of {options.seeds} seeds, after so many reviewed suggestions (a "
        "tenth of the first ones at the end):",
        "",
        f"| order | {' | '.join(counts)} | gain | of the reviewed are right |",
        "|---|" + "---|" * (len(counts) + 2),
    ]
    for order, curve in summary["curves"].items():
        figures = " | ".join(f"{value:.4f}" for value in curve)
        right = f"{100 * float(np.mean(summary['right'][order])):.0f} %"
        lines.append(f"| {order} | {figures} | {_interval(summary['gain'][order])} | {right} |")
    lines += ["", "Area under the curve (mean MAP along it) beyond that of the random order:", ""]
    lines += [f"- {order}: {_interval(gain)}" for order, gain in summary["area over random"].items()]
    lines += ["", "In brackets 95 % intervals, seeds and test pictures drawn again together.", ""]
    return "\n".join(lines)


def _interval(gain: dict[str, Any]) -> str:
    return f"{gain['mean']:+.4f} [{gain['low']:+.4f}, {gain['high']:+.4f}]"


def draw_curves(summary: dict[str, Any], file: Path) -> None:
    """The curves as SVG."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for order, curve in summary["curves"].items():
        axes.plot(summary["reviewed"], curve, marker=".", label=order)
    axes.set(xlabel="reviewed suggestions", ylabel="MAP on other pictures", title="Learning from corrections")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    with mpl.rc_context({"svg.hashsalt": "wsabie"}):
        figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
