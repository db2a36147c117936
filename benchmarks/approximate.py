"""Labels by an index and by a label tree: `python -m benchmarks.approximate glosses FOLDER` (or `million`).

glosses: every synset of WordNet is a label of a documents model, given to its own gloss and to those right below it;
8,000 glosses of synsets with nothing below them are held out and look for what they are a kind of: half of them choose
how hard an index looks, the others measure. million: 1,000,000 points of 64 dimensions in float16 around 20,000
centres, made from a seed, and queries near to some of them. Times are of single rows, medians, every method in turns
with the exact search. Bars: recall@10 of .95 in at most 1/8 of the exact time; of the million the table takes at most
130 MB, index and names 60 more, the top 10 less than 3 ms, and exactly at most 1.5 times what reading the table takes.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.machine import describe_machine, machine, verdict
from wsabie.search.approximate_index import ApproximateIndex
from wsabie.search.exact_index import ExactIndex
from wsabie.search.label_tree import LabelTree
from wsabie.search.screening_index import ScreeningIndex

K, ROUNDS, CALLS, N_HELD_OUT = 10, 10, 20, 8000
ANSWERED, EPOCHS = 15_000, 3
CANDIDATE_SHARES = (1, 0.5, 0.2, 0.11, 0.05, 0.01)
BEAMS = (1, 4, 16, 64)
METHODS = ("int8", "ivf", "trees", "hnsw")


class Task(NamedTuple):
    """A table, points of rows for each purpose, and their true labels where there are some."""

    name: str
    exact: ExactIndex
    names: int  # bytes
    training: Any
    labels: Any
    validation: Any
    queries: Any
    truth: Any


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("glosses", "million"))
    parser.add_argument("folder", type=Path, nargs="?", help="WordNet's files, for glosses")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS[:3])
    parser.add_argument("--recall", type=float, default=0.95, help="what is asked of an index")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    print(describe_machine(), flush=True)
    if options.task == "glosses" and options.folder is None:
        parser.error("glosses needs the folder of WordNet's files")
    task = million() if options.task == "million" else glosses(options.folder, options.epochs)
    result: dict[str, Any] = {"schema": 1, "machine": machine(), "task": task.name, "labels": len(task.exact.table)}
    result |= {"dim": task.exact.table.shape[1], "table_bytes": task.exact.table.nbytes, "name_bytes": task.names}
    print(f"{task.name}: {result['labels']:,} labels, D = {result['dim']}, {result['table_bytes'] / 1e6:.1f} MB")
    result["methods"] = list(methods(task, options.methods, options.recall))
    result["reading"] = compare_with_reading(task, task.exact)
    if options.out is not None:
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


def methods(task: Task, method_kinds: Sequence[str], recall: float) -> Any:
    """Figures of the exact search, of indices and of trees, and of filters."""
    true = task.exact.top_k(task.queries, K)
    yield report_method(task, "exact", true, 0.0, 0, 1.0, 1.0)
    for kind in ("int8", "ivf", "hnsw"):
        if kind in method_kinds:
            yield from by_index(task, kind, true, recall)
    if "trees" in method_kinds:
        yield from by_trees(task, true)


def by_trees(task: Task, true: Any) -> Any:
    sampled = slice(None, None, -(-len(task.training) // ANSWERED))
    answer_matrix = answers(task, sampled)
    trees: dict[str, tuple[Any, Any]] = {"k-means, the model's answers": (task.training[sampled], answer_matrix)}
    if task.labels is not None:
        trees["k-means, labels"] = task.training, task.labels
    for name, (points, labels) in trees.items():
        start = time.perf_counter()
        tree = LabelTree.grow(task.exact, branching=32, leaf=64)
        wrong = tree.train(points, labels, epochs=EPOCHS)
        seconds = time.perf_counter() - start
        print(f"tree ({name}) of {len(tree.shape.starts):,} nodes: wrong steps {wrong[0]:.3f} to {wrong[-1]:.3f}")
        for tree.effort in BEAMS:
            yield measure_method(task, f"tree ({name}), beam {tree.effort}", tree, true, seconds, tree.n_bytes)


def by_index(task: Task, kind: Any, true: Any, recall: float) -> Any:
    start = time.perf_counter()
    index: Any
    if kind == "int8":
        index = ScreeningIndex.build(task.exact, queries=task.validation)
    else:
        index = ApproximateIndex.build(task.exact, kind=kind, recall=recall, queries=task.validation)
    yield measure_method(task, kind, index, true, time.perf_counter() - start, index.n_bytes)
    if kind == "int8":
        same = all(np.array_equal(a, b) for a, b in zip(index.top_k(task.queries, K), true, strict=True))
        yield {"name": "int8 beside the exact search", "the_same": same, "labels_scored": index.effort}
        yield {"name": "int8 beside reading", **compare_with_reading(task, index)}
    yield {"name": f"{kind} curve", "curve": [point._asdict() for point in index.curve]}
    yield {"name": f"{kind} filters", "filters": filters(task, index)}


def answers(task: Task, sampled: slice) -> Any:
    """The flat model's first answers, as labels of rows to learn from."""
    ids = task.exact.top_k(task.training[sampled], K)[0]
    rows = np.repeat(np.arange(len(ids)), K)
    return csr_matrix((np.ones(ids.size, np.float32), (rows, ids.ravel())), (len(ids), len(task.exact.table)))


