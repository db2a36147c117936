"""The sizes of the first paper for real: `python -m benchmarks.papers_size imagenet|web [--rows N ...] --out DIR`.

Writes shards with the statistics of the paper's collections (the law of `papers.synthetic_images`), prints
how fast, trains on them, and prints the time of an epoch, the peak of memory and the figures on further rows of the
same law, beside those of scorers that know the truth:

- noise-free: the log-likelihood of the words under each label's own point, and how often the label comes;
- oracle: the posterior of the labels given the point that the row was drawn at, which no model can see.

A row depends on its number and on the number of labels alone, so that parts can be made again, and more rows are the
same ones and others. Rows come in blocks of `TOGETHER`, in which a product is rounded alike. Peak memory is that of
anonymous pages (RssAnon of /proc/self/status): without the page cache, which the shards lie in. With several numbers of
rows each has a folder of its own in DIR, and `--draw` draws the time of an epoch by rows.
"""

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor
from math import gcd
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from benchmarks.machine import machine
from benchmarks.memory import measure_growth, resident
from papers.synthetic_images import BACKGROUND, LATENT, NOISE, TOKENS, ImageTaskSize, ImageTaskTruth, build_truth
from wsabie.core.machine import count_available_cores, limit_blas_threads
from wsabie.io.shards.shard_folder import MANIFEST, open_shard_folder, write_manifest, write_shard
from wsabie.io.shards.sharded_table import ShardStatistics, open_shards
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.storage.column_files import ColumnTable, ListColumn, compute_offsets
from wsabie.training.prefetch import prefetch

ROWS = {"imagenet": 2_518_604, "web": 9_861_293}
LABELS = {"imagenet": 15_952, "web": 109_444}
ROWS_AT_ONCE = 128
SHARD = 1 << 16
GROUP = 16
"""Words whose chances are added up, so that a draw looks at few of them."""
TEST_FROM = 1 << 40
"""Numbers of rows that no training has."""


class Law(NamedTuple):
    """Distribution that rows are drawn from."""

    world: ImageTaskTruth
    n_rows: int
    words: Any  # (LATENT + 1, n_words) float32: the points of words, and their log frequency
    common: tuple[Any, Any]  # alias table of the background
    popular: Any  # (n_labels,) float64: running sum of the labels' chances
    step: int  # label of row r: (r * step + n_labels // 2) mod n_rows where that is below n_labels, else it is drawn


def law_of(name: str, n_rows: int) -> Law:
    world = build_truth(ImageTaskSize(n_rows, 0, LABELS[name]))
    step = int(n_rows * 0.6180339887) | 1
    while gcd(step, n_rows) > 1:
        step += 2
    words = np.vstack([world.words.T, world.bias])
    return Law(world, n_rows, words, alias_table(np.exp(world.bias.astype(float))), np.cumsum(world.popularity), step)


# ---- rows


@numba.njit(cache=True, nogil=True)
def mix_bits(z):
    z = np.uint64(z) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@numba.njit(cache=True, nogil=True)
def uniform(key, number):
    """The number-th draw of a row, in (0, 1)."""
    z = mix_bits(key ^ (np.uint64(number + 1) * np.uint64(0xD6E8FEB86659FD93)))
    return (np.float64(z >> np.uint64(11)) + 0.5) * (1.0 / 9007199254740992.0)


