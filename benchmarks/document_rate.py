"""Documents that look for documents, against what the machine allows, in one run: `python -m benchmarks.document_rate`.

1,000,000 words, 100 in a document, 100 dimensions: the table (448 MB) is larger than the cache. Words are drawn with
chances as 1 / rank. The ceiling is 1 / (encoded * nnz * t_gather + moved * nnz * t_scatter) with the two times of
`benchmarks.training_rate`, taken here on the same words and with two threads at work; encoded and moved are the
documents that a pair encodes (itself, its positive, its share of the sampled negatives) and moves, as counted.

`relations` in place of the rate: five relations over shared tables beside each of them alone, in seconds per non-zero
that is encoded. `memory`: what training takes beside the tables and the names of the documents; rows, points and
targets are mapped from files, whose pages the system may take away, and do not count.
"""

import argparse
import json
import sys
import time
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.machine import describe_machine, machine, verdict
from benchmarks.memory import measure_growth
from benchmarks.training_rate import machine_terms
from wsabie.core.arrays import allocate_array, iterate_slices
from wsabie.models.entity_space.relations import EntityKind, Relation
from wsabie.models.entity_space.space import Space
from wsabie.training.samplers import PAIRS_PER_BLOCK

WORDS, IN_A_DOCUMENT, DIM, DOCUMENTS, THREADS = 1_000_000, 100, 100, 120_000, 2
BAR_RATE, BAR_CEILING, BAR_RELATIONS, BAR_MEMORY = 60_000, 0.55, 1.10, 300
ROUNDS = 3


def corpus(n: int, rng: np.random.Generator, words: int = WORDS, nnz: int = IN_A_DOCUMENT) -> Any:
    """Documents of different words, with chances as 1 / rank, numbered at random."""
    ranks = np.minimum(words ** rng.random((n, nnz)), words - 1).astype(np.int64)
    ranks.sort(1)
    while (same := ranks[:, 1:] == ranks[:, :-1]).any():  # a word comes once: the others move on to rarer ones
        ranks[:, 1:][same] = rng.integers(0, words, int(same.sum()))
        ranks.sort(1)
    columns = np.sort(rng.permutation(words)[ranks], axis=1)
    starts = np.arange(n + 1) * nnz
    return csr_matrix((np.ones(n * nnz, np.float32), columns.ravel().astype(np.int32), starts), (n, words))