def measure_method(task: Task, name: str, method: Any, true: Any, seconds: float, size: int) -> dict[str, Any]:
    ranking = method.top_k(task.queries, K)
    recall = float((ranking[1] >= true[1][:, -1:]).mean())
    mine, theirs = [], []
    for i in range(ROUNDS):
        for search, times in ((method.top_k, mine), (task.exact.top_k, theirs)):
            time.sleep(0.1)  # the threads of BLAS spin for some 25 ms, on the cores of whoever comes next
            for query in task.queries[i * CALLS : (i + 1) * CALLS]:
                start = time.perf_counter()
                search(query[None], K)
                times.append(1e3 * (time.perf_counter() - start))
    return report_method(
        task, name, ranking, seconds, size, recall, float(np.median(mine) / np.median(theirs)), mine, theirs
    )


def report_method(
    task: Task, name: str, ranking: Any, seconds: float, size: int, recall: float, ratio: float, *times: Any
) -> dict[str, Any]:
    entry = {"name": name, "recall@10": recall, "of_exact_time": ratio, "bytes": size, "build_seconds": seconds}
    if times:
        entry |= {"ms": float(np.median(times[0])), "exact_ms": float(np.median(times[1]))}
        entry |= {"least_ms": min(times[0]), "least_exact_ms": min(times[1])}
    if task.truth is not None:
        entry |= precision(ranking[0], task.truth)
    values = (f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in entry.items())
    print(", ".join(values), flush=True)
    if name in ("ivf", "hnsw"):
        print(f"exact time {verdict(ratio, most=1 / 8)}; recall {verdict(recall, least=0.95)}", flush=True)
    return entry


def precision(ids: Any, truth: Any) -> dict[str, float]:
    """p@1, and the mean average precision of the first ten."""
    right = np.array([np.isin(row, labels) for row, labels in zip(ids, truth, strict=True)])
    ranks = np.arange(1, K + 1)
    precise = np.cumsum(right, axis=1) / ranks * right
    most = np.minimum([len(labels) for labels in truth], K)
    return {"p@1": float(right[:, 0].mean()), "MAP@10": float((precise.sum(axis=1) / most).mean())}


def filters(task: Task, index: Any) -> list[dict[str, float]]:
    """Recall and time of single rows where a part of the labels comes into question, drawn at random."""
    rng, entries = np.random.default_rng(1), []
    for share in CANDIDATE_SHARES:
        candidate_ids = np.flatnonzero(rng.random(len(task.exact.table)) < share) if share < 1 else None
        queries = task.queries[:100]
        true, scores = (searcher.top_k(queries, K, candidates=candidate_ids)[1] for searcher in (task.exact, index))
        times: list[list[float]] = [[], []]
        for query in queries[:40]:
            for search, search_times in zip((index, task.exact), times, strict=True):
                start = time.perf_counter()
                search.top_k(query[None], K, candidates=candidate_ids)
                search_times.append(1e3 * (time.perf_counter() - start))
        entry = {"left": share, "recall@10": float((scores >= true[:, -1:]).mean())}
        entry |= {"ms": float(np.median(times[0])), "exact_ms": float(np.median(times[1]))}
        entries.append(entry)
        figures = f"recall {entry['recall@10']:.3f}, {entry['ms']:.2f} ms, exact {entry['exact_ms']:.2f}"
        print(f"{index.kind}, {share:.0%} left: {figures}")
    return entries


