"""Sizes of correct sets for hierarchical precision ([D] Table 1), by several readings of what the appendix says."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Bool, Float64, Int64
from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.labels.hierarchy import Hierarchy
from wsabie.labels.hops import FAR
from wsabie.sources.is_a import read_hierarchy
from wsabie.sources.records import Rows
from wsabie.sources.text import numbered_lines, reading, shown
from wsabie.storage.rejects import Rejects
from wsabie.studies.reproduce.data import Data
from wsabie.studies.reproduce.record import Cell, Findings, Found, Opening, Record, Setting

KS = (2, 5, 10, 20)
SEEDS, TWO, THREE, ALL = "ImageNet 2012 1K", "Zero-shot 2-hop", "Zero-shot 3-hop", "Zero-shot ImageNet 2011 21K"
ROOTS = ("n00017222", "n09287968", "n00019128", "n00523513", "n00021939", "n12992868", "n00007846", "n00015388")
"""Plant, geological formation, natural object, sport, artifact, fungus, person, animal: the tops of ImageNet's tree."""

MISC = "misc"
_SYNSET = re.compile(rb"n\d{8}")
_SEEN = 400
"""Labels around one that are counted, enough for a ring more than the appendix asks for."""


@dataclass(frozen=True)
class SynsetLists(Data):
    """An is-a list and two sets of its synsets, the smaller within the larger; there are no rows.

    Attributes
    ----------
    seeds, labels : list of str
        The labels that models are trained with, and all.
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
    """An is-a list and the synsets of two label sets.

    Parameters
    ----------
    name : str
        A folder with WordNet's files, or ImageNet's `wordnet.is_a.txt`, and two lists of synsets, one a line (more than
        two are put together). The smallest is what models are trained with.

    Raises
    ------
    InputError
        No folder, no is-a list, or fewer than two lists of synsets.
    """
    from scipy.sparse import csr_matrix

    folder = Path(name)
    with reading(folder):
        files = sorted(folder.iterdir())
    lists = {file: found for file in files if file.is_file() and (found := _synsets(file))}
    if len(lists) < 2:
        raise InputError(f"{shown(folder)} holds {len(lists)} lists of synsets; give {OPENING.wants}")
    first, *others = sorted(lists, key=lambda file: len(lists[file]))
    labels = list(dict.fromkeys(synset for synsets in lists.values() for synset in synsets))
    about = f"{first.name} ({len(lists[first]):,} synsets) among {' and '.join(file.name for file in others)}"
    none = Rows(csr_matrix((0, 1), dtype=np.float32), csr_matrix((0, 0), dtype=np.int8), [], [])
    kinds = read_hierarchy(folder)
    about += f", {len(kinds):,} is-a pairs"
    return SynsetLists(folder.name, about, none, none, none, hierarchy=kinds, seeds=lists[first], labels=labels)


OPENING = Opening(open_synsets, "a folder with an is-a list of synsets and two lists of synsets, one a line")


def _synsets(file: Path) -> list[str]:
    """The synsets of a file that holds one on each line, but for a few; none of another file."""
    found, others = list[str](), 0
    for _, line in numbered_lines(file, 1 << 20):
        if _SYNSET.fullmatch(line.strip()):
            found.append(line.strip().decode())
        elif line.strip():
            others += 1
            if others > 10 + len(found) // 100:
                return []
    return list(dict.fromkeys(found))


class Reading(NamedTuple):
    """One way to read the appendix.

    Attributes
    ----------
    words : str
    graph : callable
        (is-a list, labels) -> the is-a list that hops are counted in.
    sizes : callable
        Labels within 0, 1, 2 ... hops, and k -> the size of the correct set.
    less : int
        Hops fewer than the name of a label set says.
    """

    words: str
    graph: Callable[[Hierarchy, Sequence[str]], Hierarchy]
    sizes: Callable[[Int64, int], int]
    less: int = 0


def whole(kinds: Hierarchy, labels: Sequence[str]) -> Hierarchy:
    """All of WordNet."""
    return kinds


def of_labels(kinds: Hierarchy, labels: Sequence[str]) -> Hierarchy:
    """ImageNet's synsets alone."""
    known = set(labels)
    return Hierarchy(pair for pair in kinds.pairs() if known.issuperset(pair))


def one_parent(kinds: Hierarchy, labels: Sequence[str]) -> Hierarchy:
    """A tree: the first parent of each synset."""
    first: dict[str, str] = {}
    for child, parent in kinds.pairs():
        first.setdefault(child, parent)
    return Hierarchy(first.items())


def with_misc(kinds: Hierarchy, labels: Sequence[str]) -> Hierarchy:
    """ImageNet's own tree, as far as it can be told from WordNet: what is under none of its eight tops is Misc's."""
    known = set(labels)
    below = _under(kinds, ROOTS) & known
    tree = Hierarchy(pair for pair in kinds.pairs() if below.issuperset(pair))
    for synset in labels:
        if synset not in below:
            tree.add(synset, MISC)
    for top in (*ROOTS, MISC):
        tree.add(top, "imagenet")
    return tree


