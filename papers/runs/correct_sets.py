"""Sizes of correct sets for hierarchical precision (Frome et al. 2013, Table 1), by several readings."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from papers.datasets import PaperData
from papers.record import Cell, DataOpener, FindingRow, PaperRecord, RunFindings, RunSettings
from wsabie.core.arrays import Bool, Float64, Int64
from wsabie.core.errors import InputError
from wsabie.core.execution import SILENT, Executor, Progress
from wsabie.io.parsers.text_files import explain_input_errors, format_path, iterate_numbered_lines
from wsabie.io.records import FeatureTable
from wsabie.io.vocabulary.hierarchy_files import read_hierarchy
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.concept_hierarchy import Hierarchy
from wsabie.vocabulary.hierarchy_distances import FAR

KS = (2, 5, 10, 20)
SEEDS, TWO, THREE, ALL_LABELS = "ImageNet 2012 1K", "Zero-shot 2-hop", "Zero-shot 3-hop", "Zero-shot ImageNet 2011 21K"
ROOTS = ("n00017222", "n09287968", "n00019128", "n00523513", "n00021939", "n12992868", "n00007846", "n00015388")
"""Plant, geological formation, natural object, sport, artifact, fungus, person, animal: roots of ImageNet."""

MISC = "misc"
_SYNSET = re.compile(rb"n\d{8}")
_MAX_NEIGHBOURS = 400
"""Nearest labels that are counted, enough for one ring more than in the appendix."""


@dataclass(frozen=True)
class SynsetLists(PaperData):
    """An is-a list and two sets of its synsets, the smaller within the larger, without rows.

    Attributes
    ----------
    seeds, labels : list of str
        Training labels, and all labels.
    """

    seeds: list[str] = field(default_factory=list, repr=False)
    labels: list[str] = field(default_factory=list, repr=False)

    @property
    def facts(self) -> dict[str, Any]:
        """Counts and the fingerprint of the list, for JSON."""
        kinds = self.hierarchy or Hierarchy()
        counts = {"labels": len(self.labels), "seeds": len(self.seeds), "pairs": len(kinds)}
        return {"name": self.name, "about": self.about, **counts, "fingerprint": {"is-a list": kinds.fingerprint()}}


def open_synsets(
    name: str,
    *,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
) -> SynsetLists:
    """Open an is-a list and the synsets of two label sets.

    Parameters
    ----------
    name : str
        A folder with WordNet's files, or ImageNet's `wordnet.is_a.txt`, and two or more lists of synsets, one a line.
        The smallest list holds the training labels.

    Raises
    ------
    InputError
        No folder, no is-a list, or fewer than two lists of synsets.
    """
    from scipy.sparse import csr_matrix

    folder = Path(name)
    with explain_input_errors(folder):
        files = sorted(folder.iterdir())
    lists = {file: synsets for file in files if file.is_file() and (synsets := _read_synsets(file))}
    if len(lists) < 2:
        raise InputError(f"{format_path(folder)} holds {len(lists)} lists of synsets; give {OPENING.data_hint}")
    smallest, *larger = sorted(lists, key=lambda file: len(lists[file]))
    labels = list(dict.fromkeys(synset for synset_list in lists.values() for synset in synset_list))
    about = f"{smallest.name} ({len(lists[smallest]):,} synsets) among {' and '.join(file.name for file in larger)}"
    no_rows = FeatureTable(csr_matrix((0, 1), dtype=np.float32), csr_matrix((0, 0), dtype=np.int8), [], [])
    kinds = read_hierarchy(folder)
    about += f", {len(kinds):,} is-a pairs"
    return SynsetLists(
        folder.name, about, no_rows, no_rows, no_rows, hierarchy=kinds, seeds=lists[smallest], labels=labels
    )


OPENING = DataOpener(open_synsets, "a folder with an is-a list of synsets and two lists of synsets, one a line")


def _read_synsets(file: Path) -> list[str]:
    """Return the synsets of a file with one on almost every line; none for another file."""
    synsets, n_other_lines = list[str](), 0
    for _, line in iterate_numbered_lines(file, 1 << 20):
        if _SYNSET.fullmatch(line.strip()):
            synsets.append(line.strip().decode())
        elif line.strip():
            n_other_lines += 1
            if n_other_lines > 10 + len(synsets) // 100:
                return []
    return list(dict.fromkeys(synsets))


class AppendixReading(NamedTuple):
    """One way to read the appendix.

    Attributes
    ----------
    words : str
    graph : callable
        (is-a list, labels) -> the is-a list for counting hops.
    sizes : callable
        Labels within 0, 1, 2 ... hops, and k -> the size of the correct set.
    less : int
        Hops less than in the name of a label set.
    """

    words: str
    graph: Callable[[Hierarchy, Sequence[str]], Hierarchy]
    sizes: Callable[[Int64, int], int]
    less: int = 0


def build_whole_hierarchy(kinds: Hierarchy, labels: Sequence[str]) -> Hierarchy:
    """Return all of WordNet."""
    return kinds


def build_label_hierarchy(kinds: Hierarchy, labels: Sequence[str]) -> Hierarchy:
    """Return ImageNet's synsets only."""
    label_set = set(labels)
    return Hierarchy(pair for pair in kinds.pairs() if label_set.issuperset(pair))


def build_tree(kinds: Hierarchy, labels: Sequence[str]) -> Hierarchy:
    """Return a tree with the first parent of each synset."""
    parent_of: dict[str, str] = {}
    for child, parent in kinds.pairs():
        parent_of.setdefault(child, parent)
    return Hierarchy(parent_of.items())


