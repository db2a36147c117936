"""Glosses that look for their hypernyms': `python -m benchmarks.glosses /usr/share/wordnet`.

Every synset of WordNet is a document, its words and its gloss, and is paired with what it is a kind of. A tenth of the
synsets with a hypernym, all of them without kinds of their own, are held out wholly; they ask for the documents of
their hypernyms among all that are left. hp@10 counts how many of the first ten lie around a hypernym in WordNet. Bar:
twice the recall@10 of the cosine of tf-idf.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe_machine, verdict
from wsabie.features.extractors.bag_of_words import BagOfWords
from wsabie.io.data_sources import open_source
from wsabie.io.formats.wordnet import iterate_is_a_pairs
from wsabie.io.records import ItemSubset
from wsabie.io.vocabulary.hierarchy_files import read_hierarchy
from wsabie.models.entity_space.relations import EntityKind, Relation
from wsabie.models.entity_space.space import Space
from wsabie.workflows.spaces.relation_methods import evaluate_cosine

KS, BAR = (1, 10), 2.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(describe_machine())
    glosses: Any = open_source(options.folder, labels_from="none")
    ids = [item.id for item in glosses]
    number = {name: i for i, name in enumerate(ids)}
    pairs = np.array(
        [(number[a], number[b]) for a, b in iterate_is_a_pairs(options.folder) if a in number and b in number]
    )
    leaves = np.setdiff1d(pairs[:, 0], pairs[:, 1])
    held_out = np.random.default_rng(options.seed).permutation(leaves)[: len(np.unique(pairs[:, 0])) // 10]
    training = np.setdiff1d(np.arange(len(ids)), held_out)
    sides = [ItemSubset(glosses, np.sort(side)) for side in (training, held_out)]
    words = BagOfWords().fit(sides[0])
    training_rows, asking = map(words.transform, sides)
    by_name = [(ids[a], ids[b]) for a, b in pairs]
    held_out_ids = set(asking.ids)
    training_pairs, test_pairs = (
        [pair for pair in by_name if (pair[0] in held_out_ids) == side] for side in (False, True)
    )
    print(
        f"{len(training_rows):,} synsets, {len(training_pairs):,} pairs; {len(asking):,} held out; "
        f"{training_rows.X.shape[1]:,} words"
    )
    truth = Relation(EntityKind("gloss", asking.X, asking.ids), "gloss", test_pairs, "is-a")
    hierarchy, base = read_hierarchy(options.folder / "data.noun", options.folder / "data.verb"), None
    for scaling, negatives in (("auto", 256), ("tfidf", 256), ("auto", 0)):
        documents = EntityKind("gloss", training_rows.X, training_rows.ids, scaling)  # type: ignore[arg-type]
        space = Space(negatives=negatives, seed=options.seed).fit(
            [Relation(documents, documents, training_pairs, "is-a")]
        )
        space_means = space.evaluate([truth], ks=KS, hierarchy=hierarchy)["is-a"].means
        if base is None:
            Y = _matrix(test_pairs, asking.ids, training_rows.ids)
            base = evaluate_cosine(
                training_rows.X, asking.X, training_rows.X, Y, KS, hops=hierarchy.find_distances(training_rows.ids)
            ).means
            print(f"tf-idf cosine: {_format_means(base)}")
        ratio = space_means["recall@10"] / base["recall@10"]
        title = f"space, scaling {scaling}, {f'{negatives} sampled' if negatives else 'in-batch'} negatives"
        print(
            f"{title}: {_format_means(space_means)}, "
            f"{space.history_[-1].pairs_per_second:,.0f} pairs/s; {ratio:.2f} times ({verdict(ratio, least=BAR)})",
            flush=True,
        )
    return 0


def _format_means(means: dict[str, float]) -> str:
    return ", ".join(f"{name} {means[name]:.3f}" for name in ("recall@10", "recall@1", "hp@10"))


def _matrix(pairs: list[tuple[str, str]], rows: list[str], columns: list[str]) -> Any:
    from scipy.sparse import csr_matrix

    at, to = {name: i for i, name in enumerate(rows)}, {name: i for i, name in enumerate(columns)}
    positions = [(at[a], to[b]) for a, b in pairs if b in to]
    return csr_matrix(
        (np.ones(len(positions), np.int8), tuple(zip(*positions, strict=True))), (len(rows), len(columns))
    )


if __name__ == "__main__":
    sys.exit(main())