def rate(negatives: int) -> dict[str, Any]:
    """Pairs per second of a first epoch, and the ceiling."""
    rng = np.random.default_rng(0)
    X = corpus(DOCUMENTS, rng)
    documents = EntityKind("document", X)
    pairs = np.stack([np.arange(DOCUMENTS), rng.permutation(DOCUMENTS)], 1)[: DOCUMENTS // 2]
    rounds = []
    for _ in range(ROUNDS):
        space = Space(dim=DIM, epochs=1, threads=THREADS, negatives=negatives)
        space.fit([Relation(documents, documents, pairs)])
        rounds.append(space.history_[0])
    stats = sorted(rounds, key=lambda round_stats: round_stats.pairs_per_second)[ROUNDS // 2]
    inputs = space.kinds_["document"].inputs(X)
    terms = machine_terms(inputs, 2, THREADS)
    n_drawn = negatives / PAIRS_PER_BLOCK
    steps = stats.violation_rate * PAIRS_PER_BLOCK
    slots = negatives or PAIRS_PER_BLOCK
    hit = slots * (1 - (1 - 1 / slots) ** steps) / PAIRS_PER_BLOCK if negatives else 0.0
    moved = 2 * stats.violation_rate + hit
    per_pair = IN_A_DOCUMENT * ((2 + n_drawn) * terms["t_gather"] + moved * terms["t_scatter"])
    ceiling = 1 / per_pair
    return {
        "negatives": negatives,
        "pairs_per_second": stats.pairs_per_second,
        "ceiling": ceiling,
        "ratio": stats.pairs_per_second / ceiling,
        "encoded": 2 + n_drawn,
        "moved": moved,
        "t_gather": terms["t_gather"],
        "t_scatter": terms["t_scatter"],
    }


def memory(n: int) -> dict[str, Any]:
    """Bytes that a space of n documents takes while it is trained."""
    rng = np.random.default_rng(0)
    indices, data = (allocate_array(n * IN_A_DOCUMENT, dtype) for dtype in (np.int32, np.float32))
    data[:] = 1
    for part in iterate_slices(n, 20_000):
        words = corpus(part.stop - part.start, rng).indices
        indices[part.start * IN_A_DOCUMENT : part.stop * IN_A_DOCUMENT] = words
    X = csr_matrix((n, WORDS), dtype=np.float32)
    X.indptr, X.indices, X.data = np.arange(n + 1, dtype=np.int64) * IN_A_DOCUMENT, indices, data
    X.has_canonical_format = True
    few = EntityKind("document", X[:300])
    Space(dim=DIM, epochs=1, threads=THREADS).fit([Relation(few, few, [(0, 1)])])  # imports and compilation
    documents, pairs = EntityKind("document", X), np.stack([np.arange(n), rng.permutation(n)], 1)
    grown, names = measure_growth(lambda: documents.names(), "RssAnon")
    del names
    peak, space = measure_growth(
        lambda: Space(dim=DIM, epochs=1, threads=THREADS).fit([Relation(documents, documents, pairs)]), "RssAnon"
    )
    tables = sum(table.nbytes for table in space.space_.tables.values())
    return {"documents": n, "grown": peak, "tables": tables, "names": grown, "beside": peak - tables - grown}


def relations() -> dict[str, Any]:
    """Seconds per encoded non-zero: five relations together, and each alone."""
    rng, n = np.random.default_rng(0), 60_000
    tracks = EntityKind("track", corpus(n, rng, 4_000, 60))
    track, artist = np.arange(n), rng.integers(0, 3_000, n)
    music_relations = [
        Relation(tracks, "artist", np.stack([track, artist], 1), name="artist"),
        Relation(tracks, "genre", np.stack([track, artist % 40], 1), name="genre"),
        Relation("artist", tracks, np.stack([artist, track], 1), name="song"),
        Relation(tracks, tracks, np.stack([track, rng.permutation(n)], 1)[: n // 2], name="similar"),
        Relation("artist", "artist", np.stack([artist, rng.integers(0, 3_000, n)], 1)[:30_000], name="near"),
    ]
    encoded = {"artist": 1, "genre": 1, "song": 2, "similar": 3, "near": 0}  # tracks a pair: query, positive, its draw
    kinds = {"artist": EntityKind("artist", ids=[str(i) for i in range(3_000)]),
             "genre": EntityKind("genre", ids=[str(i) for i in range(40)])}  # fmt: skip
    music_relations = [
        Relation(kinds.get(r.query_kind, tracks), kinds.get(r.target_kind, tracks), r.pairs, r.name)
        for r in music_relations
    ]
    seconds_alone, count = {}, {}
    for relation in music_relations:
        seconds_alone[relation.name], pairs = _seconds([relation])
        count[relation.name] = pairs * max(encoded[relation.name] * 60, 1)
    joint_seconds, _ = _seconds(music_relations)
    return {
        "alone_seconds": seconds_alone,
        "together_seconds": joint_seconds,
        "ratio": joint_seconds / sum(seconds_alone.values()),
        "nanoseconds_per_non_zero": {"together": 1e9 * joint_seconds / sum(count.values()),
                                     "alone": 1e9 * sum(seconds_alone.values()) / sum(count.values())},
    }  # fmt: skip


def _seconds(relations: list[Relation]) -> tuple[float, int]:
    """Return the median seconds of an epoch, and its pairs."""
    space = Space(dim=DIM, epochs=ROUNDS + 2, threads=THREADS, schedule="constant").fit(relations)
    return float(np.median([stats.seconds for stats in space.history_[1:]])), space.history_[0].pairs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("rate", "relations", "memory"), default="rate")
    parser.add_argument("--documents", type=int, default=1_000_000, help="for memory")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    started = time.time()
    report = {
        "rate": lambda: {"rates": [rate(n) for n in (0, 256)]},
        "relations": relations,
        "memory": lambda: memory(options.documents),
    }[options.what]()
    report = {**report, "machine": machine(THREADS), "seconds": round(time.time() - started)}
    if options.json:
        print(json.dumps(report, indent=1))
        return 0
    print(describe_machine())
    if options.what == "relations":
        print(
            f"five relations together / alone: {report['ratio']:.3f} ({verdict(report['ratio'], most=BAR_RELATIONS)})"
        )
        print(report["nanoseconds_per_non_zero"], report["alone_seconds"], report["together_seconds"])
        return int(report["ratio"] > BAR_RELATIONS)
    if options.what == "memory":
        sizes = {key: f"{report[key] / 1e6:,.0f} MB" for key in ("grown", "tables", "names", "beside")}
        print(f"{report['documents']:,} documents: {sizes} ({verdict(report['beside'] / 1e6, most=BAR_MEMORY)})")
        return int(report["beside"] > BAR_MEMORY * 1e6)
    for row in report["rates"]:
        negatives, pairs = row["negatives"], row["pairs_per_second"]
        title = f"{negatives} sampled negatives" if negatives else "positives of the block as negatives"
        print(f"{title}: {pairs:,.0f} pairs/s ({verdict(pairs, least=BAR_RATE)})")
        print(
            f"  ceiling {row['ceiling']:,.0f} = 1 / ({row['encoded']:.2f} x 100 x {row['t_gather'] * 1e9:.1f} ns + "
            f"{row['moved']:.2f} x 100 x {row['t_scatter'] * 1e9:.1f} ns); ratio {row['ratio']:.2f} "
            f"({verdict(row['ratio'], least=BAR_CEILING)})"
        )
    return int(max(row["ratio"] for row in report["rates"]) < BAR_CEILING)


if __name__ == "__main__":
    sys.exit(main())