def compare_with_reading(task: Task, index: Any) -> dict[str, float]:
    """The exact top 10 of one row beside the time of one thread to read the table once, in turns."""
    bits = np.ascontiguousarray(task.exact.table).view(np.uint64)
    times: list[list[float]] = [[], []]
    for i in range(41):
        query = task.queries[i][None]
        start = time.perf_counter()
        np.bitwise_or.reduce(bits, axis=None)
        after_read = time.perf_counter()
        index.top_k(query, K)
        times[0].append(1e3 * (after_read - start))
        times[1].append(1e3 * (time.perf_counter() - after_read))
    reads, search = (float(np.median(series)) for series in times)
    ratio = search / reads
    name = getattr(index, "kind", "exact")
    print(f"{name} {search:.2f} ms, reading {reads:.2f} ms: ratio {ratio:.2f} ({verdict(ratio, most=1.5)})")
    return {"exact_ms": search, "reading_ms": reads, "ratio": ratio}


def million() -> Task:
    n, dim = 1_000_000, 64
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n // 50, dim)).astype(np.float32)
    table, at = np.empty((n, dim), np.float16), rng.integers(0, len(centres), n)
    for lo in range(0, n, 100_000):
        block = centres[at[lo : lo + 100_000]] + 0.7 * rng.normal(size=(100_000, dim))
        lengths = rng.uniform(1, 1.5, (len(block), 1)) / np.linalg.norm(block, axis=1, keepdims=True)
        table[lo : lo + 100_000] = block * lengths

    def near(count: int) -> Any:
        return (table[rng.integers(0, n, count)] + 0.07 * rng.normal(size=(count, dim))).astype(np.float32)

    names = sum(len(f"label {number}") for number in range(0, n, 1000)) * 1000
    return Task("million", ExactIndex(table), names, near(20_000), None, near(1000), near(1000), None)


def glosses(folder: Path, epochs: int) -> Task:
    from wsabie.features.extractors.bag_of_words import BagOfWords
    from wsabie.io.data_sources import open_source
    from wsabie.io.formats.wordnet import iterate_is_a_pairs
    from wsabie.io.records import ItemSubset
    from wsabie.models.joint_embedding.estimator import Wsabie

    source: Any = open_source(folder, labels_from="none")
    ids = [item.id for item in source]
    number = {name: i for i, name in enumerate(ids)}
    pairs = np.array([(number[a], number[b]) for a, b in iterate_is_a_pairs(folder) if a in number and b in number])
    leaves = np.setdiff1d(pairs[:, 0], pairs[:, 1])
    held_out = np.sort(np.random.default_rng(0).permutation(leaves)[:N_HELD_OUT])
    training_rows = np.setdiff1d(np.arange(len(ids)), held_out)
    X = BagOfWords().fit(ItemSubset(source, training_rows)).transform(source).X
    diagonal = np.arange(len(ids))
    at = np.r_[diagonal, pairs[:, 0]], np.r_[diagonal, pairs[:, 1]]
    Y = csr_matrix((np.ones(len(at[0]), np.float32), at), (len(ids), len(ids))).tocsc()[:, training_rows].tocsr()
    Y.data[:] = 1
    names = [ids[i] for i in training_rows]
    model = Wsabie(100, epochs=epochs, seed=0).fit(X[training_rows], Y[training_rows], label_names=names)
    validation_ids, query_ids = held_out[: len(held_out) // 2], held_out[len(held_out) // 2 :]
    truth = [Y.indices[Y.indptr[i] : Y.indptr[i + 1]] for i in query_ids]
    with_truth = [i for i, diagonal in enumerate(truth) if len(diagonal)]
    size = sum(map(len, names))
    training_points, validation_points, measuring = (
        model.transform(X[rows]) for rows in (training_rows, validation_ids, query_ids[with_truth])
    )
    truths = [truth[i] for i in with_truth]
    return Task(
        "glosses", model.exact_index(), size, training_points, Y[training_rows], validation_points, measuring, truths
    )


if __name__ == "__main__":
    sys.exit(main())
