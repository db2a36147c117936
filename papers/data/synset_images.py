"""Images with WordNet synsets as labels, and part-of pairs between these: the sample, or a collection."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from papers.datasets import LabelRelations, PaperData, build_three_sides
from wsabie.core.errors import InputError, require
from wsabie.core.execution import Executor, Progress
from wsabie.evaluation.quadruplets import QuadrupletSplit, split_quadruplets
from wsabie.evaluation.splits import Split
from wsabie.io.formats.pair_list import read_excluded_pairs
from wsabie.io.records import FeatureTable, Item, ItemList, ItemSource
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.concept_matching import LabelConcepts, match_labels
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph

SAMPLE = "sample"
PART_OF = "part-of"
_ENGLISH = "en"
_MIN_PICTURES = 2
Pairs = list[tuple[str, str]]


def open_synset_images(
    name: str,
    knowledge: Sequence[Path],
    *,
    inherit: bool = False,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress,
    rejects: Rejects,
) -> PaperData:
    """Open images of synsets, split so that each side has as many part-of pairs as possible.

    Parameters
    ----------
    name : str
        "sample", or the path of a collection of images whose labels are names or ids of synsets.
    knowledge : sequence of Path
        WordNet's folder, or other sources of `read_knowledge_graph`.
    inherit : bool
        Objects inherit the parts of their hypernyms; in Mesnil et al. 2014 they do not.
    seed, executor, progress, rejects
        As of `open_data`.

    Raises
    ------
    InputError
        No images, no known labels, or no pair with enough images.
    """
    from wsabie.features.extractors.visual_words import VisualWords
    from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph
    from wsabie.workflows.demos import N_VISUAL_WORDS, SIZE
    from wsabie.workflows.report.report_input import extract_split

    knowledge_graph = read_knowledge_graph(*knowledge)
    source, concepts_of_labels = _open_with_concepts(name, knowledge_graph, rejects)
    pairs = list_stated_parts(concepts_of_labels, inherit=inherit, sample=name == SAMPLE)
    pictures = relabel_with_synsets(source, concepts_of_labels)
    splits: list[QuadrupletSplit] = []

    def choose(rows: FeatureTable) -> Split:
        splits.append(_split_by_pairs(rows, pairs, seed))
        return splits[0].split

    extractor = VisualWords(n_words=N_VISUAL_WORDS, size=SIZE, seed=seed)
    rows, sides = extract_split(pictures, extractor, choose, executor=executor, progress=progress, rejects=rejects)
    relations = [
        (rows.label_names[object_id], rows.label_names[part_id]) for object_id, part_id in splits[0].relations.tolist()
    ]
    title = name if name == SAMPLE else Path(name).name
    rule = "and what wholes inherit" if inherit else "as stated"
    about = (
        f"{title}: {len(rows):,} pictures of {len(rows.label_names):,} synsets that have two or more; {len(pairs):,} "
        f"part-of pairs of WordNet between these ({rule}), {len(relations):,} of them with pictures for training, "
        f"validation and test; split by group, seed {seed}"
    )
    return PaperData(
        title,
        about,
        *build_three_sides(rows, sides),
        related=LabelRelations(relations, relations, []),
        source=pictures,
        meaning=partial(match_labels, knowledge_graph),
    )


def list_stated_parts(matched: LabelConcepts, *, inherit: bool, sample: bool) -> Pairs:
    """Return pairs (whole, part) of synsets, without pairs that were ruled out by hand for the sample."""
    from wsabie.samples import get_table_path

    excluded = read_excluded_pairs(get_table_path("part_exclusions")) if sample else set()
    ids = matched.ids()
    stated = {(ids[owner], ids[part]) for part, owner in matched.pairs(PART_OF, inherit=inherit)}
    return sorted(pair for pair in stated if len(set(pair)) > 1 and frozenset(pair) not in excluded)


def relabel_with_synsets(source: ItemSource, matched: LabelConcepts) -> ItemList:
    """Label images with synsets that have two images or more, such as "car (n02958343)"; drop the others."""
    concept_of_label = dict(zip(matched.labels, matched.concepts, strict=True))
    items_and_concepts = [
        (item, {concept_of_label[label] for label in item.labels if concept_of_label.get(label)}) for item in source
    ]
    counts: dict[str | None, int] = {}
    for _, concepts in items_and_concepts:
        for concept in concepts:
            counts[concept] = counts.get(concept, 0) + 1
    labelled_items: list[Item] = []
    for item, concepts in items_and_concepts:
        names = [
            format_synset_label(matched.knowledge, labelled_concept)
            for labelled_concept in sorted(filter(None, concepts))
            if counts[labelled_concept] >= _MIN_PICTURES
        ]
        if names:
            labelled_items.append(item._replace(labels=tuple(names)))
    require(len(labelled_items) > 0, f"no synset has two pictures in {source.path}; name labels as WordNet does")
    return ItemList(source.path, labelled_items)


def format_synset_label(knowledge_graph: KnowledgeGraph, concept: str) -> str:
    """Return a readable label of a synset."""
    return f"{knowledge_graph.name(concept)} ({concept})"


def _open_with_concepts(
    name: str, knowledge_graph: KnowledgeGraph, rejects: Rejects
) -> tuple[ItemSource, LabelConcepts]:
    """Return the images, and the concepts of their labels."""
    from wsabie.io.data_sources import open_source
    from wsabie.io.vocabulary.knowledge_graphs import read_label_table
    from wsabie.samples import get_table_path

    if name == SAMPLE:
        table = read_label_table(get_table_path("label_concepts"))
        source: Any = open_english_sample()
        return source, match_labels(knowledge_graph, list_source_labels(source, table), table)
    source = open_source(Path(name), rejects=rejects)
    if isinstance(source, FeatureTable) or source.modality != "pictures":
        raise InputError(f"{name} holds no pictures; give a folder of pictures labelled by names of synsets")
    return source, match_labels(knowledge_graph, list_source_labels(source))


def list_source_labels(source: ItemSource, table: Mapping[str, str] | None = None) -> list[str]:
    """Return all labels, or those of a table."""
    labels = dict.fromkeys(label for item in source for label in item.labels)
    return [label for label in labels if table is None or label in table]


def open_english_sample() -> ItemList:
    """Open the sample collection with only the English names of the emoji."""
    from pyarrow import parquet

    from wsabie.samples import get_sample_path
    from wsabie.workflows.demos import open_sample_images

    pictures = open_sample_images("all")
    table = parquet.read_table(get_sample_path("emoji"), columns=["id", "labels", "languages"]).to_pydict()
    rows = zip(table["id"], table["labels"], table["languages"], strict=True)
    english = {name: tuple(_select_language(_ENGLISH, labels, codes)) for name, labels, codes in rows}
    items = [item._replace(labels=english.get(item.id, item.labels)) for item in pictures]
    return ItemList(pictures.path, items)


def _select_language(language: str, labels: Iterable[str], languages: Iterable[Iterable[str]]) -> list[str]:
    return [label for label, codes in zip(labels, languages, strict=True) if language in codes]


def _split_by_pairs(rows: FeatureTable, pairs: Pairs, seed: int) -> QuadrupletSplit:
    """Split so that each side has as many pairs as possible."""
    label_ids = {name.rpartition("(")[2].removesuffix(")"): y for y, name in enumerate(rows.label_names)}
    ends = [
        (label_ids[object_synset], label_ids[part_synset])
        for object_synset, part_synset in pairs
        if object_synset in label_ids and part_synset in label_ids
    ]
    if not ends:
        raise InputError("no part-of pair is between synsets with two pictures; give more pictures, or --inherit")
    return split_quadruplets(rows.Y, np.array(ends), ids=rows.ids, groups=rows.groups, seed=seed)