@numba.njit(cache=True, nogil=True)
def begin(first, n, n_rows, step, popular, labels, points, noise, y, at, lengths):
    """Label, point and number of words of the rows first..first + n - 1."""
    n_labels = len(popular)
    for b in range(n):
        row = first + b
        key = mix_bits(np.uint64(row))
        place = (row * step + n_labels // 2) % n_rows if row < n_rows else n_labels
        y[b] = place if place < n_labels else np.searchsorted(popular, uniform(key, 0) * popular[-1])
        for k in range(0, at.shape[1], 2):
            size = np.sqrt(-2 * np.log(uniform(key, 1 + k)))
            angle = 2 * np.pi * uniform(key, 2 + k)
            at[b, k] = labels[y[b], k] + noise * size * np.cos(angle)
            at[b, k + 1] = labels[y[b], k + 1] + noise * size * np.sin(angle)
        normal = np.sqrt(-2 * np.log(uniform(key, 101))) * np.cos(2 * np.pi * uniform(key, 102))
        lengths[b] = int(min(max(TOKENS * np.exp(0.25 * normal), 60), 1200))


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def draw(first, n, chances, prob, alias, lengths, words, times, counts):
    """The words of rows, ascending, with how often each came; returns how many there are in all."""
    n_words = chances.shape[1]
    ladder = np.zeros(n_words // GROUP)
    word_counts = np.zeros(n_words, np.uint8)
    eights = word_counts.view(np.uint64)
    filled = 0
    for b in range(n):
        key = mix_bits(np.uint64(first + b))
        row = chances[b]
        total = 0.0
        for g in range(len(ladder)):
            part = np.float32(0)
            for j in range(GROUP):
                part += row[g * GROUP + j]
            total += part
            ladder[g] = total
        for t in range(lengths[b]):
            u = uniform(key, 200 + t)
            if u < BACKGROUND:
                u *= n_words / BACKGROUND
                word = int(u)
                if u - word >= prob[word]:
                    word = alias[word]
            else:
                u = (u - BACKGROUND) * (total / (1 - BACKGROUND))
                g, n_left = 0, len(ladder)
                while n_left > 1:  # without branches: which way is a matter of chance
                    half = n_left >> 1
                    g += half * (ladder[g + half - 1] <= u)
                    n_left -= half
                g = min(g + (ladder[g] <= u), len(ladder) - 1)
                remainder = u - (ladder[g - 1] if g else 0.0)
                word, last = g * GROUP, g * GROUP + GROUP - 1
                while word < last and remainder > row[word]:
                    remainder -= row[word]
                    word += 1
            word_counts[word] += word_counts[word] < 255
        filled_before = filled
        for e in range(len(eights)):
            if eights[e]:
                for word in range(8 * e, 8 * e + 8):
                    if word_counts[word]:
                        words[filled] = word
                        times[filled] = word_counts[word]
                        filled += 1
                eights[e] = 0
        counts[b] = filled - filled_before
    return filled


def alias_table(chances: Any) -> tuple[Any, Any]:
    """Walker's: a draw looks at one place, and takes it or the other one that is named there."""
    scaled = chances / chances.sum() * len(chances)
    prob, alias = np.ones(len(chances)), np.arange(len(chances))
    small, large = ([int(i) for i in np.flatnonzero(scaled < 1)], [int(i) for i in np.flatnonzero(scaled >= 1)])
    while small and large:
        i, j = small.pop(), large.pop()
        prob[i], alias[i] = scaled[i], j
        scaled[j] -= 1 - scaled[i]
        (small if scaled[j] < 1 else large).append(j)
    return prob, alias


def block(law: Law, first: int, n: int) -> tuple[Any, ...]:
    """(labels, points, non-zeros per row, words, counts) of at most `TOGETHER` rows."""
    y, lengths, counts = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    at = np.zeros((n, LATENT), np.float32)
    begin(first, n, law.n_rows, law.step, law.popular, law.world.labels, at, NOISE, y, at, lengths)
    chances = np.hstack([at, np.ones((n, 1), np.float32)]) @ law.words
    np.exp(chances, out=chances)
    room = int(lengths.sum())
    word_ids, times = np.empty(room, np.uint16), np.empty(room, np.uint8)
    filled = draw(first, n, chances, *law.common, lengths, word_ids, times, counts)
    return y, at, counts, word_ids[:filled], times[:filled]


def generate_rows(law: Law, first: int, end: int, threads: int) -> tuple[ColumnTable, Any]:
    """The rows first..end - 1 as columns, and the points that they were drawn at."""
    starts = range(first, end, ROWS_AT_ONCE)
    with limit_blas_threads(), ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(lambda lo: block(law, lo, min(ROWS_AT_ONCE, end - lo)), starts))
    y, at, counts, words, times = (np.concatenate(column) for column in zip(*parts, strict=True))
    x = ListColumn(compute_offsets(counts).astype(np.uint32), {"indices": words, "values": times})
    small = np.uint16 if len(law.popular) <= 1 << 16 else np.uint32
    labels = ListColumn(np.arange(len(y) + 1, dtype=np.uint32), {"labels": y.astype(small)})
    return ColumnTable({"id": np.arange(first, end, dtype=np.uint64)}, {"x": x, "y": labels}), at


def write(law: Law, out: Path, threads: int) -> dict[str, int]:
    """Write all rows, which lie in a random order as they are; how many a second, and a second of processor time."""
    out.mkdir(parents=True, exist_ok=True)
    statistics = ShardStatistics(len(law.world.words), len(law.popular), dense=False)
    firsts = range(0, law.n_rows, SHARD)
    generate_rows(law, 0, ROWS_AT_ONCE, threads)  # compiles
    files, n_written, started, used = [], 0, time.perf_counter(), time.process_time()
    with limit_blas_threads():  # from here: entered first by another thread, the limit would not be one
        for columns, _ in prefetch(
            generate_rows(law, first, min(first + SHARD, law.n_rows), threads) for first in firsts
        ):
            files.append(write_shard(out, len(files), len(firsts), columns))
            statistics.add(columns)
            n_written += len(columns)
            print(f"\r{n_written:,} rows, {n_written / (time.perf_counter() - started):,.0f}/s", end="", flush=True)
    seconds, used = time.perf_counter() - started, time.process_time() - used
    print()
    more = {"counts": True, "augment": 0, "extractor_fingerprint": None, "source": "generated", "seed": 0}
    more |= {"values": "uint8", "indices": "uint16"}
    names = {"label_names": [str(i) for i in range(len(law.popular))], "feature_names": None}
    write_manifest(out, statistics.compute_facts() | more, files, names, statistics.arrays())
    return {"rows_per_second": round(n_written / seconds), "rows_per_processor_second": round(n_written / used)}


# ---- figures


def sample(law: Law, n: int, threads: int) -> tuple[Any, Any, Any]:
    """Rows that are not among those of any training: (X, y, points)."""
    from scipy.sparse import csr_matrix

    columns, at = generate_rows(law, TEST_FROM, TEST_FROM + n, threads)
    x = columns.lists["x"]
    shape = (n, len(law.world.words))
    X = csr_matrix(
        (x.parts["values"].astype(np.float32), x.parts["indices"].astype(np.int32), x.starts.astype(int)), shape
    )
    return X, columns.lists["y"].parts["labels"].astype(np.int64), at


def oracles(law: Law, X: Any, y: Any, at: Any) -> dict[str, float]:
    """MAP (of one label: the mean of 1 / rank) of the noise-free likelihood, and of the posterior given the points."""
    world, prior = law.world, np.log(law.world.popularity).astype(np.float32)
    background = np.exp(world.bias) / np.exp(world.bias).sum()

    def logs(labels: Any) -> Any:
        chances = np.exp(world.labels[labels] @ world.words.T + world.bias)
        chances /= chances.sum(1, keepdims=True)
        return np.log((1 - BACKGROUND) * chances + BACKGROUND * background)

    def gaps(labels: Any) -> Any:
        return (world.labels[labels] ** 2).sum(1)

    true_scores = np.asarray(X.multiply(logs(y)).sum(1)).ravel() + prior[y]
    near = (2 * (at * world.labels[y]).sum(1) - gaps(y)) / (2 * NOISE**2) + prior[y]
    n_above, nearer = np.ones(len(y)), np.ones(len(y))
    for first in range(0, len(prior), 1000):
        labels = np.arange(first, min(first + 1000, len(prior)))
        is_other = y[:, None] != labels
        n_above += ((X @ logs(labels).T + prior[labels] > true_scores[:, None]) & is_other).sum(1)
        points = (2 * at @ world.labels[labels].T - gaps(labels)) / (2 * NOISE**2) + prior[labels]
        nearer += ((points > near[:, None]) & is_other).sum(1)
    return {"noise_free_MAP": float((1 / n_above).mean()), "oracle_MAP": float((1 / nearer).mean())}


def train(out: Path, epochs: int, dim: int, threads: int, X: Any, y: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    """Train on the shards, and judge on the sample, where there is one; `chosen` takes the place of defaults."""
    rows = open_shards(out)
    warm = rows.read_first(512)
    Wsabie(dim=dim, epochs=1, threads=threads).fit(warm.X, warm.Y)  # compiles
    memory_before = resident("RssAnon")
    model = Wsabie(dim=dim, epochs=epochs, threads=threads, **parameters)
    started = time.perf_counter()
    grown, _ = measure_growth(lambda: model.fit(rows), "RssAnon")
    seconds = time.perf_counter() - started
    history = model.history_
    return {
        "epochs": epochs,
        "dim": dim,
        "learning_rate": model.settings_["learning_rate"],
        "max_norm": model.settings_["max_norm"],
        "seconds_of_epochs": [round(stats.seconds, 1) for stats in history],
        "draws_per_pair": [round(stats.mean_draws, 1) for stats in history],
        "seconds": round(seconds, 1),
        "pairs_per_second": round(history[-1].pairs_per_second),
        "peak_mb_anonymous": round((memory_before + grown) / 1e6),
        "MAP": None if X is None else model.score(X, [str(label) for label in y]),
    }


def run(options: argparse.Namespace, n_rows: int, out: Path) -> dict[str, Any]:
    """Write so many rows, unless they lie there, train on them and judge."""
    law = law_of(options.name, n_rows)
    report: dict[str, Any] = {"machine": machine(options.threads), "collection": options.name, "rows": n_rows}
    if not (out / MANIFEST).exists():  # the rows of a run that was stopped are written again
        report["written"] = write(law, out, options.threads)
    shards = open_shard_folder(out)
    shape = len(shards), shards.facts["labels"]
    assert shape == (n_rows, LABELS[options.name]), f"{out} holds {shape[0]:,} rows of {shape[1]:,} labels"
    report |= {"bytes": sum(entry["bytes"] for entry in shards.files), "nonzeros": shards.facts["nonzeros"] / n_rows}
    X = y = None
    if options.sample:
        X, y, at = sample(law, options.sample, options.threads)
        report |= oracles(law, X, y, at)
    if not options.no_training:
        names = ("learning_rate", "max_norm", "max_sampled")
        parameters = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
        report |= train(out, options.epochs, options.dim, options.threads, X, y, parameters)
    return report


def draw_epochs(runs: list[dict[str, Any]], file: Path) -> None:
    """The mean time of an epoch by rows, as SVG, beside a line as steep as the rows are many."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    rows, seconds = np.array(
        [(run_figures["rows"], np.mean(run_figures["seconds_of_epochs"])) for run_figures in runs]
    ).T
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    axes.loglog(rows, seconds, marker="o", label="an epoch")
    axes.loglog(rows, seconds[0] * rows / rows[0], "--", color="grey", label="as the first point, times the rows")
    axes.set(xlabel="rows", ylabel="seconds", title=f"Time of an epoch, {LABELS[runs[0]['collection']]:,} labels")
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False)
    with mpl.rc_context({"svg.hashsalt": "wsabie"}):
        figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("name", choices=ROWS)
    parser.add_argument("--rows", type=int, nargs="+", help="training rows (default: the paper's)")
    parser.add_argument("--out", type=Path, required=True, help="folder for the shards; finished ones are used again")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--learning-rate", type=float, help="(default: the model's)")
    parser.add_argument("--max-norm", type=float, help="(default: the model's)")
    parser.add_argument("--max-trials", type=int, help="negatives drawn for a pair at most (default: the model's)")
    parser.add_argument("--sample", type=int, default=2000, help="rows that are judged (0: none)")
    parser.add_argument("--no-training", action="store_true")
    parser.add_argument("--threads", type=int, default=count_available_cores())
    parser.add_argument("--draw", type=Path, help="draw the time of an epoch by rows to this SVG file")
    parser.add_argument("--json", type=Path, help="add what was measured to this file")
    options = parser.parse_args()
    if options.draw is not None and options.no_training:
        parser.error("--draw shows the time of an epoch, of which there is none with --no-training; leave one out")
    sizes = options.rows or [ROWS[options.name]]
    runs = []
    for n_rows in sizes:
        runs.append(run(options, n_rows, options.out / str(n_rows) if len(sizes) > 1 else options.out))
        print(json.dumps(runs[-1], indent=1), flush=True)
    if options.draw is not None:
        draw_epochs(runs, options.draw)
    if options.json is not None:
        earlier_runs = json.loads(options.json.read_text())["runs"] if options.json.exists() else []
        options.json.write_text(
            json.dumps({"schema": 1, "runs": earlier_runs + runs}, indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