def _under(kinds: Hierarchy, tops: Iterable[str]) -> set[str]:
    children: dict[str, list[str]] = {}
    for child, parent in kinds.pairs():
        children.setdefault(parent, []).append(child)
    found, front = set(tops), list(tops)
    while front:
        front = [child for parent in front for child in children.get(parent, ()) if child not in found]
        found.update(front)
    return found


def at_least(within: Int64, k: int) -> int:
    """Rings until there are k labels: the loop as it is printed."""
    return _size(within, int(np.searchsorted(within, k)))


def more_than(within: Int64, k: int) -> int:
    """Rings until there are more than k labels."""
    return at_least(within, k + 1)


def one_ring_more(within: Int64, k: int) -> int:
    """A ring more than is needed."""
    return _size(within, int(np.searchsorted(within, k)) + 1)


def _size(within: Int64, rings: int) -> int:
    return int(within[min(rings, len(within) - 1)])


def even_rings(within: Int64, k: int) -> int:
    """Up and down again is one hop."""
    return at_least(within[::2], k)


DIRECT = Reading("", whole, at_least)
READINGS = (
    DIRECT,
    Reading("hops through ImageNet's synsets alone", of_labels, at_least),
    Reading("one parent a synset", one_parent, at_least),
    Reading("more than k", whole, more_than),
    Reading("a ring more", whole, one_ring_more),
    Reading("siblings one hop away", whole, even_rings),
    Reading("with Misc", with_misc, at_least),
    Reading("with Misc, more than k", with_misc, more_than),
)
"""Of the labels that models are trained with."""

ZERO_SHOT = (
    DIRECT,
    Reading("one hop less", whole, at_least, 1),
    Reading("with Misc, one hop less", with_misc, at_least, 1),
)
"""Of the sets of labels never seen."""


def mean_sizes(record: Record, setting: Setting) -> Findings:
    """Mean sizes of correct sets by every reading."""
    data = setting.given
    if not isinstance(data, SynsetLists) or data.hierarchy is None:
        raise InputError(f"{record.name} needs label sets; give {OPENING.wants}")
    jobs = [(SEEDS, reading, 0) for reading in READINGS]
    jobs += [(row, reading, hops) for row, hops in ((TWO, 2), (THREE, 3), (ALL, 0)) for reading in ZERO_SHOT]
    jobs = [job for job in jobs if not (job[0] == ALL and job[1].words == "one hop less")]
    rows = []
    with setting.progress.stage("counting", len(jobs), "label sets") as stage:
        for row, reading, hops in jobs:
            rows.append(_row(row, reading, hops, data, data.hierarchy))
            stage.advance()
    return Findings(rows, notes=_NOTES)


_NOTES = [
    "A row without further words is the loop as it is printed, hops being is-a pairs of WordNet in either direction.",
    "With Misc: in ImageNet's own tree, as far as it can be told from WordNet.",
    "Zero-shot sets hold the labels so near to one of the 1K, and these; sizes are means over the others.",
]


def _row(row: str, reading: Reading, hops: int, data: SynsetLists, kinds: Hierarchy) -> Found:
    graph = reading.graph(kinds, data.labels)
    valid = data.seeds
    if row == ALL:
        valid = [*data.seeds, *data.labels]
    elif row != SEEDS:
        near = set(graph.within(data.seeds, hops - reading.less))
        valid = [*data.seeds, *(synset for synset in data.labels if synset in near)]
    valid = list(dict.fromkeys(valid))
    true = np.arange(len(valid)) if row == SEEDS else np.arange(len(data.seeds), len(valid))
    means = _means(graph, valid, true, reading)
    figures: dict[str, Cell] = {"labels": len(valid)}
    figures |= {f"k = {k}": float(mean) for k, mean in zip(KS, means, strict=True)}
    words = reading.words.removesuffix(", one hop less") if row == ALL else reading.words
    name = f"{row}, {words}" if words else row
    return Found(name, "mean sizes", figures)


def _means(graph: Hierarchy, valid: Sequence[str], true: Int64, reading: Reading) -> Float64:
    hops, sizes = graph.hops(valid), np.empty((len(true), len(KS)))
    everything: Bool = np.ones(len(valid), bool)
    for place, label in enumerate(true.tolist()):
        near = hops.around([label], _SEEN if reading.sizes in (one_ring_more, even_rings) else max(KS) + 1, everything)
        within = np.cumsum(np.bincount(near[near < FAR]))
        sizes[place] = [reading.sizes(within, k) for k in KS]
    return np.asarray(sizes.mean(axis=0)) if len(sizes) else np.full(len(KS), np.nan)