def build_tree_with_misc(kinds: Hierarchy, labels: Sequence[str]) -> Hierarchy:
    """Return ImageNet's own tree, reconstructed from WordNet: synsets under none of its roots go to Misc."""
    label_set = set(labels)
    synsets_under_roots = _find_descendants(kinds, ROOTS) & label_set
    tree = Hierarchy(pair for pair in kinds.pairs() if synsets_under_roots.issuperset(pair))
    for synset in labels:
        if synset not in synsets_under_roots:
            tree.add(synset, MISC)
    for top in (*ROOTS, MISC):
        tree.add(top, "imagenet")
    return tree


def _find_descendants(kinds: Hierarchy, tops: Iterable[str]) -> set[str]:
    children: dict[str, list[str]] = {}
    for child, parent in kinds.pairs():
        children.setdefault(parent, []).append(child)
    descendants, front = set(tops), list(tops)
    while front:
        front = [child for parent in front for child in children.get(parent, ()) if child not in descendants]
        descendants.update(front)
    return descendants


def expand_to_at_least(within: Int64, k: int) -> int:
    """Add rings until there are k labels: the loop as it is printed."""
    return _get_size(within, int(np.searchsorted(within, k)))


def expand_to_more_than(within: Int64, k: int) -> int:
    """Add rings until there are more than k labels."""
    return expand_to_at_least(within, k + 1)


def expand_one_ring_further(within: Int64, k: int) -> int:
    """Add one ring more than needed."""
    return _get_size(within, int(np.searchsorted(within, k)) + 1)


def _get_size(within: Int64, rings: int) -> int:
    return int(within[min(rings, len(within) - 1)])


def expand_even_rings(within: Int64, k: int) -> int:
    """Count up and down again as one hop."""
    return expand_to_at_least(within[::2], k)


DIRECT = AppendixReading("", build_whole_hierarchy, expand_to_at_least)
READINGS = (
    DIRECT,
    AppendixReading("hops through ImageNet's synsets alone", build_label_hierarchy, expand_to_at_least),
    AppendixReading("one parent a synset", build_tree, expand_to_at_least),
    AppendixReading("more than k", build_whole_hierarchy, expand_to_more_than),
    AppendixReading("a ring more", build_whole_hierarchy, expand_one_ring_further),
    AppendixReading("siblings one hop away", build_whole_hierarchy, expand_even_rings),
    AppendixReading("with Misc", build_tree_with_misc, expand_to_at_least),
    AppendixReading("with Misc, more than k", build_tree_with_misc, expand_to_more_than),
)
"""Readings for the training labels."""

ZERO_SHOT = (
    DIRECT,
    AppendixReading("one hop less", build_whole_hierarchy, expand_to_at_least, 1),
    AppendixReading("with Misc, one hop less", build_tree_with_misc, expand_to_at_least, 1),
)
"""Readings for the zero-shot labels."""


def compute_mean_sizes(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Compute mean sizes of correct sets by every reading."""
    data = setting.required_data
    if not isinstance(data, SynsetLists) or data.hierarchy is None:
        raise InputError(f"{record.name} needs label sets; give {OPENING.data_hint}")
    jobs = [(SEEDS, reading, 0) for reading in READINGS]
    jobs += [(row, reading, hops) for row, hops in ((TWO, 2), (THREE, 3), (ALL_LABELS, 0)) for reading in ZERO_SHOT]
    jobs = [job for job in jobs if not (job[0] == ALL_LABELS and job[1].words == "one hop less")]
    rows = []
    with setting.progress.stage("counting", len(jobs), "label sets") as stage:
        for row, reading, hops in jobs:
            rows.append(_compute_row(row, reading, hops, data, data.hierarchy))
            stage.advance()
    return RunFindings(rows, notes=_NOTES)


_NOTES = [
    "A row without further words is the loop as it is printed, hops being is-a pairs of WordNet in either direction.",
    "With Misc: in ImageNet's own tree, as far as it can be told from WordNet.",
    "Zero-shot sets hold the labels so near to one of the 1K, and these; sizes are means over the others.",
]


def _compute_row(row: str, reading: AppendixReading, hops: int, data: SynsetLists, kinds: Hierarchy) -> FindingRow:
    graph = reading.graph(kinds, data.labels)
    valid = data.seeds
    if row == ALL_LABELS:
        valid = [*data.seeds, *data.labels]
    elif row != SEEDS:
        near = set(graph.find_within(data.seeds, hops - reading.less))
        valid = [*data.seeds, *(synset for synset in data.labels if synset in near)]
    valid = list(dict.fromkeys(valid))
    true = np.arange(len(valid)) if row == SEEDS else np.arange(len(data.seeds), len(valid))
    means = _compute_means(graph, valid, true, reading)
    figures: dict[str, Cell] = {"labels": len(valid)}
    figures |= {f"k = {k}": float(mean) for k, mean in zip(KS, means, strict=True)}
    words = reading.words.removesuffix(", one hop less") if row == ALL_LABELS else reading.words
    name = f"{row}, {words}" if words else row
    return FindingRow(name, "mean sizes", figures)


def _compute_means(graph: Hierarchy, valid: Sequence[str], true: Int64, reading: AppendixReading) -> Float64:
    hops, sizes = graph.find_distances(valid), np.empty((len(true), len(KS)))
    everything: Bool = np.ones(len(valid), bool)
    for place, label in enumerate(true.tolist()):
        near = hops.compute_hops(
            [label],
            _MAX_NEIGHBOURS if reading.sizes in (expand_one_ring_further, expand_even_rings) else max(KS) + 1,
            everything,
        )
        within = np.cumsum(np.bincount(near[near < FAR]))
        sizes[place] = [reading.sizes(within, k) for k in KS]
    return np.asarray(sizes.mean(axis=0)) if len(sizes) else np.full(len(KS), np.nan)
