"""Is-a lists, word vectors, ARFF and misspelt names: public data where WSABIE_TEST_DATA names them, else made up."""

import gzip
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet

from benchmarks.libraries.measure import Work, compare
from wsabie.io.formats.mulan import read_mulan
from wsabie.io.vocabulary.hierarchy_files import read_hierarchy
from wsabie.io.vocabulary.word_vector_files import read_word_vectors
from wsabie.samples import get_sample_path
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary import spelling_variants
from wsabie.vocabulary.hierarchy_distances import FAR

NAMES = 10_000


def run(folder: Path) -> None:
    """Read each list and ask it something."""
    data = Path(os.environ.get("WSABIE_TEST_DATA", folder))
    pairs = data / "imagenet_synsets" / "wordnet.is_a.txt"
    if not pairs.is_file():
        pairs = folder / "pairs.tsv"
        pairs.write_text("".join(f"c{n // 4}\tc{n}\n" for n in range(1, 75_000)))
    _compare_hierarchies(pairs)
    vectors = data / "glove_twitter_25d_12k" / "glove_twitter_25d.txt"
    if not vectors.is_file():
        vectors = folder / "vectors.txt"
        table = np.random.default_rng(0).normal(size=(12_000, 25))
        vectors.write_text("".join(f"w{n} {' '.join(f'{v:.5f}' for v in row)}\n" for n, row in enumerate(table)))
    _compare_vectors(vectors, folder)
    if (data / "bibtex_mulan").is_dir():
        _compare_arff(data / "bibtex_mulan", folder)
    _compare_spelling()


def _compare_hierarchies(path: Path) -> None:
    pairs = [line.split() for line in path.read_text().splitlines()]
    names = sorted({child for _, child in pairs})[:2_000]

    def ours() -> Work:
        return lambda: read_hierarchy(path, parent_first=True)

    def networkx() -> Work:
        import networkx as nx

        return lambda: nx.DiGraph((child, parent) for parent, child in (line.split() for line in path.open()))

    def rdflib() -> Work:
        from rdflib import Graph, URIRef

        def work() -> Any:
            graph, broader = Graph(), URIRef("urn:broader")
            for line in path.read_text().splitlines():
                parent, child = line.split()
                graph.add((URIRef(f"urn:{child}"), broader, URIRef(f"urn:{parent}")))
            return graph

        return work

    title = f"{len(pairs):,} is-a pairs"
    compare(f"{title}, read", {"ours": ours, "networkx": networkx, "rdflib": rdflib}, lambda graph: f"{len(graph):,}")  # type: ignore[arg-type]

    def our_distances() -> Work:
        hops = read_hierarchy(path, parent_first=True).find_distances(names)
        return lambda: sum(int((hops.compute_hops([n], FAR, max_rings=3) <= 3).sum()) for n in range(0, 2_000, 20))

    def their_distances() -> Work:
        import networkx as nx

        graph, name_set = nx.Graph((child, parent) for parent, child in pairs), set(names)

        def work() -> int:
            near = (nx.single_source_shortest_path_length(graph, names[n], 3) for n in range(0, 2_000, 20))
            return sum(len(name_set & set(rings)) for rings in near)

        return work

    compare(f"{title}, labels near 100 labels", {"ours": our_distances, "networkx": their_distances}, str)


def _compare_vectors(path: Path, folder: Path) -> None:
    def ours() -> Work:
        def work() -> Any:
            (folder / "cache.npy").unlink(missing_ok=True)
            return read_word_vectors(path, cache=folder / "cache.npy").table

        return work

    def again() -> Work:
        return lambda: read_word_vectors(path, cache=folder / "cache.npy").table

    def gensim() -> Work:
        from gensim.models import KeyedVectors

        return lambda: KeyedVectors.load_word2vec_format(path, no_header=True).vectors

    expected = ours()()

    def note(table: Any) -> str:
        return f"{table.shape}, same bits: {bool((table == expected).all())}"

    title = f"{path.stat().st_size / 1e6:.1f} MB of word vectors"
    compare(title, {"ours, first time": ours, "ours, later": again, "gensim": gensim}, note)


def _compare_arff(folder: Path, work_folder: Path) -> None:
    path = work_folder / "bibtex-train.arff"
    with gzip.open(folder / "bibtex-train.arff.gz") as packed, path.open("wb") as out:
        shutil.copyfileobj(packed, out)
    shutil.copy(folder / "bibtex.xml", work_folder)

    def ours() -> Work:
        return lambda: read_mulan(path, rejects=Rejects()).X.nnz

    def liac() -> Work:
        import arff

        def work() -> int:
            with path.open() as stream:
                rows = arff.load(stream, return_type=arff.LOD)["data"]
            return sum(1 for row in rows for column in row if column < 1836)

        return work

    def scipy() -> Work:
        from scipy.io import arff

        def work() -> str:
            try:
                arff.loadarff(path)
            except Exception as error:
                return f"fails: {error!s:.40}"
            return "read"

        return work

    title = f"{path.stat().st_size / 1e6:.1f} MB of sparse ARFF"
    compare(title, {"ours": ours, "liac-arff": liac, "scipy": scipy}, str)


def _compare_spelling() -> None:
    labels = parquet.read_table(get_sample_path("emoji"), columns=["labels"])["labels"].to_pylist()
    keys = sorted({spelling_variants.squeeze_name(label) for row in labels for label in row if label.isascii()})
    keys = [key for key in keys if spelling_variants.MIN_LETTERS_ONE <= len(key) <= spelling_variants.MAX_LENGTH]
    names = keys[:: max(1, len(keys) // NAMES)][:NAMES]
    lengths = np.array(list(map(len, names)))
    pairs = spelling_variants._find_candidate_pairs(names, lengths)
    first_names, second_names = ([names[place] for place in places] for places in pairs.T)

    def ours() -> Work:
        return lambda: len(list(spelling_variants._find_typing_errors(names)))

    def all_pairs() -> Work:
        from rapidfuzz import process
        from rapidfuzz.distance import OSA

        def work() -> int:
            table = process.cdist(names, names, scorer=OSA.distance, score_cutoff=2, dtype=np.uint8)
            first, second = np.nonzero(np.triu(table <= 2, 1))
            allowed = np.where(np.minimum(lengths[first], lengths[second]) < spelling_variants.MIN_LETTERS_TWO, 1, 2)
            is_near = table[first, second] <= allowed
            near = zip(first[is_near].tolist(), second[is_near].tolist(), strict=True)
            return sum(re.findall(r"\d+", names[a]) == re.findall(r"\d+", names[b]) for a, b in near)

        return work

    entrants = {"ours": ours, "rapidfuzz all pairs": all_pairs}
    compare(f"typing errors among {len(names):,} names", entrants, lambda n: f"{n:,} pairs")

    def our_distances() -> Work:
        return lambda: spelling_variants._measure_distances(first_names, second_names)

    def their_distances() -> Work:
        from rapidfuzz import process
        from rapidfuzz.distance import OSA

        options: Any = {"scorer": OSA.distance, "score_cutoff": 2, "dtype": np.int64}
        return lambda: process.cpdist(first_names, second_names, **options)

    expected: Any = our_distances()()
    entrants = {"ours": our_distances, "rapidfuzz cpdist": their_distances}
    title = f"distances of {len(pairs):,} candidate pairs"
    compare(title, entrants, lambda distances: f"same: {bool(np.array_equal(distances, expected))}")  # type: ignore[arg-type]
