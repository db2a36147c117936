"""Pictures whose labels are WordNet's synsets, with the part-of pairs between these: the sample, or any collection."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import Progress
from wsabie.base.validation import require
from wsabie.evaluation.quadruplet_splits import QuadrupletSplit, split_quadruplets
from wsabie.evaluation.splits import Split
from wsabie.labels.knowledge import Knowledge
from wsabie.labels.matching import Matched, match_labels
from wsabie.sources.records import Item, ItemList, ItemSource, Rows
from wsabie.storage.rejects import Rejects
from wsabie.studies.reproduce.data import Data, Related, three_sides

SAMPLE = "sample"
PART_OF = "part-of"
_ENGLISH = "en"
_MIN_PICTURES = 2
Pairs = list[tuple[str, str]]


def pictures_with_parts(
    name: str,
    knowledge: Sequence[Path],
    *,
    inherit: bool = False,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress,
    rejects: Rejects,
) -> Data:
    """Pictures of synsets in three parts, such that as many part-of pairs as can be are on each of them.

    Parameters
    ----------
    name : str
        "sample", or the path of a collection of pictures whose labels are names or ids of synsets.
    knowledge : sequence of Path
        WordNet's folder, or what else `read_knowledge` takes.
    inherit : bool
        Wholes have the parts of what they are a kind of; in [P] they have not.
    seed, executor, progress, rejects
        As of `open_data`.

    Raises
    ------
    InputError
        No pictures, nothing known of their labels, or no pair with pictures enough.
    """
    from wsabie.features.visual_terms import VisualTerms
    from wsabie.sources.knowledge import read_knowledge
    from wsabie.studies.demo import N_TERMS, SIZE
    from wsabie.studies.pictures import describe_split

    known = read_knowledge(*knowledge)
    source, matched = _meant(name, known, rejects)
    pairs = stated_parts(matched, inherit=inherit, sample=name == SAMPLE)
    pictures = with_synsets(source, matched)
    dealt: list[QuadrupletSplit] = []

    def choose(rows: Rows) -> Split:
        dealt.append(_split(rows, pairs, seed))
        return dealt[0].split

    terms = VisualTerms(n_terms=N_TERMS, size=SIZE, seed=seed)
    rows, sides = describe_split(pictures, terms, choose, executor=executor, progress=progress, rejects=rejects)
    told = [(rows.label_names[a], rows.label_names[b]) for a, b in dealt[0].relations.tolist()]
    title = name if name == SAMPLE else Path(name).name
    how = "and what wholes inherit" if inherit else "as stated"
    about = (
        f"{title}: {len(rows):,} pictures of {len(rows.label_names):,} synsets that have two or more; {len(pairs):,} "
        f"part-of pairs of WordNet between these ({how}), {len(told):,} of them with pictures for training, "
        f"validation and test; split by group, seed {seed}"
    )
    return Data(
        title,
        about,
        *three_sides(rows, sides),
        related=Related(told, told, []),
        source=pictures,
        meaning=partial(match_labels, known),
    )


def stated_parts(matched: Matched, *, inherit: bool, sample: bool) -> Pairs:
    """Pairs (whole, part) of synsets; those that were ruled out by hand for the sample are left out."""
    from wsabie.samples import not_parts

    out = not_parts() if sample else frozenset()
    ids = matched.ids()
    found = {(ids[part], ids[whole]) for part, whole in matched.pairs(PART_OF, inherit=inherit)}
    return sorted((whole, part) for part, whole in found - out if whole != part)


def with_synsets(source: ItemSource, matched: Matched) -> ItemList:
    """The pictures that have a synset with two pictures or more, labelled by these: "car (n02958343)"."""
    meant = dict(zip(matched.labels, matched.concepts, strict=True))
    found = [(item, {meant[label] for label in item.labels if meant.get(label)}) for item in source]
    counts: dict[str | None, int] = {}
    for _, concepts in found:
        for concept in concepts:
            counts[concept] = counts.get(concept, 0) + 1
    kept: list[Item] = []
    for item, concepts in found:
        names = [named(matched.knowledge, c) for c in sorted(filter(None, concepts)) if counts[c] >= _MIN_PICTURES]
        if names:
            kept.append(item._replace(labels=tuple(names)))
    require(len(kept) > 0, f"no synset has two pictures in {source.path}; name labels as WordNet does")
    return ItemList(source.path, kept)


def named(known: Knowledge, concept: str) -> str:
    """A label for a synset that a person can read."""
    return f"{known.name(concept)} ({concept})"


def _meant(name: str, known: Knowledge, rejects: Rejects) -> tuple[ItemSource, Matched]:
    """The pictures, and what their labels mean."""
    from wsabie.samples import table_path
    from wsabie.sources.knowledge import read_label_table
    from wsabie.sources.open import open_source

    if name == SAMPLE:
        table = read_label_table(table_path("meanings"))
        source: Any = in_english()
        return source, match_labels(known, labels_of(source, table), table)
    source = open_source(Path(name), rejects=rejects)
    if isinstance(source, Rows) or source.things != "pictures":
        raise InputError(f"{name} holds no pictures; give a folder of pictures labelled by names of synsets")
    return source, match_labels(known, labels_of(source))


def labels_of(source: ItemSource, table: Mapping[str, str] | None = None) -> list[str]:
    """All labels, or those of a table."""
    found = dict.fromkeys(label for item in source for label in item.labels)
    return [label for label in found if table is None or label in table]


def in_english() -> ItemList:
    """The sample collection with the English names of the emoji alone."""
    from pyarrow import parquet

    from wsabie.samples import sample_path
    from wsabie.studies.demo import sample_pictures

    pictures = sample_pictures("all")
    told = parquet.read_table(sample_path("emoji"), columns=["id", "labels", "languages"]).to_pydict()
    rows = zip(told["id"], told["labels"], told["languages"], strict=True)
    english = {name: tuple(_in(_ENGLISH, labels, of)) for name, labels, of in rows}
    items = [item._replace(labels=english.get(item.id, item.labels)) for item in pictures]
    return ItemList(pictures.path, items)


def _in(language: str, labels: Iterable[str], languages: Iterable[Iterable[str]]) -> list[str]:
    return [label for label, of in zip(labels, languages, strict=True) if language in of]


def _split(rows: Rows, pairs: Pairs, seed: int) -> QuadrupletSplit:
    """Sides on which as many pairs are as can be."""
    number = {name.rpartition("(")[2].removesuffix(")"): y for y, name in enumerate(rows.label_names)}
    ends = [(number[a], number[b]) for a, b in pairs if a in number and b in number]
    if not ends:
        raise InputError("no part-of pair is between synsets with two pictures; give more pictures, or --inherit")
    return split_quadruplets(rows.Y, np.array(ends), ids=rows.ids, groups=rows.groups, seed=seed)
